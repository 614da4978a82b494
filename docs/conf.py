"""How the documentation is built: Markdown pages, and a reference made from docstrings."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.metadata import version as installed
from itertools import groupby
from pathlib import Path
from shutil import rmtree

from docutils import nodes
from sphinx.application import Sphinx

project = "Holdfast"
author = "the Holdfast authors"
copyright = author
version = release = installed("holdfast")

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.autosummary"]
myst_enable_extensions = ["deflist"]
myst_heading_anchors = 3
exclude_patterns = ["_build"]
templates_path = ["_templates"]
toc_object_entries = False  # thousands of entries in every page: the navigation would take longer to draw than the pages
html_theme = "furo"
html_title = "Holdfast"
html_static_path = ["_static"]

autosummary_generate = True
autosummary_ignore_module_all = False
autodoc_typehints = "signature"
autodoc_class_signature = "separated"
autodoc_preserve_defaults = True

# Two classes of one name in two modules are no mistake.
suppress_warnings = ["ref.python"]

LITERAL = re.compile(r"(``.+?``)")
MARKUP = re.compile(r"([\\*`|_])")
ANCHOR = re.compile(r'<a id="([^"]+)">')  # of the specifications and decisions: what code and tests cite
DRAWN = re.compile(r"^(?:\s|[|`+]|\S.*\S {3,}\S)")  # indented, a branch of a tree, columns


def setup(app: Sphinx) -> None:
    # A page that an earlier build made of a module that is gone would only warn.
    rmtree(Path(__file__).with_name("reference"), ignore_errors=True)
    app.connect("autodoc-process-docstring", _as_prose)
    app.connect("doctree-read", _know_anchors)


def _know_anchors(app: Sphinx, doctree: nodes.document) -> None:
    """Links to ``page.md#ring-D26`` are checked like links to headings: one that leads nowhere is a warning."""
    slugs = app.env.metadata[app.env.docname].setdefault("myst_slugs", {})
    for node in doctree.findall(nodes.raw):
        slugs.update({name: (node.line, name, "") for name in ANCHOR.findall(node.astext())})


def _as_prose(_app: Sphinx, _kind: str, _name: str, _object: object, _options: object, lines: list[str]) -> None:
    """Docstrings here are prose with ``literals`` and, now and then, a drawing: they are written without markup in mind."""
    lines[:] = list(_rendered(lines))


def _rendered(lines: list[str]) -> Iterator[str]:
    for blank, group in groupby(lines, key=lambda line: not line.strip()):
        paragraph = list(group)
        if blank:
            yield ""
        elif paragraph[0].startswith("- "):
            yield from (_escaped(line) for line in paragraph)
            yield ""
        elif any(DRAWN.match(line) for line in paragraph):
            yield from ("::", "", *(f"    {line}" for line in paragraph), "")
        else:
            yield from (_escaped(line) for line in paragraph)


def _escaped(line: str) -> str:
    return "".join(part if part.startswith("``") else MARKUP.sub(r"\\\1", part) for part in LITERAL.split(line))
