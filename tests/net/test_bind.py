"""Taking the port: UDP and TCP together, and clear lines when it cannot be had."""

from __future__ import annotations

import socket

import pytest

from holdfast.errors import AddressUnusable
from holdfast.host import AWAY_DATAGRAMS_MAX, Address, NodeId
from holdfast.net.bind import Bound, bind
from holdfast.net.host import NetHost
from tests.net.machines import plain
from tests.support.realtime import run


def close(bound: Bound) -> None:
    bound.udp.close()
    bound.tcp.close()


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "::ffff:127.0.0.1"])
def test_both_sockets_share_a_free_port(host: str) -> None:
    """One address for datagrams and streams; port 0 takes one that is free for both."""
    bound = bind(Address(host, 0))
    assert bound.udp.getsockname()[1] == bound.tcp.getsockname()[1] == bound.address.port > 0
    close(bound)


@pytest.mark.parametrize("kind", [socket.SOCK_DGRAM, socket.SOCK_STREAM])
def test_a_port_in_use_is_named(kind: socket.SocketKind) -> None:
    """A port in use, by either protocol: one clear line that says which and what to do."""
    with socket.socket(socket.AF_INET, kind) as taken:
        taken.bind(("127.0.0.1", 0))
        if kind == socket.SOCK_STREAM:
            taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(
            AddressUnusable, match=rf"cannot listen on 127\.0\.0\.1:{port}: the port is in use by this process itself; .* choose another"
        ):
            bind(Address("127.0.0.1", port))


@pytest.mark.parametrize(
    "address, why",
    [
        (Address("192.0.2.1", 7946), "this machine has no such address"),
        (Address("example.org", 7946), "'example.org' is a name"),
    ],
)
def test_an_address_that_is_not_ours_is_named(address: Address, why: str) -> None:
    """An address that is not local: one clear line."""
    with pytest.raises(AddressUnusable, match=f"cannot listen on {address}: {why}"):
        bind(address)


def test_a_port_is_free_again_when_opening_failed() -> None:
    """Half a success is none: the UDP socket is not left behind when TCP cannot have the port."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(AddressUnusable):
            bind(Address("127.0.0.1", port))
    close(bind(Address("127.0.0.1", port)))


def test_a_wildcard_needs_an_address_to_advertise() -> None:
    """Peers cannot send to 0.0.0.0: who listens everywhere says where it is reached, and the port is not kept meanwhile."""

    async def check() -> None:
        bound = bind(Address("127.0.0.1", 0))
        port = bound.address.port
        close(bound)
        with pytest.raises(AddressUnusable, match="not where peers reach this process"):
            await NetHost.open(NodeId("a", 1), Address("0.0.0.0", port), plain())
        host = await NetHost.open(NodeId("a", 1), Address("0.0.0.0", port), plain(), advertise=Address("127.0.0.1", port))
        assert host.address == ("127.0.0.1", port)
        await host.close()

    run(check())


def test_the_receive_buffer_is_raised() -> None:
    """F10: so many datagrams may wait during a pause; a machine that grants less is not our fault."""
    bound = bind(Address("127.0.0.1", 0))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as plain_socket:
        before = plain_socket.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF)
    granted = bound.udp.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF)
    close(bound)
    assert granted >= min(AWAY_DATAGRAMS_MAX * 1024, before)
