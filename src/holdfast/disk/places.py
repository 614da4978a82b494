"""Where the sockets, locks and small files of this user's agents are when the settings do not say otherwise."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path

from holdfast.errors import StorageError

GROUP_FILE_CHARS_MAX = 48  # longer names of groups are a digest in the names of files: a socket's path has 107 bytes in all
ADVICE = "set HOLDFAST_RUNTIME_DIR to a directory of your own"
ROOT = 0
PLAIN_FILE_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]*")


def runtime_dir(environ: Mapping[str, str] | None = None) -> Path:
    """Where sockets and locks of this user's agents are. It may not exist yet: ``private_directory`` makes it."""
    environ = os.environ if environ is None else environ
    if own := environ.get("HOLDFAST_RUNTIME_DIR"):
        return Path(own)
    if shared := environ.get("XDG_RUNTIME_DIR"):
        return Path(shared) / "holdfast"
    return Path(environ.get("TMPDIR") or "/tmp") / f"holdfast-{os.getuid()}"


def private_directory(path: Path, advice: str = ADVICE) -> Path:
    """Create it for this user alone; refuse one that another user owns or may write to."""
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        _check_private(path, advice)
    except OSError as error:
        if isinstance(error, StorageError):
            raise
        raise StorageError(f"cannot use {path}: {error.strerror}; {advice}") from None
    return path


def _check_private(path: Path, advice: str = ADVICE) -> None:
    status = path.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid() or status.st_mode & 0o022:
        raise StorageError(
            f"cannot use {path}: it must be a directory that belongs to user {os.getuid()} and that no other user may write to; {advice}"
        )


def check_state(path: Path) -> tuple[str, ...]:
    """What is wrong with a state directory: a user who may change it decides what this agent promised. Raises ``StorageError`` for what
    other users could do, and returns lines of warning for what only the group could: volumes that are mounted for a group are so (H176)."""
    warnings: list[str] = []
    try:
        status = path.stat()  # The directory itself may be reached by a symlink: the user who named it named that too.
        if not stat.S_ISDIR(status.st_mode):
            raise StorageError(f"cannot use the state directory {path}: it is no directory")
        warnings += _check_own(path, status, "the state directory")
        for file in sorted(path.iterdir()):
            if file.is_symlink():
                raise StorageError(f"cannot use the state directory {path}: {file.name} in it is a symlink; put the file itself there")
            warnings += _check_own(file, file.lstat(), "in the state directory")
    except OSError as error:
        if isinstance(error, StorageError):
            raise
        raise StorageError(f"cannot use the state directory {path}: {error.strerror or error}") from None
    return tuple(warnings)


def check_folder(path: Path) -> tuple[str, ...]:
    """Lines of warning about the folder of a socket that the settings named: a user who may put a file there can answer for it."""
    try:
        status = path.stat()
    except OSError:
        return ()  # Then nothing can be served there either, and the attempt says so.
    shared = stat.S_IMODE(status.st_mode) & (stat.S_IWOTH | stat.S_ISVTX) == stat.S_IWOTH
    if shared or status.st_uid not in (os.getuid(), ROOT):
        who = "every user may write to it" if shared else f"it belongs to user {status.st_uid}"
        return (f"the folder {path} of the socket: {who}, and could put another socket in its place; use a directory of your own",)
    return ()


def _check_own(path: Path, status: os.stat_result, what: str) -> tuple[str, ...]:
    """This user's, or root's, who may do everything anyway."""
    if status.st_uid not in (os.getuid(), ROOT):
        raise StorageError(f"cannot use {path} ({what}): it belongs to user {status.st_uid}; chown it, or set state_dir")
    if status.st_mode & stat.S_IWOTH:
        raise StorageError(f"cannot use {path} ({what}): every user may write to it; chmod o-w it when you know that no other user did")
    if status.st_mode & stat.S_IWGRP:
        return (f"{path} ({what}): group {status.st_gid} may write to it, and so take back what this agent promised; chmod g-w it",)
    return ()


def state_home(environ: Mapping[str, str] | None = None) -> Path:
    """Below which agents keep what must not be forgotten, where the settings do not say otherwise. Not the runtime directory: that one is
    emptied."""
    environ = os.environ if environ is None else environ
    if shared := environ.get("XDG_STATE_HOME"):
        return Path(shared) / "holdfast"
    home = environ.get("HOME") or os.path.expanduser("~")  # noqa: PTH111 - Path's own raises where there is no home
    return Path(home) / ".local" / "state" / "holdfast"


def group_state(group: str, what: str, environ: Mapping[str, str] | None = None) -> Path:
    """The state directory of one agent of a group: ``what`` names it among those of this user. Made for this user alone; raises
    ``StorageError`` where that cannot be."""
    home = state_home(environ)
    if not home.is_absolute():
        raise StorageError(f"cannot use {home}: it is no absolute path; set state_dir, or XDG_STATE_HOME")
    path = home
    for part in ("", _file_name(group), what):  # One by one: a user who may write to a folder above could put another one in its place.
        path = private_directory(path / part, "set state_dir, or XDG_STATE_HOME")
    return path


def group_file(group: str, suffix: str, environ: Mapping[str, str] | None = None) -> Path:
    """A file of one group in the runtime directory: ``default_socket`` and its neighbours."""
    return runtime_dir(environ) / f"{_file_name(group)}{suffix}"


def _file_name(group: str) -> str:
    if len(group) <= GROUP_FILE_CHARS_MAX and PLAIN_FILE_NAME.fullmatch(group):
        return group
    return f".{blake2b(group.encode(), digest_size=12).hexdigest()}"  # The dot keeps digests apart from groups that are called like one.


def default_socket(group: str, environ: Mapping[str, str] | None = None) -> Path:
    """Where the machine-wide agent of a group listens for clients. A client that connects there may tell it a key, so among the files that
    every user may make the folder must be this user's; one that the settings named is as good as a socket that the settings named."""
    path = group_file(group, ".sock", environ)
    environ = os.environ if environ is None else environ
    if not (environ.get("HOLDFAST_RUNTIME_DIR") or environ.get("XDG_RUNTIME_DIR")):
        with suppress(FileNotFoundError, NotADirectoryError, PermissionError):  # Then no client can connect there either.
            _check_private(path.parent)
    return path
