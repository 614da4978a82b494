"""The settings of views.  Spec: views 4, 5Z."""

from typing import TYPE_CHECKING, Annotated

from holdfast.errors import ConfigError, shown
from holdfast.kit.settings import ClockSettings, Setting

if TYPE_CHECKING:
    from holdfast.features.views.protocol.config import ViewsConfig


class ViewsSettings(ClockSettings):
    """The heartbeat from which every length follows, and the back end that is no seat."""

    __slots__ = ()

    view_heartbeat: Annotated[
        float, Setting("Heartbeat of views, seconds; every time limit of views follows from it.", "SECONDS", (0.25, 1.0, 0.1), (0.05, 5.0))
    ] = 0.0
    zookeeper: Annotated[str, Setting("Take views from this ZooKeeper ensemble, and not from seats.", "HOST:PORT,...")] = ""
    zk_session: Annotated[float, Setting("Session timeout to ask of ZooKeeper, seconds.", "SECONDS", limits=(0.5, 60.0))] = 4.0
    zk_stale: Annotated[
        float, Setting("A deposed ZooKeeper leader may answer for so long: its tickTime x syncLimit.", "SECONDS", limits=(0.1, 300.0))
    ] = 10.0

    def views_config(self) -> "ViewsConfig":
        """The numbers of views."""
        from holdfast.features.views.protocol.config import ViewsConfig

        return ViewsConfig(heartbeat=self.view_heartbeat, rho=self.rho, margin=self.margin)

    def check_table(self) -> None:
        if not self.zookeeper:
            return
        if getattr(self, "seats", ()):  # of another table: ``Config`` has both
            raise ConfigError(
                f"zookeeper: {shown(self.zookeeper)}, and seats are named as well; accepted is one of the two: views come from ZooKeeper or"
                " from the seats"
            )
        from holdfast.features.views.zookeeper.servers import parse_servers

        parse_servers(self.zookeeper)
