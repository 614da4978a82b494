"""Each rule of the ZooKeeper back end taken out: the chaos that it holds under must find that.  Spec: views 5Z; G1, G6, G7."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from holdfast.features.views.zookeeper.inbox import Inbox
from holdfast.features.views.zookeeper.link import Link
from holdfast.features.views.zookeeper.looks import Look, Looks
from holdfast.features.views.zookeeper.outbox import Outbox
from holdfast.features.views.zookeeper.views import ZooKeeperViews
from holdfast.features.views.zookeeper.znodes import Reply, Then
from holdfast.host import Carried
from tests.features.views.sim.test_zookeeper_chaos import Chaos
from tests.sizes import is_all

SEEDS = 200 if is_all() else 20
Patch = pytest.MonkeyPatch


def settle_of(numbers: dict[str, float], replaced: float | None = None) -> Callable[[Patch], None]:
    def patch(monkeypatch: Patch) -> None:
        begin = ZooKeeperViews.__init__

        def begun(self: ZooKeeperViews, *args: Any, **more: Any) -> None:
            begin(self, *args, **{**more, **numbers})
            self.settle = self.settle if replaced is None else replaced

        monkeypatch.setattr(ZooKeeperViews, "__init__", begun)

    return patch


def any_znode_of_a_name(monkeypatch: Patch) -> None:
    on_member = Looks._on_member

    def read(self: Looks, look: Look, name: str, reply: Reply) -> None:
        stat = reply.stat._replace(czxid=min(reply.stat.czxid, look.stat.pzxid))
        on_member(self, look, name, reply._replace(stat=stat) if reply.failure is None else reply)

    monkeypatch.setattr(Looks, "_on_member", read)


def names_alone(monkeypatch: Patch) -> None:
    def compare(self: Looks, names: frozenset[str], cversion: int) -> None:
        for name in sorted(self._known.keys() - names):
            del self._known[name]
        self._names = names

    monkeypatch.setattr(Looks, "_compare", compare)


def gone_is_delivered(monkeypatch: Patch) -> None:
    monkeypatch.setattr(Outbox, "_on_gone", lambda self, mid: self._finish(mid, Carried.DELIVERED))


def deletions_are_taken_for_done(monkeypatch: Patch) -> None:
    reset = Inbox.reset

    def forget(self: Inbox) -> None:
        reset(self)
        self._undeleted.clear()

    monkeypatch.setattr(Inbox, "reset", forget)


def late_answers_count(monkeypatch: Patch) -> None:
    def of_now(self: Link, then: Then) -> Then:
        return then

    monkeypatch.setattr(Link, "_of_now", of_now)


@pytest.mark.parametrize(
    "patch, promise",
    [
        (settle_of({}, 0.3), "G6"),
        (settle_of({"stale": 0.0}), "G6"),
        (any_znode_of_a_name, "G1"),
        (names_alone, "G1"),
        (gone_is_delivered, "G7"),
        (deletions_are_taken_for_done, "G7"),
        pytest.param(late_answers_count, "G7", marks=pytest.mark.nightly),
    ],
    ids=["a short settle", "no time for a deposed leader", "any znode", "names alone", "gone is delivered", "deletions", "late answers"],
)
def test_rules_have_teeth(monkeypatch: Patch, patch: Callable[[Patch], None], promise: str) -> None:
    """G1, G6, G7: without the rule some seed breaks the promise that it is for."""
    patch(monkeypatch)
    broken = []
    for seed in range(SEEDS):
        chaos = Chaos(seed)
        try:
            chaos.run()
            chaos.check()
        except AssertionError as error:
            broken.append(str(error))
        if any(each.startswith(promise) for each in broken):
            return
    raise AssertionError(f"{SEEDS} seeds broke {broken} and not {promise}")
