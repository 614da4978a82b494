"""A fake of the ``Leadership`` machine: it leads when the test says so, and objects to what the real one could not bear."""

from __future__ import annotations

from collections.abc import Callable

from holdfast.agent.grants.granted import TOKEN_FIRST_MIN
from holdfast.kit.hold import Holder, Lapsed, LossReason


class FakeLeads:
    """Every name is free; a term lasts as long as was asked for."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self.candidacies: dict[str, tuple[float, Holder]] = {}
        self.leading: dict[str, int] = {}
        self.allowed: dict[str, bool] = {}
        self.done: list[str] = []
        self.refuse: Exception | None = None
        self._token = TOKEN_FIRST_MIN

    # What the kind calls.

    def campaign(self, name: str, length: float, holder: Holder) -> None:
        if self.refuse is not None:
            raise self.refuse
        assert name not in self.candidacies, "one candidacy per name"
        self.candidacies[name] = length, holder
        self.allowed[name] = True
        self.done.append(f"campaign {name} {length:g}")

    def withdraw(self, name: str) -> None:
        self._end(name, "withdraw")

    def resign(self, name: str) -> None:
        self._end(name, "resign" if name in self.leading else "withdraw")

    def renew_allowed(self, name: str, allowed: bool) -> None:
        self.allowed[name] = allowed

    def exceed(self, name: str, number: int) -> None:
        self.done.append(f"exceed {name} {number}")

    def _end(self, name: str, what: str) -> None:
        if self.candidacies.pop(name, None) is not None:
            self.leading.pop(name, None)
            self.done.append(f"{what} {name}")

    # What the test does.

    def lead(self, name: str) -> int:
        """The seats granted it."""
        length, holder = self.candidacies[name]
        assert self.allowed[name]
        self._token += 1
        self.leading[name] = self._token
        holder.on_granted(self._token, self._now() + length)
        return self._token

    def extend(self, name: str) -> None:
        length, holder = self.candidacies[name]
        if self.allowed[name]:
            holder.on_extended(self._now() + length)

    def lose(self, name: str, reason: LossReason = Lapsed()) -> None:  # noqa: B008 - a constant
        """As the real one: the candidacy would stand on."""
        del self.leading[name]
        self.candidacies[name][1].on_lost(reason)
        assert not self.allowed.get(name, False), "it would lead again"
