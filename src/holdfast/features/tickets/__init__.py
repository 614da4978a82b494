"""Numbered slots, each with at most one owner: cells, guardians, coordinators."""
