"""Counters of a group: every member can add, and all members come to the same value."""

KIND = "counter"  # of grant
