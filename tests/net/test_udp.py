"""The datagram socket: small reads, limits, what is counted.  Spec: foundation F10."""

from __future__ import annotations

import errno
import socket
from collections.abc import Iterator

import pytest

from holdfast.drops import Drop, Drops
from holdfast.host import DATAGRAM_BYTES_MAX, Address
from holdfast.net.bind import bind
from holdfast.net.udp import Datagrams
from holdfast.wire.keys import Keyring, generate, parse_key
from holdfast.wire.seal import Sealed


class Pair:
    """A Datagrams under test, and a plain socket that talks to it."""

    def __init__(self, host: str = "127.0.0.1", peer: str = "127.0.0.1") -> None:
        bound = bind(Address(host, 0))
        bound.tcp.close()
        self.address = bound.address
        self.drops = Drops()
        self.got: list[tuple[bytes, Address]] = []
        self.datagrams = Datagrams(bound.udp, self.drops)
        self.datagrams.deliver = lambda data, source: self.got.append((data, source))
        family = socket.AF_INET6 if ":" in peer else socket.AF_INET
        self.peer = socket.socket(family, socket.SOCK_DGRAM)
        self.peer.bind((peer, 0))
        self.peer.settimeout(5)
        self.peer_address = Address(peer, self.peer.getsockname()[1])

    def tell(self, *datagrams: bytes, host: str | None = None) -> None:
        for data in datagrams:
            self.peer.sendto(data, (host or self.address.host, self.address.port))

    def close(self) -> None:
        self.datagrams.close()
        self.peer.close()


@pytest.fixture
def pair() -> Iterator[Pair]:
    made = Pair()
    yield made
    made.close()


def test_it_reads_until_the_socket_is_empty(pair: Pair) -> None:
    """F10: until the socket was empty once. Loopback delivers in the sender's call, so nothing has to be waited for."""
    pair.tell(b"1", b"2", b"3")
    assert pair.datagrams.drain(64) is True
    assert pair.got == [(b"1", pair.peer_address), (b"2", pair.peer_address), (b"3", pair.peer_address)]
    assert (pair.datagrams.received, pair.datagrams.received_bytes) == (3, 3)


def test_it_stops_at_its_share(pair: Pair) -> None:
    """F10: in calm at most so many, then due timers get their turn."""
    pair.tell(*[b"x"] * 10)
    assert pair.datagrams.drain(4) is False
    assert len(pair.got) == 4
    assert pair.datagrams.drain(64) is True
    assert len(pair.got) == 10


def test_a_longer_datagram_is_counted_and_dropped(pair: Pair) -> None:
    """Everything a peer can get wrong has a counter: exactly 1200 bytes pass, one more is oversized."""
    pair.tell(b"x" * DATAGRAM_BYTES_MAX, b"x" * (DATAGRAM_BYTES_MAX + 1), b"x" * 60_000, b"after")
    pair.datagrams.drain(64)
    assert [len(data) for data, _ in pair.got] == [DATAGRAM_BYTES_MAX, 5]
    assert pair.drops == {Drop.OVERSIZED: 2}


def test_it_sends(pair: Pair) -> None:
    """The way down ends in one sendto."""
    pair.datagrams.send(b"hello", pair.peer_address)
    assert pair.peer.recvfrom(100) == (b"hello", tuple(pair.address))
    assert (pair.datagrams.sent, pair.datagrams.sent_bytes) == (1, 5)


@pytest.mark.parametrize(
    "to", [Address("example.org", 7), Address("", 7), Address("::1", 7), Address("127.0.0.1", 0), Address("127.0.0.1", 1 << 16)]
)
def test_what_cannot_be_reached_is_counted(pair: Pair, to: Address) -> None:
    """Nothing in a host raises for an address somebody told it, and no name is looked up on the way down."""
    pair.datagrams.send(b"hello", to)
    assert pair.drops == {Drop.UNREACHABLE: 1}


@pytest.mark.parametrize("where", ["127.0.0.1", "::1"])
@pytest.mark.parametrize("scope", ["a" * 80, "a..b", "\ud800", "a\0b", "nosuch0"])
def test_text_that_is_no_scope_is_counted(where: str, scope: str) -> None:
    """Nothing in a host raises for an address somebody told it: a UnicodeError here would be the end of the process."""
    pair = Pair(where, where)
    pair.datagrams.send(b"hello", Address(f"fe80::1%{scope}", 7))
    assert pair.drops == {Drop.UNREACHABLE: 1}
    pair.close()


def test_what_python_cannot_encode_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same if our own idea of a literal should let something pass that Python does not take."""
    monkeypatch.setattr("holdfast.net.udp.literal", str)
    pair = Pair("::1", "::1")
    pair.datagrams.send(b"hello", Address("fe80::1%" + "a" * 80, 7))
    assert pair.drops == {Drop.UNREACHABLE: 1}
    pair.close()


def test_a_refused_datagram_is_swallowed() -> None:
    """ICMP says that nobody listens: it is about a datagram that is gone, and costs a counter."""
    pair = Pair()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as closed:
        closed.bind(("127.0.0.1", 0))
        nobody = Address("127.0.0.1", closed.getsockname()[1])
    # Only a connected socket is told; connecting it makes the kernel report what it otherwise keeps to itself.
    pair.datagrams._socket.connect(tuple(nobody))
    pair.datagrams.send(b"hello", nobody)
    pair.datagrams.drain(64)
    assert pair.drops == {Drop.UNREACHABLE: 1}
    pair.close()


@pytest.mark.parametrize(
    "code, why",
    [
        (errno.EAGAIN, Drop.QUEUE_FULL),
        (errno.ENOBUFS, Drop.QUEUE_FULL),
        (errno.EMSGSIZE, Drop.TOO_LARGE),
        (errno.EPERM, Drop.UNREACHABLE),
        (errno.ENETUNREACH, Drop.UNREACHABLE),
    ],
)
def test_a_refused_send_is_counted_under_its_name(pair: Pair, code: int, why: Drop) -> None:
    """Queues are bounded, the overflow is dropped and counted; so is what the kernel or its firewall refuses."""

    def refuse(data: bytes, to: object) -> int:
        raise OSError(code, "refused")

    pair.datagrams._sendto = refuse  # type: ignore[assignment]
    pair.datagrams.send(b"hello", pair.peer_address)
    assert pair.drops == {why: 1}


def test_ipv6() -> None:
    """IPv4 and IPv6: one class for both."""
    pair = Pair("::1", "::1")
    pair.tell(b"hello")
    pair.datagrams.drain(64)
    assert pair.got == [(b"hello", pair.peer_address)]
    pair.datagrams.send(b"back", pair.peer_address)
    assert pair.peer.recv(100) == b"back"
    pair.close()


def test_an_ipv4_peer_of_an_ipv6_socket_keeps_its_ipv4_address() -> None:
    """One spelling per address: an IPv4-mapped source is the IPv4 address that others know it by, in both directions."""
    pair = Pair("::", "127.0.0.1")
    pair.tell(b"hello", host="127.0.0.1")
    pair.datagrams.drain(64)
    assert pair.got == [(b"hello", pair.peer_address)]
    pair.datagrams.send(b"back", pair.peer_address)
    assert pair.peer.recv(100) == b"back"
    pair.close()


def test_forged_sources_fill_no_memory(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every table has a limit: sources are remembered up to one, then from the start again."""
    monkeypatch.setattr("holdfast.net.udp.CACHED_MAX", 4)
    for port in range(1, 100):
        pair.datagrams._learn_source(("127.0.0.1", port))
        pair.datagrams.send(b"x", Address("127.0.0.1", port))
        assert len(pair.datagrams._sources) <= 4
        assert len(pair.datagrams._targets) <= 4


def test_what_does_not_begin_as_ours_is_refused_first(pair: Pair) -> None:
    """H163: by its first bytes, before its source is looked up or kept; each reason is counted, and refusals use up no reads."""
    keyring = Keyring(parse_key(generate()))
    sealer, member = Sealed("g", keyring), Sealed("g", keyring)
    pair.datagrams.refuse_unless(sealer)
    ours = member.seal(b"word")
    stranger = Sealed("g", Keyring(parse_key(generate()))).seal(b"word")
    other_group = Sealed("h", keyring).seal(b"word")
    pair.tell(*[stranger] * 20, other_group, b"", b"\x63garbage", ours)
    assert not pair.datagrams.drain(1)
    assert [data for data, _ in pair.got] == [ours]
    assert pair.drops == {Drop.WRONG_KEY: 20, Drop.WRONG_GROUP: 1, Drop.TRUNCATED: 1, Drop.UNKNOWN_VERSION: 1}
    assert len(pair.datagrams._sources) == 1


def test_refusals_of_one_turn_are_limited(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    """H163, F10: a flood does not keep the timers waiting either."""
    monkeypatch.setattr("holdfast.net.udp.REFUSED_MAX", 5)
    pair.datagrams.refuse_unless(Sealed("g", Keyring(parse_key(generate()))))
    pair.tell(*[b"garbage"] * 8)
    assert not pair.datagrams.drain(64)
    assert sum(pair.drops.values()) == 5
    assert pair.datagrams.drain(64)
    assert sum(pair.drops.values()) == 8


def test_a_new_key_is_known_at_once(pair: Pair) -> None:
    """H163: what is refused follows the keyring."""
    first, second = parse_key(generate()), parse_key(generate())
    sealer = Sealed("g", Keyring(first))
    pair.datagrams.refuse_unless(sealer)
    word = Sealed("g", Keyring(second)).seal(b"word")
    pair.tell(word)
    pair.datagrams.drain(8)
    sealer.rekey(Keyring(first).add(second))
    pair.tell(word)
    pair.datagrams.drain(8)
    assert (pair.drops[Drop.WRONG_KEY], [data for data, _ in pair.got]) == (1, [word])
