"""SIGHUP: what can change while an agent runs, and what cannot.

Keys, tags and the log level change. Numbers that two ends count (F4), names and addresses do not: those are refused by name, and the
rest still applies. A file that cannot be used changes nothing at all.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from holdfast.agent.life.agent import Agent
from holdfast.agent.life.start import Settings
from holdfast.config import STRETCHING, Config, Timing
from holdfast.errors import ConfigError, HoldfastError

CHANGEABLE = ("key_file", "tags", "log_level")


def reload(agent: Agent, settings: Settings) -> None:
    """Read the settings again and apply what can be applied."""
    log, before = agent.log, agent.config
    try:
        now, sources = settings.load()
        keyring = agent.home.keys.reload(now)
        if keyring is not None:
            agent.rekey(keyring, given=True)
    except HoldfastError as error:
        log.error("reload refused", text=str(error))
        return
    changed = differences(before, now, sources)
    running, asked = before.shown(), now.shown()  # Without secrets.
    for name in changed:
        if name not in CHANGEABLE:
            log.error("reload refuses", setting=name, running=running.get(name), asked=asked[name], text="restart the agent to change it")
    agent.narrator.at_level(now.log_level)
    if now.tags != before.tags:
        # Only what changed in the file: tags that a client set stay.
        agent.host.post(lambda: _set_tags(agent, {**dict.fromkeys(before.tags), **now.tags}))
    agent.config = replace(before, key_file=now.key_file, tags=now.tags, log_level=now.log_level)
    applied = [name for name in changed if name in CHANGEABLE] + (["keys"] if keyring is not None else [])
    log.info("reloaded", changed=applied)


def _set_tags(agent: Agent, tags: Mapping[str, str | None]) -> None:
    """In a turn. Beside those that clients have set there may be no room for them, and that is no reason to end."""
    try:
        agent.set_tags(tags)
    except ConfigError as error:
        agent.log.error("reload refuses", setting="tags", text=str(error))


def differences(before: Config, now: Config, sources: Mapping[str, str]) -> list[str]:
    """The settings that are others now. A timing that only follows the preset, or the setting that stretches it, is not named beside it."""
    shown = before.shown()
    changed = [name for name, value in now.shown().items() if value != shown.get(name)]
    follows = {*STRETCHING, "preset"} & set(changed)
    return [name for name in changed if not (follows and name in Timing._fields and name not in sources)]
