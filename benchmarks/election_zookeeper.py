"""`election-zookeeper`: what a leader costs on 16 nodes, by election over gossip and by ZooKeeper with 3, 5 and 16 servers.

    traffic_kbit           kbit per second that all nodes send, with the headers of IP; mean of the calm stretch
    traffic_kbit_least     the same, for the goal from below
    traffic_std_over_mean  of the traffic of single seconds
    memory_spike           the most resident memory of the first 100 s, over the mean afterwards, less 1
    traffic_over_zookeeper16, cpu_..., memory_...   ours over ZooKeeper's with a server on every node; the same with 5 and with 3
    failover_..._s         from kill -9 of the leader until the next one's first deed; median
    silence_..._s          the longest time without a deed of any leader after kill -9 of the server that leads; median
    most_killed_..._s      the same after kill -9 of a majority of the servers, or of our agents and their programs; 90 if none acted again

Each node is a network namespace with a program that asks to lead, ours with an agent, ZooKeeper's with a server on so many of them.
All settings run at the same time, each in namespaces of its own, so that they meet the same machine. Every second the bytes of each node's
interface, and the CPU time and resident memory of all its processes are looked at. After the calm stretch the leader is killed every
minute, and half a minute later the server of ZooKeeper that leads; in the end a majority.

``holdfast lab run election/F15 --set run=FILE`` (and F16 to F18) judges what ``--json`` printed.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from random import Random
from statistics import median
from typing import Any, NamedTuple

from benchmarks import leadership_stock as stock
from benchmarks.agent_fleet import compile_package
from benchmarks.election_zookeeper_samples import summary
from benchmarks.election_zookeeper_side import OURS, PACE, SESSION, SETTINGS, STOCK, ZOOKEEPER, servers_of
from benchmarks.harness import Report, at_least, at_most, show_progress
from benchmarks.leadership import Lateness
from benchmarks.leadership_side import Remote, namespaces
from benchmarks.ring_fleet import NeverHappened, now

GOALS = {
    "traffic_kbit": at_most(40),
    "traffic_kbit_least": at_least(10),
    "traffic_std_over_mean": at_most(0.25),
    "memory_spike": at_most(0.13),
    "traffic_over_zookeeper16": at_most(1),
    "cpu_over_zookeeper16": at_most(1),
    "memory_over_zookeeper16": at_most(1),
}
ROUNDS = 10  # kills
SIDE = "benchmarks.election_zookeeper_side"
COMPARED = {"traffic": "kbit", "cpu": "cpu_percent", "memory": "rss_mib"}

Found = dict[str, dict[str, Any]]  # setting -> what was found


class Size(NamedTuple):
    """How much of it."""

    nodes: int = 16
    servers: tuple[int, ...] = (16, 5, 3)  # the largest is started first: what a start costs is over when the others begin
    seconds: float = 600.0  # of a calm run
    warm: float = 100.0  # seconds of it in which programs start and elect; the rest is the calm stretch
    minute: float = 60.0  # from one kill of the leader to the next
    server_window: float = 20.0  # in which it is listened after the kill of a server
    most_window: float = 90.0  # the same of a majority
    seed: int = 5


SIZE = Size()
QUICK = Size(nodes=4, servers=(3,), seconds=40.0, warm=20.0, minute=40.0, server_window=10.0, most_window=20.0)


def run(rounds: int = ROUNDS, size: Size = SIZE) -> Report:
    compile_package()
    found: Found = {setting: {} for setting in (*(f"{STOCK}{count}" for count in size.servers), OURS)}
    problems = missing()
    late: dict[str, Any] = {}
    if not problems:
        measure(found, rounds, size, problems, late)
    raw = {
        **size._asdict(),
        "rounds": rounds,
        "cores": os.cpu_count(),
        "load_average": os.getloadavg()[0],
        "asked": {OURS: SETTINGS, STOCK: ZOOKEEPER, "jvm": " ".join(stock.JVM), "session": SESSION, "pace": PACE},
        "lateness_ms": late,
        "settings": found,
        "packages": stock.versions(["zookeeper", "openjdk-17-jre-headless"]),
    }
    return Report("election-zookeeper", GOALS, ratios(found), raw, problems)


def missing() -> list[str]:
    """What has to be there first; empty if all is."""
    absent = [line for line in stock.missing() if "etcd" not in line]
    return absent if namespaces() else [*absent, "no network namespaces here: that needs unshare, nsenter and ip, as root"]


def measure(found: Found, rounds: int, size: Size, problems: list[str], late: dict[str, Any]) -> None:
    """Into ``found``: a setting that breaks down keeps what it has and takes part no more."""
    random = Random(size.seed)
    with started(found, size, problems) as remotes, Lateness() as lateness:
        all_do = Orders(remotes, found, problems)
        wait("calm", max((found[setting]["began_at"] for setting in remotes), default=now()) + size.seconds)
        late["calm"] = lateness.found()
        all_do("usage", lambda setting: {"since": size.warm, "until": size.seconds})
        for setting in remotes:
            found[setting]["calm"] = summary(found[setting]["usage"]["series"], size.warm, size.seconds)
        began_at = now()
        for number in range(rounds):
            wait(f"kill {number + 1} of {rounds}", began_at + number * size.minute)
            all_do("kill", lambda _: {"delay": random.random()}, many=True)
            wait(f"kill {number + 1} of {rounds}: servers", began_at + (number + 0.5) * size.minute)
            all_do("kill_server", lambda _: {"seconds": size.server_window}, many=True, only=STOCK)
        wait("the last one", began_at + rounds * size.minute)
        all_do(
            "usage",
            lambda setting: {"since": began_at - found[setting]["began_at"], "until": now() - found[setting]["began_at"]},
            "killing",
        )
        all_do("sums", lambda _: {})
        all_do("kill_most", lambda _: {"seconds": size.most_window})
        late["all"] = lateness.found()


class Orders:
    """The same order to all settings at once, and their answers."""

    def __init__(self, remotes: dict[str, Remote], found: Found, problems: list[str]) -> None:
        self._remotes, self._found, self._problems = remotes, found, problems

    def __call__(
        self, what: str, fields: Callable[[str], Mapping[str, Any]], name: str = "", *, many: bool = False, only: str = ""
    ) -> None:
        asked = [setting for setting in self._remotes if setting.startswith(only)]
        for setting in asked:
            self._remotes[setting].order(do=what, **fields(setting))
        for setting in asked:
            try:
                answer = self._remotes[setting].answer()
            except NeverHappened as error:
                self._problems.append(f"{setting}: {what}: {error}")
                del self._remotes[setting]
                continue
            if many:
                self._found[setting].setdefault(name or what, []).append(answer)
            else:
                self._found[setting][name or what] = answer


@contextmanager
def started(found: Found, size: Size, problems: list[str]) -> Iterator[dict[str, Remote]]:
    """One after the other; they end with the block."""
    with ExitStack() as stack:
        remotes = {}
        for setting in found:
            show_progress(f"{setting} starts")
            remotes[setting] = Remote(setting, str(size.nodes), module=SIDE)
            stack.callback(remotes[setting].end)
            try:
                found[setting] |= remotes[setting].answer()
            except NeverHappened as error:
                problems.append(str(error))
                del remotes[setting]
        yield remotes


def wait(what: str, until: float) -> None:
    while (left := until - now()) > 0:
        show_progress(f"{what}: {left:.0f} s")
        time.sleep(min(left, 1.0))


# What is said about it.


def ratios(found: Mapping[str, Mapping[str, Any]]) -> dict[str, float | None]:
    ours = found.get(OURS, {}).get("calm")
    numbers: dict[str, float | None] = dict.fromkeys(GOALS)
    if ours:
        numbers |= {"traffic_kbit": ours["kbit"], "traffic_kbit_least": ours["kbit"]}
        numbers["traffic_std_over_mean"] = ours["kbit_std"] / ours["kbit"]
        numbers["memory_spike"] = ours["warm_rss_mib_max"] / ours["rss_mib"] - 1
    for setting in sorted(found, key=servers_of, reverse=True):
        theirs = found[setting].get("calm")
        if setting != OURS:
            numbers |= {f"{what}_over_{setting}": _over(ours, theirs, key) for what, key in COMPARED.items()}
    for setting in sorted(found, key=servers_of):
        of = found[setting]
        numbers[f"failover_{setting}_s"] = _median(of.get("kill", []), "failover")
        if setting != OURS:
            numbers[f"silence_{setting}_s"] = _median(of.get("kill_server", []), "silence")
        numbers[f"most_killed_{setting}_s"] = of.get("kill_most", {}).get("silence")
    return numbers


def _over(ours: Mapping[str, float] | None, theirs: Mapping[str, float] | None, key: str) -> float | None:
    return ours[key] / theirs[key] if ours and theirs else None


def _median(rows: Sequence[Mapping[str, float]], key: str) -> float | None:
    return median(row[key] for row in rows) if rows else None
