"""Time that passed while this process stood still.  Spec: gossip 5.8; foundation F10, F11."""

from __future__ import annotations

from holdfast.events import Failed
from holdfast.features.gossip.protocol.facts import LastCall, Overslept, ProbeFailed
from holdfast.features.gossip.protocol.messages import Gossip, Ping, SyncDigest
from holdfast.features.gossip.protocol.rules import Rules
from holdfast.host import NodeId
from tests.features.gossip.stand import SUSPECT, Stand, life, rumour


def suspecting(rules: Rules | None = None, *, probes: bool = False) -> Stand:
    """Of "c", for the shortest time."""
    stand = Stand(*"bcdefg", rules=rules)
    if not probes:
        stand.without_probes()
    stand.say("b", rumour("c", 0, SUSPECT, "b", "d", "e", "f"))
    return stand


def test_who_was_away_waits_anew() -> None:
    """Gossip 5.8, G13: nothing is buried in the first Min after a pause; two members are asked what differs; lhm += 2."""
    stand = suspecting()
    stand.node.lifecycle.stop()  # No comparison but those after the pause.
    stand.host.clock += 10.0
    stand.node.on_away(10.0)
    assert stand.host.events(Overslept) == [Overslept(10.0)]
    assert stand.node.lhm == 2
    stand.host.pause(0.0)
    assert len(stand.host.take(SyncDigest)) == 2
    stand.host.pass_time(2.49)
    assert stand.host.events(Failed) == []
    stand.host.pass_time(0.02)
    assert len(stand.host.events(Failed)) == 1


def test_what_waited_in_the_socket_is_answered_before_tables_are_sent() -> None:
    """Gossip 5.8, H451: those that accuse wait for an answer; a table takes as long as many answers."""
    stand = Stand(*"bcdefg").without_probes()
    stand.host.clock += 10.0
    stand.node.on_away(10.0)
    assert stand.host.take(SyncDigest) == []
    stand.say("b", rumour("a", 4, SUSPECT, "b"))
    stand.host.pass_time(0.0)
    kinds = [type(message) for _, message in stand.host.sent]
    assert kinds.index(Gossip) < kinds.index(SyncDigest)


def test_one_that_leaves_asks_for_no_tables() -> None:
    """Gossip 5.7 (leave), H451: a farewell that was waiting for its turn comes first."""
    stand = Stand(*"bcdefg").without_probes()
    stand.node.on_away(10.0)
    stand.node.leave()
    stand.host.pass_time(0.0)
    assert stand.host.take(SyncDigest) == []


def test_a_late_timer_says_it_too() -> None:
    """Gossip 5.8: a pause that the host did not see, by host.late > 2 T; handled once."""
    stand = suspecting()
    stand.say("b", rumour("d", 0, SUSPECT, "b", "c", "e", "f"))
    stand.host.pause(6.0)
    assert len(stand.host.events(Overslept)) == 1
    assert stand.host.events(LastCall) == []
    assert stand.host.events(Failed) == []
    assert stand.node.guarded_until == stand.host.now + 2.5


def test_members_that_have_not_answered_are_not_asked_again_by_the_next_pause() -> None:
    """H470: a process with many members that is late for its work would stay late for ever by the tables that each pause costs."""
    stand = Stand(*"bcdefg").without_probes()
    stand.node.lifecycle.stop()  # No comparison but those after a pause.
    stand.node.on_away(10.0)
    stand.host.pass_time(0.0)
    asked = stand.host.take(SyncDigest)
    stand.node.on_away(10.0)
    stand.host.pass_time(0.0)
    assert stand.host.take(SyncDigest) == []
    assert stand.node.core.counts["syncs_held_back"] == 1
    for peer, question in asked:
        assert isinstance(peer, NodeId)
        stand.node.on_message(peer, SyncDigest(question.serial, question.root, answer=True))
    stand.node.on_away(10.0)
    stand.host.pass_time(0.0)
    assert len(stand.host.take(SyncDigest)) == 2
    stand.host.clock += stand.node.core.config.reconnect
    stand.node.on_away(10.0)
    stand.host.pass_time(0.0)
    assert len(stand.host.take(SyncDigest)) == 2, "after so long the answers were lost"


def test_a_pause_that_the_host_has_told_is_not_found_again() -> None:
    """Gossip 5.8: its timers are late, too; they are of the same pause."""
    stand = suspecting(probes=True)
    stand.host.clock += 10.0
    stand.node.on_away(10.0)
    stand.host.pause(0.0)
    assert len(stand.host.events(Overslept)) == 1
    assert stand.node.lhm == 2


def test_without_the_guard_it_buries_at_once() -> None:
    """Gossip 7 (ablations), G13: the refutation is in the socket and was not read."""
    stand = suspecting(Rules(pause_guard=False))
    stand.host.pass_time(2.2)
    stand.host.pause(10.0)
    assert len(stand.host.events(Failed)) == 1


def test_a_suspicion_that_is_confirmed_after_a_pause_does_not_end_before_its_time() -> None:
    """Gossip 5.8: the first Min after the pause is for all suspicions."""
    stand = Stand(*"bcdefg").without_probes()
    stand.say("b", rumour("c", 0, SUSPECT, "b"))
    stand.host.clock += 4.0
    stand.node.on_away(4.0)
    stand.say("b", rumour("c", 0, SUSPECT, "d", "e", "f"))
    stand.host.pass_time(2.4)
    assert stand.host.events(Failed) == []


def test_the_open_probe_is_forgotten() -> None:
    """Gossip 5.8: silence while we were away is our own."""
    stand = Stand(*"bcdef")
    while stand.node.prober.probe is None:
        stand.host.pass_time(0.01)
    stand.host.pause(7.0)
    assert stand.host.events(ProbeFailed) == []


def test_a_probe_is_not_judged_by_a_late_tick() -> None:
    """Gossip 5.8: between T/2 and 2 T the probe is not judged, nothing else."""
    stand = Stand(*"bcdef")
    while stand.node.prober.probe is None:
        stand.host.pass_time(0.01)
    stand.host.pass_time(0.5)
    stand.clear()
    stand.host.pause(1.2)
    assert stand.host.events(ProbeFailed) == []
    assert stand.host.events(Overslept) == []
    assert stand.node.lhm == 0


def test_a_call_that_was_late_has_its_time_all_the_same() -> None:
    """Gossip 5.4, H453: a probe's timeout for the first call, half of it for the second, from when they left; up to 2 T is no pause."""
    stand = suspecting()
    stand.host.pass_time(2.5 - 2 * 0.4 - 0.01)
    stand.host.pause(0.8)  # It should be over in 0.01 s.
    assert len(stand.host.events(LastCall)) == 1
    stand.host.pass_time(0.39)
    assert stand.host.events(Failed) == []
    stand.host.pass_time(0.02)
    assert len(stand.host.events(Failed)) == 1


def test_a_second_call_that_was_late_has_its_time_too() -> None:
    """Gossip 5.4, H453: it was due 0.4 s before the end, and left behind it."""
    stand = suspecting()
    stand.host.pass_time(2.5 - 0.4 - 0.01)
    stand.clear()
    stand.host.pause(0.5)
    assert [to for to, _ in stand.host.take(Ping)] == [life("c")]
    stand.host.pass_time(0.19)
    assert stand.host.events(Failed) == []
    stand.host.pass_time(0.02)
    assert len(stand.host.events(Failed)) == 1


def test_a_short_pause_is_none() -> None:
    """Gossip 5.8: up to 2 T."""
    stand = suspecting()
    stand.node.on_away(1.9)
    assert stand.host.events(Overslept) == []
