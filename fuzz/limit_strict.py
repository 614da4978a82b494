"""One strict limiter alone: what it may use grows only when nothing of an earlier view can be in use any more.  Spec: limits 1, 7, D10."""

from __future__ import annotations

from fuzz.limit_breaker import SETTLE
from fuzz.limit_member import ROUNDING, MemberRun
from fuzz.view_host import EPSILON
from holdfast.features.limits.protocol.outlet import Allotment
from holdfast.host import ViewState


class StrictRun(MemberRun):
    """One limiter, one history."""

    policy = "strict"
    ended: Allotment | None = None  # the last one whose lease has ended

    def _on_lapsed(self) -> None:
        """It takes R/n, whatever becomes of it in the same turn."""
        super()._on_lapsed()
        self.used = max(self.used, self.rate / self.fleet)

    def _counted(self, allotment: Allotment, enforced: float) -> float:
        """A lease may be renewed just before it ends, and the workers be told of that with the next epoch: they use less in between. The
        share is what it was, and no other member counts on the difference."""
        if not self._leased:
            self.ended = allotment
        return enforced if allotment is self.ended else max(enforced, allotment.rate)

    def _check(self, now: float, enforced: float, usage: float) -> None:
        if enforced <= self.used * (1 + ROUNDING) or now < self.host.now:
            return
        self.counts["grew"] += 1
        if self._leased:
            view = self.breaker.installed
            current = view is not None and view.id == self.inst and not self.provisional and not self.lapsed
            if self.breaker.state is not ViewState.STABLE or not current or now < self.began_at + SETTLE - EPSILON:
                self.fail(
                    f"D10: it may use {enforced:.3f} instead of {self.used:.3f}, {now - self.began_at:.3f} s after its instance began"
                )
        else:
            self.fail(f"5.7: it has no lease and has not lapsed, and may use {enforced:.3f} instead of {self.used:.3f}")
