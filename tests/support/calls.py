"""Every call that there is, of the agent and of the features in the list, and a decoder for any of them."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec

from holdfast.features import FEATURES
from holdfast.local.calls import OWN, Call
from holdfast.local.table import CallTable, tag_of


def of_features() -> dict[str, tuple[type[Call], ...]]:
    """The calls that each feature declares in its ``calls.py``."""
    found = {}
    for place in FEATURES:
        module = f"{place.partition('.agent:')[0]}.calls"
        if find_spec(module) is not None:
            kinds = vars(import_module(module)).values()
            found[module] = tuple(kind for kind in kinds if isinstance(kind, type) and issubclass(kind, Call) and kind is not Call)
    return found


CALLS = tuple(sorted((*OWN, *(kind for kinds in of_features().values() for kind in kinds)), key=tag_of))
decode = CallTable(CALLS).decode
