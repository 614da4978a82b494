"""A restarted receiver cannot be fed recorded traffic.  Spec: foundation F3; docs/wire.md."""

from __future__ import annotations

import copy
from collections.abc import Callable
from random import Random

from fuzz.messages import TYPES, Discover, draw
from fuzz.receiver import Receiver
from holdfast.drops import Drop
from holdfast.host import Address, NodeId
from holdfast.node import life_of
from holdfast.wire import Channel, Codec, Key, Keyring, Plain, Sealed

RECORDED = 10_000
RING = Keyring(Key(b"k" * 32))
NAME, HERE = "target", Address("target", 1)
PEERS = 5
ROUNDS_MAX = 2 * RECORDED  # each round sends to the target at least once


class Group:
    """A target and its peers on a network that delivers at once, in order, and records what the target is sent."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.recorded: list[tuple[Address | None, bytes, Channel]] = []
        self.waiting: list[tuple[Address, Address, bytes, Channel]] = []  # from, to
        self.target = self.life(NAME, HERE, boot=100)
        self.peers: dict[Address, Receiver] = {}
        for number in range(PEERS):
            address = Address(f"peer-{number}", 1)
            self.peers[address] = self.life(address.host, address, boot=1)

    @property
    def datagrams(self) -> int:
        return sum(channel is Channel.DATAGRAM for _, _, channel in self.recorded)

    def life(self, name: str, address: Address, *, boot: int) -> Receiver:
        sealer = Sealed("orders", RING, run_id=self.random.randbytes(16))
        return Receiver(NodeId(name, boot), address, TYPES, sealer, self._carry_from(address))

    def round(self) -> None:
        """A peer greets the target and talks to it; now and then one restarts, or is greeted and answers."""
        address, peer = self.random.choice(list(self.peers.items()))
        if self.random.random() < 0.05:
            peer = self.peers[address] = self.life(peer.me.name, address, boot=peer.me.boot + 1)
        if self.random.random() < 0.2:
            peer.send(HERE, Discover(self.random.getrandbits(32), address))
        peer.meet(self.target.me, HERE)
        peer.send(self.target.me, draw(self.random))
        if self.random.random() < 0.1:
            self.target.send(address, Discover(self.random.getrandbits(32), HERE))
        self._deliver_all()

    def _deliver_all(self) -> None:
        while self.waiting:
            source, to, sealed, channel = self.waiting.pop(0)
            seen_from = source if channel is Channel.DATAGRAM else None
            if to == HERE:
                self.recorded.append((seen_from, sealed, channel))
            (self.target if to == HERE else self.peers[to]).deliver(seen_from, sealed, channel)

    def _carry_from(self, source: Address) -> Callable[[Address, bytes, Channel], None]:
        return lambda to, sealed, channel: self.waiting.append((source, to, sealed, channel))


def record() -> Group:
    """At least 10,000 datagrams to one life of the target, and the stream frames between them."""
    group = Group(seed=3)
    for number in range(ROUNDS_MAX):
        if number % 100 == 0 and group.datagrams >= RECORDED:
            break
        group.round()
    assert group.datagrams >= RECORDED
    return group


def replay(group: Group, receiver: Receiver) -> None:
    for source, sealed, channel in group.recorded:
        receiver.deliver(source, sealed, channel)


def state(receiver: Receiver) -> dict[str, object]:
    """Everything a node knows, apart from what it counted."""
    kept = {key: value for key, value in vars(receiver.node).items() if isinstance(value, dict | set | list) and key != "drops"}
    return copy.deepcopy({key: value for key, value in kept.items() if key not in {"_machines", "_routes"}})


def test_recorded_traffic_changes_nothing_in_the_next_life() -> None:
    """F3: 10,000 recorded datagrams, greetings among them, replayed to a new life: counters move and nothing else."""
    group = record()
    first, recorded = group.target, len(group.recorded)
    assert len(first.keeper.told) > recorded / 2, "the recording is of traffic that was believed once"
    assert first.drops[Drop.UNBOUND] > 100, "greetings to whoever is there are in it"
    second = group.life(NAME, HERE, boot=first.me.boot + 1)
    before = state(second)
    replay(group, second)
    assert second.keeper.told == []
    assert second.events == []
    assert state(second) == before
    assert set(second.drops) == {Drop.WRONG_LIFE, Drop.UNBOUND}
    assert second.drops.total() == recorded
    replay(group, second)
    assert second.drops[Drop.REPLAYED] == recorded


def test_only_the_boot_stands_between_a_recording_and_the_next_life() -> None:
    """The test above can fail: a life that took the boot of the one before believes all that was recorded."""
    group = record()
    again = group.life(NAME, HERE, boot=group.target.me.boot)
    replay(group, again)
    assert again.keeper.told == group.target.keeper.told


def test_the_names_a_node_gives() -> None:
    """F3, F4: wrong life, unbound, not a greeting, wrong fingerprint, no owner: each under its own name."""
    target = Receiver(NodeId(NAME, 100), HERE, TYPES, Plain("orders"), lambda address, sealed, channel: None)
    random, peer = Random(1), NodeId("peer", 1)
    codec = Codec(target.node.types)
    talk = next(message for message in iter(lambda: draw(random), None) if type(message) in TYPES and not message.greeting)
    for to_life, message in ((life_of(NodeId(NAME, 99)), talk), (0, Discover(1, HERE)), (0, talk), (life_of(target.me), talk)):
        target.deliver(HERE, Plain("orders").seal(codec.encode(peer, to_life, b"", message)))
    assert target.drops == {Drop.WRONG_LIFE: 1, Drop.UNBOUND: 1, Drop.NOT_A_GREETING: 1, Drop.WRONG_FINGERPRINT: 1}
    assert target.keeper.told == []


def test_a_message_redirected_to_another_name_with_the_same_boot_is_not_believed() -> None:
    """F3: a life is name and boot; two processes that started in the same millisecond share only one of them."""
    keyring = Keyring(Key(Random(3).randbytes(32)))
    told = Receiver(NodeId("b", 100), HERE, TYPES, Sealed("orders", keyring, run_id=bytes(15) + b"b"), lambda *_: None)
    other = Receiver(NodeId("c", 100), HERE, TYPES, Sealed("orders", keyring, run_id=bytes(15) + b"c"), lambda *_: None)
    sender, codec = Sealed("orders", keyring, run_id=bytes(15) + b"a"), Codec(told.node.types)
    random = Random(1)
    talk = next(message for message in iter(lambda: draw(random), None) if type(message) in TYPES and not message.greeting)
    datagram = sender.seal(codec.encode(NodeId("a", 100), life_of(told.me), told.node.digests[type(talk)], talk))
    for receiver in (told, other):
        receiver.deliver(HERE, datagram)
    assert len(told.keeper.told) == 1
    assert other.keeper.told == []
    assert other.drops == {Drop.WRONG_LIFE: 1}
