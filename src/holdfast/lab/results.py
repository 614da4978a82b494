"""The results file of sweeps: one JSON line per finished chunk of seeds, appended, so that an interrupted sweep can go on.

A line says which seeds of which scenario ran on which commit and what was found. Lines are only ever added. The last
line of an interrupted sweep may be torn; it is cut off before the next one is written, and nothing else is touched.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
from msgspec import Struct

from holdfast.errors import ConfigError

LINE_BEGINS = b'{"scenario":'


class Failure(Struct, frozen=True):
    """One seed that violated something, and how to see it again."""

    seed: int
    violation: str
    replay: str
    plan: str = ""  # file with the shrunk plan


class Chunk(Struct, frozen=True, kw_only=True):
    """A range of seeds that ran: one line of the file."""

    scenario: str
    first: int
    last: int  # included
    commit: str
    passed: int
    failed: tuple[Failure, ...]
    events: int
    seconds: float  # of the machine, not of the simulation


class Results:
    """One file, read once and appended to. ``None`` as path keeps nothing."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.chunks: list[Chunk] = []
        self._bytes = self._torn = 0  # of the file as it was read, of its torn last line
        if path is not None:
            self._read(path)

    def known(self, scenario: str, commit: str) -> list[Chunk]:
        """What earlier sweeps found about this scenario on this commit."""
        return [chunk for chunk in self.chunks if (chunk.scenario, chunk.commit) == (scenario, commit)]

    def append(self, chunk: Chunk) -> None:
        self.chunks.append(chunk)
        if self.path is None:
            return
        with self.path.open("ab") as file:
            # Other sweeps may append to the same file: only a tail that is still the last thing in it is cut off.
            if self._torn and file.tell() == self._bytes:
                file.truncate(self._bytes - self._torn)
            file.write(msgspec.json.encode(chunk) + b"\n")
        self._torn = 0

    def _read(self, path: Path) -> None:
        """Also makes the file: that it cannot be written is said before the work, not after it."""
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.open("ab").close()
            content = path.read_bytes()
        except OSError as error:
            raise ConfigError(f"--out {path}: cannot be used: {error.strerror}") from None
        whole, _, torn = content.rpartition(b"\n")
        self.chunks = list(_decoded(path, whole))
        if torn and not torn.startswith(LINE_BEGINS[: len(torn)]):
            raise ConfigError(f"--out {path}: is not a results file of sweeps; choose another name")
        self._bytes, self._torn = len(content), len(torn)


def _decoded(path: Path, content: bytes) -> Iterator[Chunk]:
    decoder = msgspec.json.Decoder(Chunk)
    for number, line in enumerate(content.split(b"\n") if content else (), 1):
        try:
            yield decoder.decode(line)
        except msgspec.DecodeError as error:
            raise ConfigError(f"--out {path}: line {number} is not a line of a results file ({error}); choose another name") from None
