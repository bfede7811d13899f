"""The score of a whole benchmark from a random subset of its questions, with runs that have answered them all."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from ..arrays import FloatArray, IntArray, NamesLike
from ..data.questions import Questions
from ..errors import InputError
from ..results.forms import finite
from ..results.parts import FullBenchmark
from ..stats.contrast import cluster_codes
from ..stats.intervals import in_range
from ..stats.tolerances import FEW_DF, FEW_FAILURES, short_of
from .partial import Part, from_part, positions_look_random


class NotRandomError(InputError):
    """The questions that were asked are not a random subset."""


def part_of(
    rows: IntArray,
    n: int,
    clusters: NamesLike | None,
    strata: NamesLike | None,
    shares: list[float] | None = None,
    *,
    drawn: bool = False,
    chances: FloatArray | None = None,
) -> Part:
    """Describe a subset (`rows`) of a benchmark's n questions: cluster numbers, tasks, weights, how it was drawn."""
    codes = np.arange(n) if clusters is None else cluster_codes(clusters)[0]
    tasks = np.zeros(n, dtype=np.intp) if strata is None else cluster_codes(strata)[0]
    return Part(rows, codes, tasks, None if shares is None else np.asarray(shares, dtype=np.float64), drawn, chances)


def drawn_by_key(part: Part, rows: IntArray) -> Part:
    """Return the subset with clusters numbered in the order `rows` (by question name), not in file order.

    Which questions are predicted together is drawn by these numbers, and must not depend on the order of a file.
    """
    codes = np.empty(len(rows), dtype=np.intp)
    codes[rows] = cluster_codes(part.clusters[rows])[0]
    return replace(part, clusters=codes)


def _check_part(part: Part, N: int, what: str) -> None:
    n = len(part.asked)
    if n < 2:
        raise InputError(f"{what}fewer than two questions have a score: nothing can be said of the others")
    if n >= N:
        raise InputError(f"{what}all {N} questions were asked: their plain mean is that of the whole benchmark")
    if not part.drawn and not positions_look_random(part):
        raise NotRandomError(
            f"{what}the {n} of {N} questions that were asked were not drawn at random: they lie together in the order "
            "of the benchmark, as the first N of --limit do. The first questions are not a random sample. Ask a random "
            "subset of them, with whole clusters"
        )
    missing = int((part.unknown() >= 1).sum())
    if missing:
        raise InputError(f"{what}{missing} tasks have no question in the part: every task needs one")


def full_benchmark(
    y: FloatArray,
    part: Part,
    X: FloatArray,
    names: tuple[str, ...],
    level: float = 0.95,
    what: str = "",
    *,
    against: FloatArray | None = None,
    bounds: tuple[float, float] | None = None,
) -> FullBenchmark:
    """Estimate a benchmark's mean or A − B by a random subset and references. Refuse too small, non-random, and all.

    Args:
        y: (m,) question means.
        part: which questions they are of.
        X: (N, R) question means of the references.
        names: of the references.
        level: coverage of the interval.
        what: the task, for messages.
        against: (N,) question means of the run that is subtracted.
        bounds: the range of the mean, or of the difference, in which the interval stays; None: not known.
    """
    what = f"{what}: " if what else ""
    N, rows = len(X), part.asked
    _check_part(part, N, what)
    used = from_part(y, part, X, against)
    if used is None:
        raise InputError(f"{what}the part has fewer than two clusters in some task: no standard error")
    values = y if against is None else y - against[rows]
    codes = _codes(values, part, used.df, difference=against is not None)
    varies = used.variance > 0
    codes -= {"zero_variance"} if varies else set()
    low, high = bounds or (-math.inf, math.inf)
    estimate = used.estimate if bounds is None else float(in_range(used.estimate, bounds))
    each = [used.half_width(level, population=population) if varies else math.nan for population in (False, True)]
    ends = [np.clip([used.estimate - half, used.estimate + half], low, high).tolist() for half in each]
    return FullBenchmark(
        estimate=finite(estimate),
        se=math.sqrt(used.variance) if varies else None,
        ci_low=finite(ends[0][0]),
        ci_high=finite(ends[0][1]),
        n_asked=len(rows),
        n_total=N,
        r2=used.r2,
        gain=used.gain,
        references=names,
        diagnostics=tuple(sorted(codes)),
        se_population=math.sqrt(used.population_variance) if varies else None,
        ci_low_population=finite(ends[1][0]),
        ci_high_population=finite(ends[1][1]),
    )


def _codes(values: FloatArray, part: Part, df: float, *, difference: bool) -> set[str]:
    """Return diagnostics of an uncertain standard error: zero_variance, few_clusters, few_flips or few_failures."""
    kinds, which, counts = np.unique(np.round(values, 12), return_inverse=True, return_counts=True)
    others = len(np.unique(part.clusters[part.asked][which != counts.argmax()]))
    flags = {
        "zero_variance": len(kinds) == 1,
        "few_clusters": short_of(df, FEW_DF),
        "few_flips" if difference else "few_failures": others < FEW_FAILURES,
    }
    return {code for code, holds in flags.items() if holds}


def benchmark_order(questions: Questions) -> IntArray:
    """Return (N,) row numbers that order a benchmark's questions: by number if all are, else unchanged."""
    try:
        numbers = [int(key) for key in questions.keys]
    except ValueError:
        return np.arange(len(questions.keys))
    return np.argsort(np.array(numbers, dtype=np.float64), kind="stable")
