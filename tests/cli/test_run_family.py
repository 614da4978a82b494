"""All processes of one command: found by descent or by mark, stopped, then killed (H150, H151)."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from uuid import uuid4

import pytest

from holdfast.local import family
from holdfast.local.family import Family, Own, marked
from holdfast.local.process import EVER, TICK, Process, is_mark, stat_of
from tests.cli.recorder import alive
from tests.support.agents import until

MARK, OTHER = uuid4().hex, "f" * 32  # The first is looked for on the whole machine, where another run of these tests may be at work.
TREE = "import os, sys, time; [os.fork() for _ in range(3)]; os.setsid() if os.getpid() != int(sys.argv[1]) else 0; time.sleep(60)"


@pytest.fixture
def shell() -> Iterator[subprocess.Popen[bytes]]:
    """A parent with seven descendants, some in sessions of their own."""
    words = [sys.executable, "-S", "-c", "import os, sys; sys.argv.append(str(os.getpid()));" + TREE]
    with subprocess.Popen(words, env={family.MARK_NAME: f"{OTHER}:{MARK}"}, start_new_session=True) as process:
        yield process
        with suppress(ProcessLookupError):
            process.kill()


def descendants(pid: int) -> set[int]:
    below = set(family.children_of(pid))
    return below.union(*(descendants(each) for each in below))


@pytest.mark.parametrize("lists", [True, False], ids=["listed", "by parent"])
def test_descent(shell: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch, lists: bool) -> None:
    """H150: all that is below one process is ended, in sessions of their own too; that process itself is not."""
    monkeypatch.setattr(family, "LISTS_CHILDREN", lists)
    until(lambda: len(descendants(shell.pid)) == 7, "all are there")
    below = descendants(shell.pid)
    found = Family([Own(shell.pid)])
    until(lambda: not found.round(), "nothing is left")
    assert alive(below) == set()
    assert alive({shell.pid}) == {shell.pid}
    assert found.ended == below


def test_older_and_younger_children(shell: subprocess.Popen[bytes]) -> None:
    """H150: what was there before the command, and what its parent starts after it, is not the command's."""
    until(lambda: len(descendants(shell.pid)) == 7, "all are there")
    assert not Family([Own(shell.pid)], since=EVER).round()
    younger = Family([Own(shell.pid)])
    younger.until = 0.0
    assert not younger.round()
    assert len(alive(descendants(shell.pid))) == 7


def test_a_child_as_old_as_a_tick(shell: subprocess.Popen[bytes]) -> None:
    """H150: the kernel tells ages in ticks; a child that may have been there when the guardian died is the command's."""
    until(lambda: len(descendants(shell.pid)) == 7, "all are there")
    below = descendants(shell.pid)
    found = Family([Own(shell.pid)])
    found.until = max(stat_of(pid).started_at for pid in family.children_of(shell.pid)) - TICK
    until(lambda: not found.round(), "nothing is left")
    assert alive(below) == set()


def test_a_younger_child_with_the_mark(shell: subprocess.Popen[bytes]) -> None:
    """H150: an orphan that the command started after the death of the guardian bears the mark, so it is the command's."""
    until(lambda: len(descendants(shell.pid)) == 7, "all are there")
    below = descendants(shell.pid)
    found = Family([Own(shell.pid)], mark=MARK)
    found.until = 0.0
    until(lambda: not found.round(), "nothing is left")
    assert alive(below) == set()
    assert alive({shell.pid}) == {shell.pid}


def test_mark(shell: subprocess.Popen[bytes]) -> None:
    """H151: with nobody above, whoever bears the mark is ended, also beside the mark of an outer command; others are not."""
    until(lambda: len(descendants(shell.pid)) == 7, "all are there")
    all_of_it = descendants(shell.pid) | {shell.pid}
    assert not Family([], mark="e" * 32).round()
    found = Family([], mark=MARK)
    until(lambda: not found.round(), "nothing is left")
    assert alive(all_of_it) == set()


def test_the_guardian_is_last_and_never_stopped(shell: subprocess.Popen[bytes]) -> None:
    """H150: as long as anything else is there the guardian lives and runs: it takes the orphans, and does the rest if this one dies."""
    until(lambda: len(descendants(shell.pid)) == 7, "all are there")
    found = Family([])
    found.guardian = Process(shell.pid)
    assert found.round()
    assert shell.pid not in found.ended
    assert os.waitpid(shell.pid, os.WNOHANG | os.WUNTRACED) == (0, 0)
    until(lambda: not found.round(), "nothing is left")
    assert shell.wait(60) == -signal.SIGKILL
    found.close()


def test_another_users_process(shell: subprocess.Popen[bytes]) -> None:
    """H152: what the client's user could not end by itself is not ended for it, but told, and counts as left."""
    until(lambda: len(descendants(shell.pid)) == 7, "all are there")
    found = Family([Own(shell.pid)], user=os.getuid() + 54321)
    assert found.round()
    assert {each.pid for each in found.beyond} >= set(family.children_of(shell.pid))
    assert len(alive(descendants(shell.pid))) == 7
    found.close()


def test_marks() -> None:
    """H151: a mark is 32 hexadecimal digits; a command inside a command bears both, and there is a limit."""
    assert is_mark(MARK)
    assert not is_mark("")
    assert not is_mark("G" * 32)
    assert marked("", MARK) == MARK
    assert marked(f"{OTHER}:junk", MARK) == f"{OTHER}:{MARK}"
    assert len(marked(":".join([OTHER] * 40), MARK).split(":")) == family.MARKS_MAX
