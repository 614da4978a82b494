"""The one probe that is open: PING, helpers, judgement.  Spec: gossip 5.2, D12; SWIM 3, Lifeguard (local health).

One alarm serves the timeout and the tick, and an ACK moves it: a probe that is answered costs one turn of the loop,
not two.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from holdfast.features.gossip.protocol.core import Core
from holdfast.features.gossip.protocol.distance import Distances
from holdfast.features.gossip.protocol.facts import ProbeFailed
from holdfast.features.gossip.protocol.helpers import helpers_for
from holdfast.features.gossip.protocol.merge import Merge
from holdfast.features.gossip.protocol.messages import ACCUSERS_MAX, Ack, Nack, Observation, Ping, PingReq
from holdfast.features.gossip.protocol.pause import PauseGuard
from holdfast.features.gossip.protocol.relays import Relays
from holdfast.features.gossip.protocol.rumours import RUMOUR_BYTES, Rumours
from holdfast.features.gossip.protocol.table import Entry
from holdfast.features.gossip.protocol.targets import Targets
from holdfast.host import NodeId, Timer

ONE_WAY_MAX = 256  # names; more such links are no longer news
URGENT_MAX = 64  # members that are to be probed next; an election names a handful
TARGET_OVERHEAD_BYTES = 40  # of a PINGREQ, beside the names of member and host


class Probe:
    """One member, asked once."""

    __slots__ = ("acked", "asked", "entry", "nacks", "sent_at", "seq")

    def __init__(self, entry: Entry, seq: int, now: float) -> None:
        self.entry, self.seq, self.sent_at = entry, seq, now
        self.acked = False
        self.asked: tuple[NodeId, ...] = ()  # helpers
        self.nacks: dict[str, None] = {}  # names of those that said that it does not answer them either

    @property
    def target(self) -> NodeId:
        return self.entry.id


class Prober:
    """Ticks every T (lhm + 1)."""

    def __init__(
        self, core: Core, rumours: Rumours, merge: Merge, targets: Targets, distances: Distances, guard: PauseGuard,
        hint: Callable[[], Observation | None],
    ) -> None:  # fmt: skip
        self._core, self._rumours, self._merge, self._targets = core, rumours, merge, targets
        self._distances, self._guard, self._hint = distances, guard, hint
        self.probe: Probe | None = None
        self._judged: Probe | None = None  # the one before, for NACKs that come after the tick
        self.ticks = 0
        self.due = core.host.now
        self._seq = 0
        self._urgent: deque[NodeId] = deque(maxlen=URGENT_MAX)
        self._alarm: Timer | None = None
        self.relays = Relays(core, rumours, self.next_seq)
        self.one_way: dict[str, int] = {}  # probes in a row that were answered by a helper's way alone, by name

    def start(self) -> None:
        """Begin to probe at a random moment: members that start together do not all probe at once."""
        if self._alarm is None:
            core = self._core
            self.due = core.host.now + core.host.random.uniform(0.0, core.config.period)
            self._set_alarm(self.due)

    def stop(self) -> None:
        self.relays.stop()
        self.probe = self._judged = None
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None

    def next_seq(self) -> int:
        self._seq += 1
        return self._seq

    def now(self, life: NodeId) -> None:
        """Probe this one next; at once if the present probe was answered."""
        if life not in self._urgent:
            self._urgent.append(life)
        if self._alarm is not None and (self.probe is None or self.probe.acked):
            self._set_alarm(self._core.host.now)
            self.due = self._core.host.now

    def forget(self) -> None:
        """Drop the open probe: this process was away, so it proves nothing."""
        self.probe = self._judged = None

    def call(self, each: Entry) -> None:
        """Send the last call: a PING with the accusation, which is the first thing in it (gossip 5.4)."""
        self._core.put(each.member, Ping(self.next_seq(), self._rumours.pick(each.id)))

    # What comes in.

    def on_ack(self, source: NodeId, message: Ack) -> None:
        probe = self.probe
        if probe is not None and message.seq == probe.seq and not probe.acked and (source == probe.target or source in probe.asked):
            probe.acked = True
            self._note_way(probe, direct=source == probe.target)
            if source == probe.target:
                self._distances.measured(source, self._core.host.now - probe.sent_at)
            self._core.counts["probes_indirect" if probe.asked else "probes_direct"] += 1
            if self._alarm is not None:
                self._set_alarm(self.due)
        else:
            self.relays.on_ack(source, message)

    def on_nack(self, source: NodeId, message: Nack) -> None:
        """Count a helper's NACK for the open probe. For the one judged last, its helper was only slower than the tick."""
        for probe in (self.probe, self._judged):
            if probe is not None and probe.seq == message.seq and source in probe.asked and source.name not in probe.nacks:
                probe.nacks[source.name] = None
                if probe is self._judged and self._core.rules.nacks_confirm and not probe.acked:
                    self._merge.confirm(probe.target, probe.entry.inc, source.name)

    def _note_way(self, probe: Probe, *, direct: bool) -> None:
        """A member that answers others and not this one is behind a link that passes one direction."""
        former = self.one_way.pop(probe.target.name, 0)
        if not direct:
            if len(self.one_way) >= ONE_WAY_MAX:
                del self.one_way[next(iter(self.one_way))]
            self.one_way[probe.target.name] = former + 1

    # Timers.

    def _set_alarm(self, due: float) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm = self._core.host.at(due, self._on_alarm)

    def _on_alarm(self) -> None:
        core = self._core
        self._guard.was_away()
        probe = self.probe
        if probe is not None and not probe.acked and not probe.asked and core.host.now < self.due:
            self._ask_helpers(probe)
            self._set_alarm(self.due)
        else:
            self._on_tick()

    def _on_tick(self) -> None:
        core = self._core
        self.ticks += 1
        self.relays.expire()
        probe, self.probe, self._judged = self.probe, None, None
        if probe is not None and not self._guard.is_late():
            self._judge(probe)
        now = core.host.now
        period = core.config.period * core.stretch
        self.due = self.due + period if self.due + period > now else now + period
        target = self._next()
        if target is None:
            self._set_alarm(self.due)
            return
        self.probe = Probe(target, self.next_seq(), now)
        core.send(target.member, Ping(self.probe.seq, self._rumours.pick(target.id), self._hint()))
        self._set_alarm(min(self.due, now + core.config.timeout * core.stretch))

    def _next(self) -> Entry | None:
        core = self._core
        while self._urgent:
            each = core.table.of(self._urgent.popleft())
            if each is not None and each.listed and core.is_other(each):
                return each
        return self._targets.next()

    def _ask_helpers(self, probe: Probe) -> None:
        core = self._core
        helpers = helpers_for(core, self._distances, probe.target)
        probe.asked = tuple(each.id for each in helpers)
        address = probe.entry.address
        room = RUMOUR_BYTES - TARGET_OVERHEAD_BYTES - len(probe.target.name.encode()) - len(address.host.encode())
        for each in helpers:
            core.send(each.member, PingReq(probe.seq, probe.target, address, self._rumours.pick(each.id, room=room)))

    def _judge(self, probe: Probe) -> None:
        """Judge the open probe at the tick, when helpers had their time as well."""
        core = self._core
        if probe.acked:
            core.worsen(-1)
            return
        if not core.table.lists(probe.target):
            return  # It left, or was given up by others, or came back as another life.
        core.counts["probes_failed"] += 1
        self._judged = probe
        core.worsen(len(probe.asked) - len(probe.nacks) if probe.asked else 1)
        core.emit(ProbeFailed(probe.target, len(probe.asked), len(probe.nacks)))
        now = core.table.of(probe.target)
        assert now is not None
        if now.inc != probe.entry.inc:
            return  # It has refuted an accusation since the PING: it lives.
        accusers = (core.name, *probe.nacks)[:ACCUSERS_MAX] if core.rules.nacks_confirm else (core.name,)
        if self._merge.accuse(now, accusers) and core.rules.direct:
            self._rumours.tell(now.member, self._rumours.accusation(core.table.of(probe.target) or now))
            self._rumours.round()
