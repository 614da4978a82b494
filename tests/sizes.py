"""Two sizes of the test suite: what `make test` runs, and what `make test-all` runs in addition.

`make test-all` passes ``--all`` to pytest. With it, tests marked ``nightly`` run too, sweeps take their full number of seeds
(:func:`seeds`), and the budgets of ``tests/budget.py`` are printed but not enforced.
"""

from __future__ import annotations

import pytest

_ALL = False  # set by ``choose`` before any test module is imported: parameters of tests are made at import


def choose(config: pytest.Config) -> None:
    """Read the size from the command line; called once per process, in ``pytest_configure``."""
    global _ALL  # noqa: PLW0603 # One process runs one size.
    _ALL = bool(config.getoption("--all"))


def seeds(usual: int, full: int) -> int:
    """The number of seeds of a sweep: ``usual`` in `make test`, ``full`` in `make test-all`."""
    return full if _ALL else usual


def deselect_nightly(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave tests marked ``nightly`` out unless ``--all`` was given or the test was named on the command line."""
    if _ALL or any("::" in argument for argument in config.args):
        return
    left_out = [item for item in items if item.get_closest_marker("nightly") is not None]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item.get_closest_marker("nightly") is None]
