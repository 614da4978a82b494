"""Limits of agents whose views are not those beside a ring: the member list is a view of the seats, or ZooKeeper has the views.

Spec: limits 1, 5.5, 5.7, 8 (T1); views D31, 5Z. Programs take all they can, so what an agent may use says how the limit is split.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import holdfast.sync
from holdfast.features.limits.calls import LimitLine, LimitsReport, SurveyLimits
from holdfast.features.views.lab.ensemble import STALE, Ensemble, missing
from holdfast.features.views.lab.wires import Wire, Wires
from holdfast.features.views.protocol.config import RHO_MIN, ViewsConfig
from holdfast.kit.deadline import wait_length
from tests.agent.raw_client import RawClient
from tests.features.limits.process.test_processes import free_ports
from tests.support.agents import AgentProcess, Fleet, until

RATE, BURST = 60.0, 6.0
NAMES = ("a", "b", "c")
WAIT = 60.0  # seconds
NEAR = 0.1  # of the limit
SESSION = 2.0  # seconds
PROGRAM = """
import sys, holdfast.sync
with holdfast.sync.join(agent=sys.argv[1]) as group:
    limit = group.limit("api", rate=float(sys.argv[2]), burst=float(sys.argv[3]), policy=sys.argv[4], fleet=int(sys.argv[5]))
    while True:
        limit.acquire()
"""


class Terms(NamedTuple):
    """Of the one limit."""

    policy: str = "exact"
    fleet: int = len(NAMES)


class Group:
    """Agents by name, programs that want whatever their agent may use, and members that want nothing."""

    def __init__(self, folder: Path, settings: dict[str, dict[str, Any]], terms: Terms) -> None:
        self.terms = terms
        self._fleet = Fleet(folder)
        self._settings = settings
        self.agents: dict[str, AgentProcess] = {}
        self._programs: dict[str, subprocess.Popen[bytes]] = {}
        self._idle: list[Any] = []

    def start(self, name: str) -> None:
        """This member, or its next life."""
        home = self._fleet.folder / f"home-{name}"
        others = [agent.address for agent in self.agents.values() if agent.process.poll() is None][:1]
        settings = {"seeds": others, **self._settings[name]} if others else self._settings[name]
        self.agents[name] = self._fleet.start(name=name, runtime=home, state_dir=str(home / "state"), **settings)

    def hungry(self, name: str) -> None:
        words = [self.agents[name].socket, str(RATE), str(BURST), self.terms.policy, str(self.terms.fleet)]
        self._programs[name] = subprocess.Popen([sys.executable, "-c", PROGRAM, *words])

    def idle(self, name: str) -> None:
        """A member of the fleet that lets nothing go."""
        client = holdfast.sync.join(agent=self.agents[name].socket)
        self._idle.append(client)
        client.limit("api", rate=RATE, burst=BURST, policy=self.terms.policy, fleet=self.terms.fleet).ready(timeout=WAIT)

    def kill(self, name: str) -> None:
        """-9 of the agent and of its program."""
        self.agents[name].kill()
        program = self._programs.pop(name, None)
        if program is not None:
            program.kill()
            program.wait()

    def line(self, name: str) -> LimitLine | None:
        """The limit as this agent has it."""
        with RawClient(self.agents[name].socket) as client:
            report: LimitsReport = client.ask(SurveyLimits, "api")
            return report.lines[0] if report.lines else None

    def share(self, name: str) -> float:
        """Of the limit: what this agent may use."""
        line = self.line(name)
        return 0.0 if line is None else line.share / RATE

    def have(self, **parts: float) -> bool:
        """Each of these may use about this part of the limit."""
        return all(abs(self.share(name) - part) <= NEAR for name, part in parts.items())

    def until(self, what: str, **parts: float) -> None:
        try:
            until(lambda: time.sleep(0.1) or self.have(**parts), what, WAIT)  # type: ignore[func-returns-value]
        except AssertionError as error:
            raise AssertionError(f"{error}; they have { {name: self.line(name) for name in parts} }") from None

    def end(self) -> None:
        for program in self._programs.values():
            program.kill()
            program.wait()
        self._fleet.__exit__(None, None, None)


@contextmanager
def running(folder: Path, settings: dict[str, dict[str, Any]], terms: Terms) -> Iterator[Group]:
    group = Group(folder, settings, terms)
    try:
        for name in NAMES:
            group.start(name)
        yield group
    finally:
        group.end()


def follows(group: Group) -> None:
    """Shares move with what members want; what a killed one had comes back to the others, and to it when it lives again."""
    group.hungry("a")
    group.idle("b")
    group.idle("c")
    group.until("a has what the others leave", a=0.93)
    group.hungry("b")
    group.until("two have a half each", a=0.48, b=0.48)
    group.kill("b")
    left = (len(NAMES) - 1) / group.terms.fleet
    group.until("a has what b had, in a view of two", a=min(1.0, left) - 0.05)
    group.start("b")
    group.hungry("b")
    group.until("both are back", a=0.48, b=0.48)


def test_a_limit_where_the_member_list_is_a_view(tmp_path: Path) -> None:
    """Views D31: with ``membership = "views"`` a limit is over the view that the member list is; n is 2, so two have all of it."""
    ports = free_ports(len(NAMES))
    seats = [f"{name}@127.0.0.1:{port}" for name, port in zip(NAMES, ports, strict=True)]
    settings = {
        name: {"membership": "views", "seats": seats, "seeds": [f"127.0.0.1:{ports[0]}"], "bind": f"127.0.0.1:{port}"}
        for name, port in zip(NAMES, ports, strict=True)
    }
    with running(tmp_path, settings, Terms("strict", 2)) as group:
        follows(group)
        line = group.line("a")
        assert line is not None
        assert (line.over, line.members) == ("views", len(NAMES))


class Doors(NamedTuple):
    """The ensemble, and the wire of each agent's client."""

    ensemble: Ensemble
    wires: dict[str, Wire]

    def settings(self, membership: str) -> dict[str, dict[str, Any]]:
        return {
            name: {"membership": membership, "zookeeper": str(wire.address), "zk_session": SESSION, "zk_stale": STALE}
            for name, wire in self.wires.items()
        }


@pytest.fixture
def doors(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Doors]:
    with Wires() as wires, Ensemble(tmp_path_factory.mktemp("zookeeper"), wires) as ensemble:
        yield Doors(ensemble, {name: ensemble.door(number) for number, name in enumerate(NAMES)})


@pytest.mark.nightly
@pytest.mark.skipif(bool(missing()), reason=missing())
@pytest.mark.parametrize("membership", ["ring", "views"])
def test_a_limit_over_zookeeper(tmp_path: Path, doors: Doors, membership: str) -> None:
    """Views 5Z: an agent with ``zookeeper`` has exact limits, beside a ring and where the view is the member list."""
    with running(tmp_path, doors.settings(membership), Terms()) as group:
        follows(group)
        line = group.line("a")
        assert line is not None
        assert (line.over, line.members) == ("views", len(NAMES))


@pytest.mark.nightly
@pytest.mark.skipif(bool(missing()), reason=missing())
def test_no_part_lapses_over_zookeeper(tmp_path: Path, doors: Doors) -> None:
    """Limits 5.5, views G6 (c): over ZooKeeper nothing says when others count on a member no more. One that gave its part away and is cut
    off keeps the little it has, however long that lasts, and has a part again when it has a view."""
    settle = wait_length(ViewsConfig().lease + STALE, RHO_MIN, ViewsConfig().margin)
    with running(tmp_path, doors.settings("views"), Terms()) as group:
        group.hungry("a")
        group.idle("b")
        group.idle("c")
        group.until("a has what the others leave", a=0.93, c=0.0)
        doors.wires["c"].cut()
        until(lambda: (line := group.line("c")) is not None and line.panic_for is not None, "c has no view", WAIT)
        group.hungry("c")
        group.until("a has what a view of two leaves it", a=0.6)
        end_at = time.monotonic() + 3 * settle
        while time.monotonic() < end_at:
            line = group.line("c")
            assert line is not None
            assert line.panic_for is not None
            assert line.share <= NEAR * RATE, "a part has lapsed"
            time.sleep(0.2)
        doors.wires["c"].heal()
        group.until("c has a part again", a=0.48, c=0.48)
