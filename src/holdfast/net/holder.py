"""Which process has a port, as far as Linux shows it to this user: for the text of an error, so nothing here raises."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from holdfast.host import Address

PROC = Path("/proc")
LINES_MAX = 65536  # of one table of sockets: as many as there are ports
PROCESSES_MAX = 4096  # that are looked at; a machine with more gets an answer without a name
DESCRIPTORS_MAX = 65536  # of all of them together: a few tenths of a second, once, before the process ends
NAME_CHARS_MAX = 40
LISTENING = "0A"  # state of a TCP socket, as the kernel writes it
WILDCARDS = ("0.0.0.0", "::")
MAPPED = bytes(10) + b"\xff\xff"  # an IPv4 address among those of IPv6


class Entry(NamedTuple):
    """A bound socket."""

    inode: str
    uid: int


def in_use(where: Address, kinds: tuple[str, ...] = ("udp", "tcp")) -> str:
    """Why an address cannot be bound by sockets of these kinds, with the process that has its port if it can be seen."""
    with suppress(OSError, ValueError, IndexError):
        entries = [entry for kind in kinds for table in (kind, f"{kind}6") for entry in _bound(table, where)]
        if found := _process({entry.inode for entry in entries}):
            return f"the port is in use by {found}; stop it, or choose another port"
        if entries:
            return f"the port is in use by a process of user {entries[0].uid}; stop it, or choose another port"
    return "the port is in use; stop the process that holds it, or choose another port"


def _bound(table: str, where: Address) -> Iterator[Entry]:
    """Sockets of one table that exclude this address; the first line has titles."""
    try:
        with (PROC / "net" / table).open() as file:
            lines = [line for _, line in zip(range(LINES_MAX), file, strict=False)][1:]
    except OSError:
        return
    for line in lines:
        fields = line.split()
        host, port = _address(fields[1])
        state = fields[3]
        if port == where.port and (table.startswith("udp") or state == LISTENING) and _excludes(host, where.host):
            yield Entry(fields[9], int(fields[7]))


def _address(text: str) -> tuple[str, int]:
    """``0100007F:1F90``: words of four bytes, each in the order of this machine, and the port."""
    words, _, port = text.partition(":")
    data = b"".join(int(words[at : at + 8], 16).to_bytes(4, sys.byteorder) for at in range(0, len(words), 8))
    if data.startswith(MAPPED):
        data = data[len(MAPPED) :]
    return socket.inet_ntop(socket.AF_INET if len(data) == 4 else socket.AF_INET6, data), int(port, 16)


def _excludes(one: str, other: str) -> bool:
    return one == other or one in WILDCARDS or other in WILDCARDS


def _process(inodes: set[str]) -> str:
    """The first process that has one of these sockets open; "" if none can be seen."""
    wanted = {f"socket:[{inode}]" for inode in inodes if inode != "0"}
    looked = 0
    pids = sorted(int(each.name) for each in PROC.iterdir() if each.name.isdecimal())[-PROCESSES_MAX:] if wanted else []
    for pid in pids:
        with suppress(OSError):  # It ended meanwhile, or belongs to another user.
            for fd in (PROC / str(pid) / "fd").iterdir():
                looked += 1
                if looked > DESCRIPTORS_MAX:
                    return ""
                with suppress(OSError):
                    if str(fd.readlink()) in wanted:
                        return _named(pid)
    return ""


def _named(pid: int) -> str:
    if pid == os.getpid():
        return "this process itself"
    name = ""
    with suppress(OSError):
        name = (PROC / str(pid) / "comm").read_text(errors="replace").strip()[:NAME_CHARS_MAX]
    return f"process {pid} ({name})" if name.isprintable() and name else f"process {pid}"
