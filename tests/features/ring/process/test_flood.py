"""A flood of forged datagrams at one agent of three.  Spec: ring H162, H163; foundation F3.

A guard: on a machine that reads the flood away nobody becomes deaf, and this passes without H162 too. A member that is deaf for
certain is in ``tests/features/ring/process/test_half_deaf.py``.
"""

from __future__ import annotations

import os
import socket
import time
from pathlib import Path

from tests.support.agents import Fleet

SECONDS = 3.0
BATCH, BATCHES_PER_SECOND = 100, 300  # 30,000 a second, as far as this machine sends and the socket takes them
BYTES = 120
BAD = ("Decided", "Failed", "Expelled")


def test_a_flood_at_one_agent_costs_no_healthy_member(tmp_path: Path) -> None:
    """H162, H163: datagrams without a key are refused unread. Whatever becomes of the agent that is flooded, the others stay."""
    with Fleet(tmp_path, preset="lan") as fleet:
        agents = fleet.group(3)
        target, *others = agents
        host, _, port = target.address.rpartition(":")
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as flood:
            end_at = time.monotonic() + SECONDS
            forged = [os.urandom(BYTES) for _ in range(BATCH)]
            while time.monotonic() < end_at:
                for data in forged:
                    flood.sendto(data, (host, int(port)))
                time.sleep(1 / BATCHES_PER_SECOND)
        time.sleep(2.5)  # T_arb: whatever was decided during the flood is known
        for agent in others:
            assert agent.said("Expelled") is None
            for other in others:
                assert not any(agent.said(event, member=other.id) for event in BAD[:2])
