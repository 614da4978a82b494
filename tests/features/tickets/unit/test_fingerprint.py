"""What agents must agree on before one grants a ticket to another, and what they need not.  Spec: tickets 10, D9; foundation F4; H134.

The numbers that a holder and its guardians count with, and the list of seats, are compared by every message of tickets (F4). Whoever has
another value is refused, and told which field it is. With that field taken out of the comparison the same agent is served.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from holdfast.events import ConfigMismatch
from holdfast.features.tickets.lab.groups import TicketGroup, Wishers
from holdfast.features.tickets.protocol import tickets as tickets_module
from holdfast.features.tickets.protocol.config import Placement, TicketConfig
from holdfast.features.tickets.protocol.facts import GuardiansMoved
from holdfast.features.tickets.protocol.tickets import Tickets
from holdfast.host import Address, Host, Machine
from holdfast.host import fingerprint as compared
from holdfast.kit import seats as seats_module
from holdfast.kit.broadcast import Broadcast
from holdfast.kit.exchange import Exchange
from holdfast.kit.seats import Seats
from holdfast.kit.slots import Slot, own_slot
from holdfast.lab.listed_members import ListedMembers
from holdfast.lab.network import PORT

CONFIG = TicketConfig(lease=2.0, rho=0.01)
ODD, USUAL = "c0", "c1"  # one agent that differs, one that does not
OTHER_LIST = tuple(Slot(i, name, Address(name, PORT)) for i, name in enumerate(("s0", "s1", "c1")))
LONGEST = 4.0  # seconds that seats grant at most: the same everywhere, so that tickets are what differs


class Mixed(TicketGroup):
    """A group in which some have settings of their own."""

    def __init__(
        self, n: int, configs: Mapping[str, TicketConfig], slots: Mapping[str, Sequence[Slot]], *, others: int = 2, checked: bool = True
    ) -> None:
        self._configs, self._lists = configs, slots
        super().__init__(1, n, seats=3, others=others, config=CONFIG, checked=checked)
        self.note(ConfigMismatch, GuardiansMoved)
        self.run(LONGEST)  # F13: seats that begin wait once

    def _build(self, host: Host) -> Sequence[Machine]:
        slots = self._lists.get(host.me.name, self._slots)
        members = ListedMembers(host)
        broadcast = Broadcast(host, members)
        exchange = Exchange(host, broadcast)
        own = own_slot(slots, host.me.name, host.address)
        seats = Seats(host, slots, own, machine=host.me.name, rho=CONFIG.rho, length_max=LONGEST)
        tickets = Tickets(host, members, seats, broadcast, exchange, self._configs.get(host.me.name, CONFIG))
        return [members, broadcast, exchange, seats, tickets, Wishers(host, tickets, self)]

    def named(self, about: str) -> set[tuple[str, str]]:
        """Who was told that it differs from whom in this field."""
        told = [(name, event) for _, name, event in self.events if isinstance(event, ConfigMismatch)]
        return {(name, event.peer.name) for name, event in told if event.field == about}


def differing(field: str, odd: str, *, checked: bool = True) -> Mixed:
    """One agent has another value of this field, and of no other."""
    configs = {"ticket_lease": TicketConfig(lease=4.0, rho=CONFIG.rho), "ticket_rho": TicketConfig(lease=CONFIG.lease, rho=0.0)}
    slots = {odd: OTHER_LIST} if field == "ticket_seats" else {}
    return Mixed(1, {odd: configs[field]} if field in configs else {}, slots, checked=checked)


def forget(monkeypatch: pytest.MonkeyPatch, field: str) -> None:
    """The comparison goes on without it; for the list of seats also where seats compare it themselves."""

    def rest(**numbers: float | str) -> bytes:
        seats = ("seat0", "seat1", "seat2") if field == "ticket_seats" else ()
        return compared(**{name: value for name, value in numbers.items() if name != field and name not in seats})

    monkeypatch.setattr(tickets_module, "fingerprint", rest)
    monkeypatch.setattr(seats_module, "fingerprint", rest)


FIELDS = ("ticket_lease", "ticket_rho", "ticket_seats")


@pytest.mark.parametrize("field", FIELDS)
def test_candidate_that_counts_otherwise_gets_nothing(field: str) -> None:
    """10, D9, F4: seats refuse it, both ends name the field, and it never owns a ticket, though the pool is free; others are served."""
    group = differing(field, ODD)
    group.wish(ODD)
    group.run(5 * CONFIG.lease)
    assert group.grants == []
    assert {(ODD, "s0"), (ODD, "s1"), ("s0", ODD), ("s1", ODD)} <= group.named(field)
    group.wish(USUAL)
    group.run(2 * CONFIG.lease)
    assert [grant.name for grant in group.owning()] == [USUAL]


@pytest.mark.parametrize("field", FIELDS)
def test_candidate_is_served_if_nobody_compares(field: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """F4, ablation: it is this field that keeps it away. Without it the same agent owns the ticket."""
    forget(monkeypatch, field)
    group = differing(field, ODD, checked=False)
    group.wish(ODD)
    group.run(5 * CONFIG.lease)
    assert [grant.name for grant in group.grants] == [ODD]
    assert group.named(field) == set()


@pytest.mark.parametrize("field", FIELDS[:2])
def test_seat_that_counts_otherwise_grants_nothing(field: str) -> None:
    """10, D9, F4: a seat with another value keeps no cell of others, and is not counted: the other two are a majority."""
    group = differing(field, "s2")
    group.wish(USUAL)
    group.run(2 * CONFIG.lease)
    assert [grant.name for grant in group.owning()] == [USUAL]
    assert group.world.nodes["s2"].node.use(Tickets).guardian.cells == {}
    assert (USUAL, "s2") in group.named(field)
    group.world.crash("s1")
    group.run(2 * CONFIG.lease)
    assert group.owning() == []


def test_seats_with_two_lists_do_not_begin() -> None:
    """D9, F12: two lists would mean two anchors. A seat that has another one does not sit down with the others: nobody grants anything."""
    group = differing("ticket_seats", "s2")
    group.wish(USUAL)
    group.run(5 * CONFIG.lease)
    assert group.grants == []
    assert (USUAL, "s2") in group.named("ticket_seats")


def test_another_lease_would_be_two_owners(monkeypatch: pytest.MonkeyPatch) -> None:
    """10, F4: why D is compared: a holder counts 4 s of what seats grant for 2, is cut off, and the next one owns the lock beside it."""
    forget(monkeypatch, "ticket_lease")
    group = differing("ticket_lease", ODD, checked=False)
    group.wish(ODD)
    group.run(CONFIG.lease)
    group.wish(USUAL)
    group.run(CONFIG.lease)
    group.world.network.partition("cut", ([ODD], ["s0", "s1", "s2", USUAL]))
    group.run(2 * CONFIG.lease)
    assert [grant.name for grant in group.grants] == [ODD, USUAL]
    assert len(group.overlaps()) == 1


def test_placement_and_k_need_not_match() -> None:
    """H134, D4: the set that guards a cell stands in the cell, and a majority of it is counted by whoever asks. So agents that place
    their cells otherwise share a pool: all tickets are owned, nobody's twice (I1 to I8 look on), also after deaths among them."""
    placements: tuple[tuple[Placement, int], ...] = (("ring", 1), ("ring", 2), ("seats", 1), ("ring", 0), ("ring", 1), ("seats", 2))
    configs = {f"c{i}": TicketConfig(lease=CONFIG.lease, rho=CONFIG.rho, guardians=g, k=k) for i, (g, k) in enumerate(placements)}
    group = Mixed(6, configs, {}, others=6)
    for name in group.others:
        group.wish(name)
        group.run(0.3)
    group.run(3 * CONFIG.lease)
    assert sorted(grant.number for grant in group.owning()) == list(range(6))
    sizes = {len(coordinator.places) for _, coordinator in group.coordinators()}
    assert len(sizes) > 1
    assert any(isinstance(event, GuardiansMoved) for _, _, event in group.events)
    for name in ("c1", "c2"):
        group.crash(name)
    group.run(6 * CONFIG.lease)
    assert group.overlaps() == []
    assert {grant.name for grant in group.owning()} == {"c0", "c3", "c4", "c5"}
    assert not any(isinstance(event, ConfigMismatch) for _, _, event in group.events)
