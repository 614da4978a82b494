"""Views that a test writes itself: which view there is, and what became of what was carried."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import inf
from typing import TypeVar

from holdfast.events import ViewEvent
from holdfast.host import Address, Carried, Message, NodeId, View, ViewId, ViewMember, ViewState

M = TypeVar("M", bound=Message)
SERVER = NodeId("server", 1)


def view_of(lives: Iterable[NodeId], number: int = 1) -> View:
    """A view of these lives, each at an address that no member list has."""
    members = tuple(ViewMember(life, Address(f"{life.name}-in-view", 1), 1, SERVER) for life in sorted(lives))
    return View(ViewId(number, SERVER.name, SERVER.boot), (SERVER,), members)


class FakeViews:
    """Implements ``holdfast.host.Views`` by recording."""

    settle, lease = 5.4, 1.5

    def __init__(self, *lives: NodeId) -> None:
        self.view: View | None = view_of(lives) if lives else None
        self.state = ViewState.STABLE
        self.leased_until = inf
        self.settled_at = -inf
        self.left_at: float | None = None
        self.settled = True
        self.carried: list[tuple[NodeId, Message, Callable[[Carried], None]]] = []
        self.answer: Carried | None = None  # what ``carry`` says at once; None: the test calls ``end``

    def subscribe(self, listener: Callable[[ViewEvent], None]) -> None:
        """No event is told here."""

    def carry(self, to: NodeId, message: Message, done: Callable[[Carried], None]) -> None:
        if self.answer is None:
            self.carried.append((to, message, done))
        else:
            done(self.answer)

    def trip(self, why: str, *, above: int = 0) -> bool:
        return False

    def hurry(self) -> None:
        """No newer view comes by itself."""

    # What only tests call.

    def install(self, *lives: NodeId) -> None:
        """Another view, of these lives."""
        self.view = view_of(lives, 1 if self.view is None else self.view.number + 1)

    def end(self, became: Carried) -> None:
        """This became of everything that is under way."""
        ended, self.carried = self.carried, []
        for _, _, done in ended:
            done(became)

    def take(self, kind: type[M]) -> list[tuple[NodeId, M]]:
        """Everything of this type that is under way."""
        return [(to, message) for to, message, _ in self.carried if isinstance(message, kind)]
