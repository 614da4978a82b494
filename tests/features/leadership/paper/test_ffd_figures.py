"""Fast failure detection as paper 002 states it: Figures 1 and 2 line by line, Propositions 4.1 and 4.2, the worked example.

Spec: fast-detection 1 (G2), 5. What the figures get wrong is in test_ffd_ballots.py and test_ffd_evidence.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import ceil, log
from string import ascii_letters

import pytest

from holdfast.features.leadership.detector.config import FfdConfig, Term
from holdfast.features.leadership.detector.detectors import heartbeats_to_miss
from holdfast.features.leadership.detector.messages import DidYouMissToo, MonitorOk, VoteKind, WatchedOk
from holdfast.host import Message
from tests.features.leadership.ffd_stand import DELAY, Stand, is_heartbeat

PAPER = FfdConfig(t_itv=1.0, t_lat=0.05, skew=0.0, p_fixed=0.1, common=0.0)
EXAMPLE = FfdConfig(t_itv=10.0, t_lat=0.1, skew=0.0, p_fixed=0.1, common=0.0)
OTHERS = ascii_letters.replace("a", "")
JUST_AFTER = 1e-6  # a crash right after a heartbeat is the worst


def detection(monitors: str, config: FfdConfig, *, skip: float = 20.0) -> float:
    """Seconds from the worst crash to the first acted report."""
    stand = Stand(monitors, config).start()
    stand.run_to(1000.0 + skip * config.t_itv + JUST_AFTER)
    stand.kill()
    crashed_at = stand.now
    stand.run(config.m_max * config.t_itv)
    return stand.reports(acted=True)[0][0] - crashed_at


# Figure 1


def test_watched_sends_a_heartbeat_every_interval() -> None:
    """Fig. 1, lines 25-26: at every sigma_i, with i and V, to all others."""
    stand = Stand("bc", PAPER).start()
    stand.run_to(1003.5)
    sent = [(at, target, message) for at, _, target, message in stand.sent if isinstance(message, WatchedOk)]
    assert [(at, target, ok.seq) for at, target, ok in sent] == [(at, to, at) for at in (1001.0, 1002.0, 1003.0) for to in ("b", "c")]
    assert {ok.among for _, _, ok in sent} == {("b", "c")}


def test_view_of_watched_follows_the_answers() -> None:
    """Fig. 1, lines 18-24, D3: V loses who was not heard for long, and has it again with its next MONITOR-OK."""
    stand = Stand("bc", PAPER).start()
    stand.fate = lambda source, target, message: () if isinstance(message, MonitorOk) and source == "c" else (DELAY,)
    views = []
    for second in (1005.0, 1007.0, 1009.0):
        stand.run_to(second)
        views.append((stand.leader.side.among, stand["b"].detector.K))
        if second == 1007.0:
            stand.fate = lambda source, target, message: (DELAY,)
    assert views == [(("b", "c"), ("b", "c")), (("b",), ("b",)), (("b", "c"), ("b", "c"))]


def test_a_new_leader_ends_the_ballot() -> None:
    """Fig. 1, lines 7-15: OnSetNewLeader aborts collectVotes and forgets missed, monitoring and the peers."""
    stand = Stand("bcdef", PAPER).start()
    stand.run_to(1009.5)
    stand.kill()
    stand.run_to(1010.056)
    detector = stand["b"].detector
    assert detector.counts["ballots_fast"] == 1
    detector.watch("z", Term(0, 1), ["c", "d"])
    assert detector.ballot is None
    assert (detector.heard, detector.K, detector.rank()) == (0, ("c", "d"), None)
    stand.run(5.0)
    assert stand["b"].reports == []


# Figure 2


def test_primary_asks_at_the_first_freshness_point() -> None:
    """Fig. 2, lines 2-9: at tau_i = t_lat + i t_itv the smallest monitor asks all its peers; nobody else does."""
    stand = Stand("bcdef", PAPER).start()
    stand.run_to(1009.5)
    stand.kill()
    stand.run_to(1010.5)
    asked = [(round(at, 6), source, target, query.seq) for at, source, target, query in stand.sent if isinstance(query, DidYouMissToo)]
    assert asked == [(1010.05, "b", target, 1010) for target in "cdef"]


def test_heartbeat_brings_the_peers() -> None:
    """Fig. 2, lines 12-15: peerMonitors is K of the heartbeat, so a dead primary is replaced once the watched has dropped it."""
    stand = Stand("bcdef", PAPER).start()
    stand.run_to(1005.0)
    assert (stand["b"].detector.rank(), stand["c"].detector.rank()) == (0, 1)
    stand.kill("b")
    stand.run_to(1012.0)
    assert stand["c"].detector.K == ("c", "d", "e", "f")
    assert stand["c"].detector.rank() == 0


def test_every_monitor_answers_the_watched() -> None:
    """Fig. 2, lines 17-18: MONITOR-OK every interval, also for a heartbeat that did not come (then with stamp -1)."""
    stand = Stand("bc", PAPER).start()
    stand.fate = lambda source, target, message: () if is_heartbeat(message, 1003) and target == "c" else (DELAY,)
    stand.run_to(1004.5)
    said = [
        (message.seq, message.stamp, message.missed)
        for _, source, _, message in stand.sent
        if isinstance(message, MonitorOk) and source == "c"
    ]
    assert said == [(1001, 1, 0), (1002, 2, 0), (1003, -1, 0), (1004, 4, 0b1)]


def test_answers_are_about_the_watched_and_by_monitors_only() -> None:
    """Fig. 2, lines 19-26: whoever watches somebody else, or another term, has nothing to say; whoever never heard it says that."""
    stand = Stand("bc", PAPER).start()
    stand.run_to(1005.5)
    detector, asker = stand["c"].detector, stand.hosts["b"].me
    detector.on_query(asker, DidYouMissToo("z", 0, "", 0, 0, 1005, 7))
    detector.on_query(asker, DidYouMissToo("a", 1, "", 0, 1, 1005, 8))
    detector.on_query(asker, DidYouMissToo("a", 2, "", 0, 0, 1005, 9))  # another life
    assert stand.votes("c") == []
    detector.on_query(asker, DidYouMissToo("a", 1, "", 0, 0, 1005, 10))
    detector.watch("a", Term(0, 1), ["b"])
    detector.on_query(asker, DidYouMissToo("a", 1, "", 0, 1, 1006, 11))
    assert [(vote.nonce, vote.kind) for vote in stand.votes("c")] == [(10, VoteKind.HAVE), (11, VoteKind.UNHEARD)]


def test_suspicion_is_reported_with_the_misses() -> None:
    """Fig. 2, lines 29-38: after 2 t_rtt, because one voter keeps silent, the report names who missed it."""
    stand = Stand("bcdef", PAPER).start()
    stand.run_to(1009.5)
    stand.kill()
    stand.kill("f")
    stand.run_to(1010.9)
    ((at, by, report),) = stand.reports()
    assert at == pytest.approx(1010.05 + PAPER.w)
    assert (by, report.seq, report.misses, report.silent) == ("b", 1010, ("b", "c", "d", "e"), ("f",))
    assert report.p_false == pytest.approx(1e-4)


def test_one_witness_dismisses_it() -> None:
    """Fig. 2, lines 39-43: I-DIDNOT-MISS aborts collectVotes."""
    stand = Stand("bcdef", PAPER).start()
    stand.fate = lambda source, target, message: () if is_heartbeat(message, 1010) and target != "e" else (DELAY,)
    stand.run_to(1010.9)
    assert stand.reports() == []
    assert [(each.seq, each.by) for each in stand.dismissals()] == [(1010, "e")]


# The propositions


def test_temporal_scheme_is_the_group_of_two() -> None:
    """Prop. 4.1: with one monitor, P_m = 1e-5 and p = .1 take at least 50 s; ours takes that, t_lat, and nothing more (D9, D11)."""
    bound = EXAMPLE.t_itv * log(EXAMPLE.p_m) / log(0.1)
    found = detection("b", EXAMPLE)
    assert found >= bound - 1e-3
    assert found == pytest.approx(bound + EXAMPLE.lat, abs=1e-3)


def grid() -> Sequence[tuple[float, float]]:
    return list(product((0.05, 0.1, 0.3), (1e-3, 1e-5)))


@pytest.mark.parametrize("p, p_m", grid())
def test_speed_of_fast_detection(p: float, p_m: float) -> None:
    """Prop. 4.2: within t_itv + t_lat + t_rtt for every group with n >= m + 1 (the paper asks for one more); with n = m it needs a
    second heartbeat. The worst crash, no message lost."""
    config = FfdConfig(t_itv=10.0, t_lat=0.1, skew=0.0, p_fixed=p, common=0.0, p_m=p_m)
    m = heartbeats_to_miss(p_m, p)
    bound = config.t_itv + config.lat + config.t_rtt
    for monitors in (m, m + 1, m + 9):
        assert config.t_itv < detection(OTHERS[:monitors], config) <= bound
    assert detection(OTHERS[: m - 1], config) > 2 * config.t_itv - 1e-3


def test_worked_example() -> None:
    """Section 4: P_m = 1e-5, t_itv = 10 s, p = .1, seven processes: slightly more than 10 s against 50 s, 4.8 times faster at least."""
    fast, slow = detection("bcdefg", EXAMPLE), detection("b", EXAMPLE)
    assert 10.0 < fast < 10.4
    assert slow / fast >= 4.8


def test_speed_with_estimated_clocks() -> None:
    """G2: without synchronised clocks it is t_itv + mean delay + alpha + t_rtt, alpha at its smallest on a calm link."""
    config = FfdConfig(t_itv=1.0, t_lat=0.05, p_fixed=0.1, common=0.0)
    found = detection("bcdefg", config)
    assert found <= config.t_itv + DELAY + config.lat / 4 + config.t_rtt
    plan_bound = 1 * config.t_itv + config.delta + config.w
    assert found <= plan_bound


def test_message_count() -> None:
    """Section 4: in calm only the watched and its n - 1 monitors talk, twice per interval and pair: no vote, no question."""
    stand = Stand("bcdefg", PAPER).start()
    stand.run_to(1010.5)
    kinds: dict[type[Message], int] = {}
    for _, _, _, message in stand.sent:
        kinds[type(message)] = kinds.get(type(message), 0) + 1
    assert kinds == {WatchedOk: 10 * 6, MonitorOk: 10 * 6}


def test_rounding_of_the_bound() -> None:
    """Section 4: log(1e-5) / log(.1) is a little more than 5 in floats, and still means 5."""
    assert ceil(log(1e-5) / log(0.1)) == 6
    assert heartbeats_to_miss(1e-5, 0.1) == PAPER.m_omega(0.1) == 5
