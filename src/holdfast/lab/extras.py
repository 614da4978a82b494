"""What is not installed with Holdfast itself: pictures, progress bars, clusters. A part that needs one says which extra brings it."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from holdfast.errors import ExtraMissing, installing

EXTRA_OF = {"dask": "cluster", "distributed": "cluster", "matplotlib": "lab", "numpy": "lab", "rich": "lab"}


def need(module: str, purpose: str) -> Any:
    """The module, or an error that says what to install."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        raise missing(error, purpose) from None


def missing(error: ModuleNotFoundError, purpose: str) -> Exception:
    """The error to show instead; the same one if no extra brings that module."""
    package = (error.name or "").partition(".")[0]
    extra = EXTRA_OF.get(package)
    if extra is None:
        return error
    return ExtraMissing(f"{purpose} needs {package}, which is not installed: {installing(extra)}")
