"""Eight processes, one ring: what kill -9, a restart, goodbye and SIGSTOP do to it.  Spec: ring 1 (G2, G4, G5), 5.5, D6, D12; F6, F10.

Bounds are the protocol's; what the machine adds is measured in the same run (how late the timers of each member ran) and added, and
nothing else is.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.ring_fleet import Fleet, Line, Settings, fleet, free_addresses, name_of, now
from holdfast.features.ring.protocol.config import RingConfig
from tests.features.ring.process.record import wrongs
from tests.support.realtime import say_late

LEASE = 0.6
CONFIG = RingConfig(lease=LEASE)
NAMES = tuple(f"n{i}" for i in range(8))
KEYS = tuple(f"key{i}" for i in range(16))
DELAY = 0.02  # seconds for one answer on loopback, between processes of which only the timers are measured
TRIES = 5  # of what a machine that is late makes meaningless
CLAIMS = 6  # restarts of which one claim at least comes before the declaration: four of ten come too late


class Eight:
    """The ring, and how to bring a member back."""

    def __init__(self, it: Fleet, addresses: dict[str, str], folder: Path) -> None:
        self.fleet = it
        self._addresses, self._folder = addresses, folder

    def start(self, name: str, *more: str) -> None:
        self.fleet.start({name: self._addresses[name]}, "--state-dir", str(self._folder), *more)

    def together(self) -> None:
        self.fleet.until_agreed(NAMES, "eight processes are one ring")

    def id_of(self, name: str) -> str:
        """The membership it is in now."""
        return str(self.fleet.view[name]["as"])

    def about(self, event: str, ring_id: str, since: float) -> list[Line]:
        return [line for line in self.fleet.found(event, since=since) if ring_id in (line.get("peer"), line.get("id"))]


@pytest.fixture(scope="module")
def ring(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Eight]:
    """Formed by joins: one founds, seven knock at once. Shared, because every test brings everybody back."""
    addresses = dict(zip(NAMES, free_addresses(len(NAMES)), strict=True))
    with fleet(Settings(lease=LEASE, seeds=tuple(addresses[name] for name in NAMES[:3]), keys=KEYS)) as it:
        eight = Eight(it, addresses, tmp_path_factory.mktemp("state"))
        for name in NAMES:
            eight.start(name, *(("--found", name) if name == NAMES[0] else ()))
        yield eight


@pytest.fixture
def eight(ring: Eight) -> Iterator[Eight]:
    """All are there; at the end nothing was seen that must never be seen."""
    ring.together()
    yield ring
    ring.fleet.poll()
    assert wrongs(ring.fleet.lines) == []
    assert any(line["event"] == "Owned" for line in ring.fleet.lines)


def test_kill_9(eight: Eight) -> None:
    """Ring G4, G5, I5, I6: each of its 2k monitors suspects within 2 T_l, and whoever won declares within 4 T_l + T_a; all agree."""
    it, victim = eight.fleet, "n5"
    life, rest = eight.id_of(victim), [name for name in NAMES if name != victim]
    it.lateness()
    killed_at = it.home[victim].kill()
    it.until_agreed(rest, "seven agree")
    late = it.lateness()
    suspicions = {name_of(line): line["stop"] - killed_at for line in eight.about("Suspicion", life, killed_at)}
    assert len(suspicions) >= 2 * CONFIG.k
    assert {name: took for name, took in suspicions.items() if took >= 2 * LEASE + late[name] + CONFIG.drain} == {}
    winners = {name_of(line): line["at"] - killed_at for line in eight.about("Won", life, killed_at)}
    assert {name: took for name, took in winners.items() if took >= 2 * LEASE + late[name] + CONFIG.drain + CONFIG.t_a} == {}
    # 4 T_l + T_a: two leases until the suspicion, then T_arb = 2 T_l + T_a, which `wait` scales for drift.
    bound = 2 * LEASE + CONFIG.wait + CONFIG.drain
    declared = {name_of(line): line["at"] - killed_at for line in eight.about("Removed", life, killed_at)}
    assert set(declared) == set(rest)
    assert {name: took for name, took in declared.items() if name in winners and took >= bound + 2 * late[name] + DELAY} == {}
    assert all(line["certain"] and line["reason"] == "failed" for line in eight.about("Removed", life, killed_at))
    eight.start(victim)
    eight.together()


def test_restart_claims_its_former_life(eight: Eight) -> None:
    """Ring D12, F6: whoever holds the lock of the state directory may say that its former life is over, and need not be waited for."""
    prompt = 0
    for victim in NAMES[1:]:
        reasons, started_after = restarted(eight, victim)
        if "restarted" in reasons:
            return  # Nobody waited for the clock.
        # Its second attempt, at the latest, may make the claim; whether that comes before the declaration is drawn (backoff).
        prompt += started_after < LEASE
        if prompt == CLAIMS:
            pytest.fail(f"{CLAIMS} restarts in time, and no claim was believed")
    pytest.skip("this machine takes longer to begin a life than to declare one over")


def restarted(eight: Eight, victim: str) -> tuple[set[str], float]:
    """Kill it, and let a process that waited for this begin the next life; why the former membership was removed, and how soon that was."""
    it, former = eight.fleet, eight.fleet.home[victim]
    eight.together()
    life, node = eight.id_of(victim), it.view[victim]["node"]
    eight.start(victim, "--idle")
    it.until(lambda: it.home[victim].ready, "the next process waits")
    killed_at = former.kill()
    it.home[victim].order("start", victim)
    it.until(lambda: it.view.get(victim, {}).get("node", node) != node, "the next life begins")
    eight.together()
    assert eight.id_of(victim) != life
    boots = [int(str(each).partition("#")[2]) for each in (node, it.view[victim]["node"])]
    assert boots[0] < boots[1]
    removed = eight.about("Removed", life, killed_at)
    assert {name_of(line) for line in removed} >= set(NAMES) - {victim}
    assert all(line["certain"] for line in removed)
    # Nobody can have declared it by the clock so soon, so it was its own word.
    soon = [line for line in removed if line["at"] < killed_at + CONFIG.wait]
    assert {line["reason"] for line in soon} <= {"restarted"}
    started = min(line["at"] for line in it.found("Started", since=killed_at) if name_of(line) == victim)
    return {line["reason"] for line in removed}, started - killed_at


def test_goodbye(eight: Eight) -> None:
    """Ring 5.5, D13: SIGTERM is a polite leave: exit code 0, ``Left`` at everybody, no arbitration about it."""
    it, leaver = eight.fleet, "n6"
    life, node = eight.id_of(leaver), eight.fleet.view[leaver]["node"]
    asked_at = it.home[leaver].signal(signal.SIGTERM)
    rest = [name for name in NAMES if name != leaver]
    it.until_agreed(rest, "seven agree")
    assert it.home[leaver].child.wait(30) == 0
    assert {name_of(line) for line in it.found("Left", since=asked_at, member=node)} == set(rest)
    assert it.found("Failed", since=asked_at, member=node) == []
    assert eight.about("Won", life, asked_at) == []
    assert [line["reason"] for line in eight.about("Departed", life, asked_at)] == ["graceful"]
    eight.start(leaver)
    eight.together()


def test_stopped_for_half_a_lease(eight: Eight) -> None:
    """Ring G7, D6: SIGSTOP for T_l / 2 costs nobody anything: no decision, no departure."""
    it = eight.fleet
    for _ in range(TRIES):
        eight.together()
        it.lateness()
        stopped_at, resumed_at = stop(it, "n2", 0.5 * LEASE)
        it.pass_time(3 * LEASE)
        late = it.lateness()
        worst = max(resumed_at - stopped_at - 0.5 * LEASE, *(each for name, each in late.items() if name != "n2"))
        if worst < 0.2 * LEASE:
            assert it.found("Departed", since=stopped_at, was_member=True) == []
            assert it.found("Decided", since=stopped_at) == []
            return
        say_late(worst, "a stop of half a lease, and nothing else that takes long")
    pytest.skip("this machine stands still for longer than a lease")


def test_stopped_for_longer_than_a_lease(eight: Eight) -> None:
    """Ring G1, G2, G6: SIGSTOP for 1.5 T_l: decided against, it is out before anybody declares it, and comes back under a new id."""
    it, victim = eight.fleet, "n3"
    life = eight.id_of(victim)
    stopped_at, resumed_at = stop(it, victim, 1.5 * LEASE)
    it.pass_time(CONFIG.wait)
    eight.together()
    if eight.about("Won", life, stopped_at):
        out = eight.about("Departed", life, stopped_at)
        assert [line["was_member"] for line in out] == [True]
        # G6: within T_arb of the first suspicion, or at the first thing it did after a pause that lasted longer.
        suspected_at = min(line["stop"] for line in eight.about("Suspicion", life, stopped_at))
        assert out[0]["at"] < max(suspected_at + CONFIG.t_arb, resumed_at) + it.lateness()[victim] + DELAY
        assert eight.id_of(victim) != life


def test_stopped_for_ten_leases(eight: Eight) -> None:
    """Ring D6, F9, F10: declared meanwhile, the first thing it does is to find itself out, on its own clock; then it comes back."""
    it, victim = eight.fleet, "n4"
    life = eight.id_of(victim)
    stopped_at, resumed_at = stop(it, victim, 10 * LEASE)
    eight.together()
    declared = eight.about("Removed", life, stopped_at)
    assert {name_of(line) for line in declared} >= set(NAMES) - {victim}
    assert max(line["at"] for line in declared if name_of(line) != victim) < resumed_at
    first, second = [line for line in it.lines if name_of(line) == victim and line["at"] >= resumed_at][:2]
    assert (first["event"], first.get("id"), first.get("reason")) == ("Departed", life, "deadline")
    assert second["event"] == "Expelled"
    assert eight.id_of(victim) != life


def stop(it: Fleet, name: str, seconds: float) -> tuple[float, float]:
    """SIGSTOP, wait, SIGCONT; returns when that was, because a machine may make it longer."""
    process = it.home[name]
    stopped_at = process.signal(signal.SIGSTOP)
    it.pass_time(seconds)
    resumed_at = now()
    process.signal(signal.SIGCONT)
    return stopped_at, resumed_at
