"""The overlay delivers at most once, also after long stops.  Spec: views G7, 5.7; foundation F11."""

from __future__ import annotations

from typing import ClassVar

from holdfast.bounds import Number
from holdfast.features.views.protocol.config import GOT_SENDERS_MAX, ViewsConfig
from holdfast.features.views.protocol.messages import DELIVERED, ClientPing, ClientPong, HopAck, OvData, OvResult, ViewMsg
from holdfast.features.views.protocol.messages import STABLE as STABLE_ANSWER
from holdfast.features.views.protocol.nsview import digest_of
from holdfast.features.views.protocol.received import ReceivedIds
from holdfast.features.views.protocol.views import ViewNode
from holdfast.host import Address, Carried, Message, NodeId, ViewId, ViewMember
from holdfast.kit.parcels import Parcel, Parcels
from holdfast.kit.slots import Slot
from tests.support.fake_host import FakeHost
from tests.support.fake_router import FakeRouter

CONFIG = ViewsConfig()
SLOTS = (Slot(0, "s", Address("s", 1)),)
S, A, B = NodeId("s", 1), NodeId("a", 1), NodeId("b", 1)


class Said(Message, frozen=True, tag=249):
    """What is carried here."""

    carried: ClassVar[bool] = True
    number: Number


class Stand:
    """The client of ``a``, attached to ``s``, in a view with ``b``."""

    def __init__(self) -> None:
        self.host, self.router = FakeHost("a"), FakeRouter(Said)
        self.node = ViewNode(self.host, CONFIG, SLOTS, None, Parcels(self.router, self.host.wall))
        self.node.take_part()
        self.node.start()
        self.number = 0
        self.answer(stable=False)
        self.install()

    def answer(self, *, stable: bool = True) -> None:
        """The server answers the newest ping."""
        _, ping = self.host.take(ClientPing)[-1]
        view = ViewId(self.number, "s", 1) if stable else None
        self.node.on_message(S, ClientPong(ping.attach, ping.seq, STABLE_ANSWER if stable else 1, view, 0, 0, self.host.now))

    def install(self) -> None:
        self.host.pass_time(CONFIG.heartbeat)
        _, ping = self.host.take(ClientPing)[-1]
        self.number += 1
        members = tuple(ViewMember(life, Address(life.name, 1), ping.attach if life == A else 1, S) for life in (A, B))
        digest = digest_of((S,), members)
        self.node.on_message(S, ViewMsg(ping.attach, ping.seq, ViewId(self.number, "s", 1), (S,), None, members, (), 2, digest, 2))
        assert self.node.view is not None
        assert self.node.view.number == self.number

    def stay(self, seconds: float) -> None:
        """The server goes on answering."""
        end = self.host.now + seconds
        while self.host.now < end:
            self.host.pass_time(CONFIG.heartbeat)
            self.answer()

    def data(self, mid: int, view: int) -> OvData:
        return OvData(B, mid, A, ViewId(view, "s", 1), Parcel(b"", _packed(mid)), 3, mid, last=True)


def _packed(number: int) -> bytes:
    parcel = Parcels(FakeRouter(Said), lambda: 0.0).pack(Said(number))
    assert parcel is not None
    return parcel.contents


def test_a_copy_that_was_held_up_for_long_is_refused() -> None:
    """Views G7: a server that was stopped hands a copy on after the receiver has forgotten it. The sender has said
    nothing newer since, and the copy is neither handed on nor acknowledged."""
    stand = Stand()
    stand.node.on_message(S, stand.data(1, stand.number))
    assert [message for _, message in stand.router.handed] == [Said(1)]
    old = stand.number
    stand.install()
    stand.stay(CONFIG.got_seconds + 1)
    stand.host.take(HopAck)
    stand.node.on_message(S, stand.data(1, old))
    assert len(stand.router.handed) == 1
    assert stand.host.take(HopAck) == []
    assert stand.node.counts["late"] == 1
    stand.node.on_message(S, stand.data(2, stand.number))
    assert len(stand.router.handed) == 2


def test_a_copy_that_waited_while_the_receiver_was_stopped() -> None:
    """Views G7: the second copy waits in the socket of a receiver that is stopped for longer than it remembers ids. It finds the view that
    the message was sent in as it was. Seen: fuzz.views, seed 1845 of a client, and 12 of 6,000 others."""
    stand = Stand()
    stand.node.on_message(S, stand.data(7, stand.number))
    stand.host.clock += CONFIG.got_seconds + 1
    stand.node.on_away(CONFIG.got_seconds + 1)
    for mid in (7, 6):  # 6 was given up before 7 was
        stand.node.on_message(S, stand.data(mid, stand.number))
    assert [message for _, message in stand.router.handed] == [Said(7)]
    assert len(stand.host.take(HopAck)) == 1
    assert stand.node.counts["late"] == 2
    stand.node.on_message(S, stand.data(8, stand.number))
    assert len(stand.router.handed) == 2


def test_senders_that_are_remembered_are_bounded() -> None:
    """Foundation F16: the highest id is remembered of so many senders; the one of which nothing was heard for the longest time goes."""
    received, later = ReceivedIds(CONFIG), CONFIG.got_seconds + 1
    for number in range(GOT_SENDERS_MAX + 1):
        received.add(NodeId(f"c{number}", 1), 5, 0.0)
    assert not received.is_past(NodeId("c0", 1), 5, later)
    assert received.is_past(NodeId("c1", 1), 5, later)
    assert not received.is_past(NodeId("c1", 1), 6, later)
    assert not received.is_past(NodeId("c1", 2), 1, later)
    assert len(received._past) == GOT_SENDERS_MAX


def test_a_sender_that_lags_is_heard() -> None:
    """Views 5.7: a message of the view before arrives shortly after the next one was installed."""
    stand = Stand()
    old = stand.number
    stand.stay(CONFIG.got_seconds)
    stand.install()
    stand.node.on_message(S, stand.data(1, old))
    assert len(stand.router.handed) == 1


def test_a_sender_that_was_stopped_sends_nothing_again() -> None:
    """Views G7, F11: after a pause beyond the deadline the result may wait to be read; the message is not sent once more."""
    stand = Stand()
    ends: list[Carried] = []
    stand.node.carry(B, Said(1), ends.append)
    assert len(stand.host.take(OvData)) == 1
    stand.host.pause(CONFIG.got_seconds)
    assert stand.host.take(OvData) == []
    assert ends == []
    stand.node.on_message(S, OvResult(A, 1, ok=True, why=DELIVERED, ttl=1, hops=2))
    assert ends == [Carried.DELIVERED]


def test_an_ack_comes_before_what_is_carried_runs() -> None:
    """Views 5.7: the machine that gets the message may send by the overlay itself."""
    stand = Stand()
    order: list[str] = []
    stand.router.on_handed = lambda: order.append("handed" if stand.host.take(HopAck) else "handed before the acknowledgement")
    stand.node.on_message(S, stand.data(1, stand.number))
    assert order == ["handed"]
