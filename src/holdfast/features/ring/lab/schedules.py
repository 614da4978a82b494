"""Hand-built schedules: for each problem that a decision of the ring solves, a short run that shows it.  Spec: ring 6, 8 (E13), 11.

A schedule is played twice, by the protocol and with one decision switched off (``Rules``). Times are true seconds; T_l is 1 s, T_a half
of it, so T_arb is 2.5 s; links take 1 ms. Members sit evenly around the circle, in the order of their names.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from holdfast.events import Event
from holdfast.features.ring.lab.watch import DELAY, Stage
from holdfast.features.ring.protocol import facts
from holdfast.features.ring.protocol import messages as m
from holdfast.features.ring.protocol.config import RingConfig
from holdfast.features.ring.protocol.pair import State
from holdfast.features.ring.protocol.rules import Rules
from holdfast.host import Message
from holdfast.lab.links import Fixed, Link


class Outcome(Struct, frozen=True):
    """What a run showed."""

    breaches: dict[str, str]  # invariant -> when and what
    departed: tuple[tuple[str, str], ...]  # members that had to go, and why


class Schedule(Struct, frozen=True):
    """One problem."""

    name: str
    decision: str  # as in the spec
    off: Rules  # without that decision
    expected: frozenset[str]  # what is seen then, among other things; "healthy": members had to go that nothing had happened to
    play: Callable[[Rules, int], Outcome]


def _direct(k: int, *, lease: float = 1.0) -> RingConfig:
    """Lease requests by the direct way alone (P1 off): a schedule cuts one link and means the pair."""
    return RingConfig(k=k, lease=lease, indirect=False)


def _outcome(stage: Stage, *culprits: str) -> Outcome:
    """``culprits``: what happened to them is the schedule, so that one of them goes is no harm."""
    departed = tuple(each for each in stage.watch.departed if each[0] not in culprits)
    breaches = dict(stage.watch.breaches)
    if departed:
        breaches["healthy"] = f"{', '.join(f'{name} ({why})' for name, why in departed)}"
    return Outcome(breaches, departed)


def dormant_repair(rules: Rules, seed: int) -> Outcome:
    """D10. n06 crashes; n04 opens a pair with n08 to close the hole. The link between the two is cut at the instant n08 becomes
    entitled, so ACK(2) is lost. An opener that is not obliged yet drops the pair and lives on, while n08 wins and declares it."""
    stage = Stage(_direct(k=3), rules, seed, size=14)
    ends = {"n04", "n08"}
    cut: list[float] = []

    def lost(source: str, target: str, message: Message) -> bool:
        if {source, target} != ends:
            return False
        pair = stage.pair("n08", "n04")
        if not cut and isinstance(message, m.LeaseAck) and pair is not None and pair.state is State.ACTIVE:
            cut.append(stage.now)
        return bool(cut)

    stage.world.network.lose_if(lost)
    stage.world.at(3.0, lambda: stage.world.crash("n06"))
    stage.run(16.0)
    assert cut, "the pair was never opened"
    assert stage.seen(facts.Suspicion, "n08"), "the responder never asked"
    return _outcome(stage, *ends)


def long_pause(rules: Rules, seed: int) -> Outcome:
    """D6. n03 does not run for 9 T_l. Its neighbours have declared it and own its keys when it goes on."""
    stage = Stage(_direct(k=2), rules, seed, size=8)
    stage.world.at(3.0, lambda: stage.world.stop("n03"))
    stage.world.at(12.0, lambda: stage.world.resume("n03"))
    stage.run(14.0)
    assert stage.seen(facts.Removed, "n02"), "it was not declared"
    return _outcome(stage, "n03")


def stale_joiner(rules: Rules, seed: int) -> Outcome:
    """D8. n20 asks its owner for its neighbours; its first Locks take 0.5 s. Meanwhile n21 joins right beside it through another owner.
    All locks are free again when they are asked for, and what n20 was told is no more."""
    stage = Stage(_direct(k=2), rules, seed, size=8, late={"n20": 2.45, "n21": 2.55})
    stage.run(2.0)

    def delay(event: Event) -> None:
        for name in stage.names:
            stage.world.network.set_link(Link(Fixed(0.5)), "n20", name)

    stage.when(facts.PhaseReached, "n20", delay)
    stage.start("n20")
    stage.run(0.1)
    for name in stage.names:
        stage.world.network.set_link(Link(Fixed(DELAY)), "n20", name)
    stage.start("n21")
    stage.run(30.0)  # The slow Locks bind their receivers for 3 T_l, and n20 knocks again after up to 8 T_l.
    assert stage["n20"].is_member
    assert stage["n21"].is_member
    return _outcome(stage)


def beside_the_condemned(rules: Rules, seed: int) -> Outcome:
    """D9. The answers of n03 to its two monitors get lost, so both win against it and drop it from their neighbourhood. It is valid for
    another T_l and more. A joiner between n02 and n03 asks only those two monitors, and does not learn of n03."""
    stage = Stage(_direct(k=1), rules, seed, size=6, late={"n20": 2.4})
    won: list[str] = []

    def start(name: str) -> None:
        won.append(name)
        if len(won) == 2:
            stage.world.at(stage.now + 0.02, lambda: stage.start("n20"))  # The two have become a pair by then.

    for monitor in ("n02", "n04"):
        stage.lose(m.LeaseAck, source="n03", target=monitor)
        stage.when(facts.Won, monitor, lambda event, monitor=monitor: start(monitor))  # type: ignore[misc]
    stage.run(20.0)
    assert len(won) == 2
    assert stage["n20"].is_member
    return _outcome(stage, "n03")


def oversleeping_accuser(rules: Rules, seed: int) -> Outcome:
    """D28. The answers of Q to P get lost. P does not run from shortly before its session ends until 0.42 s after. On waking it first
    answers the request that Q has sent meanwhile, which gives Q another 2 T_l + T_a from the start of that session, and then
    suspects Q, nominally at the session's end. Q's questions to the arbitrators get lost, so it stays as long as it may."""
    stage = Stage(_direct(k=2), rules, seed, size=8)
    stage.run(2.0)
    accuser, accused, ends = _phases(stage, 0.15, 0.38)
    stage.world.at(ends - 1.0 - 2 * DELAY, lambda: stage.lose(m.LeaseAck, source=accused, target=accuser))
    stage.world.at(ends - 1.0, lambda: stage.lose(m.Arb, source=accused))
    stage.world.at(ends - 0.1, lambda: stage.world.stop(accuser))
    stage.world.at(ends + 0.42, lambda: stage.world.resume(accuser))
    stage.run(ends + 5.0 - stage.now)
    assert stage.seen(facts.Won, accuser), "the accuser lost"
    return _outcome(stage, accuser, accused)


def _phases(stage: Stage, least: float, most: float) -> tuple[str, str, float]:
    """A pair in which the second one's sessions begin this much after the first one's, and an end of the first one's session to come."""
    for one in stage.names:
        for other in stage.names:
            mine, theirs = stage.pair(one, other), stage.pair(other, one)
            if mine is not None and theirs is not None:
                begins = stage.true_time(one, mine.s)
                if least <= (stage.true_time(other, theirs.s) - begins) % 1.0 <= most:
                    return one, other, begins + 3.0
    raise AssertionError("no two of them have such phases; take another seed")


def other_lease(rules: Rules, seed: int) -> Outcome:
    """F4. n20 joins with T_l = 5 s among members with T_l = 1 s. Cut off from them, it is declared long before it gives up."""
    stage = Stage(_direct(k=2), rules, seed, size=8, late={"n20": 2.5})
    stage.others["n20"] = _direct(k=2, lease=5.0)
    stage.start("n20")
    stage.run(20.0)
    assert stage["n20"].is_member is not rules.fingerprint
    stage.world.network.partition("alone", (["n20"], stage.names))
    stage.run(8.0)
    return _outcome(stage, "n20")


def young_ring(rules: Rules, seed: int) -> Outcome:
    """D12. One crash in a ring that is younger than T_arb."""
    stage = Stage(_direct(k=3), rules, seed, size=16)
    stage.world.at(0.1, lambda: stage.world.crash("n05"))
    stage.run(8.0)
    assert stage.seen(facts.Suspicion, "n04")
    return _outcome(stage, "n05")


def skewed_upgrade(rules: Rules, seed: int) -> Outcome:
    """D14. A joiner takes the place of n00 beside n01: the group of n01 and n02 changes from {n00 n01 n02 n03} to {n20 n01 n02 n03}. The
    link between the two is cut before n02 hears of it, and n02 asks first: it and n00, whose vote counts twice, are a majority
    of the old group, n01 and n20 are one of the new."""
    stage = Stage(_direct(k=1), rules, seed, size=5, late={"n20": 0.5})
    stage.run(2.0)
    pair = stage.pair("n01", "n02")
    assert pair is not None
    # Just after n01 began a session: that of n02 is older and runs out earlier.
    stage.run(stage.true_time("n01", pair.s) + 1.0 + 2 * DELAY - stage.now)
    stage.when(facts.GroupProposed, "n01", lambda event: stage.cut("n01", "n02"))
    stage.start("n20")
    stage.run(8.0)
    assert stage.seen(facts.Suspicion, "n01") or stage.seen(facts.Suspicion, "n02")
    return _outcome(stage, "n01", "n02")


def gap(rules: Rules, seed: int) -> Outcome:
    """D29. n20 joins between n03 and n04, and n03 crashes at once: n02 has not heard of n20. Nothing but questions and votes reaches n02
    from beyond the hole. When it declares n03, all keys up to the middle between n02 and n04 seem to be its own, n20's among them."""
    stage = Stage(_direct(k=1), rules, seed, size=6, late={"n20": 3.5})
    stage.run(2.0)
    beyond = {"n04", "n05", "n20"}

    def lost(source: str, target: str, message: Message) -> bool:
        if target == "n02" and not isinstance(message, m.OfRing):
            return True
        return {source, target} & beyond != set() and "n02" in (source, target) and isinstance(message, m.Lease | m.Want | m.LeaseNak)

    def begin(event: Event) -> None:
        stage.world.network.lose_if(lost)
        stage.world.soon(lambda: stage.world.crash("n03"))

    stage.when(facts.BecameMember, "n20", begin)
    stage.start("n20")
    stage.run(7.0)
    assert stage["n20"].is_member
    assert stage.seen(facts.Removed, "n02"), "the hole was not declared"
    return _outcome(stage, "n02", "n20")


SCHEDULES = (
    Schedule("dormant repair pair", "D10", Rules(half=False), frozenset({"I2", "I8"}), dormant_repair),
    Schedule("long pause", "D6", Rules(guard=False), frozenset({"I8"}), long_pause),
    Schedule("stale joiner", "D8", Rules(recheck=False), frozenset({"I10"}), stale_joiner),
    Schedule("join beside the condemned", "D9", Rules(quiet_joins=False), frozenset({"I10"}), beside_the_condemned),
    Schedule("oversleeping accuser", "D28", Rules(from_stop=False), frozenset({"I2", "I7"}), oversleeping_accuser),
    Schedule("another T_l", "F4", Rules(fingerprint=False), frozenset({"I2", "I7", "I8"}), other_lease),
    Schedule("young ring", "D12", Rules(start_up=True), frozenset({"healthy"}), young_ring),
    Schedule("skewed upgrade", "D14", Rules(upgrade="naive"), frozenset({"I1"}), skewed_upgrade),
    Schedule("gap", "D29", Rules(gap=False), frozenset({"I8"}), gap),
)
BY_NAME = {schedule.name: schedule for schedule in SCHEDULES}
