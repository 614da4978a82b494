"""When is a group that elects as it should be?  Spec: election 7 (E4, E5, E13), 1 (A4, A7)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from holdfast.features.election.protocol.elections import Elections
from holdfast.features.election.protocol.manner import Manner
from holdfast.features.election.protocol.shown import Role
from holdfast.host import Lists, NodeId
from holdfast.kit.seats import Seats, SeatState
from holdfast.lab.checker import Checker
from holdfast.lab.host import LabHost
from holdfast.lab.world import World

HEALED = 10.0  # seconds from lists that agree to one leader whom all know (issue 18)
ListsOf = Callable[[LabHost], Lists]


class Healed(Checker):
    """E4 and E5, asked by the scenario when the faults are over: without a majority there is one leader of each name, known to all, at most
    ten seconds after the lists agree."""

    name = "E4 one-leader"

    def __init__(self, manners: Mapping[str, Manner], lists: ListsOf) -> None:
        self._manners, self._lists = dict(manners), lists
        self._agreed_at: float | None = None
        self.longest = 0.0  # that it took

    def why(self, world: World) -> str:
        """What is not yet as it should be; "" if all is."""
        lists = lists_differ(world, self._lists)
        if lists:
            self._agreed_at = None
        elif self._agreed_at is None:
            self._agreed_at = world.now
        for name, manner in self._manners.items():
            why = disagreement(world, name, manner, self._lists)
            if not why:
                continue
            if self._agreed_at is not None and not manner.fencing and world.now - self._agreed_at > HEALED:
                self.fail(f"{world.now - self._agreed_at:g} s after all lists agree: {why}")
            return why
        if self._agreed_at is not None:
            self.longest = max(self.longest, world.now - self._agreed_at)
        return lists


def lists_differ(world: World, lists: ListsOf) -> str:
    """Whose list is not that of all who run; "" if all are."""
    lives = sorted(host.me for host in world.alive if host.running)
    if len(lives) == 1 and not lists(world.alive[0]).settled(lives[0]):
        return ""  # It is no member, and no process is left that could tell it of the group (gossip 5.7).
    for host in world.alive:
        mine = lists(host)
        if [member.id for member in mine.members()] != lives or not all(map(mine.settled, lives)):
            return f"the list of {host.me} is not that of all who run"
    return ""


def disagreement(world: World, name: str, manner: Manner, lists: ListsOf) -> str:
    """How the living, who all reach each other, differ about who leads; "" if one candidate leads and all know it, or none can."""
    hosts = [host for host in world.alive if host.running and lists(host).settled(host.me)]
    standing = [host for host in hosts if _stands(host, name)]
    leaders = [host.me for host in hosts if _role(host, name) is Role.ACTIVE]
    if len(leaders) > 1:
        return f"E4: {name!r} has {len(leaders)} leaders: {', '.join(map(str, leaders))}"
    if not standing:
        shown = [(host.me, reign.leader) for host in hosts if (reign := host.node.use(Elections).leader(name)) is not None]
        return f"E13: no client asks for {name!r}, and {shown[0][0]} holds {shown[0][1]} to lead" if shown else ""
    if manner.fencing and not able(world, name, manner, hosts, lists):
        return ""
    if not leaders:
        return f"E4: {name!r} has no leader; candidates are {', '.join(str(host.me) for host in standing)}"
    leader = leaders[0]
    for host in hosts:
        state = host.node.use(Elections).state(name)
        if state is None or state.active is None or state.active[1] != leader:
            return f"E5: {host.me} does not know that {leader} leads {name!r}, it has {None if state is None else state.active}"
        if state.active[2]:
            return f"E5: {host.me} holds the reign of {leader} over {name!r} to be over"
    return ""


def able(world: World, name: str, manner: Manner, hosts: Sequence[LabHost], lists: ListsOf) -> bool:
    """Are enough voters here to agree on a term?"""
    if manner.by_seats:
        seats = hosts[0].node.use(Seats)
        serving = [host for host in world.alive if host.running and host.node.use(Seats).state is SeatState.SERVING]
        return 2 * len(serving) > len(seats.slots)
    known = max(len(lists(host).known_names()) for host in hosts)
    needed = known // 2 + 1
    # Who forgot its promises votes when it has heard of as many others as may have voted (5.2).
    forgetful_vote = len(hosts) - 1 >= min(needed, known - 1)
    voters = [host for host in hosts if forgetful_vote or _votes(host, name)]
    return len(voters) >= needed


def _stands(host: LabHost, name: str) -> bool:
    state = host.node.use(Elections).state(name)
    return state is not None and state.stands


def _votes(host: LabHost, name: str) -> bool:
    state = host.node.use(Elections).state(name)
    return state is not None and state.voter


def _role(host: LabHost, name: str) -> Role:
    state = host.node.use(Elections).state(name)
    return Role.FOLLOWER if state is None else state.role


def leader_of(world: World, name: str) -> NodeId | None:
    """The one that leads, if exactly one does."""
    found = [host.me for host in world.alive if _role(host, name) is Role.ACTIVE]
    return found[0] if len(found) == 1 else None
