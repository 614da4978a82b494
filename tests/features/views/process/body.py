"""A client program that asks for views and writes down what it hears: ``python -m tests.features.views.process.body SOCKET RECORD``.

One line per item of the stream: each change, and each extension of the lease. It ends with its agent.
"""

from __future__ import annotations

import json
import sys
from contextlib import suppress
from typing import Any, TextIO

from holdfast.features.views.calls import ViewItem, WatchViews
from holdfast.features.views.client_base import ViewMirror
from holdfast.host import View
from tests.agent.raw_client import RawClient, now


class Writer:
    """Of one life of one agent."""

    def __init__(self, file: TextIO, me: str, settle: float) -> None:
        self._file, self._me, self._settle = file, me, settle
        self._mirror = ViewMirror()

    def write(self, item: ViewItem) -> None:
        self._mirror.follow(item)
        line = {
            "at": now(),
            "me": self._me,
            "what": item.what,
            "state": item.state,
            "view": None if item.view is None else described(self._mirror.standing.view),
            "leased_until": item.leased_until,
            "installed_at": None if item.settled_at is None else item.settled_at - self._settle,
        }
        self._file.write(json.dumps(line) + "\n")


def described(view: View | None) -> dict[str, Any]:
    assert view is not None
    members = [[str(member.id), member.attach, str(member.server)] for member in view.members]
    return {"id": str(view.id), "number": view.number, "servers": [str(server) for server in view.servers], "members": members}


def main() -> None:
    _, path, record, settle = sys.argv
    with RawClient(path) as client, open(record, "a", buffering=1, encoding="utf-8") as file:  # noqa: PTH123 - a line is written at once
        client.sock.settimeout(None)
        assert client.welcome is not None
        writer = Writer(file, str(client.welcome.agent), float(settle))
        stream = client.say(WatchViews)
        with suppress(EOFError, ConnectionError):
            while True:
                writer.write(client.item(stream, ViewItem))


if __name__ == "__main__":
    main()
