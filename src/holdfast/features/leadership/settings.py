"""The settings of leadership.  Spec: fast-detection 4."""

from typing import TYPE_CHECKING, Annotated

from holdfast.kit.settings import ClockSettings, Needed, Setting

if TYPE_CHECKING:
    from holdfast.features.leadership.protocol.config import LeadershipConfig

TERM_HEARTBEATS = 1.5  # fast-detection D26: length of a term, in heartbeats, beside the grace that was asked for


class LeadershipSettings(ClockSettings):
    """How often a leader sends heartbeats (t_itv); the length of a term follows from it."""

    __slots__ = ()

    heartbeat: Annotated[float, Setting("t_itv of leaders, seconds.", "SECONDS", (1.0, 4.0, 0.3), (0.1, 60.0))] = 0.0

    @classmethod
    def given_variables(cls) -> tuple[str, ...]:
        return ("HOLDFAST_TERM",)

    def term_length(self, grace: float) -> float:
        """How long a leader asks its seats to promise (L): what outlives one lost heartbeat, and the grace on top of it."""
        return TERM_HEARTBEATS * self.heartbeat + grace

    def leadership_config(self) -> "LeadershipConfig":
        """The numbers of leadership."""
        from holdfast.features.leadership.protocol.config import LeadershipConfig

        return LeadershipConfig(t_itv=self.heartbeat, rho=self.rho)

    def grant_needed(self) -> Needed:
        return Needed(self.term_length(0.0), f"{TERM_HEARTBEATS:g} heartbeats")
