"""Hops of the overlay.  Spec: views 5.7, D13; foundation F11."""

from __future__ import annotations

from collections import Counter

import pytest

from holdfast.features.views.protocol import hops
from holdfast.features.views.protocol.facts import HopFailed
from holdfast.features.views.protocol.hops import Hops
from holdfast.features.views.protocol.messages import HopAck, OvData
from holdfast.host import ViewId
from tests.features.views.stand import CONFIG, PARCEL, S0, S1, S2, A, B
from tests.support.fake_host import FakeHost

DATA = OvData(A, 5, B, ViewId(1, *S0), PARCEL, 3, 0)


class Stand:
    """The hops from s0 and what became of them."""

    def __init__(self) -> None:
        self.host = FakeHost(*S0)
        self.counts: Counter[str] = Counter()
        self.hops = Hops(self.host, CONFIG, self.host.send, self.counts)
        self.ends: list[str] = []

    def send(self) -> int:
        """Its number."""
        self.hops.send(S1, DATA, arrived=lambda: self.ends.append("arrived"), failed=lambda: self.ends.append("failed"))
        return self.sent()[-1]

    def sent(self) -> list[int]:
        return [data.hop for to, data in self.host.take(OvData) if to == S1]


@pytest.fixture
def stand() -> Stand:
    return Stand()


def test_a_hop_is_repeated_until_it_is_acknowledged(stand: Stand) -> None:
    """Views 5.7: every ``hop_rto``, with the same number."""
    serial = stand.send()
    stand.host.pass_time(2.5 * CONFIG.hop_rto)
    assert stand.sent() == [serial] * 2
    stand.hops.on_ack(S1, HopAck(serial))
    stand.host.pass_time(10)
    assert stand.sent() == []
    assert stand.ends == ["arrived"]
    assert len(stand.hops) == stand.host.timers == 0


def test_a_hop_that_used_up_its_tries_is_a_failure(stand: Stand) -> None:
    """Views 5.7, D13: after ``hop_tries`` times ``hop_rto``; told once."""
    stand.send()
    stand.host.pass_time(CONFIG.hop_tries * CONFIG.hop_rto - 0.01)
    assert stand.ends == []
    assert len(stand.sent()) == CONFIG.hop_tries - 1
    stand.host.pass_time(10)
    assert stand.ends == ["failed"]
    assert stand.sent() == []
    assert stand.host.events(HopFailed) == [HopFailed(S1, 5)]


def test_an_acknowledgement_counts_once_and_from_the_receiver(stand: Stand) -> None:
    """Views 5.7: another sender, a number that is over or never was."""
    serial = stand.send()
    stand.hops.on_ack(S2, HopAck(serial))
    stand.hops.on_ack(S1, HopAck(serial + 1))
    assert stand.ends == []
    stand.hops.on_ack(S1, HopAck(serial))
    stand.hops.on_ack(S1, HopAck(serial))
    assert (stand.ends, stand.counts["late"]) == (["arrived"], 3)


def test_a_pause_is_no_failure(stand: Stand) -> None:
    """Foundation F11: the acknowledgement may wait to be read, so a timeout that is late tries once more."""
    serial = stand.send()
    stand.host.pass_time((CONFIG.hop_tries - 1) * CONFIG.hop_rto)
    stand.host.pause(3.0)
    assert stand.ends == []
    stand.hops.on_ack(S1, HopAck(serial))
    assert stand.ends == ["arrived"]


def test_hops_have_a_limit(stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    """Views 2 (hops): the caller looks, and says ``busy``."""
    monkeypatch.setattr(hops, "HOPS_MAX", 2)
    stand.send()
    assert not stand.hops.is_full
    stand.send()
    assert stand.hops.is_full


def test_nothing_goes_on_after_the_stop(stand: Stand) -> None:
    """Foundation 3 (Machine): neither of the two ends runs."""
    stand.send()
    stand.hops.stop()
    stand.host.pass_time(10)
    assert (stand.ends, stand.host.timers) == ([], 0)
