"""Overlay: the other way to a peer, while this node takes part in views.  Spec: views D30, D31.

It belongs to the node, as Broadcast does, and is given to the machines that send by it. They ask it at every use, because views may begin
with the first client that wants them and end with the last one.
"""

from __future__ import annotations

from collections.abc import Callable

from holdfast.host import Carried, Message, NodeId, View, ViewMember, Views


class Overlay:
    """Views that may be there. Without them it finds no member and carries nothing."""

    def __init__(self) -> None:
        self.views: Views | None = None

    @property
    def view(self) -> View | None:
        """The present view; None while there is none, or no views."""
        return None if self.views is None else self.views.view

    def find(self, name: str) -> ViewMember | None:
        """The member of the present view with this name."""
        view = self.view
        return None if view is None else view.find(name)

    def reaches(self, to: NodeId) -> bool:
        """This life is in the present view."""
        found = self.find(to.name)
        return found is not None and found.id == to

    def carry(self, to: NodeId, message: Message, done: Callable[[Carried], None]) -> None:
        """As ``Views.carry``. ``done`` runs once, perhaps inside this call."""
        if self.views is None:
            done(Carried.NOT_IN_VIEW)
        else:
            self.views.carry(to, message, done)
