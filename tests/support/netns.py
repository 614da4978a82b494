"""Machines of their own: network namespaces joined by a bridge, with cuts by nftables. Linux, as root.

    with Namespaces(3) as net:
        child = net.popen(0, [sys.executable, "-m", "tests.net.talker", ..., str(net.address(0))])
        net.cut(0, 1)      # one way: what 0 sends does not reach 1
        net.cut_both(1, 2)
        net.heal()

The bridge lives in a namespace too, so nothing of the machine that runs the tests is touched. Leaving the block ends what
was started in the namespaces and removes them; the first block of a later run removes what a killed run left behind.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from functools import cache
from itertools import count
from pathlib import Path
from types import TracebackType

PREFIX = "holdfast-"
SWITCH = "switch"
PORT = 7946
UDP_HEADER_BYTES = 8
NODES_MAX = 200  # one byte of an address
PACKAGES = "iproute2 and nftables"

_serial = count(1)


@cache
def unavailable() -> str | None:
    """Why namespaces cannot be used here, or None."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    missing = [tool for tool in ("ip", "nft") if shutil.which(tool) is None]
    if missing:
        return f"{' and '.join(missing)} missing: install the Debian packages {PACKAGES}"
    try:
        with Namespaces(1):
            return None
    except subprocess.CalledProcessError as error:
        return f"this kernel or container refuses them: {error.stderr.strip()}"


class Namespaces:
    """Some namespaces on one bridge, each with one address and an empty filter."""

    def __init__(self, nodes: int) -> None:
        assert 1 <= nodes <= NODES_MAX
        self._stem = f"{PREFIX}{os.getpid()}-{next(_serial)}"
        self._nodes = nodes
        self._children: list[subprocess.Popen[str]] = []

    def __enter__(self) -> Namespaces:
        _remove_leftovers()
        try:
            self._build()
        except BaseException:
            self._remove()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._remove()

    def address(self, node: int) -> str:
        """The IPv4 address of a node."""
        return f"10.77.0.{node + 1}"

    def words(self, node: int) -> list[str]:
        """What stands before a command that shall run in a namespace; the process is the command's own."""
        return ["ip", "netns", "exec", self._name(node)]

    def popen(self, node: int, command: Sequence[str], *, cwd: Path | None = None) -> subprocess.Popen[str]:
        """Start a process in a namespace, its output piped as text; it ends with the block at the latest."""
        child = subprocess.Popen(
            [*self.words(node), *command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
            cwd=cwd,
        )
        self._children.append(child)
        return child

    def run(self, node: int, command: Sequence[str]) -> str:
        """Run a command in a namespace to its end; returns what it printed."""
        return _ip("netns", "exec", self._name(node), *command)

    def cut(self, sender: int, receiver: int) -> None:
        """One way. The receiver drops it, so that the sender's kernel has nothing to complain about."""
        rule = f"add rule inet holdfast arriving ip saddr {self.address(sender)} drop"
        self.run(receiver, ["nft", rule])

    def cut_both(self, one: int, other: int) -> None:
        self.cut(one, other)
        self.cut(other, one)

    def cut_large(self, sender: int, receiver: int, bytes_max: int) -> None:
        """One way: no stream, and no datagram of more bytes than that. Short messages pass."""
        for rule in ("meta l4proto tcp", f"udp length > {bytes_max + UDP_HEADER_BYTES}"):
            self.run(receiver, ["nft", f"add rule inet holdfast arriving ip saddr {self.address(sender)} {rule} drop"])

    def lose(self, receiver: int, share: float) -> None:
        """Of the datagrams that come to this node, from any other one; until ``heal``."""
        assert 0 < share < 1
        self.run(receiver, ["nft", f"add rule inet holdfast arriving meta l4proto udp numgen random mod 100 < {round(share * 100)} drop"])

    def heal(self) -> None:
        """Nothing is cut, and nothing is lost."""
        for node in range(self._nodes):
            self.run(node, ["nft", "flush chain inet holdfast arriving"])

    def _build(self) -> None:
        switch = f"{self._stem}-{SWITCH}"
        _ip("netns", "add", switch)
        _ip("-n", switch, "link", "add", "bridge", "type", "bridge")
        _ip("-n", switch, "link", "set", "bridge", "up")
        for node in range(self._nodes):
            self._plug_in(switch, node)

    def _plug_in(self, switch: str, node: int) -> None:
        name, port = self._name(node), f"port{node}"
        _ip("netns", "add", name)
        _ip("-n", switch, "link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", name)
        _ip("-n", switch, "link", "set", port, "master", "bridge", "up")
        _ip("-n", name, "address", "add", f"{self.address(node)}/24", "dev", "eth0")
        _ip("-n", name, "link", "set", "eth0", "up")
        _ip("-n", name, "link", "set", "lo", "up")
        self.run(node, ["nft", "add table inet holdfast; add chain inet holdfast arriving { type filter hook input priority 0; }"])

    def _remove(self) -> None:
        for child in self._children:
            child.kill()
        for child in self._children:
            child.wait()
            if child.stdout is not None:
                child.stdout.close()
        for name in _existing():
            if name.startswith(f"{self._stem}-"):
                _ip("netns", "delete", name)

    def _name(self, node: int) -> str:
        return f"{self._stem}-{node}"


def _remove_leftovers() -> None:
    """What a killed run left: namespaces named after a process that is gone."""
    for name in _existing():
        if name.startswith(PREFIX) and not Path(f"/proc/{name.split('-')[1]}").exists():
            _ip("netns", "delete", name)


def _existing() -> list[str]:
    return [line.split()[0] for line in _ip("netns", "list").splitlines() if line.strip()]


def _ip(*args: str) -> str:
    return subprocess.run(["ip", *args], capture_output=True, text=True, check=True, timeout=30).stdout
