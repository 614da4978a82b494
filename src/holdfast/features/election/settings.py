"""The setting of elections.  Spec: election 4 (hold), 5.10."""

from typing import TYPE_CHECKING, Annotated

from holdfast.kit.settings import Setting, Table

if TYPE_CHECKING:
    from holdfast.features.election.protocol.config import ElectionConfig


class ElectionSettings(Table):
    """How far ahead the deadline of an elected leader is. How a name is elected is said by who asks for it."""

    __slots__ = ()

    election_hold: Annotated[
        float,
        Setting(
            "How far ahead a client's deadline is that leads by election: two probe periods.", "SECONDS", (2.0, 10.0, 0.4), (0.1, 600.0)
        ),
    ] = 0.0

    @classmethod
    def memberships(cls) -> tuple[str, ...]:
        return ("gossip",)

    def election_config(self) -> "ElectionConfig":
        """The numbers of elections."""
        from holdfast.features.election.protocol.config import ElectionConfig

        return ElectionConfig(hold=self.election_hold)
