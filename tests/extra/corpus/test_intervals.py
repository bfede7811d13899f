"""A metric that is not a mean: its degrees of freedom, its interval, with and without a range, and its test."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from harness_noise.analysis.comparison import compare_runs
from harness_noise.analysis.mean import analyze_run
from harness_noise.data.questions import Questions
from harness_noise.data.scores import CorpusScores, Run
from harness_noise.errors import InputError
from harness_noise.extra.corpus.estimating import jackknife_variance
from harness_noise.settings import Settings


class TestCorpus:
    def item(self, n=20, bounds=(0.0, 1.0), clusters=None, seed=0, accuracy=0.85):
        rng = np.random.default_rng(seed)
        true = np.random.default_rng(9).random(n) < 0.4
        said = np.where(rng.random(n) < accuracy, true, ~true)
        counts = np.stack([said & true, said, true], axis=1).astype(float)[:, None]
        return CorpusScores(
            "t", "f1", "none", Questions(tuple(map(str, range(n)))), stats=counts, bounds=bounds, clusters=clusters,
            value=lambda s: 2 * s[..., 0] / (s[..., 1] + s[..., 2]), higher_is_better=True,
        )  # fmt: skip

    def row(self, item, **settings):
        (e,) = analyze_run(Run("m", "r", "t", corpus=(item,)), Settings(**settings)).estimates
        return e

    def test_df_and_few_clusters(self):
        e = self.row(self.item())
        assert (e.df, e.interval, e.range) == (19.0, "wilson", (0.0, 1.0))
        assert "few_clusters" not in e.diagnostics
        e = self.row(self.item(clusters=tuple(str(i % 6) for i in range(20))))
        assert e.df < 6
        assert "few_clusters" in e.diagnostics

    def test_wilson_with_the_variance_of_the_jackknife(self):
        item = self.item()
        e = self.row(item)
        left = np.array([float(item.value((item.stats.sum(axis=0) - item.stats[i])[0])) for i in range(20)])
        V = 19 / 20 * ((left - left.mean()) ** 2).sum()
        p, n, c = e.mean, e.mean * (1 - e.mean) / V, stats.t.ppf(0.975, 19)
        centre, half = (
            (p + c**2 / (2 * n)) / (1 + c**2 / n),
            c / (1 + c**2 / n) * math.sqrt(p * (1 - p) / n + c**2 / (4 * n**2)),
        )
        assert (e.ci_low, e.ci_high) == pytest.approx((centre - half, centre + half), rel=1e-9)

    def test_without_a_range_the_percentiles_have_tails_of_t(self):
        known, e = self.row(self.item()), self.row(self.item(bounds=None))
        assert (e.interval, e.range, e.df) == ("bootstrap", None, 19.0)
        assert e.ci_high - e.ci_low > 1.02 * 2 * 1.96 * e.se
        assert self.row(self.item(bounds=None), range=(0, 1)).ci_low == known.ci_low
        assert self.row(self.item(), interval="t").interval == "t"
        with pytest.raises(InputError, match="interval wilson is for a metric with a range"):
            self.row(self.item(bounds=None), interval="wilson")
        with pytest.raises(InputError, match=r"`range=\(2, 3\)`"):
            self.row(self.item(), range=(2, 3))

    def test_a_difference_is_tested_by_t_with_the_clusters_df(self):
        runs = [Run(str(i), str(i), "t", corpus=(self.item(40, seed=i, accuracy=a),)) for i, a in ((1, 0.9), (2, 0.7))]
        (d,) = compare_runs([tuple(runs)], Settings()).comparisons
        assert (d.test, d.df) == ("t", 39.0)
        half = (d.ci_high - d.ci_low) / 2
        assert d.p_value == pytest.approx(2 * stats.t.sf(abs(d.diff) * stats.t.ppf(0.975, 39) / half, 39))
        assert d.statistic == pytest.approx(d.diff * stats.t.ppf(0.975, 39) / half)
        (welch,) = compare_runs([tuple(runs)], Settings(unpaired=True)).comparisons
        assert 39 < welch.df <= 78
        (boot,) = compare_runs([tuple(runs)], Settings(test="bootstrap")).comparisons
        assert (boot.test, boot.statistic) == ("bootstrap", None)

    def test_all_right(self):
        e = self.row(self.item(accuracy=1.1))
        assert (e.mean, e.se, e.ci_high) == (1.0, 0.0, 1.0)
        c = stats.t.ppf(0.975, 19)
        assert e.ci_low == pytest.approx(20 / (20 + c**2))


def test_the_jackknife_is_the_variance_of_the_mean_of_pseudo_values() -> None:
    """(G − 1)/G Σ (θ_c − θ̄)² [Efron & Stein 1981]."""
    theta = np.random.default_rng(2).normal(size=11)
    assert jackknife_variance(theta) == pytest.approx(10 / 11 * float(((theta - theta.mean()) ** 2).sum()), rel=1e-12)
