"""Which code found this?  A results file is worth something only with the commit, and with what was changed since."""

from __future__ import annotations

import hashlib
import subprocess
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import holdfast

PACKAGE = Path(holdfast.__file__).parent
GIT_TIMEOUT = 10.0  # seconds; a repository on a sleeping network disk must not stop a sweep
DIGEST_BYTES = 4  # of changed sources: enough to tell two working copies apart


@cache
def package_version() -> str:
    try:
        return version("holdfast")
    except PackageNotFoundError:
        return "unknown"  # run from a copy of the sources that was never installed


@cache
def commit() -> str:
    """The commit of this package's sources, with a digest of them if they differ from it; the version if there is no commit."""
    # A wheel may lie inside another repository: only a repository that tracks this file is ours.
    if _git("ls-files", "--error-unmatch", "__init__.py") is None:
        return package_version()
    head = _git("rev-parse", "--short=12", "HEAD")
    if not head:
        return package_version()
    return f"{head}+{digest(*sorted(PACKAGE.rglob('*.py')))}" if _git("status", "--porcelain", ".") else head


def digest(*files: Path) -> str:
    """A few letters that change when one of the files does."""
    state = hashlib.blake2b(digest_size=DIGEST_BYTES)
    for file in files:
        content = file.read_bytes()
        state.update(len(content).to_bytes(8, "big") + content)
    return state.hexdigest()


def _git(*words: str) -> str | None:
    try:
        done = subprocess.run(["git", "-C", str(PACKAGE), *words], capture_output=True, text=True, timeout=GIT_TIMEOUT, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None
