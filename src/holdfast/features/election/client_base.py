"""What both spellings of an election's client share: how a name is elected, as the caller says it.  docs/election.md."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from holdfast.client import checks
from holdfast.errors import ConfigError, shown
from holdfast.local.leaders import ELECTION, WAYS

NAME_BYTES_MAX = 100


def manner_of(
    by: str, variant: str | None, voters: str | None, rank: str | Sequence[str] | None, health: str | None
) -> dict[str, Any] | None:
    """As options of the grant; None: the seats decide. Raises ``ConfigError`` naming the field."""
    if by not in WAYS:
        raise ConfigError(f"by: {shown(by)}; accepted are {', '.join(WAYS)}")
    given = {"variant": variant, "voters": voters, "rank": rank, "health": health}
    options = {name: value for name, value in given.items() if value is not None}
    if by != ELECTION:
        for name, value in options.items():
            raise ConfigError(f'{name}: {shown(value)}; accepted is None without by="election"')
        return None
    from holdfast.features.election.asked import manner_in  # Only who asks for an election loads the words of one.

    if isinstance(rank, list | tuple):
        options["rank"] = list(rank)
    manner_in(options)
    return options


def checked_name(value: str) -> str:
    return checks.name(value, "name", NAME_BYTES_MAX)
