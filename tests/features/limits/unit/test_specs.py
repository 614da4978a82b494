"""Specs: limits come, change, conflict and go.  Spec: limits 5.10, 9, 10, H268; F7, F17."""

from __future__ import annotations

from math import inf, nan
from typing import Any

import pytest
from msgspec import msgpack
from msgspec.structs import replace

from holdfast.errors import ConfigError
from holdfast.events import Event, LimitChanged, SpecConflict
from holdfast.features.limits.protocol import specs as module
from holdfast.features.limits.protocol.config import LIMITS_MAX, UNIT
from holdfast.features.limits.protocol.specs import LAMPORT_MAX, TOMBSTONE_TTL, Spec, Specs, make, newest, valid
from holdfast.kit.rows import Row
from tests.features.limits.stand import Table
from tests.support.fake_host import FakeHost


class Two:
    """Two members whose tables learn from each other when the test says so."""

    def __init__(self) -> None:
        self.hosts = FakeHost("a"), FakeHost("b")
        self.tables = tuple(Table(host) for host in self.hosts)
        self.specs = tuple(Specs(host, table) for host, table in zip(self.hosts, self.tables, strict=True))  # type: ignore[arg-type]
        self.heard: list[tuple[str, Spec | None, Spec]] = []
        self.told: tuple[list[Event], ...] = ([], [])
        for specs, told in zip(self.specs, self.told, strict=True):
            specs.told = told.append
        self.specs[1].on_change(lambda name, before, now: self.heard.append((name, before, now)))

    def meet(self) -> None:
        a, b = (table.table for table in self.tables)
        from_a, from_b = a.read(a.keys()), b.read(b.keys())
        b.learn(from_a)
        a.learn(from_b)


@pytest.fixture
def two() -> Two:
    return Two()


def test_what_one_sets_the_other_uses(two: Two) -> None:
    """Limits 5.10: a limit is a row that all members share; R and B in micro-units."""
    a, b = two.specs
    spec = a.set("api", make(500.0, 50.0))
    two.meet()
    assert b.get("api") == spec == Spec(500 * UNIT, 50 * UNIT, 1, "a")
    assert two.heard == [("api", None, spec)]
    assert two.told[1] == [LimitChanged("api", 500.0, 50.0, "a")]
    assert list(b.items()) == [("api", spec)]


def test_the_last_writer_wins(two: Two) -> None:
    """Limits 5.10: by (Lamport counter, member name); any order and any repetition end in the same."""
    a, b = two.specs
    a.set("api", make(500.0, 50.0))
    two.meet()
    b.change("api", rate=300.0)
    b.change("api", burst=20.0)
    a.change("api", fleet=7)
    two.meet()
    two.meet()
    assert a.get("api") == b.get("api")
    spec = a.get("api")
    assert spec is not None
    assert (spec.rate, spec.burst, spec.fleet, spec.lamport, spec.by) == (300 * UNIT, 20 * UNIT, 0, 3, "b")
    values = [msgpack.encode(replace(spec, lamport=lamport, by=by)) for lamport, by in ((1, "b"), (2, "a"), (2, "b"), (1, "z"))]
    assert {newest(newest(x, y), z) for x in values for y in values for z in values if {x, y, z} >= {values[2]}} == {values[2]}


def test_two_that_create_one_name(two: Two) -> None:
    """Limits 5.10: with different rates the higher version wins, and the member whose rate does not count says so."""
    a, b = two.specs
    a.offer("api", make(500.0, 50.0))
    b.offer("api", make(300.0, 50.0))
    two.meet()
    assert a.get("api") == b.get("api")
    assert [event for event in two.told[0] if isinstance(event, SpecConflict)] == [SpecConflict("api", 300.0, "b", 500.0)]


def test_a_process_that_starts_changes_nothing(two: Two) -> None:
    """Limits 5.10: what the group has stays; another rate in a program is a conflict that is told, the same rate is none."""
    a, b = two.specs
    a.set("api", make(500.0, 50.0))
    two.meet()
    assert b.offer("api", make(500.0, 10.0)).burst == 50 * UNIT
    assert b.offer("api", make(400.0, 50.0)).rate == 500 * UNIT
    assert [event for event in two.told[1] if isinstance(event, SpecConflict)] == [SpecConflict("api", 500.0, "a", 400.0)]


def test_removed_and_made_again(two: Two) -> None:
    """Limits 5.10: a tombstone with a version of its own; a limit that is set anew is above it."""
    a, b = two.specs
    a.set("api", make(500.0, 50.0))
    two.meet()
    b.remove("api")
    two.meet()
    assert (a.get("api"), len(a)) == (None, 0)
    assert two.told[0][-1] == LimitChanged("api", 0.0, 50.0, "b")
    assert a.set("api", make(100.0, 10.0)).lamport == 3
    two.meet()
    assert b.get("api") is not None


def test_a_tombstone_lives_for_an_hour(two: Two) -> None:
    """Limits 5.10: for so long an old version that comes from a partition does not bring the limit back."""
    a, _ = two.specs
    old = msgpack.encode(a.set("api", make(500.0, 50.0)))
    a.remove("api")
    two.hosts[0].clock += TOMBSTONE_TTL - 1
    two.tables[0].table.forget()
    two.tables[0].table.learn([Row("api", old, 0.0)])
    assert a.get("api") is None
    assert TOMBSTONE_TTL == 3600.0


def test_a_penalty_slows_all_and_ends(two: Two) -> None:
    """Limits 9: a version with a lower rate that expires; one member's observation counts for all."""
    a, b = two.specs
    a.set("api", make(500.0, 50.0))
    two.meet()
    b.penalize("api", 30.0, 0.5)
    two.meet()
    spec = a.get("api")
    assert spec is not None
    wall = two.hosts[0].wall()
    assert (spec.rate_at(wall), spec.rate_at(wall + 29.9), spec.rate_at(wall + 30.1)) == (250.0, 250.0, 500.0)
    assert two.told[0][-1] == LimitChanged("api", 250.0, 50.0, "b")


def test_penalties_add_up_to_the_worse(two: Two) -> None:
    """Limits 9: a weaker one changes nothing, a longer or stronger one replaces it; a change of the rate keeps it."""
    a, _ = two.specs
    a.set("api", make(500.0, 50.0))
    first = a.penalize("api", 30.0, 0.5)
    assert a.penalize("api", 10.0, 0.8) == first
    second = a.penalize("api", 60.0, 0.8)
    assert (second.factor, second.until) == (0.5, two.hosts[0].wall() + 60.0)
    third = a.change("api", rate=300.0)
    assert third.rate_at(two.hosts[0].wall()) == 150.0


def test_a_penalty_from_a_clock_that_is_wrong(two: Two) -> None:
    """Limits 9, H268: one that would last longer than a penalty may does not count: another clock is ahead, or a peer lies."""
    spec = replace(make(500.0, 50.0), by="b", factor=0.001, until=two.hosts[0].wall() + 3601.0)
    assert spec.rate_at(two.hosts[0].wall()) == 500.0


BAD: list[tuple[str, Any, str]] = [
    ("rate", 0.0, "rate: 0.0; accepted are 1e-06 to 1e"),
    ("rate", -1.0, "rate: -1.0"),
    ("rate", nan, "rate: nan"),
    ("rate", inf, "rate: inf"),
    ("rate", 1e10, "rate: 10000000000.0"),
    ("burst", 0.5, "burst: 0.5; accepted are 1 to"),
    ("reserve", 1.5, "reserve: 1.5"),
    ("headroom", 0.6, "headroom: 0.6"),
    ("policy", "loose", "policy: 'loose'; accepted are fair, strict, exact"),
    ("share", "equal", "share: 'equal'; accepted are maxmin, demand"),
    ("aggregate", "tree", "aggregate: 'tree'; accepted are gossip, central"),
    ("fleet", -1, "fleet: -1"),
    ("policy", "exact", "fleet: policy 'exact' needs"),
    ("policy", "strict", "fleet: policy 'strict' needs"),
]


@pytest.mark.parametrize("case", BAD, ids=lambda case: f"{case[0]}={case[1]}")
def test_what_makes_no_sense(case: tuple[str, Any, str]) -> None:
    """Limits 10: the message names the field and what is accepted."""
    field, value, words = case
    numbers: dict[str, Any] = {"rate": 500.0, "burst": 50.0, field: value}
    with pytest.raises(ConfigError) as caught:
        make(**numbers)
    assert words in str(caught.value)


def test_names_and_numbers_of_limits(two: Two, monkeypatch: pytest.MonkeyPatch) -> None:
    """Limits 10, F17: names of up to 128 bytes, 256 limits; a limit that is not there cannot be changed."""
    a, _ = two.specs
    with pytest.raises(ConfigError, match="a name of 200 bytes; accepted are 1 to 128"):
        a.set("x" * 200, make(1.0, 1.0))
    with pytest.raises(ConfigError, match="there is no such limit"):
        a.change("api", rate=3.0)
    with pytest.raises(ConfigError, match="there is no such limit"):
        a.remove("api")
    monkeypatch.setattr(module, "LIMITS_MAX", 3)
    for name in "xyz":
        a.set(name, make(1.0, 1.0))
    with pytest.raises(ConfigError, match="would be number 4; a group has at most 3"):
        a.set("w", make(1.0, 1.0))
    a.set("x", make(2.0, 1.0))
    assert LIMITS_MAX == 256


def test_rows_of_a_peer() -> None:
    """Limits 5.10, F16: what is no spec, or one that makes no sense, is malformed; a counter of the table."""
    host = FakeHost("a")
    table = Table(host)
    specs = Specs(host, table)  # type: ignore[arg-type]
    good = replace(make(5.0, 5.0), by="b")
    bad = [
        b"junk",
        msgpack.encode([1, 2]),
        msgpack.encode(replace(good, lamport=LAMPORT_MAX + 1)),
        msgpack.encode(replace(good, lamport=0)),
        msgpack.encode(replace(good, rate=-1)),
        msgpack.encode(replace(good, rate=10**18)),
        msgpack.encode(replace(good, policy=2)),
        msgpack.encode(replace(good, factor=0.0)),
        msgpack.encode(replace(good, headroom=nan)),
    ]
    assert not any(valid(value) for value in bad)
    table.table.learn([Row(f"x{number}", value, 0.0) for number, value in enumerate(bad)])
    assert (len(specs), table.table.counts["malformed"]) == (0, len(bad))
    assert valid(msgpack.encode(good))


def test_too_many_limits_of_peers(monkeypatch: pytest.MonkeyPatch) -> None:
    """F17: beyond the limit of limits a row is kept for others, and not used here."""
    monkeypatch.setattr(module, "LIMITS_MAX", 2)
    host = FakeHost("a")
    table = Table(host)
    specs = Specs(host, table)  # type: ignore[arg-type]
    table.table.learn([Row(name, msgpack.encode(replace(make(5.0, 5.0), by="b")), 0.0) for name in "xyz"])
    assert (len(specs), specs.counts["too_many"]) == (2, 1)


def test_a_counter_that_a_peer_drove_to_its_end(two: Two) -> None:
    """F17: the name is lost, and the error says so."""
    two.tables[0].table.learn([Row("api", msgpack.encode(replace(make(5.0, 5.0), by="b", lamport=LAMPORT_MAX)), 0.0)])
    with pytest.raises(ConfigError, match="use another name"):
        two.specs[0].change("api", rate=3.0)
