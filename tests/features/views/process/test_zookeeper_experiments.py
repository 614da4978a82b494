"""views/Z1 and Z2 with a real ensemble at reduced size, and the forwarders that stand before its servers.  Spec: views 8 (Z1, Z2), 5Z."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from socket import IPPROTO_TCP, TCP_NODELAY, socket
from typing import Any

import pytest

from holdfast.features.views.lab.ensemble import missing
from holdfast.features.views.lab.experiments import figure7_heal_times, mailbox_cost
from holdfast.features.views.lab.wires import LOOPBACK, Wires
from holdfast.host import Address
from holdfast.lab.experiment import Experiment, conduct, parameters_of

REAL = [
    (figure7_heal_times.EXPERIMENT, {"seconds": "[8.0]"}, 2),
    (mailbox_cost.EXPERIMENT, {"members": "8", "burst": "1", "seconds": "2.0", "messages": "20", "window": "8"}, 1),
]


@pytest.mark.nightly
@pytest.mark.skipif(bool(missing()), reason=missing())
@pytest.mark.parametrize("experiment, settings, columns", REAL, ids=["Z1", "Z2"])
def test_a_real_ensemble(experiment: Experiment[Any], settings: Mapping[str, str], columns: int) -> None:
    """Views 8, Z1, Z2: the column of ZooKeeper is measured, and nothing else is wanted for a pass."""
    report = conduct(experiment, parameters_of(experiment, {**settings, "back_ends": '["zookeeper"]'}), 0, map, "test")
    assert report.verdict == "pass", report.notes
    assert report.notes == ("moshe is not measured: it was not asked for",)
    name = "never" if experiment is figure7_heal_times.EXPERIMENT else "sustained"
    assert len(report.measured[name]) == columns


def test_a_wire_holds_nothing_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """H243: what passes a wire leaves at once in both directions. Held back until more comes, an answer of ZooKeeper takes 40 ms more."""
    options: list[int] = []
    pump = "holdfast.features.views.lab.wires._pump"

    async def looked_at(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        options.append(writer.get_extra_info("socket").getsockopt(IPPROTO_TCP, TCP_NODELAY))

    monkeypatch.setattr(pump, looked_at)
    with socket() as target, Wires() as wires:
        target.bind((LOOPBACK, 0))
        target.listen()
        wire = wires.open(Address(*target.getsockname()))
        for _ in range(2):  # the second time after a cut, which takes the place of the first listener
            with socket() as client:
                client.connect(wire.address)
                assert client.recv(1) == b""
            wire.cut()
            wire.heal()
    assert len(options) == 4
    assert all(options)
