"""The watched's side: indices, stamps, send times, K, common cause, pages.  Spec: fast-detection 2, 5, D2, D3, D10, D17b; foundation 3."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.features.leadership.detector.config import FfdConfig
from holdfast.features.leadership.detector.messages import Granted, Lead, MonitorOk, WatchedOk
from holdfast.features.leadership.detector.watched import STAMPS_MAX, Watched, paged
from holdfast.host import DATAGRAM_BYTES_MAX, Message, NodeId
from holdfast.wire.codec import BOOT_MAX, Codec
from holdfast.wire.seal import SEALED_BYTES_MIN
from tests.support.fake_host import FakeHost

CONFIG = FfdConfig()
LEAD = Lead("", 1, 2, True, 1.5)
WORST = (1 << 53) - 1


def watched(config: FfdConfig = CONFIG, *, name: str = "w") -> tuple[FakeHost, Watched]:
    host = FakeHost(name)
    side = Watched(host, config)
    side.begin(["a", "b", "w"])
    return host, side


def answer(seq: int, stamp: int, missed: int = 0) -> MonitorOk:
    return MonitorOk(seq, stamp, (), missed)


def test_grid() -> None:
    """Section 5: sigma_i = i t_itv on the own clock; off the grid the running index, with the seconds since its tick."""
    host, side = watched(FfdConfig(t_itv=0.3))
    host.clock = 1000.2
    assert side.next_at == pytest.approx(1000.5)  # This is a tick itself: 3334 t_itv.
    host.clock = 1000.25
    (off,) = side.heartbeat([LEAD])
    assert off.seq == 3334
    assert off.after == pytest.approx(0.05)
    for tick in range(1, 50):
        host.clock = side.next_at
        (ok,) = side.heartbeat([LEAD])
        assert (ok.seq, ok.after) == (3334 + tick, 0.0)


def test_grid_of_synchronised_clocks() -> None:
    """Section 3: with synchronised clocks the grid is that of the wall clock, whatever the host's own says."""
    host, side = watched(FfdConfig(skew=0.01))
    host.wall_clock = 1_700_000_000.25
    assert side.next_at == pytest.approx(host.now + 0.75)
    assert side.heartbeat([LEAD])[0].seq == 1_700_000_000


def test_stamps_and_send_times() -> None:
    """Section 2: every heartbeat has a new stamp and its send time, repeats too; the last 64 of the term are known."""
    host, side = watched()
    for _ in range(STAMPS_MAX + 1):
        side.heartbeat([LEAD])
        host.clock += 0.5
    assert side.stamp == STAMPS_MAX + 1
    assert (side.sent_at(1), side.sent_at(2)) == (None, 1000.5)
    assert side.on_monitor_ok(NodeId("a", 1), answer(1000, 2)) == 1000.5
    assert side.on_monitor_ok(NodeId("a", 1), answer(1000, 1)) is None
    assert side.on_monitor_ok(NodeId("a", 1), answer(1000, -1)) is None
    side.begin(["a"])
    assert side.sent_at(side.stamp) is None
    assert side.heartbeat([LEAD])[0].stamp == STAMPS_MAX + 2


def test_monitors_believed_alive() -> None:
    """Fig. 1, D2, D3: without the watched; those not heard for m_Omega t_itv + t_lat are out, and in again with their next word."""
    host, side = watched()
    assert side.heartbeat([LEAD])[0].among == ("a", "b")
    host.clock += 5.0
    side.on_monitor_ok(NodeId("a", 1), answer(1004, -1))
    host.clock += 0.06
    former = side.among
    side.on_monitor_ok(NodeId("b", 1), answer(1005, -1))
    assert (former, side.among) == (("a",), ("a", "b"))


def test_monitors_change() -> None:
    """D17b: newcomers count as just heard, who is not listed is a stranger."""
    host, side = watched()
    host.clock += 5.06
    side.follow(["b", "c"])
    assert side.among == ("c",)
    assert side.on_monitor_ok(NodeId("a", 1), answer(1, 1)) is None
    assert side.counts["stranger"] == 1


@pytest.mark.parametrize("message", [answer(-1, 1), answer(1, 1, -1), answer(1, 1, 1 << 32)])
def test_malformed_answers(message: MonitorOk) -> None:
    """What a peer sends is counted, never believed."""
    _, side = watched()
    side.heartbeat([LEAD])
    assert side.on_monitor_ok(NodeId("a", 1), message) is None
    assert side.counts["malformed"] == 1


def test_common_cause_survives_terms() -> None:
    """D10: heartbeats that reached nobody raise c; it is remembered across terms and sent with every heartbeat."""
    host, side = watched()
    bits = 0
    for number in range(200):
        (ok,) = side.heartbeat([LEAD])
        lost = number % 20 == 10
        for name in "" if lost else "ab":
            side.on_monitor_ok(NodeId(name, 1), answer(ok.seq, ok.stamp, bits))
        bits = (bits << 1 | lost) & 0xFFFFFFFF
        host.clock += 1.0
    assert 0.03 < side.common < 0.06
    side.begin(["a", "b"])
    assert side.heartbeat([LEAD])[0].common == side.common > 0.03


def test_own_stop_is_no_common_cause() -> None:
    """D10: heartbeats that were never sent, because the watched was stopped, were missed by all and are no loss."""
    host, side = watched()
    for number in range(60):
        if number % 10 == 5:
            host.clock += 3.0
        (ok,) = side.heartbeat([LEAD])
        missed = 0b111 if number % 10 == 5 else 0b111 << number % 10 - 5 if number % 10 > 5 else 0
        for name in ("a", "b"):
            side.on_monitor_ok(NodeId(name, 1), answer(ok.seq, ok.stamp, missed))
        host.clock += 1.0
    assert side.common < 2e-6


names = st.text(st.characters(codec="utf-8"), max_size=128).filter(lambda text: len(text.encode()) <= 128)


def sealed_bytes(sender: NodeId, message: Message) -> int:
    return SEALED_BYTES_MIN + len(Codec([WatchedOk, MonitorOk]).encode(sender, BOOT_MAX, bytes(8), message))


@given(st.lists(names, max_size=60), st.lists(st.integers(1, 64), max_size=64))
def test_pages_fit_a_datagram(leads: list[str], monitors: list[int]) -> None:
    """Foundation 3: each page, and the answer to it, stays below 1200 sealed bytes with the longest names and numbers; nothing is lost."""
    sender = NodeId("w" * 64, BOOT_MAX)
    side = Watched(FakeHost(sender.name, sender.boot), CONFIG)
    side.begin([f"{number:02}".ljust(length, "m")[:64] for number, length in enumerate(monitors)])
    pages = side.heartbeat([Lead(name, WORST, WORST, True, 1e300 / 3) for name in leads])
    assert [lead.name for page in pages for lead in page.leads] == leads
    assert [(page.page, page.pages, page.stamp) for page in pages] == [(number, len(pages), 1) for number in range(len(pages))]
    for page in pages:
        answers = tuple(Granted(lead.name, WORST, WORST, True, 1e300 / 3, WORST, WORST) for lead in page.leads)
        assert sealed_bytes(sender, page) <= DATAGRAM_BYTES_MAX
        assert sealed_bytes(sender, MonitorOk(WORST, WORST, answers, 0xFFFFFFFF)) <= DATAGRAM_BYTES_MAX


def test_too_many_monitors_are_cut() -> None:
    """Section 3: K takes at most 900 bytes; the first names stay, so ranks stay what they are, and it is counted."""
    side = Watched(FakeHost("w"), CONFIG)
    monitors = [f"{number:02}" + "m" * 62 for number in range(30)]
    side.begin(monitors)
    (ok,) = side.heartbeat([LEAD])
    assert list(ok.among) == monitors[:13]
    assert side.counts["among_cut"] == 1


def test_pages_are_few() -> None:
    """D17b: 30 names of ten letters need two datagrams, beside the names of ten monitors."""
    leads = [Lead(f"service-{number:02}", 0, 1_700_000_000_000, True, 3.0) for number in range(30)]
    assert [len(page) for page in paged(leads, [f"agent-{number}" for number in range(10)])] == [15, 15]
    assert paged([]) == [()]
