"""Views with real agents on loopback: three seats and two others, and what happens to them.  Spec: views 1 (G2-G6), 9, 10, D28, D31."""

from __future__ import annotations

import signal
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import holdfast
import holdfast.sync
from holdfast.client.clock import now
from holdfast.errors import Unavailable
from holdfast.events import Changing, EventsLost, ViewChanged, ViewLost, ViewTripped
from holdfast.features.views.calls import SurveyViews, ViewsReport
from tests.agent.raw_client import RawClient
from tests.support.agents import AgentProcess, Fleet, until
from tests.support.realtime import repeated

HEARTBEAT = 0.25  # of `lan`: a busy machine is late by less than a lease of 1.5 s
LEASE = 6 * HEARTBEAT
WAIT = 40.0
MARGIN = 0.5  # seconds: by so much may a busy machine be late, all in all
# From a goodbye to the view without the member four messages follow one another: goodbye, link state, proposal, view. All leave at once. Of
# those that are lost the proposal and the view are said again a heartbeat later: 0 + 2 x 0.25 + 0.5 = 1.0 s. A goodbye that no server
# takes in is seen: silence is out after ``client_timeout`` less two heartbeats, 7 - 2 of 0.25 = 1.25 s, at the earliest.
AT_ONCE = 2 * HEARTBEAT + MARGIN


class Views:
    """Three seats and other agents, and for each of them a client that may ask for views. The seats have no state directory, so they
    promise nothing, and serve views all the same."""

    def __init__(self, fleet: Fleet, *others: str) -> None:
        self.fleet = fleet
        self.ports = free_ports(3)
        fleet.settings["seeds"] = [f"127.0.0.1:{port}" for port in self.ports]
        self.seats = [self.start_seat(number) for number in range(3)]
        self.others = [fleet.start(name=name) for name in others]
        self.groups = {agent.name: holdfast.sync.join(agent=agent.socket) for agent in self.agents}

    @property
    def agents(self) -> list[AgentProcess]:
        return [*self.seats, *self.others]

    def start_seat(self, number: int) -> AgentProcess:
        return self.fleet.start(name=f"s{number}", bind=f"127.0.0.1:{self.ports[number]}")

    @contextmanager
    def taking_part(self, *more: AgentProcess) -> Iterator[list[Any]]:
        """The views of each agent, in the order of ``agents``, and of these. They are one view."""
        groups = [*self.groups.values(), *(holdfast.sync.join(agent=agent.socket) for agent in more)]
        views = [group.views() for group in groups]
        together(views)
        yield views
        for each in views:
            each.close()
        for group in groups[len(self.groups) :]:
            group.leave()

    def restart_seat(self, number: int) -> None:
        """One that was killed."""
        seat = self.seats[number] = self.start_seat(number)
        self.groups[seat.name].leave()
        self.groups[seat.name] = holdfast.sync.join(agent=seat.socket)

    def close(self) -> None:
        for group in self.groups.values():
            group.leave()


def together(views: Sequence[Any], size: int | None = None) -> None:
    """They are leased in one view of so many."""

    def are() -> bool:
        found = {(view.id, view.size) if (view := each.view) is not None else None for each in views}
        return len(found) == 1 and (only := found.pop()) is not None and only[1] == (size or len(views))

    until(are, f"{size or len(views)} in one view", WAIT)


def report(agent: AgentProcess) -> ViewsReport:
    with RawClient(agent.socket) as client:
        found: ViewsReport = client.ask(SurveyViews)
        return found


def free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


@pytest.fixture(scope="module")
def group(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Views]:
    """Three seats and x. A test leaves them as it found them."""
    with Fleet(tmp_path_factory.mktemp("views"), preset="lan") as fleet:
        views = Views(fleet, "x")
        yield views
        views.close()


def test_a_view_of_five(group: Views) -> None:
    """Views 1, D1, D31: seats without a state directory serve views once a client asks, all five are in one view, settled; an agent that is
    killed is out of it; the group's events tell it as well."""
    events = group.groups["s0"].watch()
    y = group.fleet.start(name="y")
    with group.taking_part(y) as views:
        until(lambda: all(each.settled for each in views), "settled", WAIT)
        assert next(event for event in iter_events(events) if isinstance(event, ViewChanged)).view.find("s0") is not None
        watch, before = views[0].watch(), views[0].view
        y.kill()
        changed = next(event for event in iter_events(watch) if isinstance(event, ViewChanged))
        assert [life.name for life in changed.removed] == ["y"]
        assert changed.view.number > before.number
        together(views[:4])
        said = report(group.seats[0])
        assert (said.takes_part, said.users, said.serves, [seat.link for seat in said.seats]) == (True, 1, True, ["up", "up"])


def test_an_agent_that_leaves(group: Views) -> None:
    """Views 5.5 (leave): an agent whose last client closes is out of the view of the others at once, and not when it has been silent for
    ``client_timeout``."""

    def attempt(number: int) -> str:
        with group.taking_part() as views:
            views[3].close()
            closed_at = now()
            together(views[:3])
            took = now() - closed_at
            assert not report(group.others[0]).takes_part
        return "" if took < AT_ONCE else f"out of the view after {took:.2f} s"

    repeated(attempt, margin=MARGIN)


def test_a_member_that_is_stopped(group: Views) -> None:
    """Views G6, D17: the clock ends the lease of its clients while it is stopped; the others have a view without it, and it comes back."""
    with group.taking_part() as views:
        stopped, others = views[3], views[:3]
        watch = stopped.watch()
        group.others[0].signal(signal.SIGSTOP)
        stopped_at = now()
        until(lambda: not stopped.leased, "its lease is over", LEASE + 5.0)
        assert now() - stopped_at <= LEASE + 1.0  # Nothing but this process's own clock ended it.
        assert (stopped.view, stopped.state, stopped.settled) == (None, "lost", False)
        together(others)
        group.others[0].signal(signal.SIGCONT)
        assert any(isinstance(event, ViewLost) for event in iter_events(watch))
        together(views)


def test_a_seat_that_is_killed(group: Views) -> None:
    """Views D28, D20: its clients go to another server, and all that are left are in one view; when it is back, numbers have only grown."""
    with group.taking_part() as views:
        server = report(group.others[0]).server
        number = next(number for number, seat in enumerate(group.seats) if seat.id == str(server))
        watch, before = views[3].watch(), views[3].view
        group.seats[number].kill()
        rest = [view for view, agent in zip(views, group.agents, strict=True) if agent is not group.seats[number]]
        together(rest)
        seen = waiting(watch)
        assert [event for event in seen if isinstance(event, ViewChanged)][-1].view.number > before.number
        assert {type(event) for event in seen} <= {ViewChanged, Changing, ViewLost}
    group.restart_seat(number)
    with group.taking_part() as views:
        assert views[3].view.number > before.number


def test_trip(group: Views) -> None:
    """Views 5.7, 10: the view is not believed from the return on, another one comes, with a larger number; not twice in ten seconds."""
    with group.taking_part() as views:
        before, watch = views[0].view, views[0].watch()
        views[0].trip("b is silent")
        assert [type(watch.next(timeout=WAIT)) for _ in range(2)] == [ViewTripped, ViewLost]
        assert views[0].ready(timeout=WAIT).number > before.number
        with pytest.raises(Unavailable, match=r"it may again in \d+\.\d s"):
            views[0].trip("b is silent")
        together(views)


def test_an_agent_that_restarts(group: Views) -> None:
    """Views 10: with `reconnect` the object goes on; it is lost until the next agent is in a view, whose number is larger."""
    again = group.fleet.folder / "again"
    first = group.fleet.start(name="z", runtime=again, state_dir=str(again / "state"))
    with holdfast.sync.join(agent=first.socket, reconnect=True) as joined:
        views = joined.views()
        watch = views.watch()
        before = views.ready(timeout=WAIT)
        first.kill()
        second = group.fleet.start(name="z", runtime=again, state_dir=str(again / "state"))
        assert any(event == EventsLost(0) for event in iter_events(watch))
        changed = next(event for event in iter_events(watch) if isinstance(event, ViewChanged))
        assert changed.view.number > before.number
        assert second.id in {str(member.id) for member in changed.view.members}
        assert views.ready(timeout=WAIT).number >= changed.view.number


def test_seats_that_retire(tmp_path: Path) -> None:
    """Views D1, G2: seats serve no views before a client asks. When none needs them for 240 heartbeats they wait at the doorbell again,
    and a client that comes then has a view with a larger number from the same lives."""
    with Fleet(tmp_path, preset="lan", view_heartbeat=0.05) as fleet:  # the shortest: 12 s
        views_of = Views(fleet)
        group = views_of.groups["s0"]
        assert [(each.takes_part, each.slot, each.serves) for each in map(report, views_of.seats)] == [
            (False, at, False) for at in range(3)
        ]
        with group.views() as views:
            before = views.ready(timeout=WAIT)
            until(lambda: all(report(seat).serves for seat in views_of.seats), "all seats serve")
        until(lambda: not any(report(seat).serves for seat in views_of.seats), "no seat serves any more")
        assert all(seat.said("ServerRetired") for seat in views_of.seats)
        with group.views() as views:
            assert views.ready(timeout=WAIT).number > before.number
            assert report(views_of.seats[0]).serves
        views_of.close()


def iter_events(watch: Any) -> Iterator[Any]:
    while True:
        yield watch.next(timeout=WAIT)


def waiting(watch: Any) -> list[Any]:
    """What is there to read now."""
    found = []
    try:
        while True:
            found.append(watch.next(timeout=0))
    except holdfast.Timeout:
        return found
