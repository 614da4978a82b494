"""Agents that gossip, on loopback, behind forwarders or on machines of their own; what their lists say, and what happens to them.

Spec: gossip 7 (G3), 5.4.

with MemberFleet(folder, Forwarders(names), names) as fleet:
    fleet.right()                     # every list has exactly the living
    fleet.kill("a9")
    fleet.right()                     # within the bound of G3
    assert fleet.recorder.wrongs() == []

The first three members are the seeds, the next three the seats.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from holdfast.features.gossip.protocol.config import GossipConfig
from tests.support.agents import AgentProcess, Fleet
from tests.support.gossip_record import Excuse, Recorder, lost
from tests.support.nets import SEATS, SEEDS, Net

PROBE: Final = float(os.environ.get("TEST_PROBE", "0.2"))  # T. A machine that is late by more than that gives members up: raise it there
# A member that is kept from a core for longer than the shortest suspicion may be given up: half of it is what a machine may be late by.
MARGIN: Final = PROBE * 2.5 / 2
STARTS: Final = 3  # agents that start at a time
CUTS: Final = 8  # receivers whose firewalls change at a time
POLL_INTERVAL: Final = 0.02
SYNC_JITTER: Final = 1.1


class MemberFleet:
    """Members by their names."""

    def __init__(self, folder: Path, net: Net, names: Sequence[str], *, probe: float = PROBE, seats: bool = True, **settings: Any) -> None:
        self.folder, self.net, self.names = folder, net, tuple(names)
        self.config = GossipConfig(period=probe)
        self.agents: dict[str, AgentProcess] = {}  # the present lives, of living and dead
        self.ended_at: dict[str, float] = {}  # by life: when it was killed
        self.excuses: list[Excuse] = []
        self.recorder = self.recorded()
        self._seated = seats
        seeds = [net.reached_at(name) for name in self.names[:SEEDS]]
        offered = [f"{name}@{net.reached_at(name)}" for name in self.seats]
        self.fleet = Fleet(folder, membership="gossip", probe=probe, seeds=seeds, seats=offered or None, **settings)

    def __enter__(self) -> Self:
        self.recorder.__enter__()
        try:
            self.start(*self.names)
            self.right()
            self.begin()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.fleet.__exit__(kind, error, trace)
        self.recorder.__exit__(kind, error, trace)

    def recorded(self) -> Recorder:
        """What looks at all agents."""
        return Recorder()

    def begin(self) -> None:
        """All are there, and every list is right for the first time."""

    @property
    def seeds(self) -> tuple[str, ...]:
        return self.names[:SEEDS]

    @property
    def seats(self) -> tuple[str, ...]:
        return self.names[SEEDS : SEEDS + SEATS] if self._seated else ()

    # Bounds.

    @property
    def shortest(self) -> float:
        """A suspicion with all confirmations (gossip 5.4): a pause that is shorter is forgiven."""
        return self.config.suspicion_min

    @property
    def longest(self) -> float:
        """A suspicion without any."""
        return self.config.suspicion_max(len(self.names))

    @property
    def steady(self) -> float:
        """A suspicion that a fault has left behind is seen by then, and it is over: the probe, its judgement, the shortest suspicion."""
        return 2 * self.config.period + self.shortest

    @property
    def bound(self) -> float:
        """G3: from the last fault on until every list is right."""
        n, config = len(self.names), self.config
        return (2 * n - 1) * (config.lhm_max + 1) * config.period + self.longest + SYNC_JITTER * config.sync(n)

    # Processes.

    def start(self, *names: str, at_once: int = STARTS) -> None:
        """These members, or their next lives."""
        with ThreadPoolExecutor(at_once) as pool:
            list(pool.map(self._start, names))

    def _start(self, name: str) -> None:
        home = self.folder / f"home-{name}"
        reached_at = self.net.reached_at(name)
        bind = self.net.bind(name)
        agent = self.fleet.start(
            name=name, bind=bind, advertise=None if reached_at == bind else reached_at, before=self.net.before(name),
            runtime=home, state_dir=str(home / "state"),
        )  # fmt: skip
        self.agents[name] = agent
        self.recorder.add(agent.id, agent.socket)

    def kill(self, *names: str) -> None:
        """-9, all at once. Their names may be started again."""
        for name in names:
            self.ended_at[self.agents[name].id] = time.time()
            self.agents[name].process.kill()
        for name in names:
            self.agents[name].process.wait()

    @contextmanager
    def stopped(self, name: str) -> Iterator[None]:
        """SIGSTOP, and SIGCONT in the end."""
        self.agents[name].signal(signal.SIGSTOP)
        yield
        self.agents[name].signal(signal.SIGCONT)

    def split(self, one: Collection[str], other: Collection[str]) -> None:
        """Neither side hears the other one."""
        with ThreadPoolExecutor(CUTS) as pool:
            list(pool.map(self.net.cut, *zip(*[(other, each) for each in one], *[(one, each) for each in other], strict=True)))

    # What lists say.

    def living(self) -> list[str]:
        return [name for name, agent in self.agents.items() if agent.process.poll() is None]

    def lives(self, names: Collection[str] = ()) -> list[str]:
        return [self.agents[name].id for name in names or self.living()]

    def is_right(self, names: Collection[str] = ()) -> bool:
        """These (all that live) list exactly these, and suspect none."""
        return not self.recorder.wrong_about(self.lives(names))

    def right(self, names: Collection[str] = (), since: float | None = None) -> float:
        """Wait until that is so and stays so; returns how long after ``since`` the last change was. More than the bound is a failure."""
        wrong_at = time.time()
        began_at = wrong_at if since is None else since
        lives = self.lives(names)
        while (now := time.time()) - wrong_at < self.steady:
            if wrong := self.recorder.wrong_about(lives):
                wrong_at = now
                if now - began_at >= self.bound:
                    raise Late(f"after {now - began_at:.1f} s of {self.bound:.1f} s lists are wrong: {wrong}")
            time.sleep(POLL_INTERVAL)
        changes = [line.at for line in self.recorder.lines(began_at) if line.me in lives]
        return max(changes, default=began_at) - began_at

    def lost(self, since: float) -> list[str]:
        """Members that lived, and that one which could hear them gave up since then."""
        return lost(self.recorder.lines(since), self.ended_at, self.excuses)

    def excuse(self, by: Collection[str], of: Collection[str]) -> None:
        """These cannot hear those for a while, or those stand still for so long that they may be given up. ``rest`` ends it."""
        self.excuses.append(Excuse(set(self.lives(by)), set(self.lives(of))))

    def rest(self) -> None:
        """All are there, and every list is right: what comes next begins from here."""
        self.start(*(name for name in self.names if name not in self.living()))
        self.right()
        self.excuses.clear()


class Late(AssertionError):
    """Lists were wrong for longer than they may be."""
