"""The public functions on runs that are read already."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import harness_noise as hn
from harness_noise.analysis.sample import as_scores
from harness_noise.data.scores import Group, Run
from harness_noise.errors import InputError


class TestMissingIsZero:
    """Which of the holes are answers that failed is known only while a file is read."""

    def table(self, tmp_path: Path) -> Path:
        path = tmp_path / "m.csv"
        path.write_text("question,repeat,score\na,0,1\na,1,\nb,0,1\nb,1,0\nc,0,1\n")  # c was asked only once
        return path

    def test_a_run_with_a_path_is_read_again(self, tmp_path: Path) -> None:
        path = self.table(tmp_path)
        (run,) = hn.read(path)
        assert isinstance(run, Run)
        (dropped,), (filled,) = (hn.analyze(run, missing=m).estimates for m in ("drop", "zero"))
        (whole,) = hn.analyze(path, missing="zero").estimates
        assert (dropped.mean, dropped.n_missing) == (pytest.approx((1 + 0.5 + 1) / 3), 1)
        assert (filled.mean, filled.n_missing) == (pytest.approx((0.5 + 0.5 + 1) / 3), 1)
        assert filled == whole
        other = hn.compare(run, path, missing="zero").differences[0]
        assert (other.mean_a, other.diff) == (filled.mean, 0)

    def test_a_run_without_one_is_refused(self) -> None:
        hole = Run("m", "r", "test", scores=(as_scores([[1.0, np.nan], [0.0, 1.0]]),))
        with pytest.raises(InputError, match="r: missing answers can be counted as wrong only while a file is read"):
            hn.analyze(hole, missing="zero")
        whole = Run("m", "r", "test", scores=(as_scores([[1.0, 1.0], [0.0, 1.0]]),))
        assert hn.analyze(whole, missing="zero").estimates[0].mean == 0.75


def test_a_group_whose_tasks_have_no_row_of_their_own_keeps_them() -> None:
    """`read(…, tasks=("all",))` leaves such a run; to analyse it again must not lose what the group is made of."""
    tasks = tuple(as_scores([[1.0, 0.0], [0.0, 0.0], [1.0, 1.0]], task=task) for task in ("t1", "t2"))
    group = Group("all", "score", "none", ("t1", "t2"), "equal")
    (row,) = hn.analyze(Run("m", "r", "test", parts=tasks, groups=(group,))).estimates
    assert (row.task, row.mean, row.n_questions) == ("all", 0.5, 6)
    run = Run("m", "r", "test", scores=tasks, groups=(group,))
    (again,) = hn.analyze(run, tasks=("all",)).estimates
    assert again == row
