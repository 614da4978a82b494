"""Agents on machines of their own, the first three of them seats, each with worker programs that use one limit under load; and faults.

with LimitFleet(folder, net, limit, wants={"s0": 250, "s1": 50, ...}) as fleet:
    fleet.whole()                     # the whole limit is used
    net.cut_both(0, 1)
    ...
    net.heal()
    fleet.whole()
    assert fleet.wrongs() == []       # nothing in the records that must never be seen
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

from holdfast.features.limits.calls import LimitLine, LimitsReport, SurveyLimits
from holdfast.features.views.protocol.config import ViewsConfig
from holdfast.local.calls import GroupView, Join, Look
from holdfast.net.clock import now, now_ns
from tests.agent.raw_client import RawClient
from tests.features.limits.process.record import SECOND, Bound, Record, Records, merged, rate, wrongs
from tests.support.agents import AgentProcess, Fleet, until
from tests.support.netns import PORT, Namespaces

ROOT = Path(__file__).parents[4]
SEATS = ("s0", "s1", "s2")
LAN = 0.25  # seconds: the heartbeat of this preset
PATIENCE = 60.0  # seconds; only a broken program or a broken machine reaches it
REQUEST_PATIENCE = 1.0  # seconds for which a request waits: an open load of more than the limit has no end to its queue otherwise
POLL_INTERVAL = 0.05
USED = 0.95  # of the limit: the whole of it is used, as far as a second of it says
REST = 2.0  # seconds between two faults
STARTS = 3  # programs that start at a time
WORKER = "tests.features.limits.process.worker"


class LimitTerms(NamedTuple):
    """The one limit of a fleet."""

    policy: str
    rate: float
    burst: float
    fleet: int | str
    name: str = "api"

    def asked(self) -> dict[str, Any]:
        return {"name": self.name, "rate": self.rate, "burst": self.burst, "policy": self.policy, "fleet": self.fleet}


class Program(NamedTuple):
    """One worker program that was started."""

    member: str
    process: subprocess.Popen[bytes]
    record: Path


class LimitFleet:
    """Members by their names: those of ``wants``, which says how many requests each of them gets per second. Machine n of the network is
    that of the n-th member."""

    def __init__(
        self,
        folder: Path,
        net: Namespaces,
        terms: LimitTerms,
        wants: Mapping[str, float],
        *,
        workers: int = 1,
        heartbeat: float = LAN,
        seats: bool = True,
    ) -> None:
        """``workers`` programs of each member; ``wants`` is split among them evenly. Without ``seats`` the group has none."""
        self.net, self.folder, self.terms, self.wants, self.workers = net, folder, terms, dict(wants), workers
        self.views = ViewsConfig(heartbeat=heartbeat)
        self.names = tuple(wants)
        seeds = [f"{net.address(number)}:{PORT}" for number in range(len(SEATS))] if seats else None
        self.agents: dict[str, AgentProcess] = {}
        self.programs: list[Program] = []
        self.counts_from = 0  # instant: what went before that is no matter of the next fault
        self._fleet = Fleet(folder, preset="lan", view_heartbeat=heartbeat, log_level="debug", seeds=seeds)
        self._records = Records()
        self._seats = seats

    def __enter__(self) -> Self:
        try:
            first = len(SEATS) if self._seats else 1
            with ThreadPoolExecutor(STARTS) as pool:
                for names in (self.names[:first], self.names[first:]):
                    list(pool.map(self.start, names))
            for name in self.names:
                self.load(name)
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for program in self.running():
            program.process.kill()
            program.process.send_signal(signal.SIGCONT)
            program.process.wait()
        self._fleet.__exit__(kind, error, trace)

    # Processes.

    def start(self, name: str, module: str = "holdfast.agent") -> None:
        """This member, or its next life."""
        number = self.at(name)
        others = [self.agents[each].address for each in self.living()]
        self.agents[name] = agent = self._fleet.start(
            name=name, runtime=self.folder / f"home{number}", bind=f"{self.net.address(number)}:{PORT}", before=self.net.words(number),
            state_dir=str(self.folder / f"state-{name}"), module=module,
        )  # fmt: skip
        if not self._seats and others:
            with RawClient(agent.socket) as client:
                client.ask(Join, tuple(others[:1]), PATIENCE)

    def load(self, name: str, count: int | None = None, module: str = WORKER, want: float | None = None) -> list[Program]:
        """Worker programs of this member begin."""
        return [
            self._begin(name, module, (self.wants[name] if want is None else want) / self.workers) for _ in range(count or self.workers)
        ]

    def _begin(self, name: str, module: str, want: float) -> Program:
        path = self.folder / f"record{len(self.programs)}-{name}"
        asked = {"head": {"member": name}, "want": want, "patience": REQUEST_PATIENCE, "limit": self.terms.asked()}
        words = [sys.executable, "-m", module, self.agents[name].socket, str(path), json.dumps(asked)]
        program = Program(name, subprocess.Popen(words, stdin=subprocess.DEVNULL, cwd=ROOT), path)
        self.programs.append(program)
        return program

    def running(self, name: str | None = None) -> list[Program]:
        return [each for each in self.programs if each.process.poll() is None and name in (None, each.member)]

    def kill_worker(self, name: str) -> Program:
        """-9 of one program of this member."""
        program = self.running(name)[0]
        program.process.kill()
        program.process.wait()
        return program

    def kill(self, name: str) -> None:
        """-9 of the agent. Its worker programs go on."""
        self.agents[name].kill()

    def at(self, name: str) -> int:
        """The number of its machine."""
        return self.names.index(name)

    def split(self, *sides: Collection[str]) -> None:
        """No side hears another one."""
        for number, one in enumerate(sides):
            for other in sides[number + 1 :]:
                for a in one:
                    for b in other:
                        self.net.cut_both(self.at(a), self.at(b))

    # What the records say.

    def records(self, name: str | None = None) -> list[Record]:
        """Of all programs, or of those of one member; also of those that are dead."""
        found = []
        for program in self.programs:
            record = self._records.read(program.record) if name in (None, program.member) else None
            if record is not None:
                found.append(record)
        return found

    @property
    def bound(self) -> Bound:
        """Limits 1. A program that was started in place of a dead one begins with an empty bucket, and adds nothing."""
        return Bound(self.terms.rate, self.terms.burst, self.workers * len(self.names))

    def wrongs(self, since: int = 0) -> list[str]:
        """What must never go, from then on."""
        return wrongs(self.records(), self.bound, since)

    def rates(self, since: int, until: int) -> dict[str, float]:
        """What each member let go per second."""
        return {name: rate(merged(self.records(name)), since, until) for name in self.names}

    def least(self, name: str) -> float:
        """min(what it wants, R/n)."""
        fleet = self.terms.fleet
        return min(self.wants[name], self.terms.rate / (len(self.names) if isinstance(fleet, str) else fleet))

    def used(self, names: Collection[str] = (), seconds: float = 1.0) -> float:
        """What these (all) let go together in the last second, as a part of the limit."""
        end = now_ns()
        since = end - round(seconds * SECOND)
        total = sum(rate(record.permits, since, end) for name in names or self.names for record in self.records(name))
        return total / self.terms.rate

    def all_go(self) -> bool:
        """Each program that runs has let something go: it has begun, and its agent knows it."""
        records = (self._records.read(program.record) for program in self.running())
        return all(record is not None and len(record.permits) > 0 for record in records)

    def whole(self, names: Collection[str] = (), part: float = 1.0) -> float:
        """Wait until these (all) use this part of the limit; seconds until then."""
        began_at = now()
        self.until(lambda: self.used(names) >= USED * part, f"{names or 'all'} use {part:g} of the limit")
        return now() - began_at

    def rest(self) -> None:
        """All are in one view and use the whole limit, for a while."""
        self.until(self.one_view, "one view")
        self.whole()
        time.sleep(REST)

    # What agents say.

    def line(self, name: str) -> LimitLine | None:
        """The limit, as this agent sees it."""
        with RawClient(self.agents[name].socket) as client:
            report: LimitsReport = client.ask(SurveyLimits)
        return next((line for line in report.lines if line.name == self.terms.name), None)

    def shares(self, names: Collection[str] = ()) -> dict[str, float]:
        return {name: 0.0 if (line := self.line(name)) is None else line.share for name in names or self.names}

    def one_view(self, names: Collection[str] = ()) -> bool:
        """These (all) gossip in one instance, and no other member with them."""
        lines = [self.line(name) for name in names or self.names]
        views = {"" if line is None or line.panic_for is not None else line.view for line in lines}
        return len(views) == 1 and "" not in views and all(line is not None and line.members == len(lines) for line in lines)

    def ring(self, name: str) -> GroupView:
        """The member list of this agent."""
        with RawClient(self.agents[name].socket) as client:
            view: GroupView = client.ask(Look)
            return view

    def is_ring(self, names: Collection[str] = ()) -> bool:
        """These (all) are members of the ring, and each of them lists these alone."""
        views = [self.ring(name) for name in names or self.names]
        lives = {self.agents[name].id for name in names or self.names}
        return all(view.state == "member" and {str(member.id) for member in view.members} == lives for view in views)

    def no_ring(self, names: Collection[str]) -> bool:
        """None of these is a member of a ring."""
        return all(self.ring(name).state != "member" for name in names)

    def until(self, holds: Callable[[], object], what: str, patience: float = PATIENCE) -> None:
        def slowly() -> object:
            time.sleep(POLL_INTERVAL)
            return holds()

        until(slowly, what, patience)

    def living(self) -> Iterator[str]:
        return (name for name in self.names if name in self.agents and self.agents[name].process.poll() is None)
