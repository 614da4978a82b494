"""The asyncio client: ``join`` and ``Group``.  docs/client.md; ``client.blocking`` is the same for threads."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import suppress
from functools import partial, wraps
from pathlib import Path
from signal import SIGTERM
from types import TracebackType
from typing import Any, TypeVar
from weakref import WeakSet

from holdfast.client import checks
from holdfast.client.attached import END_TIMEOUT, FINAL, LEAVE_TIMEOUT, check_welcome, left, not_joined, pauses, retries
from holdfast.client.attempts import Attempts, check_stays
from holdfast.client.checks import CALL_SECONDS_MAX, CAST_BYTES_MAX, SEND_BYTES_MAX, Seconds
from holdfast.client.connection import Connection
from holdfast.client.group import Readable
from holdfast.client.leading import lead_again
from holdfast.client.mirror import Mirror, Opening
from holdfast.client.options import Options, Plan, checked, make_plan
from holdfast.client.ownership import OWNS_TIMEOUT, Asked, Ownership
from holdfast.client.pools import Pool
from holdfast.client.reaching import reach_beside
from holdfast.client.start import Child
from holdfast.client.streams import Holding, Messages, Opened, PoolWatch, Term, Ticket, Watch
from holdfast.client.wire import CALL_TIMEOUT
from holdfast.errors import AgentLost, HoldfastError, Timeout
from holdfast.features.mail import calls as mail_calls
from holdfast.host import Grant, Member, NodeId
from holdfast.local import calls
from holdfast.net.clock import now

H = TypeVar("H", bound=Holding)
S = TypeVar("S", bound=Opened[Any])
R = TypeVar("R")


def join(
    group: str | None = None,
    *,
    seeds: Sequence[str] = (),
    key: str | bytes | None = None,
    name: str = "",
    tags: Mapping[str, str] | None = None,
    agent: str | Path | None = None,
    preset: str = "",
    bind: str = "",
    advertise: str = "",
    seats: Sequence[str] = (),
    state_dir: str | Path = "",
    config: str | Path | None = None,
    insecure: bool = False,
    http: str = "",
    timeout: Seconds = 30.0,
    reconnect: bool = False,
) -> Joining:
    """Join a group: ``async with holdfast.join("orders", seeds=[...], key=KEY) as group:``. Leaving the block leaves the group.

    Attaches to the agent at ``agent`` (or HOLDFAST_AGENT). Without it, and without seeds and key, to the agent that all processes of
    this machine share for the group, which is started if it is not there. Otherwise it starts an agent of its own as a child process,
    which leaves the group when this process ends, however it ends.

    ``seeds`` are addresses of some members ("10.0.0.5:7946"); ``key`` is the group's (``holdfast keys generate``); ``name`` is unique in
    the group and drawn if it is not given; ``tags`` are published with it. ``bind`` is chosen if it is not given: one of the seeds if
    that is a free address of this machine, else a free port at the address from which they are reached. ``config`` is a file of settings;
    what is given here comes first, then HOLDFAST_* of the environment, then the file.

    Returns when this agent is a member, which takes a few round trips; raises ``JoinTimeout`` after ``timeout`` seconds, ``ConfigError``
    for what cannot be used, ``JoinFailed`` when it cannot be joined however long one waits. With ``reconnect`` an agent that is lost is
    attached to, or started, again: ``watch`` then says ``EventsLost(0)``, and what was held is not held any more.
    """
    options = checked(
        group=group, seeds=seeds, key=key, name=name, tags=tags, agent=agent, preset=preset, bind=bind, advertise=advertise,
        seats=seats, state_dir=state_dir, config=config, insecure=insecure, http=http,
    )  # fmt: skip
    return Joining(options, checks.seconds(timeout, "timeout"), checks.flag(reconnect, "reconnect"))


class Joining:
    """A group that is about to be joined: enter it as a block, or await it and call ``leave`` yourself."""

    def __init__(self, options: Options, timeout: float, reconnect: bool) -> None:
        self._options, self._timeout, self._reconnect = options, timeout, reconnect
        self._group: Group | None = None

    def __repr__(self) -> str:
        return f"<Joining {self._options.group or 'the default group'!r}: enter it with `async with`, or await it>"

    def __await__(self) -> Generator[Any, None, Group]:
        return self._join().__await__()

    async def __aenter__(self) -> Group:
        self._group = await self._join()
        return self._group

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        assert self._group is not None
        if os.getpid() == self._group._pid:  # A child that runs out of its parent's block leaves nothing.
            await self._group.leave()

    async def _join(self) -> Group:
        end_at = now() + self._timeout
        plan = await asyncio.to_thread(make_plan, self._options, os.environ)
        attempts = Attempts(end_at)
        while True:
            plan, child = await reach_beside(plan, end_at)
            group = Group(plan, child, reconnect=self._reconnect)
            try:
                await group._attach()
                await group._become_member(end_at, self._options)
                return group
            except AgentLost as error:
                await group._abandon()
                attempts.lost(plan, child, error)
            except BaseException:
                await group._abandon()
                raise


class Group(Readable):
    """A group that this process takes part in. Made by ``holdfast.join``; used in the event loop that made it."""

    def __init__(self, plan: Plan, child: Child | None, *, reconnect: bool) -> None:
        self._plan, self._child, self._reconnect = plan, child, reconnect
        self._name = plan.group
        self._pid = os.getpid()
        self._left = False
        self._connection: Connection | None = None
        self._mirror = Mirror(self._look)
        self._returning: asyncio.Task[None] | None = None
        self._streams: WeakSet[Opened[Any]] = WeakSet()
        self._holdings: WeakSet[Holding] = WeakSet()
        self._ownership = Ownership()

    async def __aenter__(self) -> Group:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if os.getpid() == self._pid:
            await self.leave()

    def watch(self) -> Watch:
        """Events, as objects of ``holdfast.events``, from now on: an iterator.

        Several may be open at once. When an event is read, ``group.members`` is at least as new as it. A reader that falls
        more than 1024 events behind reads ``EventsLost(n)``; then ``group.members`` says what is. Ends when the group is left, and raises
        ``AgentLost`` when the agent is lost (with ``reconnect``: ``EventsLost(0)``, and it goes on)."""
        self._check()
        watch = Watch()
        self._mirror.add(watch)
        return watch

    def messages(self, topic: str | None = None) -> Messages:
        """Messages for this process, from now on: those sent to this member alone, or those cast to a topic.

        An iterator of ``Received(sender, data, topic, lost)``. A reader that falls more than 256 messages behind misses the newest; the
        next one it reads says how many in ``lost``. Ends when the group is left, and raises ``AgentLost`` when the agent is lost (with
        ``reconnect`` it goes on, and ``lost`` is at least 1)."""
        return self._opened(Messages("" if topic is None else checks.topic(topic)))

    async def send(self, peer: Member | NodeId | str, data: bytes, *, timeout: Seconds = 5.0) -> None:  # noqa: ASYNC109 - also the peer's
        """Send up to 32 KiB to one member. Returns when its agent has queued it for its clients, at most once per life of that agent;
        what the reader there does with it is not known.

        Raises ``NotAMember`` if it is not in the group, ``Timeout`` if no answer came (it may have arrived all the same), ``Unavailable``
        if nobody reads there. Costs a round trip to that member."""
        limit = checks.seconds(timeout, "timeout", most=CALL_SECONDS_MAX)
        fields = self._name_of(peer), checks.payload(data, SEND_BYTES_MAX), limit
        await self._check().call(mail_calls.Send, *fields, timeout=limit + CALL_TIMEOUT)

    async def cast(self, data: bytes, *, topic: str) -> None:
        """Tell up to 16 KiB to everybody who listens to a topic, as a rumour: it reaches all of them with high probability, at most
        once each, in no particular order; the own streams of this group object do not hear it. Returns when this agent has begun to
        spread it."""
        fields = checks.topic(topic), checks.payload(data, CAST_BYTES_MAX)
        await self._check().call(mail_calls.Cast, *fields)

    async def set_tags(self, tags: Mapping[str, str | None] | None = None, /, **more: str | None) -> None:
        """Change some of the own tags; None removes one. On return ``group.me`` has them; others follow within moments and hear
        ``Updated``."""
        merged = checks.tags(tags, more)
        connection = self._check()
        await connection.call(calls.SetTags, merged)
        self._mirror.update(await connection.call(calls.Look))

    def owns(self, key: str | bytes) -> Asked:
        """A grant if this member may act for the key now, else None: ``await group.owns(key)``, in ``holdfast.sync`` without ``await``. It
        ends at ``grant.deadline`` on this machine's clock (``holdfast.client.clock.now()``), before another member is told the same. A
        resource that compares ``grant.token`` is safe even if this process stalls in between.

        Costs one question to the agent on this machine, answered within microseconds, and nothing while more than half of the last
        answer's time is left. An agent that does not answer within a second has not said yes: None. Raises ``AgentLost`` when the agent is
        gone, as every call does: what it granted before stands until its deadline."""
        return Asked(self._owned(checks.key(key)))

    async def _owned(self, key: bytes) -> Grant | None:
        connection = self._check()
        asked_at = now()
        grant = self._ownership.fresh(key, asked_at)
        if grant is None:
            with suppress(Timeout):  # Whatever it says later is dropped; it has not said yes.
                grant = self._ownership.heard(key, asked_at, await connection.call(calls.Owns, key, timeout=OWNS_TIMEOUT))
        return grant

    def lead(self, name: str, *, grace: Seconds = 0.0, timeout: Seconds | None = None) -> Term:
        """Lead a name for the length of a block: enter it with ``async with`` (in ``holdfast.sync``: ``with``). It begins when this process
        leads, and its end gives the leadership up.

        While ``term.valid`` is true nobody else in the group leads the same name. It is a check of this machine's clock, to be made before
        each deed; the block is not interrupted when the term is lost. What happens between the check and the deed's effect is not covered:
        for that, let the resource compare ``term.token``, which grows with every term. All of it rests on the seats (``holdfast seats``): a
        majority of them must answer, and clocks may run apart by no more than ``rho``.

        A term is promised for one and a half heartbeats and the ``grace`` at a time, and renewed twice per heartbeat. A longer grace
        leaves more time to stop when it cannot be renewed, and lets the next leader wait longer after a crash. Clients of one agent
        take turns. Raises ``AcquireTimeout`` after ``timeout`` seconds, ``ConfigError`` for a grace that is too long or if there are no
        seats, ``LeadershipLost`` if it is lost before the block begins."""
        return self._hold(Term, "lead", checks.name(name), timeout, {"grace": checks.grace(grace)})

    def while_leader(
        self, name: str, *, grace: Seconds = 0.0, timeout: Seconds | None = None
    ) -> Callable[[Callable[[Term], Awaitable[R]]], Callable[[], Awaitable[R]]]:
        """A decorator: calling the function then waits until this process leads the name, and runs it with the ``term``.

        When the term ends it is stopped and, once this process leads again, begun anew; what it returns by itself is returned. With
        asyncio it is cancelled, ``grace`` seconds before the deadline unless the term is renewed. A thread cannot be stopped: there it
        has to look at ``term.valid``, or call ``term.check()``, and return. ``grace`` and ``timeout`` (of each waiting) are those of
        ``lead``."""
        checks.name(name)
        checks.limit(timeout)
        notice = checks.grace(grace)

        def decorated(function: Callable[[Term], Awaitable[R]]) -> Callable[[], Awaitable[R]]:
            checks.function(function, "while_leader")
            return wraps(function)(partial(lead_again, lambda: self.lead(name, grace=grace, timeout=timeout), function, notice))

        return decorated

    def ticket(
        self,
        pool: str,
        *,
        of: int,
        timeout: Seconds | None = None,
        wait: bool = True,
        metadata: Mapping[str, str] | None = None,
        user_ttl: Seconds | None = None,
    ) -> Ticket:
        """Hold one of a pool's tickets for the length of a block: enter it with ``async with`` (in ``holdfast.sync``: ``with``). There
        are ``of`` of them, numbered from 0, and each has at most one holder in the group; ``of=1`` is a lock. The first one who asks says
        how many there are, for good: another number raises ``TicketCountMismatch``.

        While ``ticket.valid`` is true nobody else in the group holds the same number. It is a check of this machine's clock, to be made
        before each deed; the block is not interrupted when the ticket is lost. What happens between the check and the deed's effect is
        not covered: for that, let the resource compare ``ticket.token``, which grows with every holder of that number. All of it rests on
        the seats (``holdfast seats``): a majority of them must answer, and clocks may run apart by no more than ``rho``.

        Waits while all are held; who holds one serves those who wait there in the order they came. With ``wait=False`` it raises
        ``NoTicket`` then. Raises ``AcquireTimeout`` after ``timeout`` seconds, ``ConfigError`` if there are no seats, ``TicketLost`` if it
        is lost before the block begins. ``metadata`` is up to 512 bytes of texts that everybody sees in ``tickets(pool)``.

        A process that hangs keeps its ticket, because its agent renews it. With ``user_ttl`` it is renewed only as long as the program
        calls ``ticket.touch()`` at least so often, in seconds; else it is lost, and free a lease later at most."""
        options = checks.ticket_options(of, metadata, user_ttl, wait=wait)
        return self._hold(Ticket, "ticket", checks.pool(pool), timeout, options)

    def tickets(self, pool: str) -> Pool:
        """Who holds the tickets of a pool: ``hint()`` is what this agent heard, ``read()`` what a majority of the seats says,
        ``watch()`` news of either. None is a permission to act: that is the holder's own ``ticket``."""
        return Pool(self._check, checks.pool(pool), lambda name: self._opened(PoolWatch(name)))

    async def info(self) -> dict[str, Any]:
        """What this agent is: version, settings without secrets, counters."""
        info: dict[str, Any] = await self._check().call(calls.Info)
        return info

    async def leave(self) -> None:
        """Leave the group; the end of the block does the same. What is held is given back first.

        An agent of our own leaves the group politely and ends; one that we attached to stays in the group and only loses this client. A
        second call does nothing."""
        self._check_pid()
        if self._left:
            return
        self._left = True
        told = False
        try:
            await self._stop_returning()
            await asyncio.gather(*(holding.release() for holding in self._held()))
            if self._owned_child is not None and self._connection is not None and not self._connection.lost:
                with suppress(HoldfastError):  # It may be gone before its answer; what counts is that it ends.
                    await self._connection.call(calls.Leave, True, timeout=LEAVE_TIMEOUT)
                    told = True
        finally:
            self._finish(None)
            await self._end_child(told=told)

    def _hold(self, made: type[H], kind: str, name: str, timeout: Seconds | None, options: Mapping[str, Any]) -> H:
        """Something that excludes others, for a block: ``lead`` and ``ticket`` stand on it."""
        limit = checks.limit(timeout)
        holding = made(self._check(), kind, name, options, limit)
        self._holdings.add(holding)
        return holding

    def _opened(self, stream: S) -> S:
        """A stream of its own on the connection, to be ended with the group."""
        connection = self._check()
        stream.keep = self._reconnect
        stream.open(connection)
        self._streams.add(stream)
        return stream

    # Coming and going.

    async def _attach(self) -> None:
        """Connect, and know the group."""
        connection = await Connection.open(self._plan.path)
        try:
            assert connection.welcome is not None
            check_welcome(self._plan, connection.welcome)
            self._connection = connection  # The first event may come with the answer, and ask for a look.
            opened: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
            connection.begin(calls.Watch, (), Opening(self._mirror, opened), sink=self._mirror)
            await opened
            connection.check()  # It may have been lost while its answer was on the way to us: an attempt that failed.
        except BaseException:
            connection.close()
            raise
        self._name = connection.welcome.group
        connection.on_lost = self._on_lost

    async def _become_member(self, end_at: float, options: Options) -> None:
        """Wait until this agent is a member, and has what was asked for."""
        connection = self._check()
        if self.state not in ("joining", "member") and options.seeds:
            await connection.call(
                calls.Join, tuple(options.seeds), min(CALL_SECONDS_MAX, end_at - now()), timeout=end_at - now() + CALL_TIMEOUT
            )
        for pause in pauses(end_at):
            self._mirror.update(await connection.call(calls.Look))
            if self.state == "member":
                break
            check_stays(self._plan, self.state)
            await asyncio.sleep(pause)
        else:
            raise not_joined(self._plan, self._mirror.view, options)
        if options.tags and self._child is None:
            await self.set_tags(options.tags)

    def _look(self) -> None:
        if self._connection is not None and not self._connection.lost:
            self._connection.begin(calls.Look, (), self._mirror)

    def _check(self) -> Connection:
        """The connection, if there is one to ask on."""
        self._check_pid()
        if self._left:
            raise left(self._name)
        assert self._connection is not None
        self._connection.check()
        return self._connection

    def _on_lost(self, error: HoldfastError) -> None:
        self._mirror.become("lost")
        self._ownership.close()
        if self._reconnect:
            self._returning = asyncio.get_running_loop().create_task(self._return())
        else:
            self._close_streams(error)

    async def _return(self) -> None:
        """Find an agent again, however long it takes; unless it says that it cannot be."""
        for pause in retries():
            try:
                await self._start_again()
                break
            except FINAL as error:
                self._close_streams(error)
                return
            except (HoldfastError, OSError):  # The latter: no process or descriptor is to be had just now.
                await asyncio.sleep(pause)
        with suppress(AgentLost):  # Lost again: another task is at it.
            for stream in list(self._streams):
                if not stream.over:
                    stream.missed()
                    stream.open(self._check())

    async def _start_again(self) -> None:
        if self._child is not None:
            await asyncio.to_thread(self._child.end)
            self._child = None
        self._plan, self._child = await reach_beside(self._plan.again(), now() + CALL_TIMEOUT)
        await self._attach()

    async def _stop_returning(self) -> None:
        task, self._returning = self._returning, None
        if task is not None:
            task.cancel()
            await asyncio.wait([task])

    def _held(self) -> list[Holding]:
        return list(self._holdings)

    @property
    def _owned_child(self) -> Child | None:
        """The agent, if it is ours alone."""
        return None if self._child is None or self._child.shared else self._child

    async def _abandon(self) -> None:
        """It did not work out: nothing stays behind."""
        self._left = True
        self._finish(None)
        if self._child is not None and self._child.shared:
            await asyncio.to_thread(self._child.end)
        await self._end_child(told=False)

    def _finish(self, error: HoldfastError | None) -> None:
        self._mirror.become("left")
        self._ownership.close()
        self._close_streams(error)
        if self._connection is not None:
            self._connection.close()

    def _close_streams(self, error: HoldfastError | None) -> None:
        self._mirror.finish(error)
        for stream in list(self._streams):
            stream.finish(error)

    async def _end_child(self, *, told: bool) -> None:
        child, self._child = self._child, None
        if child is None:
            return
        if child.shared:
            child.let_go()
            return
        try:
            if not told or not await asyncio.to_thread(child.wait, END_TIMEOUT):
                await asyncio.to_thread(child.end)
        except BaseException:
            child.signal(SIGTERM)  # It drains, leaves and ends by itself; a second cancellation does not wait for that.
            child.let_go()
            raise
