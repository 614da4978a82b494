"""Elections on real agents: resign, kill -9, a stopped client, both ways to lead.  Spec: election 1, 5.9, 5.10, 10, D23; F14, F16."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

import holdfast as package
from holdfast import sync
from holdfast.cli.demo.fleet import free_ports
from holdfast.errors import AcquireTimeout, ConfigError, LeadershipLost
from holdfast.events import LeaderChanged
from holdfast.sync import Group, Term
from tests.cli.command import Run
from tests.cli.recorder import alive
from tests.features.election.process.fleet import AGENTS, HOLD, WAIT, Electors
from tests.http.wire import ask
from tests.support.agents import Fleet, until

REFUSED = (
    ("--rank", "load", "hash, tag:NAME, -tag:NAME"),
    ("--variant", "fast", "base, optimistic, preferred, hybrid"),
    ("--voters", "all", "none, seats, members"),
    ("--health", "mood", "suspicions, own, false_positives, tag:NAME"),
)
VARIANTS = ("base", "hybrid")  # of two candidates of one name that differ
ATTEMPTS, BOTH = 10, 10.0  # how often they ask at one moment, and for how many seconds both stand
LOST = 124  # exit code of a command that was stopped because its reign ended


@pytest.fixture(scope="module")
def electors(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Electors]:
    made = Electors(tmp_path_factory.mktemp("electors"))
    with made.fleet:
        yield made
        made.close()


def test_a_term_by_election(electors: Electors) -> None:
    """Election 10, A1: valid, deadline, token, exclusive False; all hear who leads and how; the deadline moves with each extension."""
    events = electors.groups[1].watch()
    with electors.groups[0].lead("first", by="election", timeout=WAIT) as term:
        assert (term.valid, term.exclusive, term.kind) == (True, False, "elect")
        assert electors.until_agreed("first") == ("e0", term.token)
        first = term.deadline
        assert term.left <= HOLD
        until(lambda: term.deadline > first, "it is extended")
        assert electors.groups[2].leader("first").by == "election"  # type: ignore[union-attr]
        term.check()
        told = next(event for event in events if isinstance(event, LeaderChanged) and event.name == "first")
        assert (told.leader, told.token, told.by, told.state) == (electors.groups[0].me.id, term.token, "election", "active")
    with pytest.raises(LeadershipLost):
        term.check()
    until(lambda: all("first" not in group.leaders for group in electors.groups), "no leader without a client that asks (E13)")


def test_resign(electors: Electors) -> None:
    """Election 5.9: the next candidate leads under a larger token, and the first one is over for good."""
    with electors.groups[0].lead("handed", by="election", timeout=WAIT) as term:
        electors.until_agreed("handed")
        following = electors.groups[1].lead("handed", by="election", timeout=WAIT)
        with pytest.raises(AcquireTimeout, match="another member leads"), electors.groups[2].lead("handed", by="election", timeout=0.5):
            pass
        waits = Thread(target=following.__enter__)
        waits.start()
        term.resign()
        waits.join()
        assert not term.valid
        assert following.valid
        assert following.token > term.token
        assert electors.until_agreed("handed") == ("e1", following.token)
        following.release()


def test_clients_of_one_agent_take_turns(electors: Electors) -> None:
    """Election 5.10, F14, F16: a queue per name and agent; each turn is a term with a larger token."""
    with electors.groups[0].lead("turns", by="election", timeout=WAIT) as first:
        with pytest.raises(AcquireTimeout), electors.groups[0].lead("turns", by="election", timeout=0.5):
            pass
        assert first.valid
    with electors.groups[0].lead("turns", by="election", timeout=WAIT) as second:
        assert second.token > first.token


def test_bad_input(electors: Electors, holdfast: Run) -> None:
    """Issue 18, bad input: each is refused with the field and what is accepted, and the agent stays as it was."""
    group, other = electors.groups[0], electors.groups[1]
    with pytest.raises(ConfigError, match=r"^by: 'vote'; accepted are seats, election$"):
        group.lead("bad", by="vote")
    with pytest.raises(ConfigError, match=r"^rank: 'load'; accepted are hash, tag:NAME, -tag:NAME$"):
        group.lead("bad", by="election", rank="load")
    with pytest.raises(ConfigError, match=r"^name: no member stands for 'nobody'; accepted is"):
        group.elect("nobody")
    with group.lead("bad", by="election", timeout=WAIT):
        electors.until_agreed("bad")
        with pytest.raises(ConfigError, match=r"^variant: 'base'; accepted is 'hybrid', as e0#\d+ has it, which stands for 'bad'$"):
            other.lead("bad", by="election", variant="base").__enter__()
        with pytest.raises(ConfigError, match=r"^by: 'seats'; accepted for 'bad' is election, because e0#\d+ leads that way"):
            other.lead("bad").__enter__()
        run = ("run", "--agent", electors.agents[1].socket)
        said = holdfast(*run, "--lead", "bad", "--by", "vote", "--", "true")
        assert (said.code, said.err.strip()) == (125, "holdfast: --by: 'vote'; accepted are seats, election")
        said = holdfast(*run, "--lead", "bad", "--variant", "base", "--", "true")
        assert (said.code, said.err.strip()) == (
            125,
            "holdfast: --variant: says how an election goes; accepted together with --by election",
        )
        for flag, value, accepted in REFUSED:
            said = holdfast("run", "--lead", "bad", "--by", "election", flag, value, "--", "true")  # No agent is there to be asked.
            assert (said.code, said.err.strip()) == (125, f"holdfast: {flag}: {value!r}; accepted are {accepted}")
        said = holdfast(*run, "--by", "election", "--", "true")
        assert (said.code, said.err.strip()) == (125, "holdfast: --by: says how --lead is meant; accepted together with --lead")


def test_seventeen_names(electors: Electors) -> None:
    """Election 2: an agent stands for 16 names; a 17th is refused, and after one is given up there is room."""
    terms = [electors.groups[2].lead(f"many{number}", by="election", timeout=WAIT) for number in range(17)]
    for term in terms[:16]:
        term.__enter__()
    with pytest.raises(package.Unavailable, match=r"^this agent stands for 16 names already"):
        terms[16].__enter__()
    terms[0].release()
    with electors.groups[2].lead("many16", by="election", timeout=WAIT):
        pass
    for term in terms[1:16]:
        term.release()


def test_tokens_grow_through_both_ways(electors: Electors) -> None:
    """F16, D23: election, seats, election: the name is free in between, and its tokens only grow."""
    tokens: list[int] = []
    for by in ("election", "seats", "election", "seats"):
        group = electors.groups[len(tokens) % AGENTS]
        until(lambda: all("both" not in each.leaders for each in electors.groups), "no leader is known")
        until(partial(took, group, by, tokens), f"it leads by {by}")
    assert tokens == sorted(set(tokens))


def took(group: Group, by: str, tokens: list[int]) -> bool:
    """False: the other way's candidate is still listed."""
    try:
        with group.lead("both", by=by, timeout=WAIT) as term:
            tokens.append(term.token)
            until(lambda: (led := group.leader("both")) is not None and led.by == by, "it is known how")
    except ConfigError as error:
        if "and a name has one way" not in str(error):
            raise
        return False
    return True


def test_elect_lets_the_best_ranked_take_over(electors: Electors, holdfast: Run) -> None:
    """Election D14, 10: a leader stays while it is listed; ``elect`` makes it one candidate among others."""
    ranked = {"e0": "3", "e1": "1", "e2": "2"}
    for group in electors.groups:
        group.set_tags(cost=ranked[group.me.name])
    rank = ("tag:cost",)
    with electors.groups[0].lead("ranked", by="election", rank=rank, timeout=WAIT) as worse:
        electors.until_agreed("ranked")
        better = electors.groups[1].lead("ranked", by="election", rank=rank, timeout=WAIT)
        waits = Thread(target=better.__enter__)
        waits.start()
        time.sleep(1.0)
        assert worse.valid
        until(lambda: elected(holdfast, electors) and not waits.is_alive(), "the best-ranked one leads", WAIT)
        assert electors.until_agreed("ranked") == ("e1", better.token)
        until(lambda: not worse.valid, "the other one is over")
        assert "superseded" in worse.why
        better.release()


def elected(holdfast: Run, electors: Electors) -> bool:
    """Again and again: the candidate's row may not be known everywhere yet."""
    said = holdfast("elect", "ranked", "--json", "--agent", electors.agents[2].socket)
    assert (said.code, json.loads(said.out)) == (0, {"began": True, "name": "ranked"})
    time.sleep(1.0)
    return True


def test_who_leads_on_the_command_line(electors: Electors, holdfast: Run) -> None:
    """Docs/cli.md (leader): how a name is led, and whether its leader may act."""
    with electors.groups[0].lead("shown", by="election", timeout=WAIT) as term:
        electors.until_agreed("shown")
        said = holdfast("leader", "shown", "--wait", "--json", "--agent", electors.agents[1].socket)
        (line,) = json.loads(said.out)["leaders"]
        assert (said.code, line["leader"]["name"], line["token"], line["by"], line["state"]) == (0, "e0", term.token, "election", "active")
        text = holdfast("leader", "shown", "--agent", electors.agents[1].socket).out
        assert text.splitlines()[0].split() == ["NAME", "LEADER", "TOKEN", "SINCE", "BY"]
        assert text.splitlines()[1].split()[-1] == "election"


def test_how_an_election_went_over_http(electors: Electors, holdfast: Run) -> None:
    """Docs/http.md (`GET /v1/elections`), election 10: after ``elect``, who leads under which term, and who was asked, who answered and
    who was named in the election that began at this agent."""
    url = str(electors.agents[0].ready["http"])
    with electors.groups[1].lead("told", by="election", variant="base", timeout=WAIT) as term:
        electors.until_agreed("told")
        until(lambda: went(holdfast, electors.agents[0].socket, url), "an election with a nominee", WAIT)
        found = told_of(url)
        last = found["last"]
        assert (found["leader"], found["state"], found["token"], found["listed"]) == ("e1", "active", term.token, True)
        assert (found["role"], found["stands"], found["candidates"], found["variant"]) == ("follower", False, ["e1"], "base")
        assert (last["nominee"], last["candidates"], last["excluded"]) == ("e1", ["e1"], {})
        assert set(last["asked"]) <= {"e1", "e2"}
        answers = {each["member"]: each["candidates"] for each in last["answers"]}
        assert len(answers) >= last["c"] + 1
        assert set(answers) <= {"e0", *last["asked"]}
        assert all(candidates == ["e1"] for candidates in answers.values())


def went(holdfast: Run, agent: str, url: str) -> bool:
    """Whether an election that is asked for now comes to a nominee. The second LEADER of the present leader may end it before (H441)."""
    assert holdfast("elect", "told", "--agent", agent).code == 0
    until(lambda: (last := told_of(url)["last"]) is not None and last["why"] == "elect" and last["outcome"] != "", "it is over", WAIT)
    return told_of(url)["last"]["nominee"] is not None


def told_of(url: str) -> dict[str, Any]:
    """What this agent says of that name."""
    (found,) = (each for each in ask(url, "/v1/elections").json["elections"] if each["name"] == "told")
    assert isinstance(found, dict)
    return found


def test_doctor_finds_candidates_that_differ(electors: Electors, holdfast: Run) -> None:
    """Election 10 (rank_mismatch), F4: two clients ask at the same moment for two variants, so that neither agent knows the other's
    candidate yet: `doctor` at one agent names the other one and both variants."""
    for attempt in range(ATTEMPTS):
        name = f"differ{attempt}"
        with ThreadPoolExecutor(2) as pool:
            waits = [pool.submit(entered, electors.groups[number], name, VARIANTS[number]) for number in (0, 1)]
            found: list[dict[str, Any]] = []
            while not found and not all(each.done() for each in waits):
                said = holdfast("doctor", "--json", "--agent", electors.agents[0].socket)
                found = [each for each in json.loads(said.out)["findings"] if each["code"] == "rank_mismatch"]
        for each in waits:
            if (term := each.result()) is not None:
                term.release()
        if found:
            break
    (finding,) = found
    assert (finding["about"], finding["severity"], said.code) == ("e1", "error", 1)
    assert finding["text"] == f"It stands for {name!r} with variant 'hybrid', and this agent counts with 'base'."


def entered(group: Group, name: str, variant: str) -> Term | None:
    """None: the other one was heard of first, or has led for all the time."""
    try:
        return group.lead(name, by="election", variant=variant, timeout=BOTH).__enter__()
    except (AcquireTimeout, ConfigError):
        return None


def test_a_client_that_is_stopped(electors: Electors, tmp_path: Path) -> None:
    """E12, F14: a client under SIGSTOP hears no extension: `run` is stopped, and its command is dead by its deadline all the same; the
    name has another leader then."""
    run, first = electors.run(0, "stopped", tmp_path / "first", "deaf")
    until(first.working, "the first one works", WAIT)
    second_run, second = electors.run(1, "stopped", tmp_path / "second")
    os.kill(run.pid, signal.SIGSTOP)
    try:
        until(lambda: alive(first.pids()) == set(), "the command of a stopped client is dead", WAIT)
        until(second.working, "another one leads", WAIT)
        assert max(first.times("work")) < second.times("start")[0]
    finally:
        os.kill(run.pid, signal.SIGCONT)
        for process in (run, second_run):
            process.terminate()
            process.communicate(timeout=WAIT)


def test_kill_of_the_leading_agent(electors: Electors, tmp_path: Path) -> None:
    """L4, 5.8, 5.10: kill -9 of the leader's agent: its command ends by its deadline with exit code 124, another agent leads under a
    larger token, and a fence refuses what the first one writes late."""
    run, first = electors.run(2, "killed", tmp_path / "first", "deaf")
    until(first.working, "the first one works", WAIT)
    second_run, second = electors.run(0, "killed", tmp_path / "second")
    with package.Fence(tmp_path / "fence.db") as fence:
        fence.admit(token_of(first.lines()))
        electors.groups[2].leave()
        electors.agents[2].kill()
        assert run.wait(WAIT) == LOST
        run.communicate()
        assert alive(first.pids()) == set()
        until(second.working, "another one leads", WAIT)
        fence.admit(token_of(second.lines()))
        with pytest.raises(package.StaleToken):
            fence.admit(token_of(first.lines()))
    second_run.terminate()
    second_run.communicate(timeout=WAIT)
    electors.restart(2)


def token_of(lines: list[list[str]]) -> int:
    words = next(line for line in lines if line[0] == "env")
    found = dict(word.split("=", 1) for word in words if "=" in word)
    assert found["HOLDFAST_TERM"] == found["HOLDFAST_TOKEN"]
    return int(found["HOLDFAST_TOKEN"])


@pytest.mark.parametrize("voters", ["seats", "members"])
def test_a_term_needs_voters(electors: Electors, voters: str) -> None:
    """A2: with voters a term is promised by a majority, and all know it; its tokens grow."""
    tokens = []
    for number in (0, 1):
        with electors.groups[number].lead(f"voted-{voters}", by="election", voters=voters, timeout=WAIT) as term:
            assert electors.until_agreed(f"voted-{voters}") == (f"e{number}", term.token)
            tokens.append(term.token)
    assert tokens[0] < tokens[1]


def test_while_leader(electors: Electors) -> None:
    """Election 10: the decorator asks in the same way, and gives what the function returns."""

    @electors.groups[1].while_leader("work", by="election", variant="optimistic", timeout=WAIT)
    def work(term: Term) -> bool:
        return term.valid and not term.exclusive

    assert work()


def test_while_leader_on_an_event_loop(electors: Electors) -> None:
    """Election 10: the same with the client for asyncio, against a real agent; the term is over when the function has returned."""

    async def program() -> tuple[bool, package.Term]:
        async with package.join(agent=electors.agents[2].socket) as group:

            @group.while_leader("looped", by="election", variant="base", timeout=WAIT)
            async def work(term: package.Term) -> tuple[bool, package.Term]:
                return term.valid and not term.exclusive and term.kind == "elect", term

            return await work()

    was_good, term = asyncio.run(program())
    assert was_good
    assert not term.valid


def test_over_the_ring_it_is_refused(tmp_path: Path, runtime: Path, holdfast: Run) -> None:
    """Issue 18, bad input: ``by="election"`` at an agent whose membership is the ring, through the client in both spellings and
    ``holdfast run``: an error that names the setting, and the agent goes on."""
    said = 'by: "election" needs membership = "gossip"; this agent runs ring'

    async def ask_it(socket: str) -> None:
        async with package.join(agent=socket) as group, group.lead("x", by="election", timeout=WAIT):
            pass

    with Fleet(tmp_path) as fleet:
        place = f"127.0.0.1:{free_ports(1)[0]}"
        agent = fleet.start(name="ringed", bind=place, seeds=[place])
        with sync.join(agent=agent.socket) as group:
            with pytest.raises(ConfigError) as refused, group.lead("x", by="election", timeout=WAIT):
                pass
            assert str(refused.value) == said
            with pytest.raises(ConfigError) as refused:
                asyncio.run(ask_it(agent.socket))
            assert str(refused.value) == said
            ran = holdfast("run", "--agent", agent.socket, "--lead", "x", "--by", "election", "--", "true")
            assert (ran.code, ran.err.strip()) == (125, f"holdfast: {said}")
            with group.lead("x", timeout=WAIT) as term:
                assert term.exclusive
