"""JSON as its standard has it: NaN and Infinity are refused."""

from __future__ import annotations

import json
from typing import Any


def strict(text: str | bytes) -> Any:
    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    return json.loads(text, parse_constant=refuse)
