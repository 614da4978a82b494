"""What must hold of phases and quorums at every step.  Spec: foundation 4 (Call / Phase), ring D4, tickets D18."""

from __future__ import annotations

from holdfast.events import Event
from holdfast.host import NodeId
from holdfast.lab.checker import Checker
from holdfast.lab.host import LabHost
from holdfast.lab.kit.ballots import ASK_TIMEOUT, WON, BallotEnded, BallotOpened
from holdfast.lab.world import World


class OneWinner(Checker):
    """A ballot is won by at most one life."""

    name = "one-winner"

    def __init__(self) -> None:
        self.winners: dict[int, NodeId] = {}

    def on_event(self, world: World, host: LabHost, event: Event) -> None:
        if isinstance(event, BallotEnded) and event.outcome == WON and self.winners.setdefault(event.ballot, host.me) != host.me:
            self.fail(f"{host.me} won ballot {event.ballot}, which {self.winners[event.ballot]} had won")


class VotesAreDurable(Checker):
    """A candidate that counts a yes can rely on it: at that moment it is on the voter's disk, whatever happens to the voter next."""

    name = "votes-are-durable"

    def on_event(self, world: World, host: LabHost, event: Event) -> None:
        if not isinstance(event, BallotEnded):
            return
        for voter in event.yes:
            vote = world.disks[voter].load("ballots/").get(str(event.ballot), b"nobody").decode()
            if vote != str(host.me):
                self.fail(f"{host.me} counts the vote of {voter} in ballot {event.ballot}; on its disk it is for {vote}")


class EndsOnce(Checker):
    """Every question of a life that goes on ends once, under a serial of its own, at its timeout or before.

    ``late_max`` is the longest that a process is stopped: what is due meanwhile happens when it goes on.
    """

    name = "ends-once"

    def __init__(self, late_max: float) -> None:
        self._late_max = late_max
        self._open: dict[tuple[NodeId, int], float] = {}
        self._serials: dict[NodeId, int] = {}

    def on_event(self, world: World, host: LabHost, event: Event) -> None:
        if isinstance(event, BallotOpened):
            if event.serial <= self._serials.get(host.me, 0):
                self.fail(f"{host.me} used serial {event.serial} again")
            self._serials[host.me] = event.serial
            self._open[host.me, event.serial] = host.now
        elif isinstance(event, BallotEnded) and self._open.pop((host.me, event.serial), None) is None:
            self.fail(f"{host.me} ended question {event.serial} twice")

    def after(self, world: World, host: LabHost | None) -> None:
        if host is None or not host.running:
            return
        for (life, serial), opened_at in self._open.items():
            if life == host.me and host.now - opened_at > ASK_TIMEOUT + self._late_max:
                self.fail(f"{host.me} has question {serial} open for {host.now - opened_at:g} s; the timeout is {ASK_TIMEOUT:g} s")
