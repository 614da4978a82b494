"""The search for a run that fails: it begins where one was found before."""

from __future__ import annotations

import json
from pathlib import Path

from holdfast.lab.scenario import Scenario, run


class Search:
    """Which invariant does the first failing seed name?

    The seed that is known is tried before the others: that some seed fails is what is shown, and looking for it anew costs minutes. Where
    it does not fail any more all are searched; then ``--rewrite`` notes the new ones.
    """

    def __init__(self, name: str, file: Path, *, rewrite: bool) -> None:
        self._name, self._file, self._rewrite = name, file, rewrite
        self._known: dict[str, int] = json.loads(file.read_text())

    def __call__(self, scenario: Scenario, seeds: int) -> str:
        """Of the seeds below ``seeds``; "" if all of them pass."""
        known = self._known.get(self._name, seeds)
        first = [known] if known < seeds and not self._rewrite else []
        found = next((outcome for seed in (*first, *range(seeds)) if not (outcome := run(scenario, seed)).ok), None)
        if found is None:
            return ""
        if self._rewrite and found.seed > 0:
            self._file.write_text(json.dumps(dict(sorted({**self._known, self._name: found.seed}.items())), indent=1) + "\n")
        return found.violation.partition(":")[0]
