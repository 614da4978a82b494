"""Where a message goes: is it meant for the present membership, and which part handles it?  Spec: ring 3, 5.7."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from holdfast.features.ring.protocol import messages as m
from holdfast.host import Message, NodeId

if TYPE_CHECKING:
    from holdfast.features.ring.protocol.ring import RingNode

Handler = Callable[[NodeId, Any], None]

# What a candidate takes part in; everything else is for members.
OF_CANDIDATES = (m.LeaseRequest, m.LeaseAck, m.LeaseNak, m.Leave, m.Gone, m.Locked)
# What a tombstoned id may still say: a departed arbitrator's vote binds, and who leaves may say so (5.7).
OF_THE_GONE = (m.Vote, m.Leave, m.Gone, m.Unlock, m.Arb)
TO_ANYBODY = (m.Arb, m.Lock, m.Propose)  # one message for several receivers; the answers name the id that gave them


def handlers_of(ring: RingNode) -> dict[type[Message], Handler]:
    return {
        m.LeaseRequest: ring.leases.on_request, m.LeaseAck: ring.leases.on_ack, m.LeaseNak: ring.leases.on_nak,
        m.Relay: ring.leases.on_relay, m.Relayed: ring.leases.on_relayed, m.RelayedAck: ring.leases.on_relayed_ack,
        m.ArbUpgrd: ring.groups.on_upgrade, m.ArbUpgrdAck: ring.groups.on_upgrade_ack,
        m.Dissolve: ring.groups.on_dissolve, m.Dissolved: ring.groups.on_dissolved, m.Want: ring.neighbours.on_want,
        m.Arb: ring.arbitration.on_arb, m.Vote: ring.arbitration.on_vote, m.Here: ring.arbitration.on_here,
        m.Leave: ring.departing.on_leave, m.Gone: ring.departing.on_gone, m.Gen: ring.fencing.on_gen,
        m.Discover: ring.door.on_discover, m.Discovered: ring.scouting.on_discovered,
        m.Lock: ring.door.on_lock, m.Locked: ring.joiner.on_locked, m.Unlock: ring.door.on_unlock,
        m.Vouch: ring.orphans.on_vouch, m.Vouched: ring.orphans.on_vouched,
        m.FoundAsk: ring.founding.on_ask, m.FoundPromise: ring.founding.on_promise,
        m.Propose: ring.proposals.on_propose, m.Proposed: ring.proposals.on_proposed,
    }  # fmt: skip


def is_meant_for(ring: RingNode, source: NodeId, message: m.OfRing) -> bool:
    """True if the present membership handles it. If not, its sender has been answered where an answer helps."""
    if message.ring != ring.ring or (message.to != ring.id.inc and not (message.to == 0 and isinstance(message, TO_ANYBODY))):
        ring.departing.on_stray(source, message)
        return False
    if ring.is_member:
        if message.source in ring.list.gone and not isinstance(message, OF_THE_GONE):
            certain = ring.list.gone[message.source][0].certain
            ring.raw.send(source, m.Gone(*ring.head(message.source), message.source, certain))
            return False
        return True
    if ring.is_joining and isinstance(message, OF_CANDIDATES):
        return True
    ring.departing.on_stray(source, message)
    return False
