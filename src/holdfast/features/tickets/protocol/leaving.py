"""Leaving: one last write to the own cell, after ownership has stopped.  Spec: tickets 5.8; D8, D16; paper 3.1 (cleave).

To the first who waits, else FREE (the anchor), else RETIRED. If the write does not get through nothing is lost: the lease runs out and
exclusion does the same job. So a leaver waits for no other, and all may leave at once.

That the ticket is free is announced when the write has ended, and not at all if it went to a candidate that waited: the next owner
announces itself under a larger token (docs/decisions.md H130).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from holdfast.features.tickets.protocol.facts import HandedOver
from holdfast.features.tickets.protocol.messages import AckCjoin, Cleave
from holdfast.features.tickets.protocol.serving import HANDED_ON, Waiter
from holdfast.features.tickets.protocol.values import Status, Vacant, Val

if TYPE_CHECKING:
    from holdfast.features.tickets.protocol.coordinator import Coordinator


class Leaver:
    """The end of one coordinator."""

    def __init__(self, coordinator: Coordinator) -> None:
        self._it = coordinator
        self._begun = False
        self.vacating = False  # the anchor is about to be FREE
        self.handed_on = False  # another agent has it now

    def begin(self) -> None:
        """Called when ownership has stopped, and again when the operation in flight is finished."""
        it = self._it
        if not self._begun:
            self._begun = True
            it.after("leave", it.config.leave_timeout, it.die)
        if it.busy:
            return
        it.busy = "leave"
        waiting = it.server.fresh()
        other = None if waiting else it.pool.longest_waiting()
        if waiting:
            self._hand_over(waiting[0], [each for each in waiting[1 : HANDED_ON + 1] if each.wait])
        elif other is not None:
            self._hand_over(other, ())
        else:
            self.vacating = it.anchor
            it.writer.write(lambda val: given_up(val, anchor=it.anchor), self._on_given_up)

    def _hand_over(self, first: Waiter, rest: Sequence[Waiter]) -> None:
        it = self._it
        waiters, stamps = tuple((each.lease, each.agent.address) for each in rest), tuple(each.stamp for each in rest)

        def written(val: Val) -> None:
            it.desk.counts["handovers"] += 1
            it.host.emit(HandedOver(it.pool.name, it.head, first.lease))
            self.handed_on = True
            it.pool.moved(it.rid, first.agent)
            ack = AckCjoin(first.lease, it.key, it.places, it.ballot, val, it.pred, waiters, first.stamp, stamps)
            it.pool.grant(ack, first.agent)
            it.die()

        it.writer.write(lambda val: handed_over(val, first), written)

    def _on_given_up(self, val: Val) -> None:
        it = self._it
        if it.anchor:
            it.pool.gave_up(Vacant(it.ballot, it.writer.era, val))
        else:
            it.desk.tell(it.pred, Cleave(it.pool.name, it.rid, head=it.head))
        it.die()


def handed_over(val: Val, to: Waiter) -> Val:
    token = val.fence + 1
    return replace(val, holder=to.lease, token=token, fence=token, address=to.agent.address, nxt=None)


def given_up(val: Val, *, anchor: bool) -> Val:
    return replace(val, holder=None, status=Status.FREE if anchor else Status.RETIRED, nxt=None)
