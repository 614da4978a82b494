"""``holdfast lab ring``: members of a ring on real sockets, one or many in this process."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from holdfast.errors import ConfigError


def ring(
    *,
    members: Annotated[
        str, typer.Option("--members", help="Who runs here, and where each listens; port 0 takes a free one.", metavar="a=HOST:PORT,...")
    ],
    seeds: Annotated[str, typer.Option("--seeds", help="Where to knock, the same list everywhere.", metavar="HOST:PORT,...")] = "",
    found: Annotated[str, typer.Option("--found", help="This member begins a ring at once, without asking others.", metavar="NAME")] = "",
    lease: Annotated[float, typer.Option("--lease", help="T_l, seconds.")] = 1.0,
    k: Annotated[int, typer.Option("--k", help="Neighbours per side.")] = 3,
    adopt: Annotated[bool, typer.Option("--adopt", help="Refused for another value of a number: take the ring's.")] = False,
    keys: Annotated[str, typer.Option("--keys", help="Print who owns these, and until when.", metavar="KEY,...")] = "",
    orders: Annotated[
        bool, typer.Option("--orders", help="Read orders from stdin: crash, start, leave NAME; mark. Its end ends everything.")
    ] = False,
    idle: Annotated[bool, typer.Option("--idle", help="No member starts before it is ordered to.")] = False,
    advertise: Annotated[
        str, typer.Option("--advertise", help="Where peers reach the one member that runs here.", metavar="HOST:PORT")
    ] = "",
    group: Annotated[str, typer.Option("--group", help="Members of other groups are not understood.")] = "lab",
    key_file: Annotated[Path | None, typer.Option("--key-file", help="The group's key.", metavar="FILE")] = None,
    insecure: Annotated[bool, typer.Option("--insecure", help="No key, no encryption; on loopback only.")] = False,
    state_dir: Annotated[
        Path | None, typer.Option("--state-dir", help="One folder per member: its lives, and that the former ones are over.", metavar="DIR")
    ] = None,
) -> None:
    """Members of a ring on real sockets. Events are JSON lines on stdout, stamped with the clock the ring counts with (CLOCK_BOOTTIME);
    SIGTERM makes them leave and ends it with exit code 0."""
    import asyncio

    from holdfast.cli.lab.sockets import sealer_for
    from holdfast.features.ring.cli.fleet import Plan, parsed_members, parsed_seeds, serve
    from holdfast.features.ring.protocol.config import RingConfig

    if idle and not orders:
        raise ConfigError("--idle without --orders: no member could be ordered to start")
    plan = Plan(
        members=parsed_members(members, found=found, advertise=advertise),
        advertise=advertise,
        seeds=parsed_seeds(seeds),
        found=found,
        config=RingConfig(lease=lease, k=k),
        adopt=adopt,
        keys=tuple(key for key in keys.split(",") if key),
        orders=orders,
        idle=idle,
        sealer=sealer_for(group, key_file, insecure=insecure),
        insecure=insecure,
        state_dir=state_dir,
    )
    asyncio.run(serve(plan))
