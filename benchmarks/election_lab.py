"""What `election` measures in the lab: the messages of elections without failures, and how soon 1000 members know who leads."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.harness import show_progress
from holdfast.events import Event, LeaderChanged
from holdfast.features.election.lab.clients import Client
from holdfast.features.election.lab.experiments.message_counts import OURS, count
from holdfast.features.election.lab.live import LENGTH, LiveGroup
from holdfast.features.election.protocol.elections import Elections
from holdfast.features.election.protocol.facts import Elected, Initiated
from holdfast.lab.host import LabHost

LOSS = 0.01
CANDIDATES = 16
MEASURED = 35.0  # seconds after the start: before that a member asks all it lists (election 5.1)
AFTER = 20.0  # seconds that an election is watched; all know by then, or it says so
ALMOST = 0.95  # of the members: all that lost no datagram
SEED = 1


class Lab(NamedTuple):
    """How much of it."""

    members: int = 1000
    elections: int = 5
    counted: tuple[int, ...] = (5, 16, 64)  # members of the groups whose messages are counted
    cs: tuple[int, ...] = (0, 2, 5, 13)
    fs: tuple[int, ...] = (0, 1, 3)


class Timed(LiveGroup):
    """The stack that ships. For each name: when the first election began, and which reign each member holds since when."""

    def __init__(self, seed: int, members: int) -> None:
        self.began: dict[str, float] = {}
        self.knows: dict[str, dict[str, tuple[int, float]]] = {}
        super().__init__(seed, members, voters="none", loss=LOSS, candidates=min(CANDIDATES, members // 2))

    def ask(self, name: str) -> None:
        """All candidates stand for this name, too."""
        for candidate in self.candidates:
            host = self.host(candidate)
            self.world.step(host, lambda: host.node.use(Elections).campaign(name, LENGTH, Client(host, name, LENGTH)))  # noqa: B023 - run here

    def _on_event(self, host: LabHost, event: Event) -> None:
        super()._on_event(host, event)
        if isinstance(event, Initiated):
            self.began.setdefault(event.name, self.world.now)
        elif isinstance(event, LeaderChanged):
            self.knows.setdefault(event.name, {})[host.me.name] = event.token, self.world.now
        elif isinstance(event, Elected):
            self.knows.setdefault(event.name, {})[host.me.name] = event.term, self.world.now


def measure(lab: Lab, folder: Path) -> dict[str, Any]:
    del folder
    show_progress("messages are counted")
    cells = [
        count({"way": OURS, "members": members, "c": c, "f": f, "seed": c * 100 + f})
        for members in lab.counted
        for c in lab.cs
        for f in lab.fs
        if c + f + 1 < members
    ]
    return {"counts": _counts(cells), "elect": _elect(lab)}


def _counts(cells: list[Any]) -> dict[str, float]:
    shares = [cell["unicasts"] / cell["expected"] for cell in cells]
    return {"elections": len(cells), "least": min(shares), "most": max(shares), "multicasts": max(cell["multicasts"] for cell in cells)}


def _elect(lab: Lab) -> dict[str, Any]:
    """Elections of a group that measures its lists already, one after the other."""
    group = Timed(SEED, lab.members)
    group.run(MEASURED)
    found = []
    for number in range(lab.elections):
        show_progress(f"{lab.members} members in the lab: election {number + 1} of {lab.elections}")
        name = f"name{number}"
        group.ask(name)
        group.run(AFTER)
        found.append(_told(group.began[name], group.knows[name], lab.members))
    return {"members": lab.members, "timeout": group.timeout, "elections": found}


def _told(began: float, knows: Mapping[str, tuple[int, float]], members: int) -> dict[str, Any]:
    """Seconds until the reign was known that is the newest one: to almost all, and to all; None: it was not in that time."""
    newest = max(token for token, _ in knows.values())
    times = sorted(at - began for token, at in knows.values() if token == newest)
    enough = round(ALMOST * members)
    return {"almost": times[enough - 1] if len(times) >= enough else None, "all": times[-1] if len(times) == members else None}
