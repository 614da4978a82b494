"""The settings of the ring.  Spec: ring 4."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

from holdfast.kit.settings import ClockSettings, Setting, Table

if TYPE_CHECKING:
    from holdfast.features.ring.protocol.config import RingConfig
    from holdfast.host import Address


class RingShape(Table):
    """Listed after the timings of all features."""

    __slots__ = ()

    k: Annotated[int, Setting("Neighbours per side on the ring.", "N")] = 3

    @classmethod
    def memberships(cls) -> tuple[str, ...]:
        return ("ring", "views")  # with views ``lease`` stretches what comes from the preset


class RingSettings(RingShape, ClockSettings):
    """T_l and T_a. ``RingConfig`` knows their limits."""

    __slots__ = ()

    lease: Annotated[
        float,
        Setting("T_l of the ring, seconds; a crash is decided about one later.", "SECONDS", (1.0, 4.0, 0.4), stretches=True),
    ] = 0.0
    arbitration: Annotated[float, Setting("T_a of the ring, seconds.", "SECONDS", (0.5, 2.0, 0.2))] = 0.0

    def ring_config(self, seeds: Sequence["Address"] = ()) -> "RingConfig":
        """The numbers of the ring. Raises ``ConfigError`` naming the field."""
        from holdfast.features.ring.protocol.config import RingConfig

        return RingConfig(lease=self.lease, arbitration=self.arbitration, rho=self.rho, margin=self.margin, k=self.k, seeds=tuple(seeds))

    def check_table(self) -> None:
        self.ring_config()
