"""Runs a command in this process, as the entry point would: arguments in, exit code and text out."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from holdfast.cli import main


class Ended(NamedTuple):
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one object on stdout."""
        return json.loads(self.out)

    def refused(self, code: int, *told: str) -> None:
        """It ended with that code and one clear line, and printed nothing else."""
        assert self.code == code, self
        assert self.out == ""
        assert self.err.count("\n") == 1, self.err
        assert self.err.startswith("holdfast: ")
        assert "Traceback" not in self.err
        for text in told:
            assert text in self.err


Run = Callable[..., Ended]


def runner(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs a command in this process. Lines of progress come by wall-clock, so on a busy machine only: here they would be in the way."""
    monkeypatch.setattr("holdfast.cli.progress.FIRST_AFTER", 3600.0)

    def run(*words: object) -> Ended:
        monkeypatch.setattr("sys.argv", ["holdfast", *map(str, words)])
        with pytest.raises(SystemExit) as caught:
            main()
        captured = capsys.readouterr()
        assert isinstance(caught.value.code, int | None)
        return Ended(caught.value.code or 0, captured.out, captured.err)

    return run
