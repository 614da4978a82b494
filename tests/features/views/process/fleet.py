"""Agents on machines of their own, three of them seats, each with a client program that writes down its views; and faults.

with ViewFleet(folder, net, ("x", "y", "z")) as fleet:
    fleet.together()                  # all leased in one view
    net.cut_both(0, 1)
    ...
    net.heal()
    fleet.together()
    assert fleet.check() > 0          # nothing in the records that must never be seen, and settled clients to compare
"""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import count, islice
from pathlib import Path
from types import TracebackType
from typing import Self

from holdfast.features.views.calls import SurveyViews, ViewsReport
from holdfast.features.views.protocol.client import in_order
from holdfast.features.views.protocol.config import ViewsConfig
from holdfast.host import Address, ViewState
from holdfast.kit.slots import Slot
from tests.agent.raw_client import RawClient, now
from tests.features.views.process.record import Line, Lives, Seen, moves_in, settled_pairs, wrongs
from tests.support.agents import AgentProcess, Fleet, until
from tests.support.netns import PORT, Namespaces

ROOT = Path(__file__).parents[4]
SEATS = ("s0", "s1", "s2")
LAN = 0.25  # seconds: the heartbeat of this preset
BOUND = 60  # heartbeats (views CB7): from the last fault on until all are leased in one view, without quarantines
PATIENCE = 60.0  # seconds; only a broken program or a broken machine reaches it
POLL_INTERVAL = 0.05
SMALL = 240  # bytes of a sealed datagram: heartbeats and proposals of views are shorter, link states of clients with long names are not
LONG_NAME = "-with-a-long-name-so-that-link-states-are-large"
STARTS = 3  # agents that start at a time


class ViewFleet:
    """Members by their names; the first three are the seats. Machine n of the network is that of the n-th member."""

    def __init__(
        self,
        folder: Path,
        net: Namespaces,
        others: Sequence[str],
        *,
        heartbeat: float = LAN,
        silent_seats: bool = False,
        module: str = "holdfast.agent",
    ) -> None:
        """``silent_seats``: they serve views, and no client of theirs takes part. ``module``: another program than the agent as it is."""
        self.net, self.folder = net, folder
        self.config = ViewsConfig(heartbeat=heartbeat)
        self.settle = self.config.settle
        self.bound = BOUND * heartbeat
        self.names = (*SEATS, *others)
        self.clients = self.names[len(SEATS) if silent_seats else 0 :]
        seeds = [f"{net.address(number)}:{PORT}" for number in range(len(SEATS))]
        self.fleet = Fleet(folder, preset="lan", view_heartbeat=heartbeat, log_level="debug", seeds=seeds)
        self.agents: dict[str, AgentProcess] = {}
        self.ahead = time.time() - now()
        self._lives = Lives()
        self._programs = 0
        self._module = module
        self._logs: list[AgentProcess] = []  # of all lives
        self._bodies: dict[str, subprocess.Popen[bytes]] = {}
        self._records: dict[str, Path] = {}  # of the present lives

    def __enter__(self) -> Self:
        try:
            with ThreadPoolExecutor(STARTS) as pool:
                for names in (SEATS, self.others):  # A client whose server does not run yet would attach to another one.
                    list(pool.map(self.start, names))
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for body in self._bodies.values():
            body.kill()
            body.wait()
        self.fleet.__exit__(kind, error, trace)

    @property
    def others(self) -> list[str]:
        """Those that are no seats."""
        return [*self.names[len(SEATS) :]]

    def start(self, name: str) -> None:
        """This member, or its next life, and its client program."""
        number = self.names.index(name)
        agent = self.fleet.start(
            name=name, runtime=self.folder / f"home{number}", bind=f"{self.net.address(number)}:{PORT}", before=self.net.words(number),
            state_dir=str(self.folder / f"state-{name}"), module=self._module,
        )  # fmt: skip
        self.agents[name] = agent
        self._logs.append(agent)
        if name in self.clients:
            self._take_part(name)

    def again(self, name: str) -> None:
        """Its client program ends, and another one begins: the agent leaves the view and attaches to its first server."""
        self._bodies[name].kill()
        self._bodies[name].wait(PATIENCE)
        self._lives.read(self._records[name])
        self._take_part(name)

    def kill(self, name: str) -> None:
        """-9. Its client program reads the end of its stream, and what it was told stands in the record until its deadline."""
        self.agents[name].kill()
        if name in self._bodies:
            self._bodies[name].wait(PATIENCE)

    def stop_for(self, name: str, seconds: float) -> None:
        self.agents[name].signal(signal.SIGSTOP)
        time.sleep(seconds)
        self.agents[name].signal(signal.SIGCONT)

    def split(self, *sides: Collection[str]) -> None:
        """No side hears another one."""
        for number, one in enumerate(sides):
            for other in sides[number + 1 :]:
                for a in one:
                    for b in other:
                        self.net.cut_both(self.at(a), self.at(b))

    def deafen(self, name: str) -> None:
        """Nothing reaches it, and all hear it."""
        for other in self.names:
            if other != name:
                self.net.cut(self.at(other), self.at(name))

    def _take_part(self, name: str) -> None:
        agent = self.agents[name]
        self._programs += 1
        record = self._records[name] = self.folder / f"record{self._programs}-{name}"
        words = [sys.executable, "-m", "tests.features.views.process.body", agent.socket, str(record), str(self.settle)]
        self._bodies[name] = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, cwd=ROOT)

    def at(self, name: str) -> int:
        """The number of its machine."""
        return self.names.index(name)

    # What the records say.

    def last(self, name: str) -> Line | None:
        lines = self._lives.read(self._records[name])
        return lines[-1] if lines else None

    def view(self, name: str) -> Seen | None:
        """The one that this member is leased in and that no change is known of."""
        line = self.last(name)
        if line is None or line.state != ViewState.STABLE or line.leased_until <= now():
            return None
        return line.view

    def one_view(self, names: Collection[str]) -> bool:
        """These are leased in one view, which lists them and no other member."""
        lives = {self.agents[name].id for name in names}
        views = [self.view(name) for name in names]
        first = views[0]
        return first is not None and {each.life for each in first.members} == lives and all(view == first for view in views)

    def together(self, names: Collection[str] = (), since: float | None = None) -> float:
        """Wait until these (all) are in one view; returns how long the last of them took from then on, by the records."""
        names = names or self.clients
        began_at = now() if since is None else since
        self.until(lambda: self.one_view(names), f"{', '.join(names)} in one view")
        lines = [line for line in map(self.last, names) if line is not None]
        return max(0.0, max(line.installed_at for line in lines) - began_at)

    def healed(self, quarantine: float = 0.0) -> float:
        """The network is healed. Seconds until all are in one view: at most the bound, and what a quarantine may last (views CB7)."""
        at = now()
        self.net.heal()
        took = self.together(since=at)
        assert took <= self.bound + quarantine, f"one view after {took:.2f} s"
        return took

    def lasts(self, seconds: float) -> None:
        """The fault goes on for so long, and there is a way between all seats meanwhile: all are in one view by then."""
        time.sleep(seconds)
        self.together()

    def settled(self) -> float:
        """All are in one view, and it is settled: what comes next is compared with it (views CB6). Returns a moment since when each of them
        has said so."""
        self.together()

        def are() -> bool:
            lines = [line for line in map(self.last, self.clients) if line is not None]
            return self.one_view(self.clients) and now() - max(line.installed_at for line in lines) > self.settle

        self.until(are, "all are settled in one view")
        return min(line.at for line in map(self.last, self.clients) if line is not None)

    def hole(self, seat: str, *others: str) -> None:
        """Heartbeats pass; the link states of the seat do not reach these others, and there is a new one."""
        for other in others:
            self.net.cut_large(self.at(seat), self.at(other), SMALL)
        self.again(seat)

    def noticed(self, seat: str, *others: str) -> None:
        """These have no link with the seat any more."""
        self.until(lambda: all(seat in self.links_down(other) for other in others), f"{others} noticed it")

    def in_clean_views(self) -> bool:
        """Every client is in a view, and so are all that it lists."""
        views = {name: self.view(name) for name in self.clients}
        lives = {self.agents[name].id: name for name in self.clients}
        return all(
            view is not None and all(views.get(lives.get(each.life, "")) == view for each in view.members) for view in views.values()
        )

    def until(self, holds: Callable[[], object], what: str, patience: float = PATIENCE) -> None:
        def slowly() -> object:
            time.sleep(POLL_INTERVAL)
            return holds()

        until(slowly, what, patience)

    def never(self, holds: Callable[[], object], what: str, seconds: float) -> None:
        """It does not come about within so long."""
        end_at = now() + seconds
        while now() < end_at:
            assert not holds(), what
            time.sleep(POLL_INTERVAL)

    def lines(self) -> list[Line]:
        for path in self._records.values():
            self._lives.read(path)
        return [line for lines in self._lives.lines.values() for line in lines]

    def told(self, name: str, since: float) -> list[str]:
        """What this member heard of its view since then, but for extensions of its lease."""
        return [line.what for line in self._lives.read(self._records[name]) if line.at > since and line.what != "lease"]

    def check(self, since: float = 0.0) -> int:
        """Nothing must be seen that is wrong; returns how many pairs of settled clients there were to compare since then (views CB6, b)."""
        assert self.wrongs(self.settle) == []
        return settled_pairs([line for line in self.lines() if line.at >= since], self.settle)

    def wrongs(self, settle: float) -> list[str]:
        lines = self.lines()
        moves = [move for agent in self._logs for move in moves_in(agent.log(), agent.id, self.ahead)]
        assert {move.life for move in moves} >= {line.me for line in lines}
        return wrongs(lines, moves, settle)

    def report(self, name: str) -> ViewsReport:
        with RawClient(self.agents[name].socket) as client:
            found: ViewsReport = client.ask(SurveyViews)
            return found

    def links_down(self, seat: str) -> set[str]:
        """The seats with which this one has no link."""
        return {SEATS[look.slot] for look in self.report(seat).seats if look.link != "up"}

    def come_home(self, seat: str) -> list[str]:
        """All members whose first server is this seat attach to it again, wherever faults have moved them. These members."""
        names = [name for name in self.clients if first_server(name) == seat]
        for name in names:
            self.again(name)
        self.until(lambda: all(self.server_of(name) == seat for name in names), f"{', '.join(names)} attached to {seat}")
        return names

    def server_of(self, name: str) -> str:
        """The seat to which this member is attached."""
        return str(self.report(name).server).partition("#")[0]


def first_server(name: str) -> str:
    """The seat that a client of this name asks first."""
    slots = [Slot(number, "", Address("", number)) for number in range(len(SEATS))]
    return SEATS[in_order(name, slots, None)[0].number]


def clients_of(seat: str, many: int, stem: str = "c") -> list[str]:
    """So many names whose first server is this seat."""
    return list(islice((name for name in map(f"{stem}{{}}".format, count()) if first_server(name) == seat), many))
