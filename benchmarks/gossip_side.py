"""One part of `gossip` in a process of its own: ``python -m benchmarks.gossip_side PART SIZE``; its last line is the answer.

It is started in a network and a pid namespace of its own where the kernel allows it, so what it started ends with it, and a group can be
cut in halves.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec

from benchmarks import gossip_lab, gossip_real
from benchmarks.ring_fleet import NeverHappened
from benchmarks.views_fleet import begin_network
from benchmarks.views_side import apart as views_apart

MODULE = "benchmarks.gossip_side"
Part = tuple[type[Any], Callable[[Any, Path], Mapping[str, Any]]]
PARTS: Mapping[str, Part] = {
    "real": (gossip_real.Real, gossip_real.measure),
    "lab": (gossip_lab.Lab, gossip_lab.measure),
}


def apart(part: str, size: Any) -> dict[str, Any]:
    """What this part measures. Raises ``NeverHappened`` if it broke off."""
    return views_apart(part, size, module=MODULE)


def here(part: str, size: str) -> Mapping[str, Any]:
    kind, measure = PARTS[part]
    begin_network()
    try:
        with TemporaryDirectory(prefix="hf-") as folder:
            return measure(msgspec.json.decode(size, type=kind), Path(folder))
    except NeverHappened as error:
        return {"broken": str(error)}


if __name__ == "__main__":
    print(json.dumps(here(*sys.argv[1:])), flush=True)
