"""The short road of calm: a line between two lives behaves as the long road does, whatever happens to its end.

A message under way on a line when its receiver stops, dies or restarts, or when the weather changes, must meet what it
would have met without the line: the socket buffer, nobody, another life (F3), the front door.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from holdfast.drops import Drop
from holdfast.host import Address, Host, Message, NodeId
from holdfast.lab.checker import Checker
from holdfast.lab.links import Fixed, Link
from holdfast.lab.network import PORT, Line
from holdfast.lab.violation import Violation
from holdfast.lab.world import World

DELAY = 0.1


class Note(Message, frozen=True, tag=252):
    """Something to say."""

    number: int


class Talker:
    """Says what it is asked to say and keeps what it hears."""

    handles = (Note,)
    fingerprint = b""

    def __init__(self, host: Host) -> None:
        self.host = host
        self.heard: list[tuple[NodeId, int, float]] = []
        for name in ("a", "b"):
            host.meet(NodeId(name, 1), Address(name, PORT))

    def say(self, to: str, number: int) -> None:
        self.host.send(NodeId(to, 1), Note(number))

    def start(self) -> None:
        """Nothing to do."""

    def on_message(self, source: NodeId, message: Message) -> None:
        assert isinstance(message, Note)
        self.heard.append((source, message.number, self.host.now))

    def on_away(self, seconds: float) -> None:
        """Nothing to do."""

    def stop(self) -> None:
        """Nothing to do."""


def talker(world: World, name: str) -> Talker:
    return world.nodes[name].node.use(Talker)


def numbers(world: World, name: str) -> list[int]:
    return [number for _, number, _ in talker(world, name).heard]


def say_all(world: World, names: list[str]) -> None:
    for name in names:
        talker(world, "n0").say(name, 1)


@pytest.fixture
def world() -> World:
    """Two nodes with a line from a to b, and message 2 under way on it."""
    world = World(1, lambda host: [Talker(host)], names=["a", "b"], link=Link(Fixed(DELAY)))
    talker(world, "a").say("b", 1)
    world.run(1.0)
    assert world.network.endpoint("a").lines, "the second message should have a line to take"
    talker(world, "a").say("b", 2)
    assert [item for _, target, item in world.agenda.entries() if isinstance(target, Line)] == [Note(2)]
    return world


def test_a_line_delivers_after_the_same_delay(world: World) -> None:
    """In calm nothing changes but the price; both messages are counted."""
    world.run(2.0)
    (_, _, first), (source, number, second) = talker(world, "b").heard
    assert (source, number) == (NodeId("a", 1), 2)
    assert second - first == pytest.approx(1.0)
    assert world.network.endpoint("a").sent == {Note: 2}


def test_a_stopped_receiver_keeps_it_in_its_socket(world: World) -> None:
    """F10: datagrams wait while the process does not run."""
    world.stop("b")
    world.run(2.0)
    assert numbers(world, "b") == [1]
    world.resume("b")
    assert numbers(world, "b") == [1, 2]
    talker(world, "a").say("b", 3)
    world.run(3.0)
    assert numbers(world, "b") == [1, 2, 3]


def test_a_dead_receiver_hears_nothing(world: World) -> None:
    """Nobody listens there, and the dead life's handlers are not called."""
    former = talker(world, "b")
    world.crash("b")
    world.run(2.0)
    assert [number for _, number, _ in former.heard] == [1]


def test_the_next_life_does_not_hear_it(world: World) -> None:
    """F3: what was sent to a former life is dropped, counted and answered with WrongLife."""
    former = talker(world, "b")
    world.crash("b")
    world.start("b")
    talker(world, "a").say("b", 3)
    world.run(2.0)
    assert [number for _, number, _ in former.heard] == [1]
    assert numbers(world, "b") == []
    assert world.nodes["b"].node.drops[Drop.WRONG_LIFE] == 2


@pytest.mark.parametrize(
    "change, arrives",
    [
        (lambda world: world.network.cut("k", ["a"], ["b"]), [1, 2]),
        (lambda world: world.network.set_weather("k", Link(Fixed(DELAY), loss=1.0)), [1, 2]),
        (lambda world: world.network.set_link(Link(Fixed(DELAY), loss=1.0)), [1, 2]),
        (lambda world: world.network.lose_if(lambda *_: True), [1, 2]),
        (lambda world: None, [1, 2, 3]),
    ],
    ids=["cut", "weather", "link", "filter", "nothing"],
)
def test_a_change_of_weather_ends_all_lines(world: World, change: Callable[[World], None], arrives: list[int]) -> None:
    """What is under way arrives; what is sent after the change is treated by it."""
    change(world)
    talker(world, "a").say("b", 3)
    world.run(2.0)
    assert numbers(world, "b") == arrives


def test_a_receiver_that_dies_after_a_change_hears_nothing(world: World) -> None:
    """A line that is void already must still not reach the dead."""
    former = talker(world, "b")
    world.network.cut("k", ["a"], ["b"])
    world.crash("b")
    world.run(2.0)
    assert [number for _, number, _ in former.heard] == [1]


def test_a_stopped_node_hears_nothing_by_line(world: World) -> None:
    """Node.stop empties the passes it gave out."""
    world.nodes["b"].node.stop()
    world.run(2.0)
    assert numbers(world, "b") == [1]


def test_fanout_is_watched_on_lines_too() -> None:
    """F17: over lines and long roads alike."""
    names = [f"n{i}" for i in range(70)]

    def build(host: Host) -> list[Talker]:
        talker = Talker(host)
        for name in names:
            host.meet(NodeId(name, 1), Address(name, PORT))
        return [talker]

    world = World(1, build, names=names, link=Link(Fixed(DELAY)), checkers=[Checker()])
    for name in names[1:]:
        world.step(world.nodes["n0"], partial(say_all, world, [name]))
    world.run(1.0)
    assert len(world.network.endpoint("n0").lines) == 69
    world.step(world.nodes["n0"], partial(say_all, world, names[1:65]))
    with pytest.raises(Violation, match="F17: a callback of n0#1 sent to 65 peers"):
        world.step(world.nodes["n0"], partial(say_all, world, names[1:66]))
