"""A group cut in two: a reign on each side, one after the heal, and the loser's command is dead.  Spec: election 1, A7, 5.9."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import holdfast.sync
from holdfast.sync import Group
from tests.cli.recorder import WORKER, Record, alive
from tests.features.election.process.fleet import HOLD, WAIT
from tests.support.agents import AgentProcess, Fleet, until
from tests.support.netns import PORT, Namespaces, unavailable

NODES = 4
SIDES = ((0, 1), (2, 3))
LOST = 124  # exit code of a command that was stopped because its reign ended
NAME = "coordinator"


class Site:
    """One machine: an agent, a client that looks, a command that runs while the agent leads."""

    def __init__(self, fleet: Fleet, net: Namespaces, number: int, folder: Path) -> None:
        self.agent = self._start(fleet, net, number)
        self.group: Group = holdfast.sync.join(agent=self.agent.socket, wait=False)  # alone it is no member: it has seeds (election D19)
        self.record = Record(folder / f"record{number}")
        self.run: subprocess.Popen[bytes] | None = None

    def ask(self) -> None:
        words = [sys.executable, "-m", "holdfast", "run", "--agent", self.agent.socket, "--lead", NAME, "--by", "election", "--grace", "1"]
        command = [sys.executable, "-S", "-E", str(WORKER), str(self.record.path), "deaf"]
        self.run = subprocess.Popen([*words, "--", *command], stderr=subprocess.DEVNULL)

    @property
    def works(self) -> bool:
        return self.record.working() and bool(alive(self.record.pids()))

    @property
    def led_by(self) -> tuple[str, int] | None:
        found = self.group.leader(NAME)
        return None if found is None or found.state != "active" else (found.name, found.token)

    @staticmethod
    def _start(fleet: Fleet, net: Namespaces, number: int) -> AgentProcess:
        home = fleet.folder / f"home{number}"
        seeds = [f"{net.address(each)}:{PORT}" for each in (0, 2)]
        bind = f"{net.address(number)}:{PORT}"
        return fleet.start(
            name=f"n{number}", bind=bind, seeds=seeds, runtime=home, state_dir=str(home / "state"), before=net.words(number),
        )  # fmt: skip


@pytest.mark.netns
@pytest.mark.nightly
@pytest.mark.timeout(300)
def test_two_reigns_in_a_partition(tmp_path: Path) -> None:
    """A7, issue 18 (faults): cut 2 and 2, each side has a leader with a token of its own; healed, the larger one stays everywhere, and the
    other one's command ends, with everything that it started."""
    reason = unavailable()
    if reason is not None:
        pytest.skip(reason)
    with Namespaces(NODES) as net, Fleet(tmp_path, membership="gossip") as fleet:
        sites = [Site(fleet, net, number, tmp_path) for number in range(NODES)]
        until(lambda: all(len(site.group.members) == NODES for site in sites), "all list all", WAIT)
        for site in sites:
            site.ask()
        until(lambda: any(site.works for site in sites) and len({site.led_by for site in sites}) == 1, "one leads", WAIT)
        for one in SIDES[0]:
            for other in SIDES[1]:
                net.cut_both(one, other)
        until(lambda: all(any(sites[number].works for number in side) for side in SIDES), "a command runs on each side", WAIT)
        until(lambda: all(len({sites[number].led_by for number in side}) == 1 for side in SIDES), "each side agrees", WAIT)
        reigns = [sites[side[0]].led_by for side in SIDES]
        assert None not in reigns
        assert reigns[0] != reigns[1]
        assert len({reign[1] for reign in reigns if reign is not None}) == 2  # a resource can tell their writes apart
        leading = [site for site in sites if site.works]
        assert len(leading) == len(SIDES)
        net.heal()
        until(lambda: len({site.led_by for site in sites}) == 1 and sites[0].led_by is not None, "one reign is left", WAIT)
        assert sites[0].led_by == max(reigns, key=lambda reign: 0 if reign is None else reign[1])
        (loser,) = (site for site in leading if site.agent.name != sites[0].led_by[0])  # type: ignore[index]
        assert loser.run is not None
        assert loser.run.wait(WAIT) == LOST
        assert alive(loser.record.pids()) == set()
        until(lambda: sum(site.works for site in sites) == 1, "one command is left", WAIT + HOLD)
        for site in sites:
            site.group.leave()
            if site.run is not None and site.run.poll() is None:
                site.run.kill()  # its guardian ends the command, which is deaf to SIGTERM
                site.run.wait(WAIT)
