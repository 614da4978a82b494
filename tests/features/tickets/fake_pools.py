"""A fake of the ``Tickets`` machine: it gives out tickets when the test says so."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from holdfast.agent.grants.granted import TOKEN_FIRST_MIN
from holdfast.errors import ConfigError
from holdfast.kit.hold import Holder

LEASE = 1.0


class FakeAttempt:
    """One asking."""

    def __init__(self, pools: FakePools, pool: str, n: int, holder: Holder, *, wait: bool, metadata: Mapping[str, str]) -> None:
        self.asked = pool, n, wait, dict(metadata)
        self.holder = holder
        self.allowed = True
        self.number, self.token, self.deadline, self.valid = -1, 0, 0.0, False
        self._pools = pools

    # What the kind calls.

    def cancel(self) -> None:
        self._pools.done.append("cancel")

    def release(self) -> None:
        self._pools.done.append(f"release {self.number}")

    def renew_allowed(self, allowed: bool) -> None:
        self.allowed = allowed

    def publish(self, payload: bytes) -> None:
        self._pools.done.append(f"publish {self.number} {payload!r}")

    # What the test does.

    def own(self, number: int, lease: float = LEASE) -> None:
        self._pools.token += 1
        self.number, self.token = number, self._pools.token
        self.holder.on_granted(self.token, self._pools.now() + lease, number)

    def extend(self) -> None:
        if self.allowed:
            self.holder.on_extended(self._pools.now() + LEASE)


class FakePools:
    """Every pool is there; ``attempts`` are all askings."""

    def __init__(self, now: Callable[[], float]) -> None:
        self.now = now
        self.attempts: list[FakeAttempt] = []
        self.done: list[str] = []
        self.token = TOKEN_FIRST_MIN

    def acquire(self, pool: str, n: int, holder: Holder, *, wait: bool = True, metadata: Mapping[str, str] | None = None) -> FakeAttempt:
        if n > 100:
            raise ConfigError("of: too many")
        self.attempts.append(FakeAttempt(self, pool, n, holder, wait=wait, metadata=metadata or {}))
        return self.attempts[-1]
