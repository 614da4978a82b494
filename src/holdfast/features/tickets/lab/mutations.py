"""Tickets with one rule taken out, for tickets/E4 and for tests: a lab that cannot show a break proves nothing by not seeing one.

Spec: tickets 8 (E4). Each is a change of the code that lasts as long as ``without``; no setting reaches it.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

from msgspec.structs import replace

from holdfast import node
from holdfast.features.tickets.protocol import care
from holdfast.features.tickets.protocol.candidate import Candidate
from holdfast.features.tickets.protocol.coordinator import Coordinator
from holdfast.features.tickets.protocol.desk import End
from holdfast.features.tickets.protocol.guardian import Guardian
from holdfast.features.tickets.protocol.leaving import Leaver
from holdfast.features.tickets.protocol.messages import Alive, Promised
from holdfast.features.tickets.protocol.pool import Pool
from holdfast.features.tickets.protocol.values import LeaseId, Place, Voter, Who
from holdfast.features.tickets.protocol.writing import Writer
from holdfast.host import Message, NodeId
from holdfast.kit.phase import Phase
from holdfast.lab import network
from holdfast.lab.mutation import Mutation, put

# Those that random runs find.


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
    """D18, F3: answers to a former life, whose op ids began at 1 too, are counted by the next one; whatever was asked (H175)."""
    for module in (node, network):
        put(stack, module, "life_of", lambda it: 1)
    original = Phase.take

    def take(self: Phase[Any], voter: Any, answer: Message, *, yes: bool, era: int) -> bool:
        self._expects = (Message,)
        return original(self, voter, answer, yes=yes, era=era)

    put(stack, Phase, "take", take)


# Those that need a schedule made for them.


def ignores_nxt(stack: ExitStack) -> None:
    """D4: an excluder retires the cell in the set that its own pointer names."""
    original = care.Absorption._retire

    def retire(self: care.Absorption, end: End) -> None:
        yes = [(source, each) for source, each in end.yes if isinstance(each, Promised)]
        blind = tuple((source, replace(each, val=each.val and replace(each.val, nxt=None))) for source, each in yes)
        original(self, end._replace(yes=blind))

    put(stack, care.Absorption, "_retire", retire)


def no_identity(stack: ExitStack) -> None:
    """D12 and H102: an agent uses one lease id for everything, an ownership is the lease id alone, and so is a foreign ballot."""
    identity_without_token(stack)
    ignores_foreign(stack)


def identity_without_token(stack: ExitStack) -> None:
    """D12: an ownership is the lease id alone, and attempts of one candidate share it."""
    put(stack, Who, "__eq__", lambda self, other: other is not None and self.holder == other.holder)
    put(stack, Who, "__ne__", lambda self, other: other is None or self.holder != other.holder)
    put(stack, Who, "__hash__", lambda self: hash(self.holder))
    one: dict[NodeId, LeaseId] = {}

    def lease_for(self: Pool, candidate: Candidate) -> LeaseId:
        lease = one.setdefault(self.desk.me.life, LeaseId(self.desk.me.life, 1))
        self._leases[lease] = candidate, set()
        return lease

    put(stack, Pool, "lease_for", lease_for)


def ignores_foreign(stack: ExitStack) -> None:
    """H102: a leaver that finds its own words under another one's ballot goes on."""
    put(stack, Writer, "_foreign", lambda self, accepted: False)


def max_deadline_at_move(stack: ExitStack) -> None:
    """D15, H103: what the old set grants meanwhile counts on."""

    def replace_guardians(self: Coordinator, cfg: int, places: tuple[Place, ...], stamps: dict[Voter, float]) -> None:
        self.cfg, self.places, self.stamps = cfg, places, dict(stamps)
        self._extend()

    put(stack, Coordinator, "replace_guardians", replace_guardians)  # deadline.extend instead of deadline.replace
    put(stack, Coordinator, "limited", lambda self, stamp: stamp)


def leave_builds_on_val(stack: ExitStack) -> None:
    """D16: the last write does not wait for the one in flight, and is built on the version before it."""
    original = Leaver.begin

    def begin(self: Leaver) -> None:
        it = self._it
        it._end_phase()
        it.busy, it.writer._done, it.writer.sent = "", None, it.val
        original(self)

    put(stack, Leaver, "begin", begin)


RANDOM: Mapping[str, Mutation] = {
    "ignore busy": ignores_busy,
    "count from receive time": counts_from_receipt,
    "amnesic seat": amnesic_seat,
    "op counter restarts": lives_confused,
}
DIRECTED: Mapping[str, Mutation] = {
    "ignore nxt": ignores_nxt,
    "identity without token": no_identity,
    "max deadline at a move": max_deadline_at_move,
    "leave builds on val": leave_builds_on_val,
}
