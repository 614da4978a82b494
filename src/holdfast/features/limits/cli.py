"""``holdfast limit``: what limits there are, how they stand, changing them, and letting a cost go from a script."""

from __future__ import annotations

import time
from itertools import count as counted
from typing import Annotated, Any

from holdfast.cli.agent_call import GRACE, asked
from holdfast.cli.exits import FOUND, OK
from holdfast.cli.options import AGENT, COUNT, FOR, GROUP, JSON, JSON_LINES, checked_limits
from holdfast.cli.parser import Flag, Word
from holdfast.cli.shapes import plain
from holdfast.cli.show import print_json, print_json_line, print_pairs, print_table
from holdfast.errors import ConfigError, LimitTimeout, shown
from holdfast.features.limits import terms
from holdfast.features.limits.calls import LimitLine, LimitsReport, RemoveLimit, SetLimit, SurveyLimits, TakeLimit, Taken
from holdfast.features.limits.terms import Change
from holdfast.net.clock import now

WATCH_INTERVAL = 1.0  # seconds between two lines of `holdfast limit watch`
# What the terms are called beside what counts now: a penalty lowers the rate, and "auto" stands for a number; shares are of two kinds.
_TERMS = {"rate": "set_rate", "fleet": "set_fleet", "share": "shared_by", "aggregate": "aggregated_by"}
NAME = Word(help="A limit, by its name.", metavar="NAME")


def ls(
    *,
    as_json: Annotated[bool, JSON] = False,
    agent: Annotated[str, AGENT] = "",
    group: Annotated[str, GROUP] = "",
) -> None:
    """The limits of the group, as this agent sees them. Looking does not make the agent take part."""
    report: LimitsReport = asked(agent, group, SurveyLimits)
    if as_json:
        print_json({"takes_part": report.takes_part, "blacklisted": report.blacklisted, "limits": [_json(line) for line in report.lines]})
    else:
        columns = ("LIMIT", "RATE", "BURST", "POLICY", "MEMBERS", "SHARE", "WANTED", "WAITING", "STATE")
        print_table(columns, [_row(line) for line in report.lines])


def show(
    *,
    name: Annotated[str, NAME],
    as_json: Annotated[bool, JSON] = False,
    agent: Annotated[str, AGENT] = "",
    group: Annotated[str, GROUP] = "",
) -> None:
    """One limit: its numbers, this agent's share, and the processes that use it. Exit code 2 if there is none of that name."""
    line = _line(agent, group, name)
    if as_json:
        print_json(_json(line))
        return
    print_pairs(_pairs(line))
    if line.workers:
        rows = [
            (str(each.pid or "-"), each.program, f"{each.rate:g}", f"{each.waiting:g}", "gone" if each.gone else "")
            for each in line.workers
        ]
        print_table(("PID", "PROGRAM", "RATE", "WAITING", ""), rows)


def put(
    *,
    name: Annotated[str, NAME],
    rate: Annotated[float | None, Flag("--rate", help="Cost per second, of all members together.", metavar="R")] = None,
    burst: Annotated[
        float | None, Flag("--burst", help="Cost that may go at once (default: what comes in within a second).", metavar="B")
    ] = None,
    fleet: Annotated[str | None, Flag("--fleet", help="Members that it is divided for, or auto.", metavar="N")] = None,
    policy: Annotated[str, Flag("--policy", help="Of a new limit: fair, strict or exact.", metavar="POLICY")] = "fair",
    agent: Annotated[str, AGENT] = "",
    group: Annotated[str, GROUP] = "",
) -> None:
    """Make a limit, or change its numbers for all members. A new one needs --rate, and with policy strict or exact --fleet."""
    terms.checked_name(name)
    members = None if fleet is None else _fleet(fleet)
    change = Change(rate, burst, members)
    terms.check_change(change)
    report: LimitsReport = asked(agent, group, SurveyLimits)
    if any(line.name == name for line in report.lines):
        if change == Change():
            raise ConfigError("--rate, --burst, --fleet: none is given; accepted is at least one")
        asked(agent, group, SetLimit, name, None, change)
        return
    if rate is None:
        raise ConfigError(f"--rate: is missing, and there is no limit {shown(name)} to change; accepted is a cost per second")
    made = terms.checked_terms(rate, burst, 1.0, policy, members or "auto", "maxmin", 0.05, 0.02, "gossip")
    asked(agent, group, SetLimit, name, made, None)


def remove(
    *,
    name: Annotated[str, NAME],
    agent: Annotated[str, AGENT] = "",
    group: Annotated[str, GROUP] = "",
) -> None:
    """Forget a limit, on all members. Processes that use it get nothing any more. Exit code 2 if there is none of that name."""
    asked(agent, group, RemoveLimit, terms.checked_name(name))


def watch(
    *,
    name: Annotated[str, NAME],
    count: Annotated[int, COUNT] = 0,
    seconds: Annotated[float, FOR] = 0.0,
    as_json: Annotated[bool, JSON_LINES] = False,
    agent: Annotated[str, AGENT] = "",
    group: Annotated[str, GROUP] = "",
) -> None:
    """Print how a limit stands, once a second."""
    checked_limits(count, seconds)
    began = now()
    for number in counted(1):
        line = _line(agent, group, name)
        if as_json:
            print_json_line({"at": time.time(), **_json(line)})
        else:
            text = (
                f"share {line.share:.4g} of {line.rate:.4g}, told {line.told:.4g}, wants {line.demand:.4g}, all want {line.aggregate:.4g}"
            )
            print(f"{time.strftime('%H:%M:%S')}  {text}, {line.waiting:.4g} waits, {_state(line)}", flush=True)
        if number == count or (seconds and now() + WATCH_INTERVAL > began + seconds):
            return
        time.sleep(WATCH_INTERVAL)


def attempt(
    *,
    name: Annotated[str, NAME],
    cost: Annotated[float, Flag("--cost", help="How much is to go.", metavar="N")] = 1.0,
    wait: Annotated[float, Flag("--wait", help="Wait at most so many seconds (exit code 4).", metavar="SECONDS")] = 0.0,
    as_json: Annotated[bool, JSON] = False,
    agent: Annotated[str, AGENT] = "",
    group: Annotated[str, GROUP] = "",
) -> int:
    """Let a cost go, if it may (exit 0: go, 1: not now, 4: not in time). The agent keeps a bucket for its scripts, which is empty when the
    first one asks."""
    taken = _take(agent, group, name, cost, wait)
    if as_json:
        retry_after = None if taken.went or taken.retry_after < 0 else taken.retry_after
        print_json({"went": taken.went, "retry_after": retry_after})
    if taken.went:
        return OK
    if wait > 0:
        raise LimitTimeout(f"limit {shown(name)}: no room for a cost of {cost:g} within {wait:g} s")
    return FOUND


def take_first(agent: str, group: str, name: str, timeout: float | None) -> None:
    """``holdfast run --limit``: returns when a cost of 1 has gone."""
    end_at = now() + timeout if timeout is not None else None
    while True:
        wait = terms.WAIT_MAX if end_at is None else max(0.0, min(terms.WAIT_MAX, end_at - now()))
        if _take(agent, group, name, 1.0, wait).went:
            return
        if end_at is not None and now() >= end_at:
            raise LimitTimeout(f"limit {shown(name)}: no room for a cost of 1 within {timeout:g} s")


def _take(agent: str, group: str, name: str, cost: float, wait: float) -> Taken:
    terms.checked_name(name)
    terms.checked_cost(cost)
    limit = terms.number(wait, "--wait", f"a number of seconds from 0 to {terms.WAIT_MAX:g}", 0.0, terms.WAIT_MAX)
    taken: Taken = asked(agent, group, TakeLimit, name, cost, limit, timeout=limit + GRACE + 4.0)
    return taken


def _line(agent: str, group: str, name: str) -> LimitLine:
    report: LimitsReport = asked(agent, group, SurveyLimits, terms.checked_name(name))
    return report.lines[0]


def _fleet(text: str) -> int:
    return terms.checked_fleet(int(text) if text.isascii() and text.isdigit() else text)


def _row(line: LimitLine) -> tuple[str, ...]:
    given = line.terms
    members = f"{line.members} of {line.fleet}" if line.state else ""
    mine = (f"{line.share:.4g}", f"{line.aggregate:.4g}", f"{line.waiting:.4g}") if line.state else ("", "", "")
    return line.name, f"{given.rate:g}", f"{given.burst:g}", given.policy, members, *mine, _state(line)


def _state(line: LimitLine) -> str:
    if not line.state:
        return "not used by this agent"
    words = [line.state if line.panic_for is None else f"{line.state} for {line.panic_for:.1f} s"]
    if line.penalty_for:
        words.append(f"slowed down for another {line.penalty_for:.1f} s")
    if line.starved_for is not None:
        words.append(f"starved for {line.starved_for:.1f} s")
    return ", ".join(words)


def _pairs(line: LimitLine) -> dict[str, str]:
    given = line.terms
    fleet = f"{line.fleet} members" if line.state else ("auto" if not given.fleet else f"{given.fleet} members")
    pairs = {
        "limit": line.name,
        "rate": f"{given.rate:g} per second, at most {given.burst:g} at once",
        "policy": f"{given.policy}, shared by {given.share}, divided for {fleet}",
        "version": f"{line.version}, by {line.by}",
        "state": _state(line),
    }
    if line.state:
        over = "the agreed view" if line.over == "views" else "the member list, which members may see differently"
        pairs["stands on"] = f"{over}: {line.members} members"
        pairs["share"] = f"{line.share:.6g} per second; the processes of this agent may use {line.told:.6g}"
        pairs["wanted"] = f"{line.demand:.6g} here, {line.aggregate:.6g} by all members"
        pairs["waiting"] = f"{line.waiting:.6g}"
    if line.quota is not None:
        pairs["quota"] = f"{line.quota:.3f} of one member's part"
    return pairs


def _json(line: LimitLine) -> dict[str, Any]:
    fields = {name: plain(getattr(line, name)) for name in line.__struct_fields__ if name not in {"terms", "workers"}}
    given = {_TERMS.get(name, name): getattr(line.terms, name) for name in line.terms.__struct_fields__}
    workers = [{name: getattr(each, name) for name in each.__struct_fields__} for each in line.workers]
    return {"name": fields.pop("name"), **given, **fields, "workers": workers}
