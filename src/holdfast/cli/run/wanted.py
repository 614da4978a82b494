"""What a command of ``holdfast run`` must hold, from its flags.  docs/run.md."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

from holdfast.cli.run.hold_flags import RunKind, RunWay, Wanted, flags, kinds, modifiers, ways
from holdfast.errors import ConfigError, shown


def wanted_hold(given: Mapping[str, str | None], hold: str | None, option: tuple[str, ...], grace: float | None) -> Wanted:
    """``given``: the value of the flag of each kind, by its parameter."""
    for flag, text in (*((kind.option, given.get(kind.parameter)) for kind in kinds()), ("--hold", hold)):
        if text == "":  # An unset variable of a script must not become "runs everywhere at once".
            raise ConfigError(f"{flag}: is empty; accepted is the name of what the command must hold, or no {flag} at all")
        if text is not None and not text.isprintable():
            raise ConfigError(f"{flag}: {shown(text)}; accepted is printable text")
    short = [(kind, text) for kind in kinds() if (text := given.get(kind.parameter))]
    if short and (hold or option or len(short) > 1):
        raise ConfigError(f"{short[0][0].option}: stands for --hold and its options; accepted is one of {flags()}")
    asked_for = {kind.option for kind, _ in short}
    for kind in kinds():
        for modifier in modifiers(kind):
            if given.get(modifier.parameter) is not None and kind.option not in asked_for:
                raise ConfigError(f"{modifier.option}: says how {kind.option} is meant; accepted together with {kind.option}")
    for kind, text in short:
        return _in_its_way(kind, text, grace, given)
    if hold:
        parsed_hold(hold)
    return Wanted(hold or "", _options(option), grace)


def _in_its_way(kind: RunKind, text: str, grace: float | None, given: Mapping[str, str | None]) -> Wanted:
    """What the flag of this kind asks for, in the way that was given or else in the kind's own."""
    by = None if kind.by is None else given.get(kind.by.parameter)
    others = {way.name: way for way in ways(kind)}
    if kind.by is not None and by is not None and by not in (kind.way, *others):
        raise ConfigError(f"{kind.by.option}: {shown(by)}; accepted are {', '.join((kind.way, *others))}")
    more = {way.name: _given_of(way, given) for way in others.values()}
    for way in others.values():
        if kind.by is not None and more[way.name] and way.name != by:
            option = next(each.option for each in way.modifiers if each.parameter in more[way.name])
            raise ConfigError(f"{option}: {way.says}; accepted together with {kind.by.option} {way.name}")
    chosen = None if by is None else others.get(by)
    return kind.wanted(text, grace) if chosen is None else chosen.wanted(text, grace, more[chosen.name])


def _given_of(way: RunWay, given: Mapping[str, str | None]) -> dict[str, str]:
    return {each.parameter: value for each in way.modifiers if (value := given.get(each.parameter)) is not None}


def parsed_hold(text: str) -> tuple[str, str]:
    kind, colon, name = text.partition(":")
    if not kind or not colon or not name:
        raise ConfigError(f"--hold {shown(text)}: accepted is KIND:NAME")
    return kind, name


def _options(pairs: tuple[str, ...]) -> dict[str, object]:
    """Values that are numbers travel as numbers, true and false as such."""
    options: dict[str, object] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not name or not equals:
            raise ConfigError(f"--option {shown(pair)}: accepted is NAME=VALUE")
        options[name] = _value(value)
    return options


def _value(text: str) -> object:
    for kind in (int, float):
        with suppress(ValueError):
            return kind(text)
    return {"true": True, "false": False}.get(text, text)
