"""Three agents whose membership is gossip, clients that lead by election, and what is known of it everywhere."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import holdfast.sync
from holdfast.cli.demo.fleet import free_ports
from holdfast.sync import Group
from tests.cli.recorder import WORKER, Record
from tests.support.agents import AgentProcess, Fleet, until

AGENTS = 3
PROBE = 0.2  # T of the preset ``local``
HOLD = 2 * PROBE
WAIT = 60.0  # seconds; a machine that is late is late by less


class Electors:
    """Agents ``e0``, ``e1``, ``e2``, all of them seeds, and so seats. Each has a client that only looks."""

    def __init__(self, folder: Path) -> None:
        self.fleet = Fleet(folder, membership="gossip")
        self.ports = free_ports(AGENTS)
        self.agents = [self.start(number) for number in range(AGENTS)]
        self.groups = [self.join(number) for number in range(AGENTS)]
        for group in self.groups:
            until(lambda group=group: len(group.members) == AGENTS, "all list all")  # type: ignore[misc]

    def start(self, number: int) -> AgentProcess:
        """This agent, or its next life."""
        home = self.fleet.folder / f"home{number}"
        seeds = [f"127.0.0.1:{port}" for port in self.ports]
        bind, http = seeds[number], "127.0.0.1:0" if number == 0 else None
        return self.fleet.start(name=f"e{number}", bind=bind, seeds=seeds, http=http, runtime=home, state_dir=str(home / "state"))

    def restart(self, number: int) -> None:
        self.agents[number] = self.start(number)
        self.groups[number] = self.join(number)
        for group in self.groups:
            until(lambda group=group: len(group.members) == AGENTS, "all list all again")  # type: ignore[misc]

    def join(self, number: int) -> Group:
        return holdfast.sync.join(agent=self.agents[number].socket)

    def run(
        self, number: int, name: str, path: Path, *worker: object, flags: tuple[str, ...] = ()
    ) -> tuple[subprocess.Popen[bytes], Record]:
        """A command that ends with the reign of this agent."""
        record = Record(path)
        words = [sys.executable, "-m", "holdfast", "run", "--agent", self.agents[number].socket, "--lead", name, "--by", "election"]
        command = [sys.executable, "-S", "-E", *map(str, (WORKER, record.path, *worker))]
        return subprocess.Popen([*words, "--", *command], stderr=subprocess.PIPE), record

    def agreed(self, name: str, *numbers: int) -> tuple[str, int] | None:
        """(member, token), if these agents know the same active leader."""
        found: list[Any] = [self.groups[number].leader(name) for number in numbers or range(AGENTS)]
        if any(each is None or each.state != "active" for each in found) or len({each[:2] for each in found}) != 1:
            return None
        return found[0].name, found[0].token

    def until_agreed(self, name: str, *numbers: int) -> tuple[str, int]:
        until(lambda: self.agreed(name, *numbers), f"all know one leader of {name}", WAIT)
        found = self.agreed(name, *numbers)
        assert found is not None
        return found

    def close(self) -> None:
        for group in self.groups:
            group.leave()
