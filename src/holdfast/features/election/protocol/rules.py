"""The decisions as switches, so that the laboratory can show what each of them is for.  Spec: election 6, 7 (controls).

All other code hands in ``Rules()``: no configuration reaches these, and a test keeps it so. What is a property of lists and not of this
machine (a c that is bounded per instant, D2; rumours on answers, D4) is switched in the scripted lists of the laboratory.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

Quorum = Literal["majority", "half", "one"]


class Rules(Struct, frozen=True, kw_only=True):
    """What the protocol obeys. The defaults are the protocol."""

    names_itself: bool = True  # D1: a responder that is eligible is in its own answer
    self_response: bool = True  # D3: the initiator's own list is the first answer; without, it asks c+f+1 others as the paper counts
    extra: bool = True  # Theorem 3: c+f+1 are asked; without, one less, and c answers are enough
    no_veto: bool = True  # D4: the initiator leaves no candidate out because its own list does not have it
    nomination_terms: bool = True  # D5: every nomination has a new term; without, each LEADER overwrites the last
    violations: bool = True  # D6: who sees a worse leader says so and raises c
    empty_at_end: bool = True  # D7: an empty set is judged at c+1 answers; without, at each (Algorithm 4, line 13)
    restart_tentative: bool = True  # D7: the restart is allowed to an initiator that nominated itself
    only_unhealthy: bool = True  # D8: who is healthy is never left out; without, "top y" of zeros
    quorum: Quorum = "majority"  # D9: W
    watch: bool = True  # D10: all who saw a QUERY start one themselves if no leader follows
    yields: bool = True  # D11: of several initiators all but the best-ranked give up
    backoff: bool = True  # D12: the pause after a nominee that is silent doubles, and the nominee is probed
    newest_row: bool = True  # D13: of two rows of one candidate the newer one counts; without, the older
    settled: bool = True  # D19: who is no settled member takes part in nothing
    synced: bool = True  # D20: a voter without memory asks a majority what it may have forgotten
    quarantined: bool = True  # D20: and waits before, until what it may have accepted is over
    clock_terms: bool = True  # D21, D22: a term is at least the wall clock's milliseconds
    pairs: bool = True  # D22: without a majority reigns are ordered by (term, then rank) everywhere; without, by term
    few_initiators: bool = True  # D25: eight start when a leader is gone; without, all
    confirm: bool = True  # a nominee acts when the initiator has finished; without, each nomination is final, as in the paper
    repeat: bool = True  # H441: a leader says so twice; without, once, as in the paper
    pause_check: bool = True  # 5.9: a leader that was stopped asks before it acts
    support_check: bool = True  # 5.9: a leader that lists too few voters steps down
