"""One system of `membership` in a process of its own: ``python -m benchmarks.membership_side SYSTEM COUNT``.

It is started in a network and a pid namespace of its own where the kernel allows it: then the counters of its loopback device are the
traffic of this system and of nothing else, and what it started ends with it. Orders are lines of JSON, and so are the answers:

    {"do": "calm", "seconds": 20}                    touch nothing; packets, bytes, CPU and memory per member
    {"do": "kills", "count": 10, "seed": 1}          kill -9 a member at a random instant, wait until all others hold it for dead, start it
                                                     again under its name, wait until all list it; once for each
    {"do": "pauses", "count": 30, "seconds": 0.3}    SIGSTOP for so long, SIGCONT; after each: who was held for dead?
    {"do": "busy", "seconds": 60}                    touch nothing; who was held for dead?
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from random import Random
from statistics import mean
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from benchmarks.agent_fleet import PAGE_MIB, cpu_seconds
from benchmarks.leadership_side import LOOPBACK_UP
from benchmarks.membership_members import Member, Starter, end_all
from benchmarks.ring_fleet import LOOPBACK, NeverHappened, free_addresses, now

POLL_INTERVAL = 0.05  # seconds between two looks at processes and sockets that are not there yet
WHOLE_WITHIN = 120.0  # seconds; only what is broken takes longer
LOOK_AGAIN = 5.0  # seconds without what is waited for, after which lists are asked for
SETTLED = 1.0  # seconds without a touch, before a kill
PHASE = 1.0  # seconds; a kill comes at any instant of so much time
FORGIVEN = 1.2  # seconds after a pause in which a death may be told
PORTS_FROM = 20_000
FIRST = 0  # the member that the others join; it is never killed, because serf and kinship are told of it alone


class Heard(NamedTuple):
    """One thing that a member was told of another one, when it was read."""

    at: float
    observer: str
    word: str
    name: str


class Side:
    """Members at work, and what each of them lists."""

    def __init__(self, starter: Starter, count: int) -> None:
        self._starter = starter
        self._count = count
        self.members: dict[str, Member] = {}
        self.lists: dict[str, set[str]] = {}
        self.heard: list[Heard] = []
        self.looked = 0  # lists that were not as the events had told
        self._selector = selectors.DefaultSelector()
        self._read: dict[int, Member] = {}  # what the selector knows, by descriptor

    @property
    def names(self) -> list[str]:
        return [f"n{number}" for number in range(self._count)]

    def begin(self) -> float:
        """Start the first, then all others at once; seconds from the start of the last one until every list is complete."""
        self._start(FIRST, None)
        self._until(lambda: self.lists.get("n0") == {"n0"}, "the first member lists itself")
        for number in range(1, self._count):
            self._start(number, FIRST)
        began_at = now()
        self._until(self._whole, "all lists are complete")
        return max((each.at for each in self.heard), default=now()) - began_at

    def calm(self, seconds: float) -> dict[str, Any]:
        pids = [member.pid for member in self.members.values()]
        self.pass_time(SETTLED)
        first, began_at, cpu, sent = len(self.heard), now(), [cpu_seconds(pid) for pid in pids], loopback()
        self.pass_time(seconds)
        took, after, sent_after = now() - began_at, [cpu_seconds(pid) for pid in pids], loopback()
        return {
            "seconds": took,
            "packets_per_member": (sent_after.packets - sent.packets) / took / self._count,
            "bytes_per_member": (sent_after.bytes - sent.bytes) / took / self._count,
            "cpu_ms_per_member": 1000 * mean(late - early for early, late in zip(cpu, after, strict=True)) / took,
            "rss_mib": max(map(rss_mib, pids)),
            "deaths": self._deaths(first),
            "looked": self.looked,
        }

    def kills(self, count: int, seed: object) -> dict[str, Any]:
        random = Random(f"kills {seed}")
        return {"kills": [self._kill(random) for _ in range(count)]}

    def pauses(self, count: int, seconds: float, seed: object) -> dict[str, Any]:
        random = Random(f"pauses {seed}")
        dead = []
        for _ in range(count):
            victim = self.members[f"n{random.randrange(1, self._count)}"]
            self.pass_time(random.uniform(0, PHASE / 4))
            first = len(self.heard)
            victim.signal(signal.SIGSTOP)
            stopped_at = now()
            self.pass_time(seconds)
            victim.signal(signal.SIGCONT)
            stood = now() - stopped_at
            self.pass_time(FORGIVEN)
            deaths = self._deaths(first)
            if deaths:
                dead.append({"name": victim.name, "stood": stood, "deaths": deaths})
                self._until(self._whole, "all lists are complete after a pause")
        return {"pauses": count, "seconds": seconds, "dead": dead}

    def busy(self, seconds: float) -> dict[str, Any]:
        first = len(self.heard)
        self.pass_time(seconds)
        return {"deaths": self._deaths(first), "suspicions": sum(each.word == "suspected" for each in self.heard[first:])}

    def whole(self) -> dict[str, Any]:
        """Wait until every list is complete."""
        self._until(self._whole, "all lists are complete")
        return {}

    def pass_time(self, seconds: float) -> None:
        end_at = now() + seconds
        while (left := end_at - now()) > 0:
            self._poll(min(left, POLL_INTERVAL))

    def end(self) -> None:
        end_all([*self.members.values()])

    def _kill(self, random: Random) -> dict[str, Any]:
        self.pass_time(SETTLED + random.uniform(0, PHASE))
        number = random.randrange(1, self._count)
        name, others = f"n{number}", {*self.names} - {f"n{number}"}
        victim, first = self.members.pop(name), len(self.heard)
        self._forget(victim)
        killed_at = now()
        victim.kill()

        def dead() -> dict[str, float]:
            found: dict[str, float] = {}
            for each in self.heard[first:]:
                if (each.word, each.name) == ("failed", name):
                    found.setdefault(each.observer, each.at)
            return found

        self._until(lambda: dead().keys() >= others, f"all hold {name} for dead")
        instants = dead().values()
        false = [each for each in self._deaths(first) if each != name]
        started_at, seen = now(), len(self.heard)
        self._start(number, FIRST)
        self._until(self._whole, f"all list {name} again")
        listed = [each.at for each in self.heard[seen:] if (each.word, each.name) == ("joined", name) and each.observer != name]
        return {
            "first": min(instants) - killed_at,
            "last": max(instants) - killed_at,
            "restart_seen": max(listed, default=started_at) - started_at,
            "false": false,
        }

    def _deaths(self, first: int) -> list[str]:
        """Names that any member was told to be dead, since so many things were heard."""
        return sorted({each.name for each in self.heard[first:] if each.word == "failed"})

    def _whole(self) -> bool:
        names = {*self.names}
        return self.lists.keys() == names and all(each == names for each in self.lists.values())

    def _start(self, number: int, first: int | None) -> None:
        member = self._starter.start(number, first)
        self.members[member.name] = member

    def _forget(self, member: Member) -> None:
        self.lists.pop(member.name, None)
        for descriptor in [descriptor for descriptor, each in self._read.items() if each is member]:
            del self._read[descriptor]
            self._selector.unregister(descriptor)

    def _until(self, holds: Callable[[], object], what: str) -> None:
        end_at = now() + WHOLE_WITHIN
        checked_at = looked_at = now()
        while not holds():
            if now() >= end_at:
                raise NeverHappened(f"never happened: {what}; {self._story()}")
            if now() >= checked_at + 1.0:
                checked_at = now()
                for member in self.members.values():
                    member.check()
            if now() >= looked_at + LOOK_AGAIN:
                self._look_again()
                looked_at = now()
            self._poll(POLL_INTERVAL)

    def _look_again(self) -> None:
        """An agent that was away may have told a death and a return in one breath: ask those whose lists are not complete."""
        for name, known in self.lists.items():
            found = self.members[name].look() if known != {*self.names} else None
            if found is not None and found != known:
                self.looked += 1
                self.lists[name] = found

    def _story(self) -> str:
        names = {*self.names}
        short = {name: sorted(names - known) for name, known in self.lists.items() if known != names}
        return f"no list of {sorted(names - self.lists.keys())}, missing in lists: {dict([*short.items()][:8])}"

    def _poll(self, timeout: float) -> None:
        known = {id(member) for member in self._read.values()}
        for member in self.members.values():
            if member.is_up and id(member) not in known:
                descriptor = member.fileno()
                self._selector.register(descriptor, selectors.EVENT_READ)
                self._read[descriptor] = member
                self._take(member)
        for key, _ in self._selector.select(timeout):
            if key.fd in self._read:
                self._take(self._read[key.fd])

    def _take(self, member: Member) -> None:
        at = now()
        told = member.read()
        known = self.lists.setdefault(member.name, set())
        for word, name in told:
            self.heard.append(Heard(at, member.name, word, name))
            if word == "joined":
                known.add(name)
            elif word in ("failed", "gone"):
                known.discard(name)


class Traffic(NamedTuple):
    """Of the loopback device of this namespace since it began."""

    packets: int
    bytes: int


def loopback() -> Traffic:
    """What was sent: everything that is sent here is received here, so each packet is counted once."""
    line = next(line for line in Path("/proc/net/dev").read_text().splitlines() if line.strip().startswith("lo:"))
    fields = line.partition(":")[2].split()
    return Traffic(int(fields[9]), int(fields[8]))


def own_addresses(count: int) -> list[str]:
    """Of a namespace in which nothing else is: below the ports that the kernel gives to connections, which a later one may find taken."""
    return [f"{LOOPBACK}:{PORTS_FROM + number}" for number in range(count)]


def rss_mib(pid: int) -> float:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE_MIB


def serve(system: str, count: int) -> None:
    with TemporaryDirectory(prefix="hf-") as name:
        addresses = own_addresses(2 * count) if os.getpid() == 1 else free_addresses(2 * count)
        side = Side(Starter(system, addresses[:count], addresses[count:], Path(name)), count)
        try:
            _say({"form": side.begin()})
            for line in sys.stdin:
                order = json.loads(line)
                acts: dict[str, Callable[..., dict[str, Any]]] = {
                    "calm": side.calm, "kills": side.kills, "pauses": side.pauses, "busy": side.busy, "whole": side.whole,
                }  # fmt: skip
                _say(acts[order.pop("do")](**order))
        finally:
            with suppress(OSError):
                side.end()


def _say(answer: Mapping[str, Any]) -> None:
    print(json.dumps(answer), flush=True)


def main(words: Sequence[str]) -> None:
    system, count = words
    if os.getpid() == 1:  # the first process of namespaces of its own
        subprocess.run(LOOPBACK_UP, check=True)
    try:
        serve(system, int(count))
    except NeverHappened as error:
        _say({"broken": str(error)})


if __name__ == "__main__":
    main(sys.argv[1:])
