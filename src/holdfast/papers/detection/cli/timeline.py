"""A story as a picture in the terminal: one line per member, one colour per leader, faults above."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from holdfast.papers.detection.lab.story import DEAD, NAMES, NOBODY, STOPPED

if TYPE_CHECKING:
    from holdfast.papers.detection.lab.story import Story

FRAMES_PER_SECOND = 15
COLUMNS_MAX = 148  # four per virtual second are enough to see a takeover
MARGIN = 4  # a member's name and a space
# A letter on a colour: who sees no colours, or reads a log, reads the letters.
STYLES = {
    "a": "black on bright_blue",
    "b": "black on bright_yellow",
    "c": "black on bright_magenta",
    "d": "black on bright_green",
    "e": "black on bright_cyan",
    "f": "black on orange3",
    "g": "black on pink1",
    NOBODY: "white on grey23",
    STOPPED: "bright_red on grey15",
    DEAD: "grey42",
}


def show(console: Console, story: Story, speed: float) -> None:
    """Let the story run at ``speed`` virtual seconds per second, or print its end at once (0)."""
    if speed <= 0:
        console.print(_picture(console, story, story.seconds))
        return
    with Live(console=console, refresh_per_second=FRAMES_PER_SECOND) as live:
        began_at = time.monotonic()
        now = 0.0
        while now < story.seconds:
            now = min(story.seconds, (time.monotonic() - began_at) * speed)
            live.update(_picture(console, story, now))
            time.sleep(1 / FRAMES_PER_SECOND)


def _picture(console: Console, story: Story, now: float) -> Group:
    columns = min(COLUMNS_MAX, max(20, console.width - MARGIN - 1))
    seconds = story.seconds / columns
    return Group(
        _labels(story, now, columns),
        *(_line(story, name, now, columns, seconds) for name in NAMES),
        Text(f"{'':{MARGIN}}{now:5.1f} of {story.seconds:g} virtual seconds", style="dim"),
    )


def _labels(story: Story, now: float, columns: int) -> Text:
    row = [" "] * columns
    for at, label in story.acts:
        start = round(at / story.seconds * columns)
        if at <= now:
            row[start : start + len(label) + 1] = f"|{label}"
    return Text(" " * MARGIN + "".join(row)[:columns], style="bold")


def _line(story: Story, name: str, now: float, columns: int, seconds: float) -> Text:
    line = Text(f"{name:<{MARGIN}}", style="bold")
    for column in range(columns):
        when = (column + 0.5) * seconds
        if when > now:
            break
        state = story.at(name, when)
        line.append(state, STYLES[state])
    return line
