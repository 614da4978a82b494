"""Which machines an agent runs, from its settings."""

from __future__ import annotations

from math import inf
from typing import NamedTuple, Protocol

from holdfast.agent.life.home import Home, machine
from holdfast.agent.life.version import VERSION
from holdfast.agent.membership import kind_of
from holdfast.config import is_loopback
from holdfast.errors import ConfigError
from holdfast.features.farewell.protocol.farewell import Farewell
from holdfast.features.keys.protocol.keys import KeyKeeper
from holdfast.features.keys.protocol.warden import KeyringPort
from holdfast.features.leadership.protocol.leadership import Leadership
from holdfast.features.mail.protocol.mail import Mail
from holdfast.features.mail.protocol.messages import Outcome
from holdfast.features.names.protocol.names import Names
from holdfast.features.probe.protocol.probe import Probe
from holdfast.features.tickets.protocol.tickets import Tickets
from holdfast.host import Address, NodeId
from holdfast.kit.broadcast import Broadcast
from holdfast.kit.exchange import Exchange
from holdfast.kit.seats import Seats
from holdfast.kit.slots import Slot, find_slots, own_slot
from holdfast.net.host import NetHost

VERSION_ROW = "holdfast:v"
NO_STATE = "state_dir: {why}, and this agent is seat {slot}: a seat must remember what it promised; give it a directory"


class Owner(Protocol):
    """Whom the machines tell what concerns the whole life."""

    def on_mail(self, sender: NodeId, payload: bytes) -> Outcome: ...
    def on_name_clear(self) -> None: ...
    def on_name_conflict(self, life: NodeId, address: Address) -> None: ...
    def on_behind(self, boot: int) -> None: ...
    def on_asked_to_leave(self) -> None: ...


class Machines:
    """The machines of one life. Built before the host starts; nothing is sent yet."""

    def __init__(self, host: NetHost, home: Home, owner: Owner, keys: KeyringPort) -> None:
        config = home.config
        kind = kind_of(config)
        self.broadcast = Broadcast(host)
        self.exchange = Exchange(host, self.broadcast, ae_period=kind.ae_period(config))
        self.side = kind.build(host, config, self.broadcast, self.exchange)
        self.membership = membership = self.side.standing
        self.broadcast.over(membership)
        self.names = Names(host, membership, None, clear=owner.on_name_clear, conflict=owner.on_name_conflict, behind=owner.on_behind)
        self.mail = Mail(host, membership, owner.on_mail)
        self.keys = KeyKeeper(host, membership, keys, sealed=config.has_key)
        self.farewell = Farewell(host, membership, owner.on_asked_to_leave, sealed=config.has_key)
        self.probe = Probe(host, VERSION)
        self.slots = find_own_slots(host, home)
        self.seats, self.seats_missing = build_seats(host, home, self.slots)
        for each in (*self.side.machines, self.broadcast, self.exchange, self.names, self.mail, self.keys, self.farewell, self.probe):
            host.node.add(each)
        self.leadership = self.tickets = None
        if self.seats is not None:
            self.leadership = Leadership(host, membership, self.seats, self.exchange, config.leadership_config())
            self.tickets = Tickets(host, membership, self.seats, self.broadcast, self.exchange, config.ticket_config(len(self.seats.slots)))
        for voting in (self.seats, self.leadership, self.tickets):
            if voting is not None:
                host.node.add(voting)


class OwnSlots(NamedTuple):
    """The slots of the group as the settings name them (F12), and which one is this agent's. No journal is needed to know them."""

    all: tuple[Slot, ...]  # empty if the settings do not say who the seats are
    own: int | None = None  # None: this agent is no seat
    missing: str = ""  # which setting is missing, if there are none


def find_own_slots(host: NetHost, home: Home) -> OwnSlots:
    config = home.config
    try:
        slots = find_slots(
            seats=config.seats,
            seeds=config.seeds,
            key=config.has_key,
            loopback=is_loopback(config.bind),
            own_name=home.name,
            own_address=host.address,
        )
    except ConfigError as error:
        return OwnSlots((), missing=str(error))
    return OwnSlots(slots, own_slot(slots, home.name, host.address))


def build_seats(host: NetHost, home: Home, slots: OwnSlots) -> tuple[Seats | None, str]:
    """The seats (F12), or None and which setting is missing: a client that asks for something exclusive is told so."""
    config = home.config
    if not slots.all:
        return None, slots.missing
    if slots.own is not None and home.state is None:
        return None, NO_STATE.format(why=home.no_state or "is not set", slot=_written(slots.all[slots.own]))
    seats = Seats(
        host,
        slots.all,
        slots.own,
        machine=machine(),
        rho=config.rho,
        margin=config.margin,
        length_max=config.longest_grant,
        moved=config.moved,
        horizon=home.horizon,
    )
    return seats, ""


def settle(seats: Seats | None, leadership: Leadership | None, tickets: Tickets | None) -> None:
    """H154: what clients of an agent that leaves held was given back, so the next life need not wait for the end of it."""
    if seats is not None and leadership is not None and tickets is not None:
        promises = leadership.seat.promises
        led = -inf if promises is None else promises.running_until
        seats.keeper.settle(max(led, tickets.guardian.running_until))


def _written(slot: Slot) -> str:
    return f"{slot.number} ({slot.address})"
