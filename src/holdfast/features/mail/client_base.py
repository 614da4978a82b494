"""What both spellings of a mail client share: arguments, and messages that wait for a reader.  docs/client.md (messages)."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from holdfast.bounds import NUMBER_MAX
from holdfast.client import checks
from holdfast.client.buffers import Kept
from holdfast.client.members import Members
from holdfast.client.wire import ITEMS
from holdfast.errors import ConfigError, NotAMember, shown
from holdfast.features.mail.calls import MessageItem, Messages
from holdfast.host import Member, NodeId

SEND_BYTES_MAX = 32 * 1024  # of one message to one member
CAST_BYTES_MAX = 16 * 1024  # of one rumour: every member passes it on several times
TOPIC_BYTES_MAX = 62
MEMBER_BYTES_MAX = 64  # of a member's name
MESSAGES_MAX = 256  # per stream: 8 MiB of the longest


class Received(Struct, frozen=True):
    """A message that came for this process."""

    sender: NodeId
    data: bytes
    topic: str  # "" if it was sent to this member alone
    lost: int = 0  # at least so many went missing just before it, because they were not read in time


class MessageBuffer(Kept[Received]):
    """Messages; the first one after a gap says how many are missing."""

    def __init__(self) -> None:
        super().__init__()
        self._lost = 0

    def push(self, item: Any) -> None:
        message: MessageItem = ITEMS[Messages](item)
        self._lost += message.lost
        if self._over or len(self._items) >= MESSAGES_MAX:
            self._lost += 1
            return
        self._items.append(Received(message.sender, message.payload, message.topic, self._lost))
        self._lost = 0
        self._wake()

    def missed(self) -> None:
        self._lost += 1


def checked_topic(value: str) -> str:
    return checks.name(value, "topic", TOPIC_BYTES_MAX)


def addressee(peer: Member | NodeId | str, members: Members) -> tuple[str, int]:
    """The name and the life that a message is for; 0: the present life of that name. A name need not be in the member list: the agent may
    know it from its view, and says so if it does not. The id of a life that is over does not lead to the next life of the same name."""
    life = _checked_peer(peer)
    if isinstance(life, str):
        return life, 0
    listed = members.get(life.name)
    if listed is not None and listed.id != life:
        raise NotAMember(f"{life}: that life is over; {listed.id} has its name now. Send to the name to reach its present life")
    if not 0 < life.boot <= NUMBER_MAX:
        raise NotAMember(f"{shown(life)}: no life has such a number. Send to the name to reach its present life")
    return life.name, int(life.boot)


def _checked_peer(value: Member | NodeId | str) -> NodeId | str:
    life = value.id if isinstance(value, Member) else value
    if isinstance(life, NodeId):
        if not isinstance(life.boot, int):
            raise ConfigError(f"peer: {shown(value)}; accepted is an id as a member has it")
        checks.name(life.name, "peer", MEMBER_BYTES_MAX)
        return life
    if not isinstance(life, str):
        raise ConfigError(f"peer: {shown(value)}; accepted are a member of the group, its id, and its name")
    return checks.name(life, "peer", MEMBER_BYTES_MAX)
