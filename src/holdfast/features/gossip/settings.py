"""The settings of gossip.  Spec: gossip 4, 10."""

from math import isfinite
from typing import TYPE_CHECKING, Annotated, cast

from holdfast.errors import ConfigError, shown
from holdfast.kit.settings import Setting, Table

if TYPE_CHECKING:
    from holdfast.features.gossip.protocol.config import GossipConfig, Target


class GossipSettings(Table):
    """T, alpha, and how the next member to probe is chosen. ``GossipConfig`` has all other numbers."""

    __slots__ = ()

    probe: Annotated[
        float, Setting("T of gossip, seconds: one member is probed in each.", "SECONDS", (1.0, 5.0, 0.2), (0.05, 60.0), stretches=True)
    ] = 0.0
    patience: Annotated[
        float, Setting("The shortest suspicion of gossip, in probe periods; a longer one forgives longer pauses.", "N", limits=(2.0, 20.0))
    ] = 2.5
    probe_targets: Annotated[
        str,
        Setting(
            "How the next member to probe is chosen: shuffle (each member once a round), spatial or bag (near members more often).", "HOW",
            choices=("shuffle", "spatial", "bag"),
        ),
    ] = "shuffle"  # fmt: skip
    position: Annotated[str, Setting("Where this agent is, in metres; spatial and bag measure distances by it.", "X,Y")] = ""

    @classmethod
    def memberships(cls) -> tuple[str, ...]:
        return ("gossip",)

    def gossip_config(self) -> "GossipConfig":
        """The numbers of gossip. Raises ``ConfigError`` naming the field."""
        from holdfast.features.gossip.protocol.config import REAP_AFTER, REAP_SYNCS, SYNC_PERIODS, GossipConfig

        target = cast("Target", self.probe_targets)  # GossipConfig checks it
        position, reap_after = parse_position(self.position), max(REAP_AFTER, REAP_SYNCS * SYNC_PERIODS * self.probe)
        return GossipConfig(period=self.probe, patience=self.patience, target=target, position=position, reap_after=reap_after)

    def check_table(self) -> None:
        self.gossip_config()


def parse_position(text: str) -> tuple[float, float] | None:
    """Two numbers; None if it is not given. Raises ``ConfigError``."""
    if not text:
        return None
    try:
        x, y = map(float, text.split(","))
    except ValueError:
        x = y = float("nan")
    if not (isfinite(x) and isfinite(y)):
        raise ConfigError(f"position: {shown(text)}; accepted is X,Y in metres")
    return x, y
