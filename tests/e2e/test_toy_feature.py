"""A complete feature is one folder and one line: everything about it shows up without another edit.  H218.

docs/architecture.md (adding a feature) has the rooms. The feature is ``tests/toy/counter``. It is added to a copy of the package, and only
processes that use the copy know it.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from datetime import datetime
from itertools import count
from pathlib import Path
from signal import SIGTERM
from time import monotonic
from typing import Any
from urllib.request import urlopen

import pytest

import holdfast
from scripts.spell import blocking
from tests.agent.raw_client import RawClient, Sent
from tests.support.agents import AgentProcess, Fleet, clean_environ, until
from tests.toy.counter.calls import CounterAdd
from tests.toy.counter.kind import LENGTH
from tests.toy.counter.protocol.counters import SPREAD

PACKAGE = Path(holdfast.__file__).parent
TOY = Path(__file__).parents[1] / "toy" / "counter"
HOME = "holdfast.features.counter"
LAST_LINE = '    "holdfast.features.views.agent:ViewFeature",\n'
LINE = f'    "{HOME}.agent:CounterFeature",\n'
TIMEOUT = 60.0  # seconds; only a broken program or a broken machine reaches it

BOTH_SPELLINGS = """
import asyncio, sys, holdfast, holdfast.sync

async def main(path):
    async with await holdfast.join(agent=path) as group:
        hits = group.counter("hits")
        former = await hits.value()
        print(await hits.add(3) - former, await hits.value() - former, await group.counter("none").value())
        try:
            await group.counter("a/b").add()
        except holdfast.ConfigError as error:
            print(error)

asyncio.run(main(sys.argv[1]))
with holdfast.sync.join(agent=sys.argv[1]) as group:
    hits = group.counter("hits")
    former = hits.value()
    print(hits.add() - former, hits.value() - former)
"""


OWN_ERROR = """
import sys, holdfast.sync
from holdfast.features.counter.errors import CounterLimit

with holdfast.sync.join(agent=sys.argv[1]) as group:
    try:
        group.counter("third").add()
    except CounterLimit as error:
        print(type(error).__name__, str(error).partition(":")[0])
"""


class House:
    """The package with the feature in it, and two agents that run it."""

    def __init__(self, tree: Path, folder: Path) -> None:
        self.tree, self.folder = tree, folder
        self.agents: list[AgentProcess] = []

    @property
    def environ(self) -> dict[str, str]:
        """Byte code is kept in the copy, whatever this process was told: a dozen processes read it."""
        return {"PYTHONPATH": str(self.tree), "PYTHONDONTWRITEBYTECODE": "", "COLUMNS": "200", "NO_COLOR": "1"}

    def run(self, *words: str, agent: int | None = None, code: int | None = 0) -> str:
        """What a command prints. With ``code`` None its exit code does not matter."""
        more = () if agent is None else ("--agent", self.agents[agent].socket)
        return self.python("-m", "holdfast", *words, *more, code=code)

    def python(self, *words: str, code: int | None = 0, variables: Mapping[str, str] = {}) -> str:
        environ = clean_environ(self.folder, {**self.environ, **variables})
        done = subprocess.run([sys.executable, *words], env=environ, capture_output=True, text=True, timeout=TIMEOUT, check=False)
        assert code is None or done.returncode == code, (words, done.returncode, done.stdout, done.stderr)
        return done.stdout or done.stderr

    def watched(self, event: str, agent: AgentProcess, seen: Path, *flags: str) -> dict[str, Any]:
        """The first line of this event that `holdfast watch` prints. Counters are added to until it does: it takes a moment to start."""
        watching = [sys.executable, "-m", "holdfast", "watch", "--json", "--agent", agent.socket, *flags]
        names = (f"new{number}" if not flags else "sum" for number in count())
        with seen.open("wb") as file, subprocess.Popen(watching, env=clean_environ(self.folder, self.environ), stdout=file) as watch:
            try:
                until(lambda: self.run("counter", "add", next(names), "--agent", agent.socket) and event in seen.read_text(), event)
            finally:
                watch.terminate()
        return next(line for line in map(json.loads, seen.read_text().splitlines()) if line["event"] == event)

    def value(self, name: str, agent: int) -> int:
        return int(json.loads(self.run("counter", "show", "--json", agent=agent))["counters"][name])

    def get(self, path: str, agent: int = 0) -> str:
        with urlopen(f"{self.agents[agent].ready['http']}{path}", timeout=TIMEOUT) as answer:
            return str(answer.read().decode())


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package (links, as nothing of it is changed), one folder more, one line more."""
    root = tmp_path_factory.mktemp("house")
    package = root / "holdfast"
    shutil.copytree(PACKAGE, package, copy_function=os.symlink)
    _furnish(TOY, package / "features" / "counter")
    features = package / "features" / "__init__.py"
    text = features.read_text()
    assert text.count(LAST_LINE) == 1
    features.unlink()
    features.write_text(text.replace(LAST_LINE, LAST_LINE + LINE))
    return root


@pytest.fixture(scope="module")
def house(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    folder = tmp_path_factory.mktemp("agents")
    made = House(tree, folder)
    with Fleet(folder, counter_limit=2) as fleet:
        first = fleet.start(name="a", http="127.0.0.1:0", environ=made.environ)
        second = fleet.start(name="b", seeds=[first.address], environ=made.environ)
        made.agents = [first, second]
        until(lambda: all(each.said("Joined", member=other.id) for each in made.agents for other in made.agents), "two are a group")
        yield made


def _furnish(source: Path, target: Path) -> None:
    """Copy the toy's folder. Only its own name differs: it is checked by ruff and mypy where it stands."""
    for path in (path for path in source.rglob("*.*") if path.suffix in (".py", ".html", ".js")):
        place = target / path.relative_to(source)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(path.read_text().replace("tests.toy.counter", HOME))


def test_help_names_its_verbs(house: House) -> None:
    """H218: `holdfast --help`, `holdfast counter --help` and completion."""
    assert "Counters of the group: every member can add." in house.run("--help")
    told = house.run("counter", "--help")
    assert "Add to a counter, and print its value." in told
    assert "--by" in house.run("counter", "add", "--help")
    assert "--counter NAME" in house.run("run", "--help")
    shell = {"_HOLDFAST_COMPLETE": "complete_bash", "COMP_WORDS": "holdfast cou", "COMP_CWORD": "1"}
    assert "counter" in house.python("-c", "from holdfast.cli import main; main()", variables=shell).split()


def test_its_setting_is_one_of_the_agent(house: House) -> None:
    """H218: `holdfast agent --help`, `--check` with flag, variable and limits."""
    assert "--counter-limit" in house.run("agent", "--help")
    assert json.loads(house.run("agent", "--check", "--json", "--counter-limit", "7"))["settings"]["counter_limit"] == 7
    shown = house.python("-m", "holdfast", "agent", "--check", "--json", variables={"HOLDFAST_COUNTER_LIMIT": "9"})
    assert json.loads(shown)["sources"]["counter_limit"] == "HOLDFAST_COUNTER_LIMIT"
    assert "counter_limit: 0; accepted are 1 to 1000" in house.run("agent", "--check", "--counter-limit", "0", code=2)


def test_what_one_member_adds_all_members_count(house: House) -> None:
    """H218: call, verb and machine; rows reach the other agent. What is wrong is told by the name of the field."""
    former = int(house.run("counter", "add", "sum", agent=0))
    house.run("counter", "add", "sum", "--by", "41", agent=1)
    until(lambda: house.value("sum", agent=0) == house.value("sum", agent=1) == former + 41, "both count what both added")
    assert ["sum", str(former + 41)] in [line.split() for line in house.run("counter", agent=0).splitlines()]
    assert "by: 0; accepted are 1 to" in house.run("counter", "add", "sum", "--by", "0", agent=0, code=2)


def test_a_program_has_it_in_both_spellings(house: House) -> None:
    """H218: ``group.counter(name)`` of ``holdfast`` and of ``holdfast.sync``, and the errors of the feature."""
    told = house.python("-c", BOTH_SPELLINGS, house.agents[0].socket).splitlines()
    assert told[0] == "3 3 0"
    assert told[1].startswith("name: 'a/b'; accepted are 1 to 32 bytes")
    assert told[2] == "1 1"


def test_its_blocking_client_is_made_by_the_script() -> None:
    """H218: one source for both spellings, as of the features that ship."""
    assert (TOY / "client_sync.py").read_text() == blocking(TOY / "client.py")


def test_http_has_its_route_and_its_metric(house: House) -> None:
    """H218: the route, the OpenAPI document, `/metrics`."""
    house.run("counter", "add", "sum", agent=0)
    assert "/v1/counters" in json.loads(house.get("v1/openapi.json"))["paths"]
    until(lambda: "sum" in json.loads(house.get("v1/counters"))["counters"], "what is served is made anew")
    until(lambda: 'holdfast_counter_value{name="sum"}' in house.get("metrics"), "what is served is made anew")


def test_the_page_has_its_panel(house: House) -> None:
    """H218, H247: the section, the script and what it is told as it changes."""
    house.run("counter", "add", "sum", agent=0)
    page = house.get("")
    assert '<section class="card wide" id="counters"' in page
    assert "counter/panel.js" in page
    assert "class CountersPanel" in house.get("counter/panel.js")
    with urlopen(f"{house.agents[0].ready['http']}events?pulse=true", timeout=TIMEOUT) as told:
        assert next(line for line in told if line == b"event: counters\n")
        assert "sum" in json.loads(next(told).removeprefix(b"data: "))["counters"]


def test_a_client_holds_one(house: House, tmp_path: Path) -> None:
    """H218, H247: its kind of grant, by a flag of `holdfast run`: extended past its first deadline, one after the other, tokens grow."""
    agent = house.agents[1].socket
    told = ("sh", "-c", "echo $HOLDFAST_COUNTER")
    first = int(house.run("run", "--agent", agent, "--counter", "gate", "--", *told))
    quiet = house.run("run", "--agent", agent, "--counter", "gate", "--", "sh", "-c", f"{sys.executable} -m holdfast version 2>&1")
    assert "warning" not in quiet, "what the command was given is no mistake in its settings"
    mark = tmp_path / "held"
    long = (
        "run",
        "--agent",
        agent,
        "--counter",
        "gate",
        "--",
        "sh",
        "-c",
        f"echo $HOLDFAST_COUNTER > {mark}.new; mv {mark}.new {mark}; cat",
    )
    environ = clean_environ(house.folder, house.environ)
    with subprocess.Popen([sys.executable, "-m", "holdfast", *long], env=environ, stdin=subprocess.PIPE) as holder:
        until(mark.exists, "it holds the counter")
        began_at = monotonic()
        waiting = house.run("run", "--agent", agent, "--counter", "gate", "--timeout", str(LENGTH * 1.2), "--", *told, code=125)
        assert "it waited at position 1" in waiting
        assert monotonic() - began_at > LENGTH
        assert holder.poll() is None
        assert holder.stdin is not None
        holder.stdin.close()
        assert holder.wait() == 0
    last = int(house.run("run", "--agent", agent, "--counter", "gate", "--", *told))
    assert first < int(mark.read_text()) < last
    assert "no option" in house.run("run", "--agent", agent, "--hold", "counter:a/b", "--", "true", code=125)


def test_an_agent_leaves_when_others_have_heard(house: House, tmp_path: Path) -> None:
    """H218, H247: the drain: what was added last is with the others when its agent goes, and nothing is added meanwhile."""
    with Fleet(house.folder) as fleet:
        leaver = fleet.start(name="leaver", runtime=tmp_path, environ=house.environ)
        with RawClient(leaver.socket) as client:
            assert client.ask(CounterAdd, "sum", 1) == 1
            leaver.signal(SIGTERM)
            with pytest.raises(Sent, match="Unavailable: counter: this agent is leaving its group"):
                _add_for_ever(client)
        assert leaver.wait() == 0
    closed, last = leaver.until_said("Closed"), leaver.log()[-1]
    took = datetime.fromisoformat(last["at"]) - datetime.fromisoformat(closed["at"])
    assert 0 < closed["waits"] <= SPREAD
    assert took.total_seconds() >= closed["waits"] - 0.01, "the log has milliseconds"


def _add_for_ever(client: RawClient) -> None:
    for _ in count():
        client.ask(CounterAdd, "sum", 1)


def test_info_and_doctor_know_it(house: House) -> None:
    """H218, H252: the setting and the numbers in `info`, the finding in `doctor`, its own error in the client."""
    for name in ("hits", "sum"):
        house.run("counter", "add", name, agent=0)
    info = json.loads(house.run("info", "--json", agent=0))
    assert info["settings"]["counter_limit"] == 2
    assert info["metrics"]["counter_names"] == 2
    assert info["metrics"]["counter_added"] >= 1
    found = {
        each["code"] for each in json.loads(house.run("doctor", "--json", agent=0, code=None))["findings"]
    }  # a busy machine is one too
    assert "counter_full" in found
    assert "counter_limit accepts 2" in house.run("counter", "add", "third", agent=0, code=3)
    assert house.python("-c", OWN_ERROR, house.agents[0].socket) == "CounterLimit counter 'third'\n"


def test_watch_and_the_log_tell_its_fact(house: House, tmp_path: Path) -> None:
    """H218: `watch --internal`, `/v1/events` and the log."""
    fact = house.watched("counter.Counted", house.agents[0], tmp_path / "seen", "--internal")
    assert fact["value"] >= 1
    assert house.agents[0].until_said("Counted", name=fact["name"])["level"] == "info"
    assert "counter.Counted" in house.get("v1/events?internal=true&limit=500")


def test_its_event_reaches_users(house: House, tmp_path: Path) -> None:
    """H218: a public event in `watch`, in `/v1/events` and as an object in a program, without ``--internal``."""
    house.run("counter", "add", "sum", agent=0)
    assert "CounterBegan" in house.get("v1/events?limit=500")
    code = (
        "import sys, holdfast.sync\n"
        "with holdfast.sync.join(agent=sys.argv[1]) as group:\n"
        "    events = group.watch()\n"
        "    group.counter('late').add()\n"
        "    print(next(event for event in events if 'Counter' in type(event).__name__))\n"
    )
    with Fleet(house.folder) as fleet:
        alone = fleet.start(name="alone", runtime=house.folder / "alone", environ=house.environ)
        told = house.python("-c", code, alone.socket)
        event = house.watched("CounterBegan", alone, tmp_path / "seen")
    assert told == "CounterBegan(name='late')\n"
    assert event["name"].startswith("new")


def test_the_lab_tries_it(house: House, tmp_path: Path) -> None:
    """H218: `lab list`, `lab run`, `lab sweep`, with its checkers."""
    assert "counter/adds" in house.run("lab", "list")
    assert "all invariants held" in house.run("lab", "run", "counter/adds", "--seed", "3")
    swept = json.loads(house.run("lab", "sweep", "counter/adds", "--seeds", "20", "--json", "--out", str(tmp_path / "s.jsonl")))
    assert swept["verdict"] == "pass"


def test_its_checkers_find_a_bad_merge(house: House) -> None:
    """A search that finds nothing would prove nothing: rows that are added up, replaced by the last one heard, or by the smaller one."""
    code = (
        f"import {HOME}.lab.scenarios.adds as adds, {HOME}.protocol.counters as c\n"
        "from holdfast.lab.scenario import run\n"
        "class Worse(adds.Exchange):\n"
        "    def rows(self, topic, merge, **options):\n"
        "        return super().rows(topic, bad, **options)\n"
        "adds.Exchange = Worse\n"
        "for bad in (lambda a, b: c.row(c.number(a) + c.number(b)), lambda a, b: b, min):\n"
        "    print(run(adds.SCENARIO, 3).violation)\n"
    )
    found = house.python("-c", code).splitlines()
    assert [line.partition(":")[0] for line in found] == ["counter nothing-invented", "counter never-less", "settled"]
