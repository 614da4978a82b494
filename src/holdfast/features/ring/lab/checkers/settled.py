"""When is a ring as it should be?  Spec: ring 7, I9; D20 (an emptied ring founds again), H23 (of two rings one remains).

Asked when faults have stopped: each process that wants to be a member is one, all lists are equal, pairs are exactly those with the k
nearest, all ACTIVE, groups are those of the formula, nothing is proposed, locked, condemned or in doubt; and every key has an owner with
a token.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from holdfast.features.ring.lab.checkers.ring import Life, RingWatch
from holdfast.features.ring.protocol.ids import RingId, nearest
from holdfast.features.ring.protocol.pair import Pair, State
from holdfast.host import MemberStatus
from holdfast.lab.world import World


def unsettled(watch: RingWatch, world: World, keys: Iterable[int], *, left_out: Sequence[str] = ()) -> str:
    """Why the ring of this world is not as it should be; "" if it is. ``left_out``: processes that no member admits."""
    rings: dict[int, list[Life]] = {}
    for host in world.alive:
        life = watch.lives.get(host)
        if life is None or host.me.name in left_out:
            continue
        if life.valid(world.now):
            rings.setdefault(life.number, []).append(life)
        elif life.ring.lifecycle.wanted or life.member:
            return f"{host.me} is {life.ring.status.name.lower()} and wants to be a member"
    if len(rings) > 1:
        return f"there are {len(rings)} rings"
    for members in rings.values():
        if why := _unsettled_ring(members, keys):
            return why
    return ""


def _unsettled_ring(members: list[Life], keys: Iterable[int]) -> str:
    ids = sorted(each.id for each in members)
    k = members[0].ring.config.k
    nbrs = {each: nearest(ids, each, k) for each in ids}
    for life in members:
        if life.ring.list.ids != ids:
            return f"{life} lists {len(life.ring.list)} members and there are {len(ids)}"
        if why := _unsettled_member(life, nbrs):
            return f"{life} {why}"
    for key in keys:
        owners = [each for each in members if each.ring.claims(key)]
        if len(owners) != 1:
            return f"{key:016x} is claimed by {len(owners)} members"
        if owners[0].ring.fencing.token() is None:
            return f"{owners[0]} has no token"
    return ""


def _unsettled_member(life: Life, nbrs: dict[RingId, tuple[RingId, ...]]) -> str:
    ring = life.ring
    if sorted(ring.pairs) != sorted(nbrs[life.id]):
        return f"has {len(ring.pairs)} pairs, other than with its {len(nbrs[life.id])} nearest"
    if ring.condemned:
        return f"has condemned {len(ring.condemned)}"
    doubted = [member.id.name for member in ring.members() if member.status is not MemberStatus.ALIVE]
    if doubted:
        return f"shows {', '.join(doubted)} in doubt"
    if ring.door.lock is not None:
        return f"holds a lock for {ring.door.lock.candidate}, and there is no candidate"
    for peer, pair in ring.pairs.items():
        group = frozenset((life.id, peer, *nbrs[life.id], *nbrs[peer]))
        if why := _unsettled_pair(pair, group if ring.config.mode == "pairwise" else None):
            return f"and {peer}: {why}"
    return ""


def _unsettled_pair(pair: Pair, group: frozenset[RingId] | None) -> str:
    if pair.state is not State.ACTIVE or pair.susp is not None:
        return f"{pair.state.name}{', suspected' if pair.susp is not None else ''}"
    if pair.next is not None:
        return f"version {pair.next[0]} is proposed"
    if group is not None and pair.cfg != group:
        return f"a group of {len(pair.cfg)}, by the formula {len(group)}"
    return ""
