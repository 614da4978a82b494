"""How command lines are read: quickly where they are plain, by typer where they are not, and never differently."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from inspect import cleandoc
from pathlib import Path
from typing import Annotated, Any

import pytest
from typer import main as typer_main

from holdfast.cli import show
from holdfast.cli.app import command
from holdfast.cli.parser import Flag, Word, read
from holdfast.cli.usage import UsageError
from holdfast.cli.verbs import Entry, Table, everything, find
from tests.cli.command import Run
from tests.cli.test_start import imported

SEEN: list[dict[str, Any]] = []


def verb(
    *,
    name: Annotated[str, Word(help="A name.", metavar="NAME")],
    rest: Annotated[tuple[str, ...], Word(help="More.", metavar="MORE...")] = (),
    number: Annotated[int, Flag("--number", "-n", help="A number.", metavar="N")] = 3,
    share: Annotated[float | None, Flag("--share", help="A share.", metavar="X")] = None,
    tag: Annotated[tuple[str, ...], Flag("--tag", help="Tags.", metavar="TAG")] = (),
    loud: Annotated[bool, Flag("--loud", help="Loud.")] = False,
) -> None:
    """Do something."""
    SEEN.append({"name": name, "rest": rest, "number": number, "share": share, "tag": tag, "loud": loud})


def by_typer(words: list[str]) -> dict[str, Any] | None:
    """What typer makes of them; None if it refuses."""
    from holdfast.cli import app

    single = typer_main.Typer(add_completion=False)
    single.command("verb")(app._declared(verb))
    SEEN.clear()
    try:
        typer_main.get_command(single)(words, standalone_mode=False)
    except UsageError:
        return None
    return SEEN[0]


def entries(table: Table, *above: str) -> Iterator[tuple[tuple[str, ...], Entry]]:
    for name, entry in table.verbs.items():
        if isinstance(entry, Table):
            yield from entries(entry, *above, name)
        else:
            yield (*above, name), entry


@pytest.mark.parametrize(
    "words",
    [
        ["x"],
        ["x", "y", "z", "--loud"],
        ["--number", "5", "x"],
        ["-n", "5", "x", "y"],
        ["x", "--number=5", "--share=.5"],
        ["x", "--share", "1e3", "--tag", "a", "--tag=b"],
        ["x", "--tag", "--loud"],
        ["--loud", "--", "x", "--number", "5"],
        ["x", "--", "--", "y"],
        ["x", "-"],
        ["x", "--tag="],
        ["x", "--number", "-5"],
        ["", ""],
    ],
)
def test_plain_words_mean_the_same_to_both(words: list[str]) -> None:
    """The quick reader is an optimisation: what it understands, typer understands alike."""
    quick = read(verb, words)
    assert quick is not None
    assert quick == by_typer(words)


@pytest.mark.parametrize(
    "words",
    [[], ["x", "--nothing"], ["x", "--number"], ["x", "--number", "y"], ["x", "--loud=1"], ["--help"], ["x", "--numbe", "5"], ["x", "-n5"]],
)
def test_what_is_not_plain_is_left_to_typer(words: list[str]) -> None:
    """The quick reader refuses nothing by itself: help, mistakes and abbreviations are typer's."""
    assert read(verb, words) is None


def test_words_too_many(holdfast: Run) -> None:
    """A word that has no place is a mistake, not a decoration."""
    holdfast("members", "extra").refused(2, "extra", "see `holdfast members --help`")
    holdfast("force-leave", "name", "extra").refused(2, "extra")


def test_no_word_is_found_by_accident() -> None:
    """Unknown verbs, options before a verb and the laboratory go to typer; a table with a default does not need a word."""
    for words in ([], ["nothing"], ["--help"], ["lab", "list"], ["keys"], ["tags", "--help"], ["tags", "nothing"]):
        assert find(words) is None
    found = find(["tags", "--json"])
    assert found is not None
    assert (found[0].place, found[1]) == ("cli.tags:show", ["--json"])
    assert find(["--version"]) == (everything().verbs["version"], [])
    assert find(["ticket", "ls", "x"]) == (everything().verbs["ticket"].verbs["ls"], ["x"])  # type: ignore[union-attr]


@pytest.mark.parametrize("path,entry", list(entries(everything())), ids=lambda value: " ".join(value) if isinstance(value, tuple) else "")
def test_titles_are_what_verbs_say(path: tuple[str, ...], entry: Entry) -> None:
    """The list of verbs is known without importing them, and says what they say themselves."""
    text = entry.load().__doc__
    assert text is not None
    assert " ".join(cleandoc(text).split()).startswith(entry.title.rstrip(".")), path


@pytest.mark.parametrize("path,entry", list(entries(everything())), ids=lambda value: " ".join(value) if isinstance(value, tuple) else "")
def test_every_verb_can_be_declared_to_typer(path: tuple[str, ...], entry: Entry) -> None:
    """Help of every verb, from the same declaration that the quick reader uses."""
    built = command(path[-1], entry)
    assert "--help" in built.get_help(built.make_context(path[-1], [], resilient_parsing=True))


def test_one_verb_imports_no_other() -> None:
    """Building the tree imports no verb; running one imports that one, without event loop, rich, cryptography or typer."""
    modules = imported("members", "--agent", "none.sock")
    assert {name for name in modules if name.startswith("holdfast.cli.")} == {
        f"holdfast.cli.{name}" for name in ("agent_call", "exits", "members", "options", "parser", "shapes", "show", "verbs")
    }
    assert modules & {"asyncio", "rich", "cryptography", "typer", "pydantic", "click", "importlib.metadata"} == set()
    assert not any(name.startswith(("holdfast.net.host", "holdfast.wire", "holdfast.lab", "holdfast.features.")) for name in modules)
    modules = imported("--help")
    assert {name for name in modules if name.startswith("holdfast.cli.")} == {
        f"holdfast.cli.{name}" for name in ("app", "exits", "parser", "run", "run.hold_flags", "usage", "verbs")
    }
    assert {name.rpartition(".")[2] for name in modules if name.startswith("holdfast.features.") and name.count(".") > 2} == {"verbs"}


@pytest.mark.parametrize(
    "text,seen",
    [
        ("plain ä 漢", "plain ä 漢"),
        ("a\x1b[31mb", "a\\x1b[31mb"),
        ("two\nlines\t", "two\\nlines\\t"),
        ("\u202eturned", "\\u202eturned"),
        ("\ud800", "\\ud800"),
    ],
)
def test_names_of_others_are_escaped(text: str, seen: str) -> None:
    """Nothing that a member calls itself moves a cursor, breaks a line or turns text around."""
    assert show.shown(text) == seen


def test_a_table_on_a_terminal(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """On a terminal rich draws it, and a name that looks like markup is a name."""
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "80")
    show.print_table(("NAME", "TAGS"), [("[red]x[/red]", "a\x1bb")])
    out = capsys.readouterr().out
    assert "[red]x[/red]" in out
    assert "a\\x1bb" in out


def test_a_reader_that_goes_away(tmp_path: Path) -> None:
    """`holdfast ... | head -1`: no traceback, no error message."""
    words = f"{sys.executable} -m holdfast agent --check | head -1"
    ended = subprocess.run(["sh", "-c", words], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert ended.stdout.startswith("SETTING")
    assert ended.stderr == ""


def test_agent_check(tmp_path: Path) -> None:
    """`agent --check`: every setting, its value and where it comes from; flags beat the environment, that the file."""
    (tmp_path / "h.toml").write_text('lease = 2.0\nname = "file"\ntags = { zone = "eu" }\n')
    words = ["agent", "--check", "--json", "--config", "h.toml", "--name", "flag", "--seeds", "10.0.0.1:1", "--seeds"]
    words += ["10.0.0.2:1,10.0.0.3:1", "--tags", "a=1", "--tags", "b=2,c=3"]
    environ = {"HOLDFAST_NAME": "environment", "HOLDFAST_K": "2", "PATH": ""}
    ended = subprocess.run(
        [sys.executable, "-m", "holdfast", *words], capture_output=True, text=True, check=True, cwd=tmp_path, env=environ
    )
    found = json.loads(ended.stdout)
    settings, sources = found["settings"], found["sources"]
    assert (settings["name"], settings["k"], settings["lease"], settings["tags"]) == ("flag", 2, 2.0, {"a": "1", "b": "2", "c": "3"})
    assert settings["seeds"] == ["10.0.0.1:1", "10.0.0.2:1", "10.0.0.3:1"]
    assert (sources["name"], sources["k"], sources["lease"]) == ("flags", "HOLDFAST_K", "h.toml")
    assert "arbitration" not in sources


def test_agent_check_says_what_the_agent_would_do(tmp_path: Path) -> None:
    """`agent --check`: below the settings, and as `would`, what their values do not say."""
    words = [sys.executable, "-m", "holdfast", "agent", "--check", "--zookeeper", "zk1:2181"]
    told = subprocess.run(words, capture_output=True, text=True, check=True, cwd=tmp_path).stdout
    would = json.loads(subprocess.run([*words, "--json"], capture_output=True, text=True, check=True, cwd=tmp_path).stdout)["would"]
    assert "ensemble zk1:2181" in would[0]
    assert told.splitlines()[-len(would) :] == would
    plain = [*words[:5], "--json"]
    assert json.loads(subprocess.run(plain, capture_output=True, text=True, check=True, cwd=tmp_path).stdout)["would"] == []


def test_agent_flags_are_the_settings() -> None:
    """Every setting has a flag of its name, except the key."""
    from holdfast.cli import agent
    from holdfast.config import DEFAULTS

    assert set(agent.HELP) == set(DEFAULTS) - {"key"}
    built = command("agent", everything().verbs["agent"])
    flags = {name for parameter in built.params for name in parameter.opts}
    assert {f"--{name.replace('_', '-')}" for name in agent.HELP} <= flags
    assert "--key" not in flags
