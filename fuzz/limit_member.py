"""One limiter alone against a breaker, peers, workers and a clock that do all that is allowed.

Spec: limits 7, 5.1, 5.5, 5.7, D20, D22, D23. The oracle never adds up a fleet: what this member claims, and what it left behind where
others may still use it, must fit into its own 1/n at every step. It counts with numbers of its own and reads what the limiter sends.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from functools import partial
from random import Random
from typing import Any, NoReturn, Union

import msgspec

from fuzz.limit_breaker import LEASE, SETTLE, Breaker
from fuzz.limit_host import KEY, NAME, Peer, Process, TurnHost
from fuzz.view_host import EPSILON, Menu, Misbehaved
from holdfast.events import Event
from holdfast.features.limits.protocol.config import QUOTA, WEIGHT, LimitsConfig, key_of
from holdfast.features.limits.protocol.facts import InstanceBegan, InstanceConfirmed, Lapsed, QuotaTaken, Raised
from holdfast.features.limits.protocol.limiter import Limiter
from holdfast.features.limits.protocol.messages import TYPES, Ask, Give, GiveAck, Gossip, GossipAck, Probe, Reconcile
from holdfast.features.limits.protocol.outlet import Allotment
from holdfast.features.limits.protocol.pushsum import batch_of, portions_of
from holdfast.features.limits.protocol.specs import Specs, make
from holdfast.features.limits.protocol.workers import Tell, Workers
from holdfast.host import Carried, Message, NodeId, View, ViewId, ViewState
from holdfast.kit.broadcast import Broadcast
from holdfast.kit.exchange import Exchange
from holdfast.kit.ledger import Batch
from holdfast.lab.listed_members import ListedMembers

KEYS = (KEY, key_of(NAME, "n"), key_of(NAME, "u"), 77)  # of quota and portions; the last one is of a limit that only others know
POOL_MAX = 80  # messages under way to the limiter; the oldest are lost
WORKERS = 3
ROUNDING = 1e-6  # relative: rates are floats
_BODIES: Any = Union[TYPES]  # noqa: UP007 - made at run time
_decode = msgspec.msgpack.Decoder(_BODIES).decode


class MemberRun:
    """One limiter, one history."""

    policy = "exact"

    def __init__(self, seed: int, trace: Callable[[str], None] | None = None) -> None:
        self.seed, self.random = seed, Random(seed)
        random = self.random
        self.counts: Counter[str] = Counter()
        self._trace = trace
        me = NodeId("me", 50)
        self.others = tuple(NodeId(f"p{number}", random.randint(1, 3)) for number in range(random.randint(1, 6)))
        self.host = TurnHost(me, seed, self)
        self.fleet = len(self.others) + 1 + random.choice((0, 0, 2))
        self.rate = 600.0
        self.pool: list[tuple[NodeId, Message]] = []
        self.peers: dict[tuple[ViewId, NodeId], Peer] = defaultdict(Peer)
        self.taken: Counter[ViewId] = Counter()  # quota, as the limiter says
        self.inst: ViewId | None = None
        self.provisional = False
        self.began_at = self.host.now
        self.raised_in: dict[ViewId, None] = {}
        self.lapsed_from: dict[ViewId, None] = {}
        self.lapsed = False
        # What may be in use elsewhere, and since when: as this member counts, and as its workers may still count. A former life left all.
        self.left: list[tuple[float, int, int]] = [(self.host.now, QUOTA, QUOTA)]
        self.used = 0.0  # L, at the last look
        self.processes: dict[int, Process] = {}
        self.number = 0
        self.breaker = Breaker(random, self.host, self.others, self._on_carried)
        members = ListedMembers(self.host)
        specs = Specs(self.host, Exchange(self.host, Broadcast(self.host, members)))
        specs.set(NAME, make(self.rate, 50.0, policy=self.policy, share=random.choice(("maxmin", "demand")), fleet=self.fleet))
        config = LimitsConfig(epoch=random.choice((0.1, 0.5)))
        self.epoch = config.epoch
        self.limiter = Limiter(self.host, config, self.breaker, specs, agreed=True)
        self.outlet = Workers(lambda: self.host.now, self._on_tell)
        self.started = False
        self.host.turn(self._start)

    def _start(self) -> None:
        self.limiter.start()
        self.limiter.open(NAME, self.outlet)
        self.started = True

    def play(self) -> None:
        self._menu().play(self.random.randint(60, 250))

    def _menu(self) -> Menu:
        return Menu(self.random, {
            self._calm: 9, self._pass: 14, self._form: 7, self._deliver: 7, self._extend: 12, self._propagate: 3, self._change: 2,
            self._move: 2, self._trip: 0.7, self._silence: 2, self._pause: 1.5, self._gossip: 14, self._arrive: 26, self._ask: 8,
            self._give: 10, self._say_newer: 1, self._attach: 2, self._report: 12, self._read: 12, self._hang: 1.5, self._die: 1,
            self._answer: 6,
        })  # fmt: skip

    # The breaker and the clock.

    def _calm(self) -> None:
        """All goes well for a while: the lease is extended, and processes read what they are told."""
        for _ in range(self.random.choice((2, 6, 12, 30))):
            self._turn(partial(self.breaker.extend, LEASE))
            self._read()
            self._report()
            if self.random.random() < 0.5:
                self._arrive()
            self._pass_time(0.25)

    def _form(self) -> None:
        view = self.breaker.form()
        if self.random.random() < 0.6:
            self._turn(partial(self.breaker.deliver, view))

    def _deliver(self) -> None:
        """Any view that was formed, as far as it may be delivered."""
        if self.breaker.formed:
            self._turn(partial(self.breaker.deliver, self.random.choice(list(self.breaker.formed.values()))))

    def _extend(self) -> None:
        self._turn(partial(self.breaker.extend, LEASE * self.random.random()))

    def _propagate(self) -> None:
        """A peer is quicker than the server (5.6). The server delivers late, or never."""
        if self.random.random() < 0.5:
            self._move()
        view = self.breaker.form()
        others = [member.id for member in view.members if member.id != self.host.me]
        if not others:
            return
        for _ in range(self.random.randint(1, 3)):
            self._turn(partial(self.limiter.on_message, *self._gossip_of(view, self.random.choice(others))))
            self._pass_time(self.random.choice((0.1, 0.5, 2.0, SETTLE / 2, SETTLE)) * self.random.random())
        if self.random.random() < 0.6:
            self._turn(partial(self.breaker.deliver, view))

    def _change(self) -> None:
        self._turn(self.breaker.change)

    def _move(self) -> None:
        self._turn(self.breaker.move)

    def _trip(self) -> None:
        self._turn(partial(self.breaker.trip, "the fuzzer says so"))

    def _pass(self) -> None:
        self._pass_time(self.random.choice((0.001, 0.05, 0.25, 0.5, 0.5, 1.0)))

    def _silence(self) -> None:
        """No lease is extended, for about as long as ``settle``."""
        self._pass_time(self.random.choice((LEASE, SETTLE / 2, SETTLE, SETTLE, 2 * SETTLE)) * self.random.uniform(0.8, 1.1))

    def _pause(self) -> None:
        """It is stopped, and its timers are late; or it reads what waits before them (F10)."""
        seconds = self.random.choice((0.5, 1.5, 6.0, 20.0)) * self.random.random()
        self.note(f"stopped for {seconds:.3f} s")
        self.host.clock += seconds
        if self.random.random() < 0.5:
            self._turn(partial(self.limiter.on_away, seconds))
            for _ in range(self.random.randint(0, 5)):
                self._arrive()
        self.host.pause(0.0)
        self.after()

    def _pass_time(self, seconds: float) -> None:
        self.note(f"{seconds:.3f} s pass")
        self.host.pass_time(seconds)
        self._turn(self.breaker.notice)

    def _answer(self) -> None:
        self._turn(partial(self.breaker.answer, self.random.choice((Carried.DELIVERED, Carried.DELIVERED, Carried.TRIPPED, Carried.BUSY))))

    # Peers.

    def _pick(self) -> tuple[View, NodeId] | None:
        """An instance and a member of it: mostly the present one."""
        random, formed = self.random, self.breaker.formed
        if not formed:
            return None
        present = formed.get(self.inst) if self.inst is not None else None
        view = present if present is not None and random.random() < 0.75 else random.choice(list(formed.values()))
        others = [member.id for member in view.members if member.id != self.host.me]
        return (view, random.choice(others)) if others else None

    def _gossip(self) -> None:
        picked = self._pick()
        if picked is not None:
            self._put(*self._gossip_of(*picked))

    def _gossip_of(self, view: View, source: NodeId) -> tuple[NodeId, Gossip]:
        ledger = self.peers[view.id, source].sums
        if self.random.random() < 0.7:
            ledger.give({-1: self.random.randint(0, WEIGHT), **{key: self.random.randint(0, 10**9) for key in KEYS}})
        w, p = portions_of(batch := ledger.message())
        return source, Gossip(view.id, view.size, batch.lb, batch.seq, w, p)

    def _ask(self) -> None:
        picked = self._pick()
        if picked is not None:
            view, source = picked
            self._put(source, Ask(view.id, KEY, self.random.choice((1, QUOTA // 10, QUOTA, 100 * QUOTA))))

    def _give(self) -> None:
        picked = self._pick()
        if picked is None:
            return
        view, source = picked
        peer = self.peers[view.id, source]
        if self.random.random() < 0.6:
            amount = self.random.randint(0, self.random.choice((QUOTA // 20, QUOTA)))
            if peer.quota.give({KEY: amount}):
                peer.gave += amount
        batch = peer.quota.message()
        self._put(source, Give(view.id, batch.lb, batch.seq, dict(batch.amounts)))

    def _say_newer(self) -> None:
        picked = self._pick()
        if picked is not None and self.inst is not None:
            self._put(picked[1], GossipAck(self.inst, 0, picked[0].id))

    def _arrive(self) -> None:
        """Any message that is under way, mostly a new one, and perhaps it will come again."""
        if self.pool:
            newest = self.random.random() < 0.6
            at = max(0, len(self.pool) - 1 - int(self.random.expovariate(0.5))) if newest else self.random.randrange(len(self.pool))
            source, message = self.pool[at]
            if self.random.random() < 0.6:
                del self.pool[at]
            self.note(f"{source} -> {message!r}")
            self.counts["delivered"] += 1
            self._turn(partial(self.limiter.on_message, source, message))

    def _put(self, source: NodeId, message: Message) -> None:
        self.pool.append((source, message))
        if len(self.pool) > POOL_MAX:
            del self.pool[0]

    # Workers.

    def _attach(self) -> None:
        if len(self.processes) < WORKERS:
            self.number += 1
            self.processes[self.number] = Process()
            self._turn(partial(self.outlet.attach, self.number))

    def _any_process(self) -> int | None:
        return self.random.choice(list(self.processes)) if self.processes else None

    def _report(self) -> None:
        number = self._any_process()
        if number is None or self.processes[number].hangs:
            return
        process, draw = self.processes[number], self.random
        serial = 0 if process.read is None else process.read.serial
        arrived, waiting = draw.choice((0.0, 5.0, 100.0, 1000.0)), draw.choice((0.0, 0.0, 50.0, 5000.0))
        self._turn(partial(self.outlet.report, number, serial, arrived, waiting, draw.choice((None, None, 0.0, 100.0, 900.0))))

    def _read(self) -> None:
        for process in self.processes.values():
            if process.told and not process.hangs and self.random.random() < 0.7:
                process.read = process.told.pop(0)
        self.after()

    def _hang(self) -> None:
        number = self._any_process()
        if number is not None:
            self.processes[number].hangs = not self.processes[number].hangs

    def _die(self) -> None:
        """The kernel says so."""
        number = self._any_process()
        if number is not None:
            del self.processes[number]
            self._turn(partial(self.outlet.detach, number))

    def _on_tell(self, number: int, tell: Tell) -> None:
        self.processes[number].told.append(tell)
        if tell.until > self.breaker.leased_until + EPSILON and tell.rate > self.rate / self.fleet * (1 + ROUNDING):
            self.fail(f"5.1: a worker may use {tell.rate} until {tell.until}; the lease ends at {self.breaker.leased_until}")

    # What the limiter does.

    def on_send(self, to: NodeId, message: Message) -> None:
        if self._trace is not None:
            self.note(f"-> {to}: {message!r}")
        if _decode(msgspec.msgpack.encode(message)) != message:
            self.fail(f"F16: it sends what arrives as something else: {message!r}")
        inst: ViewId = message.inst  # type: ignore[attr-defined]  # All of TYPES have it.
        is_refusal = isinstance(message, GossipAck) and message.newer is not None
        if inst in self.lapsed_from and not is_refusal:
            self.fail(f"D20: it lapsed from {inst}, and sends {message!r}")
        if not isinstance(message, GossipAck) and not self._leased:
            self.fail(f"5.7: it has no lease, and sends {message!r}")
        if isinstance(message, Give | Ask) and self.provisional:
            self.fail(f"5.5: it is provisional, and sends {message!r}")
        self._react(to, inst, message)

    def _react(self, to: NodeId, inst: ViewId, message: Message) -> None:
        """What a correct peer answers; whether it arrives is another question."""
        peer, random = self.peers[inst, to], self.random
        heard = random.random() < 0.7
        if isinstance(message, Give):
            peer.see(Batch(message.lb, message.seq, message.q))
            self.counts["given"] += 1
            if heard:
                self._put(to, GiveAck(inst, random.choice((peer.seen.taken, peer.seen.taken, message.seq))))
        elif isinstance(message, GiveAck):
            peer.quota.ack(message.seq)
        elif isinstance(message, Gossip) and heard:
            peer.sums.take(batch_of(message.lb, message.seq, message.w, message.p))
            self._put(to, GossipAck(inst, peer.sums.taken))
        elif isinstance(message, GossipAck) and heard:
            peer.sums.ack(message.seq)
        elif isinstance(message, Probe) and message.step < 3 and heard:
            self._put(to, Probe(inst, message.step + 1, message.nonce))

    def _on_carried(self, to: NodeId, message: Message) -> None:
        if not isinstance(message, Reconcile):
            return
        peer = self.peers[message.inst, to]
        if message.inst in self.lapsed_from:
            self.fail(f"D20: it lapsed from {message.inst}, and sends {message!r}")
        peer.see(Batch(message.qlb, message.qseq, message.q))
        if self.random.random() < 0.5:
            return
        peer.sums.take(batch_of(message.lb, message.seq, message.w, message.p))
        peer.sums.ack(message.ack)
        peer.quota.ack(message.qack)
        self.counts["reconciled"] += 1
        if message.step < 3:
            w, p = portions_of(batch := peer.sums.message())
            quota = peer.quota.message()
            step = max(2, message.step + 1)
            answer = Reconcile(
                message.inst, step, batch.lb, batch.seq, w, p, peer.sums.taken, quota.lb, quota.seq, dict(quota.amounts), peer.seen.taken
            )
            self._put(to, answer)

    def on_event(self, event: Event) -> None:
        if self._trace is not None:
            self.note(f"* {event!r}")
        if isinstance(event, InstanceBegan):
            self._abandon()
            self.inst, self.provisional, self.lapsed = event.inst, event.provisional, False
            self.began_at = self.host.now
            self.counts["provisional"] += event.provisional
        elif isinstance(event, InstanceConfirmed):
            self.provisional = False
        elif isinstance(event, Lapsed):
            self._on_lapsed()
        elif isinstance(event, Raised):
            self._on_raised()
        elif isinstance(event, QuotaTaken):
            self._on_taken(event)

    def _abandon(self) -> None:
        """What it gave in this instance may be in use there until all leases on it have ended. What it holds above 1/n is gone."""
        if self.inst is not None:
            held, moved = self._held(), self._moved()
            self.left.append((self.host.now, moved + held - min(held, QUOTA), moved))

    def _on_lapsed(self) -> None:
        now, left_at = self.host.now, self.breaker.left_at
        if left_at is None or now < left_at + SETTLE - EPSILON:
            self.fail(f"D23: it lapses, and left its attachment at {left_at}")
        if now < self.began_at + SETTLE - EPSILON:
            self.fail(f"5.5: it lapses {now - self.began_at:.3f} s after its instance began")
        if self._leased:
            self.fail("5.5: it lapses with a lease")
        self.counts["lapsed"] += 1
        self.lapsed = True
        if self.inst is not None:
            self.lapsed_from[self.inst] = None

    def _on_raised(self) -> None:
        assert self.inst is not None
        self.counts["raised"] += 1
        if self.inst in self.raised_in:
            self.fail("D20: a second raise in one instance")
        self.raised_in[self.inst] = None
        if self.lapsed:
            self.fail("D20: a raise after a lapse")
        if self.breaker.state is not ViewState.STABLE or self.provisional or self.host.now < self.began_at + SETTLE - EPSILON:
            self.fail(f"5.5: it is raised {self.host.now - self.began_at:.3f} s after its instance began, {self.breaker.state.name}")

    def _on_taken(self, event: QuotaTaken) -> None:
        assert self.inst is not None
        if event.key != KEY:
            return
        if self.provisional or self.lapsed:
            self.fail("5.5: a provisional or lapsed member takes quota")
        self.taken[self.inst] += event.amount
        self.counts["taken"] += 1
        of_peers = sum(peer.gave for (inst, _), peer in self.peers.items() if inst == self.inst)
        if self.taken[self.inst] > of_peers:
            self.fail(f"RL3: {self.taken[self.inst]} of quota is taken, and {of_peers} was given")

    # The rules.

    @property
    def _leased(self) -> bool:
        return self.host.now < self.breaker.leased_until

    def _moved(self) -> int:
        """Quota that ever left in this instance, less what came."""
        if self.inst is None or self.lapsed:
            return 0
        return sum(peer.got for (inst, _), peer in self.peers.items() if inst == self.inst) - self.taken[self.inst]

    def _held(self) -> int:
        """What it has, and what it promised and has not sent."""
        holding, promises = self.limiter.quotas.holdings.get(KEY), self.limiter.quotas.promises
        return (0 if holding is None else holding.q) + sum(promise.amount for promise in promises if promise.key == KEY)

    def after(self) -> None:
        """After every callback."""
        if not self.started:
            return
        now = self.host.now
        self.left = [entry for entry in self.left if now < entry[0] + SETTLE]
        limit = self.limiter.allocator.limits[NAME]
        enforced = limit.allotted.usable(now)
        usage = sum(process.usable(now) for process in self.processes.values())
        if usage > self.outlet.told * (1 + ROUNDING) + ROUNDING:
            self.fail(f"D22: workers may use {usage}, and their agent counts {self.outlet.told}")
        single = self.rate / self.fleet
        if not self._leased and enforced > single * (1 + ROUNDING):
            self.fail(f"5.7: it has no lease, and may use {enforced / single:.6f} parts")
        self._check(now, enforced, usage)
        self.used = self._counted(limit.allotted, enforced)

    def _counted(self, allotment: Allotment, enforced: float) -> float:
        """What the next look is compared with."""
        del allotment
        return enforced

    def _check(self, now: float, enforced: float, usage: float) -> None:
        """RL4 per member: what it claims, and what it left behind less than ``settle`` ago, is its own part at most."""
        moved = self._moved()
        claim = self._held() + moved
        left = sum(left for _, left, _ in self.left)
        if claim + left > QUOTA:
            self.fail(f"RL4: it claims {claim / QUOTA:.6f} of its part, and left {left / QUOTA:.6f} behind")
        in_use = max(enforced, usage) / self.rate * self.fleet * QUOTA
        net = moved + sum(net for _, _, net in self.left)
        if in_use + net > QUOTA * (1 + ROUNDING):
            self.fail(f"RL4: it may use {in_use / QUOTA:.6f} parts, and {net / QUOTA:.6f} of its part are elsewhere")

    def _turn(self, action: Callable[[], object]) -> None:
        self.host.turn(lambda: (action(), None)[1])

    def note(self, what: str) -> None:
        if self._trace is not None:
            self._trace(f"{self.host.now - 1000.0:9.3f}  {what}")

    def fail(self, what: str) -> NoReturn:
        raise Misbehaved(f"at {self.host.now - 1000.0:.3f} s: {what}")
