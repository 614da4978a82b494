"""The tree of commands."""

from __future__ import annotations

import typer

from holdfast.cli import lab, version

# Plain help: drawing boxes would import rich, which costs more than most commands take.
app = typer.Typer(
    name="holdfast",
    help="Coordination without a coordinator: membership, leadership, tickets and rate limits with proved bounds in time.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
app.command("version")(version.version)
app.add_typer(lab.app, name="lab")


@app.callback()
def _root() -> None:
    """Without a callback typer would make a lone command the whole program."""
