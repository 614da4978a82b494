"""`datagrams`: CPU per message received, opened, decoded, routed, handled, encoded, sealed and sent.

    of_stock_asyncio          ours / the same node and wire on asyncio's create_datagram_endpoint, both sealed, each as it comes
    sealed_over_plain         ours sealed / ours in plaintext
    of_stock_asyncio_settled  the first, but asyncio's process has freed a large block before; see datagrams_serve
    of_stock_asyncio_alone    the first, with one question at a time on its way

A process of its own asks and keeps so many questions on their way that the socket is rarely empty, as at a busy node. Only
the answering side's CPU counts, the kernel's share included.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple

from benchmarks.datagrams_serve import BOOT
from benchmarks.harness import ROOT, Contestant, Report, at_most, median_ratio, ratio, take_turns
from holdfast.host import NodeId
from holdfast.node import life_of

GOALS = {"of_stock_asyncio": at_most(0.33), "sealed_over_plain": at_most(1.6)}
RATIOS = {
    "of_stock_asyncio": ("ours", "stock"),
    "sealed_over_plain": ("ours", "ours-plain"),
    "of_stock_asyncio_settled": ("ours", "stock-settled"),
    "of_stock_asyncio_plain": ("ours-plain", "stock-plain"),
    "of_stock_asyncio_alone": ("ours-alone", "stock-alone"),
}
ROUNDS = 12
KEY = bytes(range(32)).hex()


class Size(NamedTuple):
    """How much of it, per round."""

    window: int = 64  # questions on their way: as many as a host reads in one turn (F10)
    messages: int = 4000
    alone: int = 1000  # messages where only one is on its way
    warm: int = 200  # messages before the clock starts


SIZE = Size()


class Child:
    """A process that takes one order per line and answers in lines."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def order(self, **what: Any) -> None:
        """Returns when the order can be carried out at once."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(what) + "\n")
        self._process.stdin.flush()
        assert self._line() == "ready"

    def answer(self) -> Any:
        return json.loads(self._line())

    def _line(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline().strip()
        assert line, f"{self._process.args!r} ended; what it said is above"
        return line


@contextmanager
def child(module: str, *arguments: str) -> Iterator[Child]:
    command = [sys.executable, "-m", f"benchmarks.{module}", *arguments]
    process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        yield Child(process)
    finally:
        process.communicate()  # Closes its input, which is how it learns that it is over.


class Contest:
    """One asker, three that answer, and what happened beside the time."""

    def __init__(self, stack: ExitStack, size: Size) -> None:
        self.size = size
        self.lost = 0
        self.dropped = 0
        self.faults: dict[str, float] = {}  # per message, in the latest round
        self.counted: dict[str, int] = {}
        self._asker = stack.enter_context(child("datagrams_ask"))
        self._servers = {kind: stack.enter_context(child("datagrams_serve", kind, KEY)) for kind in ("ours", "stock", "stock-settled")}
        self._addresses = {kind: server.answer() for kind, server in self._servers.items()}

    def contestants(self) -> dict[str, Contestant]:
        size = self.size
        busy = {kind: self._contestant(kind, kind, KEY, size.messages, size.window) for kind in self._servers}
        plain = {f"{kind}-plain": self._contestant(f"{kind}-plain", kind, "", size.messages, size.window) for kind in self._servers}
        alone = {f"{kind}-alone": self._contestant(f"{kind}-alone", kind, KEY, size.alone, 1) for kind in self._servers}
        return {**busy, **plain, **alone}

    def _contestant(self, name: str, kind: str, key: str, counted: int, window: int) -> Callable[[], float]:
        self.counted[name] = counted

        def once() -> float:
            self._servers[kind].order(key=key, warm=self.size.warm, counted=counted)
            to = self._addresses[kind][key]
            self._asker.order(key=key, to=to, to_life=life_of(NodeId(kind, BOOT)), count=self.size.warm + counted, window=window)
            answer = self._servers[kind].answer()
            self.lost += self._asker.answer()["lost"]
            self.dropped = max(self.dropped, answer["dropped"])
            self.faults[name] = round(answer["faults"] / counted, 2)
            return float(answer["seconds"])

        return once


def run(rounds: int = ROUNDS, size: Size = SIZE) -> Report:
    with ExitStack() as stack:
        contest = Contest(stack, size)
        seconds = take_turns(contest.contestants(), rounds)
    ratios = {name: ratio(seconds, *pair) for name, pair in RATIOS.items()}
    problems = [f"{contest.dropped} messages dropped where every one was good"] if contest.dropped else []
    return Report("datagrams", GOALS, ratios, _raw(contest, rounds, seconds), problems)


def _raw(contest: Contest, rounds: int, seconds: Mapping[str, list[float]]) -> dict[str, object]:
    return {
        **contest.size._asdict(),
        "rounds": rounds,
        "lost": contest.lost,
        "microseconds_per_message": {name: round(min(each) / contest.counted[name] * 1e6, 2) for name, each in seconds.items()},
        "page_faults_per_message": contest.faults,
        "median_ratio_of_a_round": {name: round(median_ratio(seconds, *RATIOS[name]), 3) for name in RATIOS},
        "cpu_seconds": {name: [round(each, 4) for each in times] for name, times in seconds.items()},
    }
