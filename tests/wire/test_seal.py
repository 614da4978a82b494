"""Sealing: the layout that docs/wire.md promises, what each part of it protects, and what every refusal is called."""

from __future__ import annotations

from hashlib import blake2b

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from hypothesis import given
from hypothesis import strategies as st

from holdfast.drops import Drop, Rejected
from holdfast.errors import ConfigError
from holdfast.host import DATAGRAM_BYTES_MAX, MESSAGE_BYTES_MAX
from holdfast.wire import Channel, Key, Keyring, Plain, Sealed, Sealer, seal

SECRET = bytes(range(32))
KEY, OTHER_KEY = Key(SECRET), Key(b"o" * 32)
RING = Keyring(KEY)
RUN_ID = bytes(range(100, 116))
# From Sealed("orders", RING, run_id=RUN_ID).seal(b"hello"). If this changes, running groups stop talking: raise the version.
GOLDEN = bytes.fromhex("0101c3aef9f4f6ffe30c6465666768696a6b6c6d6e6f70717273000000000000000123bc73b512d6899894f7ca3e3ca76cd84d451ca02c")


def orders() -> Sealed:
    return Sealed("orders", RING)


def why(sealer: Sealer, data: bytes, channel: Channel = Channel.DATAGRAM) -> Drop:
    with pytest.raises(Rejected) as rejected:
        sealer.open(data, channel)
    return rejected.value.why


def flipped(data: bytes, at: int, mask: int = 0x80) -> bytes:
    return data[:at] + bytes([data[at] ^ mask]) + data[at + 1 :]


@given(st.binary(max_size=DATAGRAM_BYTES_MAX - 50), st.sampled_from(Channel))
def test_what_is_sealed_is_opened(payload: bytes, channel: Channel) -> None:
    """docs/wire.md: both sealers give back what they were given and add exactly their overhead."""
    pairs: list[tuple[Sealer, Sealer]] = [(orders(), orders()), (Plain("orders"), Plain("orders"))]
    for sender, receiver in pairs:
        data = sender.seal(payload, channel)
        assert len(data) == len(payload) + sender.overhead
        assert receiver.open(memoryview(bytearray(data)), channel) == payload


def test_the_golden_datagram() -> None:
    """Given run id, key and counter, sealing is a function: the lab is deterministic to the byte, releases understand each other."""
    assert Sealed("orders", RING, run_id=RUN_ID).seal(b"hello") == GOLDEN
    assert orders().open(GOLDEN) == b"hello"
    assert Plain("orders").seal(b"hello") == bytes.fromhex("0100c3aef9f4") + b"hello"


def test_a_second_reader_of_the_documentation() -> None:
    """docs/wire.md says enough to open a datagram without our code."""
    header, sealed = GOLDEN[:34], GOLDEN[34:]
    assert header[:2] == b"\x01\x01"
    assert header[2:6] == blake2b(b"orders", digest_size=4, person=b"holdfast group").digest()
    assert header[6:10] == blake2b(SECRET, digest_size=4, person=b"holdfast key id").digest()
    run_key = HKDF(SHA256(), 32, salt=header[10:26], info=b"holdfast wire 1 run key\0orders").derive(SECRET)
    assert AESGCM(run_key).decrypt(bytes(4) + header[26:34], sealed, header + b"\x00" + b"orders") == b"hello"


def test_no_nonce_is_used_twice() -> None:
    """AES-GCM breaks with its first repeated nonce: counters only grow over channels and keys, run ids are drawn."""
    sender = Sealed("orders", RING.add(OTHER_KEY))
    headers = []
    for step in range(60):
        if step % 20 == 19:
            sender.rekey(sender.keyring.use((OTHER_KEY, KEY)[step // 20 % 2].id))
        headers.append(sender.seal(b"x", Channel(step % 2))[:34])
    assert [int.from_bytes(header[26:], "big") for header in headers] == list(range(1, 61))
    assert len({orders().seal(b"")[10:26] for _ in range(50)}) == 50


def test_the_counter_does_not_wrap() -> None:
    """Only a bug, or five hundred thousand years, gets there; then the sender stops instead of repeating a nonce."""
    sender = orders()
    sender._counter = seal.COUNTER_MAX - 1
    assert orders().open(sender.seal(b"last")) == b"last"
    with pytest.raises(AssertionError):
        sender.seal(b"one more")


def test_header_flips_are_called_by_what_they_hit() -> None:
    """Every bit of the header decides something, and is refused under that name."""
    data = orders().seal(b"payload")
    names = {0: Drop.UNKNOWN_VERSION, 1: Drop.UNKNOWN_VERSION, **dict.fromkeys(range(2, 6), Drop.WRONG_GROUP)}
    names |= dict.fromkeys(range(6, 10), Drop.WRONG_KEY) | dict.fromkeys(range(10, len(data)), Drop.FORGED)
    for at in range(len(data)):
        for bit in range(1, 8):
            assert why(orders(), flipped(data, at, 1 << bit)) is names[at]
    known = orders()
    known.open(data)  # the same for a run that was met before, whose header is not looked at field by field
    for at in range(len(data)):
        assert why(known, flipped(data, at)) is names[at]


def test_truncated() -> None:
    """What is shorter than any sealed message was cut; what is longer and cut fails its tag."""
    data = orders().seal(b"payload")
    known = orders()
    known.open(data)
    for receiver in (orders(), known):
        assert {why(receiver, data[:size]) for size in range(50)} == {Drop.TRUNCATED}
        assert {why(receiver, data[:size]) for size in range(50, len(data))} == {Drop.FORGED}


def test_oversized() -> None:
    """Foundation 3: 1200 sealed bytes in a datagram, 1 MiB in a frame; the limits themselves are allowed."""
    sender = orders()
    for channel, limit in ((Channel.DATAGRAM, DATAGRAM_BYTES_MAX), (Channel.STREAM, MESSAGE_BYTES_MAX)):
        for sealer in (sender, Plain("orders")):
            largest = sealer.seal(bytes(limit - sealer.overhead), channel)
            assert len(largest) == limit
            assert len(sealer.open(largest, channel)) == limit - sealer.overhead
            assert why(sealer, largest + b"!", channel) is Drop.OVERSIZED
            with pytest.raises(AssertionError):
                sealer.seal(bytes(limit - sealer.overhead + 1), channel)


def test_unknown_version() -> None:
    """A later release is refused by name, however short its header is."""
    assert why(orders(), b"\x02") is Drop.UNKNOWN_VERSION
    assert why(Plain("orders"), b"\x02") is Drop.UNKNOWN_VERSION
    assert why(orders(), b"\x01\x02" + GOLDEN[2:]) is Drop.UNKNOWN_VERSION


def test_plaintext_where_the_group_seals() -> None:
    """Plaintext only when asked for by name; short or long."""
    assert why(orders(), Plain("orders").seal(b"")) is Drop.PLAINTEXT
    assert why(orders(), Plain("orders").seal(bytes(100))) is Drop.PLAINTEXT


def test_sealed_where_the_group_speaks_plaintext() -> None:
    """The other way round has its own name."""
    assert why(Plain("orders"), orders().seal(b"x")) is Drop.SEALED


def test_wrong_group() -> None:
    """Two groups on one network, with the same key or none."""
    assert why(orders(), Sealed("billing", RING).seal(b"x")) is Drop.WRONG_GROUP
    assert why(Plain("orders"), Plain("billing").seal(b"x")) is Drop.WRONG_GROUP
    assert why(orders(), Plain("billing").seal(b"x")) is Drop.WRONG_GROUP


def test_groups_with_the_same_hint_stay_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """The hint has four bytes and may collide: the whole name is in the run key and in what the tag covers."""
    monkeypatch.setattr(seal, "group_hint", lambda group: b"same")
    assert why(orders(), Sealed("billing", RING).seal(b"x")) is Drop.FORGED
    monkeypatch.setattr(Key, "derive", lambda key, run_id, group: SECRET)  # ... in each of the two
    assert why(orders(), Sealed("billing", RING).seal(b"x")) is Drop.FORGED
    assert orders().open(orders().seal(b"x")) == b"x"


def test_wrong_key() -> None:
    """A key this keyring does not hold."""
    assert why(orders(), Sealed("orders", Keyring(OTHER_KEY)).seal(b"x")) is Drop.WRONG_KEY


def test_forged() -> None:
    """The right key id and the wrong key: made by somebody who saw a header."""
    data = bytearray(Sealed("orders", Keyring(OTHER_KEY)).seal(b"x"))
    data[6:10] = KEY.id
    assert why(orders(), bytes(data)) is Drop.FORGED


def test_replayed() -> None:
    """The same datagram, a second time."""
    receiver, data = orders(), orders().seal(b"x")
    assert receiver.open(data) == b"x"
    assert why(receiver, data) is Drop.REPLAYED


def test_channels_are_not_interchangeable() -> None:
    """A recorded datagram cannot be put into a stream, nor a frame into a datagram."""
    sender = orders()
    assert why(orders(), sender.seal(b"x"), Channel.STREAM) is Drop.FORGED
    assert why(orders(), sender.seal(b"x", Channel.STREAM)) is Drop.FORGED


@given(st.binary(max_size=80), st.binary(max_size=80))
def test_random_bytes_are_rejected(junk: bytes, tail: bytes) -> None:
    """Nothing but Rejected, with any number of right bytes in front."""
    receiver = orders()
    for data in (junk, GOLDEN[: len(junk)] + tail + b"!"):
        with pytest.raises(Rejected):
            receiver.open(data)


@pytest.mark.parametrize("group", ["", "x" * 65, "é" * 33, "a\nb", "\ud800"])
def test_groups_that_are_no_names(group: str) -> None:
    """A user's bad input names the field and what is accepted."""
    with pytest.raises(ConfigError, match=r"^group: .*accepted: 1 to 64 bytes"):
        Plain(group)
    with pytest.raises(ConfigError, match=r"^group: "):
        Sealed(group, RING)
