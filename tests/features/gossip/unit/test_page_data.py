"""What the page is told of a group that gossips: the field, one member close up, the last ten minutes.  Spec: gossip 9, 10."""

from __future__ import annotations

from typing import Any, cast

import pytest

from holdfast.errors import NotAMember
from holdfast.features.gossip.closeup import closeup
from holdfast.features.gossip.field import Field, Places
from holdfast.features.gossip.http import UNHEALTHY_LEAST, GossipHttp
from holdfast.features.gossip.past import KEPT_MAX, SAMPLE_INTERVAL, Past
from holdfast.features.gossip.protocol import messages as m
from holdfast.features.gossip.protocol.config import GossipConfig
from holdfast.features.gossip.protocol.distance import LAST_RTTS
from tests.features.gossip.stand import LEFT, SUSPECT, Stand, life, rumour


def cells(field: Field, start: int = 0, limit: int = 100) -> dict[str, tuple[int, str]]:
    return {each.name: (each.place, each.status) for each in field.answer(start, limit).cells}


def bury(stand: Stand, name: str, accuser: str) -> None:
    """It is suspected, and the suspicion has ended."""
    stand.say(accuser, rumour(name, 0, SUSPECT, accuser))
    stand.bury(name)


def test_names_are_placed_as_people_count() -> None:
    """H345: the first look places "web-2" before "web-10"; names that come later follow, whatever their name is."""
    places = Places()
    assert dict(places.of(["web-10", "web-2", "db", "web-1"])) == {"db": 0, "web-1": 1, "web-2": 2, "web-10": 3}
    assert places.of(["web-10", "web-2", "db", "web-1", "a-9", "a-8"])["a-8"] == 4
    assert places.count == 6


def test_a_name_keeps_its_place_while_it_is_remembered() -> None:
    """H345: death, goodbye and return move no cell. The place of a name that is forgotten is free for the next new one."""
    stand = Stand("b", "c", "d").without_probes()
    field = Field(stand.node)
    before = cells(field)
    assert before == {"a": (0, "alive"), "b": (1, "alive"), "c": (2, "alive"), "d": (3, "alive")}
    stand.say("d", rumour("b", 0, SUSPECT, "d"), rumour("e"))
    bury(stand, "c", "d")
    stand.say("d", rumour("d", 0, LEFT))
    assert cells(field) == {"a": (0, "alive"), "b": (1, "suspected"), "c": (2, "dead"), "d": (3, "left"), "e": (4, "alive")}
    stand.say("c", rumour("c", 1))
    stand.node.merge.reap("d")
    assert cells(field) == {"a": (0, "alive"), "b": (1, "suspected"), "c": (2, "alive"), "e": (4, "alive")}
    assert field.answer(0, 100).places == 5
    stand.say("b", rumour("f"), rumour("g"))
    assert cells(field)["f"] == (3, "alive")
    assert cells(field)["g"] == (5, "alive")


def test_the_field_is_given_in_pages() -> None:
    """Issue 17, 5: bounds and pages. Each cell is in one page, and the last one says that it is the last."""
    stand = Stand(*(f"m{number}" for number in range(20))).without_probes()
    field, start, found = Field(stand.node), 0, []
    for _ in range(3):
        page = field.answer(start, 8)
        assert len(page.cells) <= 8
        found += [each.place for each in page.cells]
        assert (page.next is None) == (len(found) == 21)
        start = page.next or 0
    assert found == [*range(21)]
    assert field.answer(500, 8).cells == ()


def test_the_field_has_the_health_of_each() -> None:
    """Gossip 5.9: suspicions of late, decayed; a refutation does not take them back."""
    stand = Stand("b", "c").without_probes()
    stand.say("b", rumour("c", 0, SUSPECT, "b"))
    stand.say("c", rumour("c", 1))
    found = {each.name: (each.status, each.unhealthy) for each in Field(stand.node).answer(0, 9).cells}
    assert found == {"a": ("alive", 0.0), "b": ("alive", 0.0), "c": ("alive", 1.0)}
    stand.host.pass_time(GossipConfig().health_half_life)
    assert Field(stand.node).answer(2, 1).cells[0].unhealthy == 0.5


def test_old_suspicions_are_no_news() -> None:
    """Gossip 5.9: counts never decay to nothing, so the members with news are those of whose suspicions enough is left."""
    stand = Stand("b", "c").without_probes()
    stand.say("b", rumour("c", 0, SUSPECT, "b"))
    stand.say("c", rumour("c", 1))
    http = GossipHttp(cast("Any", None), stand.node)
    assert [each.name for each in http.part().unhealthy] == ["c"]
    stand.host.pass_time(5 * GossipConfig().health_half_life)
    assert 0 < stand.node.unhealthy(life("c")) < UNHEALTHY_LEAST
    assert http.part().unhealthy == ()


def test_a_suspected_member_close_up() -> None:
    """Gossip 5.4: who accuses it, since when, and until when it may answer."""
    stand = Stand("b", "c", "d", "e").without_probes()
    stand.say("b", rumour("c", 0, SUSPECT, "b"))
    stand.host.pass_time(1.0)
    stand.say("d", rumour("c", 0, SUSPECT, "d"))
    found = closeup(stand.node, "c", 2)
    assert (found.status, found.place, found.inc) == ("suspected", 2, 0)
    assert found.unhealthy == pytest.approx(1.0, abs=0.01)
    assert found.unhealthy_own == 0.0
    assert found.suspicion is not None
    assert found.suspicion.accusers == ("b", "d")
    assert found.suspicion.seconds == 1.0
    assert found.suspicion.shortest == 2.5
    assert found.suspicion.ends_in == pytest.approx(stand.node.suspicions["c"].end_at - stand.host.now)
    assert not found.suspicion.called
    stand.say("c", rumour("c", 1))
    cleared = closeup(stand.node, "c", 2)
    assert (cleared.status, cleared.suspicion, cleared.inc, cleared.heard) == ("alive", None, 1, 0.0)


def test_a_dead_member_close_up() -> None:
    """Gossip 2 (tombstones): since when it is dead, and by whose probes. A name that is not remembered is refused."""
    stand = Stand("b", "c").without_probes()
    bury(stand, "c", "b")
    stand.host.pass_time(2.0)
    found = closeup(stand.node, "c", None)
    assert (found.status, found.accusers, found.gone_for, found.suspicion) == ("dead", ("b",), 2.0, None)
    with pytest.raises(NotAMember, match="'x' is neither in the list nor remembered"):
        closeup(stand.node, "x", None)


def test_what_a_member_publishes_close_up() -> None:
    """Foundation 3 (rows): text is shown as text where all of it can be seen, and else as hexadecimal digits."""
    rows = {"tag:a": b"eu-1", "b": b"\xff\x00", "c": b"", "d": "t\u202egnirts".encode(), "e": b"two\nlines"}
    stand = Stand("b").without_probes()
    stand.say("b", rumour("b", 1, rows=rows, rows_at=1))
    found = {each.name: (each.value, each.bytes) for each in closeup(stand.node, "b", 1).rows}
    assert found == {
        "b": ("0xff00", 2), "c": ("", 0), "d": ("0x74e280ae676e69727473", 10), "e": ("0x74776f0a6c696e6573", 9), "tag:a": ("eu-1", 4),
    }  # fmt: skip


def test_round_trips_and_comparisons_close_up() -> None:
    """Gossip 5.3, D19: the latest round trip of the last probes, and what the last comparison of lists found."""
    stand = Stand("b", "c").without_probes()
    before = closeup(stand.node, "b", 1)
    assert (before.rtt, before.equal, before.compared, before.one_way) == (None, None, None, 0)
    distances = stand.node.distances
    distances.measured(life("b"), 0.25)
    distances.measured(life("b"), 0.5)
    stand.node.syncs._found(life("b"), 3)
    stand.node.prober.one_way["b"] = 2
    stand.host.pass_time(4.0)
    found = closeup(stand.node, "b", 1)
    assert (found.rtt, found.equal, found.compared, found.one_way) == (0.5, False, 4.0, 2)
    for _ in range(LAST_RTTS):
        distances.measured(life("c"), 0.001)
    assert closeup(stand.node, "b", 1).rtt is None
    assert closeup(stand.node, "a", 0).me


def test_round_trips_are_smoothed_where_they_are_kept() -> None:
    """Gossip 5.3: where targets are chosen by distance, the round trip of each member is kept, smoothed."""
    stand = Stand("b", config=GossipConfig(target="spatial")).without_probes()
    stand.node.distances.measured(life("b"), 0.8)
    stand.node.distances.measured(life("b"), 1.6)
    assert closeup(stand.node, "b", 1).rtt == pytest.approx(0.9)


def test_the_last_ten_minutes() -> None:
    """Issue 17, 5: c and turbulence over time. A sample every five seconds, and no more than ten minutes of them."""
    stand = Stand("b", "c", "d", "e").without_probes()
    past = Past(stand.node)
    stand.hear("b", m.Missed(1, 5.0))
    stand.say("b", rumour("c", 0, SUSPECT, "b"))
    stand.host.pass_time(SAMPLE_INTERVAL)
    found = past.answer()
    assert (found.c, found.turbulent, found.suspected, found.suspicions) == ((0, 1), (False, True), (0, 1), (0, 1))
    assert found.ago == (SAMPLE_INTERVAL, 0.0)
    assert past.version == len(past) == 2
    for _ in range(KEPT_MAX + 5):
        stand.host.pass_time(SAMPLE_INTERVAL)
    full = past.answer()
    assert {len(line) for line in (full.ago, full.c, full.turbulent, full.suspected, full.suspicions, full.refutations)} == {KEPT_MAX}
    assert full.ago[0] == SAMPLE_INTERVAL * (KEPT_MAX - 1) == 600.0
    assert past.version == KEPT_MAX + 7
