"""``holdfast members``."""

from __future__ import annotations

from collections import Counter
from typing import Annotated, Any

from holdfast.cli.agent_call import asked
from holdfast.cli.exits import FOUND, OK
from holdfast.cli.options import AGENT, GROUP, JSON
from holdfast.cli.parser import Flag
from holdfast.cli.shapes import member_json, tags_text, version_of
from holdfast.cli.show import print_json, print_table, say
from holdfast.errors import ConfigError, shown
from holdfast.host import Member, MemberStatus
from holdfast.local.calls import GroupView, Look

STATUSES = tuple(status.name.lower() for status in MemberStatus)
STATUS = Flag("--status", help=f"Only members that are {', '.join(STATUSES)}.", metavar="STATUS", complete=STATUSES)


def members(
    *,
    tag: Annotated[tuple[str, ...], Flag("--tag", help="Only members with this tag; repeat it for more.", metavar="NAME[=VALUE]")] = (),
    status: Annotated[str | None, STATUS] = None,
    limit: Annotated[int, Flag("--limit", help="At most so many of them (0: all).", metavar="N")] = 0,
    as_json: Annotated[bool, JSON] = False,
    agent: Annotated[str, AGENT] = "",
    group: Annotated[str, GROUP] = "",
) -> int:
    """Who is here. Exit code 1 if there is no member, or none that the filters let pass."""
    _check(tag, status, limit)
    view: GroupView = asked(agent, group, Look)
    positions = view.positions or (None,) * len(view.members)  # not every membership has them
    passing = [(member, position) for member, position in zip(view.members, positions, strict=True) if _passes(member, tag, status)]
    found = passing[: limit or None]
    if as_json:
        print_json({"state": view.state, "version": view.version, "me": view.me.id.name, "members": [_json(*each) for each in found]})
    else:
        print_table(("NAME", "ADDRESS", "STATUS", "VERSION", "TAGS"), [_row(member, view) for member, _ in found])
        if found:
            print(_summary(view, len(found)))
    if not found:
        say(_why_none(view))
    return OK if found else FOUND


def _check(tags: tuple[str, ...], status: str | None, limit: int) -> None:
    for text in tags:
        if not text.partition("=")[0]:
            raise ConfigError(f"--tag {shown(text)}: accepted are NAME and NAME=VALUE")
    if status is not None and status not in STATUSES:
        raise ConfigError(f"--status {shown(status)}: accepted are {', '.join(STATUSES)}")
    if limit < 0:
        raise ConfigError(f"--limit {limit}: accepted are whole numbers from 0")


def _summary(view: GroupView, listed: int) -> str:
    """How many there are, whatever was asked for."""
    counts = Counter(member.status for member in view.members)
    of_each = ", ".join(f"{counts[status]} {status.name.lower()}" for status in MemberStatus if counts[status])
    hidden = len(view.members) - listed
    return f"{_counted(len(view.members))}: {of_each}{f'; {hidden} not shown' if hidden else ''}"


def _counted(members: int) -> str:
    return f"{members} member{'' if members == 1 else 's'}"


def _why_none(view: GroupView) -> str:
    if view.state != "member":
        why = f": {view.waits_for}" if view.waits_for else ""
        return f"members: this agent is in no group, its state is {shown(view.state)}{why}; `holdfast doctor` says more"
    return f"members: none of the {len(view.members)} members passes the filters"


def _json(member: Member, position: int | None) -> dict[str, Any]:
    return member_json(member) | {"position": position}


def _row(member: Member, view: GroupView) -> tuple[str, ...]:
    name = f"{member.name} (this one)" if member.id == view.me.id else member.name
    return name, str(member.address), member.status.name.lower(), version_of(member), tags_text(member.tags)


def _passes(member: Member, wanted: tuple[str, ...], status: str | None) -> bool:
    if status and member.status.name.lower() != status:
        return False
    tags = member.tags
    for text in wanted:
        name, equals, value = text.partition("=")
        if name not in tags or (equals and tags[name] != value):
            return False
    return True
