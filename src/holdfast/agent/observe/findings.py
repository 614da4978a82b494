"""How a feature writes a finding of ``doctor``.  docs/operations.md has one entry for each code."""

from __future__ import annotations

from holdfast.local.calls import Finding

WORRY = 0.75  # of what a seat can remember: time to think again


def error(code: str, about: str, text: str, advice: str) -> Finding:
    return Finding(code, "error", about, text, advice)


def warning(code: str, about: str, text: str, advice: str) -> Finding:
    return Finding(code, "warning", about, text, advice)


def note(code: str, about: str, text: str, advice: str) -> Finding:
    return Finding(code, "note", about, text, advice)
