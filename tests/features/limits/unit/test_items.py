"""What a process is told beside its rate.  Spec: limits 5.1, D3, D11, H310."""

from __future__ import annotations

from typing import Any

from holdfast.features.limits.items import Items
from holdfast.features.limits.streams import LimitStream
from holdfast.features.limits.users import Used
from tests.features.limits.stand import API, EPOCH, LIVES, SETTLE, A, B, C, Stand, view_of
from tests.features.views.fake_views import FakeClient

EXACT: dict[str, Any] = {"policy": "exact", "fleet": 3}


def claims_at(stand: Stand, *, returned: bool = False) -> float:
    """As a process without a rate is told, and as it would be told anew when it changes."""
    items, used = Items(stand.limiter, EPOCH), Used(API, lambda: stand.host.now)
    client: Any = FakeClient()
    stream = LimitStream(client, 1, 1, None)
    stream.returned = returned
    item = items.item(used, stream)
    assert (item.serial, item.rate) == (0, 0.0)
    assert returned or items.state(used)[-1] == item.claims_at
    return item.claims_at


def test_a_life_says_from_when_on_it_may_claim_a_part() -> None:
    """H310, D11: ``settle`` after its start, and after each view that it enters before that; then it has its part."""
    stand = Stand()
    stand.limit(600.0, arrives=20.0, **EXACT)
    assert claims_at(stand) == stand.host.now + SETTLE
    stand.pass_time(1.0)
    stand.views.install(view_of(5, (A, B, C)))
    assert claims_at(stand) == stand.host.now + SETTLE
    assert claims_at(stand, returned=True) == 0.0  # What this life told before is its own to lower.
    stand.settle()
    stand.epochs(2)
    assert stand.holding.raised
    assert claims_at(stand) == 0.0


def test_one_that_is_beyond_the_fleet_or_under_another_policy_claims_nothing() -> None:
    """D3: its part is another member's. The other policies end no share by themselves."""
    stand = Stand(LIVES[3])
    stand.limit(600.0, arrives=20.0, **EXACT)
    stand.views.install(view_of(5, LIVES[:4]))
    assert claims_at(stand) == 0.0
    for policy in ("fair", "strict"):
        stand = Stand()
        stand.limit(600.0, arrives=20.0, policy=policy, fleet=3)
        assert claims_at(stand) == 0.0
