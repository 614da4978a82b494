# Made by scripts/spell.py from src/holdfast/features/mail/client.py: edit that file and run the script.
"""Messages of a client: to one member, to a topic, and the streams they are read from.  docs/client.md (messages)."""

from __future__ import annotations

from holdfast.client import checks
from holdfast.client.checks import CALL_SECONDS_MAX, Seconds
from holdfast.client.sync.link import Link
from holdfast.client.sync.streams import Opened
from holdfast.client.wire import CALL_TIMEOUT
from holdfast.features.mail import calls
from holdfast.features.mail.client_base import CAST_BYTES_MAX, SEND_BYTES_MAX, MessageBuffer, Received, addressee, checked_topic
from holdfast.host import Member, NodeId


class Messages(MessageBuffer, Opened[Received]):
    """Messages, in the order of their coming, from the call of ``messages`` on."""

    call = calls.Messages

    def __init__(self, topic: str) -> None:
        super().__init__()
        self.topic = self.about = topic


def messages(link: Link, topic: str | None) -> Messages:
    return link.open(Messages("" if topic is None else checked_topic(topic)))


def send(link: Link, peer: Member | NodeId | str, data: bytes, timeout: Seconds) -> None:
    limit = checks.seconds(timeout, "timeout", most=CALL_SECONDS_MAX)
    name, boot = addressee(peer, link.mirror.members)
    fields = name, checks.payload(data, SEND_BYTES_MAX), limit, boot
    link.call(calls.Send, *fields, timeout=limit + CALL_TIMEOUT)


def cast(link: Link, data: bytes, topic: str) -> None:
    fields = checked_topic(topic), checks.payload(data, CAST_BYTES_MAX)
    link.call(calls.Cast, *fields)
