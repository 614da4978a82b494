"""The agent of this machine, for a command that asks and ends: the client's connection, with limits and words of the command line.

Where the agent is: ``--agent``, else HOLDFAST_AGENT, else the socket of ``--group`` (else HOLDFAST_GROUP, else "default") in the runtime
directory, where agents put it unless told otherwise.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import islice
from math import inf
from typing import Any

from holdfast.cli.options import checked_limits
from holdfast.client.conversation import ENDED, STRANGE
from holdfast.client.line import Line
from holdfast.client.wire import error_of
from holdfast.disk.places import default_socket
from holdfast.errors import AddressUnusable, AgentLost, HoldfastError, Timeout, shown_path
from holdfast.local.calls import Call
from holdfast.net.clock import now

ANSWER_TIMEOUT = 5.0  # seconds; an agent answers from memory, so only a stopped or overwhelmed one takes longer
GRACE = 1.0  # seconds on top of a time limit that the agent keeps by itself: its own answer is the better one


def socket_path(agent: str = "", group: str = "") -> str:
    """Where to ask."""
    if agent or (agent := os.environ.get("HOLDFAST_AGENT", "")):
        return agent
    return str(default_socket(group or os.environ.get("HOLDFAST_GROUP", "") or "default"))


class AgentCall(Line):
    """A conversation. ``ask`` returns the answer or raises the error that the agent named."""

    def __init__(self, path: str, *, program: str = "holdfast", timeout: float = ANSWER_TIMEOUT) -> None:
        self.same_clock = True
        super().__init__(path, program=program, timeout=timeout)

    def ask(self, kind: type[Call], *fields: Any, timeout: float = ANSWER_TIMEOUT) -> Any:
        """The value of the answer, as the call declares it."""
        return self.call(kind, *fields, timeout=timeout)

    def check_welcome(self, before: float, after: float) -> None:
        """F14: deadlines mean nothing between two clocks, of a container with a time namespace and of its host. Most verbs have none."""
        self.same_clock = before <= self.welcome.now <= after

    def unreachable(self, error: OSError | ValueError) -> HoldfastError:
        if not isinstance(error, OSError) or (error.strerror is None and not isinstance(error, TimeoutError)):
            return AddressUnusable(f"--agent {shown_path(self.path)}: {error}; accepted is the path of an agent's socket")
        if isinstance(error, PermissionError):
            return AgentLost(f"the agent at {self.path} belongs to another user: {error.strerror}")
        return AgentLost(
            f"no agent answers at {self.path}; start one with `holdfast agent`, or name its socket with --agent or HOLDFAST_AGENT"
        )

    @staticmethod
    def loss(path: str, why: str, error: str = "") -> HoldfastError:
        if error:
            return error_of(error, why)
        if why == STRANGE:
            return AgentLost(f"what answers at {path} is no agent, or one of another version")
        return AgentLost(f"the agent at {path} ended{'' if why == ENDED else f': {why}'}")

    def silent(self, kind: type[Call], limit: float) -> Timeout:
        return Timeout(f"{kind.__name__}: no answer of the agent at {self.path} within {limit:g} s; is it stopped, or very busy?")


def asked(agent: str, group: str, kind: type[Call], *fields: Any, timeout: float = ANSWER_TIMEOUT) -> Any:
    """One question, one answer."""
    with AgentCall(socket_path(agent, group), timeout=min(timeout, ANSWER_TIMEOUT)) as call:
        return call.ask(kind, *fields, timeout=timeout)


def streamed(agent: str, group: str, count: int, seconds: float, kind: type[Call], *fields: Any) -> Iterator[Any]:
    """The items of a stream as they come: ``count`` of them, for so many ``seconds``; 0: no limit."""
    checked_limits(count, seconds)
    until = now() + seconds if seconds else inf
    with AgentCall(socket_path(agent, group)) as call:
        yield from islice(call.stream(kind, *fields, until=until), count or None)
