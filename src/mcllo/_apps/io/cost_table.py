"""`read_costs`: costs of actions from a file: a table as of predictions, or JSON.

A table has a column for each class and one, the first that is no class, with the actions. JSON
holds a mapping, as `mcllo.Costs` takes it.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import Any

from ..._utils.atomic_files import StrPath
from ...exceptions import FileFormatError
from .source import Source


def read_costs(path: StrPath, classes: Sequence[Hashable]) -> Any:
    """Return a frame or a mapping that `Costs.from_table` understands."""
    if str(path).lower().endswith(".json"):
        return _read_mapping(path)
    source = Source(path)
    known = {str(label) for label in classes}
    others = [column for column in source.columns if column not in known]
    actions = others[:1]
    costs = [column for column in source.columns if column not in actions]
    return source.read([], actions, plain=costs).select(source.columns)


def _read_mapping(path: StrPath) -> Any:
    text = Path(path).read_bytes()
    try:
        found = json.loads(text)
    except ValueError as error:  # of bytes that are no text, too
        raise FileFormatError(f"{path} must be JSON; {error}.") from None
    if not isinstance(found, dict):
        raise FileFormatError(
            f"{path} must hold a mapping of actions, or a short form such as "
            '{"miss": {"cancer": 50}, "default": 1}.'
        )
    return found
