"""The code in README and documentation runs as written."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.blocks import HOLDFAST, blocks, commands, run_command, run_python

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
NAMES = [page.relative_to(ROOT).as_posix() for page in PAGES]


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What an example writes, it writes into a folder of its own."""
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("page", NAMES)
def test_python_runs(page: str) -> None:
    """Style 6: code in documents is executed."""
    found = [block for block in blocks((ROOT / page).read_text()) if block.language == "python" and not block.skipped]
    if found:
        run_python(page, found)


@pytest.mark.parametrize("page", NAMES)
def test_commands_run(page: str) -> None:
    """Style 6: so are the commands, and what a page shows below one is what it prints."""
    found = [block for block in blocks((ROOT / page).read_text()) if block.language == "console" and not block.skipped]
    for block in found:
        for command in commands(block.body):
            assert HOLDFAST.exists()
            run_command(command)
