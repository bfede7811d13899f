"""All pairs of a leaderboard: against pandas pair by pair, and against one bare matrix product.

    python benchmarks/bench_arena.py [--pandas-pairs 200] [--large]

Three questions, each answered by a ratio within this run:

1. 100 models × 500 questions × K = 10: seed 000's tables by a straightforward pandas program, pair by
   pair, over the same by the engine, from the raw scores (at least 300 is the aim). The pandas program
   is timed on some of the 4,950 pairs and scaled.
2. 300 × 2,000 × K = 10: the engine over the product XᵀX of the question means, for the standard errors
   (at most 15) and for every column, with tests, wins, intervals and adjusted p-values (at most 100).
3. `--large`: 1,000 × 10,000 × K = 4: peak memory of a whole `arena`, in a process of its own (at most
   8 GB).
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import combinations, islice

import numpy as np
import pandas as pd

from harness_noise.arena_build import arena
from harness_noise.arena_pairs import judged
from harness_noise.estimators.contrast import question_stats
from harness_noise.estimators.pairs import Table, all_pairs, every_pair
from harness_noise.scores import Questions, Run, Scores
from harness_noise.settings import Settings


def scores(M: int, N: int, K: int) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    u = rng.uniform(size=N)
    return [(rng.random((N, K)) < np.clip(u + 0.3 * m / M, 0, 1)[:, None]).astype(float) for m in range(M)]


def table(values: list[np.ndarray]) -> Table:
    stats = [question_stats(item) for item in values]
    return Table(
        *(np.stack([getattr(s, name) for s in stats], axis=1) for name in ("mean", "var", "count")), binary=True
    )


def frame(values: list[np.ndarray]) -> pd.DataFrame:
    """Long form, one row for each answer, as an evaluation's log gives it."""
    N, K = values[0].shape
    rows = {"question": np.repeat(np.arange(N), K), "repeat": np.tile(np.arange(K), N)}
    return pd.concat([pd.DataFrame({"model": f"m{m}", **rows, "score": v.ravel()}) for m, v in enumerate(values)])


def by_pandas(long: pd.DataFrame, pairs: list[tuple[str, str]]) -> pd.DataFrame:
    """Tables 1 and 2 of Wang (2025) for each pair, as one would write them down."""
    by_model = dict(tuple(long.groupby("model")))
    out = []
    for one, other in pairs:
        a = by_model[one].groupby("question").score.agg(["mean", "var", "count"])
        b = by_model[other].groupby("question").score.agg(["mean", "var", "count"])
        both = a.add_suffix("_a").join(b.add_suffix("_b"), how="inner")
        n = len(both)
        d = both.mean_a - both.mean_b
        prediction = (both.var_a + both.var_b).mean()
        data = d.var(ddof=0) - (both.var_a / both.count_a + both.var_b / both.count_b).mean()
        out.append(
            {
                "model_a": one, "model_b": other, "diff": d.mean(),
                "var_data": data / n, "var_prediction": prediction / n,
                "se_total": np.sqrt((data + prediction) / n), "se": np.sqrt(d.var(ddof=0) / n),
                "correlation": both.mean_a.corr(both.mean_b),
            }
        )  # fmt: skip
    return pd.DataFrame(out)


def best(*work: Callable[[], object], rounds: int = 9) -> list[float]:
    """The shortest time of each, taken in turns so that all meet the same machine."""
    seconds = [float("inf")] * len(work)
    for _ in range(rounds):
        for i, item in enumerate(work):
            start = time.perf_counter()
            item()
            seconds[i] = min(seconds[i], time.perf_counter() - start)
    return seconds


def against_pandas(n_pairs: int) -> None:
    values = scores(100, 500, 10)
    long = frame(values)
    some = list(islice(combinations([f"m{m}" for m in range(100)], 2), n_pairs))
    a, b = every_pair(100)
    start = time.perf_counter()
    theirs = by_pandas(long, some)
    pandas_seconds = (time.perf_counter() - start) / len(some) * len(a)
    (ours,) = best(lambda: all_pairs(table(values), a, b, "cr0"), rounds=30)
    columns = all_pairs(table(values), a, b, "cr0")
    for name, found in (
        ("var_data", columns.var_data),
        ("se_total", np.sqrt(columns.var_total)),
        ("diff", columns.diff),
    ):
        np.testing.assert_allclose(found[: len(theirs)], theirs[name], rtol=1e-10, atol=1e-15)
    print(f"100 × 500 × 10: pandas {pandas_seconds:.1f} s (scaled from {len(some)} pairs), engine {ours * 1e3:.0f} ms: "
          f"{pandas_seconds / ours:.0f} times faster (aim: 300), the same numbers to 1e-10")  # fmt: skip


def against_a_product() -> None:
    M = 300
    values = table(scores(M, 2000, 10))
    a, b = every_pair(M)
    x = np.ascontiguousarray(values.mean)
    names = tuple(f"m{m}" for m in range(M))
    common = {"task": "t", "metric": "acc", "scorer": "none", "higher_is_better": True, "level": 0.95, "test": "t",
              "cluster": None}  # fmt: skip

    def every_column() -> object:
        columns = all_pairs(values, a, b)
        return judged(
            columns, names, names, common, Settings(), unit=np.ones(M, dtype=bool), n_missing=np.zeros(M, dtype=int),
            codes={},
        )  # fmt: skip

    product, errors, everything = best(lambda: x.T @ x, lambda: all_pairs(values, a, b, counts=False), every_column)
    print(f"300 × 2,000 × 10, {len(a)} pairs: product {product * 1e3:.1f} ms; standard errors {errors * 1e3:.0f} ms, "
          f"{errors / product:.1f} times (aim: 15); every column {everything * 1e3:.0f} ms, "
          f"{everything / product:.0f} times (aim: 100)")  # fmt: skip


def large() -> None:
    M, N, K = 1000, 10_000, 4
    rng = np.random.default_rng(0)
    questions = Questions(tuple(f"q{i}" for i in range(N)))
    u = rng.uniform(size=N)
    runs = []
    for m in range(M):
        values = (rng.random((N, K)) < np.clip(u + 0.3 * m / M, 0, 1)[:, None]).astype(float)
        runs.append(Run(f"m{m}", f"r{m}", "array", scores=(Scores("t", "acc", "none", questions, values),)))
    held = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    start = time.perf_counter()
    found = arena(runs, Settings())
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    pairs = len(found.boards[0].pairs)
    print(
        f"1,000 × 10,000 × 4, {pairs} pairs: {seconds:.0f} s, peak {peak:.1f} GB (aim: 8), the scores {held:.1f} of it"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pandas-pairs", type=int, default=200)
    parser.add_argument("--large", action="store_true", help="only the large one; without it, as a process of its own")
    arguments = parser.parse_args()
    if arguments.large:
        large()
        return
    against_pandas(arguments.pandas_pairs)
    against_a_product()
    sys.stdout.flush()
    subprocess.run([sys.executable, __file__, "--large"], check=True)


if __name__ == "__main__":
    main()
