"""One candidate of `leadership`: ``python -m benchmarks.leadership_candidate SYSTEM RECORDER OPTIONS``, OPTIONS being one JSON object.

It asks to lead, does a deed every few milliseconds while it leads, and asks again when it has lost it; until it is killed. Each
system is used as its own documentation says: kazoo's Election for ZooKeeper (a holder stops when the connection is not sure), the
server's election service through etcd's JSON gateway (a lease renewed after a third of its time, as the Go client does), ``group.lead``
for Holdfast, where SIGUSR1 makes a holder resign. ``flock`` is a lock of the kernel on this machine: what the recorder measures when there
is nothing to detect.
"""

from __future__ import annotations

import base64
import fcntl
import http.client
import json
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from benchmarks.leadership_record import Voice
from benchmarks.ring_fleet import now

PACE = 0.01  # seconds between two deeds, if no option says another one
NAME = "scheduler"
ASK_TIMEOUT = 5.0  # seconds for an answer of etcd to anything but a campaign
RETRY_INTERVAL = 0.05
FOREVER = float("inf")


def work(voice: Voice, token: int, may: Callable[[float], float], pace: float = PACE) -> None:
    """Deeds, as long as ``may`` of the present instant is later than that instant."""
    while (at := now()) < (until := may(at)):
        voice.deed(token, at, until)
        time.sleep(pace)


def flock(voice: Voice, path: str) -> None:
    with open(path, "r+b") as file:  # noqa: PTH123 - it is locked, not read
        voice.standing()
        fcntl.flock(file, fcntl.LOCK_EX)
        work(voice, time.time_ns(), lambda _: FOREVER)


def zookeeper(voice: Voice, hosts: str, timeout: float, *, in_order: bool = False, pace: float = PACE) -> None:
    """``in_order``: the first of the hosts is tried first."""
    from kazoo.client import KazooClient, KazooState
    from kazoo.exceptions import KazooException

    retry = {"max_tries": -1, "max_delay": 1.0}
    client = KazooClient(hosts=hosts, timeout=timeout, connection_retry=retry, randomize_hosts=not in_order)
    client.start(timeout=60)
    voice.standing()

    def lead() -> None:
        token = int(election.lock.node.rpartition("__")[2])
        work(voice, token, lambda _: FOREVER if client.state == KazooState.CONNECTED else 0.0, pace)

    while True:
        election = client.Election(f"/{NAME}", str(os.getpid()))
        with suppress(KazooException):
            election.run(lead)


class Etcd:
    """The JSON gateway of three servers; one connection that moves on when its server does not answer."""

    def __init__(self, endpoints: list[str], timeout: float | None) -> None:
        self._endpoints, self._timeout = endpoints, timeout
        self._line: http.client.HTTPConnection | None = None

    def ask(self, path: str, unless: Callable[[], bool] = lambda: False, **fields: Any) -> Any:
        """The answer; ``{}`` if it is not wanted any more when a connection was lost."""
        while not unless():
            try:
                if self._line is None:
                    self._line = http.client.HTTPConnection(self._endpoints[0], timeout=self._timeout)
                self._line.request("POST", path, json.dumps(fields), {"Content-Type": "application/json"})
                return json.load(self._line.getresponse())
            except (OSError, http.client.HTTPException, ValueError):
                self._line = None
                self._endpoints = [*self._endpoints[1:], self._endpoints[0]]
                time.sleep(RETRY_INTERVAL)
        return {}

    def hang_up(self) -> None:
        """From another thread: a thread that waits for an answer gets none."""
        line = self._line
        if line is not None and line.sock is not None:
            with suppress(OSError):
                line.sock.shutdown(socket.SHUT_RDWR)


class EtcdLease:
    """A lease that a thread keeps alive, and until when it certainly is."""

    def __init__(self, endpoints: list[str], ttl: int, lost: Callable[[], None]) -> None:
        self._etcd, self._lost = Etcd(endpoints, ASK_TIMEOUT), lost
        asked_at = now()
        granted = self._etcd.ask("/v3/lease/grant", TTL=ttl)
        self.id, self.ttl = granted["ID"], int(granted["TTL"])
        self.until = asked_at + self.ttl
        threading.Thread(target=self._keep, daemon=True).start()

    @property
    def over(self) -> bool:
        return now() >= self.until

    def _keep(self) -> None:
        while not self.over:
            time.sleep(self.ttl / 3)
            asked_at = now()
            kept = self._etcd.ask("/v3/lease/keepalive", lambda: self.over, ID=self.id)
            if int(kept.get("result", {}).get("TTL", 0)) <= 0:
                break  # It is over there; here it ends by its clock.
            self.until = asked_at + self.ttl
        time.sleep(max(0.0, self.until - now()))
        self._lost()  # A campaign whose lease is over is never won, and never answered.


def etcd(voice: Voice, endpoints: list[str], ttl: int) -> None:
    name, campaign = base64.b64encode(NAME.encode()).decode(), Etcd(endpoints, None)
    while True:
        lease = EtcdLease(endpoints, ttl, campaign.hang_up)
        voice.standing()
        won = campaign.ask("/v3/election/campaign", lambda lease=lease: lease.over, name=name, lease=lease.id, value="")  # type: ignore[misc]
        if "leader" in won:
            work(voice, int(won["leader"]["rev"]), lambda _, lease=lease: lease.until)  # type: ignore[misc]


class Wish:
    """To give it up: what a signal says, and what is over when it was done."""

    def __init__(self) -> None:
        self.said = False
        signal.signal(signal.SIGUSR1, lambda *_: self.say())

    def say(self) -> None:
        self.said = True


def holdfast_(
    voice: Voice, group: str, agent: str, grace: float = 0.0, *, by: str = "seats", pace: float = PACE, rest: float = 0.0
) -> None:
    """``rest``: seconds after it gave it up before it asks again. An elected one that asks at once may be elected again."""
    from holdfast import sync
    from holdfast.errors import HoldfastError

    wish = Wish()
    while True:
        with suppress(HoldfastError), sync.join(group, agent=agent) as joined:
            voice.standing()
            while True:
                with joined.lead(NAME, by=by, grace=grace) as term:
                    work(voice, term.token, lambda _, term=term: term.deadline if term.valid and not wish.said else 0.0, pace)  # type: ignore[misc]
                    given, wish.said = wish.said, False
                    voice.stopped(term.token, now())  # The end of the block gives it up.
                time.sleep(rest if given else 0.0)
        time.sleep(RETRY_INTERVAL)


SYSTEMS: dict[str, Callable[..., None]] = {"flock": flock, "zookeeper": zookeeper, "etcd": etcd, "holdfast": holdfast_}


def main() -> None:
    _, system, recorder, options = sys.argv
    SYSTEMS[system](Voice(recorder), **json.loads(options))


if __name__ == "__main__":
    main()
