"""What the outside recorder of commands that act finds wrong: planted, and with real processes that share a store.

Spec: election 1 (A2), 5.10, D22; foundation F14, F16; STYLE 5 (a checker that cannot fail proves nothing).
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.agent.lock_fleet import ROOT
from tests.features.election.process.led import BODY, LENGTH, acted_on
from tests.features.election.process.store import Act, Actor, Acts, Writer, late_writes, lives, refused, shared_tokens
from tests.support.agents import until

A, B = Actor("a", 1), Actor("b", 2)


def acts(*rows: tuple[int, Actor, float], admitted: bool = True) -> list[Act]:
    return [Act(token, actor, at, admitted) for token, actor, at in rows]


def test_a_token_of_two_lives() -> None:
    """A2: one token may act for one life alone, at whatever times."""
    assert shared_tokens(acts((5, A, 1.0), (6, B, 2.0), (5, A, 3.0))) == []
    assert shared_tokens(acts((5, A, 1.0), (6, B, 2.0), (5, B, 9.0))) == ["token 5 acted for a (pid 1) and b (pid 2)"]
    assert len(shared_tokens(acts((5, A, 1.0), (5, Actor("a", 3), 2.0)))) == 1


def test_a_late_write() -> None:
    """F16: in the order of the commits no token is below one before; what was refused is no write."""
    assert late_writes(acts((5, A, 1.0), (6, B, 2.0), (6, B, 3.0))) == []
    assert late_writes([*acts((6, B, 2.0)), *acts((5, A, 3.0), admitted=False), *acts((6, B, 4.0))]) == []
    assert late_writes(acts((5, A, 1.0), (6, B, 2.0), (5, A, 3.0))) == ["a (pid 1) wrote under 5 at 3.000, after a write under 6"]


def test_acting_for_too_long() -> None:
    """5.10, F14: from the last moment at which it could be told that it leads a command has hold and grace; a later command has its own."""
    one = acts((5, A, 1.0), (5, A, 1.0 + LENGTH))
    assert acted_on(one, [("a", 0, 1.0)]) == []
    assert acted_on(one, [("b", 0, 1.0)]) == []
    (told,) = acted_on([*one, *acts((5, A, 1.5 + LENGTH))], [("a", 0, 1.0), ("a", 0, 1.2)])
    assert told == "a (pid 1) acted under 5 for 0.500 s beyond hold and grace"
    assert acted_on(acts((7, A, 2.0), (7, A, 2.0 + 2 * LENGTH)), [("a", 0, 1.0), ("a", 6, 2.5)]) == []
    assert len(acted_on(acts((7, A, 2.0), (7, A, 3.0 + LENGTH)), [("a", 7, 2.5)])) == 1


@contextmanager
def command(store: Path, member: str, token: int) -> Iterator[subprocess.Popen[bytes]]:
    """The command of the fleet, without ``holdfast run``."""
    environ = {**os.environ, "HOLDFAST_TOKEN": str(token)}
    process = subprocess.Popen([sys.executable, "-m", BODY, str(store), member], cwd=ROOT, env=environ, stdin=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.kill()  # It is deaf to SIGTERM.
        process.wait()


def test_the_recorder_catches_two_processes_of_one_token(tmp_path: Path) -> None:
    """A2: two real commands under one token are seen, and their writes are no late ones."""
    seen = Acts(tmp_path / "store")
    with command(tmp_path / "store", "a", 5), command(tmp_path / "store", "b", 5):
        until(lambda: len(lives(seen.read())) > 1, "both act")
    assert len(shared_tokens(seen.read())) == 1
    assert late_writes(seen.read()) == []
    seen.close()


def test_the_recorder_catches_a_late_write(tmp_path: Path) -> None:
    """F16: a real command under a token that is over is refused at each write; without a fence its write is seen as a late one."""
    seen = Acts(tmp_path / "store")
    with command(tmp_path / "store", "a", 6):
        until(seen.read, "the newer one acts")
        with command(tmp_path / "store", "b", 5):
            until(lambda: refused(seen.read()) > 1, "the older one is refused")
    assert {act.actor.member for act in seen.read() if not act.admitted} == {"b"}
    assert (late_writes(seen.read()), shared_tokens(seen.read())) == ([], [])
    Writer(tmp_path / "store", 5, B, fenced=False).act()
    assert len(late_writes(seen.read())) == 1
    seen.close()
