"""What all tests share: budgets and limits, who runs what, what is said at once, the seeds that are printed, the switch that rewrites."""

from __future__ import annotations

import gc

import pytest
from hypothesis import settings

from tests import sizes
from tests.budget import Budgets
from tests.limits import Limits
from tests.sharing import Shared
from tests.support.search import Search
from tests.told import Told

pytest_plugins = ["pytester"]

# No deadline per example: on a busy machine it finds the neighbours' work, not a fault. Fresh examples in every run, and a
# blob with every failure that replays it.
settings.register_profile("holdfast", deadline=None, derandomize=False, print_blob=True)
settings.load_profile("holdfast")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rewrite", action="store_true", help="write the golden files again from what was seen; then read the diff")
    parser.addoption("--all", action="store_true", help="the nightly tests too, and sweeps with their full number of seeds")


def pytest_configure(config: pytest.Config) -> None:
    sizes.choose(config)
    config.pluginmanager.register(Budgets.of(config.rootpath, enforced=not config.getoption("--all")), "holdfast-budgets")
    config.pluginmanager.register(Shared(), "holdfast-sharing")
    config.pluginmanager.register(Limits(), "holdfast-limits")
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Told(config), "holdfast-told")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    sizes.deselect_nightly(config, items)


def pytest_collection_finish() -> None:
    """Thousands of tests that were collected are no garbage: it need not be looked for among them a million times."""
    gc.collect()
    gc.freeze()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """The seed is in the header too, but the end is what people copy from a failing run."""
    seed = config.getoption("randomly_seed", None)
    if seed is not None:
        terminalreporter.write_line(f'same order again: make test PYTEST_ARGS="--randomly-seed={seed}"')


@pytest.fixture
def rewrite(request: pytest.FixtureRequest) -> bool:
    """Whether golden files are to be written instead of compared."""
    return bool(request.config.getoption("--rewrite"))


@pytest.fixture
def search(request: pytest.FixtureRequest, rewrite: bool) -> Search:
    """Finds a seed that fails. Which one is known stands beside the sweep, by file and test."""
    known = request.path.with_name("known_seeds.json")
    return Search(f"{request.path.name}::{request.node.name}", known, rewrite=rewrite, hunt=sizes.is_all())
