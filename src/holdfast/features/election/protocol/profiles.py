"""Configurations with names: what ships, and what the laboratory compares with.  Spec: election 8 (common setup)."""

from __future__ import annotations

from typing import NamedTuple

from holdfast.features.election.protocol.config import ElectionConfig
from holdfast.features.election.protocol.manner import Variant
from holdfast.features.election.protocol.rules import Rules

PAPER_TIMEOUT = 0.5  # 500 units of a millisecond
PAPER_ROUNDS = 1 << 20  # the paper asks for ever


class Profile(NamedTuple):
    """Numbers and rules. What ships has ``Rules()``."""

    config: ElectionConfig
    rules: Rules = Rules()


def default(variant: Variant = "hybrid") -> Profile:
    return Profile(ElectionConfig(variant=variant))


# For the laboratory alone.


def paper(variant: Variant = "hybrid", *, c: int, f: int = 2, timeout: float = PAPER_TIMEOUT) -> Profile:
    """The paper with the repairs that its own text needs (D1, D5, D7): no majority, no incumbent, nothing asked of the own list, no term
    from a clock, a nominee that is silent is not told again, one multicast."""
    config = ElectionConfig(
        variant=variant, timeout=timeout, c=c, f=f, sticky=False, query_rounds=PAPER_ROUNDS, notify_retries=0, init_spread=0.0
    )
    return Profile(config, Rules(self_response=False, clock_terms=False, confirm=False, repeat=False))


def literal(variant: Variant = "hybrid", *, c: int, f: int = 2, timeout: float = PAPER_TIMEOUT) -> Profile:
    """The paper as it is printed, with the flaws that D1, D5, D7, D8 and D22 repair. Experiment L5 shows them."""
    config, rules = paper(variant, c=c, f=f, timeout=timeout)
    changes = {"names_itself": False, "nomination_terms": False, "empty_at_end": False, "only_unhealthy": False, "pairs": False}
    return Profile(config, Rules(**{**{field: getattr(rules, field) for field in rules.__struct_fields__}, **changes}))
