"""Exchange: keeps the tables of ``kit.rows`` equal; the one anti-entropy.  Spec: foundation 4 (Rows); tickets 5.9.

A change leaves as a rumour. Every ``ae_period`` each table is compared with one random member of its topic:

    a -> b  RowsDigest   one hash of everything
    b -> a  RowsBuckets  "the same", or 64 hashes
    a -> b  RowsKeys     for each bucket that differs: its keys, each with the hash of its value
    b -> a  RowsPage     the rows that a lacks or has otherwise, and RowsWant: the keys that b lacks
    a -> b  RowsPage     those, and whatever a knows better than b's page

The first two are a Call. As long as they differed, a asks the same peer again a moment later, so that a lost datagram costs
an eighth of a period and not a whole one; what is still different then is left to the next period.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Annotated

import msgspec
from msgspec import Meta

from holdfast.bounds import U64, Label, Number
from holdfast.host import Host, Message, NodeId, Timer
from holdfast.kit.broadcast import Broadcast, RumourId, Topic
from holdfast.kit.outbox import Outbox
from holdfast.kit.phase import Call, Questions
from holdfast.kit.rows import BUCKETS, KEYS_MAX, PAGE_BYTES, TOMBSTONE_TTL, Merge, Row, Rows, Test, always, never, pages
from holdfast.kit.versioned import UNREADABLE

AE_PERIOD = 2.0  # tickets 4
TABLES_MAX = 32  # per node: each costs a digest and its answer per period
ROUNDS_MAX = 4  # comparisons with one peer in one period
TRIES = 3  # of one digest
MOMENTS = 8  # per period: between two tries, and between two rounds

Page = Annotated[tuple[Row, ...], Meta(max_length=KEYS_MAX)]


class OfTable(Message, frozen=True):
    """What the five have in common."""

    topic: Topic


class RowsDigest(OfTable, frozen=True, tag=5):
    """Do we hold the same?"""

    serial: Number
    root: U64


class RowsBuckets(OfTable, frozen=True, tag=6):
    """Yes (no hashes), or no: here is mine in 64 parts."""

    serial: Number
    hashes: Annotated[tuple[U64, ...], Meta(max_length=BUCKETS)]


class RowsKeys(OfTable, frozen=True, tag=7):
    """This is all I have in one part."""

    bucket: Annotated[int, Meta(ge=0, lt=BUCKETS)]
    digest: Annotated[tuple[tuple[Label, U64], ...], Meta(max_length=KEYS_MAX)]


class RowsWant(OfTable, frozen=True, tag=8):
    """These keys I lack."""

    keys: Annotated[tuple[Label, ...], Meta(max_length=KEYS_MAX)]


class RowsPage(OfTable, frozen=True, tag=9):
    """Some rows."""

    rows: Page
    final: bool  # an answer to a page: not answered again, so that no bad merge keeps two nodes talking for ever


class Exchange:
    """Owns the messages of all tables of one node."""

    handles = (RowsDigest, RowsBuckets, RowsKeys, RowsWant, RowsPage)
    fingerprint = b""

    def __init__(self, host: Host, broadcast: Broadcast, *, ae_period: float = AE_PERIOD) -> None:
        assert ae_period > 0
        self._host, self._broadcast, self._ae_period = host, broadcast, ae_period
        self._tables: dict[str, Rows] = {}
        self._outbox = Outbox(host)
        self._questions = Questions()
        self._calls: dict[str, Call] = {}  # at most one comparison per table
        self._timer: Timer | None = None
        self.counts: Counter[str] = Counter()  # compared, differed, unanswered, not_joined, malformed
        self._on: dict[type[Message], Callable[..., None]] = {
            RowsDigest: self._on_digest,
            RowsBuckets: self._on_buckets,
            RowsKeys: self._on_keys,
            RowsWant: self._on_want,
            RowsPage: self._on_page,
        }

    def rows(
        self,
        topic: str,
        merge: Merge,
        *,
        gone: Test = never,
        valid: Test = always,
        credible: Test = always,
        tombstone_ttl: float = TOMBSTONE_TTL,
    ) -> Rows:
        """A new table, shared with all members that have one of this topic. ``merge`` must be a join."""
        assert topic not in self._tables
        assert len(self._tables) < TABLES_MAX
        table = Rows(self._host, topic, merge, self._push, gone=gone, valid=valid, credible=credible, tombstone_ttl=tombstone_ttl)
        self._tables[topic] = table
        self._broadcast.on_rumour(topic, lambda rumour, payload: self._on_rumour(table, rumour, payload))
        return table

    def table(self, topic: str) -> Rows:
        return self._tables[topic]

    def close(self, topic: str) -> None:
        """Share this table no longer; what it holds stays with the members that keep it."""
        del self._tables[topic]
        self._broadcast.leave(topic)
        call = self._calls.pop(topic, None)
        if call is not None:
            call.cancel()

    def compare(self, topic: str, peer: NodeId) -> None:
        """Compare with this peer now, instead of with a random one when the period is over."""
        self._compare(self._tables[topic], peer, ROUNDS_MAX - 1)

    def start(self) -> None:
        # Spread over the period: members that start together should not all compare at the same instant.
        self._timer = self._host.after(self._host.random.uniform(0, self._ae_period), self._on_period)

    def stop(self) -> None:
        self._outbox.clear()
        for call in self._calls.values():
            call.cancel()
        if self._timer is not None:
            self._timer.cancel()

    def on_away(self, seconds: float) -> None:
        """A pause changes nothing: tombstones keep their age by the clock."""

    def on_message(self, source: NodeId, message: Message) -> None:
        assert isinstance(message, OfTable)
        table = self._tables.get(message.topic)
        if table is None:
            self.counts["not_joined"] += 1
            return
        self._on[type(message)](source, table, message)

    def _push(self, table: Rows, keys: list[str]) -> None:
        for page in pages(table.read(keys), bulk_bytes=PAGE_BYTES):
            self._broadcast.cast(table.topic, msgspec.msgpack.encode(page))

    def _send_pages(self, to: NodeId, table: Rows, keys: Iterable[str], *, final: bool) -> None:
        for page in pages(table.read(keys)):
            self._outbox.put(to, RowsPage(table.topic, page, final))

    def _on_rumour(self, table: Rows, rumour: RumourId, payload: bytes) -> None:
        del rumour
        try:
            rows = _PAYLOAD.decode(payload)
        except UNREADABLE:
            self.counts["malformed"] += 1
            return
        table.learn(rows)

    def _compare(self, table: Rows, peer: NodeId, rounds_left: int) -> None:
        """Rounds go on while ``peer`` holds something else; a beginning with another peer ends them."""
        if table.topic in self._calls:
            self._calls[table.topic].cancel()
        self._calls[table.topic] = call = Call(
            self._host,
            self._questions,
            peer,
            lambda serial: RowsDigest(table.topic, serial, table.root),
            every=self._ae_period / MOMENTS,
            tries=TRIES,
            done=lambda answer: self._on_compared(table, peer, rounds_left, answer),
        )
        self.counts["compared"] += 1
        call.start()

    def _on_compared(self, table: Rows, peer: NodeId, rounds_left: int, answer: Message | None) -> None:
        if answer is None:
            self.counts["unanswered"] += 1
            return
        assert isinstance(answer, RowsBuckets)
        if not answer.hashes:
            return
        for bucket, (ours, theirs) in enumerate(zip(table.hashes, answer.hashes, strict=True)):
            if ours != theirs:
                self._outbox.put(peer, RowsKeys(table.topic, bucket, table.digest(bucket)))
        if rounds_left > 0:
            self._host.after(self._ae_period / MOMENTS, lambda: self._on_moment(table, peer, rounds_left - 1))

    def _on_moment(self, table: Rows, peer: NodeId, rounds_left: int) -> None:
        if self._tables.get(table.topic) is table:  # else it was closed meanwhile
            self._compare(table, peer, rounds_left)

    def _on_digest(self, source: NodeId, table: Rows, message: RowsDigest) -> None:
        same = message.root == table.root
        self.counts["differed"] += not same
        self._outbox.put(source, RowsBuckets(table.topic, message.serial, () if same else table.hashes))

    def _on_buckets(self, source: NodeId, table: Rows, message: RowsBuckets) -> None:
        if message.hashes and len(message.hashes) != BUCKETS:
            self.counts["malformed"] += 1
            return
        self._questions.answer(message.serial, source, message)

    def _on_keys(self, source: NodeId, table: Rows, message: RowsKeys) -> None:
        if not 0 <= message.bucket < BUCKETS or len(message.digest) > KEYS_MAX:
            self.counts["malformed"] += 1
            return
        ours, wanted = table.differing(message.bucket, message.digest)
        self._send_pages(source, table, ours, final=False)
        if wanted:
            self._outbox.put(source, RowsWant(table.topic, tuple(wanted)))

    def _on_want(self, source: NodeId, table: Rows, message: RowsWant) -> None:
        if len(message.keys) > KEYS_MAX:
            self.counts["malformed"] += 1
            return
        self._send_pages(source, table, dict.fromkeys(message.keys), final=True)

    def _on_page(self, source: NodeId, table: Rows, message: RowsPage) -> None:
        better = table.learn(message.rows)
        if not message.final:
            self._send_pages(source, table, better, final=True)

    def _on_period(self) -> None:
        for table in tuple(self._tables.values()):
            table.forget()
            peers = self._broadcast.peers(table.topic)
            if peers:
                peer = peers[self._host.random.randrange(len(peers))]
                self._outbox.meet(peer)
                self._compare(table, peer.id, ROUNDS_MAX - 1)
        self._timer = self._host.after(self._ae_period, self._on_period)


_PAYLOAD: msgspec.msgpack.Decoder[tuple[Row, ...]] = msgspec.msgpack.Decoder(Page)
