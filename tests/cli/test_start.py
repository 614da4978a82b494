"""The program itself: what it says about itself, how fast it starts, and that errors are one line."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage

import pytest

from holdfast.cli import exits
from holdfast.errors import (
    AcquireTimeout,
    AddressUnusable,
    AgentLost,
    ConfigError,
    ExtraMissing,
    HoldfastError,
    HoldLost,
    JoinTimeout,
    KeyUnusable,
    NameConflict,
    NotAMember,
    StorageDamaged,
    StorageLocked,
    Timeout,
    Unavailable,
)
from holdfast.lab.extras import EXTRA_OF
from tests.cli.command import Run
from tests.cli.fake_agent import FakeAgent

# Modules that cost more than a whole short command, or belong to an extra that may not be installed. Not msgspec: the public names of
# the package are its structs, so whoever imports holdfast has it.
HEAVY = ("asyncio", "concurrent.futures", "cryptography", "dask", "distributed", "matplotlib", "numpy", "rich")
EXTRAS = tuple(EXTRA_OF)


def test_version(holdfast: Run) -> None:
    """``version``: what is installed, for people and for programs."""
    ended = holdfast("version")
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.startswith(f"holdfast {version('holdfast')} (Python 3.")
    assert holdfast("version", "--json").json["version"] == version("holdfast")


@pytest.mark.parametrize(
    "words,shown", [(["--help"], "lab"), (["lab", "--help"], "sweep"), (["lab", "run", "--help"], "--set"), ([], "Usage")]
)
def test_help(holdfast: Run, words: list[str], shown: str) -> None:
    """``--help`` at every level; no words at all are a question too."""
    ended = holdfast(*words)
    assert shown in ended.out + ended.err
    assert "Traceback" not in ended.err


def imported(*words: str) -> set[str]:
    """The modules that a command leaves imported."""
    code = (
        "import sys, json\nfrom holdfast.cli import main\n"
        f"sys.argv = ['holdfast', *{list(words)!r}]\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "print(json.dumps(sorted(sys.modules)), file=sys.stderr)\n"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    return set(json.loads(ended.stderr.splitlines()[-1]))


@pytest.mark.parametrize("words", [["version"], ["--help"], ["lab", "--help"], ["tags", "--agent", "none"], ["watch", "--agent", "none"]])
def test_short_commands_start_quickly(words: list[str]) -> None:
    """The start is quick because what is not needed is not imported."""
    assert imported(*words) & set(HEAVY) == set()


def test_members_takes_little(tmp_path: Path) -> None:
    """`holdfast members` in under 200 ms: CPU seconds, the best of five, because other processes cost time too."""
    with FakeAgent(tmp_path / "a.sock") as agent:
        words = [sys.executable, "-m", "holdfast", "members", "--agent", agent.path]
        taken = []
        for _ in range(5):
            before = getrusage(RUSAGE_CHILDREN)
            subprocess.run(words, capture_output=True, check=False, timeout=60)
            after = getrusage(RUSAGE_CHILDREN)
            taken.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    assert min(taken) < 0.2, taken


def test_interrupted(holdfast: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C is exit code 130, without a word."""

    def interrupt(*args: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("holdfast.cli.version.print_json", interrupt)
    ended = holdfast("version", "--json")
    assert (ended.code, ended.out, ended.err) == (130, "", "")


def test_the_lab_needs_no_extra() -> None:
    """The ``lab`` extra is optional: listing, sweeping, replaying and playing scripts work without it."""
    for words in (["lab", "list"], ["lab", "replay", "detection/omega"], ["lab", "plan", "detection/omega"]):
        assert imported(*words) & set(EXTRAS) == set()


def test_importing_the_engine_needs_no_extra() -> None:
    """The ``lab`` extra is optional: no module of the lab imports it at the top."""
    home = Path(exits.__file__).parents[1]
    folders = [home / "lab", *sorted(home.glob("*/*/lab"))]
    files = [path for folder in folders for path in sorted(folder.glob("*.py")) if path.stem != "__init__" and "cli" not in path.parts]
    names = [".".join(path.relative_to(home.parent).with_suffix("").parts) for path in files]
    block = "".join(f"sys.modules[{extra!r}] = None\n" for extra in EXTRAS)
    code = f"import sys\n{block}import importlib\nfor name in {names!r}:\n    importlib.import_module(name)\n"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60)
    assert (ended.returncode, ended.stderr) == (0, "")


def test_as_a_module() -> None:
    """``python -m holdfast`` is the same program; an error is one line and no traceback there too."""
    ended = subprocess.run(
        [sys.executable, "-m", "holdfast", "lab", "run", "nothing"], capture_output=True, text=True, check=False, timeout=60
    )
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.startswith("holdfast: 'nothing': there is no such scenario or experiment")
    assert ended.stderr.count("\n") == 1


@pytest.mark.parametrize("words", [["lab", "run"], ["lab", "run", "x", "--seed", "y"], ["lab", "nothing"], ["--nothing"]])
def test_bad_flags_are_bad_input(holdfast: Run, words: list[str]) -> None:
    """Bad input: exit 2, one line, and where the accepted flags are listed."""
    holdfast(*words).refused(2, "see `", "--help`")


@pytest.mark.parametrize(
    "error,code",
    [
        (ConfigError("x"), 2),
        (KeyUnusable("x"), 2),
        (AddressUnusable("x"), 2),
        (StorageDamaged("x"), 3),
        (StorageLocked("x"), 3),
        (exits.CannotServe("x"), 3),
        (ExtraMissing("x"), 3),
        (PermissionError(13, "Permission denied", "some/file"), 3),
        (AgentLost("x"), 3),
        (Unavailable("x"), 3),
        (HoldfastError("x"), 3),
        (NotAMember("x"), 1),
        (NameConflict("x"), 1),
        (HoldLost("x"), 1),
        (Timeout("x"), 4),
        (JoinTimeout("x"), 4),
        (AcquireTimeout("x"), 4),
    ],
)
def test_exit_codes(error: HoldfastError, code: int) -> None:
    """docs/cli.md: 1 is the answer no, 2 is the input, 3 is the machine, 4 is time."""
    assert exits.exit_code(error) == code


def test_errors_are_one_line() -> None:
    """One clear line: line breaks are folded, the system's errors name the file."""
    assert exits.one_line(ConfigError("one\n  two")) == "one two"
    assert exits.one_line(PermissionError(13, "Permission denied", "some/file")) == "some/file: Permission denied"
    assert exits.one_line(ConfigError()) == "ConfigError"
