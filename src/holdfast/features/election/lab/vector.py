"""The worked example of paper 004, section IV-D and Figure 2, answer by answer.  Spec: election 6 (worked vector).

Five nodes with hash ranks 0 to 4; x = y = 2, c = 2, f = 0; node 4 asks 4, 0 and 1. Each node's answer is made by the protocol from the list
and the metrics as printed; then node 4 takes the three answers in an order.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from msgspec.structs import replace

from holdfast.features.election.lab.clients import Client
from holdfast.features.election.lab.lists import Board, ScriptedLists
from holdfast.features.election.lab.ranking import by_rank
from holdfast.features.election.protocol import profiles
from holdfast.features.election.protocol.elections import Elections
from holdfast.features.election.protocol.facts import Nominated
from holdfast.features.election.protocol.messages import Query, Response
from holdfast.features.election.protocol.profiles import Profile
from holdfast.host import Address, Member, NodeId
from holdfast.kit.broadcast import Broadcast
from holdfast.kit.exchange import Exchange
from holdfast.lab.fake_host import FakeHost

METRICS: dict[str, dict[str, float]] = {
    "0": {"1": 2, "2": 1, "3": 4, "4": 0},
    "1": {"0": 5, "2": 0, "3": 2, "4": 1},
    "2": {"0": 2, "1": 2, "3": 3, "4": 1},
    "3": {"0": 3, "1": 0, "2": 2, "4": 1},
    "4": {"0": 0, "1": 1, "2": 0, "3": 2},
}
NODES = tuple(METRICS)
INITIATOR, ASKED = "4", ("4", "0", "1")
X = Y = 2
C, F = 2, 0
TRIES = 200


class Step(NamedTuple):
    """What the initiator holds after one answer."""

    source: str
    excluded: tuple[str, ...]
    candidates: tuple[str, ...]
    leaders: tuple[str, ...]
    notified: str  # "": the leader is the same as before


@cache
def election_name() -> str:
    """A name for which the hash ranks of the nodes are 0 to 4."""
    return next(name for name in (f"v{number}" for number in range(100_000)) if by_rank(name, NODES) == list(NODES))


class VectorNode:
    """One node on a fake host with the list and the metrics as printed."""

    def __init__(self, name: str, seed: int = 0, *, names_itself: bool = True) -> None:
        self.host = FakeHost(name, seed=seed)
        board = Board()
        found = profiles.paper("hybrid", c=C, f=F)
        profile = Profile(replace(found.config, x=X, y=Y), replace(found.rules, watch=False, names_itself=names_itself))
        self.lists = ScriptedLists(self.host, board)
        exchange = Exchange(self.host, Broadcast(self.host, self.lists))
        self.elections = Elections(self.host, self.lists, exchange, None, profile.config, rules=profile.rules)
        self.elections.start()
        self.elections.campaign(election_name(), 2.0, Client(self.host, election_name(), 2.0))
        mine = board.rows[self.host.me]
        board.settled.update(NodeId(other, 1) for other in NODES)
        self.lists.show({other: Member(NodeId(other, 1), Address(other, 1), mine) for other in NODES if other != name})
        self.lists.health = {NodeId(other, 1): value for other, value in METRICS[name].items()}

    def answer(self, query: Query) -> Response:
        """To that question."""
        self.host.sent.clear()
        self.elections.on_message(NodeId("asker", 1), query)
        self.host.pass_time(0.0)
        return next(message for _, message in self.host.sent if isinstance(message, Response))


def play(order: Sequence[str]) -> list[Step]:
    """The answers in that order."""
    initiator, query = _asking(order)
    answers = {name: VectorNode(name).answer(query) for name in ASKED}
    steps: list[Step] = []
    taken: list[str] = []
    for name in order:
        taken.append(name)
        before = _notified(initiator)
        initiator.elections.on_message(NodeId(name, 1), answers[name])
        after = _notified(initiator)
        excluded = {each.id.name for source in taken for each in answers[source].excluded}
        candidates = {each.id.name for source in taken for each in answers[source].candidates}
        told = after[-1] if len(after) > len(before) else ""
        leaders = tuple(sorted(candidates - excluded))
        steps.append(Step(name, tuple(sorted(excluded)), tuple(sorted(candidates)), leaders, told))
    return steps


def _asking(order: Sequence[str]) -> tuple[VectorNode, Query]:
    """Node 4 has asked. Whom it asks is drawn; the same three answer in any case."""
    initiator = VectorNode(INITIATOR)
    initiator.host.sent.clear()
    initiator.elections.elect(election_name())
    initiator.host.pass_time(0.0)
    query = next(message for _, message in initiator.host.sent if isinstance(message, Query))
    return initiator, query


def _notified(node: VectorNode) -> list[str]:
    """Who was nominated, in order; a nominee that is told once more that it is final does not count again."""
    found: list[str] = []
    for event in node.host.emitted:
        if isinstance(event, Nominated) and (not found or found[-1] != event.nominee.name):
            found.append(event.nominee.name)
    return found
