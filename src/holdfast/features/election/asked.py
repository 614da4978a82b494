"""How a client asks for a name to be elected, as options of a grant.  Spec: election 4, 10."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holdfast.errors import ConfigError, shown
from holdfast.features.election.protocol.manner import HEALTHS, TAGS_MAX, VARIANTS, VOTERS, Manner, manner

FIELDS = ("variant", "voters", "rank", "health")
ACCEPTED = {
    "variant": ", ".join(VARIANTS),
    "voters": ", ".join(VOTERS),
    "rank": "hash, tag:NAME, -tag:NAME",
    "health": f"{', '.join(HEALTHS)}, tag:NAME",
}


def manner_in(options: Mapping[str, Any]) -> Manner:
    """What is not said has its default. The options come from a client and may be anything: raises ``ConfigError`` naming the field."""
    given: dict[str, Any] = {field: options[field] for field in FIELDS if field in options}
    for field, value in given.items():
        if field == "rank" and isinstance(value, list | tuple):
            if len(value) > TAGS_MAX + 1:
                raise ConfigError(f"rank: {len(value)} tags; accepted are at most {TAGS_MAX}")
            given["rank"] = tuple(value)
        elif not isinstance(value, str):
            raise ConfigError(f"{field}: {shown(value)}; accepted are {ACCEPTED[field]}")
    return manner(**given)


def check_flags(options: Mapping[str, Any]) -> None:
    """What ``holdfast run --by election`` was told. Raises ``ConfigError`` naming the flag."""
    try:
        manner_in(options)
    except ConfigError as error:
        raise ConfigError(f"--{error}") from None
