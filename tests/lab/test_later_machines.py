"""Machines that come and go while a simulated process runs, on the short road, the long one and through the real wire (H203)."""

from __future__ import annotations

import pytest

from holdfast.drops import Drop
from holdfast.host import Host, Message, fingerprint
from holdfast.lab.trace import Trace
from holdfast.lab.wire import through_wire
from tests.lab.machines import Quiet, introduce, numbers, quiet_world, say


class Late(Message, frozen=True, tag=202):
    """A word of a machine that comes later."""

    number: int


class Later(Quiet):
    """Handles it."""

    handles = (Late,)

    def __init__(self, host: Host, numbers: bytes = b"") -> None:
        super().__init__(host)
        self._numbers = numbers

    @property
    def fingerprint(self) -> bytes:
        return self._numbers

    @property
    def heard_numbers(self) -> list[int]:
        return [message.number for _, _, message in self.heard if isinstance(message, Late)]


@pytest.mark.parametrize("road", ["short", "traced", "wire"])
def test_a_machine_comes_and_goes(road: str) -> None:
    """Added to both processes it talks at once, in whatever order they get it; after it was removed its words are counted drops, and
    what else the process hears goes on."""
    world = quiet_world(1, "a b", trace=Trace() if road == "traced" else None)
    if road == "wire":
        through_wire(world)
    a, b = world.nodes["a"], world.nodes["b"]
    say(world, "a", "b", 1)
    say(world, "b", "a", 1)
    world.run(1.0)

    first, second = Later(a), Later(b)
    world.step(a, lambda: a.node.add(first))
    world.step(a, lambda: a.send(b.me, Late(1)))
    world.run(2.0)
    assert sum(b.node.drops[why] for why in (Drop.NO_OWNER, Drop.UNKNOWN_TAG)) == 1

    world.step(b, lambda: b.node.add(second))
    assert second.log == ["start"]
    world.step(a, lambda: a.send(b.me, Late(2)))
    world.step(b, lambda: b.send(a.me, Late(3)))
    say(world, "a", "b", 2)
    world.run(3.0)
    assert (second.heard_numbers, first.heard_numbers) == ([2], [3])

    world.step(b, lambda: b.node.remove(second))
    assert second.log[-1] == "stop"
    world.step(a, lambda: a.send(b.me, Late(4)))
    say(world, "a", "b", 3)
    world.run(4.0)
    assert second.heard_numbers == [2]
    assert sum(b.node.drops[why] for why in (Drop.NO_OWNER, Drop.UNKNOWN_TAG)) == 2
    assert b.node.use(Quiet).log.count("start") == 1
    assert numbers(world, "b") == [1, 2, 3]


def test_other_numbers_after_a_change_are_noticed() -> None:
    """F4 on the short road: a peer that comes back with other numbers is not waved through by a pass of before."""
    world = quiet_world(1, "a b")
    a, b = world.nodes["a"], world.nodes["b"]
    first, second = Later(a, fingerprint(T=1)), Later(b, fingerprint(T=1))
    world.step(a, lambda: a.node.add(first))
    world.step(b, lambda: b.node.add(second))
    introduce(world)
    for number in range(1, 4):
        world.step(a, lambda number=number: a.send(b.me, Late(number)))  # type: ignore[misc]
        world.run(number)
    assert second.heard_numbers == [1, 2, 3]
    world.step(a, lambda: a.node.remove(first))
    world.step(a, lambda: a.node.add(Later(a, fingerprint(T=2))))
    world.step(a, lambda: a.send(b.me, Late(4)))
    world.run(5.0)
    assert second.heard_numbers == [1, 2, 3]
    assert b.node.drops[Drop.WRONG_FINGERPRINT] == 1
