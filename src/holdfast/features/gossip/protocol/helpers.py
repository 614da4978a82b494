"""Who is asked about a member that does not answer.  Spec: gossip 5.2 step 4; SWIM 3, Medley."""

from __future__ import annotations

from holdfast.features.gossip.protocol.core import Core
from holdfast.features.gossip.protocol.distance import Distances
from holdfast.features.gossip.protocol.messages import Status
from holdfast.features.gossip.protocol.table import Entry
from holdfast.host import NodeId


def helpers_for(core: Core, distances: Distances, target: NodeId) -> list[Entry]:
    """So many ALIVE others, drawn uniformly; the nearer ones likelier where targets are chosen by distance."""

    def able(each: Entry) -> bool:
        return each.status is Status.ALIVE and each.id.name not in (core.name, target.name)

    k = core.config.k_indirect
    if core.config.target == "shuffle":
        return core.table.draw(core.host.random, k, able)
    others = [each for each in core.table.listed() if able(each)]
    # Efraimidis and Spirakis: the k largest of u^(1/w) are a draw without replacement by weight.
    keys = [core.host.random.random() ** (1.0 / weight) for weight in distances.weights(others)]
    chosen = sorted(range(len(others)), key=lambda at: keys[at], reverse=True)[:k]
    return [others[at] for at in chosen]
