"""What a command of ``holdfast run`` must hold, from its flags.  docs/run.md."""

from __future__ import annotations

from contextlib import suppress
from typing import NamedTuple

from holdfast.errors import ConfigError, shown


class Wanted(NamedTuple):
    """What the command must hold."""

    hold: str  # KIND:NAME; "" for membership
    options: dict[str, object]
    grace: float | None
    lengthened: bool = False  # the hold was asked for with the grace on top


def wanted_hold(lead: str | None, ticket: str | None, hold: str | None, option: tuple[str, ...], grace: float | None) -> Wanted:
    """A term is asked for as much longer as the command needs to stop (detection D26): a renewal in time never costs it its grace."""
    for flag, given in (("--lead", lead), ("--ticket", ticket), ("--hold", hold)):
        if given == "":  # An unset variable of a script must not become "runs everywhere at once".
            raise ConfigError(f"{flag}: is empty; accepted is the name of what the command must hold, or no {flag} at all")
        if given is not None and not given.isprintable():
            raise ConfigError(f"{flag}: {shown(given)}; accepted is printable text")
    short = "--lead" if lead else "--ticket"
    if (lead or ticket) and (hold or option or (lead and ticket)):
        raise ConfigError(f"{short}: stands for --hold and its options; accepted is one of --lead, --ticket and --hold")
    if lead:
        return Wanted(f"lead:{lead}", {"grace": grace or 0.0}, grace or 0.0, lengthened=True)
    if ticket:
        pool, of = parsed_ticket(ticket, "--ticket ")
        return Wanted(f"ticket:{pool}", {"of": of}, grace)
    if hold:
        parsed_hold(hold)
    return Wanted(hold or "", _options(option), grace)


def parsed_hold(text: str) -> tuple[str, str]:
    kind, colon, name = text.partition(":")
    if not kind or not colon or not name:
        raise ConfigError(f"--hold {shown(text)}: accepted is KIND:NAME")
    return kind, name


def parsed_ticket(text: str, flag: str = "") -> tuple[str, int]:
    pool, _, number = text.rpartition(":")
    if not pool or not (number.isascii() and number.isdigit()) or int(number) < 1:
        raise ConfigError(f"{flag}{shown(text)}: accepted is POOL:N, a pool and the number of its tickets, such as gpu:8")
    return pool, int(number)


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
