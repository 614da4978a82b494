"""Limiter: one member's part in all limits of its group.  Spec: limits 2, 3, 5; foundation F3, F9, F10, F11, F17; paper 003, 6.

One gossip serves all limits (D2). The machine owns the messages of this folder and hands each to the part that it is for; every handler and
the epoch ask first how this member stands. It knows views by ``host.Views`` alone: of seats, of ZooKeeper, or over a plain member list.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from holdfast.events import Event
from holdfast.features.limits.protocol.allocator import Allocator
from holdfast.features.limits.protocol.blacklist import Blacklist
from holdfast.features.limits.protocol.central import Central
from holdfast.features.limits.protocol.choke_watch import ChokeWatch
from holdfast.features.limits.protocol.config import SENDS_MAX, UNIT, LimitsConfig
from holdfast.features.limits.protocol.demand import Demand as Wanted
from holdfast.features.limits.protocol.facts import WentQuiet, Woke
from holdfast.features.limits.protocol.links import Links
from holdfast.features.limits.protocol.member_lists import MemberLists
from holdfast.features.limits.protocol.messages import (
    TYPES,
    Ask,
    Cuts,
    Demand,
    Give,
    GiveAck,
    Gossip,
    GossipAck,
    OfInstance,
    Probe,
    Reconcile,
    Sum,
)
from holdfast.features.limits.protocol.outlet import Outlet
from holdfast.features.limits.protocol.pace import Pace
from holdfast.features.limits.protocol.pushsum import NOISE, PushSum, Told, batch_of, portions_of
from holdfast.features.limits.protocol.quota import Quotas
from holdfast.features.limits.protocol.specs import Spec, Specs
from holdfast.features.limits.protocol.standing import Standing
from holdfast.features.limits.protocol.trader import Trader
from holdfast.host import Host, Message, NodeId, Timer, ViewId, Views
from holdfast.kit.ledger import Refusal

REPEAT_AFTER = 0.9  # of an epoch: what was sent in the last one is not answered, and not sent again twice in one


class Limiter:
    """Beside the machine of the views. ``agreed`` False: the views are a member list (5.11), and only policy ``fair`` is promised."""

    handles = TYPES
    fingerprint = b""

    def __init__(self, host: Host, config: LimitsConfig, views: Views, specs: Specs, *, agreed: bool) -> None:
        self._host, self.config, self.views, self.specs, self.agreed = host, config, views, specs, agreed
        self.counts: Counter[str] = Counter()
        self.sums: PushSum | None = None  # of the present instance
        self.standing = Standing(host, views, config, agreed=agreed)
        self.links = Links(host, config.loss)
        self.quotas = Quotas()
        self.allocator = Allocator(host, views, config, self.standing, self.quotas, specs, self._tell)
        self.trader = Trader(host, views, config, self.standing, self.links, self.quotas, self.allocator, self.counts)
        self.blacklist = Blacklist(
            host, views, config, self.standing, self.links, self.quotas, self.trader.take, self._tell, self.counts
        )  # fmt: skip
        self.central = Central(host, views, config, self.standing, self.counts)
        self.chokes = ChokeWatch(host, views, config, self.standing, self.links, self._tell, self.counts)
        self.lists = MemberLists(host, config, self.standing, self.counts)  # without agreed views
        self.pace = Pace()
        self._awake: set[NodeId] = set()  # members of this instance that are not quiet, and spoke to this one since its last epoch
        self._unanswered: set[NodeId] = set()  # members that have not acknowledged the last gossip
        self.epochs = 0
        self._running = False
        self._listeners: list[Callable[[Event], None]] = []
        self._timer: Timer | None = None
        self._measured_at = host.now
        self._handlers = self._all_handlers()
        standing = self.standing
        standing.on_began, standing.on_panic = self._on_began, self._on_panic
        standing.on_calm, standing.on_lapse = self.allocator.on_calm, self._on_lapse
        standing.on_confirmed = self.allocator.on_confirmed
        specs.told = self._tell
        specs.on_change(self._on_spec)

    # Users.

    def open(self, name: str, outlet: Outlet, demand: Wanted | None = None) -> None:
        """Workers of this agent use this limit from now on. ``demand``: how their wants are looked at; None: as requests."""
        self.standing.look()
        outlet.on_less = self._on_less
        self.allocator.open(name, outlet, demand)
        self.allocator.allot(self.allocator.limits[name])
        self.pace.wake()
        self._arm()

    def close(self, name: str) -> None:
        """Workers of this agent use this limit no more."""
        self.standing.look()
        self.allocator.close(name)
        self.pace.wake()

    def retire(self) -> None:
        """This agent leaves: nothing is wanted here any more (drain)."""
        for limit in list(self.allocator.open_limits):
            self.close(limit.name)

    @property
    def retired(self) -> bool:
        """No worker of this agent may use anything."""
        return all(limit.told <= 0 for limit in self.allocator.limits.values())

    def subscribe(self, listener: Callable[[Event], None]) -> None:
        """Events for users (9)."""
        self._listeners.append(listener)

    def share(self, name: str) -> float:
        """What this member may use now, read from the clock."""
        self.standing.look()
        limit = self.allocator.limits.get(name)
        return 0.0 if limit is None or not limit.is_open else limit.used

    # ``host.Machine``.

    def start(self) -> None:
        self._running = True
        self._measured_at = self._host.now
        self.standing.start()
        self._arm()

    def on_message(self, source: NodeId, message: Message) -> None:
        assert isinstance(message, OfInstance)
        self.standing.look()
        if self.agreed or self.lists.includes(source, message):
            self._handlers[type(message)](source, message)

    def on_away(self, seconds: float) -> None:
        """D16: a lease that ended meanwhile is over before anything is read."""
        self.standing.look()

    def stop(self) -> None:
        self._running = False
        self.trader.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    # What happens to this member.

    def _on_began(self, former: int) -> None:
        """A new instance: everything starts anew (5.6)."""
        inst, size = self.standing.inst, self.standing.size
        assert inst is not None
        self.sums = PushSum(inst, size, self.allocator.values(central=False), mixing=self.config.blends(size))
        self.quotas.begin(self.allocator.fleets())
        self.blacklist.begin(self.sums)
        self.central.begin()
        self.chokes.begin()
        self.lists.begin()
        self._awake.clear()
        self._unanswered.clear()
        self.trader.clear()
        self.allocator.begin(former)
        self.pace.wake()
        self._allocate({})

    def _on_panic(self) -> None:
        self.quotas.cap()
        self.central.forget()
        self.trader.clear()
        self.allocator.on_panic()

    def _on_lapse(self) -> None:
        """Its 1/n of every exact limit, but of those that are divided for fewer members (D3)."""
        for limit in self.allocator.exact_limits():
            self.quotas.know(limit.key, limit.spec.fleet)
        self.quotas.lapse()
        for limit in self.allocator.exact_limits():
            if self.allocator.is_beyond(limit):
                self.quotas.resign(limit.key)
        self.allocator.allot_all()

    def _on_spec(self, name: str, before: Spec | None, spec: Spec) -> None:
        self.standing.look()
        self.allocator.on_spec(name, before, spec)
        if self.standing.lapsed:
            self._on_lapse()  # Also of a limit that is new.
        elif before is not None and spec.is_exact and spec.fleet < before.fleet and spec.by == self._host.me.name:
            self.views.trip(f"limit {name} is divided for fewer members")  # It counts in a new instance only (H267).
        self.pace.wake()
        self._arm()

    def _on_less(self) -> None:
        """Workers are known to use less: what was promised may leave (D22)."""
        self.standing.look()
        self.trader.flush()

    # The epoch.

    @property
    def _is_needed(self) -> bool:
        """A group without limits does not gossip; but what was taken is given on."""
        return len(self.allocator.limits) > 0 or (self.sums is not None and bool(self.sums.p))

    def _arm(self) -> None:
        if self._running and self._timer is None and self._is_needed:
            # Members that were started together shall not speak together.
            self._measured_at = self._host.now
            self._timer = self._host.after(self.config.epoch * self._host.random.uniform(0.5, 1.0), self._on_epoch)

    def _on_epoch(self) -> None:
        """What was missed in a pause is not made up (D16)."""
        self._timer = self._host.after(self.config.epoch, self._on_epoch) if self._is_needed else None
        self.standing.look()
        self.epochs += 1
        now = self._host.now
        elapsed, self._measured_at = now - self._measured_at, now
        self.allocator.sweep()
        self.allocator.measure(elapsed)
        if not self.agreed:
            self.lists.look()
        if self.standing.acts and self.sums is not None:
            told = self._report(self.sums)
            self._gossip(self.sums)
            self.central.on_epoch(self.allocator.values(central=True))
            self._allocate(told)
            self.chokes.on_epoch()
            self.trader.on_epoch()
            self.pace.look(self.allocator.values(central=False), self.allocator.estimates())
        else:
            self.allocator.allot_all()
        self.allocator.look_for_starving()
        if self.pace.turns():
            self._host.emit(WentQuiet() if self.pace.is_quiet else Woke())

    def _report(self, push_sum: PushSum) -> dict[int, Told]:
        """Step 2: what this member wants, and nothing of limits that are gone."""
        values = self.allocator.values(central=False)
        for key in push_sum.rep.keys() - values.keys():
            push_sum.report(key, 0)
        # A demand that falls is one of share "demand": under maxmin members change sides, and what stands would bring them back (H269).
        # And among members that speak all the time, decreases are mixed soon: traffic has some in every epoch (H305).
        whole, quiet = self.allocator.by_key, self.pace.is_quiet
        return {key: push_sum.report(key, value, stands=quiet and key in whole) for key, value in values.items()}

    def _allocate(self, told: dict[int, Told]) -> None:
        """Step 6. The own change moves the own estimate by more than it moves the sum, so the larger of both counts (D8). What is mere
        noise of the own demand is no change to be careful about, and would make every member count too much, all the time (H305)."""
        push_sum = self.sums
        assert push_sum is not None

        def gossip(key: int) -> float:
            known, reported = push_sum.estimate(key), push_sum.rep.get(key, 0) / UNIT
            change = told.get(key)
            if change is None:
                return max(known, reported, 0.0)
            after = change.before + change.delta
            return max(after if abs(change.delta) <= NOISE * reported else max(known, after), reported, 0.0)

        self.allocator.allocate(gossip, self.central.estimate, push_sum.rep)

    # Gossip.

    def _gossip(self, push_sum: PushSum) -> None:
        """Steps 3 to 5."""
        if self._host.late <= self.config.epoch:  # F11
            for peer in self.links.silent():
                self.blacklist.add(peer)
        others = self.standing.peers
        eligible = [peer for peer in others if peer not in self.links.black and peer not in self.lists.others]
        # Where one member adds up every limit there is nothing to gossip about (5.8): weight may rest where it is.
        count = self.pace.peers(self.config.fanout(self.standing.size)) if push_sum.keys else 0
        if eligible:
            given = push_sum.spread(self._choose(eligible, count))
        else:
            given = []
            if count and others and not self.standing.provisional:
                self.blacklist.exchange(self._host.random.choice(others))
        waiting = [peer for peer in eligible if self._is_waiting(push_sum, peer) and peer not in given]
        waiting.sort(key=self.links.sent_at)
        sent = (given + waiting)[:SENDS_MAX]
        for peer in sent:
            self._send(push_sum, peer)
        self.blacklist.on_epoch(SENDS_MAX - len(sent))

    def _choose(self, eligible: list[NodeId], count: int) -> list[NodeId]:
        """Any of them; and where this member is quiet, those that were not when they spoke to it: they give away what they hold in every
        epoch, and would soon hold next to nothing among members that rest (H306)."""
        chosen = self._host.random.sample(eligible, min(count, len(eligible)))
        if self.pace.is_quiet:
            most = self.config.fanout(self.standing.size)
            chosen += [peer for peer in eligible if peer in self._awake and peer not in chosen][: max(0, most - len(chosen))]
        self._awake.clear()
        return chosen

    def _is_waiting(self, push_sum: PushSum, peer: NodeId) -> bool:
        """D6: what a peer has not acknowledged goes to it again in every epoch."""
        ledger = push_sum.ledgers.get(peer)
        if ledger is None or not ledger.is_open:
            return False
        return self._host.now - self.links.sent_at(peer) >= REPEAT_AFTER * self.config.epoch

    def _send(self, push_sum: PushSum, peer: NodeId) -> None:
        batch = push_sum.ledger(peer).message()
        w, p = portions_of(batch)
        self.links.sent(peer)
        self.counts["gossip_sent"] += 1
        if peer in self._unanswered:
            self.counts["gossip_lost"] += 1
        self._unanswered.add(peer)
        self._host.send(peer, Gossip(push_sum.inst, push_sum.size, batch.lb, batch.seq, w, p, self.pace.is_quiet))

    def _enter(self, source: NodeId, inst: ViewId, size: int) -> PushSum | None:
        """The instance that a message is of, if this member takes part in it, and the source too. It may be news (5.6)."""
        standing = self.standing
        if inst != standing.inst:
            if standing.inst is not None and inst < standing.inst:
                self.counts["older"] += 1
                if standing.includes(source):
                    self._host.send(source, GossipAck(inst, 0, standing.inst))
                return None
            standing.hear_of(inst, size, source)
        return self._here(source)

    def _here(self, source: NodeId) -> PushSum | None:
        """This member acts in its instance, and the source is in it, too."""
        standing = self.standing
        if not standing.acts:
            self.counts["in_panic"] += 1
            return None
        standing.hear(source)
        if not standing.includes(source):
            self.counts["stranger"] += 1
            return None
        assert self.sums is not None
        return self.sums

    def _on_gossip(self, source: NodeId, message: Gossip) -> None:
        push_sum = self._enter(source, message.inst, message.size)
        if push_sum is None:
            return
        refusal = push_sum.take(source, batch_of(message.lb, message.seq, message.w, message.p))
        if refusal is not None:
            self.counts[f"gossip_{refusal}"] += 1
        elif not message.is_quiet:
            self._awake.add(source)
        if refusal is None or refusal is Refusal.PAST:
            self._host.send(source, GossipAck(message.inst, push_sum.ledger(source).taken))
        self._arm()

    def _on_gossip_ack(self, source: NodeId, message: GossipAck) -> None:
        standing, push_sum = self.standing, self.sums
        if message.inst != standing.inst or push_sum is None:
            self.counts["late"] += 1
        elif not standing.includes(source):
            self.counts["stranger"] += 1
        elif message.newer is not None:
            self.links.answered(source)
            if self.agreed and message.newer > message.inst:
                self.views.hurry()
        elif push_sum.ledger(source).ack(message.seq):
            self.links.answered(source)
            self.counts["gossip_acked"] += 1
            self._unanswered.discard(source)
        else:
            self.counts["ack_beyond"] += 1

    def _on_reconcile(self, source: NodeId, message: Reconcile) -> None:
        """It says nothing of the size of a newer instance; the view itself comes by the same servers."""
        inst = self.standing.inst
        if self.agreed and inst is not None and message.inst > inst:
            self.counts["newer"] += 1
            self.views.hurry()
        elif inst is not None and self._enter(source, message.inst, self.standing.size) is not None:
            self.blacklist.on_reconcile(source, message)
            self._arm()

    def _on_demand(self, source: NodeId, message: Message) -> None:
        assert isinstance(message, Demand)
        if self._is_present(source, message):
            self.central.on_demand(source, message)

    def _on_sum(self, source: NodeId, message: Message) -> None:
        assert isinstance(message, Sum)
        if self._is_present(source, message):
            self.central.on_sum(source, message)

    def _on_cuts(self, source: NodeId, message: Message) -> None:
        assert isinstance(message, Cuts)
        if self._is_present(source, message):
            self.chokes.on_cuts(source, message)

    def _is_present(self, source: NodeId, message: OfInstance) -> bool:
        if message.inst != self.standing.inst:
            self.counts["late"] += 1
            return False
        return self._here(source) is not None

    def _tell(self, event: Event) -> None:
        self._host.emit(event)
        for listener in tuple(self._listeners):
            listener(event)

    def _all_handlers(self) -> dict[type[Message], Callable[[NodeId, Message], None]]:
        """By the type of the message; the type was checked when it was decoded."""
        found: dict[type[Message], object] = {
            Gossip: self._on_gossip,
            GossipAck: self._on_gossip_ack,
            Probe: self.blacklist.on_probe,
            Reconcile: self._on_reconcile,
            Ask: self.trader.on_ask,
            Give: self.trader.on_give,
            GiveAck: self.trader.on_give_ack,
            Demand: self._on_demand,
            Sum: self._on_sum,
            Cuts: self._on_cuts,
        }
        return found  # type: ignore[return-value]
