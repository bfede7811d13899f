"""Faults that the last reading of the whole found."""

from __future__ import annotations

import numpy as np
import pytest

import harness_noise as hn
from harness_noise.analysis.comparison import compare_runs
from harness_noise.data.questions import Questions
from harness_noise.data.scores import CorpusScores, Run, Scores
from harness_noise.errors import InputError
from harness_noise.settings import Settings

KEYS = Questions(tuple("abcdefgh"))


def run(model: str, values: np.ndarray) -> Run:
    return Run(model=model, name=model, harness="array", scores=(Scores("t", "m", "none", KEYS, values),))


def test_a_question_with_only_infinite_scores_is_refused_not_left_out() -> None:
    values = np.arange(8.0)[:, None] % 3
    broken = values.copy()
    broken[3] = np.inf
    with pytest.raises(InputError, match="a score is infinite"):
        compare_runs([(run("a", broken), run("b", values))], Settings())


def test_arrays_without_a_common_question_say_so_in_their_own_words() -> None:
    a, b = np.full((4, 2), np.nan), np.full((4, 2), np.nan)
    a[:2], b[2:] = 1.0, 0.0
    with pytest.raises(ValueError, match="no question has a score in both a and b"):
        hn.estimate_difference(a, b)
    b[1] = 0.0
    assert hn.estimate_difference(a, b).n_questions == 1


def test_a_permutation_of_sums_against_records_is_refused() -> None:
    known = {"task": "t", "metric": "f1", "scorer": "none", "questions": KEYS}
    truth = np.arange(8) % 2
    by_sums = CorpusScores(
        **known, stats=truth[:, None, None].astype(float), value=lambda sums: sums[..., 0] / 8, n_missing=0
    )
    by_records = CorpusScores(
        **known, records=tuple((int(x),) for x in 1 - truth), aggregate=lambda items: sum(items) / 8
    )
    runs = [
        Run(model=name, name=name, harness="x", corpus=(item,)) for name, item in (("a", by_sums), ("b", by_records))
    ]
    with pytest.raises(InputError, match="use `test='bootstrap'`"):
        compare_runs([(runs[0], runs[1])], Settings(test="permutation"))
    (row,) = compare_runs([(runs[0], runs[1])], Settings(test="bootstrap")).differences
    assert row.diff == pytest.approx(0.0)
