"""What happens in ``holdfast demo``, what was promised about it, and whether it was kept.  Spec: ring G2 to G5, G9; docs/ring.md.

Seven members with k = 3 watch each other all: each of the six others is a monitor of the one that is killed, and each of them is
held to the bounds. The one that is killed leads; how soon another one does is a bound of its own (``lead``). It also has a share of a
rate limit, and so have two others (``share``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import NamedTuple

from holdfast.cli.demo.fleet import OVERSLEPT, SUSPICION, Fleet, Running, Said
from holdfast.cli.demo.lead import NAME, TIMERS, Candidates, Reign, Takeover, taken_over
from holdfast.cli.demo.share import NAME as LIMIT
from holdfast.cli.demo.share import NEAR, RATE, Shares, Sharing, patience, spelled, told
from holdfast.config import Config
from holdfast.features.leadership.timing import takeover_bound
from holdfast.host import MemberStatus, NodeId
from holdfast.kit.deadline import wait_length
from holdfast.net import clock

NAMES = tuple(f"kelp-{number}" for number in range(1, 8))
LEAD_TIMEOUT = 30.0  # seconds; fresh seats wait for the longest grant once
SHARE_TIMEOUT = 30.0  # seconds; seven programs begin within two
FORM_TIMEOUT = 40.0  # seconds; a quiet machine takes 3 to 8 at the preset local
DECLARE_LEASES = 30.0  # in T_l: long after every bound, so that a promise that is broken is measured too
START_TIMEOUT = 10.0  # seconds; a process starts, knocks, and what it says is read, on a machine that is far too busy
RETURN_LEASES = 22.0  # in T_l: a try that fails and its wait (8), a join (3), and until all doubts of that time are over (11: ring I15)
LEAVE_TIMEOUT = 15.0  # seconds for a goodbye to be heard, and for processes to end
LOOK_INTERVAL = 0.25  # seconds between two looks at member lists and numbers
KEYS = tuple(f"cart:{number}" for number in range(1, 65))  # one of them is owned by another member than the first
STEPS = {"Suspected": 1, "Decided": 2, "Failed": 3}  # how many timers may each have been late on the way there


class NeverHappened(Exception):  # answered by the verdict, never shown as an error
    """What was waited for did not come; the text says what."""


class Bounds(NamedTuple):
    """Seconds after a crash until which every living monitor must have said so, on clocks that run apart by rho."""

    suspected: float  # G4: 2 T_l
    decided: float  # a majority answers within T_a of the suspicion
    failed: float  # G5: 4 T_l + T_a


class Promise(NamedTuple):
    """One thing that was promised, and what became of it."""

    what: str
    kept: bool
    measured: str
    promised: str


class Death(NamedTuple):
    """What was seen of one crash: by whom, and how many seconds after it."""

    victim: NodeId
    killed_at: float
    monitors: tuple[str, ...]
    seen: Mapping[str, Mapping[str, float]]  # event -> monitor -> seconds
    happened: Mapping[str, Mapping[str, float]]  # the same by the agents' own wall-clocks, which are one on one machine
    uncertain: tuple[str, ...]  # monitors that declared it gone and could not say for certain


def bounds(config: Config) -> Bounds:
    """By the numbers of the configuration (docs/ring.md)."""
    ring = config.ring_config()

    def counted(seconds: float) -> float:
        return wait_length(seconds, ring.rho, ring.margin)

    return Bounds(counted(2 * ring.lease), counted(2 * ring.lease + ring.t_a), counted(2 * ring.lease) + ring.wait)


def witnessed(victim: NodeId, place: str, killed_at: float, monitors: Iterable[str], heard: Iterable[Said]) -> Death:
    """The first time each monitor said each thing about that life. A monitor that suspects it after it has heard of the decision tells
    only the ring's own facts, so suspicions are taken from there; they name a member by its place."""
    seen: dict[str, dict[str, float]] = {event: {} for event in STEPS}
    happened: dict[str, dict[str, float]] = {event: {} for event in STEPS}
    uncertain = []
    for said in heard:
        event = "Suspected" if said.event == SUSPICION and said.peer.startswith(place) else said.event if said.life == victim else ""
        if event in seen and said.at >= killed_at:
            seen[event].setdefault(said.by, said.at - killed_at)
            happened[event].setdefault(said.by, said.wall)
            if event == "Failed" and not said.certain:
                uncertain.append(said.by)
    return Death(victim, killed_at, tuple(sorted(monitors)), seen, happened, tuple(uncertain))


def judged(death: Death, promised: Bounds, late: float) -> list[Promise]:
    """Every monitor within every bound, in the right order. ``late`` is how late the timers of this machine ran at worst."""
    words = {"Suspected": "suspect it", "Decided": "know the decision", "Failed": "declare it gone, for certain"}
    found = []
    for (event, timers), bound in zip(STEPS.items(), promised, strict=True):
        times, limit = death.seen[event], bound + timers * late
        missing = [name for name in death.monitors if name not in times]
        first, last = min(times.values(), default=0.0), max(times.values(), default=0.0)
        kept = not missing and last <= limit and (event != "Failed" or not death.uncertain)
        measured = f"after {first:.2f} to {last:.2f} s" if not missing else f"never: {', '.join(missing)}"
        if event == "Failed" and death.uncertain:
            measured += f", not for certain: {', '.join(death.uncertain)}"
        limits = f"within {bound:.2f} s, {timers * late:.2f} s more for late timers"
        found.append(Promise(f"all {len(death.monitors)} others {words[event]}", kept, measured, limits))
    found.append(_in_order(death))
    return found


def _in_order(death: Death) -> Promise:
    """At each of them the decision comes before the declaration, and somewhere a suspicion came before both."""
    suspected, decided, failed = (death.happened[event] for event in STEPS)
    first = min(suspected.values(), default=0.0)
    wrong = [name for name in death.monitors if name in failed and not first <= decided.get(name, -1.0) <= failed[name]]
    measured = f"not at {', '.join(wrong)}" if wrong else "at every one of them"
    return Promise("suspicion, then decision, then declaration", not wrong, measured, "in this order")


class Listed(NamedTuple):
    """A member, and how facts inside the ring begin to name it."""

    life: NodeId
    place: str


NOT_LISTED = Listed(NodeId("", 0), "")


class Ownership(NamedTuple):
    """Who may act for a key, as told to a client."""

    owner: str
    token: int
    at: float
    until: float


class Story:
    """Runs it, step by step. ``step`` is called with what comes next, ``note`` with what came about; ``tick`` often, for the view."""

    def __init__(
        self, fleet: Fleet, config: Config, *, step: Callable[[str], None], note: Callable[[str], None], tick: Callable[[], None]
    ) -> None:
        self.fleet, self.config = fleet, config
        self.bounds = bounds(config)
        self.promises: list[Promise] = []
        self.death: Death | None = None
        self.takeover: Takeover | None = None
        self.candidates = Candidates()
        self.sharing = Sharing()
        self.shares: list[Shares] = []  # before the kill, after it, and when the killed one is back
        self.key = ""
        self.late = 0.0
        self._say, self._note, self._tick = step, note, tick
        self._looked_at = 0.0

    def form(self) -> None:
        """All start, and each lists all."""
        fleet = self.fleet
        began_at = clock.now()
        self._step(
            f"{len(fleet.names)} agents start, each a process of its own. A majority of the first three founds a ring, the others join."
        )
        for name in fleet.names:
            fleet.start(name)
        self._until(self._formed, FORM_TIMEOUT, "all members list each other and watch each other")
        took = clock.now() - began_at
        self._keep(f"{len(fleet.names)} agents find each other and form a ring", f"after {took:.1f} s", "no limit")

    def lead(self) -> None:
        """All but the first ask to lead one name; one of them does."""
        fleet = self.fleet
        asking = fleet.names[1:]
        self._step(f"{len(asking)} of them ask to lead {NAME!r}. The three seats, which are the seeds, promise it to one at a time.")
        paths = {name: running.socket for name, running in fleet.running.items()}
        for name in asking:
            self.candidates.ask(name, paths[name])
        began_at = clock.now()
        self._until(lambda: self.sharing.begun(paths, fleet.group), SHARE_TIMEOUT, f"a program at each agent uses the limit {LIMIT!r}")
        longest = self.config.longest_grant
        self._until(lambda: self.candidates.leads_now() is not None, LEAD_TIMEOUT + longest, f"{NAME!r} has a leader")
        leader = self.candidates.last
        assert leader is not None
        promised = f"no limit; seats that are new wait {longest:g} s, once"
        self._keep(f"{leader.leader} leads {NAME!r}", f"{max(0.0, leader.began_at - began_at):.2f} s after it asked", promised)

    def share(self) -> None:
        """Three of the programs want something: at the first agent, which shows the page, at the leader, and at one more."""
        leader = self._a_leader_with_a_key()[1].leader
        first = self.fleet.names[0]
        other = [name for name in self.fleet.names if name not in (first, leader)][-1]
        self.sharing.want(first, leader, other)
        began_at, wants = clock.now(), [f"{share.name} {share.wants:g}" for share in self.sharing.shares()]
        self._step(
            f"A program at each agent uses the limit {LIMIT!r}: {RATE:g} a second for all of them, without a coordinator. "
            f"Three want something: {', '.join(wants)}."
        )
        self._share("before", began_at, f"three programs share {RATE:g} a second by what they want")

    def kill(self) -> None:
        """The leader, who owns a key, is killed; another one leads; the others notice, decide, declare, and one of them inherits."""
        fleet = self.fleet
        before, leader = self._a_leader_with_a_key()
        while before.owner != self.sharing.victim:  # A busy machine cost the former leader its term.
            self.share()
            before, leader = self._a_leader_with_a_key()
        victim, place = self._listed(before.owner)
        self._step(
            f"{before.owner} leads {NAME!r} (fencing token {leader.token}) and may act for the key {self.key!r} (token {before.token}). "
            f"Now: kill -9 {before.owner}."
        )
        fleet.late = 0.0
        monitors = [name for name in fleet.names if name != before.owner]
        heard_before = len(fleet.heard)
        self.sharing.lose(before.owner)
        killed_at = fleet.kill(before.owner)
        self.death = witnessed(victim, place, killed_at, monitors, ())
        heirs: list[Ownership] = []

        def gone_everywhere() -> bool:
            self.death = witnessed(victim, place, killed_at, monitors, fleet.heard[heard_before:])
            heirs.extend(self._owners())
            self.takeover = taken_over(killed_at, leader, self.candidates.reigns.values())
            return len(self.death.seen["Failed"]) == len(monitors) and bool(heirs) and self.takeover.next is not None

        limit = DECLARE_LEASES * self.config.lease
        with suppress(NeverHappened):  # The promises below say what is missing.
            self._until(gone_everywhere, limit, f"all declare {before.owner} gone, and its key has an heir")
        self.late = self.lateness(heard_before)
        assert self.death is not None
        if self.takeover is not None:
            allowed = TIMERS * self.late + (self.config.heartbeat if self._overslept(heard_before) else 0.0)
            self.promises += judged_takeover(self.takeover, takeover_bound(self.config, len(fleet.names)), allowed)
        self.promises += judged(self.death, self.bounds, self.late)
        self.promises.append(_inherited(before, heirs, self.key))
        count = len(fleet.names)
        self._share("after", killed_at, f"the one at {before.owner} keeps 1/{count}, the others share {count - 1}/{count}")

    def restart(self) -> None:
        """The one that was killed starts again, under its name, and is a member again."""
        assert self.death is not None
        victim = self.death.victim
        began_at = clock.now()
        self._step(f"{victim.name} starts again, under its old name and with its old state directory.")
        self.fleet.start(victim.name)
        self.sharing.find()
        self._until(self._formed, START_TIMEOUT + RETURN_LEASES * self.config.lease, f"{victim.name} is back in every list")
        view = self.fleet.running[victim.name].view
        assert view is not None
        newer = view.me.id.boot > victim.boot
        what = f"{victim.name} comes back as another life, in all {len(self.fleet.names)} lists"
        self._keep(what, f"after {clock.now() - began_at:.1f} s", "no limit", kept=newer)
        self._share("back", clock.now(), "the shares are as before the kill")

    def leave(self) -> None:
        """One leaves and the others hear a goodbye, no failure; then all leave."""
        fleet = self.fleet
        self.candidates.close()
        self.sharing.close()
        last = fleet.names[-1]
        others = [name for name in fleet.names if name != last]
        self._step("All leave: first one of them (SIGTERM), then all others.")
        since = len(fleet.heard)

        def heard(*events: str) -> list[str]:
            return [said.by for said in fleet.heard[since:] if said.event in events and said.about == last]

        fleet.ask_to_leave(last)
        self._until(lambda: set(others) <= {*heard("Left"), *heard("Failed")}, LEAVE_TIMEOUT, f"all hear that {last} left")
        wrong = sorted(set(heard(*STEPS)))
        measured = f"suspected by {', '.join(wrong)}" if wrong else "by all others"
        self._keep(f"a goodbye of {last} is heard as one", measured, "no agent suspects it", kept=not wrong)
        fleet.ask_to_leave(*others)
        self._until(lambda: all(fleet.ended(name) is not None for name in fleet.names), LEAVE_TIMEOUT, "all processes end")
        codes = {name: fleet.ended(name) for name in fleet.names}
        wrong = [f"{name}: {code}" for name, code in codes.items() if code != 0]
        self._keep("all agents drain, leave and end", "exit code 0" if not wrong else ", ".join(wrong), "exit code 0", kept=not wrong)

    def stay(self) -> None:
        """Until Ctrl-C."""
        while True:
            self._pass()

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
        self.sharing.ask()
        if clock.now() - self._looked_at >= LOOK_INTERVAL:
            for running in list(self.fleet.running.values()):
                _look(running)
            self._looked_at = clock.now()
        self._tick()

    def _formed(self) -> bool:
        """Lists are complete, and every pair of neighbours is one in which each answers for the other."""
        running = self.fleet.running
        return len(running) == len(self.fleet.names) and all(_sees(each, len(self.fleet.names)) for each in running.values())

    def _a_leader_with_a_key(self) -> tuple[Ownership, Reign]:
        """The leader; never the first agent, which shows the page and does not ask."""
        owned: list[Ownership] = []

        def found() -> bool:
            leader = self.candidates.leads_now()
            for self.key in KEYS:
                owned[:] = [each for each in self._owners() if leader is not None and each.owner == leader.leader]
                if owned:
                    break
            return bool(owned) and self._listed(owned[0].owner).place != ""

        self._until(found, FORM_TIMEOUT, "the leader owns a key")
        leader = self.candidates.last
        assert leader is not None
        return owned[0], leader

    def _listed(self, name: str) -> Listed:
        """As that agent lists itself now."""
        view = self.fleet.running[name].view
        if view is None or view.me.id not in (ids := [member.id for member in view.members]):
            return NOT_LISTED
        return Listed(view.me.id, f"{view.positions[ids.index(view.me.id)]:016x}.")

    def _owners(self) -> list[Ownership]:
        found = []
        for name, running in self.fleet.running.items():
            owned = running.owns(self.key)
            if owned is not None:
                found.append(Ownership(name, owned.token, clock.now(), owned.until))
        return found

    def _share(self, when: str, since: float, what: str) -> None:
        """The shares come to what the rule says; ``since``: what changed them."""
        bound, heard_before = patience(self.config), len(self.fleet.heard)
        with suppress(NeverHappened):  # The promise below says how far they came.
            self._until(lambda: self.sharing.settled, since + bound - clock.now(), "the shares are what they should be")
        self.shares = [each for each in self.shares if each.when != when]  # Another leader was looked at before it lost its term.
        self.shares.append(Shares(when, self.sharing.shares(), clock.now() - since, bound))
        self.promises.append(judged_shares(self.shares[-1], what))
        if not self.promises[-1].kept:
            self.late = max(self.late, self.lateness(heard_before))
        self.fleet.tell()
        self._note(f"of {RATE:g} a second {spelled(self.shares[-1].shares)}")

    def lateness(self, since: int = 0) -> float:
        """How late timers ran: as the agents noticed it, and as seen from here. ``since`` is how much had been heard before."""
        return max([self.config.ring_config().oversleep, self.fleet.late, *self._overslept(since)])

    def _overslept(self, since: int) -> list[float]:
        """By how much, as the agents noticed it. An agent that is late judges no leader before the next heartbeat (F11)."""
        return [said.seconds for said in self.fleet.heard[since:] if said.event in ("Paused", OVERSLEPT)]

    def _keep(self, what: str, measured: str, promised: str, *, kept: bool = True) -> None:
        self.promises.append(Promise(what, kept, measured, promised))


def judged_takeover(takeover: Takeover, bound: float, allowed: float) -> list[Promise]:
    """Another agent leads in time, with a larger token, and not before the former one's last deadline. ``allowed``: for late timers."""
    former, after = takeover.former, takeover.next
    what = f"another one leads {NAME!r}"
    limits = f"within {bound:.2f} s, {allowed:.2f} s more for late timers"
    if after is None or takeover.seconds is None:
        return [Promise(what, False, "none did", limits)]
    gap = after.began_at - former.until
    one = Promise(what, takeover.seconds <= bound + allowed, f"{after.leader}, after {takeover.seconds:.2f} s", limits)
    measured = f"{gap:.2f} s after the last deadline, token {after.token}"
    return [
        one,
        Promise("never two at once", gap >= 0 and after.leader != former.leader, measured, f"not before it, token above {former.token}"),
    ]


def judged_shares(shares: Shares, what: str) -> Promise:
    """Limits RL6: each share is near what the rule says."""
    measured = f"{told(shares.shares)}, after {shares.seconds:.1f} s"
    limits = f"{told(shares.shares, rule=True)}, within {shares.bound:.0f} s and {NEAR * RATE:g}"
    return Promise(what, shares.is_near, measured, limits)


def _inherited(before: Ownership, heirs: list[Ownership], key: str) -> Promise:
    """G3, G9: one owner at a time, and the next one's token is larger."""
    what = f"the key {key!r} has one owner at a time"
    if not heirs:
        return Promise(what, False, "it has no heir", "one heir after the declaration")
    first = heirs[0]
    overlap = first.at < before.until or len({each.owner for each in heirs}) > 1
    grown = first.token > before.token
    measured = f"{first.owner} with token {first.token}" + (", too early" if overlap else "") + ("" if grown else ", not larger")
    return Promise(what, grown and not overlap, measured, f"one heir, token above {before.token}")


def _sees(running: Running, count: int) -> bool:
    view = running.view
    if view is None or view.state != "member" or len(view.members) != count:
        return False
    if any(member.status is not MemberStatus.ALIVE for member in view.members):
        return False
    return running.metrics.get("ring_pairs_active", 0.0) >= count - 1


def _look(running: Running) -> None:
    from holdfast.errors import HoldfastError

    try:
        running.look()
    except HoldfastError:
        running.view = None  # It is ending; its process says how.
