"""The code in README and documentation runs as written: Python always; commands of some pages in `make test`, of all in `make test-all`."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir

import pytest
from _pytest.mark import ParameterSet

from holdfast.cli.agent_call import AgentCall
from holdfast.errors import HoldfastError
from holdfast.local.calls import Leave
from tests.docs.blocks import HOLDFAST, blocks, commands, run_command, run_python
from tests.docs.session import IN_ORDER, Shell, run_in_order
from tests.support.agents import until

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
TEXTS = {page.relative_to(ROOT).as_posix(): page.read_text() for page in PAGES}
NAMES = [name for name, text in TEXTS.items() if not IN_ORDER.search(text)]
SESSIONS = [name for name, text in TEXTS.items() if IN_ORDER.search(text)]
TYPED = {"README.md", "CONTRIBUTING.md", "docs/howto-gpu-slots.md", "docs/tutorial.md"}  # also in `make test`; others take or wait longer
COMMANDS_TYPED_MIN = 5  # a page that types less was read wrongly


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What an example writes, it writes into a folder of its own; the agents it starts are its own, and end with it."""
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("HOLDFAST_")]:
        monkeypatch.delenv(name)
    with TemporaryDirectory(prefix="hf-") as runtime:  # short: a socket's path has 107 bytes
        monkeypatch.setenv("HOLDFAST_RUNTIME_DIR", runtime)
        monkeypatch.setenv("XDG_STATE_HOME", runtime)
        yield
        _end_agents(Path(runtime))


def _end_agents(runtime: Path) -> None:
    """Agents that a machine shares outlive the program that started one; a session of tests is a long program."""
    sockets = list(runtime.glob("*.sock"))
    for socket in sockets:
        with suppress(HoldfastError), AgentCall(str(socket)) as call:
            call.ask(Leave, True)
    until(lambda: not list(runtime.glob("*.sock")), "the agents of a page end")


@pytest.mark.parametrize("page", NAMES)
def test_python_runs(page: str) -> None:
    """Style 6: code in documents is executed, and its own asserts with it."""
    found = [block for block in blocks(TEXTS[page]) if block.language == "python" and not block.skipped]
    if found:
        run_python(page, found)


def typed(pages: list[str]) -> list[ParameterSet]:
    return [pytest.param(page, marks=[] if page in TYPED else [pytest.mark.nightly]) for page in pages]


@pytest.mark.parametrize("page", typed(NAMES))
def test_commands_run(page: str) -> None:
    """Style 6: so are the commands, and what a page shows below one is what it prints."""
    found = [block for block in blocks(TEXTS[page]) if block.language == "console" and not block.skipped]
    for block in found:
        for command in commands(block.body):
            assert HOLDFAST.exists()
            run_command(command)


@pytest.mark.timeout(300)  # A page may wait for its turn, and for the next full minute of a cron daemon.
@pytest.mark.parametrize("page", typed(SESSIONS))
def test_a_tutorial_runs_as_printed(page: str, tmp_path: Path) -> None:
    """Style 6: a page that is typed from top to bottom works when it is typed from top to bottom, and nothing it started is left.
    H137: what a block needs is asked of the machine, and the rest of the page is run before the test counts as skipped."""
    with (Path(gettempdir()) / f"holdfast-pages-{os.getuid()}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # Its addresses are printed on the page, so one run at a time has them.
        with Shell(tmp_path, dict(os.environ)) as shell:
            played = run_in_order(TEXTS[page], shell, tmp_path)
            assert played.commands >= COMMANDS_TYPED_MIN
            until(lambda: len(shell.running()) == 1, "nothing but the shell is left")
    if played.left_out:
        pytest.skip(f"all but this was run: {'; '.join(played.left_out)}")


def test_pages_that_run_in_order() -> None:
    """A comment that is misspelled would quietly leave one out; so would a name of a page that is typed in every run."""
    assert TEXTS.keys() >= TYPED
    limits = ("howto-limit-api", "howto-limit-celery", "howto-limit-fastapi", "howto-limit-shell")
    names = ("howto-cut-path", "howto-every-site", "howto-gpu-slots", *limits, "howto-one-scheduler", "howto-two-halves", "tutorial")
    assert [f"docs/{name}.md" for name in names] == SESSIONS
