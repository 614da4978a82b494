"""A worker program as it is, but careless: ``python -m tests.features.limits.process.careless_worker`` with the words of ``worker``.

It confirms what it is told and keeps the largest rate that it had (limits D22 is out), which the reader of permits must see.
"""

from __future__ import annotations

from holdfast.features.limits.bucket import MICRO, TimedBucket
from tests.features.limits.process.worker import main

tell = TimedBucket.tell


def keep(self: TimedBucket, now: int, rate: float, depth: float, until: float, after: float, ends_at: float) -> None:
    self.move(now)
    tell(self, now, max(rate, self.rate / MICRO), depth, until, after, ends_at)


if __name__ == "__main__":
    TimedBucket.tell = keep  # type: ignore[method-assign]
    main()
