"""One browser for the tests of a file; skipped, with the reason, where there is none."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest

from tests.page.chromium import MISSING, PROGRAM, Browser, Page, browser


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    if not PROGRAM:
        pytest.skip(MISSING)
    folder = tmp_path_factory.mktemp("chromium")
    with browser(folder) as started:
        yield started
    shutil.rmtree(folder, ignore_errors=True)  # A killed browser leaves hundreds of files.


@pytest.fixture
def page(chromium: Browser) -> Iterator[Page]:
    with chromium.page() as opened:
        yield opened
