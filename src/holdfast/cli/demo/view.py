"""What ``holdfast demo`` shows while it runs: a live picture on a terminal, plain lines elsewhere, nothing with ``--json``."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING, Protocol

from holdfast.cli.demo.fleet import Fleet, Said
from holdfast.cli.demo.lead import NAME
from holdfast.cli.show import shown
from holdfast.errors import installing
from holdfast.host import MemberStatus
from holdfast.net import clock

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

    from holdfast.cli.demo.story import Bounds, Death, Story

TOLD = ("Joined", "Suspected", "Decided", "Failed", "Left", "Expelled", "Paused", "LeaderChanged")
MEANING = {
    "Joined": "is a member",
    "Suspected": "is suspected",
    "Decided": "is held to be dead: route away from it",
    "Failed": "is gone: its keys may be taken over",
    "Left": "said goodbye",
    "LeaderChanged": f"leads {NAME!r}",
}
MARKS = {"Suspected": "s", "Decided": "D", "Failed": "X"}
BAR = 36  # columns from the crash to the last bound: the whole picture fits a terminal of 80
REDRAW_INTERVAL = 0.1  # seconds; drawing takes a part of the time that is measured, so not too often
STATES = {MemberStatus.ALIVE: "o", MemberStatus.SUSPECTED: "?", MemberStatus.DECIDED: "x"}


class View(Protocol):
    """What shows the demo."""

    def step(self, text: str) -> None:
        """Something new begins."""

    def note(self, text: str) -> None:
        """Something came about that no agent says."""

    def event(self, said: Said) -> None: ...
    def tick(self) -> None: ...
    def close(self) -> None: ...


def view_for(*, as_json: bool) -> View:
    if as_json:
        return Silent()
    if sys.stdout.isatty() and find_spec("rich") is not None:
        return Live()
    return Plain()


class Silent:
    """For programs: they read the end."""

    story: Story | None = None

    def step(self, text: str) -> None:
        """Not shown."""

    def note(self, text: str) -> None:
        """Not shown."""

    def event(self, said: Said) -> None:
        """Not shown."""

    def tick(self) -> None:
        """Not shown."""

    def close(self) -> None:
        """Nothing to close."""


class Plain(Silent):
    """One line per step, and one for the first agent that says something new about a member."""

    def __init__(self) -> None:
        self._began_at = clock.now()
        self._told: set[tuple[str, str, int]] = set()

    def step(self, text: str) -> None:
        print(f"\n{text}\n", flush=True)

    def note(self, text: str) -> None:
        print(f"  {clock.now() - self._began_at:6.2f} s  {text}", flush=True)

    def event(self, said: Said) -> None:
        line = first_told(said, self._told)
        if line:
            print(f"  {said.at - self._began_at:6.2f} s  {line}", flush=True)


class Live(Silent):
    """The members, what each knows, and the time since the crash against the bounds."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.live import Live as RichLive

        self._console = Console(highlight=False)
        self._live = RichLive(console=self._console, auto_refresh=False, transient=True)
        self._live.start()
        self._drawn_at = 0.0
        self._began_at = clock.now()
        self._told: set[tuple[str, str, int]] = set()

    def step(self, text: str) -> None:
        from rich.text import Text

        self._live.console.print(Text(f"\n{text}\n", style="bold"))

    def note(self, text: str) -> None:
        from rich.text import Text

        self._live.console.print(Text(f"  {clock.now() - self._began_at:6.2f} s  {text}", style="blue"))

    def event(self, said: Said) -> None:
        from rich.text import Text

        line = first_told(said, self._told)
        if line:
            self._live.console.print(Text(f"  {said.at - self._began_at:6.2f} s  {line}", style=_style(said.event)))

    def tick(self) -> None:
        now = clock.now()
        if now - self._drawn_at >= REDRAW_INTERVAL and self.story is not None:
            self._live.update(picture(self.story), refresh=True)
            self._drawn_at = now

    def close(self) -> None:
        self._live.stop()


def first_told(said: Said, told: set[tuple[str, str, int]]) -> str:
    """The line for an event that no agent has told yet about that life; "" otherwise."""
    if said.event not in TOLD or (said.event == "LeaderChanged" and said.life is None):
        return ""
    if said.life is None:  # about the agent itself
        return f"{shown(said.by)}: {said.event}" + (f" for {said.seconds:.2f} s" if said.seconds else "")
    news = (said.event, said.about, said.life.boot)
    if news in told or (said.event == "Joined" and said.by == said.about):
        return ""
    told.add(news)
    meaning = "is gone" if said.event == "Failed" and not said.certain else MEANING.get(said.event, said.event)
    return f"{shown(said.by)} says: {shown(said.about)} {meaning}"


def picture(story: Story) -> RenderableType:
    """One row per member."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("member", "process", "state", "its list", *([_axis(story.bounds)] if story.death else [])):
        table.add_column(column, no_wrap=True)
    for name in story.fleet.names:
        row = [name, *_row(story.fleet, name)]
        if story.death is not None:
            row.append("" if name == story.death.victim.name else bar(story.death, story.bounds, name, clock.now()))
        table.add_row(*(Text(cell) for cell in row))
    return _framed(table, story)


def _framed(table: Table, story: Story) -> RenderableType:
    from rich.panel import Panel

    where = f"the page: {story.fleet.page}" if story.fleet.page else f"the page needs: {installing('http')}"
    return Panel(table, title="holdfast demo", subtitle=where, expand=False)


def _row(fleet: Fleet, name: str) -> tuple[str, str, str]:
    running = fleet.running.get(name)
    if running is None:
        return "-", "dead", ""
    if running.process.poll() is not None:
        return "-", "left", ""
    if running.view is None:
        return str(running.process.pid), "starting", ""
    marks = {member.name: STATES[member.status] for member in running.view.members}
    return str(running.process.pid), running.view.state, "".join(marks.get(each, "-") for each in fleet.names)


def _axis(bounds: Bounds) -> str:
    return f"0 s{'since the crash'.center(BAR - 9)}{bounds.failed:.2f} s"


def bar(death: Death, bounds: Bounds, name: str, now: float) -> str:
    """Time since the crash from left to right, up to the last bound: s suspicion, D decision, X declaration, | their bounds."""
    since = min(now - death.killed_at, bounds.failed)
    cells = ["-" if at <= _column(since, bounds) else " " for at in range(BAR)]
    for bound in bounds:
        cells[_column(bound, bounds)] = "|"
    for event, mark in MARKS.items():
        seconds = death.seen[event].get(name)
        if seconds is not None:
            cells[_column(seconds, bounds)] = mark
    return "".join(cells)


def _column(seconds: float, bounds: Bounds) -> int:
    return min(BAR - 1, int(seconds / bounds.failed * (BAR - 1)))


def _style(event: str) -> str:
    return {"Suspected": "yellow", "Decided": "magenta", "Failed": "red", "Joined": "green", "LeaderChanged": "green", "Left": "cyan"}.get(
        event, "dim"
    )
