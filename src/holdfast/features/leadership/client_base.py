"""What both spellings of a leadership client share: arguments, and who leads as far as is known.  docs/client.md (leading)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from holdfast.client import checks
from holdfast.client.holding import Held
from holdfast.client.mirror import Mirror
from holdfast.errors import ConfigError, shown
from holdfast.features.leadership.calls import LINES, read_line
from holdfast.host import Member, NodeId

KIND = "lead"  # what the agent calls this kind of grant
NAME_BYTES_MAX = 100


class Leader(NamedTuple):
    """Who leads a name, as this agent heard it last: a hint. Only the leader's own ``term`` says that it may act."""

    id: NodeId
    token: int  # of its term; the next one has a larger one
    member: Member | None  # None: it is not in the member list, or not yet; it may lead all the same

    @property
    def name(self) -> str:
        """Of the member that leads."""
        return self.id.name


def leaders_of(mirror: Mirror, held: Sequence[Held]) -> dict[str, Leader]:
    """By name, sorted. Terms of this process are known before the news of them: a process that has just begun to lead is in it."""
    lives = {line.name: (line.leader, line.token) for line in mirror.lines(LINES, read_line).values() if line.leader is not None}
    lives.update((each.name, (mirror.me.id, each.token)) for each in held if each.kind == KIND and each.valid)
    listed = {member.id: member for member in mirror.members} if lives else {}
    return {name: Leader(life, token, listed.get(life)) for name, (life, token) in sorted(lives.items())}


def checked_name(value: str) -> str:
    return checks.name(value, "name", NAME_BYTES_MAX)


def check_function(value: Any) -> None:
    if not callable(value):
        raise ConfigError(f"while_leader: {shown(value)}; accepted is a function of the term")
