"""The temporal detector of one pair: arithmetic over arrival times.  Spec: fast-detection 4, 5 (freshness points), D11."""

from __future__ import annotations

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.features.leadership.detector.config import WINDOW
from holdfast.features.leadership.detector.detectors import NfdE, PhiAccrual, Temporal, heartbeats_to_miss

INTERVAL = 1.0
SLACK = 0.05


def temporal(m: int = 2, *, slack: float = SLACK, window: int = WINDOW) -> Temporal:
    return Temporal(m, interval=INTERVAL, slack=slack, window=window)


def test_no_deadline_before_first_heartbeat() -> None:
    """Section 4: a candidate never heard is nobody this detector can judge."""
    assert temporal().deadline() == inf


def test_deadline_is_expected_arrival_of_mth_next_heartbeat() -> None:
    """Section 5: deadline(i) = mean(x) + i t_itv + alpha, here for the m-th heartbeat after the newest."""
    detector = temporal(3)
    for seq in range(10):
        assert detector.arrived(seq, 500.0 + seq * INTERVAL + 0.02)
    assert detector.deadline() == pytest.approx(500.0 + (9 + 3) * INTERVAL + 0.02 + SLACK)


def test_expected_arrival_rests_on_the_mean_delay() -> None:
    """Section 5: EA uses the mean of x_j, not the last one: a single late heartbeat moves the deadline by its share only."""
    detector = temporal(1)
    for seq in range(9):
        detector.arrived(seq, seq * INTERVAL)
    detector.arrived(9, 9 * INTERVAL + 0.5)
    assert detector.deadline() == pytest.approx(10 * INTERVAL + 0.05 + SLACK)


def test_lost_heartbeats_do_not_move_the_expectation() -> None:
    """Section 5: x_j is taken relative to the index, so gaps neither shift nor stretch it."""
    detector = temporal(2)
    for seq in (0, 1, 5, 11):
        detector.arrived(seq, seq * INTERVAL + 0.03)
    assert detector.deadline() == pytest.approx(13 * INTERVAL + 0.03 + SLACK)


def test_doubled_heartbeat_is_no_news() -> None:
    """Section 3: every message may be doubled."""
    detector = temporal()
    assert detector.arrived(4, 4.0)
    before = detector.deadline()
    assert not detector.arrived(4, 4.9)
    assert detector.deadline() == before


def test_overtaken_heartbeat_is_no_news() -> None:
    """Section 3: every message may be reordered; an older index proves nothing the newer did not prove."""
    detector = temporal()
    detector.arrived(4, 4.0)
    before = detector.deadline()
    assert not detector.arrived(3, 4.1)
    assert detector.deadline() == before


def test_window_forgets_old_delays() -> None:
    """Section 4: the window is 100 arrivals; a delay that changed is learned within it."""
    detector = temporal(1)
    for seq in range(WINDOW):
        detector.arrived(seq, seq * INTERVAL)
    for seq in range(WINDOW, 2 * WINDOW):
        detector.arrived(seq, seq * INTERVAL + 0.4)
    assert detector.deadline() == pytest.approx(2 * WINDOW * INTERVAL + 0.4 + SLACK)


@pytest.mark.parametrize("drift", [2.5e-4, -2.5e-4, 1e-3])
def test_drift_biases_by_half_a_window(drift: float) -> None:
    """Section 5: relative drift d biases the mean by d * 50 * t_itv; 2.5e-4 is below a quarter of the slack."""
    detector = temporal(1)
    for seq in range(1000):
        detector.arrived(seq, seq * INTERVAL * (1 + drift))
    error = detector.deadline() - SLACK - 1000 * INTERVAL * (1 + drift)
    assert error == pytest.approx(-drift * (WINDOW / 2 + 0.5) * INTERVAL, rel=0.01)
    assert (abs(error) < SLACK / 3) == (abs(drift) < 5e-4)


def test_shorter_window_lags_less() -> None:
    """Section 5: where clocks run apart, shorten the window, not under 16."""
    detector = temporal(1, window=16)
    for seq in range(1000):
        detector.arrived(seq, seq * INTERVAL * 1.001)
    assert detector.deadline() - SLACK - 1000 * INTERVAL * 1.001 == pytest.approx(-0.001 * 8.5 * INTERVAL, rel=0.01)


def test_heartbeat_read_after_a_pause_teaches_no_delay() -> None:
    """F10: when a heartbeat that waited in the socket came is unknown; it proves life up to its index and no more."""
    detector = temporal(1)
    for seq in range(5):
        detector.arrived(seq, seq * INTERVAL + 0.02)
    for seq in range(5, 9):
        assert detector.arrived(seq, 20.0, timed=False)
    assert detector.deadline() == pytest.approx(9 * INTERVAL + 0.02 + SLACK)


def test_first_heartbeat_read_after_a_pause_is_provisional() -> None:
    """Section 5: without a sample its x serves as provisional mean, late and never early; the first sample replaces it."""
    detector = temporal(1)
    detector.arrived(5, 9.5, timed=False)
    assert detector.deadline() == pytest.approx(9.5 + INTERVAL + SLACK)
    detector.arrived(10, 10.02)
    assert detector.deadline() == pytest.approx(11.02 + SLACK)


def test_running_sum_stays_exact_over_a_long_life() -> None:
    """Section 5, F7: clocks of two machines are far apart, and the mean of a million arrivals is still the mean of the last hundred."""
    detector = temporal(1)
    apart = 12_345_678.9
    for seq in range(300_000):
        detector.arrived(seq, apart + seq * INTERVAL + (seq % 7) * 0.001)
    mean = sum((seq % 7) * 0.001 for seq in range(300_000 - WINDOW, 300_000)) / WINDOW
    assert detector.deadline() == pytest.approx(apart + 300_000 * INTERVAL + mean + SLACK, abs=1e-4)


@given(st.lists(st.tuples(st.integers(0, 60), st.floats(0, 0.9)), min_size=1, max_size=60))
def test_any_order_of_arrivals_gives_a_deadline_after_the_newest(arrivals: list[tuple[int, float]]) -> None:
    """Section 5: whatever is doubled, lost or reordered, the deadline lies m intervals and the slack after some arrival that counted."""
    detector = temporal(2)
    newest, offsets = -1, []
    for seq, delay in arrivals:
        assert detector.arrived(seq, seq * INTERVAL + delay) == (seq > newest)
        if seq > newest:
            newest = seq
            offsets.append(delay)
    assert detector.deadline() == pytest.approx(sum(offsets) / len(offsets) + (newest + 2) * INTERVAL + SLACK)


@pytest.mark.parametrize(
    "accuracy, loss, m",
    [(1e-5, 0.1, 5), (1e-3, 0.1, 3), (1e-7, 0.1, 7), (1e-3, 0.3, 6), (1e-5, 0.3, 10), (1e-7, 0.3, 14), (1e-3, 0.01, 2), (0.5, 0.1, 1)],
)
def test_heartbeats_to_miss(accuracy: float, loss: float, m: int) -> None:
    """Section 4: ceil(log P_m / log p - 1e-9); a bare ceil gives 6 for 1e-5 at .1, because the quotient is 5.000000000000001."""
    assert heartbeats_to_miss(accuracy, loss) == m


def test_nfd_e_is_one_missed_heartbeat() -> None:
    """Section 10: NFD-E suspects alpha after the expected arrival of the next heartbeat."""
    detector = NfdE(SLACK, interval=INTERVAL)
    for seq in range(20):
        detector.arrived(seq, 500.0 + seq)
    assert detector.deadline() == pytest.approx(520.0 + SLACK)


def test_phi_follows_the_spread() -> None:
    """Section 10: phi = 1 leaves a tenth, so the deadline lies 1.28 deviations beyond the mean; a larger phi waits longer."""
    low, high = PhiAccrual(1.0, interval=INTERVAL), PhiAccrual(8.0, interval=INTERVAL)
    assert low.deadline() == inf
    for detector in (low, high):
        for seq in range(101):
            assert detector.arrived(seq, seq + (0.1 if seq % 2 else 0.0))
        assert not detector.arrived(100, 100.5)
    deviation = 0.1 * (100 / 99) ** 0.5
    assert low.deadline() == pytest.approx(100.0 + 1.0 + 1.2816 * deviation, abs=1e-3)
    assert high.deadline() == pytest.approx(100.0 + 1.0 + 5.612 * deviation, abs=1e-2)


def test_phi_before_it_knows() -> None:
    """Section 10: with few samples a quarter of the interval stands for the deviation; on a calm link it does not vanish."""
    detector = PhiAccrual(1.0, interval=INTERVAL)
    detector.arrived(0, 10.0)
    assert detector.deadline() == pytest.approx(11.0 + 1.2816 * 0.25, abs=1e-3)
    detector.arrived(1, 99.0, timed=False)
    assert detector.deadline() == pytest.approx(100.0 + 1.2816 * 0.25, abs=1e-3)
    for seq in range(2, 20):
        detector.arrived(seq, 98.0 + seq)
    assert detector.deadline() == pytest.approx(118.0 + 1.2816 * 0.01, abs=1e-3)
