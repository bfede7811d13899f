"""Speed and memory of the bootstrap (10,000 resamples) against scipy and bare numpy.

Both sides run in turns, on one core, and are timed by the processor's clock: what else the machine
does then weighs little.
"""

from __future__ import annotations

import os

os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"  # read when numpy is loaded

import resource
import sys

import numpy as np
from scipy import stats
from table import Row, best, parser, show, size

from harness_noise.stats.contrast import design
from harness_noise.stats.resampling import blocks, bootstrap, bootstrap_means

RESAMPLES = size(10_000, 200)


def one_run() -> Row:
    """Resamples of one run with 10,000 questions."""
    d = np.random.default_rng(0).random(10_000)
    plan = design(len(d))

    def ours() -> object:
        found = bootstrap(d, plan, RESAMPLES, np.random.default_rng(1))
        assert found is not None
        return found.interval(0.95, "percentile")

    def theirs() -> object:
        return stats.bootstrap(
            (d,), np.mean, n_resamples=RESAMPLES, batch=100, method="percentile", rng=np.random.default_rng(1)
        )

    a, b = best(ours, theirs, rounds=size(3, 1))
    return Row("bootstrap of one run, 10,000 questions", a, "scipy.stats.bootstrap", b, 1.25)


def many_runs() -> list[Row]:
    """The means of 50 runs × 2,000 questions in 200 clusters, of which all pairs are made."""
    rng = np.random.default_rng(2)
    M, n, G, B = size(50, 5), 2_000, 200, RESAMPLES
    values = (rng.random((n, M)) < rng.random((n, 1))).astype(float)
    clusters = np.concatenate([np.arange(G), rng.integers(0, G, n - G)])  # of unequal sizes, none empty
    sizes = np.bincount(clusters, minlength=G).astype(float)
    plan = design(n, clusters)

    def weights_only() -> object:
        generator = np.random.default_rng(3)
        sums = np.stack([np.bincount(clusters, weights=column) for column in values.T], axis=1)
        weights = generator.multinomial(G, np.full(G, 1 / G), size=B).astype(float)
        return weights @ sums / (weights @ sizes)[:, None]

    def kernel() -> object:
        return bootstrap_means(blocks(values, plan), B, np.random.default_rng(3))

    core, bare = best(kernel, weights_only, rounds=size(9, 1))
    return [Row(f"resampling of {M} runs in {G} clusters", core, "bare numpy: weights @ sums", bare, 2)]


def main() -> int:
    parser(__doc__).parse_args()
    rows = [one_run(), *many_runs()]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return show([*rows, Row("peak of all that", peak, "500 MB of memory", 500, 1, "MB")])


if __name__ == "__main__":
    sys.exit(main())
