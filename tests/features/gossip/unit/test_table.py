"""The table.  Spec: gossip 2, D1, D19, D22."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from holdfast.features.gossip.protocol.messages import Status
from holdfast.features.gossip.protocol.table import Base, Entry, Table, Tombstone, bucket_of, entry, hash_of
from tests.features.gossip.stand import base_of, life, place

STONE = Tombstone(0.0, 0.0)


def one(name: str, inc: int = 0, status: Status = Status.ALIVE, boot: int = 1) -> Entry:
    return entry(life(name, boot), place(name), inc, status)


def put(table: Table, each: Entry) -> None:
    table.put(each, None if each.listed else STONE)


@pytest.mark.parametrize("seed", range(20))
def test_any_changes_leave_it_as_if_it_had_been_built_anew(seed: int) -> None:
    """Gossip D22: list, count, hashes and draws of a table with a base are those of one without."""
    random = Random(seed)
    table, plain = Table(base_of(*"abcdef")), dict[str, Entry]()
    for each in base_of(*"abcdef").entries.values():
        plain[each.id.name] = each
    for _ in range(60):
        name = random.choice("abcdefghijkl")
        if random.random() < 0.2 and name in plain:
            table.drop(name)
            del plain[name]
        else:
            each = one(name, random.randrange(5), Status(random.randrange(4)), random.randrange(1, 4))
            put(table, each)
            plain[name] = each
        listed = sorted(each.id for each in plain.values() if each.listed)
        assert [member.id for member in table.members()] == listed
        assert (table.n, table.size) == (len(listed), len(plain))
        assert set(table.tombstones) == {each.id.name for each in plain.values() if not each.listed}
        assert {each.id for each in table.entries()} == {each.id for each in plain.values()}
        assert tuple(table.hashes) == Base(plain.values()).hashes
        places = [table.place(at) for at in range(table.places)]
        assert len(set(places)) == len(places)
        assert {each.name for each in listed} <= set(places)
        assert sorted(each.id for each in table.draw(random, 20, lambda each: True)) == listed


def test_draws_are_even_and_without_repetition() -> None:
    """Gossip 5.2, 5.6: helpers and receivers of gossip are drawn uniformly, also where many of the base are gone."""
    table = Table(base_of(*(f"b{i}" for i in range(30))))
    for i in range(20):
        put(table, one(f"b{i}", 0, Status.DEAD))
    for i in range(10):
        put(table, one(f"o{i}"))
    counts: Counter[str] = Counter()
    random = Random(1)
    for _ in range(4000):
        drawn = [each.id.name for each in table.draw(random, 2, lambda each: each.id.name != "o0")]
        assert len(set(drawn)) == 2
        counts.update(drawn)
    assert len(counts) == 19
    assert max(counts.values()) < 1.3 * 8000 / 19 < 1.7 * min(counts.values())


def test_the_version_grows_with_what_users_see() -> None:
    """Gossip G10: the list or a row; an inc alone is no change for them."""
    table = Table(base_of("a"))
    put(table, one("b"))
    version = table.version
    put(table, one("b", 5))
    assert table.version == version
    put(table, one("b", 5, Status.SUSPECT))
    assert table.version == version + 1
    put(table, one("b", 5, Status.DEAD))
    put(table, one("b", 5, Status.LEFT))
    assert table.version == version + 2


def test_a_hash_stands_for_life_inc_end_and_rows() -> None:
    """Gossip D19: XOR of hash(id, inc, status >= DEAD, rows_at) in 64 buckets; a new life stays in the bucket of its name."""
    base = one("b", 3)
    others = [one("c", 3), one("b", 4), one("b", 3, Status.DEAD), one("b", 3, boot=2), entry(life("b"), place("b"), 3, rows_at=1)]
    assert len({hash_of(each) for each in (base, *others)}) == 6
    assert hash_of(one("b", 3, Status.SUSPECT)) == hash_of(base)
    assert bucket_of(life("b", 1)) == bucket_of(life("b", 9))
    assert len({bucket_of(life(f"m{i}")) for i in range(1000)}) == 64


def test_a_base_is_shared() -> None:
    """Gossip D22: a node of the laboratory keeps its differences alone."""
    base = base_of(*(f"m{i}" for i in range(1000)))
    tables = [Table(base) for _ in range(10)]
    assert all(table.members() is base.members for table in tables)
    put(tables[0], one("m5", 1, Status.SUSPECT))
    assert len(tables[0].own) == 1
    assert tables[1].get("m5") is base.entries["m5"]
