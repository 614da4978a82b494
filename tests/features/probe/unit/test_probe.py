"""Probe on fake hosts: times, sizes, versions, and what a peer may not do with it.  Spec: foundation F3, F10, F17."""

from __future__ import annotations

from math import inf, nan

import pytest
from msgspec.structs import replace

from holdfast.features.probe.protocol.messages import Ping, Pong
from holdfast.features.probe.protocol.probe import LATELY, PINGS_MAX, SEAL_BYTES, SIZE_MAX, TIMEOUT, TRIES, Probe, Reply, wire_bytes
from holdfast.host import DATAGRAM_BYTES_MAX, Address, NodeId
from holdfast.node import life_of
from holdfast.wire.codec import Codec
from holdfast.wire.keys import Key, Keyring
from holdfast.wire.seal import SEALED_BYTES_MIN, Channel, Sealed
from tests.support.fake_host import FakeHost

B = NodeId("b", 1)
THERE = Address("b", 1)


class Stand:
    """A probe and what it found."""

    def __init__(self, name: str = "a") -> None:
        self.host = FakeHost(name)
        self.probe = Probe(self.host, "1.2.3")
        self.replies: list[Reply | None] = []

    def ping(self, to: NodeId | Address = B, size: int = 0) -> Ping:
        self.probe.ping(to, size, self.replies.append)
        return self.host.take(Ping)[0][1]


@pytest.fixture
def stand() -> Stand:
    return Stand()


def test_the_time_is_of_the_message_that_was_answered(stand: Stand) -> None:
    """A second try does not make the first one slow."""
    stand.ping()
    stand.host.pass_time(TIMEOUT / TRIES + 0.01)
    second = stand.host.take(Ping)[0][1]
    stand.host.pass_time(0.02)
    stand.probe.on_message(B, Pong(second.serial, second.attempt, "2.0", 5.0, 0.0, b""))
    assert stand.replies == [Reply(pytest.approx(0.03), B, "2.0", 5.0, 0.0)]  # type: ignore[arg-type]
    assert stand.host.timers == 0


def test_silence_is_none_after_three_tries(stand: Stand) -> None:
    """Closed port: nothing comes back, and that takes as long as was said."""
    stand.ping(THERE)
    stand.host.pass_time(TIMEOUT - 0.01)
    assert stand.replies == []
    stand.host.pass_time(0.02)
    assert stand.replies == [None]
    assert len(stand.host.take(Ping)) == TRIES - 1


def test_whoever_answers_at_an_address_is_the_answer(stand: Stand) -> None:
    """F3: an address is asked without knowing who lives there; a life only by itself."""
    first, second = stand.ping(THERE), stand.ping(B)
    stranger = NodeId("z", 1)
    for ping in (first, second):
        stand.probe.on_message(stranger, Pong(ping.serial, 0, "", 0.0, 0.0, b""))
    assert [reply.life for reply in stand.replies if reply] == [stranger]
    assert stand.probe.counts["late"] == 1


def test_answers_say_how_it_is(stand: Stand) -> None:
    """Doctor: version, uptime and how long it was stopped lately."""
    stand.host.pass_time(50.0)
    stand.probe.on_away(0.4)
    stand.host.pass_time(LATELY / 2)
    stand.probe.on_away(0.2)
    stand.probe.on_message(B, Ping(7, 1, 0, b""))
    assert stand.host.take(Pong) == [(B, Pong(7, 1, "1.2.3", pytest.approx(350.0), pytest.approx(0.6), b""))]  # type: ignore[arg-type]
    stand.host.pass_time(LATELY * 0.75)
    assert stand.probe.paused == pytest.approx(0.2)


def sealed_bytes(sender: NodeId, message: Ping | Pong) -> int:
    codec = Codec([Ping, Pong])
    sealer = Sealed("group", Keyring(Key(bytes(32))))
    return len(sealer.seal(codec.encode(sender, life_of(B), b"", message), Channel.STREAM))


@pytest.mark.parametrize("name", ["a", "n" * 64])
@pytest.mark.parametrize("size", [576, DATAGRAM_BYTES_MAX, 5000])
def test_sizes_are_those_of_the_wire(name: str, size: int) -> None:
    """Doctor, small MTU: question and answer have the size that was asked for, whatever the names, and never more."""
    asker, answerer = Stand(name), Stand("b")
    ping = asker.ping(size=size)
    assert size - 3 <= sealed_bytes(asker.host.me, ping) <= size
    answerer.host.pass_time(1.5)
    answerer.probe.on_message(asker.host.me, ping)
    assert size - 3 <= sealed_bytes(answerer.host.me, answerer.host.take(Pong)[0][1]) <= size
    assert SEAL_BYTES == SEALED_BYTES_MIN


def test_each_direction_alone(stand: Stand) -> None:
    """Doctor, small MTU: a large question with a small answer tells one direction from the other."""
    stand.probe.ping(B, 1200, stand.replies.append, back=0)
    ping = stand.host.take(Ping)[0][1]
    stand.probe.on_message(B, ping)
    assert stand.host.take(Pong)[0][1].padding == b""


def test_nobody_is_flooded_with_our_help(stand: Stand) -> None:
    """A small question never gets a large answer."""
    stand.probe.on_message(B, Ping(1, 0, SIZE_MAX, b""))
    assert len(stand.host.take(Pong)[0][1].padding) <= 100


@pytest.mark.parametrize(
    "change",
    [
        {"attempt": 1},
        {"attempt": -1},
        {"version": "\x1b[2J"},
        {"version": "v" * 65},
        {"uptime": nan},
        {"uptime": -1.0},
        {"paused": inf},
        {"seats": "\x1b[2J"},
        {"seats": "s" * 257},
    ],
)
def test_what_is_shown_is_looked_at_first(stand: Stand, change: dict[str, object]) -> None:
    """Foundation 2: a peer's words end on a terminal; what does not fit is counted and forgotten."""
    ping = stand.ping()
    fields: dict[str, object] = {"attempt": 0, "version": "1", "uptime": 0.0, "paused": 0.0, "padding": b"", **change}
    stand.probe.on_message(B, Pong(ping.serial, **fields))  # type: ignore[arg-type]
    assert stand.replies == []
    assert stand.probe.counts["malformed"] == 1


def test_open_pings_are_limited(stand: Stand) -> None:
    """F17: the overflow ends at once and is counted."""
    for _ in range(PINGS_MAX + 1):
        stand.probe.ping(B, 0, stand.replies.append)
    assert stand.replies == [None]
    assert stand.probe.counts["busy"] == 1


def test_stop_answers_everybody(stand: Stand) -> None:
    """Machine: whoever waits hears of it, and no timer is left."""
    stand.ping()
    stand.probe.stop()
    assert stand.replies == [None]
    assert stand.host.timers == 0


@pytest.mark.parametrize("size, told", [(0, ""), (300, "s1@10.0.0.1:7946")], ids=["no room", "room"])
def test_an_answer_says_which_seats_are_counted_where_there_is_room(size: int, told: str) -> None:
    """F12, F17: what is said of the seats goes into an answer that is large anyway, so no answer is larger than its question."""
    asking, host = Stand(), FakeHost("b")
    answering = Probe(host, "1.2.3", "s1@10.0.0.1:7946")
    question = asking.ping(B, size)
    answering.on_message(asking.host.me, question)
    ((_, pong),) = host.take(Pong)
    assert wire_bytes(B, pong) <= max(wire_bytes(asking.host.me, question), wire_bytes(B, replace(pong, padding=b"")))
    asking.probe.on_message(B, pong)
    assert [reply.seats for reply in asking.replies if reply] == [told]
