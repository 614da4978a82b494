"""What must hold of the views that are delivered and installed.  Spec: views 7 (CB1 to CB5).

They read facts alone: ``Delivered`` and ``Proposed`` of servers, ``ViewChanged`` of clients. Leases are in ``leases``, messages in
``letters``, and what must come about when the faults are over in ``settled``.
"""

from __future__ import annotations

from holdfast.events import Event, ViewChanged
from holdfast.features.views.protocol.facts import Delivered, Proposed
from holdfast.features.views.protocol.views import ViewNode
from holdfast.host import NodeId, View, ViewId
from holdfast.lab.checker import Checker
from holdfast.lab.host import LabHost
from holdfast.lab.world import World


def view_of(event: Event) -> View | None:
    """The view that this fact delivers or installs."""
    return event.view if isinstance(event, (Delivered, ViewChanged)) else None


class UniqueId(Checker):
    """CB1, G1: one id, one view, everywhere and for ever."""

    name = "CB1 unique-id"

    def __init__(self) -> None:
        self.known: dict[ViewId, View] = {}

    def on_event(self, world: World, host: LabHost, event: Event) -> None:
        view = view_of(event)
        if view is None:
            return
        known = self.known.setdefault(view.id, view)
        if (known.servers, known.members) != (view.servers, view.members):
            self.fail(f"{view.id} is {told(view)} at {host.me}, and was {told(known)}")


class Monotone(Checker):
    """CB2, G2: numbers strictly increase, per life of a server and per life of a client."""

    name = "CB2 monotone"

    def __init__(self) -> None:
        self._last: dict[tuple[type[Event], NodeId], int] = {}

    def on_event(self, world: World, host: LabHost, event: Event) -> None:
        view = view_of(event)
        if view is None:
            return
        key = type(event), host.me
        last = self._last.get(key, -1)
        if view.number <= last:
            self.fail(f"{host.me} has {type(event).__name__} {view.id} after number {last}")
        self._last[key] = view.number


class OwnView(Checker):
    """CB3, G2: a client installs only views that list its present attachment."""

    name = "CB3 self"

    def on_event(self, world: World, host: LabHost, event: Event) -> None:
        if not isinstance(event, ViewChanged):
            return
        client = host.node.use(ViewNode).client
        attach = None if client is None else client.attach
        member = event.view.find(host.me.name)
        if member is None or (member.id, member.attach) != (host.me, attach):
            listed = "is not in it" if member is None else f"is in it as {member.id} by attachment {member.attach}"
            self.fail(f"{host.me}, by attachment {attach}, installed {event.view.id} and {listed}")


class Disjoint(Checker):
    """CB4, D3: two views of one number are equal, or no server is in both."""

    name = "CB4 disjoint"

    def __init__(self) -> None:
        self._views: dict[int, list[View]] = {}  # by number

    def on_event(self, world: World, host: LabHost, event: Event) -> None:
        view = view_of(event)
        if view is None:
            return
        others = self._views.setdefault(view.number, [])
        for other in others:
            if (other.servers, other.members) == (view.servers, view.members):
                return
            both = sorted(set(other.servers) & set(view.servers))
            if both:
                self.fail(f"{both[0]} is in {other.id}, {told(other)}, and in {view.id}, {told(view)}")
        others.append(view)


class Agreed(Checker):
    """CB5: a client installs what a server delivered and every server in it had proposed."""

    name = "CB5 agreed"

    def __init__(self) -> None:
        self._delivered: dict[ViewId, bytes] = {}  # and its key, as the first server that delivered it had proposed it
        self._newest: dict[NodeId, bytes] = {}  # key that this server proposed last
        self._proposed: set[tuple[NodeId, int, bytes]] = set()

    def on_event(self, world: World, host: LabHost, event: Event) -> None:
        if isinstance(event, Proposed):
            self._newest[host.me] = event.key
            self._proposed.add((host.me, event.number, event.key))
        elif isinstance(event, Delivered):
            self._delivered.setdefault(event.view.id, self._newest.get(host.me, b""))
        elif isinstance(event, ViewChanged):
            self._on_installed(host, event.view)

    def _on_installed(self, host: LabHost, view: View) -> None:
        key = self._delivered.get(view.id)
        if key is None:
            self.fail(f"{host.me} installed {view.id}, which no server delivered")
        for server in view.servers:
            if (server, view.number, key) not in self._proposed:
                self.fail(f"{host.me} installed {view.id}, and {server} has not proposed it")


def told(view: View) -> str:
    """A view in a violation."""
    members = ", ".join(f"{member.id}/{member.attach}@{member.server.name}" for member in view.members)
    return f"[{', '.join(map(str, view.servers))}: {members}]"
