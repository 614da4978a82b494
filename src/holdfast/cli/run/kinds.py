"""What ``holdfast run`` can hold for its command, as the features offer it.

A kind is what the agent calls a kind of grant, with a flag of its own: ``--hold KIND:NAME`` can ask for every kind, and the flag says it
shorter. Features declare kinds in their ``verbs.py`` (``cli.verbs.Offer``).
"""

from __future__ import annotations

from functools import cache

from holdfast.cli.run.kind import RunKind
from holdfast.features import rooms


@cache
def kinds() -> tuple[RunKind, ...]:
    """All of them, in the order of the list of features."""
    return tuple(kind for module in rooms("verbs") for kind in module.OFFER.kinds)


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
