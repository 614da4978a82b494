"""Group keys: where they come from, how they are told apart, how they rotate.  docs/wire.md, "Keys".

A group key is 32 random bytes that every agent of the group holds. It encrypts nothing itself: each run of each sender derives
a key of its own from it (HKDF-SHA256, salted with the run id), so that no two runs can ever use one nonce twice.
Key material appears in no ``repr`` and in no error; people and logs see the key id.
"""

from __future__ import annotations

import stat
from base64 import b64decode, b64encode
from hashlib import blake2b
from hmac import compare_digest, digest
from os import fstat, getuid
from pathlib import Path
from secrets import token_bytes
from string import hexdigits

from holdfast.errors import ConfigError, KeyUnusable

KEY_BYTES = 32  # AES-256
ROOT = 0
KEY_ID_BYTES = 4  # enough to tell the few keys of one group apart; a collision is refused when a key is added
KEYS_MAX = 8  # in one keyring: a rotation needs two, a rotation that was never finished a few more
KEY_FILE_BYTES_MAX = 1024  # a user who names a device or a log by mistake gets an answer, not a full memory
INFO = b"holdfast wire 1 run key\0"  # followed by the group's name
ACCEPTED = f"{KEY_BYTES} bytes as base64 or {2 * KEY_BYTES} hexadecimal digits"


class Key:
    """One group key. Its ``id`` is derived from it, is not secret and travels in every header."""

    __slots__ = ("_secret", "id")

    def __init__(self, secret: bytes) -> None:
        if len(secret) != KEY_BYTES:
            raise KeyUnusable(f"key: {len(secret)} bytes; accepted: {KEY_BYTES} bytes")
        self._secret = bytes(secret)
        self.id = blake2b(self._secret, digest_size=KEY_ID_BYTES, person=b"holdfast key id").digest()

    def derive(self, run_id: bytes, group: bytes) -> bytes:
        """The key that one run of one sender seals with: HKDF of one block (RFC 5869), extract and expand."""
        drawn = digest(run_id, self._secret, "sha256")
        return digest(drawn, INFO + group + b"\x01", "sha256")

    def text(self) -> str:
        """The key itself, as ``parse_key`` reads it: for files that only their owner can read, and for sealed messages."""
        return b64encode(self._secret).decode()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Key) and compare_digest(self._secret, other._secret)

    def __hash__(self) -> int:
        return hash(self.id)

    def __repr__(self) -> str:
        return f"<Key {self.id.hex()}>"


class Keyring:
    """The keys a group reads with, and the one it writes with (``primary``). Never changed: each step gives a new one."""

    __slots__ = ("_keys", "primary")

    def __init__(self, primary: Key, *others: Key) -> None:
        self.primary = primary
        self._keys: dict[bytes, Key] = {}
        for key in (primary, *others):
            if self._keys.setdefault(key.id, key) != key:
                raise KeyUnusable(f"key {key.id.hex()}: another key of this keyring has the same id; generate a new one")
        if len(self._keys) > KEYS_MAX:
            raise KeyUnusable(f"keyring: {len(self._keys)} keys; accepted: up to {KEYS_MAX}; remove one that no agent uses any more")

    @property
    def keys(self) -> tuple[Key, ...]:
        """The primary key first."""
        return tuple(self._keys.values())

    def get(self, key_id: bytes) -> Key | None:
        return self._keys.get(key_id)

    def add(self, key: Key) -> Keyring:
        """Step 1 of a rotation: every agent can read it, none writes with it yet."""
        return Keyring(*self.keys, key)

    def use(self, key_id: bytes) -> Keyring:
        """Step 2, when every agent has it: write with it."""
        return Keyring(self._named(key_id), *self.keys)

    def remove(self, key_id: bytes) -> Keyring:
        """Step 3, when no agent writes with it any more."""
        if self._named(key_id) == self.primary:
            raise ConfigError(f"key {key_id.hex()}: is in use; use another one before removing it")
        return Keyring(*(key for key in self.keys if key.id != key_id))

    def __repr__(self) -> str:
        return f"<Keyring {' '.join(key.id.hex() for key in self.keys)}>"

    def _named(self, key_id: bytes) -> Key:
        key = self.get(key_id)
        if key is None:
            raise ConfigError(f"key {key_id.hex()}: not in this keyring; accepted: {', '.join(key.id.hex() for key in self.keys)}")
        return key


def generate() -> str:
    """A new group key as one line of text, ready for a key file."""
    return b64encode(token_bytes(KEY_BYTES)).decode()


def parse_key(text: str, *, source: str = "key") -> Key:
    """A key from its text form. ``source`` is what an error calls it: the text itself is never repeated."""
    word = text.strip()
    try:
        # Base64 of 32 bytes ends in "=", so the two forms cannot be taken for each other.
        secret = bytes.fromhex(word) if set(word) <= set(hexdigits) else b64decode(word, validate=True)
    except ValueError:
        raise KeyUnusable(f"{source}: is neither base64 nor hexadecimal; accepted: {ACCEPTED}") from None
    if len(secret) != KEY_BYTES:
        raise KeyUnusable(f"{source}: holds {len(secret)} bytes; accepted: {ACCEPTED}")
    return Key(secret)


def load_key(path: str | Path) -> Key:
    """The key in a file. Raises ``KeyUnusable`` with one line that says which file and what is wrong with it."""
    return parse_key(_content(path), source=f"key file {path}")


def load_keyring(path: str | Path) -> Keyring:
    """The keys in a file, one per line: the first writes, all of them read."""
    lines = [line for line in _content(path).splitlines() if line.strip()]
    return Keyring(*(parse_key(line, source=f"key file {path}") for line in lines or [""]))


def _content(path: str | Path) -> str:
    source = f"key file {path}"
    try:
        with Path(path).open("rb") as file:
            mode = fstat(file.fileno()).st_mode
            content = file.read(KEY_FILE_BYTES_MAX + 1)
    except (OSError, ValueError) as error:
        raise KeyUnusable(f"{source}: {error.strerror if isinstance(error, OSError) else 'is no path'}") from None
    if stat.S_ISREG(mode) and mode & stat.S_IWOTH:
        raise KeyUnusable(f"{source}: every user may write to it; chmod 600 it and generate a new key")
    if len(content) > KEY_FILE_BYTES_MAX or not content.isascii():
        raise KeyUnusable(f"{source}: is no key file; accepted: {ACCEPTED}")
    return content.decode("ascii")


def exposure(path: str | Path) -> str | None:
    """One line of warning if other users of this machine can read the key file, or some of them put another key there, else None.

    It is a warning and no error, because secrets that containers mount are often readable for all (mode 0444), and belong to the user who
    brings them. One that every user may write to is refused when it is read.
    """
    status = Path(path).stat()
    if status.st_mode & stat.S_IROTH:
        return f"key file {path}: other users of this machine can read it; chmod 600 it"
    if status.st_mode & stat.S_IWGRP:
        return f"key file {path}: group {status.st_gid} may write another key into it; chmod 600 it"
    if status.st_uid not in (getuid(), ROOT):
        return f"key file {path}: it belongs to user {status.st_uid}, who may write another key into it; chown it"
    return None
