"""Errors of counters for users."""

from holdfast.errors import Unavailable


class CounterLimit(Unavailable):
    """There are as many counters as this agent begins."""
