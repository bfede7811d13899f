"""What a decision is worth: coverage where few questions differ, equivalence at its margin, the gate's errors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np
import pytest
from scipy import stats

from harness_noise import estimate_difference
from harness_noise.analysis.rows import RowDecision, decide_rows
from harness_noise.arrays import FloatArray, rows_of
from harness_noise.extra.gate.judge import Bar, decide, of_row
from harness_noise.settings import Settings
from harness_noise.stats import decision
from harness_noise.stats.cluster_variance import Cells
from harness_noise.stats.intervals import Extension, t_limits


@dataclass(frozen=True)
class Shares:
    covered: float
    by_t: float
    flagged: float
    """few_flips or zero_variance."""
    equivalent: float
    """Called equivalent at a margin that is the true difference."""
    equivalent_by_t: float
    width: float
    """Over t's, in the mean."""


def clusters_of(sizes: FloatArray) -> Cells:
    """One task with clusters of these (1, G) sizes."""
    G = sizes.size
    return Cells(sizes, np.arange(G), np.zeros(G, dtype=np.intp), np.full((1, 1), 1 / sizes.sum()))


def shares(sums: FloatArray, sizes: Sequence[int], truth: float) -> Shares:
    """Shares over (R, G) samples of clusters of these sizes; those without any variance have their own interval."""
    n_c = np.array([sizes], dtype=np.float64)
    n, G = n_c.sum(), n_c.size
    mean = sums.sum(axis=1) / n
    found = clusters_of(n_c)
    V = (found.scores(sums - mean[:, None] * n_c, "cr2") ** 2).sum(axis=1)
    known = V > 1e-24
    far, df = Extension(found, "cr2")(sums), found.df
    assert df == pytest.approx(G - 1) or np.ptp(n_c) > 0
    se = np.sqrt(V)
    ours, theirs = (t_limits(mean, se, df, 0.95).widened_to(mean, item, 0.95) for item in (far, None))
    narrow, narrow_t = (t_limits(mean, se, df, 0.90).widened_to(mean, item, 0.90) for item in (far, None))
    widths = ((ours.high - ours.low)[known] / (theirs.high - theirs.low)[known]).mean()
    return Shares(
        *(float(((x.low <= truth) & (truth <= x.high))[known].mean()) for x in (ours, theirs)),
        float((~np.isnan(far.mean) | ~known).mean()),
        *(float((x.within(truth) & known).mean()) for x in (narrow, narrow_t)),
        float(widths),
    )


@pytest.mark.parametrize("n", [100, 500])
@pytest.mark.parametrize("wins", [3, 5, 8])
def test_few_wins_without_a_loss(n: int, wins: int) -> None:
    rng = np.random.default_rng(n + wins)
    found = shares((rng.random((20_000, n)) < wins / n).astype(float), [1] * n, wins / n)
    assert found.covered >= 0.945
    assert found.by_t <= 0.91
    assert found.flagged >= 0.999
    assert found.covered <= 0.985 or wins == 3


@pytest.mark.parametrize("G", [20, 30, 100])
@pytest.mark.parametrize("broken", [2, 4])
def test_few_broken_clusters(G: int, broken: int) -> None:
    """A template breaks as a whole: of its ten questions about half are lost."""
    rng = np.random.default_rng(G + broken)
    hit = rng.random((20_000, G)) < broken / G
    found = shares(np.where(hit, -rng.binomial(10, 0.5, hit.shape), 0).astype(float), [10] * G, -0.5 * broken / G)
    assert found.covered >= 0.95
    assert found.by_t <= found.covered - 0.02
    assert found.flagged >= 0.95 or (G, broken) == (20, 4)  # five broken of 20 are a quarter


SWE_BENCH = (231, 75, 44, 34, 32, 22, 22, 19, 10, 8, 2, 1)
"""Questions of SWE-bench Verified by repository."""
ZIPF = tuple(max(1, round(111 / rank)) for rank in range(1, 51))
"""500 questions in 50 clusters, the largest with 111."""


@pytest.mark.parametrize("truth", [0.0, 0.1, 0.3, 0.5])
@pytest.mark.parametrize("sizes", [SWE_BENCH, ZIPF])
def test_clusters_of_unequal_size_are_not_flips(sizes: tuple[int, ...], truth: float) -> None:
    """Six questions of ten change, in all clusters alike: t covers, and hardly a row says anything else."""
    rng = np.random.default_rng([len(sizes), round(10 * truth)])
    flips = rng.binomial(sizes, 0.6, (20_000, len(sizes)))
    found = shares(2.0 * rng.binomial(flips, 0.5 + truth / 1.2) - flips, sizes, truth)
    assert found.covered >= 0.945
    assert found.flagged <= 0.06
    assert found.width <= 1.005


@pytest.mark.parametrize("wins", [5, 8, 20])
@pytest.mark.parametrize("sizes", [SWE_BENCH, ZIPF])
def test_few_wins_in_clusters_of_unequal_size(sizes: tuple[int, ...], wins: int) -> None:
    rng = np.random.default_rng([len(sizes), wins])
    found = shares(rng.binomial(sizes, wins / sum(sizes), (20_000, len(sizes))).astype(float), sizes, wins / sum(sizes))
    assert found.covered >= 0.945
    assert found.flagged >= 0.98 or sizes == SWE_BENCH
    assert found.width <= 1.15


def test_equivalence_at_the_margin_is_rare() -> None:
    """Exactly, over true differences of 2 to 40 wins of 500: a saw-tooth about 6%, as wins are whole numbers."""
    n, lam = 500, np.linspace(2, 40, 381)
    x = np.arange(1, 200)
    mean, squares = x / n, x * 1.0
    V = (squares - n * mean**2) / n / (n - 1)
    rows = np.zeros((len(x), n))
    for i, wins in enumerate(x):
        rows[i, :wins] = 1.0
    far = Extension(clusters_of(np.ones((1, n))), "cr2")(rows)
    ours, theirs = (t_limits(mean, np.sqrt(V), n - 1.0, 0.90).widened_to(mean, item, 0.90) for item in (far, None))
    chance = stats.binom.pmf(x[:, None], n, lam / n)
    error, error_t = ((chance * (limits.high[:, None] < lam / n)).sum(axis=0) for limits in (ours, theirs))
    assert error.mean() <= 0.065
    assert error.max() <= 0.11
    assert error.mean() <= error_t.mean() - 0.015
    assert error_t.max() >= 0.17
    assert error[lam <= 5].mean() <= 0.05 <= 0.09 <= error_t[lam <= 5].mean()


def test_verdict_words_are_wrong_in_one_family_of_twenty() -> None:
    rng = np.random.default_rng(20)
    R, m, n = 1000, 20, 60
    settings = Settings()
    single = words = 0
    fields = asdict(estimate_difference(rng.normal(size=n), rng.normal(size=n)))
    for _ in range(R):
        d = rng.normal(size=(m, n))
        t = d.mean(axis=1) / d.std(axis=1, ddof=1) * np.sqrt(n)
        p = 2 * stats.t.sf(np.abs(t), n - 1)
        of = decision.Differences(
            d.mean(axis=1), d.var(axis=1, ddof=1) / n, np.full(m, n - 1.0), np.zeros(m, dtype=bool), np.full(m, np.nan)
        )
        each = decision.decide(of, settings)
        assert each.p_value == pytest.approx(p)
        rows = decide_rows(
            [RowDecision(fields, frozenset(), rows_of(each, slice(i, i + 1))) for i in range(m)], settings
        )
        single += bool((p < 0.05).any())
        words += any(row.verdict != "not separable" for row in rows)
    assert single / R >= 0.55
    assert words / R <= 0.065


@pytest.mark.parametrize("margin", [0.0, 0.2])
@pytest.mark.parametrize(
    ("m", "groups", "R"),
    [
        (1, 0, 1500), (4, 0, 1500), (20, 0, 500), (20, 4, 500),
        *(pytest.param(m, groups, 1500, marks=pytest.mark.slow) for m, groups in ((20, 0), (57, 0), (57, 12))),
    ],
)  # fmt: skip
def test_the_gate_trips_without_a_regression_in_one_of_forty(m: int, groups: int, R: int, margin: float) -> None:
    """All rows on the margin, the worst case; graded scores, 60 questions each. Tasks in groups are one family, too."""
    rng = np.random.default_rng(m + int(10 * margin))
    n = 60
    template = replace(estimate_difference(rng.normal(size=n), rng.normal(size=n)), higher_is_better=True)
    crit = stats.t.ppf(0.975, n - 1)
    gates = singles = 0
    for _ in range(R):
        d = rng.normal(-margin, 1.0, size=(m, n))
        mean, se = d.mean(axis=1), d.std(axis=1, ddof=1) / np.sqrt(n)
        for g in range(groups):  # the group's own row: the mean of its tasks
            tasks = np.arange(g, m, groups)
            mean, se = np.append(mean, mean[tasks].mean()), np.append(se, np.sqrt((se[tasks] ** 2).sum()) / len(tasks))
        rows = tuple(
            replace(template, diff=float(x), se=float(s), ci_low=float(x - crit * s), ci_high=float(x + crit * s))
            for x, s in zip(mean, se, strict=True)
        )
        bar = Bar(margin=margin)
        gates += decide([of_row(row, "A − B", -margin, margin) for row in rows], bar, {"adjust": "holm"}).failed
        singles += bool((mean + crit * se < -margin).any())
    assert gates / R <= 0.025 + 3 * np.sqrt(0.025 * 0.975 / R)
    if m >= 20:
        assert singles / R >= 0.30
    if m == 1:
        assert gates == singles
