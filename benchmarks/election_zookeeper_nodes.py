"""Nodes of `election-zookeeper`: a network namespace each, with one interface that counts, and what runs in it.

All of it lies within the network and the pid namespace of the process that asks for it (``leadership_side.namespaces``). The namespaces of
the nodes have no name: each lives as long as a process that sleeps in it, so nothing is left behind, however the run ends.

Nothing but what the programs send passes an interface: IPv6 is off, and the nodes know each other's hardware addresses, so there is no ARP.
A packet is a packet of the wire: segments leave one by one.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

NETWORK = "10.78.0"
SWITCH = 253  # the number of the process that asks, among the nodes
NODES_MAX = 200
ETHERNET_BYTES = 14  # of each packet: the interface counts them, IP does not
UDP_HEADER_BYTES = 20 + 8
TCP_HEADER_BYTES = 20 + 32  # with time stamps, as Linux has them; a SYN has 8 more
NO_IPV6 = "echo 1 > /proc/sys/net/ipv6/conf/all/disable_ipv6 && echo 1 > /proc/sys/net/ipv6/conf/default/disable_ipv6"
SLEEPER = ("unshare", "--net", "sleep", "infinity")
LOOK_INTERVAL = 0.01


class Node(NamedTuple):
    """One namespace. ``pid`` sleeps in it."""

    number: int
    pid: int

    @property
    def address(self) -> str:
        return f"{NETWORK}.{self.number + 1}"

    @property
    def hardware(self) -> str:
        return f"02:00:00:00:00:{self.number + 1:02x}"

    @property
    def words(self) -> tuple[str, ...]:
        """What stands before a command that shall run here; the process is the command's own."""
        return ("nsenter", "--target", str(self.pid), "--net", "--")

    @property
    def namespace(self) -> str:
        return namespace_of(self.pid)

    def traffic(self) -> Traffic:
        devices = Path(f"/proc/{self.pid}/net/dev").read_text().splitlines()
        sent = next(line for line in devices if line.strip().startswith("eth0:")).partition(":")[2].split()[8:10]
        frames, packets = int(sent[0]), int(sent[1])
        names, values = (line.split() for line in Path(f"/proc/{self.pid}/net/snmp").read_text().splitlines() if line.startswith("Tcp:"))
        tcp = dict(zip(names, values, strict=True))
        return Traffic(packets, frames - packets * ETHERNET_BYTES, int(tcp["OutSegs"]) + int(tcp["RetransSegs"]))


class Traffic(NamedTuple):
    """What a node has sent to others."""

    packets: int
    ip_bytes: int  # with the headers of IP, without those of the link
    segments: int  # those of TCP, loopback included

    def payload_bytes(self, *, tcp_alone: bool) -> int:
        """Without the headers of IP, UDP and TCP. ``tcp_alone``: nothing else is sent, and segments over loopback are none of the
        packets; otherwise nothing is sent over loopback."""
        segments = self.packets if tcp_alone else self.segments
        return self.ip_bytes - segments * TCP_HEADER_BYTES - (self.packets - segments) * UDP_HEADER_BYTES


def namespace_of(pid: int | str) -> str:
    """The network namespace of a process; raises OSError if the process is gone."""
    return str(Path(f"/proc/{pid}/ns/net").readlink())


@contextmanager
def connected(count: int) -> Iterator[list[Node]]:
    """So many nodes on one bridge; what runs in them is the caller's to end."""
    assert 1 <= count <= NODES_MAX
    switch = Node(SWITCH, 0)
    sleepers: list[subprocess.Popen[bytes]] = []
    try:
        _run(["sh", "-c", NO_IPV6])
        _ip("link add name bridge type bridge", f"link set dev bridge address {switch.hardware} up")
        _ip(f"address add {switch.address}/24 dev bridge")
        sleepers += [subprocess.Popen(SLEEPER, stdin=subprocess.DEVNULL) for _ in range(count)]
        nodes = [Node(number, sleeper.pid) for number, sleeper in enumerate(sleepers)]
        for node in nodes:
            _plug_in(node, [*nodes, switch])
        _ip(*(_known(node, "bridge") for node in nodes))
        yield nodes
    finally:
        for sleeper in sleepers:
            sleeper.kill()
            sleeper.wait()


def _plug_in(node: Node, all_: Sequence[Node]) -> None:
    while node.namespace == namespace_of("self"):  # ``unshare`` has not come so far.
        time.sleep(LOOK_INTERVAL)
    _run([*node.words, "sh", "-c", NO_IPV6])
    _ip(f"link add name port{node.number} type veth peer name eth0 netns {node.pid}", f"link set dev port{node.number} master bridge up")
    _ip(
        "link set dev lo up",
        f"link set dev eth0 address {node.hardware}",
        f"address add {node.address}/24 dev eth0",
        "link set dev eth0 gso_max_segs 1 up",
        *(_known(other, "eth0") for other in all_ if other != node),
        before=node.words,
    )


def _known(node: Node, device: str) -> str:
    return f"neighbour replace {node.address} lladdr {node.hardware} dev {device} nud permanent"


def _ip(*lines: str, before: Sequence[str] = ()) -> None:
    _run([*before, "ip", "-batch", "-"], "\n".join(lines))


def _run(command: Sequence[str], orders: str = "") -> None:
    subprocess.run(command, input=orders, capture_output=True, text=True, check=True)
