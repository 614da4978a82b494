"""What a reader of all lists can prove about gossip without asking any agent twice.  Spec: gossip 1, 7 (G7, G10, G11).

A recorder in the process of the test watches every agent on its local socket and writes down each event of a member with the machine's
clock. All agents run on one machine, so their lines have one order. ``lost`` says which member was given up by one that could hear it.
"""

from __future__ import annotations

import selectors
import threading
import time
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from math import inf
from types import TracebackType
from typing import Any, Final, NamedTuple, Self

import msgspec

from holdfast.host import Member
from holdfast.local.calls import EventItem, GroupView, Pushed, Watch
from holdfast.local.frame import ANSWER_BYTES_MAX, Frames
from tests.agent.raw_client import RawClient

READ_BYTES: Final = 1 << 18
LOOK_INTERVAL: Final = 0.1  # seconds in which a new agent is noticed
LISTED, SUSPECTED, DECIDED, GONE = "listed", "suspected", "decided", "gone"
# What follows what, for one member in the list of another one (G10).
MOVES: Final[Mapping[tuple[str, str], str]] = {
    (GONE, "Joined"): LISTED,
    (LISTED, "Suspected"): SUSPECTED,
    (SUSPECTED, "Cleared"): LISTED,
    (LISTED, "Decided"): DECIDED,
    (SUSPECTED, "Decided"): DECIDED,
    (DECIDED, "Failed"): GONE,
    (LISTED, "Left"): GONE,
    (SUSPECTED, "Left"): GONE,
}
KINDS: Final = frozenset(event for _, event in MOVES)


class Line(NamedTuple):
    """One event about ``member`` in the list of ``me``; both are lives ("a#5")."""

    at: float  # wall clock
    me: str
    what: str
    member: str
    certain: bool = False  # of a Failed


class Excuse(NamedTuple):
    """These could not hear those, or those stood still for too long."""

    by: Collection[str]  # lives
    of: Collection[str]

    def covers(self, line: Line) -> bool:
        return line.me in self.by and line.member in self.of


class Lists:
    """What all lines so far say of each list."""

    def __init__(self) -> None:
        self.of: defaultdict[str, dict[str, str]] = defaultdict(dict)  # by the life whose list it is: the state of each other one
        self.wrongs: list[str] = []
        self._left: set[tuple[str, str]] = set()

    def take(self, line: Line) -> None:
        found = self.of[line.me]
        before = found.get(line.member, GONE)
        after = MOVES.get((before, line.what))
        if after is None:
            self.wrongs.append(f"G10: {line.me} says {line.what} of {line.member}, which was {before}")
            after = next(state for (_, what), state in MOVES.items() if what == line.what)
        if line.certain:
            self.wrongs.append(f"G10: {line.me} says that {line.member} failed for certain")
        if line.what == "Joined" and (line.me, line.member) in self._left:
            self.wrongs.append(f"G7: {line.me} lists {line.member} again, which left")
        if line.what == "Left":
            self._left.add((line.me, line.member))
        if after == GONE:
            found.pop(line.member, None)
        else:
            found[line.member] = after

    def wrong_about(self, lives: Collection[str]) -> dict[str, list[str]]:
        """By life: what its list lacks, has too much, or suspects. Empty: all of these list exactly these, and suspect none."""
        found = {}
        for me in lives:
            mine = self.of[me]
            lacks = [f"-{each}" for each in sorted(lives) if each not in mine]
            more = [f"+{each}" for each in sorted(mine) if each not in lives]
            doubts = [f"?{each}" for each in sorted(mine) if each in lives and mine[each] != LISTED]
            if lacks or more or doubts:
                found[me] = [*lacks, *more, *doubts]
        return found


def wrongs(lines: Iterable[Line]) -> list[str]:
    """What must never be seen, whatever happened to processes and links (G7, G10)."""
    lists = Lists()
    for line in lines:
        lists.take(line)
    return lists.wrongs


def lost(lines: Iterable[Line], ended_at: Mapping[str, float], excuses: Collection[Excuse] = ()) -> list[str]:
    """Members that lived, and were given up by one that could hear them. ``ended_at``: when processes ended, by life."""
    return [
        f"{line.me} gave {line.member} up after {line.at:.3f}"
        for line in lines
        if line.what in ("Failed", "Left") and line.at < ended_at.get(line.member, inf) and not any(each.covers(line) for each in excuses)
    ]


class Recorder:
    """Watches agents, each from its start to its end."""

    internal = False  # whether facts inside the protocols are told, too

    def __init__(self) -> None:
        self._lock = threading.Lock()  # of what follows: the thread writes, tests read
        self._lines: list[Line] = []
        self._lists = Lists()
        self._missed = 0
        self._selector = selectors.DefaultSelector()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._over.set()
        self._thread.join()
        for key in tuple(self._selector.get_map().values()):
            key.data.close()
        self._selector.close()

    def add(self, life: str, socket: str) -> None:
        """An agent that has just begun."""
        watched = Watched(life, RawClient(socket))
        with self._lock:
            view, items = watched.first(internal=self.internal)
            self.begun(life, view)
            for item in items:
                self.heard(life, item)
        self._selector.register(watched.client.sock, selectors.EVENT_READ, watched)

    def lines(self, since: float = 0.0) -> list[Line]:
        with self._lock:
            return [line for line in self._lines if line.at >= since]

    def wrong_about(self, lives: Collection[str]) -> dict[str, list[str]]:
        with self._lock:
            return self._lists.wrong_about(lives)

    def wrongs(self) -> list[str]:
        with self._lock:
            missed = [f"{self._missed} events were missed"] if self._missed else []
            return [*self._lists.wrongs, *missed]

    def _run(self) -> None:
        while not self._over.is_set():
            for key, _ in self._selector.select(LOOK_INTERVAL):
                watched: Watched = key.data
                items, ended = watched.read()
                if ended:
                    self._selector.unregister(watched.client.sock)
                    watched.close()
                with self._lock:
                    for item in items:
                        self.heard(watched.life, item)

    def begun(self, life: str, view: GroupView) -> None:
        """What this agent knew when its stream began."""
        now = time.time()
        for member in view.members:
            self._take(Line(now, life, "Joined", str(member.id)))
        for member in view.members:
            if member.status.name == "SUSPECTED":
                self._take(Line(now, life, "Suspected", str(member.id)))

    def heard(self, life: str, item: EventItem) -> None:
        self._missed += item.name == "EventsLost"
        if item.name in KINDS:
            fields = msgspec.msgpack.decode(item.fields, type=Fields)
            self._take(Line(item.at, life, item.name, str(fields.member.id), fields.certain))

    def _take(self, line: Line) -> None:
        self._lines.append(line)
        self._lists.take(line)


class Watched:
    """The stream of one agent."""

    def __init__(self, life: str, client: RawClient) -> None:
        self.life, self.client = life, client
        self._frames = Frames(ANSWER_BYTES_MAX)
        self._answers: msgspec.msgpack.Decoder[Any] = msgspec.msgpack.Decoder(Pushed)

    def first(self, *, internal: bool) -> tuple[GroupView, list[EventItem]]:
        """The view with which the stream begins, and what came right after it."""
        view: GroupView = self.client.ask(Watch, internal)
        self._frames = self.client.frames
        self.client.sock.setblocking(False)
        pushed = [_item(bytes(message.item)) for message in self.client.read]  # type: ignore[union-attr]
        self.client.read.clear()
        return view, pushed

    def read(self) -> tuple[list[EventItem], bool]:
        """What there is to read, and whether it has ended."""
        try:
            data = self.client.sock.recv(READ_BYTES)
        except BlockingIOError:
            return [], False
        except OSError:
            data = b""
        items: list[EventItem] = []
        for body in self._frames.feed(data):
            with suppress(msgspec.ValidationError):  # The end of the connection, in words.
                items.append(_item(bytes(self._answers.decode(body).item)))
        return items, not data

    def close(self) -> None:
        self.client.sock.close()


def _item(data: bytes) -> EventItem:
    return msgspec.msgpack.decode(data, type=EventItem)


class Fields(msgspec.Struct):
    """Of an event about a member."""

    member: Member
    certain: bool = False
