"""Where the sockets, locks and small files of this user's agents are when nobody says otherwise."""

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
PLAIN_FILE_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]*")


def runtime_dir(environ: Mapping[str, str] | None = None) -> Path:
    """Where sockets and locks of this user's agents are. It may not exist yet: ``private_directory`` makes it."""
    environ = os.environ if environ is None else environ
    if own := environ.get("HOLDFAST_RUNTIME_DIR"):
        return Path(own)
    if shared := environ.get("XDG_RUNTIME_DIR"):
        return Path(shared) / "holdfast"
    return Path(environ.get("TMPDIR") or "/tmp") / f"holdfast-{os.getuid()}"


def private_directory(path: Path) -> Path:
    """Create it for this user alone; refuse one that somebody else owns or may write to."""
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        _check_private(path)
    except OSError as error:
        if isinstance(error, StorageError):
            raise
        raise StorageError(f"cannot use {path}: {error.strerror}; set HOLDFAST_RUNTIME_DIR to a directory of your own") from None
    return path


def _check_private(path: Path) -> None:
    status = path.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid() or status.st_mode & 0o022:
        raise StorageError(
            f"cannot use {path}: it must be a directory that belongs to user {os.getuid()} and that nobody else may write to; "
            "set HOLDFAST_RUNTIME_DIR to another one"
        )


def group_file(group: str, suffix: str, environ: Mapping[str, str] | None = None) -> Path:
    """A file of one group in the runtime directory: ``default_socket`` and its neighbours."""
    plain = group if len(group) <= GROUP_FILE_CHARS_MAX and PLAIN_FILE_NAME.fullmatch(group) else ""
    # The dot keeps digests apart from groups that are called like one.
    return runtime_dir(environ) / f"{plain or '.' + blake2b(group.encode(), digest_size=12).hexdigest()}{suffix}"


def default_socket(group: str, environ: Mapping[str, str] | None = None) -> Path:
    """Where the machine-wide agent of a group listens for clients. Whoever connects there may tell it a key, so among the files that
    everybody may make the folder must be this user's; one that somebody named is as good as a socket that somebody named."""
    path = group_file(group, ".sock", environ)
    environ = os.environ if environ is None else environ
    if not (environ.get("HOLDFAST_RUNTIME_DIR") or environ.get("XDG_RUNTIME_DIR")):
        with suppress(FileNotFoundError, NotADirectoryError, PermissionError):  # Then nobody can connect there either.
            _check_private(path.parent)
    return path
