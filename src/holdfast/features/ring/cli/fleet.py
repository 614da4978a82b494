"""What ``lab ring`` does after its flags were read: members of one ring, each with its own sockets, until told to stop.

Everything they say is for an observer outside: events, who owns which key until when, and the member list as a
digest, all on the clock the ring itself counts with. That clock is the same for all processes of a machine, so lines of several
processes can be put in order.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import Any, NamedTuple

from msgspec.structs import replace

from holdfast.cli.exits import CannotServe
from holdfast.cli.lab.sockets import Lines, check_loopback, parsed_name, resolved
from holdfast.disk.state_directory import State
from holdfast.errors import AddressUnusable, ConfigError, shown
from holdfast.events import ConfigMismatch, Event
from holdfast.features.ring.protocol.config import RingConfig, adopt
from holdfast.features.ring.protocol.facts import GroupProposed, JoinStarted, NeighbourhoodChanged, PhaseReached
from holdfast.features.ring.protocol.ids import RingId, hash_of
from holdfast.features.ring.protocol.ring import RingNode
from holdfast.features.ring.protocol.standalone import standalone
from holdfast.host import SEEDS_MAX, Address, Message, NodeId
from holdfast.net import clock
from holdfast.net.host import NetHost
from holdfast.net.resolve import Endpoint, parse
from holdfast.wire.seal import Sealer

MEMBERS_MAX = 256  # of one process; one core carries about a hundred at T_l = 1 s
LOOKS = 8  # per T_l: how often the watch looks at its member
LEAVING = 4  # in T_l: what was published ends after half of one, then three goodbyes are said
UNTOLD = (GroupProposed, JoinStarted, NeighbourhoodChanged, PhaseReached)  # many, and of use only beside the messages
ORDERS = ("crash", "start", "leave")  # each with the name of a member
ORDER_BYTES = 65536


class Plan(NamedTuple):
    """The members of one process, as the flags describe them."""

    members: Mapping[str, Endpoint]
    advertise: str
    seeds: tuple[Endpoint, ...]
    found: str
    config: RingConfig
    adopt: bool
    keys: tuple[str, ...]
    orders: bool
    idle: bool
    sealer: Sealer
    insecure: bool
    state_dir: Path | None


def parsed_members(text: str, *, found: str, advertise: str) -> dict[str, Endpoint]:
    members: dict[str, Endpoint] = {}
    for part in text.split(","):
        name, equals, address = part.strip().partition("=")
        if not equals or name in members:
            why = "is listed twice" if equals else "has no address"
            raise ConfigError(f"--members: {shown(name)} {why}; accepted is a=HOST:PORT,b=HOST:PORT")
        members[parsed_name(name)] = parse(address, listen=True)
    if len(members) > MEMBERS_MAX:
        raise ConfigError(f"--members: {len(members)} of them; accepted are up to {MEMBERS_MAX} in one process")
    if found and found not in members:
        raise ConfigError(f"--found {found}: does not run here; accepted are {', '.join(members)}")
    if advertise and len(members) > 1:
        raise ConfigError(f"--advertise with {len(members)} members: accepted with one, because each needs an address of its own")
    return members


def parsed_seeds(text: str) -> tuple[Endpoint, ...]:
    seeds = tuple(parse(part) for part in text.split(",") if part.strip())
    if len(seeds) > SEEDS_MAX:
        raise ConfigError(f"--seeds: {len(seeds)} of them; accepted are up to {SEEDS_MAX}")
    return seeds


async def serve(plan: Plan) -> None:
    """Run until SIGTERM or SIGINT, or until there are no more orders."""
    binds = {name: await resolved(endpoint, f"--members {name}") for name, endpoint in plan.members.items()}
    seeds = tuple([await resolved(endpoint, "--seeds") for endpoint in plan.seeds])
    advertise = await resolved(parse(plan.advertise), "--advertise") if plan.advertise else None
    if plan.insecure:
        check_loopback([*binds.values(), *seeds])
    stop = Stop()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    config = replace(plan.config, seeds=seeds)
    residents = {name: Resident(name, bind, plan, config, stop, advertise) for name, bind in binds.items()}
    if plan.orders:
        Thread(target=_read_orders, args=(loop, Orders(residents, stop)), daemon=True).start()
    try:
        for resident in residents.values():
            await resident.wait() if plan.idle else await resident.start()
        await stop.wait()
        await asyncio.gather(*(resident.leave() for resident in residents.values()))
    finally:
        for resident in residents.values():
            await resident.end()
    if stop.error is not None:
        raise stop.error


class Stop(asyncio.Event):
    """Set when it is over; ``error`` says what went wrong, if something did."""

    error: BaseException | None = None

    def after(self, work: asyncio.Future[None]) -> None:
        """As a callback of something that is not waited for: its failure ends everything."""
        if not work.cancelled() and work.exception() is not None:
            self.error = self.error or work.exception()
            self.set()


class MeasuredHost(NetHost):
    """Remembers how late its timers ran at worst: what this process, or its machine, added to every bound."""

    worst = 0.0
    _late = 0.0

    @property
    def late(self) -> float:
        return self._late

    @late.setter
    def late(self, seconds: float) -> None:
        self._late = seconds
        self.worst = max(self.worst, seconds)


class Watch:
    """Looks at one member a few times per T_l, in the member's own turns, and says what has changed."""

    handles: tuple[type[Message], ...] = ()
    fingerprint = b""

    def __init__(self, host: NetHost, ring: RingNode, keys: tuple[str, ...], say: Callable[..., None]) -> None:
        self._host, self._ring, self._keys, self._say = host, ring, keys, say
        self._owned_until = dict.fromkeys(keys, host.now)
        self._view: tuple[object, ...] = ()

    def start(self) -> None:
        self._on_look()

    def on_message(self, source: NodeId, message: Message) -> None:
        """Nothing is sent to it."""

    def on_away(self, seconds: float) -> None:
        """The member itself is told."""

    def stop(self) -> None:
        """Its timer ends with the host."""

    def _on_look(self) -> None:
        ring, now = self._ring, self._host.now
        self._host.after(ring.config.lease / LOOKS, self._on_look)
        for key, until in self._owned_until.items():
            # Told anew in time, so that an owner that stays one has no gap.
            if until - now < ring.config.publish_length / 2 and (owned := ring.owns(key)) is not None:
                self._owned_until[key] = owned.until
                self._say("Owned", key=key, token=owned.token, since=now, until=owned.until)
        view = (ring.status, ring.id, ring.version)
        if view != self._view:
            self._view = view
            self._say("View", status=ring.status.name, ring=ring.ring, size=len(ring.list), digest=f"{hash_of(ring.list.ids):016x}")


class RingLines(Lines):
    """The ring's identities are texts as well."""

    texts = (NodeId, RingId)


class Resident:
    """One member of this process, through all its lives here."""

    def __init__(self, name: str, bind: Address, plan: Plan, config: RingConfig, stop: Stop, advertise: Address | None) -> None:
        self.name = name
        self._bind, self._advertise = bind, advertise
        self._plan, self._config, self._stop = plan, config, stop
        self._boot = 0
        self._state: State | None = None
        self._host: MeasuredHost | None = None
        self._ring: RingNode | None = None
        self._out = RingLines(NodeId(name, 0), stop, now=clock.now)
        self._adopting: asyncio.Task[None] | None = None

    async def wait(self) -> None:
        """Nothing is touched, and the next order is carried out at once."""
        self._say("Waiting")

    async def start(self) -> None:
        """Begin a life."""
        if self._host is not None:
            return
        first, storage = self._boot == 0, None
        self._boot = max(self._boot + 1, int(time.time() * 1000))
        if self._plan.state_dir is not None:
            self._state = State.open(self._plan.state_dir / self.name)
            self._boot, storage = self._state.boot, self._state.journal
        me = NodeId(self.name, self._boot)
        self._out = RingLines(me, self._stop, now=clock.now)
        try:
            host = await MeasuredHost.open(me, self._bind, self._plan.sealer, advertise=self._advertise, storage=storage)
        except AddressUnusable as error:
            raise CannotServe(f"--members {self.name}: {error}") from None
        assert isinstance(host, MeasuredHost)
        self._bind, self._host = host.bound, host  # The next life listens where peers know it.
        # A ring is founded once: a later life joins the one that is there.
        config = replace(self._config, found=first and self.name == self._plan.found)
        machines = standalone(host, config, sole_life=self._state is not None)
        self._ring = ring = machines.ring
        host.on_event = self._on_event
        host.failed.add_done_callback(self._stop.after)  # A bug in a handler is shown as one: with its traceback.
        for machine in machines:
            host.node.add(machine)
        host.node.add(Watch(host, ring, self._plan.keys, self._say))
        self._say("Started", address=str(host.address), bound=str(host.bound), seed=host.seed, lease=config.lease, k=config.k)
        host.start()

    async def crash(self) -> None:
        """Without a word: its sockets are closed, and that is all its peers see."""
        if self._host is not None:
            self._say("Crashed")
            self._host.streams.abort()
        await self.end()

    async def leave(self) -> None:
        """In good order. Nothing is said while a key is still owned by what was published (F14)."""
        host, ring = self._host, self._ring
        if host is None or ring is None:
            return
        host.post(ring.leave)
        for _ in range(LEAVING * LOOKS):
            if ring.left:
                break
            await asyncio.sleep(ring.config.lease / LOOKS)
        await self.end()

    async def end(self) -> None:
        host, self._host, self._ring = self._host, None, None
        if host is not None:
            await host.close()
            self._say("Stopped", drops={why.value: count for why, count in sorted(host.drops.items())})
        state, self._state = self._state, None
        if state is not None:
            state.close()

    def mark(self) -> None:
        """How late its timers ran at worst since the last mark, and how many datagrams it has sent in this life."""
        if self._host is not None:
            self._say("Marked", worst=round(self._host.worst, 6), sent=self._host.datagrams.sent)
            self._host.worst = 0.0

    def refuse(self, order: str, why: str) -> None:
        self._say("Refused", order=order, why=why)

    def _say(self, event: str, **fields: Any) -> None:
        self._out.line(event, **self._life(), **fields)

    def _life(self) -> dict[str, Any]:
        return {} if self._ring is None else {"as": str(self._ring.id)}

    def _on_event(self, event: Event) -> None:
        if not isinstance(event, UNTOLD):
            self._out.event(event, **self._life())
        if isinstance(event, ConfigMismatch) and self._plan.adopt and self._ring is not None and not self._ring.is_member:
            self._adopt(event)

    def _adopt(self, event: ConfigMismatch) -> None:
        """The ring counts otherwise, and we are not in it: count as it does, in another life."""
        try:
            self._config = adopt(self._config, event)
        except ConfigError as error:
            self.refuse("adopt", str(error))
            return
        if self._adopting is None or self._adopting.done():
            self._adopting = asyncio.get_running_loop().create_task(self._begin_again())
            self._adopting.add_done_callback(self._stop.after)

    async def _begin_again(self) -> None:
        await self.end()
        await self.start()


class Orders:
    """What the process that started this one may ask of its members, one order per line."""

    def __init__(self, residents: Mapping[str, Resident], stop: Stop) -> None:
        self._residents, self._stop = residents, stop
        self._running: set[asyncio.Task[None]] = set()
        self._turns = {name: asyncio.Lock() for name in residents}

    def take(self, line: str) -> None:
        words = line.split()
        resident = self._residents.get(words[1]) if len(words) == 2 else None
        if words == ["mark"]:
            for each in self._residents.values():
                each.mark()
        elif resident is not None and words[0] in ORDERS:
            self._carry_out(resident, words[0])
        else:
            accepted = "accepted are mark, crash NAME, start NAME, leave NAME"
            next(iter(self._residents.values())).refuse(line, accepted)

    def end(self) -> None:
        self._stop.set()

    def _carry_out(self, resident: Resident, order: str) -> None:
        task = asyncio.get_running_loop().create_task(self._in_turn(resident, order))
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        task.add_done_callback(self._stop.after)

    async def _in_turn(self, resident: Resident, order: str) -> None:
        """One after the other: who is to start again must have let go of its port first."""
        async with self._turns[resident.name]:
            await {"crash": resident.crash, "start": resident.start, "leave": resident.leave}[order]()


def _read_orders(loop: asyncio.AbstractEventLoop, orders: Orders) -> None:
    """In a thread of its own, unbuffered: nothing of it is in the way when the interpreter ends."""
    rest = b""
    with suppress(RuntimeError):  # The loop has ended, and with it everything that could be ordered.
        while data := os.read(sys.stdin.fileno(), ORDER_BYTES):
            *lines, rest = (rest + data).split(b"\n")
            for line in filter(None, map(bytes.strip, lines)):
                loop.call_soon_threadsafe(orders.take, line.decode("utf-8", "replace"))
        loop.call_soon_threadsafe(orders.end)
