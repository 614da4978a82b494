"""The settings of the process itself, whatever features it has.  docs/agent.md lists them."""

from collections.abc import Mapping
from typing import Annotated

from msgspec import field

from holdfast.config.addresses import is_loopback
from holdfast.features import MEMBERSHIPS
from holdfast.kit.settings import PRESET_NAMES, Setting, Table

LONGEST_GRANT_MAX = 3600.0  # seconds that a seat without a journal may make all clients wait


class PlaceSettings(Table):
    """Which agent of which group, where it is, and the preset of its timings."""

    __slots__ = ()

    group: Annotated[str, Setting("Agents with the same name here and the same key are one group.", "NAME")] = "default"
    name: Annotated[str, Setting("Name of this agent, unique in the group (default: drawn once, kept in the state directory).", "NAME")] = (
        ""
    )
    bind: Annotated[str, Setting("Where to listen, UDP and TCP; port 0 takes a free one.", "HOST:PORT")] = "127.0.0.1:7946"
    advertise: Annotated[str, Setting("Where others reach it, if not at --bind.", "HOST:PORT")] = ""
    seeds: Annotated[
        tuple[str, ...], Setting("Where to knock, the same list everywhere; several with commas, or repeated.", "HOST:PORT,...")
    ] = ()
    seats: Annotated[tuple[str, ...], Setting("The 1, 3 or 5 agents that remember (default: the first seeds).", "NAME@HOST:PORT,...")] = ()
    key_file: Annotated[str, Setting("The group's key; `holdfast keys generate -o FILE` makes one.", "FILE")] = ""
    key: Annotated[str, Setting("The group's key itself. It is no flag: every user can read the flags of a process.", "KEY")] = ""
    insecure: Annotated[bool, Setting("No key beyond loopback: any machine may read and join.")] = False
    state_dir: Annotated[str, Setting("What must survive a restart; a seat needs one.", "DIR")] = ""
    preset: Annotated[str, Setting("Timing: lan, wan or local.", "PRESET", choices=PRESET_NAMES)] = "lan"

    @property
    def has_key(self) -> bool:
        return bool(self.key or self.key_file)

    @property
    def alone(self) -> bool:
        """F12: without seeds, key and network there is one agent of the group per machine, and it is its own seat."""
        return not (self.seeds or self.seats or self.has_key) and is_loopback(self.bind)


class SeatSettings(Table):
    """No promise of a seat is longer, and a fresh seat waits so long once (F13)."""

    __slots__ = ()

    longest_grant: Annotated[
        float, Setting("No promise of a seat is longer; a fresh seat waits so long once, seconds.", "SECONDS", (5.0, 60.0, 3.0))
    ] = 0.0


class LocalSettings(Table):
    """What the agent says of itself, and how it is reached and watched on its machine."""

    __slots__ = ()

    tags: Annotated[
        Mapping[str, str], Setting("What this agent says about itself; several with commas, or repeated.", "NAME=VALUE,...")
    ] = field(default_factory=dict)
    socket: Annotated[str, Setting("Path of the local socket (default: of the group, in the runtime directory).", "PATH")] = ""
    socket_mode: Annotated[int, Setting("Permissions of the local socket.", "OCTAL")] = 0o600
    http: Annotated[str, Setting("Serve the page, /v1 and /metrics there.", "HOST:PORT")] = ""
    http_token_file: Annotated[str, Setting("The bearer token that changing calls need.", "FILE")] = ""
    log_level: Annotated[str, Setting("debug, info, warning or error.", "LEVEL", choices=("debug", "info", "warning", "error"))] = "info"
    log_format: Annotated[
        str, Setting("auto (text in a terminal, JSON elsewhere), json or text.", "FORMAT", choices=("auto", "json", "text"))
    ] = "auto"
    membership: Annotated[str, Setting(f"How members are found: {', '.join(MEMBERSHIPS)}.", "KIND", choices=tuple(MEMBERSHIPS))] = next(
        iter(MEMBERSHIPS)
    )
    moved: Annotated[bool, Setting("The state directory was moved here from another machine, on purpose.")] = False
