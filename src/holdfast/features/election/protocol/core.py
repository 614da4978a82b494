"""What all parts of the machine share: its world, its lists, its names.  Spec: election 2, 4, 5.2."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

from holdfast.bounds import CLOCK_MIN
from holdfast.events import ConfigMismatch
from holdfast.features.election.protocol import ranks
from holdfast.features.election.protocol.config import (
    AHEAD_MAX,
    NAME_BYTES_MAX,
    NAMES_MAX,
    QUARANTINE,
    TIMEOUT_MIN,
    TIMEOUT_RTTS,
    ElectionConfig,
)
from holdfast.features.election.protocol.contest import Contest
from holdfast.features.election.protocol.manner import Manner, is_sound
from holdfast.features.election.protocol.messages import Leader
from holdfast.features.election.protocol.ranks import Candidate
from holdfast.features.election.protocol.rules import Rules
from holdfast.features.election.protocol.shown import Role
from holdfast.host import Host, Lists, Member, MemberStatus, Message, NodeId
from holdfast.kit.outbox import Outbox

MISMATCHES_MAX = 256  # that were said once


class Listed(NamedTuple):
    """The list as of one version."""

    version: int
    members: dict[NodeId, Member]  # sorted by id, this one included
    suspects: int


class Core:
    """The state that all parts of one machine share: host, lists, numbers and names."""

    def __init__(self, host: Host, lists: Lists, config: ElectionConfig, rules: Rules) -> None:
        self.host, self.lists, self.config, self.rules = host, lists, config, rules
        self.me = host.me
        self.counts: Counter[str] = Counter()
        self.received: Counter[type[Message]] = Counter()
        self.outbox = Outbox(host)
        self.contests: dict[str, Contest] = {}
        self.standing: dict[str, Contest] = {}  # those that a client of this agent asks for
        self.cast: Callable[[Leader], None] = _nowhere
        self.opened: Callable[[Contest], None] = _unheard  # a name is met
        self.forgotten: Callable[[Contest], None] = _unheard  # an idle name makes room
        self._listed: Listed | None = None
        self._said: dict[tuple[NodeId, str, str], None] = {}
        self.eids = 0

    # Numbers.

    @property
    def now(self) -> float:
        return self.host.now

    @property
    def timeout(self) -> float:
        return self.config.timeout or max(TIMEOUT_MIN, TIMEOUT_RTTS * self.lists.rtt_p99())

    @property
    def ttl(self) -> float:
        """Seconds for which a nominee may remain one."""
        return 6 * self.timeout if self.config.candidacy_ttl is None else self.config.candidacy_ttl

    @property
    def spread(self) -> float:
        """Seconds over which the members that see a leader gone begin an election."""
        return 2 * self.timeout if self.config.init_spread is None else self.config.init_spread

    def uniform(self, least: float, most: float) -> float:
        return self.host.random.uniform(least, most)

    def clock_term(self) -> int:
        """The least that a term may be (D21, F16)."""
        return max(CLOCK_MIN, int(self.host.wall() * 1000)) if self.rules.clock_terms else 0

    def credible(self, term: int) -> bool:
        """True if an honest clock comes to this term (H87)."""
        return term <= max(CLOCK_MIN, int(self.host.wall() * 1000)) + AHEAD_MAX

    # Lists.

    @property
    def listed(self) -> Listed:
        found, version = self._listed, self.lists.version
        if found is None or found.version != version:
            members = {member.id: member for member in self.lists.members()}
            suspects = sum(member.status is MemberStatus.SUSPECTED for member in members.values())
            found = self._listed = Listed(version, members, suspects)
        return found

    def others(self) -> list[Member]:
        return [member for life, member in self.listed.members.items() if life != self.me]

    def is_listed(self, life: NodeId) -> bool:
        return life in self.listed.members

    def settled(self, life: NodeId) -> bool:
        """True if this life is settled as a member, or that is not asked (D19)."""
        return not self.rules.settled or self.lists.settled(life)

    def known(self) -> int:
        """The number of names that are listed here, or that failed and are remembered."""
        return max(1, len(self.lists.known_names()))

    def candidates(self, contest: Contest) -> tuple[Candidate, ...]:
        """The eligible candidates of the own list, this member included, best first. A member settles without a new version, so that is not
        cached."""
        version = self.listed.version
        if contest.cached is None or contest.cached[:2] != (version, contest.manner):
            found = (self._candidate(contest, member) for member in self.listed.members.values())
            contest.cached = version, contest.manner, tuple(sorted((each for each in found if each), key=lambda each: each.ranked))
        return tuple(each for each in contest.cached[2] if self.eligible(contest, each.id))

    def eligible(self, contest: Contest, life: NodeId) -> bool:
        """True if this listed candidate may be named."""
        return self.settled(life) and (life != self.me or contest.stands)

    def i_am_eligible(self, contest: Contest) -> bool:
        return contest.stands and self.settled(self.me) and bool(contest.posted)

    def takes_part(self, contest: Contest) -> bool:
        """True if this member answers questions about the name; otherwise it is silent (5.2)."""
        return self.is_listed(self.me) and self.settled(self.me) and (contest.voter or not contest.manner.by_members)

    def _candidate(self, contest: Contest, member: Member) -> Candidate | None:
        value = contest.posted if member.id == self.me else member.rows.get(contest.row)
        post = ranks.decode(value) if value else None
        if post is None or post.manner != contest.manner:
            return None
        return Candidate(ranks.ranked(contest.name, member.id, post.rank), post, member)

    # Names.

    def meet(self, source: NodeId, name: str, manner: Manner) -> Contest | None:
        """The contest of which a peer speaks. None: the name is malformed, there is no room, or it is elected otherwise here."""
        if not 1 <= len(name.encode()) <= NAME_BYTES_MAX or not is_sound(manner):
            self.counts["malformed"] += 1
            return None
        contest = self.contests.get(name)
        if contest is None:
            return self.open(name, manner)
        contest.touched_at = self.now
        if contest.manner != manner and not self._turns(contest, manner):
            self.mismatch(source, contest, manner)
            return None
        return contest

    def turn(self, contest: Contest, manner: Manner) -> None:
        """Elect the name so from now on, as the known reign was, if this agent does not stand for it otherwise."""
        if contest.wish is None and contest.run is None and contest.role is Role.FOLLOWER:
            contest.manner, contest.cached = manner, None

    def open(self, name: str, manner: Manner) -> Contest | None:
        if len(self.contests) >= NAMES_MAX and not self._make_room():
            self.counts["names_full"] += 1
            return None
        contest = self.contests[name] = Contest(name, manner, self.now)
        self.opened(contest)
        return contest

    def mismatch(self, source: NodeId, contest: Contest, manner: Manner) -> None:
        """Count, and say once per peer and value, that a peer elects the name otherwise (F4)."""
        self.counts["mismatches"] += 1
        theirs, ours = manner.words(), contest.manner.words()
        field = next(field for field in ours if ours[field] != theirs[field])
        said = source, contest.name, f"{field}={theirs[field]}"
        if said not in self._said:
            if len(self._said) >= MISMATCHES_MAX:
                del self._said[next(iter(self._said))]
            self._said[said] = None
            self.host.emit(ConfigMismatch(source, f"{field} of {contest.name}", ours[field], theirs[field]))

    def _turns(self, contest: Contest, manner: Manner) -> bool:
        """Take over the manner of a peer, if this agent does not stand for the name and knows no leader of it. True: it did."""
        led = contest.active is not None and not contest.active.over and self.is_listed(contest.active.leader)
        if contest.wish is not None or contest.run is not None or led:
            return False
        self.turn(contest, manner)
        return contest.manner == manner

    def _make_room(self) -> bool:
        """Forget the name that was idle for longest; none that this agent has a part in, or promised something lately."""
        idle_since = self.now - QUARANTINE * self.ttl
        idle = (each for each in self.contests.values() if each.wish is None and each.run is None and each.role is Role.FOLLOWER)
        contest = min(idle, key=lambda each: each.touched_at, default=None)
        if contest is None or contest.touched_at > idle_since:
            return False
        del self.contests[contest.name]
        self.counts["names_forgotten"] += 1
        self.forgotten(contest)
        return True


def _nowhere(message: Leader) -> None:
    del message


def _unheard(contest: Contest) -> None:
    del contest
