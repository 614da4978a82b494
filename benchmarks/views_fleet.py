"""Agents for `views`: seats and members, each with a loopback address of its own, and what clients are told of views.

Everything is read by the thread that waits: an item of a stream is stamped when it was read, and while something is
measured nothing else is done than to read.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import socket
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import count
from math import inf
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.agent_fleet import AgentProcess
from benchmarks.leadership_side import LOOPBACK_UP
from benchmarks.ring_fleet import PATIENCE, NeverHappened, now
from holdfast.client.line import Line
from holdfast.client.wire import ITEMS
from holdfast.errors import AgentLost
from holdfast.features.views.calls import WatchViews
from holdfast.features.views.client_base import ViewMirror
from holdfast.features.views.protocol.client import in_order
from holdfast.host import Address, NodeId, View, ViewState
from holdfast.kit.slots import Slot, find_slots

HEARTBEATS = {"local": 0.1, "lan": 0.25}  # of views, in these presets
LOOK = 0.02  # seconds between two looks whether something holds, while clients are told nothing
TABLE = "add table inet views; add chain inet views arriving { type filter hook input priority 0; }"
HEAL = "flush chain inet views arriving"


class Told(NamedTuple):
    """One item of a stream, when it was read, and how the agent stood with its view."""

    at: float
    what: str
    state: ViewState
    leased_until: float


class Client:
    """One client of an agent that asks for views. The agent takes part until it is closed."""

    def __init__(self, agent: AgentProcess) -> None:
        self._line = Line(agent.socket)
        self._decode = ITEMS[WatchViews]
        self.mirror = ViewMirror()
        self.told: list[Told] = []
        self.life: NodeId = self._line.welcome.agent
        self.asked_at = now()
        self._line.open(WatchViews, sink=self)

    @property
    def view(self) -> View | None:
        """The one that is leased, and that no change is known of."""
        standing = self.mirror.standing
        return standing.view if standing.state is ViewState.STABLE and standing.leased else None

    @property
    def joined_at(self) -> float:
        """When it first read of a leased and stable view. A view lists the agent that installs it (views CB3)."""
        found = (each.at for each in self.told if each.state is ViewState.STABLE and each.leased_until > each.at)
        return next(found, inf)

    def since(self, at: float) -> list[Told]:
        return [each for each in self.told if each.at > at]

    def read(self) -> None:
        """What it is told now; nothing if the agent is gone."""
        with suppress(AgentLost):
            self._line.read(0)

    def fileno(self) -> int:
        return self._line.fileno()

    @property
    def lost(self) -> bool:
        return self._line.lost

    def close(self) -> None:
        self._line.close()

    # A ``Sink``.

    def push(self, item: Any) -> None:
        found = self._decode(item)
        self.mirror.follow(found)
        standing = self.mirror.standing
        self.told.append(Told(now(), found.what, standing.state, standing.leased_until))

    def end(self, error: Exception | None) -> None:
        """What was told last stands until its deadline."""


class ViewFleet:
    """Seats and members by name. The names of the members are such that each seat is the first server of as many of them."""

    def __init__(self, folder: Path, seats: int, members: int, *, first: int = 0, **settings: Any) -> None:
        """``first``: so many addresses belong to agents of another fleet."""
        self.folder, self._settings = folder, settings
        self.seats = [f"s{number}" for number in range(seats)]
        self.addresses = {name: free_address(first + number) for number, name in enumerate(self.seats, 1)}
        self.seeds = [*self.addresses.values()]
        self.slots = slots_of(self.seeds)
        self.members = spread(self.slots, members)
        self.addresses.update({name: free_address(first + seats + number) for number, name in enumerate(self.members, 1)})
        self.agents: dict[str, AgentProcess] = {}
        self.lives: dict[str, NodeId] = {}
        self.clients: dict[str, Client] = {}
        self._homes = count()

    def begin(self) -> None:
        """A client whose first server does not run yet would attach to another one."""
        for names in (self.seats, self.members):
            for name in names:
                self.launch(name)
            for name in names:
                self.until_it_answers(name)

    def start(self, name: str) -> None:
        """The next life of an agent."""
        self.launch(name)
        self.until_it_answers(name)

    def launch(self, name: str) -> None:
        home, state = self.folder / f"h{next(self._homes)}", str(self.folder / f"state-{name}")
        self.agents[name] = AgentProcess(
            home, name=name, bind=self.addresses[name], seeds=self.seeds, state_dir=state, **self._settings,
        )  # fmt: skip

    def until_it_answers(self, name: str) -> None:
        self.lives[name] = self.agents[name].until_it_answers().agent

    def kill(self, name: str) -> float:
        """-9, waited for; the instant before it."""
        at = now()
        self.agents[name].end()
        del self.lives[name]
        if name in self.clients:
            self.clients.pop(name).close()
        return at

    def ask(self, name: str) -> Client:
        """A client of this agent asks for views."""
        client = self.clients[name] = Client(self.agents[name])
        return client

    def withdraw(self, name: str) -> None:
        self.clients.pop(name).close()

    def end(self) -> None:
        for client in self.clients.values():
            client.close()
        for agent in self.agents.values():
            agent.end()

    # What clients are told.

    def is_whole(self) -> bool:
        """All clients are in one leased and stable view: of their agents and no others, with all living seats as servers."""
        views = [client.view for client in self.clients.values()]
        first = views[0] if views else None
        if first is None or any(view is None or view.id != first.id for view in views):
            return False
        servers = {self.lives[name] for name in self.seats if name in self.lives}
        return set(first.servers) == servers and {member.id for member in first.members} == {self.lives[name] for name in self.clients}

    def until_whole(self, what: str = "one view of all clients") -> None:
        self.until(self.is_whole, what)

    def until(self, holds: Callable[[], object], what: str) -> None:
        end_at = now() + PATIENCE
        while not holds():
            if now() >= end_at:
                raise NeverHappened(f"never happened: {what}; {self.story()}")
            for name in self.lives:
                self.agents[name].check()
            self.listen(LOOK)

    def listen(self, seconds: float) -> None:
        """Read what clients are told, until they were told something or the time is over."""
        lines = [client for client in self.clients.values() if not client.lost]
        readable, _, _ = select.select(lines, [], [], seconds)
        for client in readable:
            client.read()

    def pass_time(self, seconds: float) -> None:
        """Let time pass, and read meanwhile."""
        end_at = now() + seconds
        while (left := end_at - now()) > 0:
            self.listen(left)

    def story(self) -> str:
        """For a failure: the view of each client."""
        standing = {name: client.mirror.standing for name, client in self.clients.items()}
        return ", ".join(f"{name} {each.word} {'' if each.view is None else each.view.id}" for name, each in standing.items())


def slots_of(seeds: Sequence[str]) -> tuple[Slot, ...]:
    """As agents with these seeds and a key have them; none without seeds."""
    return find_slots(seats=(), seeds=seeds, key=True, loopback=True, own_name="", own_address=Address("", 0)) if seeds else ()


def names_at(slots: Sequence[Slot], number: int, stem: str = "m") -> Iterator[str]:
    """Names of agents that ask this seat first."""
    return (name for name in map(f"{stem}{{}}".format, count()) if in_order(name, slots, None)[0].number == number)


def spread(slots: Sequence[Slot], many: int) -> list[str]:
    """So many names; each seat in turn is asked first."""
    if not slots:
        return [f"m{number}" for number in range(many)]
    found = [names_at(slots, slot.number) for slot in slots]
    return [next(found[number % len(slots)]) for number in range(many)]


def free_address(number: int) -> str:
    """A loopback address of its own, and a port of it without a listener."""
    host = f"127.0.2.{number}"
    with socket.socket() as each:
        each.bind((host, 0))
        return f"{host}:{each.getsockname()[1]}"


# The network, where this process has one of its own.


def can_cut() -> bool:
    return os.getpid() == 1 and shutil.which("nft") is not None


def begin_network() -> None:
    """The first process of namespaces of its own finds loopback down."""
    if os.getpid() == 1:
        subprocess.run(LOOPBACK_UP, check=True)
    if can_cut():
        nft(TABLE)


def cut(one: str, other: str) -> None:
    """Between two addresses, both ways."""
    for sender, receiver in ((one, other), (other, one)):
        source, destination = (address.rpartition(":")[0] for address in (sender, receiver))
        nft(f"add rule inet views arriving ip saddr {source} ip daddr {destination} drop")


def heal() -> None:
    nft(HEAL)


def nft(rules: str) -> None:
    subprocess.run(["nft", rules], check=True, capture_output=True)


def say(answer: Any) -> None:
    """A line for the process that started this one."""
    print(json.dumps(answer), flush=True)
