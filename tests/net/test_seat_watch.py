"""Seats that have a DNS name: looked up until there is exactly one address, and again when the seat is silent.  Foundation F12; H190."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import pytest

from holdfast.agent.observe import seat_watch
from holdfast.agent.observe.logs import Log
from holdfast.agent.observe.seat_watch import SeatWatch
from holdfast.drops import Drop
from holdfast.host import Address, NodeId
from holdfast.kit.seats import Seats
from holdfast.kit.slots import Slot, find_slots
from holdfast.net.host import NetHost
from holdfast.wire.seal import Plain
from tests.support.realtime import eventually, run

LOOPBACK = Address("127.0.0.1", 0)


class Dns:
    """What a name stands for; the test changes it."""

    def __init__(self) -> None:
        self.answers: dict[str, list[str]] = {}
        self.asked = 0

    async def look_up(self, host: str, port: int) -> Iterable[str]:
        self.asked += 1
        if host not in self.answers:
            raise OSError("no such name")
        return self.answers[host]


def test_a_name_that_leads_to_one_address_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """F12: silent until the name stands for one address; several are refused, and the log and ``trouble`` say so."""
    monkeypatch.setattr(seat_watch, "LOOKUP_MIN", 0.05)
    monkeypatch.setattr(seat_watch, "LOOKUP_MAX", 0.05)

    async def scene() -> None:
        seat_host = await NetHost.open(NodeId("x", 1), LOOPBACK, Plain("g"))
        slots = find_slots(
            seats=[f"x@pod-0.example:{seat_host.address.port}"], seeds=(), key=True, loopback=True, own_name="", own_address=LOOPBACK
        )
        seat_host.node.add(Seats(seat_host, slots, 0, machine="m", rho=0.0))
        seat_host.start()
        host = await NetHost.open(NodeId("d", 1), LOOPBACK, Plain("g"))
        seats = Seats(host, slots, None, machine="n", rho=0.0)
        host.node.add(seats)
        dns = Dns()
        watch = SeatWatch(host, seats, Log(fd=2, level="error"), lookup=dns.look_up)
        watch.start()
        host.start()
        await eventually(lambda: "cannot be looked up" in watch.trouble.get(0, ""))
        assert host.drops[Drop.NO_ADDRESS] > 0
        dns.answers["pod-0.example"] = ["127.0.0.1", "127.0.0.2"]
        await eventually(lambda: "stands for 2 addresses" in watch.trouble.get(0, ""))
        assert seats.seen(0) is None
        dns.answers["pod-0.example"] = ["127.0.0.1", "::1"]  # of the other family nothing can be sent
        await eventually(lambda: seats.is_heard(0))
        assert watch.trouble == {}
        for each in (watch, host, seat_host):
            await each.close()

    run(scene())


def test_a_silent_seat_is_looked_up_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """F12: "resolved again whenever the seat is silent": it restarts under another address, and is found there."""
    monkeypatch.setattr(seat_watch, "LOOKUP_MIN", 0.05)
    monkeypatch.setattr(seat_watch, "LOOKUP_MAX", 0.05)
    monkeypatch.setattr(seat_watch, "GREET_PERIOD", 0.2)

    async def scene() -> None:
        first = await NetHost.open(NodeId("x", 1), LOOPBACK, Plain("g"))
        port = first.address.port
        slots = (Slot(0, "x", Address("pod-0.example", port)),)
        first.node.add(Seats(first, slots, 0, machine="m", rho=0.0))
        first.start()
        host = await NetHost.open(NodeId("d", 1), LOOPBACK, Plain("g"))
        seats = Seats(host, slots, None, machine="n", rho=0.0)
        host.node.add(seats)
        dns = Dns()
        dns.answers["pod-0.example"] = ["127.0.0.1"]
        watch = SeatWatch(host, seats, Log(fd=2, level="error"), lookup=dns.look_up)
        watch.start()
        host.start()
        await eventually(lambda: seats.is_heard(0))
        asked = dns.asked
        await asyncio.sleep(0.3)
        assert dns.asked <= asked + 1  # A seat that answers is not looked up every moment.
        await first.close()
        second = await NetHost.open(NodeId("x", 2), Address("127.0.0.2", port), Plain("g"))
        second.node.add(Seats(second, slots, 0, machine="m", rho=0.0))
        second.start()
        dns.answers["pod-0.example"] = ["127.0.0.2"]
        await eventually(lambda: seats.life(0) == NodeId("x", 2) and seats.is_heard(0))
        for each in (watch, host, second):
            await each.close()

    run(scene())
