"""``holdfast elect``."""

from __future__ import annotations

from typing import Annotated

from holdfast.cli.agent_call import asked
from holdfast.cli.joining import told
from holdfast.cli.options import AGENT, GROUP, JSON
from holdfast.cli.parser import Word
from holdfast.errors import shown
from holdfast.features.election.calls import Elect


def elect(
    *,
    name: Annotated[str, Word(help="A name that a member leads by election, or stands for.", metavar="NAME")],
    as_json: Annotated[bool, JSON] = False,
    agent: Annotated[str, AGENT] = "",
    group: Annotated[str, GROUP] = "",
) -> None:
    """Ask for an election of a name now: the best-ranked may take over. `holdfast leader NAME` shows who leads then."""
    asked(agent, group, Elect, name)
    told({"began": True, "name": name}, f"an election of {shown(name)} has begun", as_json=as_json)
