"""What can be seen without asking a peer: the settings, the machine, the seats.  Part of ``doctor``; docs/operations.md has the codes."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.agent.observe.findings import error, note, warning
from holdfast.agent.observe.seat_views import seat_views
from holdfast.agent.socket.files import CLIENTS_MAX, FILES_NEEDED, allowed, clients_at
from holdfast.config import Config, is_loopback
from holdfast.kit.delay import Delay
from holdfast.kit.seats import SeatState
from holdfast.kit.slots import NO_SEATS
from holdfast.local.calls import Finding, SeatView
from holdfast.local.verdict import verdict
from holdfast.net import clock
from holdfast.net.bind import RECEIVE_BYTES
from holdfast.wire.keys import exposure

if TYPE_CHECKING:
    from holdfast.agent.life.agent import Agent

FORGETFUL = ("tmpfs", "ramfs")  # file systems that a reboot empties
LARGE_GROUP = 64  # members from which a default receive buffer overflows in a pause of one lease
SEVERAL_CLIENTS = 100  # an agent with room for fewer will meet the limit on an ordinary machine
MOUNTS = Path("/proc/self/mountinfo")
FIELDS_BEFORE_TYPE = " - "
NAMES_MAX = 5  # agents that one finding names
COMING = ("serving", "waiting", "asking")  # states of a seat that votes, or will without any help


def of_machine(udp: int, members: int) -> Iterator[Finding]:
    """The clock, open files, and the room for datagrams that wait. ``udp`` is the descriptor of the agent's socket."""
    yield from of_clock(clock.COUNTS_SUSPENDED_TIME)
    yield from few_files(allowed())
    with socket.socket(fileno=os.dup(udp)) as bound:
        granted = bound.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) // 2  # Linux answers with twice what it granted
    yield from small_buffer(granted, members)


def small_buffer(granted: int, members: int) -> Iterator[Finding]:
    """F10: datagrams that wait while a process stands still."""
    if granted < RECEIVE_BYTES:
        say = warning if members > LARGE_GROUP else note
        yield say(
            "small_receive_buffer", "net.core.rmem_max", f"The kernel keeps {granted} bytes of waiting datagrams, not {RECEIVE_BYTES}.",
            f"sysctl -w net.core.rmem_max={RECEIVE_BYTES}, and restart the agent; otherwise more is lost when it stands still.",
        )  # fmt: skip


def few_files(files: int) -> Iterator[Finding]:
    """``files``: what an agent may open on this machine, after it has raised its own limit as far as it may."""
    clients = clients_at(files)
    if files < FILES_NEEDED:
        say = warning if clients < SEVERAL_CLIENTS else note
        yield say(
            "few_files", "ulimit -Hn", f"An agent may open {files} files: room for {clients} of {CLIENTS_MAX} clients that hold something.",
            f"Raise the hard limit to {FILES_NEEDED} or more (LimitNOFILE=, ulimit -Hn), and restart the agent.",
        )  # fmt: skip


def of_clock(counts_suspended_time: bool) -> Iterator[Finding]:
    """F7."""
    if not counts_suspended_time:
        yield warning(
            "clock_stops", "clock", "The clock of this system stands still while it is suspended.",
            "Do not suspend this machine while something is held on it: a hold would outlive its time by the length of the nap.",
        )  # fmt: skip


def of_settings(config: Config, state: Path | None, *, seat: bool) -> Iterator[Finding]:
    """What is allowed and still no good idea."""
    if config.insecure and not is_loopback(config.bind):
        yield warning(
            "insecure", config.bind, "There is no key beyond loopback: any machine that reaches this port reads everything and can join.",
            "`holdfast keys generate -o FILE`, and set key_file on all agents.",
        )  # fmt: skip
    if config.key_file and (exposed := _exposed(config.key_file)):
        yield warning("key_exposed", config.key_file, f"{exposed}.", "chmod 600 it; if others may have read it, rotate the key.")
    if seat and state is not None and (kind := file_system(state)) in FORGETFUL and not config.alone:
        yield error(
            "state_forgotten", str(state), f"It is a seat, and its state directory is on {kind}: a reboot forgets what it promised.",
            "Put state_dir on a disk.",
        )  # fmt: skip


def of_membership(agent: Agent) -> Iterator[Finding]:
    """What an agent that is in no group waits for (H164)."""
    why = agent.membership.waits_for
    if why:
        yield warning(
            "not_joined", agent.me.name, f"This agent is in no group: {why}.",
            "Start a majority of the seeds if they are down; otherwise wait for the time it names.",
        )  # fmt: skip


def of_seats(agent: Agent, heard_since: float) -> Iterator[Finding]:
    """F12, F13, H189: all seats were asked at ``heard_since``."""
    seats = agent.seats
    if seats is None:
        yield warning(
            "no_seats", "seats", f"Nothing exclusive can be had. {agent.seats_missing}", "Set seats, the same list on all agents."
        )
        return
    if len(seats.slots) == 1:
        say = note if agent.config.alone else warning
        yield say(
            "one_seat", f"{seats.slots[0].address}", "There is one seat only: while it is down, nothing exclusive is granted.",
            "Give three seeds, or set seats to three agents, the same list everywhere.",
        )  # fmt: skip
    if seats.state is SeatState.SILENT:
        yield error(
            "seat_silent", agent.me.name, f"{seats.why}.",
            "Bring its latest state directory back; see the operations guide about lost journals.",
        )  # fmt: skip
    yield from _of_records(agent)
    views = seat_views(agent, heard_since)
    for view in views:
        yield from _of_other_seat(view)
    coming = all(view.state in COMING for view in views)
    yield from _of_waiting(views, seats.delay(), coming=coming)
    if not coming:
        say = error if sum(view.state in ("serving", "waiting") for view in views) <= len(views) // 2 else warning
        yield say("few_seats", "seats", f"{verdict(views)}.", "Bring the other seats back; `holdfast seats` says how each one is.")


def of_seat_lists(lists: Mapping[str, str], me: str) -> Iterator[Finding]:
    """F12: ``lists`` has the seats that each agent counts, by its name, as ``kit.slots.written``."""
    counting: dict[str, list[str]] = {}
    for name in sorted(lists):
        counting.setdefault(lists[name], []).append(name)
    if len(counting) < 2:
        return
    # The list of most agents, of as many the own one. Where none is counted there is nothing to set.
    chosen = max((each for each in counting if each != NO_SEATS), key=lambda each: (len(counting[each]), me in counting[each], each))
    others = [name for each, names in counting.items() if each != chosen for name in names]
    said = "; ".join(f"{_several(names)} {'counts' if len(names) == 1 else 'count'} {each}" for each, names in counting.items())
    setting = ", ".join(f'"{each}"' for each in chosen.split(", "))
    yield error(
        "seats_differ", _several(others),
        f"Agents of this group have different seats: {said}. Between them nothing exclusive is granted, and no view comes about.",
        f"Set seats = [{setting}] on {_several(others)} and restart: every agent needs the same seats, or the same first three seeds."
        " An agent that is named there needs a state_dir.",
    )  # fmt: skip


def _several(names: list[str]) -> str:
    more = len(names) - NAMES_MAX
    return ", ".join(names[:NAMES_MAX]) + (f" and {more} more" if more > 0 else "")


def _of_waiting(views: tuple[SeatView, ...], delay: Delay | None, *, coming: bool) -> Iterator[Finding]:
    """A seat that waits is as it should be: it votes by itself when its time is over."""
    if delay is not None and delay.seconds is not None:
        text = f"Nothing exclusive is granted for another {delay.seconds:.1f} s: {delay.why}."
    elif coming and any(view.state != "serving" for view in views):
        text = f"{verdict(views)}."
    else:
        return
    yield note(
        "seats_waiting", "seats", text,
        "Wait. A new seat waits for longest_grant, one that was restarted for the longest that it ever promised.",
    )  # fmt: skip


def _of_other_seat(view: SeatView) -> Iterator[Finding]:
    about = f"seat {view.number} ({view.name}, {view.address})"
    if view.own:
        return
    if view.state == "unheard":
        why = view.why or "This seat was never heard from here"
        yield warning("seat_unheard", about, f"{why}.", "Start that agent, or correct the list of seats.")
    elif view.state == "silent":
        yield error(
            "seat_gone", about, f"It does not answer; it was last heard {view.heard_ago:.0f} s ago.",
            "Start that agent again, with its state directory; or look for a firewall between the two.",
        )  # fmt: skip
    elif view.state == "failed":
        yield error("seat_failed", about, f"It answers, and does not vote: {view.why}.", "Run `holdfast doctor` on its machine.")


def _of_records(agent: Agent) -> Iterator[Finding]:
    """H174: what this seat found in its journal when it started, and says nothing about."""
    for about in (about for feature in agent.features.values() for about in feature.unusable()):
        yield error(
            "record_unusable", about, "The journal of this seat holds a number for it that no honest clock comes to: a peer made it up.",
            "Rotate the key, and use another name. This one is served while a majority of the seats does not have the record.",
        )  # fmt: skip


def file_system(path: Path) -> str:
    """The kind of file system that a path is on; "" if the system does not say."""
    try:
        wanted = path.resolve()
        lines = MOUNTS.read_text().splitlines()
    except OSError:
        return ""
    best, kind = "", ""
    for line in lines:
        before, _, after = line.partition(FIELDS_BEFORE_TYPE)
        mounted = before.split()[4]
        if len(mounted) >= len(best) and wanted.is_relative_to(mounted) and after:
            best, kind = mounted, after.split()[0]
    return kind


def _exposed(path: str) -> str:
    try:
        return exposure(path) or ""
    except OSError:
        return ""  # It was there when the agent started, which is what counts.
