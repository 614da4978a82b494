"""What a member counts, for its operator.  Spec: gossip 9."""

from __future__ import annotations

from collections.abc import Mapping

from holdfast.features.gossip.protocol.core import Core

COUNTERS = (
    "probes_direct", "probes_indirect", "probes_failed", "relayed", "suspicions", "suspicions_cleared", "buried", "false_positives",
    "refutations", "last_calls", "last_calls_answered", "syncs", "syncs_equal", "syncs_differing", "syncs_failed", "overslept",
)  # fmt: skip


def metrics(core: Core, now: Mapping[str, float]) -> dict[str, float]:
    """Numbers by name. Counters never fall in a life; ``now`` is as of now, from the parts."""
    found = {
        "member": float(core.is_member),
        "members": float(core.n if core.is_member else 0),
        "tombstones": float(len(core.table.tombstones)),
        "lhm": float(core.lhm),
        **now,
        **dict.fromkeys(COUNTERS, 0.0),
    }
    found |= {name: float(count) for name, count in sorted(core.counts.items())}
    found |= {f"out_{kind.__name__.lower()}": float(count) for kind, count in sorted(core.sent.items(), key=_kind)}
    found |= {f"in_{kind.__name__.lower()}": float(count) for kind, count in sorted(core.received.items(), key=_kind)}
    return found


def _kind(item: tuple[type, int]) -> str:
    return item[0].__name__
