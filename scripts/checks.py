"""Every check of `make test`, in the order of the quickest answer first; stops at the first that fails.

Run as `python scripts/checks.py [NAME ...]`; without names, all of them.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent
TYPED = ("src", "tests", "benchmarks", "fuzz", "scripts")


def commands() -> dict[str, list[str]]:
    """What each check runs; the tests get PYTEST_ARGS from the environment."""
    typed = [folder for folder in TYPED if any((ROOT / folder).rglob("*.py"))]
    return {
        "style": ["ruff", "check", "--quiet", "."],
        "format": ["ruff", "format", "--quiet", "--check", "."],
        "types": ["mypy", "--no-error-summary", *typed],
        "imports": ["lint-imports", "--no-logo"],
        "docs": ["sphinx-build", "-q", "-W", "--keep-going", "-j", "auto", "-b", "html", "docs", "docs/_build/html"],
        "tests": ["pytest", *shlex.split(os.environ.get("PYTEST_ARGS", ""))],
    }


def main(names: list[str]) -> int:
    """Run the checks named, print how long each took, return the exit code of the first that failed."""
    known = commands()
    unknown = [name for name in names if name not in known]
    if unknown:
        print(f"checks: no check called {', '.join(unknown)}; there are {', '.join(known)}", file=sys.stderr)
        return 2
    took: list[str] = []
    code = 0
    for name in names or list(known):
        print(f"--- {name}: {shlex.join(known[name])}", flush=True)
        started_at = time.monotonic()
        code = run(known[name])
        took.append(f"{name} {time.monotonic() - started_at:.1f} s{' FAILED' if code else ''}")
        if code:
            break
    print(f"--- {'; '.join(took)}", flush=True)
    return code


def run(command: list[str]) -> int:
    """One command of this virtualenv, in the repository's root."""
    environment = {**os.environ, "PATH": f"{BIN}{os.pathsep}{os.environ.get('PATH', '')}"}
    return subprocess.run([BIN / command[0], *command[1:]], cwd=ROOT, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
