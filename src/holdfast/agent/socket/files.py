"""Open files: how many an agent may need, and how many this process may have.  docs/operations.md (limits, `few_files`)."""

from __future__ import annotations

import resource

from holdfast.net.tcp import INCOMING_MAX, OUTGOING_MAX

CLIENTS_MAX = 1024  # processes of one machine that attach to one agent
FILES_WANTED = 8192  # clients, the pidfds of their grants, peers, and room
FILES_PER_CLIENT = 3  # its connection, its pidfd while it holds something, and that of a command which it runs
HTTP_AND_ROOM = 192  # 128 connections over HTTP; the journal, the log, the sockets of the agent itself
# Members cost none: they share one socket for datagrams, and the streams between agents are bounded, however large the group is.
FILES_BESIDE = INCOMING_MAX + OUTGOING_MAX + HTTP_AND_ROOM
FILES_NEEDED = CLIENTS_MAX * FILES_PER_CLIENT + FILES_BESIDE


def allowed() -> int:
    """What an agent sets its limit to. A process may raise its soft limit up to the hard one without any permission."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    return FILES_WANTED if hard == resource.RLIM_INFINITY else min(FILES_WANTED, hard)


def make_room() -> None:
    """The usual soft limit of 1024 is too low for an agent."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < allowed():
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed(), hard))


def clients_at(files: int) -> int:
    """How many clients, each with a grant and a command, so many open files are enough for."""
    return max(0, min(CLIENTS_MAX, (files - FILES_BESIDE) // FILES_PER_CLIENT))
