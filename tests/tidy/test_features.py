"""A feature has one address: the agent names none, and one list says which there are.  docs/decisions.md H209."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from collections import Counter
from pathlib import Path

import pytest

from holdfast.agent.feature import features
from holdfast.features import FEATURES
from holdfast.local.calls import OWN, Call
from holdfast.local.table import tag_of
from tests.support.calls import of_features
from tests.tidy.test_citations import TOKEN
from tests.tidy.tree import PACKAGE, ROOT, import_all, subclasses, texts

# Words by which a reader would find a feature in a file. Those of keys, names, probe, views, limits, gossip and election are plain words
# as well (keys of a table, names of members, probes of a load balancer, views of a group, limits of a queue, gossip of limiters, elections
# of any protocol): for these the import contract speaks. Of some of them a few words are their own, as they are written.
WORDS = re.compile(
    r"ticket|leader|\blead\b|mail|farewell|parting|\bpools?\b|\bring|_ring\b|zookeeper|moshe|v1/views"
    r"|(?-i:GossipNode|GossipConfig|v1/gossip)"
    r"|(?-i:\bElections?\b|ElectionAgent|ElectKind|ElectionSettings|v1/elections|\"elections?\"|\"elect\")"
    r"|(?-i:ViewNode|GroupViews|ViewChanged|ViewLost|ViewRestored|ViewTripped|ViewId|\bViews?\b"
    r"|Limiter|GroupLimits?|LimitChanged|LimitPanicked|LimitRestored|LimitTimeout|v1/limits)",
    re.IGNORECASE,
)
PLAIN = {"election", "gossip", "keys", "limits", "names", "probe", "views"}  # features whose names are plain words as well
# Folders and files that name features all the same, and why.
ALLOWED = {
    "cli/demo": "the story of the product: it shows leadership, tickets and the ring at work",
    "client/aio/group.py": "the methods of Group, which are there for type checkers and readers (H214)",
    "client/sync/group.py": "made from client/aio/group.py (H213)",
    "host.py": "the interface `Views`, which mail and limits know as they know `Membership` (H5), and the numbers of `Grant`",
    "events.py": "the events for users of the features that ship: one import for programs",
    "errors.py": "the errors for users of the features that ship: one tree (docs/client.md)",
    "kit/overlay.py": "`Views` where there may be none: mail sends by it and does not know views (H5)",
    "local/leaders.py": "one table of who leads what, of both ways to lead a name (H421)",
    "kit/positions.py": "the name of the ring is in the hash of every position, as it always was (H321)",
    "config/settings.py": "the tables that ship are bases of Config, so that a type checker knows their settings (H216)",
    "client/members.py": "the error of `owner` says which membership has owners of keys (H214, H321)",
}
FOLDERS = (
    "agent", "cli", "client", "lab", "host.py", "node.py", "events.py", "errors.py", "drops.py", "bounds.py", "kit", "local", "net", "wire",
    "disk", "config",
)  # fmt: skip


def inside(folder: str) -> dict[str, str]:
    """The text of every file of a folder, by its path in the package: Python, and what the page is made of. Or one file."""
    return {path.relative_to(PACKAGE).as_posix(): text for path, text in texts().items() if path.is_relative_to(PACKAGE / folder)}


def naming(folder: str) -> list[str]:
    """The files in which a reader finds a feature. A citation ("tickets D26") names a specification, not a feature."""
    suspects = {file: text for file, text in inside(folder).items() if WORDS.search(text)}  # few; removing citations takes long
    return sorted(file for file, text in suspects.items() if WORDS.search(TOKEN.sub(_without_citation, text)))


def is_in(file: str, place: str) -> bool:
    return file == place or file.startswith(f"{place}/")


def _without_citation(found: re.Match[str]) -> str:
    return "" if found["name"] else found[0]


@pytest.mark.parametrize("folder", FOLDERS)
def test_the_common_parts_name_no_feature(folder: str) -> None:
    """H209, H214, H216, H217, H246: the agent, its page and the client have what is of a feature from the list, verbs come from the
    ``verbs.py`` of the features, trials from their ``lab``, durations from the experiments, what a value looks like from their
    ``shapes.py``. The spine, the kit and what lies between them and the agent know no feature."""
    assert [file for file in naming(folder) if not any(is_in(file, place) for place in ALLOWED)] == []


def test_every_exception_is_needed() -> None:
    """H209: a file that names no feature any more is taken from the list."""
    found = [file for folder in FOLDERS for file in naming(folder)]
    assert [place for place in ALLOWED if not any(is_in(file, place) for file in found)] == []


def test_the_contract_of_the_ring_has_every_package() -> None:
    """Issue 17, 2: agent, client and command line speak to one interface of membership; so a package that is new is under the contract."""
    contracts = {each["id"]: each for each in tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]}
    floors = {f"holdfast.{name.strip()}" for line in contracts["layers"]["layers"] for name in line.strip("()").split("|")}
    assert set(contracts["ring"]["source_modules"]) == floors - {"holdfast.__main__"}
    assert contracts["ring"]["forbidden_modules"] == ["holdfast.features.ring"]
    assert contracts["features"]["modules"] == ["holdfast.features.*"]


def test_the_page_is_read() -> None:
    """H216: a name in a style, a script or the markup is a name."""
    assert {Path(file).suffix for file in inside("agent")} >= {".py", ".css", ".html", ".js", ".svg"}


def test_every_feature_has_a_word() -> None:
    """H217: a folder that comes to features/ is looked for in the others from its first day."""
    folders = {path.parent.name for path in (PACKAGE / "features").glob("*/__init__.py")}
    assert {folder for folder in folders if not WORDS.search(folder)} == PLAIN


def test_the_list_has_every_feature() -> None:
    """H209: each folder with an agent's side is a line of the list, called as the folder is; memberships have a list of their own."""
    folders = {path.parent.name for path in (PACKAGE / "features").glob("*/agent.py")} - {"ring"}
    found = features()
    assert {feature.name for feature in found} == folders
    assert [place.split(".")[2] for place in FEATURES] == [feature.name for feature in found]
    assert all(Path(PACKAGE / "features" / feature.name).is_dir() for feature in found)


def test_an_agent_without_seats_loads_no_protocol_that_needs_them() -> None:
    """H209: memory grows with what is used. The features are built and say what is missing, without their protocols."""
    code = (
        "import sys, types, holdfast.agent.life.main\n"
        "from holdfast.agent.feature import features\n"
        "parts = types.SimpleNamespace(seats=None, seats_missing='seats: none', config=None)\n"
        "print(*(each.build(parts).why for each in features() if each.name in ('leadership', 'tickets')), sep=', ')\n"
        "print(*sorted(name for name in sys.modules if '.leadership.protocol' in name or '.tickets.protocol' in name))"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.splitlines()
    assert said == ["seats: none, seats: none", ""]


def test_every_call_is_declared_once() -> None:
    """H215: a tag belongs to one call for ever. A call is one of the agent's own, or in the ``calls.py`` of a feature in the list."""
    declared = [*OWN, *(kind for kinds in of_features().values() for kind in kinds)]
    tags = Counter(tag_of(kind) for kind in declared)
    assert {tag: count for tag, count in tags.items() if count > 1} == {}
    import_all()
    assert {kind for kind in subclasses(Call) if is_of_agent(kind)} == set(declared)
    assert len(of_features()) >= 4


def is_of_agent(kind: type[Call]) -> bool:
    """Tests may declare calls of their own."""
    return kind.__module__.startswith("holdfast.")


def test_the_words_are_found() -> None:
    """A search that finds nothing would prove nothing."""
    assert WORDS.search("self.tickets is None")
    assert WORDS.search("mail_total")
    assert WORDS.search("RingAnswer")
    assert WORDS.search("#ring .dot { fill: none; }")
    assert WORDS.search('grant.kind === "ticket"')
    assert WORDS.search("self.node: ViewNode")
    assert WORDS.search("isinstance(value, View)")
    assert WORDS.search("its members are in /v1/views")
    assert WORDS.search("self.machine = ElectionAgent(host)")
    assert WORDS.search("An Election of that name")
    assert WORDS.search("kinds.append(ElectKind(parts))")
    assert WORDS.search("ElectionSettings.of(config)")
    assert WORDS.search("who is asked is in /v1/elections")
    assert WORDS.search('by == "election"')
    assert WORDS.search('kind in ("lead", "elect")')
    assert not WORDS.search("the timer of an election; elections among its monitors, selected")
    assert not WORDS.search("SeatView, a GroupView and its view_lines; a view of the group, ViewLines")
    assert not WORDS.search("the string of a Keyring, during")
    assert not WORDS.search("leaving a group")
    assert WORDS.search("holdfast.features.ring")
    assert not WORDS.search(TOKEN.sub(_without_citation, "Spec: foundation 4 (Rows), tickets 5.9, ring D4."))
    assert WORDS.search(TOKEN.sub(_without_citation, "Tickets of a ring, see F14."))
