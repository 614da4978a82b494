"""What a member answers when it is accused, and what it publishes.  Spec: gossip 5.5, D11."""

from __future__ import annotations

import pytest

from holdfast.errors import ConfigError
from holdfast.events import Updated
from holdfast.features.gossip.protocol.checks import INC_MAX, INC_STEP
from holdfast.features.gossip.protocol.facts import Refuted
from holdfast.features.gossip.protocol.messages import Ack, Gossip, Ping, Sync
from holdfast.features.gossip.protocol.rules import Rules
from tests.features.gossip.stand import ALIVE, DEAD, LEFT, SUSPECT, Stand, life, rumour


def gossip_to(stand: Stand) -> dict[str, list[int]]:
    """To whom ALIVE(me) went directly, with which inc."""
    found: dict[str, list[int]] = {}
    stand.host.pass_time(0.0)
    for to, message in stand.host.take(Gossip):
        for each in message.rumours:
            if each.id == life("a") and each.status is ALIVE:
                found.setdefault(to.name, []).append(each.inc)  # type: ignore[union-attr]
    return found


@pytest.mark.parametrize("status", [SUSPECT, DEAD, LEFT])
def test_an_accusation_is_refuted_by_a_higher_inc(status: int) -> None:
    """Gossip 5.5: me.inc = inc + 1, told further; this member looks a little sick; accusers and sender hear it at once."""
    stand = Stand("b", "c", "d", *"efghij")
    stand.say("b", rumour("a", 4, status, "c", "d"))  # type: ignore[arg-type]
    assert stand.node.inc == 5
    assert stand.node.lhm == 1
    assert stand.node.queue["a"].rumour.inc == 5
    told = gossip_to(stand)
    assert set(told) >= {"b", "c", "d"}
    assert sum(map(len, told.values())) == 3 + 3  # and one round of gossip
    assert stand.host.events(Refuted) == [Refuted(5, "b")]


def test_a_refutation_leaves_before_the_next_datagram_is_read() -> None:
    """Gossip 5.5, H450: accusers and three others hear it while the rest still waits in the socket. F17: once a period."""
    stand = Stand("b", "c", "d", *"efghij")
    for inc, at_once in ((4, 3 + 3), (5, 1)):
        stand.say("b", rumour("a", inc, SUSPECT, "c", "d"))
        found = [to for to, message in stand.host.take(Gossip) if (life("a"), inc + 1) in {(each.id, each.inc) for each in message.rumours}]
        assert len(found) == at_once
        assert {life("b"), life("c"), life("d")}.issubset(found) == (at_once > 1)
    assert set(gossip_to(stand)) >= {"c", "d"}  # In callbacks of their own.


def test_what_others_believed_in_steps_is_refuted_at_once() -> None:
    """Gossip 3, H332: others believe 2^16 at a time; after two lies a member that believed no more would never be cleared."""
    stand = Stand("b")
    stand.say("b", rumour("a", 3 * INC_STEP, DEAD, "b"))
    assert stand.node.inc == 3 * INC_STEP + 1


def test_an_inc_ends_where_its_field_does() -> None:
    """Gossip 3: 0 <= inc < 2^32. A life that was accused so often is refuted no more, and nothing breaks."""
    stand = Stand("b")
    stand.node.myself._raise(INC_MAX)
    stand.say("b", rumour("a", INC_MAX, SUSPECT, "b"))
    stand.node.publish("tag:x", b"1")
    stand.host.pass_time(1.0)
    assert stand.node.inc == INC_MAX


def test_a_ghost_is_outdone_without_blame() -> None:
    """Gossip 5.5: ALIVE with an inc above the own one is of an earlier life of the process."""
    stand = Stand("b")
    stand.say("b", rumour("a", 9))
    assert (stand.node.inc, stand.node.lhm) == (10, 0)
    assert stand.host.events(Refuted) == [Refuted(10, "")]


def test_a_stale_accusation_is_answered_with_the_present_inc() -> None:
    """Gossip 5.5, D16: a peer that still accuses has not heard. Four times a period is enough."""
    stand = Stand("b", "c").without_probes()
    stand.say("b", rumour("a", 4, SUSPECT, "b"))
    gossip_to(stand)
    for _ in range(6):
        stand.say("c", rumour("a", 4, SUSPECT, "c"))
    assert stand.node.inc == 5
    assert gossip_to(stand) == {"c": [5, 5, 5, 5]}
    assert stand.node.counts["answers_held_back"] == 2


def test_without_that_rule_it_is_silent() -> None:
    """Gossip 7 (ablations): no answer to a stale accusation."""
    stand = Stand("b", "c", rules=Rules(answer_stale=False)).without_probes()
    stand.say("b", rumour("a", 4, SUSPECT, "b"))
    gossip_to(stand)
    stand.say("c", rumour("a", 4, SUSPECT, "c"))
    assert gossip_to(stand) == {}


def test_without_the_direct_rules_rumours_carry_it() -> None:
    """Gossip 4 (profiles): the older protocols tell no member directly."""
    stand = Stand("b", "c", rules=Rules(direct=False))
    stand.say("b", rumour("a", 4, SUSPECT, "c"))
    assert gossip_to(stand) == {}
    assert stand.node.queue["a"].rumour.inc == 5


@pytest.mark.parametrize("inc", [1, 0])
def test_the_answer_to_an_accusing_probe_carries_the_refutation(inc: int) -> None:
    """Gossip 5.4 (last call), D16: in the same datagram, before all else; also when the accusation is an old one."""
    stand = Stand("b", *"cdefgh")
    stand.node.rumours.clear()
    stand.hear("b", Ping(7, (rumour("a", inc, SUSPECT, "c"),)))
    ((to, ack),) = stand.host.take(Ack)
    assert (to, ack.seq) == (life("b"), 7)
    assert (ack.rumours[0].id, ack.rumours[0].status, ack.rumours[0].inc) == (life("a"), ALIVE, stand.node.inc)
    assert stand.node.inc > inc
    assert gossip_to(stand).get("b", []) in ([], [2])  # of the round; not because it asked
    assert "b" not in stand.node.myself._answers


def test_an_alive_rumour_about_me_is_ignored() -> None:
    """Gossip 5.5: ALIVE with inc <= mine. The own entry is never overwritten."""
    stand = Stand("b")
    before = stand.node.entry("a")
    stand.say("b", rumour("a", 0), rumour("a", 1, rows={"tag:x": b"1"}, rows_at=1))
    assert stand.node.entry("a") is before
    assert stand.host.sent == []


def test_rows_are_gathered_into_one_inc() -> None:
    """Gossip 5.6, D11: at most one new inc per T/5 for own changes."""
    stand = Stand("b").without_probes()
    stand.host.pass_time(1.0)
    inc = stand.node.inc
    stand.clear()
    stand.node.publish("tag:x", b"1")
    stand.host.pass_time(0.0)
    for value in (b"2", b"3"):
        stand.node.publish("tag:x", value)
    stand.host.pass_time(0.19)
    assert (stand.node.inc, stand.told) == (inc + 1, ["Updated a"])
    stand.host.pass_time(0.02)
    assert stand.node.inc == inc + 2
    assert stand.host.events(Updated)[-1].member.rows["tag:x"] == b"3"
    assert stand.node.entry("a").rows_at == inc + 2  # type: ignore[union-attr]


def test_a_refutation_changes_no_rows() -> None:
    """Gossip D18: rows_at stays, so no member fetches them again."""
    stand = Stand("b")
    before = stand.node.entry("a").rows_at  # type: ignore[union-attr]
    stand.say("b", rumour("a", 4, SUSPECT, "b"))
    assert stand.node.entry("a").rows_at == before  # type: ignore[union-attr]


def test_rows_have_limits() -> None:
    """Foundation 3 (Membership): 64 rows of 256 bytes, 3072 bytes together."""
    stand = Stand("b")
    with pytest.raises(ConfigError, match="at most 256"):
        stand.node.publish("tag:x", b"x" * 257)


def test_a_table_that_accuses_a_thousand_times_costs_one_callback_few_sends() -> None:
    """Foundation F17: what a lying peer says of this member is answered to no more than 64 peers at once."""
    names = [f"m{i:03}" for i in range(90)]
    stand = Stand(*names).without_probes()
    accused = tuple(rumour("a", inc, SUSPECT, *names[inc % 80 : inc % 80 + 4]) for inc in range(1, 300))
    stand.hear("m000", Sync(1, 0, 1, accused))
    assert len({to for to, _ in stand.host.sent}) <= 64
    assert len(stand.host.sent) <= 4 + 3  # To the peer, and the one round that leaves at once (H450).
    stand.host.pass_time(0.0)
    assert len(stand.host.sent) <= 4 * (80 + 4 + 3)
    assert stand.node.inc == 300


def test_who_leaves_ignores_what_is_said_of_it() -> None:
    """Gossip 5.5: LEFT is the last word of a life, so its inc rises no more (G7)."""
    stand = Stand("b")
    stand.node.leave()
    inc = stand.node.inc
    stand.hear("b", Ping(7, (rumour("a", inc, SUSPECT, "b"),)))
    assert stand.node.inc == inc
    assert [each.rumours[0].status for _, each in stand.host.take(Ack)] == [LEFT]
