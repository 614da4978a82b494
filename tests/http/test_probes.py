"""/healthz and /readyz: what a probe may conclude.  H181."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from holdfast.agent.observe import http_app
from holdfast.agent.observe.http_views import unready
from holdfast.kit.seats import SeatState
from tests.http.wire import ask
from tests.page.stub_agent import StubGroup


def agent(state: str = "member", seat: SeatState | None = None, wait: float = 0.0, own: int | None = 1, why: str = "") -> Any:
    """As much of one as is looked at."""
    seats = SimpleNamespace(own=own, state=seat, keeper=SimpleNamespace(wait=wait), why=why)
    return SimpleNamespace(state=state, seats=None if seat is None else seats)


def test_probes_of_a_member(group: StubGroup) -> None:
    """H181: a member without a seat is well and ready, and says so in a few bytes."""
    health, ready = ask(group.url, "/healthz"), ask(group.url, "/readyz")
    assert (health.status, health.json, health.headers["cache-control"]) == (200, {"state": "ok"}, "no-store")
    assert (ready.status, ready.json) == (200, {"state": "ready"})
    assert ask(group.url, "/healthz", "HEAD").status == 200


def test_protocols_that_stand_still_are_not_well(group: StubGroup, monkeypatch: pytest.MonkeyPatch) -> None:
    """H181: the answer comes from the last turn of the protocols, so a host that has stopped is seen although the loop turns."""
    service: Any = group.http._service  # type: ignore[union-attr]
    until_now = service.load._beat_at
    monkeypatch.setattr(service.load, "since_beat", lambda: http_app.BEAT_MISSED + 1.0)
    answer = ask(group.url, "/healthz")
    assert (answer.status, answer.json["error"]) == (503, "Stalled")
    assert "no turn for 6.0 s" in answer.json["text"]
    monkeypatch.undo()
    assert service.load._beat_at >= until_now
    assert ask(group.url, "/healthz").status == 200


@pytest.mark.parametrize(
    "asked, reason",
    [
        (agent(), ""),
        (agent("joining"), "it is joining"),
        (agent("leaving", SeatState.SERVING), "it is leaving"),
        (agent("left"), "it is left"),
        (agent(seat=SeatState.SERVING), ""),
        (agent(seat=SeatState.NOT_A_SEAT, own=None), ""),
        (agent(seat=SeatState.WAITING, wait=3.25), "seat 1 of this agent does not vote: it is waiting, for 3.2 s more"),
        (agent(seat=SeatState.ASKING, wait=float("inf")), "seat 1 of this agent does not vote: it is asking"),
        (agent(seat=SeatState.SILENT, why="its journal is lost"), "seat 1 of this agent does not vote: its journal is lost"),
        (agent(seat=SeatState.FAILED, why="its disk failed"), "seat 1 of this agent does not vote: its disk failed"),
    ],
)
def test_who_is_ready(asked: Any, reason: str) -> None:
    """H181: a member; and whoever has a seat votes with it. Otherwise the reason is said."""
    assert unready(asked).endswith(reason)
    assert bool(unready(asked)) == bool(reason)
