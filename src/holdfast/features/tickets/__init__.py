"""Numbered slots, each with at most one owner: cells, guardians, coordinators."""

KIND = "ticket"  # of grant: how clients ask for it
