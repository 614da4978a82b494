"""``join`` and ``Group``.  docs/client.md."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from holdfast.client import checks
from holdfast.client.aio.link import Link
from holdfast.client.aio.streams import Watch
from holdfast.client.attempts import Attempts
from holdfast.client.checks import Seconds
from holdfast.client.entries import entry
from holdfast.client.loop.asked import Asked, Entering  # aio
from holdfast.client.loop.reaching import reach
from holdfast.client.loop.tasks import ROOM, in_thread
from holdfast.client.members import Members
from holdfast.client.options import Options, checked, make_plan
from holdfast.client.ownership import OWNS_TIMEOUT
from holdfast.errors import AgentLost, Timeout
from holdfast.features.election import client as election
from holdfast.features.election.client_base import manner_of
from holdfast.features.leadership import client as leadership
from holdfast.features.leadership.client import Term
from holdfast.features.leadership.client_base import Leader, leaders_of
from holdfast.features.limits import client as limits
from holdfast.features.limits.client import GroupLimit
from holdfast.features.limits.terms import Fleet
from holdfast.features.mail import client as mail
from holdfast.features.mail.client import Messages
from holdfast.features.tickets import client as tickets
from holdfast.features.tickets.client import Pool, Ticket
from holdfast.features.views.client import GroupViews
from holdfast.host import Grant, Member, NodeId
from holdfast.local import calls
from holdfast.net.clock import now

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
    membership: str = "",
    bind: str = "",
    advertise: str = "",
    seats: Sequence[str] = (),
    state_dir: str | Path = "",
    config: str | Path | None = None,
    insecure: bool = False,
    http: str = "",
    timeout: Seconds = 30.0,
    wait: bool = True,
    reconnect: bool = False,
    # sync: ) -> Group:
) -> Joining:  # aio
    """Join a group: ``async with holdfast.join("orders", seeds=[...], key=KEY) as group:``. Leaving the block leaves the group.

    Attaches to the agent at ``agent`` (or HOLDFAST_AGENT). Without it, and without seeds and key, to the agent that all processes of
    this machine share for the group, which is started if it is not there. Otherwise it starts an agent of its own as a child process,
    which leaves the group when this process ends, however it ends.

    ``seeds`` are addresses of some members ("10.0.0.5:7946"); ``key`` is the group's (``holdfast keys generate``); ``name`` is unique in
    the group and drawn if it is not given; ``tags`` are published with it. ``bind`` is chosen if it is not given: one of the seeds if
    that is a free address of this machine, else a free port at the address from which they are reached. ``membership`` says how members
    are found: "ring", which is what is meant if nothing is said, "gossip" or "views"; all agents of a group have the same. ``config``
    is a file of settings; what is given here comes first, then HOLDFAST_* of the environment, then the file.

    Returns when this agent is a member, which takes a few round trips; raises ``JoinTimeout`` after ``timeout`` seconds, ``ConfigError``
    for what cannot be used, ``JoinFailed`` when it cannot be joined however long one waits. With ``wait=False`` it returns as soon as the
    agent answers: ``group.state`` says whether it is a member, ``group.members`` is empty until then, and ``views()`` and messages inside
    the view work meanwhile. With ``reconnect`` an agent that is lost is attached to, or started, again: ``watch`` then says
    ``EventsLost(0)``, and what was held is not held any more.
    """
    options = checked(
        group=group, seeds=seeds, key=key, name=name, tags=tags, agent=agent, preset=preset, membership=membership, bind=bind,
        advertise=advertise, seats=seats, state_dir=state_dir, config=config, insecure=insecure, http=http,
    )  # fmt: skip
    limit, waits, again = checks.seconds(timeout, "timeout"), checks.flag(wait, "wait"), checks.flag(reconnect, "reconnect")
    # sync: return _joined(options, limit, waits, again)
    return Joining(partial(_joined, options, limit, waits, again), options.group)  # aio


async def _joined(options: Options, timeout: float, wait: bool, reconnect: bool) -> Group:  # noqa: ASYNC109 - of several steps
    end_at = now() + timeout
    plan, attempts = await in_thread(make_plan, options, os.environ), Attempts(end_at)
    while True:
        plan, child = await reach(plan, end_at, _never)
        link = Link(plan, child, reconnect=reconnect)
        try:
            await link.attach()
            await link.become_member(end_at, options, wait=wait)
            return Group(link)
        except AgentLost as error:
            await link.abandon()
            attempts.lost(plan, child, error)
        except BaseException:
            await link.abandon()
            raise


def _never() -> bool:
    return False


class Group:
    """A group that this process takes part in. Made by ``holdfast.join``; used in the event loop that made it."""

    def __init__(self, link: Link) -> None:
        self._link = link

    async def __aenter__(self) -> Group:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if os.getpid() == self._link.pid:  # A child that runs out of its parent's block leaves nothing.
            await self.leave()

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """What a feature adds without a method of its own here (H214)."""
            return partial(entry(name, ROOM), self._link)

    @property
    def name(self) -> str:
        """The group's name."""
        return self._link.name

    @property
    def me(self) -> Member:
        """This process's agent as a member of the group, with its own tags. Never waits."""
        return self._link.read().me

    @property
    def members(self) -> Members:
        """Who is here, as this agent knows it: an immutable snapshot, sorted by name, with a ``version``. Never waits; while the agent
        is in no group it is empty, after the agent was lost it is the last one that was known."""
        return self._link.read().members

    @property
    def state(self) -> str:
        """Of this agent: "joining", "member", "leaving", "left", or "lost" when the agent is gone. Never waits."""
        return self._link.read().members.state

    @property
    def tags(self) -> dict[str, str]:
        """The own tags, as a copy; ``set_tags`` changes them."""
        return self.me.tags

    def get(self, name: str) -> Member | None:
        """The member of this name, or None. Never waits."""
        return self.members.get(name)

    def owner(self, key: str | bytes) -> Member | None:
        """The member whose position on the ring is closest to the key: a hint where to send, and no permission to act. Every member
        that has the same list gives the same answer. Never waits; None while this agent is in no group."""
        return self.members.owner(key)

    def leader(self, name: str) -> Leader | None:
        """Who leads this name, as this agent heard it last, or None if no leader is known. A hint where to ask, and no permission to act:
        news take their time. ``by`` says how it came to lead; one whose ``state`` is "tentative" may not act yet. Never waits; ``watch``
        says ``LeaderChanged`` when it is another one."""
        return self.leaders.get(checks.text(name, "name"))

    @property
    def leaders(self) -> dict[str, Leader]:
        """All names with a known leader, as this agent heard it last, sorted. Never waits."""
        return leaders_of(self._link.read(), self._link.held())

    def watch(self) -> Watch:
        """Events, as objects of ``holdfast.events``, from now on: an iterator.

        Several may be open at once. When an event is read, ``group.members`` is at least as new as it. A reader that falls
        more than 1024 events behind reads ``EventsLost(n)``; then ``group.members`` says what is. Ends when the group is left, and raises
        ``AgentLost`` when the agent is lost (with ``reconnect``: ``EventsLost(0)``, and it goes on)."""
        return self._link.watch()

    def messages(self, topic: str | None = None) -> Messages:
        """Messages for this process, from now on: those sent to this member alone, or those cast to a topic.

        An iterator of ``Received(sender, data, topic, lost)``. A reader that falls more than 256 messages behind misses the newest; the
        next one it reads says how many in ``lost``. Ends when the group is left, and raises ``AgentLost`` when the agent is lost (with
        ``reconnect`` it goes on, and ``lost`` is at least 1)."""
        return mail.messages(self._link, topic)

    async def send(self, peer: Member | NodeId | str, data: bytes, *, timeout: Seconds = 5.0) -> None:  # noqa: ASYNC109 - also the peer's
        """Send up to 32 KiB to one member. Returns when its agent has queued it for its clients, at most once per life of that agent;
        what the reader there does with it is not known.

        Raises ``NotAMember`` if it is not in the group, ``Timeout`` if no answer came (it may have arrived all the same), ``Unavailable``
        if no client reads there, ``Tripped`` if the view gave it up meanwhile. Costs a round trip to that member."""
        await mail.send(self._link, peer, data, timeout)

    async def cast(self, data: bytes, *, topic: str) -> None:
        """Tell up to 16 KiB to all listeners of a topic, as a rumour: it reaches all of them with high probability, at most
        once each, in no particular order; the own streams of this group object do not hear it. Returns when this agent has begun to
        spread it."""
        await mail.cast(self._link, data, topic)

    async def set_tags(self, tags: Mapping[str, str | None] | None = None, /, **more: str | None) -> None:
        """Change some of the own tags; None removes one. On return ``group.me`` has them; others follow within moments and hear
        ``Updated``."""
        await self._link.set_tags(checks.tags(tags, more))

    # sync: def owns(self, key: str | bytes) -> Grant | None:
    def owns(self, key: str | bytes) -> Asked:  # aio
        """A grant if this member may act for the key now, else None: ``await group.owns(key)``. It
        ends at ``grant.deadline`` on this machine's clock (``holdfast.client.clock.now()``), before another member is told the same. A
        resource that compares ``grant.token`` is safe even if this process stalls in between.

        Costs one question to the agent on this machine, answered within microseconds, and nothing while more than half of the last
        answer's time is left. An agent that does not answer within a second has not said yes: None. Raises ``AgentLost`` when the agent is
        gone, as every call does: what it granted before stands until its deadline."""
        # sync: return self._owned(checks.key(key))
        return Asked(self._owned(checks.key(key)))  # aio

    async def _owned(self, key: bytes) -> Grant | None:
        connection, ownership = self._link.check(), self._link.ownership
        asked_at = now()
        grant = ownership.fresh(key, asked_at)
        if grant is not None:
            return grant
        try:
            owned = await connection.ask(calls.Owns, key, timeout=OWNS_TIMEOUT)
        except Timeout:  # What it says later is dropped; it has not said yes.
            return None
        return ownership.heard(key, asked_at, owned)

    def lead(
        self,
        name: str,
        *,
        by: str = "seats",
        variant: str | None = None,
        voters: str | None = None,
        rank: str | Sequence[str] | None = None,
        health: str | None = None,
        grace: Seconds = 0.0,
        timeout: Seconds | None = None,
    ) -> Term:
        """Lead a name for the length of a block: enter it with ``async with``. It begins when this process
        leads, and its end gives the leadership up.

        While ``term.valid`` is true no other client of the group leads the same name. It is a check of this machine's clock, to be made
        before each deed; the block is not interrupted when the term is lost. What happens between the check and the deed's effect is not
        covered: for that, let the resource compare ``term.token``, which grows with every term. All of it rests on the seats
        (``holdfast seats``): a majority of them must answer, and clocks may run apart by no more than ``rho``.

        A term is promised for one and a half heartbeats and the ``grace`` at a time, and renewed twice per heartbeat. A longer grace
        leaves more time to stop when it cannot be renewed, and lets the next leader wait longer after a crash. Clients of one agent
        take turns. Raises ``AcquireTimeout`` after ``timeout`` seconds, ``ConfigError`` for a grace that is too long or if there are no
        seats, ``LeadershipLost`` if it is lost before the block begins.

        ``by="election"`` needs no seats and no majority, over ``membership="gossip"``: the members that ask for the name elect the best of
        them, also on each side of a partition. So ``term.exclusive`` is False and another process may lead at the same time: let what it
        changes admit ``term.token`` first (``holdfast.Fence``). ``variant`` is "hybrid", "preferred", "optimistic" or "base"; ``voters``
        is "none", "seats" or "members", who must agree to a term; ``rank`` is "hash", "tag:NAME" or "-tag:NAME", or several of them; and
        ``health`` "suspicions", "own", "false_positives" or "tag:NAME". All who ask for a name say the same."""
        return leadership.lead(self._link, name, grace, timeout, manner_of(by, variant, voters, rank, health))

    def while_leader(
        self,
        name: str,
        *,
        by: str = "seats",
        variant: str | None = None,
        voters: str | None = None,
        rank: str | Sequence[str] | None = None,
        health: str | None = None,
        grace: Seconds = 0.0,
        timeout: Seconds | None = None,
    ) -> Callable[[Callable[[Term], Awaitable[R]]], Callable[[], Awaitable[R]]]:
        """A decorator: calling the function then waits until this process leads the name, and runs it with the ``term``.

        When the term ends it is stopped and, once this process leads again, begun anew; what it returns by itself is returned. With
        asyncio it is cancelled, ``grace`` seconds before the deadline unless the term is renewed. A thread cannot be stopped: there it
        has to look at ``term.valid``, or call ``term.check()``, and return. ``timeout`` (of each waiting) and all others are those of
        ``lead``."""
        return leadership.while_leader(self._link, name, grace, timeout, manner_of(by, variant, voters, rank, health))

    async def elect(self, name: str) -> None:
        """Ask for an election of this name now, in which its leader is one candidate among others: the best-ranked one may take over.
        Returns when this agent has begun it; ``watch`` says ``LeaderChanged`` if another one leads.

        Raises ``ConfigError`` if no member asks to lead it by election, ``Unavailable`` while this agent takes part in nothing."""
        await election.elect(self._link, name)

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
        """Hold one of a pool's tickets for the length of a block: enter it with ``async with``. There
        are ``of`` of them, numbered from 0, and each has at most one holder in the group; ``of=1`` is a lock. The first one who asks says
        how many there are, for good: another number raises ``TicketCountMismatch``.

        While ``ticket.valid`` is true no other client of the group holds the same number. It is a check of this machine's clock, to be made
        before each deed; the block is not interrupted when the ticket is lost. What happens between the check and the deed's effect is
        not covered: for that, let the resource compare ``ticket.token``, which grows with every holder of that number. All of it rests on
        the seats (``holdfast seats``): a majority of them must answer, and clocks may run apart by no more than ``rho``.

        Waits while all are held; who holds one serves those who wait there in the order they came. With ``wait=False`` it raises
        ``NoTicket`` then. Raises ``AcquireTimeout`` after ``timeout`` seconds, ``ConfigError`` if there are no seats, ``TicketLost`` if it
        is lost before the block begins. ``metadata`` is up to 512 bytes of texts that all clients see in ``tickets(pool)``.

        A process that hangs keeps its ticket, because its agent renews it. With ``user_ttl`` it is renewed only as long as the program
        calls ``ticket.touch()`` at least so often, in seconds; else it is lost, and free a lease later at most."""
        return tickets.ticket(self._link, pool, timeout, of=of, wait=wait, metadata=metadata, user_ttl=user_ttl)

    def tickets(self, pool: str) -> Pool:
        """Who holds the tickets of a pool: ``hint()`` is what this agent heard, ``read()`` what a majority of the seats says,
        ``watch()`` news of either. None is a permission to act: that is the holder's own ``ticket``."""
        return Pool(self._link, pool)

    def views(self) -> GroupViews:
        """Agreed views: this agent takes part in them from now on, until what is returned is closed. ``await views.ready()`` returns when
        there is a view. Every member of it can reach every other one, or another view comes; ``views.leased`` says whether this process may
        count on it, ``views.watch()`` tells what changes. Needs seats, or ZooKeeper: ``ConfigError`` names the setting that is missing."""
        return GroupViews(self._link)

    def limit(
        self,
        name: str,
        *,
        rate: float | None = None,
        burst: float | None = None,
        per: float = 1.0,
        policy: str = "fair",
        fleet: Fleet = "auto",
        share: str = "maxmin",
        weight: float = 1.0,
        reserve: float = 0.05,
        headroom: float = 0.02,
        demand: Callable[[], float] | None = None,
        aggregate: str = "gossip",
    ) -> GroupLimit:
        """A rate limit for the whole group: at most ``rate`` cost in ``per`` seconds for all members together, and ``burst`` at once
        (default: what comes in within a second). Returns at once; this process takes part until what is returned is closed.

        ``await limit.acquire(cost)`` waits until a cost may go, ``limit.try_acquire(cost)`` only looks. Without ``rate`` the limit has to
        be there; where it is there with another rate, that one stays, and ``set_rate`` changes it. Policies "strict" and "exact" need seats
        and ``fleet``, the number of members that the limit is divided for. Raises ``ConfigError`` for what makes no sense."""
        terms = (rate, burst, per, policy, fleet, share, reserve, headroom, aggregate)
        return limits.limit(self._link, name, terms, weight=weight, demand=demand)

    async def info(self) -> dict[str, Any]:
        """What this agent is: version, settings without secrets, counters."""
        info: dict[str, Any] = await self._link.ask(calls.Info)
        return info

    async def leave(self) -> None:
        """Leave the group; the end of the block does the same. What is held is given back first.

        An agent of our own leaves the group politely and ends; one that we attached to stays in the group and only loses this client. A
        second call does nothing."""
        await self._link.leave()

    def __repr__(self) -> str:
        """Works in every process and state: it is for logs and debuggers."""
        mirror = self._link.mirror
        me = f" as {mirror.me.id}" if mirror.me.name else ""
        count = len(mirror.members)
        return f"<Group {self._link.name!r}{me}: {mirror.members.state}, {count} member{'' if count == 1 else 's'}>"


class Joining(Entering[Group]):  # aio
    """A group that is about to be joined: enter it as a block, or await it and call ``leave`` yourself."""  # aio
