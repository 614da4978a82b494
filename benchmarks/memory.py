"""`memory`: does a lab run of 1000 nodes and 60 virtual seconds fit into 1 GiB? And what does an agent keep of each of 1000 members?

    leases_of_a_gibibyte   peak of the lease workload (every node watches 6 neighbours) / 1 GiB
    gossip_of_a_gibibyte   peak where every node knows all others and asks a random one in every period / 1 GiB

    heard_bytes             of one of 1000 members that was heard: identity, addresses in node, socket and codec, cipher, windows
    address_bytes           the part of it that is Python's objects: without cipher and windows
    heard_full_bytes        the same as heard_bytes with every bit of both replay windows in use

Each run has a process of its own, which reads its peak (ru_maxrss) at the end; interpreter and libraries are part of it.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from resource import RUSAGE_SELF, getrusage
from time import process_time
from typing import Any

from benchmarks.harness import ROOT, Report, at_most, show_progress
from benchmarks.lease import DELAY_MAX, DELAY_MIN, LOSS, PERIOD, LeaseAck, LeaseRequest, Size, build_world
from holdfast.host import Address, Host, Message, NodeId
from holdfast.lab.links import Link, Uniform
from holdfast.lab.network import PORT
from holdfast.lab.world import World

GIBIBYTE = 1 << 30
RUSAGE_UNIT = 1024  # bytes: what Linux counts ru_maxrss in
GOALS = {"leases_of_a_gibibyte": at_most(1.0), "gossip_of_a_gibibyte": at_most(1.0), "heard_bytes": at_most(1536)}
MEMBERS = 1000  # of the group of an agent that hears all of them
ROUNDS = 1  # the peak of a seeded run hardly changes; of several rounds the largest counts
SIZE = Size(seconds=60.0)


class Gossip:
    """Knows all, asks one: what weak membership sends, without what it carries."""

    handles = (LeaseRequest, LeaseAck)
    fingerprint = b""

    def __init__(self, host: Host, members: list[NodeId]) -> None:
        self.host, self.members = host, members
        self.period_number = 0
        for member in members:
            host.meet(member, Address(member.name, PORT))

    def start(self) -> None:
        self.host.after(PERIOD * self.host.random.random(), self._on_period)

    def on_message(self, source: NodeId, message: Message) -> None:
        if isinstance(message, LeaseRequest):
            self.host.send(source, LeaseAck(message.session))

    def on_away(self, seconds: float) -> None:
        """No process is stopped here."""

    def stop(self) -> None:
        """Nothing to hand over."""

    def _on_period(self) -> None:
        self.period_number += 1
        self.host.send(self.members[self.host.random.randrange(len(self.members))], LeaseRequest(self.period_number))
        self.host.after(PERIOD, self._on_period)


def build_gossip(size: Size) -> World:
    names = [f"n{index}" for index in range(size.nodes)]
    members = [NodeId(name, 1) for name in names]
    link = Link(delay=Uniform(DELAY_MIN, DELAY_MAX), loss=LOSS)
    return World(size.seed, lambda host: [Gossip(host, members)], names=names, link=link)


WORKLOADS: dict[str, Callable[[Size], World]] = {"leases": build_world, "gossip": build_gossip}


def run(rounds: int = ROUNDS, size: Size = SIZE) -> Report:
    ratios, raw = {}, {**size._asdict(), "rounds": rounds}
    for name in WORKLOADS:
        show_progress(name)
        found = [_in_child(name, size) for _ in range(rounds)]
        ratios[f"{name}_of_a_gibibyte"] = max(each["peak_mib"] for each in found) * (1 << 20) / GIBIBYTE
        raw |= {f"{name}_{what}": [each[what] for each in found] for what in found[0]}
    show_progress("members that are heard")
    kept = {what: _heard_in_child(what) for what in ("addresses", "heard", "heard_full")}
    ratios["address_bytes"] = kept["addresses"]
    ratios |= {f"{what}_bytes": kept["addresses"] + kept[what] for what in ("heard", "heard_full")}
    return Report("memory", GOALS, ratios, {**raw, "heard_bytes": kept})


def measure(name: str, size: Size) -> dict[str, float]:
    """One run, in this process: call it once per process."""
    empty = _peak_mib()
    world = WORKLOADS[name](size)
    built, began = _peak_mib(), process_time()
    world.run(size.seconds)
    return {"peak_mib": _peak_mib(), "built_mib": built, "empty_mib": empty, "events": world.events, "cpu_seconds": process_time() - began}


def _in_child(name: str, size: Size) -> Any:
    return _said_by("benchmarks.memory", name, json.dumps(size))


def _heard_in_child(what: str) -> Any:
    return _said_by("benchmarks.heard", what, str(MEMBERS))


def _said_by(*words: str) -> Any:
    command = [sys.executable, "-m", *words]
    return json.loads(subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout)


def _peak_mib() -> float:
    return getrusage(RUSAGE_SELF).ru_maxrss * RUSAGE_UNIT / (1 << 20)


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1], Size(*json.loads(sys.argv[2])))))
