"""The panel of rate limits in a real browser, over limits by script: lines of two minutes, a panic, very many limits, hostile names."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from msgspec.structs import replace

from holdfast.events import LimitPanicked, SpecConflict, Starved
from holdfast.features.limits.calls import LimitLine, LimitsReport, WorkerLine
from holdfast.features.limits.http import BEAT_WORKERS
from holdfast.features.limits.terms import LIMITS_MAX, Terms
from tests.page.chromium import Page
from tests.page.stub_agent import StubGroup, stub_group
from tests.page.test_page import SHIFTS
from tests.support.agents import until

HOSTILE = '<img src="x" onerror="window.hit = 1">'
WORKERS = (WorkerLine(41, "web[41]", 80.0, 3.0, waiters=3, tokens=-1.0), WorkerLine(42, "mail[42]", 40.0, 0.0, gone=True))
DRAWN = 12  # as panel.js has it
LINES = "document.querySelector('[data-limit={}] .plot .{}').getAttribute('d')"
NAMES = "[...document.querySelectorAll('#limit-cards .limit')].map((each) => each.dataset.limit)"
ROWS = "[...document.querySelectorAll('#limit-rows tr')].map((each) => each.dataset.limit)"
CLOCK = "const real = performance.now.bind(performance); window.ahead = 0; performance.now = () => real() + window.ahead; 0"


def limit(name: str, **more: Any) -> LimitLine:
    """Of 500/s, in a view of three; this agent has 120 of them."""
    known: dict[str, Any] = {
        "used": True, "state": "stable", "over": "views", "view": "17/s0#1", "members": 3, "fleet": 4, "share": 120.0, "demand": 110.0,
        "aggregate": 430.0, "shared": 400.0, "told": 118.0, "rate": 500.0,
    }  # fmt: skip
    return LimitLine(name, Terms(500.0, 50.0, "fair", "maxmin"), 3, "kelp", **(known | more))


class Member:
    """An agent that uses limits."""

    def __init__(self, group: StubGroup) -> None:
        self.group, self.agent = group, group.add("kelp", http="127.0.0.1:0", lease=10.0)
        until(lambda: group.call(lambda: self.agent.ring.is_member), "a ring of one")

    def stand(self, *lines: LimitLine, blacklisted: tuple[str, ...] = ()) -> None:
        self.group.call(lambda: setattr(self.agent.limits, "report", LimitsReport(True, lines, blacklisted)))


@pytest.fixture
def member() -> Iterator[Member]:
    with stub_group() as group:
        yield Member(group)


def shown(page: Page, member: Member, *, cards: int, **how: Any) -> None:
    page.open(member.group.url, **how)
    page.until("document.body?.dataset.link === 'live'")
    page.until(f"document.querySelectorAll('#limit-cards .limit').length === {cards}")


def points(page: Page, name: str, line: str) -> int:
    return int(page.js(f"({LINES.format(name, line)} ?? '').split(',').length - 1"))


def test_lines_grow_and_end_after_two_minutes(page: Page, member: Member) -> None:
    """Issue 16, 5: a limit as lines over the last two minutes: a sample a second, a hole where nothing was heard, and nothing older."""
    busy = limit("api", waiters=3, waiting=3.0, workers=WORKERS)
    member.stand(busy, limit("mail", rate=5.0, share=2.0, told=2.0, shared=4.0, demand=1.0))
    shown(page, member, cards=2)
    page.js(CLOCK)
    page.until(f"({LINES.format('api', 'share')} ?? '').split(',').length > 3")
    first = points(page, "api", "share")
    assert page.js(NAMES) == ["api", "mail"]  # Where callers wait comes first.
    legend = "[...document.querySelectorAll('[data-limit=api] .legend li')].map((each) => each.textContent)"
    assert page.js(legend) == ["rate 500/s", "all members 400", "this agent 120", "its processes 118", "waiters 3"]
    workers = "[...document.querySelectorAll('[data-limit=api] .workers li')].map((each) => each.textContent)"
    assert page.js(workers) == ["web[41]: 80/s, 3 wait", "mail[42]: 40/s, gone", ""]
    assert page.js("document.querySelector('[data-limit=api] .note').textContent") == "View 17, 3 members of 4"
    assert page.js("document.querySelector('[data-limit=api] .chip').dataset.is") == "stable"
    for line in ("rate", "shared", "told", "waiters"):
        assert points(page, "api", line) >= 2, line
    assert page.js(LINES.format("mail", "waiters")) is None
    page.until(f"{LINES.format('api', 'share')}.split(',').length - 1 > {first}")
    page.js("window.ahead = 60000")
    page.until(f"{LINES.format('api', 'share')}.split('M').length === 3")  # Nothing was heard for a minute: two lines.
    member.stand(replace(busy, share=250.0, rate=2100.0))
    page.until("document.querySelector('[data-limit=api] .most').textContent === '2,500 per second'")
    page.js("window.ahead = 150000")
    page.until(f"{LINES.format('api', 'share')}.split('M').length === 3")
    page.js("window.ahead = 300000")
    page.until(f"{LINES.format('api', 'share')}.split('M').length === 2")  # All of that is older than two minutes.
    assert page.js(SHIFTS) < 0.02
    assert page.errors == []


def test_samples_are_bounded(page: Page, member: Member) -> None:
    """H352: one a second, two minutes, whatever the agent says how often; so 16 limits are 134 samples each at most."""
    member.stand(limit("api"))
    shown(page, member, cards=1)
    page.js("import('./limits/card.js').then((card) => { window.card = card; })")
    page.js(
        "window.feed = (count, step) => { const s = new window.card.Samples(); "
        "for (let i = 0; i < count; i++) s.add(i * step, { state: 'stable' }); return [s.all.length, s.all.at(-1).at - s.all[0].at]; }; 0"
    )
    feed = "window.feed({}, {})"
    assert page.js(feed.format(100, 1000)) == [100, 99000]
    assert page.js(feed.format(500, 1000)) == [121, 120000]
    count, length = page.js(feed.format(5000, 250))
    assert count <= 121
    assert length <= 120000


def test_a_panic_is_shown(page: Page, member: Member) -> None:
    """Issue 16, 5; limits 5.7: since when, and what this agent uses meanwhile; the time of it stays marked. Events say what happened."""
    member.stand(limit("api"))
    shown(page, member, cards=1, calm=True)
    page.until(f"({LINES.format('api', 'shared')} ?? '').split(',').length > 2")
    assert page.js(LINES.format("api", "panic")) is None
    member.stand(limit("api", state="panic", panic_for=12.3, shared=None, aggregate=0.0, share=125.0), blacklisted=("reef",))

    def tell() -> None:
        member.agent.events.publish(LimitPanicked("api", 125.0))
        member.agent.events.publish(SpecConflict(HOSTILE, 500.0, "reef", 400.0))
        member.agent.events.publish(Starved("api", 10.0))

    member.group.call(tell)
    page.until("document.querySelector('[data-limit=api]').dataset.is === 'panic'")
    assert page.js("document.querySelector('[data-limit=api] .chip').textContent") == "panic"
    assert (
        page.js("document.querySelector('[data-limit=api] .note').textContent")
        == "No view for 12 s: this agent uses at most 1/4 of the rate"
    )
    page.until("document.querySelector('#limit-promise').textContent === 'Not reached directly: reef'")
    page.until(f"{LINES.format('api', 'panic')}?.startsWith('M')")
    assert page.js("document.querySelector('[data-limit=api] [data-line=shared] b').textContent") == "\u2013"
    said = "[...document.querySelectorAll('#events li p:first-child')].map((each) => each.textContent)"
    page.until(f"{said}.includes('Limit api: this agent has no view')")
    assert f"Limit {HOSTILE} has two rates: 500 counts, 400 does not" in page.js(said)
    assert "Limit api is starved" in page.js(said)
    member.stand(limit("api"))
    page.until("document.querySelector('[data-limit=api]').dataset.is === 'stable'")
    page.until(f"{LINES.format('api', 'shared')}.split('M').length === 3")  # No aggregate was known meanwhile.
    assert page.js(LINES.format("api", "panic")).startswith("M")
    assert page.errors == []


def test_hostile_names_and_a_narrow_screen(page: Page, member: Member) -> None:
    """Limits 10: names of limits, programs and members are text, also in attributes; nothing sticks out at the width of a phone."""
    hostile = tuple(WorkerLine(50 + number, HOSTILE + str(number), 1.0, 0.0) for number in range(BEAT_WORKERS + 2))
    member.stand(
        limit(HOSTILE, workers=hostile, starved_for=11.0), limit("x" * 128, over="members", view="0/x", penalty_for=3.0),
        limit("'\"> &amp;", state="", rate=0.0), blacklisted=(HOSTILE,),
    )  # fmt: skip
    shown(page, member, cards=2, calm=True, width=360, dark=True)
    assert sorted(page.js(NAMES)) == sorted([HOSTILE, "x" * 128])
    assert page.js(ROWS) == ["'\"> &amp;"]
    notes = page.js("[...document.querySelectorAll('.limit .note')].map((each) => [each.textContent, each.dataset.is])")
    assert ["Slowed down for another 3 s: a member was told that it was too much", "warn"] in notes
    assert ["Starved for 11 s: callers wait, and there is next to nothing", "bad"] in notes
    more = "[...document.querySelectorAll('.limit .workers li:last-child')].map((each) => each.textContent)"
    assert sorted(page.js(more)) == ["and 2 more", "no process of this agent uses it"]
    assert page.js("document.querySelectorAll('#limits img, #events img').length") == 0
    assert page.js("'hit' in window") is False
    assert page.js("document.documentElement.scrollWidth") == 360
    assert page.js("document.getAnimations().length") == 0
    assert page.errors == []


def test_as_many_as_a_group_can_have(page: Page, member: Member) -> None:
    """H352: 256 limits: twelve are drawn, the busiest; the others are lines of a table, the busiest first. One that grows busy is drawn."""
    lines = [limit(f"l{number:03}", demand=float(number), shared=float(number)) for number in range(LIMITS_MAX)]
    member.stand(*lines)
    shown(page, member, cards=DRAWN, calm=True)
    page.until(f"document.querySelectorAll('#limit-rows tr').length === {LIMITS_MAX - DRAWN}")
    assert page.js(NAMES) == [f"l{number:03}" for number in range(LIMITS_MAX - 1, LIMITS_MAX - 1 - DRAWN, -1)]
    assert page.js(ROWS)[:2] == ["l243", "l242"]
    assert page.js(SHIFTS) < 0.02
    assert page.js("document.querySelector('#limit-count').textContent") == f"{DRAWN} of {LIMITS_MAX} drawn"
    assert page.js("document.querySelector('#limit-others').clientHeight <= 340")
    told = page.js("fetch('v1/limits').then((answer) => answer.json()).then((found) => found.limits.length)")
    assert told == LIMITS_MAX
    lines[7] = replace(lines[7], waiters=2)
    member.stand(*lines)
    page.until("document.querySelector('#limit-cards [data-limit=l007]')")
    assert page.js(NAMES)[:-1] == [
        f"l{number:03}" for number in range(LIMITS_MAX - 1, LIMITS_MAX - DRAWN, -1)
    ]  # The others kept their places.
    page.until("!document.querySelector('#limit-rows [data-limit=l007]')")
    assert page.js("document.querySelectorAll('*').length") < 6000
    assert page.errors == []


def test_only_there_while_a_limit_is_known(page: Page, member: Member) -> None:
    """Limits 10: no box without limits; a limit that this agent does not use is a line; a removed one goes."""
    page.open(member.group.url, calm=True)
    page.until("document.body?.dataset.link === 'live' && document.querySelectorAll('#rows tr').length === 1")
    assert page.js("document.querySelector('#limits').hidden")
    member.stand(limit("api"), limit("far", used=False, state="", rate=0.0, share=0.0, demand=0.0, shared=None))
    page.until("!document.querySelector('#limits').hidden && document.querySelectorAll('#limit-rows tr').length === 1")
    row = "[...document.querySelector('#limit-rows tr').children].map((each) => each.textContent)"
    assert page.js(row) == ["far", "fair", "500/s", "", "", "", "not used here"]
    assert page.js(NAMES) == ["api"]
    member.stand(limit("far", used=False, state="", rate=0.0))
    page.until("document.querySelectorAll('#limit-cards .limit').length === 0")
    assert page.js(ROWS) == ["far"]
    member.stand()
    page.until("document.querySelector('#limits').hidden")
    assert page.errors == []
