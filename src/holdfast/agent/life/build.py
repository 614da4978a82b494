"""Which machines an agent runs, from its settings."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from holdfast.agent.feature import Life, Parts, Running, running
from holdfast.agent.grants.grants import Grants
from holdfast.agent.life.home import Home, machine, slots_of
from holdfast.agent.membership import kind_of
from holdfast.errors import ConfigError
from holdfast.host import Machine
from holdfast.kit.broadcast import Broadcast
from holdfast.kit.exchange import Exchange
from holdfast.kit.overlay import Overlay
from holdfast.kit.slots import OwnSlots, Slot, own_slot
from holdfast.net.host import NetHost

if TYPE_CHECKING:
    from holdfast.kit.seats import Seats

MEMBERSHIP = "membership"  # among the features of an agent
VERSION_ROW = "holdfast:v"
NO_STATE = "state_dir: {why}, and this agent is seat {slot}: a seat must remember what it promised; give it a directory"


class Machines:
    """The machines of one life. Built before the host starts; nothing is sent yet."""

    def __init__(self, host: NetHost, home: Home, grants: Grants, life: Life) -> None:
        config = home.config
        kind = kind_of(config)
        self.broadcast = Broadcast(host)
        overlay = Overlay()
        self.exchange = Exchange(host, self.broadcast, ae_period=kind.ae_period(config))
        self.slots = find_own_slots(host, home)
        self.side = kind.build(host, config, self.broadcast, self.exchange, self.slots)
        self.membership = self.side.standing
        self.broadcast.over(self.membership)
        self.seats, self.seats_missing = build_seats(host, home, self.slots)
        parts = Parts(
            host,
            config,
            self.membership,
            self.broadcast,
            self.exchange,
            self.seats,
            self.seats_missing,
            grants,
            life,
            overlay,
            self.slots,
        )
        self._beside = running(parts)
        self.features: dict[str, Running] = {MEMBERSHIP: self.side, **self._beside}
        for each in self._in_order():
            host.node.add(each)

    def _in_order(self) -> Iterable[Machine]:
        """As they start: those below come first."""
        yield from (*self.side.machines, self.broadcast, self.exchange)
        yield from machines_of(self._beside.values(), on_seats=False)
        if self.seats is not None:
            yield self.seats
        yield from machines_of(self._beside.values(), on_seats=True)


def machines_of(features: Iterable[Running], *, on_seats: bool) -> Iterable[Machine]:
    return (machine for each in features if each.on_seats == on_seats for machine in each.machines)


def find_own_slots(host: NetHost, home: Home) -> OwnSlots:
    try:
        slots = slots_of(home.config, home.name, host.address)
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
    from holdfast.kit.seats import Seats  # where there are seats

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


def _written(slot: Slot) -> str:
    return f"{slot.number} ({slot.address})"
