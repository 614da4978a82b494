"""One of three real members speaks and hears nothing.  Spec: ring 5.2 (first come, first served), decision H162; E17 in small."""

from __future__ import annotations

import asyncio

import pytest

from benchmarks.ring_fleet import PATIENCE, Fleet, Process, Settings, fleet, now
from holdfast.host import Address
from tests.features.ring.process.record import wrongs
from tests.features.ring.process.test_partition import until
from tests.support.forwarder import Mesh

LEASE = 1.0  # T_a / 2 is 250 ms: a healthy member that stands still for so long is not what this test is about
NAMES = ("n0", "n1", "n2")
MANY = 5  # without the rule a healthy member leaves in about six of ten rounds


@pytest.mark.timeout(3 * PATIENCE)
@pytest.mark.parametrize("rounds", [1, pytest.param(MANY, marks=pytest.mark.nightly)])
def test_a_deaf_member_puts_no_healthy_one_out(rounds: int) -> None:
    """H162: its leases run out first and its questions arrive. It leaves as deaf, each time, and both others stay members."""
    asyncio.run(_turn_deaf(rounds))


async def _turn_deaf(rounds: int) -> None:
    async with Mesh(NAMES, seed=5) as mesh:
        seeds = tuple(str(mesh.address(name)) for name in NAMES)
        with fleet(Settings(lease=LEASE, seeds=seeds)) as it:
            for name in NAMES:
                await _start(it, mesh, name, *(("--found", name) if name == NAMES[0] else ()))
            reasons = []
            for number in range(rounds):
                await until(it, lambda: it.agreed(NAMES), "three processes are one ring")
                await asyncio.sleep(LEASE * (1 + number / MANY))  # sessions follow each other; deafness begins anywhere in one
                deaf = NAMES[number % len(NAMES)]
                reasons += await _deafen(it, mesh, deaf)
                it.home[deaf].kill()
                mesh.heal()
                await _start(it, mesh, deaf)
            assert reasons == ["deaf"] * rounds
            assert wrongs(it.lines) == []


async def _deafen(it: Fleet, mesh: Mesh, deaf: str) -> list[str]:
    """Nothing reaches this one any more; returns why it left."""
    healthy = [name for name in NAMES if name != deaf]
    deaf_at = now()
    for name in healthy:
        mesh.cut(name, deaf)
    await until(it, lambda: it.agreed(healthy) or _departed(it, deaf_at, healthy), "the two others are a ring")
    assert _departed(it, deaf_at, healthy) == []
    return _departed(it, deaf_at, [deaf])


def _departed(it: Fleet, since: float, names: list[str]) -> list[str]:
    """Why these had to leave."""
    lines = it.found("Departed", since=since, was_member=True)
    return [str(line["reason"]) for line in lines if str(line["node"]).partition("#")[0] in names]


async def _start(it: Fleet, mesh: Mesh, name: str, *more: str) -> Process:
    process = it.start({name: str(mesh.bind(name))}, "--advertise", str(mesh.address(name)), *more)
    it.bound.pop(name, None)
    await until(it, lambda: name in it.bound, f"{name} listens")
    host, _, port = it.bound[name].rpartition(":")
    mesh.attach(name, Address(host, int(port)))
    return process
