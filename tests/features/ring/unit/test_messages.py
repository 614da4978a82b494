"""What ring messages may contain, how large they are, and that strange ones do no harm.  Spec: ring 3; foundation F3, F17."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import pytest

from holdfast.features.ring.protocol import messages as m
from holdfast.features.ring.protocol.config import BOTH_LISTS_K_MAX, K_MAX, RingConfig
from holdfast.features.ring.protocol.ids import Peer, RingId
from holdfast.host import DATAGRAM_BYTES_MAX, Address, Message, NodeId
from holdfast.wire.codec import Codec
from holdfast.wire.seal import SEALED_BYTES_MIN
from tests.features.ring.stand import T_L, Stand, crowd, peer

MAX = (1 << 64) - 1
BOOT = 1_700_000_000_000
HEAD = (MAX, RingId(MAX, MAX), MAX)


def peers(count: int, name_bytes: int) -> tuple[Peer, ...]:
    return tuple(
        Peer(RingId(MAX - i, MAX - i), NodeId(f"{i:0{name_bytes}d}", BOOT), Address("100.100.100.100", 65535)) for i in range(count)
    )


def group(k: int) -> tuple[RingId, ...]:
    return tuple(RingId(MAX - i, MAX) for i in range(2 + 4 * k))


def lease(k: int, *, nbrs: bool, cfg: bool, name_bytes: int = 24) -> m.LeaseRequest:
    known = peers(2 * k, name_bytes)
    listed = known if nbrs else ()
    named = group(k) if cfg else ()
    who = known[0] if nbrs else None
    return m.LeaseRequest(*HEAD, 1 << 32, 1 << 40, 1 << 32, True, 1 << 53, 1 << 53, MAX, MAX, listed, named, True, True, True, who)


def sealed_bytes(message: Message, *, sender_bytes: int = 64) -> int:
    codec = Codec([type(message)])
    return len(codec.encode(NodeId("x" * sender_bytes, BOOT), (1 << 48) - 1, bytes(8), message)) + SEALED_BYTES_MIN


def largest(k: int) -> Iterator[Message]:
    """The largest of each kind that is sent between members of a ring with this k; names have 24 bytes."""
    view = peers(2 * k + 1, 24)
    yield lease(k, nbrs=True, cfg=True)
    yield m.ArbUpgrd(*HEAD, 1 << 32, 1 << 32, group(k), peers(2 * k, 24))
    yield m.Want(*HEAD, view)
    yield m.Locked(*HEAD, 1 << 40, granted=True, view=view)
    yield m.Discovered(1 << 40, m.Answer.OK, MAX, view, seeded=True, asked=Address("100.100.100.100", 65535))
    yield m.Discover(1 << 40, RingId(MAX, MAX), tuple(RingId(MAX, MAX) for _ in range(8)), over=True)
    yield m.Arb(*HEAD, 1 << 40, RingId(MAX, MAX), 1 << 32, 1 << 32)
    yield m.Leave(*HEAD, "x" * 64, 1 << 53)
    yield m.Relayed(*HEAD, lease(k, nbrs=False, cfg=True))


@pytest.mark.parametrize("message", list(largest(3)), ids=lambda message: type(message).__name__)
def test_everything_fits_a_datagram(message: Message) -> None:
    """Ring 3: a datagram stays under 1200 bytes; with the default k = 3, names of 24 bytes and IPv4, lists that are news included."""
    assert sealed_bytes(message) <= DATAGRAM_BYTES_MAX


def test_lease_messages_of_every_day_are_small() -> None:
    """Ring 3 (nbrs and cfg as hashes): a lease message that carries no news has the same size for every k, below 300 bytes."""
    assert sealed_bytes(lease(K_MAX, nbrs=False, cfg=False)) == sealed_bytes(lease(1, nbrs=False, cfg=False)) < 300


@pytest.mark.parametrize("k", [3, 4, K_MAX])
def test_the_two_lists_take_turns(k: int) -> None:
    """Ring 3, H28: while a group and a view are both news, a lease message brings one of them: a request the group, an answer the view.
    Up to k = 3 both fit together."""
    stand = Stand(config=RingConfig(k=k))
    one, other = peer("o", 2000), peer("p", 3000)
    pair = stand.opens(one, [stand.ring.me])
    stand.responds_to(peer("n", 10), [stand.ring.me, one])
    stand.host.sent.clear()
    stand.ring.list.hear([other])
    stand.say(one, stand.request(one, 1, knows=0))  # It lost our view; recompute proposes the group.
    assert pair.next is not None
    pair.knows = 0
    request, answer = stand.ring.leases._request(pair), stand.ring.leases.ack(pair, 1)
    both = k <= BOTH_LISTS_K_MAX
    assert (bool(request.cfg), bool(request.nbrs)) == (True, both)
    assert (bool(answer.cfg), bool(answer.nbrs)) == (both, True)


@pytest.mark.parametrize("k", range(1, K_MAX + 1))
def test_lists_fit_one_at_a_time(k: int) -> None:
    """Ring 3 (every other message fits, k up to 8), H28: with names of 6 bytes and IPv4; longer ones take the stream from some k on."""
    view = peers(2 * k + 1, 6)
    listed = [(True, True)] if k <= BOTH_LISTS_K_MAX else [(True, False), (False, True)]
    requests = [lease(k, nbrs=nbrs, cfg=cfg, name_bytes=6) for nbrs, cfg in listed]
    messages: list[Message] = [
        *requests,
        *(m.Relay(*HEAD, RingId(MAX, MAX), msgspec.structs.replace(each, peer=None)) for each in requests),
        m.ArbUpgrd(*HEAD, 1 << 32, 1 << 32, group(k), view[:2]),
        m.Want(*HEAD, view),
        m.Locked(*HEAD, 1 << 40, granted=True, view=view),
        m.Discovered(1 << 40, m.Answer.OK, MAX, view, seeded=True, asked=Address("100.100.100.100", 65535), gen=1 << 53),
    ]
    assert [type(each).__name__ for each in messages if sealed_bytes(each, sender_bytes=6) > DATAGRAM_BYTES_MAX] == []


def test_a_group_of_the_largest_k_fits() -> None:
    """Ring 3, 4: the group of 2 + 4k ids that ArbUpgrd brings, k = 8."""
    assert sealed_bytes(m.ArbUpgrd(*HEAD, 1 << 32, 1 << 32, group(K_MAX))) <= DATAGRAM_BYTES_MAX


def test_lists_have_limits() -> None:
    """F17: nobody makes a member read more than it could have to know."""
    lists = m.LeaseRequest(*HEAD, 1, 1, 1, True, 1, 1, 1, 1, peers(64, 8), tuple(RingId(i, i) for i in range(64)))
    fits = msgspec.msgpack.encode(lists)
    assert msgspec.msgpack.decode(fits, type=m.LeaseRequest) == lists
    for bad in (
        msgspec.structs.replace(lists, nbrs=peers(65, 8)),
        msgspec.structs.replace(lists, cfg=tuple(RingId(i, i) for i in range(65))),
        m.Leave(*HEAD, "x" * 65, 1),
    ):
        with pytest.raises(msgspec.ValidationError):
            msgspec.msgpack.decode(msgspec.msgpack.encode(bad), type=type(bad))


def test_only_introductions_greet() -> None:
    """F3: what may be sent to an address whose life is unknown: Discover, FoundAsk, and Arb for static arbitrators."""
    kinds = [kind for kind in vars(m).values() if isinstance(kind, type) and issubclass(kind, Message) and kind is not Message]
    assert {kind for kind in kinds if kind.greeting} == {m.Discover, m.FoundAsk, m.Arb}


def strange(stand: Stand, about: Peer) -> Iterator[Message]:
    """Everything a peer could send out of turn: for instances, sessions and questions that do not exist."""
    head = stand.head(about)
    yield stand.request(about, 99, epoch=99)
    yield stand.ack(about, 99, epoch=99)
    yield m.LeaseNak(*head, 99)
    yield m.ArbUpgrd(*head, 99, 99, ())
    yield m.ArbUpgrdAck(*head, 99, 99)
    yield m.Dissolved(*head, 99)
    yield m.Want(*head, ())
    yield m.Vote(*head, 99, accept=True)
    yield m.Gone(*head, RingId(1, 1), certain=True)
    yield m.Gen(*head, 99, 1, 1, reply=False)
    yield m.Locked(*head, 99, granted=True, view=())
    yield m.Unlock(*head)
    yield m.Vouch(*head, RingId(1, 1))
    yield m.Vouched(*head, RingId(1, 1), active=False)
    yield m.FoundAsk(99)
    yield m.FoundPromise(99, granted=True, member=False, seed=Address("nobody", 1))
    yield m.Discovered(99, m.Answer.OK, 1, (), seeded=True, asked=Address("nobody", 1))
    yield m.Relay(*head, RingId(1, 1), stand.request(about, 1))
    yield m.Relayed(*head, stand.request(about, 1, epoch=99))
    yield m.RelayedAck(*head, RingId(1, 1), stand.ack(about, 1))
    yield m.Here(*head, RingId(1, 1))
    yield m.Propose(stand.ring.ring, about.id, 0, 99, RingId(1, 1), 99, 99)
    yield m.Proposed(*head, 99, accept=True)


@pytest.mark.parametrize("known", [True, False], ids=["of a peer", "of a stranger"])
def test_messages_out_of_turn_do_no_harm(known: bool) -> None:
    """Style (a counted drop for what a peer can send), ring 3: every kind of message that fits nothing leaves the membership as it was."""
    stand, members = crowd()
    source = members[0] if known else peer("stranger", 5000)
    before = {ring_id: (pair.epoch, pair.state, pair.cfg) for ring_id, pair in stand.ring.pairs.items()}
    for message in strange(stand, source):
        stand.say(source, message)
    assert {ring_id: (pair.epoch, pair.state, pair.cfg) for ring_id, pair in stand.ring.pairs.items()} == before
    assert stand.ring.list.ids == sorted([stand.ring.id, *(each.id for each in members)])
    stand.live(2 * T_L)
    assert stand.departures() == []
    assert stand.ring.is_member
