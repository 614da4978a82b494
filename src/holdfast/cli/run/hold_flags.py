"""The flags of ``holdfast run`` that say what its command must hold, one for each kind of hold.

A kind is what the agent calls a kind of grant: ``--hold KIND:NAME`` can ask for every kind, and a flag of its own says it shorter. A
feature declares the kind, its flag and the help of that flag in its ``verbs.py`` (``features/*/verbs.py``, in ``cli.verbs.Offer``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from typing import NamedTuple

from holdfast.cli.parser import Flag
from holdfast.features import rooms


class Wanted(NamedTuple):
    """What the command must hold."""

    hold: str  # KIND:NAME; "" for membership
    options: Mapping[str, object]
    grace: float | None
    lengthened: bool = False  # the hold was asked for with the grace on top


class Modifier:
    """A flag that says more about what another flag asks for."""

    __slots__ = ("flag", "option", "parameter")

    def __init__(self, flag: Flag) -> None:
        self.flag = flag
        self.option = flag.names[0]
        self.parameter = self.option.strip("-").replace("-", "_")


class RunKind:
    """One kind of grant.

    ``wanted`` makes of the flag's value and of ``--grace`` what is asked for; with ``modifiers``, also of those that were given, by name.
    ``also`` are other kinds that the flag can ask for, with the same variables. ``also_held`` stands in the first sentence of
    `holdfast run --help`, beside "a lock"; ``grace`` is the default of ``--grace``, where it is not a quarter of the hold. ``variables`` of
    the command's environment say which number of the hold each has: "token" or "number".
    """

    __slots__ = ("also", "also_held", "flag", "grace", "kind", "modifiers", "option", "parameter", "variables", "wanted")

    def __init__(
        self,
        kind: str,
        flag: Flag,
        wanted: Callable[..., Wanted],
        *,
        also_held: str = "",
        grace: str = "",
        variables: Mapping[str, str],
        modifiers: tuple[Flag, ...] = (),
        also: tuple[str, ...] = (),
    ) -> None:
        self.kind, self.flag, self.wanted = kind, flag, wanted
        self.modifiers, self.also = tuple(map(Modifier, modifiers)), also
        self.also_held, self.grace, self.variables = also_held, grace, variables
        self.option = flag.names[0]
        self.parameter = self.option.strip("-").replace("-", "_")


class RunFirst:
    """What a command waits for before it runs, and does not hold.

    ``place`` is ``module:function`` below ``holdfast``: it is called with the agent, the group, the value of the flag and the seconds of
    ``--timeout``, and returns when the command may run."""

    __slots__ = ("flag", "option", "parameter", "place")

    def __init__(self, flag: Flag, place: str) -> None:
        self.flag, self.place = flag, place
        self.option = flag.names[0]
        self.parameter = self.option.strip("-").replace("-", "_")

    def wait(self, agent: str, group: str, value: str, timeout: float | None) -> None:
        _found(self.place)(agent, group, value, timeout)


@cache
def kinds() -> tuple[RunKind, ...]:
    """All of them, in the order of the list of features."""
    return tuple(kind for module in rooms("verbs") for kind in module.OFFER.kinds)


@cache
def firsts() -> tuple[RunFirst, ...]:
    """What commands can wait for first, in the order of the list of features."""
    return tuple(first for module in rooms("verbs") for first in module.OFFER.firsts)


def checked(wanted: Wanted) -> Wanted:
    """What flags said. Raises ``ConfigError`` naming the flag for what no agent accepts."""
    kind = wanted.hold.partition(":")[0]
    for module in rooms("verbs"):
        if kind in module.OFFER.checks:
            _found(module.OFFER.checks[kind])(wanted.options)
    return wanted


def _found(place: str) -> Callable[..., None]:
    """Imported when it is needed: a feature's words cost a start of `holdfast` nothing."""
    module, _, function = place.partition(":")
    found: Callable[..., None] = getattr(import_module(f"holdfast.{module}"), function)
    return found


def title() -> str:
    """The first sentence of `holdfast run --help`."""
    held = " or ".join(["a lock", *(kind.also_held for kind in kinds() if kind.also_held)])
    return f"Run a command while holding {held}; stop it before the hold expires."


def grace_default() -> str:
    return "".join(f"with {kind.option} {kind.grace}, else " for kind in kinds() if kind.grace) + "a quarter of the hold"


def flags() -> str:
    """All flags that say what is held, as a list in a sentence."""
    first = ", ".join(kind.option for kind in kinds())
    return f"{first} and --hold" if first else "--hold"
