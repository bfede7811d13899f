"""Which part of a long list of cases `make test` takes; `make test-slow` takes the rest."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def rest_slow(cases: Iterable[Any], quick: int = 1) -> list[Any]:
    """The cases of a parametrized test, all but the first few of them slow."""
    found = list(cases)
    return found[:quick] + [
        pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=pytest.mark.slow) for case in found[quick:]
    ]
