"""Schedules by hand for the rules of tickets that random runs hardly ever need.  Spec: tickets 8 (E4), D4, D12, D15, D16; H102, H103.

Each is played in a world with real delays and the checkers of tickets/mixed. With the rule in place nothing is violated; with the rule
taken out (``features.tickets.lab.mutations``) something is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from holdfast.features.tickets.lab.checkers import NoReturn
from holdfast.features.tickets.lab.groups import TicketGroup
from holdfast.features.tickets.protocol.config import TicketConfig
from holdfast.features.tickets.protocol.messages import Accept, Accepted, AckUpdate, Prepare, Promised, Query, Refuse, Renew
from holdfast.features.tickets.protocol.tickets import Tickets
from holdfast.host import Message
from holdfast.lab.violation import Violation

RING = TicketConfig(period=0.5, lease=2.0, rtx=0.1, guardians="ring", k=1, suspect=1.0, rho=0.0)
LOCK = TicketConfig(period=0.5, lease=2.0, rtx=0.1, rho=0.0)
PATIENCE = 20.0  # seconds for something that must come about
STEP = 0.01

Which = Callable[[str, str, Message], bool]


def _never(source: str, target: str, message: Message) -> bool:
    return False


class Script:
    """A group whose messages get lost, or are held back and delivered later, as a schedule says."""

    def __init__(self, group: TicketGroup) -> None:
        self.group = group
        self.lose: Which = _never
        self.hold: Which = _never
        self.see: Callable[[str, str, Message], None] = lambda source, target, message: None
        self._held: list[tuple[str, str, Message]] = []
        group.world.network.lose_if(self._stops)

    def _stops(self, source: str, target: str, message: Message) -> bool:
        self.see(source, target, message)
        if self.lose(source, target, message):
            return True
        if self.hold(source, target, message):
            self._held.append((source, target, message))
            return True
        return False

    def let_go(self) -> None:
        """What was held back arrives, now."""
        held, self._held = self._held, []
        nodes = self.group.world.nodes
        for source, target, message in held:
            host = nodes[target]
            self.group.world.step(host, partial(host.node.use(Tickets).on_message, nodes[source].me, message))

    def wait(self, what: Callable[[], bool]) -> None:
        end = self.group.world.now + PATIENCE
        while not what():
            assert self.group.world.now < end, "what the schedule waits for never happens"
            self.group.run(STEP)

    def tickets(self, name: str) -> Tickets:
        return self.group.world.nodes[name].node.use(Tickets)


def _ring_of_three(seed: int) -> tuple[Script, str, str, str]:
    """Seats and three coordinators, the anchor first; then the middle one dies and the last one needs another guardian."""
    script = Script(TicketGroup(seed, 8, seats=3, others=3, config=RING))
    group = script.group
    for name in group.others:
        group.wish(name)
        script.wait(lambda name=name: bool(group.owning([name])))  # type: ignore[misc]
    group.run(4 * RING.lease)  # The guardians have moved to the predecessors.
    anchor, middle, last = (name for name, _ in group.coordinators())
    return script, anchor, middle, last


def excluder_follows_the_move(seed: int) -> None:
    """D4: the last one's guardians change; its predecessor hears nothing of that, and wants to exclude it by the old ones."""
    script, _, middle, last = _ring_of_three(seed)
    script.lose = lambda source, target, message: source == last and isinstance(message, AckUpdate)
    script.group.crash(middle)
    script.group.run(6 * RING.lease)


def old_guardians_extend_nothing(seed: int) -> None:
    """D15, H103: the new set grants at once and answers late, the old one echoes meanwhile; then the last one is cut off, and excluded."""
    script, first, middle, last = _ring_of_three(seed)
    group = script.group
    (anchor,), (mine,) = script.tickets(first).coordinators, script.tickets(last).coordinators
    old = mine.cfg
    sets: dict[int, int] = {}  # op of a write -> the set that it went to
    asked: set[str] = set()

    def see(source: str, target: str, message: Message) -> None:
        if source == last and isinstance(message, Accept):
            sets[message.op] = message.key.cfg

    def asked_again(source: str, target: str, message: Message) -> bool:
        """Repeats of the question to the new set get lost: they would grant anew."""
        if source != last or not isinstance(message, Accept) or message.key.cfg == old:
            return False
        again = target in asked
        asked.add(target)
        return again

    def answers(source: str, target: str, message: Message, *, new: bool) -> bool:
        return target == last and isinstance(message, Accepted) and message.op in sets and (sets[message.op] != old) == new

    group.crash(middle)
    script.see, script.lose, script.hold = see, asked_again, partial(answers, new=False)
    script.wait(lambda: mine.busy == "move")  # in a round, after its RENEW
    group.run(0.12)  # The new set has lease / 4 to answer, and the next RENEW has to be within that.
    script.hold = partial(answers, new=True)
    script.let_go()  # The move is written; the new set is asked, and grants.
    renewed: list[bool] = []
    script.see = lambda source, target, message: renewed.append(True) if source == last and isinstance(message, Renew) else None
    script.wait(lambda: bool(renewed))
    group.run(0.05)  # The old set echoes.
    script.hold = _never
    script.let_go()
    assert mine.cfg != old, "the guardians have not moved"
    script.see = lambda source, target, message: None
    script.lose = lambda source, target, message: source == last and isinstance(message, Renew)
    script.wait(lambda: (anchor.val.succ.rid, anchor.val.succ.cfg) == (mine.rid, mine.cfg))  # The old set is asked no more.
    script.lose = lambda source, target, message: last in (source, target)
    end = group.world.now + 2 * RING.lease
    while group.world.now < end:
        if not anchor.busy:
            group.world.step(group.world.nodes[first], anchor.care.absorb)
        group.run(2 * STEP)


def leave_builds_on_what_was_sent(seed: int) -> None:
    """D16: the user gives back while the write of a split is in flight; two guardians must not have two contents of one version."""
    script = Script(TicketGroup(seed, 4, seats=3, others=2, config=LOCK))
    group, (first, second) = script.group, script.group.others
    group.wish(first)
    script.wait(lambda: bool(group.owning([first])))
    (mine,) = script.tickets(first).coordinators

    def lost(source: str, target: str, message: Message) -> bool:
        if isinstance(message, Accept) and message.key == mine.key and message.val.length < group.n:
            return target == "s2"
        return isinstance(message, Accepted) and target == first and mine.shrunk > 0

    script.lose = lost
    group.wish(second)
    script.wait(lambda: mine.shrunk > 0)
    group.run(0.05)
    group.release(first)
    script.lose = _never
    group.run(2 * LOCK.lease)


def former_attempt_leaves_the_cell_alone(seed: int) -> None:
    """D12: an older attempt of the same agent, still writing its last word, meets the cell that was handed to a newer one."""
    script = Script(TicketGroup(seed, 1, seats=3, others=0, config=LOCK))
    group, answers = script.group, (Accepted, Refuse, Promised)
    # I7 knows an ownership by its identity, which is what the mutation takes away: it would see a return where there is none.
    group.world.checkers = [each for each in group.world.checkers if not isinstance(each, NoReturn)]
    last = 0

    def see(source: str, target: str, message: Message) -> None:
        nonlocal last
        if source == "s0" and isinstance(message, Accept | Prepare | Query):
            last = max(last, message.op)

    script.see = see
    group.wish("s0")
    script.wait(lambda: bool(group.owning(["s0"])))
    script.lose = lambda source, target, message: target == "s0" and isinstance(message, answers)
    group.release("s0")
    group.wish("s1")
    script.wait(lambda: bool(group.owning(["s1"])))
    group.wish("s0")
    group.run(LOCK.poll + 0.5)
    old = last
    script.lose = lambda source, target, message: target == "s0" and isinstance(message, answers) and message.op <= old
    group.release("s1")
    script.wait(lambda: bool(group.owning(["s0"])))
    script.lose = _never
    group.run(2 * LOCK.lease)


SCHEDULES: Mapping[str, Callable[[int], None]] = {
    "ignore nxt": excluder_follows_the_move,
    "identity without token": former_attempt_leaves_the_cell_alone,
    "max deadline at a move": old_guardians_extend_nothing,
    "leave builds on val": leave_builds_on_what_was_sent,
}


def played(name: str, seed: int) -> str:
    """What a schedule violates; "" if nothing."""
    try:
        SCHEDULES[name](seed)
    except Violation as violation:
        return str(violation)
    return ""
