"""Figure 9 of the paper at full size, for its time and memory; `ring` runs it in a process of its own.

1000 members with a stable ring, k = 3, the paper's flags; 100 random ones crash one after another, 6 T_l apart (ring 8, E3). What it
says about arbitration requests is E3's business; here it is only looked at whether the run was what it should be.
"""

from __future__ import annotations

import json
import sys
from random import Random
from resource import RUSAGE_SELF, getrusage
from time import process_time
from typing import Any

from benchmarks.memory import RUSAGE_UNIT
from benchmarks.ring_lab import names_of
from holdfast.features.ring.lab.rings import PAPER_RULES, Rings, paper_config

SEED = 1
APART = 6.0  # T_l between two crashes
WARM = 2.0  # T_l before the first


def figure_9(members: int, crashes: int, early: int) -> dict[str, Any]:
    """One run, in this process: call it once per process, because the peak of memory is the process's."""
    began = process_time()
    rings = Rings(SEED, paper_config(), rules=PAPER_RULES)
    rings.form(names_of(members))
    built = process_time() - began
    world = rings.world
    world.run(WARM)
    settled_at, projected = process_time(), 0.0
    for number, name in enumerate(Random(SEED).sample(names_of(members), crashes), start=1):
        world.crash(name)
        world.run(world.now + APART)
        if number == early:
            projected = settled_at - began + (process_time() - settled_at) * crashes / early
    took = process_time() - began
    lists = {len(ring.list) for ring in rings.alive}
    addressed = sum(ring.counts["arb_addressed"] for ring in rings.members.values()) / members
    wrong = rings.size != members - crashes or lists != {rings.size}
    return {
        "cpu_seconds": round(took, 2),
        "cpu_seconds_projected": round(projected, 2),
        "cpu_seconds_building": round(built, 2),
        "peak_mib": round(getrusage(RUSAGE_SELF).ru_maxrss * RUSAGE_UNIT / (1 << 20), 1),
        "virtual_seconds": world.now,
        "events": world.events,
        "events_per_cpu_second": round(world.events / took),
        "requests_addressed_per_member": addressed,
        "alive": rings.size,
        "problems": [f"Figure 9: {rings.size} of {members} alive after {crashes} crashes, lists of {sorted(lists)}"] if wrong else [],
    }


if __name__ == "__main__":
    print(json.dumps(figure_9(*json.loads(sys.argv[1]))))
