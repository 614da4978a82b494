"""PRODUCT's shortest program with real agents: seeds, a key, nothing else. Whoever is a seat remembers without being told where (H96)."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from threading import Event
from time import monotonic
from typing import Any

import pytest

from holdfast import sync
from holdfast.cli.demo.fleet import free_ports
from holdfast.client.clock import now
from holdfast.errors import AcquireTimeout, ConfigError, Timeout
from holdfast.events import LeaderChanged, LeaderSuspected
from holdfast.host import NodeId
from holdfast.wire.keys import generate
from tests.client.spelling import Aio
from tests.support.agents import until

WAIT = 60.0  # seconds; only a broken machine reaches it
# A ring that takes ten heartbeats to find somebody dead: whoever is missed is missed for its heartbeats first.
PATIENT = 'preset = "local"\nlease = 2.0\nheartbeat = 0.3\nticket_lease = 1.0\nticket_round = 0.2\nlongest_grant = 3.0\n'


@pytest.fixture
def groups(runtime: Path) -> Iterator[list[Any]]:
    yield from three(runtime, preset="local")


@pytest.fixture
def patient(runtime: Path) -> Iterator[list[Any]]:
    settings = runtime / "settings.toml"
    settings.write_text(PATIENT)
    yield from three(runtime, config=settings)


def three(runtime: Path, **options: Any) -> Iterator[list[Any]]:
    """Three programs that were given the same list, in one process."""
    seeds = [f"127.0.0.1:{port}" for port in free_ports(3)]
    key = generate()
    with ThreadPoolExecutor(3) as pool:
        joined = list(pool.map(lambda _: sync.join("orders", seeds=seeds, key=key, **options, timeout=WAIT), range(3)))
        assert sorted(str(group.me.address) for group in joined) == sorted(seeds)  # Each of them is a seat.
        yield joined
        list(pool.map(lambda group: group.leave(), joined))
    assert {folder.name for folder in (runtime / "holdfast" / "orders").iterdir()} == set(seeds)


def test_one_leads_and_hands_over(groups: list[Any]) -> None:
    """PRODUCT: one of three leads, all know who; a hand-over by will needs no timeout, and the next token is larger."""
    deeds: list[tuple[str, int, float]] = []
    ended = Event()
    watches = [group.watch() for group in groups]

    def work(group: Any) -> None:
        with group.lead("scheduler", timeout=WAIT) as term:
            deeds.append((group.me.name, term.token, now()))
            assert term.valid
            assert group.leader("scheduler").id == group.me.id
            if len(deeds) == 1:
                until(lambda: all(known_by(each) == group.me.id for each in groups), "everybody knows it")
                term.resign()
                assert not term.valid
            else:
                ended.wait(WAIT)

    with ThreadPoolExecutor(3) as pool:
        began = monotonic()
        running = [pool.submit(work, group) for group in groups]
        until(lambda: len(deeds) >= 2, "the second one leads")
        assert monotonic() - began < WAIT
        (first, token, _), (second, larger, _) = deeds[:2]
        assert first != second
        assert larger > token
        ended.set()
        for each in running:
            each.result(WAIT)
    for watch in watches:
        assert next(event for event in watch if isinstance(event, LeaderChanged)).name == "scheduler"


def known_by(group: Any) -> NodeId | None:
    leader = group.leader("scheduler")
    return None if leader is None else leader.id


def test_a_silent_leader_is_suspected(patient: list[Any]) -> None:
    """Foundation 5, H138: clients of other agents hear that the leader is missed, and then how that ended: cleared, or LeaderChanged."""
    with patient[0].lead("scheduler", timeout=WAIT) as term:
        leader, pid = patient[0].me.id, patient[0]._link.child.pid
        until(lambda: all(known_by(each) == leader for each in patient), "everybody knows it")
        watches = {group.me.name: group.watch() for group in patient[1:]}
        heard: dict[str, list[LeaderSuspected | LeaderChanged]] = {name: [] for name in watches}

        def listen() -> list[LeaderSuspected | LeaderChanged]:
            """What one of them heard, from the first suspicion on."""
            for name, watch in watches.items():
                with suppress(Timeout):
                    while True:
                        event = watch.next(timeout=0.01)
                        if isinstance(event, LeaderSuspected) or (heard[name] and isinstance(event, LeaderChanged)):
                            heard[name].append(event)
            return max(heard.values(), key=len)

        os.kill(pid, signal.SIGSTOP)
        try:
            until(listen, "somebody suspects it", WAIT)
        finally:
            os.kill(pid, signal.SIGCONT)
        until(lambda: len(listen()) >= 2, "it ended", WAIT)
    suspicion, end = listen()[:2]
    assert suspicion == LeaderSuspected("scheduler", leader, term.token, cleared=False)
    assert end == LeaderSuspected("scheduler", leader, term.token, cleared=True) or isinstance(end, LeaderChanged)


def test_alone_on_a_machine_clients_take_turns(runtime: Path) -> None:
    """F12: without seeds and key this machine's one agent is its own seat; its clients, in both spellings, lead one after the other."""
    with sync.join("alone", preset="local") as first, sync.join("alone") as second:
        assert (runtime / "alone.state" / "journal").exists()
        aio = Aio()
        third = aio.join("alone")
        with first.lead("x", timeout=WAIT) as term:
            with pytest.raises(AcquireTimeout, match="another client holds it"), second.lead("x", timeout=0.2):
                pass
            waiting = aio.start(lambda: third.lead("x", timeout=WAIT).__aenter__())
            assert not waiting.done()
        later = waiting.result(WAIT)
        assert (later.valid, later.token > term.token) == (True, True)
        aio.run(later.__aexit__, None, None, None)
        with pytest.raises(ConfigError, match=r"grace: 2\.6; accepted are 0 to 2\.55 seconds"), first.lead("x", grace=2.6):
            pass
        aio.run(third.leave)
        aio.close()
