"""``group.views()`` in both spellings, against an agent by script.  Spec: views 10."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from threading import Timer
from typing import Any

import pytest

from holdfast.errors import AgentLost, ConfigError, Forked, HoldfastError, Timeout, Unavailable
from holdfast.events import Changing, EventsLost, ViewChanged, ViewLost, ViewRestored, ViewTripped
from holdfast.features.views import calls as view_calls
from holdfast.features.views.calls import ViewItem
from holdfast.features.views.streams import difference
from holdfast.host import NodeId, ViewState
from holdfast.local import calls
from holdfast.net.clock import now
from tests.client.fake_agent import FakeAgent
from tests.client.spelling import Blocking, Spelling
from tests.features.views.fake_views import view
from tests.support.agents import until

WAIT = 30.0
LOST = ViewItem("now", ViewState.LOST, None, None)
FIRST, SECOND = view(3, "a", "b"), view(5, "a", "c")


@pytest.fixture
def group(client: Spelling, agent: FakeAgent) -> Iterator[Any]:
    """The agent has no view yet."""
    agent.answers[view_calls.WatchViews] = lambda call: agent.push(call, LOST)
    group = client.join("orders", agent=agent.path)
    yield group
    client.run(group.leave)


@pytest.fixture
def views(client: Spelling, agent: FakeAgent, group: Any) -> Any:
    return client.run(group.views)


def tell(agent: FakeAgent, what: str, *, state: int = ViewState.STABLE, lease: float | None = 60.0, **more: Any) -> None:
    """On the newest stream."""
    until_then = None if lease is None else now() + lease
    agent.push(agent.wait_for(view_calls.WatchViews), ViewItem(what, state, until_then, None if lease is None else 0.0, **more))


def test_a_view(client: Spelling, agent: FakeAgent, views: Any) -> None:
    """10: nothing waits but `ready`; the view, the state and both comparisons with the clock; `close` ends the stream."""
    assert (views.view, views.state, views.leased, views.settled) == (None, "lost", False, False)
    agent.wait_for(view_calls.WatchViews)
    tell(agent, "view", view=difference(None, FIRST))
    assert client.run(views.ready, timeout=WAIT) == FIRST
    assert (views.view, views.state, views.leased, views.settled) == (FIRST, "stable", True, True)
    assert repr(views) == "<GroupViews: stable, view 3/s0#1 of 2>"
    tell(agent, "changing", state=ViewState.CHANGING, number=3)
    until(lambda: views.state == "changing", "it changes")
    assert (views.leased, views.settled) == (True, False)
    client.run(views.close)
    client.run(views.close)
    assert agent.wait_for(calls.Close).stream == agent.wait_for(view_calls.WatchViews).serial
    assert (views.view, views.state, views.leased, repr(views)) == (None, "lost", False, "<GroupViews: closed>")
    with pytest.raises(Unavailable, match="views: they were closed"):
        client.run(views.ready)


def test_a_block(client: Spelling, agent: FakeAgent, group: Any) -> None:
    """10: the end of the block closes them."""
    views = client.enter(client.run(group.views))
    client.exit(views)
    assert agent.wait_for(calls.Close).stream == agent.wait_for(view_calls.WatchViews).serial
    assert views.state == "lost"


def test_events(client: Spelling, agent: FakeAgent, views: Any) -> None:
    """9, 10: the five events and what was missed, in order; the view is as new as the event that is read."""
    watch = client.run(views.watch)
    agent.wait_for(view_calls.WatchViews)
    tell(agent, "view", view=difference(None, FIRST))
    tell(agent, "lease")
    tell(agent, "changing", state=ViewState.CHANGING, number=3)
    tell(agent, "tripped", state=ViewState.LOST, lease=None, peer=NodeId("b", 1), why="silent")
    tell(agent, "lost", state=ViewState.LOST, lease=None, why="tripped: silent")
    tell(agent, "restored")
    tell(agent, "missed", missed=4)
    tell(agent, "view", view=difference(FIRST, SECOND))
    assert [client.next(watch) for _ in range(6)] == [
        ViewChanged(FIRST, (NodeId("a", 1), NodeId("b", 1)), ()), Changing(3), ViewTripped(NodeId("b", 1), "silent"),
        ViewLost("tripped: silent"), ViewRestored(FIRST), EventsLost(4),
    ]  # fmt: skip
    assert client.next(watch) == ViewChanged(SECOND, (NodeId("c", 1),), (NodeId("b", 1),))
    assert views.view == SECOND
    client.run(views.close)
    with pytest.raises((StopAsyncIteration, StopIteration)):
        client.next(watch)
    with pytest.raises((StopAsyncIteration, StopIteration)):
        client.next(client.run(views.watch))


def test_events_without_the_object(client: Spelling, agent: FakeAgent, group: Any) -> None:
    """10: as long as a program watches, this agent takes part: `async for event in group.views().watch()`."""
    watch = client.run(lambda: group.views().watch())
    agent.wait_for(view_calls.WatchViews)
    for number in (3, 4):
        tell(agent, "view", view=difference(None, view(number, "a")))
        assert client.next(watch).view.number == number
    assert agent.all(calls.Close) == []


def test_a_lease_ends_by_the_clock(client: Spelling, agent: FakeAgent, views: Any) -> None:
    """G6, F9: the agent says nothing any more, and this process knows when to stop."""
    agent.wait_for(view_calls.WatchViews)
    tell(agent, "view", view=difference(None, FIRST), lease=0.3)
    client.run(views.ready, timeout=WAIT)
    until(lambda: not views.leased, "its lease is over")
    assert (views.view, views.state, views.settled) == (None, "lost", False)


def test_not_in_time(client: Spelling, agent: FakeAgent, views: Any) -> None:
    """10: Timeout says what is missing, as far as the agent said it; bad limits are refused."""
    with pytest.raises(Timeout, match=r"views: this agent has no view after 0\.05 s; `holdfast views`"):
        client.run(views.ready, timeout=0.05)
    tell(agent, "lost", state=ViewState.LOST, lease=None, why="no view server answers")
    until(lambda: views._stream.mirror.why, "it was read")
    with pytest.raises(Timeout, match=r"after 0 s: no view server answers; "):
        client.run(views.ready, timeout=0)
    with pytest.raises(ConfigError, match="timeout: -1"):
        client.run(views.ready, timeout=-1)


def test_no_servers(client: Spelling, agent: FakeAgent, group: Any) -> None:
    """10: ConfigError names the setting; threads hear it from the call, tasks from what waits."""
    agent.answers[view_calls.WatchViews] = ("ConfigError", "seats: who are the seats?")
    if isinstance(client, Blocking):
        with pytest.raises(ConfigError, match="seats: who"):
            group.views()
        return
    views = client.run(group.views)
    with pytest.raises(ConfigError, match="seats: who"):
        client.run(views.ready)
    with pytest.raises(ConfigError, match="seats: who"):
        client.next(client.run(views.watch))
    with pytest.raises(ConfigError, match="seats: who"):
        client.run(views.trip, "x")
    assert views.state == "lost"
    client.run(views.close)


def test_trip(client: Spelling, agent: FakeAgent, views: Any) -> None:
    """10: on return this view is not believed any more; too often is Unavailable, with the agent's words; bad reasons stay here."""
    agent.wait_for(view_calls.WatchViews)
    tell(agent, "view", view=difference(None, FIRST))
    client.run(views.ready, timeout=WAIT)
    later = Timer(0.2, tell, (agent, "tripped"), {"state": ViewState.LOST, "lease": None, "why": "b is silent"})
    agent.answers[view_calls.TripView] = lambda call: later.start()  # The answer goes first.
    client.run(views.trip, "b is silent")
    assert (agent.wait_for(view_calls.TripView).why, views.state) == ("b is silent", "lost")
    agent.answers[view_calls.TripView] = ("Unavailable", "views: it tripped too lately; it may again in 9.9 s")
    with pytest.raises(Unavailable, match=r"again in 9\.9 s"):
        client.run(views.trip, "b is silent")
    for bad in ("", "two\nlines", 3):
        with pytest.raises(ConfigError, match="reason: "):
            client.run(views.trip, bad)
    assert len(agent.all(view_calls.TripView)) == 2


def test_the_agent_is_lost(client: Spelling, agent: FakeAgent, views: Any) -> None:
    """10: what a dead agent told stands until its deadline; who waits or watches is told that it is dead."""
    watch = client.run(views.watch)
    agent.wait_for(view_calls.WatchViews)
    tell(agent, "view", view=difference(None, FIRST))
    client.run(views.ready, timeout=WAIT)
    agent.close()
    assert isinstance(client.next(watch), ViewChanged)
    with pytest.raises(AgentLost):
        client.next(watch)
    assert (views.leased, views.view) == (True, FIRST)
    with pytest.raises(AgentLost):
        client.run(views.ready)
    with pytest.raises(AgentLost):
        client.run(views.trip, "x")


def test_the_group_is_left(client: Spelling, agent: FakeAgent, group: Any, views: Any) -> None:
    """10: it ends with the group, and nothing may be counted on from then on."""
    watch = client.run(views.watch)
    agent.wait_for(view_calls.WatchViews)
    tell(agent, "view", view=difference(None, FIRST))
    client.run(views.ready, timeout=WAIT)
    assert isinstance(client.next(watch), ViewChanged)
    client.run(group.leave)
    with pytest.raises((StopAsyncIteration, StopIteration)):
        client.next(watch)
    assert (views.state, views.view) == ("lost", None)
    with pytest.raises(HoldfastError):
        client.run(group.views)


def test_another_agent_goes_on(client: Spelling, runtime: Any) -> None:
    """10: with `reconnect` the object goes on: lost until the next agent takes part, whose first view is whole; a reader hears that
    something is missing."""
    path = runtime / "again.sock"
    with FakeAgent(path) as agent:
        agent.answers[view_calls.WatchViews] = lambda call: agent.push(call, LOST)
        group = client.join("orders", agent=agent.path, reconnect=True)
        views = client.run(group.views)
        watch = client.run(views.watch)
        agent.wait_for(view_calls.WatchViews)
        tell(agent, "view", view=difference(None, FIRST))
        assert client.next(watch).view == FIRST
    with FakeAgent(path) as later:
        later.answers[view_calls.WatchViews] = lambda call: later.push(call, LOST)
        assert client.next(watch) == EventsLost(0)
        later.wait_for(view_calls.WatchViews)
        assert (views.state, views.leased) == ("lost", False)
        tell(later, "view", view=difference(None, SECOND))
        assert client.next(watch) == ViewChanged(SECOND, (NodeId("a", 1), NodeId("c", 1)), ())
        assert client.run(views.ready, timeout=WAIT) == SECOND
        client.run(group.leave)


def test_a_fork(client: Spelling, agent: FakeAgent, views: Any) -> None:
    """Views 10: a child of the process hears Forked, whatever it asks; leaving the parent's block does nothing there."""
    agent.wait_for(view_calls.WatchViews)
    tell(agent, "view", view=difference(None, FIRST))
    client.run(views.ready, timeout=WAIT)
    parent, child = os.pipe()
    pid = os.fork()
    if pid == 0:
        said = []
        questions: tuple[Callable[[], Any], ...] = (
            lambda: views.view, lambda: views.state, lambda: views.leased, lambda: views.settled, views.watch,
        )  # fmt: skip
        for ask in questions:
            try:
                ask()
                said.append("answered")
            except Forked:
                said.append("Forked")
        os.write(child, " ".join([*said, repr(views)[:11]]).encode())
        os._exit(0)
    os.waitpid(pid, 0)
    assert os.read(parent, 1000).decode() == "Forked Forked Forked Forked Forked <GroupViews"
    assert views.leased
    os.close(parent)
    os.close(child)
