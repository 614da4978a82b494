"""What a process has before it speaks, and keeps from life to life: its locks, its name, its boot number, its keys.

Spec: foundation F1 (name and boot), F6 (what the lock proves), F12 (one agent per machine). Everything here may wait for the disk, so it is
done before the loop has anything else to do.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from math import isfinite
from pathlib import Path
from secrets import choice

from holdfast.agent.life.key_store import KeyStore
from holdfast.agent.life.machine_lock import MachineLock
from holdfast.agent.life.told import Told, this_clock
from holdfast.agent.membership import kind_of
from holdfast.config import Config, default_socket, group_file, is_loopback, private_directory, runtime_dir
from holdfast.disk.horizon import Horizon
from holdfast.disk.places import check_folder, group_state
from holdfast.disk.state_directory import State
from holdfast.errors import AddressUnusable, ConfigError, StorageDamaged, StorageError, StorageLocked
from holdfast.host import Address, NodeId, Storage
from holdfast.kit.slots import Slot, find_slots, literal, own_slot
from holdfast.net import clock
from holdfast.wire.codec import NAME_BYTES_MAX
from holdfast.wire.keys import exposure

NAME_FILE = "name"
LEFT_FILE = "left"  # holds LEFT when the last life left its group in good order, else for how many seconds it may have told clients
LEFT = b"left\n"
TOLD_FILE = "told"  # until when clients were told that they may act (H161)
EXACTLY = " told"  # after the seconds: that file is kept by the life that wrote this
EXACTLY_BYTES = f"{EXACTLY}\n".encode()
OWN_SEAT = "own"  # the directory of a machine's one agent; those of others are called by an address
TOLD_FOR_MAX = 3600.0  # seconds; no lease is as long, and a damaged file shall not stop an agent for ever
DRAWN_LETTERS = 6
LETTERS = "abcdefghijklmnopqrstuvwxyz"
MACHINE_ID = Path("/etc/machine-id")
MACHINE_CHARS_MAX = 64


class Home:
    """Locks, name, boot and keys of one process."""

    def __init__(self, config: Config, state: State | None, keys: KeyStore, socket_path: str, *, no_state: str = "") -> None:
        self.config, self.state, self.keys, self.socket_path = config, state, keys, socket_path
        self.no_state = no_state  # why a seat has no directory, although the settings do not say that it should have none
        self.horizon: Horizon | None = None  # of the one agent of its machine (H154)
        self._held = ExitStack()
        stored = None if state is None else state.read(NAME_FILE)
        kept = "" if stored is None else stored.decode("utf-8", "replace").strip()
        self.name = config.name or kept or drawn_name()
        self.boot = int(time.time() * 1000) if state is None else state.boot
        # F6: this directory led a life under this name before, and its lock says that it is over. Of others of the name it says nothing.
        self.sole_life = state is not None and kept == self.name
        self._told_for = kind_of(config).told_for(config)
        # F14: what the life before may have told its clients, under whatever name and lease, ends within so many seconds from now.
        self._told = None if state is None else Told(state.path / TOLD_FILE, this_clock())
        self.wait = self._former_told_for()
        if self._told is not None:
            self._told.begin(clock.now() + self.wait)
        if state is not None and kept != self.name:
            state.write(NAME_FILE, f"{self.name}\n".encode())
        self.note_joining()

    @classmethod
    def open(cls, config: Config, environ: Mapping[str, str]) -> Home:
        """Take the locks and begin a life. Raises ``StorageLocked`` and its kin, and then holds nothing."""
        with ExitStack() as held:
            socket_path = config.socket or str(default_socket(config.group, environ))
            if config.alone or not config.socket:
                private_directory(runtime_dir(environ))
            if config.alone:
                held.callback(MachineLock.take(group_file(config.group, ".lock", environ), socket_path).close)
            state, no_state = _state(config, environ)
            if state is not None:
                held.callback(state.close)
            home = cls(config, state, KeyStore(config, state), socket_path, no_state=no_state)
            if config.alone and state is not None:
                home.horizon = Horizon.open(group_file(config.group, ".until", environ), former=state.former, life=state.boot)
            if home.horizon is not None:
                held.callback(home.horizon.close)
            home._held = held.pop_all()
            return home
        raise AssertionError("a stack that swallows errors")

    @property
    def warnings(self) -> tuple[str, ...]:
        """About the files of this agent, one line each: what others of this machine could do with them (docs/security.md)."""
        key = self.config.key_file and exposure(self.config.key_file)
        folder = check_folder(Path(self.socket_path).parent) if self.config.socket else ()
        return (*((key,) if key else ()), *(() if self.state is None else self.state.warnings), *folder)

    @property
    def me(self) -> NodeId:
        return NodeId(self.name, self.boot)

    @property
    def storage(self) -> Storage | None:
        return None if self.state is None else self.state.journal

    def begin_again(self, above: int) -> None:
        """F5: a life above one that a member remembers."""
        self.boot = max(above, self.boot) + 1 if self.state is None else self.state.begin_again(above)
        if self.horizon is not None:
            self.horizon.begin_again(self.boot)

    def note_left(self) -> None:
        """For the next life: no client acts under anything that this one told. A disk that refuses costs that one some time, nothing
        else."""
        with suppress(StorageError):
            self._note(LEFT)

    def note_joining(self) -> None:
        """For the next life: clients may be told something from now on. Raises StorageError; then they must not be."""
        written = EXACTLY if self._told is not None and self._told.is_kept else ""
        self._note(f"{max(self.wait, self._told_for):.6f}{written}\n".encode())

    def note_told(self, until: float) -> bool:
        """Before a client is told that it may act until then. False: it must not be told."""
        return self._told is None or self._told.note(until)

    def _note(self, text: bytes) -> None:
        if self.state is not None and self.state.read(LEFT_FILE) != text:
            self.state.write(LEFT_FILE, text)

    def _former_told_for(self) -> float:
        text = LEFT if self.state is None else self.state.read(LEFT_FILE)
        if text is None or text == LEFT:
            return 0.0
        # A release that does not keep the other file wrote no such word here, and then what stands in that file is older.
        exactly = self._told.until if self._told is not None and text.endswith(EXACTLY_BYTES) else None
        with suppress(ValueError):
            if isfinite(seconds := float((text.split() or [b""])[0])):
                seconds = min(TOLD_FOR_MAX, max(seconds, 0.0))
                return seconds if exactly is None else min(seconds, max(0.0, exactly - clock.now()))
        return self._told_for  # As releases wrote it that did not say how long.

    def close(self) -> None:
        if self._told is not None:
            self._told.close()
        self._held.close()


def drawn_name() -> str:
    """Host name and six letters (F1)."""
    letters = "".join(choice(LETTERS) for _ in range(DRAWN_LETTERS))
    host = "".join(c for c in socket.gethostname() if c.isascii() and (c.isalnum() or c in "-."))
    return f"{host[: NAME_BYTES_MAX - DRAWN_LETTERS - 1] or 'agent'}-{letters}"


def machine() -> str:
    """What tells this machine from others, for a seat's journal (F13)."""
    try:
        found = MACHINE_ID.read_text().strip()
    except (OSError, UnicodeDecodeError):
        found = ""
    return (found or socket.gethostname())[:MACHINE_CHARS_MAX]


def _state(config: Config, environ: Mapping[str, str]) -> tuple[State | None, str]:
    """The directory, and why a seat has none. A seat must remember, so it gets one also if the settings name none (H96)."""
    if config.state_dir:
        return State.open(Path(os.path.expanduser(config.state_dir))), ""  # noqa: PTH111 - Path's own raises where there is no home
    if config.alone:
        return State.open(_own_place(config, environ)), ""
    address = own_seat(config)
    if address is None:
        return None, ""
    try:
        return State.open(group_state(config.group, str(address), environ)), ""
    except StorageLocked as error:
        # Its place is named by its address, so the process there is the agent of that address: a program that chose it may choose again.
        raise AddressUnusable(f"bind: {address} is in use: {error}") from None
    except StorageDamaged:
        raise
    except StorageError as error:
        return None, str(error)  # Membership needs no directory; a client that asks for something exclusive is told so.


def _own_place(config: Config, environ: Mapping[str, str]) -> Path:
    """Of the one agent of this machine: the same for all of this user's programs, whatever runtime directory each of them was given by its
    session, so that two of them never found two seats (F12). A runtime directory that was named is a world of its own."""
    if not environ.get("HOLDFAST_RUNTIME_DIR"):
        with suppress(StorageError):
            return group_state(config.group, OWN_SEAT, environ)
    return group_file(config.group, ".state", environ)


def own_seat(config: Config) -> Address | None:
    """The address at which this agent is a seat, as far as the settings say it."""
    own = literal(config.advertise or config.bind)
    if own is None:
        return None
    try:
        slots = slots_of(config, config.name, own)
    except ConfigError:
        return None
    number = own_slot(slots, config.name, own)
    return None if number is None else slots[number].address


def slots_of(config: Config, own_name: str, own_address: Address) -> tuple[Slot, ...]:
    """The slots of the group as the settings name them (F12). Raises ``ConfigError`` if they do not say who the seats are."""
    return find_slots(
        seats=config.seats,
        seeds=config.seeds,
        key=config.has_key,
        loopback=is_loopback(config.bind),
        own_name=own_name,
        own_address=own_address,
    )
