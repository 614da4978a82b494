"""Three sizes of the test suite: what `make check` runs, what `make test` runs, and what `make test-all` runs in addition.

`make check` is style, types, imports and the folders ``PURE`` of scripts/checks.py. `make test` is every folder: 20
seeds of each scenario, and for each rule taken out the seed that is known to show it. `make test-all` passes ``--all``
to pytest. With it, tests marked ``nightly`` run too, sweeps take their full number of seeds (:func:`seeds`,
:func:`later_seeds`) and then show that every branch that matters was taken, the seed that shows that a rule is missing
is looked for from 0 on, and the budgets of ``tests/budget.py`` are printed but not enforced.
"""

from __future__ import annotations

import pytest

SEEDS = 20  # of each scenario in `make test`
SEEDS_ALL = 200  # of each scenario in `make test-all`, if it does not say otherwise
_ALL = False  # set by ``choose`` before any test module is imported: parameters of tests are made at import


def choose(config: pytest.Config) -> None:
    """Read the size from the command line; called once per process, in ``pytest_configure``."""
    global _ALL  # noqa: PLW0603 # One process runs one size.
    _ALL = bool(config.getoption("--all"))


def is_all() -> bool:
    """Whether this is `make test-all`."""
    return _ALL


def seeds(full: int = SEEDS_ALL, usual: int = SEEDS) -> int:
    """The number of seeds of a sweep: ``full`` in `make test-all`, ``usual`` otherwise."""
    return full if _ALL else usual


def later_seeds(full: int = SEEDS_ALL) -> range:
    """Those of a sweep that nothing else runs: ``tests/pins`` runs the first ``SEEDS`` of each scenario in every size, and looks for
    violations as a sweep does."""
    return range(SEEDS, full)


def deselect_nightly(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave tests marked ``nightly`` out unless ``--all`` was given or the test was named on the command line."""
    if _ALL or any("::" in argument for argument in config.args):
        return
    left_out = [item for item in items if item.get_closest_marker("nightly") is not None]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item.get_closest_marker("nightly") is None]
