"""What both spellings of a group share: reading what is known, and checking what is asked for.  No I/O of its own."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from datetime import timedelta
from math import isfinite
from typing import Any, NamedTuple

from holdfast.client.holding import Held
from holdfast.client.members import Members
from holdfast.client.mirror import Mirror
from holdfast.client.ownership import Ownership
from holdfast.client.wire import forked
from holdfast.errors import ConfigError, NotAMember
from holdfast.host import Grant, Member, NodeId

SEND_BYTES_MAX = 32 * 1024  # of one message to one member
CAST_BYTES_MAX = 16 * 1024  # of one rumour: every member passes it on several times
TOPIC_BYTES_MAX = 62

Seconds = float | timedelta


class Leader(NamedTuple):
    """Who leads a name, as this agent heard it last: a hint. Only the leader's own ``term`` says that it may act."""

    id: NodeId
    token: int  # of its term; the next one has a larger one
    member: Member | None  # None: it is not in the member list, or not yet; it may lead all the same

    @property
    def name(self) -> str:
        """Of the member that leads."""
        return self.id.name


class Readable:
    """A group as far as it can be read without waiting for anybody."""

    _name: str
    _pid: int
    _mirror: Mirror
    _ownership: Ownership

    @property
    def name(self) -> str:
        """The group's name."""
        return self._name

    @property
    def me(self) -> Member:
        """This process's agent as a member of the group, with its own tags. Never waits."""
        return self._read().me

    @property
    def members(self) -> Members:
        """Who is here, as this agent knows it: an immutable snapshot, sorted by name, with a ``version``. Never waits; while the agent
        is in no group it is empty, after the agent was lost it is the last one that was known."""
        return self._read().members

    @property
    def state(self) -> str:
        """Of this agent: "joining", "member", "leaving", "left", or "lost" when the agent is gone. Never waits."""
        return self._read().members.state

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
        """Who leads this name, as this agent heard it last, or None if nobody is known to. A hint where to ask, and no permission to act:
        news take their time. Never waits; ``watch`` says ``LeaderChanged`` when it is another one."""
        return self.leaders.get(name)

    @property
    def leaders(self) -> dict[str, Leader]:
        """All names that somebody leads, as this agent heard it last, sorted. Never waits."""
        mirror = self._read()
        lives = {line.name: (line.leader, line.token) for line in mirror.leaders.values() if line.leader is not None}
        # Terms of this process are known before the news of them: whoever has just begun to lead finds itself here.
        lives.update((held.name, (mirror.me.id, held.token)) for held in self._held() if held.kind == "lead" and held.valid)
        listed = {member.id: member for member in mirror.members} if lives else {}
        return {name: Leader(life, token, listed.get(life)) for name, (life, token) in sorted(lives.items())}

    def owns(self, key: str | bytes) -> Grant | None:
        """A grant if this member may act for the key now, else None. It ends at ``grant.deadline`` on this machine's clock
        (``holdfast.client.clock.now()``), before anybody else is told the same. A resource that compares ``grant.token`` is safe even if
        this process stalls in between.

        Costs one question to the agent on this machine, answered within microseconds, and nothing while more than half of the last
        answer's time is left. An agent that does not answer at once (50 ms) has not said yes: None."""
        self._check_pid()
        return self._ownership.owns(key)

    def _held(self) -> Sequence[Held]:
        """What this group object holds or asks for."""
        raise NotImplementedError

    def _read(self) -> Mirror:
        self._check_pid()
        return self._mirror

    def _check_pid(self) -> None:
        if os.getpid() != self._pid:
            raise forked()

    def _name_of(self, peer: Member | NodeId | str) -> str:
        """Whom a message is for. A life that is over is not somebody else of its name."""
        if isinstance(peer, str):
            return peer
        life = peer.id if isinstance(peer, Member) else peer
        listed = self._mirror.members.get(life.name)
        if listed is not None and listed.id != life:
            raise NotAMember(f"{life}: that life is over; {listed.id} has its name now. Send to the name to reach whoever has it")
        return life.name


def seconds(value: Seconds, field: str) -> float:
    """A duration as a float."""
    number = value.total_seconds() if isinstance(value, timedelta) else value
    if isinstance(number, bool) or not isinstance(number, int | float) or not isfinite(number) or number <= 0:
        raise ConfigError(f"{field}: {value!r}; accepted is a positive number of seconds, or a timedelta")
    return float(number)


def grace_of(value: Seconds) -> float:
    """A duration that may be none at all. What is too long is the agent's to say: it knows the group's settings."""
    number = value.total_seconds() if isinstance(value, timedelta) else value
    if isinstance(number, bool) or not isinstance(number, int | float) or not isfinite(number) or number < 0:
        raise ConfigError(f"grace: {value!r}; accepted are 0 or more seconds, or a timedelta")
    return float(number)


def checked_name(name: str, field: str = "name") -> str:
    if not isinstance(name, str) or not name or not name.isprintable():  # half a surrogate is no text, and not printable
        raise ConfigError(f"{field}: {name!r}; accepted is printable text that is not empty")
    return name


def ticket_options(of: int, metadata: Mapping[str, str] | None, user_ttl: Seconds | None, *, wait: bool) -> dict[str, Any]:
    """What is too many is the agent's to say."""
    if isinstance(of, bool) or not isinstance(of, int) or of < 1:
        raise ConfigError(f"of: {of!r}; accepted is the number of tickets in the pool, from 1")
    if metadata is not None and not all(isinstance(text, str) for pair in metadata.items() for text in pair):
        raise ConfigError(f"metadata: {metadata!r}; accepted is a table of texts")
    limit = {} if user_ttl is None else {"user_ttl": seconds(user_ttl, "user_ttl")}
    return {"of": of, "wait": bool(wait), "metadata": dict(metadata or {}), **limit}


def checked_topic(topic: str) -> str:
    if not isinstance(topic, str) or not 1 <= len(topic.encode()) <= TOPIC_BYTES_MAX:
        raise ConfigError(f"topic: {topic!r}; accepted are texts of 1 to {TOPIC_BYTES_MAX} bytes")
    return topic


def merged_tags(tags: Mapping[str, str | None] | None, more: Mapping[str, str | None]) -> dict[str, str | None]:
    return {**(tags or {}), **more}
