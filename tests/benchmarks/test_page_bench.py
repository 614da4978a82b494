"""The benchmark of the page, as small as it goes: that it measures, not what."""

from __future__ import annotations

import pytest

from benchmarks import page
from tests.page.chromium import MISSING, PROGRAM

TINY = page.Size(seconds=0.6, members=30, large=40, settle_seconds=0.2)


def test_the_page_is_measured() -> None:
    """Issue 17, 5: the main thread's share comes from the browser, while members change as often as they are to; no error on the page."""
    if not PROGRAM:
        pytest.skip(MISSING)
    report = page.run(size=TINY)
    assert report.problems == []
    assert report.ratios.keys() == {"main_thread_share", "main_thread_5000", "main_thread_idle", "longest_frame_ms"}
    assert all(share is not None and share > 0 for name, share in report.ratios.items() if name.startswith("main_thread"))
    assert report.raw["small"]["changes"] >= 3
    assert report.raw["idle"]["changes"] == 0
    assert report.raw["small"]["cells_drawn"] > 30


def test_without_a_browser(monkeypatch: pytest.MonkeyPatch) -> None:
    """H241: what could not be measured meets no goal."""
    monkeypatch.setattr(page, "PROGRAM", "")
    report = page.run(size=TINY)
    assert (report.verdict, list(report.problems)) == ("miss", [MISSING])
