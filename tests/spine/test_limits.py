"""Limits that grow with a group follow from one constant, ``bounds.MEMBERS_MAX``, which has room for 10,000 members.  H203, H343."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import holdfast
from holdfast.bounds import MEMBERS_MAX

ONE_EACH = {  # a table with one entry per member, by module and name
    "node": "PEERS_MAX",
    "kit.outbox": "MET_MAX",
    "kit.rows": "KEYS_MAX",
    "net.udp": "CACHED_MAX",
    "features.names.protocol.names": "NAMES_MAX",
    "features.mail.protocol.inbox": "SENDERS_MAX",
    "features.ring.protocol.memberlist": "ENTRIES_KEPT",
    "features.leadership.protocol.config": "NAMES_MAX",
}
OTHERS = {  # what else depends on it, and its share
    ("kit.broadcast", "WINDOWS_MAX"): 2,
    ("features.ring.protocol.memberlist", "KNOWN_MAX"): 2,
    ("features.ring.protocol.arbitration", "HEARD_MAX"): 1 / 2,
    ("features.tickets.protocol.tickets", "GONE_MAX"): 1 / 2,
    ("wire.replay", "RUNS_MAX"): 1 / 2,
    ("wire.replay", "RETIRED_MAX"): 8,
    ("local.frame", "ANSWER_BYTES_MAX"): 512,
    ("agent.socket.connection", "BACKLOG_BYTES_MAX"): 1024,
}
LIMITS = {**dict.fromkeys(ONE_EACH.items(), 1.0), **OTHERS}
LARGER = 32_768

SCRIPT = """
import json, sys
from importlib import import_module
from holdfast import bounds
bounds.MEMBERS_MAX = int(sys.argv[1])
print(json.dumps([getattr(import_module(f"holdfast.{module}"), name) for module, name in json.loads(sys.argv[2])]))
"""


def test_the_limits_hang_together() -> None:
    """Today's values: every table has room for as many members as the node keeps addresses for, or a stated multiple."""
    for (module, name), share in LIMITS.items():
        assert getattr(import_module(f"holdfast.{module}"), name) == share * MEMBERS_MAX, (module, name)
    assert MEMBERS_MAX == 20_480, "room for 10,000 members, and as many lives that are over"


def test_a_larger_group_is_one_change() -> None:
    """Another value of the constant reaches every limit: none of them has a number of its own. In a process of its own."""
    command = [sys.executable, "-c", SCRIPT, str(LARGER), json.dumps(list(LIMITS))]
    ended = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert json.loads(ended.stdout) == [share * LARGER for share in LIMITS.values()]


def test_nobody_repeats_the_number() -> None:
    """A new table for members uses the constant: the number itself stands in one place, and where it means something else."""
    root = Path(str(holdfast.__file__)).parent
    found = {str(path.relative_to(root)) for path in root.rglob("*.py") if re.search(r"\b(20480|20_480)\b", path.read_text())}
    assert found == {"bounds.py"}
