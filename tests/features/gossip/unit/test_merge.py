"""What a rumour changes.  Spec: gossip 5.1."""

from __future__ import annotations

from itertools import permutations
from random import Random

import msgspec
import pytest

from holdfast.events import Failed, Joined
from holdfast.features.gossip.protocol.checks import INC_STEP, OWN_STEPS
from holdfast.features.gossip.protocol.messages import Gossip, Missed, Rumour, Want
from holdfast.features.gossip.protocol.rules import Rules
from holdfast.host import Address, Member, NodeId
from holdfast.local.frame import encoded
from holdfast.local.news import encoded_fields
from tests.features.gossip.stand import ALIVE, DEAD, LEFT, SUSPECT, Stand, life, place, rumour


def test_an_unknown_member_is_listed_told_and_told_further() -> None:
    """Gossip 5.1 step 2: entry, Joined, forwarded."""
    stand = Stand()
    stand.say("b", rumour("c"))
    assert stand.names == ["a", "c"]
    assert stand.told == ["Joined c"]
    assert "c" in stand.node.queue


def test_an_unknown_dead_member_leaves_a_tombstone_and_no_event() -> None:
    """Gossip 5.1 step 2: DEAD and LEFT of unknown names are remembered, so that an old ALIVE does not list them."""
    stand = Stand()
    stand.say("b", rumour("c", 3, DEAD), rumour("d", 3, LEFT))
    stand.say("b", rumour("c", 3), rumour("d", 2))
    assert stand.names == ["a"]
    assert stand.told == []
    assert set(stand.node.table.tombstones) == {"c", "d"}


@pytest.mark.parametrize("status, told", [(SUSPECT, ["Suspected c"]), (LEFT, ["Left c"])])
def test_a_greater_rumour_overwrites(status: int, told: list[str]) -> None:
    """Gossip 5.1 step 4, D2: with equal inc LEFT > DEAD > SUSPECT > ALIVE; a smaller one is dropped."""
    stand = Stand("b", "c")
    stand.say("b", rumour("c", 0, status, "b"))  # type: ignore[arg-type]
    stand.say("b", rumour("c"))
    assert stand.status("c") == status
    assert stand.told == told


def test_a_failure_is_never_certain() -> None:
    """Gossip 10: a list that is weak says so."""
    stand = Stand("b", "c")
    stand.bury("c")
    assert [event.certain for event in stand.host.events(Failed)] == [False]


def test_a_member_without_rows_can_be_told_to_clients() -> None:
    """Gossip 5.1 step 2, docs/local-api.md: one that is first heard of by an accusation is listed, and its rows are fetched later."""
    stand = Stand("b")
    stand.say("b", rumour("c", 1, SUSPECT, "b", rows_at=1))
    (found,) = [each for each in stand.node.members() if each.name == "c"]
    assert msgspec.msgpack.decode(encoded(found), type=Member) == found
    assert msgspec.msgpack.decode(encoded_fields(Joined(found)))["member"]["rows"] == {}


def test_a_higher_inc_revives() -> None:
    """Gossip 5.1 step 4, D2: ALIVE from DEAD is a false positive: Joined, counted, told to the member as MISSED, probed again."""
    stand = Stand("b", "c").without_probes()
    stand.bury("c")
    stand.host.pass_time(7.0)
    stand.clear()
    stand.say("b", rumour("c", 1))
    stand.host.pass_time(0.0)
    assert stand.names == ["a", "b", "c"]
    assert stand.told == ["Joined c"]
    assert [(to, message.ago) for to, message in stand.host.take(Missed)] == [(life("c"), 7.0)]
    assert stand.node.unhealthy(life("c"), "false_positives") == 1.0


def test_cleared_after_a_suspicion() -> None:
    """Gossip 5.1 step 4: ALIVE from SUSPECT ends the suspicion and is told."""
    stand = Stand("b", "c")
    stand.say("b", rumour("c", 0, SUSPECT, "b"))
    stand.say("b", rumour("c", 1))
    assert stand.told == ["Suspected c", "Cleared c"]
    assert dict(stand.node.suspicions) == {}


def test_a_suspected_newcomer_is_joined_first() -> None:
    """Gossip 5.1 step 2, G10: Joined, then Suspected."""
    stand = Stand("b")
    stand.say("b", rumour("c", 0, SUSPECT, "b"))
    assert stand.told == ["Joined c", "Suspected c"]


def test_suspected_again_under_a_higher_inc_is_told_once() -> None:
    """Gossip 5.1 step 4, G10: users hear of one suspicion; it begins anew for the new inc."""
    stand = Stand("b", "c", "d", "e")
    stand.say("b", rumour("c", 0, SUSPECT, "b"))
    stand.host.pass_time(1.0)
    stand.say("b", rumour("c", 1, SUSPECT, "d"))
    assert stand.told == ["Suspected c"]
    found = stand.node.suspicions["c"]
    assert (found.inc, list(found.confirmers), found.start) == (1, ["d"], stand.host.now)


def test_a_new_life_replaces_the_former_one() -> None:
    """Gossip 5.1 step 2, D1: the former life is Decided and Failed first; one entry per name."""
    stand = Stand("b", "c")
    stand.say("b", rumour("c", 0, boot=2))
    assert stand.told == ["Decided c", "Failed c", "Joined c"]
    assert [event.member.id for event in stand.host.events(Joined)] == [life("c", 2)]
    assert stand.node.table.of(life("c")) is None


def test_an_old_life_is_dropped_and_told() -> None:
    """Gossip 5.1 step 2: precedence per name is (boot, inc, status); a life whose time is over hears of its successor."""
    stand = Stand("b")
    stand.say("c", rumour("c", 0, boot=2), boot=2)
    stand.clear()
    stand.say("b", rumour("c", 9, boot=1))
    assert stand.host.take(Gossip) == []
    stand.say("c", rumour("c", 9, boot=1), boot=1)
    assert [(to, [each.id for each in message.rumours]) for to, message in stand.host.take(Gossip)] == [(life("c"), [life("c", 2)])]
    entry = stand.node.entry("c")
    assert entry is not None
    assert entry.id.boot == 2


def test_any_order_and_any_repetition_ends_in_the_same_entry() -> None:
    """Gossip 5.1: the entry is a join of (boot, inc, status)."""
    said = [rumour("c", 0), rumour("c", 0, SUSPECT, "b"), rumour("c", 1), rumour("c", 1, DEAD), rumour("c", 0, LEFT), rumour("c", 2)]
    ends = set()
    for order in permutations(said):
        stand = Stand("b")
        for each in (*order, *Random(0).sample(said, 3)):
            stand.say("b", each)
        entry = stand.node.entry("c")
        assert entry is not None
        ends.add((entry.id, entry.inc, entry.status))
    assert ends == {(life("c"), 2, ALIVE)}


def test_rows_of_a_newer_inc_are_taken_from_an_equal_rumour() -> None:
    """Gossip D18, H327: whether it lives and what it publishes are two joins. An older set of rows never replaces a newer one."""
    stand = Stand("b", "c")
    stand.say("b", rumour("c", 5, SUSPECT, "b", rows_at=5))
    stand.say("b", rumour("c", 6, rows_at=5))
    assert stand.node.table.of(life("c")).rows_at == 0  # type: ignore[union-attr]
    stand.say("b", rumour("c", 6, rows={"tag:x": b"1"}, rows_at=5))
    assert stand.told == ["Suspected c", "Cleared c", "Updated c"]
    for inc in (6, 3, 7):
        stand.say("b", rumour("c", max(4, inc), rows={"tag:x": b"0"}, rows_at=4))
    member = stand.node.get("c")
    assert member is not None
    assert dict(member.rows) == {"tag:x": b"1"}


def test_rows_without_their_number_mix() -> None:
    """Gossip 7 (ablations): without rows_at an old set of rows comes back."""
    stand = Stand("b", "c", rules=Rules(rows_by_version=False))
    stand.say("b", rumour("c", 6, rows={"tag:x": b"1"}, rows_at=5))
    stand.say("b", rumour("c", 7, rows={"tag:x": b"0"}, rows_at=4))
    member = stand.node.get("c")
    assert member is not None
    assert dict(member.rows) == {"tag:x": b"0"}


def test_a_full_table_gives_up_its_oldest_tombstone_and_no_listed_member() -> None:
    """Gossip 2: a newcomer that finds no room is counted and not listed."""
    stand = Stand("b", "c", members_max=4)
    stand.say("b", rumour("t", 0, DEAD), rumour("d"))
    assert stand.names == ["a", "b", "c", "d"]
    stand.say("b", rumour("e"))
    assert stand.names == ["a", "b", "c", "d"]
    assert stand.node.counts["table_full"] == 1


def test_what_is_kept_beside_an_entry_is_of_its_life() -> None:
    """Gossip 2, D1: accusers and the last datagram are those of a life that is there; in churn nothing remains of the others."""
    stand = Stand("b", "c").without_probes()
    for i in range(30):
        stand.say(f"x{i:02}", rumour(f"x{i:02}"))
        stand.say("b", rumour(f"x{i:02}", 0, LEFT))
    assert set(stand.node.core.heard) == {"b", "c"}
    stand.say("b", rumour("c", 0, SUSPECT, "b"))
    stand.say("c", rumour("c", boot=2), boot=2)
    assert stand.node.core.accusers == {}


def test_what_was_known_of_a_member_goes_with_its_tombstone() -> None:
    """Gossip 2: every table and queue has its bound, also where a full table gives up a tombstone for each newcomer."""
    stand = Stand("b", members_max=6).without_probes()
    for i in range(50):
        name = f"x{i:02}"
        stand.say("b", rumour(name, 0, SUSPECT, "b"))
        stand.bury(name)
    assert len(stand.node.table) == 6
    assert len(stand.node.health) <= 4
    assert len(stand.node.core.accusers) <= 4
    assert len(stand.node.queue) <= 6


@pytest.mark.parametrize(
    "said, count",
    [
        (Rumour(NodeId("", 1), place("x"), 0, ALIVE), "refused_id"),
        (Rumour(NodeId("x\n", 1), place("x"), 0, ALIVE), "refused_id"),
        (Rumour(NodeId("ä" * 60, 1), place("x"), 0, ALIVE), "refused_id"),
        (Rumour(NodeId("x", 0), place("x"), 0, ALIVE), "refused_id"),
        (Rumour(NodeId("x", 1 << 48), place("x"), 0, ALIVE), "refused_id"),
        (Rumour(NodeId("x", 1), Address("", 1), 0, ALIVE), "refused_address"),
        (Rumour(NodeId("x", 1), Address("x", 0), 0, ALIVE), "refused_address"),
        (rumour("x", INC_STEP + 1), "refused_inc"),
        (rumour("c", INC_STEP + 1, SUSPECT, "b"), "refused_inc"),
        (rumour("a", OWN_STEPS * INC_STEP + 2, SUSPECT, "b"), "refused_inc"),
        (rumour("c", 1, rows_at=2), "refused_rows"),
        (rumour("c", 1, rows={"x": b""}), "refused_rows"),
        (rumour("c", 1, DEAD, rows={"x": b""}, rows_at=1), "refused_rows"),
        (rumour("c", 1, rows={str(i): b"x" * 200 for i in range(3)}, rows_at=1), "refused_rows"),
    ],
)
def test_what_no_honest_member_says_is_refused_and_counted(said: Rumour, count: str) -> None:
    """Gossip 3: names, places, boots and incs are looked at before anything is believed."""
    stand = Stand("b", "c")
    before = list(stand.node.table.entries())
    stand.say("b", said)
    assert list(stand.node.table.entries()) == before
    assert stand.node.counts[count] == 1


def test_a_member_may_say_any_inc_of_itself() -> None:
    """Gossip 3: the bound is for the words of others."""
    stand = Stand("b")
    stand.say("c", rumour("c", INC_STEP * 2))
    assert stand.names == ["a", "b", "c"]


def test_a_place_is_believed_from_the_member_itself() -> None:
    """Gossip 5.1: an address does not change within a life by the word of others."""
    stand = Stand("b")
    wrong = Rumour(life("c"), Address("elsewhere", 9), 0, ALIVE)
    stand.say("b", wrong)
    stand.say("b", rumour("c"))
    assert stand.node.get("c").address == Address("elsewhere", 9)  # type: ignore[union-attr]
    stand.say("c", rumour("c"))
    assert stand.node.get("c").address == place("c")  # type: ignore[union-attr]


def test_another_life_of_the_own_name_is_told_to_machines_and_not_listed() -> None:
    """Gossip D17, H324: features/names listens to joins."""
    stand = Stand("b")
    heard: list[object] = []
    stand.node.subscribe(heard.append)
    for _ in range(2):
        stand.say("b", rumour("a", 0, boot=7))
    assert [event.member.id for event in heard if isinstance(event, Joined)] == [life("a", 7)]
    assert stand.told == []
    assert stand.node.get("a").id == life("a")  # type: ignore[union-attr]


def test_announced_rows_that_did_not_come_are_fetched() -> None:
    """Gossip D18: from the member that sent the rumour."""
    stand = Stand("b", "c")
    stand.say("b", rumour("c", 3, rows_at=3))
    stand.host.pass_time(0.0)
    assert [(to, message.members) for to, message in stand.host.take(Want)] == [(life("b"), ((life("c"), 3),))]
