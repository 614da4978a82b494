"""The recorder sees a break of G6 by real agents from which a rule was taken.  Spec: views 7 (CB6, teeth), D24, D25, D26."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.features.views.process.fleet import LONG_NAME, SEATS, SMALL, ViewFleet, clients_of
from tests.support.netns import Namespaces, unavailable

pytestmark = [pytest.mark.netns, pytest.mark.nightly, pytest.mark.timeout(240)]


@pytest.mark.parametrize("module, wrong", [("holdfast.agent", False), ("tests.features.views.process.careless_agent", True)])
def test_servers_that_vouch_without_numbers_are_seen(tmp_path: Path, module: str, wrong: bool) -> None:
    """Views D24, D26: the link of s0 and s2 is cut, and the link state of s0 that says so does not reach s1. Two clean views come; servers
    that do not ask for numbers let clients of s0 count on the former view for ever, which CB6 says of the record."""
    reason = unavailable()
    if reason is not None:
        pytest.skip(reason)
    others = clients_of("s0", 2, f"m{LONG_NAME}")  # two: a link state that is large enough
    with Namespaces(len(SEATS) + len(others)) as net, ViewFleet(tmp_path, net, others, module=module) as fleet:
        fleet.together()
        fleet.lasts(fleet.config.settle)
        net.cut_large(0, 1, SMALL)
        net.cut_both(0, 2)
        time.sleep(2 * fleet.config.settle + fleet.bound)
        found = fleet.wrongs(fleet.config.settle)
        assert [each[:3] for each in found[:1]] == (["CB6"] if wrong else [])
        if not wrong:
            fleet.until(lambda: fleet.in_clean_views() and fleet.view("s0") != fleet.view("s1"), "two clean views")
