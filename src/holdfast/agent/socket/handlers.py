"""One small function per call of the local socket.  docs/local-api.md.

Those ``at_once`` only read what the agent knows. All others enter a protocol, so they run in the host's turns (F10); what a protocol needs
time for is answered by a callback, once.
"""

from __future__ import annotations

import os
from functools import partial
from math import isfinite
from typing import TYPE_CHECKING, Any

from holdfast.agent.grants.bodies import shares_pids
from holdfast.agent.grants.reaper import Asked
from holdfast.agent.observe.doctor import GONE_AFTER, Doctor
from holdfast.agent.observe.seat_views import SeatSurvey
from holdfast.agent.socket.connection import Connection, Handler, describe
from holdfast.agent.socket.encode import encoded
from holdfast.agent.socket.events import Subscription
from holdfast.errors import ConfigError, HoldfastError, JoinTimeout, NotAMember, Timeout, Unavailable, shown
from holdfast.features.farewell.protocol.farewell import Parting
from holdfast.features.keys.protocol.keys import Report
from holdfast.features.mail.protocol.inbox import PAYLOAD_BYTES_MAX
from holdfast.features.mail.protocol.messages import Outcome
from holdfast.features.mail.streams import MessageHub
from holdfast.features.tickets.pools import Pools
from holdfast.local import calls
from holdfast.local.calls import GroupView, MemberReport, Welcome
from holdfast.local.family import MARK_CHARS, is_mark

if TYPE_CHECKING:
    from collections import Counter

    from holdfast.agent.life.agent import Agent

CLOCK_AHEAD_MAX = 0.001  # seconds; two readings of one clock are never out of order, floats may be by a little
CLOCK_BEHIND_MAX = 60.0  # seconds a greeting may be under way on a machine that stands still
TIMEOUT_MAX = 3600.0  # seconds; who wants to wait longer asks again
BEFORE_MAX = 60.0  # seconds before a deadline; who wants to end that early asks for less
PROGRAM_CHARS_MAX = 128
KEY_BYTES_MAX = 4096  # of a key whose owner is asked for: it is hashed in a turn


class EventStream:
    """A ``Watch``."""

    def __init__(self, subscription: Subscription) -> None:
        self._subscription = subscription

    def take(self, limit: int) -> list[bytes]:
        return [record.item for record in self._subscription.take(limit)]

    def close(self) -> None:
        self._subscription.close()


class Handlers:
    """What an agent answers."""

    def __init__(self, agent: Agent, connections: dict[int, Connection], counts: Counter[str]) -> None:
        self._agent, self._connections, self._counts = agent, connections, counts
        self.messages = MessageHub(agent.broadcast, agent.host.post)
        agent.deliver = self.messages.deliver
        self._physician = Doctor(agent)
        pools = Pools(agent)
        if agent.side.keyed is not None:
            agent.grants.keys.withdrawn = agent.side.keyed.withdrawn
        self._view: GroupView | None = None
        self._view_bytes = b""
        self.at_once: dict[type[calls.Call], Handler] = {
            calls.Hello: self._hello, calls.Look: self._look, calls.Watch: self._watch, calls.Info: self._info, calls.Seats: self._seats,
            calls.Tickets: pools.look,
        }  # fmt: skip
        self.in_turn: dict[type[calls.Call], Handler] = {
            calls.Owns: self._owns, calls.SetTags: self._set_tags, calls.Leave: self._leave, calls.Join: self._join,
            calls.ForceLeave: self._force_leave, calls.Keys: self._keys, calls.Send: self._send, calls.Cast: self._cast,
            calls.Messages: self._messages, calls.Acquire: self._acquire, calls.Confirm: self._confirm, calls.Stopped: self._stopped,
            calls.Body: self._body, calls.Close: self._close, calls.Doctor: self._doctor,
            calls.ReadTickets: pools.read, calls.StopTicket: pools.stop, calls.AbandonTicket: pools.abandon,
            calls.Publish: pools.publish, calls.Touch: pools.touch, calls.WatchTickets: pools.watch,
        }  # fmt: skip

    # At once.

    def _hello(self, client: Connection, call: calls.Hello) -> None:
        now = self._agent.host.now
        if call.version != calls.VERSION:
            text = f"version: the client speaks {call.version}, this agent {calls.VERSION}; install the same release on both sides"
            self._send_away(client, call, "version", text)
        elif not now - CLOCK_BEHIND_MAX <= call.clock <= now + CLOCK_AHEAD_MAX:
            text = f"clock: the client reads {call.clock:.3f}, this agent {now:.3f}; both must read the same clock of one machine (F14)"
            self._send_away(client, call, "clock", text)
        else:
            client.greeted, client.clock = True, call.clock
            client.program = "".join(each if each.isprintable() else "?" for each in call.program[:PROGRAM_CHARS_MAX])
            agent = self._agent
            client.done(
                call.serial, encoded(Welcome(calls.VERSION, agent.me, os.getpid(), agent.config.group, agent.host.now, client.number))
            )

    def _send_away(self, client: Connection, call: calls.Hello, count: str, text: str) -> None:
        self._counts[count] += 1
        client.refuse(call.serial, ConfigError(text))
        client.end_all("ConfigError", text)

    def _look(self, client: Connection, call: calls.Look) -> None:
        client.done(call.serial, self._encoded_view())

    def _watch(self, client: Connection, call: calls.Watch) -> None:
        client.check_room()
        if self._agent.events.full:
            raise Unavailable("too many subscribers; close some streams")
        subscription = self._agent.events.subscribe(partial(client.wake, call.serial), internal=call.internal)
        client.done(call.serial, self._encoded_view())
        client.open_stream(call.serial, EventStream(subscription))

    def _info(self, client: Connection, call: calls.Info) -> None:
        greeted = [describe(each) for each in self._connections.values() if each.greeted]
        local = {"counts": dict(self._counts), "events_lost": self._agent.events.lost, "messages_lost": self.messages.lost}
        client.done(call.serial, encoded({**self._agent.info(), "clients": greeted, "local": local}))

    def _seats(self, client: Connection, call: calls.Seats) -> None:
        if self._agent.seats is None:
            raise ConfigError(self._agent.seats_missing)
        SeatSurvey(self._agent, lambda views: client.done(call.serial, encoded(views))).start()

    def _encoded_view(self) -> bytes:
        """The agent gives the same object until something changes, and then it is encoded once."""
        view = self._agent.view()
        if view is not self._view:
            self._view, self._view_bytes = view, encoded(view)
        return self._view_bytes

    # In turn.

    def _owns(self, client: Connection, call: calls.Owns) -> None:
        if len(call.key) > KEY_BYTES_MAX:
            raise ConfigError(f"key: {len(call.key)} bytes; accepted are at most {KEY_BYTES_MAX}")
        owned = None if self._agent.grants.draining else self._agent.owns(call.key)
        if owned is None:
            client.done(call.serial)
            return
        client.body()  # From now on its death matters.
        self._agent.grants.keys.tell(client, owned.until)
        client.done(call.serial, encoded(owned))

    def _set_tags(self, client: Connection, call: calls.SetTags) -> None:
        self._agent.set_tags(call.tags)
        client.done(call.serial)

    def _leave(self, client: Connection, call: calls.Leave) -> None:
        self._agent.leave(partial(client.done, call.serial), end=call.end)

    def _join(self, client: Connection, call: calls.Join) -> None:
        timeout = _timeout(call.timeout)
        once = Once(client, call.serial)
        self._agent.join(call.seeds, once.done)
        text = f"not a member after {timeout} s; the agent goes on knocking at {', '.join(map(shown, call.seeds[:5]))}"
        self._agent.host.after(timeout, partial(self._on_not_joined, once, text))

    def _on_not_joined(self, once: Once, text: str) -> None:
        self._agent.forget_join(once.done)
        why = self._agent.membership.waits_for
        once.refuse(JoinTimeout(f"{text}; {why}" if why else text))

    def _send(self, client: Connection, call: calls.Send) -> None:
        timeout = _timeout(call.timeout)
        member = self._agent.membership.get(call.name)
        if member is None:
            raise NotAMember(f"name: no member is called {shown(call.name)}")
        done = partial(_on_letter, client, call.serial, call.name, timeout)
        self._agent.mail.send(member.id, call.payload, timeout, done)

    def _cast(self, client: Connection, call: calls.Cast) -> None:
        self.messages.cast(call.topic, call.payload, self._agent.me, client)
        client.done(call.serial)

    def _messages(self, client: Connection, call: calls.Messages) -> None:
        client.check_room()
        stream = self.messages.open(call.topic, client, partial(client.wake, call.serial))
        client.open_stream(call.serial, stream)
        client.done(call.serial)

    def _acquire(self, client: Connection, call: calls.Acquire) -> None:
        client.check_room()
        self._agent.grants.acquire(client, call, partial(_granting, client, call.serial))

    def _confirm(self, client: Connection, call: calls.Confirm) -> None:
        self._agent.grants.confirm(client, call.grant, call.token)
        client.done(call.serial)

    def _stopped(self, client: Connection, call: calls.Stopped) -> None:
        """Serial 0: the client acts for no key any more."""
        if call.grant == 0:
            self._agent.grants.keys.stopped(client)
        else:
            self._agent.grants.stopped(client, call.grant)
        client.done(call.serial)

    def _body(self, client: Connection, call: calls.Body) -> None:
        pid = call.pid if shares_pids(client.pid) else None
        self._agent.grants.add_body(client, call.grant, pid, _asked(client, call))
        client.done(call.serial)

    def _close(self, client: Connection, call: calls.Close) -> None:
        self._agent.grants.close(client, call.stream)
        client.close_stream(call.stream)
        client.done(call.serial)

    def _force_leave(self, client: Connection, call: calls.ForceLeave) -> None:
        timeout = _timeout(call.timeout)
        self._agent.farewell.ask(call.name, timeout, partial(_on_parting, client, call.serial, call.name, timeout))

    def _keys(self, client: Connection, call: calls.Keys) -> None:
        self._agent.keys.ask(call.action, call.key, _timeout(call.timeout), partial(_on_reports, client, call.serial), force=call.force)

    def _doctor(self, client: Connection, call: calls.Doctor) -> None:
        since = call.since if isfinite(call.since) and call.since >= 0 else GONE_AFTER
        self._physician.collect(_timeout(call.timeout), Once(client, call.serial).done, since)


def _asked(client: Connection, call: calls.Body) -> Asked:
    """Whether, and when, the agent is to end this process."""
    if not 0 <= call.before <= BEFORE_MAX:
        raise ConfigError(f"before: {shown(call.before)}; accepted are seconds from 0 to {BEFORE_MAX:g}")
    if call.mark and not is_mark(call.mark):
        raise ConfigError(f"mark: {shown(call.mark)}; accepted are {MARK_CHARS} hexadecimal digits, or nothing")
    return Asked(call.before, call.mark, client.user)


class Once:
    """An answer that comes by a callback or by a timer, whichever is first."""

    def __init__(self, client: Connection, serial: int) -> None:
        self._client, self._serial = client, serial
        self._open = True

    def done(self, value: Any = None) -> None:
        if self._open:
            self._open = False
            self._client.done(self._serial, encoded(value))

    def refuse(self, error: HoldfastError) -> None:
        if self._open:
            self._open = False
            self._client.refuse(self._serial, error)


def _granting(client: Connection, serial: int) -> None:
    client.open_stream(serial, None)
    client.done(serial)


def _on_parting(client: Connection, serial: int, name: str, timeout: float, parting: Parting) -> None:
    match parting:
        case Parting.AGREED:
            client.done(serial)
        case Parting.SILENT:
            client.refuse(serial, Timeout(f"{shown(name)} did not answer within {timeout} s; if it is dead, the group finds out by itself"))
        case Parting.NOT_A_MEMBER:
            client.refuse(serial, NotAMember(f"name: no member is called {shown(name)}"))
        case Parting.UNSEALED:
            client.refuse(
                serial, ConfigError("key: this group has none, so nobody may be asked to leave over the network; ask at its own agent")
            )
        case Parting.BUSY:
            client.refuse(serial, Unavailable("this agent is asking too many others to leave already"))


def _on_reports(client: Connection, serial: int, reports: tuple[Report, ...]) -> None:
    told = tuple(MemberReport(report.member.name, report.done, report.text, report.keys) for report in reports)
    client.done(serial, encoded(told))


def _on_letter(client: Connection, serial: int, name: str, timeout: float, outcome: Outcome) -> None:
    error = _error_of(outcome, name, timeout)
    if error is None:
        client.done(serial)
    else:
        client.refuse(serial, error)


def _error_of(outcome: Outcome, name: str, timeout: float) -> HoldfastError | None:
    match outcome:
        case Outcome.QUEUED:
            return None
        case Outcome.NOBODY:
            return Unavailable(f"no client of {shown(name)} listens for messages")
        case Outcome.FULL:
            return Unavailable(f"the clients of {shown(name)} do not read: their queues were full for {timeout} s")
        case Outcome.TOO_LARGE:
            return ConfigError(f"payload: too large; accepted are at most {PAYLOAD_BYTES_MAX} bytes")
        case Outcome.TIMEOUT:
            return Timeout(f"{shown(name)} did not answer within {timeout} s; the message may have arrived")
        case Outcome.BUSY:
            return Unavailable("this agent has too many messages under way; nothing was sent")
        case _:
            return NotAMember(f"{shown(name)} left the group, or began another life, before it answered")


def _timeout(timeout: float) -> float:
    if not (isfinite(timeout) and 0 < timeout <= TIMEOUT_MAX):
        raise ConfigError(f"timeout: {timeout}; accepted are seconds above 0, at most {TIMEOUT_MAX:.0f}")
    return timeout
