"""A client that works while it leads and writes down when: ``python -m tests.features.leadership.process.body SOCKET NAME RECORD GRACE
MANNER``.

The deeds, the record and most manners are those of ``tests.agent.lock_body``. One is added:

careless     does not look at its deadline, and goes on whatever it hears
"""

from __future__ import annotations

import os
import sys
from math import inf

from holdfast.local.calls import Acquire, GrantItem
from tests.agent.lock_body import Client, Worker, child_of
from tests.agent.raw_client import RawClient


class LeadClient(Client):
    """Follows one term."""

    def __init__(self, path: str, name: str, record: str, grace: float, manner: str) -> None:
        self.manner = manner
        self.client = RawClient(path)
        self.client.sock.settimeout(None)  # Its turn comes when it comes.
        self.grant = self.client.say(Acquire, "lead", name, {"grace": grace})
        item = self.client.grant(self.grant, "granted")
        self.worker = Worker(record, item.token, item.deadline, grace)
        self.connected, self.over = True, False
        if manner == "careless":
            self.worker.deadline = inf

    def _on_item(self, item: GrantItem) -> None:
        if self.manner != "careless":
            super()._on_item(item)


def main() -> None:
    _, path, name, record, grace, manner = sys.argv
    client = LeadClient(path, name, record, float(grace), manner)
    client.run()
    if os.getpid() != client.worker.pid:
        child_of(client)


if __name__ == "__main__":
    main()
