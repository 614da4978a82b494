"""What nodes of `election-zookeeper` use, looked at once a second: bytes sent, CPU time and memory of all that runs in each.

A process belongs to the node in whose network namespace it is, whatever started it. CPU time is that of the kernel's clock of each process,
user and system; what a process used between the last look and its end is lost. Resident memory (RSS) counts a page once for each process
that has it, as if each node were a machine of its own; proportional memory (PSS), looked at every ten seconds, shares it out.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from statistics import fmean, pstdev
from types import TracebackType
from typing import Any, NamedTuple, Self

from benchmarks.agent_fleet import PAGE_MIB, cpu_seconds
from benchmarks.election_zookeeper_nodes import Node, namespace_of
from benchmarks.ring_fleet import now

INTERVAL = 1.0  # seconds
PSS_EVERY = 10  # looks: reading it takes a millisecond for each process
PROGRAM = b"leadership_candidate"  # a word of the command of what leads; anything else is an agent or a server
KILOBIT = 1000 / 8  # bytes
SERIES = ("kbit", "payload_kbit", "packets", "cpu_percent", "program_cpu_percent", "rss_mib", "program_rss_mib", "pss_mib")

Row = Mapping[str, float]  # of one second


class Used(NamedTuple):
    """What one node had used so far, or has now."""

    packets: int = 0
    ip_bytes: int = 0
    payload_bytes: int = 0
    cpu: float = 0.0  # seconds
    program_cpu: float = 0.0  # of these, of the program that leads
    rss_mib: float = 0.0
    program_rss_mib: float = 0.0
    pss_mib: float = 0.0


class Sampler:
    """A thread that looks; it begins with the block. ``tcp_alone``: the programs send nothing else."""

    def __init__(self, nodes: Sequence[Node], *, tcp_alone: bool) -> None:
        self.looks: list[tuple[float, list[Used]]] = []
        self._nodes, self._tcp_alone = nodes, tcp_alone
        self._number = {node.namespace: node.number for node in nodes}
        self._seen: dict[int, tuple[float, bool]] = {}  # pid -> CPU seconds at the last look, and whether it is a program
        self._cpu = [[0.0, 0.0] for _ in nodes]  # of all, of programs
        self._pss = [0.0 for _ in nodes]
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._work, daemon=True)

    def __enter__(self) -> Self:
        self.began_at = now()
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._over.set()
        self._thread.join()

    def _work(self) -> None:
        due_at = self.began_at
        while not self._over.wait(max(0.0, due_at - now())):
            self.looks.append((now() - self.began_at, self._look()))
            due_at += INTERVAL

    def _look(self) -> list[Used]:
        sent = [node.traffic() for node in self._nodes]
        rss = [[0.0, 0.0] for _ in self._nodes]
        slow = len(self.looks) % PSS_EVERY == 0
        self._pss = [0.0 for _ in self._nodes] if slow else self._pss
        for pid, number in self._processes():
            with suppress(OSError):  # It ended.
                used, program = cpu_seconds(pid), self._is_program(pid)
                before, _ = self._seen.get(pid, (0.0, program))
                self._seen[pid] = used, program
                resident = int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE_MIB
                for part in (0, 1) if program else (0,):
                    self._cpu[number][part] += used - before
                    rss[number][part] += resident
                self._pss[number] += pss_mib(pid) if slow else 0.0
        return [
            Used(each.packets, each.ip_bytes, each.payload_bytes(tcp_alone=self._tcp_alone), cpu[0], cpu[1], memory[0], memory[1], pss)
            for each, cpu, memory, pss in zip(sent, self._cpu, rss, self._pss, strict=True)
        ]

    def _processes(self) -> list[tuple[int, int]]:
        """All of them with the number of their node, but for those that only sleep there."""
        sleepers, found = {node.pid for node in self._nodes}, []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit() and int(entry.name) not in sleepers:
                with suppress(OSError):  # It ended.
                    number = self._number.get(namespace_of(entry.name))
                    found += [] if number is None else [(int(entry.name), number)]
        return found

    def _is_program(self, pid: int) -> bool:
        return self._seen[pid][1] if pid in self._seen else PROGRAM in Path(f"/proc/{pid}/cmdline").read_bytes()


def pss_mib(pid: int) -> float:
    rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
    return sum(int(line.split()[1]) for line in rollup.splitlines() if line.startswith("Pss:")) / 1024


# What is made of it.


def series(looks: Sequence[tuple[float, Sequence[Used]]]) -> dict[str, list[float]]:
    """Of all nodes together, one number per look but the first: rates since the look before, and memory."""
    rows = [(at, _rates(before, used, at - earlier)) for (earlier, before), (at, used) in pairwise(looks)]
    return {"at": [round(at, 2) for at, _ in rows], **{name: [round(row[name], 4) for _, row in rows] for name in SERIES}}


def per_node(looks: Sequence[tuple[float, Sequence[Used]]], since: float, until: float) -> dict[str, list[float]]:
    """Of each node: the rates between two instants, and the memory on average."""
    within = [(at, used) for at, used in looks if since <= at <= until]
    (began_at, first), (ended_at, last) = within[0], within[-1]
    rates = [_rates([one], [other], ended_at - began_at) for one, other in zip(first, last, strict=True)]
    means = {name: [fmean(getattr(used[number], name) for _, used in within) for number in range(len(first))] for name in SERIES[5:]}
    return {name: [round(each, 4) for each in means.get(name) or [row[name] for row in rates]] for name in SERIES}


def _rates(before: Sequence[Used], after: Sequence[Used], seconds: float) -> Row:
    def grown(name: str) -> float:
        used: float = sum(getattr(latter, name) - getattr(former, name) for former, latter in zip(before, after, strict=True))
        return used / seconds

    return {
        "kbit": grown("ip_bytes") / KILOBIT,
        "payload_kbit": grown("payload_bytes") / KILOBIT,
        "packets": grown("packets"),
        "cpu_percent": 100 * grown("cpu"),  # of one core
        "program_cpu_percent": 100 * grown("program_cpu"),
        **{name: sum(getattr(each, name) for each in after) for name in SERIES[5:]},
    }


def summary(found: Mapping[str, Sequence[float]], since: float, until: float) -> dict[str, Any]:
    """Of a stretch of a series: mean and spread of each, and what of memory was above it before."""
    within = [number for number, at in enumerate(found["at"]) if since <= at <= until]
    of = {name: [found[name][number] for number in within] for name in SERIES}
    numbers: dict[str, Any] = {name: round(fmean(values), 4) for name, values in of.items()}
    numbers["kbit_std"] = round(pstdev(of["kbit"]), 4)
    warm = [value for at, value in zip(found["at"], found["rss_mib"], strict=True) if at < since]
    return {**numbers, "seconds": len(within), "warm_rss_mib_max": max(warm)}
