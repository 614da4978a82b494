"""One client of `tickets-storm`: ``python -m benchmarks.tickets_storm_client AGENT GROUP POOL OF RECORD SEED [careless]``.

It takes a ticket, uses it for a while, gives it back, waits a while; until it is killed. What it does it writes into its record. When
its agent is gone it goes on up to its own deadline, and then looks for an agent again. A ``careless`` one does not look at
its deadline: for the recorder to find.
"""

from __future__ import annotations

import sys
import time
from contextlib import suppress
from random import Random
from typing import Any

from benchmarks.ring_fleet import now
from benchmarks.tickets_storm_record import END, START, USE, WAIT, Writer
from holdfast import sync
from holdfast.errors import AcquireTimeout, HoldfastError

PACE = 0.02  # seconds between two looks at the clock
USED = (0.02, 1.0)  # seconds
PAUSE = (0.0, 0.5)
PATIENCE = (0.5, 8.0)  # seconds of waiting for a ticket
RETRY_INTERVAL = 0.2


class Client:
    """Takes and gives back."""

    def __init__(self, group: Any, pool: str, of: int, writer: Writer, random: Random, *, careless: bool) -> None:
        self._group, self._pool, self._of, self._writer, self._random = group, pool, of, writer, random
        self._careless = careless

    def turn(self) -> None:
        time.sleep(self._random.uniform(*PAUSE))
        self._writer.write(WAIT, now())
        patience, used = self._random.uniform(*PATIENCE), self._random.uniform(*USED)
        with suppress(AcquireTimeout), self._group.ticket(self._pool, of=self._of, timeout=patience) as ticket:
            self._use(ticket, now() + used)

    def _use(self, ticket: Any, until: float) -> None:
        at, what = self._allowed(ticket), START
        while at is not None:
            self._writer.write(what, at, ticket.number, ticket.token, ticket.deadline)
            if what == END:
                return
            time.sleep(PACE)
            at = self._allowed(ticket)
            what = USE if at is None or at < until else END

    def _allowed(self, ticket: Any) -> float | None:
        """The reading that allows it. Read before the ticket is asked: it can only be older than the one the ticket made."""
        at = now()
        return at if ticket.valid or self._careless else None


def main() -> None:
    agent, group, pool, of, record, seed, *manner = sys.argv[1:]
    writer, random = Writer(record), Random(seed)
    while True:
        with suppress(HoldfastError), sync.join(group, agent=agent) as joined:
            client = Client(joined, pool, int(of), writer, random, careless="careless" in manner)
            while True:
                client.turn()
        time.sleep(RETRY_INTERVAL)


if __name__ == "__main__":
    main()
