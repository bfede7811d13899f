"""Whether an arena's pair says what `compare` says of the two runs alone."""

from __future__ import annotations

from collections.abc import Collection

import pytest

from harness_noise.results.forms import shown_fields
from harness_noise.results.rows import Difference


def assert_same_row(
    ours: Difference, theirs: Difference, rel: float, *, abs: float = 1e-12, ignore: Collection[str] = ()
) -> None:
    """Hold every field of two rows together, to rounding, and the limits that a plan reads.

    Args:
        ours: the pair of an arena.
        theirs: the row of `compare`.
        rel: how far numbers may be apart, as a share of them.
        abs: how far they may be apart at least.
        ignore: diagnostic codes that only one of the two may have.
    """
    models = (ours.model_a, ours.model_b)
    for name in shown_fields(Difference):
        x, y = getattr(ours, name), getattr(theirs, name)
        if name == "if_missing":  # an arena does not fill in what is missing
            assert x is None, models
            continue
        if name == "diagnostics":
            x, y = set(x) - set(ignore), set(y) - set(ignore)
        if isinstance(y, float) and isinstance(x, float):
            assert x == pytest.approx(y, rel=rel, abs=abs), (name, *models)
        else:
            assert x == y, (name, *models)
    if ours.diff is None or ours.judge is not None:  # of which no plan reads a limit
        return
    assert (ours._data_limit is None) == (theirs._data_limit is None), models
    if ours._data_limit is not None and theirs._data_limit is not None:
        for x_limit, y_limit in (
            (ours._data_limit, theirs._data_limit),
            (ours._data_limit.without_answers(), theirs._data_limit.without_answers()),
        ):
            for alpha in (0.05, 0.2):
                expected = pytest.approx(y_limit.upper(alpha), rel=1e-9, abs=abs, nan_ok=True)
                assert x_limit.upper(alpha) == expected, (alpha, *models)
