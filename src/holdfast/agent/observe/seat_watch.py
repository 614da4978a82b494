"""How are the other seats, and where are those that have a DNS name?  Spec: foundation F12, F13; H189, H190.

Every agent greets the seats regularly; what they answer is what ``holdfast seats``, ``doctor``, the page and the metrics say.
A seat whose place is a DNS name is looked up at the start, whenever it is silent, and every half minute. The name must stand
for exactly one address: with several, one slot would be several agents.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from functools import partial
from math import inf

from holdfast.agent.observe.logs import Log
from holdfast.host import Address
from holdfast.kit.seats import SeatOpened, Seats
from holdfast.kit.slots import Slot
from holdfast.net.host import NetHost
from holdfast.net.resolve import REFRESH_INTERVAL, Endpoint, Lookup, Resolver

GREET_PERIOD = 5.0  # seconds between two greetings of the same seat
MEMBERS_PER_SECOND = 200  # greetings that a seat shall get at most from a large group; the period grows with it
HEARD_PERIODS = 2.5  # after so many periods without an answer a seat counts as silent
LOOKUP_MIN, LOOKUP_MAX = 1.0, 30.0  # seconds between two questions for the name of a silent seat; doubled each time


class SeatWatch:
    """Greets the seats and looks up those that have a DNS name, as long as the agent lives."""

    info = (SeatOpened,)  # what the log tells at this level

    def __init__(self, host: NetHost, seats: Seats, log: Log, *, lookup: Lookup | None = None) -> None:
        self.trouble: dict[int, str] = {}  # slot -> why its name leads nowhere
        self.members = 1  # of the group, as last known; the agent keeps it up to date
        self._host, self._seats, self._log, self._lookup = host, seats, log, lookup
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def period(self) -> float:
        return max(GREET_PERIOD, self.members / MEMBERS_PER_SECOND)

    def start(self) -> None:
        """Before the host starts, so that nothing is sent to a name."""
        for slot in self._seats.slots:
            if slot.by_dns:
                self._host.node.lead_to(slot.address, None)
            if slot.by_dns and slot.number != self._seats.own:
                self.trouble[slot.number] = "its name is being looked up"
                self._tasks.append(asyncio.get_running_loop().create_task(self._look_up(slot)))
        self._host.post(self._on_greet)

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    def _on_greet(self) -> None:
        self._seats.heard_for = HEARD_PERIODS * self.period
        self._seats.greet()
        self._host.after(self.period * (0.9 + 0.2 * self._host.random.random()), self._on_greet)

    async def _look_up(self, slot: Slot) -> None:
        """Looks every ``LOOKUP_MIN`` seconds whether it is time to ask: soon if the seat is silent, else every half minute."""
        resolver = Resolver([Endpoint(slot.address.host, slot.address.port)], lookup=self._lookup)
        known: Address | None = None
        asked_at, pause = -inf, LOOKUP_MIN
        while True:
            if self._host.now >= asked_at + (REFRESH_INTERVAL if self._answers(slot) else pause):
                asked_at, pause = self._host.now, LOOKUP_MIN if self._answers(slot) else min(LOOKUP_MAX, 2 * pause)
                address = self._only(slot, await resolver.refresh())
                if address != known:
                    known, pause = address, LOOKUP_MIN
                    self._log.info("seat address", seat=slot.number, name=str(slot.address), address=str(address))
                    self._host.post(partial(self._lead, slot, address))
            await asyncio.sleep(LOOKUP_MIN)

    def _only(self, slot: Slot, found: list[Address]) -> Address | None:
        """The one address that a slot's name stands for; None, and why, if there is none or more than one."""
        found = [address for address in found if (":" in address.host) == (":" in self._host.address.host)]
        why = ""
        if not found:
            why = f"{slot.address.host} cannot be looked up"
        elif len(found) > 1:
            some = ", ".join(address.host for address in found[:3])
            why = f"{slot.address.host} stands for {len(found)} addresses ({some}); accepted is a name that stands for one"
        if why and self.trouble.get(slot.number) != why:
            self._log.warning("seat without an address", seat=slot.number, name=str(slot.address), text=why)
        self.trouble[slot.number] = why
        if not why:
            del self.trouble[slot.number]
        return None if why else found[0]

    def _lead(self, slot: Slot, address: Address | None) -> None:
        self._host.node.lead_to(slot.address, address)
        self._seats.greet()

    def _answers(self, slot: Slot) -> bool:
        seen = self._seats.seen(slot.number)
        return seen is not None and self._host.now < seen.heard_at + 1.5 * self.period
