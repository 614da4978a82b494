"""Fuzz target of the wire: ``python -m fuzz.wire --inputs N --seed S``.

Every input goes the whole way: frame reader or datagram, open, decode, ``Node.receive``, a machine. Random bytes die at the
tag check and prove nothing, so most inputs are messages that were taken apart and sealed again with the right key: some of
samples (``messages``), some of every type that ships, made from its annotations (``shapes``). Allowed are a counted drop and
a handled message that can be encoded again; anything else ends the run with exit code 1, the seed and the input. The same
seed gives the same inputs and the same table.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from random import Random
from typing import Any, TextIO

import msgspec

from fuzz.messages import TYPES, Span, draw
from fuzz.mutate import mangle, mutate, write
from fuzz.receiver import WALL, Receiver
from fuzz.shapes import Harvest, Shapes
from fuzz.shipped import tagged_types
from holdfast.drops import Rejected
from holdfast.host import DATAGRAM_BYTES_MAX, MESSAGE_BYTES_MAX, Address, Message, NodeId
from holdfast.node import OtherFingerprint, WrongLife, life_of
from holdfast.wire import Channel, Codec, FrameReader, Key, Keyring, Plain, Sealed, Sealer, frame

GROUP = "fuzz"
ME = NodeId("receiver", 7)
MY_LIFE, FORMER_LIFE = life_of(ME), life_of(NodeId("receiver", 6))
HERE = Address("receiver", 1)
PEERS = 50  # names and addresses that inputs come from
NAMES = (*(f"peer-{number}" for number in range(PEERS)), ME.name)  # other lives of the receiver's name speak too
OWN_SHARE = 0.01  # of what the receiver said itself, sent back to it
PROGRESS_INPUTS = 50_000
CPU_SECONDS_MAX = 1.0  # for one input of at most 1 MiB; a hundred times what the slowest honest one needs
PAYLOAD_BYTES_MAX = DATAGRAM_BYTES_MAX - Sealed.overhead
STREAM_BYTES_MAX = MESSAGE_BYTES_MAX - Sealed.overhead
SHIPPED_SHARE = 0.3  # of the messages that are taken apart
OF_THE_NODE = (WrongLife, OtherFingerprint)  # it answers these itself, without a machine


class Misbehaved(Exception):
    """Something other than a counted drop or a handled message came out."""


class Target:
    """A receiver per way of sealing, senders with the right keys and without, and what became of each input."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.outcomes: Counter[str] = Counter()
        self.input = b""
        first, second, foreign = (Key(self.random.randbytes(32)) for _ in range(3))
        keyring = Keyring(first, second)
        self.shipped = [kind for kind in tagged_types() if kind not in OF_THE_NODE]
        self.handled: Counter[type[Message]] = Counter()
        self._harvest = Harvest()
        self._shapes = Shapes(self.random, self._harvest, lambda: WALL)
        types = (*TYPES, *self.shipped)
        self.sealed = Receiver(ME, HERE, types, self._sealer(GROUP, keyring), _nowhere)
        self.plain = Receiver(ME, HERE, types, Plain(GROUP), _nowhere)
        self.codec = Codec(self.sealed.node.types)
        self.fingerprint = _fingerprint()
        self.friends = [self._sealer(GROUP, ring) for ring in (keyring, keyring, keyring.use(second.id))]
        unkeyed: list[Sealer] = [Plain(GROUP), Plain("other")]
        self.strangers = [self._sealer(GROUP, Keyring(foreign)), self._sealer("other", keyring), *unkeyed]
        self.last_sent = self._seal(self._payload())

    def one(self) -> None:
        """One input. Raises ``Misbehaved``, or whatever the code under test raises."""
        (produce,) = self.random.choices(_WAYS, cum_weights=_CUMULATED)
        produce(self)

    def random_bytes(self) -> None:
        data = self.random.randbytes(self.random.choice((0, 1, 5, 6, 33, 34, 49, 50, 51, 180, 1200, 1201, 1500)))
        header = self._seal(b"")[: self.random.randrange(51)]  # half a header gets further than none
        self._deliver(self.sealed, self.random.choice((data, header + data)))

    def mutated_datagram(self) -> None:
        self._deliver(self.sealed, mangle(self._seal(self._payload()), self.random))

    def strange_sender(self) -> None:
        self._deliver(self.sealed, self.random.choice(self.strangers).seal(self._payload()))

    def replayed(self) -> None:
        self._deliver(self.sealed, self.last_sent)

    def wrong_channel(self) -> None:
        self._deliver(self.sealed, self._seal(self._payload(), Channel.STREAM))

    def valid_message(self) -> None:
        self._send(self._payload())

    def shipped_message(self, kind: type[Message] | None = None) -> None:
        """Of a type that ships: mostly values that it allows, extreme ones and ones that were handled before."""
        self._send(self._shipped_payload(self.random.choice(self.shipped) if kind is None else kind)[:STREAM_BYTES_MAX])

    def mutated_message(self) -> None:
        """The majority: right outside, wrong inside."""
        self._send(self._mutated_payload())

    def mutated_plain_message(self) -> None:
        data = Plain(GROUP).seal(self._mutated_payload(), Channel.STREAM)
        self._deliver(self.plain, data, Channel.DATAGRAM if len(data) <= DATAGRAM_BYTES_MAX else Channel.STREAM)

    def stream(self) -> None:
        """A few frames; some streams are damaged, their lengths included."""
        frames = (frame(self._seal(self._payload(), Channel.STREAM)) for _ in range(self.random.randrange(1, 4)))
        data = b"".join(frames)
        self._feed(mangle(data, self.random) if self.random.random() < 0.5 else data)

    def _payload(self) -> bytes:
        """A message to the right life with the right fingerprint, nearly always; it fits a datagram."""
        message = draw(self.random)
        payload = self._enveloped(type(message), message)
        return payload if len(payload) <= PAYLOAD_BYTES_MAX else self._payload()

    def _shipped_payload(self, kind: type[Message]) -> bytes:
        return self._enveloped(kind, self._shapes.message(kind))

    def _enveloped(self, kind: type[Message], body: Any) -> bytes:
        """Whoever says it, to the right life with the right fingerprint, nearly always."""
        random = self.random
        sender = ME if random.random() < OWN_SHARE else NodeId(random.choice(NAMES), random.choice((1, 2, ME.boot, 9)))
        (life,) = random.choices((MY_LIFE, 0, FORMER_LIFE, (1 << 53) - 1), cum_weights=(90, 95, 98, 100))
        right = b"" if kind in OF_THE_NODE else self.fingerprint
        return msgspec.msgpack.encode((sender, life, right if random.random() < 0.95 else random.randbytes(8), body))

    def _mutated_payload(self) -> bytes:
        random = self.random
        shipped = random.random() < SHIPPED_SHARE
        payload = self._shipped_payload(random.choice(self.shipped)) if shipped else self._payload()
        payload = write(mutate(msgspec.msgpack.decode(payload), random))
        if random.random() < 0.1:
            payload = mangle(payload, random)
        return payload[:STREAM_BYTES_MAX]

    def _sealer(self, group: str, keyring: Keyring) -> Sealed:
        return Sealed(group, keyring, run_id=self.random.randbytes(16))

    def _seal(self, payload: bytes, channel: Channel = Channel.DATAGRAM) -> bytes:
        return self.random.choice(self.friends).seal(payload, channel)

    def _send(self, payload: bytes) -> None:
        if len(payload) > PAYLOAD_BYTES_MAX:
            self._feed(frame(self._seal(payload, Channel.STREAM)))
            return
        self.last_sent = self._seal(payload)
        self._deliver(self.sealed, self.last_sent)

    def _feed(self, data: bytes) -> None:
        reader, at, came = FrameReader(), 0, 0
        while at < len(data):
            step = self.random.choice((1, 3, 40, 1500, 65536))
            self.input = data
            try:
                frames = reader.feed(data[at : at + step])
            except Rejected as rejected:
                self.outcomes[rejected.why.value] += 1
                return
            for sealed in frames:
                self._deliver(self.sealed, sealed, Channel.STREAM)
            at, came = at + step, came + len(frames)
        if came == 0:
            self.outcomes["(stream waits for more)"] += 1

    def _deliver(self, receiver: Receiver, data: bytes, channel: Channel = Channel.DATAGRAM) -> None:
        self.input = data
        source = Address(f"peer-{self.random.randrange(PEERS)}", 1) if channel is Channel.DATAGRAM else None
        became = receiver.deliver(source, data, channel)
        told, dropped = receiver.take()
        if len(told) + len(dropped) > 1:
            raise Misbehaved(f"{len(dropped)} drops and {len(told)} messages from one input")
        if told:
            self._check_handled(*told[0])
        elif dropped:
            self.outcomes[dropped[0].value] += 1
        elif isinstance(became, WrongLife | OtherFingerprint):
            self.outcomes["(handled by the node)"] += 1
        else:
            raise Misbehaved(f"neither dropped nor handled: {became!r}")

    def _check_handled(self, source: NodeId, message: Message) -> None:
        """What a machine was given is made of what its types say: it survives the way there and back unchanged."""
        there = self.codec.encode(source, MY_LIFE, b"", message)
        again = self.codec.encode(source, MY_LIFE, b"", self.codec.decode(there).message)
        if again != there:
            raise Misbehaved(f"does not survive its own encoding: {message!r}")
        self.outcomes["(handled by the machine)"] += 1
        self.handled[type(message)] += 1
        if type(message) not in TYPES:
            self._harvest.note(message)


_WEIGHTS: dict[Callable[[Target], None], int] = {
    Target.mutated_message: 50,
    Target.mutated_plain_message: 10,
    Target.mutated_datagram: 8,
    Target.shipped_message: 10,
    Target.random_bytes: 6,
    Target.stream: 6,
    Target.valid_message: 4,
    Target.strange_sender: 2,
    Target.replayed: 2,
    Target.wrong_channel: 2,
}
_WAYS = tuple(_WEIGHTS)
_CUMULATED = tuple(sum(list(_WEIGHTS.values())[: i + 1]) for i in range(len(_WEIGHTS)))


def run(inputs: int, seed: int, *, progress: TextIO | None = None) -> Counter[str]:
    """Feed so many inputs. Raises ``Misbehaved`` that names the input, or returns what became of all of them."""
    target = Target(seed)
    for number in range(inputs):
        began_at = time.process_time()
        try:
            target.one()
            if time.process_time() - began_at > CPU_SECONDS_MAX:
                raise Misbehaved(f"took more than {CPU_SECONDS_MAX} s")
        except Exception as error:
            raise Misbehaved(f"seed {seed}, input {number}: {error!r}\n{target.input.hex()}") from error
        if progress is not None and (number + 1) % PROGRESS_INPUTS == 0:
            progress.write(f"{number + 1} of {inputs} inputs\n")
            progress.flush()
    return target.outcomes


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m fuzz.wire", description="Feed hostile messages to the wire, a node and a machine.")
    parser.add_argument("--inputs", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    try:
        outcomes = run(options.inputs, options.seed, progress=sys.stderr)
    except Misbehaved as failure:
        sys.stdout.write(f"FAILED: {failure}\n")
        return 1
    lines = [f"{count:>9}  {outcome}" for outcome, count in sorted(outcomes.items())]
    sys.stdout.write(
        "\n".join((f"{options.inputs} inputs, seed {options.seed}: nothing but counted drops and handled messages", *lines, ""))
    )
    return 0


def _nowhere(address: Address, data: bytes, channel: Channel) -> None:
    """Answers are encoded and sealed, which must not fail, and then lost."""


def _fingerprint() -> bytes:
    """What a peer with the same settings writes into its envelopes."""
    sent: list[bytes] = []
    peer = Receiver(NodeId("peer", 1), Address("peer", 1), TYPES, Plain(GROUP), lambda address, data, channel: sent.append(data))
    peer.meet(ME, HERE)
    peer.send(ME, Span(1, 2))
    return peer.codec.decode(peer.sealer.open(sent[0])).fingerprint


if __name__ == "__main__":
    sys.exit(main())
