"""Agents that gossip, of which ten stand for one name: what their commands did, read from the store; and how long anything may take.

Spec: election 4, 5.8, 5.9, 5.10; gossip 5.4, 7 (G3); foundation F14.

with LedFleet(folder, Forwarders(NAMES), NAMES, voters="none") as fleet:
    leader = fleet.leader()
    fleet.kill(leader)
    fleet.followed(since, fleet.takeover)      # another command acts within the bound
    assert fleet.wrongs() == []

The first six members, seeds and seats, do not stand: a seat that is killed beside another fault would cost its majority.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, NamedTuple

import msgspec

from holdfast.features.election.calls import Elect
from holdfast.features.election.protocol.candidacy import WEAK_TICKS
from holdfast.features.election.protocol.config import NOTIFY_TIMEOUTS, TIMEOUT_MIN, TIMEOUT_RTTS, ElectionConfig
from holdfast.host import NodeId
from holdfast.kit.seats import HEARD_FOR
from holdfast.local.calls import EventItem, GroupView
from holdfast.local.leaders import leaders_in
from holdfast.net.clock import now
from tests.agent.lock_fleet import ROOT
from tests.agent.raw_client import RawClient
from tests.features.election.process.store import Act, Acts, Life, late_writes, lives, shared_tokens
from tests.support.gossip_record import Recorder
from tests.support.member_fleet import MARGIN, POLL_INTERVAL, PROBE, Late, MemberFleet
from tests.support.nets import SEATS, SEEDS, Net

NAME: Final = "led"
BODY: Final = "tests.features.election.process.body"
HOLD: Final = 2 * PROBE
GRACE: Final = 1.0  # seconds: the hold outlasts what a busy machine keeps an agent from
LENGTH: Final = HOLD + GRACE  # how far ahead a deadline is at most (5.10)
STARTED: Final = 3.0  # seconds that a command needs to begin, on a busy machine
FRESH: Final = 0.5  # seconds: a command that acted no longer ago is at work
TIMEOUT: Final = max(TIMEOUT_MIN, TIMEOUT_RTTS * MARGIN)  # where a machine that is late by the margin is on the way of each probe
SPREAD, CANDIDACY, WATCH = 2, 6, 12  # in TIMEOUT: init_spread, candidacy_ttl, the longest watch (election 4)
CONFIG: Final = ElectionConfig(hold=HOLD)
INITIATED, STEPPED_DOWN = "initiated", "stepped down"
FACTS: Final = {"election.Initiated": INITIATED, "election.SteppedDown": STEPPED_DOWN}


class Fact(NamedTuple):
    """What an agent said of the name."""

    at: float  # CLOCK_BOOTTIME
    me: str  # life
    what: str
    term: int


class Said(msgspec.Struct):
    """The fields of such a fact, and of LeaderChanged."""

    name: str
    term: int = 0
    leader: NodeId | None = None
    token: int = 0


class ElectionRecorder(Recorder):
    """Beside lists: who leads, as each agent knows it, and what it did."""

    internal = True

    def __init__(self) -> None:
        super().__init__()
        self.facts: list[Fact] = []
        self.leaders: dict[str, tuple[str, int] | None] = {}  # by life: whom it knows to lead, and the token
        self._behind = now() - time.time()

    def begun(self, life: str, view: GroupView) -> None:
        super().begun(life, view)
        led = [line for line in leaders_in(view) if line.name == NAME and line.state == "active" and line.leader is not None]
        self.leaders[life] = (str(led[0].leader), led[0].token) if led else None

    def heard(self, life: str, item: EventItem) -> None:
        super().heard(life, item)
        if item.name not in ("LeaderChanged", *FACTS):
            return
        said = msgspec.msgpack.decode(item.fields, type=Said)
        if said.name != NAME:
            return
        if item.name == "LeaderChanged":
            self.leaders[life] = None if said.leader is None else (str(said.leader), said.token)
        else:
            self.facts.append(Fact(item.at + self._behind, life, FACTS[item.name], said.term))


class LedFleet(MemberFleet):
    """With a command of each member that stands."""

    def __init__(self, folder: Path, net: Net, names: Sequence[str], *, voters: str) -> None:
        super().__init__(folder, net, names, seats=voters == "seats", election_hold=HOLD)
        self.voters, self.standing = voters, tuple(names[SEEDS + SEATS :])
        self.runs: dict[str, subprocess.Popen[bytes]] = {}
        self.ends: defaultdict[str, list[float]] = defaultdict(list)  # by member: when it could last be told that it leads
        self._path = folder / "store.db"
        self.acts = Acts(self._path)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for run in self.runs.values():
            run.send_signal(signal.SIGCONT)
            run.kill()  # Its guardian ends the command, which is deaf to SIGTERM.
            run.wait()
        super().__exit__(kind, error, trace)
        self.acts.close()

    def recorded(self) -> Recorder:
        return ElectionRecorder()

    @property
    def told(self) -> ElectionRecorder:
        assert isinstance(self.recorder, ElectionRecorder)
        return self.recorder

    def begin(self) -> None:
        self.ask()
        self.agreed()

    def ask(self) -> None:
        """A command of each member that stands and has none."""
        for name in self.standing:
            if name in self.agents and (name not in self.runs or self.runs[name].poll() is not None):
                words = ["run", "--restart", "--agent", self.agents[name].socket, "--lead", NAME, "--by", "election"]
                flags = ["--voters", self.voters, "--grace", f"{GRACE:g}"]
                command = [sys.executable, "-m", BODY, str(self._path), name]
                with (self.folder / f"run-{name}").open("ab") as log:
                    self.runs[name] = subprocess.Popen(
                        [sys.executable, "-m", "holdfast", *words, *flags, "--", *command], stdin=subprocess.DEVNULL, stderr=log, cwd=ROOT
                    )

    # Bounds, in seconds. T, the suspicions and gossip G3 are of gossip, all else is of election 4.

    @property
    def noticed(self) -> float:
        """From a death until lists are without it: a member probes it within two rounds of the list (gossip 5.3), which take twice as long
        for a prober that itself had a failed probe; its period ends; the longest suspicion."""
        return 2 * (2 * len(self.names) - 1) * self.config.period + self.config.period + self.longest

    @property
    def election(self) -> float:
        """From the first QUERY to the leader's word: the rounds of questions, the repeats to the nominee, and, where the seats have to
        promise the term, a candidacy."""
        asked = (CONFIG.query_rounds + NOTIFY_TIMEOUTS * (1 + CONFIG.notify_retries)) * TIMEOUT
        return asked + (CANDIDACY * TIMEOUT if self.voters == "seats" else 0.0)

    @property
    def again(self) -> float:
        """An election that came to nothing: its candidacy expires, the longest watch, and the next election."""
        return (CANDIDACY + WATCH) * TIMEOUT + self.election

    @property
    def settling(self) -> float:
        """Where round trips are short: of an election without an initiator the candidacy and the longest watch are over."""
        return (CANDIDACY + WATCH) * TIMEOUT_MIN

    @property
    def handed(self) -> float:
        """From the end of a reign that the leader's agent ended itself: init_spread, an election, the start of the next command."""
        return SPREAD * TIMEOUT + self.election + STARTED

    @property
    def takeover(self) -> float:
        """From the death of the leader's agent until the next command acts."""
        return self.noticed + self.handed

    @property
    def unsupported(self) -> float:
        """Mode seats: from the last word of the seats until the leader steps down: that word counts for ``HEARD_FOR``, and the leader looks
        every tick, twice in a row (5.9)."""
        return HEARD_FOR + (WEAK_TICKS + 1) * CONFIG.tick

    @property
    def one(self) -> float:
        """From the end of all faults until all know one leader, and one command acts: the lists (gossip G3), then 10 s (election A7), and
        the command of the leader that is left may have to begin."""
        return self.bound + 10.0 + STARTED

    # What is so.

    def agreed(self, names: Collection[str] = (), within: float | None = None) -> float:
        """Wait until these (all that live) know one leader, whose command acts, and no other; seconds until then."""
        began_at = now()
        bound = self.one if within is None else within
        return self._until(lambda: self._leader(names or self.living()) is not None, began_at, bound, "all know one leader, which acts")

    def leader(self) -> str:
        """Its member."""
        found = self._leader(self.living())
        assert found is not None
        return found

    def _leader(self, names: Collection[str]) -> str | None:
        known = {self.told.leaders.get(life) for life in self.lives(names)}
        if len(known) != 1 or None in known:
            return None
        ((life, token),) = (each for each in known if each is not None)
        acting = self.acting()
        return acting[0].actor.member if [(each.token, each.actor.member) for each in acting] == [(token, life.partition("#")[0])] else None

    def acting(self, names: Collection[str] = ()) -> list[Life]:
        """Commands at work, of these members (all)."""
        wanted = names or self.standing
        return [life for life in lives(self.acts.since(now() - FRESH)) if life.actor.member in wanted]

    def followed(self, since: float, bound: float, names: Collection[str] = (), but: Collection[str] = ()) -> float:
        """Wait until a command begins to act, of these members (all); seconds from then on. ``but``: commands of these do not count."""
        wanted = [name for name in names or self.standing if name not in but]

        def first() -> list[Life]:
            return [life for life in lives(self.acts.read()) if life.first_at >= since and life.actor.member in wanted]

        self._until(first, since, bound, "another command acts")
        return first()[0].first_at - since

    def quiet_since(self, since: float, names: Collection[str]) -> float:
        """For how long commands of these members still acted."""
        return max((act.at - since for act in self.acts.since(since) if act.actor.member in names), default=0.0)

    def _until(self, holds: Callable[[], object], since: float, bound: float, what: str) -> float:
        while not holds():
            if now() - since > bound:
                raise Late(f"not within {bound:.1f} s: {what}; leaders {self._known()}, acting {self.acting()}")
            time.sleep(POLL_INTERVAL)
        return now() - since

    def _known(self) -> dict[str, object]:
        return {life: self.told.leaders.get(life) for life in self.lives()}

    def facts(self, what: str, since: float) -> list[Fact]:
        return [fact for fact in tuple(self.told.facts) if fact.what == what and fact.at >= since]

    # What must never be seen, and what must not be seen while the machine is in time.

    def wrongs(self) -> list[str]:
        """Of the whole history: late writes; with seats, tokens of two commands."""
        return [*late_writes(self.acts.read()), *(shared_tokens(self.acts.read()) if self.voters == "seats" else [])]

    def too_long(self, since: float) -> list[str]:
        """Commands that acted for longer than ``hold`` and grace after the last moment at which they could be told that they lead."""
        steps = [(fact.me.partition("#")[0], fact.term, fact.at) for fact in self.facts(STEPPED_DOWN, since)]
        ends = [(name, 0, at) for name, ats in self.ends.items() for at in ats if at >= since]
        return acted_on(self.acts.since(since), [*steps, *ends])

    # What happens to processes.

    def kill(self, *names: str) -> None:
        super().kill(*names)
        self._note(names)

    def stop(self, name: str) -> None:
        """SIGSTOP of the agent."""
        self.agents[name].signal(signal.SIGSTOP)
        self._note([name])

    def go_on(self, name: str) -> None:
        self.agents[name].signal(signal.SIGCONT)

    def stop_run(self, name: str) -> None:
        """SIGSTOP of ``holdfast run``."""
        self.runs[name].send_signal(signal.SIGSTOP)
        self._note([name])

    def go_on_run(self, name: str) -> None:
        self.runs[name].send_signal(signal.SIGCONT)

    def kill_run(self, name: str) -> None:
        self.runs[name].kill()
        self.runs[name].wait()
        self._note([name])

    def elect(self, name: str) -> None:
        """This member initiates, now: its questions are sent when this returns."""
        with RawClient(self.agents[name].socket) as client:
            client.ask(Elect, NAME)

    def rest(self) -> None:
        super().rest()
        self.ask()
        self.agreed()

    def _note(self, names: Iterable[str]) -> None:
        for name in names:
            self.ends[name].append(now())


def acted_on(acts: Iterable[Act], ends: Iterable[tuple[str, int, float]]) -> list[str]:
    """Commands that acted for too long after an end: of a member, under a term (0: any), at that time. A later command is not meant."""
    found = []
    for life in lives(acts):
        until = [
            at + LENGTH for member, term, at in ends if member == life.actor.member and term in (0, life.token) and at >= life.first_at
        ]
        if until and life.last_at > min(until):
            found.append(f"{life.actor} acted under {life.token} for {life.last_at - min(until):.3f} s beyond hold and grace")
    return found
