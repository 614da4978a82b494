"""How long suspicions last, who may bury, and what has its limit.  Spec: gossip 7 (G6, G13), 5.4, 5.8, D7, D16."""

from __future__ import annotations

from math import log, log10
from typing import Any

from holdfast.events import Event
from holdfast.features.gossip.lab.members import Change
from holdfast.features.gossip.lab.watch import ROUNDING, GossipChecker, GossipWatch, Life
from holdfast.features.gossip.protocol.facts import LastCall
from holdfast.features.gossip.protocol.messages import FRONT_MAX, Ack, Ping, Status
from holdfast.host import NodeId
from holdfast.lab.host import LabHost
from holdfast.lab.world import World

RELAYS_MAX = 256  # gossip 2
MOMENT = 1e-3  # seconds: timers that are due together are served one after the other


class Open:
    """One suspicion, as it was after the last event of its owner."""

    __slots__ = ("count", "end_at", "rearmed", "suspicion")

    def __init__(self, suspicion: Any) -> None:
        self.suspicion = suspicion
        self.note()

    def note(self) -> None:
        self.end_at, self.count = self.suspicion.end_at, len(self.suspicion.confirmers)
        self.rearmed = self.suspicion.rearmed


def buried_by_timer(life: Life, change: Change) -> bool:
    """This change is the end of a suspicion here, and no news."""
    former, new = change.former, change.new
    if former is None or new is None or life.node.message is not None:
        return False
    return (former.id, former.inc, former.status) == (new.id, new.inc, Status.SUSPECT) and new.status is Status.DEAD


class Bounds(GossipChecker):
    """G6: lhm within 0 and S; suspicions within Min and Max, the shorter the more members accuse; every table within its constant."""

    name = "G6 bounds"

    def acted(self, world: World, life: Life) -> None:
        node = life.node
        if not 0 <= node.lhm <= node.config.lhm_max:
            self.fail(f"lhm of {life} is {node.lhm}")
        known: dict[str, Open] = life.kept.setdefault(self.name, {})
        if known or node.suspicions:
            self._look(life, known)
        self._count(life)

    def _look(self, life: Life, known: dict[str, Open]) -> None:
        running = life.node.suspicions
        for name in [name for name, each in known.items() if running.get(name) is not each.suspicion]:
            self._ended(life, name, known.pop(name))
        for name, suspicion in running.items():
            if name not in known:
                known[name] = Open(suspicion)
                self._begun(life, name, suspicion)
            self._goes_on(life, name, known[name])

    def _begun(self, life: Life, name: str, suspicion: Any) -> None:
        config, rules = life.node.config, life.node.rules
        most = config.suspicion_max(life.n_max) + ROUNDING
        growth = max(1.0, log10(life.n_max)) if rules.growing_min else 1.0
        if suspicion.floor < config.suspicion_min - ROUNDING or suspicion.floor > config.suspicion_min * growth + ROUNDING:
            self.fail(f"Min of a suspicion of {name} at {life} is {suspicion.floor:g} s")
        if not suspicion.floor <= suspicion.ceiling <= max(most, suspicion.floor):
            self.fail(f"Max of a suspicion of {name} at {life} is {suspicion.ceiling:g} s")

    def _goes_on(self, life: Life, name: str, each: Open) -> None:
        suspicion = each.suspicion
        strange = [accuser for accuser in suspicion.confirmers if accuser not in self.watch.names]
        if strange:
            self.fail(f"{life} counts {strange[0]!r} among those that accuse {name}, and there is no such member")
        if suspicion.rearmed or suspicion.hurried:
            each.note()
            return
        if suspicion.end_at > each.end_at + life.paused(suspicion.start) + ROUNDING:
            self.fail(f"{life} waits {suspicion.end_at - each.end_at:g} s longer for {name}, with {len(suspicion.confirmers)} accusers")
        if suspicion.end_at < suspicion.start + wait(suspicion) - ROUNDING:
            early = suspicion.start + wait(suspicion) - suspicion.end_at
            self.fail(f"{life} ends its suspicion of {name} {early:g} s early, with {len(suspicion.confirmers)} accusers")
        over = life.now - self._latest(life, suspicion)
        if over > 0 and life.node.message is not None and not life.pauses:
            self.fail(f"{life} suspects {name} for {over:g} s too long")
        each.note()

    def _ended(self, life: Life, name: str, each: Open) -> None:
        suspicion = each.suspicion
        if suspicion.rearmed or each.rearmed or suspicion.hurried:
            return
        buried = any(change.name == name and buried_by_timer(life, change) for change in life.node.changes)
        lasted = life.now - suspicion.start
        if buried and lasted < suspicion.floor - ROUNDING:
            self.fail(f"{life} buried {name} after {lasted:g} s; Min is {suspicion.floor:g} s")
        if life.now > self._latest(life, suspicion):
            self.fail(f"a suspicion of {name} at {life} lasted {lasted:g} s; Max is {suspicion.ceiling:g} s")

    def _latest(self, life: Life, suspicion: Any) -> float:
        """Its end on the own clock, with the time for an answer to the last call, and what the process did not run."""
        paused = life.paused(suspicion.start)
        least = suspicion.floor if paused else 0.0  # It was away, and waited anew.
        return float(suspicion.start + suspicion.ceiling + life.node.config.timeout + paused + least + MOMENT)

    def _count(self, life: Life) -> None:
        node = life.node
        most = node.table.members_max
        for what, count, limit in (
            ("entries", node.table.size, most),
            ("rumours", len(node.queue), most),
            ("relays", len(node.prober.relays), RELAYS_MAX),
            ("observations of c", len(node.c_front), FRONT_MAX),
            ("suspicions", len(node.suspicions), most),
        ):
            if count > limit:
                self.fail(f"{life} has {count} {what}; the limit is {limit}")


def wait(suspicion: Any) -> float:
    """5.4, computed anew: how long a suspicion lasts with so many members that accuse."""
    k, floor, ceiling = suspicion.k, suspicion.floor, suspicion.ceiling
    if k == 0:
        return float(floor)
    confirmed = min(k, max(0, len(suspicion.confirmers) - 1))
    return float(max(floor, ceiling - (ceiling - floor) * log(confirmed + 1) / log(k + 1)))


class LastCalls(GossipChecker):
    """G13: no timer buries a member that answered its last call, and no member is buried by one that was away for long a moment ago."""

    name = "G13 last-call"

    def __init__(self, watch: GossipWatch) -> None:
        super().__init__(watch)
        self.answered = 0
        self._called: dict[tuple[NodeId, NodeId], set[int]] = {}  # by caller and accused: the PINGs since the last call
        self._answers: set[tuple[NodeId, NodeId]] = set()

    def on_event(self, world: World, host: LabHost, event: Event) -> None:
        if isinstance(event, LastCall):
            self._called[host.me, event.target] = set()
            self._answers.discard((host.me, event.target))

    def acted(self, world: World, life: Life) -> None:
        node = life.node
        if not self._called:
            return
        for name, message in node.sends:
            if isinstance(message, Ping):
                for (caller, target), seqs in self._called.items():
                    if caller == life.me and target.name == name:
                        seqs.add(message.seq)
        if node.message is not None:
            source, message = node.message
            if isinstance(message, Ack) and message.seq in self._called.get((life.me, source), ()):
                self._answers.add((life.me, source))

    def changed(self, world: World, life: Life, change: Change) -> None:
        former = change.former
        if former is None:
            return
        key = (life.me, former.id)
        if change.new is None or change.new.rank[0] != former.inc or change.new.id != former.id:
            message = life.node.message
            if message is not None and isinstance(message[1], Ack) and message[1].seq in self._called.get(key, ()):
                self.answered += 1
            self._called.pop(key, None)  # Another inc: that suspicion is over.
            self._answers.discard(key)
        if not buried_by_timer(life, change):
            return
        if key in self._answers:
            self.fail(f"{life} buried {former.id}, which had answered its last call")
        woke_at, seconds = life.node.away
        config = life.node.config
        if seconds > 2 * config.period and life.now < woke_at + config.suspicion_min - ROUNDING:
            self.fail(f"{life} was away for {seconds:g} s and buried {former.id} {life.now - woke_at:g} s later")
