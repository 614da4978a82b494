"""Rows and their exchange: any order, repetition and loss of updates ends in the join.  Foundation 4 (Rows), tickets 5.9."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.errors import ConfigError
from holdfast.host import Host, Machine, Member, Message, NodeId
from holdfast.kit import rows as module
from holdfast.kit.broadcast import Broadcast, Rumour
from holdfast.kit.exchange import AE_PERIOD, MOMENTS, TRIES, Exchange, RowsBuckets, RowsDigest, RowsKeys, RowsPage, RowsWant
from holdfast.kit.roster import Roster
from holdfast.kit.rows import BUCKETS, KEY_BYTES_MAX, TOMBSTONE_TTL, VALUE_BYTES_MAX, Row, Rows, pages
from holdfast.kit.versioned import Versioned, gone, newest, read, valid
from tests.support.fake_host import FakeHost
from tests.support.mesh import Mesh

TOPIC = "t"


def build(host: Host, members: list[Member]) -> Iterable[Machine]:
    roster = Roster(host, members, hello_period=0)
    cast = Broadcast(host, roster)
    return roster, cast, Exchange(host, cast)


class Tables(Mesh):
    """Nodes that share one table of versioned values."""

    def __init__(self, names: str = "abc", *, ttl: float = TOMBSTONE_TTL) -> None:
        super().__init__(names, build, rows=[f"topic:{TOPIC}"])
        self.tables = {name: self._table(name, ttl) for name in names}
        self.start()

    def _table(self, name: str, ttl: float) -> Rows:
        exchange = self.exchange(name)
        return exchange.rows(TOPIC, newest, gone=gone, valid=valid, tombstone_ttl=ttl)

    def exchange(self, name: str) -> Exchange:
        machine = self.machines[name][2]
        assert isinstance(machine, Exchange)
        return machine

    def contents(self) -> list[dict[str, bytes]]:
        return [dict(table.items()) for table in self.tables.values()]

    def compare(self) -> None:
        """One period of anti-entropy on a perfect network, in steps as small as its own."""
        for _ in range(MOMENTS):
            self.pass_time(AE_PERIOD / MOMENTS)
            self.deliver()


def value(version: int, author: str = "x", body: bytes | None = b"body") -> bytes:
    return Versioned(version, author, body).encode()


def alone() -> tuple[FakeHost, Rows, list[list[str]]]:
    host = FakeHost()
    pushed: list[list[str]] = []
    return host, Rows(host, TOPIC, newest, lambda _, keys: pushed.append(keys), gone=gone, valid=valid), pushed


def test_a_change_reaches_everybody_as_a_rumour() -> None:
    """Foundation 4: "pushes changes as rumours"; nothing has to wait for the anti-entropy."""
    group = Tables()
    group.tables["a"].set("k", value(1))
    group.deliver()
    assert group.contents() == [{"k": value(1)}] * 3
    assert {type(message) for _, _, message in group.sent} == {Rumour}


def test_what_changes_nothing_is_not_pushed() -> None:
    """A join: repeating an update, or bringing an older one, is silent."""
    _, table, pushed = alone()
    table.set("k", value(2))
    table.set("k", value(2))
    table.set("k", value(1))
    assert pushed == [["k"]]
    assert table.get("k") == value(2)


def test_equal_tables_exchange_one_hash() -> None:
    """Foundation 4: a digest, not the table, is what calm costs."""
    group = Tables("ab")
    group.tables["a"].update((f"k{i}", value(1)) for i in range(500))
    group.deliver()
    group.sent.clear()
    group.compare()
    assert sorted(type(message).__name__ for _, _, message in group.sent) == ["RowsBuckets"] * 2 + ["RowsDigest"] * 2
    assert max(len(msgspec.msgpack.encode(message)) for _, _, message in group.sent) < 20


def test_one_difference_in_a_large_table_costs_little() -> None:
    """Foundation 4: hashes of buckets, then the keys of one bucket, then one value; not the other 2999 rows."""
    group = Tables("ab")
    for name in "ab":
        for i in range(3000):
            group.tables[name].learn([Row(f"key-{i}", value(1), 0.0)])
    group.tables["a"].learn([Row("key-7", value(2), 0.0)])
    group.sent.clear()
    group.compare()
    assert group.tables["b"].get("key-7") == value(2)
    sizes = [len(msgspec.msgpack.encode(message)) for _, _, message in group.sent]
    assert sum(sizes) < 6000
    assert sum(len(message.rows) for _, _, message in group.sent if isinstance(message, RowsPage)) <= 3


def test_a_digest_fits_a_datagram() -> None:
    """Foundation 3 (send): what is sent every period fits a datagram of 1200 sealed bytes."""
    assert len(msgspec.msgpack.encode(RowsBuckets("x" * 64, 2**53, (2**64 - 1,) * BUCKETS))) < 1000


def test_a_newcomer_gets_everything_in_one_exchange() -> None:
    """Foundation 4: pages what differs; much at a time goes in large pieces."""
    group = Tables("ab")
    for i in range(2000):
        group.tables["a"].learn([Row(f"key-{i}", value(1, body=b"x" * 50), 0.0)])
    group.compare()
    assert group.contents()[0] == group.contents()[1]
    largest = max(len(msgspec.msgpack.encode(message)) for _, _, message in group.sent)
    assert largest <= 70_000


def test_both_sides_learn_in_one_exchange() -> None:
    """Foundation 4: whoever knows better says so, in either direction, also key by key."""
    group = Tables("ab")
    a, b = group.tables["a"], group.tables["b"]
    a.learn([Row("only-a", value(1), 0.0), Row("older-b", value(5), 0.0), Row("older-a", value(1), 0.0)])
    b.learn([Row("only-b", value(1), 0.0), Row("older-b", value(2), 0.0), Row("older-a", value(3), 0.0)])
    group.exchange("b").stop()  # only a asks
    group.compare()
    assert dict(a.items()) == dict(b.items())
    assert a.get("older-a") == value(3)
    assert b.get("older-b") == value(5)


changes = st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from("klm"), st.integers(1, 5), st.booleans()), max_size=20)


@settings(max_examples=60, deadline=None)
@given(changes=changes, seed=st.integers(0, 2**32), loss=st.floats(0, 1), duplicate=st.floats(0, 1))
def test_any_order_duplication_and_loss_ends_in_the_join(
    changes: list[tuple[str, str, int, bool]], seed: int, loss: float, duplicate: float
) -> None:
    """Foundation 4: "larger wins, any order, any repetition"; with eventual exchange everybody holds the join of all updates."""
    group = Tables("abcd")
    random = Random(seed)
    join: dict[str, bytes] = {}
    for name, key, version, dead in changes:
        update = value(version, name, None if dead else b"by " + name.encode())
        join[key] = newest(join.get(key, update), update)
        group.tables[name].set(key, update)
        if random.random() < 0.5:
            group.pass_time(random.uniform(0, AE_PERIOD))
            group.deliver(random=random, loss=loss, duplicate=duplicate)
    for _ in range(12):  # each compares with one random peer per period: 12 periods mix 4 tables but for one chance in 10^5
        group.compare()
    assert group.contents() == [{key: join[key] for key in sorted(join) if not gone(join[key])}] * 4


versions = st.builds(Versioned, version=st.integers(0, 3), author=st.sampled_from("ab"), body=st.none() | st.sampled_from([b"", b"x"]))
encoded = versions.map(Versioned.encode)


@given(encoded, encoded, encoded)
def test_newest_is_a_join(a: bytes, b: bytes, c: bytes) -> None:
    """Foundation 4: commutative, associative, idempotent."""
    assert newest(a, b) == newest(b, a)
    assert newest(a, newest(b, c)) == newest(newest(a, b), c)
    assert newest(a, a) == a
    assert read(newest(a, b)).version == max(read(a).version, read(b).version)


def test_gone_hides_a_row_and_travels() -> None:
    """Foundation 4: "values may say gone"; an older value does not bring it back."""
    group = Tables("ab")
    group.tables["a"].set("k", value(1))
    group.deliver()
    group.tables["b"].set("k", value(2, body=None))
    group.deliver()
    assert group.contents() == [{}, {}]
    group.tables["a"].set("k", value(1))
    assert group.tables["a"].get("k") is None
    assert len(group.tables["a"]) == 0
    group.tables["a"].set("k", value(3))
    assert group.tables["a"].get("k") == value(3)


def test_tombstones_are_forgotten_everywhere_at_the_same_age() -> None:
    """Rows' docstring: the age travels, so a tombstone does not start anew wherever it arrives late."""
    group = Tables("ab", ttl=100.0)
    group.tables["a"].set("k", value(1, body=None))
    group.sent.clear()
    for host in group.hosts.values():
        host.sent = []  # the rumour is lost
    group.exchange("a").stop()
    group.exchange("b").stop()
    group.pass_time(90)
    row = group.tables["a"].read(["k"])
    assert row[0].age == 90
    group.tables["b"].learn(row)
    group.pass_time(9)
    for table in group.tables.values():
        table.forget()
        assert table.root != 0
    group.pass_time(1)
    for table in group.tables.values():
        table.forget()
        assert table.root == 0
    group.tables["b"].learn([Row("k", value(1, body=None), 100.0)])
    assert group.tables["b"].root == 0


def test_the_root_depends_on_content_alone() -> None:
    """Two tables that hold the same have the same digest, whatever way they got there."""
    _, one, _ = alone()
    _, two, _ = alone()
    for i in range(20):
        one.set(f"k{i}", value(1))
    one.set("k3", value(2))
    two.set("k3", value(2))
    for i in reversed(range(20)):
        two.set(f"k{i}", value(1))
    assert one.root == two.root
    assert one.hashes == two.hashes
    two.set("k3", value(3))
    assert one.root != two.root
    assert sum(a != b for a, b in zip(one.hashes, two.hashes, strict=True)) == 1


def test_listeners_hear_every_change() -> None:
    """Own and learnt ones, with the value before; no repetition."""
    _, table, _ = alone()
    heard: list[tuple[str, bytes | None, bytes]] = []
    table.on_change(lambda key, before, now: heard.append((key, before, now)))
    table.set("k", value(1))
    table.learn([Row("k", value(2), 0.0), Row("k", value(1), 0.0)])
    assert heard == [("k", None, value(1)), ("k", value(1), value(2))]


@pytest.mark.parametrize("key, size", [("", 1), ("x" * (KEY_BYTES_MAX + 1), 1), ("k", VALUE_BYTES_MAX)])
def test_limits_for_our_own_rows(key: str, size: int) -> None:
    """F17 and STYLE: the field and what is accepted."""
    _, table, _ = alone()
    with pytest.raises(ConfigError, match="accepted are"):
        table.set(key, value(1, body=b"x" * size))


def test_a_full_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """F17: our own code is told, a peer's row is counted; known keys still change."""
    monkeypatch.setattr(module, "KEYS_MAX", 2)
    _, table, _ = alone()
    table.set("a", value(1))
    with pytest.raises(ConfigError, match="accepted are at most 2"):
        table.update([("b", value(1)), ("c", value(1))])
    table.set("b", value(1))
    table.learn([Row("c", value(1), 0.0), Row("b", value(2), 0.0)])
    assert table.get("c") is None
    assert table.get("b") == value(2)
    assert table.counts["table_full"] == 1


@pytest.mark.parametrize(
    "row",
    [Row("", b"", 0.0), Row("x" * 200, value(1), 0.0), Row("k", b"\xc1", 0.0), Row("k", value(1), -1.0), Row("k", value(1), float("nan"))],
)
def test_rows_of_a_peer_that_are_no_rows(row: Row) -> None:
    """STYLE: a counted drop; ``merge`` never sees what ``valid`` has not passed."""
    _, table, _ = alone()
    assert table.learn([row]) == []
    assert table.counts["malformed"] == 1
    assert table.root == 0


def test_messages_of_a_peer_that_make_no_sense() -> None:
    """STYLE: counted drops."""
    group = Tables("ab")
    exchange, b = group.exchange("a"), NodeId("b", 1)
    exchange.on_message(b, RowsDigest("unknown", 1, 1))
    exchange.on_message(b, RowsBuckets(TOPIC, 1, (1, 2)))
    exchange.on_message(b, RowsKeys(TOPIC, BUCKETS, ()))
    exchange.on_message(b, RowsKeys(TOPIC, -1, ()))
    exchange.on_message(b, RowsWant(TOPIC, ("k",) * (module.KEYS_MAX + 1)))
    group.machines["a"][1].on_message(b, Rumour(b, TOPIC, 1, 0, b"\xc1"))
    assert exchange.counts["not_joined"] == 1
    assert exchange.counts["malformed"] == 5
    group.deliver()
    assert group.sent == []


@given(st.lists(st.integers(0, VALUE_BYTES_MAX), max_size=60))
def test_pages_keep_order_and_limits(sizes: list[int]) -> None:
    """Foundation 4: datagram-sized pages while a few are enough, large pieces otherwise; nothing lost, nothing doubled."""
    rows = [Row(f"k{i}", b"x" * size, 0.0) for i, size in enumerate(sizes)]
    cut = pages(rows)
    assert [row for page in cut for row in page] == rows
    total = sum(sizes)
    for page in cut:
        if len(page) > 1:
            assert sum(len(row.value) for row in page) <= (module.PAGE_BYTES if total < 6000 else module.BULK_BYTES)
    assert len(cut) <= module.PAGES_MAX * 2 + total // (module.BULK_BYTES // 2)


def test_a_merge_that_is_no_join_does_not_talk_for_ever() -> None:
    """RowsPage.final: a bug in a protocol's merge must not keep two nodes busy."""
    group = Mesh("ab", build, rows=[f"topic:{TOPIC}"])
    group.start()
    for name in "ab":
        exchange = group.machines[name][2]
        assert isinstance(exchange, Exchange)
        exchange.rows(TOPIC, lambda a, b: (a + b)[:40]).set("k", name.encode())
    for _ in range(3 * MOMENTS):
        group.pass_time(AE_PERIOD / MOMENTS)
        group.deliver()


def test_a_lost_datagram_costs_a_moment_not_a_period() -> None:
    """Exchange's docstring: the digest is a Call, and rounds go on while the peer holds something else."""
    group = Tables("ab")
    group.tables["a"].learn([Row("k", value(1), 0.0)])
    group.exchange("b").stop()
    unlost: list[type[Message]] = [RowsDigest, RowsBuckets, RowsKeys, RowsPage]

    def each_once(message: Message) -> bool:
        if type(message) not in unlost:
            return False
        unlost.remove(type(message))
        return True

    group.lose = each_once
    while not group.tables["b"].get("k"):
        group.pass_time(AE_PERIOD / MOMENTS)
        group.deliver()
    assert unlost == []
    # The first begins within a period; then at most one more of a moment each for the digest, its answer, the keys and the page.
    assert group.hosts["a"].now - 1000.0 <= AE_PERIOD + 5 * AE_PERIOD / MOMENTS


def test_a_peer_that_does_not_answer_is_left_alone() -> None:
    """Three tries per period, then nothing until the next: a dead member of a stale list costs little."""
    group = Tables("ab")
    group.down = {"b"}
    group.exchange("b").stop()
    for _ in range(4 * MOMENTS):
        group.pass_time(AE_PERIOD / MOMENTS)
        group.deliver()
    assert 3 * TRIES <= len(group.sent) <= 4 * TRIES
    assert group.exchange("a").counts["unanswered"] >= 3
    group.exchange("a").stop()
    group.sent.clear()
    group.pass_time(10 * AE_PERIOD)
    group.deliver()
    assert group.sent == []
