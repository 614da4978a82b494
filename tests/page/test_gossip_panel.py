"""The panel of gossip in a real browser. The agent, its server and its stream are real; other members are words (``stub_gossip``).

What real members look like is in ``test_gossip_agents.py``.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from typing import Any

import pytest

from holdfast.features.gossip.field import Field
from holdfast.features.gossip.protocol import messages as m
from holdfast.features.gossip.protocol.messages import Status
from holdfast.host import NodeId
from tests.page.chromium import Browser, Page
from tests.page.stub_gossip import Crowd, crowd
from tests.page.test_page import SHIFTS

HOSTILE = '<img src="x" onerror="window.hit = 1">'
ROWS_MOST = 200  # as panels.js has it
# What a person does with a pointer: the name of the cell at a place, and the colour in its middle and near its left edge.
HELP = """(async () => {
    const { layout } = await import("./gossip/field.js");
    const canvas = document.querySelector("#gossip-field");
    const box = (place, places) => {
        const { width, height } = canvas.getBoundingClientRect();
        const grid = layout(places, { width, height });
        const [column, row] = [place % grid.columns, Math.floor(place / grid.columns)];
        return { x: grid.left + column * grid.width, y: grid.top + row * grid.height, ...grid };
    };
    window.pointAt = (place, places) => {
        const { x, y, width, height } = box(place, places);
        const { left, top } = canvas.getBoundingClientRect();
        const at = { clientX: left + x + width / 2, clientY: top + y + height / 2, bubbles: true };
        canvas.dispatchEvent(new PointerEvent("pointermove", at));
        return at;
    };
    window.nameAt = (place, places) => {
        pointAt(place, places);
        const name = document.querySelector("#gossip-cursor.shown") ? document.querySelector("#gossip-zoom-name").textContent : null;
        return name;
    };
    window.pixels = (place, places) => {
        const { x, y, width, height } = box(place, places);
        const copy = Object.assign(document.createElement("canvas"), { width: canvas.width, height: canvas.height });
        const read = copy.getContext("2d", { willReadFrequently: true });
        read.drawImage(canvas, 0, 0);
        const at = (part, down) => {
            const [left, top] = [(x + width * part) * devicePixelRatio, (y + height * down) * devicePixelRatio];
            return [...read.getImageData(left, top, 1, 1).data];
        };
        return [at(0.5, 0.5), at(0.25, 0.5), at(0.88, 0.88)].map(String);
    };
    return 0;
})()"""
WATCH = """
    window.stages = [];
    new MutationObserver((records) => {
        for (const { target } of records) if (target.dataset.member) stages.push([target.dataset.member, target.dataset.status]);
    }).observe(document.querySelector("#gossip-doubt-list"), { subtree: true, attributes: true, attributeFilter: ["data-status"] }); 0
"""
SUMS = "[...document.querySelectorAll('#gossip-sums li')].map((each) => each.textContent)"
TOLD = "[...document.querySelectorAll('#events li[data-member=\"{}\"]:not(.inner)')].reverse().map((each) => each.dataset.event)"


@pytest.fixture
def group() -> Iterator[Crowd]:
    with crowd([f"web-{number:03}" for number in range(199)]) as started:
        yield started


def shown(page: Page, group: Crowd, *, members: int, **how: Any) -> None:
    page.open(group.group.url, **how)
    page.until("document.body?.dataset.link === 'live'")
    page.until(f"document.querySelector('#gossip-count')?.textContent === '{members:,} members'")
    page.until(f"document.querySelector('#gossip-field').dataset.drawn >= {members} && !{SUMS}[0].startsWith('\u2013')")
    page.js(HELP)


def test_a_cell_keeps_its_place(page: Page, group: Crowd) -> None:
    """Issue 17, 5: members that die, leave, return and come move no cell, and a page that is opened later shows the same field."""
    shown(page, group, members=200, calm=True)
    places = {place: page.js(f"nameAt({place}, 200)") for place in (0, 1, 57, 120, 199)}
    assert places == {0: "kelp", 1: "web-000", 57: "web-056", 120: "web-119", 199: "web-198"}
    group.say(("web-000", Status.SUSPECT), ("web-001", Status.DEAD), ("web-002", Status.LEFT), ("a-new-one", Status.ALIVE))
    page.until(f"{SUMS}.join() === '198 alive,1 suspected,1 gone,1 left'")
    now = {place: page.js(f"nameAt({place}, 201)") for place in places}
    assert now == places
    assert page.js("nameAt(200, 201)") == "a-new-one"
    group.say(("web-001", Status.ALIVE))
    group.group.call(lambda: group.node.merge.reap("web-002"))
    shown(page, group, members=200, calm=True)
    assert {place: page.js(f"nameAt({place}, 201)") for place in places} == places
    assert page.js("nameAt(2, 201)") == "web-001"
    assert page.js("nameAt(3, 201)") is None  # It is free.
    group.say(("b-new-one", Status.ALIVE))
    page.until("nameAt(3, 201) === 'b-new-one'")
    assert page.errors == []


def test_a_death_is_shown_in_three_steps(page: Page, group: Crowd) -> None:
    """Issue 17, 5; gossip G10: a cell is suspected, decided and failed, each for long enough to be seen, although the agent tells all
    three at once; it looks different each time, also in its form; and the events say the same."""
    shown(page, group, members=200)
    page.js(WATCH)
    alive = page.js("pixels(8, 200)")
    group.say(("web-007", Status.SUSPECT))
    line = "document.querySelector('#gossip-doubt-list li[data-member=\"web-007\"]')"
    page.until(f"{line}?.dataset.status === 'suspected'")
    page.until(f"pixels(8, 200)[1] !== '{alive[1]}'")
    suspected = page.js("pixels(8, 200)")
    assert suspected[0] != suspected[1]  # a sign in the middle
    assert "by reef" in page.js(f"{line}.textContent")
    group.say(("web-007", Status.DEAD))
    page.until(f"{line}?.dataset.status === 'failed'")
    assert [status for name, status in page.js("stages") if name == "web-007"][-2:] == ["decided", "failed"]
    failed = page.js("pixels(8, 200)")
    assert len({alive[1], suspected[1], failed[1]}) == 3
    assert failed[0] != failed[1]  # a cross
    assert page.js(TOLD.format("web-007"))[-3:] == ["Suspected", "Decided", "Failed"]
    said = page.js("document.querySelector('#events li[data-event=Failed] .more').textContent")
    assert said == "Not certain: on the other side of a cut network it may be at work."
    group.say(("web-007", Status.ALIVE))
    page.until(f"{SUMS}.join() === '200 alive,0 suspected,0 gone,0 left'")
    page.until(f"pixels(8, 200)[1] === '{alive[1]}'")
    assert page.js("pixels(8, 200)[2]") != alive[2]  # suspected of late: a corner of its own
    assert page.errors == []


def test_one_member_close_up(page: Page, group: Crowd) -> None:
    """Issue 17, 5: accusers, health, rows and round trip of the cell under the pointer; a click keeps it in view, Escape lets it go."""
    group.say(("web-009", Status.ALIVE), rows={"tag:zone": b"eu-1", "note": HOSTILE.encode(), "gossip:settled": b"1"})
    group.say(("web-009", Status.SUSPECT), accusers=("reef", "tide"))
    group.group.call(lambda: group.node.distances.measured(NodeId("web-009", 1), 0.0123))
    shown(page, group, members=200, calm=True)
    fact = "document.querySelector('#gossip-zoom-facts [data-fact=\"{}\"] dd')?.textContent"
    page.until("document.querySelector('#gossip-zoom-name').textContent === 'kelp'")
    page.until("document.querySelector('#gossip-zoom-story').textContent.startsWith('Probes one member every 30')")
    page.js("pointAt(10, 200)")
    page.until("document.querySelector('#gossip-zoom-story').textContent.includes('by reef, tide')")
    assert page.js(fact.format("Round trip")) == "12\u202fms"
    assert page.js(fact.format("Suspected of late")) == "1.0"
    assert page.js(fact.format("Incarnation")) == "2"
    assert page.js(fact.format("Settled")) == "all list it"
    rows = page.js("[...document.querySelectorAll('#gossip-zoom-rows li')].map((each) => each.textContent)")
    assert rows == [f"note{HOSTILE}", "tag:zoneeu-1"]
    assert page.js("document.querySelector('#rows tr.chosen')?.dataset.member") == "web-009"
    page.js("document.querySelector('#gossip-field').dispatchEvent(new MouseEvent('click', { ...pointAt(10, 200), detail: 1 }))")
    page.js("document.querySelector('#gossip-stage').dispatchEvent(new PointerEvent('pointerleave'))")
    page.until("document.querySelector('#gossip-zoom-note').textContent === 'kept in view'")
    group.say(("web-009", Status.ALIVE))
    page.until("document.querySelector('#gossip-zoom-status').dataset.is === 'alive'")
    page.until("document.querySelector('#gossip-zoom-story').textContent === 'No suspicion is open.'")
    page.js("document.querySelector('#gossip-cursor').focus()")
    page.press("Escape", 27)
    page.js("document.querySelector('#gossip-cursor').blur()")
    page.until("document.querySelector('#gossip-zoom-name').textContent === 'kelp'")
    assert page.js("'hit' in window") is False
    assert page.js("document.querySelectorAll('#gossip-card img').length") == 0
    assert page.errors == []


def test_keys_and_words(page: Page, group: Crowd) -> None:
    """The field is one stop of Tab; arrows, Home and End go from member to member, also past free places, and a screen reader is told
    where. Enter keeps one in view."""
    group.say(("web-001", Status.SUSPECT), ("web-003", Status.LEFT))
    shown(page, group, members=199, calm=True)
    for _ in range(12):
        page.press("Tab", 9)
        if page.js("document.activeElement.id") == "gossip-cursor":
            break
    assert page.js("document.activeElement.id") == "gossip-cursor"
    said, label = "document.querySelector('#gossip-said').textContent", "document.activeElement.ariaLabel"
    assert page.js(said) == page.js(label) == "kelp, alive, this agent"
    page.press("ArrowRight", 39)
    page.press("ArrowRight", 39)
    assert page.js(said) == "web-001, suspected"
    page.press("Enter", 13)
    page.js("document.activeElement.click()")  # What Enter does in a browser that a person drives.
    page.until("document.querySelector('#gossip-zoom-note').textContent === 'kept in view'")
    page.press("End", 35)
    assert page.js(said) == "web-198, alive"
    page.press("Home", 36)
    page.press("ArrowDown", 40)
    assert page.js(f"{said} !== 'kelp, alive, this agent' && {said}.startsWith('web-0')")
    controls = "[...document.querySelectorAll('#gossip-card :is(button, input)')]"
    assert page.js(f"{controls}.filter((each) => !each.ariaLabel && !each.textContent.trim()).length") == 0
    page.until("document.querySelector('#gossip-plot').ariaLabel.startsWith('c is 0, 1 member suspected, calm')")
    assert page.errors == []


def test_light_and_dark(page: Page, group: Crowd) -> None:
    """The canvas takes the colours of the page, and changes with them."""
    shown(page, group, members=200, calm=True)
    page.until("pixels(9, 200)[0] !== '0,0,0,0'")
    light = page.js("pixels(9, 200)[0]")
    page.js("document.querySelector('#theme').click()")
    page.until(f"pixels(9, 200)[0] !== '{light}'")
    dark = page.js("pixels(9, 200)[0]")
    shown(page, group, members=200, calm=True, dark=True)
    page.until(f"pixels(9, 200)[0] === '{dark}'")
    assert page.errors == []


def test_counters_lists_and_the_past(page: Page, group: Crowd) -> None:
    """Issue 17, 5: suspicions and refutations, c and turbulence over time, and lists that differ as they were last compared."""
    node = group.node
    shown(page, group, members=200, calm=True)
    value = "document.querySelector('#gossip-counters [data-counter={}] dd')?.textContent"
    page.until(f"{value.format('suspicions')} === '0'")
    assert page.js("document.querySelector('#gossip-lists-sum').textContent") == "None was compared yet."
    group.say(("web-001", Status.SUSPECT), ("web-002", Status.SUSPECT), ("web-001", Status.ALIVE))

    def faults() -> None:
        node.syncs._found(NodeId("web-004", 1), 0)
        node.syncs._found(NodeId(HOSTILE, 1), 5)
        for name in ("web-004", "web-005"):
            node.on_message(NodeId(name, 1), m.Missed(1, 5.0))
        node.merge.merge(
            m.Rumour(node.core.me, group.agent.host.address, node.inc, Status.SUSPECT, ("web-004",), 0, None, 0), NodeId("web-004", 1)
        )

    group.group.call(faults)
    page.until(f"{value.format('suspicions')} === '2' && {value.format('cleared')} === '1' && {value.format('refutations')} === '1'")
    page.until(f"{value.format('c')} === '2'")
    assert page.js("document.querySelector('#gossip-counters [data-counter=c]').dataset.is") == "warn"  # turbulent
    assert page.js("document.querySelector('#gossip-lists-sum').textContent") == "1 of 2 differed from this one:"
    assert page.js("document.querySelector('#gossip-list-rows li b').textContent") == HOSTILE
    page.until("document.querySelector('#gossip-plot').ariaLabel.startsWith('c is 2, 1 member suspected, turbulent')")
    shown(page, group, members=200, calm=True)  # What was before is there when a page is opened.
    heights = "document.querySelector('#gossip-plot path.c').getAttribute('d')?.split(/[MHV ]/).filter(Boolean).filter((_, at) => at % 2)"
    page.until(f"(({heights}) ?? []).filter((each, at, all) => each !== all[0]).length >= 2")  # c was 0 and is 2: a sample, and now
    assert len(page.js("document.querySelector('#gossip-plot .turbulent').getAttribute('d')")) > 4
    assert page.js("'hit' in window") is False
    assert page.errors == []


def test_a_phone_and_nothing_jumps(page: Page, group: Crowd) -> None:
    """Nothing sticks out at the width of a phone, nothing moves where a person asked for calm, and changes of members shift nothing."""
    group.say((HOSTILE, Status.SUSPECT), accusers=("x" * 60,))
    shown(page, group, members=201, calm=True, width=360)
    assert page.js("document.documentElement.scrollWidth") == 360
    wide = "[...document.querySelectorAll('#gossip-card *')].filter((each) => each.getBoundingClientRect().right > 361)"
    assert page.js(f"{wide}.filter((each) => !each.closest('.unseen')).map((each) => each.outerHTML.slice(0, 90))") == []
    assert page.js("document.getAnimations().length") == 0
    shown(page, group, members=201, calm=True)
    page.js("document.querySelector('#gossip-doubt-list .pick').click()")
    for number in range(8):
        group.say((f"web-{number:03}", Status.SUSPECT))
    page.until("document.querySelectorAll('#gossip-doubt-list li').length === 9")
    group.say(*((f"web-{number:03}", Status.DEAD) for number in range(8)))
    page.until(f"{SUMS}[2] === '8 gone'")
    assert page.js(SHIFTS) < 0.02
    assert page.errors == []


def test_only_what_changed_is_drawn(chromium: Browser) -> None:
    """Issue 17, 5 (dense field, changes by delta): a thousand members at ten changes a second. Cells that changed are drawn and no others,
    the table of members has the first lines and those with something to say, and the filter finds each of the others."""
    names = [f"web-{number:04}" for number in range(1000)]
    with crowd(names) as group, chromium.page() as page:
        shown(page, group, members=1001, calm=True)
        drawn = "Number(document.querySelector('#gossip-field').dataset.drawn)"
        page.until(f"{drawn} >= 1001")
        assert page.js("document.querySelectorAll('#rows tr').length") == ROWS_MOST
        assert page.js("document.querySelector('#more-members').textContent") == "and 801 more; the filter finds each of them"
        before, chance = page.js(drawn), random.Random(2)
        victims = chance.sample(names, 30)
        for name in victims:
            group.say((name, Status.SUSPECT))
            time.sleep(0.1)
        page.until(f"{SUMS}[1] === '30 suspected'")
        page.until("document.querySelectorAll('#gossip-doubt-list li').length === 30")
        assert 30 <= page.js(drawn) - before <= 90  # by the event, and as one with a doubtful health
        rows = "[...document.querySelectorAll('#rows tr[data-status=suspected]')].map((each) => each.dataset.member)"
        page.until(f"{rows}.length === 30")
        assert page.js(rows) == sorted(victims)
        page.js("const find = document.querySelector('#find'); find.value = 'web-0777'; find.dispatchEvent(new Event('input'))")
        assert page.js("[...document.querySelectorAll('#rows tr')].map((each) => each.dataset.member)") == ["web-0777"]
        assert page.js("document.querySelector('#more-members').textContent") == ""
        assert page.errors == []


def test_an_event_alone_changes_a_cell(page: Page, group: Crowd, monkeypatch: pytest.MonkeyPatch) -> None:
    """Issue 17, 5 (changes by delta): a cell follows the events of its member, without another list."""
    monkeypatch.setattr(Field, "version", 1)  # The stream brings no second list,
    shown(page, group, members=200, calm=True)
    page.js("Object.defineProperty(document, 'hidden', { value: true })")  # and a page that is not looked at asks for none.
    for status, number in ((Status.SUSPECT, 1), (Status.ALIVE, 0), (Status.SUSPECT, 1)):
        group.say(("web-005", status))
        page.until(f"{SUMS}[1] === '{number} suspected'")
    group.say(("web-005", Status.DEAD), ("web-006", Status.LEFT))
    page.until(f"{SUMS}.join() === '198 alive,0 suspected,1 gone,1 left'")
    assert page.errors == []


def test_columns_follow_from_the_number_of_places(page: Page, group: Crowd) -> None:
    """H345: the window changes the size of cells and no place; every place of up to 20,480 is inside the field, and no two share a spot."""
    shown(page, group, members=200, calm=True)
    script = """(async () => {
        const { layout } = await import("./gossip/field.js");
        const found = [];
        for (const places of [1, 3, 16, 17, 64, 128, 129, 1000, 1024, 1025, 20480])
            for (const size of [{ width: 847, height: 484 }, { width: 328, height: 230 }]) {
                const { columns, rows, width, height, left, top } = layout(places, size);
                const [right, bottom] = [left + columns * width, top + rows * height];
                const inside = left > -0.01 && top > -0.01 && right < size.width + 0.01 && bottom < size.height + 0.01;
                found.push([places, columns, columns * rows >= places && inside && width >= 1]);
            }
        return found;
    })()"""
    found = page.js(script)
    assert all(fits for _, _, fits in found), found
    assert len({(places, columns) for places, columns, _ in found}) == len(found) / 2
