"""Omega on a fake host: what the figure does not say.  Spec: fast-detection 5, D25; foundation F1, F4, F11, F16, F17.

The figure's own rules are in tests/papers/detection/paper/test_omega.py.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import ConfigError
from holdfast.events import LeaderChanged
from holdfast.host import Address, Message, NodeId
from holdfast.papers.detection.protocol.messages import Ok, Start
from holdfast.papers.detection.protocol.omega import ROUND_MAX, Omega, RoundEntered
from tests.support.fake_host import FakeHost

ALPHA = 1.0
A, B, C = NodeId("a", 1), NodeId("b", 1), NodeId("c", 1)
MEMBERS = {name: Address(name, 1) for name in ("a", "b", "c")}


def omega_on(host: FakeHost, *, patience: float = 2.0, members: dict[str, Address] | None = None) -> Omega:
    omega = Omega(host, MEMBERS if members is None else members, alpha=ALPHA, patience=patience)
    omega.start()
    host.sent.clear()
    return omega


def elect(omega: Omega, leader: NodeId) -> None:
    for seq in (1, 2):
        omega.on_message(leader, Ok(omega.round, seq))
    assert omega.leader == leader


@pytest.mark.parametrize("number", [-1, -(1 << 62), ROUND_MAX, 1 << 63], ids=str)
@pytest.mark.parametrize("kind", ["ok", "start"])
def test_nonsense_rounds_do_nothing(number: int, kind: str) -> None:
    """F16: a round is a token below 2^53; what a peer claims beyond costs a counter."""
    host = FakeHost("c")
    omega = omega_on(host)
    elect(omega, A)
    emitted = list(host.emitted)
    omega.on_message(B, Ok(number, 1) if kind == "ok" else Start(number))
    assert (omega.round, omega.leader, host.sent, host.emitted) == (0, A, [], emitted)
    assert omega.counts["malformed"] == 1


@pytest.mark.parametrize("source", [NodeId("z", 1), NodeId("c", 2)], ids=["unlisted", "own-name"])
@pytest.mark.parametrize("message", [Ok(0, 1), Start(7)], ids=["ok", "start"])
def test_strangers_do_nothing(source: NodeId, message: Message) -> None:
    """Section 3: messages from non-members are dropped; our own name in another life is no member either."""
    host = FakeHost("c")
    omega = omega_on(host)
    omega.on_message(source, message)
    assert (omega.round, host.sent) == (0, [])
    assert omega.counts["stranger"] == 1


def test_only_the_candidate_speaks_for_its_round() -> None:
    """Section 5 (WATCHED-OK): not from the watched, drop; neither counted nor listened to."""
    host = FakeHost("c")
    omega = omega_on(host)
    host.pass_time(1.9)
    omega.on_message(B, Ok(0, 1))
    omega.on_message(B, Ok(0, 2))
    assert (omega.leader, omega.counts["not_candidate"]) == (None, 2)
    host.pass_time(0.2)
    assert omega.round == 1


def test_ok_of_an_index_counts_once() -> None:
    """D25, section 3: a datagram that came twice is one OK, and one OK elects nobody."""
    omega = omega_on(FakeHost("c"))
    omega.on_message(A, Ok(0, 1))
    omega.on_message(A, Ok(0, 1))
    assert omega.leader is None
    omega.on_message(A, Ok(0, 2))
    assert omega.leader == A


def test_overtaken_ok_proves_life() -> None:
    """Figure 3 line 19 restarts the timer on every OK of the round, in whatever order they come."""
    host = FakeHost("c")
    omega = omega_on(host)
    omega.on_message(A, Ok(0, 3))
    host.pass_time(1.9)
    omega.on_message(A, Ok(0, 2))
    assert omega.leader is None
    host.pass_time(1.9)
    assert omega.round == 0


def test_round_belongs_to_one_life() -> None:
    """Section 5 (WATCHED-OK): the leader restarted, and the next round begins; the new life is not named in the old one."""
    host = FakeHost("c")
    omega = omega_on(host)
    elect(omega, A)
    omega.on_message(NodeId("a", 2), Ok(0, 1))
    assert (omega.round, omega.leader) == (1, None)
    assert host.events(RoundEntered)[-1] == RoundEntered(1, "restarted")
    assert [message for _, message in host.sent] == [Start(1), Start(1)]


def test_former_life_is_not_heard() -> None:
    """F1: of two lives of one name the higher boot is the newer; what the former said is still on the road."""
    host = FakeHost("c")
    omega = omega_on(host)
    newer = NodeId("a", 2)
    elect(omega, newer)
    host.pass_time(1.9)
    omega.on_message(A, Ok(0, 9))
    assert (omega.round, omega.leader, omega.counts["old_life"]) == (0, newer, 1)
    host.pass_time(0.2)
    assert omega.round == 1


def test_late_timer_judges_nobody() -> None:
    """F11: a timer later than half an alpha finds that it was us who were stopped, and listens again for the whole patience."""
    host = FakeHost("c")
    omega = omega_on(host)
    elect(omega, A)
    host.pause(10.0)
    assert (omega.round, omega.leader) == (0, A)
    host.pass_time(1.99)
    assert omega.round == 0
    host.pass_time(0.02)
    assert omega.round == 1


def test_slightly_late_timer_judges() -> None:
    """F11 has a threshold: every timer is a little late, and a detector that waits for a punctual one never detects."""
    host = FakeHost("c")
    omega = omega_on(host)
    elect(omega, A)
    host.pause(2.4)
    assert omega.round == 1


def test_away_is_our_own_silence() -> None:
    """F11: told of a pause, it listens for its whole patience, also if its timer was not due yet."""
    host = FakeHost("c")
    omega = omega_on(host)
    elect(omega, A)
    host.clock += 1.9
    omega.on_away(1.0)
    host.pass_time(1.99)
    assert omega.round == 0
    host.pass_time(0.02)
    assert omega.round == 1


def test_candidate_after_a_pause_speaks_at_once() -> None:
    """Line 14: it has not sent (OK, r) within alpha; the next follows one alpha later, not in a burst."""
    host = FakeHost("a")
    omega_on(host)
    host.pause(5.3)
    assert [message for _, message in host.sent] == [Ok(0, 2), Ok(0, 2)]
    host.sent.clear()
    host.pass_time(1.0)
    assert [message for _, message in host.sent] == [Ok(0, 3), Ok(0, 3)]


def test_deposed_candidate_falls_silent() -> None:
    """Line 14: only p = r mod n speaks; the tick of a former round never fires."""
    host = FakeHost("a")
    omega = omega_on(host)
    omega.on_message(B, Start(1))
    host.sent.clear()
    host.pass_time(1.5)
    assert host.take(Ok) == []


@pytest.mark.parametrize("patience", [1.5, 2.0, 3.05])
def test_patience_counts_in_alphas(patience: float) -> None:
    """Line 26 with the timeout as a parameter: m + t_lat / alpha demotes after m missed OKs."""
    host = FakeHost("c")
    omega = omega_on(host, patience=patience)
    host.pass_time(patience * ALPHA - 0.001)
    assert omega.round == 0
    host.pass_time(0.002)
    assert omega.round == 1


def test_tells_who_leads_and_that_nobody_does() -> None:
    """Foundation 5: LeaderChanged carries the round as its token, and None while nobody is known to lead."""
    host = FakeHost("c")
    omega = omega_on(host)
    elect(omega, A)
    omega.on_message(A, Ok(0, 3))
    omega.on_message(B, Start(1))
    assert host.events(LeaderChanged) == [LeaderChanged("omega", A, 0), LeaderChanged("omega", None, 1)]


def test_one_member_leads_alone() -> None:
    """D22: n = 1 leads by itself."""
    host = FakeHost("a")
    omega = omega_on(host, members={"a": Address("a", 1)})
    host.pass_time(10.0)
    assert (omega.leader, omega.round, host.sent) == (host.me, 0, [])


def test_follower_keeps_one_timer() -> None:
    """An OK costs no timer: the timer looks at the instant of the last one when it fires."""
    host = FakeHost("c")
    omega = omega_on(host)
    for seq in range(1, 50):
        omega.on_message(A, Ok(0, seq))
        host.pass_time(0.7)
        assert host.timers == 1
    assert omega.leader == A


@pytest.mark.parametrize("name", ["a", "c"])
def test_stop_leaves_no_timer(name: str) -> None:
    """A stopped machine says nothing more, candidate or not."""
    host = FakeHost(name)
    omega_on(host).stop()
    assert host.timers == 0


@pytest.mark.parametrize(
    "other", [{"alpha": 2.0}, {"patience": 3.0}, {"members": dict(list(MEMBERS.items())[:2])}], ids=lambda other: next(iter(other))
)
def test_numbers_of_both_ends_must_match(other: dict[str, object]) -> None:
    """F4: alpha is counted at two ends, the list says whose turn it is, and the least patient would decide for all."""
    values: dict[str, object] = {"alpha": ALPHA, "patience": 2.0, "members": MEMBERS}
    ours, theirs = (Omega(FakeHost("a"), **numbers) for numbers in (values, {**values, **other}))  # type: ignore[arg-type]
    assert ours.fingerprint != theirs.fingerprint


def test_list_without_us_is_refused() -> None:
    """A user's mistake names the field and what is accepted."""
    with pytest.raises(ConfigError, match="members: 'z' is not among them"):
        omega_on(FakeHost("z"))


def test_long_list_is_refused() -> None:
    """F17: START goes to everybody in one callback, so there are at most 64 others."""
    members = {f"m{i}": Address(f"m{i}", 1) for i in range(66)}
    with pytest.raises(ConfigError, match="members: 66 of them; accepted are up to 65"):
        omega_on(FakeHost("m0"), members=members)


ROUNDS = st.one_of(st.integers(0, 9), st.integers(-(1 << 60), 1 << 60))
MESSAGES = st.one_of(st.builds(Ok, ROUNDS, st.integers(-3, 9)), st.builds(Start, ROUNDS))
SOURCES = st.builds(NodeId, st.sampled_from("abcz"), st.integers(1, 3))


@given(st.lists(st.tuples(st.floats(0, 3), st.booleans(), SOURCES, MESSAGES), max_size=40))
def test_no_input_breaks_it(inputs: list[tuple[float, bool, NodeId, Message]]) -> None:
    """I4 and more, whatever comes: rounds only grow, the leader is the round's candidate, and at most two timers wait."""
    host = FakeHost("b")
    omega = omega_on(host)
    rounds = [omega.round]
    for seconds, paused, source, message in inputs:
        if paused:
            omega.on_away(seconds)
            host.pause(seconds)
        else:
            host.pass_time(seconds)
        omega.on_message(source, message)
        rounds.append(omega.round)
        assert host.timers <= 2
        assert omega.leader is None or omega.leader.name == omega.members[omega.round % 3]
    assert rounds == sorted(rounds)
