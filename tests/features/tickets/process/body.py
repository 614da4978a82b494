"""A client that works with a ticket and writes down when: ``python -m tests.features.tickets.process.body SOCKET POOL RECORD OF MANNER``.

The deeds, the record and the manners are those of ``tests.features.leadership.process.body``; each ticket of the pool has a record of its
own.
"""

from __future__ import annotations

import os
import sys
from math import inf

from holdfast.local.calls import Acquire
from tests.agent.lock_body import Worker, child_of
from tests.agent.raw_client import RawClient
from tests.features.leadership.process.body import LeadClient


class TicketClient(LeadClient):
    """Follows one ticket."""

    def __init__(self, path: str, pool: str, record: str, of: int, manner: str) -> None:
        self.manner = manner
        self.client = RawClient(path)
        self.client.sock.settimeout(None)  # Its turn comes when it comes.
        self.grant = self.client.say(Acquire, "ticket", pool, {"of": of})
        item = self.client.grant(self.grant, "granted")
        self.worker = Worker(f"{record}.{item.number}", item.token, item.deadline, 0.0)
        self.connected, self.over = True, False
        if manner == "careless":
            self.worker.deadline = inf


def main() -> None:
    _, path, pool, record, of, manner = sys.argv
    client = TicketClient(path, pool, record, int(of), manner)
    client.run()
    if os.getpid() != client.worker.pid:
        child_of(client)


if __name__ == "__main__":
    main()
