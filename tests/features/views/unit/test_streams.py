"""Views as clients of an agent hear of them: what is told, when, and what a client that does not read misses."""

from __future__ import annotations

import msgspec
import pytest

from holdfast.events import Changing, ViewChanged, ViewLost, ViewRestored, ViewTripped
from holdfast.features.views.calls import ViewItem
from holdfast.features.views.client_base import ViewMirror
from holdfast.features.views.streams import WAITING_MAX, ViewNews, ViewStream
from holdfast.host import NodeId, ViewState
from tests.features.views.fake_views import FakeTurns, FakeViews, view

HEARTBEAT = 0.25


class Stand:
    """News of views by script."""

    def __init__(self) -> None:
        self.host, self.views = FakeTurns(), FakeViews()
        self.news = ViewNews(self.host, HEARTBEAT)
        self.news.follow(self.views)
        self.woken: list[ViewStream] = []

    def open(self) -> ViewStream:
        found: list[ViewStream] = []
        stream = self.news.open(lambda: self.woken.extend(found))
        found.append(stream)
        return stream

    def change(self, number: int, *names: str) -> None:
        """A view is installed."""
        self.views.stand(view(number, *names), self.host.now + 1.5)
        assert self.views.view is not None
        self.views.tell(ViewChanged(self.views.view, (), ()))
        self.host.turn()


@pytest.fixture
def stand() -> Stand:
    return Stand()


def read(stream: ViewStream, limit: int = 64) -> list[ViewItem]:
    return [msgspec.msgpack.decode(each, type=ViewItem) for each in stream.take(limit)]


def test_the_first_item_says_how_it_is(stand: Stand) -> None:
    """Views 10: a client knows the view at once when another one has asked for it before."""
    (item,) = read(stand.open())
    assert (item.what, item.state, item.leased_until, item.settled_at, item.view) == ("now", ViewState.LOST, None, None, None)
    stand.change(3, "a", "b")
    (item,) = read(stand.open())
    assert (item.what, item.state, item.leased_until) == ("now", ViewState.STABLE, stand.host.now + 1.5)
    assert item.view is not None
    assert item.view.whole


def test_events_in_order_each_with_the_standing(stand: Stand) -> None:
    """Views 9: the five events; the client is woken when the turn in which they came is over."""
    stream = stand.open()
    read(stream)
    stand.change(3, "a", "b")
    stand.views.tell(Changing(3))
    stand.views.tell(ViewTripped(NodeId("b", 1), "silent"))
    stand.views.stand(None)
    stand.views.tell(ViewLost("tripped"))
    assert [item.what for item in read(stream)] == ["view"]  # The rest has not been looked at yet.
    stand.host.turn()
    assert stand.woken == [stream, stream]
    changing, tripped, lost = read(stream)
    assert (changing.what, changing.number) == ("changing", 3)
    assert (tripped.what, tripped.peer, tripped.why) == ("tripped", NodeId("b", 1), "silent")
    assert (lost.what, lost.state, lost.why, lost.leased_until) == ("lost", ViewState.LOST, "tripped", None)


def test_a_view_is_told_once(stand: Stand) -> None:
    """Views D14: what was told is the base of what is told next, also after it was lost and restored."""
    stream, mirror = stand.open(), ViewMirror()
    names = [f"n{number}" for number in range(50)]
    read(stream)
    stand.change(3, *names)
    (first,) = read(stream)
    mirror.follow(first)
    there = stand.views.view
    stand.views.stand(None)
    stand.views.tell(ViewLost("silence"))
    stand.views.stand(there, stand.host.now + 1.5)
    assert there is not None
    stand.views.tell(ViewRestored(there))
    stand.host.turn()
    lost, restored = read(stream)
    assert (lost.view, restored.view) == (None, None)
    stand.change(4, *names[1:])
    (second,) = read(stream)
    assert second.view is not None
    assert (second.view.whole, second.view.members, second.view.gone) == (False, (), ("n0",))
    mirror.follow(second)
    assert mirror.standing.view == stand.views.view


def test_an_idle_lease_is_told_every_two_heartbeats(stand: Stand) -> None:
    """Views 5.6: a pong extends the lease each heartbeat; an idle client costs two frames a second at `lan`, and the last extension is
    told within two heartbeats, so that it is known before the agent tries another server."""
    stream = stand.open()
    stand.change(3, "a")
    read(stream)
    told = []
    for _ in range(40):
        stand.views.leased_until = stand.host.now + 1.5
        stand.host.pass_time(HEARTBEAT)
        told += read(stream)
    assert {item.what for item in told} == {"lease"}
    assert 19 <= len(told) <= 21
    last = stand.views.leased_until = stand.host.now + 1.5
    stand.host.pass_time(2 * HEARTBEAT)
    (final,) = read(stream)
    assert final.leased_until == last
    stand.host.pass_time(10 * HEARTBEAT)
    assert read(stream) == []


def test_a_client_that_does_not_read(stand: Stand) -> None:
    """Views 10: bounded; it is told how many events it missed, and the newest view, whole or as what differs from the last it was told."""
    stream, mirror = stand.open(), ViewMirror()
    for item in read(stream):
        mirror.follow(item)
    for number in range(3, 3 + 3 * WAITING_MAX):
        stand.change(number, "a", f"n{number}")
    items = read(stream)
    assert (items[0].what, len(items)) == ("missed", 1)
    assert items[0].missed == stand.news.missed == 3 * WAITING_MAX
    for item in items:
        mirror.follow(item)
    assert mirror.standing.view == stand.views.view
    stand.change(1000, "a")
    assert [item.what for item in read(stream)] == ["view"]


def test_a_client_that_reads_little(stand: Stand) -> None:
    """Docs/local-api.md (streams): no more items than are asked for; the rest comes later, in order."""
    stream = stand.open()
    read(stream)
    for number in range(3, 9):
        stand.change(number, "a")
    assert [item.view.id.number for item in read(stream, 4) if item.view is not None] == [3, 4, 5, 6]
    assert [item.view.id.number for item in read(stream, 4) if item.view is not None] == [7, 8]


def test_the_last_stream_that_is_closed(stand: Stand) -> None:
    """Views D31: its end is told in a turn, once; then no timer runs any more."""
    ended: list[int] = []
    stand.news.empty = lambda: ended.append(len(stand.news))
    first, second = stand.open(), stand.open()
    first.close()
    first.close()
    stand.host.turn()
    assert (ended, len(stand.news)) == ([], 1)
    second.close()
    assert ended == []
    stand.host.turn()
    assert ended == [0]
    assert [timer for *_, timer in stand.host._timers if timer.callback is not None] == []
    stand.views.leased_until = 5000.0
    stand.host.pass_time(10.0)
    assert stand.woken == []


def test_a_superseded_view_has_no_lease(stand: Stand) -> None:
    """Views G6: a client that reads late is told each view, and the lease of the newest beside the newest alone. Seen: it read the lease
    of the later view beside the former one, and took that for leased."""
    stream = stand.open()
    read(stream)
    stand.change(3, "a", "b")
    stand.change(5, "a")
    former, newest = read(stream)
    assert (former.state, former.leased_until, former.settled_at) == (ViewState.LOST, None, None)
    assert newest.leased_until is not None
    assert newest.state == ViewState.STABLE
