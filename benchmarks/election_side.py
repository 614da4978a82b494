"""Real agents for `election`: ``python -m benchmarks.election_side holdfast elected MEMBERS SETTINGS``, orders as in ``leadership_side``.

All agents start at once. A kill tells when the others listed the killed one as dead, too, and there are two orders more:

    {"do": "asks", "count": 20}         so many other names, one after the other: how long from the ask of a client until it leads?
    {"do": "first"}                     the first leader: how long after the last agent was started, and after the first client asked?
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from random import Random
from statistics import median
from typing import Any, NamedTuple, cast

from benchmarks.agent_fleet import AgentProcess
from benchmarks.leadership_installation import GROUP, Agents, Candidate
from benchmarks.leadership_side import Side, Takeover, main
from benchmarks.ring_fleet import PATIENCE, NeverHappened, now
from holdfast import sync
from holdfast.client.line import Line
from holdfast.errors import AgentLost
from holdfast.events import Decided
from holdfast.host import NodeId
from holdfast.local import calls
from holdfast.local.leaders import ELECTION
from holdfast.local.news import event_of


class Death(NamedTuple):
    """An agent lists a life as dead."""

    at: float  # when its client read of it
    observer: int
    life: NodeId


class Deaths:
    """What clients of all agents are told of dead members, each read by a thread of its own."""

    def __init__(self) -> None:
        self.told: list[Death] = []

    def watch(self, number: int, agent: AgentProcess) -> None:
        """Until the agent ends."""
        line = Line(agent.socket)
        threading.Thread(target=self._listen, args=(number, line), daemon=True).start()

    def of(self, life: NodeId) -> list[Death]:
        return [death for death in [*self.told] if death.life == life]

    def _listen(self, number: int, line: Line) -> None:
        with suppress(AgentLost):
            for item in line.stream(calls.Watch):
                event = event_of(item) if item.name == Decided.__name__ else None
                if isinstance(event, Decided):
                    self.told.append(Death(now(), number, event.member.id))
        line.close()


class ElectionSide(Side):
    """Agents that gossip, and clients that lead by election."""

    def start(self, count: int) -> dict[int, Candidate]:
        assert isinstance(self._it, Agents)
        self._deaths = Deaths()
        self._lives: dict[int, NodeId] = {}
        for number in range(count):
            self._it.launch(number)
        self.started_at = now()
        candidates = {number: self._it.with_client(number) for number in range(count)}
        for number, candidate in candidates.items():
            self._look_at(number, candidate)
        return candidates

    @property
    def acts(self) -> Mapping[str, Callable[..., dict[str, Any]]]:
        return {**super().acts, "asks": self.asks, "first": self.first}

    def first(self) -> dict[str, Any]:
        record = self._recorder.record
        reign, asked_at = record.reigns[0], min(record.standing.values())
        return {"started": reign.first_at - self.started_at, "asked": reign.first_at - asked_at}

    def kill(self, delay: float, *, reign: float = 0.0, alone: bool = False) -> dict[str, Any]:
        """Seconds after the kill. ``dead`` is of the first of the others that lists it as dead, ``dead_next`` of the next leader's agent,
        if that did at all."""
        lives = dict(self._lives)
        it = self.take_over(delay, reign, alone=alone)
        self._look_at(it.number, self.candidates[it.number])
        told = self._deaths.of(lives[it.number])
        if not told:
            raise NeverHappened(f"never happened: an agent lists {lives[it.number]} as dead")
        next_one = self._number_of(it)
        of_next = [death.at for death in told if death.observer == next_one]
        return {
            "failover": it.successor.first_at - it.killed_at,
            "dead": min(death.at for death in told) - it.killed_at,
            "dead_median": median(death.at for death in told) - it.killed_at,
            "dead_next": min(of_next) - it.killed_at if of_next else None,
            "listed": len(told),
            "number": it.number,
            "next": next_one,
        }

    def asks(self, count: int, seed: int) -> dict[str, Any]:
        """A client that is connected asks for a name that no other asks for."""
        random, took = Random(f"{seed} asks"), []
        for number in range(count):
            agent = cast("AgentProcess", self.candidates[random.randrange(len(self.candidates))].processes[0])
            with sync.join(GROUP, agent=agent.socket) as group:
                asked_at = now()
                with group.lead(f"name{number}", by=ELECTION, timeout=PATIENCE):
                    took.append(now() - asked_at)
        return {"took": took}

    def _look_at(self, number: int, candidate: Candidate) -> None:
        agent = cast("AgentProcess", candidate.processes[0])
        self._lives[number] = agent.ask_welcome().agent
        self._deaths.watch(number, agent)

    def _number_of(self, it: Takeover) -> int | None:
        """The candidate that leads after it."""
        return next((number for number, each in self.candidates.items() if each.worker == it.successor.pid), None)


if __name__ == "__main__":
    main(ElectionSide)
