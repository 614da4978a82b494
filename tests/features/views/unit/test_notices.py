"""Notices to clients leave in portions.  Spec: views 5.5, D29; foundation F17."""

from __future__ import annotations

from functools import partial

import pytest

from holdfast.features.views.protocol.notices import PORTION, Notices
from holdfast.host import FANOUT_MAX
from tests.support.fake_host import FakeHost

WITHIN = 0.125


class Stand:
    """Notices, and who was told what when."""

    def __init__(self) -> None:
        self.host = FakeHost()
        self.notices = Notices(self.host, WITHIN)
        self.told: list[tuple[float, str, str]] = []

    def put(self, client: str, what: str = "view") -> None:
        self.notices.put(client, partial(self._tell, client, what))

    def _tell(self, client: str, what: str) -> None:
        self.told.append((self.host.now, client, what))


@pytest.fixture
def stand() -> Stand:
    return Stand()


@pytest.mark.parametrize("clients", [1, PORTION, PORTION + 1, 700, 2000])
def test_a_portion_is_below_the_fan_out_and_all_are_told_in_time(stand: Stand, clients: int) -> None:
    """Views D29, foundation F17: room is left for servers; the last one is told within half a heartbeat. Seen: 700 took 0.29 s."""
    begun = stand.host.now
    for i in range(clients):
        stand.put(f"c{i}")
    assert stand.told == []
    stand.host.pass_time(1.0)
    assert [client for _, client, _ in stand.told] == [f"c{i}" for i in range(clients)]
    times = [when for when, *_ in stand.told]
    assert max(times.count(when) for when in set(times)) <= PORTION < FANOUT_MAX
    assert times[-1] <= begun + WITHIN


def test_a_later_notice_takes_the_place_of_one_that_waits(stand: Stand) -> None:
    """Views 5.5: a client hears of a change that is through as of a view, once."""
    stand.put("a", "change")
    stand.put("b", "change")
    stand.put("a", "view")
    stand.host.pass_time(0)
    assert [(client, what) for _, client, what in stand.told] == [("b", "change"), ("a", "view")]


def test_what_is_told_may_put_more(stand: Stand) -> None:
    """Views 5.4 (look): a look before a view is told begins another change; there is still one timer, and the stop ends it."""
    stand.notices.put("a", lambda: stand.put("b"))
    for i in range(PORTION + 1):
        stand.put(f"c{i}")
    stand.host.pass_time(0)
    assert stand.host.timers == 1
    stand.host.pass_time(1)
    assert [client for _, client, _ in stand.told][-3:] == [f"c{PORTION - 1}", f"c{PORTION}", "b"]


def test_after_a_stop_it_begins_anew(stand: Stand) -> None:
    """Views D31: a seat takes its server out and puts it back. Seen: it told nothing any more."""
    stand.put("a")
    stand.notices.stop()
    assert stand.host.timers == 0
    stand.put("b")
    stand.host.pass_time(0)
    assert [client for _, client, _ in stand.told] == ["b"]
