"""A ring of real processes is cut in two and healed.  Spec: ring 1 (G1, G3, "Partition"), 5.5, D13; E12 in small.

By forwarders in this process always, by network namespaces and their firewall where root allows.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from benchmarks.ring_fleet import PATIENCE, POLL_INTERVAL, Fleet, Settings, fleet, now
from holdfast.host import Address
from holdfast.wire.keys import generate
from tests.features.ring.process.record import wrongs
from tests.support.forwarder import Mesh
from tests.support.netns import PORT, Namespaces, unavailable

LEASE = 0.6
KEYS = tuple(f"key{i}" for i in range(16))
NAMES = tuple(f"n{i}" for i in range(8))
MANY, FEW = NAMES[:5], NAMES[5:]  # the seeds are among the many, or the few could found a ring of their own (D20)
ROOT = Path(__file__).parents[4]


async def until(it: Fleet, holds: Callable[[], object], what: str) -> None:
    """As ``Fleet.until``, but the forwarders run meanwhile."""
    end_at = now() + PATIENCE
    while not holds():
        assert now() < end_at, f"never happened: {what}; {it.story()}"
        await asyncio.sleep(POLL_INTERVAL)
        it.poll()


def no_member(it: Fleet, names: Sequence[str]) -> bool:
    return not set(names) & set(it.members())


def check(it: Fleet, cut_at: float, healed_at: float, many: Sequence[str], few: Sequence[str]) -> None:
    """What a partition may do: put the minority out, and nothing else."""
    out = {str(line["node"]).partition("#")[0] for line in it.found("Departed", since=cut_at, was_member=True) if line["at"] < healed_at}
    assert out == set(few)
    assert it.found("Won", since=cut_at, entitled=True) != []
    assert len({line["ring"] for line in it.found("BecameMember")}) == 1
    assert len({line["ring"] for name, line in it.view.items() if name in (*many, *few)}) == 1
    assert wrongs(it.lines) == []
    assert it.found("Owned", since=healed_at) != []


@pytest.mark.timeout(3 * PATIENCE)
def test_forwarders_cut_and_heal() -> None:
    """Ring G1, G3: five of eight stay and lose nobody, three are out, nobody believes in a mutual death; healed, all are back."""
    asyncio.run(_cut_and_heal_links())


async def _cut_and_heal_links() -> None:
    async with Mesh(NAMES, seed=3) as mesh:
        seeds = tuple(str(mesh.address(name)) for name in MANY[:3])
        with fleet(Settings(lease=LEASE, seeds=seeds, keys=KEYS)) as it:
            for name in NAMES:
                found = ("--found", name) if name == NAMES[0] else ()
                it.start({name: str(mesh.bind(name))}, "--advertise", str(mesh.address(name)), *found)
            await until(it, lambda: len(it.bound) == len(NAMES), "all listen")
            for name, bound in it.bound.items():
                host, _, port = bound.rpartition(":")
                mesh.attach(name, Address(host, int(port)))
            await until(it, lambda: it.agreed(NAMES), "eight processes are one ring")
            cut_at = now()
            mesh.split(MANY, FEW)
            await until(it, lambda: it.agreed(MANY) and no_member(it, FEW), "five stay, three are out")
            healed_at = now()
            mesh.heal()
            await until(it, lambda: it.agreed(NAMES), "all are back")
            check(it, cut_at, healed_at, MANY, FEW)


@pytest.mark.netns
@pytest.mark.timeout(3 * PATIENCE)
def test_namespaces_cut_and_heal(tmp_path: Path) -> None:
    """Ring G1, G3: the same with a kernel's firewall between five machines, three against two, sealed."""
    reason = unavailable()
    if reason is not None:
        pytest.skip(reason)
    key_file = tmp_path / "key"
    key_file.write_text(generate())
    key_file.chmod(0o600)
    names = NAMES[:5]
    many, few = names[:3], names[3:]
    with Namespaces(len(names)) as net:
        addresses = {name: f"{net.address(number)}:{PORT}" for number, name in enumerate(names)}
        settings = Settings(lease=LEASE, seeds=tuple(addresses[name] for name in many), keys=KEYS, key_file=key_file)
        with fleet(settings) as it:
            for number, name in enumerate(names):
                found = ("--found", name) if number == 0 else ()
                it.start({name: addresses[name]}, *found, popen=in_namespace(net, number))
            it.until_agreed(names, "five processes are one ring")
            cut_at = now()
            for one in range(len(many)):
                for other in range(len(many), len(names)):
                    net.cut_both(one, other)
            it.until(lambda: it.agreed(many) and no_member(it, few), "three stay, two are out")
            healed_at = now()
            net.heal()
            it.until_agreed(names, "all are back")
            check(it, cut_at, healed_at, many, few)


def in_namespace(net: Namespaces, number: int) -> Callable[[list[str]], subprocess.Popen[Any]]:
    def popen(command: list[str]) -> subprocess.Popen[Any]:
        assert command[0] == sys.executable
        return net.popen(number, command, cwd=ROOT)

    return popen
