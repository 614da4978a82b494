"""docs/local-api.md and docs/grants.md say what is there."""

from __future__ import annotations

import re
from pathlib import Path

from holdfast.agent.grants import grants
from holdfast.agent.socket import connection, files
from holdfast.agent.socket.events import BUFFER_MAX
from holdfast.agent.socket.view import NAMES_MAX
from holdfast.features.mail import streams as messages
from holdfast.local.frame import ANSWER_BYTES_MAX, CALL_BYTES_MAX
from holdfast.local.table import tag_of
from tests.support.calls import CALLS

ROOT = Path(__file__).parents[2]
API, GRANTS = ((ROOT / "docs" / name).read_text() for name in ("local-api.md", "grants.md"))
CALL_ROW = re.compile(r"^\| (\d+) \| `(\w+)` \| ([\w, ]*) ?\| ", re.MULTILINE)
TEST_ROW = re.compile(r"\| `(test_\w+)` \|$", re.MULTILINE)


def test_every_call_is_in_the_table() -> None:
    """Tag, name and fields of each call, in order."""
    table = API[API.index("| tag | call |") :]
    listed = [(int(tag), name, fields.strip()) for tag, name, fields in CALL_ROW.findall(table)]
    assert listed == [(tag_of(kind), kind.__name__, ", ".join(kind.__struct_fields__[1:])) for kind in CALLS]


def test_limits_are_the_constants() -> None:
    """The numbers on the page are those in the code."""
    assert (CALL_BYTES_MAX, ANSWER_BYTES_MAX) == (64 << 10, 10 << 20)
    for text in (
        f"| clients of one agent | {files.CLIENTS_MAX} |",
        f"| time until `Hello` | {connection.GREETING_TIMEOUT:.0f} s |",
        f"| calls of one client that wait for a protocol | {connection.CALLS_MAX} |",
        f"| calls of one connection that cannot be read | {connection.UNREADABLE_MAX} |",
        f"| streams of one client | {connection.STREAMS_MAX} |",
        f"| {grants.GRANTS_PER_SESSION_MAX}, {grants.GRANTS_MAX}, {grants.BODIES_MAX} |",
        f"| {connection.HIGH_BYTES >> 10} KiB |",
        f"| {connection.BACKLOG_BYTES_MAX >> 20} MiB |",
        f"| {messages.QUEUE_MAX}, {messages.QUEUE_BYTES_MAX >> 20} MiB |",
        f"a buffer of {BUFFER_MAX}",
        f"remembers the last {NAMES_MAX} names that changed",
        f"topics of 1 to {messages.USER_TOPIC_BYTES_MAX} bytes",
    ):
        assert text in API, text


def test_every_failure_has_its_test() -> None:
    """The table of failures names tests that are there."""
    tests = "".join(path.read_text() for path in (ROOT / "tests" / "agent").glob("test_grants_*.py"))
    named = TEST_ROW.findall(GRANTS)
    assert len(named) >= 12
    assert [name for name in named if f"def {name}(" not in tests] == []
