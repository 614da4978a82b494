"""A group with three seats, and clients that hold its tickets. Agents, records and waiting are those of
``tests.features.leadership.process.fleet``.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.agent.lock_fleet import ROOT, Record
from tests.features.leadership.process.fleet import LeadBody, Leads
from tests.support.agents import AgentProcess

LEASE = 2.4  # seconds: nobody shall lose a ticket because the machine under test is busy; seats of the preset grant up to 3 s
ROUND = 0.3


class TicketBody(LeadBody):
    """A client process that wants one of ``of`` tickets."""

    def __init__(self, agent: AgentProcess, path: Path, pool: str, of: int, manner: str) -> None:
        words = [sys.executable, "-m", "tests.features.tickets.process.body", agent.socket, pool, str(path), str(of), manner]
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, cwd=ROOT)
        self._path, self._of = path, of

    @property
    def record(self) -> Record:  # type: ignore[override]
        """Of the ticket that it got; of the first one as long as it has none."""
        return Record(Path(f"{self._path}.{self.number}"))

    @property
    def number(self) -> int:
        mine = [number for number in range(self._of) if Record(Path(f"{self._path}.{number}")).lines("", self.pid)]
        return mine[0] if mine else 0


class TicketFleet(Leads):
    """Agents of one group and the clients of one test."""

    def __init__(self, *parts: object) -> None:
        super().__init__(*parts)  # type: ignore[arg-type]
        self.fleet.settings |= {"ticket_lease": LEASE, "ticket_round": ROUND}

    def body(self, agent: AgentProcess, name: str, *, grace: float = 0.0, manner: str = "polite", of: int = 1) -> TicketBody:
        """``grace`` is of leaderships."""
        body = TicketBody(agent, self.folder / f"{name}.record", name, of, manner)
        self.bodies.append(body)
        return body
