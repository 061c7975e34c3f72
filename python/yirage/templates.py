"""Templates: settings under a name, for a kind of machine or for a kind of work."""

from __future__ import annotations

import os
from typing import Any

from . import _yirage
from ._yirage import get_template, list_templates, recommended_template


def save_template(
    filename: str | os.PathLike[str], name: str, *, backend: Any = None, **changes: int
) -> dict[str, Any]:
    """Writes the settings of a template as JSON, and gives them."""
    settings = get_template(name, backend=backend, **changes)
    _yirage.save_config(filename, settings)
    return settings


def load_template(filename: str | os.PathLike[str]) -> dict[str, Any]:
    """The settings of a file. Keys that nobody knows stay in it."""
    return _yirage.load_config(filename)


__all__ = ["get_template", "list_templates", "load_template", "recommended_template", "save_template"]
