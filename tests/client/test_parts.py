"""The parts without I/O: the member list, buffers, the mirror, the conversation, what is held."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import pytest
from msgspec import Raw
from msgspec.structs import replace

import holdfast
from holdfast import errors
from holdfast.client import holding as holding_module
from holdfast.client.buffers import EVENTS_MAX, EventBuffer
from holdfast.client.conversation import Conversation
from holdfast.client.holding import Held
from holdfast.client.loop.held import _stopped
from holdfast.client.members import Members
from holdfast.client.mirror import Mirror
from holdfast.client.wire import agent_lost, error_of, frame_of
from holdfast.events import Event, EventsLost, Joined
from holdfast.features.mail import calls as mail_calls
from holdfast.features.mail.client_base import MESSAGES_MAX, MessageBuffer
from holdfast.features.ring.protocol.ids import CIRCLE, RingId, owner_of, position_of
from holdfast.host import NodeId
from holdfast.kit.positions import closest
from holdfast.local import calls
from holdfast.local.ends import LAPSED
from holdfast.local.frame import LENGTH_BYTES, framed
from tests.client.fake_agent import decode_call, encode, member, view


class Events(EventBuffer):
    """Nobody is woken."""

    def _wake(self) -> None: ...

    def read(self) -> list[Event]:
        items = list(self._items)
        self._items.clear()
        return items


class Letters(MessageBuffer):
    """Nobody is woken."""

    def _wake(self) -> None: ...


class Hold(Held):
    """Nobody waits."""

    def _changed(self) -> None: ...


class Waiter:
    """Remembers what it was told."""

    def __init__(self) -> None:
        self.told: Any = None

    def set_result(self, value: Any, /) -> None:
        self.told = value

    def set_exception(self, error: Any, /) -> None:
        self.told = error

    def done(self) -> bool:
        return self.told is not None


def joined(version: int, name: str = "b") -> bytes:
    return encode(calls.EventItem(version, 0.0, "Joined", Raw(encode(Joined(member(name))))))


def followed(version: int, since: int, *listed: str, gone: Sequence[str] = (), state: str = "member") -> bytes:
    """An event with the change that belongs to it."""
    lines = tuple(calls.Listed(member(name), position_of(name)) for name in listed)
    change = calls.ViewChange(since, state, None, lines, tuple(gone))
    return encode(calls.EventItem(version, 0.0, "Joined", Raw(encode(Joined(member("b")))), change))


def item(what: str, *, token: int = 5, deadline: float = 0.0, why: str = "") -> bytes:
    return encode(calls.GrantItem(what, token, deadline, 0, why))


def told(frame: object) -> bytes:
    return framed(encode(frame))


# Errors by name.


def test_errors_come_back_by_class() -> None:
    """Foundation 5: what the agent refuses with is what the client raises; a class of a later version is still an error of ours."""
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, errors.HoldfastError)]
    assert len(kinds) > 15
    for kind in kinds:
        assert type(error_of(kind.__name__, "why")) is kind
    later = error_of("Later", "why")
    assert (type(later), str(later)) == (errors.HoldfastError, "Later: why")


def test_a_call_that_is_too_long_is_not_sent() -> None:
    """The agent ends a connection that announces too much, so the client refuses it before."""
    with pytest.raises(errors.ConfigError, match="Send: 70"):
        frame_of(mail_calls.Send(1, "b", bytes(70_000), 1.0))


# The member list.


def test_members_is_a_snapshot() -> None:
    """PRODUCT: an immutable snapshot that knows its version."""
    members = Members(view(7, member("a"), member("b", zone="eu")))
    assert (len(members), members.version, members.names) == (2, 7, ("a", "b"))
    assert members[1] is members.get("b")
    assert members[:1] == (members[0],)
    assert member("a") in members
    assert members.get("c") is None
    with pytest.raises(AttributeError):
        members.anything = 1  # type: ignore[attr-defined]


@pytest.mark.parametrize("circle", [16, 1 << 64], ids=["crowded", "whole"])
def test_the_closest_position_is_that_of_the_ring(circle: int) -> None:
    """Ring 5.7, H321: two ways to find the owner give one answer: between, on and equally far from positions, and around the end."""
    random = Random(circle)
    scale = CIRCLE // circle
    for _ in range(300):
        positions = sorted(position * scale for position in random.sample(range(min(circle, 1 << 62)), random.randrange(1, 9)))
        ids = [RingId(position, number) for number, position in enumerate(positions)]
        keys = [position + step for position in (0, *positions) for step in (-1, 0, 1, scale // 2, -(scale // 2))]
        for key in (*keys, *(random.randrange(CIRCLE) for _ in range(20))):
            found = owner_of(ids, key % CIRCLE)
            assert found is not None
            assert closest(positions, key % CIRCLE) == found.inc


def test_owner_is_the_rings() -> None:
    """Ring 5.7: the client computes the same owner as the agents do."""
    members = Members(view(1, *(member(f"m{number}") for number in range(9))))
    ring = sorted(RingId(position_of(each.name), 1) for each in members)
    for key in (f"key{number}" for number in range(200)):
        owner, expected = members.owner(key), owner_of(ring, position_of(key))
        assert owner is not None
        assert expected is not None
        assert position_of(owner.name) == expected.pos
    assert Members(calls.GroupView(1, "joining", member("a"), (), ())).owner("x") is None


# Buffers.


def test_a_reader_that_is_behind_reads_events_lost() -> None:
    """STYLE 4: where events are missing stands their number, and what came before and after is in order."""
    events = Events()
    for _ in range(EVENTS_MAX + 3):
        events.put(Joined(member("b")))
    assert events.read() == [Joined(member("b"))] * EVENTS_MAX + [EventsLost(3)]
    events.put(Joined(member("c")))
    assert events.read() == [Joined(member("c"))]


def test_events_lost_at_the_agent_add_up() -> None:
    """What the agent dropped and what the client dropped is one gap."""
    events = Events()
    for _ in range(EVENTS_MAX + 1):
        events.put(Joined(member("b")))
    events.put(EventsLost(10))
    assert events.read()[-1] == EventsLost(11)


def test_messages_say_how_many_are_missing() -> None:
    """A message after a gap has the number of those that were not read in time, here and at the agent."""
    letters = Letters()
    for number in range(MESSAGES_MAX + 2):
        letters.push(encode(mail_calls.MessageItem(NodeId("b", 1), "", str(number).encode())))
    letters._items.clear()
    letters.push(encode(mail_calls.MessageItem(NodeId("b", 1), "", b"next", 5)))
    (message,) = letters._items
    assert (message.data, message.lost) == (b"next", 7)


# The mirror.


def test_an_event_brings_what_changed() -> None:
    """H204: the list is as new as the event that is read, and nothing is asked for; owners and leaders follow."""
    looks: list[int] = []
    mirror = Mirror(lambda: looks.append(1))
    mirror.start(view(1, member("a"), member("c")))
    events = Events()
    mirror.add(events)
    mirror.push(followed(2, 1, "b"))
    assert events.read() == [Joined(member("b"))]
    assert mirror.members.version == 2
    assert mirror.members == Members(view(2, member("a"), member("b"), member("c")))
    keys = [f"key{number}" for number in range(20)]
    assert [mirror.members.owner(key) for key in keys] == [Members(view(2, *mirror.members)).owner(key) for key in keys]
    mirror.push(followed(3, 2, "d", gone=["a", "never"], state="leaving"))
    assert (mirror.members.names, mirror.members.state) == (("b", "c", "d"), "leaving")
    mirror.push(joined(3))
    assert (len(events.read()), looks) == (2, [])


def test_lines_of_a_feature_are_read_once() -> None:
    """H216: what a feature added to the view is decoded when it is asked for, and again only where a line is another one."""
    mirror, reads = Mirror(lambda: None), list[bytes]()

    def read(line: Raw) -> bytes:
        reads.append(bytes(line))
        return reads[-1]

    mirror.start(replace(view(1), lines={"x": {"a": Raw(b"\x01"), "b": Raw(b"\x02"), "k": Raw(b"\x05")}, "y": {"c": Raw(b"\x03")}}))
    assert (mirror.lines("x", read), mirror.lines("x", read)) == ({"a": b"\x01", "b": b"\x02", "k": b"\x05"},) * 2
    change = calls.ViewChange(1, "member", lines={"x": {"b": Raw(b"\x04")}}, lines_gone={"x": ("a",), "y": ("c",)})
    mirror.push(encode(calls.EventItem(2, 0.0, "Paused", Raw(encode({"seconds": 1.0})), change)))
    assert (mirror.lines("x", read), mirror.lines("y", read), reads) == (
        {"b": b"\x04", "k": b"\x05"},
        {},
        [b"\x01", b"\x02", b"\x05", b"\x04"],
    )
    assert list(mirror.view.lines) == ["x"]


def test_a_change_that_does_not_follow_asks_once() -> None:
    """H204: where a change is missing the list is asked for, once; what waited then follows by its own changes."""
    looks: list[int] = []
    mirror = Mirror(lambda: looks.append(1))
    mirror.start(view(1))
    events = Events()
    mirror.add(events)
    mirror.push(followed(4, 3, "d"))
    mirror.push(followed(5, 4, "e"))
    mirror.push(followed(7, 5, "f"))
    assert (events.read(), looks, mirror.members.version) == ([], [1], 1)
    mirror.set_result(view(4, member("a"), member("d")))
    assert (len(events.read()), looks, mirror.members.version) == (3, [1], 7)
    assert mirror.members.names == ("a", "d", "e", "f")


def test_a_change_that_is_known_is_not_taken_back() -> None:
    """H204: a look may overtake events; what is older than the list changes nothing, what overlaps with it is applied."""
    mirror = Mirror(lambda: None)
    mirror.start(view(1))
    mirror.update(view(5, member("a"), member("b"), member("c")))
    mirror.push(followed(4, 1, gone=["b"]))
    assert mirror.members.names == ("a", "b", "c")
    mirror.push(followed(6, 4, "b", gone=["c"]))
    assert mirror.members == Members(view(6, member("a"), member("b")))
    assert mirror.members.version == 6


def test_events_wait_for_the_list() -> None:
    """Without the change an event waits for the list it belongs to; one look is under way at a time."""
    looks: list[int] = []
    mirror = Mirror(lambda: looks.append(1))
    mirror.start(view(1))
    events = Events()
    mirror.add(events)
    mirror.push(joined(2))
    mirror.push(joined(3, "c"))
    assert (events.read(), len(looks)) == ([], 1)
    mirror.set_result(view(2, member("a"), member("b")))
    assert (events.read(), len(looks)) == ([Joined(member("b"))], 2)
    assert mirror.members.names == ("a", "b")
    mirror.set_result(view(3, member("a"), member("b"), member("c")))
    assert (events.read(), len(looks)) == ([Joined(member("c"))], 2)


def test_nobody_asks_for_the_same_event_twice() -> None:
    """A look that was asked for after an event is as new as the event, whatever its version says."""
    looks: list[int] = []
    mirror = Mirror(lambda: looks.append(1))
    mirror.start(view(1))
    events = Events()
    mirror.add(events)
    mirror.push(joined(9))
    mirror.push(joined(10, "c"))
    mirror.set_result(view(2))
    assert (events.read(), len(looks)) == ([Joined(member("b"))], 2)
    mirror.set_result(view(2))
    assert (events.read(), len(looks)) == ([Joined(member("c"))], 2)


def test_events_do_not_wait_for_ever() -> None:
    """When no list comes, or too many events, what happened is delivered all the same."""
    mirror = Mirror(lambda: None)
    mirror.start(view(1))
    events = Events()
    mirror.add(events)
    for _ in range(EVENTS_MAX + 2):
        mirror.push(joined(9))
    assert len(events.read()) == 2
    mirror.set_exception(errors.Timeout("silent"))
    assert len(events.read()) == EVENTS_MAX


def looked(version: int, since: int, *names: str, gone: Sequence[str] = (), state: str = "member") -> calls.GroupView:
    """The answer to a look that has what changed."""
    listed = tuple(calls.Listed(member(name), position_of(name)) for name in names)
    change = calls.ViewChange(since, state, None, listed, tuple(gone))
    return calls.GroupView(version, state, member("a"), (), (), change=change)


def test_a_look_brings_what_changed() -> None:
    """H340: a look is answered with what changed since the version that is here, and the list is as new as the answer."""
    looks: list[int] = []
    mirror = Mirror(lambda: looks.append(mirror.since))
    assert mirror.since == 0
    mirror.start(view(3, member("a"), member("c")))
    events = Events()
    mirror.add(events)
    mirror.push(followed(7, 6, "d"))
    assert looks == [3]
    mirror.set_result(looked(8, 3, "b", "d", gone=["c"], state="leaving"))
    assert (len(events.read()), mirror.members.version, mirror.members.state) == (1, 8, "leaving")
    assert mirror.members == Members(view(8, member("a"), member("b"), member("d")))
    mirror.update(looked(9, 5, gone=["d"]))
    assert (mirror.members.names, mirror.since) == (("a", "b"), 9)


def test_a_look_that_does_not_fit_changes_nothing() -> None:
    """H340: what changed since a version that is not reached here, or until one that is passed, is no news."""
    mirror = Mirror(lambda: None)
    mirror.start(view(5, member("a"), member("b")))
    mirror.update(looked(9, 6, "c"))
    mirror.update(looked(5, 3, gone=["b"]))
    mirror.update(looked(4, 3, gone=["b"]))
    assert (mirror.members.names, mirror.members.version) == (("a", "b"), 5)


def test_another_agent_is_asked_for_the_whole_list() -> None:
    """H340: versions of two agents have nothing to do with each other, so between two connections no version is named."""
    mirror = Mirror(lambda: None)
    mirror.start(view(50))
    mirror.end(agent_lost("x", "it ended"))
    assert mirror.since == 0
    mirror.start(view(2))
    assert mirror.since == 2


def test_an_older_list_is_not_adopted() -> None:
    """A look that was overtaken says nothing."""
    mirror = Mirror(lambda: None)
    mirror.start(view(5, member("a"), member("b")))
    mirror.update(view(4))
    assert mirror.members.names == ("a", "b")


def test_another_agent_begins_anew() -> None:
    """Versions are comparable only with themselves: after a reconnect the list is the new agent's, and watchers are told of a gap."""
    mirror = Mirror(lambda: None)
    mirror.start(view(50))
    events = Events()
    mirror.add(events)
    mirror.push(joined(51))
    mirror.end(agent_lost("x", "it ended"))
    assert events.read() == [Joined(member("b"))]
    mirror.start(view(2, member("z")))
    assert events.read() == [EventsLost(0)]
    assert mirror.members.names == ("z",)


def test_events_of_a_later_version_are_skipped() -> None:
    """A decoder meets the unknown calmly."""
    mirror = Mirror(lambda: None)
    mirror.start(view(1))
    events = Events()
    mirror.add(events)
    mirror.push(encode(calls.EventItem(1, 0.0, "Sunrise", Raw(encode({"over": "sea"})))))
    assert events.read() == []


# The conversation.


def test_frames_are_read_in_one_place() -> None:
    """H205: whatever talks to an agent, the command line and features included, does so by the client's conversation."""
    root = Path(holdfast.__file__).parent
    sources = [path for path in root.rglob("*.py") if not path.is_relative_to(root / "agent") and not path.is_relative_to(root / "local")]
    knowing = {path.relative_to(root).as_posix(): re.findall(r"holdfast\.local\.frame import (.+)", path.read_text()) for path in sources}
    encoding = {path for path, names in knowing.items() if names == ["encoded"]}  # what agents answer: no frame is cut or made
    assert {path for path, names in knowing.items() if names} - encoding == {"client/conversation.py", "client/wire.py"}


def test_answers_come_in_any_order() -> None:
    """Each answer finds its call; serials grow."""
    talk = Conversation("p")
    first, second = Waiter(), Waiter()
    frames = [talk.begin(calls.Look, (), first, 1.0), talk.begin(calls.Owns, (b"k",), second, 1.0)]
    assert [decode_call(frame[LENGTH_BYTES:]).serial for frame in frames] == [1, 2]
    talk.receive(told(calls.Done(2, Raw(encode(calls.Owned(9, 1.5))))) + told(calls.Done(1, Raw(encode(view(4))))))
    assert first.told == view(4)
    assert second.told == calls.Owned(9, 1.5)


def test_late_answers_are_dropped() -> None:
    """Whoever waited too long was told so; the answer that comes then is nobody's."""
    talk = Conversation("p")
    waiter = Waiter()
    talk.begin(calls.Look, (), waiter, 1.0)
    assert talk.expire(0.9) == []
    assert talk.expire(1.0) == [waiter]
    talk.receive(told(calls.Done(1, Raw(encode(view(4))))))
    assert waiter.told is None


def test_streams_nobody_holds_are_closed() -> None:
    """A stream is kept by whoever reads it; its next item closes one that nobody reads."""
    talk = Conversation("p")
    letters = Letters()
    talk.begin(mail_calls.Messages, ("",), Waiter(), 1.0, letters)
    item = told(calls.Pushed(1, Raw(encode(mail_calls.MessageItem(NodeId("b", 1), "", b"x")))))
    assert talk.receive(item) == b""
    assert len(letters._items) == 1
    del letters
    closing = decode_call(talk.receive(item)[LENGTH_BYTES:])
    assert (type(closing), getattr(closing, "stream", 0)) == (calls.Close, 1)
    assert talk.receive(item) == b""


def test_the_agents_reason_for_closing_is_kept() -> None:
    """Closed with serial 0 says why; everything open ends with AgentLost and that reason."""
    talk = Conversation("p")
    waiter, events = Waiter(), Letters()
    talk.begin(mail_calls.Messages, ("",), waiter, 1.0, events)
    talk.receive(told(calls.Closed(0, "Unavailable", "too many clients")))
    talk.lose(agent_lost("p", "it ended"))
    assert isinstance(waiter.told, errors.AgentLost)
    assert "too many clients" in str(waiter.told)
    assert events.over
    with pytest.raises(errors.AgentLost, match="too many clients"):
        talk.begin(calls.Look, (), waiter, 1.0)


def test_a_stream_may_be_closed_alone() -> None:
    """Closed with a serial ends that stream, with the named error."""
    talk = Conversation("p")
    letters = Letters()
    talk.begin(mail_calls.Messages, ("",), Waiter(), 1.0, letters)
    talk.receive(told(calls.Closed(1, "Unavailable", "no more")))
    assert isinstance(letters._error, errors.Unavailable)
    assert talk.over is None


@pytest.mark.parametrize("data", [b"\xff\xff\xff\xff", framed(b"\xc1"), framed(encode([99, 1])), told(calls.Done(1, Raw(encode("text"))))])
def test_other_languages_end_the_connection(data: bytes) -> None:
    """A frame that cannot be read, is too long, or has a value of another type is AgentLost, never another exception."""
    talk = Conversation("p")
    talk.begin(calls.Look, (), Waiter(), 1.0)
    with pytest.raises(errors.AgentLost, match="another language"):
        talk.receive(data)


# What is held.


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    time = [100.0]
    monkeypatch.setattr(holding_module, "now", lambda: time[0])
    return time


def granted(deadline: float = 101.0) -> Hold:
    held = Hold("lead", "scheduler")
    held.push(item("granted", token=5, deadline=deadline))
    return held


def test_valid_reads_the_clock(clock: list[float]) -> None:
    """F9: a deadline is compared, never flagged; extensions move it."""
    held = granted()
    assert (held.valid, held.token, held.left) == (True, 5, 1.0)
    clock[0] = 100.5
    held.push(item("extended", deadline=102.0))
    assert held.left == 1.5
    clock[0] = 102.0
    assert held.left == 0.0
    clock[0] = 102.5
    assert held._look()
    assert held.why == LAPSED
    held.push(item("extended", deadline=110.0))
    assert not held.valid


def test_an_extension_that_is_read_too_late_revives_nothing(clock: list[float]) -> None:
    """F9: whoever looked at the deadline in between has seen that it is over, and stopped."""
    held = granted()
    clock[0] = 101.0
    assert not held.valid
    held.push(item("extended", deadline=110.0))
    assert (held.valid, held.why, held.deadline) == (False, LAPSED, 101.0)


@pytest.mark.parametrize("what", ["stop", "lost", "released", "anything a later agent says"])
def test_what_is_over_is_never_revived(clock: list[float], what: str) -> None:
    """F14: told to stop, or lost, it is not valid any more, whatever comes after."""
    held = granted()
    held.push(item(what, why="because"))
    assert (held.valid, held.why) == (False, "because")
    held.push(item("granted", token=6, deadline=110.0))
    held.push(item("extended", deadline=110.0))
    assert (held.valid, held.token, held.deadline) == (False, 5, 101.0)


def test_at_risk_is_valid_until_the_deadline(clock: list[float]) -> None:
    """A renewal that is late changes nothing before the deadline."""
    held = granted()
    held.push(item("at_risk"))
    assert (held.valid, held.at_risk) == (True, True)
    held.push(item("extended", deadline=103.0))
    assert not held.at_risk


def test_a_lost_agent_does_not_end_it_early(clock: list[float]) -> None:
    """F14: what was published stands until its deadline, also when the agent is dead."""
    held = granted()
    held.end(agent_lost("p", "it ended"))
    assert (held.valid, held.at_risk) == (True, True)
    clock[0] = 101.0
    assert not held.valid


def test_a_forked_child_holds_nothing(clock: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    """F14: a forked child is not the body."""
    held = granted()
    monkeypatch.setattr(os, "getpid", lambda: -1)
    assert (held.valid, held.left) == (False, 0.0)


async def _cancelled_twice() -> list[str]:
    """Work that cleans up for a while, and whoever waits for it is cancelled again meanwhile."""
    told: list[str] = []

    async def cleaning() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            for _ in range(3):
                with suppress(asyncio.CancelledError):
                    await asyncio.sleep(0.01)
            told.append("cleaned up")

    work = asyncio.ensure_future(cleaning())
    await asyncio.sleep(0)
    waiting = asyncio.ensure_future(_stopped(work))
    await asyncio.sleep(0)
    waiting.cancel()
    with suppress(asyncio.CancelledError):
        await waiting
    told.append("stopped")
    return told


def test_cancelled_twice_it_still_waits_for_the_work() -> None:
    """F14: "stopped" is said after the work has ended, however often the waiting is cancelled."""
    assert asyncio.run(_cancelled_twice()) == ["cleaned up", "stopped"]
