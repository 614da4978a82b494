"""How a name is elected: what all candidates of it, and all who answer questions about it, must have alike.

Spec: election 3, 4, D13; foundation F4. It travels with every message about the name, because an answer that was ranked otherwise proves
nothing.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from holdfast.bounds import Label
from holdfast.errors import ConfigError, shown
from holdfast.host import ROW_NAME_BYTES_MAX

Variant = Literal["base", "optimistic", "preferred", "hybrid"]
Voters = Literal["none", "seats", "members"]
VARIANTS: tuple[Variant, ...] = ("base", "optimistic", "preferred", "hybrid")
VOTERS: tuple[Voters, ...] = ("none", "seats", "members")
HASH = "hash"
SUSPICIONS, OWN, FALSE_POSITIVES = "suspicions", "own", "false_positives"
HEALTHS = (SUSPICIONS, OWN, FALSE_POSITIVES)
TAG, MINUS_TAG = "tag:", "-tag:"
TAGS_MAX = 4  # in a rank

RankTag = Annotated[str, Meta(max_length=ROW_NAME_BYTES_MAX + 1)]


class Manner(Struct, frozen=True, array_like=True, gc=False):
    """Variant, mode, rank and health of one name. Of two agents with other values neither counts the other's answers."""

    variant: Annotated[int, Meta(ge=0, le=3)] = 3  # of VARIANTS
    voters: Annotated[int, Meta(ge=0, le=2)] = 0  # of VOTERS
    rank: Annotated[tuple[RankTag, ...], Meta(max_length=TAGS_MAX)] = ()  # the hash is last in every rank; () is the hash alone
    health: Label = ""  # "": suspicions

    @property
    def streams(self) -> bool:
        """True if the would-be leader is told as soon as an answer names it."""
        return self.variant in (1, 3)

    @property
    def prefers(self) -> bool:
        """True if unhealthy candidates are left out."""
        return self.variant in (2, 3)

    @property
    def fencing(self) -> bool:
        """True if a term needs more than its nominee: a majority of seats or of members."""
        return self.voters != 0

    @property
    def by_seats(self) -> bool:
        return self.voters == 1

    @property
    def by_members(self) -> bool:
        return self.voters == 2

    # As users write it.

    @property
    def variant_name(self) -> Variant:
        return VARIANTS[self.variant]

    @property
    def voters_name(self) -> Voters:
        return VOTERS[self.voters]

    @property
    def rank_names(self) -> tuple[str, ...]:
        return self.rank or (HASH,)

    @property
    def health_name(self) -> str:
        return self.health or SUSPICIONS

    def words(self) -> dict[str, str]:
        """The manner in words, for ``ConfigMismatch`` and pages, by the names of the settings."""
        rank = ", ".join(self.rank_names)
        return {"variant": self.variant_name, "voters": self.voters_name, "rank": rank, "health": self.health_name}


def manner(variant: str = "hybrid", voters: str = "none", rank: str | tuple[str, ...] = HASH, health: str = SUSPICIONS) -> Manner:
    """The manner that a user wrote. Raises ``ConfigError`` naming the field."""
    if variant not in VARIANTS:
        raise ConfigError(f"variant: {shown(variant)}; accepted are {', '.join(VARIANTS)}")
    if voters not in VOTERS:
        raise ConfigError(f"voters: {shown(voters)}; accepted are {', '.join(VOTERS)}")
    return Manner(VARIANTS.index(variant), VOTERS.index(voters), parse_rank(rank), parse_health(health))


def parse_rank(rank: str | tuple[str, ...]) -> tuple[str, ...]:
    """``"hash"``, or up to four of ``"tag:NAME"`` and ``"-tag:NAME"``; the hash at the end may be said or not."""
    tags = (rank,) if isinstance(rank, str) else tuple(rank)
    if tags and tags[-1] == HASH:
        tags = tags[:-1]
    for tag in tags:
        if not isinstance(tag, str) or not _is_tag(tag.removeprefix("-")):
            raise ConfigError(f"rank: {shown(tag)}; accepted are hash, tag:NAME, -tag:NAME")
    if len(tags) > TAGS_MAX:
        raise ConfigError(f"rank: {len(tags)} tags; accepted are at most {TAGS_MAX}")
    return tags


def parse_health(health: str) -> str:
    if health not in HEALTHS and not (isinstance(health, str) and _is_tag(health)):
        raise ConfigError(f"health: {shown(health)}; accepted are {', '.join(HEALTHS)}, tag:NAME")
    return "" if health == SUSPICIONS else health


def is_sound(made: Manner) -> bool:
    """True if an honest agent could have this manner. What a peer sent is decoded within its bounds, and this is the rest."""
    return all(_is_tag(tag.removeprefix("-")) for tag in made.rank) and (made.health in ("", OWN, FALSE_POSITIVES) or _is_tag(made.health))


def _is_tag(text: str) -> bool:
    return text.startswith(TAG) and len(TAG) < len(text.encode()) <= ROW_NAME_BYTES_MAX
