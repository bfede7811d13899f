"""The answer that a label is of, by the column `repeat`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import harness_noise as hn


def files(folder: Path, first: int, named: int) -> tuple[Path, Path]:
    """Scores of two answers to each of 40 questions, and labels of both answers to half of them."""
    rng = np.random.default_rng(1)
    score, label = rng.integers(0, 2, (2, 40, 2))
    scores, labels = folder / "scores.csv", folder / "labels.csv"
    each = [(i, j) for i in range(40) for j in range(2)]
    scores.write_text("question,repeat,score\n" + "".join(f"q{i},{first + j},{score[i, j]}\n" for i, j in each))
    rows = [(i, j) for i, j in each if i % 2]
    labels.write_text("question,repeat,label\n" + "".join(f"q{i},{named + j},{label[i, j]}\n" for i, j in rows))
    return scores, labels


@pytest.mark.parametrize(("first", "named"), [(0, 0), (1, 1), (7, 1), (7, 0)])
def test_repeats_are_numbered_from_one_or_zero(tmp_path: Path, first: int, named: int) -> None:
    (tmp_path / "as").mkdir()
    expected, row = (
        hn.analyze(scores, labels=labels, labels_at_random=True).estimates[0]
        for scores, labels in (files(tmp_path / "as", 0, 0), files(tmp_path, first, named))
    )
    assert (row.mean, row.se) == (expected.mean, expected.se)


def test_a_repeat_that_no_question_has_is_no_label_of_the_whole_question(tmp_path: Path) -> None:
    scores, labels = files(tmp_path, 7, 7)
    with pytest.raises(hn.InputError, match=r"labels\.csv, line 2: repeat 7 of question 'q1', and .* has 2 answers"):
        hn.analyze(scores, labels=labels, labels_at_random=True)
