"""What is counted in this process and taken without a call: as both spellings see it.  docs/decisions.md H213."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any, Final, Protocol

MICRO_UNITS: Final = 1e6  # costs are counted in whole millionths
COST_MAX: Final = float(1 << 31)


class Tokens(Protocol):
    """What may be taken, in millionths."""

    tokens: int


class Counted(Protocol):
    """Tokens, and until when they may be taken without another look."""

    @property
    def bucket(self) -> Tokens: ...
    @property
    def quick_until(self) -> int:
        """Nanoseconds of the machine's clock."""

    @property
    def lock(self) -> AbstractContextManager[Any]: ...
    def try_slowly(self, cost: float) -> bool:
        """Under the lock: with all looks. Raises ``ConfigError`` for a cost that makes no sense."""
