"""A peer that has the group's key and says what no agent would: sealed datagrams and streams of its own, from a loopback address.

with Liar(key, "group", NodeId("s1", 7), port) as liar:
ping = liar.hear(LinkPing)
liar.say(agent, LinkPong(ping.seq, 1, ()))
"""

from __future__ import annotations

import socket
from contextlib import suppress
from types import TracebackType
from typing import Self, TypeVar

import msgspec

from holdfast.drops import Rejected
from holdfast.features.views.protocol.messages import TYPES
from holdfast.host import DATAGRAM_BYTES_MAX, MESSAGE_BYTES_MAX, Address, Message, NodeId
from holdfast.node import life_of
from holdfast.wire import Channel, Codec, Sealed
from holdfast.wire.frame import LENGTH_BYTES
from holdfast.wire.keys import Keyring, parse_key
from tests.agent.raw_client import now

M = TypeVar("M", bound=Message)

LOOPBACK = "127.0.0.1"
WAIT = 30.0  # seconds; only a broken agent or a broken machine reaches it


class Liar:
    """One life of a peer, as far as the messages of views go."""

    def __init__(self, key: str, group: str, me: NodeId, port: int) -> None:
        self.me = me
        self.digest = b""  # of what the agent counts with (F4): ``hear`` takes it from the agent's own messages
        self._seal = Sealed(group, Keyring(parse_key(key)))
        self._open = Sealed(group, Keyring(parse_key(key)))
        self._codec = Codec(TYPES)
        self._udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._udp.bind((LOOPBACK, port))
        self._udp.settimeout(WAIT)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._udp.close()

    def hear(self, kind: type[M]) -> M:
        """The next message of that type. What else arrives is not for this part."""
        end_at = now() + WAIT
        while now() < end_at:
            data, _ = self._udp.recvfrom(DATAGRAM_BYTES_MAX)
            with suppress(Rejected):
                envelope = self._codec.decode(self._open.open(data, Channel.DATAGRAM))
                if isinstance(envelope.message, kind):
                    self.digest = envelope.fingerprint
                    return envelope.message
        raise AssertionError(f"no {kind.__name__} came")

    def say(self, agent: NodeId, to: Address, message: Message) -> None:
        """Nothing is checked here. What is larger than any message goes unsealed: its reader must not come so far."""
        payload = msgspec.msgpack.encode((self.me, life_of(agent), self.digest, message))
        if len(payload) + self._seal.overhead <= DATAGRAM_BYTES_MAX:
            self._udp.sendto(self._seal.seal(payload, Channel.DATAGRAM), to)
            return
        fits = len(payload) + self._seal.overhead <= MESSAGE_BYTES_MAX
        sealed = self._seal.seal(payload, Channel.STREAM) if fits else payload
        with socket.create_connection(to, WAIT) as stream, suppress(ConnectionError):  # An agent that has read enough ends it.
            stream.sendall(len(sealed).to_bytes(LENGTH_BYTES, "big") + sealed)
