"""What both machines of ``fuzz.views`` stand on: a host that is watched, an oracle's complaint, and numbers that are counted.

Everything that the machine sends or tells is looked at while it happens, so a complaint names the step that caused it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial
from random import Random
from typing import Any, ClassVar, NoReturn, Union

import msgspec

from fuzz.shapes import Harvest, Shapes
from holdfast.bounds import AHEAD_MAX, Number, highest_of
from holdfast.drops import Drops
from holdfast.events import Event
from holdfast.features.views.protocol.config import ViewsConfig
from holdfast.features.views.protocol.messages import TYPES
from holdfast.features.views.protocol.views import ViewNode
from holdfast.host import FANOUT_MAX, Address, Host, Message, NodeId
from holdfast.kit.deadline import holder_length, wait_length
from holdfast.kit.parcels import Parcels
from holdfast.kit.slots import Slot
from holdfast.lab.fake_host import FakeHost, FakeTimer

EPSILON = 1e-6  # seconds: sums of floats differ in their last bits
AHEAD_OF_LIES_MAX = 100_000  # what a machine may count beyond a number at the bound in one run: one per change
BOOT = 50  # of the machine under test

_BODIES: Any = Union[TYPES]  # noqa: UP007 - made at run time
_decode = msgspec.msgpack.Decoder(_BODIES).decode
_highest = {kind: read for kind in TYPES if (read := highest_of(kind)) is not None}


class Misbehaved(Exception):
    """The machine broke a rule."""


class Note(Message, frozen=True, tag=249):
    """What the overlay carries here."""

    carried: ClassVar[bool] = True
    serial: Number


class Inbox:
    """The part of a node that parcels need. It refuses to be handed a message twice (views G7)."""

    types: tuple[type[Message], ...] = (Note,)

    def __init__(self) -> None:
        self.drops: Drops = Drops()
        self.digests: dict[type[Message], bytes] = {}
        self.received: dict[tuple[NodeId, int], None] = {}
        self.strict = True  # A server that lies may give one message two ids.

    def hand_on(self, sender: NodeId, fingerprint: bytes, message: Message) -> None:
        assert isinstance(message, Note)
        if (sender, message.serial) in self.received and self.strict:
            raise Misbehaved(f"G7: message {message.serial} of {sender} was handed on twice")
        self.received[sender, message.serial] = None


class WatchedHost(FakeHost):
    """A fake host that shows each call to a run, and counts the peers that one callback reaches (F17)."""

    def __init__(self, me: NodeId, seed: int, run: Run) -> None:
        super().__init__(me.name, me.boot, seed=seed)
        self._run_of = run
        self._reached: dict[str, None] = {}

    def at(self, due: float, callback: Callable[[], None]) -> FakeTimer:
        return super().at(due, partial(self.turn, callback))

    def send(self, to: NodeId | Address, message: Message) -> None:
        self._reached[to.name if isinstance(to, NodeId) else to.host] = None
        if len(self._reached) > FANOUT_MAX:
            self._run_of.fail(f"F17: one callback sends to more than {FANOUT_MAX} peers")
        within_bounds(message, self._run_of)
        self._run_of.on_send(to, message)

    def emit(self, event: Event) -> None:
        self._run_of.on_event(event)

    def turn(self, callback: Callable[[], None]) -> None:
        """One callback of a host, and a look at what it changed."""
        self._reached.clear()
        callback()
        self._run_of.after()


def within_bounds(message: Message, run: Run) -> None:
    """What a machine sends is what its peers accept: every field has the values that its type says."""
    try:
        again = _decode(msgspec.msgpack.encode(message))
    except msgspec.ValidationError as error:
        run.fail(f"F16: it sends what its peers refuse: {error}: {message!r}")
    if again != message:
        run.fail(f"F16: it sends what arrives as something else: {message!r}")
    read = _highest.get(type(message))
    if read is not None and read(message) > run.host.wall() * 1000 + AHEAD_MAX + AHEAD_OF_LIES_MAX:
        run.fail(f"H174: it sends a number that its peers refuse: {message!r}")


class Run:
    """One machine, one environment that follows from a seed, and the rules that are looked at after every step."""

    def __init__(self, seed: int, trace: Callable[[str], None] | None) -> None:
        self.seed, self.random = seed, Random(seed)
        self.counts: Counter[str] = Counter()
        self._trace = trace
        self.inbox = Inbox()
        self.stopped = False  # time went on, and no timer has run since
        self.host: WatchedHost
        self.node: ViewNode

    def set_up(self, me: NodeId, config: ViewsConfig, slots: tuple[Slot, ...], own: int | None) -> None:
        self.config, self.slots, self.hb = config, slots, config.heartbeat
        # The oracle counts with numbers of its own, from views 4 and 6 (D24), not with those of the code.
        self.held = holder_length(6 * self.hb, config.rho)
        self.settle = wait_length((7 + 8 + 6) * self.hb, max(config.rho, 0.01), config.margin)
        self.client_timeout, self.lsa_max_age = 7 * self.hb, 8 * self.hb
        self.host = WatchedHost(me, self.seed, self)
        self.harvest = Harvest()
        self.shapes = Shapes(self.random, self.harvest, self.host.wall)
        host: Host = self.host
        self.node = ViewNode(host, config, slots, own, Parcels(self.inbox, host.wall))
        self.host.turn(self.node.start)

    def fail(self, what: str) -> NoReturn:
        raise Misbehaved(f"at {self.host.now - 1000.0:.3f} s: {what}")

    def note(self, what: str) -> None:
        if self._trace is not None:
            self._trace(f"{self.host.now - 1000.0:9.3f}  {what}")

    @property
    def tracing(self) -> bool:
        return self._trace is not None

    # What happens to the machine.

    def deliver(self, source: NodeId, message: Message) -> None:
        self.counts["delivered"] += 1
        if self.tracing:
            self.note(f"{source} -> {message!r}")
        self.host.turn(partial(self.node.on_message, source, message))

    def pass_time(self, seconds: float) -> None:
        self.wake()
        self.note(f"{seconds:.3f} s pass")
        self.host.pass_time(seconds)
        self.after()

    def pause(self, seconds: float) -> None:
        """It is stopped for so long, and its timers are late."""
        self.note(f"stopped for {seconds:.3f} s, then late timers")
        self.host.clock += seconds
        self.wake()

    def jump(self, seconds: float) -> None:
        """It is stopped for so long, and reads what waits before its late timers run (F10)."""
        self.note(f"stopped for {seconds:.3f} s, then what waits")
        self.host.clock += seconds
        self.stopped = True
        self.host.turn(partial(self.node.on_away, seconds))

    def wake(self) -> None:
        """Timers that are due run late."""
        self.stopped = False
        self.host.pause(0.0)
        self.after()

    # A peer that lies, within the bounds of every field.

    def lie(self, kind: type[Message]) -> Message | None:
        """None: what was drawn is refused where it arrives."""
        try:
            message: Message = msgspec.msgpack.decode(msgspec.msgpack.encode(self.shapes.message(kind)), type=kind)
        except (msgspec.ValidationError, UnicodeEncodeError):
            return None
        read = _highest.get(kind)
        beyond = read is not None and read(message) > self.host.wall() * 1000 + AHEAD_MAX
        return None if beyond else message

    # What a target adds.

    def on_send(self, to: NodeId | Address, message: Message) -> None:
        raise NotImplementedError

    def on_event(self, event: Event) -> None:
        raise NotImplementedError

    def after(self) -> None:
        """After every callback."""
        raise NotImplementedError

    def play(self) -> None:
        """All steps."""
        raise NotImplementedError


class Menu:
    """Actions with weights of their own in each run, so that some runs are calm and others are not."""

    def __init__(self, random: Random, weights: dict[Callable[[], None], float]) -> None:
        self._random, self._actions = random, tuple(weights)
        self._sums: list[float] = []
        total = 0.0
        for weight in weights.values():
            total += weight * random.choice((0.2, 0.6, 1.0, 1.0, 1.6, 3.0))
            self._sums.append(total)

    def play(self, steps: int) -> None:
        for _ in range(steps):
            (action,) = self._random.choices(self._actions, cum_weights=self._sums)
            action()


def slots_of(count: int, *, named: bool) -> tuple[Slot, ...]:
    """``s0`` to ``s6``. Without names a slot is called by its address."""
    addresses = [Address(f"s{number}", 1) for number in range(count)]
    return tuple(Slot(number, address.host if named else str(address), address) for number, address in enumerate(addresses))
