"""The panel of elections in a real browser, over elections by script: a leader, how it was elected, hostile names.  Spec: election 10."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from holdfast.features.election.http import AnswerUsed, ElectionAnswer, ElectionsAnswer, LastElection
from holdfast.features.election.protocol.facts import ElectionFact
from tests.page.chromium import Page
from tests.page.stub_agent import StubGroup, stub_group
from tests.page.test_page import REACHED
from tests.support.agents import until
from tests.tidy.tree import PACKAGE

HOSTILE = '<img src="x" onerror="window.hit = 1">'
LANES = "[...document.querySelectorAll('#election-rows .picture g')].map((each) => [each.dataset.member, each.dataset.is])"
ROWS = "[...document.querySelectorAll('#election-rows tr[data-election]')].map((each) => [each.dataset.election, each.dataset.is])"


def last(**more: Any) -> LastElection:
    """This agent asked three; two answered, one was left out."""
    known: dict[str, Any] = {
        "why": "gone", "at": 1.0, "took": 0.12, "x": 5, "y": 5, "c": 2, "f": 1, "asked": {"a": 1, "b": 1, "d": 2},
        "answers": (AnswerUsed("kelp", 0.0, ("a", "b"), {}), AnswerUsed("a", 0.02, ("a", "b"), {"b": 2.0}), AnswerUsed("b", 0.1, (), {})),
        "excluded": {"b": 2.0}, "candidates": ("a",), "nominee": "a", "term": 1795000000007, "rounds": 1, "retries": 0,
        "outcome": "elected",
    }  # fmt: skip
    return LastElection(**(known | more))


def election(name: str, **more: Any) -> ElectionAnswer:
    known: dict[str, Any] = {
        "leader": "a", "boot": 1, "me": False, "state": "active", "token": 1795000000007, "since": 1.0, "listed": True, "role": "follower",
        "stands": True, "candidates": ("a", "b"), "variant": "hybrid", "voters": "none", "rank": ("hash",), "health": "suspicions", "c": 2,
        "f": 1, "needed": 0, "acks": (), "last": last(),
    }  # fmt: skip
    return ElectionAnswer(name=name, **(known | more))


class Member:
    """An agent of a group that elects."""

    def __init__(self, group: StubGroup) -> None:
        self.group, self.agent = group, group.add("kelp", http="127.0.0.1:0", lease=10.0)
        until(lambda: group.call(lambda: self.agent.ring.is_member), "a ring of one")

    def stand(self, *elections: ElectionAnswer) -> None:
        said = ElectionsAnswer(self.agent.election.said.version + 1, elections, 2.0, "")
        self.group.call(lambda: setattr(self.agent.election, "said", said))


@pytest.fixture
def member() -> Iterator[Member]:
    with stub_group() as group:
        yield Member(group)


def shown(page: Page, member: Member, rows: int) -> None:
    page.open(member.group.url)
    page.until("document.body?.dataset.link === 'live'")
    page.until(f"document.querySelectorAll('#election-rows tr[data-election]').length === {rows}")


def test_how_the_last_election_went(page: Page, member: Member) -> None:
    """Election 10: who leads under which term and how; who was asked, who answered, who was left out and why, who was named."""
    member.stand(election("cache", state="tentative", last=None), election("scheduler"))
    shown(page, member, 2)
    assert page.js(ROWS) == [["cache", "tentative"], ["scheduler", "active"]]
    assert page.js(LANES) == [["kelp", "answered"], ["a", "nominee"], ["b", "excluded"], ["d", "silent"]]
    told = page.js("document.querySelector('#election-rows .told').textContent")
    assert told == ("Last election here (gone): 3 members asked, 3 answers with its own, left out b; its nominee leads after 0.12\u202fs.")
    assert page.js("document.querySelector('.picture').getAttribute('aria-label')") == told
    assert page.js("document.querySelector('[data-election=cache] .me').textContent") == "tentative"
    how = page.js("document.querySelector('[data-election=scheduler] .how').textContent")
    assert how == "hybrid, voters none, hash; c 2, f 1"
    member.stand(election("scheduler", leader=None, state="none", last=last(outcome="responses", nominee=None)))
    page.until("document.querySelector('[data-election=scheduler]').dataset.is === 'none'")
    assert page.js("document.querySelector('[data-election=scheduler] b').textContent") == "no leader"
    assert page.js(ROWS) == [["scheduler", "none"]]
    member.stand()
    page.until("document.querySelector('#elections').hidden")
    assert page.errors == []


def test_every_fact_has_words() -> None:
    """Docs/page.md: what happens inside an election is told in words; a fact without them is shown by its name alone."""
    panel = (PACKAGE / "features/election/page/panel.js").read_text()
    assert set(re.findall(r'"election\.(\w+)": \(f\) =>', panel)) == {kind.__name__ for kind in ElectionFact.__subclasses__()}


def test_styles_of_the_panel_reach_its_section_alone(page: Page, member: Member) -> None:
    """H216: a rule of this ``panel.css`` selects nothing outside the section of the panel. Over a ring it has nothing to select."""
    member.stand(election("scheduler"))
    shown(page, member, 1)
    sections, rules = page.js(REACHED)["election/panel.css"]
    assert sections == ["elections"]
    assert rules >= 5


def test_names_are_text(page: Page, member: Member) -> None:
    """Docs/page.md: names of peers are never markup, and very many lines are cut."""
    hostile = last(asked={HOSTILE: 1}, excluded={HOSTILE: 1.0}, nominee=HOSTILE, candidates=(HOSTILE,))
    many = [election(f"name{number:03d}", last=None) for number in range(100)]
    member.stand(election(HOSTILE, leader=HOSTILE, candidates=(HOSTILE,), last=hostile), *many)
    shown(page, member, 40)
    assert page.js("document.querySelector('#election-count').textContent") == "40 of 101 names"
    assert page.js("window.hit ?? 0") == 0
    assert page.errors == []
