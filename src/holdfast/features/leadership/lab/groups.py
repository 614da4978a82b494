"""Leadership as it ships, for experiments: agents with the settings of a preset, three of them seats, and how long things take.

Spec: fast-detection D17b, D26; foundation F8, F14; docs/decisions.md H136. The lab's checkers look for what must never happen
(``scenarios.leadership``); this looks at how long things take. The member list says nothing of a death here: it may be quick or slow in
production (F15), and what is measured is leadership alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from math import inf
from random import Random
from typing import NamedTuple

from holdfast.config import Config
from holdfast.events import Event
from holdfast.features.leadership.detector.facts import Suspect
from holdfast.features.leadership.protocol.facts import Leading, LostLead
from holdfast.features.leadership.protocol.leadership import Leadership
from holdfast.features.leadership.protocol.pulse import Pulse
from holdfast.host import Address, Host, Machine, Member
from holdfast.kit.broadcast import Broadcast
from holdfast.kit.deadline import wait_length
from holdfast.kit.exchange import Exchange
from holdfast.kit.hold import LossReason
from holdfast.kit.seats import Seats
from holdfast.kit.slots import Slot, own_slot
from holdfast.lab.host import LabHost
from holdfast.lab.links import Link, Uniform
from holdfast.lab.listed_members import ListedMembers
from holdfast.lab.network import PORT
from holdfast.lab.world import World

SHIPPED = Config(preset="lan")
NUMBERS = SHIPPED.leadership_config()
LENGTH = SHIPPED.term_length(0.0)  # L, without a grace
INTERVAL = NUMBERS.t_itv
SEATS = 3
NAME = "job"
DELAY = Uniform(0.001, 0.010)  # seconds on the road
ROUND_TRIP = DELAY.low + DELAY.high  # in the mean
FOUNDED_AFTER = wait_length(SHIPPED.longest_grant, SHIPPED.rho, SHIPPED.margin) + 2.0  # F13: a fresh seat, or one that is back, serves
SETTLE_SECONDS = 60.0
STEP = 0.25  # seconds between two looks at whether all agree


class OncePerHeartbeat(Pulse):
    """What the specification asks for, and what shipped before H132: a term is renewed with the heartbeats, not between them."""

    def _on_between(self) -> None:
        """No member is asked."""


class Client:
    """Implements ``kit.hold.Holder``: keeps until when it may act."""

    def __init__(self) -> None:
        self.deadline = -inf  # on its agent's clock

    def on_queued(self, position: int, why: str = "") -> None:
        """Candidates of one name stand in no queue."""

    def on_granted(self, token: int, deadline: float, number: int = 0) -> None:
        self.deadline = deadline

    def on_extended(self, deadline: float) -> None:
        self.deadline = deadline

    def on_at_risk(self) -> None:
        """It goes on."""

    def on_lost(self, reason: LossReason) -> None:
        self.deadline = -inf


class Found(NamedTuple):
    """A death that was found."""

    seconds: float  # from the death to the report that was acted upon
    heartbeats: int  # that were missed until then


class LeadGroup:
    """Agents a0, a1, ...; the first three are the seats. Clocks run as far apart as detection counts with."""

    def __init__(self, seed: int, agents: int, *, loss: float = 0.0, standing: Iterable[str] | None = None, once: bool = False) -> None:
        """``standing``: who stands for the name, all if it is not said. ``once``: one renewal per heartbeat."""
        self.names = tuple(f"a{i}" for i in range(agents))
        self.standing = self.names if standing is None else tuple(standing)
        self.led: list[tuple[float, str]] = []  # when who began to lead, in true time
        self.lost: list[str] = []  # why leaders that live ended
        self.acted: list[tuple[float, Suspect]] = []  # reports of a death that a quorum of seats bears out
        self._clients: dict[str, Client] = {}
        self._once = once
        self._slots = tuple(Slot(i, f"a{i}", Address(f"a{i}", PORT)) for i in range(SEATS))
        self.world = World(seed, self._build, link=Link(DELAY, loss=loss))
        self.world.listeners.append(self._on_event)
        rates = Random(f"{seed}/rates")
        self.world.drift.update({name: 1 + NUMBERS.drift * (rates.random() - 0.5) for name in self.names})
        for name in self.names:
            self.world.start(name)
        self._show()
        self.world.run(FOUNDED_AFTER)
        for name in self.standing:
            self.stand(name)

    def at(self, name: str) -> Leadership:
        return self.world.nodes[name].node.use(Leadership)

    def agreed(self) -> str | None:
        """Who leads, if all who live say so; None otherwise."""
        views = [host.node.use(Leadership).leader(NAME) for host in self.world.alive]
        first = views[0]
        if first is None or any(view != first for view in views) or not self.at(first.leader.name).is_leader(NAME):
            return None
        return first.leader.name

    def ready(self, rest: float, share: float) -> str:
        """Let the group rest, then wait until this share of an interval has passed since a heartbeat of the leader; who it is."""
        self.world.run(self.world.now + rest)
        leader = self._settle()
        host = self.world.nodes[leader]
        tick = (self.at(leader).office.pulse.watched.next_at - host.now) / host.rate
        self.world.run(self.world.now + tick + share * INTERVAL)
        return self._settle()

    def next_candidate(self, leader: str) -> str:
        """Who is told to ask after this one's death."""
        order = [life.name for life in self.at(leader).candidates(NAME)]
        return order[(order.index(leader) + 1) % len(order)]

    def published(self, leader: str) -> float:
        """Until when its client may act, in true time."""
        host = self.world.nodes[leader]
        return self.world.now + (self._clients[leader].deadline - host.now) / host.rate

    def crash(self, names: Sequence[str]) -> None:
        """Their hosts die: agent and client."""
        for name in names:
            self.world.crash(name)

    def restart(self, names: Sequence[str]) -> None:
        for name in names:
            self.world.start(name)
        self._show()
        for name in names:
            if name in self.standing:
                self.stand(name)

    def resign(self, leader: str) -> None:
        """Its client has stopped (F14)."""
        self.world.step(self.world.nodes[leader], partial(self.at(leader).resign, NAME))

    def stand(self, name: str) -> None:
        client = self._clients[name] = Client()
        self.world.step(self.world.nodes[name], partial(self.at(name).campaign, NAME, LENGTH, client))

    def next_term(self, seconds: float) -> float | None:
        """True time from now until a term begins; None if none does within so many seconds."""
        before = len(self.led)
        return self._until(lambda: self.led[before][0] if len(self.led) > before else None, seconds)

    def found_dead(self, leader: str, seconds: float) -> Found | None:
        """From now, the moment of its death."""
        life, last = self.world.nodes[leader].me, self.at(leader).office.pulse.watched.seq
        self.acted.clear()
        took = self._until(lambda: self.acted[0][0] if self.acted else None, seconds)
        if took is None:
            return None
        report = self.acted[0][1]
        assert (report.watched, report.boot) == life
        return Found(took, report.seq - last)

    def _until(self, when: Callable[[], float | None], seconds: float) -> float | None:
        began_at = self.world.now
        while (found := when()) is None and self.world.now < began_at + seconds:
            self.world.run(min(self.world.now + STEP, began_at + seconds))
        return None if found is None else found - began_at

    def _settle(self) -> str:
        deadline = self.world.now + SETTLE_SECONDS
        while (leader := self.agreed()) is None:
            assert self.world.now < deadline, "the group does not agree on a leader"
            self.world.run(self.world.now + STEP)
        return leader

    def _show(self) -> None:
        """Each lists all; of the dead the list has not heard, until their next life is there."""
        for viewer in self.world.alive:
            wanted = {host.me.name: Member(host.me, host.address, {}) for host in self.world.nodes.values()}
            self.world.step(viewer, partial(viewer.node.use(ListedMembers).show, wanted))

    def _build(self, host: Host) -> Iterable[Machine]:
        members = ListedMembers(host)
        own = own_slot(self._slots, host.me.name, host.address)
        seats = Seats(
            host,
            self._slots,
            own,
            machine=host.me.name,
            rho=SHIPPED.rho,
            margin=SHIPPED.margin,
            length_max=SHIPPED.longest_grant,
        )
        broadcast = Broadcast(host, members)
        exchange = Exchange(host, broadcast)
        leadership = Leadership(host, members, seats, exchange, NUMBERS)
        if self._once:
            leadership.office.pulse.__class__ = OncePerHeartbeat
        return [members, seats, broadcast, exchange, leadership]

    def _on_event(self, host: LabHost, event: Event) -> None:
        if isinstance(event, Leading):
            self.led.append((self.world.now, host.me.name))
        elif isinstance(event, LostLead):
            self.lost.append(event.why)
        elif isinstance(event, Suspect) and event.acted:
            self.acted.append((self.world.now, event))
