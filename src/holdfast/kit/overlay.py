"""Overlay: the other way to a peer, while this node takes part in views; and how another feature asks for views.  Spec: views D30, D31.

It belongs to the node, as Broadcast does, and is given to the machines that send by it. They ask it at every use, because views may begin
with the first client that wants them and end with the last one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from holdfast.host import Carried, Message, NodeId, View, ViewMember, Views


class Lender(Protocol):
    """What offers views in this node."""

    @property
    def modules(self) -> Sequence[str]:
        """What ``begin`` loads."""

    def begin(self, user: object) -> Views:
        """This node takes part, at least until ``end``. Raises ``ConfigError`` if it cannot."""

    def end(self, user: object) -> None: ...


class Overlay:
    """Views that may be there. Without them it finds no member and carries nothing."""

    def __init__(self) -> None:
        self.lender: Lender | None = None  # None: no server of views is known here
        self.on_views: list[Callable[[], None]] = []  # called when ``views`` has changed
        self._views: Views | None = None

    @property
    def views(self) -> Views | None:
        """Those that this node takes part in now."""
        return self._views

    @views.setter
    def views(self, views: Views | None) -> None:
        if views is not self._views:
            self._views = views
            for listener in tuple(self.on_views):
                listener()

    def begin(self, user: object) -> Views | None:
        """This node takes part in views for this user, until ``end``. None: no server of views is known here."""
        return None if self.lender is None else self.lender.begin(user)

    def end(self, user: object) -> None:
        if self.lender is not None:
            self.lender.end(user)

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
