"""Ranks as bytes, and how a name is elected.  Spec: election 4, D13, D17; decisions H390, H397."""

from __future__ import annotations

import pytest

from holdfast.errors import ConfigError
from holdfast.features.election.protocol.config import ElectionConfig
from holdfast.features.election.protocol.manner import Manner, is_sound, manner
from holdfast.features.election.protocol.ranks import decode, encode, hash_of, health_of, rank_key, ranked, row_of
from holdfast.host import NodeId
from tests.features.election.stand import HYBRID, NAME, Stand, life, post, standing

UP, DOWN = manner(rank=("tag:load",)), manner(rank=("-tag:load",))


def keys(made: Manner, *values: str | None) -> list[bytes]:
    return [rank_key(made, {} if value is None else {"load": value}) for value in values]


def test_numbers_order_as_numbers() -> None:
    """D13: finite numbers compare as numbers, also negative ones, fractions and powers."""
    ordered = ["-1e9", "-3", "-0.5", "0", "0.25", "2", "10", "1e3"]
    assert keys(UP, *ordered) == sorted(keys(UP, *ordered))
    assert keys(DOWN, *ordered) == sorted(keys(DOWN, *ordered), reverse=True)
    assert len(set(keys(UP, *ordered))) == len(ordered)
    assert keys(UP, "0") == keys(UP, "-0.0")


@pytest.mark.parametrize("made", [UP, DOWN], ids=["tag", "-tag"])
def test_text_is_behind_numbers_and_what_is_missing_is_last(made: Manner) -> None:
    """D13: "numbers first"; a tag that is missing or no number where others have numbers ranks last, in both directions."""
    number, text, missing = keys(made, "1e300", "aaa", None)
    assert number < text < missing


@pytest.mark.parametrize("word", ["inf", "-inf", "nan", "NaN", "Infinity", "1_000", " 5", "0x10", "٣", "1e999"])
def test_what_looks_like_a_number_and_is_none(word: str) -> None:
    """D13: inf and NaN are text; so is what only Python takes for a number."""
    assert keys(UP, word)[0] > keys(UP, "1e308")[0]


def test_text_orders_as_text_and_is_turned_round() -> None:
    """D13: a prefix is smaller; with "-tag:" it is larger."""
    ordered = ["a", "ab", "b"]
    assert keys(UP, *ordered) == sorted(keys(UP, *ordered))
    assert keys(DOWN, *ordered) == sorted(keys(DOWN, *ordered), reverse=True)


def test_two_tags_and_the_hash_last() -> None:
    """D13: the first tag decides, then the second, then the hash."""
    made = manner(rank=("tag:zone", "-tag:data", "hash"))
    rows = [rank_key(made, {"zone": zone, "data": data}) for zone, data in (("1", "9"), ("1", "5"), ("2", "99"))]
    assert rows == sorted(rows)
    one, other = (ranked(NAME, life(name), rows[0]) for name in ("p", "q"))
    assert (one < other) is (hash_of(NAME, "p") < hash_of(NAME, "q"))


def test_the_hash_is_of_the_name_and_of_the_agents_name() -> None:
    """D13: another order for each election, the same after a restart."""
    assert ranked("x", NodeId("a", 1), b"").hash == ranked("x", NodeId("a", 2), b"").hash
    names = [f"m{number}" for number in range(6)]
    assert sorted(names, key=lambda each: hash_of("x", each)) != sorted(names, key=lambda each: hash_of("y", each))


@pytest.mark.parametrize("rank", ["load", ("tag:",), ("--tag:x",), ("tag:a", "hash", "tag:b"), (3,)])
def test_a_bad_rank_is_refused(rank: object) -> None:
    """Section 10: ConfigError with what is accepted; a lambda cannot travel."""
    with pytest.raises(ConfigError, match=r"rank: .*; accepted are hash, tag:NAME, -tag:NAME"):
        manner(rank=rank)  # type: ignore[arg-type]


def test_a_fifth_tag_is_refused() -> None:
    """Section 4: up to 4 tags."""
    with pytest.raises(ConfigError, match="rank: 5 tags; accepted are at most 4"):
        manner(rank=tuple(f"tag:{number}" for number in range(5)))


@pytest.mark.parametrize(
    "field, value, accepted",
    [
        ("variant", "bully", "base, optimistic, preferred, hybrid"),
        ("voters", "all", "none, seats, members"),
        ("health", "mood", "suspicions"),
    ],
)
def test_other_words_are_refused(field: str, value: str, accepted: str) -> None:
    """Section 10: unknown variant, mode, health: what was said, and what is accepted."""
    with pytest.raises(ConfigError, match=f"{field}: '{value}'; accepted are {accepted}"):
        manner(**{field: value})


@pytest.mark.parametrize(
    "field, value", [("x", 0), ("y", 33), ("c", -1), ("timeout", 100.0), ("hold", 0.01), ("tick", float("nan")), ("watch", -1)]
)
def test_numbers_out_of_bounds_are_refused(field: str, value: float) -> None:
    """Section 4: each number has its range, and the error names the field."""
    with pytest.raises(ConfigError, match=f"^{field}: "):
        ElectionConfig(**{field: value})  # type: ignore[arg-type]


def test_a_manner_of_a_peer_that_cannot_be() -> None:
    """H390: what travels is checked where it arrives: a rank that is no tag, a health that is no word."""
    assert is_sound(manner(rank=("-tag:x",), health="tag:sick"))
    assert not is_sound(Manner(rank=("x",)))
    assert not is_sound(Manner(health="mood"))
    assert len(encode_manner(HYBRID)) == 5


def encode_manner(made: Manner) -> bytes:
    import msgspec

    return msgspec.msgpack.encode(made)


def test_a_row_of_nonsense_is_no_candidate() -> None:
    """Bytes of a peer: not a row, and no error."""
    assert decode(b"\xc1") is None
    assert decode(encode(decode(post(UP)))[:-3]) is None  # type: ignore[arg-type]
    stand = Stand("m1", "m2", candidates=["m1"])
    stand.rows.publish(life("m2"), row_of(NAME), b"\xff\xff")
    assert [each.id.name for each in stand.stand().ask("m1").candidates if each.id.name == "m2"] == []  # type: ignore[union-attr]


def test_a_tag_that_changes_makes_a_newer_row() -> None:
    """D13: a candidate's rank attribute follows its tags; the row counts up."""
    stand = Stand("m1", made=UP)
    stand.rows.publish(stand.host.me, "tag:load", b"5")
    stand.stand()
    first = decode(stand.rows.members["m0"].rows[row_of(NAME)])
    stand.rows.publish(stand.host.me, "tag:load", b"4")
    stand.lists.updated("m0")
    second = decode(stand.rows.members["m0"].rows[row_of(NAME)])
    assert first is not None
    assert second is not None
    assert (first.rank > second.rank, first.inc < second.inc) == (True, True)
    stand.host.pass_time(3.0)
    assert decode(stand.rows.members["m0"].rows[row_of(NAME)]) == second


@pytest.mark.parametrize("newest, best", [(True, "p"), (False, "q")])
def test_of_two_rows_of_one_candidate_the_newer_counts(newest: bool, best: str) -> None:
    """5.5 (4): p's row with the highest inc says that it ranks first; by the older one it would be q."""
    from holdfast.features.election.protocol.messages import Response
    from holdfast.features.election.protocol.rules import Rules

    old, new, other = (rank_key(UP, {"load": value}) for value in ("9", "1", "5"))
    stand = Stand("p", "q", "r", made=UP, candidates=[], rules=Rules(newest_row=newest), c=2, f=0).stand().quiet()
    eid = stand.begin()
    stand.hear("p", Response(NAME, UP, eid, (standing("p", old, 1), standing("q", other, 1))))
    stand.hear("q", Response(NAME, UP, eid, (standing("p", new, 2), standing("q", other, 1))))
    assert stand.notified()[-1][0] == best


def test_health_by_a_tag() -> None:
    """Section 4: a number that the candidate publishes, larger is worse; what is no number, or negative, is healthy."""
    made = manner(health="tag:sick")
    assert [health_of(made, {"sick": value}) for value in ("2.5", "-1", "nan", "x")] == [2.5, 0.0, 0.0, 0.0]
    assert health_of(HYBRID, {"sick": "3"}) == 0.0


def test_a_health_tag_that_is_no_number_is_counted() -> None:
    """H466, issue 18 (bad input): it counts as healthy, once per text that is no number, and not again with every look."""
    stand = Stand("m1", made=manner(health="tag:sick"))
    counted: list[int] = []
    for text in (b"bad", b"bad", b"2.5", b"", b"worse"):
        stand.rows.publish(stand.host.me, "tag:sick", text)
        if not counted:
            stand.stand()
        stand.lists.updated("m0")
        stand.host.pass_time(3.0)
        counted.append(stand.machine.counts["health_unread"])
    assert counted == [1, 1, 1, 1, 2]
