"""One client of `tickets`: ``python -m benchmarks.tickets_client SYSTEM OPTIONS``, OPTIONS being one JSON object.

Orders come as lines of JSON, each is answered by one line. All times are CLOCK_BOOTTIME, the same for all clients:

    {"do": "acquire", "name": "a", "of": 1}                 answered when it is held: "at" and "token"
    {"do": "release"}                                       "at" is the instant before it, "until" the one after it
    {"do": "cycles", "name": "a", "of": 1, "count": 50}     take and give back; seconds of each acquire and of each release
    {"do": "spin", "name": "a", "of": 1, "until": 17.5}     the same as often as it can be done until then
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

from benchmarks.ring_fleet import now
from benchmarks.tickets_lockers import LOCKERS, Locker

Answer = Mapping[str, Any]


class Client:
    """Does what it is told with one locker."""

    def __init__(self, locker: Locker) -> None:
        self._locker = locker

    def acquire(self, name: str, of: int = 1) -> Answer:
        token = self._locker.acquire(name, of)
        return {"at": now(), "token": token}

    def release(self) -> Answer:
        at = now()
        self._locker.release()
        return {"at": at, "until": now()}

    def cycles(self, name: str, of: int = 1, *, count: int, pause: float = 0.0) -> Answer:
        acquires, releases = [], []
        for _ in range(count):
            time.sleep(pause)
            asked_at = now()
            self._locker.acquire(name, of)
            held_at = now()
            self._locker.release()
            acquires.append(held_at - asked_at)
            releases.append(now() - held_at)
        return {"acquires": acquires, "releases": releases}

    def spin(self, name: str, of: int = 1, *, until: float) -> Answer:
        took = []
        while (asked_at := now()) < until:
            self._locker.acquire(name, of)
            self._locker.release()
            took.append(now() - asked_at)
        return {"took": took}


def main() -> None:
    _, system, options = sys.argv
    client = Client(LOCKERS[system](**json.loads(options)))
    acts: dict[str, Callable[..., Answer]] = {
        "acquire": client.acquire,
        "release": client.release,
        "cycles": client.cycles,
        "spin": client.spin,
    }
    _say({"ready": True})
    for line in sys.stdin:
        order = json.loads(line)
        _say(acts[order.pop("do")](**order))


def _say(answer: Answer) -> None:
    print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
