"""The runner of tutorials can fail: each rule of it, on a page of a few lines."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.session import Line, Played, Shell, run_in_order, run_line, typed

PAGE = """
<!-- runs in order -->

<!-- file: twice.py -->
```python
import sys
print(2 * int(sys.argv[1]))
```

```console
$ pip install nothing-of-this-name
$ export NUMBER=21
$ python twice.py $NUMBER
42
```
"""


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    with Shell(tmp_path, dict(os.environ)) as shell:
        yield shell


def test_a_page_is_one_session(shell: Shell, tmp_path: Path) -> None:
    """Files are saved under their names, and what one command exports the next one sees; nothing is installed."""
    assert run_in_order(PAGE, shell, tmp_path) == Played(2, [])


def test_wrong_output_fails(shell: Shell, tmp_path: Path) -> None:
    """What the page shows must be printed."""
    with pytest.raises(AssertionError, match=r"missing: .'43'"):
        run_line(Line("echo 42", ["43"]), shell, deadline=0.0)


def test_a_command_that_fails_is_not_typed_again(shell: Shell) -> None:
    """Only where output is shown there is something to wait for."""
    with pytest.raises(AssertionError, match="ended with 1"):
        run_line(Line("false", []), shell)


def test_what_is_shown_may_take_a_moment(shell: Shell) -> None:
    """A background job is not there at once: ``run_line`` asks again, and fails only if what is printed never comes."""
    run_line(Line("(sleep 0.3; echo here >later.txt) &", []), shell)
    run_line(Line("cat later.txt", ["here"]), shell)


def test_python_without_a_name_is_refused(shell: Shell, tmp_path: Path) -> None:
    """A block that nobody saves would not be run."""
    with pytest.raises(AssertionError, match="line 2"):
        run_in_order("```python\nx = 1\n```\n", shell, tmp_path)


def test_nothing_outlives_the_shell(tmp_path: Path) -> None:
    """Also not what went into a session of its own."""
    with Shell(tmp_path, dict(os.environ)) as shell:
        shell.type("setsid sleep 600 &")
        shell.type("sleep 600 &")
    assert shell.running() == []


def test_lines_are_joined() -> None:
    """A backslash continues a command; output belongs to the command above it."""
    assert typed("$ a \\\n    b\nout\n$ c\n") == [Line("a      b", ["out"]), Line("c", [])]


def test_a_block_whose_need_is_not_here_is_left_out(shell: Shell, tmp_path: Path) -> None:
    """H137: it is named, and everything else is run; where the need is there, the block is run like any other."""
    page = "<!-- needs: bash, no-such-program -->\n```console\n$ false\n```\n\n```console\n$ true\n```\n"
    assert run_in_order(page, shell, tmp_path) == Played(1, ["line 3 needs no-such-program"])
    assert run_in_order(page.replace(", no-such-program", "").replace("false", "true"), shell, tmp_path) == Played(2, [])


def test_root_is_a_need(shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """H137: some daemons start for root alone."""
    page = "<!-- needs: root -->\n```console\n$ true\n```\n"
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert run_in_order(page, shell, tmp_path) == Played(0, ["line 3 needs root"])
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert run_in_order(page, shell, tmp_path) == Played(1, [])
