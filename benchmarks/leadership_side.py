"""One installation of `leadership` in a process of its own: servers, candidates, recorder; ``python -m benchmarks.leadership_side ORDERS``.

It is started in a network and a pid namespace of its own where the kernel allows it: then the counters of its loopback device are the
traffic of this installation and of nothing else, and whatever it started ends with it. Orders come as lines of JSON and are answered by one
line each:

    {"do": "kill", "delay": 0.3}        let so much time pass, then kill -9 the holder; how long until another did its first deed?
                                        with "reign": not before it has led for so long
    {"do": "hand_over", "delay": 0.3}   the holder resigns; with "drain": its agent is drained. How long from the end of its work to the
                                        next one's first deed?
    {"do": "calls", "count": 200}       how long does a call of a client to its agent take?
    {"do": "calm", "seconds": 10}       touch nothing; CPU, bytes, memory, and who took over although none had died
    {"do": "sums"}                      who took over in all although none had died, and what the agents counted
"""

from __future__ import annotations

import json
import math
import os
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from benchmarks.agent_fleet import cpu_seconds
from benchmarks.harness import ROOT
from benchmarks.leadership_installation import Candidate, Installation, installed
from benchmarks.leadership_record import Record, Recorder, Reign, false_takeovers, interruptions, overlaps
from benchmarks.ring_fleet import NeverHappened, now

OWN_NAMESPACES = ("--net", "--pid", "--fork", "--kill-child", "--mount-proc")
LOOPBACK_UP = ("ip", "link", "set", "lo", "up")
AS_ROOT = ("--user", "--map-root-user")  # for other users, where they may have namespaces
FAILOVER_MAX = 120.0  # seconds until the next holder is given up
SETTLED = 0.2  # seconds that a holder holds it before it is killed
STARTED_WITHIN = 120.0
MODULE = "benchmarks.leadership_side"


class Takeover(NamedTuple):
    """Another one leads after a kill."""

    number: int  # of the candidate that was killed
    killed_at: float
    former: Reign
    successor: Reign


class Side:
    """The installation at work."""

    def __init__(self, installation: Installation, recorder: Recorder, count: int) -> None:
        self._it, self._recorder = installation, recorder
        self.killed: list[int] = []
        self.given: list[int] = []  # tokens that were given up by will
        self._gone: Counter[str] = Counter()  # what the killed had counted
        self.candidates = self.start(count)

    @property
    def acts(self) -> Mapping[str, Callable[..., dict[str, Any]]]:
        """By the word of the order."""
        return {"kill": self.kill, "hand_over": self.hand_over, "calls": self.calls, "calm": self.calm, "sums": self.sums}

    def start(self, count: int) -> dict[int, Candidate]:
        return {number: self._it.start(number) for number in range(count)}

    def begin(self) -> None:
        for candidate in self.candidates.values():
            self._until_standing(candidate)
        self._recorder.until(Record.holder, "a client leads", STARTED_WITHIN)
        self._it.until_whole()

    def kill(self, delay: float, *, reign: float = 0.0, alone: bool = False) -> dict[str, Any]:
        """Of the holder, when it has held it for so long, at an instant that has nothing to do with its heartbeats."""
        number, killed_at, former, successor = self.take_over(delay, reign, alone=alone)
        gap = successor.first_at - former.until if math.isfinite(former.until) else None
        return {"failover": successor.heard_at - killed_at, "gap": gap, "number": number}

    def take_over(self, delay: float, reign: float, *, alone: bool) -> Takeover:
        """Kill, wait for the next holder, start the killed one again."""
        number, _ = self._holder()
        counted = self._it.counters(number)
        time.sleep(SETTLED + delay)
        number, former = self._holder()
        while now() < former.heard_at + reign:
            time.sleep(SETTLED)
            number, former = self._holder()
        self._gone.update({} if alone else counted)
        killed_at = self.candidates[number].kill(alone=alone)
        self.killed.append(former.pid)
        successor = self._recorder.until(lambda record: record.next_after(killed_at, former.pid), "another one leads", FAILOVER_MAX)
        self.candidates[number] = self._it.restart(number, alone=alone)
        self._until_standing(self.candidates[number])
        self._it.until_whole()
        return Takeover(number, killed_at, former, successor)

    def hand_over(self, delay: float, *, drain: bool = False) -> dict[str, Any]:
        """By will, at an instant that has nothing to do with heartbeats. A drained agent ends, and comes back as another life."""
        time.sleep(SETTLED + delay)
        number, former = self._holder()
        candidate = self.candidates[number]
        self._gone.update(self._it.counters(number) if drain else {})
        asked_at = now()
        (candidate.drain if drain else candidate.resign)()
        stopped_at = self._recorder.until(lambda record: record.stopped_after(asked_at, former.pid), "it stopped", FAILOVER_MAX)
        successor = self._recorder.until(lambda record: record.next_after(stopped_at, former.pid), "another one leads", FAILOVER_MAX)
        self.given.append(former.token)
        if drain:
            candidate.processes[0].wait()
            candidate.kill()
            self.candidates[number] = self._it.restart(number, alone=False)
            self._until_standing(self.candidates[number])
            self._it.until_whole()
        return {"took": successor.first_at - stopped_at, "asked": successor.first_at - asked_at, "number": number}

    def calls(self, count: int) -> dict[str, Any]:
        return {"took": self._it.round_trips(self._holder()[0], count)}

    def calm(self, seconds: float) -> dict[str, Any]:
        """Per second, of everything that belongs to it; and what happened although nothing did."""
        pids = self.pids
        first, began_at, sent, cpu = len(self._recorder.record.reigns) - 1, now(), loopback_bytes(), sum(map(cpu_seconds, pids))
        time.sleep(seconds)
        took = now() - began_at
        cpu, sent = sum(map(cpu_seconds, pids)) - cpu, loopback_bytes() - sent
        reigns = self._recorder.record.reigns[first:]
        return {
            "seconds": took,
            "cpu_per_second": cpu / took,
            "bytes_per_second": sent / took,
            "memory_mib": sum(map(private_mib, pids)),
            "false_takeovers": false_takeovers(reigns),
            "interruptions": interruptions(reigns),
        }

    def sums(self) -> dict[str, Any]:
        """What happened since it began, by the recorder, and what all agents counted, the killed ones included."""
        reigns = self._recorder.record.reigns
        counted = Counter(self._gone)
        for number in self.candidates:
            counted.update(self._it.counters(number))
        return {
            "false_takeovers": false_takeovers(reigns, self.killed, self.given),
            "interruptions": interruptions(reigns),
            "counted": dict(counted),
        }

    @property
    def pids(self) -> list[int]:
        return [*self._it.pids, *(pid for candidate in self.candidates.values() for pid in candidate.pids)]

    def overlaps(self) -> int:
        return len(overlaps(self._recorder.record.reigns))

    def end(self) -> None:
        for candidate in self.candidates.values():
            candidate.kill()

    def _holder(self) -> tuple[int, Reign]:
        def living(record: Record) -> tuple[int, Reign] | None:
            reign = record.holder()
            numbers = [number for number, candidate in self.candidates.items() if reign is not None and candidate.worker == reign.pid]
            return (numbers[0], reign) if reign is not None and numbers else None

        return self._recorder.until(living, "a living candidate leads")

    def _until_standing(self, candidate: Candidate) -> None:
        def stands(record: Record) -> bool | None:
            candidate.check()
            return candidate.worker in record.standing or None

        self._recorder.until(stands, "a candidate stands", STARTED_WITHIN)


def loopback_bytes() -> int:
    """Through the loopback device of this namespace, headers included."""
    line = next(line for line in Path("/proc/net/dev").read_text().splitlines() if line.strip().startswith("lo:"))
    return int(line.partition(":")[2].split()[0])


def private_mib(pid: int) -> float:
    """What ends with this process."""
    rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
    return sum(int(line.split()[1]) for line in rollup.splitlines() if line.startswith("Private_")) / 1024


# The end of it that gives the orders.


class Remote:
    """A side in another process."""

    def __init__(self, system: str, *words: str, module: str = MODULE) -> None:
        self.system = system
        command = [*namespaces(), sys.executable, "-m", module, system, *words]
        self._process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def order(self, **fields: Any) -> None:
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # What it died of is in the answer.
            self._process.stdin.write(json.dumps(fields) + "\n")
            self._process.stdin.flush()

    def ask(self, **fields: Any) -> Any:
        self.order(**fields)
        return self.answer()

    def answer(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        found = json.loads(line) if line else {"broken": f"it ended with {self._process.wait()}; what it said is above"}
        if "broken" in found:
            raise NeverHappened(f"{self.system}: {found['broken']}")
        return found

    def end(self) -> None:
        self._process.communicate()  # Closes its input, which is how it learns that it is over.


@cache
def namespaces() -> tuple[str, ...]:
    """The words before a command that give it a network and pids of its own; none where that is not allowed."""
    if shutil.which("unshare") is None or shutil.which("ip") is None:
        return ()
    for more in ((), AS_ROOT):
        words = ("unshare", *more, *OWN_NAMESPACES)
        if subprocess.run([*words, *LOOPBACK_UP], check=False, capture_output=True).returncode == 0:
            return words
    return ()


@contextmanager
def sides(systems: list[str], level: str, count: int, module: str = MODULE, **settings: Any) -> Iterator[dict[str, Remote]]:
    """Started together, ready together."""
    with ExitStack() as stack:
        found = {}
        for system in systems:
            found[system] = Remote(system, level, str(count), json.dumps(settings), module=module)
            stack.callback(found[system].end)
        for remote in found.values():
            remote.answer()
        yield found


def serve(kind: type[Side], system: str, level: str, count: int, settings: Mapping[str, Any]) -> None:
    with TemporaryDirectory(prefix="hf-") as name, ExitStack() as stack:
        folder = Path(name)
        recorder = stack.enter_context(Recorder(folder / "r"))
        side = kind(stack.enter_context(installed(system, level, settings, count, recorder.path, folder)), recorder, count)
        stack.callback(side.end)
        side.begin()
        _say({"ready": True})
        for line in sys.stdin:
            order = json.loads(line)
            found = side.acts[order.pop("do")](**order)
            _say({**found, "overlaps": side.overlaps()})


def _say(answer: Mapping[str, Any]) -> None:
    print(json.dumps(answer), flush=True)


def main(kind: type[Side] = Side) -> None:
    _, system, level, count, settings = sys.argv
    if os.getpid() == 1:  # the first process of namespaces of its own
        subprocess.run(LOOPBACK_UP, check=True)
    try:
        serve(kind, system, level, int(count), json.loads(settings))
    except NeverHappened as error:
        _say({"broken": str(error)})


if __name__ == "__main__":
    main()
