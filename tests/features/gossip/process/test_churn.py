"""Sixteen real agents of which one dies and one comes every two seconds, for three minutes; and keys that are changed meanwhile.

Spec: gossip 7 (G3, G4, G7, G10), 10 (keys); foundation F15; docs/keys.md.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random

import pytest

from holdfast.features.keys.calls import Keys, MemberReport
from holdfast.wire.keys import generate, parse_key
from tests.agent.raw_client import RawClient
from tests.features.gossip.process.fleet import GossipFleet
from tests.support.member_fleet import MARGIN, PROBE, Late
from tests.support.nets import Loopback
from tests.support.realtime import repeated

pytestmark = [pytest.mark.nightly, pytest.mark.timeout(1800)]

NAMES = tuple(f"a{number}" for number in range(16))
EVERY = 2.0  # seconds
MINUTES = 3
KEY_TIMEOUT = 30.0  # seconds: the most for one step
KEY_TRIES = 5  # of a step: a member that joins in its midst is not asked, and its report says so


class Churn:
    """Every ``EVERY`` seconds one that is neither seed nor seat nor holder dies, and one comes: the same name again, or a new one."""

    def __init__(self, fleet: GossipFleet) -> None:
        self.fleet, self.random = fleet, Random(5)
        self.names = [*fleet.others]
        self.gone: list[str] = []  # names that may come again
        self.deaths = 0

    def step(self) -> None:
        began_at = time.monotonic()
        victim = self.random.choice(self.names)
        self.fleet.kill(victim)
        self.names.remove(victim)
        self.gone.append(victim)
        self.deaths += 1
        # Every second one is a name of before; a new one each time otherwise.
        comes = self.gone.pop(0) if self.deaths % 2 and len(self.gone) > 1 else f"b{self.deaths}"
        self.fleet.start(comes)
        self.names.append(comes)
        time.sleep(max(0.0, began_at + EVERY - time.monotonic()))

    def run(self, seconds: float, during: Callable[[], bool] = lambda: False) -> None:
        """For so long, and as long as ``during`` says."""
        end_at = time.monotonic() + seconds
        while time.monotonic() < end_at or during():
            self.step()


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[GossipFleet]:
    key = tmp_path / "key"
    write_keys(key, generate())
    with GossipFleet(tmp_path, Loopback(NAMES), NAMES, key=None, key_file=str(key)) as running:
        yield running


def write_keys(file: Path, *keys: str) -> None:
    """What the next life begins with; it writes with the first."""
    file.write_text("\n".join(keys))
    file.chmod(0o600)


def check(fleet: GossipFleet, churn: Callable[[Churn], None]) -> None:
    def attempt(number: int) -> str:
        if number:
            fleet.rest()
        since = time.time()
        it = Churn(fleet)
        churn(it)
        try:
            took = fleet.right()
        except Late as late:
            return str(late)
        gone = fleet.lost(since)
        print(f"{it.deaths} deaths in {time.time() - since:.0f} s: lists right after {took:.2f} s of {fleet.bound:.1f} s; T {PROBE:g} s")  # noqa: T201 - a measurement, told with -s
        assert fleet.recorder.wrongs() == []
        touched = fleet.touched()
        fleet.kill(*(name for name in fleet.living() if name not in fleet.names))
        return "; ".join([*([f"{len(gone)} given up alive: {gone[:3]}"] if gone else []), *([touched] if touched else [])])

    repeated(attempt, margin=MARGIN)


def test_churn(fleet: GossipFleet) -> None:
    """Gossip G3: no live member is lost meanwhile, all lists are right soon after, and the grants of the seats are not touched."""
    check(fleet, lambda churn: churn.run(MINUTES * 60.0))


def test_keys_are_changed_under_churn(fleet: GossipFleet) -> None:
    """Gossip 10, H354, docs/keys.md: install, use, remove while members come and go. No member is lost by it, and in the end all that live
    hold the new key alone."""

    def churn(it: Churn) -> None:
        file = Path(fleet.fleet.settings["key_file"])
        old, new = file.read_text(), generate()
        first, second = parse_key(old).id.hex(), parse_key(new).id.hex()
        it.run(10.0)
        write_keys(file, old, new)
        step_by_all(it, ("install", new))
        write_keys(file, new, old)
        step_by_all(it, ("use", second))
        step_by_all(it, ("use", second), ("remove", first))  # One that came meanwhile began with what the file had before.
        write_keys(file, new)
        step_by_all(it, ("remove", first))  # As above.
        it.run(10.0)
        with RawClient(fleet.agents[fleet.seats[0]].socket) as client:
            reports = client.ask(Keys, "list", "", KEY_TIMEOUT)
        assert {each.keys for each in reports if each.done} == {(second,)}

    check(fleet, churn)


def step_by_all(churn: Churn, *steps: tuple[str, str]) -> None:
    """Steps of a rotation, until every member that is asked has done the last one; the churn goes on meanwhile."""
    missed: list[MemberReport] = []
    churn.gone.clear()  # One that died before this step may lack what it is about.
    for _ in range(KEY_TRIES):
        for action, key in steps:
            reports = asked(churn, action, key)
        living = set(churn.fleet.living())
        missed = [each for each in reports if not each.done and each.member in living]
        print(f"{steps[-1][0]}: {len(reports)} members, missed by {missed}")  # noqa: T201 - a measurement, told with -s
        if not missed:
            return
    raise AssertionError(f"{steps[-1][0]}: {missed}")


def asked(churn: Churn, action: str, key: str) -> tuple[MemberReport, ...]:
    """What all answered; members die and come until they have."""
    with RawClient(churn.fleet.agents[churn.fleet.seats[0]].socket) as client, ThreadPoolExecutor(1) as pool:
        client.sock.settimeout(2 * KEY_TIMEOUT)
        found = pool.submit(client.ask, Keys, action, key, KEY_TIMEOUT)
        churn.run(0.0, during=lambda: not found.done())
        reports: tuple[MemberReport, ...] = found.result()
        return reports
