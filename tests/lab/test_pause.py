"""A process that was stopped: time went on, datagrams waited, timers came due and nobody looked.  Spec: F10."""

from __future__ import annotations

from itertools import groupby

import pytest

from holdfast.host import AWAY_DATAGRAMS_MAX, Message, NodeId
from holdfast.lab.links import Fixed, Link
from holdfast.lab.network import SOCKET_PACKETS_MAX
from holdfast.lab.world import World
from tests.lab.machines import Quiet, introduce, machine, numbers, quiet_world, say


def stopped(seed: int, *, pings: int, timers: int) -> World:
    """``b`` is stopped for two seconds in which pings arrive and timers come due; each notes itself in the log."""
    world = quiet_world(seed, "a b")
    host, log = world.nodes["b"], machine(world, "b").log
    log.clear()
    for number in reversed(range(timers)):
        host.after(0.5 + number * 0.1, lambda number=number: log.append(f"timer {number} late {host.late:.1f}"))  # type: ignore[misc]
    world.stop("b")
    for number in range(pings):
        world.at(number * 0.0001, lambda number=number: say(world, "a", "b", number))  # type: ignore[misc]
    world.run(2.0)
    assert log == []
    return world


def test_order_after_a_pause() -> None:
    """F10: (1) on_away, (2) the datagrams that waited, (3) the timers by due time, each with ``late``."""
    world = stopped(1, pings=3, timers=3)
    world.resume("b")
    expected = ["away", "message 0", "message 1", "message 2", "timer 0 late 1.5", "timer 1 late 1.4", "timer 2 late 1.3"]
    assert machine(world, "b").log == expected
    assert world.nodes["b"].late == 0.0


def test_away_says_how_late_the_earliest_timer_is() -> None:
    """F10: ``seconds`` is a lower bound of the pause; one that no timer noticed cannot be seen."""
    world = stopped(2, pings=1, timers=2)
    world.resume("b")
    assert machine(world, "b").away == pytest.approx([1.5])
    world = stopped(2, pings=1, timers=0)
    world.resume("b")
    assert machine(world, "b").away == []
    assert machine(world, "b").log == ["message 0"]


def test_a_short_stop_is_no_pause() -> None:
    """F10: lateness below the threshold is calm."""
    world = quiet_world(3, "a")
    world.nodes["a"].after(1.0, lambda: None)
    world.run(0.99)
    world.stop("a")
    world.run(1.05)
    world.resume("a")
    assert machine(world, "a").away == []


def test_at_most_4096_datagrams_before_the_first_timer() -> None:
    """F10: timers get their turn after 4096 datagrams, the rest of the datagrams after them."""
    world = stopped(4, pings=AWAY_DATAGRAMS_MAX + 10, timers=1)
    world.resume("b")
    log = machine(world, "b").log
    assert log.index("timer 0 late 1.5") == 1 + AWAY_DATAGRAMS_MAX
    assert len(log) == 1 + AWAY_DATAGRAMS_MAX + 10 + 1


def test_the_socket_keeps_the_oldest() -> None:
    """F10: sockets keep the oldest datagrams, so after a long pause the newest are missing."""
    world = stopped(5, pings=SOCKET_PACKETS_MAX + 500, timers=0)
    world.resume("b")
    assert numbers(world, "b") == list(range(SOCKET_PACKETS_MAX))


def kinds(world: World) -> str:
    return "".join(entry[0] for entry in machine(world, "b").log[1:])


def test_shuffled_really_interleaves() -> None:
    """F10: as a fault, any interleaving of datagrams and timers; each queue keeps its own order, and on_away stays first."""
    seen = set()
    for seed in range(20):
        world = stopped(seed, pings=8, timers=8)
        world.resume("b", "shuffled")
        log = machine(world, "b").log
        assert log[0] == "away"
        assert [entry for entry in log if entry.startswith("message")] == [f"message {n}" for n in range(8)]
        timers = [entry for entry in log if entry.startswith("timer")]
        assert [entry.split()[1] for entry in timers] == [str(n) for n in range(8)]
        seen.add(kinds(world))
    assert len(seen) > 10
    assert any(len(list(groupby(order))) > 4 for order in seen)
    assert any(order.startswith("t") for order in seen)


def test_shuffled_follows_from_the_seed() -> None:
    """Determinism: the same seed, the same interleaving."""
    first, second = stopped(6, pings=8, timers=8), stopped(6, pings=8, timers=8)
    for world in (first, second):
        world.resume("b", "shuffled")
    assert machine(first, "b").log == machine(second, "b").log


class Patient(Quiet):
    """Gives up after half a second, unless somebody says something first."""

    def start(self) -> None:
        self.timer = self.host.after(0.5, lambda: self.log.append("gave up"))

    def on_message(self, source: NodeId, message: Message) -> None:
        super().on_message(source, message)
        self.timer.cancel()


def test_a_waiting_datagram_can_still_cancel_a_due_timer() -> None:
    """F10: what the datagrams say counts before the timers judge."""
    world = World(7, lambda host: [Patient(host)], names="ab", link=Link(Fixed(0.01)))
    introduce(world)
    world.stop("b")
    say(world, "a", "b")
    world.run(2.0)
    world.resume("b")
    assert machine(world, "b").log == ["away", "message 0"]


def test_a_crash_while_stopped_loses_what_waited() -> None:
    """After kill -9 of a stopped process: neither datagrams nor timers reach the next life."""
    world = stopped(8, pings=3, timers=3)
    world.crash("b")
    world.start("b")
    world.run(10.0)
    assert machine(world, "b").log == ["start"]


def saving(seed: int, *, pings: int, timers: int) -> World:
    """As ``stopped``, and the disk completes a save while nobody looks."""
    world = quiet_world(seed, "a b")
    host, log = world.nodes["b"], machine(world, "b").log
    log.clear()
    for _ in range(timers):
        host.after(0.001, lambda: log.append(f"timer late {host.late:.1f}"))
    host.storage.save("k", b"", lambda: log.append(f"saved late {host.late:.1f}"))
    world.stop("b")
    for _ in range(pings):
        say(world, "a", "b")
    world.run(2.0)
    assert log == []
    world.resume("b")
    return world


def test_completions_come_between_datagrams_and_timers() -> None:
    """F10: what the disk completed is served after the datagrams and before the timers, and is not late itself."""
    assert machine(saving(10, pings=1, timers=1), "b").log == ["away", "message 0", "saved late 0.0", "timer late 2.0"]


def test_a_completion_notices_no_pause() -> None:
    """F10: ``on_away`` says how late the earliest *timer* is; a completed save alone says nothing."""
    assert machine(saving(11, pings=1, timers=0), "b").log == ["message 0", "saved late 0.0"]


def test_a_dead_or_running_process_is_not_resumed() -> None:
    """A plan may end a pause after a crash: nothing happens."""
    world = stopped(9, pings=1, timers=0)
    world.crash("b")
    world.resume("b")
    assert world.nodes["b"].dead
    world.start("b")
    world.resume("b")
    world.stop("b")
    world.stop("b")
    assert not world.nodes["b"].running
