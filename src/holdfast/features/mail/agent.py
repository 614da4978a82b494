"""Messages in an agent: the calls ``Send``, ``Cast`` and ``Messages``.  docs/mail.md, docs/local-api.md."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from holdfast.agent.feature import Calls, Feature, Parts, Running
from holdfast.agent.socket.answers import checked_timeout
from holdfast.errors import ConfigError, HoldfastError, NotAMember, Timeout, Tripped, Unavailable, shown
from holdfast.features.mail.protocol.inbox import PAYLOAD_BYTES_MAX
from holdfast.features.mail.protocol.mail import Mail
from holdfast.features.mail.protocol.messages import Outcome
from holdfast.host import NodeId

if TYPE_CHECKING:
    from holdfast.agent.feature import HttpPart, Web
    from holdfast.agent.socket.connection import Connection
    from holdfast.features.mail.calls import Cast, Messages, Send
    from holdfast.features.mail.streams import MessageHub


class MailAgent(Running):
    """One ``Mail``, and the clients that listen."""

    def __init__(self, parts: Parts) -> None:
        self._me, self._parts = parts.host.me, parts
        self._hub: MessageHub | None = None
        self.mail = Mail(parts.host, parts.membership, self._deliver, parts.overlay)
        self.machines = (self.mail,)

    def calls(self) -> Calls:
        from holdfast.features.mail.calls import Cast, Messages, Send

        return Calls(in_turn={Send: self._send, Cast: self._cast, Messages: self._listen})

    def counts(self) -> dict[str, float]:
        return {f"mail_{name}": float(count) for name, count in sorted(self.mail.counts.items())}

    def lost(self) -> dict[str, int]:
        return {"messages_lost": 0 if self._hub is None else self._hub.lost}

    def http(self, web: Web) -> HttpPart:
        del web
        from holdfast.features.mail.http import MailHttp

        return MailHttp(self.mail.counts)

    @property
    def messages(self) -> MessageHub:
        """Made when a client first casts or listens."""
        if self._hub is None:
            from holdfast.features.mail.streams import MessageHub

            self._hub = MessageHub(self._parts.broadcast, self._parts.host.post)
        return self._hub

    def _deliver(self, sender: NodeId, payload: bytes) -> Outcome:
        return Outcome.NOBODY if self._hub is None else self._hub.deliver(sender, payload)

    def _send(self, client: Connection, call: Send) -> None:
        timeout = checked_timeout(call.timeout)
        present = self.mail.addressee(call.name)
        if present is None:
            raise NotAMember(f"name: no member is called {shown(call.name)}{self._outside()}")
        done = partial(_on_letter, client, call.serial, call.name, timeout)
        self.mail.send(NodeId(call.name, call.boot) if call.boot else present, call.payload, timeout, done)

    def _outside(self) -> str:
        """Why members of the group may be missing."""
        if self._parts.membership.is_member:
            return ""
        return "; this agent is in no group now, and sends to members of its view alone (`holdfast members`, `holdfast views`)"

    def _cast(self, client: Connection, call: Cast) -> None:
        self.messages.cast(call.topic, call.payload, self._me, client)
        client.done(call.serial)

    def _listen(self, client: Connection, call: Messages) -> None:
        client.check_room()
        stream = self.messages.open(call.topic, client, partial(client.wake, call.serial))
        client.open_stream(call.serial, stream)
        client.done(call.serial)


class MailFeature(Feature):
    """Every agent has it."""

    name = "mail"

    def build(self, parts: Parts) -> MailAgent:
        return MailAgent(parts)


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
        case Outcome.TRIPPED:
            return Tripped(f"the view gave {shown(name)} up before it answered; the message may have arrived")
        case _:
            return NotAMember(f"{shown(name)} left the group, or began another life, before it answered")
