"""One installation of `tickets` in a process of its own: ``python -m benchmarks.tickets_side SYSTEM LEVEL``.

As in `leadership` it has a network and a pid namespace of its own where the kernel allows it, so that whatever it started ends with it.
Orders come as lines of JSON and are answered by one line each:

    {"do": "cycles", "count": 50}                     one client takes and gives back a lock that no other wants
    {"do": "turns", "count": 50}                      the same by two clients in turn
    {"do": "handover", "delay": 0.3}                  one gives it back, another one waits for it
    {"do": "death", "delay": 0.3}                     the holder is killed with -9; "host": with everything beside it on its machine
    {"do": "voter_death", "number": 0, "delay": 0.3}  a server or seat is killed with -9, the holder gives back, another one waits
    {"do": "throughput", "clients": 4, "seconds": 3}  all at once, each its own lock, or "shared": one lock
    {"do": "syncs", "count": 20}                      what every voter syncs for one lock
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks import tickets_syncs
from benchmarks.leadership_side import LOOPBACK_UP, Remote
from benchmarks.ring_fleet import NeverHappened, now
from benchmarks.tickets_installation import Client, Installation, installed

MODULE = "benchmarks.tickets_side"
SETTLED = 0.5  # seconds in which a client that was told to wait does wait
PAUSE = 0.02  # seconds: a lock that no other wants is not taken in a tight loop; `throughput` is for that
APART = 0.05  # seconds between two locks when syncs are counted: no two share one
HOLDER, WAITER = 0, 1
Found = dict[str, Any]


class Side:
    """The installation at work."""

    def __init__(self, installation: Installation, folder: Path) -> None:
        self._it, self._folder = installation, folder
        self._clients: dict[int, Client] = {}
        self._tokens: dict[str, int] = {}

    def cycles(self, count: int, of: int = 1, pause: float = PAUSE) -> Found:
        """With a pause before each: what one who needs the lock now and then waits for."""
        client = self._client(HOLDER)
        return {**client.ask(do="cycles", name=f"cycles{of}", of=of, count=count, pause=pause)}

    def turns(self, count: int, pause: float = PAUSE) -> Found:
        """As ``cycles``, but the client that takes it did not have it last."""
        done = [self._client((HOLDER, WAITER)[turn % 2]).ask(do="cycles", name="turns", count=1, pause=pause) for turn in range(count)]
        return {part: [seconds for each in done for seconds in each[part]] for part in ("acquires", "releases")}

    def handover(self, delay: float) -> Found:
        """At an instant that has nothing to do with when the waiter last asked."""
        holder, waiter = self._held_and_wanted("handover")
        time.sleep(delay)
        released = holder.ask(do="release")
        return {"seconds": self._taken(waiter, "handover") - released["at"]}

    def death(self, delay: float, *, host: bool = False) -> Found:
        """At an instant that has nothing to do with heartbeats."""
        holder, waiter = self._held_and_wanted("death")
        time.sleep(delay)
        killed_at = holder.kill()
        if host:
            self._it.kill_host(HOLDER)
        taken_at = self._taken(waiter, "death")
        del self._clients[HOLDER]
        if host:
            self._it.revive_host(HOLDER)
        self._client(HOLDER)
        return {"seconds": taken_at - killed_at}

    def voter_death(self, number: int, delay: float) -> Found:
        """The holder gives back right after it."""
        number %= len(self._it.voters)
        holder, waiter = self._held_and_wanted("voter")
        time.sleep(delay)
        killed_at = self._it.kill_voter(number)
        if len(self._it.voters) == 1:
            self._it.revive_voter(number)  # None is left: it is started again at once, as by a supervisor.
        holder.order(do="release")
        taken_at = self._taken(waiter, "voter")
        holder.answer()
        if len(self._it.voters) > 1:
            self._it.revive_voter(number)
        return {"seconds": taken_at - killed_at}

    def throughput(self, clients: int, seconds: float, *, shared: bool = False, of: int = 1) -> Found:
        taking_part = [self._client(number) for number in range(clients)]
        began_at = now()
        for number, client in enumerate(taking_part):
            name = f"shared{of}" if shared else f"own{number}"
            client.order(do="spin", name=name, of=of, until=began_at + seconds)
        took = [each for client in taking_part for each in client.answer()["took"]]
        return {"per_second": len(took) / (now() - began_at), "took": took}

    def syncs(self, count: int) -> Found:
        client = self._client(HOLDER)
        client.ask(do="cycles", name="syncs", count=1)
        if not self._it.voters or not tickets_syncs.available():
            return {"per_cycle": []}
        with tickets_syncs.watched(self._it.voters, self._folder) as syncs:
            client.ask(do="cycles", name="syncs", count=count, pause=APART)
            time.sleep(SETTLED)  # What was given back last is written by the slowest voter too.
        return {"per_cycle": [each / count for each in syncs.counts()]}

    def end(self) -> None:
        for client in self._clients.values():
            client.kill()

    def _client(self, number: int) -> Client:
        if number not in self._clients:
            self._clients[number] = self._it.client(number)
            self._clients[number].answer()
        return self._clients[number]

    def _held_and_wanted(self, name: str) -> tuple[Client, Client]:
        holder, waiter = self._client(HOLDER), self._client(WAITER)
        self._check(name, holder.ask(do="acquire", name=name)["token"])
        waiter.order(do="acquire", name=name)
        time.sleep(SETTLED)
        return holder, waiter

    def _taken(self, waiter: Client, name: str) -> float:
        got = waiter.answer()
        self._check(name, got["token"])
        waiter.ask(do="release")
        return float(got["at"])

    def _check(self, name: str, token: int) -> None:
        """A lock whose numbers do not grow is not measured any further. 0: it has none."""
        former, self._tokens[name] = self._tokens.get(name, 0), token
        if token and token <= former:
            raise NeverHappened(f"the number {token} of {name} came after {former}")


@contextmanager
def sides(systems: list[str], level: str) -> Iterator[dict[str, Remote]]:
    """Started together, ready together."""
    with ExitStack() as stack:
        found = {}
        for system in systems:
            found[system] = Remote(system, level, module=MODULE)
            stack.callback(found[system].end)
        for remote in found.values():
            remote.answer()
        yield found


def serve(system: str, level: str) -> None:
    with TemporaryDirectory(prefix="hf-") as name, ExitStack() as stack:
        folder = Path(name)
        side = Side(stack.enter_context(installed(system, level, folder)), folder)
        stack.callback(side.end)
        acts: Mapping[str, Callable[..., Found]] = {
            "cycles": side.cycles,
            "turns": side.turns,
            "handover": side.handover,
            "death": side.death,
            "voter_death": side.voter_death,
            "throughput": side.throughput,
            "syncs": side.syncs,
        }
        _say({"ready": True})
        for line in sys.stdin:
            order = json.loads(line)
            _say(acts[order.pop("do")](**order))


def _say(answer: Mapping[str, Any]) -> None:
    print(json.dumps(answer), flush=True)


def main() -> None:
    _, system, level = sys.argv
    if os.getpid() == 1:  # the first process of namespaces of its own
        subprocess.run(LOOPBACK_UP, check=True)
    try:
        serve(system, level)
    except NeverHappened as error:
        _say({"broken": str(error)})


if __name__ == "__main__":
    main()
