"""Both ends of the overlay at a client.  Spec: views 5.7, G5, G7, D13, D30."""

from __future__ import annotations

import pytest
from msgspec import msgpack

from holdfast.drops import Drop
from holdfast.events import ViewLost, ViewTripped
from holdfast.features.views.protocol import carrier, hops, received
from holdfast.features.views.protocol.carrier import Carrier
from holdfast.features.views.protocol.config import ViewsConfig
from holdfast.features.views.protocol.facts import Carried as CarriedFact
from holdfast.features.views.protocol.facts import Received
from holdfast.features.views.protocol.hops import Hops
from holdfast.features.views.protocol.messages import BUSY, NO_PATH, RECEIVER_LOST, STABLE, HopAck, OvData, OvResult
from holdfast.host import Carried, NodeId, ViewId
from holdfast.kit.parcels import PARCEL_BYTES_MAX, Parcel, Parcels
from tests.features.views.stand import CONFIG, HB, S0, S1, S2, A, B, C, ClientStand, FakeRouter, Note, member, parcel_of


class Stand(ClientStand):
    """A client with a view of itself and B, and what it carries."""

    def __init__(self) -> None:
        super().__init__()
        self.router = FakeRouter()
        self.hops = Hops(self.host, CONFIG, self.host.send, self.counts)
        self.parcels = Parcels(self.router, self.host.wall)
        self.carrier = self.next_carrier(None)
        self.outcomes: list[Carried] = []
        self.install(1, member(B))
        self.told.clear()
        self.host.sent.clear()

    def next_carrier(self, former: Carrier | None) -> Carrier:
        return Carrier(self.host, CONFIG, self.hops, self.parcels, self.client, self.counts, former=former)

    def carry(self, to: NodeId = B, number: int = 1) -> None:
        self.carrier.carry(to, Note(number), self.outcomes.append)

    def sent(self) -> list[OvData]:
        return [data for _, data in self.host.take(OvData)]

    def result(self, mid: int, why: int = 0, *, source: NodeId | None = None) -> None:
        self.carrier.on_result(self.server if source is None else source, OvResult(A, mid, ok=not why, why=why, ttl=1, hops=3))

    def keep(self, seconds: float) -> None:
        """Time passes, and the server confirms the view and acknowledges every hop."""
        for _ in range(round(seconds / HB)):
            self.tick()
            self.pong(STABLE, view=self.client.view)
            for data in self.sent():
                self.hops.on_ack(self.server, HopAck(data.hop))

    def hear(self, mid: int, *, source: NodeId | None = None, dst: NodeId = A, parcel: Parcel | None = None) -> bool:
        data = OvData(B, mid, dst, ViewId(1, *S0), parcel_of(mid) if parcel is None else parcel, 1, 7, True)
        return heard(self.carrier, self.server if source is None else source, data)


def heard(carrier: Carrier, source: NodeId, data: OvData) -> bool:
    """As a node does it: what is acknowledged is received."""
    taken = carrier.takes(source, data)
    if taken:
        carrier.receive(data)
    return taken


@pytest.fixture
def stand() -> Stand:
    return Stand()


def test_a_message_goes_to_the_own_server(stand: Stand) -> None:
    """Views 5.7: as a hop, under a new id; the result ends it."""
    stand.carry()
    ((to, data),) = stand.host.take(OvData)
    assert (to, data.src, data.dst, data.mid, data.ttl, data.last) == (stand.server, A, B, 1, CONFIG.max_server_hops, False)
    stand.hops.on_ack(stand.server, HopAck(data.hop))
    assert stand.outcomes == []
    stand.result(1)
    assert stand.outcomes == [Carried.DELIVERED]
    assert stand.host.events(CarriedFact) == [CarriedFact(B, 1, 3)]
    stand.host.pass_time(30)
    assert (stand.sent(), stand.carrier.under_way, stand.host.timers) == ([], 0, 0)


def test_without_a_result_it_is_sent_again(stand: Stand) -> None:
    """Views 5.7: every ``e2e_rto``, under the same id, so that the receiver knows it."""
    stand.carry()
    mids = []
    for _ in range(3):
        data = stand.sent()[-1]
        mids.append(data.mid)
        stand.hops.on_ack(stand.server, HopAck(data.hop))
        stand.pong(STABLE, view=stand.client.view)
        stand.host.pass_time(CONFIG.e2e_rto)
    assert mids == [1, 1, 1]


def test_a_receiver_that_is_not_in_the_view(stand: Stand) -> None:
    """Views 5.7 (NOT_A_MEMBER): another name, another life, no lease: nothing is sent."""
    stand.carry(C)
    stand.carry(NodeId(B.name, B.boot + 1))
    stand.host.clock += CONFIG.lease
    stand.carry()
    assert stand.outcomes == [Carried.NOT_IN_VIEW] * 3
    assert stand.sent() == []
    assert isinstance(stand.told[-1], ViewLost)


def test_what_is_too_large_or_too_much_is_refused(stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    """Views 3 (OvData): 36 KiB; a client has a limit of messages under way."""
    stand.carrier.carry(B, Note(1, b"x" * PARCEL_BYTES_MAX), stand.outcomes.append)
    assert stand.outcomes == [Carried.TOO_LARGE]
    monkeypatch.setattr(carrier, "SENDS_MAX", 1)
    stand.carry()
    stand.carry()
    assert stand.outcomes == [Carried.TOO_LARGE, Carried.BUSY]
    assert len(stand.sent()) == 1


def test_not_delivered_in_time_is_a_trip(stand: Stand) -> None:
    """Views G5, 5.7, paper 003, section 4.2: the view stands and the overlay does not deliver, so another view is forced."""
    stand.carry()
    stand.keep(CONFIG.ov_deadline - 2 * HB)
    stand.result(1, NO_PATH)
    assert stand.outcomes == []
    stand.keep(3 * HB)
    assert stand.outcomes == [Carried.TRIPPED]
    tripped, lost = stand.told[-2:]
    assert isinstance(tripped, ViewTripped)
    assert tripped.peer == B
    assert "no path" in tripped.why
    assert isinstance(lost, ViewLost)
    assert stand.client.attach == 2


def test_a_trip_that_comes_too_early_changes_nothing(stand: Stand) -> None:
    """Views 5.7: at most one in 10 s, so a sender that is never answered does not keep the group changing."""
    stand.client.trip("before")
    stand.install(2, member(B))
    stand.told.clear()
    attach = stand.client.attach
    stand.carry()
    stand.keep(CONFIG.ov_deadline + HB)
    assert stand.outcomes == [Carried.TRIPPED]
    assert stand.told == []
    assert stand.client.attach == attach


def test_a_newer_view_without_the_receiver_ends_it(stand: Stand) -> None:
    """Views 5.7, D13: the view gave the peer up meanwhile; that is no trip of this client. One that is still there is waited for."""
    stand.carry()
    stand.view(stand.mine(2, member(B), member(C)))
    stand.carrier.on_view(stand.client.view)  # type: ignore[arg-type]
    assert stand.outcomes == []
    stand.view(stand.mine(3, member(NodeId(B.name, B.boot + 1))))
    stand.carrier.on_view(stand.client.view)  # type: ignore[arg-type]
    assert stand.outcomes == [Carried.TRIPPED]
    assert not any(isinstance(event, ViewTripped) for event in stand.told)


def test_no_trip_for_a_view_that_is_over(stand: Stand) -> None:
    """Views 5.7: only if the view is still the one at the start, and leased."""
    stand.carry()
    stand.keep(CONFIG.ov_deadline - 2 * HB)
    stand.view(stand.mine(2, member(B)))
    stand.keep(3 * HB)
    assert stand.outcomes == [Carried.TRIPPED]
    assert not any(isinstance(event, ViewTripped) for event in stand.told)


def test_a_change_under_way_is_waited_for(stand: Stand) -> None:
    """Views 5.7: no path now, and a way a moment later."""
    stand.carry()
    stand.result(1, RECEIVER_LOST)
    assert stand.outcomes == []
    stand.keep(CONFIG.e2e_rto)
    stand.result(1)
    assert stand.outcomes == [Carried.DELIVERED]


def test_busy_says_that_nothing_was_delivered(stand: Stand) -> None:
    """Views 5.7 (busy), host.Carried: true for the only copy. After a second copy was sent, the first one may have arrived."""
    stand.carry()
    stand.result(1, BUSY)
    assert stand.outcomes == [Carried.BUSY]
    stand.carry()
    stand.keep(CONFIG.e2e_rto + HB)
    stand.result(2, BUSY)
    assert stand.outcomes == [Carried.BUSY]
    stand.result(2)
    assert stand.outcomes == [Carried.BUSY, Carried.DELIVERED]


def test_busy_is_no_trip_however_long(stand: Stand) -> None:
    """H236, views 5.7: busy to the last copy, of several. It may have arrived, so it is not "busy"; and the view is not to blame."""
    stand.carry()
    stand.keep(CONFIG.ov_deadline - 2 * HB)
    stand.result(1, BUSY)
    assert stand.outcomes == []
    stand.keep(3 * HB)
    assert stand.outcomes == [Carried.TRIPPED]
    assert stand.told == []
    assert stand.client.attach == 1
    assert stand.counts["tripped"] == 0


def test_busy_to_an_earlier_copy_excuses_no_silence(stand: Stand) -> None:
    """H236: the newest copy counts. Its server had room again, and nothing came of it."""
    stand.carry()
    stand.keep(CONFIG.e2e_rto + HB)
    stand.result(1, BUSY)
    stand.keep(CONFIG.ov_deadline)
    assert stand.outcomes == [Carried.TRIPPED]
    assert isinstance(stand.told[0], ViewTripped)
    assert stand.counts["tripped"] == 1


def test_a_message_that_never_left_is_busy(stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    """H236: this node has too much under way until the deadline; nothing was delivered."""
    monkeypatch.setattr(hops, "HOPS_MAX", 0)
    stand.carry()
    stand.keep(CONFIG.ov_deadline + HB)
    assert stand.outcomes == [Carried.BUSY]
    assert stand.sent() == []
    assert stand.told == []


def test_results_of_others_are_dropped(stand: Stand) -> None:
    """Views 5.7: from another server, for another id, a second time; each is counted, and ``done`` runs once."""
    stand.carry()
    stranger = next(life for life in (S0, S1, S2) if life != stand.server)
    stand.result(1, source=stranger)
    stand.result(9)
    assert stand.outcomes == []
    stand.result(1)
    stand.result(1)
    assert stand.outcomes == [Carried.DELIVERED]
    assert stand.counts["late"] == 3


def test_a_server_that_takes_no_message_is_left(stand: Stand) -> None:
    """Views 5.7 (fate sharing), D13: its pongs pass and the hop used up its tries: fail over. The message goes on there."""
    stand.carry()
    for _ in range(4):
        stand.tick()
        stand.pong(STABLE, view=stand.client.view)
    assert stand.client.attach == 2
    assert stand.client.at == 1


def test_a_message_arrives_once(stand: Stand) -> None:
    """Views G7, CB9: duplicates are acknowledged and handed on no more."""
    assert stand.hear(5)
    assert stand.hear(5)
    assert stand.hear(6)
    assert stand.router.handed == [(B, Note(5)), (B, Note(6))]
    assert stand.host.events(Received) == [Received(B, 5), Received(B, 6)]
    assert stand.counts["duplicate"] == 1


def test_ids_are_remembered_longer_than_any_sender_repeats_itself() -> None:
    """Views G7, 2 (got): at the slowest heartbeat a message is under way for 16 heartbeats, and in servers for 30 more."""
    for heartbeat in (0.05, 0.25, 1.0, 5.0):
        config = ViewsConfig(heartbeat=heartbeat)
        in_servers = 2 * 5 * config.hop_tries * config.hop_rto
        assert config.got_seconds > config.ov_deadline + in_servers
        assert config.recent_seconds > 0.8 * config.e2e_rto


def test_ids_are_forgotten_in_time(stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    """Views 2 (got): and while there is no room a message is rather not taken than perhaps twice."""
    monkeypatch.setattr(received, "GOT_MAX", 2)
    assert stand.hear(1)
    assert stand.hear(2)
    assert not stand.hear(3)
    assert stand.counts["full"] == 1
    stand.host.clock += CONFIG.got_seconds + 1
    assert stand.hear(3)
    assert len(stand.carrier._got._ids) == 1


def test_the_next_client_of_this_life_knows_what_arrived(stand: Stand) -> None:
    """Views G7: the agent left the view and came back while a sender repeated itself. Seen: the message was handed on twice."""
    assert stand.hear(5)
    stand.carry()
    again = stand.next_carrier(stand.carrier)
    assert heard(again, stand.server, OvData(B, 5, A, ViewId(1, *S0), parcel_of(5), 1, 7, True))
    assert len(stand.router.handed) == 1
    again.carry(B, Note(2), stand.outcomes.append)
    assert stand.sent()[-1].mid == 2


def test_only_servers_hand_messages_over(stand: Stand) -> None:
    """Views 10: the own server, or one of the view while the client moves; to this life alone. Others get no acknowledgement."""
    assert not stand.hear(1, source=NodeId("x", 1))
    assert not stand.hear(1, dst=NodeId(A.name, A.boot + 1))
    assert stand.counts["stranger"] == 2
    stand.client._begin_attachment(1, "test")
    assert stand.client.view is not None
    assert stand.hear(1, source=stand.client.view.servers[0])


@pytest.mark.parametrize("contents", [b"", b"\xc1", b"\x92\xcc\x89\x01", b"\x92\xcc\xf0\x20", b"\x92\xcc\xf0"])
def test_what_cannot_be_read_is_a_counted_drop(stand: Stand, contents: bytes) -> None:
    """Views D30: nothing, no MessagePack, an overlay message inside of one, a field of another type, bytes that end early."""
    assert stand.hear(1, parcel=Parcel(b"", contents)) is True
    if contents == b"\x92\xcc\xf0\x20":
        assert stand.router.handed == [(B, Note(32))]
    else:
        assert stand.router.handed == []
        assert sum(stand.router.drops.values()) == 1
    if contents == b"\x92\xcc\x89\x01":
        assert stand.router.drops[Drop.UNKNOWN_TAG] == 1


def test_the_end_of_a_client_ends_what_it_carries(stand: Stand) -> None:
    """Views 5.7: ``done`` runs once for each, and no timer stays."""
    stand.carry()
    stand.carry()
    stand.carrier.stop()
    stand.hops.stop()
    assert stand.outcomes == [Carried.TRIPPED] * 2
    assert (stand.carrier.under_way, stand.host.timers) == (0, 0)


def test_a_pause_is_no_trip(stand: Stand) -> None:
    """Foundation F11, views D17: the result may wait to be read; after the pause it is asked for once more."""
    stand.carry()
    stand.keep(CONFIG.ov_deadline - 2 * HB)
    stand.host.pause(3.0)
    assert stand.outcomes == []
    stand.result(1)
    assert stand.outcomes == [Carried.DELIVERED]


def test_an_overlay_message_inside_of_one_is_refused(stand: Stand) -> None:
    """Views D30, 10: OvData is not declared for the overlay, so it cannot be packed, and is no known tag when it arrives."""
    inner = OvData(B, 1, A, ViewId(1, *S0), parcel_of(1), 1, 1)
    with pytest.raises(AssertionError):
        stand.parcels.pack(inner)
    stand.router.types = (Note, OvData)
    assert stand.hear(1, parcel=Parcel(b"", msgpack.encode(inner)))
    assert stand.router.handed == []
    assert stand.router.drops[Drop.UNKNOWN_TAG] == 1
