"""What changed in a view, between any two moments at which a client may have looked.  H204, H340; docs/local-api.md."""

from __future__ import annotations

from random import Random
from types import SimpleNamespace
from typing import Any, cast

import pytest
from msgspec import Raw
from msgspec.msgpack import encode

from holdfast.agent.socket.view import NAMES_MAX, ViewChanges, Viewer
from holdfast.client.mirror import changed
from holdfast.host import Address, Member, NodeId
from holdfast.local.calls import GroupView
from holdfast.local.leaders import LeaderView
from tests.support.calls import leader_lines

ME = Member(NodeId("me", 1), Address("10.0.0.1", 7946), {})
STATES = ("joining", "member", "member", "leaving")


def member(name: str, boot: int = 1, text: str = "") -> Member:
    return Member(NodeId(name, boot), Address("10.0.0.5", 7946), {"tag:x": text.encode()})


class Course:
    """Views of one agent, each a few lines different from the one before."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)
        self._members: dict[str, tuple[Member, int]] = {}
        self._leaders: dict[str, LeaderView] = {}
        self._me = ME
        self.version = 0

    def next(self) -> GroupView:
        draw = self._random
        for _ in range(draw.choice((0, 1, 1, 2, 9))):
            name = f"m{draw.randrange(12)}"
            if draw.random() < 0.4:
                self._members.pop(name, None)
            else:  # The same line may come back as it was: what is told must not depend on when a client looked.
                self._members[name] = member(name, draw.randrange(2), draw.choice("ab")), draw.randrange(2)
            led = f"job{draw.randrange(4)}"
            self._leaders[led] = LeaderView(led, NodeId(name, 1), draw.randrange(2), 0.0)
            if draw.random() < 0.3:
                del self._leaders[led]
        if draw.random() < 0.1:
            self._members.clear()
        if draw.random() < 0.2:
            self._me = member("me", text=draw.choice("ab"))
        self.version += 1
        lines = [self._members[name] for name in sorted(self._members)]
        lines_of_features = {**leader_lines(*self._leaders.values()), "others": {"one": Raw(b"\x07")}} if self._leaders else {}
        state = draw.choice(STATES)
        return GroupView(self.version, state, self._me, tuple(each for each, _ in lines), tuple(at for _, at in lines), lines_of_features)


@pytest.mark.parametrize("seed", range(20))
def test_a_change_makes_every_later_view_new(seed: int) -> None:
    """H204: applied to any view from ``since`` on, at whatever moment the client looked, it gives the present one."""
    course, changes, draw = Course(seed), ViewChanges(), Random(seed)
    since: list[GroupView] = []  # views that a client may have when the next change comes
    applied = 0
    for _ in range(300):
        view = course.next()
        changes.note(view)
        since.append(view)
        if draw.random() < 0.3:
            change = changes.take()
            assert (change is None) == (len(since) == 1)
            if change is not None:
                assert change.since == since[0].version
                for former in since:
                    assert changed(former, view.version, change) == view
                    applied += 1
            since = [view]
    assert applied > 300


def test_one_change_among_many_is_one_line() -> None:
    """H204: with a thousand members one that changes is one line, wherever it stands in the list."""
    lines = [member(f"m{number:04}") for number in range(1000)]
    for at in (0, 500, 999):
        changes = ViewChanges()
        changes.note(GroupView(1, "member", ME, tuple(lines), tuple(range(1000))))
        after = [*lines[:at], member(lines[at].name, text="new"), *lines[at + 1 :]]
        changes.note(GroupView(2, "member", ME, tuple(after), tuple(range(1000))))
        change = changes.take()
        assert change is not None
        assert [(line.member, line.position) for line in change.listed] == [(after[at], at)]
        assert (change.me, change.gone, change.lines, change.lines_gone) == (None, (), {}, {})
    assert changes.take() is None


def test_one_line_of_a_feature_among_many_is_one_line() -> None:
    """H204, H216: of a thousand lines one that changes is told, and what a client knows of the others stays the same object."""
    before = leader_lines(*(LeaderView(f"job{number:04}", NodeId("a", 1), 1, 0.0) for number in range(1000)))
    after = {
        feature: {**lines, **leader_lines(LeaderView("job0500", NodeId("b", 1), 2, 1.0))[feature]} for feature, lines in before.items()
    }
    del after["leadership"]["job0007"]
    changes = ViewChanges()
    former, now = GroupView(1, "member", ME, (), (), before), GroupView(2, "member", ME, (), (), after)
    changes.note(former)
    changes.note(now)
    change = changes.take()
    assert change is not None
    assert ({name: list(lines) for name, lines in change.lines.items()}, change.lines_gone) == (
        {"leadership": ["job0500"]},
        {"leadership": ("job0007",)},
    )
    assert len(encode(change)) < 300
    made = changed(former, 2, change)
    assert made == now
    assert made.lines["leadership"]["job0001"] is before["leadership"]["job0001"]
    gone = GroupView(3, "member", ME, (), ())
    changes.note(gone)
    last = changes.take()
    assert last is not None
    assert changed(made, 3, last) == gone


def test_too_much_is_not_kept() -> None:
    """Limits: beyond NAMES_MAX names nothing is kept, and the next change says that it begins later, so that clients look."""
    changes = ViewChanges()
    changes.note(GroupView(1, "member", ME, (), ()))
    many = tuple(member(f"m{number:05}") for number in range(NAMES_MAX + 1))
    changes.note(GroupView(2, "member", ME, many, (0,) * len(many)))
    assert changes.take() is None
    changes.note(GroupView(3, "leaving", ME, many, (0,) * len(many)))
    change = changes.take()
    assert change is not None
    assert (change.since, change.state, change.listed) == (2, "leaving", ())


@pytest.mark.parametrize("seed", range(10))
def test_what_changed_since_any_version_is_known(seed: int) -> None:
    """H340: whichever version a client has, and whatever events have told, the answer makes it the present view."""
    course, changes, draw = Course(seed), ViewChanges(), Random(seed)
    views: list[GroupView] = []
    for _ in range(100):
        views.append(course.next())
        changes.note(views[-1])
        if draw.random() < 0.3:
            changes.take()
        for former in draw.sample(views, min(len(views), 5)):
            change = changes.since(former.version)
            assert change is not None
            assert changed(former, views[-1].version, change) == views[-1]
    assert changes.since(0) is None
    assert changes.since(views[-1].version + 1) is None


def test_the_latest_changes_are_known() -> None:
    """Limits, H340: NAMES_MAX names are remembered, those that changed last; before the oldest of them nothing is known."""
    changes, lines = ViewChanges(), [member(f"m{number:05}") for number in range(NAMES_MAX + 10)]
    changes.note(GroupView(1, "member", ME, tuple(lines), ()))
    for version in range(2, NAMES_MAX + 12):  # One member each; the last ten are more than are remembered.
        lines[version - 2] = member(lines[version - 2].name, text="new")
        changes.note(GroupView(version, "member", ME, tuple(lines), ()))
    last = NAMES_MAX + 11
    assert (changes.since(last - NAMES_MAX - 1), changes.since(last + 1)) == (None, None)
    oldest, latest = changes.since(last - NAMES_MAX), changes.since(last - 1)
    assert oldest is not None
    assert latest is not None
    assert [line.member for line in oldest.listed] == lines[10:]
    assert [line.member for line in latest.listed] == lines[-1:]
    for version in range(last + 1, last + NAMES_MAX):  # One that changes often takes one place.
        lines[0] = member(lines[0].name, text=str(version))
        changes.note(GroupView(version, "member", ME, tuple(lines), ()))
    many = changes.since(last - 1)
    assert many is not None
    assert [line.member for line in many.listed] == [lines[0], lines[-1]]


class Membership:
    """A list that a test changes."""

    def __init__(self, count: int) -> None:
        self.version, self.rows, self.waits_for = 1, dict[str, bytes](), ""
        self.listed = [member(f"m{number:04}") for number in range(count)]

    def members(self) -> tuple[Member, ...]:
        return tuple(self.listed)

    def positions(self) -> dict[NodeId, int]:
        return {each.id: at for at, each in enumerate(self.listed)}

    def change(self, *places: int) -> None:
        self.version += 1
        for at in places:
            self.listed[at] = member(self.listed[at].name, text=str(self.version))


def test_a_look_at_a_large_group_has_what_changed() -> None:
    """H340: with a thousand members a look after one change has less than 2 KB; the whole list comes if half of it changed."""
    membership = Membership(1000)
    viewer = Viewer(cast("Any", SimpleNamespace(me=ME.id, address=ME.address)), cast("Any", membership), {})
    first = viewer.view("member")
    membership.change(500)
    assert len(viewer.view("member").members) == 1000
    found = viewer.since("member", first.version)
    assert found.change is not None
    assert (found.members, found.positions, len(found.change.listed)) == ((), (), 1)
    assert len(encode(found)) < 2048
    assert changed(first, found.version, found.change) == viewer.view("member")
    membership.change(*range(500))
    assert viewer.since("member", first.version) is viewer.view("member")
    assert viewer.since("member", 1 << 60) is viewer.view("member")
