"""``holdfast demo --membership gossip``: a leader by election, its death, the next reign, and what was promised.  Spec: election 1, 5.8.

Five members without a seat of their own ask to lead one name. The one that leads is killed without a word; the others find it dead by
gossip and elect the next one. The former comes back and does not depose it.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from holdfast.cli.demo.fleet import Fleet, Running
from holdfast.cli.demo.lead import NAME, Candidates, Reign, Takeover, taken_over
from holdfast.cli.demo.story import FORM_TIMEOUT, LEAVE_TIMEOUT, LOOK_INTERVAL, NeverHappened, Promise, look
from holdfast.config import Config
from holdfast.features.election.protocol.config import TIMEOUT_MIN
from holdfast.features.gossip.settings import GossipSettings
from holdfast.host import MemberStatus
from holdfast.net import clock

NAMES = tuple(f"kelp-{number}" for number in range(1, 6))
LEAD_TIMEOUT = 60.0  # seconds; members settle within two
RETURN_TIMEOUT = 60.0  # seconds; a restarted member is back within two
TIMEOUTS = 6  # of an election: its start is spread over two, and four are for what is lost
TIMERS = 4  # that may each have been late on the way: the probe, the suspicion, the election, the question to the nominee
PATIENCE = 10.0  # times the bound: a promise that is broken is measured too


class ElectStory:
    """Runs it, step by step. ``step`` is called with what comes next; ``tick`` often, for the view."""

    def __init__(self, fleet: Fleet, config: Config, *, step: Callable[[str], None], tick: Callable[[], None]) -> None:
        self.fleet, self.config = fleet, config
        self.promises: list[Promise] = []
        self.takeover: Takeover | None = None
        self.candidates = Candidates("elect")
        self.late = 0.0
        self._say, self._tick = step, tick
        self._looked_at = 0.0

    @property
    def bound(self) -> float:
        """Seconds from a death until the next one leads: each member is probed once a round, a suspicion lasts, an election is held."""
        gossip = GossipSettings.of(self.config).gossip_config()
        count = len(self.fleet.names)
        return count * gossip.period + gossip.suspicion_max(count) + TIMEOUTS * max(TIMEOUT_MIN, gossip.timeout)

    def run(self) -> None:
        self.form()
        self.lead()
        self.kill()
        self.restart()

    def form(self) -> None:
        began_at = clock.now()
        self._step(f"{len(self.fleet.names)} agents start and gossip: each has a list of its own. No seat, and no majority, is needed.")
        for name in self.fleet.names:
            self.fleet.start(name)
        self._until(self._formed, FORM_TIMEOUT, "all members list each other")
        self._keep(f"{len(self.fleet.names)} agents find each other", f"after {clock.now() - began_at:.1f} s", "no limit")

    def lead(self) -> None:
        names = self.fleet.names[1:]  # The first one shows the page.
        self._step(f"{len(names)} of them ask to lead {NAME!r} by election: a few are asked, and the best-ranked leads.")
        began_at = clock.now()
        for name in names:
            self.candidates.ask(name, self.fleet.running[name].socket)
        self._until(lambda: self.candidates.leads_now() is not None, LEAD_TIMEOUT, f"{NAME!r} has a leader")
        leader = self._leader()
        self._keep(f"{leader.leader} leads {NAME!r}", f"{max(0.0, leader.began_at - began_at):.2f} s after it asked", "no limit")

    def kill(self) -> None:
        self._until(lambda: self.candidates.leads_now() is not None, LEAD_TIMEOUT, f"{NAME!r} has a leader")
        former = self._leader()
        self._step(f"{former.leader} leads {NAME!r} under term {former.token}. Now: kill -9 {former.leader}.")
        self.fleet.late = 0.0
        heard_before = len(self.fleet.heard)
        killed_at = self.fleet.kill(former.leader)

        def followed() -> bool:
            self.takeover = taken_over(killed_at, former, self.candidates.reigns.values())
            return self.takeover.next is not None

        with suppress(NeverHappened):  # The promise below says what is missing.
            self._until(followed, PATIENCE * self.bound, "another one leads")
        self.late = self.lateness(heard_before)
        assert self.takeover is not None
        self.promises += judged(self.takeover, self.bound, TIMERS * self.late)

    def restart(self) -> None:
        """The former leader is back, and the next one goes on: an incumbent stays (election D14)."""
        assert self.takeover is not None
        victim, after = self.takeover.former.leader, self.takeover.next
        self._step(f"{victim} starts again, and asks to lead as before.")
        self.fleet.start(victim)
        self._until(self._formed, RETURN_TIMEOUT, f"{victim} is back in every list")
        self.candidates.ask(victim, self.fleet.running[victim].socket)
        until = clock.now() + 2 * self.bound / TIMEOUTS
        while clock.now() < until:
            self._pass()
        leader = self.candidates.leads_now()
        stayed = leader is not None and after is not None and leader.leader != victim
        measured = "no leader" if leader is None else f"{leader.leader}, term {leader.token}"
        self._keep("the next leader stays when the former one is back", measured, f"not {victim}", kept=stayed or after is None)

    def leave(self) -> None:
        self.candidates.close()
        self._step("All leave (SIGTERM).")
        self.fleet.ask_to_leave(*self.fleet.names)
        self._until(lambda: all(self.fleet.ended(name) is not None for name in self.fleet.names), LEAVE_TIMEOUT, "all processes end")
        wrong = [f"{name}: {code}" for name in self.fleet.names if (code := self.fleet.ended(name)) != 0]
        self._keep("all agents drain, leave and end", ", ".join(wrong) or "exit code 0", "exit code 0", kept=not wrong)

    def stay(self) -> None:
        """Until Ctrl-C."""
        while True:
            self._pass()

    def close(self) -> None:
        self.candidates.close()

    def lateness(self, since: int = 0) -> float:
        """How late timers ran: as the agents noticed it, and as seen from here."""
        return max([self.fleet.late, *(said.seconds for said in self.fleet.heard[since:] if said.event in ("Paused", "gossip.Overslept"))])

    def facts(self) -> dict[str, Any]:
        """For programs."""
        takeover = self.takeover
        return {
            "preset": self.config.preset,
            "membership": self.config.membership,
            "members": len(self.fleet.names),
            "killed": takeover.former.leader if takeover else None,
            "takeover": takeover.seconds if takeover else None,
            "takeover_bound": self.bound,
            "reigns": [reign._asdict() for _, reign in sorted(self.candidates.reigns.items())],
            "late": self.late,
            "promises": [promise._asdict() for promise in self.promises],
            "page": self.fleet.page,
        }

    def _leader(self) -> Reign:
        leader = self.candidates.last
        assert leader is not None
        return leader

    def _step(self, text: str) -> None:
        self.fleet.tell()  # What has happened belongs to the step before.
        self._say(text)

    def _until(self, holds: Callable[[], bool], seconds: float, what: str) -> None:
        until = clock.now() + seconds
        while not holds():
            if clock.now() > until:
                raise NeverHappened(f"after {seconds:g} s it is still not so that {what}")
            self._pass()

    def _pass(self) -> None:
        self.fleet.listen()
        self.candidates.listen()
        if clock.now() - self._looked_at >= LOOK_INTERVAL:
            for running in list(self.fleet.running.values()):
                look(running)
            self._looked_at = clock.now()
        self._tick()

    def _formed(self) -> bool:
        running, count = self.fleet.running, len(self.fleet.names)
        return len(running) == count and all(_lists(each, count) for each in running.values())

    def _keep(self, what: str, measured: str, promised: str, *, kept: bool = True) -> None:
        self.promises.append(Promise(what, kept, measured, promised))


def probe(config: Config) -> float:
    """T of gossip, seconds."""
    return GossipSettings.of(config).gossip_config().period


def judged(takeover: Takeover, bound: float, allowed: float) -> list[Promise]:
    """Another one leads in time, under a larger term. Not before the former's deadline: nothing waits for that (election 5.10)."""
    what, limits = f"another one leads {NAME!r}", f"within {bound:.2f} s, {allowed:.2f} s more for late timers"
    after = takeover.next
    if after is None or takeover.seconds is None:
        return [Promise(what, False, "none did", limits)]
    return [
        Promise(what, takeover.seconds <= bound + allowed, f"{after.leader}, after {takeover.seconds:.2f} s", limits),
        Promise("its term is larger", after.token > takeover.former.token, f"term {after.token}", f"above {takeover.former.token}"),
    ]


def _lists(running: Running, count: int) -> bool:
    view = running.view
    if view is None or view.state != "member" or len(view.members) != count:
        return False
    return all(member.status is MemberStatus.ALIVE for member in view.members)
