"""What is on disk: the names of files, of parts of the journal and of their keys, and the bytes of an example of each."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec
import pytest

from tests.pins.conftest import Pinned
from tests.pins.doors import file_records, saved_in, state_files

# What these runs keep is all that an agent keeps, and what the older elections of the papers did.
RUNS = (
    ("detection/leadership", 3), ("tickets/mixed", 3), ("ring/mixed", 3), ("ring/gap", 11), ("gossip/mixed", 3), ("detection/quorum", 3),
    ("election/mixed", 9), ("election/gossip", 19),  # mode seats, mode members
)  # fmt: skip
VARIES = re.compile(r"[0-9a-f]{32}|\d+|(?<=/)[^/]*@[^/]*")  # of keys: what the group, the pool or the seat chose


def examples(saved: Mapping[str, bytes]) -> Iterator[str]:
    """Of each shape of a key the first value, as bytes, and as what MessagePack makes of them."""
    seen: dict[str, str] = {}
    for key, value in saved.items():
        seen.setdefault(VARIES.sub("*", key), f"    {key}: {value.hex()}{readable(value)}")
    for shape, line in sorted(seen.items()):
        yield shape
        yield line


def readable(value: bytes) -> str:
    try:
        return f" = {msgspec.msgpack.decode(value)!r}"
    except (msgspec.DecodeError, UnicodeDecodeError):
        return f" = {value!r}"


@pytest.mark.parametrize("scenario, seed", RUNS)
def test_records(scenario: str, seed: int, pinned: Pinned) -> None:
    """F13, foundation 3 (Storage): a release reads the journal of the one before, so parts, keys and records stay as they are."""
    pinned(f"records-{scenario.replace('/', '-')}", examples(saved_in(scenario, seed)))


def test_files(pinned: Pinned, tmp_path: Path) -> None:
    """F1, F6, H154, H161: the layout of the journal, of the boot number and of what is written beside them."""
    pinned("files", [*(f"{name}: {data.hex()} = {data!r}" for name, data in file_records(tmp_path)), *state_files(tmp_path)])
