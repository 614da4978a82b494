"""Who owns a key, and the number that proves it: paper 000, section II; spec ring 5.7, 9, D29, G3, G9; foundation F14, F16."""

from __future__ import annotations

from itertools import pairwise

import pytest

from holdfast.features.ring.lab.rings import Rings
from holdfast.features.ring.protocol import messages as m
from holdfast.features.ring.protocol.config import RingConfig
from holdfast.features.ring.protocol.facts import Removed
from holdfast.features.ring.protocol.fencing import GEN_MAX, MICROSECONDS, ORPHAN_JUMP, PUBLISHED_MAX
from holdfast.features.ring.protocol.ids import CIRCLE, owner_of
from holdfast.features.ring.protocol.memberlist import Tombstone
from holdfast.features.ring.protocol.rules import Rules
from holdfast.host import Ownership
from tests.features.ring.stand import STEP, T_L, Stand, crowd, peer

Q = peer("q", 2000)


# Ownership (II, 5.7).


def test_a_key_is_its_closest_nodes() -> None:
    """II: a key is owned by its closest node, ties won by the predecessor; the circle has no end."""
    ids = [peer(str(pos), pos).id for pos in (100, 200, CIRCLE - 100)]
    expected = {100: 100, 149: 100, 150: 100, 151: 200, 0: CIRCLE - 100, 1: 100, CIRCLE - 1: CIRCLE - 100, 5000: 200}
    for key, pos in expected.items():
        owner = owner_of(ids, key)
        assert owner is not None
        assert owner.pos == pos, key


def test_a_member_owns_what_is_closest_to_it() -> None:
    """Ring 5.7 (owns): valid, settled and the owner; with the token and until when."""
    stand, _ = crowd()
    assert isinstance(stand.ring.owns(1000), Ownership)
    assert isinstance(stand.ring.owns(1050), Ownership)  # the tie with 1100
    assert stand.ring.owns(1051) is None
    assert stand.ring.owns(949) is None


def test_a_ring_of_one_owns_everything() -> None:
    """Ring 5.7: settled is true with no neighbours."""
    stand = Stand()
    assert all(stand.ring.owns(key) is not None for key in (0, 1000, CIRCLE // 2, CIRCLE - 1))


def test_who_is_no_member_owns_nothing() -> None:
    """Ring 5.7, 10: not valid, so nothing; ``owner`` remains a look at the last list, by anybody."""
    stand, peers = crowd()
    stand.ring.leave()
    assert stand.ring.owns(1000) is None
    assert stand.ring.safe_until == float("-inf")
    owner = stand.ring.owner(peers[0].id.pos)
    assert owner is not None
    assert owner.id == peers[0].node


@pytest.mark.parametrize("gap", [True, False], ids=["on", "off"])
def test_no_ownership_across_a_gap(gap: bool) -> None:
    """D29: nothing is claimed while the nearest known neighbour on one side has no pair with us; any other neighbour does not matter."""
    stand = Stand(rules=Rules(gap=gap))
    far = peer("far", 3000)
    stand.say(Q, m.Want(*stand.head(Q), (Q, far)))
    assert stand.ring.settled is not gap
    assert stand.ring.claims(1000) is not gap
    stand.live(STEP, silent=[far])
    assert stand.pair(Q).obliged
    # On a circle of three the far one is the nearest on the other side.
    assert stand.ring.settled is not gap
    stand.live(STEP)
    stand.live(3 * T_L)
    assert stand.ring.settled


def test_a_half_pair_bridges_a_gap() -> None:
    """D29 (settled: a pair that is not DORMANT): its answer has shown who is behind the neighbour."""
    stand = Stand()
    stand.say(Q, m.Want(*stand.head(Q), (Q,)))
    assert not stand.ring.settled
    stand.say(Q, stand.ack(Q, 1, cfg=(stand.ring.id, Q.id)))
    assert stand.ring.settled


# Tokens (5.7, 9, G9).


def test_a_founders_first_token_is_wall_clock() -> None:
    """F16, ring 5.7 (found), H26: microseconds since 1970, so tokens survive a re-founding."""
    stand = Stand()
    owned = stand.ring.owns(0)
    assert owned is not None
    assert owned.token == int(stand.host.wall_clock * MICROSECONDS)


def test_a_token_waits_until_every_heir_knows_it() -> None:
    """Ring 5.7 (token), G9: after a removal the generation has risen, and no token is given out before all ACTIVE peers know it."""
    stand, peers = crowd()
    assert stand.ring.fencing.token() is not None
    gone, rest = peers[0], peers[1:]
    stand.say(gone, m.Leave(*stand.head(gone), "graceful", 0))
    gen = stand.ring.fencing.gen
    assert stand.ring.owns(1000) is None
    for each in rest[:-1]:
        stand.say(each, m.Gen(*stand.head(each), 1, 1, seen=gen, reply=True))
    assert stand.ring.fencing.token() is None
    stand.say(rest[-1], m.Gen(*stand.head(rest[-1]), 1, 1, seen=gen, reply=True))
    assert stand.ring.fencing.token() == gen


def test_a_suspected_heir_counts_too() -> None:
    """Ring 5.7 (token: suspected ones included): it may win, and inherit."""
    stand, peers = crowd()
    while stand.pair(peers[0]).susp is None:
        stand.live(STEP, silent=peers[:1])
    stand.say(peers[5], m.Leave(*stand.head(peers[5]), "graceful", 0))
    gen = stand.ring.fencing.gen
    for each in peers[1:5]:
        stand.say(each, m.Gen(*stand.head(each), 1, 1, seen=gen, reply=True))
    assert stand.ring.fencing.token() is None


@pytest.mark.parametrize("how", ["Gen", "LR", "ACK"])
def test_generations_travel_on_everything(how: str) -> None:
    """Ring 3 (Gen; gen and seen on LR and ACK): the peer's generation, and ours as it knows it."""
    stand, peers = crowd()
    pair = stand.pair(peers[0])
    gen = stand.ring.fencing.gen
    fields = {"gen": 123 + gen, "seen": gen}
    if how == "Gen":
        stand.say(peers[0], m.Gen(*stand.head(peers[0]), 1, 123 + gen, gen, reply=False))
        (reply,) = stand.to(peers[0], m.Gen)
        assert (reply.gen, reply.seen, reply.reply) == (gen, 123 + gen, True)
    elif how == "LR":
        stand.say(peers[0], stand.request(peers[0], 9, **fields))
    else:
        stand.say(peers[0], stand.ack(peers[0], pair.n, **fields))
    assert (pair.pgen, pair.pseen) == (123 + gen, gen)


def test_an_answer_is_not_answered() -> None:
    """Ring 3 (Gen(reply)): otherwise two members would never stop."""
    stand, peers = crowd()
    stand.say(peers[0], m.Gen(*stand.head(peers[0]), 1, 5, 5, reply=True))
    assert stand.take(m.Gen) == []


def test_nobody_can_push_a_generation_over_the_edge() -> None:
    """F16: tokens stay below 2^53."""
    stand, peers = crowd()
    stand.say(peers[0], m.Gen(*stand.head(peers[0]), 1, GEN_MAX + 1, 0, reply=False))
    assert stand.pair(peers[0]).pgen < GEN_MAX
    stand.say(peers[0], m.Gen(*stand.head(peers[0]), 1, GEN_MAX, 0, reply=False))
    stand.say(peers[0], m.Leave(*stand.head(peers[0]), "graceful", 0))
    assert stand.ring.fencing.gen == GEN_MAX


@pytest.mark.parametrize("jump", [True, False], ids=["on", "off"])
def test_an_orphans_heirs_jump(jump: bool) -> None:
    """G9, ring 5.2 (remove): without certainty the dead one's last value is unknown: the generation jumps by 2^20; off, by one."""
    stand, peers = crowd(rules=Rules(jump=jump))
    before = stand.ring.fencing.gen
    stand.ring.changes.remove(peers[0].id, certain=False, reason="orphan")
    assert stand.ring.fencing.gen - before == (ORPHAN_JUMP if jump else 1)
    assert [event.certain for event in stand.host.events(Removed)] == [False]


@pytest.mark.parametrize("by", ["us", "another"])
def test_what_a_lost_pair_knew_is_kept(by: str) -> None:
    """Ring 2 (gens), G9: the pair went with the decision; what it knew of the loser's generation counts when the loser is removed, by
    whomever: the other may know less."""
    stand, peers = crowd()
    silent = peers[0]
    gen = stand.ring.fencing.gen
    stand.say(silent, stand.request(silent, 9, gen=gen + 70))
    while stand.pair(silent).susp is None:
        stand.live(STEP, silent=[silent])
    stand.vote(yes=peers[1:4])
    assert silent.id not in stand.ring.pairs
    if by == "us":
        stand.live(stand.ring.config.wait)
    else:
        stand.ring.list.announce(silent.id, Tombstone(certain=True, gen=gen + 5, reason="failed"))
    assert stand.ring.fencing.gen == gen + 71


def test_the_last_word_about_a_generation_counts() -> None:
    """G9: what the removed one, or whoever removed it, knew of its generation travels with the tombstone."""
    stand, peers = crowd()
    far = peer("far", 9000)
    gen = stand.ring.fencing.gen
    stand.ring.list.hear([far])
    stand.ring.list.announce(far.id, Tombstone(certain=True, gen=gen + 70, reason="failed"))
    assert stand.ring.fencing.gen == gen + 71
    stand.say(peers[0], m.Leave(*stand.head(peers[0]), "graceful", gen + 200))
    assert stand.ring.fencing.gen == gen + 201


def test_many_keys_are_published_as_one_deadline() -> None:
    """F17: beyond the limit no deadline is forgotten; one then stands for all keys, and a joiner waits for it."""
    stand, _ = crowd()
    last = 0.0
    for key in range(950, 950 + 101):
        owned = stand.ring.owns(key)
        last = max(last, owned.until) if owned is not None else last
    assert stand.ring.fencing.published_until == last
    alone = Stand()
    for key in range(PUBLISHED_MAX + 50):
        assert alone.ring.owns(key) is not None
    assert alone.ring.fencing.handed_over_at(Q.id) == alone.host.now + T_L / 2


def test_clients_that_stopped_bind_nobody() -> None:
    """F14 ("or the client said stopped"): what was told to them is over at once."""
    stand = Stand()
    stand.ring.owns(0)
    stand.ring.fencing.withdrawn()
    assert stand.ring.fencing.published_until == float("-inf")


@pytest.mark.parametrize("seed", range(3))
def test_tokens_of_successive_owners_increase(seed: int) -> None:
    """G3, G9, I13: eight owners of one key crash one after the other; every token of a new owner is larger than those of the former one."""
    rings = Rings(seed, RingConfig(k=2))
    rings.form([f"n{i}" for i in range(14)])
    key = 12345
    seen: list[tuple[str, int]] = []
    for _ in range(8):
        for _ in range(80):
            rings.world.run(rings.world.now + 0.1)
            owners = [(ring.raw.me.name, ring.fencing.token()) for ring in rings.alive if ring.claims(key)]
            assert len(owners) <= 1
            seen += [(name, token) for name, token in owners if token is not None]
        assert owners, "nobody took over"
        rings.world.crash(owners[0][0])
    tokens: dict[str, list[int]] = {}
    for name, token in seen:
        tokens.setdefault(name, []).append(token)
    assert len(tokens) == 8
    ordered = list(tokens.values())
    assert all(max(former) < min(later) for former, later in pairwise(ordered))
