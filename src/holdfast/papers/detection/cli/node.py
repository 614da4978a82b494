"""``holdfast lab node``: one real process on real sockets that runs the same Omega as the lab."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from holdfast.errors import ConfigError

INTERVAL_MIN, INTERVAL_MAX = 0.01, 60.0  # seconds; below, a loop's own jitter looks like a death; above, a user does not wait for it


def node(
    *,
    name: Annotated[str, typer.Option("--name", help="This node's name, unique in the group.")],
    bind: Annotated[str, typer.Option("--bind", help="Where to listen, UDP and TCP; port 0 takes a free one.", metavar="HOST:PORT")],
    peers: Annotated[str, typer.Option("--peers", help="The other members, the same list everywhere.", metavar="a=HOST:PORT,...")] = "",
    advertise: Annotated[str, typer.Option("--advertise", help="Where peers reach this node, if not at --bind.", metavar="HOST:PORT")] = "",
    group: Annotated[str, typer.Option("--group", help="Members of other groups are not understood.")] = "lab",
    key_file: Annotated[
        Path | None, typer.Option("--key-file", help="The group's key; every packet is sealed with it.", metavar="FILE")
    ] = None,
    insecure: Annotated[bool, typer.Option("--insecure", help="No key, no encryption; on loopback only.")] = False,
    state_dir: Annotated[
        Path | None, typer.Option("--state-dir", help="Keeps the number of this life; none: the clock's.", metavar="DIR")
    ] = None,
    interval: Annotated[float, typer.Option("--interval", help="Seconds between two heartbeats of the leader.")] = 1.0,
) -> None:
    """One member of a leader election on real sockets. Events are JSON lines on stdout; SIGTERM ends it with exit code 0."""
    import asyncio

    from holdfast.cli.lab.sockets import parsed_name, sealer_for
    from holdfast.papers.detection.cli.member import Member, parsed_peers, serve

    if not INTERVAL_MIN <= interval <= INTERVAL_MAX:
        raise ConfigError(f"--interval {interval:g}: accepted are {INTERVAL_MIN:g} to {INTERVAL_MAX:g} seconds")
    member = Member(
        name=parsed_name(name),
        bind=bind,
        advertise=advertise,
        peers=parsed_peers(peers, name),
        sealer=sealer_for(group, key_file, insecure=insecure),
        insecure=insecure,
        state_dir=state_dir,
        interval=interval,
    )
    asyncio.run(serve(member))
