"""``holdfast owner``."""

from __future__ import annotations

from typing import Annotated

from holdfast.cli.agent_call import AgentCall, socket_path
from holdfast.cli.exits import FOUND, OK
from holdfast.cli.options import AGENT, GROUP, JSON
from holdfast.cli.parser import Word
from holdfast.cli.show import print_json, shown
from holdfast.errors import ConfigError, NotAMember
from holdfast.host import Member
from holdfast.local.calls import GroupView, Look, Owned, Owns
from holdfast.net.clock import now


def owner(
    *,
    key: Annotated[str, Word(help="Any text: the name of what has an owner.", metavar="KEY")],
    as_json: Annotated[bool, JSON] = False,
    agent: Annotated[str, AGENT] = "",
    group: Annotated[str, GROUP] = "",
) -> int:
    """Print the member that a key belongs to. Exit code 0 if it is this agent and may act for the key now, 1 if not."""
    with AgentCall(socket_path(agent, group)) as call:
        view: GroupView = call.ask(Look)
        owned = _owned(call, key)
    found = _owner(view, key)
    left = 0.0 if owned is None else max(0.0, owned.until - now())
    if as_json:
        grant = None if owned is None or not left else {"token": owned.token, "left": left}
        print_json({"key": key, "owner": found.name, "address": str(found.address), "grant": grant})
    else:
        print(shown(found.name))
    return OK if left else FOUND


def _owned(call: AgentCall, key: str) -> Owned | None:
    """None also where no member may act for a key, but members have positions: there the owner is a hint alone."""
    try:
        owned: Owned | None = call.ask(Owns, key.encode())
    except ConfigError as error:
        if not str(error).startswith("membership:"):
            raise
        return None
    return owned


def _owner(view: GroupView, key: str) -> Member:
    from holdfast.features.ring.protocol.ids import RingId, owner_of, position_of

    places = sorted(RingId(position, at) for at, position in enumerate(view.positions))
    found = owner_of(places, position_of(key))
    if found is None and view.members:
        raise ConfigError("owner: the membership of this group has no owners of keys")
    if found is None:
        raise NotAMember(f"owner: this agent is in no group, its state is {view.state!r}; no key has an owner that it knows")
    return view.members[found.inc]
