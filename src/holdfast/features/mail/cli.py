"""``holdfast send``, ``cast`` and ``messages``."""

from __future__ import annotations

import sys
from base64 import b64encode
from typing import Annotated, Any

from holdfast.cli.agent_call import GRACE, asked, streamed
from holdfast.cli.options import AGENT, COUNT, FOR, GROUP, JSON, JSON_LINES, MEMBER, TIMEOUT, checked_timeout
from holdfast.cli.parser import Flag, Word
from holdfast.cli.show import print_json, print_json_line, shown
from holdfast.errors import ConfigError
from holdfast.features.mail.calls import Cast, MessageItem, Messages, Send

PAYLOAD_BYTES_MAX = 32 * 1024  # of one message

Text = Annotated[str, Word(help="What to say; - reads it from stdin.", metavar="TEXT")]
Topic = Annotated[str, Word(help="Members that listen to this topic get the message.", metavar="TOPIC")]


def send(
    *,
    name: Annotated[str, MEMBER],
    text: Text,
    timeout: Annotated[float, TIMEOUT] = 5.0,
    as_json: Annotated[bool, JSON] = False,
    agent: Annotated[str, AGENT] = "",
    group: Annotated[str, GROUP] = "",
) -> None:
    """Send a message to one member. Ends when that agent has queued it for a client; it arrives at most once."""
    payload = _payload(text)
    asked(agent, group, Send, name, payload, checked_timeout(timeout), timeout=timeout + GRACE)
    if as_json:
        print_json({"to": name, "bytes": len(payload)})


def cast(
    *,
    topic: Topic,
    text: Text,
    as_json: Annotated[bool, JSON] = False,
    agent: Annotated[str, AGENT] = "",
    group: Annotated[str, GROUP] = "",
) -> None:
    """Tell all listeners of a topic. A rumour: most hear it within a second, and it is not confirmed."""
    payload = _payload(text)
    asked(agent, group, Cast, topic, payload)
    if as_json:
        print_json({"topic": topic, "bytes": len(payload)})


def messages(
    *,
    topic: Annotated[str, Flag("--topic", help="Listen to this topic, not to what is sent to this agent alone.", metavar="TOPIC")] = "",
    count: Annotated[int, COUNT] = 0,
    seconds: Annotated[float, FOR] = 0.0,
    as_json: Annotated[bool, JSON_LINES] = False,
    agent: Annotated[str, AGENT] = "",
    group: Annotated[str, GROUP] = "",
) -> None:
    """Print the messages that arrive."""
    for item in streamed(agent, group, count, seconds, Messages, topic):
        if as_json:
            print_json_line(_json(item))
        else:
            _print(item)


def _payload(text: str) -> bytes:
    payload = sys.stdin.buffer.read(PAYLOAD_BYTES_MAX + 1) if text == "-" else text.encode("utf-8", "surrogateescape")
    if len(payload) > PAYLOAD_BYTES_MAX:
        raise ConfigError(f"TEXT: more than {PAYLOAD_BYTES_MAX} bytes; accepted are messages of up to {PAYLOAD_BYTES_MAX} bytes")
    return payload


def _json(item: MessageItem) -> dict[str, Any]:
    """``text`` where it is text; ``base64`` always, because a message is bytes."""
    said = {"from": item.sender.name, "boot": item.sender.boot, "topic": item.topic, "lost": item.lost}
    try:
        text: str | None = item.payload.decode()
    except UnicodeDecodeError:
        text = None
    return said | {"text": text, "base64": b64encode(item.payload).decode()}


def _print(item: MessageItem) -> None:
    if item.lost:
        print(f"({item.lost} messages lost: this command did not read in time)", flush=True)
    print(f"{shown(item.sender.name)}: {shown(item.payload.decode('utf-8', 'backslashreplace'))}", flush=True)
