"""Views as a member list: events, rows, goodbyes.  Spec: views D31; foundation 3 (Membership, Standing), 5."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import inf

import msgspec
import pytest

from holdfast.errors import ConfigError
from holdfast.events import Decided, Event, Expelled, Failed, Joined, Left, Updated, ViewChanged, ViewEvent, ViewLost, ViewRestored
from holdfast.features.views.protocol.membership import (
    FORGOTTEN_AFTER,
    GOODBYE_HEARTBEATS,
    SWEEP_SECONDS,
    TOPIC,
    VERSION_MAX,
    ViewMembership,
)
from holdfast.features.views.protocol.survey import ViewSurvey
from holdfast.host import Address, Carried, Message, NodeId, View, ViewId, ViewMember, ViewState
from holdfast.kit.broadcast import Broadcast
from holdfast.kit.exchange import Exchange
from holdfast.kit.rows import Row
from holdfast.kit.versioned import Versioned, read
from tests.support.fake_host import FakeHost

HEARTBEAT = 0.25
S = NodeId("s", 1)
A, B, C = NodeId("a", 1), NodeId("b", 1), NodeId("c", 1)
KINDS = (Joined, Left, Failed, Decided, Updated, Expelled)


class FakeViews:
    """Implements ``membership.TakesPart``; the test says what happens."""

    settle, lease = 5.4, 1.5

    def __init__(self) -> None:
        self.view: View | None = None
        self.state = ViewState.LOST
        self.leased_until, self.settled_at, self.left_at, self.settled = -inf, inf, None, False
        self.calls: list[str] = []
        self._listeners: list[Callable[[ViewEvent], None]] = []

    def subscribe(self, listener: Callable[[ViewEvent], None]) -> None:
        self._listeners.append(listener)

    def tell(self, event: ViewEvent) -> None:
        for listener in self._listeners:
            listener(event)

    def carry(self, to: NodeId, message: Message, done: Callable[[Carried], None]) -> None:
        raise AssertionError

    def trip(self, why: str, *, above: int = 0) -> bool:
        raise AssertionError

    def hurry(self) -> None:
        raise AssertionError

    def take_part(self) -> None:
        self.calls.append("take_part")

    def withdraw(self) -> None:
        self.calls.append("withdraw")

    def survey(self) -> ViewSurvey:
        return ViewSurvey(None, None, 0, None, None, 1.0, "no view server answers", (), (), 0, 0, None, 0)

    def metrics(self) -> dict[str, float]:
        return {}


class FakeBeside:
    """Implements ``membership.RowsBeside``."""

    def __init__(self) -> None:
        self.published: list[tuple[int, Mapping[str, bytes]]] = []
        self.tell: Callable[[NodeId, int, Mapping[str, bytes]], None] = lambda life, version, rows: None

    def publish(self, version: int, rows: Mapping[str, bytes]) -> None:
        self.published.append((version, dict(rows)))

    def on_rows(self, listener: Callable[[NodeId, int, Mapping[str, bytes]], None]) -> None:
        self.tell = listener


class Stand:
    """The membership of ``a``."""

    def __init__(self, beside: FakeBeside | None = None) -> None:
        self.host, self.views = FakeHost("a"), FakeViews()
        broadcast = Broadcast(self.host)
        exchange = Exchange(self.host, broadcast)
        self.it = ViewMembership(self.host, self.views, exchange, heartbeat=HEARTBEAT, beside=beside)
        broadcast.over(self.it)
        self.heard: list[Event] = []
        self.it.subscribe(self.heard.append)
        self.it.start()
        self.table = exchange.table(TOPIC)
        self.number = 0

    def install(self, *lives: NodeId) -> None:
        self.number += 1
        members = tuple(sorted(ViewMember(life, Address(life.name, life.boot), 1, S) for life in lives))
        former = self.views.view
        was = set() if former is None else {member.id for member in former.members}
        now = {member.id for member in members}
        self.views.view = View(ViewId(self.number, "s", 1), (S,), members, len(members))
        self.views.tell(ViewChanged(self.views.view, tuple(sorted(now - was)), tuple(sorted(was - now))))

    def said(self) -> list[str]:
        """Events for users since the last look, in short."""
        found = [
            f"{type(event).__name__} {'' if isinstance(event, Expelled) else event.member.id}".strip()
            for event in self.host.emitted
            if isinstance(event, KINDS)
        ]
        self.host.emitted.clear()
        return found

    def learn(self, life: NodeId, version: int, rows: dict[str, bytes] | None, author: str = "") -> None:
        """A row of another member arrives."""
        body = None if rows is None else msgspec.msgpack.encode(rows)
        self.table.learn([Row(str(life), Versioned(version, author or life.name, body).encode(), 0.0)])


@pytest.fixture
def stand() -> Stand:
    found = Stand()
    found.it.join()
    return found


def test_metrics_before_it_starts() -> None:
    """Views D31: an agent with `http` and this membership starts: the page and the metrics are made before the machines start."""
    host = FakeHost("a")
    it = ViewMembership(host, FakeViews(), Exchange(host, Broadcast(host)), heartbeat=HEARTBEAT)
    assert it.metrics() == {"members": 0.0, "rows": 0.0}


def test_the_view_is_the_list(stand: Stand) -> None:
    """Views D31: members, sorted by id, self included, with their addresses; the version grows with every change."""
    assert (stand.it.members(), stand.it.is_member, stand.it.is_joining) == ((), False, True)
    before = stand.it.version
    stand.install(B, A)
    assert [member.id for member in stand.it.members()] == [A, B]
    assert stand.it.get("b") is stand.it.members()[1]
    assert stand.it.members()[1].address == Address("b", 1)
    assert stand.said() == ["Joined a#1", "Joined b#1"]
    assert stand.it.version > before
    assert stand.it.known == (Address("b", 1),)


def test_a_removal_is_decided_and_uncertain(stand: Stand) -> None:
    """Foundation 5: a view that leaves a member out says Decided and Failed, never certain; machines on it hear the same."""
    stand.install(A, B, C)
    stand.said()
    stand.heard.clear()
    stand.install(A, C)
    assert stand.said() == ["Decided b#1", "Failed b#1"]
    assert [type(event) for event in stand.heard] == [Decided, Failed]
    failed = stand.heard[-1]
    assert isinstance(failed, Failed)
    assert not failed.certain


def test_another_life_takes_the_place(stand: Stand) -> None:
    """F1: of two lives of one name one is in a view, and the former one has failed."""
    stand.install(A, B)
    stand.said()
    stand.install(A, NodeId("b", 2))
    assert stand.said() == ["Decided b#1", "Failed b#1", "Joined b#2"]


def test_a_lost_view_is_no_list(stand: Stand) -> None:
    """Foundation 5: ViewLost is Expelled, and no member is called dead for it; with ViewRestored all have joined again."""
    stand.install(A, B)
    stand.said()
    stand.views.tell(ViewLost("no server"))
    assert stand.said() == ["Expelled"]
    assert (stand.it.members(), stand.it.get("b"), stand.it.is_member, stand.it.is_joining) == ((), None, False, True)
    assert stand.it.usable_until() == -inf
    assert stand.it.waits_for == "no view server answers"
    assert stand.views.view is not None
    stand.views.tell(ViewRestored(stand.views.view))
    assert stand.said() == ["Joined a#1", "Joined b#1"]


def test_rows_of_others(stand: Stand) -> None:
    """Foundation 3: what members publish is in the list, whether it came before or after the view; a change is Updated."""
    stand.learn(B, 1, {"tag:zone": b"eu"})
    stand.install(A, B)
    assert stand.it.members()[1].tags == {"zone": "eu"}
    stand.said()
    stand.learn(B, 2, {"tag:zone": b"us", "topic:x": b""})
    assert stand.said() == ["Updated b#1"]
    assert [member.id for member in stand.it.members("x")] == [B]
    assert [member.id for member in stand.it.members(TOPIC)] == [A, B], "every member shares the table"


def test_own_rows(stand: Stand) -> None:
    """Foundation 3: they are in the table while this process is a member, and outlive a lost view; limits are said aloud."""
    stand.it.publish("tag:a", b"1")
    assert stand.table.get(str(A)) is None
    stand.install(A)
    assert stand.it.members()[0].tags == {"a": "1"}
    kept = stand.table.get(str(A))
    assert kept is not None
    stand.it.publish("tag:a", b"2")
    again = stand.table.get(str(A))
    assert again is not None
    assert read(again).version == read(kept).version + 1
    assert stand.it.members()[0].tags == {"a": "2"}
    with pytest.raises(ConfigError, match="accepted are at most 256"):
        stand.it.publish("tag:b", bytes(257))


def test_a_goodbye_is_no_death(stand: Stand) -> None:
    """Foundation 5: a member that said that it leaves is Left when the view leaves it out; its row going is no change of tags."""
    stand.learn(B, 1, {"tag:zone": b"eu"})
    stand.install(A, B)
    stand.said()
    stand.learn(B, 2, None)
    assert stand.said() == []
    assert stand.it.members()[1].tags == {"zone": "eu"}
    stand.install(A)
    assert stand.said() == ["Left b#1"]


def test_leaving(stand: Stand) -> None:
    """The word spreads for two heartbeats, then the part in views ends; ``left`` says when it is over."""
    stand.install(A, B)
    stand.said()
    stand.it.leave()
    assert stand.table.is_gone(str(A))
    assert stand.views.calls == ["take_part"]
    stand.host.pass_time(GOODBYE_HEARTBEATS * HEARTBEAT + 0.01)
    assert stand.views.calls == ["take_part", "withdraw"]
    assert stand.it.left
    assert stand.said() == [], "who leaves by its own wish is not expelled"


def test_leaving_before_there_is_a_view() -> None:
    """Nothing has to be said."""
    stand = Stand()
    stand.it.leave()
    assert stand.views.calls == []
    stand.it.join()
    stand.it.leave()
    assert stand.views.calls == ["take_part", "withdraw"]
    assert stand.it.left


def test_coming_back_in_the_same_life(stand: Stand) -> None:
    """A join after a goodbye, or in the middle of one: the own row is above what was said before."""
    stand.install(A, B)
    stand.it.leave()
    stand.it.join()
    stand.host.pass_time(1.0)
    assert stand.views.calls == ["take_part", "take_part"]
    stand.it.publish("tag:a", b"1")
    assert stand.table.get(str(A)) is not None
    stand.it.leave()
    stand.host.pass_time(1.0)
    stand.it.join()
    stand.install(A, B)
    assert stand.table.get(str(A)) is not None


def test_a_life_that_was_given_up_says_so(stand: Stand) -> None:
    """Another member gave up the rows of a life that was cut off for long: it publishes them again, above that."""
    stand.it.publish("tag:a", b"1")
    stand.install(A, B)
    stand.learn(A, 7, None, author="b")
    stand.host.pass_time(0.01)
    kept = stand.table.get(str(A))
    assert kept is not None
    assert (read(kept).version, read(kept).author) == (8, "a")


def test_a_version_that_no_honest_member_has(stand: Stand) -> None:
    """A peer can send anything: beyond the limit it is malformed, at the limit this row is lost, and nothing raises."""
    stand.it.publish("tag:a", b"1")
    stand.install(A, B)
    stand.learn(A, VERSION_MAX + 1, None, author="b")
    assert stand.table.counts["malformed"] == 1
    stand.learn(A, VERSION_MAX, None, author="b")
    stand.host.pass_time(0.01)
    stand.it.publish("tag:a", b"2")
    assert stand.it.members()[0].tags == {"a": "2"}
    assert stand.table.is_gone(str(A))


@pytest.mark.parametrize(
    "body", [b"\xc1", msgspec.msgpack.encode(["a"]), msgspec.msgpack.encode({"a": bytes(3073)})], ids=["bytes", "list", "size"]
)
def test_rows_that_are_none(stand: Stand, body: bytes) -> None:
    """A peer can send anything: a counter, and the list is as before."""
    stand.install(A, B)
    stand.said()
    stand.table.learn([Row(str(B), Versioned(1, "b", body).encode(), 0.0)])
    assert stand.table.counts["malformed"] == 1
    assert stand.said() == []


def test_rows_of_lives_that_are_over(stand: Stand) -> None:
    """The first member of the view gives up the rows of lives that were outside for long; the others wait for its word."""
    stand.learn(C, 1, {})
    stand.install(A, B)
    stand.host.pass_time(FORGOTTEN_AFTER - SWEEP_SECONDS)
    assert not stand.table.is_gone(str(C))
    stand.host.pass_time(2 * SWEEP_SECONDS + 1)
    assert stand.table.is_gone(str(C))


def test_another_one_is_the_first(stand: Stand) -> None:
    """Only one member writes: two would say the same twice."""
    stand.learn(C, 1, {})
    stand.install(NodeId("Z", 1), A)
    stand.host.pass_time(2 * FORGOTTEN_AFTER)
    assert not stand.table.is_gone(str(C))


def test_rows_beside_are_those_of_the_entry() -> None:
    """Views 5Z, H242: this process enters with what it publishes, and each later version is for its next entry; a goodbye is none."""
    beside = FakeBeside()
    stand = Stand(beside)
    stand.it.publish("tag:zone", b"eu")
    assert beside.published == []
    stand.it.join()
    assert (beside.published, stand.views.calls) == ([(1, {"tag:zone": b"eu"})], ["take_part"])
    stand.install(A)
    assert len(beside.published) == 1
    stand.it.publish("tag:zone", b"us")
    assert beside.published[1:] == [(2, {"tag:zone": b"us"})]
    stand.it.leave()
    stand.host.pass_time(GOODBYE_HEARTBEATS * HEARTBEAT + 0.01)
    stand.it.join()
    assert beside.published[2:] == [(4, {"tag:zone": b"us"})]


def test_rows_beside_are_known_with_the_member() -> None:
    """H242: ``Joined`` has them; the newest win, whatever way they came; what is no version of rows is dropped; no member is told of it."""
    beside = FakeBeside()
    stand = Stand(beside)
    stand.it.join()
    beside.tell(B, 2, {"tag:zone": b"eu"})
    beside.tell(C, 1, {f"tag:{number}": bytes(200) for number in range(20)})
    stand.install(A, B, C)
    assert [member.tags for member in stand.it.members()] == [{}, {"zone": "eu"}, {}]
    stand.learn(B, 3, {"tag:zone": b"us"})
    beside.tell(B, 2, {"tag:zone": b"eu"})
    assert [member.tags for member in stand.it.members()] == [{}, {"zone": "us"}, {}]
    beside.tell(B, 4, {"tag:zone": b"ap"})
    assert [member.tags for member in stand.it.members()] == [{}, {"zone": "ap"}, {}]
    beside.tell(B, VERSION_MAX + 1, {})
    assert [member.tags for member in stand.it.members()] == [{}, {"zone": "ap"}, {}]
