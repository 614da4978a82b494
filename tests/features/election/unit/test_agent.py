"""Elections as an agent shows them: lines for clients, findings with a planted fault each, HTTP and metrics.  Spec: election 9, 10, D23."""

from __future__ import annotations

from typing import Any, cast

import pytest

from holdfast.agent.grants.ways import Taken
from holdfast.agent.observe.metrics import render
from holdfast.config import Config
from holdfast.events import Event, LeaderChanged
from holdfast.features.election.board import LOOK_INTERVAL
from holdfast.features.election.findings import UNSETTLED_FOR, VIOLATIONS_FOR, of_elections
from holdfast.features.election.http import ElectionHttp
from holdfast.features.election.metrics import COUNTERS
from holdfast.features.election.protocol.facts import CBoundUnusable, Initiated, RankViolation
from holdfast.features.election.protocol.manner import manner
from holdfast.features.election.protocol.messages import Leader
from holdfast.features.election.protocol.ranks import row_of
from holdfast.features.election.running import ElectionAgent
from holdfast.kit.broadcast import Broadcast
from holdfast.kit.exchange import Exchange
from holdfast.lab.fake_host import FakeHost
from holdfast.local.leaders import ELECTION, read_line
from tests.features.election.stand import HYBRID, NAME, Client, FakeLists, Rows, life, post, ranked_names
from tests.features.election.unit.test_kind import Seated
from tests.support.parts import parts_of


class Stand:
    """One agent among others that a test speaks for, all of them candidates."""

    def __init__(self, *others: str, me: str = "m0", **rows: Any) -> None:
        self.host = FakeHost(me, 1)
        self.rows = Rows()
        self.rows.add(self.host.me)
        for name in others:
            self.rows.add(life(name), {row_of(NAME): rows.get(name, post(HYBRID))})
        self.lists = FakeLists(self.host.me, self.rows)
        broadcast = Broadcast(self.host, self.lists)
        parts = parts_of(
            Config(membership="gossip", preset="local"), host=self.host, membership=self.lists, broadcast=broadcast,
            exchange=Exchange(self.host, broadcast),
        )  # fmt: skip
        self.agent = ElectionAgent(parts)
        self.elections = self.agent.elections
        self.elections.start()
        self.client = Client(self.host)
        self._told = 0

    def pass_time(self, seconds: float) -> None:
        self.host.pass_time(seconds)
        for event in self.host.emitted[self._told :]:
            self.tell(event)
        self._told = len(self.host.emitted)

    def tell(self, event: Event) -> None:
        if isinstance(event, self.agent.hears):
            self.agent.on_event(event)

    def ask(self, name: str = NAME, **options: Any) -> None:
        self.agent.kind.acquire(name, options, self.client)

    def hear_leader(self, name: str, term: int, *, active: bool) -> None:
        leader = life(name)
        self.elections.on_message(leader, Leader(NAME, HYBRID, term, leader, active))
        self.pass_time(0.0)

    def codes(self) -> list[str]:
        return [each.code for each in of_elections(self.agent)]

    def line(self) -> tuple[str | None, int, str, str]:
        assert self.agent.board.version >= 0
        line = read_line(self.agent.board.lines[NAME])
        return None if line.leader is None else line.leader.name, line.token, line.by, line.state


def term_of(stand: Stand) -> int:
    return int(stand.host.wall() * 1000)


def test_who_leads_as_clients_read_it() -> None:
    """Election 9, 10: a tentative leader is in the view, with its state, and is no LeaderChanged; a line stays with the last token."""
    stand = Stand("m1", "m2")
    term = term_of(stand)
    stand.hear_leader("m1", term, active=False)
    stand.pass_time(LOOK_INTERVAL)
    assert stand.line() == ("m1", term, ELECTION, "tentative")
    assert not any(isinstance(event, LeaderChanged) for event in stand.host.emitted)
    version = stand.agent.board.version
    stand.hear_leader("m1", term, active=True)
    assert stand.line() == ("m1", term, ELECTION, "active")
    assert stand.agent.board.version > version
    told = [event for event in stand.host.emitted if isinstance(event, LeaderChanged)]
    assert [(event.leader, event.by, event.state) for event in told] == [(life("m1"), ELECTION, "active")]
    stand.lists.lose("m1")
    stand.pass_time(LOOK_INTERVAL)
    assert stand.line()[:2] == (None, term)
    lines, version = stand.agent.board.lines, stand.agent.board.version
    stand.agent.board.note()
    assert stand.agent.board.version == version
    assert stand.agent.board.lines is lines  # the same objects until something changes


def test_a_calm_agent_says_nothing() -> None:
    """Election 10: no finding without a fault."""
    stand = Stand("m1", "m2", "m3")
    stand.ask()
    stand.pass_time(5.0)
    stand.hear_leader("m1", term_of(stand) + 10_000, active=True)
    assert stand.codes() == []


def test_two_ways() -> None:
    """Election D23 (two_ways): what slips through while news travel."""
    stand, seated = Stand("m1", "m2", "m3"), Seated()
    seated_name = seated.taken
    seated.taken = lambda name: seated_name("x" if name == NAME else "")  # type: ignore[method-assign]
    stand.agent.ways.add(seated)
    stand.hear_leader("m1", term_of(stand), active=True)
    assert stand.codes() == []
    seated.holder = Taken(life("m9"), "leads")
    assert [(each.code, each.severity, each.about) for each in of_elections(stand.agent)] == [("two_ways", "error", NAME)]


def test_rank_mismatch() -> None:
    """Election 10 (rank_mismatch): another candidate is elected in another manner."""
    stand = Stand("m1", "m2", "m3", m3=post(manner("hybrid", rank="tag:disk")))
    stand.hear_leader("m1", term_of(stand), active=True)
    found = list(of_elections(stand.agent))
    assert [(each.code, each.about) for each in found] == [("rank_mismatch", "m3")]
    assert "rank 'tag:disk'" in found[0].text


def test_c_unusable() -> None:
    """Election 5.1 (c_unusable): want > n-1-f, said by the last election that began here, once something was measured."""
    stand = Stand("m1", "m2", "m3")
    initiated = Initiated(NAME, 1, 5, 5, (), "watch")
    stand.lists.observed = 10.0
    stand.tell(CBoundUnusable(NAME, 9, 2))
    stand.tell(initiated)
    assert stand.codes() == []  # in the first bucket all are asked
    stand.lists.observed = 100.0
    stand.tell(CBoundUnusable(NAME, 9, 2))
    stand.tell(initiated)
    assert [(each.code, each.severity) for each in of_elections(stand.agent)] == [("c_unusable", "warning")]
    stand.tell(initiated)
    assert stand.codes() == []


def test_c_unusable_in_the_machine() -> None:
    """Election 5.1: the machine says so before the election begins, and doctor hears it in that order."""
    stand = Stand("m1", "m2", "m3")
    stand.lists.c = 9
    stand.ask()
    stand.pass_time(0.1)
    stand.elections.elect(NAME)
    stand.pass_time(0.0)
    assert stand.codes() == ["c_unusable"]


def test_rank_violation() -> None:
    """Election D6 (rank_violation): in the last hour a worse one led."""
    stand = Stand("m1", "m2", "m3")
    stand.tell(RankViolation(NAME, life("m2"), 7))
    assert stand.codes() == ["rank_violation"]
    stand.pass_time(VIOLATIONS_FOR + 1)
    assert stand.codes() == []


def test_rank_violation_in_the_machine() -> None:
    """Election D6 (rank_violation): the machine sees that a candidate leads which ranks behind it, and doctor hears of it; not of one that
    ranks before it, and not while it stands for nothing."""
    names = ranked_names(4)
    better, me, *worse = names
    for leader, stands, found in ((worse[0], True, ["rank_violation"]), (better, True, []), (worse[0], False, [])):
        stand = Stand(*(name for name in names if name != me), me=me)
        if stands:
            stand.ask()
        stand.pass_time(0.0)
        stand.hear_leader(leader, term_of(stand) + 10_000, active=True)
        assert stand.codes() == found
        assert stand.elections.counts["rank_violations"] == len(found)


def test_no_candidate_settled() -> None:
    """Election 10 (no_candidate_settled): a client waits, and no candidate is eligible."""
    stand = Stand()
    stand.lists.unsettled["m0"] = None
    stand.ask()
    stand.pass_time(1.0)
    assert stand.codes() == []
    stand.pass_time(UNSETTLED_FOR)
    assert stand.codes() == ["no_candidate_settled"]
    stand.lists.unsettled.clear()
    assert stand.codes() == []


def test_how_the_last_election_went() -> None:
    """Election 10, docs/http.md: who was asked, who answered, who was named, under which term."""
    stand = Stand("m1", "m2", "m3")
    stand.ask(rank="hash")
    stand.pass_time(0.1)
    stand.elections.elect(NAME)
    stand.pass_time(0.0)
    answer = ElectionHttp(cast(Any, None), stand.agent).answer()
    assert answer.why == ""
    assert answer.hold == pytest.approx(0.4)
    (found,) = answer.elections
    assert (found.name, found.variant, found.voters, found.rank, found.health) == (NAME, "hybrid", "none", ("hash",), "suspicions")
    assert found.stands
    assert found.last is not None
    assert found.last.why == "elect"
    assert set(found.last.asked) <= {"m1", "m2", "m3"}
    assert found.last.answers[0].member == "m0"
    assert found.last.at == pytest.approx(stand.host.wall(), abs=1.0)


def test_over_another_membership_http_says_why() -> None:
    """Election 10: no names, and the reason."""
    answer = ElectionHttp(cast(Any, None), None, "because").answer()
    assert (answer.elections, answer.why, answer.hold) == ((), "because", None)


def test_metrics() -> None:
    """Election 9: every counter has its name, and numbers per name are labelled."""
    stand = Stand("m1", "m2", "m3")
    stand.hear_leader("m1", term_of(stand), active=True)
    text = render(ElectionHttp(cast(Any, None), stand.agent).metrics())
    for name in COUNTERS:
        assert f"holdfast_election_{name}_total" in text or f"election_{name}_total" in text
    assert f'election_term{{name="{NAME}"}} {term_of(stand)}' in text
    assert "election_led 1" in text
    assert "election_terms_total 1" in text


def test_how_long_elections_take() -> None:
    """Election 9 (duration histogram): from the first QUERY until the initiator knows that its nominee leads, in buckets."""
    stand = Stand()
    stand.ask()
    stand.pass_time(0.1)
    stand.elections.elect(NAME)
    stand.pass_time(0.1)
    lines = render(ElectionHttp(cast(Any, None), stand.agent).metrics()).splitlines()
    count = stand.elections.metrics()["finished"]
    assert count >= 1
    assert "# TYPE holdfast_election_seconds histogram" in lines
    assert f'holdfast_election_seconds_bucket{{le="0.01"}} {count:g}' in lines
    assert f"holdfast_election_seconds_count {count:g}" in lines


def test_tokens_of_the_other_way_are_exceeded() -> None:
    """F16: an election that begins here exceeds the tokens of the same name by seats."""
    stand, seated = Stand("m1", "m2", "m3"), Seated()
    high = term_of(stand) + 5_000_000
    seated.highest = lambda name: high  # type: ignore[method-assign]
    stand.agent.ways.add(seated)
    stand.elections.campaign(NAME, 0.0, stand.client)
    stand.elections.elect(NAME)
    stand.tell(next(event for event in stand.host.emitted if isinstance(event, Initiated)))
    last = stand.elections.state(NAME)
    assert last is not None
    assert stand.elections._core.contests[NAME].floor == high
