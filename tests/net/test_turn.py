"""The turn: who is served first after a pause, and in calm.  Spec: foundation F10, F11.

The clock is a fake that a test moves, so a pause takes no time; the sockets are real. Loopback delivers a datagram inside the
sender's call, so whatever a test has sent is waiting when the host looks.
"""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

import pytest

from holdfast.events import Event, Paused
from holdfast.host import CALM_DATAGRAMS_MAX, SLEEP_MAX, Address, Message, NodeId, Storage
from holdfast.net import host as net_host
from holdfast.net.host import AWAY_AFTER, ON_TIME, NetHost
from tests.net.machines import FakeClock, Ping, Talker, envelope, plain, port_of
from tests.support.realtime import eventually, run

PEER = NodeId("peer", 7)


class Scene(NamedTuple):
    """One host on a clock that stands still, and a socket that talks to it."""

    clock: FakeClock
    host: NetHost
    talker: Talker
    events: list[Event]
    send: Callable[[int], None]  # a Ping with this serial

    def order(self) -> list[str]:
        return [what for what, _ in self.talker.diary]


async def opened(storage: Storage | None = None) -> tuple[FakeClock, NetHost, Talker, list[Event]]:
    clock, events = FakeClock(), list[Event]()
    host = await NetHost.open(NodeId("me", 1), Address("127.0.0.1", 0), plain(), now=clock, on_event=events.append, storage=storage)
    talker = Talker(host)
    host.node.add(talker)
    host.start()
    talker.diary.clear()
    return clock, host, talker, events


@contextmanager
def sender_to(host: NetHost) -> Iterator[Callable[[int], None]]:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        yield lambda serial: void(sock.sendto(envelope(PEER, NodeId("me", 1), Ping(serial)), port_of(host)))


def void(_: object) -> None:
    """Drop a result that nobody wants."""


def scene(play: Callable[[Scene], object], *, until: str) -> list[tuple[str, float]]:
    """Set the scene, let ``play`` prepare it in one go, run until the diary has this entry; returns the diary."""

    async def main() -> list[tuple[str, float]]:
        clock, host, talker, events = await opened()
        with sender_to(host) as send:
            it = Scene(clock, host, talker, events, send)
            play(it)
            await eventually(lambda: until in it.order() or host.failed.done(), until)
        if host.failed.done():
            host.failed.result()
        paused = [event.seconds for event in events if isinstance(event, Paused)]
        assert paused == [number for what, number in talker.diary if what == "away"], "machines and users hear of the same pauses"
        diary = list(talker.diary)
        await host.close()
        return diary

    return run(main())


def test_after_a_pause_away_then_datagrams_then_late_timers() -> None:
    """F10: (1) on_away, (2) the datagrams that waited, (3) due timers in order, each with ``late`` set."""

    def play(it: Scene) -> None:
        it.host.after(5.0, lambda: it.talker.write_down("t5"))
        it.host.after(3.0, lambda: it.talker.write_down("t3"))
        it.host.after(20.0, lambda: it.talker.write_down("t20"))
        it.clock.reading += 10.0
        for serial in range(3):
            it.send(serial)

    diary = scene(play, until="t5")
    # How late the earliest unserved timer is: a lower bound of the pause. A message handler is never late.
    assert diary == [("away", 7.0), ("Ping", 0.0), ("Ping", 0.0), ("Ping", 0.0), ("t3", 7.0), ("t5", 5.0)]


def test_in_calm_a_share_of_datagrams_then_due_timers() -> None:
    """F10: in calm, at most 64 datagrams, then due timers."""

    def play(it: Scene) -> None:
        it.host.after(0.05, lambda: it.talker.write_down("timer"))
        it.clock.reading += 0.06
        for serial in range(200):
            it.send(serial)

    order = [what for what, _ in scene(play, until="timer")]
    assert order.index("timer") == CALM_DATAGRAMS_MAX
    assert "away" not in order


def test_after_a_pause_many_datagrams_but_not_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """F10: until the socket was empty once or so many were read; a flood does not keep the timers from running."""
    monkeypatch.setattr(net_host, "AWAY_DATAGRAMS_MAX", 100)

    def play(it: Scene) -> None:
        it.host.after(1.0, lambda: it.talker.write_down("timer"))
        it.clock.reading += 2.0
        for serial in range(150):
            it.send(serial)

    order = [what for what, _ in scene(play, until="timer")]
    assert order[0] == "away"
    assert order.index("timer") == 101


def test_a_stop_between_two_timers_is_noticed_before_the_second() -> None:
    """F10: SIGSTOP can hit in the middle of a turn; the next timer must not judge before the datagrams were heard."""

    def play(it: Scene) -> None:
        def stopped() -> None:
            it.talker.write_down("first")
            it.clock.reading += 2.0
            it.send(0)

        it.host.after(0.01, stopped)
        it.host.after(0.02, lambda: it.talker.write_down("second"))
        it.clock.reading += 0.03

    diary = scene(play, until="second")
    assert [what for what, _ in diary] == ["first", "away", "Ping", "second"]
    assert dict(diary)["away"] == pytest.approx(2.0)  # since the sockets were last looked at
    assert dict(diary)["second"] == pytest.approx(2.01)


def test_a_stop_while_datagrams_are_read_is_noticed_before_the_timers() -> None:
    """F10, as above: the pause falls behind the last datagram of a turn. H367: the turn before it read one."""
    first_two = 1 + CALM_DATAGRAMS_MAX

    def play(it: Scene) -> None:
        def stopped(message: Message) -> None:
            if message == Ping(first_two - 1):
                it.clock.reading += 2.0

        it.talker.on_heard = stopped
        it.host.after(0.5, lambda: it.talker.write_down("timer"))
        for serial in range(first_two + 3):
            it.send(serial)

    order = [what for what, _ in scene(play, until="timer")]
    assert order == ["Ping"] * first_two + ["away"] + ["Ping"] * 3 + ["timer"]


class CountedReads(socket.socket):
    """Says how often it was read, and how often in vain."""

    reads = empty = 0

    def recvfrom(self, *arguments: Any) -> Any:
        self.reads += 1
        try:
            return super().recvfrom(*arguments)
        except BlockingIOError:
            self.empty += 1
            raise


def counted(host: NetHost) -> CountedReads:
    """The socket of this host, from now on."""
    sock = CountedReads(fileno=socket.dup(host.datagrams.fileno()))
    host.datagrams._recvfrom = sock.recvfrom
    return sock


def test_one_datagram_is_one_read_and_a_timer_on_time_is_none() -> None:
    """H367: the loop knows that the socket is empty, and says if there is more; many that wait are read in one turn all the same."""

    async def main() -> None:
        clock, host, talker, _ = await opened()
        with counted(host) as sock, sender_to(host) as send:
            for serial in range(3):
                clock.reading += 0.05
                send(serial)
                await eventually(lambda serial=serial: len(talker.diary) > serial, "it was heard")  # type: ignore[misc]
            assert (sock.reads, sock.empty) == (3, 0)
            host.after(0.01, lambda: talker.write_down("timer"))
            clock.reading += 0.01 + ON_TIME / 2
            await eventually(lambda: talker.diary[-1][0] == "timer", "the timer ran")
            assert (sock.reads, sock.empty) == (3, 0)
            for serial in range(10):
                send(serial)
            await eventually(lambda: len(talker.diary) == 14, "all were heard")
            assert (sock.reads, sock.empty) == (3 + 10 + 1, 1)
        await host.close()

    run(main())


def test_a_timer_that_is_late_lets_datagrams_speak_first() -> None:
    """F10, H367: what has waited behind a slow callback is heard before a timer judges, also in the turn of the timer."""

    async def main() -> None:
        clock, host, talker, _ = await opened()
        with sender_to(host) as send:
            host.after(0.02, lambda: talker.write_down("timer"))
            clock.reading += 0.02 + ON_TIME * 2
            send(0)
            host._on_wake()  # as a loop that looks at its timers first
            assert [what for what, _ in talker.diary] == ["Ping", "timer"]
        await host.close()

    run(main())


def test_a_short_delay_is_no_pause() -> None:
    """F10: a threshold; below it a timer is late by a little and nobody was away."""

    def play(it: Scene) -> None:
        it.host.after(1.0, lambda: it.talker.write_down("timer"))
        it.clock.reading += 1.0 + AWAY_AFTER * 0.9

    [(what, late)] = scene(play, until="timer")
    assert what == "timer"
    assert late == pytest.approx(AWAY_AFTER * 0.9)


def test_a_timer_set_in_the_past_is_late_and_no_pause() -> None:
    """F10: ``seconds`` is about this process; a machine that catches up with its own schedule was not away."""

    def play(it: Scene) -> None:
        it.host.after(0.0, lambda: void(it.host.at(it.host.now - 100.0, lambda: it.talker.write_down("caught up"))))

    assert scene(play, until="caught up") == [("caught up", 100.0)]


def test_late_is_over_when_the_callback_is() -> None:
    """Host.late: 0.0 in message handlers, also after a timer that was late."""

    def play(it: Scene) -> None:
        it.host.after(0.5, lambda: it.send(1))
        it.clock.reading += 5.0

    assert scene(play, until="Ping")[-1] == ("Ping", 0.0)


def test_time_does_not_go_back() -> None:
    """Host.now: whatever the system's clock does, no handler sees it go back."""

    async def main() -> None:
        clock, host, *_ = await opened()
        clock.reading = 2000.0
        assert host.now == 2000.0
        clock.reading = 1500.0
        assert host.now == 2000.0
        await host.close()

    run(main())


def test_nobody_sleeps_longer_than_a_second() -> None:
    """F10: poll timeouts do not count suspended time, so a clock that jumped is noticed within a second."""

    async def main() -> None:
        clock, host, talker, _ = await opened()
        host.after(1000.0, lambda: talker.write_down("timer"))
        began_at = time.monotonic()
        await asyncio.sleep(0.05)
        clock.reading += 2000.0
        await eventually(lambda: talker.diary)
        # One sleep, and what a busy machine adds; a host that slept until its timer would take 1000 s.
        assert time.monotonic() - began_at < SLEEP_MAX + 10.0
        assert talker.diary == [("away", 1000.0), ("timer", 1000.0)]
        await host.close()

    run(main())


class HeldStorage:
    """Completes a save when the test says so."""

    fresh = True

    def __init__(self) -> None:
        self.held: list[Callable[[], None]] = []

    def load(self) -> Mapping[str, bytes]:
        return {}

    def save(self, key: str, value: bytes | None, then: Callable[[], None]) -> None:
        self.held.append(then)

    def part(self, name: str) -> Storage:
        return self


def test_a_save_that_completes_during_a_pause_waits_for_its_turn() -> None:
    """F10: on_away comes first, also before what the disk has completed."""

    async def main() -> None:
        storage = HeldStorage()
        clock, host, talker, _ = await opened(storage)
        host.storage.part("seats").save("key", b"value", lambda: talker.write_down("saved"))
        host.after(1.0, lambda: talker.write_down("timer"))
        clock.reading += 5.0
        storage.held[0]()
        assert talker.diary == []
        await eventually(lambda: len(talker.diary) == 3)
        assert talker.diary == [("away", 4.0), ("saved", 0.0), ("timer", 4.0)]
        await host.close()

    run(main())


def test_who_enters_has_a_turn_now_and_comes_after_what_waited() -> None:
    """F10: the turn is a whole one: on_away, the datagrams that waited, what was posted before, then these, then due timers."""

    def play(it: Scene) -> None:
        written = [lambda what=what: it.talker.write_down(what) for what in ("one", "two")]
        it.host.after(1.0, lambda: it.talker.write_down("timer"))
        it.host.post(lambda: it.talker.write_down("posted"))
        it.send(0)
        it.clock.reading += 5.0
        it.host.enter(written)
        assert it.order() == ["away", "Ping", "posted", "one", "two", "timer"]
        it.host.post(lambda: it.host.enter([lambda: it.talker.write_down("nested")]))
        it.host.enter([lambda: it.talker.write_down("outer")])
        assert it.order()[-1] == "outer", "no turn inside a turn"

    assert [what for what, _ in scene(play, until="nested")][-2:] == ["outer", "nested"]


def test_nobody_wakes_up_for_a_timer_that_was_cancelled(monkeypatch: pytest.MonkeyPatch) -> None:
    """An idle member is one that sleeps: a question's timer is cancelled by its answer, and the alarm goes with it; one that fits stays."""

    async def main() -> None:
        _, host, _, _ = await opened()
        loop, delays = asyncio.get_running_loop(), list[float]()
        later = loop.call_later

        def noted(delay: float, *rest: Any) -> asyncio.TimerHandle:
            delays.append(delay)
            return later(delay, *rest)

        monkeypatch.setattr(loop, "call_later", noted)
        question = host.after(0.2, lambda: None)
        host.after(0.7, lambda: None)
        host.enter([question.cancel])
        assert delays == pytest.approx([0.2, 0.7])
        host.enter([])
        assert len(delays) == 2
        await host.close()

    run(main())


def test_without_a_state_directory_a_save_lasts_for_a_life() -> None:
    """Storage: a host without a disk completes saves too, in a turn of its own and never inside the call."""

    async def main() -> None:
        _, host, talker, _ = await opened()
        part = host.storage.part("p")
        assert (part.fresh, host.storage.fresh) == (True, True)
        part.save("key", b"value", lambda: talker.write_down("saved"))
        part.save("gone", None, lambda: talker.write_down("deleted"))
        assert talker.diary == []
        await eventually(lambda: len(talker.diary) == 2)
        assert talker.diary == [("saved", 0.0), ("deleted", 0.0)]
        assert (part.fresh, host.storage.part("q").fresh, part.load(), host.storage.load()) == (
            False,
            True,
            {"key": b"value"},
            {"p/key": b"value"},
        )
        await host.close()

    run(main())


def test_a_stalled_loop_is_a_pause() -> None:
    """F10 with the real clock: whoever blocks the loop has stopped the process, as far as its peers can tell."""

    async def main() -> None:
        host = await NetHost.open(NodeId("me", 1), Address("127.0.0.1", 0), plain())
        talker = Talker(host)
        host.node.add(talker)
        host.start()
        host.after(0.1, lambda: talker.write_down("timer"))
        with sender_to(host) as send:
            send(1)
            time.sleep(0.4)  # noqa: ASYNC251 - the stall is what is tested
            send(2)
            await eventually(lambda: talker.diary[-1][0] == "timer")
        assert [what for what, _ in talker.diary] == ["start", "away", "Ping", "Ping", "timer"]
        assert 0.25 < dict(talker.diary)["away"] <= dict(talker.diary)["timer"]
        await host.close()

    run(main())
