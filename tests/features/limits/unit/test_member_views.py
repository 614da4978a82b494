"""Limits over a plain member list.  Spec: limits 5.11, H272; F15."""

from __future__ import annotations

from math import inf

import pytest

from holdfast.bounds import AHEAD_MAX
from holdfast.errors import ConfigError
from holdfast.events import Joined, MembershipEvent, ViewChanged, ViewEvent
from holdfast.features.limits.protocol.member_views import PEAK_SECONDS, MemberViews, digest_of
from holdfast.features.limits.protocol.specs import make
from holdfast.host import Address, Carried, Member, NodeId, ViewState
from tests.features.limits.stand import API, CONFIG, EPOCH, A, B, C, D, Group, Stand, view_of
from tests.support.fake_host import FakeHost


class FakeList:
    """A member list that the test writes."""

    def __init__(self, *lives: NodeId) -> None:
        self.version = 1
        self.usable = inf
        self._members = self._of(lives)
        self._listeners: list[object] = []

    def members(self, topic: str | None = None) -> tuple[Member, ...]:
        return self._members

    def get(self, name: str) -> Member | None:
        return next((member for member in self._members if member.name == name), None)

    def publish(self, row: str, value: bytes | None) -> None:
        """Never called here."""

    def subscribe(self, listener: object) -> None:
        self._listeners.append(listener)

    def usable_until(self) -> float:
        return self.usable

    def become(self, *lives: NodeId) -> None:
        self._members = self._of(lives)
        self.version += 1

    def tell(self, event: MembershipEvent) -> None:
        for listener in self._listeners:
            listener(event)  # type: ignore[operator]

    @staticmethod
    def _of(lives: tuple[NodeId, ...]) -> tuple[Member, ...]:
        return tuple(Member(life, Address(life.name, 1), {}) for life in sorted(lives))


def test_the_list_is_the_view() -> None:
    """Limits 5.11: the instance is a digest of the sorted lives; never settled; leased while the list is usable."""
    host, members = FakeHost("a"), FakeList(A, B, C)
    views = MemberViews(host, members)
    view = views.view
    assert view is not None
    assert view.id == digest_of((C, A, B)) != digest_of((A, B))
    assert digest_of((A, B)) != digest_of((A, NodeId("b", 2)))
    assert ([member.id for member in view.members], view.fleet) == ([A, B, C], 3)
    assert (views.state, views.settled, views.settled_at, views.left_at) == (ViewState.STABLE, False, inf, None)
    members.usable = host.now
    assert (views.view, views.state) == (None, ViewState.LOST)


def test_it_is_a_number_that_a_peer_may_send() -> None:
    """F16: an id travels as that of any view, so its number stays below what a clock allows."""
    assert all(digest_of((NodeId(f"m{i}", 1),)).number < AHEAD_MAX // 2 for i in range(200))


def test_a_member_that_is_in_no_list() -> None:
    """Limits 5.11: it is on its own."""
    views = MemberViews(FakeHost("a"), FakeList(B, C))
    assert views.view is None
    outcomes: list[Carried] = []
    views.carry(B, object(), outcomes.append)  # type: ignore[arg-type]
    views.hurry()
    assert (outcomes, views.trip("why", above=9)) == ([Carried.NOT_IN_VIEW], False)


def test_listeners_hear_of_another_list() -> None:
    """Limits 5.11: as of another view, with who came and who went; the largest list is remembered for ten minutes (D3)."""
    host, members = FakeHost("a"), FakeList(A, B, C)
    views = MemberViews(host, members)
    heard: list[ViewEvent] = []
    views.subscribe(heard.append)
    assert views.view is not None
    members.become(A, D)
    members.tell(Joined(members.members()[1]))
    members.tell(Joined(members.members()[1]))
    (event,) = heard
    assert isinstance(event, ViewChanged)
    assert (event.added, event.removed, event.view.fleet) == ((D,), (B, C), 3)
    host.clock += PEAK_SECONDS + 1
    members.become(A, B)
    assert views.view.fleet == 2


def test_only_fair() -> None:
    """Limits 5.11: strict and exact need agreed views; the error names the setting."""
    stand = Stand(agreed=False)
    for policy in ("strict", "exact"):
        stand.specs.set(API, make(600.0, 10.0, policy=policy, fleet=3))
        with pytest.raises(ConfigError, match=f"limit '{API}': policies strict and exact need agreed views; set seats"):
            stand.use()


def test_equal_lists_share() -> None:
    """Limits 5.11: members with the same list gossip as those of a view do; ids need not grow."""
    group = Group(4, agreed=False)
    group.limit(400.0, arrives=[250.0, 50.0, 50.0, 50.0])
    for number in (900, 17):
        group.install(number)
        group.run(12.0)
        assert group.shares == pytest.approx([247.0, 51.0, 51.0, 51.0], rel=0.02)


def lists(group: Group, one: list[int], other: list[int]) -> None:
    """The first have a list with all of these, the others one with all of theirs: as instances 1 and 2, with all as members."""
    lives = [stand.me for stand in group]
    for at in one:
        group[at].views.install(view_of(1, lives))
    for at in other:
        group[at].views.install(view_of(2, lives))


def test_lists_that_differ() -> None:
    """Limits 5.11: no member gossips with a member of another list, and after 3 s each is back at R/n; equal again, the limit is shared."""
    group = Group(4, agreed=False)
    group.limit(400.0, arrives=[250.0, 50.0, 50.0, 50.0])
    lists(group, [0, 1, 2, 3], [])
    group.run(12.0)
    lists(group, [0, 1], [2, 3])
    group.run(CONFIG.differ_timeout - EPOCH)
    assert not any(stand.limiter.standing.apart for stand in group)
    group.run(3 * EPOCH)
    assert [stand.limiter.standing.apart for stand in group] == [True] * 4
    assert group.shares == pytest.approx([100.0] * 4)
    group.run(10.0)
    assert group.shares == pytest.approx([100.0] * 4)
    lists(group, [0, 1, 2, 3], [])
    group.run(12.0)
    assert not any(stand.limiter.standing.apart for stand in group)
    assert group.shares == pytest.approx([247.0, 51.0, 51.0, 51.0], rel=0.02)


def test_lists_that_differ_for_a_moment() -> None:
    """Limits 5.11: news of a member takes a moment; no share falls for that."""
    group = Group(4, agreed=False)
    group.limit(400.0, arrives=[250.0, 50.0, 50.0, 50.0])
    lists(group, [0, 1, 2, 3], [])
    group.run(12.0)
    lists(group, [], [2, 3])
    group.run(1.0)
    lists(group, [], [0, 1])
    for _ in range(20):
        group.run(0.5)
        assert not any(stand.limiter.standing.apart for stand in group)


def test_a_change_without_an_event() -> None:
    """Limits 5.11: the limiter asks for the list in every epoch, for a membership may change it without a word."""
    host, members = FakeHost("a"), FakeList(A, B)
    stand = Stand(host=host, agreed=False)
    stand.limiter.stop()
    views = MemberViews(host, members)
    stand.limiter.standing._views = views
    members.become(A, B, C)
    stand.limiter.standing.look()
    assert stand.limiter.standing.size == 3
