"""The group as a client knows it, kept current by one ``Watch``; no I/O here.

An event carries what changed in the view. The change is applied before the event is delivered, so that a reader of ``Joined`` finds the
member in ``group.members``. A ``Look`` is asked for where a change is missing: after ``EventsLost``, or when more changed than an event
carries. It says which version is here, and is answered with what changed since, or with the whole list where the agent does not know
any more. Events wait until it is answered. One look is on its way at a time, however many events come.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Any, TypeVar

from msgspec import Raw
from msgspec.structs import replace

from holdfast.client.buffers import EVENTS_MAX, Watchers
from holdfast.client.conversation import Waiter
from holdfast.client.members import Members
from holdfast.client.wire import ITEMS
from holdfast.errors import HoldfastError
from holdfast.events import EventsLost
from holdfast.host import Address, Member, NodeId
from holdfast.local.calls import EventItem, GroupView, Lines, ViewChange, Watch
from holdfast.local.news import event_of

T = TypeVar("T")

NO_LINES: Mapping[str, Raw] = {}
UNKNOWN = GroupView(0, "joining", Member(NodeId("", 0), Address("", 0), {}), (), ())  # before an agent said more


class Mirror(Watchers):
    """The stream of a ``Watch`` and the answers to ``Look``; ``look`` asks for one."""

    def __init__(self, look: Callable[[], None]) -> None:
        super().__init__()
        self._look = look
        self._looking = False
        self._asked_for = 0  # events that waited when the look was asked for
        self._waiting: deque[EventItem] = deque()
        self._started = False
        self._following = False  # the view is of the agent at the other end of the present connection
        self.view = UNKNOWN
        self._read: dict[str, tuple[Mapping[str, Raw], Mapping[str, Any]]] = {}  # lines of features that were read, and what they say
        self.adopt(UNKNOWN)

    def adopt(self, view: GroupView) -> None:
        self.view = view
        self.me: Member = view.me
        self.members = Members(view)

    def lines(self, feature: str, read: Callable[[Raw], T]) -> Mapping[str, T]:
        """What a feature of the agent added to the view, by name. A line is read once, until it is another one."""
        now = self.view.lines.get(feature, NO_LINES)
        then, found = self._read.get(feature, (NO_LINES, {}))
        if now is not then:
            found = {name: found[name] if then.get(name) is line else read(line) for name, line in now.items()}
            self._read[feature] = now, found
        return found

    @property
    def since(self) -> int:
        """What a ``Look`` asks about; 0: all of it. Versions of two agents have nothing to do with each other."""
        return self.members.version if self._following else 0

    def become(self, state: str) -> None:
        """The agent cannot say it itself any more."""
        self.adopt(replace(self.view, state=state))

    # A stream of the conversation.

    def push(self, item: Any) -> None:
        event: EventItem = ITEMS[Watch](item)
        if not self._waiting and self._follow(event):
            self._deliver(event)
            return
        self._waiting.append(event)
        if len(self._waiting) > EVENTS_MAX:
            self._deliver_next()
        self._ask()

    def end(self, error: HoldfastError | None) -> None:
        """The connection is gone. What waited is delivered: it happened."""
        self._looking = self._following = False
        self._flush()

    # The one who waits for a ``Look``.

    def set_result(self, view: GroupView) -> None:
        """What waited when it was asked for is in it, whatever its version says: the same event is not asked for twice."""
        self._looking = False
        self._renew(view)
        while self._asked_for:
            self._deliver_next()
        self.update(view)

    def update(self, view: GroupView) -> None:
        """A list that was just read, or what changed in it."""
        self._renew(view)
        while self._waiting and self._follow(self._waiting[0]):
            self._deliver_next()
        if self._waiting:
            self._ask()

    def set_exception(self, error: BaseException) -> None:
        """No list came. What waited happened all the same; the next event asks again."""
        self._looking = False
        self._flush()

    def done(self) -> bool:
        return False

    # Those who watch.

    def start(self, view: GroupView) -> None:
        """A ``Watch`` was opened with this view. If it is not the first one, what happened in between is not known."""
        self._flush()
        self.adopt(kept(view))
        if self._started:
            self.tell(EventsLost(0))
        self._started = self._following = True

    def _renew(self, view: GroupView) -> None:
        """An answer may be older than what events have brought meanwhile."""
        version, change = self.members.version, view.change
        if change is None:
            if view.version >= version:
                self.adopt(kept(view))
        elif change.since <= version < view.version:
            self.adopt(changed(self.view, view.version, change))

    def _ask(self) -> None:
        if not self._looking:
            self._looking = True
            self._asked_for = len(self._waiting)
            self._look()

    def _follow(self, item: EventItem) -> bool:
        """Make the view as new as the event. False if what the event carries is not enough for that."""
        version, change = self.members.version, item.change
        if item.version <= version:
            return True
        if change is None or change.since > version:
            return False
        self.adopt(changed(self.view, item.version, change))
        return True

    def _flush(self) -> None:
        while self._waiting:
            self._deliver_next()

    def _deliver_next(self) -> None:
        self._asked_for = max(0, self._asked_for - 1)
        item = self._waiting.popleft()
        self._follow(item)
        self._deliver(item)

    def _deliver(self, item: EventItem) -> None:
        event = event_of(item)
        if event is not None:
            self.tell(event)


def changed(view: GroupView, version: int, change: ViewChange) -> GroupView:
    """The view after a change."""
    members = list(view.members)
    positions: list[int | None] = [*view.positions] or [None] * len(members)
    for line in change.listed:
        at = _place(members, line.member.name)
        members[at], positions[at] = [line.member], [line.position]
    for name in change.gone:
        at = _place(members, name)
        del members[at], positions[at]
    lines = changed_lines(view.lines, change) if change.lines or change.lines_gone else view.lines
    return GroupView(version, change.state, change.me or view.me, tuple(members), _placed(positions), lines, change.waits_for)


def changed_lines(lines: Lines, change: ViewChange) -> Lines:
    """Those of features without a change are the same objects."""
    now = dict(lines)
    for feature in {**change.lines, **change.lines_gone}:
        gone = set(change.lines_gone.get(feature, ()))
        new = {name: line.copy() for name, line in change.lines.get(feature, NO_LINES).items()}
        now[feature] = {name: line for name, line in {**now.get(feature, NO_LINES), **new}.items() if name not in gone}
    return {feature: found for feature, found in now.items() if found}


def kept(view: GroupView) -> GroupView:
    """The view without the frame in which it came: a ``Raw`` is a part of one, and would keep all of it."""
    if not view.lines:
        return view
    return replace(view, lines={feature: {name: line.copy() for name, line in lines.items()} for feature, lines in view.lines.items()})


def _placed(positions: list[int | None]) -> tuple[int, ...]:
    """Of all members, or of none."""
    found = tuple(each for each in positions if each is not None)
    return found if len(found) == len(positions) else ()


def _place(lines: list[Any], name: str) -> slice:
    """The one line of this name in a list that is sorted by name, or the empty place where it belongs."""
    at = bisect_left(lines, name, key=_name)
    return slice(at, at + (at < len(lines) and lines[at].name == name))


_name = attrgetter("name")


class Looking:
    """Waits for the answer to a ``Look`` that another caller waits for as well."""

    def __init__(self, mirror: Mirror, then: Waiter) -> None:
        self._mirror, self._then = mirror, then

    def set_result(self, view: GroupView, /) -> None:
        self._mirror.update(view)
        self._then.set_result(view)

    def set_exception(self, error: Any, /) -> None:
        self._then.set_exception(error)

    def done(self) -> bool:
        return self._then.done()


class Opening(Looking):
    """Waits for the answer to a ``Watch``: its events may come in the same read, so the view is there before a reader is woken."""

    def set_result(self, view: GroupView, /) -> None:
        self._mirror.start(view)
        self._then.set_result(view)
