"""The event hub: one buffer per subscriber, one encoding per event.  Spec: foundation 5 (EventsLost); docs/local-api.md (Watch)."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from holdfast.agent.socket.events import EventHub, Subscription
from holdfast.agent.socket.view import ViewChanges
from holdfast.events import ConfigMismatch, Event, EventsLost, Failed, Granted, Joined, LeaderChanged, LeaderSuspected, Paused
from holdfast.features.ring.protocol.facts import Lost, NeighbourhoodChanged
from holdfast.features.ring.protocol.ids import RingId
from holdfast.host import Address, Grant, Member, MemberStatus, NodeId
from holdfast.local.calls import EventItem, GroupView, Listed, ViewChange
from holdfast.local.news import encoded_fields, event_of, fields_of, name_of

MEMBER = Member(NodeId("web-1", 17), Address("10.0.0.5", 7946), {"tag:zone": b"eu", "topic:x": b""}, MemberStatus.SUSPECTED)
USER_EVENTS: tuple[Event, ...] = (
    Joined(MEMBER),
    Failed(MEMBER, certain=True),
    Granted(Grant("lead", "scheduler", 1_800_000_000_000, 12.5)),
    LeaderChanged("scheduler", None, 3),
    LeaderChanged("scheduler", NodeId("a", 1), 3),
    LeaderSuspected("scheduler", NodeId("a", 1), 3, cleared=False),
    LeaderSuspected("scheduler", NodeId("a", 1), 3, cleared=True),
    ConfigMismatch(NodeId("a", 1), "lease", "1.0", "2.0"),
    EventsLost(7),
    Paused(1.5),
)


class Stand:
    """A hub whose turns end when the test says so."""

    def __init__(self, buffer_max: int = 8) -> None:
        self.version = 1
        self.later: list[Callable[[], None]] = []
        self.woken = 0
        self.changes = ViewChanges()
        self.hub = EventHub(lambda: self.version, lambda: 1000.0, self._soon, changes=self.changes.take, buffer_max=buffer_max)

    def watch(self, *, internal: bool = False) -> Subscription:
        return self.hub.subscribe(self._wake, internal=internal)

    def end_turn(self) -> None:
        later, self.later = self.later, []
        for step in later:
            step()

    def _soon(self, step: Callable[[], None]) -> None:
        self.later.append(step)

    def _wake(self) -> None:
        self.woken += 1


def read(item: bytes) -> EventItem:
    return msgspec.msgpack.decode(item, type=EventItem)


@pytest.mark.parametrize("event", USER_EVENTS, ids=lambda event: type(event).__name__)
def test_events_survive_the_socket(event: Event) -> None:
    """Every user event is the same object on the other side, by the name of its class."""
    stand = Stand()
    watcher = stand.watch()
    stand.hub.publish(event)
    stand.end_turn()
    (record,) = watcher.take(10)
    item = read(record.item)
    assert (item.name, event_of(item)) == (type(event).__name__, event)


def test_facts_are_plain() -> None:
    """A fact inside a protocol travels under its protocol's name (two of them are called Lost), identities as text."""
    ids = RingId(1, 2), RingId(3, 4)
    stand = Stand()
    users, both = stand.watch(), stand.watch(internal=True)
    stand.hub.publish(NeighbourhoodChanged(ids))
    stand.hub.publish(Lost(ids[0], 1, "no majority"))
    stand.end_turn()
    assert users.take(10) == []
    items = [read(record.item) for record in both.take(10)]
    assert [item.name for item in items] == ["ring.NeighbourhoodChanged", "ring.Lost"]
    assert [event_of(item) for item in items] == [None, None]
    assert fields_of(items[0]) == {"nbrs": [str(each) for each in ids]}


def test_names_that_are_not_known_are_no_error() -> None:
    """An agent of a later release may have events that this client has never heard of."""
    item = EventItem(1, 0.0, "Sneezed", msgspec.Raw(msgspec.msgpack.encode({"loud": True})))
    assert event_of(item) is None
    assert fields_of(item) == {"loud": True}
    assert name_of(Paused(1.0)) == "Paused"


def test_a_slow_subscriber_loses_the_oldest_and_is_told_once() -> None:
    """Foundation 5: EventsLost(n) once, then what is newest; another subscriber loses nothing."""
    stand = Stand(buffer_max=8)
    slow, quick = stand.watch(), stand.watch()
    seen: list[Event] = []
    for number in range(20):
        stand.hub.publish(Paused(float(number)))
        stand.end_turn()
        seen += [record.event for record in quick.take(100)]
    assert seen == [Paused(float(number)) for number in range(20)]
    assert [record.event for record in slow.take(100)] == [EventsLost(12), *(Paused(float(number)) for number in range(12, 20))]
    stand.hub.publish(Paused(99.0))
    stand.end_turn()
    assert [record.event for record in slow.take(100)] == [Paused(99.0)]
    assert stand.hub.lost == 12


def test_a_subscriber_is_woken_once_until_it_reads() -> None:
    """Who does not read costs nothing but its buffer."""
    stand = Stand()
    watcher = stand.watch()
    for _ in range(5):
        stand.hub.publish(Paused(1.0))
        stand.end_turn()
    assert stand.woken == 1
    assert len(watcher.take(2)) == 2
    stand.hub.publish(Paused(2.0))
    stand.end_turn()
    assert stand.woken == 1, "it knows that there is more"
    assert len(watcher.take(10)) == 4
    stand.hub.publish(Paused(3.0))
    stand.end_turn()
    assert stand.woken == 2


def test_each_event_is_encoded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """200 clients watch: the fields of an event are written once, and every client gets the same bytes."""
    encoded: list[Event] = []

    def counted(event: Event) -> bytes:
        encoded.append(event)
        return encoded_fields(event)

    monkeypatch.setattr("holdfast.agent.socket.events.encoded_fields", counted)
    stand = Stand()
    watchers = [stand.watch() for _ in range(200)]
    stand.hub.publish(Joined(MEMBER))
    stand.end_turn()
    items = [watcher.take(10)[0].item for watcher in watchers]
    assert len(encoded) == 1
    assert all(item is items[0] for item in items)


def test_an_event_has_the_version_after_its_turn() -> None:
    """EventItem.version: whoever looks at that version sees what the event told, also if the list was finished after it."""
    stand = Stand()
    watcher = stand.watch()
    stand.hub.publish(Joined(MEMBER))
    stand.version = 2
    stand.end_turn()
    assert read(watcher.take(1)[0].item).version == 2


def test_what_changed_while_no_client_listened_is_not_told() -> None:
    """H340: the first client begins with a view that has it, so its first event costs bytes for what is new in it."""
    stand = Stand()
    stand.changes.note(GroupView(1, "member", MEMBER, (), ()))
    stand.changes.note(GroupView(2, "member", MEMBER, (MEMBER,), (7,)))
    stand.version = 2
    first = stand.watch()
    stand.changes.note(GroupView(3, "leaving", MEMBER, (MEMBER,), (7,)))
    stand.version = 3
    second = stand.watch()
    stand.hub.publish(Paused(1.0))
    stand.end_turn()
    told = [read(record.item).change for watcher in (first, second) for record in watcher.take(10)]
    assert told == [ViewChange(2, "leaving")] * 2


def test_the_first_event_for_users_carries_the_change() -> None:
    """H204: what changed in a turn is told once, with an event that every watcher gets; what nobody was told waits for the next one."""
    stand = Stand()
    users, both = stand.watch(), stand.watch(internal=True)
    stand.changes.note(GroupView(1, "joining", MEMBER, (), ()))
    stand.changes.note(GroupView(2, "member", MEMBER, (), ()))
    stand.version = 2
    stand.hub.publish(Lost(RingId(1, 2), 1, "no majority"))
    stand.end_turn()
    assert [read(record.item).change for record in both.take(10)] == [None]
    stand.changes.note(GroupView(3, "member", MEMBER, (MEMBER,), (7,)))
    stand.version = 3
    stand.hub.publish(Lost(RingId(1, 2), 1, "no majority"))
    stand.hub.publish(Joined(MEMBER))
    stand.hub.publish(Paused(1.0))
    stand.end_turn()
    change = ViewChange(1, "member", None, (Listed(MEMBER, 7),))
    assert [read(record.item).change for record in users.take(10)] == [change, None]
    assert [read(record.item).change for record in both.take(10)] == [None, change, None]


def test_a_subscriber_hears_nothing_from_before() -> None:
    """Watch: the stream begins after the view in its answer."""
    stand = Stand()
    early = stand.watch()
    stand.hub.publish(Paused(1.0))
    late = stand.watch()
    stand.end_turn()
    assert len(early.take(10)) == 1
    assert late.take(10) == []
    late.close()
    stand.hub.publish(Paused(2.0))
    stand.end_turn()
    assert late.take(10) == []


def test_one_turn_with_more_events_than_a_buffer() -> None:
    """Limits: the hub keeps no more than a buffer's worth between turns either."""
    stand = Stand(buffer_max=4)
    watcher = stand.watch()
    for number in range(10):
        stand.hub.publish(Paused(float(number)))
    stand.end_turn()
    assert [record.event for record in watcher.take(100)] == [EventsLost(6), *(Paused(float(number)) for number in range(6, 10))]


def test_without_subscribers_nothing_is_kept() -> None:
    """Foundation 5: what happened before a client watches is not for it, and what happens after it left is for none."""
    stand = Stand()
    stand.hub.publish(Paused(1.0))
    watcher = stand.watch()
    stand.end_turn()
    assert watcher.take(100) == []
    watcher.close()
    assert not stand.hub.subscribers
