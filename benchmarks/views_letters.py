"""Letters for `views`: ``group.send`` between two members, directly, round a cut by the seats, and round a cut by ZooKeeper.

A letter goes by the overlay when the direct way is silent, so the way is cut: by the kernel's filter, between the
loopback addresses of the two agents, in a network namespace of our own. What counts is what the sender waits for: the time
until ``group.send`` returns, when the receipt is back (H240). The time until the receiver's program has the letter stands
beside it. All letters go at the same pace, because one agent may send 200 messages a second by the overlay.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from statistics import median
from threading import Thread
from typing import Any, NamedTuple

from benchmarks import leadership_stock as stock
from benchmarks.harness import median_ratio, ratio, take_turns
from benchmarks.ring_fleet import NeverHappened, now
from benchmarks.views_fleet import ViewFleet, can_cut, cut, heal
from holdfast import sync
from holdfast.errors import HoldfastError
from holdfast.local import calls
from holdfast.sync import Messages

PATIENCE = 30.0  # seconds for one letter
PAUSE = 0.01  # seconds between two letters
PACKAGES = ("zookeeper",)
TICK = {"tickTime": 2000}  # milliseconds, as Debian sets it
DIRECT, CARRIED, ZOOKEEPER = "direct", "carried", "zookeeper"
RATIOS = {"carry_p50_ratio": (CARRIED, DIRECT), "zookeeper_times": (ZOOKEEPER, CARRIED)}
LEFT_OUT = "ZooKeeper was left out at this size"
NO_CUT = "letters: the direct way cannot be cut; this kernel gives no network namespace of one's own, or nft is missing"


class Letters(NamedTuple):
    """How much of it."""

    preset: str = "lan"
    seats: int = 3
    rounds: int = 8
    letters: int = 200  # per round
    warm: int = 5  # before them: the first ones find out that the way is cut
    warm_at_first: int = 300  # the same in the beginning: a JVM compiles what it does often
    payload_bytes: int = 100
    zookeeper: bool = True


class Post:
    """Letters from one member to another one, by a client of each."""

    def __init__(self, stack: ExitStack, fleet: ViewFleet, payload_bytes: int) -> None:
        one, other = (fleet.agents[name] for name in fleet.members)
        self._agent, self._to, self._payload = one, fleet.members[1], bytes(payload_bytes)
        self._addresses = fleet.addresses[fleet.members[0]], fleet.addresses[fleet.members[1]]
        self._group, receiver = (stack.enter_context(sync.join(agent=agent.socket)) for agent in (one, other))
        self._views = [self._group.views(), receiver.views()]
        self._read: SimpleQueue[float] = SimpleQueue()
        Thread(target=self._receive, args=(receiver.messages(),), daemon=True).start()

    def until_in_view(self) -> None:
        """Both are in a view of the two or more."""
        end_at = now() + PATIENCE
        for views in self._views:
            while (view := views.view) is None or view.size < len(self._views):
                if now() >= end_at:
                    raise NeverHappened(f"never happened: a view of both, {views}")
                time.sleep(PAUSE)

    def letters(self, count: int) -> dict[str, list[float]]:
        """Seconds of each, until the program has it and until ``send`` returned."""
        arrived, returned = [], []
        for _ in range(count):
            time.sleep(PAUSE)
            began_at = now()
            self._group.send(self._to, self._payload, timeout=PATIENCE)
            returned.append(now() - began_at)
            arrived.append(self._read.get(timeout=PATIENCE) - began_at)
        return {"arrived": arrived, "returned": returned}

    def carried(self) -> float:
        """Letters of the sender that went by the overlay as well."""
        return float(self._agent.ask(calls.Info)["metrics"].get("mail_carried", 0.0))

    @contextmanager
    def cut(self) -> Iterator[None]:
        """The direct way between the two agents does not exist meanwhile."""
        cut(*self._addresses)
        try:
            yield
        finally:
            heal()

    def _receive(self, messages: Messages) -> None:
        with suppress(HoldfastError):  # The agent ended.
            for _ in messages:
                self._read.put(now())


class Contest:
    """The three ways."""

    def __init__(self, ours: Post, zookeeper: Post | None, size: Letters) -> None:
        self._ours, self._zookeeper, self._size = ours, zookeeper, size
        self.arrived: dict[str, list[float]] = {}  # p50 per round
        self.on_overlay: dict[str, float] = {}  # of the letters of a round, the share that was carried as well
        self._is_warm: set[str] = set()

    def contestants(self) -> dict[str, Callable[[], float]]:
        found: dict[str, Callable[[], float]] = {DIRECT: self._direct, CARRIED: partial(self._cut, CARRIED, self._ours)}
        if self._zookeeper is not None:
            found[ZOOKEEPER] = partial(self._cut, ZOOKEEPER, self._zookeeper)
        return found

    def _direct(self) -> float:
        return self._round(DIRECT, self._ours)

    def _cut(self, name: str, post: Post) -> float:
        with post.cut():
            return self._round(name, post)

    def _round(self, name: str, post: Post) -> float:
        post.letters(self._size.warm if name in self._is_warm else self._size.warm_at_first)
        self._is_warm.add(name)
        before = post.carried()
        found = post.letters(self._size.letters)
        share = (post.carried() - before) / self._size.letters
        self.on_overlay[name] = max(self.on_overlay.get(name, 0.0), share) if name == DIRECT else min(self.on_overlay.get(name, 1.0), share)
        self.arrived.setdefault(name, []).append(median(found["arrived"]))
        return median(found["returned"])


def measure(size: Letters, folder: Path) -> dict[str, Any]:
    if not can_cut():
        return {"missing": NO_CUT}
    with ExitStack() as stack:
        ours = _posted(stack, ViewFleet(folder, size.seats, 2, preset=size.preset), size)
        missing = [each for each in stock.missing() if "etcd" not in each] if size.zookeeper else [LEFT_OUT]
        zookeeper = None if missing else _by_ensemble(stack, folder, size)
        contest = Contest(ours, zookeeper, size)
        seconds = take_turns(contest.contestants(), size.rounds)
    arrived = {name: each[1:] for name, each in contest.arrived.items()}  # as the times, without the first round
    pairs = {name: pair for name, pair in RATIOS.items() if set(pair) <= seconds.keys()}
    return {
        "ratios": {name: ratio(seconds, *pair) for name, pair in pairs.items()},
        "arrival_ratios": {name: ratio(arrived, *pair) for name, pair in pairs.items()},
        "median_ratios": {name: round(median_ratio(seconds, *pair), 3) for name, pair in pairs.items()},
        "returned_ms": _best(seconds),
        "arrived_ms": _best(arrived),
        "carried_share": contest.on_overlay,
        "rounds_ms": {name: [round(each * 1e3, 3) for each in found] for name, found in seconds.items()},
        "missing": "; ".join(missing),
        "packages": {} if missing else stock.versions(PACKAGES),
    }


def _best(seconds: Mapping[str, list[float]]) -> dict[str, float]:
    return {name: round(min(each) * 1e3, 3) for name, each in seconds.items()}


def _by_ensemble(stack: ExitStack, folder: Path, size: Letters) -> Post:
    """Two agents of another group that take their views from three servers of ZooKeeper."""
    ensemble = stack.enter_context(stock.zookeeper(folder, TICK))
    home = folder / "z"
    home.mkdir()
    fleet = ViewFleet(home, 0, 2, first=size.seats + 2, preset=size.preset, group="z", zookeeper=",".join(ensemble.addresses))
    return _posted(stack, fleet, size)


def _posted(stack: ExitStack, fleet: ViewFleet, size: Letters) -> Post:
    """With three seats the two members ask different ones first, so that a letter takes three hops."""
    stack.callback(fleet.end)
    fleet.begin()
    post = Post(stack, fleet, size.payload_bytes)
    post.until_in_view()
    return post
