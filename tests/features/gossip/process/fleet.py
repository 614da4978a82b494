"""Agents that gossip, on loopback, behind forwarders or on machines of their own; what their lists say, and what happens to them.

Spec: gossip 7 (G3), 5.4; foundation F15.

with GossipFleet(folder, Forwarders(names), names) as fleet:
    fleet.right()                     # every list has exactly the living
    fleet.kill("a9")
    fleet.right()                     # within the bound of G3
    assert fleet.recorder.wrongs() == []

The first three members are the seeds, the next three the seats, and a client of the seventh leads and holds a ticket all the time, which
no change of a list may end (F15).
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Protocol, Self

import holdfast.sync
from holdfast.cli.demo.fleet import free_ports
from holdfast.features.gossip.protocol.config import GossipConfig
from holdfast.host import Address
from holdfast.local.calls import Acquire, GrantItem
from tests.agent.raw_client import RawClient
from tests.features.gossip.process.record import Excuse, Recorder, lost
from tests.support.agents import AgentProcess, Fleet
from tests.support.forwarder import in_a_thread, somewhere
from tests.support.netns import PORT, Namespaces

PROBE: Final = float(os.environ.get("TEST_PROBE", "0.2"))  # T. A machine that is late by more than that gives members up: raise it there
SEEDS: Final = 3
SEATS: Final = 3
STARTS: Final = 3  # agents that start at a time
CUTS: Final = 8  # receivers whose firewalls change at a time
POLL_INTERVAL: Final = 0.02
SYNC_JITTER: Final = 1.1
GRACE: Final = 4.0  # seconds: the term outlasts what a busy machine keeps its agent from
LONGEST: Final = 5.0  # seconds: a seat grants no more; the grace and a term of this preset fit
HELD, POOL = "kept", "gpu"


class Net(Protocol):
    """How members reach each other."""

    def bind(self, name: str) -> str: ...
    def reached_at(self, name: str) -> str: ...
    def before(self, name: str) -> Sequence[str]: ...
    def cut(self, senders: Collection[str], receiver: str) -> None: ...
    def heal(self) -> None: ...


class Loopback:
    """Ports of this machine: nothing can be cut. Seeds and seats have ports of their own, the others any."""

    def __init__(self, names: Sequence[str]) -> None:
        fixed = names[: SEEDS + SEATS]
        self._ports = dict(zip(fixed, free_ports(len(fixed)), strict=True))

    def bind(self, name: str) -> str:
        return f"127.0.0.1:{self._ports.get(name, 0)}"

    reached_at = bind

    def before(self, name: str) -> Sequence[str]:
        del name
        return ()

    def cut(self, senders: Collection[str], receiver: str) -> None:
        raise NotImplementedError

    def heal(self) -> None:
        pass


class Forwarders:
    """Every datagram and stream passes this process. Any user may have that."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        self._mesh, self._run = self._stack.enter_context(in_a_thread(self._names, seed=17))
        self._binds = {name: somewhere(self._mesh, name) for name in self._names}
        for name, bind in self._binds.items():
            host, _, port = bind.rpartition(":")
            self._mesh.attach(name, Address(host, int(port)))
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._stack.close()

    def bind(self, name: str) -> str:
        return self._binds[name]

    def reached_at(self, name: str) -> str:
        return str(self._mesh.address(name))

    def before(self, name: str) -> Sequence[str]:
        del name
        return ()

    def cut(self, senders: Collection[str], receiver: str) -> None:
        def cut() -> None:
            for sender in senders:
                self._mesh.cut(sender, receiver)

        self._run(cut)

    def heal(self) -> None:
        self._run(self._mesh.heal)


class Machines:
    """Network namespaces, with a kernel's firewall."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names
        self._net = Namespaces(len(names))

    def __enter__(self) -> Self:
        self._net.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._net.__exit__(kind, error, trace)

    def bind(self, name: str) -> str:
        return f"{self._net.address(self._names.index(name))}:{PORT}"

    reached_at = bind

    def before(self, name: str) -> Sequence[str]:
        return self._net.words(self._names.index(name))

    def cut(self, senders: Collection[str], receiver: str) -> None:
        """One run of the firewall for each receiver: a cut of a second shall begin at all of them at once."""
        sources = ", ".join(self._net.address(self._names.index(sender)) for sender in senders)
        self._net.run(self._names.index(receiver), ["nft", f"add rule inet holdfast arriving ip saddr {{ {sources} }} drop"])

    def heal(self) -> None:
        self._net.heal()


class Holder:
    """A client that leads and holds a ticket, and another one, elsewhere, that waits for both and must get neither."""

    def __init__(self, agent: AgentProcess, other: AgentProcess) -> None:
        self._stack = ExitStack()
        group = self._stack.enter_context(holdfast.sync.join(agent=agent.socket))
        self.term = self._stack.enter_context(group.lead(HELD, grace=GRACE, timeout=60))
        self.ticket = self._stack.enter_context(group.ticket(POOL, of=1, timeout=60))
        self._rival = self._stack.enter_context(RawClient(other.socket))
        self._waits = [
            self._rival.say(Acquire, "lead", HELD, {"grace": GRACE}),
            self._rival.say(Acquire, "ticket", POOL, {"of": 1}),
        ]

    def close(self) -> None:
        self._stack.close()

    def missing(self) -> str:
        """What was touched; "" if nothing was."""
        gone = [what for what, held in (("the term", self.term), ("the ticket", self.ticket)) if not held.valid]
        self._rival.sock.settimeout(0.01)
        try:
            while True:
                self._rival.next()
        except TimeoutError:
            pass
        finally:
            self._rival.sock.settimeout(30.0)
        given = [item.what for serial in self._waits for item in self._items(serial) if item.what == "granted"]
        return " and ".join([*(f"{each} was lost" for each in gone), *(f"another client was {each} it" for each in given)])

    def _items(self, serial: int) -> Iterator[GrantItem]:
        while self._rival.pushed.get(serial):
            yield self._rival.item(serial, GrantItem)


class GossipFleet:
    """Members by their names."""

    def __init__(self, folder: Path, net: Net, names: Sequence[str], *, probe: float = PROBE, seats: bool = True, **settings: Any) -> None:
        self.folder, self.net, self.names = folder, net, tuple(names)
        self.config = GossipConfig(period=probe)
        self.agents: dict[str, AgentProcess] = {}  # the present lives, of living and dead
        self.ended_at: dict[str, float] = {}  # by life: when it was killed
        self.excuses: list[Excuse] = []
        self.recorder = Recorder()
        self._holder: Holder | None = None
        self._seated = seats
        seeds = [net.reached_at(name) for name in self.names[:SEEDS]]
        offered = [f"{name}@{net.reached_at(name)}" for name in self.seats]
        self.fleet = Fleet(
            folder, membership="gossip", probe=probe, seeds=seeds, seats=offered or None,
            longest_grant=LONGEST, ticket_lease=GRACE, **settings,
        )  # fmt: skip

    def __enter__(self) -> Self:
        self.recorder.__enter__()
        try:
            self.start(*self.names)
            self.right()
            if self._seated:
                self.hold()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._holder is not None:
            self._holder.close()
        self.fleet.__exit__(kind, error, trace)
        self.recorder.__exit__(kind, error, trace)

    @property
    def seeds(self) -> tuple[str, ...]:
        return self.names[:SEEDS]

    @property
    def seats(self) -> tuple[str, ...]:
        return self.names[SEEDS : SEEDS + SEATS] if self._seated else ()

    @property
    def holder(self) -> str:
        return self.names[SEEDS + SEATS]

    @property
    def others(self) -> tuple[str, ...]:
        """No seeds, no seats, not the holder."""
        return self.names[SEEDS + SEATS + 1 :]

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
        """All are there, every list is right, the client holds what it held: what comes next begins from here."""
        self.start(*(name for name in self.names if name not in self.living()))
        self.right()
        self.excuses.clear()
        if self.touched():
            self.hold()

    # Grants.

    def hold(self) -> None:
        """A client of the holder leads and holds the ticket; one of the last seat waits for both."""
        if self._holder is not None:
            self._holder.close()
        self._holder = Holder(self.agents[self.holder], self.agents[self.seats[-1]])

    def touched(self) -> str:
        """What happened to the grants; "" if nothing did."""
        return "" if self._holder is None else self._holder.missing()


class Late(AssertionError):
    """Lists were wrong for longer than they may be."""
