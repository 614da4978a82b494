"""What must come about when the faults are over: one view per group of servers, and all its members reach one another.

Spec: views 1 (G4), 5.3, 7 (CB7, CB10). What is expected is found from which processes live and which servers have a link, not from what
servers computed. While something is in quarantine (views D13) the time does not count: the network is not what it seems.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping
from itertools import combinations, permutations
from math import inf

from holdfast.events import Event
from holdfast.features.views.lab.users import Answered, ViewUser
from holdfast.features.views.protocol.config import ViewsConfig
from holdfast.features.views.protocol.facts import Delivered
from holdfast.features.views.protocol.survey import ViewSurvey
from holdfast.features.views.protocol.views import ViewNode
from holdfast.host import Carried, NodeId, View, ViewState
from holdfast.lab.checker import Checker
from holdfast.lab.host import LabHost
from holdfast.lab.violation import Violation
from holdfast.lab.world import World

PATIENCE = 60  # heartbeats: the 15 s of CB7 at ``lan`` numbers
QUARANTINED = "quarantined"

Graph = Mapping[NodeId, Collection[NodeId]]
Linked = Callable[[str, str], bool]
Pair = tuple[str, str]


def all_linked(one: str, other: str) -> bool:
    return True


class Convergence(Checker):
    """CB7 and CB10. It looks when it is asked (``why``), after the faults."""

    name = "CB7 convergence"

    def __init__(self, config: ViewsConfig, linked: Linked = all_linked, late: float = 0.0) -> None:
        """``linked``: two servers have a link when the faults are over. ``late``: seconds that messages of before may still come."""
        self._config, self._linked, self._late = config, linked, late
        self._delivered: dict[LabHost, View] = {}  # the last one
        self._calm_at: float | None = None  # since then nothing is wrong
        self._asked: dict[Pair, tuple[LabHost, int]] = {}  # CB10: who said what to whom
        self._outcomes: dict[tuple[LabHost, int], Carried] = {}
        self.took = 0.0  # seconds until all was well

    @property
    def patience(self) -> float:
        return PATIENCE * self._config.heartbeat

    def on_event(self, world: World, host: LabHost, event: Event) -> None:
        if isinstance(event, Delivered):
            self._delivered[host] = event.view
        elif isinstance(event, Answered) and self._calm_at is not None:
            self._outcomes[host, event.number] = event.outcome

    def why(self, world: World) -> str:
        """Why the group is not yet as it should be; "" if it is. Fails if that takes too long."""
        if self._calm_at is None:
            self._calm_at = world.now + self._late
            for host in world.alive:
                world.step(host, host.node.use(ViewUser).rest)
        found = _Found(world, self._delivered, self._linked, self._config.max_server_hops)
        if found.quarantines:
            self._calm_at = max(self._calm_at, world.now)
        name, why = self.name, found.unconverged()
        if why:
            self._asked.clear()
        else:
            name, why = "CB10 any-to-any", self._unreached(world, found)
        self.took = world.now - self._calm_at
        if why and self.took > self.patience:
            raise Violation(name, f"{self.took:.3f} s after the last fault: {why}")
        return why

    def _unreached(self, world: World, found: _Found) -> str:
        """Every member of every view says something to every other one; what is not delivered is said again."""
        wrong = []
        for one, other in found.pairs():
            pair = one.me.name, other.me.name
            outcome = self._outcomes.get(self._asked[pair]) if pair in self._asked else Carried.BUSY
            if outcome is Carried.DELIVERED:
                continue
            wrong.append(f"{one.me} to {other.me}{'' if outcome is None else ' ' + outcome.name}")
            if outcome is not None:
                self._say(world, one, other, pair)
        return f"{len(wrong)} messages are not delivered, the first one from {wrong[0]}" if wrong else ""

    def _say(self, world: World, one: LabHost, other: LabHost, pair: Pair) -> None:
        def say() -> None:
            self._asked[pair] = one, one.node.use(ViewUser).say(other.me)

        world.step(one, say)


class _Found:
    """One look at a world without faults."""

    def __init__(self, world: World, delivered: Mapping[LabHost, View], linked: Linked, hops_max: int) -> None:
        self._now_of = {host: host.now for host in world.alive}
        self._surveys: dict[LabHost, ViewSurvey] = {host: host.node.use(ViewNode).survey() for host in world.alive}
        self._servers = {host.me: host for host, survey in self._surveys.items() if survey.own is not None}
        self._clients = [host for host in self._surveys if host.node.use(ViewUser).here]
        self._delivered, self._hops_max = delivered, hops_max
        self._graph = self._linked_servers(linked)

    @property
    def quarantines(self) -> bool:
        return any(survey.quarantined or any(link.state == QUARANTINED for link in survey.links) for survey in self._surveys.values())

    def pairs(self) -> Iterator[tuple[LabHost, LabHost]]:
        """All ordered pairs of members of one view."""
        by_view: dict[object, list[LabHost]] = {}
        for host in self._clients:
            view = host.node.use(ViewNode).view
            if view is not None:
                by_view.setdefault(view.id, []).append(host)
        for members in by_view.values():
            yield from permutations(members, 2)

    def unconverged(self) -> str:
        """CB7."""
        if not self._servers:
            return next((f"{each.me} has a view, and no server lives" for each in self._clients if each.node.use(ViewNode).view), "")
        return self._servers_differ() or self._groups_differ() or self._clients_differ()

    def _linked_servers(self, linked: Linked) -> Graph:
        graph: dict[NodeId, set[NodeId]] = {life: set() for life in self._servers}
        for one, other in combinations(self._servers, 2):
            if linked(one.name, other.name) and not (self._is_out(one, other) or self._is_out(other, one)):
                graph[one].add(other)
                graph[other].add(one)
        return graph

    def _is_out(self, one: NodeId, other: NodeId) -> bool:
        """One server has its link with another one in quarantine."""
        address = self._servers[other].address
        return any(link.address == address and link.state == QUARANTINED for link in self._surveys[self._servers[one]].links)

    def _servers_differ(self) -> str:
        """Every server has delivered a view with itself in it, and so have all that are in it."""
        for life, host in self._servers.items():
            view = self._delivered.get(host)
            if view is None:
                return f"{life} has delivered no view"
            if life not in view.servers:
                return f"{life} has delivered {view.id} without itself"
            for other in view.servers:
                theirs = self._delivered.get(self._servers[other]) if other in self._servers else None
                if theirs is None or theirs.id != view.id:
                    return f"{life} has delivered {view.id} with {other}, which has delivered {theirs.id if theirs else 'none'}"
        return ""

    def _groups_differ(self) -> str:
        """Servers that are connected by short paths have one view; where paths are too long, each view's own are short (views D8)."""
        for component in _components(self._graph):
            groups = {self._delivered[self._servers[life]].servers for life in component}
            names = ", ".join(life.name for life in component)
            if any(life not in component for group in groups for life in group):
                return f"a view of {names} has a server that none of them is linked with"
            if _diameter(self._graph, component) <= self._hops_max and len(groups) > 1:
                return f"{names} are in {len(groups)} views"
            for group in groups:
                if _diameter(self._graph, group) > self._hops_max:
                    return f"{', '.join(life.name for life in group)} are in one view, and their paths are too long"
        return ""

    def _clients_differ(self) -> str:
        """All clients count on the view of their server, which lists them and no other client of its servers."""
        attached: dict[NodeId, set[tuple[NodeId, int, NodeId]]] = {}
        for host in self._clients:
            survey = self._surveys[host]
            if survey.server is None or survey.server not in self._servers:
                return f"{host.me} is attached to {survey.server}"
            attached.setdefault(survey.server, set()).add((host.me, survey.attach, survey.server))
        for host in self._clients:
            why = self._client_differs(host, attached)
            if why:
                return f"{host.me} {why}"
        return ""

    def _client_differs(self, host: LabHost, attached: Mapping[NodeId, set[tuple[NodeId, int, NodeId]]]) -> str:
        node, survey = host.node.use(ViewNode), self._surveys[host]
        assert survey.server is not None
        view, wanted = node.view, self._delivered[self._servers[survey.server]]
        if view is None or node.state is not ViewState.STABLE or self._now_of[host] >= node.leased_until:
            return f"is {node.state.name.lower()}"
        if view.id != wanted.id:
            return f"is in {view.id}, and its server {survey.server} has delivered {wanted.id}"
        expected = set().union(*(attached.get(server, set()) for server in view.servers))
        listed = {(member.id, member.attach, member.server) for member in view.members}
        if listed != expected:
            odd = min(listed ^ expected)
            return f"is in {view.id}, where {odd[0]} {'is not attached' if odd in listed else 'is missing'} by {odd[1]} at {odd[2]}"
        return ""


def _components(graph: Graph) -> list[list[NodeId]]:
    left, found = sorted(graph), []
    while left:
        component = sorted(_distances(graph, left[0], graph))
        found.append(component)
        left = [life for life in left if life not in component]
    return found


def _distances(graph: Graph, start: NodeId, among: Collection[NodeId]) -> dict[NodeId, int]:
    found, queue = {start: 0}, deque([start])
    while queue:
        here = queue.popleft()
        for other in graph[here]:
            if other in among and other not in found:
                found[other] = found[here] + 1
                queue.append(other)
    return found


def _diameter(graph: Graph, among: Collection[NodeId]) -> float:
    longest = 0
    for start in among:
        found = _distances(graph, start, among)
        if len(found) < len(among):
            return inf
        longest = max(longest, *found.values())
    return longest
