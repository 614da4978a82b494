"""The blocking client: ``join`` and ``Group``, for plain threads.  docs/client.md; ``client.aio`` is the same for asyncio."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial, wraps
from pathlib import Path
from signal import SIGTERM
from threading import Event, Lock
from types import TracebackType
from typing import Any, TypeVar
from weakref import WeakSet

from holdfast.client import checks
from holdfast.client.attached import END_TIMEOUT, FINAL, LEAVE_TIMEOUT, check_welcome, left, not_joined, pauses, retries
from holdfast.client.attempts import Attempts, check_stays
from holdfast.client.checks import CALL_SECONDS_MAX, CAST_BYTES_MAX, SEND_BYTES_MAX, Seconds
from holdfast.client.group import Readable
from holdfast.client.leading import lead_again_blocking
from holdfast.client.line import Line
from holdfast.client.mirror import Mirror, Opening
from holdfast.client.options import Options, Plan, checked, make_plan
from holdfast.client.ownership import OWNS_TIMEOUT, Ownership, Quick
from holdfast.client.pools import BlockingPool as Pool
from holdfast.client.pump import Answer, Pump
from holdfast.client.start import Child, NotWanted, reach
from holdfast.client.waits import Holding, Messages, Opened, PoolWatch, Term, Ticket, Watch
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
) -> Group:
    """Join a group: ``with holdfast.sync.join("orders", seeds=[...], key=KEY) as group:``. Leaving the block leaves the group.

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
    end_at = now() + checks.seconds(timeout, "timeout")
    checks.flag(reconnect, "reconnect")
    plan, attempts = make_plan(options, os.environ), Attempts(end_at)
    while True:
        plan, child = reach(plan, end_at, _never)
        joined = Group(plan, child, reconnect=reconnect)
        try:
            joined._attach()
            joined._become_member(end_at, options)
            return joined
        except AgentLost as error:
            joined._abandon()
            attempts.lost(plan, child, error)
        except BaseException:
            joined._abandon()
            raise


class Group(Readable):
    """A group that this process takes part in. Made by ``holdfast.sync.join``; any thread may use it."""

    def __init__(self, plan: Plan, child: Child | None, *, reconnect: bool) -> None:
        self._plan, self._child, self._reconnect = plan, child, reconnect
        self._name = plan.group
        self._pid = os.getpid()
        self._leaving = Event()
        self._leave_once = Lock()
        self._pump: Pump | None = None
        self._mirror = Mirror(self._look)
        self._streams = Lock()  # of the two sets
        self._opened_streams: WeakSet[Opened[Any]] = WeakSet()
        self._holdings: WeakSet[Holding] = WeakSet()
        self._quick = Quick(self._open_line)
        self._ownership = Ownership()

    def __enter__(self) -> Group:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if os.getpid() == self._pid:  # A child that runs out of its parent's block leaves nothing.
            self.leave()

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

    def send(self, peer: Member | NodeId | str, data: bytes, *, timeout: Seconds = 5.0) -> None:
        """Send up to 32 KiB to one member. Returns when its agent has queued it for its clients, at most once per life of that agent;
        what the reader there does with it is not known.

        Raises ``NotAMember`` if it is not in the group, ``Timeout`` if no answer came (it may have arrived all the same), ``Unavailable``
        if nobody reads there. Costs a round trip to that member."""
        limit = checks.seconds(timeout, "timeout", most=CALL_SECONDS_MAX)
        fields = self._name_of(peer), checks.payload(data, SEND_BYTES_MAX), limit
        self._check().call(mail_calls.Send, *fields, timeout=limit + CALL_TIMEOUT)

    def cast(self, data: bytes, *, topic: str) -> None:
        """Tell up to 16 KiB to everybody who listens to a topic, as a rumour: it reaches all of them with high probability, at most
        once each, in no particular order; the own streams of this group object do not hear it. Returns when this agent has begun to
        spread it."""
        fields = checks.topic(topic), checks.payload(data, CAST_BYTES_MAX)
        self._check().call(mail_calls.Cast, *fields)

    def set_tags(self, tags: Mapping[str, str | None] | None = None, /, **more: str | None) -> None:
        """Change some of the own tags; None removes one. On return ``group.me`` has them; others follow within moments and hear
        ``Updated``."""
        merged = checks.tags(tags, more)
        pump = self._check()
        pump.call(calls.SetTags, merged)
        pump.look(self._mirror)

    def owns(self, key: str | bytes) -> Grant | None:
        """A grant if this member may act for the key now, else None: ``await group.owns(key)``, in ``holdfast.sync`` without ``await``. It
        ends at ``grant.deadline`` on this machine's clock (``holdfast.client.clock.now()``), before another member is told the same. A
        resource that compares ``grant.token`` is safe even if this process stalls in between.

        Costs one question to the agent on this machine, answered within microseconds, and nothing while more than half of the last
        answer's time is left. An agent that does not answer within a second has not said yes: None. Raises ``AgentLost`` when the agent is
        gone, as every call does: what it granted before stands until its deadline."""
        self._check_pid()
        data = checks.key(key)
        asked_at = now()
        grant = self._ownership.fresh(data, asked_at)
        if grant is None:
            with suppress(Timeout):  # Whatever it says later is dropped; it has not said yes.
                grant = self._ownership.heard(data, asked_at, self._quick.call(calls.Owns, data, timeout=OWNS_TIMEOUT))
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
    ) -> Callable[[Callable[[Term], R]], Callable[[], R]]:
        """A decorator: calling the function then waits until this process leads the name, and runs it with the ``term``.

        When the term ends it is stopped and, once this process leads again, begun anew; what it returns by itself is returned. With
        asyncio it is cancelled, ``grace`` seconds before the deadline unless the term is renewed. A thread cannot be stopped: there it
        has to look at ``term.valid``, or call ``term.check()``, and return. ``grace`` and ``timeout`` (of each waiting) are those of
        ``lead``."""
        checks.name(name)
        checks.limit(timeout)
        checks.grace(grace)

        def decorated(function: Callable[[Term], R]) -> Callable[[], R]:
            checks.function(function, "while_leader")
            return wraps(function)(partial(lead_again_blocking, lambda: self.lead(name, grace=grace, timeout=timeout), function))

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

    def info(self) -> dict[str, Any]:
        """What this agent is: version, settings without secrets, counters."""
        self._check()
        info: dict[str, Any] = self._quick.call(calls.Info)
        return info

    def leave(self) -> None:
        """Leave the group; the end of the block does the same. What is held is given back first.

        An agent of our own leaves the group politely and ends; one that we attached to stays in the group and only loses this client. A
        second call does nothing."""
        self._check_pid()
        with self._leave_once:
            if self._leaving.is_set():
                return
            self._leaving.set()
        told = False
        try:
            for holding in self._held():
                holding.release()
            pump = self._pump
            if self._owned_child is not None and pump is not None and not pump.lost:
                with suppress(HoldfastError):  # It may be gone before its answer; what counts is that it ends.
                    pump.call(calls.Leave, True, timeout=LEAVE_TIMEOUT)
                    told = True
        finally:
            self._finish(None)
            self._end_child(told=told)

    def _hold(self, made: type[H], kind: str, name: str, timeout: Seconds | None, options: Mapping[str, Any]) -> H:
        """Something that excludes others, for a block: ``lead`` and ``ticket`` stand on it."""
        limit = checks.limit(timeout)
        holding = made(self._check(), kind, name, options, limit)
        with self._streams:
            self._holdings.add(holding)
        return holding

    def _opened(self, stream: S) -> S:
        """A stream of its own on the connection, to be ended with the group."""
        pump = self._check()
        stream.keep = self._reconnect
        stream.open(pump)
        with self._streams:
            self._opened_streams.add(stream)
        return stream

    # Coming and going.

    def _attach(self) -> None:
        """Connect, and know the group."""
        pump = Pump(self._plan.path)
        try:
            check_welcome(self._plan, pump.welcome)
            self._pump = pump  # The first event may come with the answer, and ask for a look.
            opened = Answer()
            pump.begin(calls.Watch, (), Opening(self._mirror, opened), sink=self._mirror)
            opened.wait(pump.path, CALL_TIMEOUT)
            pump.notice(self._on_lost)  # A loss before this is an attempt that failed; one after it is for the pump's thread alone.
        except BaseException:
            pump.close()
            raise
        self._name = pump.welcome.group

    def _become_member(self, end_at: float, options: Options) -> None:
        """Wait until this agent is a member, and has what was asked for."""
        pump = self._check()
        if self.state not in ("joining", "member") and options.seeds:
            pump.call(calls.Join, tuple(options.seeds), min(CALL_SECONDS_MAX, end_at - now()), timeout=end_at - now() + CALL_TIMEOUT)
        for pause in pauses(end_at):
            pump.look(self._mirror)
            if self.state == "member":
                break
            check_stays(self._plan, self.state)
            self._leaving.wait(pause)
        else:
            raise not_joined(self._plan, self._mirror.view, options)
        if options.tags and self._child is None:
            self.set_tags(options.tags)

    def _look(self) -> None:
        if self._pump is not None:
            with suppress(AgentLost):
                self._pump.begin(calls.Look, (), self._mirror)

    def _check(self) -> Pump:
        """The connection, if there is one to ask on."""
        self._check_pid()
        if self._leaving.is_set():
            raise left(self._name)
        assert self._pump is not None
        self._pump.check()
        return self._pump

    def _open_line(self, timeout: float) -> Line:
        self._check()
        return Line(self._plan.path, timeout=timeout)

    def _on_lost(self, error: HoldfastError) -> None:
        """In the thread that read from the agent, which has nothing else to do any more."""
        self._mirror.become("lost")
        self._ownership.close()
        self._quick.close()
        if not self._reconnect:
            self._close_streams(error)
            return
        for pause in retries():
            try:
                self._start_again()
                return
            except NotWanted:
                return
            except FINAL as final:
                self._close_streams(final)
                return
            except (HoldfastError, OSError):  # The latter: no process or descriptor is to be had just now.
                if self._leaving.wait(pause):
                    return

    def _start_again(self) -> None:
        """Find an agent again, or start one; messages go on where they were."""
        if self._child is not None:
            self._child.end()
            self._child = None
        self._plan, self._child = reach(self._plan.again(), now() + CALL_TIMEOUT, self._leaving.is_set)
        self._attach()
        with self._streams:
            streams = [stream for stream in self._opened_streams if not stream.over]
        with suppress(AgentLost):  # Lost again: the thread of that connection begins anew, and two must not.
            for stream in streams:
                stream.missed()
                stream.open(self._check())

    @property
    def _owned_child(self) -> Child | None:
        """The agent, if it is ours alone."""
        return None if self._child is None or self._child.shared else self._child

    def _abandon(self) -> None:
        """It did not work out: nothing stays behind."""
        self._leaving.set()
        self._finish(None)
        if self._child is not None and self._child.shared:
            self._child.end()
        self._end_child(told=False)

    def _finish(self, error: HoldfastError | None) -> None:
        self._close_streams(error)
        while (pump := self._pump) is not None:
            pump.close()  # Its thread may have found another agent while it was told to stop.
            if pump is self._pump:
                break
        self._mirror.become("left")
        self._ownership.close()
        self._quick.close()

    def _close_streams(self, error: HoldfastError | None) -> None:
        self._mirror.finish(error)
        with self._streams:
            streams = list(self._opened_streams)
        for stream in streams:
            stream.finish(error)

    def _held(self) -> list[Holding]:
        with self._streams:
            return list(self._holdings)

    def _end_child(self, *, told: bool) -> None:
        child, self._child = self._child, None
        if child is None:
            return
        if child.shared:
            child.let_go()
            return
        try:
            if not told or not child.wait(END_TIMEOUT):
                child.end()
        except BaseException:
            child.signal(SIGTERM)  # It drains, leaves and ends by itself; a second interruption does not wait for that.
            child.let_go()
            raise


def _never() -> bool:
    return False
