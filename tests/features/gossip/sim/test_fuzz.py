"""The fuzz target of gossip, in short; the long run is a command (``python -m fuzz.gossip``).  Spec: gossip 3, 5.1, D2."""

from __future__ import annotations

import json
import random
from contextlib import ExitStack

import pytest

from fuzz import gossip
from holdfast.features.gossip.protocol import merge
from holdfast.features.gossip.protocol.merge import Merge
from holdfast.features.gossip.protocol.messages import TYPES, Rumour
from holdfast.features.gossip.protocol.table import Entry
from holdfast.host import NodeId
from holdfast.lab.mutation import Mutation, put, without
from tests import sizes

RUNS, RUNS_ALL = 100, 500  # of about 70 lies each


def test_no_lie_does_harm_and_all_are_told() -> None:
    """Gossip 3, 5.1, issue 17: whatever one member says, no entry of a third one goes back, moves or leaps, nothing is raised, and what is
    refused is counted. When it is gone, the others list each other."""
    outcome = gossip.run(sizes.seeds(RUNS_ALL, RUNS), random.getrandbits(32))  # another seed each time, from the one that a run prints
    assert outcome.failures == []
    found = outcome.as_dict()
    assert {f"lie_{kind.__name__}" for kind in TYPES} <= {name for name, count in found.items() if count}
    assert {name for name in ("healed", "refused", "entries_changed", "malformed") if not found.get(name)} == set()


def believes_anything(stack: ExitStack) -> None:
    """Gossip 3: nothing is refused."""
    put(stack, merge, "refused", lambda rumour, source, known, *, steps=1: "")


def believes_old_news(stack: ExitStack) -> None:
    """D2: the last word counts."""

    def believe(self: Merge, known: Entry, rumour: Rumour, source: NodeId) -> None:
        self._change(known, rumour, source)

    put(stack, Merge, "_same_life", believe)


@pytest.mark.parametrize(
    "mutation, rule",
    [(believes_anything, "no refusal was counted"), (believes_old_news, "was taken back to")],
    ids=lambda each: str(each)[:20],
)
def test_rule_that_is_taken_out(mutation: Mutation, rule: str) -> None:
    """Gossip 3, D2: without a check, or without an order of words, a liar does harm, and the run that shows it is named."""
    with without(mutation):
        found = next((bad for seed in range(1, 20) if (bad := gossip.run(1, seed).failures)), None)
    assert found is not None
    assert rule in found[0]
    assert "python -m fuzz.gossip --inputs 1 --seed " in found[0]


def test_same_seed_same_runs(capsys: pytest.CaptureFixture[str]) -> None:
    """STYLE 5: a seed shows the same run again, and the exit code says whether one was bad."""
    arguments = ["--inputs", "2", "--seed", "8", "--json"]
    assert [gossip.main(arguments), gossip.main(arguments)] == [0, 0]
    first, second = capsys.readouterr().out.splitlines()
    assert first == second
    assert {"runs", "bad", "lies", "refused"} <= set(json.loads(first))
