"""What one led name adds to the packets of agents that gossip, for `election`: without clients, and with one each that asks, in turns."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from benchmarks.harness import show_progress
from benchmarks.leadership_installation import HOLDFAST, Agents, Candidate
from benchmarks.leadership_record import Recorder
from benchmarks.membership_side import Traffic, loopback
from benchmarks.ring_fleet import now


class Idle(NamedTuple):
    """How much of it."""

    members: int = 16
    turns: int = 2  # of each that count, behind one that does not: agents that have just met say more
    seconds: float = 24.0
    settled: float = 5.0  # seconds until what was said because clients came or went has been said


class Electors:
    """Agents, and their clients while they have some."""

    def __init__(self, agents: Agents, recorder: Recorder, count: int) -> None:
        self._agents, self._recorder, self._count = agents, recorder, count
        self._clients: list[Candidate] = []
        for number in range(count):
            agents.launch(number)
        agents.until_whole()

    def lead(self) -> float:
        """A client of each asks; seconds from the first ask until the first deed."""
        began_at = now()
        self._clients = [self._agents.with_client(number) for number in range(self._count)]
        pids = {client.worker for client in self._clients}
        first = self._recorder.until(lambda record: record.next_after(began_at, but=0), "a client leads")
        self._recorder.until(lambda record: pids <= record.standing.keys() or None, "all clients ask")
        return first.first_at - min(at for pid, at in self._recorder.record.standing.items() if pid in pids)

    def quit(self) -> None:
        for client in self._clients:
            client.kill(alone=True)
        self._clients = []


def measure(idle: Idle, folder: Path) -> dict[str, Any]:
    with ExitStack() as stack:
        recorder = stack.enter_context(Recorder(folder / "r"))
        agents = Agents(HOLDFAST["elected"], idle.members, recorder.path, folder)
        stack.callback(agents.end)
        electors = Electors(agents, recorder, idle.members)
        stack.callback(electors.quit)
        found: dict[str, list[Mapping[str, float]]] = {"alone": [], "led": []}
        asked: list[float] = []
        for turn in range(idle.turns + 1):
            show_progress(f"idle, turn {turn} of {idle.turns}")
            found["alone"].append(_calm(idle))
            asked.append(electors.lead())
            found["led"].append(_calm(idle))
            electors.quit()
    rates = {what: median(each["packets"] for each in turns[1:]) for what, turns in found.items()}
    return {**found, "packets": rates, "added": rates["led"] - rates["alone"], "asked": asked, "own_network": os.getpid() == 1}


def _calm(idle: Idle) -> dict[str, float]:
    """IP packets and bytes that a member sends per second."""
    time.sleep(idle.settled)
    began_at, before = now(), loopback()
    time.sleep(idle.seconds)
    after, took = loopback(), now() - began_at
    return {what: (getattr(after, what) - getattr(before, what)) / took / idle.members for what in Traffic._fields}
