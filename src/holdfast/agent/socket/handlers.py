"""One small function per call of the local socket.  docs/local-api.md.

Those ``at_once`` only read what the agent knows. All others enter a protocol, so they run in the host's turns (F10); what a protocol needs
time for is answered by a callback, once.
"""

from __future__ import annotations

import os
from functools import partial
from math import isfinite
from typing import TYPE_CHECKING

from holdfast.agent.grants.bodies import Asked, shares_pids
from holdfast.agent.life.installed import check_installed
from holdfast.agent.observe.sightings import GONE_AFTER
from holdfast.agent.socket.answers import Once, checked_timeout
from holdfast.agent.socket.connection import Connection, Handler, describe
from holdfast.agent.socket.events import Subscription
from holdfast.agent.socket.table import Table
from holdfast.errors import ConfigError, JoinTimeout, Unavailable, shown
from holdfast.local import calls
from holdfast.local.calls import GroupView, Welcome
from holdfast.local.frame import encoded
from holdfast.local.process import MARK_CHARS, is_mark

if TYPE_CHECKING:
    from collections import Counter

    from holdfast.agent.life.agent import Agent

CLOCK_AHEAD_MAX = 0.001  # seconds; two readings of one clock are never out of order, floats may be by a little
CLOCK_BEHIND_MAX = 60.0  # seconds a greeting may be under way on a machine that stands still
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
        if agent.side.keyed is not None:
            agent.grants.keys.withdrawn = agent.side.keyed.withdrawn
        self._view: GroupView | None = None
        self._view_bytes = b""
        self._asked: tuple[GroupView, int, bytes] | None = None  # the view, since when, and the answer
        self.at_once: dict[type[calls.Call], Handler] = {
            calls.Hello: self._hello, calls.Look: self._look, calls.Watch: self._watch, calls.Info: self._info, calls.Seats: self._seats,
        }  # fmt: skip
        self.in_turn: dict[type[calls.Call], Handler] = {
            calls.Owns: self._owns, calls.SetTags: self._set_tags, calls.Leave: self._leave, calls.Join: self._join,
            calls.Acquire: self._acquire, calls.Confirm: self._confirm, calls.Stopped: self._stopped,
            calls.Body: self._body, calls.Close: self._close, calls.Doctor: self._doctor,
        }  # fmt: skip
        self.table = Table(self.at_once, self.in_turn, agent.features.values())

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
        client.done(call.serial, self._encoded_change(call.since) if call.since else self._encoded_view())

    def _watch(self, client: Connection, call: calls.Watch) -> None:
        client.check_room()
        if self._agent.events.full:
            raise Unavailable("too many subscribers; close some streams")
        subscription = self._agent.events.subscribe(partial(client.wake, call.serial), internal=call.internal)
        client.done(call.serial, self._encoded_view())
        client.open_stream(call.serial, EventStream(subscription))

    def _info(self, client: Connection, call: calls.Info) -> None:
        greeted = [describe(each) for each in self._connections.values() if each.greeted]
        lost = {name: count for feature in self._agent.features.values() for name, count in feature.lost().items()}
        local = {"counts": dict(self._counts), "events_lost": self._agent.events.lost, **lost}
        client.done(call.serial, encoded({**self._agent.info(), "clients": greeted, "local": local}))

    def _seats(self, client: Connection, call: calls.Seats) -> None:
        if self._agent.seats is None:
            raise ConfigError(self._agent.seats_missing)
        check_installed()
        from holdfast.agent.observe.seat_views import SeatSurvey  # what only a user's question needs

        SeatSurvey(self._agent, lambda views: client.done(call.serial, encoded(views))).start()

    def _encoded_view(self) -> bytes:
        """The agent gives the same object until something changes, and then it is encoded once."""
        view = self._agent.view()
        if view is not self._view:
            self._view, self._view_bytes = view, encoded(view)
        return self._view_bytes

    def _encoded_change(self, since: int) -> bytes:
        """Clients that fell behind together often ask about the same version: the last answer is kept."""
        view = self._agent.view()
        if self._asked is None or self._asked[0] is not view or self._asked[1] != since:
            found = self._agent.view_since(since)
            self._asked = view, since, self._encoded_view() if found is view else encoded(found)
        return self._asked[2]

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
        timeout = checked_timeout(call.timeout)
        once = Once(client, call.serial)
        self._agent.join(call.seeds, once.done)
        text = f"not a member after {timeout} s; the agent goes on knocking at {', '.join(map(shown, call.seeds[:5]))}"
        self._agent.host.after(timeout, partial(self._on_not_joined, once, text))

    def _on_not_joined(self, once: Once, text: str) -> None:
        self._agent.forget_join(once.done)
        why = self._agent.membership.waits_for
        once.refuse(JoinTimeout(f"{text}; {why}" if why else text))

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

    def _doctor(self, client: Connection, call: calls.Doctor) -> None:
        since = call.since if isfinite(call.since) and call.since >= 0 else GONE_AFTER
        timeout = checked_timeout(call.timeout)
        check_installed()
        from holdfast.agent.observe.doctor import Examination  # what only a user's question needs (0.2 MiB)

        Examination(self._agent, self._agent.noticed, timeout, Once(client, call.serial).done, since).start()


def _asked(client: Connection, call: calls.Body) -> Asked:
    """Whether, and when, the agent is to end this process."""
    if not 0 <= call.before <= BEFORE_MAX:
        raise ConfigError(f"before: {shown(call.before)}; accepted are seconds from 0 to {BEFORE_MAX:g}")
    if call.mark and not is_mark(call.mark):
        raise ConfigError(f"mark: {shown(call.mark)}; accepted are {MARK_CHARS} hexadecimal digits, or nothing")
    return Asked(call.before, call.mark, client.user)


def _granting(client: Connection, serial: int) -> None:
    client.open_stream(serial, None)
    client.done(serial)
