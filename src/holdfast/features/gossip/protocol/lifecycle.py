"""From the first knock to the last goodbye: joining, being a member, settling, leaving.  Spec: gossip 5.7, D10; H43.

A node whose seeds are the addresses of others is a member when it has seen the whole table of another one. Without
such seeds it is the group.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum

from holdfast.events import Joined, Suspected
from holdfast.features.gossip.protocol.contact import Contact
from holdfast.features.gossip.protocol.core import Core
from holdfast.features.gossip.protocol.facts import BecameMember, JoinRetry, Settled
from holdfast.features.gossip.protocol.messages import Gossip, Status
from holdfast.features.gossip.protocol.myself import Myself
from holdfast.features.gossip.protocol.rumours import Rumours
from holdfast.features.gossip.protocol.sync import Syncs
from holdfast.features.gossip.protocol.table import Base, entry
from holdfast.host import Address, NodeId, Timer

SETTLED_ROW = "gossip:settled"
NOT_YET, YES = b"0", b"1"  # of that row: there is room for it from the beginning
GOODBYES = 3  # rounds; the second and third repair what was lost
GOODBYE_FANOUTS = 3  # of gossip, in each of them
GOODBYE_PERIODS = 2  # in T: so long a leaving member answers probes
FANOUT_WITHOUT_GOSSIP = 3
BACKOFF_MAX = 32  # doublings: the delay is cut to the reconnect interval long before

State = Enum("State", ["NEW", "JOINING", "MEMBER", "LEAVING", "LEFT"])  # LEFT is final for a life


class Lifecycle:
    """Where this life stands. ``begin`` and ``end`` start and stop the parts that probe and gossip."""

    def __init__(
        self, core: Core, myself: Myself, rumours: Rumours, contact: Contact, syncs: Syncs, *,
        begin: Callable[[], None], end: Callable[[], None],
    ) -> None:  # fmt: skip
        self._core, self._myself, self._rumours, self._contact, self._syncs = core, myself, rumours, contact, syncs
        self._begin, self._end = begin, end
        self.state = State.NEW
        self.member_since = core.host.now
        self.settled_at: float | None = None
        self._attempt = 0
        self._timer: Timer | None = None  # of the state: the next knock, the next look at whether it is settled, the next goodbye

    @property
    def wanted(self) -> bool:
        return self.state in (State.JOINING, State.MEMBER)

    @property
    def left(self) -> bool:
        return self.state in (State.NEW, State.LEFT)

    @property
    def is_over(self) -> bool:
        return self.state is State.LEFT

    @property
    def waits_for(self) -> str:
        if self.state is State.JOINING:
            return f"a member at one of {len(self._contact.other_seeds)} seeds and {len(self._contact.known)} known addresses"
        if self.state in (State.LEAVING, State.LEFT):
            return "another process: this life has left its group, which is final"
        return ""

    def join(self) -> None:
        """A life that has left does not come back (gossip G7)."""
        if self.state is not State.NEW:
            return
        core = self._core
        self.state = State.JOINING
        core.active = True
        formed = core.n > 1  # in the laboratory, before it began
        self._myself.begin()
        self._begin()
        if formed or not self._contact.other_seeds:
            self._become_member()
            self._contact.knock_at_all()
        else:
            self._on_knock()
        if not formed:
            self._rumours.put(self._myself.rumour())

    def on_complete(self, peer: NodeId) -> None:
        """The whole table of another one is here."""
        if self.state is State.JOINING and self._core.table.lists(peer):
            self._become_member()
            self._rumours.put(self._myself.rumour())  # Once more: until now there was hardly a member to tell it to.

    def leave(self) -> None:
        if self.wanted and self._core.table.size == 1:
            self._core.set_member(False)
            self._stop(State.NEW)  # No member has ever listed it.
        elif self.wanted:
            self.stop()
            self._end()
            self.state = State.LEAVING
            self._core.set_member(False)
            self._core.is_leaving = True
            self._myself.say_goodbye()
            self._on_goodbye(GOODBYES)
            self._core.host.after(GOODBYE_PERIODS * self._core.config.period, self._on_left)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    # Becoming a member.

    def _become_member(self) -> None:
        core = self._core
        self.stop()
        self.state = State.MEMBER
        core.set_member(True)
        self.member_since = core.host.now
        core.emit(BecameMember(core.n))
        # What a laboratory gave all members to begin with is news to none of them.
        new = [each for each in core.table.own.values() if each is not None and each.listed]
        for each in new:
            core.announce(Joined(each.member))
        for each in new:
            if each.status is Status.SUSPECT:
                core.announce(Suspected(each.member))
        if self._myself.rows.get(SETTLED_ROW) == YES:
            self.settled_at = core.host.now  # The laboratory formed this group before.
        else:
            self._timer = core.host.after(core.config.settling(core.n), self._on_settling)

    def _on_knock(self) -> None:
        core = self._core
        self._contact.knock_at_all()
        delay = min(core.config.reconnect, core.config.period * 2 ** min(self._attempt, BACKOFF_MAX))
        if self._attempt:
            core.emit(JoinRetry(self._attempt, delay))
        self._attempt += 1
        self._timer = core.host.after(delay, self._on_knock)

    # Settling.

    def _on_settling(self) -> None:
        """One more comparison, long enough after the join that the news of it has reached all (gossip D10)."""
        core = self._core
        if core.n == 1:
            self._settle()
            return
        self._timer = core.host.after(max(core.config.period, core.config.settling(core.n)), self._on_settling)
        for each in core.table.draw(core.host.random, 1, core.is_other):
            self._syncs.compare(each.member, self._on_compared)

    def _on_compared(self, peer: NodeId) -> None:
        if self.state is State.MEMBER and self.settled_at is None:
            self._settle()

    def _settle(self) -> None:
        self.stop()
        now = self._core.host.now
        self.settled_at = now
        self._core.emit(Settled(now - self.member_since))
        self._myself.publish(SETTLED_ROW, YES)

    # Leaving.

    def _on_goodbye(self, left: int) -> None:
        core = self._core
        fanout = GOODBYE_FANOUTS * (core.config.gossip_fanout or FANOUT_WITHOUT_GOSSIP)
        goodbye = Gossip((self._myself.rumour(),))
        for each in core.table.draw(core.host.random, fanout, core.is_other):
            core.put(each.member, goodbye)
        if left > 1:
            self._timer = core.host.after(core.config.interval, lambda: self._on_goodbye(left - 1))

    def _on_left(self) -> None:
        self._stop(State.LEFT)

    def _stop(self, state: State) -> None:
        self.stop()
        self._end()
        self._core.outbox.clear()
        self.state = state
        self._core.active = False


def formed(members: Mapping[NodeId, Address]) -> Base:
    """A group whose members have settled, for many members of one laboratory to begin with (gossip D22)."""
    rows = {SETTLED_ROW: YES}
    return Base(entry(life, address, 1, Status.ALIVE, rows, 1) for life, address in members.items())
