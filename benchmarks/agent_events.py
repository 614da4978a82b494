"""What one change among many members costs a client that watches, for `agent`: bytes on the local socket, and CPU time.

Frames as an agent writes them go through a client's conversation into its view and one watch, which is read. Both sides run in this process
and without a socket, so that only their own work is measured. Beside it: the answer to a ``Look`` of the same group, which a client would
have to ask for if events did not carry what changed; and to a ``Look`` of a client that missed one change, and names its version.
"""

from __future__ import annotations

import time
from random import Random
from typing import Any

from benchmarks.harness import Contestant
from holdfast.agent.socket.events import EventHub
from holdfast.agent.socket.view import ViewChanges
from holdfast.client.conversation import Conversation
from holdfast.client.mirror import Looking, Mirror, Opening
from holdfast.client.sync.streams import Watch
from holdfast.events import Updated
from holdfast.features.ring.protocol.ids import position_of
from holdfast.host import Address, Member, NodeId
from holdfast.local import calls
from holdfast.local.frame import done, encoded, pushed

MEMBERS = 1000
CHANGES = 200  # per round
LOOKS = 20


class Ignored:
    """An answer that matters to the view only."""

    def set_result(self, value: Any, /) -> None: ...
    def set_exception(self, error: Any, /) -> None: ...
    def done(self) -> bool:
        return False


class Watched:
    """A group of many, as its agent and one client know it."""

    def __init__(self, members: int = MEMBERS) -> None:
        self._random = Random(1)
        self._members = [member(number, "0") for number in range(members)]
        self._positions = tuple(position_of(member.name) for member in self._members)
        self._changes, self._version = ViewChanges(), 1
        self._view = self._seen()
        self._changes.note(self._view)
        self._hub = EventHub(lambda: self._view.version, time.time, lambda step: None, changes=self._changes.take)
        self._told = self._hub.subscribe(lambda: None)
        self.looks = 0  # that events have caused
        self._mirror, self._watch = Mirror(self._on_look), Watch()
        self._conversation = Conversation("benchmark")
        self._conversation.begin(calls.Watch, (), Opening(self._mirror, Ignored()), 0.0, self._mirror)
        self._stream = self._conversation.serial
        self._conversation.receive(done(self._stream, encoded(self._view)))
        self._mirror.add(self._watch)
        self.bytes: dict[str, int] = {}  # of the largest frame of each kind

    def contestants(self) -> dict[str, Contestant]:
        return {"event": self.event, "event_told": self.event_told, "event_look": self.look, "event_since": self.look_since}

    def event(self) -> float:
        """CPU seconds of a client per change: its frame is received, the view is changed, the event is read."""
        frames = [self._tell(*each) for each in self._changed()]
        self.bytes["event"] = max(self.bytes.get("event", 0), *map(len, frames))
        began_at = time.process_time()
        for frame in frames:
            self._conversation.receive(frame)
            self._watch.next(0)
        took = time.process_time() - began_at
        assert self._mirror.members[:] == tuple(self._members)
        return took / CHANGES

    def event_told(self) -> float:
        """CPU seconds of the agent per change, for any number of clients: views are compared, the event is encoded."""
        changed = self._changed()
        began_at = time.process_time()
        frames = [self._tell(*each) for each in changed]
        took = time.process_time() - began_at
        for frame in frames:
            self._conversation.receive(frame)
            self._watch.next(0)
        return took / CHANGES

    def look(self) -> float:
        """CPU seconds of a client per answer to a ``Look``."""
        took = 0.0
        for _ in range(LOOKS):
            self._conversation.begin(calls.Look, (), Looking(self._mirror, Ignored()), 0.0)
            frame = done(self._conversation.serial, encoded(self._view))
            self.bytes["event_look"] = len(frame)
            began_at = time.process_time()
            self._conversation.receive(frame)
            took += time.process_time() - began_at
        return took / LOOKS

    def look_since(self) -> float:
        """CPU seconds of a client that missed an event, until its ``Look`` is answered with what changed."""
        took = 0.0
        for view, _ in self._changed():
            self._view = view
            self._changes.note(view)
            change = self._changes.since(self._mirror.since)
            self._conversation.begin(calls.Look, (self._mirror.since,), Looking(self._mirror, Ignored()), 0.0)
            answer = calls.GroupView(view.version, view.state, view.me, (), (), change=change)
            frame = done(self._conversation.serial, encoded(answer))
            self.bytes["event_since"] = max(self.bytes.get("event_since", 0), len(frame))
            began_at = time.process_time()
            self._conversation.receive(frame)
            took += time.process_time() - began_at
        assert self._mirror.members[:] == tuple(self._members)
        self._changes.take()  # Told to no client: those of this process have it.
        return took / CHANGES

    def _changed(self) -> list[tuple[calls.GroupView, Member]]:
        """Views that follow each other, and in what each differs from the one before."""
        found = []
        for _ in range(CHANGES):
            number = self._random.randrange(len(self._members))
            self._version += 1
            self._members[number] = member(number, str(self._version))
            found.append((self._seen(), self._members[number]))
        return found

    def _seen(self) -> calls.GroupView:
        return calls.GroupView(self._version, "member", self._members[0], tuple(self._members), self._positions)

    def _tell(self, view: calls.GroupView, member: Member) -> bytes:
        """The frame that the agent writes when this has happened."""
        self._view = view
        self._changes.note(view)
        self._hub.publish(Updated(member))
        self._hub.distribute()
        (record,) = self._told.take(2)
        return pushed(self._stream, record.item)

    def _on_look(self) -> None:
        self.looks += 1


def member(number: int, text: str) -> Member:
    """With what a member of a service publishes: a version, three tags, a topic."""
    rows = {
        "version": b"1.0.0",
        "tag:zone": b"eu-1",
        "tag:role": b"web",
        "tag:build": text.encode(),
        "topic:u:news": b"",
        "topic:ring": b"",
    }
    return Member(NodeId(f"web-{number:04}", 1_800_000_000_000), Address("10.0.0.5", 7946), rows)
