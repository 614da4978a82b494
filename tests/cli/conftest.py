"""Commands run in a folder of their own, so that their results go nowhere else."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.command import Run, runner


@pytest.fixture
def holdfast(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Run:
    monkeypatch.chdir(tmp_path)
    return runner(monkeypatch, capsys)
