"""HTTP of real agents: what only a whole process can show."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.http.conftest import TOKEN
from tests.http.wire import ask
from tests.support.agents import Fleet

BEARER = {"Authorization": f"Bearer {TOKEN}"}
RSS_MIB_MAX = 42.0  # with HTTP; the reason why uvicorn gets a hollow ssl


@pytest.fixture
def fleet(tmp_path: Path) -> Fleet:
    (tmp_path / "token").write_text(TOKEN)
    return Fleet(tmp_path, lease=1.0, http_token_file=str(tmp_path / "token"))


def test_leaving_over_http(fleet: Fleet) -> None:
    """POST /v1/force-leave asks another agent, which drains and ends with 0; POST /v1/leave ends the agent itself, server and all."""
    with fleet:
        a = fleet.start(name="a", http="127.0.0.1:0")
        b = fleet.start(name="b", seeds=[a.address])
        a.until_said("Joined", member=b.id)
        url = str(a.ready["http"])
        assert ask(url, "/v1/force-leave/nobody", "POST", headers=BEARER).status == 404
        assert ask(url, "/v1/force-leave/b", "POST", headers=BEARER).json == {"state": "agreed"}
        assert b.wait() == 0
        a.until_said("Left", member=b.id)
        answer = ask(url, "/v1/leave", "POST", headers=BEARER)
        assert (answer.status, answer.json) == (202, {"state": "leaving"})
        assert a.wait() == 0


def test_serving_costs_little(fleet: Fleet) -> None:
    """An idle agent with HTTP stays within its memory, and tells no secret."""
    with fleet:
        a = fleet.start(name="a", http="127.0.0.1:0")
        url = str(a.ready["http"])
        info = ask(url, "/v1/info")
        assert info.json["settings"]["key"] == "(hidden)"
        assert TOKEN.encode() not in info.body + ask(url, "/metrics").body
        assert ask(url, "/").status == 200
        assert a.rss_mib <= RSS_MIB_MAX
        assert a.stop() == 0
