"""Scores that people have edited in a log are labels of what the judge gave."""

from __future__ import annotations

import random

import numpy as np
import pytest

import harness_noise as hn

pytest.importorskip("inspect_ai", reason="inspect-ai is not installed")

from inspect_ai.log import ProvenanceData, edit_score, read_eval_log, write_eval_log
from inspect_ai.scorer import ScoreEdit

N = 120
BY_ANN = ProvenanceData(author="ann")


@pytest.fixture(scope="module")
def runs(canned, tmp_path_factory):
    """The logs of two runs with one answer to each question and of one with three."""
    folder = tmp_path_factory.mktemp("runs")
    return {
        name: canned.eval(canned.task(canned.samples(N)), folder, epochs=epochs)[0].location
        for name, epochs in (("one", 1), ("another", 1), ("three", 3))
    }


def edited(runs, folder, ending="eval", *, run="one", confirm=True, seed=4):
    """A log of which a random half has one answer edited, the scores before, and what the person gave."""
    log = read_eval_log(runs[run])
    epochs = log.eval.config.epochs
    folder.mkdir(exist_ok=True)
    rng, judge, label = random.Random(seed), np.full((N, epochs), np.nan), np.full((N, epochs), np.nan)
    for sample in log.samples:
        judge[int(sample.id[1:]), sample.epoch - 1] = sample.scores["match"].value == "C"
    for i in sorted(rng.sample(range(N), N // 2)):
        j = rng.randrange(epochs)
        right = judge[i, j] if rng.random() < 0.8 else 1 - judge[i, j]
        if right != judge[i, j] or confirm:
            label[i, j] = right
            edit = ScoreEdit(value="C" if right else "I", provenance=BY_ANN)
            edit_score(log, f"q{i}", "match", edit, epoch=j + 1)
    path = folder / f"edited.{ending}"
    write_eval_log(log, str(path))
    return path, judge, label


@pytest.mark.parametrize(("ending", "run"), [("eval", "one"), ("json", "one"), ("eval", "three")])
def test_an_edited_score_is_a_label_and_the_one_before_the_judges(runs, tmp_path, ending, run):
    path, judge, label = edited(runs, tmp_path, ending, run=run)
    (row,) = hn.analyze(path, labels_scorer="edits").estimates
    want = hn.estimate_with_labels(judge, label, range=(0, 1))
    assert (row.mean, row.se, row.ci_low, row.ci_high) == pytest.approx((want.mean, want.se, want.ci_low, want.ci_high))
    assert (row.judge.mean_judge, row.judge.n_labels) == (pytest.approx(judge.mean()), N // 2)
    assert row.judge.bias == pytest.approx(want.judge.bias)
    # without the option the log's scores are those that it has now, as Inspect's own value
    now = np.where(np.isnan(label), judge, label)
    assert hn.analyze(path).estimates[0].mean == pytest.approx(now.mean())
    assert hn.analyze(path, labels_scorer="edits", scorers=["match"]).estimates == (row,)


def test_two_models_with_edits_are_compared(runs, tmp_path):
    a, judge_a, label_a = edited(runs, tmp_path / "a")
    b, judge_b, label_b = edited(runs, tmp_path / "b", run="another", seed=5)
    (row,) = hn.compare(a, b, labels_scorer="edits").comparisons
    means = [hn.estimate_with_labels(*x, range=(0, 1)).mean for x in ((judge_a, label_a), (judge_b, label_b))]
    assert row.diff == pytest.approx(means[0] - means[1])
    assert abs(row.diff) > 0.001
    assert "judge_corrected" in row.diagnostics


def test_the_last_edit_with_an_author_counts_and_one_of_something_else_does_not(runs, tmp_path):
    path, judge, label = edited(runs, tmp_path)
    log = read_eval_log(str(path))
    first, other = np.flatnonzero(~np.isnan(label[:, 0]))[:2]
    bare = int(np.flatnonzero(np.isnan(label[:, 0]))[0])
    label[first, 0] = 1 - label[first, 0]
    edit_score(log, f"q{first}", "match", ScoreEdit(value="C" if label[first, 0] else "I", provenance=BY_ANN))
    edit_score(log, f"q{other}", "match", ScoreEdit(explanation="as I said", provenance=BY_ANN))
    edit_score(log, f"q{bare}", "match", ScoreEdit(explanation="not looked at", provenance=BY_ANN))
    write_eval_log(log, str(path))
    (row,) = hn.analyze(path, labels_scorer="edits").estimates
    want = hn.estimate_with_labels(judge, label, range=(0, 1))
    assert (row.mean, row.se, row.judge.n_labels) == (pytest.approx(want.mean), pytest.approx(want.se), N // 2)


def test_edits_of_wrong_scores_alone_are_no_random_part(runs, tmp_path):
    path, _, label = edited(runs, tmp_path, confirm=False)
    n = int((~np.isnan(label)).sum())
    with pytest.raises(hn.InputError, match=f"all {n} edits change the score"):
        hn.analyze(path, labels_scorer="edits")
    (row,) = hn.analyze(path, labels_scorer="edits", labels_at_random=True).estimates
    assert row.judge.n_labels == n


def test_a_log_without_edits_by_a_person_is_refused(runs, tmp_path):
    with pytest.raises(hn.InputError, match="no score of the log has an edit that says who made it"):
        hn.analyze(runs["one"], labels_scorer="edits")
    log = read_eval_log(runs["one"])
    edit_score(log, "q1", "match", ScoreEdit(value="C"))
    write_eval_log(log, str(tmp_path / "program.eval"))
    with pytest.raises(hn.InputError, match="no score of the log has an edit that says who made it"):
        hn.analyze(tmp_path / "program.eval", labels_scorer="edits")
