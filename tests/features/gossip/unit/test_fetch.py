"""Rows that are asked for.  Spec: gossip 3 (WANT, ROWS), D18."""

from __future__ import annotations

from holdfast.features.gossip.protocol.fetch import ASKED_MAX
from holdfast.features.gossip.protocol.messages import MemberRows, Rows, Want, Wanted
from tests.features.gossip.stand import Stand, life, rumour

LARGE = {f"tag:{i}": b"x" * 250 for i in range(8)}


def wanting() -> Stand:
    """Rows of "c" were announced by "b"."""
    stand = Stand("b", "c").without_probes()
    stand.say("b", rumour("c", 3, rows_at=3))
    return stand


def asked(stand: Stand) -> list[str]:
    return [to.name for to, _ in stand.host.take(Want)]  # type: ignore[union-attr]


def test_first_the_sender_then_the_member_three_times_in_all() -> None:
    """Gossip 3 (WANT): what three questions do not bring, the next SYNC announces again."""
    stand = wanting()
    stand.host.pass_time(0.0)
    assert asked(stand) == ["b"]
    stand.host.pass_time(0.4)
    assert asked(stand) == ["c"]
    stand.host.pass_time(10.0)
    assert asked(stand) == ["c"]
    assert stand.node.counts["rows_not_fetched"] == 1
    assert len(stand.node.fetch) == 0
    stand.say("b", rumour("c", 3, rows_at=3))
    stand.host.pass_time(0.0)
    assert asked(stand) == ["b"]


def test_rows_that_come_are_taken_and_told() -> None:
    """Gossip 5.1 step 4: rows newer -> Updated. Those of an older inc are not."""
    stand = wanting()
    stand.hear("b", Rows((MemberRows(life("c"), 3, LARGE),)))
    assert stand.told == ["Updated c"]
    assert stand.node.get("c").rows == LARGE  # type: ignore[union-attr]
    stand.hear("b", Rows((MemberRows(life("c"), 2, {}),)))
    assert stand.told == ["Updated c"]
    stand.host.pass_time(5.0)
    assert asked(stand) == []


def test_rows_that_only_the_member_can_know_are_its_own_word() -> None:
    """Gossip G2: no rows for an inc that it was not heard of, unless it says so itself; never for another life, nor for us."""
    stand = wanting()
    stand.hear("b", Rows((MemberRows(life("c"), 9, LARGE), MemberRows(life("c", 2), 1, LARGE), MemberRows(life("a"), 9, LARGE))))
    assert stand.told == []
    stand.hear("c", Rows((MemberRows(life("c"), 9, LARGE),)))
    assert stand.told == ["Updated c"]


def test_too_many_bytes_are_refused() -> None:
    """Gossip D18: 3072 bytes together."""
    stand = wanting()
    stand.hear("b", Rows((MemberRows(life("c"), 3, {f"tag:{i}": b"x" * 256 for i in range(13)}),)))
    assert stand.told == []
    assert stand.node.counts["refused_rows"] == 1


def test_who_has_them_answers() -> None:
    """Gossip 3 (ROWS): at least as new as was asked for; of others nothing."""
    stand = wanting()
    stand.hear("c", Rows((MemberRows(life("c"), 3, LARGE),)))
    stand.clear()
    stand.hear("b", Want((Wanted(life("c"), 3), Wanted(life("b"), 1), Wanted(life("x"), 0))))
    assert stand.host.take(Rows) == [(life("b"), Rows((MemberRows(life("c"), 3, LARGE),)))]


def test_an_answer_has_a_bound() -> None:
    """Gossip 3: 64 KiB; the rest is asked for again."""
    stand = Stand(*(f"m{i:02}" for i in range(40))).without_probes()
    for i in range(40):
        stand.hear(f"m{i:02}", Rows((MemberRows(life(f"m{i:02}"), 1, LARGE),)))
    stand.clear()
    stand.hear("m00", Want(tuple(Wanted(life(f"m{i:02}"), 1) for i in range(40))))
    ((_, answer),) = stand.host.take(Rows)
    assert 20 < len(answer.members) < 40


def test_who_is_gone_is_not_asked_for() -> None:
    """Gossip D18: rows of members that are listed."""
    stand = wanting()
    stand.bury("c")
    stand.host.pass_time(5.0)
    assert asked(stand) == []
    assert len(stand.node.fetch) == 0


def test_few_are_asked_at_once() -> None:
    """Foundation F17: a callback writes to 16 members at most; the others come after them."""
    names = [f"m{i:02}" for i in range(40)]
    stand = Stand(*names).without_probes()
    for name in names:
        stand.say(name, rumour(name, 1, rows_at=1))
    stand.host.pass_time(0.0)
    assert len(asked(stand)) == ASKED_MAX
    stand.host.pass_time(4.0)
    assert set(asked(stand)) == set(names)
