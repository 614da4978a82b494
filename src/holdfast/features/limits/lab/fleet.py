"""What all may use together, at every instant: RL4, RL5 and RL8 of the whole fleet.  Spec: limits 1, 7, D22.

For each machine the larger of what its agent may use and what its processes may use by what they were told counts; stopped processes do
not, until they go on. What is kept of the others is from when something happened to them: since then it has only become less, because all
that happens by itself is that something ends. So a sum that is too large is counted anew before it is believed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from holdfast.features.limits.lab.crews import Appetite, Crew, Desk, Outlet
from holdfast.features.limits.lab.terms import Terms
from holdfast.host import Host
from holdfast.lab.checker import Checker
from holdfast.lab.host import LabHost
from holdfast.lab.world import World

ROUNDING = 1e-9  # of R: sums of floats
STRICT_WORST = 1.2  # RL5: of R, in any run
STRICT_MOST = 1.001  # RL5: of R, in nearly all
DRIFT_MAX = 0.01  # of clocks: a process counts seconds of its own
Appetites = Sequence[Mapping[str, Appetite]]  # of the processes of a machine, by limit


class Fleet(Checker):
    """Owns the processes of all machines, and sees what they and their agents may use."""

    name = "RL4 quota"

    def __init__(self, terms: Sequence[Terms], appetites: Callable[[str], Appetites], *, period: float = 0.25) -> None:
        """``appetites``: of the machine of this name."""
        self.terms = {each.name: each for each in terms}
        self.crews: dict[str, Crew] = {}
        self.peaks = dict.fromkeys(self.terms, 0.0)  # of the sum of L, by R
        self.used = dict.fromkeys(self.terms, 0.0)  # cost that was admitted
        self.looks = 0
        self._appetites, self._period = appetites, period
        self._uses: dict[str, dict[str, float]] = {name: {} for name in self.terms}  # by limit and machine
        self._absent: set[str] = set()  # machines whose agent did not run at the last look
        self._due: dict[str, Crew] = {}
        self._excess: dict[str, _Excess] = {}

    def desk(self, host: Host, open_limit: Callable[[str, Outlet], None]) -> Desk:
        """For a new life of an agent."""
        assert isinstance(host, LabHost)
        crew = self.crews.get(host.me.name)
        if crew is None:
            crew = self.crews[host.me.name] = Crew(host.world, host.me.name, self._appetites(host.me.name), period=self._period)
            crew.listener = self._on_change
            crew.on_admission = partial(self._on_admission, host.world)
            host.world.soon(crew.begin)
        return Desk(host, crew, open_limit)

    def enforced(self, name: str, limit: str) -> float:
        """What this agent may use now."""
        desk = self.crews[name].desk
        if desk is None or not desk.host.running:
            return 0.0
        return desk.outlets[limit].allotted.usable(desk.host.now)

    def after(self, world: World, host: LabHost | None) -> None:
        if host is not None and host.me.name in self._absent and host.running:
            self._absent.discard(host.me.name)
            self._due[host.me.name] = self.crews[host.me.name]
        while self._due:
            name, crew = self._due.popitem()
            self._look(name, crew)

    def _on_change(self, crew: Crew) -> None:
        self._due[crew.name] = crew

    def _look(self, name: str, crew: Crew) -> None:
        self.looks += 1
        if not crew.agent.running:
            self._absent.add(name)
        for limit, terms in self.terms.items():
            self._check_told(crew, limit)
            uses = self._uses[limit]
            uses[name] = self._use(crew, limit)
            rate = terms.rate
            if sum(uses.values()) > max(self.peaks[limit], 1.0) * rate * (1 + ROUNDING):
                for other, others in self.crews.items():
                    uses[other] = self._use(others, limit)
                self._weigh(terms, sum(uses.values()) / rate)
            elif self.peaks[limit] < 1.0:
                self.peaks[limit] = max(self.peaks[limit], min(1.0, sum(uses.values()) / rate))

    def _use(self, crew: Crew, limit: str) -> float:
        enforced = self.enforced(crew.name, limit)
        # RL5 asks for the sum of enforced L alone; what an exact limit promises holds for the processes, too (D22).
        return max(enforced, crew.usable(limit)) if self.terms[limit].policy == "exact" else enforced

    def _weigh(self, terms: Terms, share: float) -> None:
        self.peaks[terms.name] = max(self.peaks[terms.name], share)
        if share <= 1 + ROUNDING:
            return
        if terms.policy == "exact":
            self.fail(f"{terms.name}: the fleet may use {share:.9f} R: {self._told(terms.name)}")
        if terms.policy == "strict" and terms.steady and share > STRICT_WORST:
            self.name = "RL5 strict"
            self.fail(f"{terms.name}: the sum of L is {share:.6f} R: {self._told(terms.name)}")

    def _told(self, limit: str) -> str:
        rate = self.terms[limit].rate
        uses = ((name, self.enforced(name, limit), crew.usable(limit)) for name, crew in self.crews.items())
        return ", ".join(f"{name} {enforced / rate:.6f} and processes {usable / rate:.6f}" for name, enforced, usable in uses)

    def _check_told(self, crew: Crew, limit: str) -> None:
        """What processes may use is no more than what their agent takes them to be told (F14)."""
        desk = crew.desk
        if desk is None or not desk.host.running:
            return
        used = sum(each.usable(limit) for each in crew.processes if each.line is not None and each.line.desk is desk and each.heard(limit))
        told = desk.outlets[limit].told
        if used > told + ROUNDING * self.terms[limit].rate:
            self.fail(f"{limit}: processes of {crew.name} may use {used:.6f}, and their agent counts {told:.6f}")

    def _on_admission(self, world: World, limit: str, cost: float) -> None:
        self.used[limit] += cost
        terms = self.terms[limit]
        if terms.policy != "exact":
            return
        excess = self._excess.get(limit)
        if excess is None:
            costs = [max(1.0, each[limit].cost) for crew in self.crews.values() for each in crew.appetites]
            excess = self._excess[limit] = _Excess(terms.rate * (1 + DRIFT_MAX), terms.burst + sum(costs), world.now)
        over = excess.admit(world.now, cost)
        if over > ROUNDING * terms.rate:
            self.name = "RL8 bucket"
            self.fail(f"{limit}: the fleet was admitted {over:.6f} more than R and B allow in some interval")


class _Excess:
    """As in ``admitted``, of all buckets: in any interval no more than R for its length, and what buckets may hold when it begins."""

    def __init__(self, rate: float, depth: float, now: float) -> None:
        self._rate, self._depth, self._at = rate, depth, now
        self._x = self._least = 0.0

    def admit(self, now: float, cost: float) -> float:
        self._x -= self._rate * (now - self._at)
        self._at = now
        self._least = min(self._least, self._x)
        self._x += cost
        return self._x - self._least - self._depth
