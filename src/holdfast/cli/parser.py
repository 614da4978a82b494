"""A quick parser of command lines, and how a verb declares its flags (``Flag``) and words (``Word``) for it.

typer reads command lines well and explains them well, and costs more time than asking the agent does. So the flags of a verb
are declared without it, in the annotations of a function with keywords only. ``read`` understands what is spelled plainly; whatever
else there is (help, a mistake, completion) goes to typer, which gets the same declaration (``cli.app``). Only typer refuses.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any, NamedTuple, get_args, get_origin, get_type_hints

Verb = Callable[..., int | None]


class Flag:
    """A word that begins with ``--``; ``bool`` takes no value, a tuple may be given several times. ``complete`` are the values that a shell
    may offer."""

    __slots__ = ("complete", "help", "metavar", "names")

    def __init__(self, *names: str, help: str, metavar: str | None = None, complete: tuple[str, ...] = ()) -> None:  # noqa: A002 - as in typer
        self.names, self.help, self.metavar, self.complete = names, help, metavar, complete


class Word:
    """A word by its place; a tuple takes all that follow. ``complete`` says what a shell may offer: "members" or nothing."""

    __slots__ = ("complete", "help", "metavar")

    def __init__(self, *, help: str, metavar: str, complete: str = "") -> None:  # noqa: A002 - as in typer
        self.help, self.metavar, self.complete = help, metavar, complete


class Taken(NamedTuple):
    """One parameter of a verb."""

    name: str
    kind: type[Any]  # str, int, float or bool
    many: bool
    how: Any  # a Flag, a Word, or what only typer knows
    default: Any
    required: bool


def taken(verb: Verb) -> list[Taken]:
    """The parameters of a verb, in the order of their declaration."""
    defaults = verb.__kwdefaults__ or {}
    found = []
    for name, hint in get_type_hints(verb, include_extras=True).items():
        if name == "return":
            continue
        kind, how = get_args(hint)[:2] if get_origin(hint) is Annotated else (hint, None)
        many = get_origin(kind) is tuple
        if get_args(kind):  # tuple[X, ...] or X | None
            kind = get_args(kind)[0]
        found.append(Taken(name, kind, many, how, defaults.get(name), name not in defaults))
    return found


def read(verb: Verb, words: Sequence[str]) -> dict[str, Any] | None:
    """The values for the verb's parameters; None where typer has to look at it."""
    parameters = taken(verb)
    if not all(isinstance(each.how, Flag | Word) for each in parameters):
        return None
    return _Reader(parameters).read(list(words))


class _Reader:
    def __init__(self, parameters: list[Taken]) -> None:
        self._places = [each for each in parameters if isinstance(each.how, Word)]
        self._flags = {name: each for each in parameters if isinstance(each.how, Flag) for name in each.how.names}
        self._parameters = parameters
        self._values: dict[str, Any] = {}

    def read(self, words: list[str]) -> dict[str, Any] | None:
        places: list[str] = []
        words.reverse()  # the next one is at the end
        while words:
            word = words.pop()
            if word == "--":
                places += reversed(words)
                break
            if not word.startswith("-") or word == "-":
                places.append(word)
            elif not self._read_flag(word, words):
                return None
        return self._all() if self._read_places(places) else None

    def _read_flag(self, word: str, rest: list[str]) -> bool:
        name, equals, value = word.partition("=")
        flag = self._flags.get(name)
        if flag is None or (flag.kind is bool and equals):
            return False
        if flag.kind is bool:
            self._values[flag.name] = True
            return True
        if not equals and not rest:
            return False
        return self._put(flag, value if equals else rest.pop())

    def _read_places(self, words: list[str]) -> bool:
        for at, place in enumerate(self._places):
            if place.many:
                return all(self._put(place, word) for word in words[at:])
            if at < len(words) and not self._put(place, words[at]):
                return False
        return len(words) <= len(self._places)

    def _put(self, parameter: Taken, word: str) -> bool:
        try:
            value = parameter.kind(word)
        except ValueError:
            return False
        if parameter.many:
            self._values[parameter.name] = (*self._values.get(parameter.name, ()), value)
        else:
            self._values[parameter.name] = value
        return True

    def _all(self) -> dict[str, Any] | None:
        if any(each.required and each.name not in self._values for each in self._parameters):
            return None
        return {each.name: each.default for each in self._parameters} | self._values
