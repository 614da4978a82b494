"""The fuzz target of limits, in short; the long run is a command (docs/lab.md, "One machine against a lying environment")."""

from __future__ import annotations

import json
import random
from contextlib import ExitStack
from itertools import chain

import pytest

from fuzz import limits
from fuzz.limit_breaker import SETTLE, Breaker
from holdfast.features.limits.bucket import Bucket
from holdfast.features.limits.lab import mutations
from holdfast.features.limits.lab.mutations import Mutation, put, without
from holdfast.features.limits.protocol import policy
from holdfast.kit.ledger import Batch, Ledger, Refusal
from tests import sizes

RUNS, RUNS_ALL = 100, 500  # of each target
RUNS_MUTATED = 3000  # one of them shows that a rule is missing; the known one is tried first
HAPPENS = {
    "raised", "lapsed", "provisional", "grew", "given", "taken", "reconciled", "delivered", "past", "unknown_bound", "admitted", "full",
}  # fmt: skip


def shorter_settle(stack: ExitStack) -> None:
    """Views G6: the limiter counts with three quarters of what views promise."""
    put(stack, Breaker, "settle", 0.75 * SETTLE)


def no_history(stack: ExitStack) -> None:
    """Limits D4: a receiver knows which number it took last, and not what was in it."""
    take = Ledger.take

    def take_whole(self: Ledger, batch: Batch, fits: object = None) -> dict[int, int] | Refusal:
        if batch.seq > self.taken:
            self._entries, self._since = [], batch.lb
        return take(self, batch)

    put(stack, Ledger, "take", take_whole)


def never_forgives(stack: ExitStack) -> None:
    """H275: a bucket that is made smaller forgets what it had to bring in."""
    set_ = Bucket.set

    def set_and_forget(self: Bucket, now: int, rate: int, depth: int) -> None:
        set_(self, now, rate, depth)
        self.forgiven = 0

    put(stack, Bucket, "set", set_and_forget)


def grows_at_once(stack: ExitStack) -> None:
    """Limits D10: a strict share grows with the view, while others may count on the former one."""
    rule = policy.strict
    put(stack, policy, "strict", lambda *told, may_grow, **state: rule(*told, may_grow=True, **state))


def test_no_run_is_bad_and_everything_happens() -> None:
    """Limits 7: 100 runs of each target (500 nightly) keep every rule; members are raised, lapse, and hear of views from peers."""
    outcome = limits.run(sizes.seeds(RUNS_ALL, RUNS), random.getrandbits(32))  # another seed each time, from the one that a run prints
    assert outcome.failures == []
    found = outcome.as_dict()
    assert {name for name in HAPPENS if not found.get(name)} == set()


@pytest.mark.parametrize(
    "mutation, target, seed, rule",
    [
        (shorter_settle, "exact", 1, "after its instance began"),
        (shorter_settle, "strict", 1, "it lapses"),
        (grows_at_once, "strict", 1, "D10: it may use"),
        (mutations.lapse_and_raise, "exact", 17, "D20: it lapsed from"),
        (mutations.lapse_and_raise, "strict", 17, "D20: it lapsed from"),
        (mutations.gives_at_once, "exact", 67, "RL4: it may use"),
        (mutations.lapse_from_panic, "exact", 1, "D23: it lapses"),
        (mutations.lapse_from_panic, "strict", 1, "D23: it lapses"),
        (no_history, "ledger", 1, "RL3:"),
        (never_forgives, "bucket", 1, "RL8:"),
    ],
)
def test_rule_that_is_taken_out(mutation: Mutation, target: str, seed: int, rule: str) -> None:
    """Limits 7, teeth: D4, D20, D22, D23, H275, and ``settle`` a quarter shorter: within 3,000 runs one is bad, and says why."""
    with without(mutation):
        tried = chain((seed,), range(1, RUNS_MUTATED + 1))
        found = next((bad for each in tried if (bad := limits.run(1, each, targets=[target]).failures)), None)
    assert found is not None, f"{RUNS_MUTATED} runs of {target} without this rule, and none is bad"
    assert rule in found[0]
    assert f"python -m fuzz.limits --only {target} --inputs 1 --seed " in found[0]


def test_a_lease_that_is_renewed_at_its_end() -> None:
    """Limits 5.1, D10: workers that are told with the next epoch use less in between; what they have again then is no raise."""
    assert limits.run(1, 1299, targets=["strict"]).failures == []


def test_a_view_with_a_shorter_lease_is_delivered() -> None:
    """Limits 5.1, 5.6: a provisional member gets the lease of the view, which ends before that of the former one; no worker may use more
    than R/n after it."""
    assert limits.run(1, 11734, targets=["strict"]).failures == []


def test_same_seed_same_runs(capsys: pytest.CaptureFixture[str]) -> None:
    """STYLE 5: a seed shows the same run again. The exit code says whether one was bad, and the trace says what happened."""
    arguments = ["--inputs", "3", "--seed", "8", "--json"]
    assert [limits.main(arguments), limits.main(arguments)] == [0, 0]
    first, second = capsys.readouterr().out.splitlines()
    assert first == second
    assert {"runs", "bad", "raised", "lapsed", "provisional"} <= set(json.loads(first))
    with without(mutations.lapse_from_panic):
        assert limits.main(["--inputs", "30", "--seed", "1", "--only", "exact", "--trace"]) == 1
    printed = capsys.readouterr()
    assert "FAILED: exact, seed " in printed.out
    assert "Panicked(" in printed.err
