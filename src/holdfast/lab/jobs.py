"""One ``map`` over independent pieces of work: in this process, in several, or on a Dask cluster.  docs/lab.md

Results come in the order of the items, whichever finishes first. Work is a module-level function (or a ``partial`` of one)
of plain data, so that other processes and other machines can run it.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

from msgspec import Struct

from holdfast.errors import ConfigError
from holdfast.lab.extras import need

CONNECT_TIMEOUT = 10.0  # seconds that a Dask scheduler has to answer
JOBS_MAX = 1024  # processes; more is a typing error
TERMINATE_TIMEOUT = 5.0  # seconds an interrupted worker has to go before it is not waited for any more

A = TypeVar("A")
R = TypeVar("R")
Done = Callable[[], None]


class Where(Struct, frozen=True):
    """Where work runs: ``jobs`` processes here, or the cluster at ``on`` ("dask:ADDRESS")."""

    jobs: int = 1
    on: str = ""

    def __post_init__(self) -> None:
        if not 1 <= self.jobs <= JOBS_MAX:
            raise ConfigError(f"--jobs {self.jobs}: accepted are 1 to {JOBS_MAX}")
        if self.on and not (self.on.startswith("dask:") and len(self.on) > len("dask:")):
            raise ConfigError(f"--on {self.on}: accepted is dask:ADDRESS, for example dask:tcp://10.0.0.5:8786")
        if self.on and self.jobs != 1:
            raise ConfigError(f"--jobs {self.jobs} with --on {self.on}: the cluster has its own number of workers; give one of the two")

    def check(self) -> None:
        """Before anything is written: is there what it needs? Raises ExtraMissing."""
        if self.on:
            need("distributed", f"--on {self.on}")


HERE = Where()


def spread(work: Callable[[A], R], items: Sequence[A], where: Where = HERE, done: Done = lambda: None) -> Iterator[R]:
    """``map(work, items)``, elsewhere. ``done`` is called once per finished item, from whichever thread noticed it."""
    if where == HERE:
        return _map_here(work, items, done)
    return _map_there(work, items, where, done)


def _map_here(work: Callable[[A], R], items: Sequence[A], done: Done) -> Iterator[R]:
    for item in items:
        result = work(item)
        done()
        yield result


def _map_there(work: Callable[[A], R], items: Sequence[A], where: Where, done: Done) -> Iterator[R]:
    with _dask(where.on) if where.on else _processes(where.jobs) as executor:
        futures = [executor.submit(work, item) for item in items]
        for future in futures:
            future.add_done_callback(lambda future: None if future.cancelled() else done())
        yield from (future.result() for future in futures)


@contextmanager
def _processes(jobs: int) -> Iterator[Executor]:
    """Fresh interpreters: a forked child would inherit threads' locks, and what it shares with us hides what it needs."""
    before = multiprocessing.active_children()
    executor = ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn"), initializer=_begin_worker)
    try:
        yield executor
        executor.shutdown()
    except BaseException:
        # Ctrl-C, or a reader that had enough. Running items have no result that a caller waits for.
        executor.shutdown(wait=False, cancel_futures=True)
        for child in multiprocessing.active_children():
            if child not in before:
                child.terminate()
                child.join(TERMINATE_TIMEOUT)
        raise


@contextmanager
def _dask(on: str) -> Iterator[Executor]:
    distributed = need("distributed", f"--on {on}")
    address = on.partition(":")[2]
    try:
        client = distributed.Client(address, timeout=CONNECT_TIMEOUT, set_as_default=False)
    except (OSError, ValueError) as error:
        raise ConfigError(f"--on {on}: no Dask scheduler answers there ({type(error).__name__}); start one with `dask scheduler`") from None
    with client:
        executor = client.get_executor(pure=False)
        try:
            yield executor
        finally:
            executor.shutdown(wait=False)  # All results are in, or the rest is not wanted: it is cancelled.


def _begin_worker() -> None:
    """Ctrl-C reaches the whole process group: the parent decides what it means. A dead parent means that there is no listener."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_follow_parent, daemon=True).start()


def _follow_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)
