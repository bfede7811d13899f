"""Counts, colours and sentences say of a difference one and the same thing."""

from __future__ import annotations

import numpy as np
import pytest

import harness_noise as hn
from harness_noise.analysis.comparison import compare_runs
from harness_noise.data.questions import Questions
from harness_noise.data.scores import Run, Scores
from harness_noise.extra.arena import figures as arena_figures
from harness_noise.extra.arena.build import arena
from harness_noise.report import figures
from harness_noise.report.canvas import COLOURS, MUTED
from harness_noise.settings import Settings
from harness_noise.stats.ranks import answers_above

N = 300


def run(name: str, values: np.ndarray) -> Run:
    part = Scores("t", "acc", "none", Questions(tuple(map(str, range(N))), "id"), values[:, None], bounds=(0.0, 1.0))
    return Run(name, name, "array", scores=(part,))


def models() -> list[Run]:
    """Two models a little worse than the best: each by its own interval, none after adjustment for all pairs."""
    best = (np.arange(N) % 10 < 6) * 1.0
    out = [run("opus", best)]
    for i, name in enumerate("bcdefg"):
        values, flips = best.copy(), np.arange(N)
        values[(flips % 30 == i) & (best == 1)] = 0.0
        values[(flips % 97 == i + 7) & (best == 0)] = 1.0
        out.append(run(name, values))
    return out


def test_the_page_counts_models_by_the_adjusted_verdicts() -> None:
    found = arena(models(), Settings(), baseline="opus")
    (board,) = found.boards
    pairs = [pair for pair in board.pairs if "opus" in (pair.model_a, pair.model_b)]
    by_interval = sum(pair.ci_low > 0 or pair.ci_high < 0 for pair in pairs)
    by_verdict = sum("better" in pair.verdict for pair in pairs)
    assert by_interval > by_verdict  # else the test shows nothing
    picture = arena_figures.differences(board, "opus")
    assert picture is not None
    assert picture.alt.startswith(
        f"{by_verdict} of {len(pairs)} models {'is' if by_verdict == 1 else 'are'} shown to differ"
    )
    assert "these models differ" not in picture.alt


def test_a_difference_by_rounding_is_a_tie_in_counts_and_colours() -> None:
    d = np.array([1e-17, -1e-17, 0.1 + 0.2 - 0.3, 0.5, -0.5, 0.0])
    assert figures.side_of(d).tolist() == [0, 0, 0, 1, -1, 0]
    labels, row = ["x", "x", "y", "z", "z", "y"], hn.estimate_difference(d, np.zeros(6))
    picture = figures.clusters("clusters", d, labels, row)
    assert picture is not None
    assert "A is better in 0 and B in 0" in picture.alt
    assert MUTED in picture.body
    assert COLOURS[0] not in picture.body
    told = figures.histogram("questions", d, row)
    assert "A is better on 1, B on 1, and 4 are equal" in told.alt


@pytest.mark.parametrize("size", [1e-17, 5e-17])
def test_answers_that_differ_by_rounding_are_no_wins(size: float) -> None:
    a = np.full((N, 1), 0.3)
    b = a + size * (np.arange(N)[:, None] % 2 * 2 - 1) + (0.1 + 0.2 - 0.3)
    assert not answers_above((a, b)).any()
    (row,) = compare_runs([(run("a", a[:, 0]), run("b", b[:, 0]))], Settings()).comparisons
    assert (row.wins_a, row.wins_b, row.ties) == (0, 0, N)
