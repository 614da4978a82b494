"""A short storm over real agents: killed, stopped, cut off, and clients with them; the recorder sees no ticket in two hands.

Spec: tickets G1, G3. ``python -m benchmarks tickets-storm`` is the long form: twenty clients, two minutes.
"""

from __future__ import annotations

import shutil

from benchmarks.leadership_side import namespaces
from benchmarks.tickets_storm import QUICK, storm_apart

FOUND_WITHIN = 4.0  # seconds
FAULTS = {"agents killed", "agents stopped", "clients killed", "clients stopped"}
CUTS = {"links cut", "partitions"}  # where the kernel gives a network namespace of one's own


def test_no_ticket_is_used_by_two() -> None:
    """G1, G3: agents are killed with -9, stopped, continued and cut off while clients take and give back; then everybody is served."""
    found = storm_apart(QUICK.seconds, QUICK.seed, QUICK.storm)
    assert (found["used_by_two"], found["tokens_not_growing"], found["used_after_deadline"]) == (0, 0, 0), found["shown"]
    assert found["clients_served_after"] == 1.0, found
    assert found["tickets_used"] == QUICK.storm.tickets
    assert found["can_cut"] == (bool(namespaces()) and shutil.which("nft") is not None)
    assert set(found["faults"]) == FAULTS | (CUTS if found["can_cut"] else set()), "each kind that is possible here, at least once"


def test_a_double_grant_is_found() -> None:
    """Ablation: seats that take no grant to be running let the next one in at once, and the recorder sees two with one ticket."""
    careless = QUICK.storm._replace(agents=3, tickets=2, agent_module="tests.features.tickets.process.careless_agent", faults=())
    found = storm_apart(FOUND_WITHIN, QUICK.seed, careless)
    assert found["used_by_two"] > 0
    one, other = found["shown"][0]
    assert (one["number"], one["client"] != other["client"]) == (other["number"], True)
    assert one["ended_at"] >= other["began_at"]
