"""Stable Omega does what Figure 3 of paper 002 says, with the faults of D12 removed: one test per sentence.

Spec: fast-detection, "Reference reconstruction of Fig. 3", D12, D13, D14, D25. Lines are those of the printed figure.
"""

from __future__ import annotations

import pytest

from holdfast.events import Event, LeaderChanged
from holdfast.host import Address, Message, NodeId
from holdfast.lab.calm import Calm
from holdfast.lab.host import LabHost
from holdfast.lab.links import Fixed, Link
from holdfast.lab.network import PORT
from holdfast.lab.violation import Violation
from holdfast.lab.world import World
from holdfast.papers.detection.lab.checkers.omega import Agreed, SecondOk, Stable, disagreement
from holdfast.papers.detection.protocol.messages import Ok, Start
from holdfast.papers.detection.protocol.omega import Omega, RoundEntered
from tests.papers.detection.ablations import CandidateStaysOut, OneOkElects, TimerOnlyAtElection
from tests.support.fake_host import FakeHost

ALPHA = 1.0
DELAY = 0.01
A, B, C, D = (NodeId(name, 1) for name in "abcd")
MEMBERS = {name: Address(name, 1) for name in "abcd"}
OTHERS = {name: [address for other, address in MEMBERS.items() if other != name] for name in MEMBERS}


def member(name: str) -> tuple[FakeHost, Omega]:
    """One started member, its first words forgotten."""
    host = FakeHost(name)
    omega = Omega(host, MEMBERS, alpha=ALPHA)
    omega.start()
    host.sent.clear()
    return host, omega


def said(host: FakeHost) -> list[tuple[object, Message]]:
    found: list[tuple[object, Message]] = [(to, message) for to, message in host.sent]
    host.sent.clear()
    return found


def group(machine: type[Omega] = Omega, names: str = "abcde", *, watched: bool = True, loss: float = 0.0) -> World:
    """A calm group in the lab, with the checkers of stability, agreement and the second OK."""
    members = {name: Address(name, PORT) for name in names}
    calm, settle = Calm(), (2 * len(names) + 3) * ALPHA
    checkers = [calm, SecondOk(ALPHA), Stable(calm, settle), Agreed(calm, settle)] if watched else []
    return World(
        7,
        lambda host: [Omega(host, members, alpha=ALPHA) if machine is Omega else machine(host, members, alpha=ALPHA)],
        names=names,
        link=Link(Fixed(DELAY), loss=loss),
        checkers=checkers,
    )


# StartRound(s): if p is not s mod n, send START(s) to all ...


@pytest.mark.parametrize("how", ["initialization", "silence", "told"])
def test_start_round_tells_everybody(how: str) -> None:
    """Lines 3-4 and 10: whoever is not the candidate sends (START, s) to all, however it came to the round."""
    host, omega = member("d")
    if how == "initialization":
        host = FakeHost("d")
        Omega(host, MEMBERS, alpha=ALPHA).start()
    elif how == "silence":
        host.pass_time(2 * ALPHA)
    else:
        omega.on_message(C, Start(1))
    assert said(host) == [(to, Start(0 if how == "initialization" else 1)) for to in OTHERS["d"]]


@pytest.mark.parametrize("how", ["silence", "told"])
def test_candidate_sends_no_start(how: str) -> None:
    """Line 3: the candidate of the new round sends no START; its OK, which follows at once, says the same."""
    host, omega = member("b")
    if how == "silence":
        host.pass_time(2 * ALPHA)
    else:
        omega.on_message(C, Start(1))
    assert said(host) == [(to, Ok(1, 1)) for to in OTHERS["b"]]


# ... then always: r = s, leader = none, restart timer.


@pytest.mark.parametrize("name", ["b", "d"], ids=["candidate", "other"])
def test_start_round_always_enters(name: str) -> None:
    """Lines 5-7 with D12 (a) removed: everybody enters, the candidate too: r = s, leader = none, timer restarted."""
    host, omega = member(name)
    for seq in (1, 2):
        omega.on_message(A, Ok(0, seq))
    host.pass_time(1.9)
    omega.on_message(C, Start(1))
    assert (omega.round, omega.leader) == (1, None)
    host.pass_time(0.2)
    assert omega.round == 1  # The timer of round 0 would have fired.


# Every alpha the process with p = r mod n sends (OK, r) to all, itself included.


def test_candidate_sends_ok_every_alpha() -> None:
    """Lines 13-15: (OK, r) to all, one alpha apart."""
    host, _ = member("a")
    for seq in (2, 3, 4):
        host.pass_time(ALPHA - 0.001)
        assert said(host) == []
        host.pass_time(0.001)
        assert said(host) == [(to, Ok(0, seq)) for to in OTHERS["a"]]


def test_candidate_sends_its_first_ok_at_once() -> None:
    """Line 14, D13: it "has not sent (OK, r) within alpha", because it has not sent any."""
    host, omega = member("c")
    host.pass_time(0.3)
    omega.on_message(D, Start(2))
    assert said(host) == [(to, Ok(2, 1)) for to in OTHERS["c"]]
    host.pass_time(ALPHA)
    assert said(host) == [(to, Ok(2, 2)) for to in OTHERS["c"]]


def test_only_the_candidate_sends_ok() -> None:
    """Line 14: p = r mod n."""
    host, omega = member("d")
    for seq in range(1, 6):
        omega.on_message(A, Ok(0, seq))
        host.pass_time(ALPHA)
    assert host.take(Ok) == []


def test_candidate_hears_itself() -> None:
    """Line 15, "to all": its own OK restarts its timer, and its own second OK makes it leader in its own eyes."""
    host, omega = member("a")
    host.pass_time(ALPHA - 0.001)
    assert (omega.round, omega.leader) == (0, None)
    host.pass_time(0.001)
    assert (omega.round, omega.leader) == (0, A)
    host.pass_time(20 * ALPHA)
    assert (omega.round, omega.leader) == (0, A)


# On (OK, k), k = r: always restart timer; if leader is none and this is at least the second (OK, r), leader = k mod n.


def test_ok_always_restarts_the_timer() -> None:
    """Line 23 with D12 (b) removed: every OK of the round restarts the timer, also when the leader is known."""
    host, omega = member("d")
    for seq in range(1, 30):
        omega.on_message(A, Ok(0, seq))
        host.pass_time(2 * ALPHA - 0.001)
        assert omega.round == 0


def test_second_ok_names_the_leader() -> None:
    """Lines 20-22: the first (OK, r) names nobody, the second names k mod n."""
    _, omega = member("d")
    omega.on_message(A, Ok(0, 1))
    assert omega.leader is None
    omega.on_message(A, Ok(0, 2))
    assert omega.leader == A


def test_ok_that_brings_the_round_counts() -> None:
    """Line 20, "received at least two (OK, k)": the one that made us jump was received too."""
    _, omega = member("d")
    omega.on_message(B, Ok(1, 1))
    assert (omega.round, omega.leader) == (1, None)
    omega.on_message(B, Ok(1, 2))
    assert omega.leader == B


def test_oks_of_another_round_do_not_count() -> None:
    """Line 19, "with k = r": what was heard in a round is forgotten with it."""
    _, omega = member("d")
    omega.on_message(A, Ok(0, 1))
    omega.on_message(A, Ok(4, 1))
    assert (omega.round, omega.leader) == (4, None)


# Timer > 2 alpha: StartRound(r + 1).


def test_silence_starts_the_next_round() -> None:
    """Lines 26-27: not before 2 alpha, and then again and again until somebody speaks."""
    host, omega = member("d")
    host.pass_time(2 * ALPHA - 0.001)
    assert omega.round == 0
    host.pass_time(0.001)
    assert omega.round == 1
    host.pass_time(2 * ALPHA)
    assert omega.round == 2
    assert [event.why for event in host.events(RoundEntered)] == ["start", "silence", "silence"]


# OK or START with k > r: StartRound(k); with k < r from q: START(r) to q.


@pytest.mark.parametrize("message", [Ok(5, 1), Start(5)], ids=["ok", "start"])
def test_newer_round_is_joined(message: Message) -> None:
    """Lines 28-29: jump to round k."""
    host, omega = member("d")
    omega.on_message(B, message)
    assert omega.round == 5
    assert said(host) == [(to, Start(5)) for to in OTHERS["d"]]


@pytest.mark.parametrize("message", [Ok(2, 1), Start(2)], ids=["ok", "start"])
def test_older_round_is_answered(message: Message) -> None:
    """Lines 30-31: (START, r) to q alone, and nothing changes here."""
    host, omega = member("d")
    for seq in (1, 2):
        omega.on_message(B, Ok(5, seq))
    said(host)
    host.pass_time(1.9)
    omega.on_message(C, message)
    assert said(host) == [(MEMBERS["c"], Start(5))]
    assert (omega.round, omega.leader) == (5, B)
    host.pass_time(0.2)
    assert omega.round == 6  # It did not restart the timer.


# The figure as a whole.


def test_calm_group_elects_the_first_and_keeps_it() -> None:
    """Section 5, stability: round 0 belongs to the first; without faults nobody is ever demoted."""
    world = group()
    world.run(200 * ALPHA)
    omegas = [host.node.use(Omega) for host in world.alive]
    assert {(omega.leader, omega.round) for omega in omegas} == {(NodeId("a", 1), 0)}


def test_dead_leader_is_replaced_in_time() -> None:
    """Lines 26-29: 2 alpha of silence, START, an OK at once and one an alpha later: 3 alpha and two delays after the last OK."""
    world = group()
    world.run(10 * ALPHA + 2 * DELAY)  # Just after an OK of the leader arrived everywhere: the worst moment to die.
    world.crash("a")
    world.run(10 * ALPHA + DELAY + 3 * ALPHA + 2 * DELAY + 0.001)
    assert disagreement(world) == ""
    assert {host.node.use(Omega).leader for host in world.alive} == {NodeId("b", 1)}


def test_d12a_as_printed_the_candidate_never_enters() -> None:
    """D12 (a): with the body of StartRound inside the if, the candidate of the next round never stands and nobody leads."""
    world = group(CandidateStaysOut)
    world.run(10 * ALPHA)
    world.crash("a")
    with pytest.raises(Violation, match="I9 agreed"):
        world.run(100 * ALPHA)
    healthy = group()
    healthy.run(10 * ALPHA)
    healthy.crash("a")
    healthy.run(100 * ALPHA)


def test_d12b_as_printed_every_leader_times_out() -> None:
    """D12 (b): with the timer restarted only at the election, a live leader is demoted 2 alpha after it."""
    world = group(TimerOnlyAtElection)
    with pytest.raises(Violation, match="I10 stable"):
        world.run(100 * ALPHA)
    assert world.now <= 4 * ALPHA


def test_d25_stray_ok_elects_nobody() -> None:
    """D25: a candidate that dies after its first OK is never named; with one OK instead of two it would be."""
    assert named(Omega, "b") == set()
    assert named(OneOkElects, "b") == {NodeId("b", 1)}


def named(machine: type[Omega], stray: str) -> set[NodeId]:
    """Who of a group names somebody who died right after its first OK."""
    world = group(machine, watched=False)
    found: set[NodeId] = set()

    def on_event(host: LabHost, event: Event) -> None:
        if isinstance(event, RoundEntered) and event.round == 1 and host.me.name == stray:
            world.at(world.now + DELAY / 2, lambda: world.crash(stray))  # Its OK is on the road.
        if isinstance(event, LeaderChanged) and event.leader is not None and event.leader.name == stray:
            found.add(event.leader)

    world.listeners.append(on_event)
    world.run(5 * ALPHA)
    world.crash("a")
    world.run(30 * ALPHA)
    assert world.nodes[stray].dead
    assert {host.node.use(Omega).leader for host in world.alive} == {NodeId("c", 1)}
    return found


def test_one_process_with_timely_links_is_enough() -> None:
    """Section 5: the synchrony that Omega asks for is one process whose outgoing links are timely; all others may lose most messages."""
    world = group(watched=False, loss=0.7)
    for target in "abde":
        world.network.set_link(Link(Fixed(DELAY)), "c", target)
    world.run(2000 * ALPHA)
    assert {host.node.use(Omega).leader for host in world.alive} == {NodeId("c", 1)}
    before = {host.node.use(Omega).round for host in world.alive}
    world.run(4000 * ALPHA)
    assert {host.node.use(Omega).round for host in world.alive} == before


def test_d14_deaf_process_demotes_everybody() -> None:
    """D14, a limit of the figure: one process that hears nobody but is heard times out every leader in turn until it leads itself."""
    world = group(watched=False)
    leaders: list[NodeId] = []

    def on_event(host: LabHost, event: Event) -> None:
        if isinstance(event, LeaderChanged) and event.leader == host.me:
            leaders.append(host.me)

    world.listeners.append(on_event)
    world.run(5 * ALPHA)
    world.network.cut("deaf", "abcd", "e")
    world.run(100 * ALPHA)
    assert [leader.name for leader in leaders] == ["a", "b", "c", "d", "e"]
    assert {host.node.use(Omega).leader for host in world.alive} == {NodeId("e", 1)}
