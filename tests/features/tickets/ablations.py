"""Tickets with one rule taken out: each must be caught by a checker or by a directed schedule.  Spec: tickets 8 (E4).

Those that the specification names are in ``holdfast.features.tickets.lab.mutations``; here are more.
"""

from __future__ import annotations

from contextlib import ExitStack

from msgspec.structs import replace

from holdfast.features.tickets.lab.mutations import (
    amnesic_seat,
    counts_from_receipt,
    identity_without_token,
    ignores_busy,
    ignores_foreign,
    ignores_nxt,
    leave_builds_on_val,
    lives_confused,
    max_deadline_at_move,
    no_identity,
)
from holdfast.features.tickets.protocol import care, moving
from holdfast.features.tickets.protocol.coordinator import Coordinator
from holdfast.features.tickets.protocol.values import Next
from holdfast.kit.keeper import Keeper
from holdfast.lab.mutation import Mutation, put, without

Ablation = Mutation

__all__ = [
    "Ablation",
    "amnesic_seat",
    "counts_from_receipt",
    "counts_what_waited",
    "forgets_fence",
    "identity_without_token",
    "ignores_busy",
    "ignores_foreign",
    "ignores_nxt",
    "leave_builds_on_val",
    "leaves_the_dead",
    "lives_confused",
    "loses_silently",
    "max_deadline_at_move",
    "moves_without_writing",
    "never_lapses",
    "no_identity",
    "no_restart_wait",
    "without",
]


def no_restart_wait(stack: ExitStack) -> None:
    """5.2, F13: a restarted seat takes no grant to be running."""
    put(stack, Keeper, "open", lambda self, *, fresh, since=None: setattr(self, "_opens_at", self._host.now))


def moves_without_writing(stack: ExitStack) -> None:
    """D4: the new set counts without being written to the old one (the paper's L_p := R)."""

    def move(self: moving.Mover) -> None:
        nxt = Next(self._it.writer.newest().seq + 1, self._wanted())
        self._moved_at = self._it.host.now
        self._on_begun(replace(self._it.writer.newest(), nxt=nxt))

    put(stack, moving.Mover, "_move", move)


def never_lapses(stack: ExitStack) -> None:
    """F9, D5: nobody compares its deadline with the clock before it does what came."""
    put(stack, Coordinator, "lapsed", property(lambda self: False))
    put(stack, Coordinator, "_arm_deadline", lambda self: None)


def counts_what_waited(stack: ExitStack) -> None:
    """D5 as the paper has it: what waited in a buffer counts from when it is read, and nothing is looked at before."""
    counts_from_receipt(stack)
    never_lapses(stack)


def forgets_fence(stack: ExitStack) -> None:
    """G3: a merge does not take over the other arc's fence."""
    put(stack, care, "merge", lambda val, child: replace(val, length=val.length + child.length, succ=child.succ))


def leaves_the_dead(stack: ExitStack) -> None:
    """5.6, I10: nobody takes in the arc of a successor that is over."""
    put(stack, care.Care, "absorb", lambda self: None)


def loses_silently(stack: ExitStack) -> None:
    """9.5: nobody is told of a cell that cannot be read."""
    put(stack, care.Care, "lost", lambda self, rid: self.later(self._it.config.suspect_after))
