"""One part of `views` in a process of its own: ``python -m benchmarks.views_side PART SIZE``; its last line is the answer.

It is started in a network and a pid namespace of its own where the kernel allows it: then agents can be cut off from each
other, and what it started ends with it.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec

from benchmarks import views_idle, views_letters, views_lives
from benchmarks.harness import ROOT
from benchmarks.leadership_side import namespaces
from benchmarks.ring_fleet import NeverHappened
from benchmarks.views_fleet import begin_network

Part = tuple[type[Any], Callable[[Any, Path], Mapping[str, Any]]]
PARTS: Mapping[str, Part] = {
    "idle": (views_idle.Idle, views_idle.measure),
    "lives": (views_lives.Lives, views_lives.measure),
    "letters": (views_letters.Letters, views_letters.measure),
}


def apart(part: str, size: Any, *, module: str = "benchmarks.views_side") -> dict[str, Any]:
    """What this part measures. Raises ``NeverHappened`` if it broke off."""
    command = [*namespaces(), sys.executable, "-m", module, part, msgspec.json.encode(size).decode()]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
    said = done.stdout.splitlines()
    found: dict[str, Any] = json.loads(said[-1]) if said else {"broken": f"it ended with {done.returncode}; what it said is above"}
    if "broken" in found:
        raise NeverHappened(f"{part}: {found['broken']}")
    return found


def here(part: str, size: str, parts: Mapping[str, Part] = PARTS) -> Mapping[str, Any]:
    kind, measure = parts[part]
    begin_network()
    try:
        with TemporaryDirectory(prefix="hf-") as folder:
            return measure(msgspec.json.decode(size, type=kind), Path(folder))
    except NeverHappened as error:
        return {"broken": str(error)}


if __name__ == "__main__":
    print(json.dumps(here(sys.argv[1], sys.argv[2])), flush=True)
