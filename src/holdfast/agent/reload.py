"""SIGHUP: what can change while an agent runs, and what cannot.

Keys, tags and the log level change. Numbers that two ends count (F4), names and addresses do not: those are refused by name, and the
rest still applies. A file that cannot be used as a whole changes nothing.
"""

from __future__ import annotations

from msgspec.structs import replace

from holdfast.agent.agent import Agent
from holdfast.agent.start import Settings
from holdfast.errors import HoldfastError

CHANGEABLE = ("key_file", "key", "tags", "log_level")
SECRET = ("key",)


def reload(agent: Agent, settings: Settings) -> None:
    """Read the settings again and apply what can be applied."""
    log, before = agent.log, agent.config
    try:
        now, _ = settings.load()
        keys = agent.home.keys.reload(now)
    except HoldfastError as error:
        log.error("reload refused", text=str(error))
        return
    changed = [name for name, value in now.shown().items() if value != before.shown()[name]]
    for name in changed:
        if name not in CHANGEABLE:
            log.error(
                "reload refuses",
                setting=name,
                running=getattr(before, name),
                asked=getattr(now, name),
                text="restart the agent to change it",
            )
    log.level = now.log_level
    if keys and agent.home.keys.ring is not None:
        agent.rekey(agent.home.keys.ring)
    if now.tags != before.tags:
        agent.host.post(lambda: agent.set_tags({**dict.fromkeys(before.tags), **now.tags}))
    agent.config = replace(before, key_file=now.key_file, key=now.key, tags=now.tags, log_level=now.log_level)
    applied = [name for name in changed if name in CHANGEABLE] + (["keys"] if keys else [])
    log.info("reloaded", changed=applied)
