"""The flags of ``holdfast run`` that say what its command must hold, one for each kind of hold.

A kind is what the agent calls a kind of grant: ``--hold KIND:NAME`` can ask for every kind, and a flag of its own says it shorter. A
feature declares the kind, its flag and the help of that flag in its ``verbs.py`` (``features/*/verbs.py``, in ``cli.verbs.Offer``). What
the flag asks for may be had in another way, by a grant of another feature: that feature declares the way, and the flags that say more
about it.
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

    ``wanted`` makes of the flag's value and of ``--grace`` what is asked for. ``also_held`` stands in the first sentence of
    `holdfast run --help`, beside "a lock"; ``grace`` is the default of ``--grace``, where it is not a quarter of the hold. ``variables`` of
    the command's environment say which number of the hold each has: "token" or "number". Where the flag's value may be had in other ways
    (``RunWay``), ``by`` is the flag that says in which, and ``way`` is what that flag calls this kind.
    """

    __slots__ = ("also_held", "by", "flag", "grace", "kind", "option", "parameter", "variables", "wanted", "way")

    def __init__(
        self,
        kind: str,
        flag: Flag,
        wanted: Callable[[str, float | None], Wanted],
        *,
        also_held: str = "",
        grace: str = "",
        variables: Mapping[str, str],
        by: Flag | None = None,
        way: str = "",
    ) -> None:
        self.kind, self.flag, self.wanted = kind, flag, wanted
        self.by, self.way = None if by is None else Modifier(by), way
        self.also_held, self.grace, self.variables = also_held, grace, variables
        self.option = flag.names[0]
        self.parameter = self.option.strip("-").replace("-", "_")


class RunWay:
    """Another way to have what the flag of a kind asks for: by a grant of another kind, with the same variables.

    ``option`` is the flag of the kind, ``name`` the way's value of ``by``. ``modifiers`` say more about this way alone; ``says`` is what
    they say, in words. ``wanted`` makes what is asked for of the flag's value, of ``--grace`` and of the modifiers, by parameter.
    """

    __slots__ = ("kind", "modifiers", "name", "option", "says", "wanted")

    def __init__(
        self,
        kind: str,
        option: str,
        name: str,
        wanted: Callable[[str, float | None, Mapping[str, str]], Wanted],
        *,
        modifiers: tuple[Flag, ...],
        says: str,
    ) -> None:
        self.kind, self.option, self.name, self.wanted = kind, option, name, wanted
        self.modifiers, self.says = tuple(map(Modifier, modifiers)), says


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
        module, _, function = self.place.partition(":")
        getattr(import_module(f"holdfast.{module}"), function)(agent, group, value, timeout)


@cache
def kinds() -> tuple[RunKind, ...]:
    """All of them, in the order of the list of features."""
    return tuple(kind for module in rooms("verbs") for kind in module.OFFER.kinds)


@cache
def ways(kind: RunKind) -> tuple[RunWay, ...]:
    """The other ways to have what the flag of this kind asks for, in the order of the list of features."""
    return tuple(way for module in rooms("verbs") for way in module.OFFER.ways if way.option == kind.option)


def modifiers(kind: RunKind) -> tuple[Modifier, ...]:
    """The flags that say more about the flag of this kind."""
    of_ways = tuple(modifier for way in ways(kind) for modifier in way.modifiers)
    return of_ways if kind.by is None else (kind.by, *of_ways)


def variables_of(kind: str) -> Mapping[str, str]:
    """The variables of a hold of this kind, each with the number that it has."""
    found = (each.variables for each in kinds() if kind in (each.kind, *(way.kind for way in ways(each))))
    return {name: which for variables in found for name, which in variables.items()}


@cache
def firsts() -> tuple[RunFirst, ...]:
    """What commands can wait for first, in the order of the list of features."""
    return tuple(first for module in rooms("verbs") for first in module.OFFER.firsts)


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
