"""A keyring without cryptography: a key is a text, its id the first eight letters of it."""

from __future__ import annotations


class FakeKeys:
    """Implements ``KeyringPort``. ``refuse`` is what the next change is answered with."""

    def __init__(self, *ids: str) -> None:
        self.held = list(ids)
        self.refuse: str | None = None
        self.changes: list[tuple[str, str]] = []

    def ids(self) -> tuple[str, ...]:
        return tuple(self.held)

    def install(self, key: str) -> str | None:
        if self._note("install", key) is None and key[:8] not in self.held:
            self.held.append(key[:8])
        return self.refuse

    def use(self, key_id: str) -> str | None:
        if key_id not in self.held:
            return f"key {key_id}: not in this keyring"
        if self._note("use", key_id) is None:
            self.held = [key_id, *(each for each in self.held if each != key_id)]
        return self.refuse

    def remove(self, key_id: str) -> str | None:
        if self.held[:1] == [key_id]:
            return f"key {key_id}: is in use"
        if self._note("remove", key_id) is None:
            self.held = [each for each in self.held if each != key_id]
        return self.refuse

    def _note(self, action: str, key: str) -> str | None:
        self.changes.append((action, key))
        return self.refuse
