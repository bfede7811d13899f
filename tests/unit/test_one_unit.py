"""One unit on a screen: what is in points in one place is in points everywhere."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import harness_noise as hn
from harness_noise.report import fmt
from harness_noise.report.text import render

N = 200


def frame(model: str, p: float, rows: np.ndarray) -> pd.DataFrame:
    right = (np.random.default_rng(len(model) + int(100 * p)).random(N) < p).astype(int)
    return pd.DataFrame({"question": [f"q{i}" for i in rows], "model": model, "right": right[rows]})


def shares(found: hn.Comparison, format: str) -> list[str]:
    """Numbers below 1 with three decimals that are no p-values: of a result in points none is a score."""
    text = render(found, format)
    ps = [p for row in (*found.comparisons, *found.sequential) for p in (row.p_value, getattr(row, "p_adjusted", None))]
    for p in sorted({fmt.p_text(p) for p in ps}, key=len, reverse=True):
        text = text.replace(p, "").replace(p.replace("<", "$<$"), "").replace(p.replace("<", "&lt;"), "")
    return re.findall(r"(?<![\d.])0\.\d{3,}", text)


@pytest.mark.parametrize("format", ["table", "markdown", "latex", "sentence"])
def test_looks_and_numbers_without_runs_are_in_points(format: str, tmp_path: Path) -> None:
    part = frame("new", 0.75, np.random.default_rng(5).permutation(N)[:120])
    whole = frame("old", 0.55, np.arange(N))
    part.to_csv(tmp_path / "part.csv", index=False)
    looked = hn.compare(tmp_path / "part.csv", whole, looks=5)
    assert looked.sequential
    found = [looked, hn.compare(0.71, 0.68, profile="gpqa_diamond"), hn.compare(whole, 0.68, n=500)]
    assert [shares(each, format) for each in found] == [[], [], []]


def test_a_difference_corrected_for_looks_has_no_plain_error(tmp_path: Path) -> None:
    part, whole = frame("new", 0.75, np.random.default_rng(5).permutation(N)[:120]), frame("old", 0.55, np.arange(N))
    part.to_csv(tmp_path / "part.csv", index=False)
    plain, looked = (hn.compare(tmp_path / "part.csv", whole, **more).comparisons[0] for more in ({}, {"looks": 5}))
    assert looked.unadjusted is not None
    assert (looked.unadjusted.diff, looked.unadjusted.se) == (plain.diff, plain.se)
    assert (looked.se, looked.df) == (None, None)
