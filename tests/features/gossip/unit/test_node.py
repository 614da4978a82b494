"""What a member offers to machines, agents and operators.  Spec: gossip 2, 5.9, 10, D21; foundation 3."""

from __future__ import annotations

from math import inf

import pytest

from holdfast.errors import ConfigError
from holdfast.events import Joined
from holdfast.features.gossip.protocol import messages as m
from holdfast.host import Lists, Member, Membership
from holdfast.kit.positions import CIRCLE, position_of
from tests.features.gossip.stand import LEFT, SUSPECT, Stand, life, place, rumour


def test_it_offers_both_interfaces() -> None:
    """Gossip 10, H5: Membership and Lists; no bound in time."""
    stand = Stand("b")
    assert isinstance(stand.node, Membership)
    assert isinstance(stand.node, Lists)
    assert stand.node.usable_until() == inf


def test_topics_are_rows() -> None:
    """Gossip 2: members(topic), kept per version."""
    stand = Stand("b", "c").without_probes()
    stand.say("b", rumour("b", 1, rows={"topic:x": b""}, rows_at=1))
    found = stand.node.members("x")
    assert [member.id for member in found] == [life("b")]
    assert stand.node.members("x") is found
    stand.say("c", rumour("c", 1, rows={"topic:x": b""}, rows_at=1))
    assert len(stand.node.members("x")) == 2


def test_the_list_changes_before_the_event() -> None:
    """Gossip G10: a listener that looks sees it; the version has grown."""
    stand = Stand("b").without_probes()
    seen: list[tuple[bool, bool]] = []
    version = stand.node.version

    def listen(event: object) -> None:
        assert isinstance(event, Joined)
        seen.append((stand.node.get("c") is not None, stand.node.version > version))

    stand.node.subscribe(listen)
    stand.say("b", rumour("c"))
    assert seen == [(True, True)]


def test_names_that_are_known() -> None:
    """Foundation 3 (Lists): listed, and dead but not reaped; not those that left."""
    stand = Stand("b", "c", "d", "e").without_probes()
    stand.bury("c")
    stand.say("b", rumour("d", 0, LEFT), rumour("e", 0, SUSPECT, "b"))
    assert stand.node.known_names() == {"a", "b", "c", "e"}


def test_the_owner_of_a_key_is_a_hint() -> None:
    """Gossip D21: the listed member whose position is closest, as on the ring; nothing may be done with it."""
    stand = Stand(*"bcdefgh").without_probes()
    for key in ("x", b"y", "orders/42"):
        at = position_of(key)
        names = sorted("abcdefgh", key=lambda name: min((position_of(name) - at) % CIRCLE, (at - position_of(name)) % CIRCLE))
        owner = stand.node.owner(key)
        assert isinstance(owner, Member)
        assert owner.id.name == names[0]
    assert stand.node.positions() == {life(name): position_of(name) for name in "abcdefgh"}
    with pytest.raises(ConfigError, match=r"^membership: "):
        stand.node.owns("x")


def test_forgetting_a_dead_member() -> None:
    """Gossip 10 (forget), H329: refused for a listed name; LEFT elsewhere by rumour; no knock at it any more."""
    stand = Stand("b", "c", *"efghij").without_probes()
    for name in ("c", "nobody"):
        with pytest.raises(ConfigError, match=r"^name: "):
            stand.node.forget(name)
    stand.bury("c")
    stand.clear()
    stand.node.forget("c")
    assert stand.status("c") is LEFT
    assert stand.node.queue["c"].rumour.status is LEFT
    assert stand.told == []
    stand.say("c", rumour("c", 1))
    assert stand.told == ["Joined c"]


def test_round_trips_have_a_percentile() -> None:
    """Foundation 3 (Lists): of the own probes; 0.0 before the first."""
    stand = Stand("b")
    assert stand.node.rtt_p99() == 0.0
    for millisecond in range(1, 101):
        stand.node.distances.measured(life("b"), millisecond / 1000)
    assert stand.node.rtt_p99() == 0.1


def test_metrics_have_what_an_operator_asks_for() -> None:
    """Gossip 9 (metrics): numbers by name, from the start; counters are there before they grow."""
    stand = Stand("b", "c").without_probes()
    stand.say("b", rumour("c", 0, SUSPECT, "b"))
    found = stand.node.metrics()
    expected = {
        "lhm", "members", "suspects", "tombstones", "probes_direct", "probes_indirect", "probes_failed", "suspicions", "suspicions_cleared",
        "buried", "refutations", "last_calls", "last_calls_answered", "rumours", "syncs_equal", "syncs_differing", "syncs_failed",
        "c_measured", "turbulent", "settled", "rtt_p99",
    }  # fmt: skip
    assert expected <= set(found)
    assert (found["members"], found["suspects"], found["suspicions"], found["in_gossip"]) == (3.0, 1.0, 1.0, 3.0)
    assert all(isinstance(value, float) for value in found.values())


def test_every_message_has_a_handler_and_a_greeting_is_one() -> None:
    """Gossip 3, D20: first contact is a datagram without content; all others go to a life."""
    assert {kind for kind in m.TYPES if kind.greeting} == {m.Knock}
    stand = Stand("b")
    assert set(stand.node._on) == set(m.TYPES)
    assert [kind.__struct_config__.tag for kind in m.TYPES] == list(range(96, 109))


def test_a_stopped_node_has_no_timers() -> None:
    """Foundation 3 (Machine): the node ends."""
    stand = Stand("b", "c")
    stand.say("b", rumour("c", 0, SUSPECT, "b"), rumour("c", 1, rows_at=1))
    stand.hear("b", m.PingReq(3, life("c"), place("c")))
    stand.node.publish("tag:x", b"1")
    stand.node.stop()
    stand.clear()
    stand.host.pass_time(100.0)
    assert stand.host.sent == []
