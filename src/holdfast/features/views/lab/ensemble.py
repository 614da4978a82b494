"""A real ensemble of ZooKeeper on loopback, from Debian's package, with wires that can be cut.  Spec: views 5Z (tests), 8 (T1, Z1, Z2).

    with Wires() as wires, Ensemble(folder, wires) as ensemble:
        wire = ensemble.door(0)                # for one client of server 0: str(wire.address) is where it connects
        ensemble.cut(0, 2)                     # these two servers; wire.cut() for that client
        ensemble.heal(0, 2)

Each server's configuration names the others by wires of its own, one per port. Servers are numbered from 0; ``leader`` says which of them
is to lead at first: it gets the highest number that ZooKeeper knows it by, and is among the first that are started.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from random import Random
from socket import create_connection, socket
from typing import NamedTuple

from holdfast.errors import HoldfastError, installing
from holdfast.features.views.lab.wires import LOOPBACK, Wire, Wires
from holdfast.features.views.zookeeper.servers import has_kazoo
from holdfast.host import Address

JAR = Path("/usr/share/java/zookeeper.jar")
MAIN = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
JVM = ("-Xmx96m", "-Xss256k", "-XX:+UseSerialGC", "-XX:-UsePerfData", "-XX:TieredStopAtLevel=1")
TICK = 500  # milliseconds
SESSION_MIN = 2 * TICK  # also ZooKeeper's own default
SETTINGS = {
    "tickTime": TICK,
    "syncLimit": 4,
    "initLimit": 10,
    "minSessionTimeout": SESSION_MIN,
    "cnxTimeout": 500,  # milliseconds for a connection to a server; 2 of them, as first tried, are too few on a busy machine
    "admin.enableServer": "false",
    "4lw.commands.whitelist": "srvr",
}
STALE = SETTINGS["syncLimit"] * TICK / 1000  # type: ignore[operator] # seconds for which a deposed leader may answer
PATIENCE = 90.0  # seconds for what a loaded machine does in four
LOOK_INTERVAL = 0.05
SHOWN = 1500  # characters of a log in a failure
PORTS = range(20_000, 32_000)  # below those that Linux gives to connections


class NeverHappened(HoldfastError):
    """Something that the ensemble must do was not done for as long as a run can wait."""


def missing() -> str:
    """The package that has to be installed first; "" if all are there."""
    if shutil.which("java") is None or not JAR.exists():
        return "ZooKeeper is not here: apt-get install zookeeper"
    return "" if has_kazoo() else f"kazoo is not here: {installing('zookeeper')}"


class Ports(NamedTuple):
    """Where one server listens."""

    client: Address
    peer: Address
    election: Address


class Server:
    """One process, which can be killed, stopped and started again with what it had written."""

    def __init__(self, number: int, folder: Path, ports: Ports) -> None:
        self.number, self.ports = number, ports
        self.log = folder / f"server{number}.log"
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        command = ["java", *JVM, "-cp", str(JAR), MAIN, f"server{self.number}.cfg"]
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(command, cwd=self._folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def pause(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def cpu_seconds(self) -> float:
        """What its process has used so far."""
        assert self._process is not None
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")  # in user mode and in the kernel

    def check(self) -> None:
        code = None if self._process is None else self._process.poll()
        if code is not None:
            raise NeverHappened(f"server {self.number} of ZooKeeper ended with {code}: {self.log.read_text(errors='replace')[-SHOWN:]}")

    def mode(self) -> str:
        """How it serves: "leader", "follower" or "standalone"; nothing if it does not, now."""
        try:
            with create_connection(self.ports.client, timeout=1.0) as line:
                line.sendall(b"srvr")
                told = b"".join(iter(lambda: line.recv(4096), b""))
        except OSError:
            return ""
        found = [each[len("Mode: ") :] for each in told.decode(errors="replace").splitlines() if each.startswith("Mode: ")]
        return found[0].strip() if found else ""


class Ensemble:
    """Servers that serve when the context is entered."""

    def __init__(
        self,
        folder: Path,
        wires: Wires,
        *,
        count: int = 3,
        leader: int | None = None,
        session_min: int = SESSION_MIN,
    ) -> None:
        """``session_min``: the shortest session that it grants, in milliseconds."""
        self.servers: list[Server] = []
        self._folder, self._wires, self._count = folder, wires, count
        self._first = count - 1 if leader is None else leader
        self._settings = {**SETTINGS, "minSessionTimeout": session_min}
        self._between: dict[tuple[int, int], tuple[Wire, Wire]] = {}  # from server to server: for peers, for elections
        self._stack = ExitStack()

    def __enter__(self) -> Ensemble:
        with ExitStack() as stack:
            addresses = free_addresses(3 * self._count)
            self.servers = [Server(number, self._folder, Ports(*addresses[3 * number : 3 * number + 3])) for number in range(self._count)]
            self._join()
            for server in self.servers:
                self._write(server)
                stack.callback(server.kill)
            self._start()
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *raised: object) -> None:
        self._stack.close()

    def door(self, number: int) -> Wire:
        """Another wire to this server, for one client."""
        return self._wires.open(self.servers[number].ports.client)

    def cut(self, one: int, other: int) -> None:
        """Nothing passes between these two servers."""
        for wire in (*self._between[one, other], *self._between[other, one]):
            wire.cut()

    def heal(self, one: int, other: int) -> None:
        for wire in (*self._between[one, other], *self._between[other, one]):
            wire.heal()

    def cut_off(self, number: int) -> None:
        """This server from all others."""
        for other in range(self._count):
            if other != number:
                self.cut(number, other)

    def heal_all(self) -> None:
        for pair in self._between:
            self.heal(*pair)

    def cpu_seconds(self) -> float:
        return sum(server.cpu_seconds() for server in self.servers)

    def leader(self) -> int | None:
        """The server that leads, if there is one."""
        leaders = [server.number for server in self.servers if server.mode() == "leader"]
        return leaders[0] if len(leaders) == 1 else None

    def until(self, holds: Callable[[], object], what: str) -> float:
        """Seconds that it took."""
        began_at = time.monotonic()
        while not holds():
            if time.monotonic() > began_at + PATIENCE:
                raise NeverHappened(f"never happened: {what}")
            for server in self.servers:
                server.check()
            time.sleep(LOOK_INTERVAL)
        return time.monotonic() - began_at

    def until_whole(self) -> float:
        return self.until(lambda: all(server.mode() for server in self.servers), "every server of ZooKeeper serves")

    def _join(self) -> None:
        pairs = [(one, other) for one in range(self._count) for other in range(self._count) if one != other]
        for one, other in pairs:
            ports = self.servers[other].ports
            self._between[one, other] = (self._wires.open(ports.peer), self._wires.open(ports.election))
        for one, other in pairs:
            self._between[one, other][1].back = self._between[other, one][1]

    def _start(self) -> None:
        """The one that is to lead with enough others for a majority; among equals the highest number wins."""
        others = [server for server in self.servers if server.number != self._first]
        majority = self._count // 2
        first = [self.servers[self._first], *others[:majority]]
        for server in first:
            server.start()
        self.until(lambda: all(server.mode() for server in first), "a majority of ZooKeeper serves")
        for server in others[majority:]:
            server.start()
        self.until_whole()

    def _id(self, number: int) -> int:
        """The number of a server in ZooKeeper: 1 to ``count``."""
        return self._count if number == self._first else number + 1 - (number > self._first)

    def _write(self, server: Server) -> None:
        home = self._folder / f"server{server.number}"
        home.mkdir()
        (home / "myid").write_text(f"{self._id(server.number)}\n")
        given = {**self._settings, "dataDir": home, "clientPortAddress": LOOPBACK, "clientPort": server.ports.client.port}
        for other in self.servers:
            if other is server:
                peer, election = server.ports.peer, server.ports.election
            else:
                peer, election = (wire.address for wire in self._between[server.number, other.number])
            given[f"server.{self._id(other.number)}"] = f"{LOOPBACK}:{peer.port}:{election.port}"
        text = "".join(f"{name}={value}\n" for name, value in given.items())
        (self._folder / f"server{server.number}.cfg").write_text(text)


def free_addresses(count: int) -> list[Address]:
    """Ports of loopback that no process listens on. They are not of the range from which the system gives ports to connections: it could
    give one away before its server listens there."""
    found: list[Address] = []
    for port in Random().sample(PORTS, len(PORTS)):
        with socket() as place, suppress(OSError):
            place.bind((LOOPBACK, port))
            found.append(Address(LOOPBACK, port))
        if len(found) == count:
            return found
    raise NeverHappened(f"{count} free ports from {PORTS.start} to {PORTS.stop}")
