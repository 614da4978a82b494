"""The keys of an agent: from a file, from the environment, and from rotations that the group agreed on.

The key file is what people write, the keyring file in the state directory what rotations write. A keyring file remembers which keys the
key file had when it was written. As long as the key file has the same, the rotations since then count; as soon as a user
changes the key file, that is the newer word.
"""

from __future__ import annotations

import msgspec

from holdfast.agent.life.lean import lean_imports
from holdfast.config import Config
from holdfast.disk.state_directory import State
from holdfast.errors import KeyUnusable, StorageDamaged
from holdfast.wire.keys import Keyring, load_keyring, parse_key
from holdfast.wire.seal import Plain, Sealed, Sealer

KEYRING_FILE = "keyring"


class Stored(msgspec.Struct):
    """The keyring file."""

    given: tuple[str, ...]  # ids of the keys in the settings when this was written
    keys: tuple[str, ...]  # the keys themselves, the one to write with first


class KeyStore:
    """Which keys to use, now and after a restart."""

    def __init__(self, config: Config, state: State | None) -> None:
        self._state = state
        self._given = given(config)
        self.keyring = self._given
        stored = None if state is None or self._given is None else _read(state)
        if stored is None or self._given is None:
            return
        if stored.given == _ids(self._given):
            self.keyring = Keyring(*(parse_key(key, source="keyring file") for key in stored.keys))
        else:
            self.keep(self._given)  # Or the rotation that it replaces would count again with the key file that it began with.

    def sealer(self, group: str) -> Sealer:
        if self.keyring is None:
            return Plain(group)
        with lean_imports():  # It loads the library that seals.
            return Sealed(group, self.keyring)

    def keep(self, keyring: Keyring, *, given: bool = False) -> None:
        """A rotation, or what the settings say now (``given``): on disk before it is used, or the next life could not read the group."""
        source = keyring if given else self._given
        if self._state is not None:
            stored = Stored(_ids(source), tuple(key.text() for key in keyring.keys))
            self._state.write(KEYRING_FILE, msgspec.json.encode(stored))
        self.keyring, self._given = keyring, source

    def reload(self, config: Config) -> Keyring | None:
        """The keys of the key file, if they are others now; in use as soon as they are kept. Raises ``KeyUnusable``."""
        now = given(config)
        if (now is None) != (self._given is None):
            raise KeyUnusable("key_file: a group cannot change between plain and sealed while it runs; restart all of its agents")
        if now is None or _ids(now) == _ids(self._given):
            return None
        return now


def given(config: Config) -> Keyring | None:
    """The keys of the settings; None for a group without."""
    if config.key_file:
        return load_keyring(config.key_file)
    return Keyring(parse_key(config.key)) if config.key else None


def _ids(keyring: Keyring | None) -> tuple[str, ...]:
    return () if keyring is None else tuple(key.id.hex() for key in keyring.keys)


def _read(state: State) -> Stored | None:
    content = state.read(KEYRING_FILE)
    if content is None:
        return None
    try:
        return msgspec.json.decode(content, type=Stored)
    except msgspec.DecodeError:
        raise StorageDamaged(
            f"{state.path / KEYRING_FILE} is no keyring; restore it from a copy, or remove it to use the key file's keys"
        ) from None
