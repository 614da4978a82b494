"""One kind of hold that ``holdfast run`` can have for its command, as a feature declares it in its ``verbs.py``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from holdfast.cli.words import Flag


class Wanted(NamedTuple):
    """What the command must hold."""

    hold: str  # KIND:NAME; "" for membership
    options: Mapping[str, object]
    grace: float | None
    lengthened: bool = False  # the hold was asked for with the grace on top


class RunKind:
    """One kind of grant.

    ``wanted`` makes of the flag's value and of ``--grace`` what is asked for. ``also_held`` stands in the first sentence of
    `holdfast run --help`, beside "a lock"; ``grace`` is the default of ``--grace``, where it is not a quarter of the hold. ``variables`` of
    the command's environment say which number of the hold each has: "token" or "number".
    """

    __slots__ = ("also_held", "flag", "grace", "kind", "option", "parameter", "variables", "wanted")

    def __init__(
        self,
        kind: str,
        flag: Flag,
        wanted: Callable[[str, float | None], Wanted],
        *,
        also_held: str = "",
        grace: str = "",
        variables: Mapping[str, str],
    ) -> None:
        self.kind, self.flag, self.wanted = kind, flag, wanted
        self.also_held, self.grace, self.variables = also_held, grace, variables
        self.option = flag.names[0]
        self.parameter = self.option.strip("-").replace("-", "_")
