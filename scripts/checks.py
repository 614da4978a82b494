"""Every check of `make test`, the quickest answer first, the documentation beside the others; stops at the first that fails.

Run as `python scripts/checks.py [NAME ...]`; without names, all of them but `pure`, which is a part of `tests`,
`docs`, which writes what `pages` checks, and `warm`, which is no check.
A run that is told to end (SIGTERM: a time limit, or make that was told) passes it on, so that the tests can say what failed so far.
"""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import FrameType

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent
ASIDE = ("docs", "pure", "warm")
PATIENCE = 5  # added to the nice value of what runs beside the tests: many of them measure time
# What a change of a protocol breaks first, and it takes seconds.
PURE = ("tests/features/*/unit", "tests/papers/*/unit", "tests/spine", "tests/benchmarks", "tests/wire", "tests/traces")
TYPED = ("src", "tests", "benchmarks", "fuzz", "scripts")

RUNNING: list[subprocess.Popen[bytes]] = []


def commands() -> dict[str, list[str]]:
    """What each check runs; the tests get PYTEST_ARGS from the environment."""
    words = shlex.split(os.environ.get("PYTEST_ARGS", ""))
    typed = [folder for folder in TYPED if any((ROOT / folder).rglob("*.py"))]
    return {
        "style": ["ruff", "check", "--quiet", "."],
        "format": ["ruff", "format", "--quiet", "--check", "."],
        "spelling": ["python", "scripts/spell.py", "--check"],
        "types": ["mypy", "--no-error-summary", *typed],
        "imports": ["lint-imports", "--no-logo"],
        "docs": ["sphinx-build", "-q", "-W", "--keep-going", "-b", "html", "docs", "docs/_build/html"],
        # Reads every page and follows every reference. Writing 600 pages takes three times as long, and finds no more.
        "pages": ["sphinx-build", "-q", "-W", "--keep-going", "-b", "dummy", "docs", "docs/_build/pages"],
        # A file to each, because what a file shares stays in one process; tests/sharing.py says who gets which, and why six on two cores.
        "tests": ["pytest", "-n", "6", "--dist", "loadfile", *words],
        # Writes the byte code of all tests, with their assertions made to explain themselves: 13 s of CPU, and each worker would do it.
        "warm": ["pytest", "--collect-only", "-qq", "-p", "no:cacheprovider"],
        "pure": ["pytest", "-n", "2", "--dist", "loadfile", *pure_folders(), *words],
    }


def pure_folders() -> list[str]:
    """The folders that ``PURE`` stands for."""
    return [path.relative_to(ROOT).as_posix() for pattern in PURE for path in sorted(ROOT.glob(pattern))]


def main(names: list[str]) -> int:
    """Run the checks named, print how long each took, return the exit code of the first that failed."""
    known = commands()
    unknown = [name for name in names if name not in known]
    if unknown:
        print(f"checks: no check called {', '.join(unknown)}; there are {', '.join(known)}", file=sys.stderr)
        return 2
    chosen = names or [name for name in known if name not in ASIDE]
    signal.signal(signal.SIGTERM, pass_on)
    signal.signal(signal.SIGINT, lambda number, frame: None)  # A terminal tells all of its processes; this one waits for their last words.
    started_at = time.monotonic()
    # Both take minutes, and the documentation only needs a core: it is built while the tests run, and is heard of after them.
    beside = start(known["pages"], patience=PATIENCE) if {"pages", "tests"} <= set(chosen) else None
    warm = start(known["warm"], patience=PATIENCE, silent=True) if {"types", "tests"} <= set(chosen) else None
    took: list[str] = []
    code = 0
    for name in chosen:
        if beside is not None and name == "pages":
            continue
        if warm is not None and name == "tests":
            waited(warm)  # If it failed, the tests say why.
            warm = None
        code = told(name, known[name], took)
        if code:
            break
    if warm is not None:  # A check before the tests has failed.
        warm.kill()
        waited(warm)
    if beside is not None:
        code = finished(beside, code, started_at, took)
    print(f"--- {'; '.join(took)}", flush=True)
    return code


def told(name: str, command: list[str], took: list[str]) -> int:
    print(f"--- {name}: {shlex.join(command)}", flush=True)
    started_at = time.monotonic()
    code = waited(start(command))
    took.append(f"{name} {time.monotonic() - started_at:.1f} s{' FAILED' if code else ''}")
    return code


def finished(docs: subprocess.Popen[bytes], code: int, started_at: float, took: list[str]) -> int:
    """The documentation was built beside the rest; after a failure it is not waited for."""
    if code:
        docs.kill()
    failed = waited(docs)
    if code:
        return code
    took.append(f"pages (beside) {time.monotonic() - started_at:.1f} s{' FAILED' if failed else ''}")
    return failed


def start(command: list[str], *, patience: int = 0, silent: bool = False) -> subprocess.Popen[bytes]:
    """One command of this virtualenv, in the repository's root."""
    environment = {**os.environ, "PATH": f"{BIN}{os.pathsep}{os.environ.get('PATH', '')}"}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # Tests start hundreds of processes; each would compile 0.4 s of sources again.
    words = ["nice", "-n", str(patience), str(BIN / command[0]), *command[1:]]
    output = subprocess.DEVNULL if silent else None
    process = subprocess.Popen(words, cwd=ROOT, env=environment, stdout=output, stderr=output)
    RUNNING.append(process)
    return process


def waited(process: subprocess.Popen[bytes]) -> int:
    """Its exit code, as a shell says it."""
    code = process.wait()
    RUNNING.remove(process)
    return code if code >= 0 else 128 - code


def pass_on(number: int, frame: FrameType | None) -> None:
    """Whatever runs is told; the checks after it see that it failed."""
    print(f"--- told to end by signal {number}", flush=True)
    for process in RUNNING:
        process.send_signal(number)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
