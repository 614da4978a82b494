"""What the glue needs of a limit (``group.limit``), in both spellings, and how long a refused caller is asked to wait.  Spec: limits 10."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from math import isfinite
from typing import Protocol

from holdfast import ConfigError

WAIT_MIN, WAIT_MAX = 1.0, 60.0  # seconds: less is no time for a caller far away, and a share is another one long before more has passed


class AsyncLimiter(Protocol):
    """A limit of ``holdfast``, as far as it is used here."""

    @property
    def share(self) -> float: ...
    def try_acquire(self, cost: float = 1) -> bool: ...
    def acquire(self, cost: float = 1, *, timeout: float | None = None) -> Awaitable[object]: ...
    def penalize(self, seconds: float, *, factor: float = 0.5) -> Awaitable[object]: ...


class Limiter(Protocol):
    """A limit of ``holdfast.sync``, as far as it is used here."""

    @property
    def share(self) -> float: ...
    def try_acquire(self, cost: float = 1) -> bool: ...
    def acquire(self, cost: float = 1, *, timeout: float | None = None) -> object: ...
    def penalize(self, seconds: float, *, factor: float = 0.5) -> object: ...


class AsyncGroup(Protocol):
    """A group of ``holdfast``."""

    @property
    def limit(self) -> Callable[..., AsyncLimiter]: ...


class Group(Protocol):
    """A group of ``holdfast.sync``."""

    @property
    def limit(self) -> Callable[..., Limiter]: ...
    def leave(self) -> object: ...


def wait_for(share: float, cost: float) -> float:
    """Seconds in which this process' share lets so much cost go: what is asked for and what waits before it."""
    return min(WAIT_MAX, max(WAIT_MIN, cost / share)) if share > 0 else WAIT_MIN


def check_positive(value: float, field: str) -> None:
    if not (isfinite(value) and value > 0):
        raise ConfigError(f"{field}: {value}; accepted is a number above 0")


def check_seconds(value: float, field: str) -> None:
    if not (isfinite(value) and value >= 0):
        raise ConfigError(f"{field}: {value}; accepted are seconds, 0 and more")
