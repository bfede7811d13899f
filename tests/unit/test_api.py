"""The public functions on runs that are read already."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import harness_noise as hn
from harness_noise import as_scores
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
        other = hn.compare(run, path, missing="zero").comparisons[0]
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


class TestDataFrames:
    """A table in memory says what its file would."""

    def frame(self) -> Any:
        pd = pytest.importorskip("pandas")
        rng = np.random.default_rng(0)
        p = rng.random(40)
        rows = [
            {"question": f"q{i}", "model": m, "story": f"s{i // 4}", "score": float(rng.random() < p[i])}
            for i in range(40) for m in "ab" for _ in range(3)
        ]  # fmt: skip
        return pd.DataFrame(rows)

    def test_it_is_read_as_its_file_is(self, tmp_path: Path) -> None:
        frame = self.frame()
        frame.loc[5, "score"] = None
        frame.to_csv(tmp_path / "t.csv", index=False)
        for name, choices in (("analyze", {}), ("analyze", {"cluster": "story"}), ("analyze", {"missing": "zero"})):
            ours, theirs = (getattr(hn, name)(x, **choices) for x in (frame, tmp_path / "t.csv"))
            assert [replace(row, run="") for row in ours.rows] == [replace(row, run="") for row in theirs.rows]
        assert [run.model for run in hn.read(frame.astype({"score": "Float64"}))] == ["a", "b"]
        assert hn.arena(frame).boards[0].pairs[0].diff == pytest.approx(hn.compare(*hn.read(frame)).rows[0].diff)

    def test_two_of_them_are_compared_and_an_index_is_a_column(self) -> None:
        frame = self.frame()
        a, b = (frame[frame.model == m].drop(columns="model") for m in "ab")
        row = hn.compare(a, b).rows[0]
        assert row == hn.compare(a.set_index("question"), b).rows[0]
        with pytest.raises(InputError, match=r"no column holds the scores\. There are question, story, right"):
            hn.analyze(a.rename(columns={"score": "right"}).assign(right="x"))
        with pytest.raises(InputError, match="DataFrame: two columns are called 'score'"):
            hn.analyze(a.rename(columns={"story": "score"}))

    def test_dates_and_lists_are_read_as_in_its_file(self, tmp_path: Path) -> None:
        pd = pytest.importorskip("pandas")
        pytest.importorskip("pyarrow")
        frame = pd.DataFrame({"question": [f"q{i}" for i in range(20)], "score": [[i % 2, 1, 0] for i in range(20)]})
        frame["date"] = pd.date_range("2024-01-01", periods=20)
        frame.to_csv(tmp_path / "t.csv", index=False)
        frame.to_parquet(tmp_path / "t.parquet")
        again = pd.read_parquet(tmp_path / "t.parquet")  # whose lists are arrays
        days = again.assign(date=again.date.dt.date)
        for source in (tmp_path / "t.csv", tmp_path / "t.parquet", again, days):
            (row,) = hn.analyze(source, only=["date < 2024-01-05"]).rows
            assert (row.n_questions, row.repeats_max) == (4, 3)
            assert row.mean == pytest.approx(0.5)
            assert hn.analyze(source, cluster="date").rows[0].n_clusters == 20
        with pytest.raises(InputError, match="DataFrame: two columns are called 'score'"):
            hn.analyze(again.rename_axis("score"))

    def test_one_of_polars_is_read_as_one_of_pandas(self) -> None:
        pl = pytest.importorskip("polars")
        frame = self.frame()
        ours, theirs = (hn.analyze(x, cluster="story").rows for x in (pl.DataFrame(frame.to_dict("list")), frame))
        assert ours == theirs


def test_counts_and_scores_may_be_numbers_of_numpy() -> None:
    right = np.array([1.0] * 74 + [0.0] * 26)
    assert hn.compare((right.sum(), right.size), (np.int64(66), 100)) == hn.compare((74, 100), (66, 100))
    known = hn.compare(0.75, 0.5, profile="gpqa_diamond")
    assert hn.compare(np.float32(0.75), np.float64(0.5), profile="gpqa_diamond") == known


@pytest.mark.parametrize("value", [3, None, 0.5, {"question": ["a"], "score": [1]}, [1, 0, 1]])
def test_what_is_no_run_is_refused(value: Any) -> None:
    with pytest.raises(hn.InputError, match=r"is no run: .* `estimate_difference`"):
        hn.analyze(value)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: hn.analyze(""), "'' is no path: name a file or a folder"),
        (lambda: hn.read(None), "None is no path"),  # type: ignore[arg-type]
        (lambda: hn.compare([1, 0, 1], [0, 0, 1]), "For arrays of scores use `estimate_difference`"),
        (lambda: hn.compare(0.7, 0.6), r"350/500 and 300/500.*`profile='gpqa_diamond'` \(`profiles` lists"),
        (lambda: hn.compare((1, 2), (1, 2), questions=-5), "`questions` -5 is not a whole number of 0 or more"),
        (lambda: hn.arena([], top="2"), "`top` '2' is not a whole number"),  # type: ignore[arg-type]
        (lambda: hn.arena([], jobs=0), "`jobs` 0 is not a whole number of 1 or more"),
        (lambda: hn.pass_at_k([[1, 0, 1]], 1.5), "`k` 1.5 is not a whole number"),  # type: ignore[arg-type]
        (
            lambda: hn.factor_noise([1, 1, 0], [1, 2, 3], {"a": [1, 1, 2]}, more=0),
            "`more` 0 is not a whole number of 1",
        ),
        (lambda: hn.Settings(unpaired="no"), "unpaired accepts bool, not str"),  # type: ignore[arg-type]
        (lambda: hn.estimate([1, 0], level="0.9"), "level accepts float, not str"),  # type: ignore[arg-type]
        (lambda: hn.Settings(margin="1"), "margin accepts float or None, not str"),  # type: ignore[arg-type]
        (lambda: hn.Settings(margin=np.inf), "margin inf must not be negative or infinite"),
        (lambda: hn.estimate([1, 0], seed=1.5), "seed accepts int, not float"),  # type: ignore[arg-type]
    ],
)
def test_what_would_be_taken_for_something_else_is_refused(call: Callable[[], object], said: str) -> None:
    with pytest.raises(hn.InputError, match=said):
        call()


def test_a_former_keyword_or_function_says_what_it_is_now() -> None:
    with pytest.raises(TypeError, match="baseline= is now against="):
        hn.compare("a.csv", baseline="b.csv")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"references= is now profile= \(whose noise\), or complete="):
        hn.analyze("a.csv", references="b.csv")  # type: ignore[call-arg]
    with pytest.raises(AttributeError, match="explain is now regress"):
        hn.explain  # noqa: B018
