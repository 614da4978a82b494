"""Addresses in settings: ``HOST:PORT``, IPv6 in brackets.  Part of ``config``; docs/agent.md.

``ipaddress`` takes longer to import than all of ``config``, and not every command needs it: functions import it.
"""

from __future__ import annotations

from holdfast.errors import ConfigError, shown

PORT_MAX = 65_535


def is_loopback(where: str) -> bool:
    """No other machine can reach it."""
    from ipaddress import ip_address

    host = split(where)[0]
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def endpoint(field: str, text: str, *, listen: bool = False) -> tuple[str, int]:
    """``HOST:PORT``, the host a name or an address, IPv6 in brackets."""
    host, port = split(text)
    low = 0 if listen else 1
    if not host or any(c.isspace() or not c.isprintable() for c in host) or not (port.isascii() and port.isdigit()):
        raise ConfigError(f'{field}: {shown(text)}; accepted are "10.0.0.5:7946", "[::1]:7946" and "name.example.org:7946"')
    if len(port) > 5 or not low <= int(port) <= PORT_MAX:
        raise ConfigError(f"{field}: {shown(text)}; the port must lie between {low} and {PORT_MAX}")
    return host, int(port)


def check_literal(field: str, text: str) -> None:
    """Raises ``ConfigError`` unless it is an address and no name."""
    from ipaddress import ip_address

    host, _ = endpoint(field, text, listen=True)
    try:
        ip_address(host)
    except ValueError:
        raise ConfigError(
            f"{field}: {shown(text)}; accepted are addresses of this machine: 127.0.0.1:PORT, 0.0.0.0:PORT, [::1]:PORT"
        ) from None


def is_unspecified(text: str) -> bool:
    """Whether it stands for every address of this machine."""
    from ipaddress import ip_address

    return ip_address(split(text)[0]).is_unspecified


def split(text: str) -> tuple[str, str]:
    """Host and port as texts; the host is empty where there is no port, or an IPv6 address without brackets."""
    if text.startswith("["):
        host, _, rest = text[1:].partition("]")
        return (host, rest[1:]) if rest.startswith(":") and ":" in host else ("", "")
    host, _, port = text.rpartition(":")
    return ("", "") if ":" in host else (host, port)
