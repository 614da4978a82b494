"""Sealing: who may read a message, and whether it is what was sent.  docs/wire.md, "Header" and "Sealing".

    plain   version 1 | kind 0 | group hint (4) | payload
    sealed  version 1 | kind 1 | group hint (4) | key id (4) | run id (16) | counter (8) | AES-256-GCM(payload) | tag (16)

A run is one sealer: it draws a run id, derives its key from the group key with it, and counts. The nonce is the counter, so
it repeats only if a run id does. Datagrams and streams share run and counter; the channel is authenticated, not sent.
"""

from __future__ import annotations

from enum import IntEnum
from hashlib import blake2b
from secrets import token_bytes
from struct import Struct
from typing import TYPE_CHECKING, Protocol

from holdfast.drops import Drop, Rejected
from holdfast.errors import ConfigError, shown
from holdfast.host import DATAGRAM_BYTES_MAX, MESSAGE_BYTES_MAX
from holdfast.wire.keys import KEY_ID_BYTES, Keyring
from holdfast.wire.replay import Runs

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

VERSION = 1
KIND_PLAIN, KIND_SEALED = 0, 1
HINT_BYTES = 4
RUN_ID_BYTES = 16  # F3 needs it to be drawn, never chosen: two runs with one id would share key and nonces
COUNTER_BYTES = 8
COUNTER_MAX = (1 << 8 * COUNTER_BYTES) - 1
NONCE_BYTES = 12
TAG_BYTES = 16
GROUP_BYTES_MAX = 64

PLAIN_HEADER_BYTES = 2 + HINT_BYTES
KEY_ENDS_AT = PLAIN_HEADER_BYTES + KEY_ID_BYTES
RUN_ENDS_AT = KEY_ENDS_AT + RUN_ID_BYTES
SEALED_HEADER_BYTES = RUN_ENDS_AT + COUNTER_BYTES
SEALED_BYTES_MIN = SEALED_HEADER_BYTES + TAG_BYTES
_NONCE_PAD = bytes(NONCE_BYTES - COUNTER_BYTES)
_read_counter = Struct(">Q").unpack_from  # half the price of int.from_bytes on a slice

Buffer = bytes | bytearray | memoryview


class Channel(IntEnum):
    """How bytes travel. What was sealed for one channel does not open on the other."""

    DATAGRAM = 0
    STREAM = 1


BYTES_MAX = (DATAGRAM_BYTES_MAX, MESSAGE_BYTES_MAX)  # sealed, by channel


class Sealer(Protocol):
    """What a host puts between its codec and its sockets."""

    @property
    def overhead(self) -> int:
        """Bytes that sealing adds."""

    @property
    def openings(self) -> frozenset[bytes]:
        """How everything begins that can be ours, all of one length: whatever begins otherwise is refused before all else (H163)."""

    def why(self, data: bytes) -> Drop:
        """What to call it, if it begins otherwise."""

    def seal(self, payload: Buffer, channel: Channel = Channel.DATAGRAM) -> bytes: ...
    def open(self, data: Buffer, channel: Channel = Channel.DATAGRAM) -> bytes:
        """The payload; raises ``Rejected``, and nothing else, for what is not ours to read."""


class Sealed:
    """Everything encrypted and authenticated, nothing accepted twice."""

    overhead = SEALED_BYTES_MIN

    def __init__(self, group: str, keyring: Keyring, *, run_id: bytes | None = None) -> None:
        """``run_id`` is for the lab alone, which draws it from its seed; it must differ for every life of every node."""
        from cryptography.exceptions import InvalidTag  # the largest part of an agent with a key (6.5 MiB), and of no other
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        self._make_cipher, self._invalid_tag = AESGCM, InvalidTag
        self._group = group_bytes(group)
        self._hint = group_hint(self._group)
        self._run_id = token_bytes(RUN_ID_BYTES) if run_id is None else run_id
        assert len(self._run_id) == RUN_ID_BYTES
        self._bound = tuple(bytes([channel]) + self._group for channel in Channel)  # authenticated beside the header
        self._counter = 0
        self._runs = Runs(len(Channel))
        self._find_run, self._heard = self._runs.active.get, self._runs.active.move_to_end
        self.rekey(keyring)

    @property
    def keyring(self) -> Keyring:
        return self._keyring

    def rekey(self, keyring: Keyring) -> None:
        """Read and write with this keyring from now on. Run, counter and windows stay, so nothing becomes replayable."""
        self._keyring = keyring
        primary = keyring.primary
        self._prefix = bytes([VERSION, KIND_SEALED]) + self._hint + primary.id + self._run_id
        self._cipher = self._make_cipher(primary.derive(self._run_id, self._group))
        self.openings = frozenset(bytes([VERSION, KIND_SEALED]) + self._hint + key.id for key in keyring.keys)
        self._runs.drop_ciphers(lambda name: keyring.get(name[PLAIN_HEADER_BYTES:KEY_ENDS_AT]) is None)

    def seal(self, payload: Buffer, channel: Channel = Channel.DATAGRAM) -> bytes:
        counter = self._counter = self._counter + 1
        assert counter <= COUNTER_MAX
        assert len(payload) <= BYTES_MAX[channel] - SEALED_BYTES_MIN
        nonce = counter.to_bytes(NONCE_BYTES, "big")
        header = self._prefix + nonce[-COUNTER_BYTES:]
        return header + self._cipher.encrypt(nonce, payload, header + self._bound[channel])

    def open(self, data: Buffer, channel: Channel = Channel.DATAGRAM) -> bytes:
        if type(data) is not bytes:
            data = bytes(data)
        if not SEALED_BYTES_MIN <= len(data) <= BYTES_MAX[channel]:
            raise Rejected(Drop.OVERSIZED if len(data) > BYTES_MAX[channel] else self._why(data) or Drop.TRUNCATED)
        header = data[:SEALED_HEADER_BYTES]
        name = header[:RUN_ENDS_AT]
        # Version, kind, group and key are part of a run's name: for a run we know, one look-up has checked them all.
        run = self._find_run(name)
        cipher = self._derive(header) if run is None or run.cipher is None else run.cipher
        try:
            payload = cipher.decrypt(_NONCE_PAD + header[RUN_ENDS_AT:], data[SEALED_HEADER_BYTES:], header + self._bound[channel])
        except self._invalid_tag:
            raise Rejected(Drop.FORGED) from None
        if run is None:
            run = self._runs.admit(name)
        else:
            self._heard(name)
        if not run.windows[channel].accept(_read_counter(data, RUN_ENDS_AT)[0]):
            raise Rejected(Drop.REPLAYED)
        if run.cipher is None:
            self._runs.keep(run, cipher)
        return payload

    def _derive(self, header: bytes) -> AESGCM:
        """The cipher of a run we have none for. Nothing is kept yet: a sender without a key can make up a run per datagram."""
        why = self._why(header)
        if why is not None:
            raise Rejected(why)
        key = self._keyring.get(header[PLAIN_HEADER_BYTES:KEY_ENDS_AT])
        if key is None:
            raise Rejected(Drop.WRONG_KEY)
        return self._make_cipher(key.derive(header[KEY_ENDS_AT:RUN_ENDS_AT], self._group))

    def why(self, data: bytes) -> Drop:
        return self._why(data) or (Drop.TRUNCATED if len(data) < SEALED_BYTES_MIN else Drop.WRONG_KEY)

    def _why(self, data: bytes) -> Drop | None:
        return _why(data, KIND_SEALED, self._hint)


class Plain:
    """Nothing encrypted, nothing authenticated: for loopback, the lab and looking at packets. Only when asked for by name."""

    overhead = PLAIN_HEADER_BYTES

    def __init__(self, group: str) -> None:
        self._hint = group_hint(group_bytes(group))
        self._prefix = bytes([VERSION, KIND_PLAIN]) + self._hint
        self.openings = frozenset([self._prefix])

    def seal(self, payload: Buffer, channel: Channel = Channel.DATAGRAM) -> bytes:
        assert len(payload) <= BYTES_MAX[channel] - PLAIN_HEADER_BYTES
        return self._prefix + payload

    def open(self, data: Buffer, channel: Channel = Channel.DATAGRAM) -> bytes:
        if type(data) is not bytes:
            data = bytes(data)
        if len(data) > BYTES_MAX[channel]:
            raise Rejected(Drop.OVERSIZED)
        if data[:PLAIN_HEADER_BYTES] != self._prefix:
            raise Rejected(_why(data, KIND_PLAIN, self._hint) or Drop.MALFORMED)
        return data[PLAIN_HEADER_BYTES:]

    def why(self, data: bytes) -> Drop:
        return _why(data, KIND_PLAIN, self._hint) or Drop.MALFORMED


def group_bytes(group: str) -> bytes:
    """The group's name as it is authenticated; a user chose it, so it is checked here."""
    name = group.encode("utf-8", "replace")
    if not (group.isprintable() and 0 < len(name) <= GROUP_BYTES_MAX):
        raise ConfigError(f"group: {shown(group)} is no name; accepted: 1 to {GROUP_BYTES_MAX} bytes of printable text")
    return name


def group_hint(group: bytes) -> bytes:
    """Four bytes that tell groups apart which share a network. A hint: what decides is the name in the tag check."""
    return blake2b(group, digest_size=HINT_BYTES, person=b"holdfast group").digest()


def _why(data: bytes, kind: int, hint: bytes) -> Drop | None:
    """What is wrong with a header, the most telling name first; None if it is one of ours as far as it goes."""
    if not data:
        return Drop.TRUNCATED
    if data[0] != VERSION:
        return Drop.UNKNOWN_VERSION
    if len(data) < PLAIN_HEADER_BYTES:
        return Drop.TRUNCATED
    if data[1] not in {KIND_PLAIN, KIND_SEALED}:
        return Drop.UNKNOWN_VERSION  # A later Holdfast may seal in another way.
    if data[2:PLAIN_HEADER_BYTES] != hint:
        return Drop.WRONG_GROUP
    if data[1] != kind:
        return Drop.PLAINTEXT if data[1] == KIND_PLAIN else Drop.SEALED
    return None
