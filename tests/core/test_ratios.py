"""Measures and ratios against a cluster bootstrap of the ratio itself, which knows no linearisation."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import harness_noise as hn
from support.tables import table

N, RESAMPLES = 240, 10_000


def answers(seed, model, dear=1.0):
    """Costs and scores that go together, in clusters of unequal size, of one to three answers."""
    rng = np.random.default_rng(seed)
    effect = np.random.default_rng(1).normal(0, 0.5, 60)
    of = np.minimum((np.arange(N) ** 1.2 / 12).astype(int), 59)
    for i in range(N):
        for k in range(1 + i % 3):
            right = rng.random() < 1 / (1 + np.exp(-effect[of[i]] - 0.3))
            yield (
                i,
                f"c{of[i]}",
                k,
                model,
                int(right),
                dear * float(rng.lognormal(effect[of[i]], 0.7)) * (1 + 0.5 * right),
            )


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    header = ("question", "cluster", "repeat", "model", "score", "cost")
    rows = [*answers(3, "a", 1.3), *answers(4, "b")]
    return table(tmp_path_factory.mktemp("ratios") / "runs.csv", header, *rows)


def sums(path, model):
    """(G, 2) sums of the questions' mean costs and scores by cluster."""
    import pandas as pd

    rows = pd.read_csv(path)
    each = rows[rows.model == model].groupby(["cluster", "question"])[["cost", "score"]].mean()
    return each.groupby("cluster").sum().to_numpy()


def resampled(parts):
    """(B, models) ratios of resampled clusters, the same clusters for all models."""
    rng, G = np.random.default_rng(0), len(parts[0])
    times = rng.multinomial(G, np.full(G, 1 / G), size=RESAMPLES)
    return np.stack([(total := times @ part)[:, 0] / total[:, 1] for part in parts], axis=1)


def test_one_ratio_has_the_standard_error_of_the_bootstrap(path):
    row = hn.analyze(path, measures=["cost/score"], cluster="cluster").estimates[0]
    part = sums(path, "a")
    assert row.mean == pytest.approx(part[:, 0].sum() / part[:, 1].sum(), rel=1e-12)
    # CR2 stands above the bootstrap by about G/(G − 1), and by what clusters of unequal size need more
    assert row.se == pytest.approx(resampled([part])[:, 0].std(ddof=1), rel=0.05)


def test_the_difference_of_two_ratios_has_that_of_the_paired_bootstrap(path):
    row = hn.compare(path, models=["a", "b"], measures=["cost/score"], cluster="cluster").comparisons[0]
    found = resampled([sums(path, "a"), sums(path, "b")])
    assert row.se == pytest.approx((found[:, 0] - found[:, 1]).std(ddof=1), rel=0.05)
    unpaired = np.sqrt(found.var(axis=0, ddof=1).sum())
    assert row.se < 0.97 * unpaired  # the clusters that cost A more cost B more


def test_a_mean_cost_has_that_of_the_bootstrap(path):
    import pandas as pd

    row = hn.analyze(path, measures=["cost"], cluster="cluster").estimates[0]
    rows = pd.read_csv(path)
    each = rows[rows.model == "a"].groupby(["cluster", "question"]).cost.mean().groupby("cluster").agg(["sum", "size"])
    assert row.se == pytest.approx(resampled([each.to_numpy()])[:, 0].std(ddof=1), rel=0.05)
