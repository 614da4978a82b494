"""Membership by leases, arbitration and joins on a ring of positions."""
