"""Gossip with one rule taken out: a lab that cannot show a break proves nothing by not seeing one.  Spec: gossip 7 (ablations).

Each is a change of the code that lasts as long as ``without``; no setting reaches it. Rules that are switches of the laboratory
(``Rules``) are thrown for every node that is made in that time.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

from msgspec.structs import replace

from holdfast.features.gossip.lab.scenarios.mixed import MixedScenario
from holdfast.features.gossip.protocol.merge import Merge
from holdfast.features.gossip.protocol.messages import Rumour
from holdfast.features.gossip.protocol.node import GossipNode
from holdfast.features.gossip.protocol.rules import Rules
from holdfast.features.gossip.protocol.rumours import Rumours
from holdfast.features.gossip.protocol.suspicion import Suspicions
from holdfast.features.gossip.protocol.table import Entry
from holdfast.features.gossip.protocol.targets import Shuffle
from holdfast.host import NodeId
from holdfast.lab.mutation import Mutation, put


def _rule(stack: ExitStack, **changes: bool) -> None:
    make = GossipNode.__init__

    def make_without(self: GossipNode, *arguments: Any, rules: Rules | None = None, **options: Any) -> None:
        make(self, *arguments, rules=replace(rules or Rules(), **changes), **options)

    put(stack, GossipNode, "__init__", make_without)


def tables_kill(stack: ExitStack) -> None:
    """D5: what a table holds to be dead is dead, and is not asked (H353)."""
    _rule(stack, tables_accuse=False, hearsay_asks=False)


def hearsay_kills(stack: ExitStack) -> None:
    """D16: one that another member has buried is not asked here."""
    _rule(stack, hearsay_asks=False)


def own_probe_confirms(stack: ExitStack) -> None:
    """D7: the next probe of the same member counts as another accusation."""
    _rule(stack, own_once=False)


def no_last_call(stack: ExitStack) -> None:
    """D16: a suspected member is not asked once more."""
    _rule(stack, last_call=False)


def stale_unanswered(stack: ExitStack) -> None:
    """D16: an accusation that was refuted already is not answered."""
    _rule(stack, answer_stale=False)


def no_pause_guard(stack: ExitStack) -> None:
    """5.8: who was away goes on judging where it stood."""
    _rule(stack, pause_guard=False)


def no_reconnect(stack: ExitStack) -> None:
    """D9: tombstones are not tried again, and unlisted seeds are not either."""
    _rule(stack, reconnect=False, standing_seeds=False)


def seeds_while_alone(stack: ExitStack) -> None:
    """D9: seeds are tried only while no other member is listed."""
    _rule(stack, standing_seeds=False)


def rows_in_any_order(stack: ExitStack) -> None:
    """D18: rows that come later replace those that are here."""
    _rule(stack, rows_by_version=False)


def same_boot(stack: ExitStack) -> None:
    """D1, F1: a process that starts again takes the boot of its former life."""

    def again(self: MixedScenario, place: str, former: NodeId | None, setup: Any) -> NodeId:
        return NodeId(place, 1)

    put(stack, MixedScenario, "life", again)


# Beyond the list of the specification: for checkers that nothing above sets off.


def any_rank(stack: ExitStack) -> None:
    """D2: the last word counts, whatever its inc."""
    same_life = Merge._same_life

    def believe(self: Merge, known: Entry, rumour: Rumour, source: NodeId) -> None:
        if rumour.inc < known.inc and rumour.rows is None:
            self._change(known, rumour, source)
        else:
            same_life(self, known, rumour, source)

    put(stack, Merge, "_same_life", believe)


def no_limit(stack: ExitStack) -> None:
    """5.6: rumours are told for ever."""
    put(stack, Rumours, "limit", property(lambda self: 1000))


def any_target(stack: ExitStack) -> None:
    """5.3: each probe goes to any member, and no round is kept."""

    def draw(self: Shuffle) -> Entry | None:
        found = self._core.table.draw(self._core.host.random, 1, self._core.is_other)
        return found[0] if found else None

    put(stack, Shuffle, "next", draw)


def hasty(stack: ExitStack) -> None:
    """5.4: every suspicion ends after a quarter of its time."""
    begin = Suspicions.begin

    def begin_late(self: Suspicions, each: Entry, accusers: Any) -> None:
        begin(self, each, accusers)
        found = self._open[each.id.name]
        found.end_at = found.start + found.timeout / 4
        self._arm(found)

    put(stack, Suspicions, "begin", begin_late)


ABLATIONS: dict[str, Mutation] = {
    "D1": same_boot,
    "D5": tables_kill,
    "D7": own_probe_confirms,
    "D9 reconnect": no_reconnect,
    "D9 seeds": seeds_while_alone,
    "D16 last call": no_last_call,
    "D16 hearsay": hearsay_kills,
    "D16 stale": stale_unanswered,
    "D18": rows_in_any_order,
    "5.8": no_pause_guard,
}
