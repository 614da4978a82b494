"""Which machines an agent runs, from its settings."""

from __future__ import annotations

from holdfast.agent.home import Home, machine
from holdfast.config import is_loopback
from holdfast.errors import ConfigError
from holdfast.kit.seats import Seats
from holdfast.kit.slots import Slot, find_slots, own_slot
from holdfast.net.host import NetHost
from holdfast.protocols.mail.inbox import Deliver
from holdfast.protocols.mail.mail import Mail
from holdfast.protocols.ring.ring import RingNode

VERSION_ROW = "holdfast:v"
NO_STATE = "state_dir: is not set, and this agent is seat {slot}: a seat must remember what it promised; give it a directory"


class Machines:
    """The machines of one life. Built before the host starts; nothing is sent yet."""

    def __init__(self, host: NetHost, home: Home, deliver: Deliver) -> None:
        config = home.config
        # Seeds come when they are resolved. Who has none is its own: it asks those it knew in a former life, then begins a ring, and
        # begins one again when it lost it; told to found at once, it would do neither.
        self.ring = RingNode(host, config.ring_config(() if config.seeds else (host.address,)))
        self.mail = Mail(host, self.ring, deliver)
        self.seats, self.seats_missing = build_seats(host, home)
        for each in (*self.ring.machines, self.mail, *([self.seats] if self.seats else ())):
            host.node.add(each)


def build_seats(host: NetHost, home: Home) -> tuple[Seats | None, str]:
    """The seats (F12), or None and which setting is missing: that is told to whoever asks for something exclusive."""
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
        return None, str(error)
    own = own_slot(slots, home.name, host.address)
    if own is not None and home.state is None:
        return None, NO_STATE.format(slot=_written(slots[own]))
    seats = Seats(host, slots, own, machine=machine(), rho=config.rho, margin=config.margin, moved=config.moved)
    return seats, ""


def _written(slot: Slot) -> str:
    return f"{slot.number} ({slot.address})"
