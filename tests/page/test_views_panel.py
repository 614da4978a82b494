"""The panel of views in a real browser, over a back end by script: three seats, members that come and go, names that would be markup."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pytest

from holdfast.events import ViewChanged, ViewLost, ViewTripped
from holdfast.features.views.protocol.facts import LinkDown
from holdfast.features.views.protocol.survey import LinkLook
from holdfast.host import Address, NodeId
from tests.features.views.fake_views import FakeViews, view_of
from tests.page.chromium import Page
from tests.page.stub_agent import StubGroup, stub_group
from tests.page.test_page import SHIFTS
from tests.support.agents import until

HOSTILE = '<img src="x" onerror="window.hit = 1">'
SERVERS = tuple(NodeId(name, 1) for name in ("kelp", "reef", "tide"))
CELLS = "[...document.querySelectorAll('[data-server={}] li')].map((each) => [each.textContent, each.dataset.is])"
LINKS = "[...document.querySelectorAll('#view-graph .link')].map((each) => [each.dataset.link, each.dataset.is])"


class Seat:
    """Seat 0 of three, which serves views and takes part in them."""

    def __init__(self, group: StubGroup) -> None:
        self.group, self.agent = group, group.add("kelp", http="127.0.0.1:0", lease=10.0)
        until(lambda: group.call(lambda: self.agent.ring.is_member), "a ring of one")
        self.views = FakeViews(own=0)
        self.link("up", "up")

    def begin(self) -> None:
        """A client of this agent asks for views."""
        stub = self.agent.views
        stub.views, stub.takes_part, stub.serves, stub.slot = self.views, True, True, 0

    def stand(self, number: int, attached: Mapping[NodeId, Sequence[str]], *, leased: float = 60.0) -> None:
        """Another view, and the event."""

        def changed() -> None:
            former, now = self.views.view, view_of(number, attached)
            lives = [set() if each is None else {member.id for member in each.members} for each in (former, now)]
            self.views.stand(now, self.agent.host.now + leased)
            self.agent.events.publish(ViewChanged(now, tuple(sorted(lives[1] - lives[0])), tuple(sorted(lives[0] - lives[1]))))

        self.group.call(changed)

    def link(self, *states: str) -> None:
        """How the links with the other seats are; what lies between those is up."""
        looks = [
            LinkLook(slot, Address("127.0.0.1", 7000 + slot), SERVERS[slot], state, 4.0, 0 if state == "up" else 1, "silent")
            for slot, state in enumerate(states, 1)
        ]
        self.views.links = tuple(looks)
        self.views.looks["graph"] = ((0, 1, states[0] == "up"), (0, 2, states[1] == "up"), (1, 2, True))


@pytest.fixture
def seat() -> Iterator[Seat]:
    with stub_group() as group:
        yield Seat(group)


def shown(page: Page, seat: Seat, *, members: int, **how: object) -> None:
    page.open(seat.group.url, **how)  # type: ignore[arg-type]
    page.until("document.body?.dataset.link === 'live'")
    page.until(f"document.querySelectorAll('.view-server li[data-is=in]').length === {members}")


def test_a_change_of_the_view_as_it_happens(page: Page, seat: Seat) -> None:
    """Views 9: servers with their links, members by their server, the number; who came and who went. A cell keeps its place."""
    seat.begin()
    seat.stand(17, {SERVERS[0]: ("a", "b", "c"), SERVERS[1]: ("d",), SERVERS[2]: ("e", "f")})
    shown(page, seat, members=6)
    assert page.js("document.querySelector('#view-number').textContent") == "17"
    assert page.js("document.querySelector('#view-state').textContent") == "stable"
    assert page.js("[...document.querySelectorAll('.view-server')].map((each) => each.dataset.server)") == ["kelp", "reef", "tide"]
    assert page.js(LINKS) == [["0-1", "up"], ["0-2", "up"], ["1-2", "up"]]
    assert page.js("[...document.querySelectorAll('#view-graph .name')].map((each) => each.textContent)") == ["this agent", "reef", "tide"]
    seat.link("up", "down")
    seat.views.looks["changing_for"] = 0.25
    page.until("document.querySelector('#view-change').dataset.is === 'changing'")
    assert "Another view than 17 is being agreed" in page.js("document.querySelector('#view-change').textContent")
    assert page.js(LINKS) == [["0-1", "up"], ["0-2", "down"], ["1-2", "up"]]
    assert "silent" in page.js("document.querySelector('[data-link=\"0-2\"] title').textContent")
    seat.views.looks["changing_for"] = None
    seat.stand(18, {SERVERS[0]: ("a", "c", "g"), SERVERS[1]: ("d",)})
    page.until("document.querySelector('#view-number').textContent === '18'")
    page.until("document.querySelector('#view-change').textContent === 'View 18; came: g; went: b, e, f'")
    assert page.js(CELLS.format("kelp")) == [["a", "in"], ["b", "gone"], ["c", "in"], ["g", "in"]]
    assert page.js("document.querySelector('[data-server=tide]').dataset.is") == "out"
    assert page.js("document.querySelector('[data-server=tide] .note').textContent") == "not in this view"
    event = "document.querySelector('#events li[data-event=ViewChanged]')"
    page.until(f"{event}?.textContent.includes('This agent is in view 18 of 4')")
    assert "came: g; went: b, e, f" in page.js(f"{event}.textContent")
    page.until("document.querySelectorAll('[data-server=kelp] li[data-is=free]').length === 1")  # the place of b
    seat.stand(19, {SERVERS[0]: ("a", "b2", "c", "g"), SERVERS[1]: ("d",)})
    page.until("document.querySelector('#view-number').textContent === '19'")
    page.until("document.querySelectorAll('[data-server=kelp] li[data-is=in]').length === 4")
    assert page.js(CELLS.format("kelp")) == [["a", "in"], ["b2", "in"], ["c", "in"], ["g", "in"]]
    assert page.js(SHIFTS) < 0.02
    assert page.errors == []


def test_a_view_that_is_lost(page: Page, seat: Seat) -> None:
    """Views 5.6, D12: the lease counts down; without one the panel says so, since when, and why. The same view may come back."""
    seat.begin()
    seat.stand(5, {SERVERS[0]: ("a", "kelp")}, leased=2.0)
    shown(page, seat, members=2, calm=True)
    fact = "document.querySelector('[data-fact=lease] dd').textContent"
    first = page.js(fact)
    page.until(f"{fact} !== {first!r}")
    assert float(page.js(fact).split()[0]) < float(first.split()[0])
    held = seat.views.view
    assert held is not None

    def lose() -> None:
        seat.views.stand(None)
        seat.views.looks.update(lost_for=3.0, lost_why="no server answers")
        seat.agent.events.publish(ViewLost("no server answers"))
        seat.agent.events.publish(ViewTripped(NodeId(HOSTILE, 1), "not reached"))
        seat.agent.events.publish(LinkDown(SERVERS[1], "silent", 2.0))

    seat.group.call(lose)
    page.until("document.querySelector('#view-state').dataset.is === 'lost'")
    assert page.js("document.querySelector('#view-change').textContent") == "No view for 3 s: no server answers"
    assert page.js(f"[{fact}, document.querySelector('[data-fact=lease]').dataset.is]") == ["no lease", "bad"]
    page.until("document.querySelector('[data-server=kelp] .note').textContent === 'no view'")
    page.until("document.querySelectorAll('#events li').length >= 3")
    said = page.js("[...document.querySelectorAll('#events li p:first-child')].map((each) => each.textContent)")
    assert {"This agent has no view", f"{HOSTILE} was not reached: this agent gave its view up"} <= set(said)
    assert "reef has no link with this server of views any more" in said

    def restore() -> None:
        seat.views.stand(held, seat.agent.host.now + 60.0)
        seat.views.looks.update(lost_for=None, lost_why="")

    seat.group.call(restore)
    page.until("document.querySelector('#view-state').dataset.is === 'stable'")
    page.until("document.querySelector('[data-server=kelp]').dataset.is === 'in'")
    assert page.js("document.querySelectorAll('.view-server li[data-is=in]').length") == 2
    assert page.js("'hit' in window") is False
    assert page.errors == []


def test_hostile_names_and_a_narrow_screen(page: Page, seat: Seat) -> None:
    """Views 9: text of peers is text, also in attributes; nothing sticks out at the width of a phone."""
    hostile = NodeId(HOSTILE, 1)
    seat.begin()
    seat.link("quarantined", "up")
    seat.views.links = (seat.views.links[0]._replace(life=hostile, why=HOSTILE), seat.views.links[1])
    seat.stand(9, {SERVERS[0]: (HOSTILE, "x" * 60, "'\"> &amp;"), hostile: ("d",)})
    shown(page, seat, members=4, calm=True, width=360, dark=True)
    assert sorted(cell for cell, _ in page.js(CELLS.format("kelp"))) == sorted([HOSTILE, "x" * 60, "'\"> &amp;"])
    assert page.js(LINKS)[0] == ["0-1", "quarantined"]
    assert page.js("document.querySelectorAll('#views img, #events img').length") == 0
    assert page.js("'hit' in window") is False
    assert page.js("document.documentElement.scrollWidth") == 360
    assert page.js("document.getAnimations().length") == 0
    assert page.errors == []


def test_a_large_view(page: Page, seat: Seat) -> None:
    """Views 9: 2,000 members do not choke the page: so many cells for each server, and how many more there are."""
    names = [f"m{number:04}" for number in range(2000)]
    seat.begin()
    seat.stand(3, {SERVERS[0]: names[:150], SERVERS[1]: names[150:1000], SERVERS[2]: names[1000:]})
    shown(page, seat, members=550, calm=True)
    more = "[...document.querySelectorAll('.view-server .more')].map((each) => each.textContent)"
    assert page.js(more) == ["", "and 650 more", "and 800 more"]
    seat.stand(4, {SERVERS[0]: names[:150], SERVERS[1]: names[160:1000], SERVERS[2]: names[1000:]})
    page.until("document.querySelector('#view-number').textContent === '4'")
    page.until("document.querySelector('[data-server=reef] .more').textContent === 'and 640 more'")
    assert page.js("document.querySelectorAll('[data-server=reef] li').length") == 200
    assert "and 4 more" in page.js("document.querySelector('#view-change').textContent")
    assert page.errors == []


def test_only_there_while_views_are_used(page: Page, seat: Seat) -> None:
    """Views 9: no box while this agent has no part in views; a seat that serves others shows its links and no members."""
    page.open(seat.group.url, calm=True)
    page.until("document.body?.dataset.link === 'live' && document.querySelectorAll('#rows tr').length === 1")
    assert page.js("document.querySelector('#views').hidden")
    seat.group.call(seat.begin)
    seat.agent.views.takes_part = False
    page.until("!document.querySelector('#views').hidden")
    assert page.js("document.querySelector('#view-state').textContent") == "serves views"
    assert page.js("document.querySelectorAll('#view-graph .link').length") == 3
    assert "Its last number is 9" in page.js("document.querySelector('#view-change').textContent")
    seat.agent.views.serves = False
    page.until("document.querySelector('#views').hidden")
    assert page.errors == []
