"""What real agents show too rarely: large groups, a page that needs a token, a group of one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from msgspec.structs import replace

from holdfast.agent.observe.http import HttpServer, listen
from holdfast.agent.observe.http_app import Service
from holdfast.agent.observe.http_guard import accepted_hosts
from holdfast.features.ring.protocol.ids import Peer, RingId, position_of
from holdfast.host import Address, NodeId
from tests.page.chromium import Page
from tests.page.stub_agent import StubAgent, StubGroup, stub_group
from tests.support.agents import until
from tests.support.static_membership import StaticMembership, StaticSide

TOKEN = "the-token-of-this-agent"


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


def test_another_membership_has_no_ring_on_the_page(page: Page, group: StubGroup) -> None:
    """H202, H216: without positions and without a ring the page shows members and health, and no script fails."""
    agent = group.add("kelp")
    until(lambda: group.call(lambda: agent.ring.is_member), "a ring of one")
    standing = StaticMembership(agent.host, {"kelp": agent.host.address})
    agent.side = StaticSide(standing)
    placed = agent.view
    agent.view = lambda: replace(placed(), positions=())  # type: ignore[method-assign]
    group.http = group.run(served(agent))
    page.open(group.url, calm=True)
    page.until("document.body?.dataset.link === 'live' && document.querySelectorAll('#rows tr').length === 1")
    page.until("document.querySelector('[data-tile=memory] dd').textContent.length > 2")
    assert page.js("document.querySelector('#ring-card')") is None
    assert page.js("[...document.styleSheets].filter((each) => each.href.includes('/ring/')).length") == 0
    assert page.errors == []


async def served(agent: StubAgent, token: bytes | None = None) -> HttpServer:
    listener, address = listen(Address("127.0.0.1", 0))
    service = Service(agent, hosts=accepted_hosts(address.host) if token is None else None, token=token)  # type: ignore[arg-type]
    await service.start(listener)
    return HttpServer(address, service)


def test_a_page_beyond_loopback_asks_for_the_token(page: Page, group: StubGroup) -> None:
    """The files of the page are free, its data is not: a dialog asks, a wrong token asks again, the right one makes it live."""
    agent = group.add("kelp")
    until(lambda: group.call(lambda: agent.ring.is_member), "a ring of one")
    group.http = group.run(served(agent, TOKEN.encode()))
    page.open(group.url, calm=True)
    page.until("document.querySelector('#token')?.open")
    assert page.js("[...document.styleSheets].filter((each) => each.cssRules.length).length") == 7  # of the page and of five panels
    for given in ("wrong", TOKEN):
        page.until("document.querySelector('#token')?.open")
        page.js(f"document.querySelector('#token-input').value = '{given}'; document.querySelector('#token form').requestSubmit()")
    page.until("document.body.dataset.link === 'live' && document.querySelectorAll('#rows tr').length === 1")
    assert [error for error in page.errors if "401" not in error] == []


def test_no_empty_boxes(page: Page, group: StubGroup) -> None:
    """Grants and seats are not there while there are none; a group of one is shown as one."""
    group.add("kelp", http="127.0.0.1:0")
    page.open(group.url, calm=True)
    page.until("document.querySelector('#ring .middle')?.textContent.includes('no neighbour yet')")
    assert page.js("document.querySelector('#grants').hidden && document.querySelector('#seats').hidden")
    assert page.js("[...document.querySelectorAll('.card')].filter((each) => !each.hidden).length") == 3
    assert page.errors == []


def test_leaders_terms_and_takeovers(page: Page, group: StubGroup) -> None:
    """A term, a death and a takeover appear as they happen: who leads, under which token, and how long nobody was known to."""
    kelp = group.add("kelp", http="127.0.0.1:0")
    page.open(group.url)
    page.until("document.body?.dataset.link === 'live'")
    assert page.js("document.querySelector('#leaders').hidden")
    row = "document.querySelector('#leader-rows tr[data-lead=\"<b>sched</b>\"]')"
    at = kelp.host.wall()
    group.call(lambda: kelp.leader_changed("<b>sched</b>", NodeId("reef", 1), 41, at))
    page.until(f"{row}?.dataset.leader === 'reef' && {row}.textContent.includes('41')")
    assert page.js("document.querySelector('#leader-promise').textContent") == ""  # There is nobody else.
    for cleared in (False, True):
        group.call(lambda: kelp.leader_suspected("<b>sched</b>", NodeId("reef", 1), 41, cleared=cleared))  # noqa: B023 - called here
    page.until("document.querySelectorAll('#events li[data-event=LeaderSuspected]').length === 2")
    said = page.js("[...document.querySelectorAll('#events li[data-event=LeaderSuspected] p:first-child')].map((each) => each.textContent)")
    assert said == ["reef leads <b>sched</b>: cleared", "reef leads <b>sched</b>: suspected"]  # newest first
    assert page.js(f"{row}.dataset.leader") == "reef"  # H138: nothing follows from it
    group.call(lambda: kelp.leader_changed("<b>sched</b>", None, 41, at + 5.0))
    page.until(f"{row}.dataset.is === 'vacant'")
    assert "no leader" in page.js(f"{row}.textContent")
    group.call(lambda: kelp.leader_changed("<b>sched</b>", NodeId("kelp", 1_700_000_000_000), 42, at + 5.25))
    page.until(f"{row}.dataset.leader === 'kelp' && {row}.classList.contains('taken')")
    cells = page.js(f"[...{row}.children].map((each) => each.textContent)")
    assert (cells[0], cells[1], cells[2], cells[4], cells[5].split(), cells[6]) == (
        "<b>sched</b>", "kelpthis agent", "42", "2", ["0.25", "s"], "kelp, reef",
    )  # fmt: skip
    assert page.js("[...document.querySelectorAll('#events li[data-event=LeaderChanged]')].length") == 3
    assert page.js("document.querySelector('#leader-count').textContent") == "1"
    assert page.errors == []
