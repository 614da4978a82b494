"""PRODUCT's shortest program with real agents: seeds, a key, nothing else. Whoever is a seat remembers without being told where (H96)."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from time import monotonic
from typing import Any

import pytest

from holdfast import sync
from holdfast.cli.demo_fleet import free_ports
from holdfast.client.clock import now
from holdfast.errors import AcquireTimeout, ConfigError
from holdfast.events import LeaderChanged
from holdfast.host import NodeId
from holdfast.wire.keys import generate
from tests.client.spelling import Aio
from tests.support.agents import until

WAIT = 60.0  # seconds; only a broken machine reaches it


@pytest.fixture
def groups(runtime: Path) -> Iterator[list[Any]]:
    """Three programs that were given the same list, in one process."""
    seeds = [f"127.0.0.1:{port}" for port in free_ports(3)]
    key = generate()
    with ThreadPoolExecutor(3) as pool:
        joined = list(pool.map(lambda _: sync.join("orders", seeds=seeds, key=key, preset="local", timeout=WAIT), range(3)))
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


def test_alone_on_a_machine_clients_take_turns(runtime: Path) -> None:
    """F12: without seeds and key this machine's one agent is its own seat; its clients, in both spellings, lead one after the other."""
    with sync.join("alone", preset="local") as first, sync.join("alone") as second:
        assert (runtime / "alone.state" / "journal").exists()
        aio = Aio()
        third = aio.join("alone")
        with first.lead("x", timeout=WAIT) as term:
            with pytest.raises(AcquireTimeout, match="somebody else holds it"), second.lead("x", timeout=0.2):
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
