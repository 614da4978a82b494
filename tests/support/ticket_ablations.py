"""Tickets with one rule taken out: each must be caught by a checker or by a directed schedule.  Spec: tickets 8 (E4)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

from msgspec.structs import replace

from holdfast import node
from holdfast.host import NodeId
from holdfast.kit.keeper import Keeper
from holdfast.lab import network
from holdfast.protocols.tickets import care, moving
from holdfast.protocols.tickets.candidate import Candidate
from holdfast.protocols.tickets.coordinator import Coordinator
from holdfast.protocols.tickets.desk import End, Voter
from holdfast.protocols.tickets.guardian import Guardian
from holdfast.protocols.tickets.leaving import Leaver
from holdfast.protocols.tickets.messages import Alive
from holdfast.protocols.tickets.pool import Pool
from holdfast.protocols.tickets.values import LeaseId, Next, Place, Val, Who
from holdfast.protocols.tickets.writing import Writer

Ablation = Callable[[ExitStack], None]


def put(stack: ExitStack, where: Any, name: str, instead: Any) -> None:
    stack.enter_context(patch.object(where, name, instead))


@contextmanager
def without(ablation: Ablation) -> Iterator[None]:
    """The rule is out while this lasts."""
    with ExitStack() as stack:
        ablation(stack)
        yield


def ignores_busy(stack: ExitStack) -> None:
    """5.1 PREPARE: promises while a grant of another one runs."""
    put(stack, Guardian, "_is_holder", lambda self, cell, prepare: True)


def counts_from_receipt(stack: ExitStack) -> None:
    """5.3, D5: the lease counts from when the answer came."""
    original = Coordinator.on_alive

    def on_alive(self: Coordinator, source: Voter, alive: Alive) -> None:
        self._stamp = self.host.now
        original(self, source, replace(alive, stamp=self.host.now))

    put(stack, Coordinator, "on_alive", on_alive)


def amnesic_seat(stack: ExitStack) -> None:
    """5.2, D20: a restarted seat does not read its journal."""
    put(stack, Guardian, "_load", lambda self: None)


def lives_confused(stack: ExitStack) -> None:
    """D18, F3: answers to a former life, whose op ids began at 1 too, are counted by the next one."""
    for module in (node, network):
        put(stack, module, "life_of", lambda it: 1)


def no_restart_wait(stack: ExitStack) -> None:
    """5.2, F13: a restarted seat takes no grant to be running."""
    put(stack, Keeper, "open", lambda self, *, fresh: setattr(self, "_opens_at", self._host.now))


def ignores_nxt(stack: ExitStack) -> None:
    """D4: an excluder retires the cell in the set that its own pointer names."""
    original = care.Absorption._retire

    def retire(self: care.Absorption, end: End) -> None:
        yes = tuple((source, replace(each, val=each.val and replace(each.val, nxt=None))) for source, each in end.yes)  # type: ignore[attr-defined]
        original(self, end._replace(yes=yes))

    put(stack, care.Absorption, "_retire", retire)


def identity_without_token(stack: ExitStack) -> None:
    """D12: an ownership is the lease id alone, and attempts of one candidate share it."""
    put(stack, Val, "who", property(lambda self: Who(self.holder, 0)))
    one: dict[NodeId, LeaseId] = {}

    def lease_for(self: Pool, candidate: Candidate) -> LeaseId:
        lease = one.setdefault(self.desk.me.life, LeaseId(self.desk.me.life, 1))
        self._leases[lease] = candidate, set()
        return lease

    put(stack, Pool, "lease_for", lease_for)


def no_identity(stack: ExitStack) -> None:
    """D12 without H102: an agent uses one lease id for everything, an ownership is the lease id alone, and so is a foreign ballot."""
    identity_without_token(stack)
    ignores_foreign(stack)


def max_deadline_at_move(stack: ExitStack) -> None:
    """D15, H103: what the old set grants meanwhile counts on."""

    def replace_guardians(self: Coordinator, cfg: int, places: tuple[Place, ...], stamps: dict[Voter, float]) -> None:
        self.cfg, self.places, self.stamps = cfg, places, dict(stamps)
        self._extend()

    put(stack, Coordinator, "replace_guardians", replace_guardians)  # deadline.extend instead of deadline.replace
    put(stack, Coordinator, "limited", lambda self, stamp: stamp)


def leave_builds_on_val(stack: ExitStack) -> None:
    """D16: the last write does not wait for the one in flight, and is built on the version before it."""

    def begin(self: Leaver) -> None:
        it = self._it
        it._end_phase()
        it.busy, it.writer._done, it.writer.sent = "", None, it.writer.val
        original(self)

    original = Leaver.begin
    put(stack, Leaver, "begin", begin)


def ignores_foreign(stack: ExitStack) -> None:
    """H102: a leaver that finds its own words under another one's ballot goes on."""
    put(stack, Writer, "_foreign", lambda self, accepted: False)


def moves_without_writing(stack: ExitStack) -> None:
    """D4: the new set counts without being written to the old one (the paper's L_p := R)."""

    def move(self: moving.Mover) -> None:
        nxt = Next(self._it.writer.newest().seq + 1, self._wanted())
        self._moved_at = self._it.host.now
        self._on_begun(replace(self._it.writer.newest(), nxt=nxt))

    put(stack, moving.Mover, "_move", move)


def forgets_fence(stack: ExitStack) -> None:
    """G3: a merge does not take over the other arc's fence."""
    put(stack, care, "merge", lambda val, child: replace(val, length=val.length + child.length, succ=child.succ))
