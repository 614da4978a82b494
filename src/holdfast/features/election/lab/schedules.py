"""Lists that lack members, as theorems and their counterexamples want them.  Spec: election 8 (L1, L2), D2, D4.

At any instant the best-ranked member is lacked by at most ``c`` lists. In ``static`` by the same c lists all the time; in ``windowed`` by
some of the same c lists, in turn; in ``adversarial`` by those that are asked first; in ``instant`` by any c lists at a time, others a
moment later, which is more than Theorem 1 of paper 004 allows (D2).
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from holdfast.features.election.lab.lists import Board, Hole, Holes, Open, ScriptedLists
from holdfast.features.election.protocol.messages import Query, Response
from holdfast.host import Message
from holdfast.lab.world import World

TURN = 0.03  # seconds between two moves of holes
KINDS = ("static", "windowed", "adversarial", "instant")


def open_holes(kind: str, best: str, others: Sequence[str], c: int, seed: int) -> Open:
    """For the first three who lacks ``best`` is drawn once; ``adversarial`` begins with none (see ``Asked``)."""
    random = Random(f"{seed}/holes")
    lackers = random.sample(list(others), min(c, len(others)))
    fixed = frozenset((viewer, best) for viewer in lackers)
    if kind == "static":
        return lambda now: fixed
    if kind == "windowed":
        return lambda now: frozenset(hole for number, hole in enumerate(sorted(fixed)) if (int(now / TURN) + number) % 3)
    if kind == "instant":

        def moving(now: float) -> frozenset[Hole]:
            turn = Random(f"{seed}/{int(now / TURN)}")
            return frozenset((viewer, best) for viewer in turn.sample(list(others), min(c, len(others))))

        return moving
    assert kind == "adversarial"
    return lambda now: frozenset()


class Asked(Holes):
    """An adversary that reads the questions: the first c that are asked lack the best-ranked from then on, before they can answer."""

    def __init__(self, world: World, board: Board, best: str, c: int) -> None:
        self._best, self._c = best, c
        self._lackers: list[str] = []
        super().__init__(world, board, lambda now: frozenset((viewer, best) for viewer in self._lackers), period=TURN)
        world.network.lose_if(self._read, self)

    def _read(self, source: str, target: str, message: Message) -> bool:
        fresh = target not in self._lackers and target != self._best and len(self._lackers) < self._c
        if isinstance(message, Query) and fresh:
            self._lackers.append(target)
            self.soon()
        return False


def spread_rumours(world: World) -> None:
    """The control of D4: what the asker's list lacks is lacked by the list of each that is asked, before it answers."""

    def carry(source: str, target: str, message: Message) -> bool:
        if isinstance(message, Query | Response):
            here, there = (world.nodes[name].node.use(ScriptedLists) for name in (source, target))
            missing = {member.name for member in there.members() if here.get(member.name) is None}
            if isinstance(message, Query) and missing:
                left = {member.name: member for member in there.members() if member.name not in missing}
                world.soon(lambda: world.step(world.nodes[target], lambda: there.show(left)))
        return False

    world.network.lose_if(carry, "rumours on messages")
