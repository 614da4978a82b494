"""Real agents whose membership is gossip, on the page of one of them: one is killed, another one stands still.  Issue 17, 5."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from typing import Any

import pytest

from tests.page.chromium import Browser, Page
from tests.page.test_gossip_panel import SUMS, TOLD, WATCH
from tests.page.test_page import REACHED
from tests.support.agents import AgentProcess, Fleet, until
from tests.support.realtime import repeated

PROBE = 0.5  # T, seconds
PATIENCE = 10.0  # the shortest suspicion is 5 s: a stopped agent is seen to be suspected, and goes on, long before it is over


class Gossips:
    """Four agents; the page is that of the first."""

    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet
        self.kelp = self.start("kelp", http="127.0.0.1:0")
        self.others = {name: self.start(name, seeds=[self.kelp.address]) for name in ("reef", "tide", "mist")}

    def start(self, name: str, **settings: Any) -> AgentProcess:
        return self.fleet.start(name=name, membership="gossip", probe=PROBE, patience=PATIENCE, **settings)

    @property
    def alive(self) -> int:
        """Tests come in any order, and one of them kills."""
        return 1 + sum(each.process.poll() is None for each in self.others.values())

    @property
    def url(self) -> str:
        return str(self.kelp.ready["http"])


@pytest.fixture(scope="module")
def gossips(chromium: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gossips]:
    with Fleet(tmp_path_factory.mktemp("gossips"), preset="lan") as fleet:
        yield Gossips(fleet)


def shown(page: Page, gossips: Gossips) -> None:
    page.open(gossips.url, calm=True)
    page.until("document.body?.dataset.link === 'live'")
    page.until(f"{SUMS}[0] === '{gossips.alive} alive' && {SUMS}[1] === '0 suspected'")
    page.js(WATCH)


def told(page: Page, name: str) -> list[str]:
    """Of this page, in the order in which it happened, without what a member says of itself."""
    return [event for event in page.js(TOLD.format(name)) if event not in ("Joined", "Updated")]


def test_a_stopped_agent_is_suspected_and_cleared(page: Page, gossips: Gossips) -> None:
    """Issue 17, 5; gossip 5.4, 5.5: SIGSTOP for less than the shortest suspicion. The cell is suspected, then the member has answered for
    itself."""
    tide = gossips.others["tide"]

    def attempt(number: int) -> str:
        shown(page, gossips)
        before = len(told(page, "tide"))
        tide.signal(signal.SIGSTOP)
        try:
            page.until(f"{SUMS}[1] === '1 suspected'")
            page.until("document.querySelector('#gossip-doubt-list li[data-member=tide]')?.dataset.status === 'suspected'")
        finally:
            tide.signal(signal.SIGCONT)
        page.until(f"{SUMS}.join() === '{gossips.alive} alive,0 suspected,{4 - gossips.alive} gone,0 left'")
        page.until("document.querySelector('#events li[data-member=tide]:not(.inner)').dataset.event === 'Cleared'")
        assert page.errors == []
        found = told(page, "tide")[before:]
        return "" if found == ["Suspected", "Cleared"] else f"the page told {found}"

    repeated(attempt, margin=PATIENCE * PROBE / 2)


def test_a_killed_agent_is_suspected_decided_and_failed(page: Page, gossips: Gossips) -> None:
    """Issue 17, 5; gossip G10: kill -9. Suspected, decided and failed, in this order, among the events and in the cell; the cell keeps its
    place, and says since when and by whose probes."""
    shown(page, gossips)
    gossips.others["mist"].kill()
    page.until("document.querySelector('#events li[data-event=Failed][data-member=mist]')")
    page.until("document.querySelector('#gossip-doubt-list li[data-member=mist]')?.dataset.status === 'failed'")
    page.until(f"{SUMS}.join() === '3 alive,0 suspected,1 gone,0 left'")
    assert told(page, "mist")[-3:] == ["Suspected", "Decided", "Failed"]
    stages = [status for name, status in page.js("stages") if name == "mist"]
    assert [each for number, each in enumerate(stages) if each not in stages[:number]] == ["suspected", "decided", "failed"]
    page.js("document.querySelector('#gossip-doubt-list li[data-member=mist] .pick').click()")
    page.until("document.querySelector('#gossip-zoom-status').textContent === 'gone'")
    page.until("document.querySelector('#gossip-zoom-story').textContent.startsWith('It died ')")
    story = page.js("document.querySelector('#gossip-zoom-story').textContent")
    assert any(name in story for name in ("kelp", "reef", "tide"))
    assert page.errors == []


def test_a_member_answers_probes_and_says_what_it_publishes(page: Page, gossips: Gossips) -> None:
    """Issue 17, 5 (zoom): the round trip of a real probe, when it was heard, and its rows."""
    shown(page, gossips)
    page.js("document.querySelector('#gossip-cursor').focus()")
    until(lambda: _stands_at(page, "reef"), "the cell of reef")
    fact = "document.querySelector('#gossip-zoom-facts [data-fact=\"{}\"] dd')?.textContent ?? ''"
    page.until(f"({fact.format('Round trip')}).endsWith('ms')")
    page.until(f"({fact.format('Heard')}).endsWith('ago')")
    page.until(f"({fact.format('Settled')}) === 'all list it'")
    assert "holdfast:v" in page.js("document.querySelector('#gossip-zoom-rows').textContent")
    assert page.errors == []


def test_styles_of_the_panel_reach_its_section_alone(page: Page, gossips: Gossips) -> None:
    """H216: a rule of this ``panel.css`` selects nothing outside the section of the panel."""
    page.open(gossips.url, calm=True)
    page.until("document.querySelector('#gossip-counters dd')")
    sections, rules = page.js(REACHED)["gossip/panel.css"]
    assert sections == ["gossip-card"]
    assert rules >= 5


def _stands_at(page: Page, name: str) -> bool:
    if str(page.js("document.querySelector('#gossip-cursor').ariaLabel")).startswith(f"{name},"):
        return True
    page.press("ArrowRight", 39)
    return False
