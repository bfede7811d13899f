"""One call from Python on arrays of 500 questions × 4 answers in 100 clusters, beside statsmodels' OLS of the question
differences with clustered standard errors. Then many differences at once beside the loop.

The sides run in turns, on one core, and are timed by the processor's clock.
"""

from __future__ import annotations

import os

os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"  # read when numpy is loaded

import sys

import numpy as np
import statsmodels.api as sm
from table import Row, best, parser, show, size

import harness_noise as hn

QUESTIONS, CLUSTERS, ANSWERS = 500, 100, 4


def main() -> int:
    parser(__doc__).parse_args()
    rng, P = np.random.default_rng(0), size(300, 3)
    chance = rng.random((QUESTIONS, 1))
    a, b = ((rng.random((P, QUESTIONS, ANSWERS)) < share * chance).astype(float) for share in (1.0, 0.9))
    clusters = np.repeat(np.arange(CLUSTERS), QUESTIONS // CLUSTERS)

    def ols() -> object:
        d = a[0].mean(axis=1) - b[0].mean(axis=1)
        fit = sm.OLS(d, np.ones((QUESTIONS, 1))).fit(cov_type="cluster", cov_kwds={"groups": clusters})
        return fit.params, fit.bse, fit.conf_int(), fit.pvalues

    def difference() -> object:
        return hn.estimate_difference(a[0], b[0], clusters)

    def mean() -> object:
        return hn.estimate(a[0], clusters)

    one, alone, peer = best(difference, mean, ols, rounds=size(100, 2))
    many, loop = best(
        lambda: hn.estimate_difference(a, b, clusters),
        lambda: [hn.estimate_difference(x, y, clusters) for x, y in zip(a, b, strict=True)],
        rounds=size(3, 1),
    )
    theirs = "statsmodels: OLS with clusters"
    return show(
        [
            Row("one difference", one, theirs, peer, 4),
            Row("one mean", alone, theirs, peer, 4),
            Row(f"{P} differences at once", many, "one call for each", loop, 3, faster=True),
        ]
    )


if __name__ == "__main__":
    sys.exit(main())
