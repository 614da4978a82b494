"""Long work shows progress: a bar where somebody looks, a line now and then where nobody does. Always on stderr."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from threading import Lock

LINE_INTERVAL = 5.0  # seconds between two plain lines: enough for a log, not too much for a reader

Advance = Callable[[int], None]


@contextmanager
def progress(title: str, total: int) -> Iterator[Advance]:
    """Yields what to call with the number of things that were finished; any thread may."""
    if total > 0 and sys.stderr.isatty() and find_spec("rich") is not None:
        with _bar(title, total) as advance:
            yield advance
    else:
        yield _Lines(title, total).advance


@contextmanager
def _bar(title: str, total: int) -> Iterator[Advance]:
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=total)
        yield lambda count: bar.advance(task, count)


class _Lines:
    """What a log gets."""

    def __init__(self, title: str, total: int) -> None:
        self._title, self._total = title, total
        self._count = 0
        self._told_at = time.monotonic()
        self._lock = Lock()

    def advance(self, count: int) -> None:
        with self._lock:
            self._count += count
            now = time.monotonic()
            if now - self._told_at >= LINE_INTERVAL:
                self._told_at = now
                print(f"{self._title}: {self._count} of {self._total}", file=sys.stderr, flush=True)
