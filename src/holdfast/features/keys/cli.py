"""``holdfast keys``: generate, list, install, use, remove.

A rotation has three steps, each across the whole group, each only when the one before has succeeded everywhere: install the new
key (every member can read it), use it (every member writes with it), remove the old one. The report says what each member answered.
"""

from __future__ import annotations

import os
import sys
from typing import Annotated

from holdfast.cli.agent_call import GRACE, asked
from holdfast.cli.exits import FOUND, OK
from holdfast.cli.options import AGENT, GROUP, JSON, TIMEOUT, checked_timeout
from holdfast.cli.parser import Flag, Word
from holdfast.cli.show import print_json, print_table
from holdfast.errors import KeyUnusable
from holdfast.features.keys.calls import Keys, MemberReport

KEY_MODE = 0o600
REPORT_TIMEOUT = 10.0  # seconds for all members to answer

FORCE = Flag("--force", help="Also if some member is silent or not ready: it may be cut off by it.")
KeyId = Annotated[str, Word(help="Id of a key, as `holdfast keys list` shows it.", metavar="ID")]


def generate(
    *,
    out: Annotated[str, Flag("--out", "-o", help="Write it there, for your eyes only; nothing is overwritten.", metavar="FILE")] = "",
    as_json: Annotated[bool, JSON] = False,
) -> None:
    """Make a new key; with -o FILE into a file that only you can read."""
    from holdfast.wire.keys import generate as generated
    from holdfast.wire.keys import parse_key

    key = generated()
    name = parse_key(key).id.hex()
    if out:
        _write(out, key)
        said = {"id": name, "file": out}
    else:
        said = {"id": name, "key": key}
    if as_json:
        print_json(said)
    else:
        print(f"key {name} is in {out}" if out else key)


def listing(
    *,
    timeout: Annotated[float, TIMEOUT] = REPORT_TIMEOUT,
    as_json: Annotated[bool, JSON] = False,
    agent: Annotated[str, AGENT] = "",
    group: Annotated[str, GROUP] = "",
) -> int:
    """Which keys each member holds; the first is the one it writes with."""
    return _report("list", "", timeout, agent, group, as_json=as_json)


def install(
    *,
    file: Annotated[str, Word(help="A key file, as `holdfast keys generate -o` writes it; - for stdin.", metavar="FILE")],
    timeout: Annotated[float, TIMEOUT] = REPORT_TIMEOUT,
    as_json: Annotated[bool, JSON] = False,
    agent: Annotated[str, AGENT] = "",
    group: Annotated[str, GROUP] = "",
) -> int:
    """Step 1 of a rotation: every member can read with the key in this file."""
    return _report("install", _read(file), timeout, agent, group, as_json=as_json)


def use(
    *,
    key: KeyId,
    force: Annotated[bool, FORCE] = False,
    timeout: Annotated[float, TIMEOUT] = REPORT_TIMEOUT,
    as_json: Annotated[bool, JSON] = False,
    agent: Annotated[str, AGENT] = "",
    group: Annotated[str, GROUP] = "",
) -> int:
    """Step 2: every member writes with the key of this id. Do it when `keys list` shows the key at every member."""
    return _report("use", key, timeout, agent, group, force=force, as_json=as_json)


def remove(
    *,
    key: KeyId,
    force: Annotated[bool, FORCE] = False,
    timeout: Annotated[float, TIMEOUT] = REPORT_TIMEOUT,
    as_json: Annotated[bool, JSON] = False,
    agent: Annotated[str, AGENT] = "",
    group: Annotated[str, GROUP] = "",
) -> int:
    """Step 3: every member forgets the key of this id. Do it when `keys list` shows it first at no member."""
    return _report("remove", key, timeout, agent, group, force=force, as_json=as_json)


def _report(action: str, key: str, timeout: float, agent: str, group: str, *, as_json: bool, force: bool = False) -> int:
    checked_timeout(timeout)
    reports: tuple[MemberReport, ...] = asked(agent, group, Keys, action, key, timeout, force, timeout=timeout + GRACE)
    done = all(report.done for report in reports)
    if as_json:
        members = [{"name": each.member, "done": each.done, "text": each.text, "keys": each.keys} for each in reports]
        print_json({"action": action, "done": done, "members": members})
    else:
        rows = [(each.member, "done" if each.done else "FAILED", " ".join(each.keys), each.text) for each in reports]
        print_table(("MEMBER", "RESULT", "KEYS", ""), rows)
    return OK if done else FOUND


def _read(file: str) -> str:
    from holdfast.wire.keys import KEY_FILE_BYTES_MAX, load_key, parse_key

    if file == "-":
        text = sys.stdin.read(KEY_FILE_BYTES_MAX)
        parse_key(text, source="key on stdin")
        return text.strip()
    load_key(file)
    with open(file, encoding="ascii") as source:  # noqa: PTH123 - its bytes were checked above
        return source.read(KEY_FILE_BYTES_MAX).strip()


def _write(path: str, key: str) -> None:
    try:
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, KEY_MODE)
    except OSError as error:
        raise KeyUnusable(f"--out {path}: {error.strerror}; accepted is a file that is not there yet") from None
    with os.fdopen(file, "w") as out:
        out.write(f"{key}\n")
