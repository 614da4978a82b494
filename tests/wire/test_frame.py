"""Streams cut into frames: any pieces, any lengths, a bounded memory."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.drops import Drop, Rejected
from holdfast.host import MESSAGE_BYTES_MAX
from holdfast.wire import FrameReader, frame
from holdfast.wire.frame import FRAME_BYTES_MAX


@given(st.lists(st.binary(max_size=60), max_size=8), st.data())
def test_frames_arrive_whole_in_any_pieces(sealed: list[bytes], data: st.DataObject) -> None:
    """Foundation 3: a message travels a stream as a whole or not at all."""
    stream = b"".join(frame(one) for one in sealed)
    reader, arrived, at = FrameReader(), [], 0
    while at < len(stream):
        step = data.draw(st.integers(1, len(stream) - at))
        arrived += reader.feed(stream[at : at + step])
        at += step
    assert arrived == sealed
    assert reader.feed(b"") == []


def test_the_largest_frame() -> None:
    """The limit itself is allowed, and comes in pieces as a socket gives them."""
    sealed, reader, arrived = bytes(MESSAGE_BYTES_MAX), FrameReader(), []
    stream = memoryview(frame(sealed) + frame(b"next"))
    for at in range(0, len(stream), 65536):
        arrived += reader.feed(stream[at : at + 65536])
    assert arrived == [sealed, b"next"]


@pytest.mark.parametrize("size", [MESSAGE_BYTES_MAX + 1, 1 << 31, (1 << 32) - 1])
def test_a_longer_frame_is_refused_by_its_length_alone(size: int) -> None:
    """Oversized: four bytes are enough to end the connection; nothing more is read from it."""
    reader = FrameReader()
    assert reader.feed(frame(b"fine") + size.to_bytes(4, "big")[:3]) == [b"fine"]
    for piece in (size.to_bytes(4, "big")[3:], b"", frame(b"fine")):
        with pytest.raises(Rejected) as rejected:
            reader.feed(piece)
        assert rejected.value.why is Drop.OVERSIZED
        assert not reader._pending


def test_a_wrong_length_behind_good_frames_ends_the_stream() -> None:
    """What came in the same piece is lost with it: a message may be lost, a broken stream is not worth more."""
    with pytest.raises(Rejected, match="oversized"):
        FrameReader().feed(frame(b"fine") + b"\xff\xff\xff\xff")


def test_what_is_kept_is_bounded() -> None:
    """A peer that never finishes its frame costs at most one frame of memory."""
    reader = FrameReader()
    reader.feed(MESSAGE_BYTES_MAX.to_bytes(4, "big"))
    for _ in range(40):
        reader.feed(bytes(65536))
        assert len(reader._pending) < FRAME_BYTES_MAX


def test_an_oversized_frame_is_never_written() -> None:
    """The host chose the stream by size, so only a bug gets here."""
    with pytest.raises(AssertionError):
        frame(bytes(MESSAGE_BYTES_MAX + 1))
