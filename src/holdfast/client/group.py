"""What both spellings of a group share: reading what is known.  No I/O of its own."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import NamedTuple

from holdfast.client import checks
from holdfast.client.holding import Held
from holdfast.client.members import Members
from holdfast.client.mirror import Mirror
from holdfast.client.ownership import Ownership
from holdfast.client.wire import forked
from holdfast.errors import NotAMember
from holdfast.features.leadership.calls import LINES, read_line
from holdfast.host import Member, NodeId


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
        return self.leaders.get(checks.text(name, "name"))

    @property
    def leaders(self) -> dict[str, Leader]:
        """All names that somebody leads, as this agent heard it last, sorted. Never waits."""
        mirror = self._read()
        lives = {line.name: (line.leader, line.token) for line in mirror.lines(LINES, read_line).values() if line.leader is not None}
        # Terms of this process are known before the news of them: whoever has just begun to lead finds itself here.
        lives.update((held.name, (mirror.me.id, held.token)) for held in self._held() if held.kind == "lead" and held.valid)
        listed = {member.id: member for member in mirror.members} if lives else {}
        return {name: Leader(life, token, listed.get(life)) for name, (life, token) in sorted(lives.items())}

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
        life = checks.peer(peer)
        if isinstance(life, str):
            return life
        listed = self._mirror.members.get(life.name)
        if listed is not None and listed.id != life:
            raise NotAMember(f"{life}: that life is over; {listed.id} has its name now. Send to the name to reach whoever has it")
        return life.name

    def __repr__(self) -> str:
        """Works in every process and state: it is for logs and debuggers."""
        mirror = self._mirror
        me = f" as {mirror.me.id}" if mirror.me.name else ""
        count = len(mirror.members)
        return f"<Group {self._name!r}{me}: {mirror.members.state}, {count} member{'' if count == 1 else 's'}>"
