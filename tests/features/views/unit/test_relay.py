"""Overlay messages at a server: towards the receiver, and the result back.  Spec: views 5.7, 10, D7, D13."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from holdfast.features.views.protocol import hops, relay
from holdfast.features.views.protocol.facts import ClientRemoved, LinkDown
from holdfast.features.views.protocol.messages import (
    BUSY,
    DELIVERED,
    NO_PATH,
    NOT_A_MEMBER,
    RECEIVER_LOST,
    HopAck,
    Listed,
    OvData,
    OvResult,
)
from holdfast.host import NodeId, ViewId
from tests.features.views.stand import CONFIG, PARCEL, S0, S1, S2, A, B, C, ServerStand, at

TTL = CONFIG.max_server_hops
GIVEN_UP = CONFIG.hop_tries * CONFIG.hop_rto + 0.01


def data(src: NodeId, dst: NodeId, mid: int = 1, *, ttl: int = TTL, hop: int = 9) -> OvData:
    return OvData(src, mid, dst, ViewId(1, *S0), PARCEL, ttl, hop)


class Stand(ServerStand):
    """s0 with clients A and C; B is at s1."""

    def __init__(self) -> None:
        super().__init__(3)
        s1, s2 = self.peers.values()
        self.link(s1, s2)
        self.attach(A)
        self.attach(C)
        self.server.on_lsa(S1, s1.lsa(clients=(Listed(B, 1, at(B)),)))
        self.host.pass_time(CONFIG.join_batch)
        self.agree(s1, s2)
        self.host.sent.clear()

    def sent(self) -> list[tuple[NodeId, OvData]]:
        return [(to, each) for to, each in self.host.take(OvData) if isinstance(to, NodeId)]

    def results(self) -> list[tuple[object, int, bool, int]]:
        return [(to, result.mid, result.ok, result.why) for to, result in self.host.take(OvResult)]

    def ack(self, source: NodeId, message: OvData) -> None:
        self.hops.on_ack(source, HopAck(message.hop))


@pytest.fixture
def stand() -> Stand:
    return Stand()


def test_to_a_client_of_the_same_server(stand: Stand) -> None:
    """Views 5.7: two hops; the acknowledgement of the receiver is the result."""
    assert stand.server.on_data(A, data(A, C))
    ((to, message),) = stand.sent()
    assert (to, message.last, message.src, message.mid) == (C, True, A, 1)
    assert stand.results() == []
    stand.ack(C, message)
    ((_, result),) = stand.host.take(OvResult)
    assert (result.ok, result.why, result.hops) == (True, DELIVERED, 2)


def test_to_a_client_of_another_server(stand: Stand) -> None:
    """Views 5.7, D7, paper 003, section 4: the second of three hops; the other server says what becomes of it."""
    assert stand.server.on_data(A, data(A, B))
    ((to, message),) = stand.sent()
    assert (to, message.last, message.ttl) == (S1, False, TTL - 1)
    stand.ack(S1, message)
    assert stand.results() == []
    stand.server.on_result(S1, OvResult(A, 1, ok=True, why=DELIVERED, ttl=TTL, hops=3))
    assert stand.results() == [(A, 1, True, DELIVERED)]


def test_from_another_server(stand: Stand) -> None:
    """Views 5.7: the last of three hops, and the result goes back to the server of the sender."""
    assert stand.server.on_data(S1, data(B, A, ttl=TTL - 1))
    ((to, message),) = stand.sent()
    assert (to, message.last) == (A, True)
    stand.ack(A, message)
    ((back, result),) = stand.host.take(OvResult)
    assert (back, result.src, result.ok, result.hops) == (S1, B, True, 3)


def test_repetitions_are_acknowledged_and_go_no_further(stand: Stand) -> None:
    """Views 5.7: the same (life, mid) less than 0.8 ``e2e_rto`` ago; the sender's own repetition is passed on."""
    stand.server.on_data(A, data(A, C))
    ((_, message),) = stand.sent()
    stand.ack(C, message)
    assert stand.server.on_data(A, data(A, C))
    stand.host.pass_time(0.79 * CONFIG.e2e_rto)
    assert stand.server.on_data(A, data(A, C))
    assert stand.sent() == []
    stand.host.pass_time(0.21 * CONFIG.e2e_rto)
    assert stand.server.on_data(A, data(A, C))
    assert len(stand.sent()) == 1


def test_a_client_that_sends_too_much_is_told_so(stand: Stand) -> None:
    """Views 4 (overlay_rate), 5.7: ``busy``, which is no trip; a second later it may go on."""
    rate = round(CONFIG.overlay_rate)
    for mid in range(rate + 5):
        assert stand.server.on_data(A, data(A, C, mid))
    assert stand.results() == [(A, rate + i, False, BUSY) for i in range(5)]
    stand.host.pass_time(0.1)
    stand.server.on_data(A, data(A, C, 10**6))
    assert stand.results() == []
    assert stand.counts["busy"] == 5


def test_repetitions_of_a_hop_use_up_no_room(stand: Stand) -> None:
    """Views 5.7: ``busy`` says that nothing was delivered, so it is no answer to a message that is under way."""
    for _ in range(3 * round(CONFIG.overlay_rate)):
        assert stand.server.on_data(A, data(A, C))
    assert stand.results() == []
    for mid in range(2, 2 + round(CONFIG.overlay_rate)):
        stand.server.on_data(A, data(A, C, mid))
    ((_, last, _, why),) = stand.results()
    assert (last, why) == (1 + round(CONFIG.overlay_rate), BUSY)
    stand.server.on_data(A, data(A, C, last))
    assert stand.results() == []


def test_what_strangers_send_is_not_acknowledged(stand: Stand) -> None:
    """Views 5.7, 10: no client, no server; a client that speaks for another one; a client of another server. Nothing is sent."""
    stranger = NodeId("x", 1)
    assert not stand.server.on_data(stranger, data(stranger, C))
    assert not stand.server.on_data(C, data(A, C))
    assert not stand.server.on_data(B, data(B, C))
    assert not stand.server.on_data(NodeId(A.name, A.boot + 1), data(A, C))
    stand.server.on_result(stranger, OvResult(A, 1, ok=True, why=DELIVERED, ttl=TTL))
    stand.server.on_result(C, OvResult(A, 1, ok=True, why=DELIVERED, ttl=TTL))
    assert stand.counts["stranger"] == 6
    assert stand.host.sent == []


def test_hops_that_no_path_has_are_malformed(stand: Stand) -> None:
    """Views 10: more servers to go than a group has between two, or a last hop to a server; results do not go round either."""
    assert not stand.server.on_data(S1, data(B, A, ttl=TTL + 1))
    assert not stand.server.on_data(S1, replace(data(B, A), last=True))
    stand.server.on_result(S2, OvResult(B, 1, ok=True, why=DELIVERED, ttl=65_535))
    assert stand.counts["malformed"] == 3
    assert stand.host.sent == []


def test_a_receiver_in_no_view(stand: Stand) -> None:
    """Views 5.7: not a member; a former life of a member is none."""
    stand.server.on_data(A, data(A, NodeId("x", 1), 1))
    stand.server.on_data(A, data(A, NodeId(B.name, B.boot + 1), 2))
    assert stand.results() == [(A, 1, False, NOT_A_MEMBER), (A, 2, False, NOT_A_MEMBER)]


def test_a_message_has_a_limit_of_servers(stand: Stand) -> None:
    """Views 5.7: ``ttl`` used up is no path."""
    stand.server.on_data(S2, data(C, B, ttl=0))
    stand.server.on_data(A, data(A, B, 2, ttl=0))
    assert [result[1:] for result in stand.results()] == [(1, False, NO_PATH), (2, False, NO_PATH)]


def test_a_client_that_a_message_does_not_reach_is_lost(stand: Stand) -> None:
    """Views 5.7 (fate sharing), D13: heartbeats prove nothing. Out of the view, in quarantine, and the sender hears why.
    Tried: only heartbeats count."""
    stand.server.on_data(A, data(A, C))
    stand.host.pass_time(GIVEN_UP)
    assert stand.results() == [(A, 1, False, RECEIVER_LOST)]
    assert stand.host.events(ClientRemoved) == [ClientRemoved(C, 1, "a message did not reach it")]
    assert stand.server.clients.is_quarantined(C)
    assert stand.agreement.ns is not None
    assert stand.agreement.ns.find(C) is None


def test_a_link_that_a_message_does_not_pass_is_down(stand: Stand) -> None:
    """Views 5.7 (fate sharing), D13: down and in quarantine, and the message goes once more over what is left: here by s2."""
    stand.server.on_data(A, data(A, B))
    stand.host.pass_time(GIVEN_UP)
    assert stand.host.events(LinkDown) == [LinkDown(S1, "a message did not pass", CONFIG.quarantine)]
    ((_, last),) = [each for each in stand.sent() if each[0] == S2][-1:]
    assert (last.dst, last.ttl) == (B, TTL - 1)
    stand.ping(A, 1, 3, stand.host.now)
    stand.host.pass_time(GIVEN_UP)
    assert stand.results() == [(A, 1, False, NO_PATH)]
    assert [fact.peer for fact in stand.host.events(LinkDown)] == [S1, S2]


def test_many_messages_over_a_broken_link_are_one_failure(stand: Stand) -> None:
    """Views 4 (quarantine), D13: a hundred messages were under way when it broke."""
    for mid in range(100):
        stand.server.on_data(A, data(A, B, mid))
    stand.host.pass_time(GIVEN_UP)
    assert stand.host.events(LinkDown) == [LinkDown(S1, "a message did not pass", CONFIG.quarantine)]
    assert stand.server.links.all[1].quarantine_until <= stand.host.now + CONFIG.quarantine


def test_a_full_server_says_busy(stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    """Views 2 (hops): the overflow is answered; nothing is kept for it."""
    monkeypatch.setattr(hops, "HOPS_MAX", 1)
    stand.server.on_data(A, data(A, C, 1))
    stand.server.on_data(A, data(A, C, 2))
    assert stand.results() == [(A, 2, False, BUSY)]
    stand.server.on_data(A, data(A, B, 3))
    assert stand.results() == [(A, 3, False, BUSY)]


def test_ids_forwarded_lately_have_a_limit(stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    """Views 2 (recent): the oldest goes, and all go after their time."""
    monkeypatch.setattr(relay, "RECENT_MAX", 3)
    for mid in range(10):
        stand.server.on_data(A, data(A, C, mid))
    assert [mid for _, mid in stand.server.relay._recent] == [7, 8, 9]
    stand.host.pass_time(CONFIG.recent_seconds + 1)
    stand.ping(A, 2, 1)
    stand.server.on_data(S1, data(B, C, 1))
    assert len(stand.server.relay._recent) == 1


def test_a_result_for_a_sender_that_moved_follows_it(stand: Stand) -> None:
    """Views 5.7: to the server where it is now; it is lost if none is known, since the sender asks again."""
    stand.server.on_result(S1, OvResult(B, 1, ok=True, why=DELIVERED, ttl=2))
    ((to, result),) = stand.host.take(OvResult)
    assert (to, result.ttl) == (S1, 1)
    stand.server.on_result(S1, OvResult(B, 1, ok=True, why=DELIVERED, ttl=0))
    stand.server.on_result(S1, OvResult(NodeId("x", 1), 1, ok=True, why=DELIVERED, ttl=2))
    assert stand.host.take(OvResult) == []
