"""``python -m benchmarks NAME [--json] [--rounds N] [--quick]``; exits 0 if every goal is met, 1 if one is missed, 2 for a wrong call."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from importlib import import_module
from inspect import signature
from types import ModuleType
from typing import Any

from benchmarks.harness import show_progress

NAMES = {
    "simulator": "the lab against SimPy, and what checkers cost",
    "datagrams": "our sockets against asyncio's datagram transport, and what sealing costs",
    "memory": "what a run of 1000 nodes needs",
    "ring-real": "a ring of 64 real members: crashes, kill -9, SIGSTOP; takes half an hour",
    "agent": "what an agent costs: memory, CPU and packets while idle, calls, start, the command line",
    "http-load": "an agent that is asked as fast as strangers can, over HTTP and its local socket; takes eight minutes",
    "forming": "agents started at once, until every list is complete, and restarts; takes half an hour",
    "leadership": "kill -9 of the holder: Holdfast, ZooKeeper and etcd side by side; takes 20 minutes",
    "election": "leaders by election: failover beside detection, ZooKeeper and etcd, and what an election costs; takes 12 minutes",
    "leadership-kills": "seven agents, kill -9 of the leader fifty times, and hand-overs by will; takes ten minutes",
    "tickets": "locks and tickets: Holdfast, Redis, ZooKeeper and etcd side by side, all syncing; takes 20 minutes",
    "tickets-storm": "five agents, eight tickets, twenty clients, agents killed, stopped and cut off; takes three minutes",
    "tickets-load": "100, 300 and 1000 tickets of one pool, held by 200 clients of three agents; takes five minutes",
    "views": "joins, crashes, killed seats, idle costs; letters by the overlay, beside ZooKeeper's; takes 14 minutes",
    "limits": "one rate for many processes: Holdfast, Redis and five libraries side by side; takes ten minutes",
    "page": "what the page of 1000 members costs the browser; takes two minutes, and needs Chromium",
    "membership": "crashes, pauses and idle costs of members: Holdfast, kinship and serf side by side; takes half an hour",
    "election-zookeeper": "16 nodes and a leader: ours and ZooKeeper with 3, 5 and 16 servers, calm and killed; takes 25 minutes",
    "gossip": "what gossip costs in groups of 16 to 1000 real members, and of 10,000 in the lab; takes half an hour",
    "election-grid": "elections among 16 real processes on an emulated grid of radios, four variants; takes 13 minutes",
    "ring": "what ring membership costs, on sockets and in the lab; Figure 9 at full size",
}
CHOICES = {"agents": "forming", "preset": "forming", "part": "election", "grid": "election"}  # which benchmark offers them


def main(arguments: list[str] | None = None) -> int:
    parser = ArgumentParser(prog="python -m benchmarks", description="How fast it is, as ratios inside one run.")
    parser.add_argument("name", nargs="?", choices=[*NAMES], metavar="NAME", help=f"one of: {', '.join(NAMES)}")
    parser.add_argument("--list", action="store_true", help="what there is, with the goals")
    parser.add_argument("--json", action="store_true", help="one object on standard output")
    parser.add_argument("--quick", action="store_true", help="smaller, where a benchmark has a small size: to see that it works")
    parser.add_argument("--rounds", type=_rounds, metavar="N", help="rounds per contestant; the best one counts")
    parser.add_argument("--agents", type=_rounds, metavar="N", help="forming: groups of this size only")
    parser.add_argument("--preset", choices=["lan", "wan", "local"], help="forming: this preset only")
    parser.add_argument("--part", choices=["failover", "idle", "lab", "stock"], help="election: this part only")
    parser.add_argument("--grid", metavar="FILE", help="election: what `election-grid --json` printed")
    options = parser.parse_args(arguments)
    if options.list:
        print("\n".join(_described(name) for name in NAMES))
        return 0
    if options.name is None:
        parser.error(f"NAME is missing; accepted: {', '.join(NAMES)}")
    benchmark = _module(options.name)
    for name, offered_by in CHOICES.items():
        if getattr(options, name) is not None and name not in signature(benchmark.run).parameters:
            parser.error(f"--{name}: {options.name} has no such choice; {offered_by} has")
    report = benchmark.run(**_chosen(benchmark, options))
    show_progress("")
    print(report.as_json() if options.json else report.as_text())
    return int(report.exit_code)


def _module(name: str) -> ModuleType:
    return import_module(f"benchmarks.{name.replace('-', '_')}")


def _chosen(benchmark: ModuleType, options: Namespace) -> dict[str, Any]:
    rounds: dict[str, Any] = {} if options.rounds is None else {"rounds": options.rounds}
    rounds.update({name: value for name in CHOICES if (value := getattr(options, name)) is not None})
    return {**rounds, "size": benchmark.QUICK} if options.quick and hasattr(benchmark, "QUICK") else rounds


def _described(name: str) -> str:
    goals = ", ".join(f"{ratio} {goal}" for ratio, goal in _module(name).GOALS.items())
    return f"{name:10}  {NAMES[name]} ({goals})"


def _rounds(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise ArgumentTypeError(f"{text!r} is no number of rounds; accepted: 1 and more")
    return int(text)


if __name__ == "__main__":
    sys.exit(main())
