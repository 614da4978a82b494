"""``holdfast demo``: what it says is what happened, whatever interrupts it leaves nothing behind, and a broken promise is an exit code."""

from __future__ import annotations

import inspect
import json
import os
import pty
import re
import shlex
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Self
from uuid import uuid4

import pytest

import holdfast as package
from holdfast.cli.demo.fleet import SUSPICION, Fleet, Said
from holdfast.cli.demo.lead import Reign, taken_over
from holdfast.cli.demo.share import LITTLE, MORE, MUCH, RATE, Share, Shares, Sharing, patience, promised
from holdfast.cli.demo.story import Bounds, Death, Story, bounds, judged, judged_shares, judged_takeover, witnessed
from holdfast.cli.demo.verb import KEPT, NO_PAGE, _verdict
from holdfast.cli.demo.view import bar, first_told
from holdfast.config import Config
from holdfast.host import NodeId
from tests.cli.command import runner
from tests.support.realtime import TRIES, say_late

ROOT = Path(__file__).parents[2]
MARK = "DEMO_UNDER_TEST"
DEADLINE = 90.0  # seconds; a run takes 15 on a quiet machine
VICTIM = NodeId("kelp-4", 7)
OTHERS = ("kelp-1", "kelp-2")
PROMISED = Bounds(0.8, 1.0, 1.8)
STOOD_STILL = re.compile(r"stood still for ([0-9.]+) s")


class Demo:
    """One run as a process of its own, in a folder for temporary files of its own."""

    def __init__(self, folder: Path, *words: str, out: int = subprocess.PIPE, err: int = subprocess.STDOUT) -> None:
        self.folder, self.mark = folder, uuid4().hex
        environment = {**os.environ, "TMPDIR": str(folder), MARK: self.mark, "PYTHONUNBUFFERED": "1", "TERM": "xterm", "COLUMNS": "100"}
        command = [sys.executable, "-m", "holdfast", "demo", *words]
        self.process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=out, stderr=err, start_new_session=True)
        self.text = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self.process.poll() is None:
            self.process.kill()  # Its agents notice.
            self.process.wait()
        for pipe in (self.process.stdout, self.process.stderr):
            if pipe is not None:
                pipe.close()

    def read_until(self, fd: int, words: str) -> bool:
        """False if it ended without these words."""
        end_at = time.monotonic() + DEADLINE
        while words not in self.text:
            assert time.monotonic() < end_at, f"never said {words!r}:\n{self.text}"
            try:
                data = os.read(fd, 65536)
            except OSError:  # A terminal whose other side is gone says so.
                data = b""
            if not data:
                return False
            self.text += data.decode("utf-8", "replace")
        return True

    def read_to_end(self, fd: int) -> int:
        with suppress(OSError):  # A terminal whose other side is gone says so.
            while data := os.read(fd, 65536):
                self.text += data.decode("utf-8", "replace")
        return self.process.wait(DEADLINE)

    def left_behind(self) -> list[str]:
        """Processes that were started by it and still run, and files."""
        processes = []
        for folder in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if f"{MARK}={self.mark}".encode() in (folder / "environ").read_bytes():
                    processes.append((folder / "cmdline").read_text())
        return processes + [str(path) for path in self.folder.iterdir()]


@contextmanager
def on_terminal() -> Iterator[tuple[int, int]]:
    ours, theirs = pty.openpty()
    try:
        yield ours, theirs
    finally:
        for fd in (ours, theirs):
            with suppress(OSError):
                os.close(fd)


def test_it_stays_until_interrupted_and_everything_was_kept(tmp_path: Path) -> None:
    """The whole story, as lines: every promise is kept with its measured time, --stay ends by Ctrl-C with exit code 0, nothing is left."""
    for number in range(TRIES):  # A machine that stood still cannot be held to anything, and the demo says so with code 3.
        (tmp_path / str(number)).mkdir()
        with Demo(tmp_path / str(number), "--stay") as demo:
            assert demo.process.stdout is not None
            fd = demo.process.stdout.fileno()
            if demo.read_until(fd, "Ctrl-C ends it"):
                demo.process.send_signal(signal.SIGINT)
            code = demo.read_to_end(fd)
        assert demo.left_behind() == []
        if code != 3:
            break
        stood_still = STOOD_STILL.search(demo.text)
        assert stood_still, demo.text
        say_late(float(stood_still[1]), "the whole story")
    assert code == 0, demo.text
    assert "BROKEN" not in demo.text
    assert "Everything happened as promised" in demo.text
    kill = re.search(r"kill -9 (kelp-\d)", demo.text)
    assert kill is not None
    steps = (
        "leads 'scheduler'",
        kill[0],
        *(f"{kill[1]} {what}" for what in ("is suspected", "is held to be dead", "is gone:", "starts again")),
    )
    at, order = 0, list[int]()
    for words in (*steps, "said goodbye"):  # Before the kill a busy machine may have had doubts of its own.
        at = demo.text.find(words, at)
        assert at >= 0, (words, demo.text)
        order.append(at)
    split = [each.start() for each in re.finditer("of 1000 a second kelp-1 may use", demo.text)]
    killed, started = order[1], order[5]  # At least once before the kill: on a busy machine another one may lead first.
    assert min(split) < killed
    assert [killed < at < started for at in split].count(True) == 1
    assert [started < at for at in split].count(True) == 1
    assert demo.text.count("says: ") > demo.text.count("leads 'scheduler'\n") >= 2


def test_ctrl_c_in_the_middle_leaves_nothing(tmp_path: Path) -> None:
    """On a terminal, with the live picture: interrupted just after the kill, it ends with 130; no process and no file stays."""
    with on_terminal() as (ours, theirs), Demo(tmp_path, out=theirs) as demo:
        os.close(theirs)
        assert demo.read_until(ours, "kill -9"), demo.text
        assert demo.read_until(ours, "since the crash"), demo.text
        os.killpg(demo.process.pid, signal.SIGINT)
        assert demo.read_to_end(ours) == 130, demo.text
    assert demo.left_behind() == []
    assert "Traceback" not in demo.text
    assert "kelp-7" in demo.text


def test_a_broken_promise_is_exit_code_1(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """With bounds that nothing can keep, the same run says which promises were broken and ends with 1."""
    monkeypatch.setattr("holdfast.cli.demo.story.bounds", lambda config: Bounds(0.001, 0.001, 0.001))
    monkeypatch.setattr(Story, "lateness", lambda story, since=0: 0.0)
    monkeypatch.setattr("holdfast.cli.demo.verb.NAMES", ("kelp-1", "kelp-2", "kelp-3", "kelp-4"))
    ended = runner(monkeypatch, capsys)("demo", "--json")
    assert ended.code == 1, ended
    told = ended.json
    assert told["verdict"] == "miss"
    broken = [promise["what"] for promise in told["promises"] if not promise["kept"]]
    assert len(broken) == 3
    assert all(what.startswith("all 3 others") for what in broken)
    assert sorted(told["measured"]) == ["decided", "failed", "suspected"]
    assert len(told["measured"]["failed"]) == 3
    assert [each["when"] for each in told["shares"]] == ["before", "after", "back"]
    idle = 0.05 * RATE / 4  # of the fourth program, which wants nothing: its part of the reserve
    assert [sum(share["promised"] for share in each["shares"]) for each in told["shares"]] == pytest.approx([RATE - idle] * 3)
    wants = {share["name"]: share["wants"] for share in told["shares"][1]["shares"]}
    assert sorted(wants.values()) == [LITTLE, MUCH, MORE]
    assert wants[told["killed"]] == MUCH


def test_a_machine_that_cannot_is_exit_code_3(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Where agents cannot start, it says why in the agent's own words, in one line, ends with 3 and leaves nothing."""
    folder = tmp_path / ("long" * 30)  # no room for a socket's path
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    monkeypatch.setattr("holdfast.cli.demo.verb.NAMES", ("kelp-1",))
    ended = runner(monkeypatch, capsys)("demo", "--json")
    ended.refused(3, "agent kelp-1 could not start: socket")
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("late, code", [(0.3, 3), (0.1, 1)])
def test_a_machine_that_stood_still_proves_nothing(late: float, code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """H70: what is broken while something stood still for half a lease is exit code 3 and says so; otherwise it is 1."""
    story = Story(Fleet(tmp_path, {}, ("kelp-1",), http=False), Config(preset="local"), step=print, note=print, tick=lambda: None)
    story.late = late
    assert _verdict(story, "after 40 s nothing has happened", as_json=False) == code
    told = capsys.readouterr()
    assert "BROKEN" in told.out
    assert ("stood still for 0.30 s" in told.err) is (code == 3)
    assert ("NOT everything happened as promised" in told.out) is (code == 1)


COMMAND = re.compile(r"`([^`]+)`")


def test_what_it_says_at_its_end_is_there_in_a_wheel(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """README: what the demo prints at its end is there for a user who installed a wheel: verbs and flags that exist, names that the package
    has, no file of the repository and no address; where a part is not installed, how it is got from a clone."""
    told = KEPT.format(names=7, lease=0.4, failed=1.8, took=0.9)
    spans = COMMAND.findall(told)
    commands = [shlex.split(span.removesuffix("&")) for span in spans if span.startswith("holdfast ")]
    assert [words[1] for words in commands] == ["agent", "run", "run", "--help"]
    assert [words[2] for words in commands if words[1] == "run"] == ["--lead", "--ticket"]
    holdfast = runner(monkeypatch, capsys)
    helped = {verb: holdfast(verb, "--help") for verb in ("agent", "run")}
    assert all(ended.code == 0 for ended in helped.values())
    for words in commands:
        assert all(flag in helped[words[1]].out for flag in words[2:3] if flag.startswith("--")), words
    assert holdfast("--help").code == 0
    (python,) = [span for span in spans if span.startswith("import holdfast")]
    assert python == "import holdfast; help(holdfast.join)"
    assert (inspect.getdoc(package.join) or "").startswith("Join")
    assert re.findall(r"\S*(?:docs/|README|examples/|https?:|\.md|\.py)\S*", told + NO_PAGE) == []
    extra = re.search(r"'\.\[(\w+)\]' in a clone", NO_PAGE)
    assert extra is not None
    assert extra[1] in tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]


def test_an_unknown_preset_is_refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Bad input: one line that names the flag and what is accepted, and nothing is started."""
    runner(monkeypatch, capsys)("demo", "--preset", "moon").refused(2, "--preset 'moon'", "lan, wan, local")


def test_bounds_follow_the_settings() -> None:
    """Ring G4, G5: 2 T_l, 2 T_l + T_a and 4 T_l + T_a, with drift and margin and nothing else."""
    found = bounds(Config(preset="local"))
    assert found == pytest.approx((0.8, 1.0, 1.8), abs=0.03)
    assert found.suspected > 0.8
    assert found.failed > 1.8


def said(by: str, after: float, event: str, *, certain: bool = True, life: NodeId = VICTIM) -> Said:
    if event == SUSPICION:
        return Said(by, 100.0 + after, event, "", None, False, 0.0, "0123456789abcdef.00000000000000ff", 5000.0 + after)
    return Said(by, 100.0 + after, event, life.name, life, certain, 0.0, "", 5000.0 + after)


def death(*heard: Said) -> Death:
    return witnessed(VICTIM, "0123456789abcdef.", 100.0, OTHERS, heard)


WELL = [said(by, at, event) for by in OTHERS for at, event in ((0.5, SUSPICION), (0.6, "Decided"), (1.7, "Failed"))]


def test_what_is_within_the_bounds_is_kept() -> None:
    """Every monitor, every step, in order."""
    assert [promise.kept for promise in judged(death(*WELL), PROMISED, 0.0)] == [True] * 4


@pytest.mark.parametrize(
    "heard, broken",
    [
        ([each for each in WELL if (each.by, each.event) != ("kelp-2", SUSPICION)], [0]),
        ([each for each in WELL if (each.by, each.event) != ("kelp-2", "Failed")], [2]),
        ([*WELL[:-1], said("kelp-2", 1.9, "Failed")], [2]),
        ([*WELL[:-1], said("kelp-2", 1.7, "Failed", certain=False)], [2]),
        ([*WELL[:-2], said("kelp-2", 1.8, "Decided"), WELL[-1]], [1, 3]),
        ([*WELL[:-1], said("kelp-2", 1.7, "Failed", life=NodeId("kelp-4", 8))], [2]),
    ],
    ids=["no suspicion", "no declaration", "too late", "not certain", "decided after declared", "another life"],
)
def test_what_is_not_is_broken(heard: list[Said], broken: list[int]) -> None:
    """Each kind of breach is seen, and nothing else is blamed for it."""
    assert [at for at, promise in enumerate(judged(death(*heard), PROMISED, 0.0)) if not promise.kept] == broken


A, B = Reign("kelp-4", 7, 90.0, 100.4), Reign("kelp-2", 8, 100.5, 101.0)


@pytest.mark.parametrize(
    "reigns, kept",
    [
        ([A, B], [True, True]),
        ([A], [False]),
        ([A, B._replace(began_at=100.7)], [False, True]),
        ([A._replace(until=100.6), B], [True, False]),
        ([A, B._replace(leader="kelp-4")], [True, False]),
    ],
    ids=["in time", "nobody", "too late", "too early", "the dead one"],
)
def test_a_takeover_is_judged(reigns: list[Reign], kept: list[bool]) -> None:
    """Ring G2, G5: within the bound, and not before the last deadline that was told, also one that was told just before the kill."""
    takeover = taken_over(100.0, A, reigns)
    assert [promise.kept for promise in judged_takeover(takeover, 0.5, 0.1)] == kept


@pytest.mark.parametrize(
    "wants, members, fleet, shares",
    [
        ([100, 600, 2000], 3, 3, [102, 449, 449]),
        ([100, 2000], 2, 3, [102, 564.667]),
        ([2000, 0, 600, 0, 100, 0, 0], 7, 7, [434.714, 7.143, 434.714, 7.143, 102, 7.143, 7.143]),
        ([2000, 0, 0, 100, 0, 0], 6, 7, [726.571, 7.143, 7.143, 102, 7.143, 7.143]),
        ([2000], 1, 7, [142.857]),
        ([2000, 2000], 5, 2, [500, 500]),
    ],
)
def test_what_is_promised_of_a_limit(wants: list[float], members: int, fleet: int, shares: list[float]) -> None:
    """Limits 5.2, D7, D21: counted by hand. One that wants little gets it and 2 % more, one that wants nothing its part of the reserve, and
    what remains is split evenly; of a view that lacks members, no more than its part of the rate."""
    assert promised(wants, members, fleet) == pytest.approx(shares, abs=0.001)


@pytest.mark.parametrize("error, kept", [(0.05, True), (-0.05, True), (0.07, False), (-0.07, False)])
def test_shares_are_judged(error: float, kept: bool) -> None:
    """Limits RL6: each within 6 % of the rate, whatever the others have."""
    shares = (Share("kelp-1", LITTLE, 102.0, 102.0), Share("kelp-2", MORE, 449.0 + error * RATE, 449.0))
    promise = judged_shares(Shares("before", shares, 1.5, 11.0), "they share")
    assert promise.kept is kept
    assert promise.measured == f"102 + {449 + error * RATE:.0f}, after 1.5 s"
    assert promise.promised == "102 + 449, within 11 s and 60"


def test_how_long_shares_may_take() -> None:
    """Views CB7, limits RL6: 15 s and 10 s at the preset lan, whose heartbeat is 0.25 s and whose epoch is 0.5 s."""
    assert patience(Config(preset="lan")) == pytest.approx(25.0)
    assert patience(Config(preset="local")) == pytest.approx(11.0)


class Told:
    """A program, as far as it was told something."""

    def __init__(self, used: float, *, alone: bool = False) -> None:
        self.name, self.wants, self.used, self.alone = "", 0.0, used, alone


def test_the_one_that_lost_its_agent_counts_by_itself() -> None:
    """Limits 5.1, 5.7: it goes on with what it had, at most 1/n; the others have |V|/n. Nothing has come to rest while one does not know
    that its agent is dead, or is back."""
    sharing = Sharing()
    callers = {"a": Told(102.0), "b": Told(449.0), "c": Told(449.0)}
    sharing.callers = callers  # type: ignore[assignment]
    sharing.want("a", "b", "c")

    def rests() -> bool:
        return sharing.settled

    assert rests()
    sharing.lose("b")
    assert [share.promised for share in sharing.shares()] == pytest.approx([102.0, RATE / 3, 564.667], abs=0.001)
    callers["b"].used, callers["c"].used = RATE / 3, 564.0
    assert not rests()
    callers["b"].alone = True
    assert rests()
    sharing.find()
    callers["b"].used = callers["c"].used = 449.0
    assert not rests()
    callers["b"].alone = False
    assert rests()


def test_the_order_is_that_of_the_agents_not_of_the_ear() -> None:
    """A suspicion that is heard after the decision it led to, because its agent's socket was read later, was still first."""
    heard = [each._replace(at=each.at + 0.2) if each.event == SUSPICION else each for each in WELL]
    assert all(promise.kept for promise in judged(death(*heard), PROMISED, 0.0))


def test_lines_come_as_it_happened(tmp_path: Path) -> None:
    """What two agents say is told by their clocks, and only when nobody can be heard with something earlier."""
    fleet, told = Fleet(tmp_path, {}, ("kelp-1",), http=False), []
    fleet.on_event = lambda each: told.append(each.wall)
    fleet._untold = [each._replace(wall=wall) for each, wall in zip(WELL, (3.0, 1.0, 2.0), strict=False)]
    fleet.tell(2.5)
    assert told == [1.0, 2.0]
    fleet.tell()
    assert told == [1.0, 2.0, 3.0]


def test_measured_lateness_is_allowed_once_per_timer() -> None:
    """A declaration stands at the end of three timers, so three times the lateness is allowed, and no more."""
    late = [*WELL[:-1], said("kelp-2", 1.99, "Failed")]
    assert judged(death(*late), PROMISED, 0.07)[2].kept
    assert not judged(death(*late), PROMISED, 0.06)[2].kept


def test_news_is_told_once() -> None:
    """Seven agents say the same; people read it once, with control characters of names spelled out."""
    told: set[tuple[str, str, int]] = set()
    evil = Said("kelp-1", 1.0, "Suspected", "a\x1b[2J", NodeId("a\x1b[2J", 1), False, 0.0, "", 1.0)
    assert "\x1b" not in first_told(evil, told)
    assert first_told(evil._replace(by="kelp-2"), told) == ""
    assert first_told(said("kelp-1", 1.0, SUSPICION), told) == ""


def test_the_bar_shows_what_was_seen() -> None:
    """Marks stand where they belong between the crash and the last bound."""
    drawn = bar(death(*WELL), PROMISED, "kelp-1", 200.0)
    assert [drawn.index(mark) for mark in "sDX"] == sorted(drawn.index(mark) for mark in "sDX")
    assert drawn.endswith("|")


def test_json_is_one_object(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """--json where nothing can start: the error is on stderr, stdout stays empty."""
    monkeypatch.setattr("holdfast.cli.demo.fleet.sys.executable", "/nowhere/python")
    ended = runner(monkeypatch, capsys)("demo", "--json")
    assert (ended.code, ended.out) == (3, "")
    assert json.dumps(ended.err).count("could not start") == 1
