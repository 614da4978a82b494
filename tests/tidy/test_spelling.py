"""One client in two spellings: the blocking files are made from those for asyncio, and the client names no feature.  H213, H214."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from scripts import spell
from tests.tidy.test_features import naming
from tests.tidy.tree import ROOT

DIFFERING_MAX = 5  # lines of all sources that only one spelling has: more of them belong into client/loop and client/threads
# Files of the client that name a feature all the same, and why.
LEFT = {
    "client/aio/group.py": "the methods of Group that lead to features",
    "client/sync/group.py": "made from it",
    "client/members.py": "the error of `owner` says which membership has owners of keys",
}
SOURCE = '''"""Enter it with ``async with``; ``await it.lost`` returns when it is over."""
from collections.abc import Awaitable
from holdfast.client.aio.link import Link
from holdfast.client.loop.tasks import Flag
from holdfast.features.counter.client import Counter
from holdfast.features.mail import client as mail


# sync: def asked(link: Link) -> int:
def asked(link: Link) -> Awaitable[int]:  # aio
    return one(link)


async def one(link: Link, timeout: float = 1.0) -> int:  # noqa: ASYNC109 - a reason
    """An ``async with`` block: ``await one(link)``."""
    async with link, Flag() as flag:
        async for each in Counter(link, mail, flag):
            return await each
'''
BLOCKING = '''# Made by scripts/spell.py from here: edit that file and run the script.
"""Enter it with ``with``; ``it.lost.wait()`` returns when it is over."""
from collections.abc import Awaitable
from holdfast.client.sync.link import Link
from holdfast.client.threads.tasks import Flag
from holdfast.features.counter.client_sync import Counter
from holdfast.features.mail import client_sync as mail


def asked(link: Link) -> int:
    return one(link)


def one(link: Link, timeout: float = 1.0) -> int:
    """A ``with`` block: ``one(link)``."""
    with link, Flag() as flag:
        for each in Counter(link, mail, flag):
            return each
'''


def test_both_spellings_are_of_one_source() -> None:
    """H213: every blocking file is what the script makes of its source now. If not: `python scripts/spell.py`."""
    assert spell.differences() == []
    assert [spell.target(path) for path in spell.sources()] == spell.made()
    assert len(spell.made()) >= 7


def test_the_script_says_what_differs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """H213: a blocking file that was edited, one that is missing and one whose source is gone fail the check, and are named."""
    for folder in ("client/aio", "client/sync", "features/counter"):
        (tmp_path / "src" / "holdfast" / folder).mkdir(parents=True)
    package = tmp_path / "src" / "holdfast"
    monkeypatch.setattr(spell, "PACKAGE", package)
    monkeypatch.setattr(spell, "ROOT", tmp_path)
    feature, own = package / "features/counter/client.py", package / "client/aio/streams.py"
    for path in (feature, own):
        path.write_text('"""A source."""\n\n\nasync def one() -> None:\n    await two()\n')
    assert spell.main([]) == 0
    assert spell.main(["--check"]) == 0
    edited = package / "features/counter/client_sync.py"
    edited.write_text(edited.read_text().replace("two()", "three()"))
    (package / "client/sync/streams.py").rename(package / "client/sync/gone.py")
    capsys.readouterr()
    assert spell.main(["--check"]) == 1
    told = capsys.readouterr().out
    assert "-    three()\n+    two()" in told
    assert "+++ src/holdfast/client/sync/streams.py as the script makes it" in told
    assert "src/holdfast/client/sync/gone.py: its source is gone" in told


def test_the_script_spells() -> None:
    """H213: code, imports, docstrings, and lines that only one spelling has."""
    assert spell.spelled(SOURCE, "here") == BLOCKING


@pytest.mark.parametrize("line", ["import asyncio", "each = [await(one)]", '"""It is there on the next await."""', "each = 1 # aio"])
def test_the_script_leaves_no_word_of_asyncio(line: str) -> None:
    """H213: what it has no word for is an error that names the file and the line."""
    with pytest.raises(SystemExit, match=r"^spell: here: '.*' is left in: "):
        spell.spelled(line, "here")


def test_few_lines_differ() -> None:
    """H213: what differs between the spellings is in client/loop and client/threads, and hardly anywhere else."""
    lines = [line for path in spell.sources() for line in path.read_text().splitlines() if "# sync: " in line]
    assert len(lines) <= DIFFERING_MAX


def test_the_client_names_no_feature() -> None:
    """H214: what a client of a feature is stands in the feature's folder. An exception that is gone is taken from this list."""
    assert set(naming("client")) == LEFT.keys()


def test_threads_load_no_event_loop() -> None:
    """H213: a program with threads does not pay for asyncio, nor the other way round for the threads of the blocking client."""
    apart = {"holdfast.sync": ("asyncio", "holdfast.client.loop"), "holdfast.client.aio.group": ("holdfast.client.threads",)}
    for module, others in apart.items():
        code = f"import sys, {module}; print([name for name in {others!r} if name in sys.modules])"
        said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT).stdout
        assert said == "[]\n", module
