"""A datagram changed on the way is refused, in whatever way it was changed."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from fuzz.messages import TYPES
from holdfast.drops import Rejected
from holdfast.host import Message, NodeId
from holdfast.node import OtherFingerprint, WrongLife
from holdfast.wire import Channel, Codec, Key, Keyring, Plain, Sealed
from tests.wire.strategies import messages

KINDS: tuple[type[Message], ...] = (*TYPES, WrongLife, OtherFingerprint)
CODEC = Codec(KINDS)
RING = Keyring(Key(b"k" * 32))
ME = NodeId("web-3", 7)


@st.composite
def changed(draw: st.DrawFn, data: bytes) -> bytes:
    """Flip, cut, insert, repeat: one to three times."""
    for _ in range(draw(st.integers(1, 3))):
        at, to = sorted((draw(st.integers(0, len(data))), draw(st.integers(0, len(data)))))
        middle = data[at:to]
        data = data[:at] + draw(st.sampled_from((b"", middle * 2, middle[::-1])) | st.binary(max_size=8)) + data[to:]
    return data


@given(messages, st.data())
def test_a_changed_sealed_message_is_rejected(message: Message, data: st.DataObject) -> None:
    """Sealing: nothing that was altered is ever opened, and nothing but Rejected is raised."""
    payload = CODEC.encode(ME, 5, b"", message)
    original = Sealed("orders", RING).seal(payload, Channel.STREAM)
    hostile = data.draw(changed(original))
    assume(hostile != original)
    with pytest.raises(Rejected):
        Sealed("orders", RING).open(hostile, Channel.STREAM)


@given(messages, st.data())
def test_a_changed_plain_message_is_rejected_or_another_message(message: Message, data: st.DataObject) -> None:
    """Plaintext protects nothing, but what comes out is a message of a known type or a counted drop."""
    original = Plain("orders").seal(CODEC.encode(ME, 5, b"", message), Channel.STREAM)
    hostile = data.draw(changed(original))
    with suppress(Rejected):
        assert isinstance(CODEC.decode(Plain("orders").open(hostile, Channel.STREAM)).message, KINDS)


@given(messages, st.data())
def test_a_changed_payload_under_the_right_key_is_rejected_or_another_message(message: Message, data: st.DataObject) -> None:
    """A member that is broken, not a stranger: the codec alone stands between it and the machines."""
    hostile = data.draw(changed(CODEC.encode(ME, 5, b"", message)))
    opened = Sealed("orders", RING).open(Sealed("orders", RING).seal(hostile, Channel.STREAM), Channel.STREAM)
    with suppress(Rejected):
        assert isinstance(CODEC.decode(opened).message, KINDS)
