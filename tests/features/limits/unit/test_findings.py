"""What doctor says about limits: each fault is planted, seen under its code, and not said without the fault.  docs/operations.md."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from holdfast.events import SpecConflict
from holdfast.features.limits.findings import PANIC_AFTER, of_limits
from holdfast.features.limits.protocol import survey
from holdfast.features.limits.protocol.survey import LimiterLook, LimitLook
from holdfast.host import NodeId, ViewId
from holdfast.local.calls import Finding

LIMIT = LimitLook(
    name="api", rate=500.0, set_rate=500.0, burst=50.0, policy="fair", share="maxmin", aggregation="gossip", fleet=4, auto=False, by="a",
    version=3, is_open=True, used=125.0, told=125.0, target=125.0, want=100.0, waiting=0.0, aggregate=400.0, single=125.0, state="stable",
    quota=None, starved=False,
)  # fmt: skip
MEMBER = LimiterLook(
    agreed=True, inst=ViewId(3, "s0", 1), size=4, provisional=False, panic_for=None, apart=False, settles_in=None, quiet=False, black=(),
    choke=(), outstanding=0.0, epochs=10,
)  # fmt: skip


def found(
    monkeypatch: pytest.MonkeyPatch, limit: dict[str, Any] | None = None, conflict: SpecConflict | None = None, **member: Any
) -> list[Finding]:
    monkeypatch.setattr(survey, "limits_of", lambda limiter: (LIMIT._replace(**(limit or {})),))
    monkeypatch.setattr(survey, "member_of", lambda limiter, now: MEMBER._replace(**member))
    conflicts = {} if conflict is None else {"api": conflict}
    limiter: Any = SimpleNamespace()
    return list(of_limits(limiter, conflicts, "a", 100.0))


PLANTED: list[tuple[dict[str, Any], str, str, str]] = [
    ({"conflict": SpecConflict("api", 500.0, "b", 300.0)}, "limit_conflict", "warning", "500, set by a, counts; 300 does not"),
    ({"size": 5}, "limit_fleet", "warning", "5 members, and the limit is divided for 4"),
    ({"size": 2, "limit": {"auto": True}}, "limit_fleet", "note", "2 of the 4 members of the last ten minutes"),
    ({"limit": {"starved": True, "used": 1.0}}, "limit_starved", "warning", "this agent may use 1 of 500"),
    ({"panic_for": PANIC_AFTER + 10}, "limit_panic", "error", "For 12 s this agent is in no view: each limit is used with 1/n"),
    ({"panic_for": PANIC_AFTER + 10, "apart": True}, "limit_panic", "error", "others see another member list"),
    ({"black": (NodeId("b", 7),)}, "limit_blacklist", "warning", "No direct message passes"),
    ({"choke": (NodeId("b", 7), NodeId("c", 8))}, "limit_choke", "warning", "Few direct links are left"),
    ({"agreed": False}, "limit_members", "note", "stand on the member list"),
]


@pytest.mark.parametrize("planted, code, severity, text", PLANTED)
def test_a_fault_is_told_under_its_code(
    monkeypatch: pytest.MonkeyPatch, planted: dict[str, Any], code: str, severity: str, text: str
) -> None:
    """Issue 16: limit_conflict, limit_fleet, limit_starved, limit_panic (with R/n), limit_blacklist, limit_choke, limit_members."""
    (finding,) = found(monkeypatch, **planted)
    assert (finding.code, finding.severity) == (code, severity)
    assert text in finding.text
    assert finding.advice.endswith(".")


def test_an_agent_that_is_well_has_no_findings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Issue 16: nothing is said without the fault: also not of a view that changes, or of a conflict that was settled."""
    assert found(monkeypatch) == []
    assert found(monkeypatch, panic_for=PANIC_AFTER / 2) == []
    assert found(monkeypatch, limit={"auto": True}) == []
    assert found(monkeypatch, conflict=SpecConflict("api", 300.0, "b", 500.0)) == []
