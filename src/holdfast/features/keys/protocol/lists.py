"""Lists that differ between members: whom do others list that this member does not?  Spec: gossip 10 (keys); docs/keys.md, H354.

Where lists are weak, two members rarely list the same while members come and go. So a list that differs is no obstacle by
itself: its member names, page by page, all that it lists, and those that are not known here are asked as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final, Protocol, runtime_checkable

from msgspec.structs import replace

from holdfast.bounds import MEMBERS_MAX
from holdfast.features.keys.protocol.messages import NAMED_MAX, KeyAnswer, KeyNamed, KeyNames, Named
from holdfast.host import Member, Membership, NodeId

SAME: Final = 0  # in the place of a hash: its member listed, when it answered, what this one did
PAGES_MAX: Final = MEMBERS_MAX // NAMED_MAX  # of one list
NAMES_TIMEOUT: Final = 2.0  # seconds for one page: who is silent for longer is asked again, as long as there is time


@runtime_checkable
class WeakList(Protocol):
    """A membership whose lists may differ between members at the same time (``host.Lists``)."""

    def gave_up(self, member: NodeId) -> bool:
        """That life is over, as far as it is known here: it is dead, it has left, or another life has its name."""


class OtherLists:
    """Of one step: whose lists were named to the end, and which members are in them that are not listed here."""

    def __init__(self, me: NodeId, weak: WeakList) -> None:
        self._me, self._weak = me, weak
        self._named: set[int] = set()  # hashes of lists
        self._parts: dict[NodeId, KeyNamed] = {}  # the last page of those that are being named
        self.strangers: dict[NodeId, Member] = {}

    def is_open(self, held: KeyAnswer) -> bool:
        """It lists others than this member, and has not said whom."""
        return held.listed != SAME and held.listed not in self._named

    def aligned(self, held: KeyAnswer | None, listed: int) -> KeyAnswer | None:
        """An answer of a member all of whose list was asked."""
        return held if held is None or self.is_open(held) else replace(held, listed=listed)

    def to_ask(self, held: Mapping[NodeId, KeyAnswer]) -> tuple[int, list[NodeId]]:
        """The next page, and by whom: one member for each list."""
        by_list = {each.listed: life for life, each in sorted(held.items(), reverse=True) if each.done and self.is_open(each)}
        asked = sorted(by_list.values())
        page = next((self._parts[life].page + 1 for life in asked if life in self._parts), 0)
        return page, [life for life in asked if page == 0 or life in self._parts]

    def question(self, page: int) -> Callable[[int], KeyNames]:
        return lambda serial: KeyNames(serial, page)

    def take(self, held: dict[NodeId, KeyAnswer], asked: Iterable[NodeId], answers: Mapping[NodeId, object]) -> None:
        """A page of each. A list that has changed meanwhile is begun anew."""
        for life in asked:
            former, part = self._parts.pop(life, None), answers.get(life)
            if not isinstance(part, KeyNamed) or part.of > PAGES_MAX or not _follows(former, part):
                continue
            for each in part.members:
                self._meet(each)
            if part.page + 1 < part.of:
                self._parts[life] = part
            else:
                self._named.add(part.listed)
                held[life] = replace(held[life], listed=part.listed)

    def _meet(self, each: Named) -> None:
        life, (host, port) = each.id, each.address
        sound = life.name.isprintable() and life.name != "" and life.boot > 0 and host.isprintable() and host != "" and port > 0
        if sound and life.name != self._me.name and not self._weak.gave_up(life) and len(self.strangers) < MEMBERS_MAX:
            self.strangers[life] = Member(life, each.address, {})


def _follows(former: KeyNamed | None, part: KeyNamed) -> bool:
    """The next page of the same list, or the first of one."""
    return part.page == 0 if former is None else (part.page, part.listed) == (former.page + 1, former.listed)


def page_of(membership: Membership, message: KeyNames, listed: int) -> KeyNamed:
    """Part of what is listed here."""
    members = membership.members()
    first = message.page * NAMED_MAX
    pages = max(1, -(-len(members) // NAMED_MAX))
    named = tuple(Named(each.id, each.address) for each in members[first : first + NAMED_MAX])
    return KeyNamed(message.serial, message.page, pages, listed, named)
