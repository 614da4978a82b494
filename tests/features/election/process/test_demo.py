"""``holdfast demo --membership gossip``: what it promises is kept, or the machine stood still.  Spec: election 1, 5.8, D14."""

from __future__ import annotations

import json

from holdfast.cli.demo.elect import NAMES, judged
from holdfast.cli.demo.lead import Reign, Takeover
from holdfast.cli.exits import ENVIRONMENT, OK
from tests.cli.command import Run

FORMER = Reign("a", 5, 1.0, 9.0)


def test_an_election_a_death_and_the_next_reign(holdfast: Run) -> None:
    """Issue 18, 4: the demo shows an election, a kill -9 of the leader and the next reign beside the numbers."""
    said = holdfast("demo", "--membership", "gossip", "--json")
    found = json.loads(said.out)
    assert said.code in (OK, ENVIRONMENT), said.err
    assert (found["membership"], found["members"]) == ("gossip", len(NAMES))
    if said.code == OK:
        assert found["verdict"] == "pass"
        assert found["takeover"] <= found["takeover_bound"] + found["late"] * 4
        tokens = [reign["token"] for reign in found["reigns"]]
        assert tokens == sorted(set(tokens))
        assert len(tokens) >= 2


def test_another_membership_is_refused(holdfast: Run) -> None:
    """PRODUCT (bad input): the flag, what it was, what is accepted."""
    said = holdfast("demo", "--membership", "views")
    assert (said.code, said.err.strip()) == (2, "holdfast: --membership 'views': accepted are ring, gossip")


def test_a_broken_promise_is_told() -> None:
    """H208: late timers are allowed for, and nothing else; a term that is not larger is a broken promise."""
    assert [each.kept for each in judged(Takeover(FORMER, 10.0, Reign("b", 6, 12.0, 13.0)), 2.0, 0.0)] == [True, True]
    assert [each.kept for each in judged(Takeover(FORMER, 10.0, Reign("b", 6, 12.5, 13.0)), 2.0, 0.0)] == [False, True]
    assert [each.kept for each in judged(Takeover(FORMER, 10.0, Reign("b", 6, 12.5, 13.0)), 2.0, 0.5)] == [True, True]
    assert [each.kept for each in judged(Takeover(FORMER, 10.0, Reign("b", 4, 12.0, 13.0)), 2.0, 0.0)] == [True, False]
    assert [each.kept for each in judged(Takeover(FORMER, 10.0, None), 2.0, 0.0)] == [False]
