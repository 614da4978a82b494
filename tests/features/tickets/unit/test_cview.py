"""What is announced and what is published, one agent's view of it.  Spec: tickets 5.9, G6; docs/decisions.md H104, H125."""

from __future__ import annotations

import msgspec
import pytest

from holdfast.errors import ConfigError
from holdfast.features.tickets.protocol.cview import EVENT_BYTES_MAX, Cview, Entry, gone_entry
from holdfast.features.tickets.protocol.values import TICKETS_MAX, Agent
from holdfast.host import Address, NodeId
from holdfast.kit.broadcast import Broadcast, Rumour
from holdfast.kit.exchange import Exchange
from tests.support.fake_host import FakeHost
from tests.support.fake_members import FakeMembers

OTHER = NodeId("b", 1)
HERE = Address("b", 1)


class Stand:
    """One view, with an agent that listens to the pool x."""

    def __init__(self) -> None:
        self.host = FakeHost()
        self.broadcast = Broadcast(self.host, FakeMembers(self.host.me, OTHER))
        self.cview = Cview(Exchange(self.host, self.broadcast), self.broadcast, self.host.wall)
        self.heard: list[tuple[int, int, bytes]] = []
        self.end = self.cview.listen("x", lambda *event: self.heard.append(event))
        self._seq = 0

    def rumour(self, payload: bytes) -> None:
        """From another agent."""
        self._seq += 1
        self.broadcast.on_message(OTHER, Rumour(OTHER, "tickets:x", self._seq, 0, payload))

    def say(self, number: int, token: int, body: bytes = b"hello") -> None:
        self.rumour(msgspec.msgpack.encode((number, token, body)))

    def announce(self, token: int, *, gone: bool = False, version: int = 1) -> None:
        entry = gone_entry(token, Agent(OTHER, HERE), 4) if gone else Entry(token, False, version, OTHER, HERE, 0, 4)
        self.cview.announce("x", 2, entry)


def test_an_event_reaches_who_listens() -> None:
    """5.9: number, token and payload as they were published, until nobody listens any more."""
    stand = Stand()
    stand.say(2, 7)
    assert stand.heard == [(2, 7, b"hello")]
    stand.end()
    stand.say(2, 8)
    assert len(stand.heard) == 1
    assert stand.broadcast.counts["not_joined"] == 1


@pytest.mark.parametrize("gone", [False, True])
def test_a_former_owner_is_not_heard(gone: bool) -> None:
    """5.9, H125: an event below the largest token that was heard of is dropped: of an event, of an owner, and of one that is gone again."""
    stand = Stand()
    stand.announce(9)
    if gone:
        stand.announce(9, gone=True)
    assert stand.cview.newest_token("x", 2) == 9
    stand.say(2, 8)
    assert stand.heard == []
    stand.say(2, 9)
    stand.say(2, 11)
    stand.say(2, 10)
    stand.say(3, 1)  # another ticket
    assert [(number, token) for number, token, _ in stand.heard] == [(2, 9), (2, 11), (3, 1)]
    assert stand.cview.counts["old_event"] == 2


@pytest.mark.parametrize(
    "payload",
    [b"", b"\xc1", msgspec.msgpack.encode((1, 2)), msgspec.msgpack.encode(("a", 2, b"")), msgspec.msgpack.encode((1, 2, 3))]
    + [msgspec.msgpack.encode(each) for each in ((-1, 5, b""), (TICKETS_MAX, 5, b""), (1, 0, b""), (1, -5, b""), (1, (1 << 53), b""))],
)
def test_what_cannot_be_is_counted(payload: bytes) -> None:
    """Bad input of a peer is a counter; above all a token that nobody can have silences nobody."""
    stand = Stand()
    stand.rumour(payload)
    assert (stand.heard, stand.cview.counts["malformed"]) == ([], 1)
    stand.say(1, 5)
    assert len(stand.heard) == 1


def test_too_long_to_be_published() -> None:
    """Everything has a limit: what is refused was told to nobody."""
    stand = Stand()
    stand.cview.publish("x", 2, 7, b"x" * EVENT_BYTES_MAX)
    with pytest.raises(ConfigError, match="payload: 15361 bytes; accepted are at most 15360"):
        stand.cview.publish("x", 2, 7, b"x" * (EVENT_BYTES_MAX + 1))
    assert (len(stand.heard), stand.cview.counts["published"]) == (1, 1)


def test_the_version_grows_with_every_change() -> None:
    """G6: whoever shows the view looks at one number; what changed nothing does not move it."""
    stand = Stand()
    seen = [stand.cview.version]
    for version, gone in ((1, False), (1, False), (2, False), (2, True)):
        stand.announce(9, version=version, gone=gone)
        seen.append(stand.cview.version)
    assert seen == [0, 1, 1, 2, 3]
    assert stand.cview.pools == {}
