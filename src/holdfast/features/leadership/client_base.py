"""What both spellings of a leadership client share: arguments, and who leads as far as is known.  docs/client.md (leading)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from holdfast.client import checks
from holdfast.client.holding import Held
from holdfast.client.mirror import Mirror
from holdfast.errors import ConfigError, shown
from holdfast.host import Member, NodeId
from holdfast.local.leaders import ACTIVE, KINDS, LINES, SEATS, WAYS, read_line, shown_of

KIND, ELECT = KINDS  # what the agent calls these kinds of grants
NAME_BYTES_MAX = 100
NOT_ELECTED = "another member leads, or too few members answer an election (`holdfast leader`)"  # why a candidate waits

Manner = Mapping[str, Any] | None  # how a name is elected: options of the grant; None: the seats decide


class Leader(NamedTuple):
    """Who leads a name, as this agent heard it last: a hint. Only the leader's own ``term`` says that it may act."""

    id: NodeId
    token: int  # of its term; the next one has a larger one
    member: Member | None  # None: it is not in the member list, or not yet; it may lead all the same
    by: str = SEATS  # how it came to lead: "seats", or "election", which excludes no other leader
    state: str = ACTIVE  # "tentative": it was named by an election, and may not act yet

    @property
    def name(self) -> str:
        """Of the member that leads."""
        return self.id.name


def leaders_of(mirror: Mirror, held: Sequence[Held]) -> dict[str, Leader]:
    """By name, sorted. Terms of this process are known before the news of them: a process that has just begun to lead is in it."""
    lines = shown_of(mirror.lines(feature, read_line) for feature in LINES)
    found = {line.name: (line.leader, line.token, line.by, line.state) for line in lines.values() if line.leader is not None}
    own = [each for each in held if each.kind in KINDS and each.valid]
    found.update((each.name, (mirror.me.id, each.token, WAYS[KINDS.index(each.kind)], ACTIVE)) for each in own)
    listed = {member.id: member for member in mirror.members} if found else {}
    return {name: Leader(life, token, listed.get(life), by, state) for name, (life, token, by, state) in sorted(found.items())}


def checked_name(value: str) -> str:
    return checks.name(value, "name", NAME_BYTES_MAX)


def check_function(value: Any) -> None:
    if not callable(value):
        raise ConfigError(f"while_leader: {shown(value)}; accepted is a function of the term")
