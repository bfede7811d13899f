"""Corrected means beside those of prediction-powered inference with a tuned slope (PPI++).

The figures are those of ppi-python 0.2.3 (`ppi_mean_pointestimate`, `ppi_mean_ci` with alpha = .05 and the slope that
it tunes), for independent questions. Three things differ on purpose: fits are cross-fitted, so that the labels that
choose the slope do not make the errors too small; the variance has n − 1 and a slope in its degrees of freedom; and the
interval is Student's.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import harness_noise as hn

PPI = [
    ("lenient", 200, 1000, 0.6626468900, 0.6247432329, 0.7005505470),
    ("lenient", 500, 2000, 0.6510761311, 0.6243557188, 0.6777965434),
    ("useless", 200, 1000, 0.6550000000, 0.5891185285, 0.7208814715),
    ("useless", 500, 2000, 0.6519245497, 0.6101806503, 0.6936684491),
    ("graded", 200, 1000, 0.4988312217, 0.4777076635, 0.5199547799),
    ("graded", 500, 2000, 0.5005798561, 0.4863296032, 0.5148301089),
]
"""Case, labels, questions, estimate, and the ends of the interval."""


def data(case: str, n: int, N: int) -> tuple[Any, Any, Any]:
    """Labels and scores of N questions, and which n of them are labelled; without a generator of random numbers."""
    i = np.arange(N)
    u, v, w = ((i * step) % 1 for step in (0.6180339887498949, 0.7548776662466927, 0.5698402909980532))
    y = (u < 0.65).astype(float)
    f = np.where(v < 0.85, y, 1.0) if case == "lenient" else (v < 0.5).astype(float)
    if case == "graded":
        y = np.round(10 * u) / 10
        f = np.clip(y + 0.15 + 0.3 * (v - 0.5), 0, 1.3)
    return y, f, np.sort(np.argsort(w, kind="stable")[:n])


@pytest.mark.parametrize(("case", "n", "N", "estimate", "low", "high"), PPI)
def test_the_figures_are_those_of_the_published_formula(
    case: str, n: int, N: int, estimate: float, low: float, high: float
) -> None:
    """Angelopoulos, Duchi & Zrnic (2023), example 6.1: the slope, and the variance of the estimate."""
    y, f, asked = data(case, n, N)
    rest = np.setdiff1d(np.arange(N), asked)
    labelled, judged, others = y[asked], f[asked], f[rest]
    both = np.concatenate([judged, others])
    slope = np.cov(labelled, judged, ddof=1)[0, 1] / ((1 + n / len(rest)) * both.var())
    slope = np.clip(slope, 0, 1)
    found = slope * others.mean() + (labelled - slope * judged).mean()
    half = 1.959963984540054 * np.sqrt(slope**2 * others.var() / len(rest) + (labelled - slope * judged).var() / n)
    assert found == pytest.approx(estimate, abs=3e-4)
    assert (found - half, found + half) == pytest.approx((low, high), abs=6e-4)


@pytest.mark.parametrize(("case", "n", "N", "estimate", "low", "high"), PPI)
def test_corrected_means_are_those_of_ppi(case: str, n: int, N: int, estimate: float, low: float, high: float) -> None:
    y, f, asked = data(case, n, N)
    labels = np.full(N, np.nan)
    labels[asked] = y[asked]
    row = hn.estimate_with_labels(f, labels, interval="t")
    assert row.mean is not None
    assert row.ci_low is not None
    assert row.ci_high is not None
    se = (high - low) / 2 / 1.959963984540054
    assert abs(row.mean - estimate) < 0.03 * se
    wider = (row.ci_high - row.ci_low) / (high - low)
    assert 1 < wider < (1.06 if "few_failures" in row.diagnostics else 1.03)
