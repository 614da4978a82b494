"""The tree of commands for typer: help, completion, and clear words about mistakes. ``cli.verbs`` says what is in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from inspect import Parameter, Signature
from typing import Annotated, Any, ClassVar

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command as build

from holdfast.cli.parser import Flag, Taken, Verb, Word, taken
from holdfast.cli.verbs import Entry, Table, everything


class LazyGroup(TyperGroup):
    """Verbs of a table. Their names and titles are known; what they do is imported when one is called."""

    table: ClassVar[Table]
    _listing = False

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.commands = {name: TyperCommand(name, help=entry.title) for name, entry in self.table.verbs.items()}

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        listed = self.commands.get(cmd_name)
        return listed if listed is None or self._listing else command(cmd_name, self.table.verbs[cmd_name])

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if self.table.default and (not args or (args[0].startswith("-") and args[0] != "--help")):
            args = [self.table.default, *args]
        return super().parse_args(ctx, args)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        with self._titles():
            super().format_commands(ctx, formatter)

    def shell_complete(self, ctx: Any, incomplete: str) -> Any:
        with self._titles():
            return super().shell_complete(ctx, incomplete)

    @contextmanager
    def _titles(self) -> Iterator[None]:
        self._listing = True
        try:
            yield
        finally:
            self._listing = False


def command(name: str, entry: Entry | Table) -> Any:
    """What typer calls, for one entry of a table."""
    if isinstance(entry, Entry):
        single = _typer()
        single.command(name)(_declared(entry.load()))
        return build(single)
    return build(_group(name, entry))


def _version(asked: bool) -> None:
    if asked:
        from holdfast.cli.version import version

        version()
        raise typer.Exit


def _branch() -> None:
    """Without a callback typer would make a lone command the whole program."""


def _root(
    *, version: Annotated[bool, typer.Option("--version", is_eager=True, callback=_version, help="Print the version.")] = False
) -> None:
    """The options of the program itself."""


def _group(name: str, table: Table, callback: Callable[..., None] = _branch) -> typer.Typer:
    kind = type("Group", (LazyGroup,), {"table": table})
    default = table.default
    meant = f"\n\nWithout a command: {default}, with its options; see `holdfast {name} {default} --help`." if default else ""
    group = _typer(name=name, help=f"{table.title}{meant}", cls=kind, no_args_is_help=True, add_completion=callback is _root)
    group.callback()(callback)
    return group


def _typer(*, add_completion: bool = False, **options: Any) -> typer.Typer:
    # Plain help: drawing boxes would import rich, which costs more than most commands take.
    return typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False, add_completion=add_completion, **options)


def _declared(verb: Verb) -> Callable[..., Any]:
    """The verb as typer wants it declared; one that was written for typer stays as it is."""
    parameters = taken(verb)
    if not all(isinstance(each.how, Flag | Word) for each in parameters):
        return verb
    tuples = [each.name for each in parameters if each.many]

    def called(**values: Any) -> Any:
        return verb(**{**values, **{name: tuple(values[name] or ()) for name in tuples}})

    hints = {each.name: _hint(each) for each in parameters}
    declared = [Parameter(p.name, Parameter.KEYWORD_ONLY, annotation=hints[p.name], default=_default(p)) for p in parameters]
    called.__doc__, called.__name__, called.__annotations__ = verb.__doc__, verb.__name__, hints
    called.__signature__ = Signature(declared)  # type: ignore[attr-defined]
    return called


def _default(parameter: Taken) -> Any:
    if parameter.required:
        return Parameter.empty
    return list(parameter.default) if parameter.many else parameter.default


def _hint(parameter: Taken) -> Any:
    how = parameter.how
    kind: Any = list[parameter.kind] if parameter.many else parameter.kind  # type: ignore[name-defined]
    if parameter.default is None and not parameter.required:
        kind = kind | None
    options: dict[str, Any] = {"help": how.help, "metavar": how.metavar, "show_default": parameter.default not in (None, "", False, ())}
    if how.complete:
        options["autocompletion"] = _completion(how.complete)
    if isinstance(how, Flag):
        return Annotated[kind, typer.Option(*how.names, **options)]
    return Annotated[kind, typer.Argument(**options)]


def _completion(what: str | tuple[str, ...]) -> Callable[..., list[str]]:
    if isinstance(what, tuple):
        return lambda incomplete: [each for each in what if each.startswith(incomplete)]
    assert what == "members"

    def offered(ctx: typer.Context, incomplete: str) -> list[str]:
        from holdfast.cli.completion import members

        return members(ctx.params.get("agent") or "", ctx.params.get("group") or "", incomplete)

    return offered


app = _group("holdfast", everything(), _root)
