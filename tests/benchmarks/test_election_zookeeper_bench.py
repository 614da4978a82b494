"""`election-zookeeper` at a size that measures nothing: its nodes, what they count, what is made of it, the shape of the answer.

No test here asserts a speed.  Spec: election 8 (F15 to F18).
"""

from __future__ import annotations

import json
import subprocess
import sys
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from benchmarks import election_zookeeper, leadership_stock
from benchmarks.__main__ import main
from benchmarks.election_zookeeper import GOALS, Orders, Size, missing, ratios
from benchmarks.election_zookeeper_nodes import Node, Traffic
from benchmarks.election_zookeeper_samples import SERIES, Used, per_node, series, summary
from benchmarks.election_zookeeper_side import OURS, Served, servers_of
from benchmarks.harness import ROOT
from benchmarks.leadership_side import LOOPBACK_UP, namespaces
from benchmarks.ring_fleet import NeverHappened

TINY = Size(nodes=2, servers=(), seconds=9.0, warm=6.0, minute=1.0, most_window=1.0)
TALK = """
import subprocess, sys, time
from benchmarks.election_zookeeper_nodes import connected
from benchmarks.election_zookeeper_samples import Sampler
SOCKET = "import time, socket as s; it = s.socket(s.AF_INET, s.SOCK_DGRAM); "
HEAR = SOCKET + "it.bind(('10.78.0.2', 99)); print(flush=True); [it.recv(200) for _ in range(10)]; time.sleep(9)"
SAY = SOCKET + "[it.sendto(bytes(100), ('10.78.0.2', 99)) for _ in range(10)]; time.sleep(9)"
with connected(2) as nodes, Sampler(nodes, tcp_alone=False) as sampler:
    hears = subprocess.Popen([*nodes[1].words, sys.executable, "-c", HEAR], stdout=subprocess.PIPE)
    hears.stdout.readline()
    says = subprocess.Popen([*nodes[0].words, sys.executable, "-c", SAY, "leadership_candidate"])
    while sampler.looks[-1:] == [] or sampler.looks[-1][1][0].packets < 10:
        time.sleep(0.05)
    print([list(node.traffic()) for node in nodes])
    print([[getattr(used, name) for name in ("rss_mib", "program_rss_mib")] for used in sampler.looks[-1][1]])
    hears.kill(), says.kill()
"""
CALM = {"kbit": 20.0, "kbit_std": 5.0, "cpu_percent": 2.0, "rss_mib": 100.0, "warm_rss_mib_max": 110.0}


@pytest.mark.skipif(not namespaces(), reason="network namespaces are not allowed here")
def test_the_interface_of_a_node_counts_what_it_sends_and_nothing_else() -> None:
    """F17: ten datagrams of 100 bytes are ten packets of 128; no ARP, no IPv6. F15: a process counts for the node it runs in."""
    words = [*namespaces(), "sh", "-c", f'{" ".join(LOOPBACK_UP)}; exec "$@"', "sh", sys.executable, "-c", TALK]
    told = subprocess.run(words, cwd=ROOT, check=True, capture_output=True, text=True).stdout.splitlines()
    sent, memory = map(json.loads, told)
    assert sent == [[10, 1280, 0], [0, 0, 0]]
    assert memory[0][0] == memory[0][1] > 3
    assert memory[1][0] > memory[1][1] == 0


def test_headers_are_taken_off() -> None:
    """F17, "payload beside it": 28 bytes of each datagram, 52 of each segment; segments over loopback are no packets."""
    assert Traffic(10, 1280, 0).payload_bytes(tcp_alone=False) == 1000
    assert Traffic(12, 1280 + 2 * 152, 2).payload_bytes(tcp_alone=False) == 1200
    assert Traffic(2, 304, 9).payload_bytes(tcp_alone=True) == 200


def looks() -> list[tuple[float, list[Used]]]:
    """Two nodes: the first sends 125 bytes a second and has a program, the second uses nothing."""
    return [
        (float(second), [Used(second, 125 * second, 100 * second, 0.02 * second, 0.01 * second, 50.0 + second, 20.0, 30.0), Used()])
        for second in range(5)
    ]


def test_sums_of_all_nodes_each_second() -> None:
    """F15 to F17, time series: rates since the look before, memory as it is."""
    found = series(looks())
    assert found.keys() == {"at", *SERIES}
    assert (found["at"], found["kbit"], found["packets"]) == ([1.0, 2.0, 3.0, 4.0], [1.0] * 4, [1.0] * 4)
    assert (found["payload_kbit"], found["cpu_percent"], found["program_cpu_percent"]) == ([0.8] * 4, [2.0] * 4, [1.0] * 4)
    assert (found["rss_mib"], found["pss_mib"]) == ([51.0, 52.0, 53.0, 54.0], [30.0] * 4)
    each = per_node(looks(), 2.0, 4.0)
    assert (each["kbit"], each["cpu_percent"], each["rss_mib"]) == ([1.0, 0.0], [2.0, 0.0], [53.0, 0.0])


def test_a_calm_stretch_is_told_apart_from_what_came_before() -> None:
    """F15: the spike of the first seconds is none of the mean; F17: the standard deviation is of single seconds."""
    found = {**{name: [1.0, 2.0, 4.0] for name in SERIES}, "at": [1.0, 2.0, 3.0], "rss_mib": [70.0, 50.0, 52.0]}
    told = summary(found, 1.5, 3.5)
    assert (told["kbit"], told["kbit_std"], told["seconds"]) == (3.0, 1.0, 2)
    assert (told["rss_mib"], told["warm_rss_mib_max"]) == (51.0, 70.0)


def test_ratios_are_ours_over_each_size_of_zookeeper() -> None:
    """Election 8: every size is reported as measured, and only a server on every node has goals."""
    theirs = {**CALM, "kbit": 10.0, "cpu_percent": 4.0, "rss_mib": 200.0}
    killed = {"kill": [{"failover": 4.0}, {"failover": 6.0}], "kill_most": {"silence": 9.0}}
    found: dict[str, dict[str, Any]] = {
        OURS: {"calm": CALM, **killed},
        "zookeeper3": {"calm": theirs, **killed, "kill_server": [{"silence": 2.0}]},
        "zookeeper16": {"calm": theirs},
    }
    told = ratios(found)
    assert (told["traffic_kbit"], told["traffic_kbit_least"], told["traffic_std_over_mean"]) == (20.0, 20.0, 0.25)
    assert told["memory_spike"] == pytest.approx(0.1)
    for setting in ("zookeeper3", "zookeeper16"):
        assert [told[f"{what}_over_{setting}"] for what in ("traffic", "cpu", "memory")] == [2.0, 0.5, 0.5]
    assert (told["failover_holdfast_s"], told["silence_zookeeper3_s"], told["most_killed_holdfast_s"]) == (5.0, 2.0, 9.0)
    assert told["failover_zookeeper16_s"] is None
    assert GOALS.keys() <= told.keys()
    assert set(ratios({}).values()) == {None}


def test_what_breaks_down_keeps_what_it_has() -> None:
    """H241: the others go on, and the run is a miss."""

    class Fake:
        def __init__(self, answer: dict[str, Any] | None) -> None:
            self.answer_, self.orders = answer, []  # type: ignore[var-annotated]

        def order(self, **fields: Any) -> None:
            self.orders.append(fields)

        def answer(self) -> dict[str, Any]:
            if self.answer_ is None:
                raise NeverHappened("it ended")
            return self.answer_

    remotes: dict[str, Any] = {OURS: Fake({"took": 1}), "zookeeper3": Fake(None)}
    found: dict[str, dict[str, Any]] = {OURS: {}, "zookeeper3": {"calm": CALM}}
    problems: list[str] = []
    all_do = Orders(remotes, found, problems)
    for _ in range(2):
        all_do("kill", lambda setting: {"delay": len(setting)}, many=True)
    all_do("kill_server", lambda _: {}, only="zookeeper")
    assert remotes.keys() == {OURS}
    assert remotes[OURS].orders == [{"do": "kill", "delay": 8}] * 2
    assert found == {OURS: {"kill": [{"took": 1}] * 2}, "zookeeper3": {"calm": CALM}}
    assert problems == ["zookeeper3: kill: it ended"]


def test_servers_of_zookeeper_are_set_as_in_the_paper(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """F15 to F17: tickTime 2000, initLimit 5, syncLimit 2; each server in the namespace of its node, each knows all."""
    commands: list[list[str]] = []

    def server(name: str, command: list[str], folder: Path) -> SimpleNamespace:
        commands.append(command)
        return SimpleNamespace(name=name, folder=folder)

    monkeypatch.setattr(leadership_stock, "Server", server)
    Served([Node(number, 100 + number) for number in range(5)], 3, "recorder", tmp_path)
    lines = (tmp_path / "zookeeper2.cfg").read_text().splitlines()
    assert {"tickTime=2000", "initLimit=5", "syncLimit=2", "clientPortAddress=10.78.0.2", "clientPort=2181"} <= {*lines}
    assert {f"server.{number}=10.78.0.{number}:2888:3888" for number in (1, 2, 3)} == {line for line in lines if line.startswith("server.")}
    assert [command[:5] for command in commands] == [["nsenter", "--target", str(pid), "--net", "--"] for pid in (100, 101, 102)]
    assert (tmp_path / "zookeeper3" / "myid").read_text() == "3\n"


def test_what_is_not_here_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """H241: what is missing is said, nothing is measured, and the run is a miss."""
    monkeypatch.setattr(leadership_stock, "ZOOKEEPER_JAR", Path("/nowhere"))
    monkeypatch.setattr(election_zookeeper, "namespaces", tuple)
    assert [line.partition(" is not here")[0].partition(":")[0] for line in missing()] == ["ZooKeeper", "no network namespaces here"]
    report = election_zookeeper.run(1)
    assert (report.verdict, set(report.ratios.values())) == ("miss", {None})
    assert "apt-get install zookeeper" in report.as_text()


@pytest.mark.skipif(not namespaces(), reason="network namespaces are not allowed here")
def test_ours_is_measured(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """F15 to F18: two nodes with an agent and a program each: they elect, are looked at, are killed, and another one leads."""
    monkeypatch.setattr(election_zookeeper, "missing", list)
    monkeypatch.setattr(election_zookeeper, "run", partial(election_zookeeper.run, size=TINY))
    assert main(["election-zookeeper", "--json", "--rounds", "1"]) == 1  # no ZooKeeper was asked for, so that goals have no number
    found = json.loads(capsys.readouterr().out)
    assert found["problems"] == []
    ours = found["raw"]["settings"][OURS]
    assert 0.5 < ours["calm"]["kbit"] < 100
    assert 0 < ours["calm"]["payload_kbit"] < ours["calm"]["kbit"]
    assert 0 < ours["calm"]["program_rss_mib"] < ours["calm"]["rss_mib"]
    assert len(ours["usage"]["nodes"]["kbit"]) == 2
    assert [row["failover"] > 0 for row in ours["kill"]] == [True]
    assert ours["kill_most"]["silence"] > 0
    assert "kill_server" not in ours
    assert {name for name, value in found["ratios"].items() if value is None} == {name for name in GOALS if name.endswith("zookeeper16")}


@pytest.mark.nightly
@pytest.mark.skipif(bool(missing()), reason=str(missing()))
def test_zookeeper_is_measured(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """F15 to F18: three servers and three sessions; the holder, the leading server and a majority are killed."""
    small = Size(nodes=3, servers=(3,), seconds=20.0, warm=12.0, minute=1.0, server_window=8.0, most_window=8.0)
    monkeypatch.setattr(election_zookeeper, "run", partial(election_zookeeper.run, size=small))
    main(["election-zookeeper", "--json", "--rounds", "1"])
    found = json.loads(capsys.readouterr().out)
    assert found["problems"] == []
    theirs = found["raw"]["settings"]["zookeeper3"]
    assert theirs["calm"]["kbit"] > theirs["calm"]["payload_kbit"] > 0
    assert theirs["calm"]["rss_mib"] > theirs["calm"]["program_rss_mib"] > 0
    assert theirs["kill"][0]["failover"] > 3  # A session of 10 s ends when a third of it was quiet at least.
    assert theirs["kill_server"][0]["silence"] > 0
    assert not theirs["kill_most"]["acts"]


def test_settings_are_told_by_their_names() -> None:
    """Ours has no server."""
    assert [servers_of(name) for name in (OURS, "zookeeper3", "zookeeper16")] == [0, 3, 16]
