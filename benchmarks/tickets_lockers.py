"""The locks of `tickets`, each used as its own documentation says.

    redis       redis-py's Lock on one server that syncs every write. A thread renews it after a third of its time, as a client that
                works longer than the lock lasts must do. A waiter asks again and again
    zookeeper   kazoo's Lock, and its Semaphore for more than one ticket
    etcd        the server's lock service through the JSON gateway, under a lease that is renewed after a third of its time
    holdfast    ``group.ticket`` of the blocking client
    flock       a lock of the kernel on this machine: what is measured where no agreement is needed

A name stands for one lock, or for a pool of so many tickets where the system has something like that.
"""

from __future__ import annotations

import base64
import fcntl
import os
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

from benchmarks.leadership_candidate import ASK_TIMEOUT, Etcd
from benchmarks.ring_fleet import now

RETRY_INTERVAL = 0.05  # seconds before a server that is gone is asked again
RENEWALS = 3  # per lease
START_TIMEOUT = 60.0


class Locker(Protocol):
    """One at a time is held by one client."""

    def acquire(self, name: str, of: int) -> int:
        """Waits until it is ours; a number that grows from holder to holder, 0 where there is none."""

    def release(self) -> None: ...


class Flock:
    """Of the kernel."""

    def __init__(self, folder: str) -> None:
        self._folder = Path(folder)
        self._file = -1

    def acquire(self, name: str, of: int) -> int:
        assert of == 1
        self._file = os.open(self._folder / name, os.O_RDWR | os.O_CREAT)
        fcntl.flock(self._file, fcntl.LOCK_EX)
        return time.time_ns()

    def release(self) -> None:
        os.close(self._file)


class Redis:
    """One key with a time to live."""

    def __init__(self, host: str, port: int, timeout: float, sleep: float) -> None:
        from redis import Redis as Client
        from redis.backoff import ConstantBackoff
        from redis.exceptions import LockError
        from redis.retry import Retry

        self._client = Client(host=host, port=port, retry=Retry(ConstantBackoff(RETRY_INTERVAL), -1))
        self._timeout, self._sleep, self._ended = timeout, sleep, LockError
        self._held: Any = None
        self._client.ping()
        threading.Thread(target=self._keep, daemon=True).start()

    def acquire(self, name: str, of: int) -> int:
        assert of == 1, "redis-py has no semaphore"
        lock = self._client.lock(name, timeout=self._timeout, sleep=self._sleep, thread_local=False)
        lock.acquire()
        self._held = lock
        return 0

    def release(self) -> None:
        lock, self._held = self._held, None
        with suppress(self._ended):  # Its time was over.
            lock.release()

    def _keep(self) -> None:
        while True:
            time.sleep(self._timeout / RENEWALS)
            lock = self._held
            if lock is not None:
                with suppress(self._ended):
                    lock.reacquire()


class ZooKeeper:
    """A session; its locks are made once, as ``with lock:`` in a loop does."""

    def __init__(self, hosts: str, timeout: float) -> None:
        from kazoo.client import KazooClient

        self._client = KazooClient(hosts=hosts, timeout=timeout, connection_retry={"max_tries": -1, "max_delay": 1.0})
        self._client.start(timeout=START_TIMEOUT)
        self._made: dict[str, Any] = {}
        self._held: Any = None

    def acquire(self, name: str, of: int) -> int:
        if name not in self._made:
            client, path, me = self._client, f"/{name}", str(os.getpid())
            self._made[name] = client.Lock(path, me) if of == 1 else client.Semaphore(path, me, max_leases=of)
        self._held = self._made[name]
        self._held.acquire()
        return int(self._held.node.rpartition("__")[2]) if of == 1 else 0

    def release(self) -> None:
        self._held.release()


class EtcdLease:
    """A lease that a thread keeps alive, and until when it certainly is. A server without a leader is asked again."""

    def __init__(self, endpoints: list[str], ttl: int) -> None:
        self._etcd = Etcd(endpoints, ASK_TIMEOUT)
        asked_at, granted = now(), sure(self._etcd, "/v3/lease/grant", TTL=ttl)
        self.id, self.ttl = granted["ID"], int(granted["TTL"])
        self.until = asked_at + self.ttl
        threading.Thread(target=self._keep, daemon=True).start()

    def _keep(self) -> None:
        while now() < self.until:
            time.sleep(self.ttl / RENEWALS)
            asked_at, kept = now(), sure(self._etcd, "/v3/lease/keepalive", ID=self.id)
            if int(kept["result"].get("TTL", 0)) <= 0:
                return  # It is over, and ends by its clock here.
            self.until = asked_at + self.ttl


def sure(etcd: Etcd, path: str, **fields: Any) -> Any:
    """Asked again while the servers have no leader, which is an answer too."""
    while "error" in (answer := etcd.ask(path, **fields)):
        time.sleep(RETRY_INTERVAL)
    return answer


class EtcdLock:
    """A key under a lease. The lease stays for the next lock, as a session of the Go client does."""

    def __init__(self, endpoints: list[str], ttl: int) -> None:
        self._endpoints, self._ttl = endpoints, ttl
        self._etcd = Etcd(endpoints, None)  # A lock is waited for as long as it takes.
        self._lease = EtcdLease(endpoints, ttl)
        self._key = ""

    def acquire(self, name: str, of: int) -> int:
        assert of == 1, "etcd has no semaphore"
        encoded = base64.b64encode(name.encode()).decode()
        while True:
            if now() >= self._lease.until:
                self._lease = EtcdLease(self._endpoints, self._ttl)
            got = self._etcd.ask("/v3/lock/lock", name=encoded, lease=self._lease.id)
            if "key" in got:
                self._key = got["key"]
                return int(got["header"]["revision"])
            time.sleep(RETRY_INTERVAL)

    def release(self) -> None:
        sure(self._etcd, "/v3/lock/unlock", key=self._key)


class Holdfast:
    """A client of an agent on this machine."""

    def __init__(self, group: str, agent: str) -> None:
        from holdfast import sync

        self._group: Any = sync.join(group, agent=agent)
        self._held: Any = None

    def acquire(self, name: str, of: int) -> int:
        self._held = self._group.ticket(name, of=of)
        self._held.__enter__()
        return int(self._held.token)

    def release(self) -> None:
        self._held.__exit__(None, None, None)


LOCKERS: Mapping[str, Callable[..., Locker]] = {
    "flock": Flock,
    "redis": Redis,
    "zookeeper": ZooKeeper,
    "etcd": EtcdLock,
    "holdfast": Holdfast,
}
