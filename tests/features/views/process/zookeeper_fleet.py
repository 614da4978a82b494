"""Agents and the servers of a real ensemble of ZooKeeper, each on a machine of its own; every agent knows one server alone.

    with ZooKeeperFleet(folder, net, {"x": "s0", "y": "s1"}) as fleet:
        fleet.lead("s2")
        fleet.split(["s0"], ["s1", "s2"])

What is read from records is as in ``ViewFleet``. The three machines that are seats there are the servers here.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

from holdfast.features.views.lab.ensemble import JAR, JVM, MAIN, SETTINGS, STALE
from holdfast.features.views.protocol.config import RHO_MIN
from holdfast.kit.deadline import wait_length
from tests.features.views.process.fleet import SEATS, ViewFleet
from tests.features.views.process.record import wrongs_of_znodes
from tests.support.netns import PORT, Namespaces

SESSION = 4.0  # seconds
CLIENT_PORT, PEER_PORT, ELECTION_PORT = 2181, 2888, 3888
LOOK_TIMEOUT = "2"  # seconds for a server to say how it serves
TRIES = 6  # elections until a certain server leads


class ZooKeeperFleet(ViewFleet):
    """The first three names are the servers; ``homes`` says which of them each agent uses."""

    def __init__(self, folder: Path, net: Namespaces, homes: Mapping[str, str], *, heartbeat: float) -> None:
        super().__init__(folder, net, tuple(homes), heartbeat=heartbeat, silent_seats=True)
        self.settle = wait_length(self.config.lease + STALE, max(self.config.rho, RHO_MIN), self.config.margin)
        self._homes = homes
        self._servers: dict[str, subprocess.Popen[bytes]] = {}
        for number, name in enumerate(SEATS):
            self._write(number, name)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        super().__exit__(kind, error, trace)
        for name in list(self._servers):
            self.kill(name)

    def start(self, name: str) -> None:
        """This server, or this agent with its client program."""
        number = self.at(name)
        if name in SEATS:
            command = [*self.net.words(number), "java", *JVM, "-cp", str(JAR), MAIN, f"{name}.cfg"]
            with (self.folder / f"{name}.log").open("ab") as log:
                self._servers[name] = subprocess.Popen(command, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
            return
        agent = self.fleet.start(
            name=name, runtime=self.folder / f"home{number}", bind=f"{self.net.address(number)}:{PORT}", before=self.net.words(number),
            membership="views", seeds=None, zookeeper=f"{self.net.address(self.at(self._homes[name]))}:{CLIENT_PORT}", zk_session=SESSION,
            zk_stale=STALE,
        )  # fmt: skip
        self.agents[name] = agent
        self._take_part(name)

    def kill(self, name: str) -> None:
        if name not in SEATS:
            super().kill(name)
            return
        server = self._servers.pop(name)
        server.kill()
        server.wait()

    def leader(self) -> str | None:
        """The server that leads, while all others that run follow it."""
        modes = {name: self._mode(name) for name in self._servers}
        leaders = [name for name, mode in modes.items() if mode == "leader"]
        return leaders[0] if len(leaders) == 1 and list(modes.values()).count("follower") == len(modes) - 1 else None

    def lead(self, name: str) -> None:
        """Elections until this one leads: of servers that know the same, the one of the highest number does."""
        for _ in range(TRIES):
            self.until(self.leader, "ZooKeeper has a leader")
            found = self.leader()
            if found == name:
                return
            if found is not None:
                self.kill(found)
                self.until(self.leader, "the other two have a leader")
                self.start(found)
        raise AssertionError(f"{name} never led")

    def wrongs(self, settle: float) -> list[str]:
        return wrongs_of_znodes(self.lines(), settle)

    def _mode(self, name: str) -> str:
        ask = f"exec 3<>/dev/tcp/{self.net.address(self.at(name))}/{CLIENT_PORT} && printf srvr >&3 && cat <&3"
        try:
            told = self.net.run(self.at(name), ["timeout", LOOK_TIMEOUT, "bash", "-c", ask])
        except subprocess.CalledProcessError:
            return ""
        return next((line.removeprefix("Mode: ").strip() for line in told.splitlines() if line.startswith("Mode: ")), "")

    def _write(self, number: int, name: str) -> None:
        home = self.folder / name
        home.mkdir()
        (home / "myid").write_text(f"{number + 1}\n")
        given = {**SETTINGS, "dataDir": home, "clientPortAddress": self.net.address(number), "clientPort": CLIENT_PORT}
        for each in range(len(SEATS)):
            given[f"server.{each + 1}"] = f"{self.net.address(each)}:{PEER_PORT}:{ELECTION_PORT}"
        (self.folder / f"{name}.cfg").write_text("".join(f"{key}={value}\n" for key, value in given.items()))
