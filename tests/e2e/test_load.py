"""Leases under load: a leader that strangers ask as fast as they can, over HTTP and its local socket.  H179; real processes at lan."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from benchmarks import http_load
from holdfast import sync
from holdfast.agent.socket.budget import SHARE, SHARE_BURST

MINUTE = 60.0


def under_load(folder: Path, names: list[str], seconds: float) -> dict[str, dict[str, Any]]:
    """A client of one of three agents leads and holds a ticket while that agent is hammered, one kind of load after the other."""
    with http_load.group(folder) as agents, sync.join("bench", agent=agents[0].socket) as client:
        with client.lead("job", timeout=60.0) as term, client.ticket("gpus", of=8, timeout=60.0) as ticket:
            held = term.token, ticket.token
            found = {name: http_load.under(http_load.LOADS[name], agents, (term, ticket), seconds) for name in names}
            assert (term.token, ticket.token) == held
    return found


def check(found: dict[str, dict[str, Any]], seconds: float) -> None:
    for name, each in found.items():
        assert each["held"], f"lost under {name}: {each}"
        assert each["http_share"] <= SHARE + SHARE_BURST / seconds + 0.05, f"{name}: {each}"
        assert each["probe_worst_s"] < http_load.PROBE_TIMEOUT, f"probes failed under {name}: {each}"
        if name in ("metrics", "page", "events"):
            assert each["statuses"]["200"] > 0
            assert each["statuses"]["503"] > 0
        if name.startswith("local"):
            assert each["calls"] > 1000


def test_a_leader_keeps_its_term_under_load(tmp_path: Path) -> None:
    """H179: a hundred connections that ask without a pause, then a local client that sends as fast as it can: term, ticket and membership
    stay, HTTP takes no more than its share of the time, what is beyond the rate gets 503, and probes are answered."""
    check(under_load(tmp_path, ["events", "local-8"], 4.0), 4.0)


@pytest.mark.nightly
@pytest.mark.timeout(5 * MINUTE)
@pytest.mark.parametrize("name", [name for name in http_load.LOADS if name != "idle"])
def test_a_minute_of_every_load(tmp_path: Path, name: str) -> None:
    """H179: the same for a minute each."""
    check(under_load(tmp_path, [name], MINUTE), MINUTE)
