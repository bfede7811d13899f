"""The sentences of an arena say what its verdicts say."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import harness_noise as hn
from harness_noise.extra.arena import figures as arena_figures
from harness_noise.extra.arena.report import matrix, sentences
from harness_noise.extra.arena.results import BenchmarkResult
from harness_noise.report.fmt import decimals, number


def board() -> BenchmarkResult:
    """Eight models, close enough that adjustment takes some verdicts back."""
    rng = np.random.default_rng(12)
    ease = rng.beta(0.6, 0.6, 200)
    names = tuple(f"q{i}" for i in range(200))
    runs = []
    for m in range(8):
        values = (rng.random((200, 2)) < np.clip(ease + 0.03 * m, 0, 1)[:, None]).astype(float)
        scores = hn.Scores("t", "acc", "none", hn.Questions(names), values)
        runs.append(hn.Run(model=f"m{m}", name=f"m{m}", harness="array", scores=(scores,)))
    return hn.arena(runs).boards[0]


BOARD = board()


def test_the_smallest_difference_that_is_called_significant_has_such_a_verdict() -> None:
    rows = [row for row in BOARD.pairs if row.diff is not None]
    told = [abs(row.diff or 0.0) for row in rows if row.verdict in ("A better", "B better")]
    rest = [abs(row.diff or 0.0) for row in rows if row.verdict not in ("A better", "B better")]
    summary = BOARD.benchmark
    assert summary.smallest_significant_diff is not None
    assert summary.se_total is not None
    assert min(told) > summary.smallest_significant_diff  # by its own interval, which the field is about
    digits = decimals(summary.se_total.median)
    assert (
        f"smallest difference found significant after adjustment is {number(100 * min(told), digits - 2)} points, "
        f"the largest found not significant is {number(100 * max(rest), digits - 2)} points."
    ) in " ".join(sentences(BOARD))


@pytest.mark.parametrize(
    ("lost", "kept", "said"),
    [
        (1, 0, "Significant pairs: 1 by their own interval, 0 after"),
        (1, 5, "Significant pairs: 6 by their own interval, 5 after"),
        (3, 0, "Significant pairs: 3 by their own interval, 0 after"),
        (3, 5, "Significant pairs: 8 by their own interval, 5 after"),
    ],
)
def test_one_pair_is_one(lost: int, kept: int, said: str) -> None:
    flag = np.arange(len(BOARD.pairs)) < lost
    verdict = np.where((np.arange(len(BOARD.pairs)) - lost < kept) & ~flag, 1, 0)
    pairs = replace(BOARD.pairs, verdict=verdict, flags={"not_after_adjustment": flag})
    assert said in " ".join(sentences(replace(BOARD, pairs=pairs)))


@pytest.mark.parametrize(("tau", "stays"), [(0.93, "stays similar"), (0.41, "changes")])
def test_a_share_of_resamples_is_called_stability_and_no_forecast(tau: float, stays: str) -> None:
    (leader,) = [item.model for item in BOARD.models if item.rank == 1]
    said = " ".join(sentences(replace(BOARD, benchmark=replace(BOARD.benchmark, order_tau=tau, same_best=0.991))))
    assert f"When the questions are resampled, the ranking {stays} (median Kendall τ {tau}) and {leader} is" in said
    assert "first in 99% of resamples. That is stability, not a test." in said
    assert "other questions" not in said
    tied = tuple(replace(item, rank=1) for item in BOARD.models)
    assert "the same model is first in" in " ".join(sentences(replace(BOARD, models=tied)))


def test_a_model_that_is_only_excluded_from_the_best_is_named_beside_the_verdicts() -> None:
    """The best is tested one-sided, pairs two-sided over all of them: 0.093 (adjusted p 0.08) excludes the second."""
    names = tuple(f"q{i}" for i in range(300))
    runs = []
    for name, chance, seed in (("a", 0.62, 9), ("b", 0.525, 109), ("c", 0.52, 209), ("d", 0.51, 309)):
        values = (np.random.default_rng(seed).random((300, 1)) < chance).astype(float)
        runs.append(hn.Run(name, name, "array", scores=(hn.Scores("t", "acc", "none", hn.Questions(names), values),)))
    found = hn.arena(runs).boards[0]
    assert found.benchmark.best == ("a",)
    assert found.pairs.find("a", "b").verdict == "not separable"
    assert sentences(found)[0] == (
        "a is the best of 4 models (95%). b is excluded by a one-sided test against all rivals. Which single model is "
        "better than b is not shown: the two-sided tests of all pairs are stricter."
    )
    assert "one-sided" not in " ".join(sentences(replace(found, pairs=hn.arena(runs, adjust="none").boards[0].pairs)))


def test_a_pair_of_which_nothing_is_known_is_not_called_inseparable() -> None:
    columns = {key: np.array(values) for key, values in BOARD.pairs.columns.items()}
    for name in ("p_value", "p_adjusted", "ci_low", "ci_high"):
        columns[name][0] = np.nan
    a, b = (BOARD.pairs.names[side[0]] for side in (BOARD.pairs.a, BOARD.pairs.b))
    found = replace(BOARD, pairs=replace(BOARD.pairs, columns=columns))
    table = matrix(found, "")
    order = [row[0].partition(" ")[2] for row in table.rows]
    assert table.rows[order.index(a)][1 + order.index(b)] == table.rows[order.index(b)][1 + order.index(a)] == "–"
    assert sum(cell == "–" for row in table.rows for cell in row) == 2
    whole, drawn = arena_figures.matrix(BOARD), arena_figures.matrix(found)
    assert whole is not None
    assert drawn is not None
    assert drawn.body.count("<rect") == whole.body.count("<rect") - 1
