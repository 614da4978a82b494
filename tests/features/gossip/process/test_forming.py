"""Sixty-four real agents that begin at once are one group soon after the last one, twenty times.  Spec: gossip 5.7, D10.

Tables are compared every ``sync_interval``, which is 20 s in a group of this size: none of them waits for that.
"""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from holdfast.cli.demo.fleet import free_ports
from holdfast.wire.keys import generate
from tests.features.gossip.process.many import Many
from tests.support.gossip_record import Recorder
from tests.support.member_fleet import POLL_INTERVAL, PROBE
from tests.support.nets import SEEDS
from tests.support.realtime import repeated

pytestmark = [pytest.mark.nightly, pytest.mark.timeout(600)]

NAMES = tuple(f"a{number}" for number in range(64))
TRIES = 20
MOST = 10.0  # seconds from the last start to 64 complete lists
QUIET = 2.0  # seconds for which they stay so
PATIENCE = 60.0  # seconds
MARGIN = 1.0  # seconds of a second: less than half of what 64 agents need of two cores while they form


@pytest.mark.parametrize("number", range(TRIES))
def test_sixty_four_agents_form(tmp_path: Path, number: int) -> None:
    """Gossip 5.7: no straggler waits for a comparison of tables."""

    def attempt(again: int) -> str:
        folder = tmp_path / f"attempt{again}"
        folder.mkdir()
        seeds = [f"127.0.0.1:{port}" for port in free_ports(SEEDS)]
        shared = {"membership": "gossip", "preset": "local", "probe": PROBE, "group": "many", "key": generate(), "seeds": seeds}
        binds = [*seeds, *["127.0.0.1:0"] * (len(NAMES) - SEEDS)]
        with Many(folder) as many, Recorder() as recorder:
            begun = many.start([{**shared, "name": name, "bind": bind} for name, bind in zip(NAMES, binds, strict=True)])
            for each in begun:
                recorder.add(each.life, each.socket)
            took = formed(recorder, [each.life for each in begun]) - begun[-1].at
            wrongs = recorder.wrongs()
        over = begun[-1].at - begun[0].at
        print(f"64 agents, number {number}: ready within {over:.2f} s, one group {took:.2f} s after the last; T {PROBE:g} s")  # noqa: T201 - a measurement, told with -s
        assert wrongs == []
        return "" if took <= MOST else f"one group after {took:.1f} s"

    repeated(attempt, margin=MARGIN)


def formed(recorder: Recorder, lives: list[str]) -> float:
    """When the last change of any list was, after which all were right for a while."""
    wrong_at = began_at = time.time()
    while (now := time.time()) - wrong_at < QUIET:
        if wrong := recorder.wrong_about(lives):
            assert now - began_at < PATIENCE, f"never one group: {wrong}"
            wrong_at = now
        time.sleep(POLL_INTERVAL)
    return max(line.at for line in recorder.lines())
