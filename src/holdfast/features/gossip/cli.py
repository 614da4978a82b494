"""``holdfast forget``."""

from __future__ import annotations

from typing import Annotated

from holdfast.cli.agent_call import asked
from holdfast.cli.joining import told
from holdfast.cli.options import AGENT, GROUP, JSON, MEMBER
from holdfast.cli.show import shown
from holdfast.features.gossip.calls import Forget


def forget(
    *,
    name: Annotated[str, MEMBER],
    as_json: Annotated[bool, JSON] = False,
    agent: Annotated[str, AGENT] = "",
    group: Annotated[str, GROUP] = "",
) -> None:
    """Give up a dead member for good, in a group whose membership is gossip. It is not tried again, here and at the other members. A member
    that is listed is not given up."""
    asked(agent, group, Forget, name)
    told({"forgotten": True, "name": name}, f"{shown(name)} is forgotten", as_json=as_json)
