"""NSView: which servers are together, and which clients are theirs, as one server's link states say.  Spec: views 5.3, D6-D9.

Pure functions of a set of link states. All servers of a group that hold the same ones find the same view, groups and paths.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Collection, Iterable, Mapping
from hashlib import blake2b
from math import inf
from typing import NamedTuple

import msgspec

from holdfast.features.views.protocol.config import CLIENTS_MAX
from holdfast.features.views.protocol.messages import KEY_BYTES, Lsa
from holdfast.host import NodeId, ViewMember

Graph = Mapping[NodeId, tuple[NodeId, ...]]  # neighbours, sorted


class NSView(NamedTuple):
    """What one server would deliver now. ``digest`` stands for servers and members in proposals."""

    servers: tuple[NodeId, ...]  # sorted
    members: tuple[ViewMember, ...]  # sorted
    digest: bytes
    steps: Mapping[NodeId, NodeId]  # the next server on a shortest path to each other server
    left_out: int  # clients beyond ``CLIENTS_MAX``

    def find(self, life: NodeId) -> ViewMember | None:
        """This life, if it is a member."""
        at = bisect_left(self.members, life, key=_id_of)
        return self.members[at] if at < len(self.members) and self.members[at].id == life else None


def network_view(me: NodeId, lsas: Mapping[NodeId, Lsa], hops_max: int) -> NSView:
    """``lsas`` are the ones that count now, by the life of their server; the own one is among them."""
    graph = edges(lsas)
    group = group_of(me, graph, hops_max)
    members, left_out = members_of((server, lsas[server]) for server in group)
    return NSView(group, members, digest_of(group, members), steps_from(me, within(graph, group)), left_out)


def edges(lsas: Mapping[NodeId, Lsa]) -> dict[NodeId, tuple[NodeId, ...]]:
    """Two servers are neighbours if both say so, each of the present life of the other (D6)."""
    return {
        server: tuple(sorted(other for other in lsa.up if other in lsas and server in lsas[other].up and other != server))
        for server, lsa in sorted(lsas.items())
    }


def group_of(me: NodeId, graph: Graph, hops_max: int) -> tuple[NodeId, ...]:
    """The servers that can serve one view: all that are connected with me, or my part of them if their paths are too long (D8)."""
    whole = tuple(sorted(distances(me, graph)))
    if diameter(graph, whole) <= hops_max:
        return whole
    unassigned = list(whole)
    while True:
        group = _cut_off(unassigned, graph, hops_max)
        if me in group:
            return tuple(sorted(group))
        unassigned = [server for server in unassigned if server not in group]


def _cut_off(unassigned: list[NodeId], graph: Graph, hops_max: int) -> list[NodeId]:
    """The next group: from the smallest server on, in order of distance, whatever keeps the group's own paths short enough."""
    far = distances(unassigned[0], within(graph, unassigned))
    group: list[NodeId] = []
    for server in sorted(far, key=lambda server: (far[server], server)):
        if diameter(graph, [*group, server]) <= hops_max:
            group.append(server)
    return group


def within(graph: Graph, servers: Collection[NodeId]) -> dict[NodeId, tuple[NodeId, ...]]:
    """The graph of these servers alone."""
    return {server: tuple(other for other in graph[server] if other in servers) for server in sorted(servers)}


def distances(start: NodeId, graph: Graph) -> dict[NodeId, int]:
    """Of every server that ``start`` is connected with."""
    found = {start: 0}
    queue = deque([start])
    while queue:
        server = queue.popleft()
        for other in graph[server]:
            if other not in found:
                found[other] = found[server] + 1
                queue.append(other)
    return found


def diameter(graph: Graph, servers: Collection[NodeId]) -> float:
    """The longest of the shortest paths among these servers, by way of them alone; inf if they are not connected."""
    inner = within(graph, servers)
    longest = 0.0
    for server in inner:
        found = distances(server, inner)
        if len(found) < len(inner):
            return inf
        longest = max(longest, *found.values())
    return longest


def steps_from(me: NodeId, graph: Graph) -> dict[NodeId, NodeId]:
    """The first server on the way to each other one; of equally short ways the one over the smallest."""
    steps: dict[NodeId, NodeId] = {}
    found = {me: 0}
    queue = deque([me])
    while queue:
        server = queue.popleft()
        for other in graph[server]:
            if other not in found:
                found[other] = found[server] + 1
                steps[other] = steps.get(server, other)
                queue.append(other)
    return steps


def members_of(lsas: Iterable[tuple[NodeId, Lsa]]) -> tuple[tuple[ViewMember, ...], int]:
    """All clients of these servers. One that several list counts where its attachment is the newest (D9)."""
    found: dict[str, ViewMember] = {}
    for server, lsa in lsas:
        for listed in lsa.clients:
            member = ViewMember(listed.life, listed.address, listed.attach, server)
            former = found.get(listed.life.name)
            if former is None or _rank(former) < _rank(member):
                found[listed.life.name] = member
    members = tuple(sorted(found.values()))
    return members[:CLIENTS_MAX], max(0, len(members) - CLIENTS_MAX)


def digest_of(servers: tuple[NodeId, ...], members: tuple[ViewMember, ...]) -> bytes:
    return blake2b(msgspec.msgpack.encode((servers, members)), digest_size=KEY_BYTES).digest()


def _id_of(member: ViewMember) -> NodeId:
    return member.id


def _rank(member: ViewMember) -> tuple[int, int, NodeId]:
    return member.id.boot, member.attach, member.server
