"""What doctor says about a real ensemble of ZooKeeper that grants longer sessions than it is asked for.  Spec: views 5Z, 9."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.features.views.calls import SurveyViews, WatchViews
from holdfast.features.views.lab.ensemble import STALE, Ensemble, missing
from holdfast.features.views.lab.wires import Wires
from holdfast.local.calls import Doctor, Finding
from tests.agent.live import Live
from tests.agent.raw_client import RawClient
from tests.support.agents import until

pytestmark = [pytest.mark.nightly, pytest.mark.skipif(bool(missing()), reason=missing())]

GRANTED = 6.0  # seconds: the shortest session of this ensemble
TIMEOUT = 0.5  # seconds of one examination


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """One server is enough to grant sessions."""
    folder = tmp_path_factory.mktemp("zookeeper")
    with Wires() as wires, Ensemble(folder, wires, count=1, session_min=int(GRANTED * 1000)) as ensemble:
        yield str(ensemble.door(0).address)


def findings_after_a_view(folder: Path, server: str, asked: float) -> list[Finding]:
    """About the ensemble, of an agent that asked for such sessions and is in a view."""
    settings: dict[str, Any] = {"name": "a", "zookeeper": server, "zk_session": asked, "zk_stale": STALE}
    with Live(folder, **settings) as live, RawClient(live.path) as client:
        client.say(WatchViews)

        def is_in_a_view() -> bool:
            with RawClient(live.path) as other:
                return other.ask(SurveyViews).view is not None

        until(is_in_a_view, "a view of one")
        with RawClient(live.path) as other:
            found: tuple[Finding, ...] = other.ask(Doctor, TIMEOUT)
    return [each for each in found if each.code.startswith("zookeeper_")]


def test_longer_sessions_than_asked_for(tmp_path: Path, server: str) -> None:
    """Views 5Z, 9 (`zookeeper_session`): the ensemble's minSessionTimeout is above zk_session; both numbers are told, and the ensemble."""
    (found,) = findings_after_a_view(tmp_path, server, 2.0)
    assert (found.code, found.severity, found.about) == ("zookeeper_session", "warning", server)
    assert f"grants sessions of {GRANTED:g} s, and 2 s were asked for" in found.text


def test_what_was_asked_for(tmp_path: Path, server: str) -> None:
    """Views 5Z, 9: the same ensemble gives what it is asked for where that is long enough, and doctor is content."""
    assert findings_after_a_view(tmp_path, server, GRANTED) == []
