"""ZooKeeper and etcd for `leadership`: three servers of each from Debian's packages, in a temporary folder, on free ports of loopback.

What is set beside the default is set so that they run at all on one machine (ports, folders, no web console), or so that they take less
memory (the JVM's heap); neither makes them slower to fail over. ``tuned`` is what an operator may set who wants short leases:

    ZooKeeper   tickTime 100 instead of 2000 ms; a session is at least two ticks, so 200 ms instead of 4 s. Asked for are 500 ms: kazoo
                sends its pings up to 400 ms apart, whatever the session, and loses shorter ones while nothing happens
    etcd        heartbeat-interval 10 instead of 100 ms, election-timeout 100 instead of 1000 ms; a lease is at least one and a half
                election timeouts in whole seconds, so 1 s instead of 2 s
"""

from __future__ import annotations

import shutil
import subprocess
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from pathlib import Path
from socket import create_connection
from typing import Any, NamedTuple

from benchmarks.agent_fleet import LOOK_INTERVAL, until
from benchmarks.ring_fleet import NeverHappened, free_addresses
from holdfast.errors import installing

SERVERS = 3
ZOOKEEPER_JAR = Path("/usr/share/java/zookeeper.jar")
JVM = ("-Xmx64m", "-Xss256k", "-XX:+UseSerialGC", "-XX:-UsePerfData")
MAIN = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
PACKAGES = ("zookeeper", "etcd-server")
SHOWN = 1500  # characters of a log in a failure


class Level(NamedTuple):
    """How one of them is set: of the servers, and what a candidate asks for, in seconds."""

    servers: Mapping[str, int]
    lease: float


ZOOKEEPER = {
    "default": Level({"tickTime": 2000}, 10.0),  # kazoo's own timeout
    "smallest": Level({"tickTime": 2000}, 0.1),  # less than any server grants: it answers with its minimum
    "tuned": Level({"tickTime": 100}, 0.5),
}
ETCD = {
    "default": Level({}, 10),  # what etcdctl lock takes; etcdctl elect takes 60
    "smallest": Level({}, 1),
    "tuned": Level({"heartbeat-interval": 10, "election-timeout": 100}, 1),
}
GRANTED = {  # seconds, as said above
    "zookeeper": {"default": 10.0, "smallest": 4.0, "tuned": 0.5},
    "etcd": {"default": 10.0, "smallest": 2.0, "tuned": 1.0},
}


def missing() -> list[str]:
    """What has to be installed before these can be compared with; empty if all is there."""
    found = []
    if shutil.which("java") is None or not ZOOKEEPER_JAR.exists():
        found.append("ZooKeeper is not here: apt-get install zookeeper")
    if find_spec("kazoo") is None:
        found.append(f"kazoo is not here: {installing('zookeeper')}")
    if shutil.which("etcd") is None:
        found.append("etcd is not here: apt-get install etcd-server")
    return found


def versions(packages: Sequence[str] = PACKAGES) -> dict[str, str]:
    """Of the Debian packages; empty where they come from elsewhere."""
    command = ["dpkg-query", "-W", "-f", "${Package} ${Version}\n", *packages]
    if shutil.which("dpkg-query") is None:
        return {}
    told = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    return dict(line.split(" ", 1) for line in told.splitlines())


class Server:
    """One process with its log."""

    def __init__(self, name: str, command: list[str], folder: Path) -> None:
        self.name, self._command, self._folder, self._log = name, command, folder, folder / f"{name}.log"
        self.start()

    def start(self) -> None:
        """Also after its end: then with what it had written."""
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(self._command, cwd=self._folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.pid = self._process.pid

    def check(self) -> None:
        if self._process.poll() is not None:
            raise NeverHappened(f"{self.name} ended ({self._process.returncode}): {self._log.read_text(errors='replace')[-SHOWN:]}")

    def wait(self) -> None:
        self._process.wait()

    def end(self) -> None:
        self._process.kill()
        self.wait()


class Ensemble(NamedTuple):
    """Servers that serve, and what a candidate has to know."""

    servers: list[Server]
    addresses: list[str]  # of clients
    serves: Callable[[str], object]

    @property
    def pids(self) -> list[int]:
        return [server.pid for server in self.servers]

    def until_serving(self) -> None:
        for server, address in zip(self.servers, self.addresses, strict=True):
            until(lambda: self.serves(address), f"{server.name} serves", LOOK_INTERVAL, server.check)  # noqa: B023 - called here


def addresses(kinds: int) -> list[list[str]]:
    """Of each kind one per server; asked for at once, so that no two are the same."""
    free = free_addresses(kinds * SERVERS)
    return [free[kind::kinds] for kind in range(kinds)]


@contextmanager
def zookeeper(folder: Path, settings: Mapping[str, int]) -> Iterator[Ensemble]:
    clients, peers, elections = addresses(3)
    for number, client in enumerate(clients, 1):
        home = folder / f"zookeeper{number}"
        home.mkdir()
        (home / "myid").write_text(f"{number}\n")
        (folder / f"zookeeper{number}.cfg").write_text(zookeeper_cfg(home, client, peers, elections, settings))
    command = ["java", *JVM, "-cp", str(ZOOKEEPER_JAR), MAIN]
    commands = {f"zookeeper{number}": [*command, f"zookeeper{number}.cfg"] for number in range(1, SERVERS + 1)}
    with running(commands, folder) as servers:
        it = Ensemble(servers, clients, zookeeper_mode)
        it.until_serving()
        yield it


def zookeeper_cfg(home: Path, client: str, peers: list[str], elections: list[str], settings: Mapping[str, int]) -> str:
    """Debian's example, with addresses of this machine."""
    given: dict[str, Any] = {"initLimit": 10, "syncLimit": 5, **settings, "dataDir": home}
    host, _, port = client.rpartition(":")
    given |= {"clientPortAddress": host, "clientPort": port, "admin.enableServer": "false"}
    given["4lw.commands.whitelist"] = "srvr"
    members = zip(peers, elections, strict=True)
    given |= {f"server.{number}": f"{peer}:{election.rpartition(':')[2]}" for number, (peer, election) in enumerate(members, 1)}
    return "".join(f"{name}={value}\n" for name, value in given.items())


def zookeeper_mode(address: str) -> str:
    """How a server serves that belongs to a quorum: "leader" or "follower"; nothing if it belongs to none."""
    host, _, port = address.rpartition(":")
    try:
        with create_connection((host, int(port)), timeout=1) as line:
            line.sendall(b"srvr")
            told = b"".join(iter(lambda: line.recv(4096), b""))
    except OSError:
        return ""
    return told.partition(b"Mode: ")[2].partition(b"\n")[0].decode()


@contextmanager
def etcd(folder: Path, settings: Mapping[str, int]) -> Iterator[Ensemble]:
    clients, peers = addresses(2)
    cluster = ",".join(f"etcd{number}=http://{peer}" for number, peer in enumerate(peers, 1))
    members = enumerate(zip(clients, peers, strict=True), 1)
    commands = {f"etcd{number}": etcd_command(f"etcd{number}", client, peer, cluster, settings) for number, (client, peer) in members}
    with running(commands, folder) as servers:
        it = Ensemble(servers, clients, _serves_etcd)
        it.until_serving()
        yield it


def etcd_command(name: str, client: str, peer: str, cluster: str, settings: Mapping[str, int]) -> list[str]:
    given: dict[str, Any] = {
        "name": name,
        "data-dir": name,
        "listen-client-urls": f"http://{client}",
        "advertise-client-urls": f"http://{client}",
        "listen-peer-urls": f"http://{peer}",
        "initial-advertise-peer-urls": f"http://{peer}",
        "initial-cluster": cluster,
        "logger": "zap",
        **settings,
    }
    return ["etcd", *(word for option, value in given.items() for word in (f"--{option}", str(value)))]


def _serves_etcd(address: str) -> bool:
    """It says that it has a leader."""
    try:
        with urllib.request.urlopen(f"http://{address}/health", timeout=1) as answer:
            return b'"true"' in answer.read()
    except (urllib.error.URLError, OSError):
        return False


@contextmanager
def running(commands: Mapping[str, list[str]], folder: Path) -> Iterator[list[Server]]:
    """They end with the block, however it ends."""
    with ExitStack() as stack:
        servers = []
        for name, command in commands.items():
            server = Server(name, command, folder)
            stack.callback(server.end)
            servers.append(server)
        yield servers
