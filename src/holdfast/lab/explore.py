"""Exhaustive exploration: every reachable state of a small model, breadth first, until one is bad.

For parts so small, and so important, that no sampling is good enough. A model gives its first state, the moves out
of a state, and says what is wrong with one; states are compared by value. The first bad state comes with the shortest
sequence of moves that leads to it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Generic, TypeVar

from msgspec import Struct

S = TypeVar("S", bound=Hashable)
Moves = Callable[[S], Iterable[tuple[str, S]]]
Wrong = Callable[[S], str]  # "" if nothing is


class Explored(Struct, Generic[S], frozen=True):
    """What was found."""

    states: int
    moves: int  # pairs of a state and a move out of it
    depth: int  # moves to the farthest state
    complete: bool  # every reachable state was visited
    violation: str = ""
    path: tuple[str, ...] = ()  # to the first bad state


def explore(first: S, moves: Moves[S], wrong: Wrong[S], *, states_max: int) -> Explored[S]:
    """Visit every state once. Stops at the first bad one, or after ``states_max``."""
    came: dict[S, tuple[S, str] | None] = {first: None}
    layer, depth, made = [first], 0, 0
    if wrong(first):
        return Explored(1, 0, 0, complete=False, violation=wrong(first))
    while layer:
        following: list[S] = []
        for state in layer:
            for name, after in moves(state):
                made += 1
                if after in came:
                    continue
                came[after] = state, name
                why = wrong(after)
                if why:
                    return Explored(len(came), made, depth + 1, complete=False, violation=why, path=_path(came, after))
                if len(came) >= states_max:
                    return Explored(len(came), made, depth + 1, complete=False)
                following.append(after)
        layer, depth = following, depth + bool(following)
    return Explored(len(came), made, depth, complete=True)


def _path(came: dict[S, tuple[S, str] | None], state: S) -> tuple[str, ...]:
    names: list[str] = []
    step = came[state]
    while step is not None:
        state, name = step
        names.append(name)
        step = came[state]
    return tuple(reversed(names))
