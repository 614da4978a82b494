"""The fuzz target, in short; the long run is a command (docs/wire.md, "Fuzzing")."""

from __future__ import annotations

import random

import pytest

from fuzz import wire
from holdfast.drops import Drop
from holdfast.host import Message
from holdfast.wire import Codec

INPUTS = 20_000
DRAWS = 1_000  # of one type until one is handled; of 210 seeds none needed more than 71
# Everything that open, decode, the frame reader and the node can say about what arrives. NO_OWNER cannot happen here: the
# codec reads what the node handles.
REACHABLE = {drop for drop in Drop if list(Drop).index(drop) < list(Drop).index(Drop.NO_OWNER)} - {Drop.SEALED}


def test_hostile_input_ends_in_counters() -> None:
    """docs/wire.md: nothing but counted drops and handled messages, and every name of a drop is reached."""
    outcomes = wire.run(INPUTS, random.getrandbits(32))  # another seed in every run of the tests, from the one they print
    assert {drop.value for drop in REACHABLE} <= set(outcomes)
    assert outcomes["(handled by the machine)"] > INPUTS / 50


def test_every_type_that_ships_is_fuzzed() -> None:
    """docs/wire.md, views "what bad input gets": each of them reaches the machine, those of views (tags 128 to 139) among them, and what
    is outside of its bounds does not."""
    target = wire.Target(random.getrandbits(32))
    tags = {kind.__struct_config__.tag for kind in target.shipped}
    assert set(range(128, 140)) <= tags
    for kind in target.shipped:
        drawn = next((number for number in range(DRAWS) if _is_handled(target, kind)), None)
        assert drawn is not None, f"no {kind.__name__} of {DRAWS} is handled"
    assert target.outcomes[Drop.OUT_OF_BOUNDS.value] > 0


def _is_handled(target: wire.Target, kind: type[Message]) -> bool:
    target.shipped_message(kind)
    return target.handled[kind] > 0


def test_the_same_seed_gives_the_same_table() -> None:
    """A failure can be had again from its seed."""
    assert wire.run(2000, 7) == wire.run(2000, 7)
    assert wire.run(2000, 7) != wire.run(2000, 8)


def test_a_planted_fault_is_found(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """The target can fail: with a codec that lets one exception through, it prints seed and input and exits 1."""
    decode = Codec.decode

    def careless(codec: Codec, payload: bytes) -> object:
        payload.decode("utf-8") if b"\xed\xa0\x80" in payload else None
        return decode(codec, payload)

    monkeypatch.setattr(Codec, "decode", careless)
    assert wire.main(["--inputs", str(INPUTS), "--seed", "1"]) == 1
    printed = capsys.readouterr().out
    assert "FAILED: seed 1, input " in printed
    assert "UnicodeDecodeError" in printed
