"""Members of the own list that have another one: noticed, told, asked again.  Spec: limits 5.11, H272.

For limiters without agreed views. A member with another list is not gossiped with; where lists have differed for longer
than news of a member takes, the share goes back to R/n.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from math import inf

from holdfast.features.limits.protocol.config import LimitsConfig
from holdfast.features.limits.protocol.messages import GossipAck, OfInstance, Probe
from holdfast.features.limits.protocol.standing import Standing, same_list
from holdfast.host import Host, NodeId

ASKED_MAX = 4  # members with another list that are asked in one epoch: one equal answer of each is enough
FORGET_SECONDS = 2.0  # lists that were equal for so long do not differ any more


class MemberLists:
    """The lists of the others, as far as they are not the own one."""

    def __init__(self, host: Host, config: LimitsConfig, standing: Standing, counts: Counter[str]) -> None:
        self._host, self._config, self._standing, self._counts = host, config, standing, counts
        self._since: float | None = None
        self._equal_at = -inf  # when the last of them was seen to have the same list again
        self._others: dict[NodeId, None] = {}

    @property
    def others(self) -> Iterable[NodeId]:
        """Members with another list."""
        return self._others.keys()

    def begin(self) -> None:
        """Another own list, or another round of it. If others differ from this one as well, it goes on."""
        if self._others:
            self._others.clear()
            self._equal_at = self._host.now

    def includes(self, source: NodeId, message: OfInstance) -> bool:
        """It is of the own list and round. Members with another list are told so; one with the same may be a round ahead, or behind."""
        standing = self._standing
        if standing.inst is None or not standing.includes(source):
            self._counts["stranger"] += 1
            return False
        theirs = message.newer if isinstance(message, GossipAck) and message.newer is not None else message.inst
        if theirs == standing.inst:
            self._agree(source)
            return True
        if not same_list(theirs, standing.inst):
            self._counts["other_list"] += 1
            self._note(source)
        elif theirs > standing.inst and standing.begin_round(theirs):
            return message.inst == theirs
        if not isinstance(message, GossipAck):
            self._host.send(source, GossipAck(message.inst, 0, standing.inst))
        return False

    def look(self) -> None:
        """Once an epoch: those with another list are asked whether it is the same by now."""
        inst = self._standing.inst
        if inst is not None and self._standing.leased:
            for peer in list(self._others)[:ASKED_MAX]:
                self._host.send(peer, Probe(inst, 1, 0))
        is_long = self._since is not None and self._host.now - self._since >= self._config.differ_timeout
        self._standing.part(apart=bool(self._others) and is_long)

    def _note(self, peer: NodeId) -> None:
        if self._since is None or (not self._others and self._host.now - self._equal_at > FORGET_SECONDS):
            self._since = self._host.now
        self._others[peer] = None

    def _agree(self, peer: NodeId) -> None:
        if peer in self._others:
            del self._others[peer]
            if not self._others:
                self._equal_at = self._host.now
