"""What a command of ``holdfast run`` must hold, from its flags.  docs/run.md."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

from holdfast.cli.run.hold_flags import Wanted, checked, flags, kinds
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
        for modifier in kind.modifiers:
            if given.get(modifier.parameter) is not None and kind.option not in asked_for:
                raise ConfigError(f"{modifier.option}: says how {kind.option} is meant; accepted together with {kind.option}")
    for kind, text in short:
        if not kind.modifiers:
            return checked(kind.wanted(text, grace))
        more = {each.parameter: value for each in kind.modifiers if (value := given.get(each.parameter)) is not None}
        return checked(kind.wanted(text, grace, more))
    if hold:
        parsed_hold(hold)
    return Wanted(hold or "", _options(option), grace)


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
