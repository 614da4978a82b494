"""The page: its own files, and the panels that the membership and features bring.  docs/http.md.

A panel is a folder with ``panel.html``, a section that says in its first line before which section of the page it stands, and
``panel.js``, which shows it. ``panel.css`` has the styles of this panel alone, if it needs some. The files of a panel are served below the
name of its feature.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

PAGE = Path(__file__).parent / "page"
MEDIA = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
FILES = {"/" if file.name == "index.html" else f"/{file.name}": file for file in sorted(PAGE.iterdir()) if file.suffix in MEDIA}
PARTS = (".css", ".js")  # files of a panel that are served as they are; panel.html is put into the page
BEFORE = re.compile(r"<!-- before (\w+) -->\n\s*")  # how panel.html begins
PANELS = 'data-panels=""'  # where the page says which panels it has
STYLES = '  <link rel="stylesheet" href="page.css">\n'  # those of panels follow: at the same weight a panel decides


class PageFiles:
    """What is served beside the data: the same for all readers, and read once, because a disk that is slow must not keep the loop."""

    def __init__(self, panels: Iterable[Path]) -> None:
        folders = {folder.parent.name: folder for folder in panels}
        self._files = {**FILES}
        for name, folder in folders.items():
            self._files.update({f"/{name}/{file.name}": file for file in sorted(folder.iterdir()) if file.suffix in PARTS})
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
    assert STYLES in page
    for folder in folders.values():
        text = (folder / "panel.html").read_text()
        found = BEFORE.match(text)
        assert found is not None, f"{folder}: panel.html does not say before which section it stands"
        place = re.search(rf'<section class="card {found[1]}[ "]', page)
        assert place is not None, f"{folder}: the page has no section {found[1]}"
        page = f"{page[: place.start()]}{text[found.end() :]}\n    {page[place.start() :]}"
    styled = [name for name, folder in folders.items() if (folder / "panel.css").exists()]
    page = page.replace(STYLES, "".join([STYLES, *(STYLES.replace("page.css", f"{name}/panel.css") for name in styled)]))
    return page.replace(PANELS, f'data-panels="{" ".join(f"{name}/panel.js" for name in folders)}"')
