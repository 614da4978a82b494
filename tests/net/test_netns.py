"""Network namespaces: machines of their own for tests that need a real network and its firewall."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from tests.support import netns
from tests.support.netns import PORT, Namespaces, unavailable
from tests.support.realtime import DEADLINE

ROOT = Path(__file__).parents[2]


@pytest.fixture
def two() -> Namespaces:
    """Two namespaces that are not built yet; skipped with the reason where there can be none."""
    reason = unavailable()
    if reason is not None:
        pytest.skip(reason)
    return Namespaces(2)


class Lines:
    """Counts what a process prints, in a thread of its own."""

    def __init__(self, child: subprocess.Popen[str]) -> None:
        self.count = 0
        self._child = child
        threading.Thread(target=self._read, daemon=True).start()

    def wait_for_more(self, lines: int) -> None:
        wanted, end_at = self.count + lines, time.monotonic() + DEADLINE
        while self.count < wanted:
            assert time.monotonic() < end_at, f"{self.count} lines, {wanted} wanted"
            time.sleep(0.005)

    def _read(self) -> None:
        assert self._child.stdout is not None
        for _ in self._child.stdout:
            self.count += 1


def caller(net: Namespaces, node: int) -> Lines:
    command = [sys.executable, "-m", "tests.net.caller", f"n{node}", net.address(node), net.address(1 - node), str(PORT)]
    return Lines(net.popen(node, command, cwd=ROOT))


@pytest.mark.netns
def test_a_one_way_cut_between_two_hosts_and_its_heal(two: Namespaces) -> None:
    """Real networks in tests: two hosts in two namespaces, a one-way cut by nftables seen by one of them, and its heal."""
    with two as net:
        heard_by = [caller(net, 0), caller(net, 1)]
        for lines in heard_by:
            lines.wait_for_more(5)
        net.cut(0, 1)
        heard_by[0].wait_for_more(5)  # What was on its way has arrived.
        before = heard_by[1].count
        heard_by[0].wait_for_more(20)  # Node 1 goes on calling, so it lives; node 0 hears it.
        assert heard_by[1].count == before
        net.heal()
        for lines in heard_by:
            lines.wait_for_more(5)
        net.cut_both(0, 1)
        heard_by[0].wait_for_more(0)
        assert net.run(0, ["nft", "list chain inet holdfast arriving"]).count("drop") == 1
        assert net.run(1, ["nft", "list chain inet holdfast arriving"]).count("drop") == 1


@pytest.mark.netns
def test_a_share_of_all_datagrams_is_lost(two: Namespaces) -> None:
    """Real networks in tests: with a half lost a node hears half as much as the other one, which loses nothing; until the heal."""
    with two as net:
        heard_by = [caller(net, 0), caller(net, 1)]
        for lines in heard_by:
            lines.wait_for_more(5)
        net.lose(1, 0.5)
        before = [lines.count for lines in heard_by]
        heard_by[0].wait_for_more(200)
        share = (heard_by[1].count - before[1]) / (heard_by[0].count - before[0])
        assert 0.25 < share < 0.75  # Seven standard deviations of 200 datagrams.
        net.heal()
        assert "drop" not in net.run(1, ["nft", "list chain inet holdfast arriving"])


@pytest.mark.netns
def test_nothing_is_left_behind(two: Namespaces) -> None:
    """Leaving the block removes the namespaces and ends what runs in them, also after an exception."""
    children = list[subprocess.Popen[str]]()

    def mine() -> int:
        return sum(name.startswith(two._stem) for name in netns._existing())

    def fail_inside() -> None:
        with two as net:
            children.append(net.popen(0, ["sleep", "1000"]))
            assert mine() == 3
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail_inside()
    assert children[0].returncode is not None
    assert mine() == 0


@pytest.mark.netns
def test_what_a_killed_run_left_is_removed(two: Namespaces) -> None:
    """Namespaces are named after their process: those of a process that is gone are removed by the next run."""
    child = subprocess.Popen(["true"])
    child.wait()
    netns._ip("netns", "add", f"{netns.PREFIX}{child.pid}-1-0")
    with two:
        assert not any(name.startswith(f"{netns.PREFIX}{child.pid}-") for name in netns._existing())


def test_the_reason_is_clear_where_it_cannot_be_had(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that need root or tools are skipped with a reason that says what is missing."""
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert unavailable.__wrapped__() == "network namespaces need root"
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(shutil, "which", lambda tool: None)
    assert unavailable.__wrapped__() == "ip and nft missing: install the Debian packages iproute2 and nftables"
