"""Long work shows progress: a bar on a terminal, a line now and then elsewhere. Always on stderr."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from threading import Event, Thread

FIRST_AFTER = 1.0  # seconds until the first plain line: work that is over sooner needs none
LINE_INTERVAL = 5.0  # seconds between two plain lines: enough for a log, not too much for a reader

Advance = Callable[[int], None]


@contextmanager
def progress(title: str, total: int, expected: float | None = None) -> Iterator[Advance]:
    """Yields what to call with the number of things that were finished; any thread may call it.

    ``expected`` is how many seconds the whole will take, if that is known. As things are finished, their pace counts instead.
    """
    if total > 0 and sys.stderr.isatty() and find_spec("rich") is not None:
        with _bar(title, total, expected) as advance:
            yield advance
    else:
        lines = _Lines(title, total, expected)
        try:
            lines.start()
            yield lines.advance
        finally:
            lines.stop()


def in_words(seconds: float) -> str:
    """A duration to plan by: one number."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{round(seconds / 60)} min" if seconds < 90 * 60 else f"{seconds / 3600:.1f} h"


@contextmanager
def _bar(title: str, total: int, expected: float | None) -> Iterator[Advance]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

    began_at, count = time.monotonic(), 0
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn(), TextColumn("{task.fields[left]}"))
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=total, left=_left(0, total, 0.0, expected))

        def advance(finished: int) -> None:
            nonlocal count
            count += finished
            bar.update(task, advance=finished, left=_left(count, total, time.monotonic() - began_at, expected))

        yield advance


def _left(count: int, total: int, spent: float, expected: float | None) -> str:
    """What is left, by the pace so far; before anything was finished, by what is known."""
    if count:
        return f"about {in_words(spent * (total - count) / count)} left" if total > count else ""
    if expected is None:
        return ""
    return f"about {in_words(expected - spent)} left" if expected > spent else f"expected within {in_words(expected)}"


class _Lines:
    """What a log gets."""

    def __init__(self, title: str, total: int, expected: float | None) -> None:
        self._title, self._total, self._expected = title, total, expected
        self._count = 0
        self._began_at = time.monotonic()
        self._over = Event()
        self._thread = Thread(target=self._tell, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._over.set()
        self._thread.join()

    def advance(self, count: int) -> None:
        self._count += count

    def _tell(self) -> None:
        pause = FIRST_AFTER
        while not self._over.wait(pause):
            pause = LINE_INTERVAL
            spent = time.monotonic() - self._began_at
            left = _left(self._count, self._total, spent, self._expected)
            said = [f"{self._title}: {self._count} of {self._total}", f"{in_words(spent)} so far", left]
            print(", ".join(part for part in said if part), file=sys.stderr, flush=True)
