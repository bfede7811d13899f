"""All pairs of a leaderboard: against pandas pair by pair, against one bare matrix product, and its memory.

    python benchmarks/bench_arena.py [--pandas-pairs 100] [--large]

1. 100 models × 500 questions × K = 10: Wang's (2025) tables by a straightforward pandas program, pair
   by pair, over the same by the engine, from the raw scores. The pandas program is timed on some of the
   4,950 pairs and scaled.
2. 300 × 2,000 × K = 10: the engine over the product XᵀX of the question means, for every column, with tests,
   wins, intervals and adjusted p-values.
3. `--large`: 1,000 × 10,000 × K = 4: peak memory of a whole `arena`, in a process of its own.
"""

from __future__ import annotations

import os

os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"  # read when numpy is loaded

import resource
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import combinations, islice

import numpy as np
import pandas as pd
from table import Row, parser, show, size

from harness_noise.data.questions import Questions
from harness_noise.data.scores import Run, Scores
from harness_noise.extra.arena.build import arena
from harness_noise.extra.arena.columns import Table, pair_columns
from harness_noise.extra.arena.pairs import decided
from harness_noise.settings import Settings
from harness_noise.stats.contrast import QuestionStats, design, question_stats


def scores(M: int, N: int, K: int) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    u = rng.uniform(size=N)
    return [(rng.random((N, K)) < np.clip(u + 0.3 * m / M, 0, 1)[:, None]).astype(float) for m in range(M)]


def table(values: list[np.ndarray]) -> Table:
    stats = [question_stats(item) for item in values]
    whole = QuestionStats(*(np.stack([getattr(s, name) for s in stats]) for name in ("mean", "var", "count")))
    return Table(whole, design(len(values[0])))


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


def best(*work: Callable[[], object], rounds: int) -> list[float]:
    """The least processor time of each, taken in turns so that all meet the same machine."""
    seconds = [float("inf")] * len(work)
    for _ in range(rounds):
        for i, item in enumerate(work):
            start = time.process_time()
            item()
            seconds[i] = min(seconds[i], time.process_time() - start)
    return seconds


def against_pandas(n_pairs: int) -> list[Row]:
    M = size(100, 10)
    values = scores(M, 500, 10)
    long = frame(values)
    some = list(islice(combinations([f"m{m}" for m in range(M)], 2), n_pairs))
    a, b = np.triu_indices(M, 1)
    whole = boards(values)
    theirs = by_pandas(long, some)
    ours, leaderboard, some_pairs = best(
        lambda: pair_columns(table(values), a, b, "cr0"),
        lambda: arena(whole, Settings()),
        lambda: by_pandas(long, some),
        rounds=size(5, 1),
    )
    pandas_seconds = some_pairs / len(some) * len(a)
    columns = pair_columns(table(values), a, b, "cr0")
    for name, found in (
        ("var_data", columns.of.var_data),
        ("se_total", np.sqrt(columns.of.var_total)),
        ("diff", columns.of.mean),
    ):
        np.testing.assert_allclose(found[: len(theirs)], theirs[name], rtol=1e-10, atol=1e-15)
    peer = f"pandas, pair by pair (scaled from {len(some)})"
    return [
        Row(f"all pairs of {M} models × 500 × K = 10", ours, peer, pandas_seconds, 300, faster=True),
        Row("the whole arena of them, from Python", leaderboard, peer, pandas_seconds, 20, faster=True),
    ]


def against_a_product() -> list[Row]:
    M = size(300, 10)
    values = table(scores(M, 2000, 10))
    a, b = np.triu_indices(M, 1)
    x = np.ascontiguousarray(values.mean)

    def every_column() -> object:
        common = {"higher_is_better": True, "cluster": None}
        return decided(pair_columns(values, a, b), values, common, 1.0, Settings())

    product, everything = best(lambda: x.T @ x, every_column, rounds=size(9, 1))
    what = f"every column of all pairs of {M} models × 2,000, with tests"
    return [Row(what, everything, "one matrix product XᵀX", product, 100)]


def boards(values: list[np.ndarray]) -> list[Run]:
    """The runs of these scores."""
    questions = Questions(tuple(f"q{i}" for i in range(len(values[0]))))
    return [
        Run(f"m{m}", f"r{m}", "array", scores=(Scores("t", "acc", "none", questions, item),))
        for m, item in enumerate(values)
    ]


def large() -> None:
    M = size(1000, 10)
    runs = boards(scores(M, size(10_000, 100), 4))
    assert len(arena(runs, Settings()).boards[0].pairs) == M * (M - 1) // 2
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def main() -> int:
    options = parser(__doc__)
    options.add_argument("--pandas-pairs", type=int, default=size(100, 3))
    options.add_argument("--large", action="store_true", help="only the large one: prints its peak memory in MB")
    arguments = options.parse_args()
    if arguments.large:
        large()
        return 0
    rows = [*against_pandas(arguments.pandas_pairs), *against_a_product()]
    command = [sys.executable, __file__, "--large", *(["--small"] if arguments.small else [])]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    rows.append(Row("arena of 1,000 models × 10,000 × K = 4", float(done.stdout), "8 GB of memory", 8 * 1024, 1, "MB"))
    return show(rows)


if __name__ == "__main__":
    sys.exit(main())
