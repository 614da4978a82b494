"""The page: its own files, and the panels that the membership and features bring.  docs/http.md.

A panel is a folder with ``panel.html``, a section that says in its first line before which section of the page it stands, and
``panel.js``, which shows it. The files of a panel are served below the name of its feature.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

PAGE = Path(__file__).parent / "page"
MEDIA = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
FILES = {"/" if file.name == "index.html" else f"/{file.name}": file for file in sorted(PAGE.iterdir()) if file.suffix in MEDIA}
BEFORE = re.compile(r"<!-- before (\w+) -->\n\s*")  # how panel.html begins
PANELS = 'data-panels=""'  # where the page says which panels it has


class PageFiles:
    """What is served beside the data: the same for all readers, and read once, because a disk that is slow must not keep the loop."""

    def __init__(self, panels: Iterable[Path]) -> None:
        folders = {folder.parent.name: folder for folder in panels}
        self._files = {**FILES}
        for name, folder in folders.items():
            self._files.update({f"/{name}/{file.name}": file for file in sorted(folder.iterdir()) if file.suffix == ".js"})
        self._read: dict[str, bytes] = {"/": _with_panels(FILES["/"].read_text(), folders).encode()}

    def __contains__(self, path: str) -> bool:
        return path in self._files

    def __iter__(self) -> Iterator[str]:
        return iter(self._files)

    def content(self, path: str) -> tuple[bytes, str]:
        """The bytes, and what they are."""
        file = self._files[path]
        if path not in self._read:
            self._read[path] = file.read_bytes()
        return self._read[path], MEDIA[file.suffix]


def _with_panels(page: str, folders: dict[str, Path]) -> str:
    for folder in folders.values():
        text = (folder / "panel.html").read_text()
        found = BEFORE.match(text)
        assert found is not None, f"{folder}: panel.html does not say before which section it stands"
        place = f'<section class="card {found[1]}"'
        assert place in page, f"{folder}: the page has no section {found[1]}"
        page = page.replace(place, f"{text[found.end() :]}\n    {place}")
    return page.replace(PANELS, f'data-panels="{" ".join(f"{name}/panel.js" for name in folders)}"')
