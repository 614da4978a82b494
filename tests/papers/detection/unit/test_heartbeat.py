"""The heartbeat detector on a fake host.  Spec: fast-detection 5 (freshness points), D11; foundation F1, F3, F10, F11, F17."""

from __future__ import annotations

from math import nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import ConfigError
from holdfast.features.leadership.detector.detectors import Temporal
from holdfast.host import Address, Message, NodeId
from holdfast.papers.detection.protocol.heartbeat import GRACE_INTERVALS, SEQ_MAX, Heard, HeartbeatDetector, Silenced
from holdfast.papers.detection.protocol.messages import Heartbeat, Hello
from tests.support.fake_host import FakeHost

INTERVAL = 1.0
SLACK = 0.1
M = 2
B, C = NodeId("b", 1), NodeId("c", 1)
PEERS = {name: Address(name, 1) for name in ("a", "b", "c")}


def detector_on(host: FakeHost, *, interval: float = INTERVAL, peers: dict[str, Address] | None = None) -> HeartbeatDetector:
    made = HeartbeatDetector(
        host, peers or PEERS, interval=interval, late_timeout=SLACK, make=lambda: Temporal(M, interval=interval, slack=SLACK)
    )
    made.start()
    return made


def beat(host: FakeHost, detector: HeartbeatDetector, *sources: NodeId, delay: float = 0.02) -> None:
    """The next grid point comes, and these peers' heartbeats ``delay`` later."""
    seq = int(host.clock / INTERVAL) + 1
    host.pass_time(seq * INTERVAL + delay - host.clock)
    for source in sources:
        detector.on_message(source, Heartbeat(seq, 0.0))


def test_greets_whom_it_does_not_know() -> None:
    """F3: a heartbeat is addressed to a life; until one is known there is only a greeting."""
    host = FakeHost("a")
    detector_on(host)
    assert host.take(Hello) == [(PEERS["b"], Hello()), (PEERS["c"], Hello())]
    assert host.take(Heartbeat) == []


def test_tells_the_life_that_greeted() -> None:
    """F3: whoever said Hello gets the heartbeats, the others go on being greeted."""
    host = FakeHost("a")
    detector = detector_on(host)
    host.take(Hello)
    detector.on_message(B, Hello())
    host.pass_time(INTERVAL)
    assert host.take(Heartbeat) == [(B, Heartbeat(1001, 0.0))]
    assert host.take(Hello) == [(PEERS["c"], Hello())]


def test_speaks_on_the_grid_of_its_clock() -> None:
    """Section 5: sigma_i = i t_itv on the subject's own clock; a machine that starts in between says by how much it is late."""
    host = FakeHost("a")
    host.clock = 1000.25
    detector = detector_on(host)
    detector.on_message(B, Hello())
    host.pause(1.25)
    assert host.take(Heartbeat) == [(B, Heartbeat(1001, 0.5))]
    host.pass_time(1.0)
    assert host.take(Heartbeat) == [(B, Heartbeat(1002, 0.0))]


@pytest.mark.parametrize("interval", [0.1, 0.2, 0.3, 0.7])
def test_index_moves_on_where_the_grid_rounds_down(interval: float) -> None:
    """Section 5: (i t_itv) / t_itv may round to just below i; the index still grows by one per interval and time goes on."""
    host = FakeHost("a")
    host.clock = 0.0
    detector = detector_on(host, interval=interval)
    detector.on_message(B, Hello())
    host.pass_time(200 * interval)
    indexes = [heartbeat.seq for _, heartbeat in host.take(Heartbeat)]
    assert indexes == list(range(1, len(indexes) + 1))
    assert 199 <= len(indexes) <= 200


def test_silences_after_m_missed_heartbeats() -> None:
    """D11: m counts missed heartbeats; with m = 2 the deadline follows the second, t_lat after it was expected."""
    host = FakeHost("a")
    detector = detector_on(host)
    for _ in range(5):
        beat(host, detector, B, C)
    newest_at = host.clock
    host.pass_time(M * INTERVAL + SLACK - 0.001)
    assert host.events(Silenced) == []
    host.pass_time(0.002)
    assert [event.peer for event in host.events(Silenced)] == [B, C]
    assert host.events(Silenced)[0].silent_for == pytest.approx(host.clock - newest_at - 0.001)
    assert (detector.trusted, detector.silenced) == ((), (B, C))


def test_silences_only_the_silent() -> None:
    """Section 3: each pair has a detector of its own."""
    host = FakeHost("a")
    detector = detector_on(host)
    beat(host, detector, B, C)
    for _ in range(4):
        beat(host, detector, C)
    assert [event.peer for event in host.events(Silenced)] == [B]
    assert detector.trusted == (C,)


def test_hears_again_whom_it_silenced() -> None:
    """A mistake ends with the next heartbeat that comes in time."""
    host = FakeHost("a")
    detector = detector_on(host)
    beat(host, detector, B)
    host.pass_time(5 * INTERVAL)
    beat(host, detector, B)
    assert [type(event) for event in host.emitted] == [Heard, Silenced, Heard]
    host.pass_time(5 * INTERVAL)
    assert len(host.events(Silenced)) == 2


def test_stray_heartbeat_does_not_revive() -> None:
    """Paper section 3: a heartbeat that is stale when it comes says that the peer lived then, not that it lives."""
    host = FakeHost("a")
    detector = detector_on(host)
    for _ in range(5):
        beat(host, detector, B)
    host.pass_time(10 * INTERVAL)
    detector.on_message(B, Heartbeat(1006, 0.0))
    assert len(host.events(Heard)) == 1
    assert detector.silenced == (B,)


def test_late_judge_judges_nobody() -> None:
    """F11: a judge that is late by more than t_lat finds that it was us who were stopped."""
    host = FakeHost("a")
    detector = detector_on(host)
    beat(host, detector, B)
    host.pause(10 * INTERVAL)
    assert host.events(Silenced) == []
    host.pass_time(GRACE_INTERVALS * INTERVAL - 0.001)
    assert host.events(Silenced) == []
    host.pass_time(0.002)
    assert [event.peer for event in host.events(Silenced)] == [B]


def test_away_grants_a_grace_to_everybody() -> None:
    """F11: after a pause whoever lives has time for a heartbeat, also if the judge itself was not due."""
    host = FakeHost("a")
    detector = detector_on(host)
    beat(host, detector, B, C)
    host.clock += M * INTERVAL + SLACK - 0.05
    detector.on_away(0.9)
    host.pass_time(1.0)
    assert host.events(Silenced) == []
    detector.on_message(C, Heartbeat(1003, 0.0))
    host.pass_time(1.0)
    assert [event.peer for event in host.events(Silenced)] == [B]


def test_backlog_teaches_no_delays() -> None:
    """F10: heartbeats read after a pause came when we were away; taking them for late ones would make every deadline late."""
    host = FakeHost("a")
    detector = detector_on(host)
    for _ in range(5):
        beat(host, detector, B)
    host.clock += 8 * INTERVAL
    detector.on_away(7.9)
    for seq in range(1006, 1014):
        detector.on_message(B, Heartbeat(seq, 0.0))
    host.pause(0.0)
    newest_at = host.clock
    assert newest_at == pytest.approx(1013.02)
    host.pass_time(M * INTERVAL + SLACK + 0.001)
    assert [event.peer for event in host.events(Silenced)] == [B]


def test_later_heartbeats_are_timed_again() -> None:
    """F10: the backlog ends with the first timer, which comes after the datagrams that waited."""
    host = FakeHost("a")
    detector = detector_on(host)
    beat(host, detector, B)
    host.clock += 3.0
    detector.on_away(2.0)
    host.pause(0.0)
    for _ in range(200):
        beat(host, detector, B, delay=0.5)
    host.pass_time(M * INTERVAL + SLACK - 0.001)
    assert host.events(Silenced) == []


def test_restarted_peer_is_another_subject() -> None:
    """F1: a newer life ends the former one's record, its delays included."""
    host = FakeHost("a")
    detector = detector_on(host)
    beat(host, detector, B)
    newer = NodeId("b", 2)
    detector.on_message(newer, Hello())
    assert not detector.trusted
    detector.on_message(newer, Heartbeat(7, 0.0))
    assert detector.trusted == (newer,)
    host.take(Heartbeat)
    host.pass_time(INTERVAL)
    assert [to for to, _ in host.take(Heartbeat)] == [newer]
    assert host.events(Heard) == [Heard(B), Heard(newer)]


def test_former_life_is_not_heard() -> None:
    """F1: what a former life said before its successor spoke may still be on the road."""
    host = FakeHost("a")
    detector = detector_on(host)
    detector.on_message(NodeId("b", 2), Heartbeat(1000, 0.0))
    detector.on_message(B, Heartbeat(1001, 0.0))
    assert detector.trusted == (NodeId("b", 2),)
    assert detector.counts["old_life"] == 1


@pytest.mark.parametrize("source", [NodeId("z", 1), NodeId("a", 2)], ids=["unlisted", "own-name"])
def test_strangers_are_not_watched(source: NodeId) -> None:
    """F17: the table holds the listed names and no others."""
    host = FakeHost("a")
    detector = detector_on(host)
    detector.on_message(source, Heartbeat(1000, 0.0))
    assert not detector.trusted
    assert detector.counts["stranger"] == 1


@pytest.mark.parametrize(
    "heartbeat",
    [Heartbeat(-1, 0.0), Heartbeat(SEQ_MAX, 0.0), Heartbeat(1002, -0.1), Heartbeat(1002, INTERVAL + 0.1), Heartbeat(1002, nan)],
    ids=["negative", "huge", "early", "too-late", "nan"],
)
def test_nonsense_changes_nothing(heartbeat: Heartbeat) -> None:
    """A peer can send anything: it costs a counter."""
    host = FakeHost("a")
    detector = detector_on(host)
    beat(host, detector, B)
    emitted = list(host.emitted)
    detector.on_message(B, heartbeat)
    assert detector.counts["malformed"] == 1
    host.pass_time(M * INTERVAL + SLACK - 0.01)
    assert host.emitted == emitted
    host.pass_time(0.02)
    assert len(host.events(Silenced)) == 1


def test_doubled_heartbeats_are_counted() -> None:
    """Section 3: every message may be doubled or overtaken; neither is news."""
    host = FakeHost("a")
    detector = detector_on(host)
    beat(host, detector, B)
    detector.on_message(B, Heartbeat(1001, 0.0))
    detector.on_message(B, Heartbeat(1000, 0.0))
    assert detector.counts["stale"] == 2


def test_one_timer_judges_all() -> None:
    """A heartbeat costs no timer: one beat and one judge are all there ever is."""
    host = FakeHost("a")
    detector = detector_on(host)
    for _ in range(20):
        beat(host, detector, B, C)
        assert host.timers == 2


class Impatient:
    """A detector that gives each subject less time than the one before."""

    patience = 10.0

    def __init__(self) -> None:
        Impatient.patience -= 4.0
        self.patience, self.at = Impatient.patience, 0.0

    def arrived(self, seq: int, at: float, *, timed: bool = True) -> bool:
        self.at = at
        return True

    def deadline(self) -> float:
        return self.at + self.patience


def test_earlier_deadline_moves_the_judge(monkeypatch: pytest.MonkeyPatch) -> None:
    """Detectors are exchangeable: the judge comes for the earliest deadline, whoever was heard first."""
    monkeypatch.setattr(Impatient, "patience", 10.0)
    host = FakeHost("a")
    detector = HeartbeatDetector(host, PEERS, interval=INTERVAL, late_timeout=SLACK, make=Impatient)
    detector.start()
    detector.on_message(B, Heartbeat(1000, 0.0))
    detector.on_message(C, Heartbeat(1000, 0.0))
    host.pass_time(2.001)
    assert list(detector.silenced) == [C]
    host.pass_time(4.0)
    assert list(detector.silenced) == [B, C]


def test_lateness_of_the_sender_is_not_a_delay() -> None:
    """Section 5: a heartbeat that left 0.9 s after its grid point would make the next deadline late by its share of that."""
    host = FakeHost("a")
    detector = detector_on(host)
    host.pass_time(0.92)
    detector.on_message(B, Heartbeat(1000, 0.9))
    host.pass_time(1002.02 + SLACK - host.clock + 0.001)
    assert detector.silenced == (B,)


def test_stop_leaves_no_timer() -> None:
    """A stopped machine says nothing more."""
    host = FakeHost("a")
    detector = detector_on(host)
    beat(host, detector, B)
    detector.stop()
    assert host.timers == 0


def test_interval_must_match() -> None:
    """F4: both ends count t_itv, so it is in the fingerprint."""
    assert detector_on(FakeHost("a")).fingerprint != detector_on(FakeHost("a"), interval=2.0).fingerprint


def test_too_many_peers_are_refused() -> None:
    """F17: no callback reaches more than 64 peers."""
    peers = {f"p{i}": Address(f"p{i}", 1) for i in range(65)}
    with pytest.raises(ConfigError, match="peers: 65 of them; accepted are up to 64"):
        detector_on(FakeHost("a"), peers=peers)


MESSAGES = st.one_of(
    st.just(Hello()),
    st.builds(Heartbeat, st.integers(-(1 << 60), 1 << 60), st.floats()),
    st.builds(Heartbeat, st.integers(995, 1020), st.floats(0, 1)),
)
SOURCES = st.builds(NodeId, st.sampled_from("abcz"), st.integers(1, 3))


@given(st.lists(st.tuples(st.floats(0, 3), st.booleans(), SOURCES, MESSAGES), max_size=40))
def test_no_input_breaks_it(inputs: list[tuple[float, bool, NodeId, Message]]) -> None:
    """Whatever comes, whenever: nothing raises, lives only grow, and never more than one judge waits."""
    host = FakeHost("a")
    detector = detector_on(host)
    boots = {"b": 0, "c": 0}
    for seconds, paused, source, message in inputs:
        if paused:
            detector.on_away(seconds)
            host.pause(seconds)
        else:
            host.pass_time(seconds)
        detector.on_message(source, message)
        assert host.timers <= 2
        for life in (*detector.trusted, *detector.silenced):
            assert life.boot >= boots[life.name]
            boots[life.name] = life.boot
