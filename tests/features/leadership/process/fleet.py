"""A group with three seats, clients that lead in it, and the outside recorder that looks at what they wrote."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

from benchmarks.ring_fleet import free_addresses
from tests.agent.lock_fleet import ROOT, Record
from tests.support.agents import AgentProcess, Fleet, until

SEATS = 3
GRACE = 2.0  # seconds; with a heartbeat of 0.3 s a term is 2.45 s, below the 3 s that seats of the preset grant
EXTENSIONS = 3  # that were seen before something happens: it leads in earnest


class Place(NamedTuple):
    """Where a seat listens, where others reach it, and what stands before its command."""

    bind: str
    advertise: str = ""
    before: Sequence[str] = ()

    @property
    def reached_at(self) -> str:
        return self.advertise or self.bind


class LeadBody:
    """A client process that wants to lead one name."""

    def __init__(self, agent: AgentProcess, record: Record, name: str, grace: float, manner: str) -> None:
        words = [sys.executable, "-m", "tests.features.leadership.process.body", agent.socket, name, str(record.path), str(grace), manner]
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, cwd=ROOT)
        self.record = record

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def deeds(self) -> int:
        return len(self.record.lines("deed", self.pid))

    def until_works(self) -> None:
        until(lambda: self.deeds > 0 or self.process.poll() is not None, "it leads and works")
        assert self.deeds > 0, "it ended without a deed"

    def stop(self) -> None:
        """As a user ends it."""
        assert self.process.stdin is not None
        self.process.stdin.close()

    def signal(self, number: int) -> None:
        os.kill(self.pid, number)

    def wait(self) -> int:
        return self.process.wait(60)


class Leads:
    """Agents of one group and the clients of one test. Leaving the block ends what is left of them."""

    def __init__(self, folder: Path, places: Sequence[Place] = ()) -> None:
        """Without ``places`` all seats are on loopback and reach each other."""
        self.folder = folder
        self.places = [*places] or [Place(address) for address in free_addresses(SEATS)]
        self.fleet = Fleet(folder, seeds=[place.reached_at for place in self.places], log_level="info")
        self.seats: list[AgentProcess] = []
        self.bodies: list[LeadBody] = []

    def __enter__(self) -> Self:
        with ThreadPoolExecutor(SEATS) as pool:  # One after the other, the first would look for the others for seconds.
            self.seats = [*pool.map(self.seat, range(SEATS))]
        until(self.formed, "three seats are a group")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for body in self.bodies:
            if body.process.poll() is None:
                body.signal(signal.SIGCONT)
                body.process.kill()
                body.process.wait()
            if body.process.stdin is not None and not body.process.stdin.closed:
                body.process.stdin.close()
        self.fleet.__exit__(kind, error, trace)

    def seat(self, number: int) -> AgentProcess:
        """Started, or started again with what it had written."""
        place = self.places[number]
        settings: dict[str, Any] = {"bind": place.bind, "advertise": place.reached_at, "state_dir": str(self.folder / f"state{number}")}
        return self.fleet.start(runtime=self.folder / f"seat{number}", name=f"seat{number}", before=place.before, **settings)

    def agent(self, name: str, *, module: str = "holdfast.agent") -> AgentProcess:
        """A member that is no seat."""
        agent = self.fleet.start(name=name, module=module)
        agent.until_said("Joined", member=agent.id)
        return agent

    def formed(self) -> bool:
        return all(each.said("Joined", member=other.id) for each in self.seats for other in self.seats)

    def record(self, name: str) -> Record:
        return Record(self.folder / f"{name}.record")

    def body(self, agent: AgentProcess, name: str, *, grace: float, manner: str = "polite") -> LeadBody:
        body = LeadBody(agent, self.record(name), name, grace, manner)
        self.bodies.append(body)
        return body

    def until(self, holds: Callable[[], object], what: str) -> None:
        until(holds, what)


def lead_and_wait(leads: Leads, agent: AgentProcess, name: str, manner: str = "polite") -> tuple[LeadBody, LeadBody]:
    """The first one leads, through that agent, and is extended; the second one waits, through the first seat."""
    first = leads.body(agent, name, grace=GRACE, manner=manner)
    first.until_works()
    second = leads.body(leads.seats[0], name, grace=GRACE)
    if manner == "polite":
        leads.until(lambda: len(first.record.lines("extended", first.pid)) >= EXTENSIONS, "it is extended")
    return first, second


def finish(second: LeadBody) -> None:
    """The second one leads, ends, and nobody saw two at work."""
    second.until_works()
    second.stop()
    assert second.wait() == 0
    assert second.record.overlaps() == []


def after_the_deadline(second: LeadBody) -> bool:
    one, two = second.record.terms()
    return one.ended_at < one.deadline <= two.began_at
