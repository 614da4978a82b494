"""Directed schedules: the language is small, what it says happens, and a bad line says what is accepted."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.errors import ConfigError
from holdfast.lab.links import Fixed, Uniform
from holdfast.lab.script import COMMANDS, HEADER, duration, parse, split
from holdfast.lab.stage import play
from tests.lab.talking_scenario import Talking

HEAD = "scenario own\nnodes a b c\n"


def trace(body: str, head: str = HEAD) -> list[str]:
    return play(parse(head + body), Talking()).trace.splitlines()


def heard(lines: list[str]) -> list[str]:
    """Deliveries and losses, without the handshake of greetings."""
    return [line[13:] for line in lines if "Ping" in line]


def test_nodes_start_and_time_runs() -> None:
    """``nodes``, ``run``: everybody starts, and the trace has every line."""
    assert trace("run 3s\n") == ["   0.000000  * start a#1", "   0.000000  * start b#1", "   0.000000  * start c#1"]


def test_call_and_delivery() -> None:
    """``call``: a machine's own method, with JSON values or words."""
    lines = trace("call a say b 1\nrun 1s\n")
    assert lines[3] == "   0.000000  * call a say b 1"
    assert heard(lines)[-1] == "a -> b  Ping(number=1)"


def test_life_and_death() -> None:
    """``crash``, ``restart``, ``start``, ``stop``, ``resume``."""
    lines = trace("run 1s\ncrash a\nrestart a\nstart d\nstop b\nrun 500ms\nresume b shuffled\n")
    assert lines[3:] == [
        "   1.000000  * crash a#1",
        "   1.000000  * start a#2",
        "   1.000000  * start d#1",
        "   1.000000  * stop b#1",
        "   1.500000  * resume b#1",
    ]


def test_crash_in_save() -> None:
    """``crash-in-save``: between the write and its confirmation."""
    lines = trace("crash-in-save a\nrun 1s\ncall a keep\nrun 1s\n")
    assert lines[-1] == "   1.000000  * crash a#1"


@pytest.mark.parametrize(
    "cut,lost",
    [
        ("cut a->b", {"a -x b"}),
        ("cut a<->b", {"a -x b", "b -x a"}),
        ("cut a,c->b", {"a -x b"}),
        ("partition a c | b", {"a -x b", "b -x a"}),
        ("drop Ping a->b", {"a -x b"}),
        ("drop * a<->b", {"a -x b", "b -x a"}),
        ("drop Ping c->b", set()),
    ],
)
def test_faults_of_the_network(cut: str, lost: set[str]) -> None:
    """``cut``, ``partition``, ``drop``: what is named is lost and nothing else; ``heal`` ends all of it."""
    talk = "call a say b 1\ncall b say a 2\nrun 100ms\n"
    lines = heard(trace(f"{cut}\n{talk}"))
    assert {line.split("  ")[0] for line in lines if "-x" in line} == lost
    healed = heard(trace(f"{cut}\nheal\n{talk}"))
    assert not any("-x" in line for line in healed)


def test_drop_counts() -> None:
    """``drop TYPE link TIMES``: so many, then no more."""
    lines = heard(trace("drop Ping a->b 2\n" + "call a say b 7\nrun 100ms\n" * 4))
    assert sum("-x" in line for line in lines) == 2
    assert sum("->" in line for line in lines) >= 2


def test_expectations() -> None:
    """``expect``: every living member, or those named; ids by name or with their boot; what does not hold is a violation."""
    assert play(parse(HEAD + "call a follow b\nexpect leader b on a\nexpect leader b#1 on a\nexpect leader none on b c\n"), Talking()).ok
    played = play(parse(HEAD + "call a follow b\nrun 1s\nexpect leader b\nrun 1s\n"), Talking())
    assert played.violation == "expect: leader b on b#1, where it is None"
    assert played.trace.splitlines()[-1] == "   1.000000  * violation: expect: leader b on b#1, where it is None"


def test_settings_reach_the_machines() -> None:
    """``set``: parameters of the scenario, in their own type."""
    head = f"scenario own\nset mood angry\nset weight 2\n{HEAD.splitlines()[1]}\n"
    assert play(parse(head + "expect mood angry\n"), Talking()).ok
    assert parse(head).setup(Talking()).parameters == {"weight": 2.0, "mood": "angry"}


@pytest.mark.parametrize(
    "line,told", [("set color red", "no such parameter; accepted: weight, mood"), ("set weight heavy", "'heavy' is no number")]
)
def test_bad_settings(line: str, told: str) -> None:
    """Bad input: names the parameter and what is accepted."""
    with pytest.raises(ConfigError, match=told):
        play(parse(f"scenario own\n{line}\nnodes a\n"), Talking())


def test_links() -> None:
    """``link``, ``loss``, ``seed``: a fixed delay unless the script says otherwise."""
    assert parse(HEAD).delay == Fixed(0.01)
    script = parse("scenario own\nseed 5\nlink 1ms..20ms\nloss 0.25\nnodes a\n")
    assert (script.delay, script.loss, script.seed) == (Uniform(0.001, 0.02), 0.25, 5)
    assert parse("scenario own\nlink 2s\nnodes a\n").delay == Fixed(2.0)


def test_comments_and_blank_lines() -> None:
    """``#`` begins a comment; blank lines are nothing."""
    assert len(trace("\n# nothing\nrun 1s  # a second\n\n")) == 3


@pytest.mark.parametrize(
    "body,line,told",
    [
        ("explode a\n", 3, r"'explode' is no command; accepted: scenario, seed, .*expect"),
        ("run 1s\nseed 3\n", 4, "'seed' comes after the first command"),
        ("run\n", 3, "accepted: run 3s"),
        ("run fast\n", 3, "'fast' is no duration"),
        ("run -1s\n", 3, "not between 0 and"),
        ("run 1e9s\n", 3, "not between 0 and"),
        ("crash z\n", 3, "no node is called 'z'; there are a, b, c"),
        ("crash a\ncrash a\n", 4, "a is dead"),
        ("restart a\n", 3, "a is alive"),
        ("start a\n", 3, "a was started before"),
        ("stop a\nstop a\n", 4, "a is stopped already"),
        ("resume a\n", 3, "a is not stopped"),
        ("stop a\nresume a wildly\n", 4, "'wildly' is no order"),
        ("cut a b\n", 3, "accepted: cut a->b"),
        ("cut ab\n", 3, "'ab' is no link"),
        ("cut a->z\n", 3, "no node is called 'z'"),
        ("partition a b\n", 3, "needs at least two sides"),
        ("heal now\n", 3, "accepted: heal"),
        ("drop Pong a->b\n", 3, r"no machine handles 'Pong'; there are \*, Note, OtherFingerprint, Ping, WrongLife"),
        ("drop Ping a->b 0\n", 3, "TIMES is a number between"),
        ("drop Ping a->b often\n", 3, "accepted: drop TYPE"),
        ("call a dance\n", 3, "0 machines of a have a method 'dance'"),
        ("expect colour red\n", 3, "0 machines of a#1 have an attribute 'colour'"),
        ("expect leader a of b\n", 3, "'of' is not understood"),
    ],
)
def test_a_bad_line_names_itself(body: str, line: int, told: str) -> None:
    """Bad input: the line's number, what is wrong, what is accepted."""
    with pytest.raises(ConfigError, match=told) as caught:
        play(parse(HEAD + body, "some.txt"), Talking())
    assert str(caught.value).startswith(f"some.txt, line {line}: ")
    assert "accepted: " in str(caught.value)


@pytest.mark.parametrize(
    "text,told",
    [
        ("nodes a\n", "has no line 'scenario'"),
        ("scenario own\n", "has no line 'nodes'"),
        ("scenario own\nnodes a a\n", "each once"),
        ("scenario own\nnodes\n", "needs names"),
        ("scenario own\nseed x\n", "seed N"),
        ("scenario own\nloss 2\n", "is no probability"),
        ("scenario own\nlink quick\n", "is no duration"),
        ("scenario\n", "scenario NAME"),
    ],
)
def test_a_bad_header(text: str, told: str) -> None:
    """Bad input: what is missing or wrong, and what is accepted."""
    with pytest.raises(ConfigError, match=told):
        parse(text)


def test_a_failing_method_is_a_violation() -> None:
    """A bug that a script meets ends the trace, it does not end the program."""
    played = play(parse(HEAD + "call a say\n"), Talking())
    assert played.violation.startswith("no-bug: TypeError")


def test_scenarios_by_name_and_by_path(tmp_path: Path) -> None:
    """``scenario``: a name of the registry, or a file beside the script."""
    own = Path(__file__).with_name("own_scenario.py")
    (tmp_path / "mine.py").write_text(own.read_text())
    assert parse("scenario mine.py\nnodes a\n", str(tmp_path / "s.txt")).find().name == "own/fifth"
    assert parse("scenario detection/omega\nnodes a\n").find().name == "detection/omega"


@pytest.mark.parametrize("text", ["a\nb\n----\ntrace\n", "a\nb\n----\n", "a\nb\n----", "a\nb\n", "a\nb"])
def test_a_golden_file_has_two_parts(text: str) -> None:
    """Script, separator, trace; the last two may be missing."""
    script, golden = split(text)
    assert script == "a\nb\n"
    assert golden == ("trace\n" if "trace" in text else "")


@pytest.mark.parametrize("word,seconds", [("3s", 3.0), ("250ms", 0.25), ("1.5", 1.5), ("1e-3s", 0.001)])
def test_durations(word: str, seconds: float) -> None:
    """Durations as people write them."""
    assert duration(word) == seconds


def test_every_command_is_documented() -> None:
    """The language is in the guide, every word of it."""
    guide = (Path(__file__).parents[2] / "docs" / "lab.md").read_text()
    assert [verb for verb in (*HEADER, *COMMANDS) if f"`{verb} " not in guide and f"`{verb}`" not in guide] == []
