"""Answers that a harness repeated until one passed are rows of first attempts, whatever wrote them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import harness_noise as hn
from support.harbor_files import job, trial
from support.notes import noted

K = 3


def tries(n: int) -> list[list[int]]:
    """Up to K scores of every question, the last of which is the first success."""
    rng = np.random.default_rng(7)
    out: list[list[int]] = []
    for p in rng.beta(1, 1, n):
        row = [int(rng.random() < p)]
        while len(row) < K and not row[-1]:
            row.append(int(rng.random() < p))
        out.append(row)
    return out


ANSWERS = tries(40)
FIRST = np.mean([row[0] for row in ANSWERS])
WITHIN = np.mean([max(row) for row in ANSWERS])


def are_first_attempts(path: Path, task: str) -> None:
    result = hn.analyze(path)
    (row,) = result.estimates
    assert (row.task, row.n_questions, row.repeats_max) == (task, len(ANSWERS), 1)
    assert row.mean == pytest.approx(FIRST)
    assert {"stopped_on_success"} <= set(row.diagnostics)
    assert "mean_mismatch" not in row.diagnostics
    assert sum("until the first success" in note for note in noted(result)) == 1
    (within,) = hn.analyze(path, measures=[f"pass@{K}"]).estimates
    assert within.mean == pytest.approx(WITHIN)


def test_trials_of_harbor(tmp_path: Path) -> None:
    trials = [
        trial(f"task-{i}", k, float(score), id=f"00000000-0000-4000-8000-{i:06d}{k:06d}")
        for i, row in enumerate(ANSWERS)
        for k, score in enumerate(row)
    ]
    are_first_attempts(job(tmp_path / "job", trials), "tasks")


def test_epochs_of_inspect(canned: Any, tmp_path: Path) -> None:
    """A log that was put together of evals of what had failed: the later epochs of what passed are not there."""
    pytest.importorskip("inspect_ai")
    from inspect_ai.log import read_eval_log, write_eval_log

    def answer(state: Any) -> str:
        row = ANSWERS[int(state.sample_id[1:])]
        return "yes" if row[min(state.epoch, len(row)) - 1] else "no"

    (log,) = canned.eval(canned.task(canned.samples(len(ANSWERS)), answer=answer), tmp_path / "whole", epochs=K)
    whole = read_eval_log(log.location)
    assert whole.samples is not None
    assert whole.results is not None
    whole.samples = [x for x in whole.samples if x.epoch <= len(ANSWERS[int(str(x.id)[1:])])]
    (score,) = whole.results.scores
    score.metrics["accuracy"].value = float(np.mean([np.mean(row) for row in ANSWERS]))  # Inspect's, of these answers
    path = tmp_path / "retried.eval"
    canned.quietly(write_eval_log, whole, str(path))
    are_first_attempts(path, "coins")


def test_tasks_with_other_numbers_of_answers_did_not_stop(tmp_path: Path) -> None:
    """An easy task was asked once, a hard one five times: that is no end after a success."""
    rows = [("easy", q, 0, int(q % 10 > 0)) for q in range(80)]
    rows += [("hard", q, k, int(q == 3 and k == 2)) for q in range(30) for k in range(5)]
    path = tmp_path / "scores.csv"
    path.write_text("task,question,repeat,score\n" + "".join(f"{t},{t}{q},{k},{s}\n" for t, q, k, s in rows))
    assert [row.mean for row in hn.analyze(path).estimates][:2] == pytest.approx([0.9, 1 / 150])
    models = (
        path.read_text().replace("task,", "model,", 1).replace("easy,easy", "easy,q").replace("hard,hard", "hard,q")
    )
    path.write_text(models)
    assert len(hn.read(path)) == 2


def test_one_task_of_several_that_stops_is_asked_about(tmp_path: Path) -> None:
    rows = [("tried", q, k, s) for q, row in enumerate(ANSWERS) for k, s in enumerate(row)]
    rows += [("fixed", q, k, (q + k) % 2) for q in range(400) for k in range(K)]
    path = tmp_path / "scores.csv"
    path.write_text("task,question,repeat,score\n" + "".join(f"{t},{t}{q},{k},{s}\n" for t, q, k, s in rows))
    mean = np.mean([score for row in ANSWERS for score in row])  # of the answers that were repeated, and of no others
    said = f"questions of tried were repeated until the first success .* all of them, {mean:.4g}, is none"
    with pytest.raises(hn.InputError, match=said):
        hn.read(path)


@pytest.mark.parametrize("label", ["try {}", "{}", "{}b", "a{}.2"])
def test_repeats_with_numbers_in_their_names_come_in_the_order_of_the_numbers(tmp_path: Path, label: str) -> None:
    """The tenth try is not the second."""
    rng = np.random.default_rng(0)
    rows, first = [], []
    for q in range(60):
        scores = [int(rng.random() < 0.2)]
        while len(scores) < 12 and not scores[-1]:
            scores.append(int(rng.random() < 0.2))
        rows += [f"q{q},{label.format(k)},{s}" for k, s in enumerate(scores, 1)]
        first.append(scores[0])
    path = tmp_path / "scores.csv"
    path.write_text("\n".join(["question,repeat,score", *rows]) + "\n")
    (run,) = hn.read(path, columns={"repeat": "repeat"})
    assert run.scores[0].repeat_names == tuple(label.format(k) for k in range(1, 13))
    (row,) = hn.analyze(path, columns={"repeat": "repeat"}).estimates
    assert row.mean == pytest.approx(np.mean(first))
    assert "stopped_on_success" in row.diagnostics
