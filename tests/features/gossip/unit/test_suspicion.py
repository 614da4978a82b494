"""How long a member is suspected.  Spec: gossip 5.4."""

from __future__ import annotations

from math import log10

import pytest

from holdfast.events import Failed
from holdfast.features.gossip.protocol.config import GossipConfig
from holdfast.features.gossip.protocol.facts import LastCall
from holdfast.features.gossip.protocol.messages import Ack, Gossip, Ping
from holdfast.features.gossip.protocol.rules import Rules
from holdfast.features.gossip.protocol.suspicion import Span
from tests.features.gossip.stand import DEAD, SUSPECT, Stand, life, rumour

OTHERS = ("b", "c", "d", "e", "f", "g")


def stand(*others: str, rules: Rules | None = None, config: GossipConfig | None = None) -> Stand:
    return Stand(*(others or OTHERS), rules=rules, config=config).without_probes()


def test_without_confirmations_it_waits_for_the_longest() -> None:
    """Gossip 5.4: Max = beta Min max(1, log10 n), Min = alpha T: a prober without NACKs may be the sick one."""
    at = stand()
    at.say("b", rumour("c", 0, SUSPECT, "b"))
    at.host.pass_time(6 * 2.5 - 0.01)
    assert at.host.events(Failed) == []
    at.host.pass_time(0.02)
    assert [event.member.id for event in at.host.events(Failed)] == [life("c")]


@pytest.mark.parametrize("n, k", [(1, 0), (2, 0), (3, 1), (4, 2), (5, 3), (100, 3)])
def test_the_span_of_a_suspicion(n: int, k: int) -> None:
    """Gossip 5.4, D8: k = min(K, n-2); no confirmations are possible in a group of two."""
    span = Span(GossipConfig(), Rules(), n)
    assert (span.floor, span.k) == (2.5, k)
    assert span.ceiling == pytest.approx(15.0 * max(1.0, log10(n)))


def test_local_health_off_means_the_shortest_wait() -> None:
    """Gossip 5.4: S = 0 -> Min; the older profiles let it grow with log10 n."""
    assert Span(GossipConfig(lhm_max=0), Rules(), 100).k == 0
    assert Span(GossipConfig(lhm_max=0), Rules(growing_min=True), 100).floor == 5.0


def test_confirmations_shorten_it_and_are_told_further() -> None:
    """Gossip 5.4: timeout(C) falls with the logarithm; names count once, and at most K beside the first."""
    at = stand()
    at.say("b", rumour("c", 0, SUSPECT, "b"))
    found = at.node.suspicions["c"]
    ends = [found.end_at]
    told = []
    for name in ("d", "d", "b", "e", "f", "g"):
        before = at.node.queue["c"]
        at.say(name, rumour("c", 0, SUSPECT, name))
        ends.append(found.end_at)
        told.append(at.node.queue["c"] is not before)
    assert told == [True, False, False, True, True, False]
    assert ends == sorted(ends, reverse=True)
    assert len(set(ends)) == 4  # d, e and f counted
    assert found.end_at == found.start + 2.5
    assert list(found.confirmers) == ["b", "d", "e", "f"]
    assert at.node.queue["c"].rumour.accusers == ("b", "d", "e", "f")


def test_a_suspicion_that_was_confirmed_enough_begins_with_the_shortest_wait() -> None:
    """Gossip 5.4: C = number of accusers - 1: the prober and the helpers that sent it a NACK."""
    at = stand()
    at.say("b", rumour("c", 0, SUSPECT, "b", "d", "e", "f"))
    assert at.node.suspicions["c"].timeout == 2.5


def test_the_last_call_carries_the_accusation_and_is_repeated() -> None:
    """Gossip 5.4, D16, H322, H452: two of a probe's timeouts before the end, and one, so that each call has the time of a probe."""
    at = stand()
    at.say("b", rumour("c", 0, SUSPECT, "b", "d", "e", "f"))
    at.host.pass_time(2.5 - 2 * 0.4 - 0.01)
    at.clear()
    at.host.pass_time(0.02)
    assert at.host.events(LastCall) == [LastCall(life("c"))]
    calls = [message for to, message in at.host.take(Ping) if to == life("c")]
    assert [each.rumours[0].status for each in calls] == [SUSPECT]
    at.host.pass_time(0.38)
    assert [to for to, _ in at.host.take(Ping) if to == life("c")] == []
    at.host.pass_time(0.02)
    assert len([to for to, _ in at.host.take(Ping) if to == life("c")]) == 1
    assert len(at.host.events(LastCall)) == 1
    at.host.pass_time(0.38)
    assert at.host.events(Failed) == []
    at.host.pass_time(0.02)
    assert len(at.host.events(Failed)) == 1


def test_who_answers_the_last_call_is_not_buried() -> None:
    """Gossip D16, G13: its ACK carries the refutation."""
    at = stand()
    at.say("b", rumour("c", 0, SUSPECT, "b", "d", "e", "f"))
    at.host.pass_time(2.5 - 0.4 + 0.01)
    call = next(message for to, message in reversed(at.host.take(Ping)) if to == life("c"))
    at.hear("c", Ack(call.seq, (rumour("c", 1),)))
    at.host.pass_time(20.0)
    assert at.host.events(Failed) == []
    assert at.node.counts["last_calls_answered"] == 1


def test_the_end_waits_for_the_last_call() -> None:
    """Gossip 5.4, H322: many accuse at once long after the start; the accused still has a probe's timeout to answer."""
    at = stand()
    at.say("b", rumour("c", 0, SUSPECT, "b"))
    at.host.pass_time(5.0)
    at.clear()
    at.say("b", rumour("c", 0, SUSPECT, "d", "e", "f"))
    at.host.pass_time(0.19)
    assert len([to for to, _ in at.host.take(Ping) if to == life("c")]) == 1
    at.host.pass_time(0.02)
    assert len([to for to, _ in at.host.take(Ping) if to == life("c")]) == 1
    at.host.pass_time(0.18)
    assert at.host.events(Failed) == []
    assert at.host.events(LastCall) != []
    at.host.pass_time(0.02)
    assert len(at.host.events(Failed)) == 1


def test_without_the_last_call_it_ends_at_once() -> None:
    """Gossip 7 (ablations): D16 switched off."""
    at = stand(rules=Rules(last_call=False))
    at.say("b", rumour("c", 0, SUSPECT, "b"))
    at.host.pass_time(5.0)
    at.say("b", rumour("c", 0, SUSPECT, "d", "e", "f"))
    at.host.pass_time(0.0)
    assert len(at.host.events(Failed)) == 1
    assert at.host.events(LastCall) == []


def test_the_burial_names_its_accusers() -> None:
    """Gossip 5.4: DEAD(accusers = names counted): they are answered directly if it lives."""
    at = stand()
    at.say("b", rumour("c", 0, SUSPECT, "b", "d"))
    at.host.pass_time(2.0)
    at.clear()
    at.host.pass_time(20.0)
    said = [each for _, message in at.host.take(Gossip) for each in message.rumours if each.status is DEAD]
    assert {each.accusers for each in said} == {("b", "d")}


# H353: one that others have buried is asked here, too.


def test_one_that_others_bury_is_asked_first() -> None:
    """Gossip 5.1 step 4, D16, H353: it is suspected, called at once, and buried a probe's timeout later."""
    at = stand()
    at.say("b", rumour("c", 0, DEAD, "b", "d", "e", "f"))
    assert at.status("c") is SUSPECT
    at.host.pass_time(0.0)
    assert at.host.events(LastCall) == [LastCall(life("c"))]
    at.host.pass_time(0.39)
    assert at.host.events(Failed) == []
    at.host.pass_time(0.02)
    assert at.told == ["Suspected c", "Decided c", "Failed c"]
    assert at.node.queue["c"].rumour.accusers == ("b", "d", "e", "f")


def test_who_answers_is_not_lost_by_what_others_say() -> None:
    """Gossip D16, H353: a member that was cut off from those that buried it, and not from this one."""
    at = stand()
    at.say("b", rumour("c", 0, DEAD, "b", "d"))
    at.host.pass_time(0.0)
    ((_, call),) = [each for each in at.host.take(Ping) if each[0] == life("c")]
    assert call.rumours[0].status is SUSPECT
    at.hear("c", Ack(call.seq, (rumour("c", 1),)))
    at.host.pass_time(20.0)
    assert at.told == ["Suspected c", "Cleared c"]
    assert "c" in at.names


def test_one_that_was_asked_here_is_believed_to_be_dead() -> None:
    """Gossip 5.1 step 4, H353: it has not answered the last calls of this member, which waits no longer than they take."""
    at = stand()
    at.say("b", rumour("c", 0, SUSPECT, "b", "d", "e", "f"))
    at.host.pass_time(2.5 - 2 * 0.4 + 0.01)
    at.say("b", rumour("c", 0, DEAD, "b", "d", "e", "f"))
    assert at.status("c") is SUSPECT  # Of two calls one is out.
    at.host.pass_time(0.4)
    at.say("b", rumour("c", 0, DEAD, "b", "d", "e", "f"))
    assert at.status("c") is DEAD


def test_a_burial_elsewhere_ends_a_long_wait() -> None:
    """Gossip 5.4, H353: with one accuser it would wait for Max."""
    at = stand()
    at.say("b", rumour("c", 0, SUSPECT, "b"))
    at.host.pass_time(1.0)
    at.say("b", rumour("c", 0, DEAD, "b"))
    at.host.pass_time(0.41)
    assert at.status("c") is DEAD


def test_what_others_say_does_not_end_the_wait_of_one_that_was_away() -> None:
    """Gossip 5.8, F11, H353: it hears first what waited in its socket."""
    at = stand()
    at.node.on_away(5.0)
    at.say("b", rumour("c", 0, DEAD, "b"))
    at.host.pass_time(2.4)
    assert at.status("c") is SUSPECT
    at.host.pass_time(0.2)
    assert at.status("c") is DEAD


def test_without_the_rule_a_rumour_kills() -> None:
    """Gossip 7 (ablations): as in SWIM, one false burial is one at all members."""
    at = stand(rules=Rules(hearsay_asks=False))
    at.say("b", rumour("c", 0, DEAD, "b"))
    assert at.status("c") is DEAD
