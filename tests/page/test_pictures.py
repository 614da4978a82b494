"""The pictures of the documentation: each can be taken; with --rewrite they are kept, and looked at by a person."""

from __future__ import annotations

import json
import random
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from holdfast import sync
from holdfast.features.gossip.past import KEPT_MAX, SAMPLE_INTERVAL, Past, Sample
from holdfast.features.gossip.protocol.messages import Observation, Status
from holdfast.features.gossip.protocol.node import GossipNode
from holdfast.host import NodeId
from tests.http.wire import ask
from tests.page.chromium import Page
from tests.page.stub_gossip import crowd
from tests.support.agents import AgentProcess, Fleet, until

PICTURES = Path(__file__).resolve().parents[2] / "docs" / "_static"
LEASE = 2.0
MEMBERS = {
    "kelp": ("eu-1", "web"), "reef": ("eu-1", "api"), "skerry": ("eu-2", "web"), "tide": ("eu-2", "api"),
    "mist": ("eu-3", "web"), "pier": ("eu-3", "worker"), "atoll": ("eu-1", "worker"),
}  # fmt: skip
ELECTORS = {"kelp": "9", "reef": "5", "skerry": "1", "tide": "7", "mist": "3", "pier": "8"}  # name: cost, by which they are ranked
ELECTED = "tr.last .told"
LED = ("scheduler", "mailer")  # by the first two
CALM = (("light", False, 1360, 1500, 1.5), ("phone", False, 390, 844, 2.0), ("dark", True, 1360, 1500, 1.5))


@pytest.fixture
def pictures(tmp_path: Path, rewrite: bool) -> Path:
    """Where pictures go: into the documentation only when asked for, else to where they are forgotten."""
    return PICTURES if rewrite else tmp_path


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _shown(page: Page, url: str, *, members: int, **how: object) -> None:
    page.open(url, **how)  # type: ignore[arg-type]
    page.until(f"document.querySelectorAll('#ring .lease.active').length === {members - 1}")


def _lead(leading: ExitStack, agent: AgentProcess, name: str) -> None:
    """A client of this agent leads for as long as pictures are taken."""
    group = leading.enter_context(sync.join(agent=agent.socket))
    leading.enter_context(group.lead(name, timeout=120))


def _kill_first_seen_by(kelp: AgentProcess, url: str, victim: AgentProcess) -> None:
    """Just before kelp's session with it ends: then nobody's lease is likely to run out before kelp's."""

    def near() -> bool:
        pair = next(pair for pair in ask(url, "/v1/ring").json["pairs"] if pair["peer"] == victim.name)
        return bool(pair["acked"] and 0.02 < LEASE - pair["age"] < 0.1)

    until(near, f"the end of a session of {kelp.name} with {victim.name} is near")
    victim.kill()


@pytest.mark.nightly
def test_picture_of_pools(page: Page, tmp_path: Path, pictures: Path) -> None:
    """Three agents whose clients hold tickets of two pools; one waits."""
    with Fleet(tmp_path, lease=LEASE, preset="lan", group="orders") as fleet, ExitStack() as holding, ThreadPoolExecutor(1) as pool:
        seed = f"127.0.0.1:{free_port()}"
        for name in ("kelp", "reef", "skerry"):
            own: dict[str, Any] = {"bind": seed, "http": "127.0.0.1:0", "state_dir": str(tmp_path / "state")} if name == "kelp" else {}
            fleet.start(name=name, seeds=[seed], **own)
        groups = [holding.enter_context(sync.join(agent=agent.socket)) for agent in fleet.agents]
        for number in range(5):
            holding.enter_context(groups[number % 3].ticket("gpu", of=8, timeout=120, metadata={"job": f"train-{number}"}))
        with groups[0].ticket("migrate", of=1, timeout=120):
            waiting = pool.submit(groups[1].ticket("migrate", of=1, timeout=120).__enter__)
            page.open(str(fleet.agents[0].ready["http"]), width=1360, height=1500, scale=1.5, calm=True)
            page.until("document.querySelector('[data-pool=migrate] .waiting')?.textContent === '1 waiter'")
            page.until("document.querySelectorAll('[data-pool=gpu] li[data-is=held]').length === 5")
            page.picture(pictures / "page-tickets.png", "#pools")
        waiting.result(120).release()
        assert page.errors == []


@pytest.mark.nightly
def test_picture_of_views(page: Page, tmp_path: Path, pictures: Path) -> None:
    """Seven agents in one view, three of them seats; one seat is killed, and what was attached to it goes on with another one."""
    with Fleet(tmp_path, preset="lan", group="orders") as fleet, ExitStack() as taking_part:
        seeds = [f"127.0.0.1:{free_port()}" for _ in range(3)]
        for number, name in enumerate(MEMBERS):
            own: dict[str, Any] = {"bind": seeds[number]} if number < len(seeds) else {}
            fleet.start(name=name, seeds=seeds, http="127.0.0.1:0" if name == "kelp" else None, **own)
        for agent in fleet.agents:
            group = taking_part.enter_context(sync.join(agent=agent.socket))
            taking_part.enter_context(group.views()).ready(timeout=60)
        page.open(str(fleet.agents[0].ready["http"]), width=1360, height=1500, scale=1.5)
        page.until("document.querySelectorAll('.view-server li[data-is=in]').length === 7")
        page.until("document.querySelector('[data-fact=settled] dd').textContent === 'yes'")
        fleet.agents[2].kill()
        page.until("document.querySelector('#view-change').textContent.includes('went: skerry')")
        page.until("document.querySelectorAll('.view-server li[data-is=in]').length === 6")
        page.picture(pictures / "page-views.png", "#views")
        assert page.errors == []


@pytest.mark.nightly
@pytest.mark.timeout(600)
def test_picture_of_elections(page: Page, tmp_path: Path, pictures: Path) -> None:
    """Six agents that gossip; two names are led by election, and the page's agent has asked who shall lead the first: a better one."""
    with Fleet(tmp_path, membership="gossip", preset="lan", group="orders") as fleet, ExitStack() as joined, ThreadPoolExecutor(2) as pool:
        seed = f"127.0.0.1:{free_port()}"
        for name, cost in ELECTORS.items():
            own: dict[str, Any] = {"bind": seed, "http": "127.0.0.1:0"} if name == "kelp" else {}
            fleet.start(name=name, seeds=[seed], tags={"cost": cost}, **own)
        url = str(fleet.agents[0].ready["http"])
        groups = [joined.enter_context(sync.join(agent=agent.socket)) for agent in fleet.agents]
        until(lambda: all(len(group.members) == len(ELECTORS) for group in groups), "all list all")
        asked: dict[str, Any] = {"by": "election", "rank": "tag:cost", "timeout": 120}
        with groups[1].lead("collector", **asked), groups[3].lead("cache", by="election", timeout=120):
            waiting = [pool.submit(groups[number].lead("collector", **asked).__enter__) for number in (2, 4)]
            until(lambda: any(len(each["candidates"]) == 3 for each in ask(url, "/v1/elections").json["elections"]), "three stand")
            groups[0].elect("collector")
            page.open(url, width=1360, height=1500, scale=1.5, calm=True)
            page.until(f"document.querySelector('[data-election=collector] + {ELECTED}')?.textContent.includes('its nominee leads')")
            page.until("document.querySelector('[data-election=collector][data-is=active] b')?.textContent === 'skerry'")
            page.until("document.querySelectorAll('#election-rows tr[data-is=active]').length === 2")
            time.sleep(2.0)
            page.picture(pictures / "page-election.png", "#elections")
        for each in as_completed(waiting, 120):
            each.result().release()
        assert page.errors == []


OPENAI: dict[str, Any] = {"rate": 500, "burst": 50}
STRIPE: dict[str, Any] = {"rate": 25, "burst": 5, "policy": "exact", "fleet": 3}
MAIL: dict[str, Any] = {"rate": 40, "burst": 40, "policy": "strict", "fleet": 3}
BUSY = {  # by program: its agent, and for each limit how many requests a second arrive from which second on
    "web": (0, [("openai", OPENAI, [(0, 90), (35, 240), (75, 120)]), ("stripe", STRIPE, [(0, 6), (50, 14), (70, 7)])]),
    "worker": (0, [("openai", OPENAI, [(0, 60)])]),
    "api": (1, [("openai", OPENAI, [(0, 150), (20, 280)]), ("stripe", STRIPE, [(0, 9)]), ("mail", MAIL, [(0, 18)])]),
    "batch": (2, [("openai", OPENAI, [(0, 40), (60, 120)]), ("stripe", STRIPE, [(0, 3)]), ("mail", MAIL, [(0, 4), (55, 30)])]),
}


@pytest.mark.nightly
@pytest.mark.timeout(600)
def test_picture_of_limits(page: Page, tmp_path: Path, pictures: Path) -> None:
    """Four programs on three agents share three limits for two minutes; for a while all seats stand still, and there is no view."""
    with Fleet(tmp_path, preset="lan", group="orders") as fleet, ExitStack() as working:
        seeds = [f"127.0.0.1:{free_port()}" for _ in range(3)]
        for name in ("kelp", "reef", "skerry", "tide", "mist", "pier"):
            own: dict[str, Any] = {"bind": seeds[len(fleet.agents) - 3]} if len(fleet.agents) >= 3 else {}
            fleet.start(name=name, seeds=seeds, http="127.0.0.1:0" if name == "kelp" else None, **own)
        for name, (number, story) in BUSY.items():
            program = tmp_path / name
            program.write_text((Path(__file__).parent / "busy_program.py").read_text())
            told = json.dumps([{"name": limit, "terms": given, "wants": wants} for limit, given, wants in story])
            process = subprocess.Popen([sys.executable, str(program), fleet.agents[number].socket, told])
            working.callback(process.wait)
            working.callback(process.kill)
        page.open(str(fleet.agents[0].ready["http"]), width=1360, height=1500, scale=1.5, calm=True)
        page.until("document.querySelectorAll('.limit[data-is=stable]').length === 3")
        time.sleep(88.0)
        for agent in fleet.agents[3:]:
            agent.signal(signal.SIGSTOP)
        page.until("document.querySelector('[data-limit=openai]').dataset.is === 'panic'")
        time.sleep(6.0)
        for agent in fleet.agents[3:]:
            agent.signal(signal.SIGCONT)
        page.until("document.querySelector('[data-limit=openai]').dataset.is === 'stable'")
        time.sleep(14.0)
        page.picture(pictures / "page-limits.png", "#limits")
        page.open(str(fleet.agents[0].ready["http"]), width=1360, height=1500, scale=1.0, dark=True, calm=True)
        page.until("document.querySelectorAll('.limit[data-is=stable]').length === 3")
        assert page.errors == []


class Lived(Past):
    """As if it had run for ten minutes, and a switch had lost messages in the middle of them."""

    def __init__(self, node: GossipNode) -> None:
        super().__init__(node)
        self._samples.clear()
        now = node.core.host.now
        for number in range(KEPT_MAX - 1):
            trouble = max(0, 9 - abs(number - 62) // 2)
            c = 0 if number < 60 else 11 if number < 74 else 14
            sample = Sample(now - SAMPLE_INTERVAL * (KEPT_MAX - 1 - number), c, 60 <= number <= 79, trouble + (number % 13 == 0), 0, 0)
            self._samples.append(sample)


@pytest.mark.nightly
def test_picture_of_the_field(page: Page, pictures: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A thousand members by word, and ten minutes by script: some suspected, some gone, one close up."""
    monkeypatch.setattr("holdfast.features.gossip.http.Past", Lived)
    names, chance = [f"web-{number:04}" for number in range(1000)], random.Random(4)
    rows = {"tag:zone": b"eu-1", "tag:role": b"web", "holdfast:v": b"0.4.0", "gossip:settled": b"1"}
    with crowd(names) as group:
        for name in chance.choices(names, k=36):
            group.say((name, Status.SUSPECT), (name, Status.ALIVE))
        for name in chance.sample(names, 5):
            group.say((name, Status.SUSPECT), (name, Status.DEAD))
        group.say(*((name, Status.LEFT) for name in chance.sample(names, 4)))

        def compared() -> None:
            for number, name in enumerate(chance.sample(names, 9)):
                group.node.syncs._found(NodeId(name, 1), 3 if number == 4 else 0)
            group.node.measured.push(Observation(14, 400.0))
            for name in names:
                group.node.distances.measured(NodeId(name, 1), chance.uniform(0.0004, 0.002))

        group.group.call(compared)
        doubted = chance.sample(names[300:], 4)
        for name in doubted:
            group.say((name, Status.ALIVE), rows=rows)
            group.say((name, Status.SUSPECT), accusers=("web-0099", "web-0712"))
        group.group.call(lambda: group.node.distances.measured(NodeId(doubted[-1], 1), 0.0011))
        page.open(group.group.url, width=1440, height=1150, scale=1.5, calm=True)
        page.until("document.querySelectorAll('#gossip-doubt-list li').length >= 4")
        page.js("document.querySelector('#gossip-doubt-list .pick').click()")
        page.until("document.querySelectorAll('#gossip-zoom-rows li').length === 3")
        time.sleep(1.5)
        page.picture(pictures / "page-gossip.png")
        assert page.errors == []


@pytest.mark.nightly  # half a minute of watching each
@pytest.mark.timeout(600)
def test_pictures(page: Page, tmp_path: Path, pictures: Path) -> None:
    """Seven real agents in calm, light, dark and on a phone; one of them suspected, then decided."""
    with Fleet(tmp_path, lease=LEASE, preset="lan", group="orders", longest_grant=4.0) as fleet, ExitStack() as leading:
        seed = f"127.0.0.1:{free_port()}"
        for name, (zone, role) in MEMBERS.items():
            own: dict[str, Any] = {"bind": seed, "http": "127.0.0.1:0", "state_dir": str(tmp_path / "state")} if name == "kelp" else {}
            fleet.start(name=name, tags={"zone": zone, "role": role}, seeds=[seed], **own)
        kelp = fleet.agents[0]
        url = str(kelp.ready["http"])
        for agent, name in zip(fleet.agents, LED, strict=False):
            _lead(leading, agent, name)
        for path, dark, width, height, scale in CALM:
            _shown(page, url, members=len(MEMBERS), dark=dark, width=width, height=height, scale=scale)
            time.sleep(6.0 if width < 500 else 24.0)  # Until the lines of the last seconds have something to show.
            page.picture(pictures / f"page-{path}.png")
        for number, victim in enumerate(fleet.agents[3:], 1):
            _shown(page, url, members=len(MEMBERS) - number + 1, dark=True, width=1360, height=850, scale=1.5)
            _kill_first_seen_by(kelp, url, victim)
            page.until("document.querySelector('#ring .node:is(.suspected, .decided)')")
            if page.js("document.querySelector('#ring .node.suspected') !== null"):
                time.sleep(0.3)  # The waves are under way.
                page.picture(pictures / "page-suspicion.png")
                break
            page.until("document.querySelector('#ring .node.gone')")
        page.until("document.querySelector('#ring .node.decided')")
        page.until("document.querySelector('#ring .middle').textContent.includes('declared out in 2')")
        page.picture(pictures / "page-decision.png")
        assert page.errors == []
