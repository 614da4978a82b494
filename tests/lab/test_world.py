"""One world: lives, accounting, checkers that stop at the first violation, and the two loops that must agree."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from hashlib import sha256

import pytest

from holdfast.drops import Drop
from holdfast.events import Event
from holdfast.host import FANOUT_MAX, Host, Machine, Message, NodeId
from holdfast.lab.accounting import count_bytes, sent, total
from holdfast.lab.checker import Checker
from holdfast.lab.host import LabHost
from holdfast.lab.links import Fixed, Link, Uniform
from holdfast.lab.trace import Trace
from holdfast.lab.violation import Violation
from holdfast.lab.world import World
from holdfast.node import life_of
from holdfast.wire.codec import Codec
from holdfast.wire.keys import Key, Keyring
from holdfast.wire.seal import Sealed
from tests.lab.machines import Caller, Note, Noted, Ping, Quiet, address, introduce, machine, numbers, quiet_world, say


class CountsEvents(Checker):
    """Fails at the n-th look."""

    name = "counts"

    def __init__(self, limit: int) -> None:
        self.looks = 0
        self.limit = limit

    def after(self, world: World, host: LabHost | None) -> None:
        self.looks += 1
        if self.looks == self.limit:
            self.fail("enough")


def test_a_restart_is_a_new_life() -> None:
    """F1: boot grows with every start, the name stays; F3: what was sent to the former life is not heard by the next."""
    world = quiet_world(1, "a b")
    former = world.nodes["b"].me
    say(world, "a", "b", 1)
    world.crash("b")
    host = world.start("b")
    assert host.me == NodeId("b", former.boot + 1)
    world.run(1.0)
    assert numbers(world, "b") == []
    assert host.node.drops[Drop.WRONG_LIFE] == 1


def test_each_life_draws_its_own_chance() -> None:
    """Determinism: another life of the same node does not repeat the former one's numbers."""
    world = quiet_world(2, "a b")
    first = world.nodes["a"].random.random()
    world.crash("a")
    assert world.start("a").random.random() != first
    assert quiet_world(2, "a b").nodes["a"].random.random() == first


def test_nothing_of_a_dead_life_runs() -> None:
    """A crash ends everything: its timers do not run, its messages on the road still arrive."""
    world = quiet_world(3, "a b")
    fired: list[str] = []
    world.nodes["a"].after(1.0, lambda: fired.append("timer"))
    say(world, "a", "b", 4)
    world.crash("a")
    world.run(2.0)
    assert fired == []
    assert numbers(world, "b") == [4]


def test_messages_are_counted_per_node_and_type() -> None:
    """Accounting: what was sent counts, whether it arrives or not."""
    world = quiet_world(4, "a b")
    world.network.cut("fault", ["a"], ["b"])
    for number in range(3):
        say(world, "a", "b", number)
    world.nodes["b"].send(world.nodes["a"].me, Note("x"))
    world.run(1.0)
    assert {name: {kind: each.messages for kind, each in kinds.items()} for name, kinds in sent(world).items()} == {
        "a": {"Ping": 3},
        "b": {"Note": 1},
    }
    assert total(world)["Ping"].messages == 3


def test_bytes_are_those_of_the_wire() -> None:
    """Accounting: a message weighs what it weighs encoded and sealed."""
    world = quiet_world(5, "a b")
    count_bytes(world)
    say(world, "a", "b", 12345)
    payload = Codec((Ping,)).encode(world.nodes["a"].me, life_of(world.nodes["b"].me), b"", Ping(12345))
    assert sent(world)["a"]["Ping"].size == len(Sealed("lab", Keyring(Key(bytes(32)))).seal(payload))


def test_checkers_stop_at_the_first_violation() -> None:
    """The run ends where the invariant broke: nothing happens after it, and the violation says when and where."""
    checker = CountsEvents(8)
    world = World(6, lambda host: [Quiet(host)], names="ab", link=Link(Fixed(0.01)), checkers=[checker])
    introduce(world)
    for number in range(10):
        world.at(number * 0.1, lambda number=number: say(world, "a", "b", number))  # type: ignore[misc]
    with pytest.raises(Violation, match="counts: enough") as caught:
        world.run(10.0)
    # Two starts, then send and delivery in turn: the eighth look is at the third delivery.
    assert caught.value.at == pytest.approx(0.21)
    assert caught.value.node == "b#1"
    assert numbers(world, "b") == [0, 1, 2]


class EventChecker(Checker):
    """Fails when somebody notes something."""

    name = "silence"

    def on_event(self, world: World, host: LabHost, event: Event) -> None:
        self.fail(f"{host.me} said {event}")


def test_checkers_hear_every_event() -> None:
    """A checker sees facts as they are emitted, internal ones included."""
    world = quiet_world(7, "a", checkers=[EventChecker()])
    world.nodes["a"].after(1.0, lambda: world.nodes["a"].emit(Noted("hello")))
    with pytest.raises(Violation, match="a#1 said"):
        world.run(2.0)


def raising(caller: Caller) -> None:
    def burst() -> None:
        raise KeyError("no such ticket")

    caller.host.after(1.0, burst)


@pytest.mark.parametrize("watched", [True, False])
def test_a_failing_handler_is_a_violation(watched: bool) -> None:
    """A handler that raises is found, with the node, the time and the line; in the bare loop and in the watched one."""
    world = World(8, lambda host: [Caller(host, raising)], names="a", trace=Trace() if watched else None)
    with pytest.raises(Violation, match=r"no-bug: KeyError: 'no such ticket' in test_world\.py:\d+ burst") as caught:
        world.run(5.0)
    assert caught.value.at == pytest.approx(1.0)
    assert caught.value.node == "a#1"
    assert isinstance(caught.value.__cause__, KeyError)


class Fragile(Quiet):
    """Breaks at the first message."""

    def on_message(self, source: NodeId, message: Message) -> None:
        raise ValueError


@pytest.mark.parametrize("watched", [True, False])
def test_a_failing_message_handler_names_the_receiver(watched: bool) -> None:
    """The node that was touched is the one that received, also in the bare loop; an error without text shows its line."""
    world = World(9, lambda host: [Fragile(host)], names="ab", trace=Trace() if watched else None)
    introduce(world)
    world.nodes["a"].after(0.5, lambda: say(world, "a", "b"))
    with pytest.raises(Violation, match="ValueError: raise ValueError in") as caught:
        world.run(5.0)
    assert caught.value.node == "b#1"


def test_a_bug_after_a_pause_keeps_its_place_and_its_cause() -> None:
    """A step inside a step: the scenario's resume touched nobody, the handler it served did."""
    world = World(10, lambda host: [Caller(host, raising)], names="a", trace=Trace())
    world.stop("a")
    world.at(3.0, lambda: world.resume("a"))
    with pytest.raises(Violation) as caught:
        world.run(5.0)
    assert (caught.value.at, caught.value.node) == (3.0, "a#1")
    assert isinstance(caught.value.__cause__, KeyError)


def reach_all(count: int) -> World:
    """One callback that greets so many addresses."""

    def begin(caller: Caller) -> None:
        caller.host.after(1.0, partial(greet, caller.host))

    def greet(host: Host) -> None:
        for number in range(count):
            host.send(address(f"n{number}"), Ping(number))

    return World(11, lambda host: [Caller(host, begin) if host.me.name == "a" else Quiet(host)], names=["a"], trace=Trace())


def test_fan_out_beyond_the_limit_is_a_violation() -> None:
    """F17: no callback sends to more than 64 peers; the lab finds whoever does."""
    with pytest.raises(Violation, match="F17") as caught:
        reach_all(FANOUT_MAX + 1).run(2.0)
    assert caught.value.node == "a#1"
    reach_all(FANOUT_MAX).run(2.0)


def test_fan_out_is_counted_per_callback_also_after_nobody_looked() -> None:
    """F17: what many callbacks sent while nobody watched is not held against the first one that somebody sees."""
    world = World(11, chatter, names=[f"n{number}" for number in range(FANOUT_MAX + 2)], trace=Trace())
    sender = world.nodes["n0"]
    world.run(0.01)
    world.trace = None
    for number in range(FANOUT_MAX + 2):
        world.at(0.02 + number / 1000, partial(sender.send, address(f"n{number}"), Ping(number)))
    world.at(0.5, lambda: world.step(sender, partial(sender.send, address("n1"), Ping(1))))  # in the middle of it
    world.run(1.0)
    assert len(sender.turn) <= 1  # what the last callback sent, and not all of them
    world.step(sender, partial(sender.send, address("n1"), Ping(1)))


def fingerprint_of(world: World) -> tuple[int, str]:
    heard = [(name, at, str(source), str(message)) for name in sorted(world.nodes) for at, source, message in machine(world, name).heard]
    return world.events, sha256(repr(heard).encode()).hexdigest()


class Chatter(Quiet):
    """Says something to somebody, over and over."""

    def start(self) -> None:
        self.host.after(self.host.random.uniform(0, 0.1), self.talk)

    def talk(self) -> None:
        self.host.send(address(self.host.random.choice("abcde")), Ping(self.host.random.randrange(1000)))
        self.host.after(self.host.random.uniform(0, 0.1), self.talk)


def chatter(host: Host) -> Iterable[Machine]:
    return [Chatter(host)]


def revive(world: World) -> None:
    world.start("b")


@pytest.mark.parametrize("look", [{"trace": True}, {"checkers": True}])
def test_looking_changes_nothing(look: dict[str, bool]) -> None:
    """The bare loop and the watched one serve the same events: a trace or a checker is no part of the run."""

    def world(*, trace: bool = False, checkers: bool = False) -> World:
        found = World(
            12,
            chatter,
            names="abcde",
            link=Link(Uniform(0.001, 0.05), loss=0.1, duplicate=0.1),
            trace=Trace() if trace else None,
            checkers=[Checker()] if checkers else [],
        )
        found.at(3.0, lambda: found.crash("b"))
        found.at(4.0, lambda: revive(found))
        found.run(10.0)
        return found

    assert fingerprint_of(world()) == fingerprint_of(world(**look))


def test_running_in_pieces_changes_nothing() -> None:
    """Virtual time: one run of ten seconds is ten runs of one."""
    whole, pieces = World(13, chatter, names="abcde"), World(13, chatter, names="abcde")
    whole.run(10.0)
    for second in range(1, 11):
        pieces.run(float(second))
    assert fingerprint_of(whole) == fingerprint_of(pieces)


def test_the_clock_stands_where_it_was_told_to() -> None:
    """Virtual time: after ``run(t)`` it is t, also when nothing happened."""
    world = quiet_world(14, "a")
    world.run(3.0)
    assert world.now == 3.0
    world.run(1.0)
    assert world.now == 3.0


def test_a_trace_reads_well() -> None:
    """Trace: one line per event, ids as name#boot, message fields by name, lost messages with the reason."""
    trace = Trace()
    world = quiet_world(15, "a b", trace=trace)
    say(world, "a", "b", 7)
    world.run(1.0)
    world.network.cut("fault", ["b"], ["a"])
    world.nodes["b"].send(world.nodes["a"].me, Note({"k": (1.5, b"\x01\xff", NodeId("z", 3))}))
    world.nodes["a"].emit(Noted("hello"))
    world.crash("b")
    assert list(trace.lines()) == [
        "   0.000000  * start a#1",
        "   0.000000  * start b#1",
        "   0.010000  a -> b  Ping(number=7)",
        "   1.000000  b -x a  Note(body={k: (1.5, 01ff, z#3)})  (cut)",
        "   1.000000  a#1 ! Noted(what=hello)",
        "   1.000000  * crash b#1",
    ]


def test_a_trace_keeps_the_last_lines() -> None:
    """Trace: a limit keeps what led to the end."""
    trace = Trace(2)
    quiet_world(16, "a b c d", trace=trace)
    assert list(trace.lines()) == ["   0.000000  * start c#1", "   0.000000  * start d#1"]
