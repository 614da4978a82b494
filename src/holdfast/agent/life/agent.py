"""One life of one agent: the host, its machines, what clients ask of them.  Spec: foundation 4 (Grants), F5, F6, F12, F14; docs/agent.md.

``await Agent.open(home, log)`` takes the port, ``await agent.start()`` begins to listen and to knock, ``agent.over`` says how it ended,
``await agent.close()`` lets go of everything but its home. All else is synchronous and belongs into the host's turns: code that comes from
outside uses ``host.post``.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any

from holdfast.agent.grants.grants import Grants
from holdfast.agent.life.build import VERSION_ROW, Machines
from holdfast.agent.life.home import Home
from holdfast.agent.life.knock import JoinWatch
from holdfast.agent.life.seeds import Seeds, resolved
from holdfast.agent.life.version import VERSION
from holdfast.agent.membership import owners_in
from holdfast.agent.observe.logs import Log, printable
from holdfast.agent.observe.narrator import LOOK_PERIOD, Narrator
from holdfast.agent.observe.sightings import Noticed, Sightings
from holdfast.agent.socket.events import EventHub
from holdfast.agent.socket.view import Viewer
from holdfast.config import check_tags
from holdfast.errors import AddressUnusable, ConfigError, HoldfastError, JoinFailed, NameConflict, StorageError, shown
from holdfast.events import Event, StorageFailed
from holdfast.host import TAG_ROW, Address, NodeId
from holdfast.local.calls import GroupView, Owned
from holdfast.net import clock
from holdfast.net.host import NetHost
from holdfast.net.resolve import parse
from holdfast.wire.keys import Keyring
from holdfast.wire.seal import Sealed, Sealer

if TYPE_CHECKING:
    from holdfast.agent.observe.seat_watch import SeatWatch
    from holdfast.kit.seats import Seats

LEFT_POLL = 0.02  # seconds between two looks at whether the last Leave was sent
DISK_RETRY = 5.0  # seconds until a disk that refused a note is asked again

Ending = Enum("Ending", ["LEFT", "AGAIN"])  # AGAIN: this life was a mistake (F5), begin another one


def _nothing() -> None:
    """There is nothing to tell."""


class Agent:
    """What the local socket, HTTP and the process know of a node."""

    def __init__(self, home: Home, host: NetHost, sealer: Sealer, log: Log) -> None:
        loop = asyncio.get_running_loop()
        self.home, self.host, self.log = home, host, log
        self.config = home.config
        self.me = host.me
        self.started_at = host.now
        self.socket_path = home.socket_path
        self.over: asyncio.Future[Ending] = loop.create_future()
        self.grants = Grants(host)
        self.grants.notice = log.warning
        self._sealer = sealer
        machines = Machines(host, home, self.grants, self)
        self.side, self.membership, self.broadcast = machines.side, machines.membership, machines.broadcast
        self.slots, self.seats, self.seats_missing = machines.slots, machines.seats, machines.seats_missing
        self.features = machines.features  # by name; the membership is the first
        features = tuple(self.features.values())
        self.pinger = next((each.pinger for each in features if each.pinger is not None), None)
        self._gates = tuple(each.gate for each in features if each.gate is not None)
        self.seat_watch: SeatWatch | None = None
        if self.seats is not None:
            self.seat_watch = self._watch_seats(self.seats)
        lines = {name: each.view_lines for name, each in self.features.items() if each.view_lines is not None}
        self._viewer = Viewer(host, self.membership, lines)
        self.events = EventHub(lambda: self.version, clock.wall, loop.call_soon, changes=self._viewer.changes.take)
        self.emitted = 0  # events, watched or not
        for each in features:
            if each.grant_kind is not None:
                self.grants.add(each.grant_kind)
        self.sightings, self.noticed = Sightings(), Noticed(lambda: host.now)
        info, warning = (kind for each in features for kind in each.info), (kind for each in features for kind in each.warning)
        of_seats = () if self.seat_watch is None else self.seat_watch.info
        self.narrator = Narrator(log, info=(*of_seats, *info), warning=tuple(warning))
        join_watch = JoinWatch(host, log, lambda: self.seeds, self.side.retried, lambda: self.membership.is_member)
        self._hearers: tuple[tuple[tuple[type[Event], ...], Callable[[Event], None]], ...] = (
            *((each.hears, each.on_event) for each in features if each.hears),
            (self.noticed.hears, self.noticed.on_event),
            (join_watch.hears, join_watch.on_event),
        )
        self._seeds: Seeds | None = None
        self._addresses: tuple[Address, ...] | None = None  # of the seeds; None until they are known
        # F6: only when what the crashed life published must have ended can its successor say that it is over, and be let in at once.
        # Knocking earlier costs more: its place in the group is the former life's, and no process answers there.
        self._knocks_at = self.started_at + home.wait
        self._knocks = False  # wants to be a member as soon as seeds are known and the name is clear
        self.named: asyncio.Future[None] = loop.create_future()  # done when the name is ours
        self._leaving: list[Callable[[], None]] = []
        self._joining: dict[Callable[[], None], None] = {}  # who waits to hear of it
        self._tags: dict[str, str] = {}
        self._look: asyncio.TimerHandle | None = None
        host.on_event = self._on_event
        host.failed.add_done_callback(self._on_host_end)

    @classmethod
    async def open(cls, home: Home, log: Log) -> Agent:
        """Take the port. Nothing is read and nothing is said yet."""
        config = home.config
        bind = parse(config.bind, listen=True).literal
        assert bind is not None
        sealer = home.keys.sealer(config.group)
        try:
            advertise = await resolved(config.advertise) if config.advertise else None
            host = await NetHost.open(home.me, bind, sealer, advertise=advertise, storage=home.storage)
        except AddressUnusable as error:
            raise AddressUnusable(f"bind: {error}") from None
        try:
            return cls(home, host, sealer, log)
        except BaseException:
            await host.close()
            raise

    def _watch_seats(self, seats: Seats) -> SeatWatch:
        from holdfast.agent.grants.delays import Delays  # both where there are seats
        from holdfast.agent.observe.seat_watch import SeatWatch

        Delays(self.host, seats, self.grants)
        return SeatWatch(self.host, seats, self.log)

    # The course of a life.

    def start(self) -> None:
        """Listen, publish, knock."""
        self.membership.publish(VERSION_ROW, VERSION.encode())
        self._publish_tags(dict(self.config.tags))
        if self.seat_watch is not None:
            self.seat_watch.start()
        self.host.start()
        self._knocks = True
        if self.config.seeds:
            self._knock_at(self.config.seeds)
        else:
            # Its own seed: it asks whom it knew in a former life, then founds a group, and founds one again when it lost it.
            self.host.post(lambda: self._on_seeds((self.host.address,)))
        self._look = asyncio.get_running_loop().call_later(LOOK_PERIOD, self._on_look)

    async def close(self) -> None:
        """Let go of the port. A polite agent leaves first."""
        if self._look is not None:
            self._look.cancel()
        if self._seeds is not None:
            await self._seeds.close()
        if self.seat_watch is not None:
            await self.seat_watch.close()
        await self.host.close()
        if self.home.state is not None:
            await self.home.state.journal.drain()  # What the machines saved last is on disk before the lock is given up.

    def join(self, seeds: Sequence[str], done: Callable[[], None]) -> None:
        """Knock at these seeds (none: those of the settings); ``done`` when this agent is a member."""
        if self.state == "leaving":
            raise JoinFailed("this agent is leaving its group; join when it has left")
        if self.membership.is_member and (self.config.seeds or len(self.membership.members()) > 1):
            raise JoinFailed("this agent is in a group already; leave it first")
        if self.membership.is_over:
            raise JoinFailed("this agent has left its group, and with this membership that is final for its process: restart the agent")
        texts = tuple(seeds) or self.config.seeds
        if not texts:
            raise ConfigError("seeds: none; accepted are the addresses of 1 or more members")
        for text in texts:
            parse(text)
        self.grants.reopen()
        for each in self.features.values():
            each.drain(draining=False)
        self._joining[done] = None
        self.membership.leave()  # A group of its own that no other agent came to.
        self._knock_at(texts)

    def forget_join(self, done: Callable[[], None]) -> None:
        """It does not wait any more; the knocking goes on."""
        self._joining.pop(done, None)

    def leave(self, done: Callable[[], None], *, end: bool = False) -> None:
        """Drain (F14), go politely, then ``done``. With ``end`` the process ends after it."""
        self._leaving.append(done)
        if end:
            self._leaving.append(lambda: self.end(Ending.LEFT))
        for each in self.features.values():
            each.drain()
        self.grants.drain(self._on_drained)

    def drain(self, done: Callable[[], None]) -> None:
        """Leave, and end."""
        self.leave(done, end=True)

    def end(self, how: Ending | HoldfastError) -> None:
        """The process shall end, or begin again."""
        if self.over.done():
            return
        if isinstance(how, Ending):
            self.over.set_result(how)
        else:
            self.over.set_exception(how)

    # What clients ask for.

    @property
    def state(self) -> str:
        if self._leaving:
            return "leaving"
        if self.membership.is_member:
            return "member"
        return "joining" if self.membership.is_joining or self.membership.wanted or self._knocks else "left"

    @property
    def version(self) -> int:
        """Of the view."""
        return self.view().version

    def view(self) -> GroupView:
        """Who is here, and who leads what. The same object until something changes."""
        return self._viewer.view(self.state)

    def view_since(self, version: int) -> GroupView:
        """What differs from an earlier version, or all of it."""
        return self._viewer.since(self.state, version)

    def owns(self, key: str | bytes) -> Owned | None:
        """May this agent act for the key, and until when? Binding once it was told to a client (F14)."""
        owned = owners_in(self.side).owns(key)
        if owned is None or not self.home.note_told(owned.until):
            return None
        return Owned(owned.token, owned.until)

    @property
    def seeds(self) -> tuple[Address, ...]:
        """Their addresses; none until they are known."""
        return self._addresses or ()

    @property
    def tags(self) -> dict[str, str]:
        return dict(self._tags)

    def set_tags(self, tags: Mapping[str, str | None]) -> None:
        """Change some; None removes one. Raises ``ConfigError`` and changes nothing."""
        now = {name: value for name, value in {**self._tags, **tags}.items() if value is not None}
        check_tags(now)
        self._publish_tags(now)

    def rekey(self, keyring: Keyring, *, given: bool = False) -> None:
        """Read and write with these keys, also after a restart. ``given``: they come from the settings, not from the group."""
        if not isinstance(self._sealer, Sealed):
            raise ConfigError("key_file: this group has no key; give all of its agents one and restart them")
        self.home.keys.keep(keyring, given=given)
        self._sealer.rekey(keyring)
        self.log.info("keys", ids=[key.id.hex() for key in keyring.keys])

    @property
    def keyring(self) -> Keyring | None:
        return self._sealer.keyring if isinstance(self._sealer, Sealed) else None

    def info(self) -> dict[str, Any]:
        """What this agent is, without secrets; plain values."""
        view = self.view()
        return {
            "version": VERSION,
            "name": self.me.name,
            "boot": self.me.boot,
            "pid": os.getpid(),
            "group": self.config.group,
            "address": str(self.host.address),
            "bound": str(self.host.bound),
            "socket": self.socket_path,
            "state": view.state,
            "members": len(view.members),
            "up_seconds": self.host.now - self.started_at,
            "seed": self.host.seed,
            "clock_counts_suspended_time": clock.COUNTS_SUSPENDED_TIME,
            "keys": [key.id.hex() for key in self.keyring.keys] if self.keyring is not None else [],
            "seats_missing": self.seats_missing,
            "seats_delay": None if self.seats is None or (delay := self.seats.delay()) is None else delay._asdict(),
            "settings": {name: list(value) if isinstance(value, tuple) else value for name, value in self.config.shown().items()},
            "drops": {why.value: count for why, count in sorted(self.host.drops.items())},
            "metrics": self.metrics(),
        }

    def metrics(self) -> dict[str, float]:
        """Numbers by name."""
        found = {f"{self.side.name}_{name}": value for name, value in self.membership.metrics().items()}
        found.update({f"drop_{why.value}": float(count) for why, count in sorted(self.host.drops.items())})
        found.update(self._counts(on_seats=False))
        found.update({f"grants_{name}": float(count) for name, count in sorted(self.grants.counts.items())})
        found.update(self._counts(on_seats=True))
        found["grants"] = float(len(self.grants))
        found["events_published"], found["events_lost"] = float(self.emitted), float(self.events.lost)
        datagrams = self.host.datagrams
        found["datagrams_sent"], found["datagrams_received"] = float(datagrams.sent), float(datagrams.received)
        found["datagram_bytes_sent"], found["datagram_bytes_received"] = float(datagrams.sent_bytes), float(datagrams.received_bytes)
        found["log_lines_lost"] = float(self.log.lost)
        found["up_seconds"] = self.host.now - self.started_at
        return found

    def _counts(self, *, on_seats: bool) -> dict[str, float]:
        return {name: count for each in self.features.values() if each.on_seats == on_seats for name, count in each.counts().items()}

    # What the machines say (``feature.Life``).

    def on_name_clear(self) -> None:
        """F6: no agent of our name answered, and the lock says that the life before this one is over."""
        self.membership.sole_life = self.home.sole_life
        self.membership.former_until = self._knocks_at
        if not self.named.done():
            self.named.set_result(None)
        self._knock()

    def on_name_conflict(self, life: NodeId, address: Address) -> None:
        """F5: exactly one of the two goes, and it is this one. What its clients were promised stands (F14)."""
        name = shown(self.me.name)
        text = f"name: {life} lives at {address}, so this agent cannot be called {name}; stop that one or choose another name"
        error = NameConflict(printable(text))
        self.membership.sole_life = False
        self.log.error("name conflict", life=life, address=address)
        self.leave(lambda: self.end(error))

    def on_behind(self, boot: int) -> None:
        """F5: a member remembers a later life of ours, and it is silent: the wall clock went back."""
        self.log.warning("wall clock went back", boot=self.me.boot, known=boot)
        self.leave(lambda: self._begin_again(boot))  # It may be a member by now, with clients that were promised something (F14).

    def _begin_again(self, boot: int) -> None:
        self.home.begin_again(boot)
        self.end(Ending.AGAIN)

    def on_asked_to_leave(self) -> None:
        self.log.warning("leaving", why="an operator asked for it")
        self.drain(_nothing)

    # Callbacks.

    def _on_event(self, event: Event) -> None:
        for hears, on_event in self._hearers:
            if isinstance(event, hears):
                on_event(event)
        if isinstance(event, StorageFailed) and self.seats is not None:
            self.seats.fail(event.why)
        self.emitted += 1
        if self.events.subscribers:
            self.events.publish(event)
        if type(event) not in self.narrator.silent:
            self.narrator.on_event(event)
        if (self._knocks or self._joining) and self.membership.is_member:
            self._on_member()

    def _on_member(self) -> None:
        self._knocks = False
        joining, self._joining = self._joining, {}
        for done in joining:
            done()

    def _on_drained(self) -> None:
        """Clients have stopped. What features still have to hand on comes before the agent goes; each of them has a limit for it."""
        self._knocks = False
        if not all(each.drained for each in self.features.values()):
            self.host.after(LEFT_POLL, self._on_drained)
            return
        self.membership.leave()
        self._on_left_look()

    def _on_left_look(self) -> None:
        if not self.membership.left:
            self.host.after(LEFT_POLL, self._on_left_look)
            return
        self.home.note_left()
        if self.seats is not None:  # H154: what clients held was given back, so the next life need not wait for the end of it.
            self.seats.keeper.settle(max(each.running_until for each in self.features.values()))
        leaving, self._leaving = self._leaving, []
        for done in leaving:
            done()

    def _on_host_end(self, failed: asyncio.Future[None]) -> None:
        """A bug in a machine, with its traceback; nothing if the host was closed in good order."""
        error = failed.exception()
        if error is not None and not self.over.done():
            self.over.set_exception(error)

    def _on_look(self) -> None:
        self.narrator.sum_up(self.host.drops, self.host.now)
        self.sightings.look(self.host)
        if self.seat_watch is not None:
            self.seat_watch.members = len(self.view().members)
        self._look = asyncio.get_running_loop().call_later(LOOK_PERIOD, self._on_look)

    def _knock_at(self, texts: Sequence[str]) -> None:
        self._knocks, self._addresses = True, None
        former, self._seeds = self._seeds, Seeds(texts, self.log, lambda found: self.host.post(lambda: self._on_seeds(found)))
        if former is not None:
            former.stop()
        self._seeds.start()

    def _on_seeds(self, addresses: tuple[Address, ...]) -> None:
        if self._addresses is None:
            for gate in self._gates:
                if not gate.is_clear:
                    gate.greet((*addresses, *self.membership.known))
        self._addresses = addresses
        self.membership.seeds(addresses)
        self._knock()

    def _knock(self) -> None:
        if not (self._knocks and self._addresses is not None and all(gate.is_clear for gate in self._gates)) or self.membership.wanted:
            return
        if self.host.now < self._knocks_at:
            self.host.at(self._knocks_at, self._knock)
            return
        self.home.wait = 0.0  # It has passed.
        try:
            self.home.note_joining()
        except StorageError as error:
            self.log.error("cannot join", text=str(error), retry_in=DISK_RETRY)
            self.host.after(DISK_RETRY, self._knock)
        else:
            self.membership.join()
            if self.membership.is_member:
                self._on_member()

    def _publish_tags(self, tags: dict[str, str]) -> None:
        """All of them, or none: topics need rows as well, and there may be too few left."""
        former = self._tags
        try:
            self._put_tags(former, tags)
        except ConfigError:
            self._put_tags(tags, former)
            raise
        self._tags = tags

    def _put_tags(self, former: Mapping[str, str], tags: Mapping[str, str]) -> None:
        for gone in former.keys() - tags.keys():
            self.membership.publish(TAG_ROW + gone, None)
        for name, value in tags.items():
            self.membership.publish(TAG_ROW + name, value.encode())
