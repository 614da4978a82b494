"""The fuzz target of views, in short; the long run is a command (docs/lab.md, "One machine against a lying environment")."""

from __future__ import annotations

import json
import random
from itertools import chain

import pytest

from fuzz import views
from holdfast.features.views.lab import mutations
from holdfast.features.views.lab.mutations import lease_from_receipt, no_handshake, no_numbers, same_number
from holdfast.lab.mutation import Mutation, without
from tests import sizes

RUNS, RUNS_ALL = 100, 500  # of each target
RUNS_MUTATED = 3000  # one of them shows that a rule is missing; the known one is tried first
OF_CLIENTS = {"expired", "skipped", "moved", "installed", "tripped", "handed_on"}
OF_SERVERS = {"vouched", "refused_to_vouch", "silent", "hops_failed", "strange"}


def test_no_run_is_bad_and_everything_happens() -> None:
    """Views 7: 100 runs of each target (500 nightly) keep every rule; leases run out, views are skipped, attachments move."""
    outcome = views.run(sizes.seeds(RUNS_ALL, RUNS), random.getrandbits(32))  # another seed each time, from the one that a run prints
    assert outcome.failures == []
    found = outcome.as_dict()
    assert {name for name in OF_CLIENTS | OF_SERVERS | {"lies"} if not found.get(name)} == set()


@pytest.mark.parametrize(
    "mutation, target, seed, rule",
    [
        (lease_from_receipt, "client", 1, "D24: leased until"),
        (same_number, "server", 1, "D3: two keys under number"),
        (no_numbers, "server", 48, "D26: it vouches for"),
        (no_handshake, "server", 1, "echoed nothing"),
        (mutations.vouches_blindly, "server", 48, "D26: it vouches for"),
        (mutations.keeps_its_key, "server", 1, "D5: it vouches for a view with"),
        (mutations.first_place, "server", 19, "D24: it vouches for"),
        (mutations.forgets_the_removed, "server", 2, "is attached again after"),
        (mutations.answers_blindly, "server", 19, "D17: it vouches for a view with"),
        (mutations.no_floor, "server", 20, "D20: it delivers"),
        (mutations.one_portion, "server", 15, "F17: one callback sends to more than 64 peers"),
    ],
)
def test_rule_that_is_taken_out(mutation: Mutation, target: str, seed: int, rule: str) -> None:
    """Views 7, teeth: lease from the send time, one key per number, no stable without fresh numbers, stamp echo; and what
    ``test_teeth`` takes out, where one server alone can show it (D5, D9, D10, D17, D20, D26, D29)."""
    with without(mutation):
        tried = chain((seed,), range(1, RUNS_MUTATED + 1))
        found = next((bad for each in tried if (bad := views.run(1, each, targets=[target]).failures)), None)
    assert found is not None, f"{RUNS_MUTATED} runs of a {target} without this rule, and none is bad"
    assert rule in found[0]
    assert f"python -m fuzz.views --only {target} --inputs 1 --seed " in found[0]


def test_same_seed_same_runs(capsys: pytest.CaptureFixture[str]) -> None:
    """STYLE 5: a seed shows the same run again. The exit code says whether one was bad, and the trace says what happened."""
    arguments = ["--inputs", "3", "--seed", "8", "--json"]
    assert [views.main(arguments), views.main(arguments)] == [0, 0]
    first, second = capsys.readouterr().out.splitlines()
    assert first == second
    assert {"runs", "bad", "expired", "skipped", "moved"} <= set(json.loads(first))
    with without(lease_from_receipt):
        assert views.main(["--inputs", "1", "--seed", "1", "--only", "client", "--trace"]) == 1
    printed = capsys.readouterr()
    assert "FAILED: client, seed 1: Misbehaved: " in printed.out
    assert "-> ClientPong(" in printed.err
