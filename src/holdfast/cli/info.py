"""``holdfast info``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from holdfast.cli.agent_call import asked
from holdfast.cli.options import AGENT, GROUP, JSON
from holdfast.cli.show import print_json, print_pairs
from holdfast.local.calls import Info


def info(*, as_json: Annotated[bool, JSON] = False, agent: Annotated[str, AGENT] = "", group: Annotated[str, GROUP] = "") -> None:
    """What the agent is: its settings, its state, its counters."""
    found: dict[str, Any] = asked(agent, group, Info)
    if as_json:
        print_json(found)
    else:
        print_pairs(dict(_flat("", found)))


def _flat(above: str, table: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """``config.name  web-3`` and so on: one line for each value."""
    for name, value in table.items():
        if isinstance(value, Mapping) and value:
            yield from _flat(f"{above}{name}.", value)
        else:
            yield f"{above}{name}", ", ".join(map(str, value)) if isinstance(value, list | tuple) else "" if value is None else str(value)
