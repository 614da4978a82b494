"""``holdfast counter``: show, add."""

from __future__ import annotations

from typing import Annotated

from holdfast.cli.agent_call import asked
from holdfast.cli.exits import FOUND, OK
from holdfast.cli.options import AGENT, GROUP, JSON
from holdfast.cli.parser import Flag, Word
from holdfast.cli.show import print_json, print_pairs
from tests.toy.counter.calls import CounterAdd, CounterValues

NAME = Word(help="A counter.", metavar="NAME")


def show(*, as_json: Annotated[bool, JSON] = False, agent: Annotated[str, AGENT] = "", group: Annotated[str, GROUP] = "") -> int:
    """The counters, as this agent knows them. Exit code 1 if there is none."""
    values: dict[str, int] = asked(agent, group, CounterValues)
    if as_json:
        print_json({"counters": values})
    else:
        print_pairs({name: str(value) for name, value in sorted(values.items())})
    return OK if values else FOUND


def add(
    *,
    name: Annotated[str, NAME],
    by: Annotated[int, Flag("--by", help="How much.", metavar="N")] = 1,
    agent: Annotated[str, AGENT] = "",
    group: Annotated[str, GROUP] = "",
) -> None:
    """Add to a counter, and print its value. Other members hear of it within a second or two."""
    print(asked(agent, group, CounterAdd, name, by))
