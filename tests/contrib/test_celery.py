"""``holdfast.contrib.celery`` with the real Celery: a worker on a broker in memory, eager tasks, direct calls, and a fork."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from celery import Celery
from celery.contrib.testing.worker import start_worker
from celery.exceptions import Retry
from celery.signals import setup_logging, worker_shutdown

from holdfast import ConfigError
from holdfast.contrib import celery as contrib
from holdfast.contrib.celery import TaskLimits
from tests.contrib.fakes import FakeGroup, FakeLimiter

SOON = 20.0  # seconds; only what is broken takes longer
OPTIONS: dict[str, dict[str, Any]] = {"openai": {"rate": 500.0, "burst": 50.0}}


def keep_logging(**_: Any) -> None:
    """Where it is connected a worker leaves the logging of its process alone."""


def seven() -> int:
    return 7


class Fleet:
    """The limits of an app on fake groups, and what its tasks did."""

    def __init__(self) -> None:
        self.groups: list[FakeGroup] = []
        self.limits = TaskLimits(self._join, OPTIONS)
        self.app = Celery("test", task_cls=self.limits.Task, broker="memory://", backend="cache+memory://")
        self.app.conf.broker_transport_options = {"polling_interval": 0.02}
        self.done: list[str] = []

    def _join(self) -> FakeGroup:
        self.groups.append(FakeGroup(FakeLimiter))
        return self.groups[-1]

    @property
    def limiter(self) -> Any:
        return self.limits.limiter("openai")


@pytest.fixture
def fleet() -> Iterator[Fleet]:
    fleet = Fleet()
    setup_logging.connect(keep_logging)
    yield fleet
    setup_logging.disconnect(keep_logging)
    fleet.app.close()


@pytest.fixture
def task(fleet: Fleet) -> Any:
    def ask(name: str) -> str:
        fleet.done.append(name)
        return name.upper()

    return fleet.app.task(limit="openai", limit_cost=2.0, limit_wait=0.05, name="ask", max_retries=0, shared=False)(ask)


def until(holds: Callable[[], object]) -> None:
    end_at = time.monotonic() + SOON
    while not holds():
        assert time.monotonic() < end_at, "never happened"
        time.sleep(0.005)


def test_a_direct_call_waits(fleet: Fleet, task: Any) -> None:
    """Limits 10: a program that calls the task as a function waits as long as it takes, like any caller of ``acquire``."""
    threading.Timer(0.1, lambda: fleet.limiter.give(2)).start()
    assert task("a") == "A"
    assert fleet.limiter.costs == [2.0]
    assert fleet.limiter.timeouts == [None]
    assert fleet.groups[0].asked == OPTIONS


def test_an_eager_task_waits(fleet: Fleet, task: Any) -> None:
    """With ``task_always_eager`` no broker could deliver it later."""
    fleet.app.conf.task_always_eager = True
    threading.Timer(0.3, lambda: fleet.limiter.give(4)).start()
    assert task.delay("a").get() == "A"
    assert fleet.limiter.costs == [2.0]


def test_a_task_without_the_option_is_free(fleet: Fleet) -> None:
    """The class may be that of all tasks of an app: no group is joined for those without a limit."""
    assert fleet.app.task(seven, name="free", shared=False)() == 7
    assert fleet.groups == []


def test_a_worker_sends_back_what_may_not_go(fleet: Fleet, task: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A real worker: a task that may not go in ``limit_wait`` is delivered again and again, with ``max_retries=0``, until it may.
    Tasks without a limit pass it meanwhile. When the worker ends, the group is left."""
    monkeypatch.setattr(contrib, "wait_for", lambda share, cost: 0.05)
    quick = fleet.app.task(seven, name="quick", shared=False)
    with start_worker(fleet.app, pool="threads", concurrency=1, perform_ping_check=False, shutdown_timeout=SOON) as worker:
        asked = task.delay("a")
        until(lambda: fleet.groups and len(fleet.limiter.timeouts) >= 3)
        assert quick.delay().get(timeout=SOON) == 7
        assert fleet.done == []
        fleet.limiter.give(2)
        assert asked.get(timeout=SOON) == "A"
        worker.stop()
    assert fleet.done == ["a"]
    assert {*fleet.groups[0].made["openai"].timeouts} == {0.05}
    assert fleet.groups[0].left == 1


def test_what_is_sent_back_is_the_same_task(fleet: Fleet, task: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Same id, same count of retries, delivered after the wait at the share of this process, and not all at once."""
    sent: list[Any] = []
    monkeypatch.setattr("celery.canvas.Signature.apply_async", lambda signature, *a, **k: sent.append(signature))
    monkeypatch.setattr("holdfast.contrib.celery.random.uniform", lambda low, high: high)
    task.push_request(id="42", args=("a",), kwargs={}, retries=3, called_directly=False, is_eager=False)
    fleet.limiter.share = 0.5
    with pytest.raises(Retry, match=r"limit openai: not in 0\.05 s"):
        task("a")
    task.pop_request()
    (later,) = sent
    assert (later.options["task_id"], later.options["retries"], later.options["countdown"]) == ("42", 3, 1.5 * 2.0 / 0.5)
    assert later.args == ("a",)


def test_a_broker_that_is_gone_loses_no_task(fleet: Fleet, task: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """What cannot be sent back waits in the worker."""

    def gone(*_: Any, **__: Any) -> None:
        raise ConnectionError("broker")

    monkeypatch.setattr("celery.canvas.Signature.apply_async", gone)
    task.push_request(id="42", args=("a",), kwargs={}, called_directly=False, is_eager=False)
    threading.Timer(0.3, lambda: fleet.limiter.give(2)).start()
    assert task("a") == "A"
    task.pop_request()
    assert fleet.limiter.timeouts == [0.05, None]


def test_a_child_joins_by_itself(fleet: Fleet) -> None:
    """Limits 10: after a fork a group is of no use. A worker process of Celery is such a child; a lock that was held is no hindrance."""
    fleet.limiter.give(1)
    with fleet.limits._lock:
        pid = os.fork()
        if pid == 0:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(10)
            made = len(fleet.groups)
            fleet.limits.limiter("openai")
            os._exit(0 if len(fleet.groups) == made + 1 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert fleet.limits.limiter("openai") is fleet.groups[0].made["openai"]


def test_the_group_is_left_at_the_end(fleet: Fleet) -> None:
    """And joined again if a task comes all the same. Each app of a process leaves its own."""
    other = Fleet()
    first = fleet.limiter
    assert other.limiter is not first
    worker_shutdown.send(sender=None)
    assert (fleet.groups[0].left, other.groups[0].left) == (1, 1)
    worker_shutdown.send(sender=None)
    assert fleet.groups[0].left == 1
    assert fleet.limiter is not first


@pytest.mark.parametrize(
    "options, field",
    [
        ({"limit": "anthropic"}, "limit"),
        ({"limit": "openai", "limit_cost": 0}, "limit_cost"),
        ({"limit": "openai", "limit_wait": -1}, "limit_wait"),
    ],
)
def test_wrong_options_are_refused(fleet: Fleet, options: dict[str, Any], field: str) -> None:
    """When the app is made whole, which is before a worker takes its first task; the text names the limits that there are."""
    with pytest.raises(ConfigError, match=f"^{field}: "):
        fleet.app.task(name="wrong", shared=False, **options)(seven)()
