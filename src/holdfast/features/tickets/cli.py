"""``holdfast ticket``: who holds what, and holding one by hand. What runs under a ticket is for ``holdfast run``."""

from __future__ import annotations

import os
import select
import sys
from typing import TYPE_CHECKING, Annotated, Any

from holdfast.cli.agent_call import AgentCall, asked, socket_path
from holdfast.cli.exits import FOUND, HOLD_LOST, OK
from holdfast.cli.options import AGENT, GROUP, JSON, TIMEOUT, checked_timeout
from holdfast.cli.parser import Flag, Word
from holdfast.cli.show import print_json, print_json_line, print_table, say
from holdfast.errors import AcquireTimeout, ConfigError, shown
from holdfast.features.tickets.calls import AbandonTicket, PoolView, ReadTickets, StopTicket, TicketHolder, Tickets
from holdfast.features.tickets.verbs import parsed_ticket
from holdfast.net import clock

if TYPE_CHECKING:
    from holdfast.cli.run.holds import GrantHold

READ_TIMEOUT = 60.0  # seconds; an agent that reaches too few seats, or no holder, says so earlier
READ_BYTES = 4096  # of stdin at a time; what is in it does not matter
LOOK_PERIOD = 1.0  # seconds; poll does not count suspended time (F10)
POOL = Word(help="A pool of tickets.", metavar="POOL")
NUMBER = Word(help="A ticket of it, from 0.", metavar="NUMBER")


def ls(
    *,
    pool: Annotated[str, Word(help="A pool (default: all that are known here).", metavar="POOL")] = "",
    read: Annotated[bool, Flag("--read", help="Ask majorities of the seats instead: no hint, but how it is.")] = False,
    as_json: Annotated[bool, JSON] = False,
    agent: Annotated[str, AGENT] = "",
    group: Annotated[str, GROUP] = "",
) -> int:
    """Who holds which ticket, as this agent heard it: a hint. Exit code 1 if none is held."""
    if read and not pool:
        raise ConfigError("--read: needs a POOL")
    found: tuple[PoolView, ...]
    found = (asked(agent, group, ReadTickets, pool, timeout=READ_TIMEOUT),) if read else asked(agent, group, Tickets, pool)
    if as_json:
        print_json({"pools": [_json(each) for each in found]})
    elif rows := [_row(each, holder) for each in found for holder in each.holders]:
        print_table(("POOL", "TICKET", "HOLDER", "TOKEN", "METADATA"), rows)
    if not any(each.holders for each in found):
        about = f"of {shown(pool)} " if pool else ""
        say(f"ticket: no ticket {about}is held, as far as {'majorities of the seats know' if read else 'this agent heard'}")
    return OK if any(each.holders for each in found) else FOUND


def acquire(
    *,
    ticket: Annotated[str, Word(help="A pool and the number of its tickets.", metavar="POOL:N")],
    words: Annotated[tuple[str, ...], Word(help="A command and its words, after --.", metavar="-- CMD...")] = (),
    timeout: Annotated[float | None, TIMEOUT] = None,
    as_json: Annotated[bool, JSON] = False,
    agent: Annotated[str, AGENT] = "",
    group: Annotated[str, GROUP] = "",
) -> int:
    """Hold a ticket around a command, or until stdin is closed. A ticket belongs to a process: with a command this is
    `holdfast run --ticket`, which ends the command in time; without one it prints the ticket's number and token, and ends when stdin does.

    Exit code 124: the ticket was lost, which only the reader of stdout is told. Prefer a command. 2: the pool has another number of
    tickets; 3: too few seats answer, or the agent is late or gone; 4: none was free in time."""
    if words:
        from holdfast.cli.run.verb import run

        return run(words=words, ticket=ticket, timeout=timeout, agent=agent, group=group)
    from holdfast.cli.run.holds import GrantHold

    pool, of = parsed_ticket(ticket)
    until = float("inf") if timeout is None else clock.now() + checked_timeout(timeout)
    with AgentCall(socket_path(agent, group), program="holdfast ticket acquire") as call:
        held = GrantHold(call, "ticket", pool, {"of": of})
        _until_held(held, pool, until)
        number, token = int(held.environ["HOLDFAST_TICKET"]), int(held.environ["HOLDFAST_TOKEN"])
        if as_json:
            print_json_line({"pool": pool, "number": number, "token": token})
        else:
            print(number, token, flush=True)
        lost = _until_stdin_ends(held)
        if lost:
            print(f"holdfast: ticket {number} of {shown(pool)} was lost: {held.why}", file=sys.stderr)
        held.stopped()
    return HOLD_LOST if lost else OK


def release(
    *,
    pool: Annotated[str, POOL],
    number: Annotated[int, NUMBER],
    agent: Annotated[str, AGENT] = "",
    group: Annotated[str, GROUP] = "",
) -> None:
    """Ask the client of this agent that holds a ticket to stop. It is free when that client says so or ends, at its deadline at the latest:
    a ticket is not taken away. `holdfast run` ends its command then. Exit code 1 if it is not held."""
    asked(agent, group, StopTicket, pool, number)


def abandon(
    *,
    pool: Annotated[str, POOL],
    number: Annotated[int, NUMBER],
    holder_is_dead: Annotated[bool, Flag("--holder-is-dead", help="You made sure that nothing acts under this ticket any more.")] = False,
    agent: Annotated[str, AGENT] = "",
    group: Annotated[str, GROUP] = "",
) -> None:
    """Give up a ticket whose guardians are lost for good. A dead holder alone needs no help: its ticket is free after its lease. This
    is for a ticket that no agent can read any more, and refused as long as one can."""
    if not holder_is_dead:
        raise ConfigError(
            "--holder-is-dead: is not given; look at `holdfast ticket ls`, make sure that this holder has ended, and give it:"
            " if it still acts, two will"
        )
    asked(agent, group, AbandonTicket, pool, number, timeout=READ_TIMEOUT)


def _until_held(held: GrantHold, pool: str, until: float) -> None:
    """A first deadline that passed before it was read, or just now, is waited for once more (F9)."""
    held.read()
    while not held.held:
        if held.over:
            why = held.why
            held.again()  # Raises the error that the agent named, if it refused.
            print(f"holdfast: ticket {shown(pool)} is asked for again: {why}", file=sys.stderr)
        left = until - clock.now()
        if left <= 0:
            held.stopped()
            place = held.position
            waited = f", after waiting at position {place}" if place else f": {held.delay}" if held.delay else ""
            text = f"ticket {shown(pool)}: none was free in time{waited}; `holdfast ticket ls {pool}` says who holds them"
            raise AcquireTimeout(text, place)
        _wait(min(left, LOOK_PERIOD), held)
        held.read()


def _until_stdin_ends(held: GrantHold) -> bool:
    """Whether it was lost before."""
    while held.held:
        ready = _wait(min(LOOK_PERIOD, max(0.0, held.deadline - clock.now())), held, sys.stdin)
        if sys.stdin.fileno() in ready and not os.read(sys.stdin.fileno(), READ_BYTES):
            return False
        held.read()
    return True


def _wait(seconds: float, *files: Any) -> set[int]:
    poll = select.poll()
    for file in files:
        if file.fileno() >= 0:
            poll.register(file.fileno(), select.POLLIN)
    return {number for number, _ in poll.poll(seconds * 1000)}


def _row(pool: PoolView, holder: TicketHolder) -> tuple[str, ...]:
    metadata = " ".join(f"{name}={value}" for name, value in sorted(holder.metadata.items()))
    return pool.pool, f"{holder.number} of {pool.of}", str(holder.agent), str(holder.token), metadata


def _json(pool: PoolView) -> dict[str, Any]:
    held = {each.number: each for each in pool.holders}
    tickets = [_ticket(number, held.get(number)) for number in range(max(pool.of, 1 + max(held, default=-1)))]
    return {"pool": pool.pool, "of": pool.of, "is_hint": pool.hint, "tickets": tickets}


def _ticket(number: int, holder: TicketHolder | None) -> dict[str, Any]:
    if holder is None:
        return {"number": number, "holder": None, "token": None, "metadata": {}}
    who = {"name": holder.agent.name, "boot": holder.agent.boot}
    return {"number": number, "holder": who, "token": holder.token, "metadata": dict(holder.metadata)}
