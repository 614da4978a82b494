"""Groups for experiments and directed runs: one name, lists that a script writes or a trace replays.  Spec: election 8.

As in the paper one initiator begins, and a LEADER goes to all by a multicast alone: the table that tells of reigns is mute here, or it
would spread what is measured. Directed runs of the product use the scenarios' machines.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

from msgspec.structs import replace

from holdfast.events import Event, LeaderChanged
from holdfast.features.election.lab.clients import Client
from holdfast.features.election.lab.lists import Board, Director, ScriptedLists, board_of
from holdfast.features.election.protocol.elections import Elections
from holdfast.features.election.protocol.facts import Elected, ElectionFailed, Nominated, Tentative
from holdfast.features.election.protocol.messages import Leader, Response
from holdfast.features.election.protocol.profiles import Profile
from holdfast.features.election.protocol.shown import Account, State
from holdfast.host import Host, Machine, Member, Message
from holdfast.kit.broadcast import Broadcast
from holdfast.kit.exchange import Exchange
from holdfast.lab.accounting import HopBytes
from holdfast.lab.checker import Checker
from holdfast.lab.flood import Flood
from holdfast.lab.host import LabHost
from holdfast.lab.links import Link, Uniform
from holdfast.lab.network import PairLoss
from holdfast.lab.topology import Topology
from holdfast.lab.trace import Trace
from holdfast.lab.world import World

NAME = "x"
LINK = Link(Uniform(0.001, 0.05))
MESSAGE_BYTES, ENTRY_BYTES = 40, 6  # section 8
REPAIR = 0.5  # seconds: 500 units
LENGTH = 2.0
READY = 0.3  # seconds after which all stand and all lists show it
STEP = 0.05
LATEST = 120.0  # seconds after which an election has come to nothing

Directs = Callable[[World, Board], Director]


def names_of(members: int) -> list[str]:
    return [f"n{number:05}" for number in range(members)]


def paper_bytes(source: str, message: Message) -> int:
    """What the paper's messages may weigh: it does not say."""
    entries = len(message.candidates) + len(message.excluded) if isinstance(message, Response) else 0
    return MESSAGE_BYTES + ENTRY_BYTES * entries


class Mute(Broadcast):
    """Carries nothing."""

    def cast(self, *arguments: Any, **options: Any) -> Any:
        """Nothing is said to any other."""


class Flooded(NamedTuple):
    """A multicast over radio links."""

    topology: Topology
    loss: PairLoss
    repair: float = REPAIR


class FloodPort:
    """Implements the machine's ``Multicast`` for one member."""

    def __init__(self, group: ElectionGroup, host: LabHost) -> None:
        self._group, self._host = group, host

    def cast(self, message: Leader, members: Sequence[Member]) -> None:
        flood = self._group.flood
        assert flood is not None
        self._group.note_cast(self._host, message)
        flood.cast(self._host, message)


class Cast(NamedTuple):
    """A LEADER to all."""

    at: float
    leader: str
    term: int
    active: bool


class ElectionGroup:
    """Members of which all stand for one name."""

    def __init__(
        self,
        seed: int,
        names: Sequence[str],
        profile: Profile,
        directs: Directs,
        *,
        link: Link = LINK,
        topology: Topology | None = None,
        loss: PairLoss | None = None,
        flooded: Flooded | None = None,
        checkers: Sequence[Checker] = (),
        trace: Trace | None = None,
        watching: bool = False,
        table: bool = False,
    ) -> None:
        """``watching``: members begin elections by themselves. ``table``: reigns are told as in the product, too."""
        self._table = table
        self.names, self.config = list(names), profile.config
        self.rules = profile.rules if watching else replace(profile.rules, watch=False)
        self.casts: list[Cast] = []
        self.adopted: dict[int, dict[str, float]] = {}  # by term: who holds it to be active, since when
        self.nominated: list[tuple[str, Nominated]] = []
        self.elected: list[tuple[float, str, int]] = []
        self.tentative: list[tuple[str, int]] = []
        self.failed: list[tuple[str, str]] = []
        self.flood: Flood | None = None
        self._flooded = flooded
        self.world = World(seed, self._build, link=link, topology=topology, checkers=checkers, trace=trace)
        if loss is not None:
            self.world.network.set_pair_loss(loss)
        self.hop_bytes = HopBytes(self.world, paper_bytes)
        if flooded is not None:
            self.flood = Flood(
                self.world, flooded.topology, delay=link.delay, loss=flooded.loss, repair=flooded.repair, counted=self.hop_bytes.add
            )
        self.world.listeners.append(self._on_event)
        for name in self.names:
            self.world.start(name)
        self.director = directs(self.world, board_of(self.world))
        for name in self.names:
            self.stand(name)
        self.run(READY)

    # What runs do.

    def stand(self, name: str) -> None:
        host = self.host(name)
        self.world.step(host, lambda: self.elections(name).campaign(NAME, LENGTH, Client(host, NAME, LENGTH)))

    def elect(self, initiator: str) -> float:
        """It begins now; when that is."""
        self.world.step(self.host(initiator), partial(self.elections(initiator).elect, NAME))
        return self.world.now

    def run(self, seconds: float) -> None:
        self.world.run(self.world.now + seconds)

    def until(self, done: Callable[[], bool], seconds: float, step: float = STEP) -> bool:
        end = self.world.now + seconds
        while not done():
            if self.world.now >= end:
                return False
            self.run(step)
        return True

    def crash(self, name: str) -> None:
        self.world.crash(name)
        self.world.bury(name)

    # What they see.

    def host(self, name: str) -> LabHost:
        return self.world.nodes[name]

    def elections(self, name: str) -> Elections:
        return self.world.nodes[name].node.use(Elections)

    def lists(self, name: str) -> ScriptedLists:
        return self.world.nodes[name].node.use(ScriptedLists)

    def state(self, name: str) -> State:
        found = self.elections(name).state(NAME)
        assert found is not None
        return found

    def account(self, initiator: str) -> Account:
        found = self.elections(initiator).last(NAME)
        assert found is not None
        return found

    @property
    def alive(self) -> list[str]:
        return [host.me.name for host in self.world.alive]

    def agreed(self) -> str | None:
        """Who leads, if all who live know the same one; None otherwise."""
        reigns = {state.active[:2] for name in self.alive if (state := self.state(name)).active is not None}
        known = sum(self.state(name).active is not None for name in self.alive)
        return next(iter(reigns))[1].name if len(reigns) == 1 and known == len(self.alive) else None

    def settled(self, initiator: str) -> bool:
        """The initiator has finished, and all know the leader."""
        return not self.state(initiator).running and self.agreed() is not None

    def nominee(self, initiator: str) -> str | None:
        """Whom c+1 answers name, once they are there; None before."""
        account = self.account(initiator) if self.elections(initiator).last(NAME) is not None else None
        if account is None or account.nominee is None or len(account.answers) < account.c + 1:
            return None
        return account.nominee.name

    def known_at(self) -> float:
        """When the last of the living adopted the leader that all have now."""
        leader = self.agreed()
        assert leader is not None
        state = self.state(leader)
        assert state.active is not None
        return max(self.adopted[state.active[0]].get(name, 0.0) for name in self.alive)

    def note_cast(self, host: LabHost, message: Leader) -> None:
        self.casts.append(Cast(self.world.now, host.me.name, message.term, message.active))

    # How it is made.

    def _build(self, host: Host) -> Sequence[Machine]:
        assert isinstance(host, LabHost)
        lists = ScriptedLists(host, board_of(host.world))
        broadcast = Broadcast(host, lists) if self._table else Mute(host, lists)
        exchange = Exchange(host, broadcast)
        port = None if self._flooded is None else FloodPort(self, host)
        elections = Elections(host, lists, exchange, None, self.config, rules=self.rules, multicast=port)
        return [lists, broadcast, exchange, elections] if self._table else [lists, elections]

    def _on_event(self, host: LabHost, event: Event) -> None:
        if isinstance(event, LeaderChanged) and event.leader is not None:
            self.adopted.setdefault(event.token, {}).setdefault(host.me.name, self.world.now)
        elif isinstance(event, Elected):
            self.elected.append((self.world.now, host.me.name, event.term))
            self.adopted.setdefault(event.term, {}).setdefault(host.me.name, self.world.now)
        elif isinstance(event, Nominated):
            self.nominated.append((host.me.name, event))
        elif isinstance(event, Tentative):
            self.tentative.append((host.me.name, event.term))
        elif isinstance(event, ElectionFailed):
            self.failed.append((host.me.name, event.why))
