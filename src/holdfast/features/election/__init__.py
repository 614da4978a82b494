"""Churn-tolerant elections: a leader where no majority is, and therefore not an exclusive one."""

KIND = "elect"  # of grant: how clients ask for it
