"""A client that works under a lock and writes down when: ``python -m tests.agent.lock_body SOCKET NAME RECORD LENGTH MANNER``.

Every deed is one line in the record: who, under which token, when on the machine's clock, and until when it was told to act. The time
of a deed is the very reading that was compared with the deadline, so a process that is stopped between the look and the line writes
no untruth. Manners:

polite       stops when it is asked to, and says so; ends with its standard input
stubborn     never stops before its deadline
gone         closes its socket after its first deeds and goes on
forking      forks after its first deeds; the parent ends, the child keeps the socket and would go on
commanding   starts a command that works in its place and registers it; does nothing itself
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time

from holdfast.local.calls import Acquire, Body, Closed, GrantItem, Pushed, Stopped
from tests.agent.raw_client import RawClient, now

DEEDS = 5  # before something happens
PACE = 0.005  # seconds between two deeds


class Worker:
    """One grant, and what is done under it."""

    def __init__(self, record: str, token: int, deadline: float, length: float) -> None:
        self._record = os.open(record, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        self.pid = os.getpid()  # at acquire
        self.token, self.deadline, self.length = token, deadline, length
        self.deeds = 0

    def write(self, what: str, at: float) -> None:
        line = {"what": what, "pid": os.getpid(), "token": self.token, "at": at, "deadline": self.deadline, "length": self.length}
        os.write(self._record, json.dumps(line).encode() + b"\n")

    def valid(self, at: float) -> bool:
        """Local and instant: the same process, before the deadline."""
        return os.getpid() == self.pid and at < self.deadline

    def work(self) -> bool:
        """One deed, if it may."""
        at = now()
        if not self.valid(at):
            return False
        self.write("deed", at)
        self.deeds += 1
        return True


class Client:
    """Follows one grant."""

    def __init__(self, path: str, name: str, record: str, length: float, manner: str) -> None:
        self.manner = manner
        self.client = RawClient(path)
        self.grant = self.client.say(Acquire, "lock", name, {"length": length})
        item = self.client.grant(self.grant, "granted")
        self.worker = Worker(record, item.token, item.deadline, length)
        self.connected, self.over = True, False

    def run(self) -> None:
        while not self.over and self.worker.work():
            if self.connected:
                self._listen()
            else:
                time.sleep(PACE)
            if self.worker.deeds == DEEDS:
                self._turn()
        self.worker.write("end", now())

    def _turn(self) -> None:
        """Something happens."""
        if self.manner == "gone":
            self.client.sock.close()
            self.connected = False
        elif self.manner == "forking" and os.fork() != 0:
            os._exit(0)

    def _listen(self) -> None:
        line, words = self.client.sock.fileno(), [0] if self.manner == "polite" else []
        ready, _, _ = select.select([line, *words], [], [], PACE)
        if 0 in ready and not os.read(0, 100):
            self._stop()
        elif line in ready or self.client.read:
            self._hear()

    def _hear(self) -> None:
        try:
            message = self.client.next()
        except (EOFError, ConnectionError):
            self.connected = False  # The agent is gone: what was told stands, and ends by its own clock.
            return
        if isinstance(message, Pushed):
            self._on_item(self.client.item(self.grant, GrantItem))
        elif isinstance(message, Closed):
            self.connected = False

    def _on_item(self, item: GrantItem) -> None:
        self.worker.write(item.what, now())
        if item.what == "extended":
            self.worker.deadline = item.deadline
        elif item.what == "lost":
            self.over = True
        elif item.what == "stop" and self.manner == "polite":
            self._stop()

    def _stop(self) -> None:
        self.over = True
        self.client.ask(Stopped, self.grant)


def child_of(client: Client) -> None:
    """What a fork finds: the socket is open, and nothing may be done."""
    while True:
        if client.worker.valid(now()):
            client.worker.work()
        try:
            message = client.client.next()
        except (EOFError, ConnectionError):
            break
        client.worker.write(f"child hears {type(message).__name__}", now())
    client.worker.write("child ends", now())


def command(client: Client) -> None:
    """The command is the body. It is told a deadline once, and works up to it."""
    words = [
        sys.executable,
        "-m",
        "tests.agent.lock_body",
        "--command",
        *sys.argv[3:4],
        str(client.worker.token),
        str(client.worker.deadline),
    ]
    process = subprocess.Popen(words)
    client.client.ask(Body, client.grant, process.pid)
    client.worker.write("commands", now())
    process.wait()


def main() -> None:
    if sys.argv[1] == "--command":
        _, _, record, token, deadline = sys.argv
        worker = Worker(record, int(token), float(deadline), 0.0)
        while worker.work():
            time.sleep(PACE)
        return
    _, path, name, record, length, manner = sys.argv
    client = Client(path, name, record, float(length), manner)
    if manner == "commanding":
        command(client)
        return
    client.run()
    if os.getpid() != client.worker.pid:
        child_of(client)


if __name__ == "__main__":
    main()
