"""The parts of fast detection one by one: numbers, freshness points, loss, common cause, plan, ballot, links.

Spec: fast-detection 4, 5 (freshness points), 9 (plan), D7-D10; foundation F4, F16.
"""

from __future__ import annotations

from math import inf

import pytest

from holdfast.errors import ConfigError
from holdfast.features.leadership.detector.ballot import Ballot
from holdfast.features.leadership.detector.common import REPORTERS_MAX, WINDOW, CommonCause, tail
from holdfast.features.leadership.detector.config import ElectionConfig, FfdConfig, Term
from holdfast.features.leadership.detector.freshness import Estimated, Synchronised, make_freshness, next_point
from holdfast.features.leadership.detector.links import PEERS_MAX, Links
from holdfast.features.leadership.detector.loss import Loss, wilson_upper
from holdfast.features.leadership.detector.messages import DidYouMissToo, Vote, VoteKind
from holdfast.features.leadership.detector.plan import Evidence, make_plan, p_false
from holdfast.host import Address, Message, NodeId
from tests.support.fake_host import FakeHost

CONFIG = FfdConfig()


def test_defaults() -> None:
    """Section 4: the derived numbers at the default interval of a second."""
    assert (CONFIG.lat, CONFIG.t_rtt, CONFIG.w, CONFIG.nag) == pytest.approx((0.05, 0.1, 0.2, 0.15))
    assert (CONFIG.alpha_max, CONFIG.c0, CONFIG.window) == (0.25, 1e-6, 100)
    election = ElectionConfig()
    assert (election.lease, election.delta_c) == pytest.approx((1.5, 0.4))
    assert ElectionConfig(mode="paper").delta_c == pytest.approx(2.05)


@pytest.mark.parametrize(
    "field, value",
    [
        ("t_itv", 0.05), ("t_itv", 61.0), ("t_itv", float("nan")), ("t_lat", 0.09), ("t_lat", 0.0001), ("skew", 0.3), ("p_m", 0.0),
        ("p_m", 0.6), ("backups", 6), ("m_max", 1), ("p_new", 1.0), ("p_fixed", 0.0), ("common", 1.1), ("drift", 0.0), ("length", 1.2),
        ("length", 61.0), ("rho", 0.0), ("renew_tries", 4), ("elect_after", 3), ("mode", "both"),
    ],
)  # fmt: skip
def test_bad_numbers(field: str, value: float | str) -> None:
    """Section 10: a number that is out of range is refused with its name and what is accepted."""
    with pytest.raises(ConfigError, match=rf"^{field}: .*accepted are"):
        ElectionConfig(**{field: value})  # type: ignore[arg-type]


def test_m_omega_stays_in_its_range() -> None:
    """Section 4: at least 2, at most m_max."""
    assert [CONFIG.m_omega(p) for p in (1e-4, 0.1, 0.9)] == [2, 5, 10]


def test_window_follows_the_drift() -> None:
    """Section 5: the drift's bias d window/2 t_itv stays below t_lat / 4, but 16 arrivals are needed."""
    for drift, window in ((1e-5, 100), (5e-4, 50), (0.05, 16)):
        config = FfdConfig(drift=drift)
        assert config.window == window
        assert window == 16 or drift * window / 2 * config.t_itv <= config.lat / 4 + 1e-9


def test_fingerprints() -> None:
    """F4: both ends must count the same interval and the same bound on delays."""
    assert FfdConfig(t_lat=0.05).fingerprint == CONFIG.fingerprint
    others = [FfdConfig(t_itv=2.0), FfdConfig(t_lat=0.04), FfdConfig(skew=0.01)]
    assert len({each.fingerprint for each in [CONFIG, *others]}) == 4
    assert ElectionConfig(rho=0.01).fingerprint != ElectionConfig().fingerprint


def test_terms() -> None:
    """F16: terms are compared lexicographically, and their tokens rise with them."""
    terms = [Term(0, 5), Term(1, 0), Term(1, 7), Term(2, 0)]
    assert sorted(terms) == terms
    assert [term.token for term in terms] == sorted(term.token for term in terms)
    assert Term(0, 9).token == 9
    assert Term(3, 9).next() == Term(3, 10)


def test_estimated_points() -> None:
    """Section 5: EA_i + alpha, with the largest alpha until 8 samples, four deviations then, and a quarter of t_lat at least."""
    points = Estimated(CONFIG)
    points.arrived(10, 510.01)
    assert points.deadline(11) == pytest.approx(511.01 + 0.25)
    for seq in range(11, 18):
        points.arrived(seq, 500.01 + seq)
    assert points.alpha == pytest.approx(0.0125)
    assert points.deadline(18) == pytest.approx(518.01 + 0.0125)
    for seq in range(18, 118):
        points.arrived(seq, 500.01 + seq + (0.01 if seq % 2 else -0.01))
    assert points.jitter == pytest.approx(0.01, rel=0.02)
    assert points.alpha == pytest.approx(0.04, rel=0.02)


def test_window_of_estimated_points() -> None:
    """Section 5: the mean rests on the last arrivals only, so a clock that was set is followed; far clocks lose no precision."""
    points = Estimated(CONFIG)
    for seq in range(300):
        points.arrived(seq, 1e9 + seq + (0.0 if seq < 150 else 0.02))
    assert points.deadline(300) - 1e9 == pytest.approx(300.02 + 0.0125, abs=1e-5)
    assert points.jitter < 1e-5


def test_very_late_heartbeats_are_no_measure() -> None:
    """Section 6.1: one that counts as lost moves the mean by no more than the largest margin; a first one that was late is forgotten."""
    points = Estimated(CONFIG)
    points.arrived(0, 3.0)
    for seq in range(1, 101):
        points.arrived(seq, seq + (3.0 if seq % 20 == 0 else 0.01))
    assert points.deadline(101) <= 101.01 + 0.05 * 0.25 + CONFIG.alpha_max


def test_longer_road_is_believed() -> None:
    """Section 5: eight late ones in a row are no accident: the estimate follows them at once."""
    points = Estimated(CONFIG)
    for seq in range(100):
        points.arrived(seq, seq + 0.01)
    for seq in range(100, 108):
        assert points.deadline(seq) < seq + 0.5
        points.arrived(seq, seq + 0.6)
    assert points.deadline(108) == pytest.approx(108.6 + CONFIG.alpha_max)


@pytest.mark.parametrize("drift", [-0.004, 0.004])
def test_clocks_that_run_apart(drift: float) -> None:
    """Section 5: the mean is behind by d window/2 t_itv, and the margin by four deviations of it covers that."""
    points, late = Estimated(CONFIG), 0
    for seq in range(1000):
        at = seq * (1 + drift)
        late += seq > 0 and at > points.deadline(seq)
        points.arrived(seq, at)
    assert late <= 10


def test_read_late_is_no_sample() -> None:
    """F10: a heartbeat that waited in the socket serves as mean only while there is nothing better."""
    points = Estimated(CONFIG)
    points.arrived(5, 8.0, timed=False)
    assert points.deadline(6) == pytest.approx(9.0 + 0.25)
    points.arrived(6, 6.5)
    points.arrived(7, 9.0, timed=False)
    assert points.deadline(8) == pytest.approx(8.5 + 0.25)


def test_synchronised_points() -> None:
    """Section 3 of the paper: sigma_i + t_lat + skew on the wall clock, told on the host's own."""
    host = FakeHost()
    points = make_freshness(host, FfdConfig(skew=0.01))
    assert isinstance(points, Synchronised)
    points.arrived(1, 5.0)
    assert points.deadline(1_700_000_003) == pytest.approx(host.now + 3.06)


def test_next_point_after_a_pause() -> None:
    """F11: after an hour the points of that hour are passed over, not checked one by one."""
    points = Estimated(CONFIG)
    points.arrived(0, 0.0)
    assert next_point(points, 1, 1.0, 1.0) == 1
    assert next_point(points, 1, 1.26, 1.0) == 2
    assert next_point(points, 1, 3600.0, 1.0) == 3600
    assert points.deadline(3600) > 3600.0


def test_loss_numbers() -> None:
    """D8: .1 until 40 samples unless the mean is worse, Wilson's limit then, within 1e-4 and .999, over 1000 heartbeats."""
    loss = Loss(CONFIG)
    assert (loss.p, loss.mean, loss.samples) == (0.1, 0.0, 0)
    loss.add(True, 5)
    loss.add(False, 5)
    assert loss.p == 0.5
    loss.add(True, 2000)
    assert (loss.p, loss.samples) == (0.999, 1000)
    loss.add(False, 1000)
    assert loss.mean == 0.0
    assert loss.p == pytest.approx(wilson_upper(0, 1000)) == pytest.approx(4 / 1004)
    assert Loss(FfdConfig(p_fixed=0.2)).p == 0.2


def test_tail_of_independent_losses() -> None:
    """D10: the Poisson binomial tail that is subtracted."""
    assert tail([0.1, 0.1, 0.1], 3) == pytest.approx(1e-3)
    assert tail([0.5, 0.2], 1) == pytest.approx(0.6)
    assert tail([0.5, 0.2], 0) == pytest.approx(1.0)


def test_common_cause_needs_two_reporters_and_two_events() -> None:
    """D10: an event is 80 % of the reporters, at least two; before two events beyond chance the prior counts."""
    cause = CommonCause(CONFIG)
    for seq in range(40):
        cause.sent(seq, ["b"])
        cause.report("b", 1, seq, 0)
    assert cause.settled == 0
    assert cause.c == pytest.approx(1e-6)


def test_common_cause_as_set_by_the_operator() -> None:
    """Section 4: c may be fixed; then nothing is measured."""
    cause = CommonCause(FfdConfig(common=0.25))
    cause.sent(1, ["b", "c"])
    cause.report("b", 1, 2, 1)
    assert (cause.c, cause.settled) == (0.25, 0)


def test_reporters_of_another_life_start_anew() -> None:
    """F1: what a former life heard says nothing about this one: only heartbeats after its first word count."""
    cause = CommonCause(CONFIG)
    for seq in range(10):
        cause.sent(seq, ["b", "c"])
        for name in ("b", "c"):
            cause.report(name, 1 if seq < 5 else 2, seq, 0xFFFFFFFF if seq == 5 else 0)
    cause.sent(10, ["b", "c"])
    assert cause.c == pytest.approx(1e-6, rel=0.01)  # Bits about 1-4 from a life that was not there then are no event.
    cause.begin()
    assert cause.settled > 0  # What was learned stays.


def test_limit_of_reporters() -> None:
    """Everything has a limit: reporters beyond it are counted."""
    cause = CommonCause(CONFIG)
    for number in range(REPORTERS_MAX + 3):
        cause.report(f"m{number}", 1, 1, 0)
    assert cause.refused == 3


def test_common_cause_forgets() -> None:
    """Section 4: the window is 5000 heartbeats; events that fell out of it count no more."""
    cause = CommonCause(CONFIG)
    for seq in range(WINDOW + 200):
        bits = (1 << min(32, seq)) - 1 if seq <= 40 else 0  # Heartbeats 1-39 were missed by both.
        cause.sent(seq, ["b", "c"])
        if seq == 0 or seq >= 40:
            for name in ("b", "c"):
                cause.report(name, 1, seq, bits)
    assert cause.settled == WINDOW
    assert cause.c < 1e-4


def test_evidence() -> None:
    """D9: multiplied over heartbeats, each once, taken back by a sign of life; 1e-5 is met by .1 ** 5 in floats."""
    evidence = Evidence()
    assert (evidence.p_false, evidence.meets(0.5)) == (1.0, False)
    evidence.fold(1, [0.1] * 5, 0.0)
    assert evidence.meets(1e-5)
    evidence.fold(1, [0.1], 0.0)
    evidence.fold(2, [1.0], 1.0)  # Never worth less than nothing.
    assert evidence.p_false == pytest.approx(1e-5)
    evidence.fold(3, [1e-4] * 100, 0.0)
    assert evidence.p_false >= 0
    evidence.reset()
    assert evidence.p_false == 1.0


def test_plan() -> None:
    """Section 9: r = ceil(log P_m / log(c + prod p)); beyond m_max, or with p_false 1, it says that it cannot be had."""
    assert p_false([0.1, 0.2], 0.01) == pytest.approx(0.03)
    assert make_plan(CONFIG, 1e-5, [0.1] * 5, 0.0)[:2] == (5, 1)
    plan = make_plan(CONFIG, 1e-5, [0.1], 0.0)
    assert (plan.misses, plan.heartbeats, plan.feasible) == (1, 5, True)
    assert plan.bound_s == pytest.approx(5.0 + 0.3 + 0.2)
    assert not make_plan(CONFIG, 1e-5, [0.9], 0.0).feasible
    assert make_plan(CONFIG, 1e-5, [0.9], 1.0) == (1, 10, inf, False)


def query(nonce: int = 1, *, slow: bool = False) -> DidYouMissToo:
    return DidYouMissToo("w", 1, "", 0, 3, 17, nonce, slow)


def test_ballot() -> None:
    """Section 5: asks at once, the silent again after t_rtt, closes after w; a vote counts once and only from whom was asked."""
    host = FakeHost("a")
    said: list[tuple[NodeId | Address, Message]] = []
    closed: list[float] = []
    ask: dict[str, NodeId | Address] = {"b": NodeId("b", 1), "c": Address("c", 1), "d": NodeId("d", 1)}
    ballot = Ballot(host, CONFIG, query(), ask, lambda to, message: said.append((to, message)), lambda: closed.append(host.now))
    ballot.count_own("a", 0.1)
    ballot.open()
    assert [to for to, _ in said] == list(ask.values())
    assert ballot.record("b", Vote("w", 0, 3, 17, 1, VoteKind.MISSED, 0.2))
    assert not ballot.record("b", Vote("w", 0, 3, 17, 1, VoteKind.UNHEARD, 0.2))
    assert not ballot.record("e", Vote("w", 0, 3, 17, 1, VoteKind.MISSED, 0.2))
    assert not ballot.record("c", Vote("w", 0, 4, 17, 1, VoteKind.MISSED, 0.2))
    assert not ballot.record("c", Vote("w", 0, 3, 17, 1, VoteKind.MISSED, float("nan")))
    assert ballot.record("c", Vote("w", 0, 3, 17, 1, VoteKind.UNHEARD, 0.2))
    host.pass_time(CONFIG.t_rtt)
    assert [to for to, _ in said[3:]] == [NodeId("d", 1)]
    assert (ballot.misses, ballot.unheard, ballot.have, ballot.silent) == ({"a": 0.1, "b": 0.2}, ["c"], [], ("d",))
    host.pass_time(CONFIG.t_rtt)
    assert closed == [pytest.approx(1000.0 + CONFIG.w)]
    assert host.timers == 0


def test_ballot_without_anybody() -> None:
    """Section 5: with nobody to ask it closes at once."""
    closed: list[int] = []
    ballot = Ballot(FakeHost("a"), CONFIG, query(), {}, lambda to, message: None, lambda: closed.append(1))
    ballot.open()
    assert closed == [1]


def test_links_survive_terms_and_lives() -> None:
    """Section 2: freshness points belong to one life, loss to the road; an older life leaves nothing behind."""
    links = Links(FakeHost("a"), CONFIG)
    first = links.link(NodeId("w", 5))
    assert links.link(NodeId("w", 5)) is first
    second = links.link(NodeId("w", 6))
    assert second.freshness is not first.freshness
    assert second.loss is first.loss
    assert links.link(NodeId("w", 5)) is not first
    assert links.link(NodeId("w", 6)) is second
    second.loss.add(False, 100)
    assert links.stats(NodeId("w", 6)).samples == 100
    assert links.p("w") == links.stats(NodeId("w", 6)).p_upper < 0.1
    assert links.stats(NodeId("z", 1)) == (0.0, 0.1, 0.0, 0.25, 0)
    assert [links.next_nonce() for _ in range(3)] == [1, 2, 3]


def test_limit_of_links() -> None:
    """Everything has a limit: whoever was not asked for longest is forgotten, and counted."""
    links = Links(FakeHost("a"), CONFIG)
    first = links.link(NodeId("first", 1))
    for number in range(PEERS_MAX):
        links.link(NodeId(f"n{number}", 1))
        if number < PEERS_MAX - 1:
            links.link(NodeId("first", 1))
    assert links.counts["links_forgotten"] == 1
    assert links.link(NodeId("first", 1)) is first
