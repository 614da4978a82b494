"""The setting ``zookeeper``: where the servers of the ensemble are, and whether there is a library that speaks with them."""

from __future__ import annotations

from importlib.util import find_spec

from holdfast.errors import ConfigError, ExtraMissing, installing, shown
from holdfast.kit.slots import dns, literal

SERVERS_MAX = 7  # an ensemble of more is slower, not safer; ZooKeeper's own advice is 3, 5 or 7
ACCEPTED = f"accepted are 1 to {SERVERS_MAX} of HOST:PORT, with commas between them; IPv6 in brackets"


def parse_servers(text: str) -> tuple[str, ...]:
    """Each as HOST:PORT. Raises ``ConfigError`` naming the setting."""
    places = [each.strip() for each in text.split(",")]
    if len(places) > SERVERS_MAX:
        raise ConfigError(f"zookeeper: {len(places)} servers; {ACCEPTED}")
    found = []
    for place in places:
        address = literal(place) or dns(place)
        if address is None:
            raise ConfigError(f"zookeeper: {shown(place)} is no server; {ACCEPTED}")
        found.append(str(address))
    if len(set(found)) < len(found):
        raise ConfigError(f"zookeeper: {shown(text)} names a server twice; {ACCEPTED}")
    return tuple(found)


def would(zookeeper: str, zk_session: float, *, is_membership: bool) -> tuple[str, ...]:
    """What an agent with these settings does with the ensemble. Raises ``ConfigError`` if it cannot."""
    servers = parse_servers(zookeeper)
    check_kazoo()
    when = "from the start, because the view is the member list" if is_membership else "while a program of this agent asks for views"
    return (
        f"Views come from the ZooKeeper ensemble {', '.join(servers)}, not from seats. The agent connects with kazoo, in a thread of its"
        f" own, {when}.",
        f"It asks for a session timeout of {zk_session:g} s: a member that dies stays in the view for so long. The ensemble may"
        " grant another one; `holdfast doctor` says if it is longer.",
        "There is one view. A member that reaches no majority of the ensemble has none.",
    )


def check_kazoo() -> None:
    """Before an agent starts anything. Raises ``ExtraMissing`` if the library is not there."""
    if not has_kazoo():
        raise ExtraMissing(f"zookeeper: it needs kazoo, which is not installed: {installing('zookeeper')}")


def has_kazoo() -> bool:
    """It is not imported to find that out: that takes a while."""
    try:
        return find_spec("kazoo") is not None
    except (ImportError, ValueError):  # A program that hides a package may do it in these ways, too.
        return False
