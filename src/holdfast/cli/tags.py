"""``holdfast tags``: show, set, remove."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from holdfast.cli.agent_call import AgentCall, socket_path
from holdfast.cli.options import AGENT, GROUP, JSON
from holdfast.cli.parser import Word
from holdfast.cli.show import print_json, print_pairs
from holdfast.errors import ConfigError, shown
from holdfast.local.calls import GroupView, Look, SetTags


def show(*, as_json: Annotated[bool, JSON] = False, agent: Annotated[str, AGENT] = "", group: Annotated[str, GROUP] = "") -> None:
    """The tags of this agent."""
    _change({}, agent, group, as_json=as_json)


def put(
    *,
    pairs: Annotated[tuple[str, ...], Word(help="A tag and its value; the value may be empty.", metavar="NAME=VALUE...")],
    as_json: Annotated[bool, JSON] = False,
    agent: Annotated[str, AGENT] = "",
    group: Annotated[str, GROUP] = "",
) -> None:
    """Set tags of this agent, for all members to see. They last until it ends; the settings file keeps them for longer."""
    changes: dict[str, str | None] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or name in changes:
            why = "is set twice" if equals else "has no value"
            raise ConfigError(f"tags: {shown(name)} {why}; accepted are NAME=VALUE, each name once")
        changes[name] = value
    _change(changes, agent, group, as_json=as_json)


def remove(
    *,
    names: Annotated[tuple[str, ...], Word(help="A tag.", metavar="NAME...")],
    as_json: Annotated[bool, JSON] = False,
    agent: Annotated[str, AGENT] = "",
    group: Annotated[str, GROUP] = "",
) -> None:
    """Remove tags of this agent. One that is not there is no mistake."""
    _change(dict.fromkeys(names), agent, group, as_json=as_json)


def _change(changes: Mapping[str, str | None], agent: str, group: str, *, as_json: bool) -> None:
    with AgentCall(socket_path(agent, group)) as call:
        if changes:
            call.ask(SetTags, changes)
        view: GroupView = call.ask(Look)
    tags = dict(sorted(view.me.tags.items()))
    if as_json:
        print_json({"name": view.me.name, "tags": tags})
    else:
        print_pairs(tags)
