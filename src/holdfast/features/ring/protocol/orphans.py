"""Orphans: members without a monitor.  Spec: ring D19, T_orph.

If more than k adjacent members vanish at once, no member is left that could condemn the middle ones, and all lists would keep them for
ever. A member with a neighbour that it cannot meet asks all. A member that is cut off from the majority leaves before the
majority removes a member. This is the only removal that is not certain.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.features.ring.protocol.ids import RingId
from holdfast.features.ring.protocol.messages import Vouch, Vouched
from holdfast.host import NodeId
from holdfast.kit.outbox import Outbox

if TYPE_CHECKING:
    from holdfast.features.ring.protocol.ring import RingNode

ISOLATED, REMOVED = 1.5, 2.0  # in T_orph
RESET = 0.5  # in T_orph: a member vouches for it


class Orphans:
    """Questions about unmet neighbours."""

    def __init__(self, ring: RingNode) -> None:
        self._ring = ring
        self._outbox = Outbox(ring.host)
        self._denied: dict[RingId, set[RingId]] = {}  # about whom -> who answered that it has no pair with it

    def reset(self) -> None:
        self._denied.clear()
        self._outbox.clear()

    def on_tick(self) -> None:
        """Every T_l."""
        ring = self._ring
        unmet = ring.neighbours.unmet
        if not unmet and not self._denied:
            return
        self._denied = {about: who for about, who in self._denied.items() if about in unmet}
        t_orph, now = ring.config.t_orph, ring.raw.now
        for about, since in tuple(unmet.items()):
            if not ring.is_member:
                return
            age = now - since
            if age < t_orph:
                self._denied.pop(about, None)
                continue
            denied = self._denied.setdefault(about, {ring.id})
            enough = 2 * sum(1 for each in ring.list.ids if each in denied) > len(ring.list)
            if age >= ISOLATED * t_orph and not enough:
                ring.depart("isolated")
            elif age >= REMOVED * t_orph and enough:
                ring.changes.remove(about, certain=False, reason="orphan")
            else:
                self._ask(about)

    def _ask(self, about: RingId) -> None:
        ring = self._ring
        for each in ring.list.ids:
            if each not in (ring.id, about):
                peer = ring.list.peer(each)
                if peer is not None:
                    self._outbox.put(peer.node, Vouch(*ring.head(each), about))

    def on_vouch(self, source: NodeId, message: Vouch) -> None:
        ring = self._ring
        if not ring.is_member:
            return
        pair = ring.pairs.get(message.about)
        active = message.about == ring.id or (pair is not None and pair.entitled)
        ring.raw.send(source, Vouched(*ring.head(message.source), message.about, active))

    def on_vouched(self, source: NodeId, message: Vouched) -> None:
        del source
        ring = self._ring
        about, denied = message.about, self._denied.get(message.about)
        if denied is None or about not in ring.neighbours.unmet or message.source not in ring.list:
            return
        if message.active:
            ring.neighbours.unmet[about] = ring.raw.now - RESET * ring.config.t_orph
            del self._denied[about]
        else:
            denied.add(message.source)
