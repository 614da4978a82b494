"""Doctor: what an agent knows, or can find out, about what is wrong.  docs/operations.md has one entry for each code.

An examination pings seeds, seats and members with small and large messages, watches for a moment which drops are counted, and then puts
together what it saw with what it remembers: mismatches, pauses, a disk that failed. It changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from math import inf, isfinite
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from holdfast.agent.life.build import VERSION_ROW
from holdfast.agent.life.knock import CLOSED, STRANGE, knock
from holdfast.agent.life.version import VERSION
from holdfast.agent.observe import symptoms
from holdfast.agent.observe.findings import error, note, warning
from holdfast.agent.observe.sightings import GONE_AFTER
from holdfast.drops import Drops
from holdfast.host import DATAGRAM_BYTES_MAX, FANOUT_MAX, Address, MemberStatus, NodeId
from holdfast.kit.seats import SeatState
from holdfast.kit.slots import written
from holdfast.local.calls import Finding

if TYPE_CHECKING:
    from holdfast.agent.feature import Reply
    from holdfast.agent.life.agent import Agent
    from holdfast.agent.observe.sightings import Noticed

NOW_FOR = 60.0  # seconds for which something that was seen counts as wrong now
TARGETS_MAX = 40  # of one examination: F17 with five sizes each below the limit of open pings; in a larger group, another sample each time
WATCH = 2.0  # seconds during which drops are watched, if the caller has so many
BARE, STREAM = 0, 4 * 1024  # bytes: the smallest message, and one that can only go by stream
FIRST = (BARE, DATAGRAM_BYTES_MAX)
BETWEEN = (576, 800, 1000)  # bytes: tried where a datagram of full size is lost; a common small MTU, and steps above it
SECURITY = {
    "wrong_key": "have another key, or a key that was removed here",
    "plaintext": "have no key, while this agent has one",
    "sealed": "have a key, while this agent has none",
    "forged": "were altered on the way, or made without the key",
    "wrong_group": "belong to another group",
}
SECURITY_ADVICE = {
    "wrong_key": "Compare `holdfast keys list` with the key file of the agent that is missing; give it the group's key.",
    "plaintext": "Start that agent with key_file, like all others.",
    "sealed": "Start this agent with key_file, like all others.",
    "forged": "Look for other machines that can send to this port.",
    "wrong_group": "Two groups share a network, which is fine; if an agent is missing, compare its `group` with this one.",
}


class Target(NamedTuple):
    """Whom to ping, and what people call it."""

    to: NodeId | Address
    label: str
    member: bool


class Examination:
    """One look at everything."""

    def __init__(
        self, agent: Agent, memory: Noticed, timeout: float, done: Callable[[tuple[Finding, ...]], None], since: float = GONE_AFTER
    ) -> None:
        assert timeout > 0
        self._agent, self._memory, self._done, self._since = agent, memory, done, since
        self._round = timeout * 0.45  # there are at most two
        self._watch = min(WATCH, timeout * 0.9)
        agent.sightings.look(agent.host)
        self._drops = Drops(agent.host.drops)
        self._targets = self._chosen()
        self._replies: dict[tuple[Target, int], Reply | None] = {}
        self._knocked: set[Target] = set()  # whose ports take connections
        self._open = 1  # the watch
        self._began_at = agent.host.now

    def start(self) -> None:
        self._ask_seats(2)
        self._agent.host.after(self._watch, self._on_done)
        for feature in self._agent.features.values():
            feature.examined()
        for target in self._targets:
            self._ping(target, (BARE, DATAGRAM_BYTES_MAX, STREAM))
            if not target.member:
                self._knock(target)

    def _ask_seats(self, tries_left: int) -> None:
        """Every seat is asked how it is, twice: one lost datagram is no silence."""
        if self._agent.seats is not None and tries_left:
            self._agent.seats.greet()
            self._agent.host.after(self._watch / 3, lambda: self._ask_seats(tries_left - 1))

    def _chosen(self) -> list[Target]:
        agent = self._agent
        own = agent.host.address
        known = {member.address for member in agent.membership.members()}
        seats = {slot.address: f"seat {slot.number} ({slot.address})" for slot in agent.seats.slots} if agent.seats is not None else {}
        fixed = {**seats, **{address: f"seed {address}" for address in agent.seeds}}
        places = [Target(address, label, member=False) for address, label in fixed.items() if address not in known and address != own]
        others = [member for member in agent.membership.members() if member.id != agent.me]
        room = max(0, min(TARGETS_MAX, FANOUT_MAX) - len(places))
        if len(others) > room:
            others = agent.host.random.sample(others, room)
        for member in others:
            agent.host.meet(member.id, member.address)
        return [*places[:TARGETS_MAX], *(Target(member.id, f"{member.name} ({member.address})", member=True) for member in others)]

    def _knock(self, target: Target) -> None:
        """Does the port take connections at all? Then a silence has another reason than a firewall or an agent that is down."""
        assert isinstance(target.to, Address)
        self._open += 1
        knock(self._agent.host, target.to, self._round, partial(self._on_knocked, target))

    def _on_knocked(self, target: Target, is_open: bool) -> None:
        if is_open:
            self._knocked.add(target)
        self._on_done()

    def _ping(self, target: Target, sizes: tuple[int, ...]) -> None:
        pinger = self._agent.pinger
        assert pinger is not None, "an agent runs a feature that pings"
        self._open += len(sizes)
        for size in sizes:
            pinger.ping(target.to, size, partial(self._on_reply, target, size), timeout=self._round)

    def _on_reply(self, target: Target, size: int, reply: Reply | None) -> None:
        self._replies[target, size] = reply
        known = size in FIRST and all((target, each) in self._replies for each in FIRST)
        if known and self._answers(target, BARE) and not self._answers(target, DATAGRAM_BYTES_MAX):
            self._ping(target, BETWEEN)
        self._on_done()

    def _answers(self, target: Target, size: int) -> bool:
        return self._replies.get((target, size)) is not None

    def _on_done(self) -> None:
        self._open -= 1
        if self._open == 0:
            self._agent.sightings.look(self._agent.host)
            order = ("error", "warning", "note")
            self._done(tuple(sorted(self._findings(), key=lambda each: order.index(each.severity))))

    def _findings(self) -> Iterator[Finding]:
        agent = self._agent
        yield from self._of_membership()
        yield from self._of_drops()
        for target in self._targets:
            yield from self._of_path(target)
        yield from self._of_versions()
        yield from self._of_mismatches()
        yield from self._of_pauses()
        yield from symptoms.of_membership(agent)
        for feature in agent.features.values():
            yield from feature.findings()
        yield from self._of_seat_lists()
        yield from symptoms.of_seats(agent, self._began_at)
        yield from symptoms.of_settings(agent.config, agent.home.state.path if agent.home.state is not None else None, seat=_is_seat(agent))
        for feature in agent.features.values():
            yield from feature.setting_findings()
        yield from symptoms.of_machine(agent.host.datagrams.fileno(), len(agent.membership.members()))
        if self._memory.storage_failed and not (agent.seats is not None and agent.seats.state is SeatState.SILENT):
            yield error(
                "storage_failed", agent.config.state_dir, f"The disk refused a write: {self._memory.storage_failed}.",
                "Make room or replace the disk, then restart this agent: until then it promises nothing.",
            )  # fmt: skip

    def _of_membership(self) -> Iterator[Finding]:
        agent = self._agent
        if agent.state != "member":
            yield error(
                "not_a_member", agent.me.name, f"This agent is in no group: its state is {agent.state!r}.",
                agent.side.hints.not_a_member,
            )  # fmt: skip
        if agent.config.seeds and not agent.seeds:
            yield error(
                "unresolved_seeds", ", ".join(agent.config.seeds), "No seed has an address.",
                "Check the spelling and this machine's DNS, or give literal addresses.",
            )  # fmt: skip

    def _of_drops(self) -> Iterator[Finding]:
        """What cannot be read was sent by a process that believes to be a member. While it goes on, it is an error."""
        host = self._agent.host
        for why, count in sorted(host.drops.items()):
            if count == 0 or why.value not in SECURITY:
                continue
            source = host.dropped_from.get(why)
            last = "" if source is None else f", the last from {source}"
            text = f"{count} messages were dropped because they {SECURITY[why.value]}{last}."
            say = note if why.value == "wrong_group" else error if count > self._drops[why] else warning
            found = say(why.value, f"port {host.bound.port}", text, SECURITY_ADVICE[why.value])
            yield from self._aged(found, self._agent.sightings.drops.get(why, host.now))

    def _of_path(self, target: Target) -> Iterator[Finding]:
        if not self._answers(target, BARE):
            yield from self._of_silence(target)
            return
        if not self._answers(target, DATAGRAM_BYTES_MAX):
            passed = max((size for size in BETWEEN if self._answers(target, size)), default=0)
            most = f"up to {passed} bytes" if passed else f"below {BETWEEN[0]} bytes"
            yield error(
                "small_mtu", target.label, f"Datagrams of {DATAGRAM_BYTES_MAX} bytes do not come through, only {most}.",
                "Raise the MTU on the way (tunnels and overlays lower it), or let fragments and ICMP pass.",
            )  # fmt: skip
        elif not self._answers(target, STREAM):
            yield error(
                "closed_tcp", target.label, "Datagrams come through, messages by stream do not: TCP is closed.",
                "Open the same port for TCP as for UDP, in both directions.",
            )  # fmt: skip

    def _of_silence(self, target: Target) -> Iterator[Finding]:
        if target in self._knocked:
            yield error(
                "strange_port", target.label, f"{STRANGE[0].upper()}{STRANGE[1:]}.",
                "Compare key_file and group with that agent's; its `holdfast doctor` names this agent's address under the reason.",
            )  # fmt: skip
            return
        if not target.member:
            yield error(
                "closed_port", target.label, f"{CLOSED[0].upper()}{CLOSED[1:]}.",
                "Start an agent there, open the port for UDP and TCP, or correct the address.",
            )  # fmt: skip
            return
        found = self._agent.membership.get(target.to.name) if isinstance(target.to, NodeId) else None
        if found is not None and found.id == target.to and found.status is MemberStatus.ALIVE:
            yield error(
                "unreachable", target.label, "This member is alive for others, and does not answer this agent.",
                self._agent.side.hints.unreachable,
            )  # fmt: skip

    def _of_versions(self) -> Iterator[Finding]:
        rows = {member.name: member.rows.get(VERSION_ROW, b"").decode("utf-8", "replace") for member in self._agent.membership.members()}
        heard = {reply.life.name: reply.version for reply in self._replies.values() if reply is not None}
        for name, version in sorted({**rows, **heard}.items()):
            if version and version != VERSION:
                yield warning(
                    "other_version",
                    name,
                    f"It runs version {version}, this agent {VERSION}.",
                    "Finish the upgrade: install one version everywhere.",
                )

    def _of_mismatches(self) -> Iterator[Finding]:
        for (peer, name), mismatch in self._memory.mismatches.items():
            if name == "membership":
                found = error(
                    "membership_mismatch", peer,
                    f"It finds its members by {mismatch.theirs}, this agent by {mismatch.ours}: neither lists the other.",
                    "Give all agents of the group the same membership and restart those that differ.",
                )  # fmt: skip
                yield from self._aged(found, self._agent.sightings.mismatches.get(peer, -inf))
                continue
            field = self._agent.side.hints.settings.get(name, name)
            found = error(
                "config_mismatch", peer, f"{field} is {mismatch.theirs} there and {mismatch.ours} here: the two drop each other's words.",
                f"Give all agents of the group the same {field} and restart those that differ.",
            )  # fmt: skip
            yield from self._aged(found, self._agent.sightings.mismatches.get(peer, -inf))

    def _of_seat_lists(self) -> Iterator[Finding]:
        """F12: the list of seats comes from settings, so it is the same everywhere only if these are."""
        told = {reply.life.name: reply.seats for reply in self._replies.values() if reply is not None and reply.seats}
        if told:
            yield from symptoms.of_seat_lists({**told, self._agent.me.name: written(self._agent.slots.all)}, self._agent.me.name)

    def _of_pauses(self) -> Iterator[Finding]:
        agent = self._agent
        pauses = [(at, seconds) for at, seconds in self._memory.pauses if at > agent.host.now - self._since]
        if pauses:
            longest = max(seconds for _, seconds in pauses)
            most = agent.side.hints.pause
            removed = f"It loses its membership when it stands still for about {most:g} s: give" if isfinite(most) else "Give"
            say = error if longest >= most / 2 else warning
            found = say(
                "pauses", agent.me.name, f"It stood still {len(pauses)} times in the last {self._since:.0f} s, {longest:.2f} s at most.",
                f"{removed} it CPU, or choose a slower preset.",
            )  # fmt: skip
            yield from self._aged(found, pauses[-1][0])
        stopped = {reply.life.name: reply.paused for reply in self._replies.values() if reply is not None and reply.paused > 0}
        for name, seconds in sorted(stopped.items()):
            yield warning(
                "pauses", name, f"It stood still for {seconds:.2f} s in the last ten minutes.", "Run `holdfast doctor` on its machine."
            )

    def _aged(self, found: Finding, seen_at: float) -> Iterator[Finding]:
        """What was seen within the last minute is wrong now. Older findings are notes, and after ten minutes they are gone."""
        ago = max(0.0, self._agent.host.now - seen_at)
        if ago <= NOW_FOR:
            yield replace(found, seen_ago=ago)
        elif ago <= self._since:
            yield replace(found, severity="note", seen_ago=ago)


def _is_seat(agent: Agent) -> bool:
    return agent.seats is not None and agent.seats.own is not None
