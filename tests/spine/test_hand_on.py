"""What another machine carried here, on its way to the owner of its type.  Spec: views D30; foundation F3, F4, F17."""

from __future__ import annotations

from typing import ClassVar

import msgspec
import pytest

from holdfast.drops import Drop
from holdfast.host import FANOUT_MAX, Address, Message, NodeId, fingerprint
from holdfast.kit.parcels import Parcel, Parcels
from holdfast.node import OtherFingerprint, WrongLife
from tests.spine.test_node import ME, MY_LIFE, PEER, THERE, Bench, Listener, Word

LETTER_TAG = 252
NUMBERS = fingerprint(T=1.0)


class Letter(Message, frozen=True, tag=LETTER_TAG):
    """May be carried."""

    carried: ClassVar[bool] = True
    number: int = 0


class Desk:
    """A running node with a machine for letters, and what it carries for itself."""

    def __init__(self, numbers: bytes = NUMBERS) -> None:
        self.bench = Bench()
        self.node = self.bench.node
        self.letters = Listener(numbers, handles=(Letter,))
        self.node.add(self.letters)
        self.parcels = Parcels(self.node, self.bench.host.wall)

    @property
    def digest(self) -> bytes:
        return self.node.digests[Letter]


@pytest.fixture
def desk() -> Desk:
    return Desk()


def test_a_parcel_reaches_the_owner_of_its_type(desk: Desk) -> None:
    """Views D30: as if its sender had sent it directly; both ends count with the same numbers (F4)."""
    parcel = Desk().parcels.pack(Letter(5))
    assert parcel is not None
    desk.parcels.unpack(PEER, parcel)
    assert desk.letters.heard == [(PEER, Letter(5))]
    assert desk.node.drops == {}


def test_its_way_says_nothing_of_where_its_sender_is(desk: Desk) -> None:
    """Views D30: an address is learned from a datagram; what was carried came from somewhere else, and changes none."""
    desk.node.hand_on(PEER, desk.digest, Letter(1))
    assert desk.node.address_of(PEER) is None
    desk.node.meet(PEER, THERE)
    desk.node.hand_on(PEER, desk.digest, Letter(1))
    assert desk.node.address_of(PEER) == THERE


def test_another_fingerprint_is_counted_and_told(desk: Desk) -> None:
    """F4: as of a datagram; the peer is told directly, where its address is known."""
    desk.node.meet(PEER, THERE)
    desk.node.hand_on(PEER, b"8 bytes.", Letter(1))
    assert desk.letters.heard == []
    assert desk.node.drops == {Drop.WRONG_FINGERPRINT: 1}
    assert [packet.message for packet in desk.bench.take()] == [OtherFingerprint(LETTER_TAG, NUMBERS, answer=False)]
    assert desk.node.mismatched == {PEER.name: 1}


def test_another_fingerprint_of_a_peer_without_an_address_is_counted(desk: Desk) -> None:
    """F4: there is no place to tell it."""
    desk.node.hand_on(PEER, b"8 bytes.", Letter(1))
    assert desk.node.drops == {Drop.WRONG_FINGERPRINT: 1, Drop.NO_ADDRESS: 1}
    assert desk.bench.take() == []


def test_our_own_words_are_not_believed(desk: Desk) -> None:
    """F3: what says that we sent it can only add to a counter."""
    desk.node.hand_on(ME, desk.digest, Letter(1))
    assert desk.letters.heard == []
    assert desk.node.drops == {Drop.REFLECTED: 1}


def test_a_type_without_owner_is_counted(desk: Desk) -> None:
    """Foundation 3, H203: also after its machine was removed."""
    desk.node.remove(desk.letters)
    desk.node.hand_on(PEER, b"", Letter(1))
    assert desk.node.drops == {Drop.NO_OWNER: 1}
    desk.parcels.unpack(PEER, Parcel(b"", msgspec.msgpack.encode(Letter(1))))
    assert desk.node.drops == {Drop.NO_OWNER: 1, Drop.UNKNOWN_TAG: 1}


def test_only_what_is_declared_is_handed_on(desk: Desk) -> None:
    """Views D30: the parcels of a node refuse other types, so another one here is a bug."""
    with pytest.raises(AssertionError):
        desk.node.hand_on(PEER, b"", Word(1))
    desk.parcels.unpack(PEER, Parcel(b"", msgspec.msgpack.encode(Word(1))))
    assert desk.bench.listener.heard == []
    assert desk.node.drops == {Drop.UNKNOWN_TAG: 1}


def test_the_messages_of_the_node_itself_are_not_carried(desk: Desk) -> None:
    """F3: a parcel must not say which life is here, nor which numbers it counts with."""
    for message in (WrongLife(0), OtherFingerprint(LETTER_TAG, b"", answer=False)):
        desk.parcels.unpack(PEER, Parcel(b"", msgspec.msgpack.encode(message)))
    assert desk.node.drops == {Drop.UNKNOWN_TAG: 2}
    assert desk.bench.take() == []


def test_a_stopped_node_hears_nothing(desk: Desk) -> None:
    """What is handed on after ``stop`` reaches no machine."""
    digest = desk.digest
    desk.node.stop()
    desk.node.hand_on(PEER, digest, Letter(1))
    assert desk.letters.heard == []


def test_it_is_a_part_of_the_callback_that_brought_it(desk: Desk) -> None:
    """F17: the machine that hands it on and the one that gets it reach 64 peers together."""
    peers = [NodeId(f"p{number}", 1) for number in range(FANOUT_MAX)]
    for peer in peers:
        desk.node.meet(peer, Address(peer.name, 1))

    class Carrier(Listener):
        def on_message(self, source: NodeId, message: Message) -> None:
            for peer in peers:
                desk.node.send(peer, Letter(1))
            desk.node.hand_on(source, desk.digest, Letter(2))

    class Answering(Listener):
        def on_message(self, source: NodeId, message: Message) -> None:
            desk.node.send(source, Letter(3))

    desk.node.remove(desk.bench.listener)
    desk.node.add(Carrier(handles=(Word,)))
    desk.node.remove(desk.letters)
    desk.node.add(Answering(NUMBERS, handles=(Letter,)))
    desk.node.receive(THERE, PEER, MY_LIFE, b"", Word(1))
    assert desk.node.drops == {Drop.FANOUT: 1}
    assert Letter(3) not in [packet.message for packet in desk.bench.take()]
