"""Node: what a message passes on its way up and down.  Spec: foundation F3, F4, F10, F17."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, NamedTuple

import pytest

from holdfast.drops import Drop
from holdfast.events import ConfigMismatch, Paused
from holdfast.host import FANOUT_MAX, Address, Message, NodeId, fingerprint
from holdfast.node import GREETED_MAX, GREETINGS_MAX, PEERS_MAX, Node, OtherFingerprint, WrongLife, life_of
from tests.support.fake_host import FakeHost

ME = NodeId("a", 5)
PEER = NodeId("b", 3)
MY_LIFE, ITS_LIFE = life_of(ME), life_of(PEER)
THERE = Address("b", 1)


class Hello(Message, frozen=True, tag=250):
    """A greeting."""

    greeting: ClassVar[bool] = True
    text: str = ""


class Word(Message, frozen=True, tag=251):
    """Not a greeting."""

    number: int = 0


class Listener:
    """Keeps what it is told."""

    def __init__(self, numbers: bytes = b"", handles: Sequence[type[Message]] = (Hello, Word)) -> None:
        self.fingerprint = numbers
        self.handles = handles
        self.heard: list[tuple[NodeId, Message]] = []
        self.calls: list[str] = []

    def start(self) -> None:
        self.calls.append("start")

    def on_message(self, source: NodeId, message: Message) -> None:
        self.heard.append((source, message))

    def on_away(self, seconds: float) -> None:
        self.calls.append(f"away {seconds:g}")

    def stop(self) -> None:
        self.calls.append("stop")


class Packet(NamedTuple):
    """One call of ``transmit``."""

    address: Address
    life: int
    fingerprint: bytes
    message: Message


class Bench:
    """A running node with one listener, and everything it transmits."""

    def __init__(self, numbers: bytes = b"", me: NodeId = ME) -> None:
        self.host = FakeHost(me.name, me.boot)
        self.packets: list[Packet] = []
        self.node = Node(self.host, lambda *packet: self.packets.append(Packet(*packet)))
        self.listener = Listener(numbers)
        self.node.add(self.listener)
        self.node.start()

    def take(self) -> list[Packet]:
        packets, self.packets = self.packets, []
        return packets


def test_a_message_for_this_life_reaches_the_owner_of_its_type() -> None:
    """Foundation 3: routes by type; the sender's address is learned."""
    bench = Bench()
    bench.node.receive(THERE, PEER, MY_LIFE, b"", Word(1))
    assert bench.listener.heard == [(PEER, Word(1))]
    bench.node.send(PEER, Word(2))
    assert bench.take() == [Packet(THERE, ITS_LIFE, b"", Word(2))]


@pytest.mark.parametrize("other", [NodeId("a", 4), NodeId("a", 6), NodeId("b", 5)], ids=["former", "later", "same boot, other name"])
def test_a_message_for_another_life_is_dropped_and_answered(other: NodeId) -> None:
    """F3: dropped, counted, and the sender is told which life is here."""
    bench = Bench()
    bench.node.receive(THERE, PEER, life_of(other), b"", Word(1))
    assert bench.listener.heard == []
    assert bench.node.drops == {Drop.WRONG_LIFE: 1}
    assert bench.take() == [Packet(THERE, ITS_LIFE, b"", WrongLife(life_of(other)))]


def test_wrong_life_is_never_answered_with_wrong_life() -> None:
    """F3: two restarted nodes would tell each other for ever."""
    bench = Bench()
    bench.node.receive(THERE, PEER, life_of(NodeId("a", 4)), b"", WrongLife(9))
    assert bench.take() == []


def test_a_greeting_to_whoever_is_there_is_not_acted_upon() -> None:
    """F3: a recorded greeting must not change anything; its sender is told our life and repeats it."""
    bench = Bench()
    bench.node.receive(THERE, PEER, 0, b"", Hello("x"))
    assert bench.listener.heard == []
    assert bench.node.drops == {Drop.UNBOUND: 1}
    assert bench.take() == [Packet(THERE, ITS_LIFE, b"", WrongLife(0))]


def test_only_greetings_may_go_to_whoever_is_there() -> None:
    """F3: to boot 0 is allowed only for types declared as greetings, at both ends."""
    bench = Bench()
    bench.node.receive(THERE, PEER, 0, b"", Word(1))
    bench.node.send(THERE, Word(1))
    assert bench.take() == []
    assert bench.node.drops == {Drop.NOT_A_GREETING: 1, Drop.NO_ADDRESS: 1}


def test_a_greeting_is_repeated_once_its_life_is_known() -> None:
    """F3: WrongLife names the life at that address; what waited is sent to it, once."""
    bench = Bench()
    bench.node.send(THERE, Hello("x"))
    assert bench.take() == [Packet(THERE, 0, b"", Hello("x"))]
    bench.node.receive(THERE, PEER, MY_LIFE, b"", WrongLife(0))
    assert bench.take() == [Packet(THERE, ITS_LIFE, b"", Hello("x"))]
    bench.node.receive(THERE, PEER, MY_LIFE, b"", WrongLife(0))
    assert bench.take() == []
    bench.node.send(THERE, Word(1))
    assert bench.take() == [Packet(THERE, ITS_LIFE, b"", Word(1))]


def test_a_later_life_hears_only_the_latest_greeting() -> None:
    """F3: what was said to a former life and arrived there is not said again to its successor."""
    bench = Bench()
    bench.node.send(THERE, Hello("first"))
    bench.node.receive(THERE, PEER, MY_LIFE, b"", WrongLife(0))
    for text in ("second", "third"):
        bench.node.send(THERE, Hello(text))
    bench.take()
    bench.node.receive(THERE, NodeId("b", 4), MY_LIFE, b"", WrongLife(ITS_LIFE))
    assert bench.take() == [Packet(THERE, life_of(NodeId("b", 4)), b"", Hello("third"))]


def test_a_late_word_of_a_former_life_is_ignored() -> None:
    """F1: of two lives of one name the higher boot is the newer."""
    bench = Bench()
    bench.node.receive(THERE, NodeId("b", 4), MY_LIFE, b"", WrongLife(0))
    bench.node.receive(THERE, PEER, MY_LIFE, b"", WrongLife(0))
    bench.node.send(THERE, Word(1))
    assert [packet.life for packet in bench.take()] == [life_of(NodeId("b", 4))]


def test_another_fingerprint_is_dropped_and_both_ends_name_the_field() -> None:
    """F4: dropped, counted, and ConfigMismatch says which number differs and how."""
    ours, theirs = Bench(fingerprint(T_l=1.0, k=3)), Bench(fingerprint(T_l=5.0, k=3), PEER)
    theirs.node.meet(ME, ours.host.address)
    theirs.node.send(ME, Word(1))
    _exchange(ours, theirs)
    assert ours.listener.heard == []
    assert ours.node.drops == {Drop.WRONG_FINGERPRINT: 1}
    assert ours.host.emitted == [ConfigMismatch(PEER, "T_l", "1.0", "5.0")]
    assert theirs.host.emitted == [ConfigMismatch(ME, "T_l", "5.0", "1.0")]


def test_a_mismatch_is_told_again_but_not_each_time() -> None:
    """F4: what we say may be lost, so it is said again; a peer that goes on sending must not draw an answer each."""
    bench = Bench(fingerprint(T_l=1.0))
    for _ in range(1000):
        bench.node.receive(THERE, PEER, MY_LIFE, b"otherone", Word(1))
    assert bench.node.drops == {Drop.WRONG_FINGERPRINT: 1000}
    told = [packet.message for packet in bench.take()]
    assert told == [OtherFingerprint(251, fingerprint(T_l=1.0), answer=False)] * 10


def test_a_mismatch_is_an_event_once_per_field_and_value() -> None:
    """F4: however often both ends tell each other, the user hears of it once; of another value, again."""
    bench = Bench(fingerprint(T_l=1.0))
    for value in (5.0, 5.0, 6.0):
        bench.node.receive(THERE, PEER, MY_LIFE, b"", OtherFingerprint(251, fingerprint(T_l=value), answer=True))
    assert bench.host.emitted == [ConfigMismatch(PEER, "T_l", "1.0", "5.0"), ConfigMismatch(PEER, "T_l", "1.0", "6.0")]


@pytest.mark.parametrize("ours, theirs", [({}, {"k": 3}), ({"k": 3}, {}), ({"k": 3}, {"k": 3, "r": 1})])
def test_a_field_that_only_one_end_has_is_named_by_both(ours: dict[str, float], theirs: dict[str, float]) -> None:
    """F4: also the end with fewer numbers, or none, says what differs."""
    one, other = Bench(fingerprint(**ours)), Bench(fingerprint(**theirs), PEER)
    other.node.meet(ME, one.host.address)
    other.node.send(ME, Word(1))
    _exchange(one, other)
    (field,) = ours.keys() ^ theirs.keys()
    assert [event.field for event in one.host.events(ConfigMismatch)] == [field]
    assert [event.field for event in other.host.events(ConfigMismatch)] == [field]


def test_our_own_words_sent_back_are_not_believed() -> None:
    """F3: whoever reflects a datagram to its sender can only add to a counter, also where both lives have one boot."""
    bench = Bench()
    bench.node.receive(THERE, ME, MY_LIFE, b"", Word(1))
    assert bench.listener.heard == []
    assert bench.node.drops == {Drop.REFLECTED: 1}


def test_restarts_do_not_push_out_who_was_there_all_the_time() -> None:
    """F17: the table of addresses is bounded, and former lives are the first to go."""
    bench = Bench()
    bench.node.meet(PEER, THERE)
    for boot in range(1, PEERS_MAX + 10):
        bench.node.meet(NodeId("c", boot), Address("c", 1))
    assert bench.node.address_of(PEER) == THERE
    assert bench.node.address_of(NodeId("c", PEERS_MAX + 9)) == Address("c", 1)
    assert bench.node.address_of(NodeId("c", 1)) is None


@pytest.mark.parametrize("text", [b"", b"\xff\xfe", b"T_l", b"T_l=;=;;k=1=2", b"x=1"])
def test_any_text_of_a_peer_is_survived(text: bytes) -> None:
    """A peer can send anything: here as its fingerprint."""
    bench = Bench(fingerprint(T_l=1.0))
    bench.node.receive(THERE, PEER, MY_LIFE, b"", OtherFingerprint(251, text, answer=True))
    assert ConfigMismatch(PEER, "T_l", "1.0", "") in bench.host.emitted


def test_a_type_without_owner_is_counted() -> None:
    """Foundation 3: the node counts what it drops."""
    host = FakeHost("a", 5)
    node = Node(host, lambda *_: None)
    node.start()
    node.receive(THERE, PEER, MY_LIFE, b"", Word(1))
    assert node.drops == {Drop.NO_OWNER: 1}


def test_no_callback_reaches_more_than_64_peers() -> None:
    """F17: the 65th peer is refused and counted; several messages to one peer are fine; the next callback starts anew."""
    bench = Bench()
    peers = [NodeId(f"p{i}", 1) for i in range(FANOUT_MAX + 1)]
    for peer in peers:
        bench.node.meet(peer, Address(peer.name, 1))
    for peer in peers:
        bench.node.send(peer, Word(1))
        bench.node.send(peers[0], Word(2))
    assert len({packet.address for packet in bench.take()}) == FANOUT_MAX
    assert bench.node.drops[Drop.FANOUT] == 1
    bench.node.begin_turn()
    bench.node.send(peers[-1], Word(3))
    assert len(bench.take()) == 1


def test_a_message_to_nowhere_is_counted() -> None:
    """Host.send never raises: a life that nobody told us of has no address."""
    bench = Bench()
    bench.node.send(PEER, Word(1))
    assert bench.node.drops == {Drop.NO_ADDRESS: 1}


def test_a_name_that_looks_like_an_address_diverts_nothing() -> None:
    """A peer chooses its name and boot: as tuples they may equal somebody's address, and must not be taken for it."""
    bench = Bench()
    bench.node.meet(NodeId("10.0.0.1", 7946), Address("evil", 1))
    bench.node.send(Address("10.0.0.1", 7946), Hello("x"))
    assert [packet.address for packet in bench.take()] == [Address("10.0.0.1", 7946)]


def test_a_stopped_node_hears_nothing() -> None:
    """What arrives after ``stop`` reaches no machine, also by a pass that was given out before."""
    bench = Bench()
    bench.node.receive(THERE, PEER, MY_LIFE, b"", Word(1))
    handlers = bench.node.admits(THERE, PEER, {})
    assert handlers[Word] == bench.listener.on_message
    bench.node.stop()
    bench.node.receive(THERE, PEER, MY_LIFE, b"", Word(2))
    assert bench.listener.heard == [(PEER, Word(1))]
    assert handlers == {}
    assert bench.node.admits(THERE, PEER, {}) == {}


def test_a_pass_is_given_only_for_what_receive_would_hand_on() -> None:
    """``admits`` is ``receive`` asked in advance: known sender, known address, same numbers."""
    bench = Bench(fingerprint(T_l=1.0))
    digests = bench.node.digests
    assert bench.node.admits(THERE, PEER, digests) == {}
    bench.node.receive(THERE, PEER, MY_LIFE, digests[Word], Word(1))
    assert set(bench.node.admits(THERE, PEER, digests)) == {Hello, Word, WrongLife, OtherFingerprint}
    assert set(bench.node.admits(THERE, PEER, {})) == {WrongLife, OtherFingerprint}
    assert bench.node.admits(Address("b", 2), PEER, digests) == {}


def test_after_a_pause_every_machine_is_told() -> None:
    """F10 (1): on_away to every machine, and the user hears of it."""
    bench = Bench()
    bench.node.on_away(2.5)
    assert bench.listener.calls == ["start", "away 2.5"]
    assert bench.host.emitted == [Paused(2.5)]


def test_each_type_has_one_owner_and_each_interface_one_machine() -> None:
    """Foundation 3: two owners of a type, or an interface nobody or several offer, are bugs."""
    node = Node(FakeHost("a", 5), lambda *_: None)
    first = Listener()
    node.add(first)
    assert node.use(Listener) is first
    with pytest.raises(AssertionError, match="already has an owner"):
        node.add(Listener())
    node.add(Listener(handles=()))
    with pytest.raises(AssertionError, match="2 machines offer Listener"):
        node.use(Listener)


def test_every_table_has_a_limit() -> None:
    """F17: addresses, lives, greetings and reported peers are bounded; the oldest goes first."""
    bench = Bench(fingerprint(T_l=1.0))
    for i in range(PEERS_MAX + 10):
        peer, address = NodeId(f"p{i}", 1), Address(f"p{i}", 1)
        bench.node.receive(address, peer, MY_LIFE, b"", WrongLife(0))
        bench.node.receive(address, peer, MY_LIFE, b"otherone", Word(1))
        bench.node.receive(address, peer, MY_LIFE, b"", OtherFingerprint(251, b"T_l=2.0", answer=True))
    assert max(len(table) for table in vars(bench.node).values() if isinstance(table, dict)) == PEERS_MAX
    assert bench.node.address_of(NodeId("p0", 1)) is None
    assert bench.node.address_of(NodeId(f"p{PEERS_MAX + 9}", 1)) is not None
    for i in range(GREETED_MAX + 1):
        for text in range(GREETINGS_MAX + 1):
            bench.node.send(Address(f"g{i}", 1), Hello(str(text)))
    bench.take()
    bench.node.receive(Address("g0", 1), NodeId("g0", 1), MY_LIFE, b"", WrongLife(0))
    assert bench.take() == []
    bench.node.receive(Address("g1", 1), NodeId("g1", 1), MY_LIFE, b"", WrongLife(0))
    assert [packet.message for packet in bench.take()] == [Hello(str(text)) for text in range(1, GREETINGS_MAX + 1)]


def test_a_lower_boot_is_believed_when_it_was_asked_for_the_higher() -> None:
    """F3, F5: a late word of a former life changes nothing; a process whose clock went back is found all the same."""
    bench = Bench()
    for life, asked in [(NodeId("p", 9), 0), (NodeId("p", 4), 0), (NodeId("p", 3), life_of(NodeId("p", 4)))]:
        bench.node.receive(THERE, life, MY_LIFE, b"", WrongLife(asked))
    bench.take()
    bench.node.send(THERE, Hello("who is there?"))
    assert [packet.life for packet in bench.take()] == [life_of(NodeId("p", 9))]
    bench.node.receive(THERE, NodeId("p", 4), MY_LIFE, b"", WrongLife(life_of(NodeId("p", 9))))
    assert [packet.life for packet in bench.take()] == [life_of(NodeId("p", 4))]


def test_nobody_else_has_our_name_in_the_address_book() -> None:
    """F1, F5: word of another life of our own name is no reason to send to it."""
    bench = Bench()
    bench.node.meet(NodeId("a", 9), THERE)
    assert bench.node.address_of(NodeId("a", 9)) is None


def test_two_of_one_name_can_settle_whose_it_is() -> None:
    """F5: a starting agent asks whoever has its name, by address; that one is greeted, found, and can answer."""
    former, latter = Bench(), Bench(me=NodeId("a", 9))
    latter.host.address = THERE
    latter.node.send(former.host.address, Hello("whose name is it?"))
    _exchange(former, latter)
    assert former.listener.heard == [(NodeId("a", 9), Hello("whose name is it?"))]
    former.node.send(NodeId("a", 9), Hello("mine"))
    _exchange(former, latter)
    assert latter.listener.heard[-1] == (former.host.me, Hello("mine"))


def _exchange(*benches: Bench) -> None:
    """Carry packets until nobody has anything to say."""
    by_address = {bench.host.address: bench for bench in benches}
    under_way = True
    while under_way:
        under_way = False
        for bench in benches:
            for packet in bench.take():
                under_way = True
                target = by_address[packet.address]
                target.node.receive(bench.host.address, bench.host.me, packet.life, packet.fingerprint, packet.message)
