"""The parts of the process, each alone: log, systemd, seeds, keys at rest, the words it is started with, its home."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterable
from math import inf
from pathlib import Path
from typing import Any

import pytest

from holdfast.agent.life import seeds as seeds_module
from holdfast.agent.life.exits import exit_code
from holdfast.agent.life.home import Home
from holdfast.agent.life.key_store import KEYRING_FILE, KeyStore
from holdfast.agent.life.main import main
from holdfast.agent.life.seeds import Seeds
from holdfast.agent.life.start import Options, parse
from holdfast.agent.life.systemd import Notifier
from holdfast.agent.life.version import VERSION
from holdfast.agent.observe.logs import LINE_BYTES_MAX, RATE_LINES, RATE_PERIOD, Log, printable
from holdfast.agent.observe.narrator import SUM_PERIOD, Narrator
from holdfast.config import Config, load
from holdfast.disk.state_directory import State
from holdfast.drops import Drop, Drops
from holdfast.errors import AddressUnusable, ConfigError, KeyUnusable, NameConflict, StorageDamaged, StorageError, StorageLocked
from holdfast.events import ConfigMismatch, Failed, Joined, LeaderSuspected, Updated
from holdfast.features.keys.agent import KeyringOfAgent
from holdfast.features.leadership.running import LeadershipAgent
from holdfast.features.ring.agent import RingSide
from holdfast.host import Address, Member, NodeId
from holdfast.wire.keys import Keyring, generate, parse_key
from holdfast.wire.seal import Plain, Sealed
from tests.agent.test_config import BAD
from tests.support.realtime import eventually, run
from tests.tidy.tree import ROOT


class Written:
    """A log into a pipe, and a clock that stands still."""

    def __init__(self, **settings: Any) -> None:
        self._read, self.write = os.pipe()
        os.set_blocking(self._read, False)
        self.now = 1000.0
        self.log = Log(fd=self.write, wall=lambda: 1_700_000_000.25, now=lambda: self.now, **settings)

    def text(self) -> str:
        try:
            return os.read(self._read, 1 << 20).decode()
        except BlockingIOError:
            return ""

    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.text().splitlines()]

    def close(self) -> None:
        os.close(self._read)
        os.close(self.write)


@pytest.fixture
def written() -> Iterable[Written]:
    """One per test."""
    pipe = Written()
    yield pipe
    pipe.close()


# Log.


def test_log_line(written: Written) -> None:
    """One JSON object per line: when, how grave, what, and its fields."""
    written.log.info("seeds", addresses=[Address("::1", 1)], life=NodeId("a", 7), count=3)
    written.log.debug("not at this level")
    assert written.lines() == [
        {"at": "2023-11-14T22:13:20.250Z", "level": "info", "event": "seeds", "addresses": ["[::1]:1"], "life": "a#7", "count": 3}
    ]
    written.log.level = "error"
    written.log.warning("no more")
    assert written.lines() == []


def test_text_form() -> None:
    """For people: the same as words, quoted where a value could be mistaken for two."""
    pipe = Written(form="text")
    pipe.log.warning("Failed", member="a#7", text='two "words"', certain=True)
    assert pipe.text() == '2023-11-14T22:13:20.250Z WARNING Failed member=a#7 text="two \\"words\\"" certain=true\n'
    pipe.close()


def test_people_read_text_and_programs_json() -> None:
    """The form "auto" looks where its lines go: text in a terminal, JSON into a pipe or a file, and either on demand."""
    theirs, ours = os.openpty()
    try:
        for form, text in (("auto", True), ("text", True), ("json", False)):
            log = Log(fd=ours, form=form)
            log.warning("Failed", member="a#7")
            line = os.read(theirs, 4096).decode()
            assert ("WARNING Failed member=a#7" in line, '"event":"Failed"' in line) == (text, not text)
    finally:
        os.close(theirs)
        os.close(ours)
    pipe = Written(form="auto")
    pipe.log.warning("Failed")
    assert pipe.lines()[0]["event"] == "Failed"
    pipe.close()


def test_a_program_reads_json_until_it_is_gone() -> None:
    """A log that a program reads is JSON, whatever the form; when that program has ended, lines go to stderr in their own form."""
    reading, writing = os.pipe()
    pipe = Written(form="text", told_at=writing)
    pipe.log.info("first", count=1)
    assert json.loads(os.read(reading, 4096))["event"] == "first"
    assert pipe.text() == ""
    os.close(reading)
    pipe.log.info("lost")
    pipe.log.info("second")
    assert pipe.text() == "2023-11-14T22:13:20.250Z INFO    second lines_lost=1\n"
    pipe.close()


def test_what_a_peer_wrote_is_escaped(written: Written) -> None:
    """No terminal obeys a name: control characters, line ends of any script and reversed text are written out."""
    written.log.info("x", name="a\x1b[31m\u202e\u2028\n\ud800b", table={"\x07": ["\x9b"]})
    raw = written.text()
    assert raw.count("\n") == 1
    assert raw.rstrip("\n").isprintable()
    assert "\\u202e" in printable("\u202e")
    assert printable("plain é 漢") == "plain é 漢"


def test_repeating_lines_are_limited_and_counted(written: Written) -> None:
    """At most so many lines of one event in a period; the first of the next one says how many are missing. Others are not affected."""
    for _ in range(RATE_LINES + 7):
        written.log.info("flood")
    written.log.info("other")
    assert [line["event"] for line in written.lines()] == ["flood"] * RATE_LINES + ["other"]
    written.now += RATE_PERIOD
    written.log.info("flood")
    assert written.lines()[0]["unsaid"] == 7


def test_a_reader_that_does_not_read_costs_lines_not_time(written: Written) -> None:
    """A full pipe never blocks the agent; when it reads again it is told how many lines it missed."""
    written.now = 0.0
    for event in map("fill {}".format, range(40)):
        for each in range(RATE_LINES):
            written.log.info(event, text="x" * 400, each=each)
    assert written.log.lost > 0
    lost = written.log.lost
    complete = written.lines()
    assert len(complete) + lost == 40 * RATE_LINES
    written.log.info("again")
    assert written.lines()[0]["lines_lost"] == lost
    assert written.log.lost == 0


def test_a_line_has_a_limit(written: Written) -> None:
    """What does not fit one atomic write is cut, and says so."""
    written.log.info("large", **{f"field{number}": "x" * 500 for number in range(20)})
    assert written.lines() == [{"at": "2023-11-14T22:13:20.250Z", "level": "info", "event": "large", "cut": True}]
    assert LINE_BYTES_MAX == 4096


def test_a_reader_that_is_gone_is_no_end() -> None:
    """A closed pipe costs lines, nothing else."""
    pipe = Written()
    os.close(pipe._read)
    pipe.log.info("into the void")
    assert pipe.log.lost == 1
    os.close(pipe.write)


def test_membership_events_are_lines(written: Written) -> None:
    """One line per change, with who and where; a mismatch names the field and both values (F4)."""
    narrator = Narrator(written.log, info=RingSide.info, warning=RingSide.warning)
    member = Member(NodeId("b", 9), Address("10.0.0.2", 7), {"tag:zone": b"eu"})
    for event in (Joined(member), Failed(member, True), ConfigMismatch(NodeId("c", 1), "T_l", "1.0", "2.0")):
        narrator.on_event(event)
    joined, failed, mismatch = written.lines()
    assert (joined["level"], joined["member"], joined["address"]) == ("info", "b#9", "10.0.0.2:7")
    assert (failed["level"], failed["certain"]) == ("warning", True)
    assert (mismatch["level"], mismatch["field"], mismatch["ours"], mismatch["theirs"]) == ("error", "T_l", "1.0", "2.0")


def test_a_suspected_leader_is_a_warning(written: Written) -> None:
    """Foundation 5, H138: as a member that is suspected; that it was wrong is no warning."""
    narrator, leader = Narrator(written.log, warning=LeadershipAgent.warning), NodeId("b", 9)
    narrator.on_event(LeaderSuspected("scheduler", leader, 7, cleared=False))
    narrator.on_event(LeaderSuspected("scheduler", leader, 7, cleared=True))
    suspected, cleared = written.lines()
    assert (suspected["event"], suspected["level"], suspected["name"], suspected["leader"]) == (
        "LeaderSuspected",
        "warning",
        "scheduler",
        "b#9",
    )
    assert (cleared["level"], cleared["cleared"]) == ("info", True)


def test_a_kind_without_a_line_is_silent_until_the_level_changes(written: Written) -> None:
    """H222: an agent does not hand such a kind to its log again; at another level each is asked about anew."""
    narrator, member = Narrator(written.log), Member(NodeId("b", 9), Address("10.0.0.2", 7), {})
    for event in (Updated(member), Joined(member)):
        narrator.on_event(event)
    assert narrator.silent == {Updated}
    narrator.at_level("debug")
    assert narrator.silent == set()
    narrator.on_event(Updated(member))
    assert [line["event"] for line in written.lines()] == ["Joined", "Updated"]


def test_drops_are_summed_up(written: Written) -> None:
    """A reason that is new gets its line soon; known ones at most one a minute, with what came since."""
    narrator, drops = Narrator(written.log), Drops()
    drops[Drop.WRONG_KEY] = 3
    narrator.sum_up(drops, 0.0)
    drops[Drop.WRONG_KEY] = 5
    narrator.sum_up(drops, 5.0)
    drops[Drop.FORGED] = 1
    narrator.sum_up(drops, 10.0)
    drops[Drop.WRONG_KEY] = 9
    narrator.sum_up(drops, 10.0 + SUM_PERIOD)
    narrator.sum_up(drops, 20.0 + 2 * SUM_PERIOD)
    counts = [{name: value for name, value in line.items() if name not in ("at", "level", "event")} for line in written.lines()]
    assert counts == [{"wrong_key": 3}, {"forged": 1, "wrong_key": 2}, {"wrong_key": 4}]


# systemd.


@pytest.mark.parametrize("abstract", [False, True], ids=["path", "abstract"])
def test_notify(tmp_path: Path, *, abstract: bool) -> None:
    """sd_notify(3): one datagram with the words, to a path or an abstract address; half the watchdog's time."""
    name = f"@holdfast-{os.getpid()}" if abstract else str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind("\0" + name[1:] if abstract else name)
        notifier = Notifier({"NOTIFY_SOCKET": name, "WATCHDOG_USEC": "3000000", "WATCHDOG_PID": str(os.getpid())})
        notifier.tell("READY=1", "STATUS=well")
        assert listener.recv(4096) == b"READY=1\nSTATUS=well"
        assert notifier.watchdog_interval == 1.5
    notifier.tell("STOPPING=1")  # Nobody listens any more: nothing happens.
    notifier.close()


def test_nobody_asked_for_notice() -> None:
    """Without NOTIFY_SOCKET there is no word, and somebody else's watchdog is not fed."""
    assert Notifier({"WATCHDOG_USEC": "1000"}).watchdog_interval == 0.0
    other = Notifier({"NOTIFY_SOCKET": "@nobody", "WATCHDOG_USEC": "1000", "WATCHDOG_PID": "1"})
    assert other.watchdog_interval == 0.0
    other.close()


# Seeds.


def test_names_are_asked_until_they_answer(written: Written, monkeypatch: pytest.MonkeyPatch) -> None:
    """No seed resolves: say so, ask again, and knock as soon as one does; later changes are told too."""
    monkeypatch.setattr(seeds_module, "RETRY_MIN", 0.01)
    monkeypatch.setattr(seeds_module, "REFRESH_INTERVAL", 0.01)
    answers: list[list[str]] = [[], [], ["10.0.0.1"], ["10.0.0.1"], ["10.0.0.2", "10.0.0.1"]]
    found: list[tuple[Address, ...]] = []

    async def lookup(host: str, port: int) -> list[str]:
        return answers.pop(0) if len(answers) > 1 else answers[0]

    async def scenario() -> None:
        seeds = Seeds(["seeds.example:7946", "127.0.0.1:1"][:1], written.log, found.append, lookup=lookup)
        seeds.start()
        await eventually(lambda: len(found) == 2, "both answers are told")
        await seeds.close()

    run(scenario())
    assert found == [(Address("10.0.0.1", 7946),), (Address("10.0.0.1", 7946), Address("10.0.0.2", 7946))]
    events = [line["event"] for line in written.lines()]
    assert events == ["seeds unresolved", "seeds unresolved", "seeds", "seeds"]


def test_literal_seeds_ask_nobody(written: Written) -> None:
    """An address needs no resolver."""
    found: list[tuple[Address, ...]] = []

    async def scenario() -> None:
        seeds = Seeds(["127.0.0.1:1", "[::1]:2"], written.log, found.append, lookup=None)
        seeds.start()
        await seeds.close()

    run(scenario())
    assert found == [(Address("127.0.0.1", 1), Address("::1", 2))]


# Keys at rest.


def keys_of(ring: Keyring | None) -> list[str]:
    return [] if ring is None else [key.text() for key in ring.keys]


def test_rotations_survive_a_restart(tmp_path: Path) -> None:
    """The keyring file holds what the group agreed on, for its owner alone; the key file counts again when somebody changes it."""
    first, second, third = generate(), generate(), generate()
    key_file = tmp_path / "key"
    key_file.write_text(first)
    config = load(overrides={"key_file": str(key_file)})
    state = State.open(tmp_path / "state")
    store = KeyStore(config, state)
    assert isinstance(store.sealer("g"), Sealed)
    assert store.keyring is not None
    store.keep(Keyring(parse_key(second), parse_key(first)))
    file = tmp_path / "state" / KEYRING_FILE
    assert file.stat().st_mode & 0o777 == 0o600
    assert keys_of(KeyStore(config, state).keyring) == [second, first]
    key_file.write_text(third)
    assert keys_of(KeyStore(config, state).keyring) == [third]
    key_file.write_text(first)
    assert keys_of(KeyStore(config, state).keyring) == [first]  # The newer word, although an older rotation began with it.
    assert second not in file.read_text()
    file.write_text("{}")
    with pytest.raises(StorageDamaged, match="keyring"):
        KeyStore(config, state)
    state.close()


def test_a_group_stays_plain_or_sealed(tmp_path: Path) -> None:
    """A reload cannot take the key away, or give one to a group without."""
    plain = KeyStore(Config(), None)
    assert isinstance(plain.sealer("g"), Plain)
    with pytest.raises(KeyUnusable, match="key_file: a group cannot change"):
        plain.reload(Config(key=generate()))


def test_a_reload_that_cannot_be_kept_is_tried_again(tmp_path: Path) -> None:
    """Keys that could not be stored are not in use, and the next reload does not take them for known."""
    first, second = generate(), generate()
    state = State.open(tmp_path / "state")
    store = KeyStore(Config(key=first), state)
    for _ in range(2):
        ring = store.reload(Config(key=second))
        assert keys_of(ring) == [second]
        assert keys_of(store.keyring) == [first]
    assert ring is not None
    store.keep(ring, given=True)
    assert store.reload(Config(key=second)) is None
    assert keys_of(KeyStore(Config(key=second), state).keyring) == [second]
    state.close()


def test_changes_that_the_group_asks_for() -> None:
    """What is asked is done or refused with a text; asking twice is no error, and no text holds a key."""
    first, second = parse_key(generate()), parse_key(generate())
    held = [Keyring(first)]
    port = KeyringOfAgent(lambda: held[-1], held.append)
    assert port.ids() == (first.id.hex(),)
    assert [port.install(second.text()), port.install(second.text())] == [None, None]
    assert [port.use(second.id.hex()), port.use(second.id.hex())] == [None, None]
    assert port.ids() == (second.id.hex(), first.id.hex())
    assert "is in use" in str(port.remove(second.id.hex()))
    assert [port.remove(first.id.hex()), port.remove(first.id.hex())] == [None, None]
    assert port.ids() == (second.id.hex(),)
    refused = port.install(first.text() + "x")
    assert refused is not None
    assert first.text() not in refused
    assert "not in this keyring" in str(port.use(first.id.hex()))
    assert KeyringOfAgent(lambda: None, held.append).install(second.text()) == "this agent has no key"


# The start.


def test_words(tmp_path: Path) -> None:
    """Five flags and nothing else."""
    assert parse(["--settings-fd", "3", "--ready-fd", "4", "--parent", "5", "--check", "--log-fd", "6"]) == Options(3, 4, 5, True, 6)
    for words in (["--settings-fd"], ["--settings-fd", "x"], ["--what"], ["check"], ["--ready-fd", "-1"]):
        with pytest.raises(ConfigError, match="accepted are --settings-fd"):
            parse(words)


def refused_by(settings: bytes, capfd: pytest.CaptureFixture[str], **environ: str) -> tuple[int, dict[str, Any], str]:
    """Run the whole of it up to the refusal: exit code, ready line, stderr."""
    settings_read, settings_write = os.pipe()
    ready_read, ready_write = os.pipe()
    os.write(settings_write, settings)
    os.close(settings_write)
    code = main(["--settings-fd", str(settings_read), "--ready-fd", str(ready_write)], environ)
    with os.fdopen(ready_read, "rb") as file:
        told = json.loads(file.read())
    return code, told, capfd.readouterr().err


@pytest.mark.parametrize("settings, told", BAD, ids=[told[:40] for _, told in BAD])
def test_bad_settings_end_the_start(
    settings: dict[str, Any], told: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Every bad setting is exit code 2 and one line with its name, before a socket or a directory is opened."""

    def none(*_: object, **__: object) -> None:
        raise AssertionError("a socket was opened")

    monkeypatch.setattr(socket, "socket", none)
    runtime = tmp_path / "run"
    settings = {name: str(value) if value in (inf, -inf) or value != value else value for name, value in settings.items()}  # noqa: PLR0124
    code, ready, error = refused_by(json.dumps(settings).encode(), capfd, HOLDFAST_RUNTIME_DIR=str(runtime))
    assert (code, error) == (2, f"holdfast: {ready['text']}\n")
    assert ready["text"].startswith(told)
    assert ready["error"] in ("ConfigError", "KeyUnusable")
    assert not runtime.exists()


@pytest.mark.parametrize("content", [b"", b"[]", b"{", b"\xff", b'{"config": 3}', b'{"config": "no-such-file.toml"}'], ids=repr)
def test_settings_that_are_no_settings(content: bytes, capfd: pytest.CaptureFixture[str]) -> None:
    """One line, whatever comes through the descriptor."""
    code, ready, error = refused_by(content, capfd)
    assert (code, ready["error"]) == (2, "ConfigError")
    assert error.count("\n") == 1


def test_exit_codes() -> None:
    """docs/cli.md: 2 for the settings, 3 for the machine, 1 for a name in use."""
    assert exit_code(ConfigError("x"), loaded=True) == 2
    assert exit_code(AddressUnusable("x"), loaded=False) == 2
    assert exit_code(AddressUnusable("x"), loaded=True) == 3
    assert exit_code(StorageLocked("x"), loaded=True) == 3
    assert exit_code(NameConflict("x"), loaded=True) == 1


def test_version_is_the_projects() -> None:
    """The number that agents tell each other is the one that was released."""
    assert f'\nversion = "{VERSION}"\n' in (ROOT / "pyproject.toml").read_text()


# Home.


def test_home_keeps_the_name_and_knows_what_the_lock_proves(tmp_path: Path) -> None:
    """F1: a drawn name is kept. F6: only a directory that led this name before proves that its former life is over."""
    environ = {"HOLDFAST_RUNTIME_DIR": str(tmp_path / "run")}
    key = generate()
    lives = []
    for name in ("", "", "other", "other", ""):
        home = Home.open(Config(state_dir=str(tmp_path / "state"), key=key, name=name), environ)
        lives.append((home.name, home.sole_life, home.boot))
        home.close()
    drawn = lives[0][0]
    assert [(name == drawn, sole) for name, sole, _ in lives] == [(True, False), (True, True), (False, False), (False, True), (False, True)]
    assert sorted(boot for _, _, boot in lives) == [boot for _, _, boot in lives]
    assert len({boot for _, _, boot in lives}) == len(lives)


def test_the_next_life_waits_for_what_the_former_one_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """F14: for as long as the former life's lease says, not this one's, and whatever it was called; not at all if it left in good order. A
    life that ends while it waits hands the wait on. So it is where nothing says what exactly was told (H161)."""
    monkeypatch.setattr("holdfast.agent.life.home.this_clock", lambda: None)
    environ = {"HOLDFAST_RUNTIME_DIR": str(tmp_path / "run")}
    waits = []
    for name, lease, left in (
        ("a", 4.0, False),
        ("a", 1.0, False),
        ("b", 4.0, False),
        ("b", 0.4, True),
        ("b", 0.4, False),
        ("b", 0.4, True),
    ):
        home = Home.open(Config(state_dir=str(tmp_path / "state"), key=generate(), name=name, lease=lease), environ)
        waits.append(home.wait)
        if left:
            home.note_left()
        home.close()
    long, short = waits[1], waits[5]
    assert (long > 2.0, 0.2 < short < 0.25) == (True, True)
    assert waits == [0.0, long, long, long, 0.0, short]


def test_nobody_is_told_what_the_next_life_would_not_know_of(tmp_path: Path) -> None:
    """F14: an agent that left, and whose disk does not take that it comes back, may not come back."""
    home = Home.open(Config(state_dir=str(tmp_path / "state"), key=generate(), name="x"), {"HOLDFAST_RUNTIME_DIR": str(tmp_path)})
    assert home.state is not None
    home.note_left()
    home.state.write = no_space  # type: ignore[method-assign]
    with pytest.raises(StorageError, match="no space"):
        home.note_joining()
    home.close()


def test_home_without_a_directory_remembers_nothing(tmp_path: Path) -> None:
    """An ephemeral agent: a boot by the clock, no claim about former lives, and a boot above when somebody remembers more (F5)."""
    home = Home.open(Config(key=generate(), name="x"), {"HOLDFAST_RUNTIME_DIR": str(tmp_path)})
    assert (home.sole_life, home.storage) == (False, None)
    home.begin_again(home.boot + 10)
    assert home.boot > 10
    home.close()


def no_space(name: str, data: bytes) -> None:
    raise StorageError("no space left")


def test_a_disk_that_refuses_the_last_word(tmp_path: Path) -> None:
    """A full disk keeps nobody from leaving, and a rotation that cannot be kept is not used."""
    key = generate()
    home = Home.open(Config(state_dir=str(tmp_path / "state"), key=key, name="x"), {"HOLDFAST_RUNTIME_DIR": str(tmp_path)})
    assert home.state is not None
    before = home.keys.keyring
    home.state.write = no_space  # type: ignore[method-assign]
    home.note_left()
    with pytest.raises(StorageError, match="no space"):
        home.keys.keep(Keyring(parse_key(generate())))
    assert home.keys.keyring == before
    home.close()


def test_a_failed_start_lets_go_of_its_locks(tmp_path: Path) -> None:
    """A directory that cannot be used keeps neither the machine's lock nor its own."""
    environ = {"HOLDFAST_RUNTIME_DIR": str(tmp_path / "run")}
    state = tmp_path / "state"
    Home.open(Config(state_dir=str(state)), environ).close()
    (state / "boot").unlink()
    with pytest.raises(StorageDamaged):
        Home.open(Config(state_dir=str(state)), environ)
    Home.open(Config(state_dir=str(tmp_path / "other")), environ).close()


def test_boot_above_is_stored(tmp_path: Path) -> None:
    """F5: the boot that was taken is on disk before it is used, and later lives are above it."""
    state = State.open(tmp_path / "state", wall=lambda: 5.0)
    assert state.boot == 5000
    assert state.begin_again(9000) == 9001
    state.close()
    later = State.open(tmp_path / "state", wall=lambda: 6.0)
    assert later.boot == 9002
    later.close()


SEEDS = ("127.0.0.1:17801", "127.0.0.1:17802", "127.0.0.1:17803")


def test_a_seat_that_was_given_no_directory_gets_one(tmp_path: Path) -> None:
    """H96, F13: a seat must remember. Its place belongs to this user alone and is named by group and address; who is no seat gets none."""
    environ = {"HOLDFAST_RUNTIME_DIR": str(tmp_path / "run"), "XDG_STATE_HOME": str(tmp_path / "state")}
    config = Config(group="orders", seeds=SEEDS, bind=SEEDS[1], key=generate())
    home = Home.open(config, environ)
    place = tmp_path / "state" / "holdfast" / "orders" / SEEDS[1]
    assert home.state is not None
    assert home.state.path == place
    assert [folder.stat().st_mode & 0o777 for folder in (place, *place.parents[:2])] == [0o700] * 3
    with pytest.raises(AddressUnusable, match=rf"bind: {SEEDS[1]} is in use: .* by process"):
        Home.open(config, environ)
    home.close()
    again = Home.open(config, environ)
    assert (again.name, again.sole_life) == (home.name, True)
    again.close()
    elsewhere = Home.open(Config(group="orders", seeds=SEEDS, bind="127.0.0.1:0", key=generate()), environ)
    assert elsewhere.state is None
    elsewhere.close()


def test_a_seat_without_any_place_is_no_seat(tmp_path: Path) -> None:
    """H96: where nothing can be kept the agent is a member all the same, and says why nothing exclusive can be had."""
    (tmp_path / "state").write_text("no directory")
    environ = {"HOLDFAST_RUNTIME_DIR": str(tmp_path / "run"), "XDG_STATE_HOME": str(tmp_path / "state")}
    home = Home.open(Config(seeds=SEEDS, bind=SEEDS[0], key=generate()), environ)
    assert (home.state, home.no_state.startswith(f"cannot use {tmp_path}/state/holdfast: Not a directory; set state_dir")) == (None, True)
    home.close()
    shared = tmp_path / "shared" / "holdfast"
    shared.mkdir(parents=True)
    shared.chmod(0o777)
    home = Home.open(Config(seeds=SEEDS, bind=SEEDS[0], key=generate()), {**environ, "XDG_STATE_HOME": str(shared.parent)})
    assert (home.state, "no other user may write to" in home.no_state) == (None, True)
    home.close()


def test_two_sessions_of_one_user_do_not_found_two_seats(tmp_path: Path) -> None:
    """H96, F12: a program of cron has no XDG_RUNTIME_DIR, a login has; both mean the one agent of this machine. A runtime directory that
    was named on purpose is a world of its own."""
    state = {"XDG_STATE_HOME": str(tmp_path / "state"), "TMPDIR": str(tmp_path)}
    (tmp_path / "login").mkdir()
    home = Home.open(Config(group="orders"), {**state, "XDG_RUNTIME_DIR": str(tmp_path / "login")})
    with pytest.raises(StorageLocked, match="in use by process"):
        Home.open(Config(group="orders"), state)
    named = Home.open(Config(group="orders"), {**state, "HOLDFAST_RUNTIME_DIR": str(tmp_path / "world")})
    assert named.state is not None
    assert named.state.path == tmp_path / "world" / "orders.state"
    named.close()
    home.close()
