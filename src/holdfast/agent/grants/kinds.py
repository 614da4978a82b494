"""What a kind of grant is: the interface between the law (``grants``) and a protocol that can exclude others.  Spec: foundation 4 (Grants).

A kind knows how something becomes exclusive. It does not know clients, sockets or processes. What a client was told, and
when that binds no longer, is the law's business. Everything here is called in the host's turns.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from holdfast.errors import ConfigError
from holdfast.kit.hold import Claim, Holder


class GrantKind(Protocol):
    """One kind of thing that excludes others."""

    kind: str

    def acquire(self, name: str, options: Mapping[str, Any], holder: Holder) -> Claim:
        """Ask for it. Raises ``ConfigError`` for options that make no sense; they come from a client, and may be anything. What the
        holder is told may come before this returns. Extensions after its deadline are ignored: it has stopped, for good."""


class RefusedKind:
    """A kind that cannot be had with these settings: every client that asks is told which one is missing (F12)."""

    def __init__(self, kind: str, why: str) -> None:
        self.kind, self._why = kind, why

    def acquire(self, name: str, options: Mapping[str, Any], holder: Holder) -> Claim:
        del name, options, holder
        raise ConfigError(self._why)
