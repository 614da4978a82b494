"""Make the blocking spelling of the client from the one for asyncio.  docs/decisions.md H213.

    python scripts/spell.py [FILE ...]    write the blocking files; without names, all of them
    python scripts/spell.py --check       say which of them differ from what would be written, and fail

``client/aio/NAME.py`` becomes ``client/sync/NAME.py``, and ``client.py`` in a feature's folder becomes
``client_sync.py`` beside it. Words of asyncio are left out or have others (``WORDS``), imports of ``client.loop`` become
those of ``client.threads``, and docstrings follow (``PHRASES``). Where a line has to differ, a line that ends in
``# aio`` is left out, and ``# sync: code`` becomes code. The rest is for ruff: the order of imports, imports that nothing
uses any more, and the layout.
"""

from __future__ import annotations

import difflib
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "holdfast"
RUFF = Path(sys.executable).parent / "ruff"
HEADER = "# Made by scripts/spell.py from {source}: edit that file and run the script.\n"
MADE = "# Made by scripts/spell.py from "

# In code, in this order.
WORDS = [
    (r"\basync (?=def |with |for )", ""),
    (r"\bawait ", ""),
    (r"\b__a(enter|exit|iter|next)__\b", r"__\1__"),
    (r"\bStopAsyncIteration\b", "StopIteration"),
    (r"\bAsync(Iterator|Iterable|Generator|ContextManager)\b", r"\1"),
    (r"\bAwaitable\[(\w+)\]", r"\1"),
    (r"\bCoroutine\[Any, Any, ([^\[\]]+)\]", r"\1"),
    (r"\bholdfast\.client\.aio\b", "holdfast.client.sync"),
    (r"\bholdfast\.client\.loop\b", "holdfast.client.threads"),
    (r"(?m)^(\s*from (?!holdfast\.client )[\w.]+)\.client import ", r"\1.client_sync import "),
    (r"(?m)^(\s*from [\w.]+ import )client\b", r"\1client_sync"),
    (r"(?m) *# noqa: ASYNC\d+.*$", ""),
]
# In docstrings.
PHRASES = [
    (r"\b([Aa])n ``async with``", r"\1 ``with``"),
    (r"\basync with holdfast\.join\b", "with holdfast.sync.join"),
    (r"\basync (?=with\b|for\b)", ""),
    (r"``await ([\w.]+)\.lost``", r"``\1.lost.wait()``"),
    (r"\b([Aa]n) async iterator\b", r"\1 iterator"),
    (r"``await ", "``"),
    (r"``holdfast\.join``", "``holdfast.sync.join``"),
    (r"\bused in the event loop that made it\b", "any thread may use it"),
]
LEFT = re.compile(r"\bawait\b|\basync\b|\basyncio\.|\bimport asyncio\b|\b__a(?:enter|exit|iter|next)__\b|# aio$|# sync: ", re.MULTILINE)
DOCSTRING = re.compile(r'(""".*?""")', re.DOTALL)


def target(source: Path) -> Path:
    """Where the blocking spelling of a file stands."""
    if source.name == "client.py":
        return source.with_name("client_sync.py")
    if source.parent.name != "aio":
        raise SystemExit(f"spell: {source}; accepted are the client.py of a feature and the files of client/aio")
    return source.parent.with_name("sync") / source.name


def sources() -> list[Path]:
    """All files that have a blocking spelling."""
    found = [*(PACKAGE / "client" / "aio").glob("*.py"), *(PACKAGE / "features").glob("*/client.py")]
    return sorted(path for path in found if path.name != "__init__.py")


def made() -> list[Path]:
    """All files that say of themselves that this script made them."""
    found = [*(PACKAGE / "client" / "sync").glob("*.py"), *(PACKAGE / "features").glob("*/client_sync.py")]
    return sorted(path for path in found if path.read_text().startswith(MADE))


def spelled(text: str, name: str) -> str:
    """The blocking spelling of a source; ``name`` is what the source is called in it and in errors."""
    lines = [line for line in text.splitlines() if not line.endswith("  # aio")]
    text = "\n".join(re.sub(r"^(\s*)# sync: ", r"\1", line) for line in lines) + "\n"
    parts = DOCSTRING.split(text)  # code, docstring, code, ...
    for at in range(len(parts)):
        for pattern, word in PHRASES if at % 2 else WORDS:
            parts[at] = re.sub(pattern, word, parts[at])
        if found := LEFT.search(parts[at]):
            line = parts[at].count("\n", 0, found.start())
            raise SystemExit(f"spell: {name}: {found.group()!r} is left in: {parts[at].splitlines()[line].strip()}")
    return HEADER.format(source=name) + "".join(parts)


def formatted(text: str, path: Path) -> str:
    """With its imports in order, without those that nothing uses, and laid out as all files are."""
    for words in (["check", "--quiet", "--select", "I,F401", "--fix-only"], ["format", "--quiet"]):
        command = [str(RUFF), *words, "--stdin-filename", str(path), "-"]
        text = subprocess.run(command, input=text, capture_output=True, text=True, check=True, cwd=ROOT).stdout
    return text


def blocking(source: Path) -> str:
    """What the blocking file of a source has to say."""
    name = str(source.relative_to(ROOT) if source.is_relative_to(ROOT) else source.name)
    return formatted(spelled(source.read_text(), name), target(source))


def differences() -> list[str]:
    """What differs between the files and what the script makes, as lines of a diff; files whose source is gone are named."""
    found: list[str] = []
    for source in sources():
        path, wanted = target(source), blocking(source)
        there = path.read_text() if path.exists() else ""
        name = str(path.relative_to(ROOT))
        found += difflib.unified_diff(there.splitlines(), wanted.splitlines(), name, f"{name} as the script makes it", lineterm="")
    gone = {*made()} - {target(source) for source in sources()}
    return found + [f"{path.relative_to(ROOT)}: its source is gone" for path in sorted(gone)]


def main(words: list[str]) -> int:
    if words == ["--check"]:
        found = differences()
        print("\n".join([*found, "spell: run `python scripts/spell.py`"]) if found else "spell: both spellings are one")
        return bool(found)
    for source in [Path(word).resolve() for word in words] or sources():
        text = blocking(source)
        if not target(source).exists() or target(source).read_text() != text:
            target(source).write_text(text)
            print(f"spell: {target(source)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
