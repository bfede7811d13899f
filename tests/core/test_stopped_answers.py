"""Answers that were repeated until one passed: first attempts alone, whatever the format."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

import harness_noise as hn
from harness_noise.stats.stopped import stopped_at, within_k
from support.notes import noted


def attempts(n: int, K: int, seed: int, *, stop: bool = True) -> list[list[int]]:
    """Scores of up to K attempts at n questions of one difficulty each, shared by all seeds."""
    rng, chances = np.random.default_rng(seed), np.random.default_rng(9).beta(1, 1, n)
    out: list[list[int]] = []
    for p in chances:
        row = [int(rng.random() < p)]
        while len(row) < K and not (stop and row[-1]):
            row.append(int(rng.random() < p))
        out.append(row)
    return out


def frame(**models: list[list[int]]) -> list[hn.Run]:
    """The runs of a table whose column of repeats is named: without that the reader asks what is meant."""
    rows = [
        (name, i, j, s) for name, answers in models.items() for i, row in enumerate(answers) for j, s in enumerate(row)
    ]
    table = pd.DataFrame(rows, columns=["model", "question", "attempt", "score"])
    return hn.read(table, columns={"repeat": "attempt"})


def array(answers: list[list[int]]) -> np.ndarray:
    K = max(map(len, answers))
    return np.array([[*map(float, row), *[np.nan] * (K - len(row))] for row in answers])


A, B = attempts(60, 3, 1), attempts(60, 3, 2, stop=False)
FIRST = float(np.mean([row[0] for row in A]))
WITHIN = float(np.mean([max(row) for row in A]))


def test_retries_are_rows_of_first_attempts() -> None:
    result = hn.analyze(frame(a=A, b=B))
    a, b = result.estimates
    assert (a.mean, a.repeats_max) == (pytest.approx(FIRST), 1)
    assert "stopped_on_success" in a.diagnostics
    assert (b.repeats_max, b.mean) == (3, pytest.approx(np.mean(B)))
    assert not {"stopped_on_success", "stopped_on_failure"} & set(b.diagnostics)
    assert sum("until the first success" in str(note) for note in noted(result)) == 1
    assert "first attempts" in " ".join(str(result).split())


def test_the_same_model_with_retries_is_not_better() -> None:
    again = attempts(60, 3, 3, stop=False)
    row = hn.compare(frame(retried=A, fixed=again)).comparisons[0]
    assert row.repeats_a == 1
    assert row.mean_a == pytest.approx(FIRST)
    assert row.p_value is not None
    assert row.p_value > 0.05
    naive = float(np.mean([np.mean(r) for r in A]))
    assert naive - FIRST > 0.05  # what the mean over all answers would add


def test_lists_in_a_cell_are_attempts_too(tmp_path) -> None:
    rows = [{"question": i, "score": [bool(x) for x in row]} for i, row in enumerate(A)]
    jsonl, csv = tmp_path / "a.jsonl", tmp_path / "a.csv"
    jsonl.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    pd.DataFrame([{**row, "score": str(row["score"])} for row in rows]).to_csv(csv, index=False)
    for path in (jsonl, csv):
        (row,) = hn.analyze(path).estimates
        assert row.mean == pytest.approx(FIRST)
        assert "stopped_on_success" in row.diagnostics


def test_pass_at_k_counts_successes_within_k() -> None:
    (row,) = hn.analyze(frame(a=A), measures=["pass@3"]).estimates
    assert (row.metric, row.mean) == ("pass@3", pytest.approx(WITHIN))
    assert hn.pass_at_k(array(A), 3).mean() == pytest.approx(WITHIN)
    with pytest.raises(hn.InputError):  # of a stopped sequence nobody knows whether all would have been right
        hn.analyze(frame(a=A), measures=["pass^3"])


def test_arrays_and_tables_agree() -> None:
    row, other = hn.estimate(array(A)), hn.analyze(frame(a=A)).estimates[0]
    assert (row.mean, row.se, row.diagnostics) == (other.mean, other.se, other.diagnostics)
    filled = hn.estimate(array(A), missing="zero")
    assert filled.mean == pytest.approx(FIRST)


def test_stopping_on_failure_is_the_mirror_image() -> None:
    x = 1 - array(A)
    seen = stopped_at(x)
    assert seen is not None
    assert seen.how == "failure"
    row = hn.estimate(x)
    assert row.mean == pytest.approx(1 - FIRST)
    assert "stopped_on_failure" in row.diagnostics
    (all_right,) = hn.analyze(
        frame(a=[[int(v) for v in r if v == v] for r in x.tolist()]), measures=["pass^3"]
    ).estimates
    assert all_right.mean == pytest.approx(1 - WITHIN)


def test_lower_is_better_turns_success_round() -> None:
    seen = stopped_at(1 - array(A), lower_is_better=True)
    assert seen is not None
    assert seen.how == "success"


def test_graded_scores_need_no_range() -> None:
    x = array(A)
    graded = np.where(x == 1, 70 + 10 * np.arange(60)[:, None] % 3, np.where(x == 0, 20.0, x))
    seen = stopped_at(graded)
    assert seen is not None
    assert seen.how == "success"


def test_a_format_that_says_so_is_believed() -> None:
    few = [[0, 1], [1], [0, 0], [1]]  # too few to be seen
    part = hn.as_scores(array(few), stops_on="success")
    (row,) = hn.analyze(hn.Run(model="m", name="r", harness="h", scores=(part,))).estimates
    assert row.mean == pytest.approx(0.5)
    assert "stopped_on_success" in row.diagnostics
    assert stopped_at(array(few)) is None


def test_all_metrics_of_stopped_answers_are_of_first_attempts() -> None:
    rows = [
        {"model": "a", "question": i, "metric": metric, "score": score if metric == "passed" else 0.3 + 0.1 * (j % 2)}
        for metric in ("passed", "style")
        for i, row in enumerate(A)
        for j, score in enumerate(row)
    ]
    result = hn.analyze(pd.DataFrame(rows))
    assert {row.repeats_max for row in result.estimates} == {1}
    assert all("stopped_on_success" in row.diagnostics for row in result.estimates)


def test_runs_that_ask_failures_again_are_stopped_too() -> None:
    whole = array(A)
    parts = [pd.DataFrame({"question": np.arange(60), "score": whole[:, k]}).dropna() for k in range(3)]
    runs = [hn.read(part)[0] for part in parts]
    (row,) = hn.analyze(runs, as_repeats=True).estimates
    assert row.mean == pytest.approx(FIRST)
    assert "stopped_on_success" in row.diagnostics


def test_two_runs_that_each_stop_are_two_first_attempts() -> None:
    again = attempts(60, 3, 77)
    runs = [*frame(m=A), *frame(m=again)]
    (row,) = hn.analyze(runs, as_repeats=True).estimates
    assert row.mean == pytest.approx(np.mean([scores[0] for scores in (*A, *again)]))
    assert row.repeats_max == 2
    assert "stopped_on_success" in row.diagnostics


def test_missing_answers_are_no_retries() -> None:
    x = array(B)
    x[::4, 2] = np.nan  # a last round that was cut
    assert stopped_at(x) is None
    assert hn.estimate(x).repeats_max == 3


def test_within_k_is_unknown_if_answers_are_lost() -> None:
    values = np.array([[0, 1, np.nan], [0, np.nan, np.nan], [0, 0, 0]])
    np.testing.assert_array_equal(within_k(values, 3, "success"), [1, np.nan, 0])
    np.testing.assert_array_equal(within_k(values, 1, "success"), [0, 0, 0])
