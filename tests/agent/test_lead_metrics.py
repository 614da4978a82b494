"""Numbers about leadership that an operator is woken by."""

from __future__ import annotations

import pytest

from holdfast.agent.lead_metrics import REFUSED, refused
from holdfast.kit import promise
from tests.support.lead_stand import Stand


def test_a_name_beyond_what_seats_remember_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """F17: every limit has a counter; a full seat is the reason why a name is never led, and only seats know it."""
    stand = Stand(agents=4)
    monkeypatch.setattr(promise, "KEYS_MAX", 0)
    stand.stand("a3")
    stand.run(3.0)
    assert stand.leader() == ""
    assert all(refused(stand.at(seat))["table_full"] > 0 for seat in ("a0", "a1", "a2"))
    assert refused(stand.at("a3")) == dict.fromkeys(REFUSED, 0.0)
