"""docs/storage.md lists what the machines save."""

from __future__ import annotations

import re

from tests.tidy.tree import ROOT

PAGE = (ROOT / "docs" / "storage.md").read_text()
ROWS = re.findall(r"^\| (`[a-z]+/.*?) \|", PAGE, re.MULTILINE)
GOLDEN = (
    "records-detection-leadership.txt",
    "records-ring-gap.txt",
    "records-ring-mixed.txt",
    "records-tickets-mixed.txt",
)  # of what ships


def saved() -> set[tuple[str, str]]:
    """The part and the first word of each key that the pinned scenarios saved."""
    texts = [(ROOT / "tests" / "pins" / "golden" / name).read_text() for name in GOLDEN]
    keys = [line.split("/") for text in texts for line in text.splitlines() if line and not line.startswith(" ")]
    return {(key[0], key[1]) for key in keys}


def test_every_part_of_the_journal_is_listed() -> None:
    """What is saved belongs to a part that the page names, and the page names no other; of seats and keeper every word is there."""
    listed = [word.split("/") for row in ROWS for word in re.findall(r"`([^`]+)`", row)]
    assert {part for part, *_ in listed} == {part for part, _ in saved()}
    assert {each for each in saved() if each[0] in ("seats", "keeper")} == {
        (part, word) for part, word, *_ in listed if part in ("seats", "keeper")
    }
