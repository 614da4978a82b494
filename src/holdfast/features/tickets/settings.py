"""The settings of tickets.  Spec: tickets 4."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

from holdfast.errors import ConfigError, shown
from holdfast.kit.settings import ClockSettings, Needed, Setting

if TYPE_CHECKING:
    from holdfast.features.tickets.protocol.config import Placement, TicketConfig

TICKET_K_MAX, TICKET_K_RING = 3, 2  # the most, and what "ring" gets unless it is told otherwise (tickets 4, tickets D27)
NOT_GIVEN = -1  # 0 is a number that a user may want
RTX_ROUNDS, PHASE_ROUNDS, POLL_ROUNDS = 0.4, 3.0, 2.0  # tickets 4: 0.2 s, 1.5 s and 1 s at T = 0.5 s


class TicketSettings(ClockSettings):
    """D and T, and who keeps tickets."""

    __slots__ = ()

    ticket_lease: Annotated[float, Setting("D of tickets, seconds.", "SECONDS", (2.0, 8.0, 1.0), (0.2, 60.0))] = 0.0
    ticket_round: Annotated[float, Setting("T of tickets, seconds.", "SECONDS", (0.5, 2.0, 0.2), (0.05, 10.0))] = 0.0
    ticket_guardians: Annotated[
        str,
        Setting(
            "Who keeps tickets: seats, or ring, the paper's placement: loses some when many agents die.", "PLACE", choices=("seats", "ring")
        ),
    ] = "seats"
    ticket_k: Annotated[
        int, Setting("Of a ticket's guardians so many may be lost, 0 to 3; only with --ticket-guardians ring (default: 2).", "N")
    ] = NOT_GIVEN

    def ticket_config(self, seats: int) -> "TicketConfig":
        """The numbers of tickets. What the specification says for a round of half a second is kept in proportion to it."""
        from holdfast.features.tickets.protocol.config import K_MAX, TicketConfig

        period = self.ticket_round
        guardians: Placement = "ring" if self.ticket_guardians == "ring" else "seats"
        return TicketConfig(
            guardians=guardians,
            k=self.ticket_k if guardians == "ring" else min((seats - 1) // 2, K_MAX),
            period=period,
            lease=self.ticket_lease,
            rho=self.rho,
            rtx=RTX_ROUNDS * period,
            phase_timeout=PHASE_ROUNDS * period,
            poll=POLL_ROUNDS * period,
        )

    @classmethod
    def given_variables(cls) -> tuple[str, ...]:
        return ("HOLDFAST_TICKET",)

    def derived(self) -> Mapping[str, Any]:
        return {"ticket_k": TICKET_K_RING} if self.ticket_guardians == "ring" and self.ticket_k == NOT_GIVEN else {}

    def check_table(self) -> None:
        if 4 * self.ticket_round > self.ticket_lease:  # three rounds in a row may get lost
            raise ConfigError(
                f"ticket_round: {shown(self.ticket_round)}; accepted is at most a quarter of ticket_lease ({self.ticket_lease:g} s)"
            )
        if self.ticket_guardians != "seats":
            if getattr(self, "membership", "ring") == "gossip":  # of another table: ``Config`` has both
                raise ConfigError('ticket_guardians: "ring" needs membership = "ring"; with "gossip" accepted is seats')
            if not 0 <= self.ticket_k <= TICKET_K_MAX:
                raise ConfigError(f"ticket_k: {self.ticket_k}; accepted are 0 to {TICKET_K_MAX}")
        elif self.ticket_k != NOT_GIVEN:  # H140: a number that would be ignored is refused
            raise ConfigError(
                f'ticket_k: {self.ticket_k}, and ticket_guardians is "seats", where the number of seats decides; '
                'accepted is none, or ticket_guardians = "ring" as well'
            )

    def grant_needed(self) -> Needed:
        return Needed(self.ticket_lease, "a ticket's lease")
