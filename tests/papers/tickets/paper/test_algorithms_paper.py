"""``PaperRing`` does what Algorithms 3 to 5 of paper 001 say, and that is why Lemma 4.2 and Theorem 4.1 do not hold.

Spec: tickets 5.10, D1 to D7. First the lines of the algorithms, one by one; then the counterexamples, on a schedule each.
"""

from __future__ import annotations

import pytest

from holdfast.host import Address, Message, NodeId
from holdfast.papers.tickets.lab.circle import spread
from holdfast.papers.tickets.lab.failure_free_ring import FailureFreeRing
from holdfast.papers.tickets.lab.paper_ring import PaperConfig, PaperRing
from holdfast.papers.tickets.lab.paper_ring_messages import (
    AckCjoin,
    AckCoord,
    AckExclude,
    Acknowledged,
    Alive,
    ArcChanged,
    Cjoin,
    Disconnected,
    Exclude,
    PrCast,
    Reject,
    ReqCoord,
    Status,
    Update,
)
from holdfast.papers.tickets.lab.paper_rings import PaperRings, intervals
from holdfast.papers.tickets.lab.paper_traces import BUFFERED, ROUND_PHASES, TRACES, UNACKNOWLEDGED, Trace, random_joins
from tests.support.fake_host import FakeHost

N, NAMES = 28, [f"p{i}" for i in range(7)]
TICKETS = spread(7, N)  # 27, 23, 19, 15, 11, 7, 3
CVIEW = dict(zip(TICKETS, NAMES, strict=True))
CONFIG = PaperConfig(n=N)
GROUP = {name: Address(name, 1) for name in (*NAMES, "j0")}
ROUND, DELTA = CONFIG.round, CONFIG.delta
NOBODY: tuple[str, ...] = ()


def process(name: str = "p2", config: PaperConfig = CONFIG) -> tuple[FakeHost, PaperRing]:
    """One process of a core of seven; its first round begins after 0.5 s."""
    host = FakeHost(name)
    made = PaperRing(host, config, GROUP, lambda: NAMES)
    made.start()
    if name in NAMES:
        made.place(TICKETS[NAMES.index(name)], CVIEW, 0.5)
    return host, made


def to(host: FakeHost, kind: type[Message]) -> list[str]:
    return [where.name for where, _ in host.take(kind) if isinstance(where, NodeId)]


def say(made: PaperRing, source: str, *messages: Message) -> None:
    for message in messages:
        made.on_message(NodeId(source, 1), message)


def serial_of(host: FakeHost, kind: type[Update | Exclude | AckCjoin | ReqCoord]) -> int:
    ((_, message),) = host.take(kind)
    return message.serial


def excluding(host: FakeHost, made: PaperRing) -> int:
    """The first UPDATE fails; the serial of the EXCLUDE that follows."""
    host.pass_time(0.5)
    host.pass_time(DELTA)
    return serial_of(host, Exclude)


# Algorithm 3: the main loop


def test_a_round_sends_alive_and_update() -> None:
    """Algorithm 3: ALIVE to the 2k + 1 closest successors in Cview, UPDATE(R) to the immediate one."""
    host, made = process()
    assert made.L == ("p1", "p0", "p6")
    host.pass_time(0.5)
    assert to(host, Alive) == ["p3", "p4", "p5"]
    ((where, update),) = host.take(Update)
    assert where == NodeId("p3", 1)
    assert update.predecessors == ("p2", "p1", "p0")


@pytest.mark.parametrize("enough, heard, goes_on", [(2, ["p1", "p0"], True), (2, ["p1"], False), (3, ["p1", "p0"], False)])
def test_too_few_alive(enough: int, heard: list[str], goes_on: bool) -> None:
    """Algorithm 3, D1: whoever hears fewer than the threshold of its L leaves the core; the first round counts nothing."""
    host, made = process(config=PaperConfig(n=N, enough=enough, p_exclude=0.0))
    host.pass_time(0.5)
    assert made.in_core
    for name in heard:
        say(made, name, Alive())
    say(made, "p5", Alive())  # not one of L
    host.pass_time(ROUND)
    assert made.in_core is goes_on
    assert len(host.events(Disconnected)) == (not goes_on)


def test_a_status_that_is_ok() -> None:
    """Algorithm 3: R_p := R when the status of UPDATE is OK."""
    host, made = process()
    made.L = ("j0", "p1", "p0")
    host.pass_time(0.5)
    assert made.R == ("p2", "p1", "p0")
    say(made, "p3", Status(serial_of(host, Update)))
    assert made.R == ("p2", "j0", "p1")
    host.pass_time(DELTA)
    assert not host.take(Exclude)


def test_a_status_that_fails() -> None:
    """D2: the lost ``else`` of Algorithm 3. Exclusion follows an UPDATE whose status is not known after delta, unless chance says no."""
    host, made = process()
    host.pass_time(0.5)
    assert not host.take(Exclude)
    host.pass_time(DELTA)
    assert to(host, Exclude) == ["p4"]
    assert made.R == ("p2", "p1", "p0")
    host, made = process(config=PaperConfig(n=N, p_exclude=0.0))
    host.pass_time(0.5 + DELTA)
    assert not host.take(Exclude)


# Algorithm 4: messages


def test_update_is_installed() -> None:
    """Algorithm 4: on UPDATE(R), L_p := R; the connection tells the sender."""
    host, made = process()
    say(made, "p1", Update(7, ("p1", "j0", "p0")))
    assert made.L == ("p1", "j0", "p0")
    assert host.take(Status) == [(NodeId("p1", 1), Status(7))]


def test_cjoin_splits_the_arc() -> None:
    """Algorithm 4: ACKCJOIN(R, t, j, Cview) to the new successor; R_p := R when its status is OK."""
    host, made = process()
    made.choose = max
    made.R = NOBODY
    say(made, "j0", Cjoin())
    ((where, ack),) = host.take(AckCjoin)
    assert where == NodeId("j0", 1)
    assert (ack.predecessors, ack.t, ack.j) == (("p2", "p1", "p0"), 18, 15)
    assert dict(ack.view)[18] == "j0"
    assert made.coordinates == (19,)
    assert made.immed_succ == "j0"
    say(made, "j0", Status(ack.serial))
    assert made.R == ("p2", "p1", "p0")


def test_cjoin_that_is_not_acknowledged() -> None:
    """Algorithm 4: a newcomer that does not answer is excluded like any other successor."""
    host, made = process()
    say(made, "j0", Cjoin())
    host.pass_time(DELTA)
    assert to(host, Exclude) == ["p3"]
    assert made.in_core


def test_cjoin_names_the_successor() -> None:
    """Algorithm 4: ImmedSucc := Cview[j] at the newcomer, also if p was asked by another excluder to remove its own successor."""
    host, made = process()
    say(made, "p1", ReqCoord(5, 18, 11))
    assert 15 not in made.cview
    say(made, "j0", Cjoin())
    ((_, ack),) = host.take(AckCjoin)
    assert dict(ack.view)[ack.j] == "p3"


def test_cjoin_is_rejected() -> None:
    """Algorithm 4: nothing to give, or temporary coordinator."""
    host, made = process()
    made.j = 18
    say(made, "j0", Cjoin())
    made.j, made.temp_rounds = 15, 1
    say(made, "j0", Cjoin())
    assert len(host.take(Reject)) == 2


def test_a_newcomer() -> None:
    """Algorithm 4: L_p := L, R_p empty, ALIVE at once, the news to everybody; rounds begin later."""
    host, made = process("j0")
    made.cjoin()
    assert len(host.take(Cjoin)) == 1
    say(made, "p2", AckCjoin(3, ("p2", "p1", "p0"), 18, 15, tuple({**CVIEW, 18: "j0"}.items())))
    assert (made.L, made.R, made.coordinates) == (("p2", "p1", "p0"), (), (18, 17, 16))
    assert (made.immed_pred, made.immed_succ) == ("p2", "p3")
    assert to(host, Alive) == ["p3", "p4", "p5"]
    assert sorted(to(host, PrCast)) == sorted(NAMES)
    say(made, "p1", AckCjoin(3, (), 22, 19, ()))  # a second one, of an earlier question
    assert made.coordinates == (18, 17, 16)
    host.pass_time(ROUND)
    assert to(host, Update) == ["p3"]


# Algorithm 5: exclusion


def test_the_next_possible_successor() -> None:
    """Algorithm 5: EXCLUDE to one successor after the other until one answers; if none does, p thinks it is disconnected."""
    host, made = process()
    excluding(host, made)
    asked = []
    while made.in_core:
        host.pass_time(DELTA)
        asked += to(host, Exclude)
    assert asked == ["p5", "p6", "p0", "p1"]
    assert [event.why for event in host.events(Disconnected)] == ["nobody answers"]


def test_who_is_asked() -> None:
    """Algorithm 5: REQCOORD to all of L_q and R_p; p counts itself if it is one of them."""
    host, made = process()
    say(made, "p4", AckExclude(excluding(host, made), ("p3", "p2", "p1")))
    ((where, request),) = host.take(ReqCoord)
    assert where == NodeId("p1", 1)
    assert (request.i, request.j) == (19, 11)
    assert 15 not in made.cview


def test_acknowledged() -> None:
    """Algorithm 5: with k + 1 ACKCOORD p is temporary coordinator for dist(p, q) - 1 rounds: no UPDATE, no cjoin, then S_p grows."""
    host, made = process(config=PaperConfig(n=N, enough=0))
    say(made, "p4", AckExclude(excluding(host, made), ("p3", "p2", "p1")))
    request = serial_of(host, ReqCoord)
    say(made, "p1", AckCoord(request - 1))  # of another question
    assert not host.events(Acknowledged)
    say(made, "p1", AckCoord(request))
    host.pass_time(2 * DELTA)
    assert host.events(Acknowledged) == [Acknowledged(("p3",), "p4", 7)]
    host.take(Update)
    host.pass_time(6 * ROUND)
    assert list(made.coordinates) == [19, 18, 17, 16]
    assert not host.take(Update)
    host.pass_time(ROUND)
    assert list(made.coordinates) == [19, 18, 17, 16, 15, 14, 13, 12]
    assert host.events(ArcChanged) == [ArcChanged(19, 11)]
    host.pass_time(ROUND)
    assert to(host, Update) == ["p4"]


def test_not_acknowledged() -> None:
    """D2, D6: the lost ``else`` of Algorithm 5. With k ACKCOORD or fewer p thinks it is disconnected."""
    host, made = process()
    say(made, "p4", AckExclude(excluding(host, made), ("p3", "p2", "p1")))
    host.pass_time(2 * DELTA)
    assert [event.why for event in host.events(Disconnected)] == ["too few ACKCOORD"]
    say(made, "p4", Exclude(9))
    assert not host.take(AckExclude)


def test_whoever_is_asked() -> None:
    """Algorithm 5: r acknowledges unless it is in E_pq, removes E_pq from Cview, and believes no news of it for dist(p, q) rounds."""
    host, made = process("p1")
    say(made, "p2", ReqCoord(5, 19, 11))
    assert host.take(AckCoord) == [(NodeId("p2", 1), AckCoord(5))]
    assert 15 not in made.cview
    say(made, "j0", PrCast(14))
    assert 14 not in made.cview
    host.clock += 8 * ROUND
    say(made, "j0", PrCast(14))
    assert made.cview[14] == "j0"
    host, made = process("p3")
    say(made, "p2", ReqCoord(5, 19, 11))
    assert not host.take(AckCoord)


# Section 4.1


def test_lemma_4_1() -> None:
    """Lemma 4.1: without failures, and if ALIVE messages always suffice, cjoins do what they do in Algorithms 1 and 2."""
    joins = [("j0", "p0"), ("j1", "p2"), ("j2", "j0"), ("j3", "j1")]
    rings = PaperRings(3, PaperConfig(n=N, enough=0), size=3, joiners=[name for name, _ in joins])
    free = FailureFreeRing(N, NodeId("p0", 1), max)
    founder = free.processes[NodeId("p0", 1)]
    founder.i = founder.j = 27  # spread() begins there
    founder.view = {27: founder.me}
    wanted = [18, 9]
    free._choose = lambda tickets: wanted.pop(0) if wanted else max(tickets)
    for at, (name, via) in enumerate([("p1", "p0"), ("p2", "p1"), *joins]):
        free.cjoin(NodeId(name, 1), NodeId(via, 1))
        while free.channels:
            free.deliver(*next(iter(free.channels)))
        if name.startswith("j"):
            rings.processes[via].choose = max
            rings.join(name, 5.0 * at, via)
    rings.world.run(40.0)
    assert {p.me.name: free.tickets(p) for p in free.core} == {name: each.coordinates for name, each in rings.processes.items()}
    assert rings.conflicts == []


@pytest.mark.parametrize(
    "trace, at", [(ROUND_PHASES, 3.76), (UNACKNOWLEDGED, 11.1), (BUFFERED, 10.0)], ids=[trace.decision for trace in TRACES]
)
def test_theorem_4_1_does_not_hold(trace: Trace, at: float) -> None:
    """D3, D4, D5: p2 and p3 act with the same ticket, at the time the trace says."""
    rings = trace.play(0)
    (conflict,) = rings.conflicts
    assert {conflict.one, conflict.other} == {"p2", "p3"}
    assert trace.ticket in conflict.tickets
    assert conflict.at == pytest.approx(at, abs=0.001)


def test_corollary_4_1_does_not_hold() -> None:
    """D3: the first of E_pq has not failed one round after p was acknowledged; it has after two."""
    rings = ROUND_PHASES.play(0)
    (acknowledged_at,) = (at for at, _, fact in rings.facts if isinstance(fact, Acknowledged))
    ((_, gone_at),) = intervals(rings.claims, 3, ROUND_PHASES.seconds)["p3"]
    assert ROUND < gone_at - acknowledged_at < 2 * ROUND


def test_lemma_4_2_does_not_hold() -> None:
    """D4: A and (L_r - E_pq - R_p) have j0 and j1 in common: alive, heard by r, and never asked."""
    rings = UNACKNOWLEDGED.play(0)
    p, r = rings.processes["p2"], rings.processes["p3"]
    ((_, _, acknowledged),) = rings.facts
    assert isinstance(acknowledged, Acknowledged)
    unasked = set(r.L) - set(acknowledged.excluded) - {"p2", "p1", "p0"}
    assert unasked & set(rings.acting) == {"j0", "j1"}
    assert p.in_core
    assert r.in_core
    assert intervals(rings.claims, 15, UNACKNOWLEDGED.seconds)["p3"] == [(0.0, UNACKNOWLEDGED.seconds)]  # for ever


def test_a_stop_within_the_round_is_harmless() -> None:
    """D5: it is the ALIVE messages in the buffer that count, not the stop: whoever is stopped for less than a round shares nothing."""
    rings = PaperRings(0, CONFIG, size=7)
    rings.stop("p3", 3.0, 0.3)
    rings.world.run(20.0)
    assert rings.conflicts == []


def test_traces_need_their_cause() -> None:
    """D3, D4, D5: the same cores without the cut and the stop stay whole and share nothing."""
    for n, joiners in ((7, ()), (N, ("j0", "j1"))):
        rings = PaperRings(0, PaperConfig(n=n), size=7, joiners=joiners)
        rings.world.run(20.0)
        assert rings.conflicts == []
        assert rings.acting == NAMES
    assert len(TRACES) == 3


# D1, D6, D7: who is left


def test_2k_plus_1_collapses() -> None:
    """D1: without any fault, with six joins, nobody is left after a minute; with k + 1 most are."""
    left = {enough: [_left(seed, enough) for seed in range(6)] for enough in (3, 2)}
    assert max(left[3]) == 0
    assert sum(left[2]) > 6 * 9


def test_a_broken_link_expels_a_healthy_process() -> None:
    """D6: p2 cannot reach p3, everybody else can; p3 has to go."""
    rings = ROUND_PHASES.play(0)
    assert [(name, fact.why) for _, name, fact in rings.facts if isinstance(fact, Disconnected)] == [("p3", "too few ALIVE")]


def test_a_failed_exclusion_expels_its_author() -> None:
    """D6: p2 cannot reach p3 and p4; nobody of L_q and R_p is left to ask but p2 and p1, and p1 is silent: p2 has to go."""
    rings = PaperRings(0, CONFIG, size=7)
    rings.world.at(5.0, lambda: rings.world.network.cut("lost", ["p2"], ["p1", "p3"]))
    rings.world.run(8.0)
    assert ("p2", "too few ACKCOORD") in [(name, fact.why) for _, name, fact in rings.facts if isinstance(fact, Disconnected)]


def test_a_little_loss_empties_the_core() -> None:
    """D6: with 2 % loss nobody is left after a minute; sends are not repeated, as written."""
    assert [_left(seed, 2, loss=0.02) for seed in range(4)] == [0, 0, 0, 0]


def test_joins_silence_the_healthy() -> None:
    """D7: senders choose by Cview, receivers count by L: joins alone, without any fault, make some think they are disconnected."""
    runs = [random_joins(seed, CONFIG, size=7, joins=6, seconds=60.0) for seed in range(12)]
    assert sum(rings.disconnected("too few ALIVE") for rings in runs) > 0
    calm = [random_joins(seed, CONFIG, size=7, joins=0, seconds=60.0) for seed in range(4)]
    assert [rings.disconnected() for rings in calm] == [0, 0, 0, 0]


def _left(seed: int, enough: int, loss: float = 0.0) -> int:
    return len(random_joins(seed, PaperConfig(n=N, enough=enough), size=7, joins=6, seconds=60.0, loss=loss).acting)
