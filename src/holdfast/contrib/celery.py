"""A Celery task option that limits the fleet: Celery's own ``rate_limit`` counts in each worker alone.  docs/howto-limit-celery.md.

    limits = TaskLimits(lambda: holdfast.sync.join("shop", agent="shop.sock"), {"openai": {"rate": 500, "burst": 50}})
    app = Celery("shop", task_cls=limits.Task)

    @app.task(limit="openai")
    def ask(question): ...

A task waits ``limit_wait`` seconds in its worker. A task that may not go by then is sent back to the broker, to be
delivered later; that is no retry of its own: ``max_retries`` does not count it.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Mapping
from threading import Lock
from typing import Any, ClassVar

from holdfast import ConfigError, ExtraMissing, Timeout, Unavailable
from holdfast.contrib.limiting import Group, Limiter, check_positive, check_seconds, wait_for

try:
    from celery import Task
    from celery.exceptions import Retry
    from celery.signals import worker_process_shutdown, worker_shutdown
except ImportError as error:  # This file has the name of what it imports: without the extra the import fails here.
    raise ExtraMissing("holdfast.contrib.celery needs Celery: pip install '.[celery]' in a clone of Holdfast") from error

__all__ = ["LimitedTask", "TaskLimits"]

SPREAD = 1.5  # tasks that are sent back together come back between once and so many times the wait, and not together


class TaskLimits:
    """The limits of an app, by name, with the arguments of ``group.limit``; it lives as long as the process, as the app does.

    Each process calls ``join`` at its first limited task.
    """

    _lock: Lock
    _group: Group | None
    _limiters: dict[str, Limiter]

    def __init__(self, join: Callable[[], Group], limits: Mapping[str, Mapping[str, Any]]) -> None:
        self._join = join
        self._limits = {name: {**options} for name, options in limits.items()}
        self._forget()
        os.register_at_fork(after_in_child=self._forget)
        for ended in (worker_process_shutdown, worker_shutdown):
            ended.connect(self.close, weak=False, dispatch_uid=id(self))  # Celery takes methods of two objects for the same.
        self.Task = type("LimitedTask", (LimitedTask,), {"limits": self, "abstract": True, "__module__": LimitedTask.__module__})

    @property
    def names(self) -> tuple[str, ...]:
        return (*self._limits,)

    def limiter(self, name: str) -> Limiter:
        """Of this process: a group is joined anew after a fork."""
        with self._lock:
            if name not in self._limiters:
                if self._group is None:
                    self._group = self._join()
                self._limiters[name] = self._group.limit(name, **self._limits[name])
            return self._limiters[name]

    def close(self, **_: Any) -> None:
        """Leave the group. A worker does it when it ends."""
        with self._lock:
            group, self._group = self._group, None
            self._limiters = {}
        if group is not None:
            group.leave()

    def _forget(self) -> None:
        self._lock = Lock()  # That of the parent may be held by a thread which is not here.
        self._group = None
        self._limiters = {}


class LimitedTask(Task):  # type: ignore[misc]  # Celery has no annotations
    """A task with the options ``limit``, ``limit_cost`` and ``limit_wait``. ``TaskLimits.Task`` is its subclass for an app."""

    abstract = True
    limits: ClassVar[TaskLimits]
    limit: str | None = None
    limit_cost: float = 1.0
    limit_wait: float = 1.0  # seconds that a task may keep a place of its worker while it waits

    @classmethod
    def on_bound(cls, app: Any) -> None:
        """Celery calls it once per task and app: what is wrong is said when the worker starts."""
        if cls.limit is None:
            return
        if cls.limit not in cls.limits.names:
            raise ConfigError(f"limit: {cls.name} names {cls.limit}; accepted are {', '.join(cls.limits.names)}")
        check_positive(cls.limit_cost, "limit_cost")
        check_seconds(cls.limit_wait, "limit_wait")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.limit is not None:
            self._admit(self.limits.limiter(self.limit))
        return super().__call__(*args, **kwargs)

    def _admit(self, limiter: Limiter) -> None:
        request = self.request
        if request.called_directly or request.is_eager:  # No broker has it, so it cannot be sent back.
            limiter.acquire(self.limit_cost, timeout=None)
            return
        try:
            limiter.acquire(self.limit_cost, timeout=self.limit_wait)
        except (Timeout, Unavailable):
            self._send_back(limiter)

    def _send_back(self, limiter: Limiter) -> None:
        seconds = wait_for(limiter.share, self.limit_cost) * random.uniform(1.0, SPREAD)
        later = self.signature_from_request(self.request, countdown=seconds, retries=self.request.retries)
        try:
            later.apply_async()
        except Exception:  # Whatever a broker raises: the task is here and nowhere else, so it waits here.
            limiter.acquire(self.limit_cost, timeout=None)
            return
        raise Retry(f"limit {self.limit}: not in {self.limit_wait:g} s", when=seconds, sig=later)
