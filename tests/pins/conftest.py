"""What the pins share: a golden file and what was seen, compared line by line; ``--rewrite`` writes it again, then read the diff."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from difflib import unified_diff
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent / "golden"
WHY = (
    "{name} is not as it was pinned. Peers, files, programs or people outside this process rely on it: take the change back. If it is "
    "meant, write its line into CHANGELOG.md and run: pytest tests/pins --rewrite"
)

Pinned = Callable[[str, Iterable[str]], None]


def difference(path: Path, lines: Iterable[str], *, rewrite: bool = False) -> str:
    """Between a golden file and what was seen now; "" if there is none. With ``rewrite`` the file becomes what was seen."""
    now = "".join(f"{line.rstrip()}\n" for line in lines)
    if rewrite:
        path.write_text(now, encoding="utf-8")
        return ""
    golden = path.read_text(encoding="utf-8") if path.exists() else ""
    return "".join(unified_diff(golden.splitlines(keepends=True), now.splitlines(keepends=True), "golden", "now", n=3))


@pytest.fixture
def pinned(rewrite: bool) -> Pinned:
    """``pinned(name, lines)``: fails unless golden/name.txt has exactly these lines."""

    def check(name: str, lines: Iterable[str]) -> None:
        path = FOLDER / f"{name}.txt"
        found = difference(path, lines, rewrite=rewrite)
        assert not found, f"{WHY.format(name=path.name)}\n{found}"

    return check
