"""SIGHUP: keys, tags and the log level change; whatever two ends count, names and addresses do not."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from holdfast.agent.life.reload import differences, reload
from holdfast.agent.life.start import Settings
from holdfast.config import TAGS_MAX, load_with_sources
from holdfast.errors import ConfigError
from holdfast.host import ROWS_MAX
from holdfast.wire.keys import generate, parse_key
from tests.agent.live import Live
from tests.support.agents import AgentProcess, Fleet, until


def hang_up(agent: AgentProcess) -> list[dict[str, object]]:
    """SIGHUP, and the lines that it wrote."""
    before = len(agent.log())
    agent.signal(signal.SIGHUP)
    until(lambda: any(str(line.get("event")).startswith(("reloaded", "reload refused")) for line in agent.log()[before:]), "it reloads")
    return [line for line in agent.log()[before:] if str(line.get("event")).startswith("reload") or line.get("event") == "keys"]


@pytest.mark.parametrize("changes, named", [
    ({"lease": 2.0}, ["lease"]),
    ({"preset": "wan"}, ["preset"]),
    ({"lease": 2.0, "arbitration": 0.7}, ["lease", "arbitration"]),
    ({"arbitration": 0.7, "tags": {"a": "b"}, "k": 4}, ["arbitration", "k", "tags"]),
    ({"ticket_lease": 3.0, "name": "other", "bind": "127.0.0.1:1"}, ["name", "bind", "ticket_lease"]),
    ({}, []),
], ids=str)  # fmt: skip
def test_differences_are_named(changes: dict[str, object], named: list[str]) -> None:
    """What a reload would change, by name; timings that follow another setting are not named beside it."""
    before, _ = load_with_sources()
    now, sources = load_with_sources(overrides=changes)
    assert differences(before, now, sources) == named


def test_reload(tmp_path: Path) -> None:
    """Tags, log level and keys apply; T_l, D and the name are refused by name; a broken file changes nothing; the group stays whole."""
    old, new = generate(), generate()
    key_file, config = tmp_path / "keys", tmp_path / "holdfast.toml"
    key_file.write_text(f"{old}\n")
    config.write_text('tags = {zone = "eu", rack = "1"}\n')
    with Fleet(tmp_path, key=None, key_file=str(key_file)) as fleet:
        agent = fleet.start(name="a", config=str(config))
        peer = fleet.start(name="b", seeds=[agent.address], log_level="debug")
        agent.until_said("Joined", member=peer.id)
        peer.until_said("Joined", member=agent.id)
        _refuses_what_cannot_change(agent, config)
        peer.until_said("Updated", member=agent.id)
        _changes_nothing_by_a_broken_file(agent, config)
        _rotates_by_file([agent, peer], key_file, old, new)
        for each in (agent, peer):
            assert each.said("Suspected") is None
            assert each.said("Expelled") is None
            assert old not in each.stderr
            assert each.stop() == 0


def _refuses_what_cannot_change(agent: AgentProcess, config: Path) -> None:
    config.write_text('tags = {zone = "us"}\nlog_level = "debug"\nlease = 2.0\nticket_lease = 9.0\nk = 4\n')
    *refused, reloaded = hang_up(agent)
    assert {(line["setting"], line["running"], line["asked"]) for line in refused} == {
        ("lease", 0.4, 2.0), ("ticket_lease", 1.0, 9.0), ("k", 3, 4),
    }  # fmt: skip
    assert reloaded["changed"] == ["tags", "log_level"]


def _changes_nothing_by_a_broken_file(agent: AgentProcess, config: Path) -> None:
    config.write_text('log_level = "error"\ntags = 3\n')
    (refused,) = hang_up(agent)
    assert refused["event"] == "reload refused"
    assert str(refused["text"]).startswith("tags: 3; accepted is a table of texts")
    config.write_text('tags = {zone = "us"}\nlog_level = "debug"\nlease = 2.0\nticket_lease = 9.0\nk = 4\n')
    assert hang_up(agent)[-1]["changed"] == []  # Neither the level nor the tags were touched.
    config.write_text('tags = {zone = "us"}\nlog_level = "debug"\n')
    assert [line["event"] for line in hang_up(agent)] == ["reloaded"]


def _rotates_by_file(agents: list[AgentProcess], key_file: Path, old: str, new: str) -> None:
    """All can read the new key, then all write with it, then nobody reads the old one."""
    ids = {text: parse_key(text).id.hex() for text in (old, new)}
    for keys in ((old, new), (new, old), (new,)):
        key_file.write_text("\n".join(keys) + "\n")
        for agent in agents:
            told, reloaded = hang_up(agent)
            assert told["ids"] == [ids[key] for key in keys]
            assert reloaded["changed"] == ["keys"]
    key_file.write_text("no key\n")
    for agent in agents:
        (refused,) = hang_up(agent)
        assert str(refused["text"]).startswith("key_file: key file")


def test_no_key_is_in_the_log(tmp_path: Path) -> None:
    """A key that moved from a file into the settings, or back, is refused by name; neither value is written anywhere."""
    key = generate()
    file, config, state = tmp_path / "key", tmp_path / "holdfast.toml", tmp_path / "state"
    file.write_text(key)
    config.write_text(f'key_file = "{file}"\nstate_dir = "{state}"\n')
    with Fleet(tmp_path, key=None) as fleet:
        agent = fleet.start(name="a", config=str(config))
        config.write_text(f'key = "{key}"\nstate_dir = "{state}"\n')
        refused, _ = hang_up(agent)
        assert (refused["setting"], refused["running"], refused["asked"]) == ("key", "", "(hidden)")
        assert agent.stop() == 0
        assert key not in agent.stderr


def test_tags_that_do_not_fit_end_nothing(tmp_path: Path) -> None:
    """Clients have set as many tags as there may be: those of the file are refused, and the agent lives on with what it has."""
    with Live(tmp_path) as live:
        live.turn(lambda: live.agent.set_tags({f"t{n}": "x" for n in range(TAGS_MAX)}))
        given = {"group": "live", "bind": "127.0.0.1:0", "socket": live.path, "preset": "local", "tags": {"more": "x"}}
        live.call(lambda: reload(live.agent, Settings(None, {}, given)))
        assert live.turn(lambda: sorted(live.agent.tags)) == sorted(f"t{n}" for n in range(TAGS_MAX))
        del given["tags"]
        live.call(lambda: reload(live.agent, Settings(None, {}, given)))
        assert live.turn(lambda: len(live.agent.tags)) == TAGS_MAX


def test_tags_beside_topics_change_together_or_not_at_all(tmp_path: Path) -> None:
    """A member has 64 rows for tags, topics and the rest. Tags that do not fit leave those that were there."""
    with Live(tmp_path) as live:
        live.turn(lambda: live.agent.set_tags({"old": "1", "other": "2"}))
        for n in range(ROWS_MAX - len(live.turn(lambda: live.agent.view().me.rows))):
            live.turn(lambda n=n: live.agent.broadcast.on_rumour(f"u:{n}", lambda rumour, payload: None))  # type: ignore[misc]
        before = live.turn(lambda: dict(live.agent.view().me.rows))

        def change() -> str:
            with pytest.raises(ConfigError) as refused:
                live.agent.set_tags({"old": "3", "other": None, **{f"t{n}": "x" for n in range(8)}})
            return str(refused.value)

        assert "at most 64" in live.turn(change)
        assert live.turn(lambda: dict(live.agent.view().me.rows)) == before
        assert live.turn(lambda: live.agent.tags) == {"old": "1", "other": "2"}
