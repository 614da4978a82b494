"""The settings of rate limits.  Spec: limits 4."""

from typing import TYPE_CHECKING, Annotated

from holdfast.kit.settings import Setting, Table

if TYPE_CHECKING:
    from holdfast.features.limits.protocol.config import LimitsConfig


class LimitsSettings(Table):
    """The epoch, from which the other lengths follow."""

    __slots__ = ()

    limit_epoch: Annotated[
        float,
        Setting(
            "Epoch of rate limits, seconds: how often members tell each other what they want.", "SECONDS", (0.5, 1.0, 0.25), (0.05, 2.0)
        ),
    ] = 0.0

    def limits_config(self) -> "LimitsConfig":
        """The numbers of limits."""
        from holdfast.features.limits.protocol.config import LimitsConfig

        return LimitsConfig(epoch=self.limit_epoch)
