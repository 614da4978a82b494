"""HTTP of real agents: what only a whole process can show."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast import sync
from tests.http.conftest import TOKEN
from tests.http.test_metrics import parsed
from tests.http.wire import ask
from tests.support.agents import AgentProcess, Fleet, until

BEARER = {"Authorization": f"Bearer {TOKEN}"}
RSS_MIB_MAX = 43.0  # with HTTP (41.4 is usual); the reason why uvicorn gets a hollow ssl


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


def test_leadership_over_http(fleet: Fleet) -> None:
    """/v1/leaders and the metrics of section 9, of an agent that is its own seat and leads for a client."""
    with fleet:
        a = fleet.start(name="a", http="127.0.0.1:0", key=None, group="alone", lease=None)
        url = str(a.ready["http"])
        assert ask(url, "/v1/leaders").json["leaders"] == []
        with sync.join(agent=a.socket) as group, group.lead("<b>sched</b>", timeout=60) as term:
            until(lambda: ask(url, "/v1/leaders").json["leaders"], "it is known to lead")
            answer = ask(url, "/v1/leaders").json
            (line,) = answer["leaders"]
            assert (line["name"], line["leader"], line["boot"], line["token"]) == ("<b>sched</b>", "a", a.ready["boot"], term.token)
            assert (line["me"], line["terms"], line["vacant"], line["candidates"]) == (True, 1, None, ["a"])
            assert answer["timing"] == {"heartbeat": 0.3, "term": pytest.approx(0.45), "bound": None}  # nobody else is there
            (grant,) = ask(url, "/v1/grants").json["grants"]
            assert (grant["kind"], grant["token"]) == ("lead", term.token)
            until(lambda: "lead_margin_seconds_least" in ask(url, "/metrics").body.decode(), "it was renewed")
            _, samples = parsed(ask(url, "/metrics").body.decode())
            assert [samples[f"holdfast_lead_{name}"] for name in ("names", "own", "candidacies", "terms_total")] == [1, 1, 1, 1]
            assert samples["holdfast_lead_heartbeats_total"] > 1
            assert 0 < samples["holdfast_lead_margin_seconds_least"] < 0.45
            assert (
                samples['holdfast_lead_lease_margin_seconds_bucket{le="0.5"}'] == samples["holdfast_lead_lease_margin_seconds_count"] >= 1
            )
            assert samples["holdfast_lead_interval_seconds"] == pytest.approx(0.3)
            assert samples['holdfast_lead_step_downs_total{reason="lapsed"}'] >= 0
        until(lambda: ask(url, "/v1/leaders").json["leaders"][0]["leader"] is None, "nobody leads it any more")
        tickets_over_http(a, url)
        assert a.stop() == 0


def tickets_over_http(a: AgentProcess, url: str) -> None:
    """/v1/tickets and the metrics of tickets 9.7, of the same agent."""
    assert ask(url, "/v1/tickets").json["pools"] == []
    with sync.join(agent=a.socket) as group, group.ticket("gpu", of=8, timeout=60, metadata={"<b>": "n7"}) as ticket:
        until(lambda: ask(url, "/v1/tickets").json["pools"], "it is announced")
        answer = ask(url, "/v1/tickets").json
        (pool,) = answer["pools"]
        (line,) = pool["tickets"]
        assert (pool["pool"], pool["of"], pool["here"], pool["waiting"]) == ("gpu", 8, 1, 0)
        assert (line["number"], line["holder"], line["me"], line["token"]) == (ticket.number, "a", True, ticket.token)
        assert line["metadata"] == {"<b>": "n7"}
        assert answer["timing"] == {"lease": 1.0, "period": 0.2, "told": pytest.approx(0.75, abs=0.01)}
        until(lambda: "ticket_margin_seconds_least" in ask(url, "/metrics").body.decode(), "it was renewed")
        _, samples = parsed(ask(url, "/metrics").body.decode())
        assert [samples[f"holdfast_{name}"] for name in ("tickets_owned", "tickets_free_coordinated", "ticket_pools")] == [1, 7, 1]
        assert [samples[f"holdfast_ticket_{name}"] for name in ("wishes", "waiters", "granted_total", "takeovers_total")] == [1, 0, 1, 1]
        assert [samples[f"holdfast_ticket_{name}_total"] for name in ("handovers", "exclusions", "rebounds", "phase_timeouts")] == [0] * 4
        assert samples["holdfast_ticket_guardian_cells"] >= samples["holdfast_ticket_guardian_pools"] >= 1
        assert samples["holdfast_ticket_guardian_tombstones"] == 0
        assert samples['holdfast_ticket_moves_total{what="acquired"}'] == 1
        for name, most in (("acquire_wait", 60.0), ("lease_margin", 1.0), ("renew_rtt", 60.0)):
            values = f"holdfast_ticket_{name}_seconds"
            assert samples[f'{values}_bucket{{le="+Inf"}}'] == samples[f"{values}_count"] >= 1
            assert 0 < samples[f"{values}_sum"] < most * samples[f"{values}_count"]
        assert samples["holdfast_prcast_duplicates_total"] >= 0
        told = {each["name"] for each in ask(url, "/v1/events?internal=true").json["events"]}
        assert "tickets.TicketAcquired" in told
        assert "tickets.TicketExtended" not in told
