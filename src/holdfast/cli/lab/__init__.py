"""``holdfast lab``: the simulator. One file per verb."""

from __future__ import annotations

import typer

from holdfast.cli.lab import demo, listing, node, plan, replay, reproduce, ring, run, script, sweep

app = typer.Typer(
    help="The simulator: virtual time, seeded faults, invariants, every figure of the papers.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
app.command("list")(listing.listing)
app.command("run")(run.run)
app.command("sweep")(sweep.sweep)
app.command("replay")(replay.replay)
app.command("plan")(plan.plan)
app.command("script")(script.script)
app.command("reproduce")(reproduce.reproduce)
app.command("demo")(demo.demo)
app.command("node")(node.node)
app.command("ring")(ring.ring)
