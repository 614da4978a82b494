"""The shipped Kubernetes file, run as a cluster would run it: its settings, pods with changing addresses, a name server.  F12, F13; H190.

Each pod is a process in a network namespace (one per node of the "cluster") with the environment of the file and of the image. What a
pod keeps in its volume is a folder that goes with its name.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pytest
import yaml  # type: ignore[import-untyped]

from holdfast.wire.keys import generate
from tests.support.agents import clean_environ, until
from tests.support.netns import Namespaces, unavailable

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
HOLDFAST = str(Path(sys.executable).with_name("holdfast"))
DOMAIN = "default.svc.cluster.local"
PODS, SPARE, RESOLVER = 5, 5, 6  # the file's replicas; a node that is free at first; where the name server runs
COMMAND_TIMEOUT = 90.0
MOVED, LOST = 1, 2  # of the three seats


class Cluster:
    """As much of Kubernetes as the file asks for."""

    def __init__(self, folder: Path, net: Namespaces) -> None:
        _, stateful, *_ = yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text())
        assert stateful["spec"]["replicas"] == PODS
        self.container: dict[str, Any] = stateful["spec"]["template"]["spec"]["containers"][0]
        self.folder, self.net = folder, net
        self.pods: dict[int, subprocess.Popen[bytes]] = {}
        self.names = folder / "names.json"
        self.key = folder / "key"
        self.key.write_text(generate())
        self.key.chmod(0o440)
        self.token = folder / "token"
        self.token.write_text("t" * 48)
        self.token.chmod(0o440)
        self._etc: list[Path] = []
        for node in range(RESOLVER + 1):
            self._write_etc(node)
        self._name({})
        net.popen(RESOLVER, [sys.executable, "-m", "tests.e2e.dns_server", net.address(RESOLVER), str(self.names)], cwd=ROOT)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for pod in self.pods.values():
            pod.kill()
            pod.wait()
        for etc in self._etc:
            shutil.rmtree(etc, ignore_errors=True)

    def start(self, number: int, node: int) -> None:
        """The pod of this number on this node: another node is another address and another machine, the volume is the same."""
        home = self.home(number)
        home.mkdir(exist_ok=True, mode=0o700)
        environ = clean_environ(home, self.environ(number, node))
        with (home / f"log-{node}").open("wb") as log:
            words = [*self.net.words(node), HOLDFAST, *self.container["args"]]
            self.pods[number] = subprocess.Popen(words, env=environ, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        self._name({**json.loads(self.names.read_text()), f"holdfast-{number}.holdfast.{DOMAIN}": self.net.address(node)})

    def kill(self, number: int) -> None:
        pod = self.pods.pop(number)
        pod.kill()
        pod.wait()

    def environ(self, number: int, node: int) -> dict[str, str]:
        """The image's variables, then the file's, with what Kubernetes fills in; paths lead to the pod's own folder."""
        text = (DEPLOY / "Dockerfile").read_text().replace("\\\n", " ")
        (line,) = re.findall(r"^ENV (.*)$", text, re.MULTILINE)
        image = {name: value for name, value in (pair.split("=", 1) for pair in line.split()) if name != "PATH"}
        filled = {"metadata.name": f"holdfast-{number}", "status.podIP": self.net.address(node)}
        found: dict[str, str] = {}
        for each in self.container["env"]:
            value = each["value"] if "value" in each else filled[each["valueFrom"]["fieldRef"]["fieldPath"]]
            found[each["name"]] = re.sub(r"\$\((\w+)\)", lambda name: found[name[1]], value)
        kept = {name: value for name, value in found.items() if name != "POD_IP"}
        return {name: self._here(number, value) for name, value in {**image, **kept}.items()}

    def run(self, number: int, *words: str) -> subprocess.CompletedProcess[str]:
        """As ``kubectl exec``."""
        environ = {"HOLDFAST_AGENT": str(self.home(number) / "run" / "agent.sock")}
        command = [HOLDFAST, *words]
        return subprocess.run(
            command, env=clean_environ(self.folder, environ), capture_output=True, text=True, check=False, timeout=COMMAND_TIMEOUT
        )

    def answer(self, number: int, *words: str) -> Any:
        ended = self.run(number, *words, "--json")
        return json.loads(ended.stdout) if ended.returncode == 0 else None

    def home(self, number: int) -> Path:
        return self.folder / f"pod{number}"

    def _here(self, number: int, value: str) -> str:
        home = self.home(number)
        files = {"/etc/holdfast/key": self.key, "/etc/holdfast-http/token": self.token}
        if value in files:
            return str(files[value])
        for inside, outside in (("/state", home / "state"), ("/run/holdfast", home / "run")):
            if value.startswith(inside):
                outside.mkdir(parents=True, exist_ok=True, mode=0o700)
                return f"{outside}{value.removeprefix(inside)}"
        return value

    def _name(self, names: dict[str, str]) -> None:
        written = self.names.with_suffix(".new")
        written.write_text(json.dumps(names))
        written.rename(self.names)

    def _write_etc(self, node: int) -> None:
        """``ip netns exec`` puts these files in the place of the machine's own."""
        etc = Path("/etc/netns") / self.net.words(node)[-1]
        etc.mkdir(parents=True, exist_ok=True)
        self._etc.append(etc)
        (etc / "resolv.conf").write_text(f"nameserver {self.net.address(RESOLVER)}\nsearch {DOMAIN}\noptions ndots:5 timeout:1\n")
        (etc / "machine-id").write_text(f"{node:032x}\n")


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    reason = unavailable()
    if reason is not None:
        pytest.skip(reason)
    with Namespaces(RESOLVER + 1) as net, Cluster(tmp_path, net) as cluster:
        yield cluster


def voting(cluster: Cluster, number: int) -> list[str]:
    seats = cluster.answer(number, "seats")
    return [] if seats is None else [seat["state"] for seat in seats["seats"]]


@pytest.mark.netns
def test_pods_lead_and_a_seat_moves(cluster: Cluster) -> None:
    """F12, F13: the shipped settings lead and give tickets; a seat that comes back under another address with its volume votes again,
    and is needed: another seat is lost for good before the last leader."""
    for number in range(PODS):
        cluster.start(number, number)
    until(lambda: len((cluster.answer(4, "members") or {"members": ()})["members"]) == PODS, "five pods are a group")
    first = cluster.run(4, "run", "--lead", "scheduler", "--timeout", "60", "--", "printenv", "HOLDFAST_TOKEN")
    assert first.returncode == 0, first.stderr
    taken = cluster.run(3, "run", "--ticket", "gpu:1", "--timeout", "60", "--", "printenv", "HOLDFAST_TICKET")
    assert (taken.returncode, taken.stdout) == (0, "0\n"), taken.stderr
    cluster.kill(MOVED)
    cluster.start(MOVED, SPARE)
    until(lambda: voting(cluster, MOVED)[MOVED:][:1] == ["serving"], "the moved seat serves")
    cluster.kill(LOST)
    second = cluster.run(4, "run", "--lead", "scheduler", "--timeout", "80", "--", "printenv", "HOLDFAST_TOKEN")
    assert second.returncode == 0, second.stderr
    assert int(second.stdout) > int(first.stdout)
    taken = cluster.run(3, "run", "--ticket", "gpu:1", "--timeout", "60", "--", "printenv", "HOLDFAST_TICKET")
    assert (taken.returncode, taken.stdout) == (0, "0\n"), taken.stderr
