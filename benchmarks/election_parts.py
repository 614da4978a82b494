"""One part of `election` in a process of its own: ``python -m benchmarks.election_parts PART SIZE``; its last line is the answer."""

from __future__ import annotations

import json
import sys

from benchmarks import election_idle, election_lab
from benchmarks.views_side import Part, here

PARTS: dict[str, Part] = {
    "idle": (election_idle.Idle, election_idle.measure),
    "lab": (election_lab.Lab, election_lab.measure),
}

if __name__ == "__main__":
    print(json.dumps(here(sys.argv[1], sys.argv[2], PARTS)), flush=True)
