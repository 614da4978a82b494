"""docs/storage.md lists what an agent writes to disk: the files, and the records of the journal."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

from holdfast.agent.life.key_store import KEYRING_FILE, KeyStore
from holdfast.config import Config
from holdfast.disk.state_directory import State
from holdfast.kit import seat_records
from holdfast.wire.keys import generate
from tests.tidy.tree import PACKAGE, ROOT, source

PAGE = (ROOT / "docs" / "storage.md").read_text()
AGENT_PAGE = (ROOT / "docs" / "agent.md").read_text()
ROWS = re.findall(r"^\| (`[a-z]+/.*?) \| (.*?) \|", PAGE, re.MULTILINE)
GOLDEN = (
    "records-detection-leadership.txt",
    "records-election-gossip.txt",
    "records-election-mixed.txt",
    "records-gossip-mixed.txt",
    "records-ring-gap.txt",
    "records-ring-mixed.txt",
    "records-tickets-mixed.txt",
)  # of what ships
STAYS_INSIDE = ("lab", "papers")  # what no agent loads
OWN_GROUP = "live"  # in the golden list of files
OF_THE_SOCKET = "agent.sock.alive"  # in the runtime directory beside the socket, of agents that are no seat as well
UNWRITTEN = {f"{seat_records.KEEPER}/{seat_records.ERA}"}  # F13: a rebuild would write it, and is not offered yet


def golden(name: str) -> list[str]:
    return (ROOT / "tests" / "pins" / "golden" / name).read_text().splitlines()


def saved() -> set[tuple[str, str]]:
    """The part and the first word of each key that the pinned scenarios saved."""
    keys = [line.split("/") for name in GOLDEN for line in golden(name) if line and not line.startswith(" ")]
    return {(key[0], key[1]) for key in keys}


def listed() -> list[tuple[str, str]]:
    """Each key on the page, and what writes it."""
    return [(key, writers) for keys, writers in ROWS for key in re.findall(r"`([^`]+)`", keys)]


def table(page: str, after: str) -> set[str]:
    """The first column of the first table behind these words."""
    rows = page.partition(after)[2].lstrip().partition("\n\n")[0]
    return set(re.findall(r"^\| `([^`]+)` \|", rows, re.MULTILINE))


def shipped() -> Iterator[tuple[Path, ast.Module]]:
    """Machines of the kit and of features, without their trials."""
    for path, text in source():
        parts = path.relative_to(PACKAGE).parts
        if parts[0] in ("kit", "features") and not set(parts) & set(STAYS_INSIDE):
            yield path, ast.parse(text)


def calls(tree: ast.Module, method: str) -> list[ast.expr]:
    """The first argument of each ``....storage.method(...)``."""
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)]
    return [node.args[0] for node in nodes if ast.unparse(node.func).endswith(f"storage.{method}")]


def declared(path: Path, tree: ast.Module) -> dict[str, str]:
    """The parts that this file opens, each with the file that names it."""
    file = path.relative_to(PACKAGE)
    module = import_module(".".join(("holdfast", *file.with_suffix("").parts)))
    found: dict[str, str] = {}
    for argument in calls(tree, "part"):
        assert isinstance(argument, ast.Name), f"{file}: {ast.unparse(argument)} has no name"
        own = file.parts[0] == "features"
        assert argument.id == "PART" if own else hasattr(seat_records, argument.id), f"{file}: {argument.id}"
        found[getattr(module, argument.id)] = file.as_posix() if own else "kit/seat_records.py"
    return found


def test_every_part_of_the_journal_is_listed() -> None:
    """What is saved belongs to a part that the page names, and the page names no other; of seats and keeper every word is there."""
    words = {(key.split("/")[0], key.split("/")[1]) for key, _ in listed()}
    assert {part for part, _ in words} == {part for part, _ in saved()}
    assert {each for each in saved() if each[0] in ("seats", "keeper")} == {each for each in words if each[0] in ("seats", "keeper")}


def test_every_part_has_a_name_that_a_reader_finds() -> None:
    """H225: the kit names its parts in one file, a feature declares ``PART`` where it opens it, and the page says in which file."""
    parts = {part: file for path, tree in shipped() for part, file in declared(path, tree).items()}
    written = {key.split("/")[0]: writers for key, writers in listed()}
    assert set(parts) == set(written)
    assert [part for part, file in parts.items() if file.startswith("features/") and f"`{file}`" not in written[part]] == []


def test_every_key_of_the_kit_has_a_name() -> None:
    """H225: what the kit saves stands in ``kit/seat_records.py``, each on the page; no machine has a key of its own invention."""
    own = {name: value for name, value in vars(seat_records).items() if name.isupper()}
    of_seats = {f"{own['SEATS']}/{own[name]}" for name in ("ME", "MET", "MARK", "MARKER", "MARK_OF")}
    of_keeper = {f"{own['KEEPER']}/{own[name]}" for name in ("LONGEST", "ERA")}
    assert len(own) == len(of_seats | of_keeper) + 2, "a name that is no part and no key of one"
    keys = {key.removesuffix("SLOT") for key, _ in listed() if key.startswith((own["SEATS"], own["KEEPER"]))}
    assert keys == (of_seats | of_keeper) - UNWRITTEN
    spelled = [
        f"{path.name}: {ast.unparse(argument)}"
        for path, tree in shipped()
        for argument in calls(tree, "save")
        if any(isinstance(node, ast.Constant | ast.JoinedStr) for node in ast.walk(argument))
    ]
    assert spelled == []


def test_every_file_is_listed(tmp_path: Path) -> None:
    """F1, F6, H154, H161: the files of a state directory and of the runtime directory of a sole seat; a rotation writes one more."""
    config = Config(key=generate())
    state = State.open(tmp_path / "state")
    keys = KeyStore(config, state)
    assert keys.keyring is not None
    keys.keep(keys.keyring)
    state.close()
    rotated = {path.name for path in (tmp_path / "state").iterdir()}
    assert KEYRING_FILE in rotated
    places = [line.split(" ", 1) for line in golden("files.txt") if line.startswith(("state ", "runtime "))]
    there = rotated | {name for place, name in places if place == "state"}
    assert table(PAGE, "## The state directory") == there | {"*.new"}
    assert table(AGENT_PAGE, "## What it keeps") == there
    runtime = {name.replace(OWN_GROUP, "GROUP", 1) for place, name in places if place == "runtime" and name != OF_THE_SOCKET}
    assert table(PAGE, "if the state directory was lost:") == runtime
