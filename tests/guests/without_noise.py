"""A plugin of pytest that hides this package from those who look for plugins."""

from __future__ import annotations

import importlib.metadata as metadata
from typing import Any

_all = metadata.entry_points


def _others(**select: Any) -> Any:
    found = _all(**select)
    return [point for point in found if "harness_noise" not in point.value] if select else found


metadata.entry_points = _others
