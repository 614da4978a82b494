"""Tickets: numbered slots, each owned by at most one process.  Spec: tickets; paper 001."""
