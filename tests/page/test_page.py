"""The page of real agents in a real browser: what it shows, to whom, and that nobody's text becomes its markup."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest

from holdfast import sync
from tests.http.wire import ask
from tests.page.chromium import Browser, Page
from tests.support.agents import AgentProcess, Fleet, until

LEASE = 1.0  # long enough that a machine that stands still for a moment puts nobody out
HOSTILE = '<img src="x" onerror="window.hit = 1">'
SHIFTS = """new Promise((done) => {
    const sum = (list) => done(list.getEntries().reduce((whole, each) => whole + each.value, 0));
    new PerformanceObserver(sum).observe({ type: "layout-shift", buffered: true });
    setTimeout(() => done(0), 300);
})"""
WATCH = """
    window.stages = [];
    new MutationObserver((records) => {
        for (const record of records) {
            const node = record.target.closest?.("#ring .node[data-member]");
            if (node && record.attributeName === "data-status") stages.push([node.dataset.member, node.dataset.status]);
        }
    }).observe(document.querySelector("#ring"), { subtree: true, attributes: true, attributeFilter: ["data-status"] });
"""


REACHED = """(() => {
    const inner = (rule) => (rule instanceof CSSMediaRule ? styles(rule.cssRules) : []);
    const styles = (rules) => [...rules].flatMap((rule) => (rule.selectorText ? [rule] : inner(rule)));
    const place = (element) => element.closest("section")?.id ?? element.tagName;
    const panels = [...document.styleSheets].filter((sheet) => sheet.href.endsWith("/panel.css"));
    return Object.fromEntries(panels.map((sheet) => {
        const rules = styles(sheet.cssRules);
        const reached = rules.flatMap((rule) => [...document.querySelectorAll(rule.selectorText.replaceAll(/::[a-z]+/g, ""))].map(place));
        return [sheet.href.split("/").slice(-2).join("/"), [[...new Set(reached)].sort(), rules.length]];
    }));
})()"""


@pytest.fixture(scope="module")
def fleet(chromium: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """Two agents with pages; others come and go. One has a tag that would like to be markup."""
    with Fleet(tmp_path_factory.mktemp("fleet"), lease=LEASE, preset="lan", http="127.0.0.1:0") as started:
        kelp = started.start(name="kelp", tags={"zone": "eu-1"})
        reef = started.start(name="<b>reef</b>", tags={"note": HOSTILE}, seeds=[kelp.address])
        kelp.until_said("Joined", member=reef.id)
        reef.until_said("Joined", member=kelp.id)
        yield started


@pytest.fixture
def kelp(fleet: Fleet) -> AgentProcess:
    return fleet.agents[0]


def url(agent: AgentProcess) -> str:
    return str(agent.ready["http"])


def shown(page: Page, agent: AgentProcess, *, members: int = 2, calm: bool = True, dark: bool = False, width: int = 1280) -> None:
    """Open the page of an agent and wait until it shows so many members, with their leases."""
    page.open(url(agent), calm=calm, dark=dark, width=width)
    page.until("document.body?.dataset.link === 'live'")
    page.until(f"document.querySelectorAll('#rows tr[data-member]').length === {members}")
    page.until(f"document.querySelectorAll('#ring .node').length === {members}")
    page.until(f"document.querySelectorAll('#ring .lease.active').length === {members - 1}")


def _settled(agent: AgentProcess) -> bool:
    """Whoever counts on a dead arbitrator's vote may lose."""
    pairs = ask(url(agent), "/v1/ring").json["pairs"]
    return len(pairs) == 2 and all(len(pair["group"]) == 3 and not pair["group_pending"] for pair in pairs)


def told(page: Page, name: str) -> list[str]:
    """The events about a member in the order in which they happened, from the list, which has the newest first."""
    script = f"[...document.querySelectorAll('#events li[data-member=\"{name}\"]:not(.inner)')].reverse().map((each) => each.dataset.event)"
    return list(page.js(script))


def test_a_killed_agent_is_suspected_decided_and_declared(chromium: Browser, fleet: Fleet) -> None:
    """An agent is killed -9: suspicion, decision and declaration appear in that order, then the ring has one node fewer.

    Two agents watch the third. Whichever lease ends first suspects it; the other may hear of the decision before its own lease is over.
    So all three are on the page of one of them at least, and on both pages nothing is out of order.
    """
    kelp, reef = fleet.agents[:2]
    tide = fleet.start(name="tide", seeds=[kelp.address], http=None)
    with ExitStack() as stack:
        pages = [stack.enter_context(chromium.page()) for _ in (kelp, reef)]
        for page, agent in zip(pages, (kelp, reef), strict=True):
            shown(page, agent, members=3, calm=False)
            page.js(WATCH)
        for agent in (kelp, reef):
            until(lambda agent=agent: _settled(agent), "nobody who is gone arbitrates any more")  # type: ignore[misc]
        tide.kill()
        for page in pages:
            page.until("document.querySelector('#events li[data-event=Failed][data-member=tide]')")
            page.until("!document.querySelector('#ring .node[data-member=tide]')")
            page.until("document.querySelectorAll('#rows tr').length === 2")
        stories = [[event for event in told(page, "tide") if event not in ("Joined", "Updated")] for page in pages]
        stages = [[status for name, status in page.js("window.stages") if name == "tide"] for page in pages]
        assert ["Suspected", "Decided", "Failed"] in stories
        assert all(story in (["Suspected", "Decided", "Failed"], ["Decided", "Failed"]) for story in stories)
        assert ["suspected", "decided", "gone"] in stages
        assert all(stage in (["suspected", "decided", "gone"], ["decided", "gone"]) for stage in stages)
        for page in pages:
            assert page.js("document.querySelectorAll('#ring .node').length") == 2
            assert page.js("document.querySelectorAll('#ring .lease').length") == 1
            assert "certain" in page.js("document.querySelector('#events li[data-event=Failed]').textContent.toLowerCase()")
            assert page.errors == []


def test_leases_pulse(page: Page, kelp: AgentProcess) -> None:
    """The arc of a lease shows its session, and a session follows the other."""
    shown(page, kelp)
    session = "Number(document.querySelector('#ring .lease').dataset.session)"
    before = page.js(session)
    page.until(f"{session} >= {before + 2}")
    assert page.errors == []


def test_text_of_peers_stays_text(page: Page, kelp: AgentProcess) -> None:
    """A name and a tag that are markup are shown as they are written, in the ring, the table and the events; nothing runs."""
    shown(page, kelp)
    assert page.js("document.querySelector('#rows .tag em + *') === null")
    assert HOSTILE in page.js("document.querySelector('tr[data-member=\"<b>reef</b>\"] .tags').textContent")
    assert page.js("document.querySelector('tr[data-member=\"<b>reef</b>\"] .pick').textContent") == "<b>reef</b>"
    assert "<b>reef</b>" in page.js("[...document.querySelectorAll('#ring .name')].map((each) => each.textContent).join()")
    assert page.js("document.querySelectorAll('img').length") == 1  # the own sign
    assert page.js("window.hit") is None
    assert page.errors == []


def test_dark_and_light(page: Page, kelp: AgentProcess) -> None:
    """As the system says, until somebody presses the button; then as pressed, also after a reload."""
    paper = "getComputedStyle(document.body).backgroundColor"
    shown(page, kelp)
    light = page.js(paper)
    shown(page, kelp, dark=True)
    dark = page.js(paper)
    assert light != dark
    assert page.js("document.querySelector('#theme').ariaPressed") == "true"
    page.js("document.querySelector('#theme').click()")
    assert page.js(paper) == light
    shown(page, kelp, dark=True)
    assert page.js(paper) == light
    assert page.errors == []


def test_phone(page: Page, kelp: AgentProcess) -> None:
    """At the width of a phone nothing sticks out, and the ring comes first."""
    shown(page, kelp, width=360)
    assert page.js("document.documentElement.scrollWidth") == 360
    wide = "[...document.querySelectorAll('body *')].filter((each) => each.getBoundingClientRect().right > 361 && !each.closest('.unseen'))"
    assert page.js(f"{wide}.map((each) => each.outerHTML.slice(0, 90))") == []
    assert page.js(
        "document.querySelector('.ring').getBoundingClientRect().top < document.querySelector('.health').getBoundingClientRect().top"
    )


def test_keyboard(page: Page, kelp: AgentProcess) -> None:
    """Everything can be reached with Tab; inside the ring the arrows go from member to member."""
    shown(page, kelp)
    reached = []
    for _ in range(14):
        page.press("Tab", 9)
        reached.append(page.js("document.activeElement.id || document.activeElement.className.baseVal || document.activeElement.className"))
    assert {"theme", "inner", "events", "pick"} <= set(reached)
    assert any("node" in each for each in reached)
    page.js("document.querySelector('#ring .node[tabindex=\"0\"]').focus()")
    before = page.js("document.activeElement.dataset.member")
    page.press("ArrowRight", 39)
    after = page.js("document.activeElement.dataset.member")
    assert {before, after} == {"kelp", "<b>reef</b>"}
    assert page.js("document.querySelector('#rows tr.chosen').dataset.member") == after


def test_announced_and_named(page: Page, kelp: AgentProcess) -> None:
    """Events are a polite log; every control and every member of the ring has a name."""
    shown(page, kelp)
    assert page.js("document.querySelector('#events').getAttribute('aria-live')") == "polite"
    controls = "[...document.querySelectorAll('button, input, [role=button]')]"
    assert page.js(f"{controls}.filter((each) => !each.ariaLabel && !each.textContent.trim() && !each.labels?.length).length") == 0


def test_calm(page: Page, kelp: AgentProcess) -> None:
    """Who asks for reduced motion gets none."""
    shown(page, kelp)
    session = "Number(document.querySelector('#ring .lease').dataset.session)"
    page.until(f"{session} >= {page.js(session) + 1}")
    assert page.js("document.getAnimations().length") == 0


def test_nothing_jumps(page: Page, kelp: AgentProcess) -> None:
    """No layout shift, neither while the page loads nor while it lives."""
    shown(page, kelp)
    session = "Number(document.querySelector('#ring .lease').dataset.session)"
    page.until(f"{session} >= {page.js(session) + 1}")
    with sync.join(agent=kelp.socket) as group:
        for number in range(3):  # Each is an event, and a line on top of the others; right after a member joined it is part of that line.
            group.set_tags(turn=str(number))
            page.until(f"[...document.querySelectorAll('#events .more')].some((each) => each.textContent.includes('turn {number}'))")
        group.set_tags({"turn": None})
    assert page.js(SHIFTS) < 0.02


@pytest.fixture(scope="module")
def alone(fleet: Fleet) -> Iterator[AgentProcess]:
    """An agent that is its own seat."""
    agent = fleet.start(name="alone", key="", group="alone", state_dir=str(fleet.folder / "alone"), preset="local", lease=None)
    yield agent
    agent.stop()


def test_seats_are_shown_where_there_are_some(page: Page, alone: AgentProcess) -> None:
    """An agent that is its own seat (F12) shows it, and what it leads; the boxes are not there otherwise."""
    page.open(url(alone), calm=True)
    page.until("document.querySelectorAll('#seat-rows tr').length === 1 && !document.querySelector('#seats').hidden")
    assert page.js("document.querySelector('#leaders').hidden")
    with sync.join(agent=alone.socket) as group, group.lead("sched", timeout=60) as term:
        page.until(f"document.querySelector('#leader-rows tr[data-leader=alone] .token')?.textContent === '{term.token}'")
        page.until("document.querySelector('#grant-rows')?.textContent.includes('sched')")
        page.until("document.querySelector('#leader-rows .candidates').textContent === 'alone'")
    page.until("document.querySelector('#leader-rows tr').dataset.is === 'vacant'")
    assert page.errors == []


def test_pools_of_tickets(page: Page, alone: AgentProcess) -> None:
    """Tickets 9, 10: a box per pool with who holds which ticket under which token, who waits and what is free; it appears without a jump,
    follows what happens, keeps others' text text, in both colours, and is gone with the last ticket."""
    page.open(url(alone), calm=True, dark=True)
    page.until("document.body?.dataset.version && document.querySelectorAll('#seat-rows tr').length === 1")
    assert page.js("document.querySelector('#pools').hidden")
    box = "document.querySelector('.pool')"
    with sync.join(agent=alone.socket) as group, ThreadPoolExecutor(1) as pool:
        with group.ticket(HOSTILE, of=3, timeout=60, metadata={"job": HOSTILE}) as ticket:
            page.until(f"{box}?.querySelectorAll('li[data-is=held]').length === 1")
            cells = f"[...{box}.querySelectorAll('li')].map((each) => [...each.children].map((part) => part.textContent))"
            wanted = [[str(number), "free", ""] for number in range(3)]
            wanted[ticket.number] = [str(ticket.number), "alone", str(ticket.token)]
            assert page.js(cells) == wanted
            assert HOSTILE in page.js(f"{box}.querySelector('[data-me]').title")
            assert page.js(f"{box}.querySelector('h3').textContent") == f"{HOSTILE}1 of 3 held"
            held = page.js(f"getComputedStyle({box}.querySelector('[data-is=held]')).borderTopColor")
            page.js("document.querySelector('#theme').click()")
            assert page.js(f"getComputedStyle({box}.querySelector('[data-is=held]')).borderTopColor") != held
            assert page.js(SHIFTS) < 0.02
        page.until("document.querySelector('#pools').hidden")
        with group.ticket("lock", of=1, timeout=60) as first:
            waiting = pool.submit(group.ticket("lock", of=1, timeout=60).__enter__)
            lock = "document.querySelector('.pool[data-pool=lock]')"
            page.until(f"{lock}?.querySelector('.waiting').textContent === '1 waiter'")
        second = waiting.result(60)
        page.until(f"{lock}?.querySelector('.token').textContent === '{second.token}'")
        assert second.token > first.token
        assert page.js(f"{lock}.querySelector('.waiting').textContent") == ""
        second.release()
    assert page.js("document.querySelectorAll('img').length") == 1  # the own sign
    assert page.js("window.hit") is None
    assert page.errors == []


@pytest.fixture(scope="module")
def busy(fleet: Fleet) -> Iterator[AgentProcess]:
    """An agent with a line in every panel: its client leads, and holds the one ticket of a pool."""
    agent = fleet.start(name="busy", key="", group="busy", state_dir=str(fleet.folder / "busy"), preset="local", lease=None)
    with sync.join(agent=agent.socket) as group, group.lead("sched", timeout=60), group.ticket("gpu", of=1, timeout=60):
        yield agent
    agent.stop()


def test_styles_of_a_panel_reach_its_section_alone(page: Page, busy: AgentProcess) -> None:
    """H216: a rule of a ``panel.css`` selects nothing outside the section of that panel."""
    page.open(url(busy), calm=True)
    page.until("document.querySelector('.pool li[data-is=held]') && document.querySelector('#leader-rows tr[data-leader=busy]')")
    page.until("document.querySelectorAll('#grant-rows tr').length === 2 && document.querySelectorAll('#seat-rows tr').length === 1")
    page.until("document.querySelectorAll('#ring .node').length === 1")
    reached = page.js(REACHED)
    assert {sheet: sections for sheet, (sections, _) in reached.items()} == {
        "ring/panel.css": ["ring-card"], "leadership/panel.css": ["leaders"], "tickets/panel.css": ["pools"],
        "views/panel.css": ["views"], "limits/panel.css": ["limits"], "election/panel.css": [],  # no name is led by election
    }  # fmt: skip
    assert all(rules >= 5 for _, rules in reached.values())  # A reader that finds no rule would be content.


def test_numbers_of_grants(page: Page, busy: AgentProcess) -> None:
    """H216: a panel says which kinds of grants have numbers. Those show theirs, 0 too, in the table and in the events; others show none."""
    page.open(url(busy), calm=True)
    page.until("document.querySelectorAll('#grant-rows tr').length === 2")
    cells = "[...row.children].slice(0, 3).map((cell) => cell.textContent)"
    rows = page.js(f"[...document.querySelectorAll('#grant-rows tr')].map((row) => {cells})")
    assert sorted(rows) == [["lead", "sched", "\N{EN DASH}"], ["ticket", "gpu", "0"]]
    told = page.js("[...document.querySelectorAll('#events li[data-event=Granted] p:first-child')].map((each) => each.textContent)")
    assert sorted(told) == ["lead sched granted", "ticket gpu number 0 granted"]
    assert page.errors == []


def test_a_dead_agent_makes_the_page_stale(page: Page, fleet: Fleet) -> None:
    """The agent behind the page dies: the page says since when it is stale and tries again; a new life makes it live again."""
    seeds = [fleet.agents[0].address]
    mist = fleet.start(name="mist", seeds=seeds)
    page.open(url(mist), calm=True)
    page.until("document.body?.dataset.link === 'live' && document.querySelector('#rows tr')")
    mist.kill()
    page.until("document.body.dataset.link === 'stale'")
    assert "Stale since" in page.js("document.querySelector('#link-text').textContent")
    port = url(mist).rstrip("/").rpartition(":")[2]
    again = fleet.start(name="mist", seeds=seeds, http=f"127.0.0.1:{port}")
    page.until("document.body.dataset.link === 'live'")
    page.until("document.querySelector('#events li[data-event=page]')")  # A new life: events may be missing.
    again.stop()
