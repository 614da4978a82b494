"""The search for a run that fails: it begins where one was found before."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from holdfast.lab.scenario import Scenario, run


class Search:
    """Which invariant does the first failing seed name?

    That some seed fails is what is shown, and looking for it anew costs minutes. So `make test` runs the seed that is known (0 if the file
    does not name another), and `make test-all` looks for it from 0 on. Where the known one does not fail any more, because the runs are
    others than when it was written, ``--rewrite`` looks for the new one and notes it.
    """

    def __init__(self, name: str, file: Path, *, rewrite: bool, hunt: bool) -> None:
        self._name, self._file, self._rewrite, self._hunt = name, file, rewrite, hunt

    def __call__(self, scenario: Scenario, seeds: int, *, ignored: str = "") -> str:
        """Of the seeds below ``seeds``; fails if none of those that were tried does.

        ``ignored``: how a violation begins that proves nothing.
        """
        known: dict[str, int] = json.loads(self._file.read_text())
        tried = range(seeds) if self._hunt or self._rewrite else [known.get(self._name, 0)]
        failing = (outcome for seed in tried if not (outcome := run(scenario, seed)).ok)
        found = next((outcome for outcome in failing if not (ignored and outcome.violation.startswith(ignored))), None)
        if found is None:
            again = "" if self._hunt else f"; look for another: pytest --rewrite '{self._file.with_name(self._name)}', then read the diff"
            raise AssertionError(f"{self._name}: nothing fails in {seeds_of(tried)} without this rule{again}")
        if self._rewrite:
            others = {name: seed for name, seed in known.items() if name != self._name}
            self._file.write_text(json.dumps(dict(sorted({**others, self._name: found.seed}.items())), indent=1) + "\n")
        return found.violation.partition(":")[0]


def seeds_of(tried: Sequence[int]) -> str:
    return f"seed {tried[0]}" if len(tried) == 1 else f"{len(tried)} seeds"
