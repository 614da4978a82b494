"""One run in ten passes every message through encode, seal, open and decode; only there some bugs can be seen."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from random import Random

import pytest

from holdfast.drops import Drop
from holdfast.host import DATAGRAM_BYTES_MAX, MESSAGE_BYTES_MAX, Host, Machine, Message, NodeId
from holdfast.lab.checker import Checker
from holdfast.lab.links import Fixed, Link
from holdfast.lab.scenario import WIRE_EVERY, Scenario, Setup, run
from holdfast.lab.sweep import collect
from holdfast.lab.trace import Trace
from holdfast.lab.wire import through_wire
from holdfast.lab.world import World
from tests.lab.machines import Note, Quiet, address, machine, numbers, quiet_world, say


class Board(Quiet):
    """Sends its list once and goes on writing to it; whoever got it keeps it. Works only while both are one object."""

    def __init__(self, host: Host) -> None:
        super().__init__(host)
        self.entries: list[int] = []

    def start(self) -> None:
        if self.host.me.name == "a":
            self.host.after(1.0, self._publish)
            self.host.after(2.0, lambda: self.entries.append(2))

    def on_message(self, source: NodeId, message: Message) -> None:
        if isinstance(message, Note):
            self.entries = message.body

    def _publish(self) -> None:
        self.entries.append(1)
        self.host.send(NodeId("b", 1), Note(self.entries))


class Aliased(Scenario):
    """The planted bug: an aliased field."""

    name = "test/aliased"

    def setup(self, random: Random) -> Setup:
        return Setup(("a", "b"), 3.0, 1.0)

    def build(self, host: Host, setup: Setup) -> Iterable[Machine]:
        host.meet(NodeId("b", 1), address("b"))
        return [Board(host)]

    def checkers(self, setup: Setup) -> Sequence[Checker]:
        return []

    def unsettled(self, world: World, setup: Setup) -> str:
        boards = [world.nodes[name].node.use(Board).entries for name in "ab"]
        return "" if boards[0] == boards[1] else f"the boards differ: {boards}"


class Unencodable(Aliased):
    """The planted bug: a field that cannot be encoded."""

    name = "test/unencodable"

    def build(self, host: Host, setup: Setup) -> Iterable[Machine]:
        def publish() -> None:
            host.send(NodeId("b", 1), Note(object()))

        host.meet(NodeId("b", 1), address("b"))
        if host.me.name == "a":
            host.after(1.0, publish)
        return [Quiet(host)]

    def unsettled(self, world: World, setup: Setup) -> str:
        return ""


@pytest.mark.parametrize("scenario,told", [(Aliased(), "settled: .* the boards differ"), (Unencodable(), "no-bug: TypeError")])
def test_one_run_in_ten_finds_what_references_hide(scenario: Scenario, told: str) -> None:
    """Aliasing and unencodable fields are never seen by reference; the run through the wire finds both."""
    summary = collect(scenario, range(2 * WIRE_EVERY))
    assert [failure.seed for failure in summary.failed] == [0, WIRE_EVERY]
    for failure in summary.failed:
        assert re.match(told, failure.violation)


def wired(seed: int) -> World:
    world = quiet_world(seed, "a b", trace=Trace())
    through_wire(world)
    return world


def test_messages_arrive_as_equal_copies() -> None:
    """Through the wire: what arrives equals what was sent and is another object."""
    world = wired(1)
    body = ["x", [1, 2], {"k": b"\x00"}]
    world.nodes["a"].send(world.nodes["b"].me, Note(body))
    world.run(1.0)
    ((_, source, message),) = machine(world, "b").heard
    assert isinstance(message, Note)
    assert (source, message.body) == (world.nodes["a"].me, body)
    assert message.body is not body
    assert "a -> b  Note(body=(x, (1, 2), {k: 00}))" in str(world.trace)


def test_what_is_too_large_for_a_datagram_takes_the_stream() -> None:
    """Host.send: up to 1200 sealed bytes a datagram, above it the stream; both arrive."""
    world = wired(2)
    for size in (DATAGRAM_BYTES_MAX // 2, DATAGRAM_BYTES_MAX, 100_000):
        world.nodes["a"].send(world.nodes["b"].me, Note("x" * size))
    world.run(1.0)
    sizes = [len(message.body) for _, _, message in machine(world, "b").heard if isinstance(message, Note)]
    assert sorted(sizes) == [DATAGRAM_BYTES_MAX // 2, DATAGRAM_BYTES_MAX, 100_000]


def test_what_is_too_large_for_the_stream_is_counted_at_the_sender() -> None:
    """Host.send: beyond 1 MiB nothing leaves; the sender counts it, as on real sockets."""
    world = wired(6)
    world.nodes["a"].send(world.nodes["b"].me, Note("x" * MESSAGE_BYTES_MAX))
    world.run(1.0)
    assert machine(world, "b").heard == []
    assert world.nodes["a"].node.drops[Drop.TOO_LARGE] == 1
    assert "(too large)" in str(world.trace)[-20:]


def test_a_duplicate_is_a_replay() -> None:
    """Replay window: of a doubled datagram one copy is opened, the other counted."""
    world = wired(3)
    world.network.set_link(Link(Fixed(0.01), duplicate=0.999999))
    for number in range(20):
        say(world, "a", "b", number)
    world.run(1.0)
    assert sorted(numbers(world, "b")) == list(range(20))
    assert world.nodes["b"].node.drops[Drop.REPLAYED] == 20


def test_keys_and_counters_belong_to_a_life() -> None:
    """A restart seals with a new run: its first messages are no replays of its former life's."""
    world = wired(4)
    for _ in range(3):
        say(world, "a", "b", 1)
    world.run(1.0)
    world.crash("a")
    world.start("a").meet(world.nodes["b"].me, world.nodes["b"].address)
    say(world, "a", "b", 2)
    world.run(2.0)
    assert numbers(world, "b") == [1, 1, 1, 2]


def test_the_wire_changes_no_decision_of_the_lab() -> None:
    """The road through the wire draws nothing from the network's chance: a run that fails there fails for its bytes alone."""

    def heard(*, wire: bool) -> list[int]:
        world = quiet_world(5, "a b", trace=Trace())
        world.network.set_link(Link(Fixed(0.01), loss=0.3))
        if wire:
            through_wire(world)
        for number in range(100):
            say(world, "a", "b", number)
        world.run(1.0)
        return numbers(world, "b")

    assert heard(wire=True) == heard(wire=False)


def test_every_tenth_seed_takes_the_wire(monkeypatch: pytest.MonkeyPatch) -> None:
    """One sweep in ten: seeds that ten divides, no others."""
    taken: list[int] = []
    monkeypatch.setattr("holdfast.lab.scenario.through_wire", lambda world: taken.append(world.seed))
    for seed in range(21):
        run(Unencodable(), seed)
    assert taken == [0, 10, 20]
