"""A group of 10,000: every table that has an entry per member takes all of them, and as many lives that are over.  H203, H343."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import msgspec
import pytest

from holdfast.bounds import MEMBERS_MAX
from holdfast.client.conversation import Conversation
from holdfast.drops import Drops, Rejected
from holdfast.features.mail.protocol.inbox import Inbox
from holdfast.features.mail.protocol.messages import Letter, Outcome
from holdfast.features.names.protocol.names import Sightings
from holdfast.host import Address, Member, NodeId
from holdfast.kit.broadcast import Broadcast, Rumour
from holdfast.kit.exchange import RowsKeys, RowsPage, RowsWant
from holdfast.kit.outbox import Outbox
from holdfast.kit.overlay import Overlay
from holdfast.kit.rows import BUCKETS, Row, Rows
from holdfast.local import calls
from holdfast.local.frame import done, encoded
from holdfast.net.bind import bind
from holdfast.net.udp import Datagrams
from holdfast.wire.codec import SENDERS_MAX, Codec
from holdfast.wire.replay import WINDOW_COUNTERS, Runs
from tests.spine.test_node import Bench, Word
from tests.support.fake_host import FakeHost
from tests.support.fake_members import FakeMembers

COUNT = 10_000
LIVES = [NodeId(f"web-{number:05}", 1_800_000_000_000 + number) for number in range(COUNT)]
FORMER = [NodeId(f"old-{number:05}", 1_700_000_000_000 + number) for number in range(COUNT)]
PLACES = [Address(f"10.{number >> 8}.{number & 255}.1", 7946) for number in range(COUNT)]
ROWS = {"version": b"1.0.0", "tag:zone": b"eu-1", "tag:role": b"web", "topic:u:news": b""}


def test_a_node_has_their_addresses() -> None:
    """Node: it can write to each of them after it was told of all, former lives included."""
    bench = Bench()
    for life, place in zip((*FORMER, *LIVES), (*PLACES, *PLACES), strict=True):
        bench.node.meet(life, place)
    assert [bench.node.address_of(life) for life in (*FORMER, *LIVES)] == PLACES * 2


def test_a_socket_keeps_their_addresses() -> None:
    """net/udp: as source and as target, each is spelled once."""
    bound = bind(Address("127.0.0.1", 0))
    bound.tcp.close()
    datagrams = Datagrams(bound.udp, Drops())
    for place in PLACES:
        datagrams._learn_target(place)
        datagrams._learn_source((place.host.encode().decode(), place.port))
    assert (len(datagrams._sources), len(datagrams._targets)) == (COUNT, COUNT)
    assert all(datagrams._targets[place] is place for place in PLACES), "H344: of an IPv4 address nothing is made"
    assert all(one is other is place for (one, other), place in zip(datagrams._sources.items(), PLACES, strict=True))
    datagrams.close()


def test_an_outbox_tells_the_host_of_each_once() -> None:
    """kit/outbox: the second round tells nothing."""
    host = FakeHost()
    outbox = Outbox(host)
    members = [Member(life, place, {}) for life, place in zip(LIVES, PLACES, strict=True)]
    for _ in range(2):
        for each in members:
            outbox.meet(each)
    assert len(outbox._met) == COUNT
    assert len(host.met) == COUNT


def test_a_table_has_their_rows() -> None:
    """kit/rows: a row of each, and a tombstone for each that is over; what is asked and told about them is within bounds."""
    table = Rows(FakeHost(), "t", max, lambda table, keys: None, gone=lambda value: value == b"~")
    rows = [Row(str(life), b"x" * 100, 0.0) for life in LIVES]
    table.learn(rows)
    table.learn(Row(str(life), b"~", 1.0) for life in FORMER)
    assert (len(table), len(table.keys()), table.counts["table_full"]) == (COUNT, 2 * COUNT, 0)
    messages = (
        RowsKeys("t", 0, tuple(row for bucket in range(BUCKETS) for row in table.digest(bucket))),
        RowsWant("t", tuple(table.keys())),
        RowsPage("t", tuple(rows), False),
    )
    for message in messages:
        assert msgspec.msgpack.decode(msgspec.msgpack.encode(message), type=type(message)) == message


def test_a_broadcast_remembers_their_rumours() -> None:
    """kit/broadcast: each rumour of each, of two topics, is new once, those of lives that are over as well."""
    broadcast = Broadcast(FakeHost(), FakeMembers())
    rumours = [Rumour(life, topic, 1, 0, b"") for life in (*LIVES, *FORMER) for topic in ("a", "b")]
    assert all(broadcast._first_sight(each) for each in rumours)
    assert not any(broadcast._first_sight(each) for each in rumours)
    assert broadcast.counts["table_full"] == 0


def test_a_codec_reads_all_of_them() -> None:
    """wire/codec: what it remembers of them is bounded, and refuses none. A name that cannot be is refused however full it is."""
    codec = Codec([Word])
    for life in (*LIVES, *LIVES[:COUNT:7]):
        assert codec.decode(codec.encode(life, 1, b"", Word(1))).sender == life
        if life.boot % 1000 == 0:
            with pytest.raises(Rejected):
                codec.decode(codec.encode(NodeId("a\nb", 1), 1, b"", Word(1)))
    assert len(codec._senders) <= SENDERS_MAX


def test_replay_windows_of_all_of_them() -> None:
    """wire/replay: none is retired: what is late is taken from each, and nothing twice."""
    runs = Runs(2)
    names = [b"key" + number.to_bytes(16, "big") for number in range(COUNT)]
    for name in names:
        assert runs.admit(name).windows[0].accept(WINDOW_COUNTERS)
    assert (len(runs.active), len(runs.retired)) == (COUNT, 0)
    for name in names:
        assert runs.active[name].windows[0].accept(1)
        assert not runs.active[name].windows[0].accept(1)


def test_names_and_places() -> None:
    """features/names: where each name was seen."""
    seen = Sightings()
    for life, place in zip(LIVES, PLACES, strict=True):
        seen.put(life.name, life.boot, place)
    assert all(seen.of(life.name) for life in LIVES)


def test_letters_of_all_of_them() -> None:
    """features/mail: a letter of each is handed over, once; lives that are over keep no other one out."""
    handed: list[NodeId] = []

    def deliver(source: NodeId, payload: bytes) -> Outcome:
        handed.append(source)
        return Outcome.QUEUED

    counts: Counter[str] = Counter()
    inbox = Inbox(FakeHost(), FakeMembers(), deliver, counts, Overlay())
    for life in (*FORMER, *LIVES, *LIVES):
        assert inbox.take(life, Letter(1, 0, b"x")) is Outcome.QUEUED
    assert handed == [*FORMER, *LIVES]
    assert counts == {"duplicate": COUNT}


def test_a_client_reads_the_list() -> None:
    """local/frame: the answer to a ``Look`` fits a frame, with the rows of an ordinary member for each."""
    members = tuple(Member(life, place, ROWS) for life, place in zip(LIVES, PLACES, strict=True))
    answer = encoded(calls.GroupView(1, "member", members[0], members, tuple(range(COUNT))))
    heard: list[calls.GroupView] = []

    class Waiter:
        def set_result(self, value: calls.GroupView, /) -> None:
            heard.append(value)

        def set_exception(self, error: object, /) -> None:
            raise AssertionError(error)

        def done(self) -> bool:
            return False

    conversation = Conversation("x.sock")
    conversation.begin(calls.Look, (), Waiter(), 0.0)
    conversation.receive(done(conversation.serial, answer))
    assert [view.members for view in heard] == [members]


@pytest.mark.parametrize("page", ["kit.md", "mail.md"])
def test_pages_say_how_many(page: str) -> None:
    """The pages name the limit as it is."""
    assert f"{MEMBERS_MAX:,}" in (Path(__file__).parents[2] / "docs" / page).read_text()
