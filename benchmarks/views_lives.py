"""Joins, crashes and killed seats for `views`: real agents, and a client of each member that reads what is said of views."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from benchmarks.harness import show_progress
from benchmarks.ring_fleet import now
from benchmarks.views_fleet import HEARTBEATS, Client, Told, ViewFleet
from holdfast.features.views.calls import LOST, NOW, RESTORED, VIEW

ROUNDING = 4
NEWS = (NOW, VIEW, RESTORED)  # items that say which view there is


class Lives(NamedTuple):
    """How much of it."""

    preset: str = "lan"
    seats: int = 3
    members: int = 9
    joins: int = 20
    crashes: int = 20
    kills: int = 100  # of seats
    seed: int = 1


def measure(size: Lives, folder: Path) -> dict[str, Any]:
    fleet = ViewFleet(folder, size.seats, size.members, preset=size.preset)
    try:
        fleet.begin()
        trial = Trial(fleet, size)
        first = [trial.first_join(name) for name in fleet.members]
        joins = [trial.join(number) for number in range(size.joins)]
        crashes = [trial.crash(number) for number in range(size.crashes)]
        killed = [trial.kill_seat(number, size.kills) for number in range(size.kills)]
        return {"first_joins": first, "joins": joins, "crashes": crashes, "kills": killed}
    finally:
        fleet.end()


class Trial:
    """One fleet, and what is done to it."""

    def __init__(self, fleet: ViewFleet, size: Lives) -> None:
        self._fleet, self._random = fleet, Random(f"{size.seed} lives")
        self._heartbeat = HEARTBEATS[size.preset]

    def first_join(self, name: str) -> dict[str, float]:
        """In the life of this agent: it imports what views need, and if it is the first one of the group the seats do as well."""
        show_progress(f"{name} joins")
        return self._joined(name)

    def join(self, number: int) -> dict[str, float]:
        name = self._member(number)
        show_progress(f"join {number + 1}")
        self._fleet.withdraw(name)
        self._fleet.until_whole(f"a view without {name}")
        self._wait()
        return self._joined(name)

    def crash(self, number: int) -> float:
        """Seconds until the client of the last one has read of a view without it."""
        name = self._member(number)
        show_progress(f"crash {number + 1}")
        self._wait()
        at = self._fleet.kill(name)
        self._fleet.until_whole(f"a view without {name}")
        took = max(_read_at(client, at) for client in self._fleet.clients.values()) - at
        self._back(name)
        return round(took, ROUNDING)

    def kill_seat(self, number: int, of: int) -> dict[str, Any]:
        """The seat with the most clients."""
        show_progress(f"seat {number + 1} of {of}")
        fleet = self._fleet
        self._wait()
        fleet.until_whole()
        served = {seat: self._clients_of(seat) for seat in fleet.seats}
        seat = max(served, key=lambda seat: len(served[seat]))
        clients, others = served[seat], [each for each in fleet.clients.values() if each not in served[seat]]
        at = fleet.kill(seat)
        fleet.until_whole(f"a view without the server {seat}")
        took = max(_read_at(client, at) for client in fleet.clients.values()) - at
        found = {
            "clients": len(clients),
            "lost": sum(lost(client.since(at)) for client in clients),
            "spare": round(min(spare(client.told, at) for client in clients), ROUNDING),
            "others_lost": sum(lost(client.since(at)) for client in others),
            "seconds": round(took, ROUNDING),
        }
        again_at = now()
        fleet.start(seat)
        fleet.until_whole(f"a view with the server {seat}")
        return {**found, "lost_later": sum(lost(client.since(again_at)) for client in fleet.clients.values())}

    def _joined(self, name: str) -> dict[str, float]:
        client = self._fleet.ask(name)
        self._fleet.until_whole(f"a view with {name}")
        all_at = max(_read_at(each, client.asked_at) for each in self._fleet.clients.values())
        return {
            "own": round(client.joined_at - client.asked_at, ROUNDING),
            "all": round(all_at - client.asked_at, ROUNDING),
        }

    def _back(self, name: str) -> None:
        self._fleet.start(name)
        self._fleet.ask(name)
        self._fleet.until_whole(f"{name} is back")

    def _wait(self) -> None:
        """What follows has nothing to do with heartbeats."""
        self._fleet.pass_time(self._random.uniform(0, 2 * self._heartbeat))

    def _member(self, number: int) -> str:
        return self._fleet.members[number % len(self._fleet.members)]

    def _clients_of(self, seat: str) -> list[Client]:
        """Those that the view says are attached to it."""
        life, clients = self._fleet.lives[seat], [*self._fleet.clients.values()]
        view = clients[0].view
        assert view is not None
        attached = {member.id for member in view.members if member.server == life}
        return [client for client in clients if client.life in attached]


def _read_at(client: Client, since: float) -> float:
    """When it read of the view that it has now, if that was later."""
    found = [each.at for each in client.since(since) if each.what in NEWS]
    return found[-1] if found else since


def lost(told: Sequence[Told]) -> bool:
    return any(each.what == LOST for each in told)


def spare(told: Sequence[Told], since: float) -> float:
    """Seconds that the lease of the former view still had, as its client knew it, when the client read of the next view."""
    until = max(each.leased_until for each in told if each.at <= since)
    for each in told:
        if each.at > since and each.what in NEWS:
            return until - each.at
        until = max(until, each.leased_until)
    raise AssertionError("it was told of no view since then")
