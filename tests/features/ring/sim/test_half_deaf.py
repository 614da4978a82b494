"""Whole groups with one member that hears almost nothing.  Spec: ring 5.2; docs/decisions.md H162."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from holdfast.events import Event
from holdfast.features.ring.lab.rings import PAPER_LINK, Rings
from holdfast.features.ring.protocol.config import RingConfig
from holdfast.features.ring.protocol.facts import Departed
from holdfast.features.ring.protocol.rules import Rules
from holdfast.lab.host import LabHost
from tests.features.ring.stand import T_L


@pytest.mark.parametrize("size", [3, 5, 8])
def test_a_half_deaf_member_puts_nobody_out(size: int) -> None:
    """H162: it speaks, and loses 99 % of what is said to it. It leaves; without the rule it puts healthy ones out in some of the runs."""
    found = {rule: [_departures(size, seed, deaf=rule) for seed in range(12)] for rule in (True, False)}
    assert [healthy for healthy, _ in found[True]] == [0] * 12
    assert [sick for _, sick in found[True]] == [1] * 12
    assert sum(healthy for healthy, _ in found[False]) >= 1


def _departures(size: int, seed: int, *, deaf: bool) -> tuple[int, int]:
    """How many healthy members had to leave within 12 T_l, and whether the sick one did."""
    names = [f"n{number}" for number in range(size)]
    rings = Rings(seed, RingConfig(), rules=Rules(deaf=deaf))
    rings.form(names)
    gone = list[str]()

    def on_event(host: LabHost, event: Event) -> None:
        if isinstance(event, Departed) and event.was_member:
            gone.append(host.me.name)

    rings.world.listeners.append(on_event)
    rings.world.run(3.3 * T_L)
    sick = names[seed % size]
    for name in names:
        if name != sick:
            rings.world.network.set_link(replace(PAPER_LINK, loss=0.99), name, sick)
    rings.world.run(15.3 * T_L)
    return len(set(gone) - {sick}), int(sick in gone)
