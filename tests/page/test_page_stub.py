"""What real agents show too rarely: large groups, a page that needs a token, a group of one; and the pictures of the documentation."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.agent.http import HttpServer, listen
from holdfast.agent.http_app import Service
from holdfast.host import Address, NodeId
from holdfast.protocols.ring.ids import Peer, RingId, position_of
from tests.page.chromium import Page
from tests.page.stub_agent import StubGroup, stub_group
from tests.support.agents import until

TOKEN = "the-token-of-this-agent"
PICTURES = Path(__file__).resolve().parents[2] / "docs" / "_static"
NAMES = ("kelp", "reef", "skerry", "tide", "mist", "pier", "atoll")
ZONES = ("eu-1", "eu-1", "eu-2", "eu-2", "eu-3", "eu-3", "eu-1")
ROLES = ("web", "api", "web", "api", "web", "worker", "worker")


@pytest.fixture
def group() -> Iterator[StubGroup]:
    with stub_group() as started:
        yield started


def test_large_groups_are_spread_evenly(page: Page, group: StubGroup) -> None:
    """Many members: evenly spread by default, dots that do not cover each other, names for those with something to say, a filter."""
    kelp = group.add("kelp", http="127.0.0.1:0", lease=10.0)
    others = [Peer(RingId(position_of(f"host-{i}"), i + 1), NodeId(f"host-{i}", 5), Address("127.0.0.1", 10_000 + i)) for i in range(120)]
    until(lambda: group.call(lambda: kelp.ring.is_member), "a ring of one")
    group.call(lambda: kelp.ring.list.hear(others))
    page.open(group.url, calm=True)
    page.until("document.querySelectorAll('#ring .node').length === 121")
    assert page.js("document.querySelector('input[name=spread]:checked').value") == "even"
    assert page.js("document.querySelectorAll('#ring .node:not(.mute)').length") == 1
    page.js("document.querySelector('input[name=spread][value=true]').click()")
    page.js("const find = document.querySelector('#find'); find.value = 'host-77'; find.dispatchEvent(new Event('input'))")
    assert page.js("[...document.querySelectorAll('#rows tr')].filter((each) => !each.hidden).length") == 1
    assert page.errors == []


def test_a_page_beyond_loopback_asks_for_the_token(page: Page, group: StubGroup) -> None:
    """The files of the page are free, its data is not: a dialog asks, a wrong token asks again, the right one makes it live."""
    agent = group.add("kelp")
    until(lambda: group.call(lambda: agent.ring.is_member), "a ring of one")

    async def served() -> HttpServer:
        listener, address = listen(Address("127.0.0.1", 0))
        service = Service(agent, hosts=None, token=TOKEN.encode())  # type: ignore[arg-type]
        await service.start(listener)
        return HttpServer(address, service)

    group.http = group.run(served())
    page.open(group.url, calm=True)
    for given in ("wrong", TOKEN):
        page.until("document.querySelector('#token')?.open")
        page.js(f"document.querySelector('#token-input').value = '{given}'; document.querySelector('#token form').requestSubmit()")
    page.until("document.body.dataset.link === 'live' && document.querySelectorAll('#rows tr').length === 1")
    assert [error for error in page.errors if "401" not in error] == []


def test_no_empty_boxes(page: Page, group: StubGroup) -> None:
    """Grants and seats are not there while there are none; a group of one is shown as one."""
    group.add("kelp", http="127.0.0.1:0")
    page.open(group.url, calm=True)
    page.until("document.querySelector('#ring .middle')?.textContent.includes('nobody to watch yet')")
    assert page.js("document.querySelector('#grants').hidden && document.querySelector('#seats').hidden")
    assert page.js("[...document.querySelectorAll('.card')].filter((each) => !each.hidden).length") == 3
    assert page.errors == []


def _crash_before_it_is_asked(group: StubGroup, victim: str) -> None:
    """Just before the own session with it ends, so that nobody else's lease runs out earlier and the suspicion is seen here."""
    kelp = group.agents["kelp"]

    def left() -> float:
        ends = (p.s + kelp.ring.config.lease - kelp.host.now for p in kelp.ring.pairs.values() if p.peer.node.name == victim and p.acked)
        return next(ends, 9.0)

    until(lambda: 0.02 < group.call(left) < 0.06, "the end of a session is near")
    group.crash(victim)


@pytest.mark.timeout(300)
def test_pictures(page: Page, group: StubGroup, rewrite: bool) -> None:
    """The pictures of the documentation, written only when asked for (--rewrite) and looked at by a person then."""
    if not rewrite:
        pytest.skip("pictures are taken with --rewrite")
    for name, zone, role in zip(NAMES, ZONES, ROLES, strict=True):
        http = {"http": "127.0.0.1:0"} if name == "kelp" else {}
        group.add(name, tags={"zone": zone, "role": role}, lease=1.0, **http)
    until(lambda: group.settled(len(NAMES)), "all are members")
    for path, dark, width, height, scale in (
        ("light", False, 1360, 1180, 1.5),
        ("phone", False, 390, 844, 2.0),
        ("dark", True, 1360, 1180, 1.5),
    ):
        page.open(group.url, dark=dark, width=width, height=height, scale=scale)
        page.until(f"document.querySelectorAll('#ring .lease.active').length === {len(NAMES) - 1}")
        time.sleep(6.0 if width < 500 else 24.0)  # Until the lines of the last seconds have something to show.
        page.picture(PICTURES / f"page-{path}.png")
    page.open(group.url, dark=True, width=1360, height=840, scale=1.5)
    page.until(f"document.querySelectorAll('#ring .lease.active').length === {len(NAMES) - 1}")
    _crash_before_it_is_asked(group, "tide")
    page.until("document.querySelector('#ring .node.suspected')")
    time.sleep(0.35)  # The waves are under way.
    page.picture(PICTURES / "page-suspicion.png")
    page.until("document.querySelector('#ring .node.decided')")
    time.sleep(0.9)
    page.picture(PICTURES / "page-decision.png")
    assert page.errors == []
