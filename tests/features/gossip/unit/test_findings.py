"""Each finding about gossip, planted in a member on a fake host; and what HTTP shows of it.  Spec: gossip 9, 10."""

from __future__ import annotations

from typing import Any, cast

import pytest

from holdfast.agent.observe.metrics import render
from holdfast.features.gossip.findings import DIFFERING_FOR, ONE_WAY_LEAST, SICK_FOR, of_gossip
from holdfast.features.gossip.http import COUNTERS, GAUGES, NAMED, GossipHttp
from holdfast.features.gossip.protocol import messages as m
from tests.features.gossip.stand import LEFT, SUSPECT, Stand, life, place, rumour


def codes(stand: Stand) -> list[str]:
    return [each.code for each in of_gossip(stand.node)]


def test_a_calm_member_says_nothing() -> None:
    """Gossip 10: no finding without a fault."""
    assert codes(Stand("b", "c", "d")) == []


def test_alone() -> None:
    """Gossip 10 (alone): seeds are given, and no other member is listed."""
    stand = Stand(join=False)
    stand.node.seeds((place("b"),))
    assert codes(stand) == []  # it was not asked to join
    stand.node.join()
    assert codes(stand) == ["alone"]
    stand.say("b", rumour("b"))
    assert "alone" not in codes(stand)


def test_sick() -> None:
    """Gossip 10 (sick): the own health multiplier is above half of its limit, for a minute."""
    stand = Stand("b", "c").without_probes()
    stand.node.core.worsen(5)
    assert codes(stand) == []
    stand.host.pass_time(SICK_FOR)
    assert "sick" in codes(stand)
    stand.node.core.worsen(-1)
    assert "sick" not in codes(stand)


def test_one_way() -> None:
    """Gossip 10 (one_way): a member answers helpers and not this one, again and again; one direct answer ends it."""
    stand = Stand("b", "c")
    prober = stand.node.prober
    while prober.one_way.get("b", 0) < ONE_WAY_LEAST:
        assert prober.ticks < 200
        assert "one_way" not in codes(stand)
        probe = prober.probe
        if probe is not None and not probe.acked and probe.target.name == "c":
            stand.answer_probe()
        elif probe is not None and not probe.acked and probe.asked:
            stand.hear("c", m.Ack(probe.seq))
        stand.host.pass_time(0.2)
    assert [(each.code, each.about) for each in of_gossip(stand.node)] == [("one_way", "b")]
    while "b" in prober.one_way:
        assert prober.ticks < 400
        if prober.probe is not None and not prober.probe.acked:
            stand.answer_probe()
        stand.host.pass_time(0.2)
    assert "one_way" not in codes(stand)


def test_one_way_is_of_members_alone() -> None:
    """Gossip 10 (one_way): a member that has left is behind no link."""
    stand = Stand("b", "c").without_probes()
    stand.node.prober.one_way["b"] = ONE_WAY_LEAST
    assert codes(stand) == ["one_way"]
    stand.say("b", rumour("b", 0, LEFT))
    assert codes(stand) == []


def test_turbulent() -> None:
    """Gossip 10 (turbulent): c is above a tenth of the group, and above one list."""
    stand = Stand("b", "c", "d", "e").without_probes()
    for name in ("b", "c"):
        stand.hear(name, m.Missed(1, 5.0))
    assert stand.node.c_measured() == 2
    assert "turbulent" in codes(stand)


def test_probe_too_quick() -> None:
    """Gossip 10 (probe_too_quick): the 99th percentile of round trips is above the time that a probe waits."""
    stand = Stand("b", "c").without_probes()
    stand.node.distances.measured(life("b"), stand.node.config.timeout - 0.01)
    assert codes(stand) == []
    stand.node.distances.measured(life("b"), stand.node.config.timeout + 0.1)
    (found,) = of_gossip(stand.node)
    assert found.code == "probe_too_quick"
    assert "Set probe to 1.2 or more" in found.advice


def test_lists_differ() -> None:
    """Gossip 10 (lists_differ): the examination asks three members, and those with another root have another list; a minute later it is
    no news."""
    stand = Stand("b", "c", "d", "e").without_probes()
    stand.host.sent.clear()
    stand.node.compare_lists()
    asked = [(to, message) for to, message in stand.host.sent if isinstance(message, m.SyncDigest)]
    assert len(asked) == 3
    for number, (to, message) in enumerate(asked):
        stand.node.on_message(cast("Any", to), m.SyncDigest(message.serial, message.root, answer=True))
        if number == 0:
            stand.node.syncs._found(cast("Any", to), 3)
    (found,) = of_gossip(stand.node)
    assert (found.code, found.severity, found.about) == ("lists_differ", "note", asked[0][0].name)  # type: ignore[union-attr]
    assert found.text.startswith("1 of 3 members")
    stand.host.pass_time(DIFFERING_FOR + 1)
    assert codes(stand) == []


class Kept:
    """Stands in for the web server."""

    def again(self, name: str, make: Any) -> Any:
        return make()


def test_the_answer_over_http() -> None:
    """Gossip 9: members under suspicion with their accusers, the dead, comparisons, and the numbers that it counts with."""
    stand = Stand("b", "c", "d").without_probes()
    stand.say("b", rumour("c", 0, SUSPECT, "b", "d"))
    stand.say("b", rumour("d", 0, SUSPECT, "b"))
    stand.bury("d")
    answer = GossipHttp(cast("Any", Kept()), stand.node).part()
    shown = {each.name: (each.status, each.accusers) for each in answer.suspected}
    assert shown == {"c": ("suspect", ("b", "d")), "d": ("dead", ("b",))}
    assert [(each.status, each.ends_in is None) for each in answer.suspected] == [("suspect", False), ("dead", True)]
    assert (answer.members, answer.tombstones, answer.status) == (3, 1, "member")
    assert (answer.timing.probe, answer.timing.suspicion_min) == (1.0, 2.5)
    assert [each.name for each in answer.unhealthy] == ["c"]


@pytest.mark.parametrize("name", [*GAUGES, *COUNTERS])
def test_every_metric_has_a_number(name: str) -> None:
    """Gossip 9: what is offered to Prometheus is counted by the member, under the same name."""
    stand = Stand("b")
    assert name in stand.node.metrics()
    suffix = "_total" if name in COUNTERS else ""
    assert f"holdfast_gossip_{NAMED.get(name, name)}{suffix} " in render(GossipHttp(cast("Any", Kept()), stand.node).metrics())
