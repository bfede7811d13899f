"""Human labels correct a judge: one estimator, its edges, and every door to it."""

from __future__ import annotations

import csv
import json
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import harness_noise as hn
from harness_noise import Analysis
from harness_noise.cli import main
from harness_noise.data.questions import Questions
from harness_noise.data.scores import Scores
from harness_noise.extra.labels.correcting import _people_scores
from harness_noise.extra.labels.files import answer_id
from harness_noise.extra.labels.stats import _unseen
from harness_noise.extra.partial import Part, from_part
from harness_noise.stats.tolerances import FEW_FAILURES
from support.notes import noted

N = 400


def judged(
    rng: np.random.Generator, n: int = N, sensitivity: float = 0.9, specificity: float = 0.8, p: float = 0.6
) -> tuple[Any, Any]:
    """The truth of n answers, and what a judge says of it."""
    truth = (rng.random(n) < p).astype(float)
    r = rng.random(n)
    return truth, np.where(truth == 1, r < sensitivity, r > specificity).astype(float)


def part_of(truth: Any, rng: np.random.Generator, m: int) -> Any:
    """Labels of m random questions."""
    return np.where(np.isin(np.arange(len(truth)), rng.permutation(len(truth))[:m]), truth, np.nan)


def codes(row: Any) -> set[str]:
    return set(row.diagnostics)


@pytest.mark.parametrize("m", [100, 200])
def test_the_corrected_mean_is_the_estimate_from_a_part_with_the_judge_as_feature(m: int) -> None:
    rng = np.random.default_rng(m)
    truth, judge = judged(rng)
    labels = part_of(truth, rng, m)
    asked = np.flatnonzero(~np.isnan(labels))
    part = Part(asked, np.arange(N), np.zeros(N, dtype=np.intp))
    expected = from_part(truth[asked], part, judge[:, None])
    assert expected is not None
    row = hn.estimate_with_labels(judge, labels, interval="t")
    assert row.mean == pytest.approx(expected.estimate, abs=1e-12)
    assert row.se == pytest.approx(np.sqrt(expected.population_variance), rel=0.06)
    assert row.judge is not None
    assert (row.judge.mean_judge, row.judge.bias) == pytest.approx((judge.mean(), row.mean - judge.mean()))
    assert row.judge.r2 == pytest.approx(expected.r2, abs=1e-9)
    assert row.estimand == "people_labels"
    assert "judge_corrected" in row.diagnostics
    assert None is row.se_total is row.se_data is row.se_prediction


def test_where_all_are_labelled_the_labels_alone_count() -> None:
    truth, judge = judged(np.random.default_rng(1))
    row, alone = hn.estimate_with_labels(judge, truth), hn.estimate(truth)
    assert (row.mean, row.se) == pytest.approx((alone.mean, alone.se))
    assert row.judge is not None
    assert row.judge.gain == pytest.approx(1)
    assert row.judge.bias_se == pytest.approx(hn.estimate(truth - judge).se)


def test_an_affine_change_of_scale_changes_the_result_in_the_same_way() -> None:
    rng = np.random.default_rng(2)
    truth, judge = judged(rng)
    labels = part_of(truth, rng, 100)
    row = hn.estimate_with_labels(judge, labels)
    other = hn.estimate_with_labels(2 + 3 * judge, 2 + 3 * labels, range=(2, 5))
    assert other.mean is not None
    assert row.mean is not None
    assert (other.mean, other.se) == pytest.approx((2 + 3 * row.mean, 3 * (row.se or 0)))


def test_a_useless_judge_costs_nothing_and_is_called_so() -> None:
    rng = np.random.default_rng(3)
    truth, _ = judged(rng, 2000)
    judge = rng.permutation(truth)
    row = hn.estimate_with_labels(judge, part_of(truth, rng, 200))
    assert row.judge is not None
    assert abs(row.judge.r2 or 0) < 0.06
    assert 0.9 < (row.judge.gain or 0) < 1.1
    assert "The judge adds nothing, so the labels alone do as well" in str(row)


def test_a_judge_of_questions_that_are_all_labelled_is_not_called_useless() -> None:
    truth, judge = judged(np.random.default_rng(3), 200)
    row = hn.estimate_with_labels(judge, truth)
    assert row.mean == pytest.approx(truth.mean())
    assert "Every question is labelled, so the labels alone count" in str(row)
    assert "R²" not in str(row)


def test_a_judge_that_too_few_labels_leave_unused_is_not_called_useless() -> None:
    """Twelve labelled clusters teach nothing of a judge that predicts half of the labels' variance."""
    rng = np.random.default_rng(5)
    truth, judge = judged(rng, 200)
    clusters = np.arange(200) // 5
    labels = np.where(np.isin(clusters, rng.permutation(40)[:12]), truth, np.nan)
    row = hn.estimate_with_labels(judge, labels, clusters=clusters.tolist())
    assert row.judge is not None
    assert row.judge.r2 is None
    assert (row.judge.gain or 0) < 1.01
    assert row.mean == pytest.approx(np.nanmean(labels))
    assert "adds nothing" not in str(row)
    assert "Only the labels are used, not the judge" in str(row)


def test_labels_that_are_all_right_have_the_interval_of_so_many_right_answers() -> None:
    """Mean 1 by rounding only is 1, and its interval not [0, 1]."""
    for m, low in ((22, 0.836), (50, 0.925)):
        labels = np.full(50, np.nan)
        labels[np.random.default_rng(0).permutation(50)[:m]] = 1.0
        for scale, judge, label in ((1, np.ones(50), labels), (100, np.full(50, 100.0), 100 * labels)):
            row = hn.estimate_with_labels(judge, label, at_random=True, range=(0, scale))
            assert row.mean == scale
            assert (row.ci_low, row.ci_high) == (pytest.approx(low * scale, rel=1e-3), scale)
            assert "few_labelled_failures" in codes(row)
            mirrored = hn.estimate_with_labels(scale - judge, scale - label, at_random=True, range=(0, scale))
            assert (mirrored.mean, mirrored.ci_low) == (0, 0)
            assert mirrored.ci_high == pytest.approx(scale - row.ci_low)


def test_with_few_labelled_failures_the_row_is_that_of_the_labels() -> None:
    rng = np.random.default_rng(7)
    truth, judge = judged(rng, 400, p=0.9)
    for wrong in (4, 5):
        at = np.concatenate([np.flatnonzero(truth == 0)[:wrong], np.flatnonzero(truth == 1)[: 60 - wrong]])
        labels = np.full(400, np.nan)
        labels[at] = truth[at]
        row, alone = hn.estimate_with_labels(judge, labels, at_random=True), hn.estimate(truth[at])
        few = wrong == 4
        assert ("few_labelled_failures" in codes(row)) == few
        assert (row.mean == pytest.approx(alone.mean)) == few
        if few:
            assert row.se == pytest.approx(alone.se, rel=1e-9)
            assert row.df == pytest.approx(59)
            assert row.judge.bias_se > 0
            assert row.judge.gain is None


def test_a_difference_of_corrected_runs_has_no_flips() -> None:
    rng = np.random.default_rng(8)
    truth, judge = judged(rng, 400, p=0.7)
    runs = []
    for name in ("a", "b"):
        labels = part_of(truth, np.random.default_rng(3), 60)
        runs.append((name, np.where(rng.random(400) < 0.95, judge, 1 - judge), labels))
    rows = [{"model": m, "question": i, "score": s} for m, scores, _ in runs for i, s in enumerate(scores)]
    label_rows = [
        {"model": m, "question": i, "label": x} for m, _, labels in runs for i, x in enumerate(labels) if x == x
    ]
    frame, labels = pd.DataFrame(rows), pd.DataFrame(label_rows)
    options = {"labels": labels, "labels_at_random": True}
    (row,) = hn.compare(frame, **options).comparisons
    assert "few_flips" not in row.diagnostics
    (pair,) = hn.arena(frame, **options).pairs
    assert "few_flips" not in pair.diagnostics
    assert (pair.ci_low, pair.ci_high) == (pytest.approx(row.ci_low), pytest.approx(row.ci_high))


def test_few_labels_of_judged_failures_are_refused() -> None:
    """Fifteen of 25 labels where the judge says wrong, of one in five: z is 5.3, but 3.4 with fewer labels."""
    rng = np.random.default_rng(9)
    judge = (rng.random(300) < 0.8).astype(float)
    wrong, right = np.flatnonzero(judge == 0), np.flatnonzero(judge == 1)
    at = rng.permutation(np.concatenate([rng.choice(wrong, 12, replace=False), rng.choice(right, 13, replace=False)]))
    labels = np.full(300, np.nan)
    labels[at] = judge[at]
    with pytest.raises(hn.InputError, match="not a random subset"):
        hn.estimate_with_labels(judge, labels)


def test_a_judge_that_is_right_on_all_labels_is_not_taken_for_infallible() -> None:
    rng = np.random.default_rng(4)
    truth, _ = judged(rng, 2000, p=0.6)
    row = hn.estimate_with_labels(truth, part_of(truth, rng, 60))
    naive = hn.estimate(truth)
    assert {"few_failures", "judge_corrected"} <= codes(row)
    assert row.se is not None
    assert naive.se is not None
    assert row.se > naive.se
    assert row.ci_low is not None
    assert row.ci_high is not None
    assert naive.ci_low is not None
    # three errors in 60 could have been missed: the rule of three
    assert row.ci_low < naive.ci_low - 0.01
    assert row.ci_low <= (row.mean or 0) - 2 / 60


def test_a_perfect_judge_leaves_the_label_noise_and_few_labels_are_coded() -> None:
    rng = np.random.default_rng(5)
    truth, judge = judged(rng)
    few = hn.estimate_with_labels(judge, part_of(truth, rng, 15))
    assert {"few_labels", "few_clusters"} & {*few.diagnostics} == {"few_labels"}  # 14 degrees of freedom are not few
    assert "few_clusters" in hn.estimate_with_labels(judge, part_of(truth, rng, 9)).diagnostics
    assert few.judge is not None
    assert few.judge.n_labelled == 15
    many = hn.estimate_with_labels(judge, part_of(truth, rng, 150))
    assert not {"few_labels", "few_clusters"} & {*many.diagnostics}
    clusters = np.arange(N) // 10
    whole = np.where(np.isin(clusters, rng.permutation(40)[:15]), truth, np.nan)
    assert "few_labels" in hn.estimate_with_labels(judge, whole, clusters).diagnostics


def test_labels_of_answers_are_set_against_the_scores_of_these_answers() -> None:
    """With labels of single answers the judge's score of the same answer predicts the label."""
    rng = np.random.default_rng(6)
    truth = (rng.random((N, 3)) < 0.5).astype(float)
    judge = np.where(rng.random((N, 3)) < 0.95, truth, 1 - truth)
    labels = np.full((N, 3), np.nan)
    for i in rng.permutation(N)[:120]:
        j = rng.integers(3)
        labels[i, j] = truth[i, j]
    row = hn.estimate_with_labels(judge, labels)
    assert row.judge is not None
    assert (row.judge.r2 or 0) > 0.7
    assert (row.repeats_min, row.repeats_max) == (3, 3)
    unlabelled = np.isnan(labels).all(axis=1)
    by_question = hn.estimate_with_labels(judge, np.where(unlabelled, np.nan, np.nansum(labels, axis=1)))
    assert by_question.judge is not None
    assert (by_question.judge.r2 or 0) < 0.6


def test_questions_without_a_score_do_not_count_and_labels_of_them_neither() -> None:
    rng = np.random.default_rng(7)
    truth, judge = judged(rng)
    labels = part_of(truth, rng, 100)
    lost = np.flatnonzero(~np.isnan(labels))[:3]
    holes = judge.copy()
    holes[lost] = np.nan
    row = hn.estimate_with_labels(holes, labels)
    kept = ~np.isnan(holes)
    assert row.judge is not None
    assert (row.n_questions, row.judge.n_labelled) == (N - 3, 97)
    assert row.mean == pytest.approx(hn.estimate_with_labels(holes[kept], labels[kept]).mean)


def test_the_same_labels_everywhere_have_an_interval() -> None:
    rng = np.random.default_rng(8)
    _, judge = judged(rng)
    row = hn.estimate_with_labels(judge, part_of(np.ones(N), rng, 50))
    assert "few_failures" in row.diagnostics
    assert row.ci_low is not None
    assert row.ci_low < 0.96
    assert row.ci_high == 1


@pytest.mark.parametrize(
    ("chosen", "words"),
    [
        (lambda judge: np.arange(N) < 50, "lie together in the order of the benchmark"),
        (lambda judge: judge == 0, "have a mean score of 0 by the judge"),
        (lambda judge: (judge == 0) & (np.arange(N) % 4 == 0), "have a mean score of 0 by the judge"),
    ],
)
def test_labels_of_no_random_part_are_refused_unless_said_to_be_one(chosen: Any, words: str) -> None:
    truth, judge = judged(np.random.default_rng(9))
    labels = np.where(chosen(judge), truth, np.nan)
    with pytest.raises(hn.InputError, match=words):
        hn.estimate_with_labels(judge, labels)
    assert "judge_corrected" in hn.estimate_with_labels(judge, labels, at_random=True).diagnostics


def test_random_parts_are_seldom_refused() -> None:
    rng = np.random.default_rng(10)
    for p in (0.05, 0.5, 0.97):
        for m in (3, 30, 200):
            truth, judge = judged(rng, p=p)
            row = hn.estimate_with_labels(judge, part_of(truth, rng, m))
            assert row.judge is not None
            assert row.judge.n_labels == m


def test_arrays_that_do_not_fit_are_refused() -> None:
    with pytest.raises(hn.InputError, match="labels of the shape"):
        hn.estimate_with_labels(np.ones(10), np.ones(9))
    with pytest.raises(hn.InputError, match="fewer than two labelled questions"):
        hn.estimate_with_labels([0, 1, 1], [np.nan, 1, np.nan])


def test_labels_that_are_all_the_same_are_no_measure_of_the_judge() -> None:
    """Their own variance is not known, so neither is the gain, and the judge is not said to be unused."""
    truth, judge = np.ones(N), judged(np.random.default_rng(26), p=0.95)[1]
    row = hn.estimate_with_labels(judge, part_of(truth, np.random.default_rng(27), 60))
    assert row.judge is not None
    assert row.judge.gain is None
    assert "Only the labels are used, not the judge" not in hn.render(Analysis({}, (row,)), "markdown")


@pytest.mark.parametrize("wrong", [FEW_FAILURES - 1, FEW_FAILURES])
def test_fewer_than_ten_errors_have_two_more_counted(wrong: int) -> None:
    sums = np.where(np.arange(100) < wrong, 0.01, 0.0)
    assert (_unseen(sums, 1.0) > 0) == (wrong < FEW_FAILURES)


def test_what_allows_for_unseen_errors_is_not_said_to_add_nothing() -> None:
    """A judge that finds one error of six: what allows for errors that they do not show makes the gain less than 1."""
    at = np.arange(N) % 3 == 0
    wrong = np.flatnonzero(at)[:60:10]
    truth, judge = np.ones(N), np.ones(N)
    truth[wrong] = 0.0
    judge[wrong[0]] = 0.0
    row = hn.estimate_with_labels(judge, np.where(at, truth, np.nan))
    assert row.judge is not None
    assert row.judge.gain is not None
    assert row.judge.gain < 0.95
    text = " ".join(hn.render(Analysis({}, (row,)), "markdown").split())
    assert "adds nothing" not in text
    assert "larger than that of the labels alone" in text


def test_the_advice_on_a_corrected_row_is_one_that_labels_allow_for() -> None:
    truth, judge = judged(np.random.default_rng(28), p=0.97)
    labels = part_of(truth, np.random.default_rng(29), 100)
    row = hn.estimate_with_labels(judge, labels)
    assert "few_failures" in row.diagnostics
    text = " ".join(hn.render(Analysis({}, (row,)), "markdown").split())
    assert "korn" not in text
    assert "What to do: more labels help" in text
    with pytest.raises(hn.InputError, match="does not use `interval='korn-graubard'`: leave it out"):
        hn.estimate_with_labels(judge, labels, interval="korn-graubard")


# files


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two models as good as each other, of which the judge likes one; and the truth of every answer."""
    rng = np.random.default_rng(11)
    truths: dict[str, Any] = {}
    for model, specificity in (("a", 0.6), ("b", 0.95)):
        truth, judge = judged(rng, N, 0.95, specificity)
        truths[model] = truth
        rows = [f"q{i},{model},{score:g},=cmd|{model}{i},t{i // 5}" for i, score in enumerate(judge)]
        (tmp_path / f"{model}.csv").write_text("\n".join(["question,model,score,response,topic", *rows]) + "\n")
    np.savez(tmp_path / "truth.npz", **truths)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write_labels(path: Path, header: str, rows: list[Any]) -> str:
    path.write_text("\n".join([header, *(",".join(map(str, row)) for row in rows)]) + "\n")
    return str(path)


def random_rows(folder: Path, m: int = 100, models: str = "ab") -> list[tuple[str, str, int]]:
    truth = np.load(folder / "truth.npz")
    asked = np.random.default_rng(0).permutation(N)[:m].tolist()
    return [(f"q{i}", model, int(truth[model][i])) for i in asked for model in models]


def test_a_file_of_labels_gives_what_arrays_give(folder: Path) -> None:
    path = write_labels(folder / "labels.csv", "question,model,label", random_rows(folder, models="a"))
    before = (folder / "a.csv").read_bytes()
    row = hn.analyze("a.csv", labels=path, say=lambda text: None).estimates[0]
    judge = [float(line.split(",")[2]) for line in (folder / "a.csv").read_text().splitlines()[1:]]
    known = {question: label for question, _, label in random_rows(folder, models="a")}
    labels = [known.get(f"q{i}", np.nan) for i in range(N)]
    array = hn.estimate_with_labels(judge, labels)
    assert (row.mean, row.se, row.ci_low, row.judge) == (array.mean, array.se, array.ci_low, array.judge)
    assert (folder / "a.csv").read_bytes() == before
    as_rows = [{"question": question, "label": label} for question, label in known.items()]
    assert hn.analyze("a.csv", labels=as_rows).estimates[0].mean == row.mean
    (folder / "labels.jsonl").write_text("".join(json.dumps(item) + "\n" for item in as_rows))
    assert hn.analyze("a.csv", labels="labels.jsonl").estimates[0].mean == row.mean


def test_a_difference_that_is_the_judges_alone_is_no_longer_significant(folder: Path) -> None:
    path = write_labels(folder / "labels.csv", "question,model,label", random_rows(folder, 200))
    naive = hn.compare("a.csv", "b.csv").comparisons[0]
    row = hn.compare("a.csv", "b.csv", labels=path).comparisons[0]
    assert naive.verdict == "A better"
    assert row.verdict == "not separable"
    assert row.judge is not None
    assert naive.diff == pytest.approx(row.judge.mean_judge)
    assert row.judge.bias == pytest.approx((row.diff or 0) - (naive.diff or 0))
    means = [hn.analyze(f"{model}.csv", labels=path).estimates[0] for model in "ab"]
    assert row.diff == pytest.approx((means[0].mean or 0) - (means[1].mean or 0))
    assert None is row.wins_a is row.ties is row.correlation is row.p_sign


def close(one: Any, other: Any) -> bool:
    """Whether numbers agree to rounding, and all else exactly."""
    if isinstance(one, float):
        return one == pytest.approx(other, rel=1e-9)
    if hasattr(one, "n_labelled"):
        return all(
            close(getattr(one, name), getattr(other, name))
            for name in one.__dataclass_fields__
            if name != "_data_limit"
        )
    return bool(one == other)


def test_an_arena_says_of_its_pairs_what_compare_says(folder: Path) -> None:
    path = write_labels(folder / "labels.csv", "question,model,label", random_rows(folder))
    pair = hn.arena(["a.csv", "b.csv"], labels=path).boards[0].pairs[0]
    row = hn.compare("a.csv", "b.csv", labels=path).comparisons[0]
    for name in ("diff", "se", "df", "ci_low", "ci_high", "p_value", "judge", "estimand", "diagnostics"):
        assert close(getattr(pair, name), getattr(row, name)), name
    models = hn.arena(["a.csv", "b.csv"], labels=path).boards[0].models
    assert [model.judge for model in models] == [hn.analyze(f"{m}.csv", labels=path).estimates[0].judge for m in "ab"]
    frames = hn.arena(["a.csv", "b.csv"], labels=path).to_frames()
    assert "judge_bias" in frames["pairs"]


def test_an_arena_says_nothing_of_single_questions_and_ranks_by_its_pairs(tmp_path: Path) -> None:
    """The judge is right on all labels, which does not show that it is right everywhere; corrected values differ
    on every question, though the verdicts do not.
    """
    rng, models, labels = np.random.default_rng(31), [], []
    truth = (rng.random((N, 3)) < 0.5).astype(float)
    truth[:, 1] = np.where(np.arange(N) % 40 == 0, 0, truth[:, 0])
    for m in range(3):
        name = "abc"[m]
        models.append(pd.DataFrame({"model": name, "question": [f"q{i}" for i in range(N)], "score": truth[:, m]}))
        labels += [{"model": name, "question": f"q{i}", "label": truth[i, m]} for i in rng.permutation(N)[:60]]
    arena = hn.arena(models, labels=labels)
    (board,) = arena.boards
    assert board.benchmark.rank_method == "holm"
    assert None is board.benchmark.dead_for_top is board.benchmark.same_best is board.benchmark.solved_by_all
    assert {(row.tau, row.suspect) for row in board.questions} == {(None, None)}
    assert "score differently" not in str(arena)
    told = {frozenset((p.model_a, p.model_b)) for p in arena.pairs if p.p_adjusted is not None and p.p_adjusted < 0.05}
    for model in board.models:
        apart = sum(model.model in pair for pair in told)
        assert (model.rank_high or 0) - (model.rank_low or 0) == 2 - apart


def test_a_gate_holds_the_corrected_mean_against_its_threshold(folder: Path) -> None:
    path = write_labels(folder / "labels.csv", "question,model,label", random_rows(folder, 200))
    row = hn.gate("a.csv", floor=0.7, labels=path).rows[0]
    assert row.estimate == hn.analyze("a.csv", labels=path).estimates[0].mean
    assert "judge_corrected" in row.diagnostics
    assert hn.gate("a.csv", floor=0.7).passed
    assert not hn.gate("a.csv", floor=0.7, labels=path).passed
    both = hn.gate("b.csv", "a.csv", labels=path)
    assert hn.gate("b.csv", "a.csv").outcome == "fail"
    assert both.outcome == "pass"
    with pytest.raises(hn.InputError, match="with labels a gate holds"):
        hn.gate("b.csv", "a.csv", ratio=0.9, labels=path)


def test_every_renderer_names_the_estimand(folder: Path) -> None:
    path = write_labels(folder / "labels.csv", "question,model,label", random_rows(folder))
    results: list[Any] = [
        hn.analyze("a.csv", labels=path),
        hn.compare("a.csv", "b.csv", labels=path),
        hn.arena(["a.csv", "b.csv"], labels=path),
    ]
    for result in results:
        for form in ("table", "markdown", "latex", "sentence"):
            assert "people" in hn.render(result, form), form
        assert "people_labels" in hn.render(result, "json")
        assert "people_labels" in hn.render(result, "csv") or isinstance(result, hn.Arena)
    for i, result in enumerate(results):
        pages = hn.write_html(result, folder / f"page{i}.html" if i < 2 else folder / "arena")
        assert any("people" in page.read_text() for page in pages if page.suffix == ".html")


@pytest.mark.parametrize(
    ("header", "rows", "words"),
    [
        ("question,label", [("nobody", 1), *[(f"q{i * i}", 1) for i in range(9)]], "'nobody'.*match no answer"),
        ("question,label", [("q1", 1), ("q2", 0), ("q1", 0)], "q1' is labelled 1 in line 2 and 0 in line 4"),
        ("question,label", [(f"q{i}", 1 + i % 5) for i in range(0, N, 4)], r"the labels go from 1 to 5.*label_range"),
        ("question,label", [(f"q{i}", "") for i in range(5)], "no row has a label yet"),
        ("question,verdict", [("q1", 1)], "no column 'label'. There are question, verdict"),
        ("question,label", [("q1", "maybe")], "line 2: label 'maybe' is not a finite number"),
        ("question,label", [("q1", 1)], "fewer than two labelled questions"),
        ("question,label,chance", [("q1", 1, 2), ("q2", 0, 2)], "chance 2 is not a probability"),
    ],
)  # fmt: skip
def test_labels_that_cannot_be_used_are_refused_in_one_paragraph(
    folder: Path, capsys: pytest.CaptureFixture[str], header: str, rows: Any, words: str
) -> None:
    path = write_labels(folder / "labels.csv", header, rows)
    assert main(["analyze", "a.csv", "--labels", path, "-q"]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    with pytest.raises(hn.InputError, match=words):
        hn.analyze("a.csv", labels=path)


def test_labels_of_one_model_only_are_refused_in_a_comparison(folder: Path) -> None:
    path = write_labels(folder / "labels.csv", "question,model,label", random_rows(folder, models="a"))
    with pytest.raises(hn.InputError, match="each needs labels of its own answers"):
        hn.compare("a.csv", "b.csv", labels=path)
    bare = write_labels(folder / "bare.csv", "question,label", [(q, y) for q, _, y in random_rows(folder, models="a")])
    with pytest.raises(hn.InputError, match="add a column `model`"):
        hn.compare("a.csv", "b.csv", labels=bare)


def test_a_label_is_of_one_run_where_two_are_of_one_model(folder: Path) -> None:
    """Labels of one run's answers say nothing of the other's, whatever the model is called."""
    for name in "ab":
        text = (folder / f"{name}.csv").read_text().replace(f",{name},", ",m,")
        (folder / f"{name}.csv").write_text(text)
    rows = random_rows(folder)
    path = write_labels(folder / "labels.csv", "question,model,label", [(q, "m", y) for q, _, y in rows[::2]])
    with pytest.raises(hn.InputError, match=r"line 2: several of the runs are of m, .* write the run in the column"):
        hn.compare("a.csv", "b.csv", labels=path)
    path = write_labels(folder / "labels.csv", "question,model,label", [(q, f"{m}.csv", y) for q, m, y in rows])
    named = hn.compare("a.csv", "b.csv", labels=path).comparisons[0]
    for name, mean in (("a", named.mean_a), ("b", named.mean_b)):
        mine = write_labels(folder / "mine.csv", "question,label", [(q, y) for q, m, y in rows if m == name])
        assert hn.analyze(f"{name}.csv", labels=mine).estimates[0].mean == mean


def test_several_people_are_repeats_of_the_label(folder: Path) -> None:
    rows = [(q, y) for q, _, y in random_rows(folder, models="a")]
    both = [(q, who, y if who == "x" or i % 10 else 1 - y) for i, (q, y) in enumerate(rows) for who in "xy"]
    path = write_labels(folder / "labels.csv", "question,person,label", both)
    row = hn.analyze("a.csv", labels=path).estimates[0]
    assert row.judge is not None
    assert (row.judge.n_labelled, row.judge.n_labels) == (100, 200)
    mean = [{"question": q, "label": y if i % 10 else 0.5} for i, (q, y) in enumerate(rows)]
    assert row.mean == pytest.approx(hn.analyze("a.csv", labels=mean).estimates[0].mean)


def test_a_range_of_labels_is_mapped_on_that_of_the_scores(folder: Path) -> None:
    rows = [(q, y) for q, _, y in random_rows(folder, models="a")]
    five = write_labels(folder / "five.csv", "question,label", [(q, 1 + 4 * y) for q, y in rows])
    one = write_labels(folder / "one.csv", "question,label", rows)
    assert hn.analyze("a.csv", labels=five, label_range=(1, 5)).estimates[0].mean == pytest.approx(
        hn.analyze("a.csv", labels=one).estimates[0].mean
    )
    with pytest.raises(hn.InputError, match="a label lies outside `label_range` 1, 4"):
        hn.analyze("a.csv", labels=five, label_range=(1, 4))
    assert main(["analyze", "a.csv", "--labels", five, "--label-range", "1,5", "-q"]) == 0


def test_what_labels_do_not_allow_for_is_refused(folder: Path) -> None:
    path = write_labels(folder / "labels.csv", "question,model,label", random_rows(folder))
    for wrong in (
        {"test": "sign"}, {"se": "cr3"}, {"unpaired": True}, {"looks": 5}, {"complete": "b.csv"}, {"by": "topic"},
        {"interval": "bootstrap"}, {"label_range": (5, 1)}, {"labels_scorer": "human"},
    ):  # fmt: skip
        with pytest.raises(hn.InputError):
            hn.compare("a.csv", "b.csv", labels=path, **wrong)
    with pytest.raises(hn.InputError, match="give `labels` or `labels_scorer`, too"):
        hn.analyze("a.csv", labels_at_random=True)


def test_tasks_of_a_group_with_few_labels_share_one_part(tmp_path: Path) -> None:
    rng = np.random.default_rng(12)
    lines, labels = ["task,question,score"], []
    truths = []
    for t in range(20):
        truth, judge = judged(rng, 40)
        truths.append(truth)
        lines += [f"t{t},{i},{x:g}" for i, x in enumerate(judge)]
    for at in rng.permutation(800)[:60].tolist():
        labels.append({"task": f"t{at // 40}", "question": str(at % 40), "label": truths[at // 40][at % 40]})
    (tmp_path / "run.csv").write_text("\n".join(lines) + "\n")
    result = hn.analyze(tmp_path / "run.csv", labels=labels, groups={"all": "t*"})
    assert [row.task for row in result.estimates] == ["all"]
    row = result.estimates[0]
    assert any("fewer than two labelled questions" in note for note in noted(result))
    assert row.judge is not None
    assert row.judge.n_labelled == 60
    known = {(label["task"], label["question"]): label["label"] for label in labels}
    scores = [float(line.split(",")[2]) for line in lines[1:]]
    flat = hn.estimate_with_labels(scores, [known.get((f"t{at // 40}", str(at % 40)), np.nan) for at in range(800)])
    assert row.mean == pytest.approx(flat.mean)
    assert row.se == pytest.approx(flat.se, rel=0.1)


def test_a_second_scorer_can_be_the_label(folder: Path) -> None:
    rows = random_rows(folder, models="a")
    lines = (folder / "a.csv").read_text().splitlines()[1:]
    table = ["question,scorer,score", *(f"{line.split(',')[0]},judge,{line.split(',')[2]}" for line in lines)]
    known = {q: y for q, _, y in rows}
    table += [f"q{i},human,{known.get(f'q{i}', '')}" for i in range(N)]
    (folder / "both.csv").write_text("\n".join(table) + "\n")
    row = hn.analyze("both.csv", labels_scorer="human").estimates
    assert [item.scorer for item in row] == ["judge"]
    expected = hn.analyze("a.csv", labels=[{"question": q, "label": y} for q, y in known.items()]).estimates[0]
    assert (row[0].mean, row[0].se) == (expected.mean, expected.se)
    with pytest.raises(hn.InputError, match="`labels_scorer` 'nobody' is not one of several scorers"):
        hn.analyze("both.csv", labels_scorer="nobody")


def scored(scorer: str, scores: Any, asked: Any) -> list[dict[str, Any]]:
    return [{"question": f"q{i}", "scorer": scorer, "score": scores[i]} for i in asked]


@pytest.mark.parametrize("m", [100, N])
def test_people_who_scored_the_questions_in_another_order_label_the_right_ones(m: int) -> None:
    rng = np.random.default_rng(21)
    truth, judge = judged(rng)
    asked = rng.permutation(N)[:m]
    table = pd.DataFrame([*scored("judge", judge, range(N)), *scored("human", truth, asked)])
    row = hn.analyze(table, labels_scorer="human").estimates[0]
    expected = hn.estimate_with_labels(judge, np.where(np.isin(np.arange(N), asked), truth, np.nan))
    assert (row.mean, row.se) == pytest.approx((expected.mean, expected.se))
    assert row.judge is not None
    assert expected.judge is not None
    assert row.judge.bias_se == pytest.approx(expected.judge.bias_se)


@pytest.mark.parametrize("people", ["human", "human/fluent"])
def test_people_who_score_several_values_label_each_by_its_own(people: str) -> None:
    rng = np.random.default_rng(22)
    truth, rows = {}, []
    for value, p in (("correct", 0.5), ("fluent", 0.9)):
        truth[value], judge = judged(rng, p=p)
        rows += [
            *scored(f"judge/{value}", judge, range(N)),
            *scored(f"human/{value}", truth[value], rng.permutation(N)[:200]),
        ]
    found = {row.scorer: row.mean for row in hn.analyze(pd.DataFrame(rows), labels_scorer=people).estimates}
    assert list(found) == (["judge/correct", "judge/fluent"] if people == "human" else ["judge/fluent"])
    for scorer, mean in found.items():
        assert mean == pytest.approx(truth[scorer.partition("/")[2]].mean(), abs=0.06)


def tasks_of(truths: list[Any], judges: list[Any]) -> list[dict[str, Any]]:
    return [
        {"task": f"t{t}", "question": str(i), "score": x, "truth": y}
        for t, (truth, judge) in enumerate(zip(truths, judges, strict=True))
        for i, (y, x) in enumerate(zip(truth, judge, strict=True))
    ]


def test_labels_that_may_be_of_either_of_two_tasks_are_refused() -> None:
    rng = np.random.default_rng(23)
    each = [judged(rng, 100), judged(rng, 120)]
    rows = tasks_of([x[0] for x in each], [x[1] for x in each])
    table = pd.DataFrame([{**row, "truth": None} for row in rows]).drop(columns="truth")
    labels = [{"question": row["question"], "label": row["truth"]} for row in rows[:100:2]]
    with pytest.raises(hn.InputError, match=r"the tasks t0 and t1 both have a question .0..*add a column `task`"):
        hn.analyze(table, labels=labels)
    alone = [{"question": row["question"], "label": row["truth"]} for row in rows[200:]]  # t0 ends at 99
    assert [row.task for row in hn.analyze(table, labels=alone, labels_at_random=True).estimates] == ["t1"]


@pytest.mark.parametrize("written", [False, True])
def test_labels_of_one_task_do_not_correct_its_group(written: bool) -> None:
    """The judge is right about t0 and lenient about t1 and t2: labels of t0 alone say nothing of these."""
    rng = np.random.default_rng(24)
    each = [judged(rng, 300, specificity=s, p=p) for s, p in ((0.9, 0.6), (0.4, 0.3), (0.4, 0.5))]
    rows = tasks_of([x[0] for x in each], [x[1] for x in each])
    table = pd.DataFrame(rows).drop(columns="truth")
    drawn = [rows[i] for i in rng.permutation(900)[:240]]
    labels = [{"task": x["task"], "question": x["question"], "label": x["truth"], "chance": 240 / 900} for x in drawn]
    if written:  # a drawn file, of which a person has filled in t0 only
        labels = [{**x, "label": x["label"] if x["task"] == "t0" else None} for x in labels]
    else:
        labels = [{**x, "chance": None} for x in labels if x["task"] == "t0"]
    with pytest.raises(hn.InputError, match="are not a random subset: they are not of all tasks alike"):
        hn.analyze(table, labels=labels, groups={"all": "t*"})


@pytest.mark.parametrize(("low", "high"), [(1, 5), (0, 1)])
def test_labels_on_another_scale_than_scores_without_a_range_are_refused(low: float, high: float) -> None:
    rng = np.random.default_rng(25)
    truth = rng.random(N)
    labels = part_of(low + (high - low) * truth, rng, 100)
    with pytest.raises(hn.InputError, match="which looks like another scale"):
        hn.estimate_with_labels(np.round(100 * truth), labels)
    with pytest.raises(hn.InputError, match=r"^the labels .*scale: give labels on the scale of the scores$"):
        hn.estimate_with_labels(np.round(100 * truth), labels)
    lenient = np.round(np.minimum(10, 4 + 8 * truth))
    assert hn.estimate_with_labels(lenient, part_of(np.round(1 + 9 * truth), rng, 100)).mean


def test_advice_on_arrays_names_the_keywords_of_their_function() -> None:
    scores = np.random.default_rng(27).random(200)
    first = np.where(np.arange(200) < 60, scores, np.nan)
    with pytest.raises(hn.InputError, match="or say `at_random=True` if this is one"):
        hn.estimate_with_labels(scores, first)
    assert hn.estimate_with_labels(scores, first, at_random=True).mean


def test_labels_of_one_task_on_another_scale_take_no_other_task_away() -> None:
    rng = np.random.default_rng(26)
    truth = {"percent": 100 * rng.random(N), "share": 2 * rng.random(N)}
    rows = [{"task": task, "question": f"q{i}", "score": x} for task, all_ in truth.items() for i, x in enumerate(all_)]
    asked = rng.permutation(N)[:100].tolist()
    labels = [{"task": t, "question": f"q{i}", "label": min(truth[t][i], 2.0)} for t in truth for i in asked]
    found = hn.analyze(pd.DataFrame(rows), labels=labels)
    assert [row.task for row in found.estimates] == ["share"]
    assert any(note.startswith("left out: percent") for note in noted(found))


def test_labels_of_questions_that_no_run_has_are_refused_in_a_blind_file_too(folder: Path) -> None:
    """A spreadsheet may have cut the zeros off some names, and the others are not a random subset."""
    rows = [asdict(row) for row in hn.label_sample("a.csv", 100).rows]
    labels = [{**row, "label": 1 - i % 2} for i, row in enumerate(rows)]
    for row in labels[:10]:
        row["question"] = "00" + str(row["question"])
    with pytest.raises(hn.InputError, match="10 of 100 labels match no answer"):
        hn.analyze("a.csv", labels=labels)


def test_no_answer_id_is_a_number_to_a_spreadsheet() -> None:
    assert not any(answer_id("m", "t", str(i), 0)[0].isdigit() for i in range(100))


def test_one_person_who_labels_an_answer_twice_alike_has_given_one_label(folder: Path) -> None:
    labels = [{"question": q, "label": y} for q, _, y in random_rows(folder, models="a")]
    once, twice = (hn.analyze("a.csv", labels=x).estimates[0] for x in (labels, labels * 2))
    assert once == twice


# the part to be labelled


def filled(path: Path, truth: Any) -> list[dict[str, str]]:
    """Fill in the column of labels as a person would, who sees question and answer only."""
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    ids = {answer_id(model, "table", f"q{i}", 0): int(truth[model][i]) for model in "ab" for i in range(N)}
    for row in rows:
        row["label"] = str(ids[row["answer_id"]])
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return rows


def test_a_drawn_file_goes_to_a_person_and_back(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["label", "a.csv", "b.csv", "-n", "100", "--seed", "3", "-o", "labels.csv"]) == 0
    assert "wrote labels.csv" in capsys.readouterr().err
    header = (folder / "labels.csv").read_text().splitlines()[0]
    assert header == "answer_id,task,question,repeat,text,target,answer,label,chance,seed"
    rows = filled(folder / "labels.csv", np.load("truth.npz"))
    assert len(rows) == 200
    assert {row["seed"] for row in rows} == {"3"}
    assert {float(row["chance"]) for row in rows} == {0.25}
    assert all(row["answer"].startswith("'=cmd|") for row in rows)
    row = hn.compare("a.csv", "b.csv", labels="labels.csv").comparisons[0]
    assert row.judge is not None
    assert (row.judge.n_labelled, row.judge.n_labels) == (100, 200)
    with pytest.raises(hn.InputError, match="is there already, and may hold labels"):
        hn.label_sample("a.csv", 10, "labels.csv")
    found = hn.label_sample("a.csv", 10, "labels.csv", force=True)
    assert found.rows
    assert str(found) == found.sentence == found.verdict == found._repr_html_() == "10 answers to label"


def test_too_few_clusters_for_the_judge_are_told_when_the_file_is_written(folder: Path) -> None:
    notes = noted(hn.label_sample("a.csv", 60, cluster="topic"))
    assert any("12 clusters are drawn, and labels of fewer than 30 count alone" in note for note in notes)
    assert not any("count alone" in note for note in noted(hn.label_sample("a.csv", 60)))
    assert not any("count alone" in note for note in noted(hn.label_sample("a.csv", 160, cluster="topic")))
    assert any("20 questions are drawn" in note for note in noted(hn.label_sample("a.csv", 20)))


@pytest.mark.parametrize(
    ("function", "keywords", "why"),
    [
        (hn.analyze, {"seed": 3}, "leave `seed=3` or the labels out"),
        (hn.analyze, {"by": ["topic"]}, "each task, over all questions of a finished run.*leave `by` or"),
        (hn.compare, {"questions": 3}, "leave `questions` or the labels out"),
        (hn.analyze, {"test": "sign"}, "one model|CR2 standard error, t test"),
    ],
)
def test_what_labels_refuse_is_refused_with_its_own_reason(
    folder: Path, function: Any, keywords: dict[str, Any], why: str
) -> None:
    path = write_labels(folder / "labels.csv", "question,model,label", random_rows(folder))
    runs = ["a.csv", "b.csv"] if function is hn.compare else ["a.csv"]
    with pytest.raises(hn.InputError, match=why):
        function(*runs, labels=path, **keywords)


def test_a_person_who_stops_early_has_labelled_a_random_part(folder: Path) -> None:
    hn.label_sample("a.csv", 100, "labels.csv", cluster="topic")
    rows = filled(folder / "labels.csv", np.load("truth.npz"))
    clusters = [int(row["question"][1:]) // 5 for row in rows]
    assert len(set(clusters)) == 20
    assert sum(a != b for a, b in pairwise(clusters)) == 19
    for row in rows[50:]:
        row["label"] = ""
    result = hn.analyze("a.csv", labels=rows, cluster="topic")
    assert result.estimates[0].judge is not None
    assert result.estimates[0].judge.n_labelled == 50
    assert any("50 rows have no label" in note for note in noted(result))


def test_drawing_is_repeatable_blind_and_in_proportion(folder: Path) -> None:
    first, again, other = (hn.label_sample("a.csv", 40, seed=seed).rows for seed in (1, 1, 2))
    assert first == again != other
    assert {row.score for row in first} == {row.model for row in first} == {None}
    shown = hn.label_sample("a.csv", 40, blind=False).rows
    assert {row.model for row in shown} == {"a"}
    assert {row.score for row in shown} == {0.0, 1.0}


@pytest.mark.simulation
def test_a_part_drawn_by_score_is_weighted(tmp_path: Path) -> None:
    """Graded scores: uncertain ones are drawn more often, and the estimate is unbiased all the same."""
    rng = np.random.default_rng(13)
    n, found = 600, []
    for _ in range(40):
        judge = np.round(rng.random(n) ** 0.5, 3)
        truth = np.clip(judge - 0.3 * judge * (1 - judge) + 0.1 * rng.normal(size=n), 0, 1)
        (tmp_path / "run.csv").write_text("question,score\n" + "".join(f"{i},{x:g}\n" for i, x in enumerate(judge)))
        rows = hn.label_sample(tmp_path / "run.csv", 120, by_score=True, seed=int(rng.integers(1000))).rows
        assert len({row.chance for row in rows}) > 20
        labels = [{"question": r.question, "label": truth[int(r.question)], "chance": r.chance} for r in rows]
        row = hn.analyze(tmp_path / "run.csv", labels=labels).estimates[0]
        found.append(((row.mean or 0) - truth.mean()) / (row.se or 1))
    assert abs(np.mean(found)) < 3 / np.sqrt(40)
    assert np.std(found) < 1.2


@pytest.mark.simulation
def test_a_part_drawn_by_score_is_weighted_where_a_person_stops_early(tmp_path: Path) -> None:
    """What was drawn with certainty stands for others, too, as soon as some of the part has no label."""
    rng = np.random.default_rng(14)
    n, found = 300, []
    for _ in range(60):
        judge = np.where(rng.random(n) < 0.5, rng.choice([0.0, 1.0], n), np.round(rng.uniform(0.4, 0.6, n), 3))
        truth = np.clip(judge - 1.6 * judge * (1 - judge), 0, 1)
        (tmp_path / "run.csv").write_text("question,score\n" + "".join(f"{i},{x:g}\n" for i, x in enumerate(judge)))
        rows = hn.label_sample(tmp_path / "run.csv", 210, by_score=True, seed=int(rng.integers(1000))).rows
        labels = [{"question": r.question, "label": truth[int(r.question)], "chance": r.chance} for r in rows[:60]]
        row = hn.analyze(tmp_path / "run.csv", labels=labels).estimates[0]
        found.append(((row.mean or 0) - truth.mean()) / (row.se or 1))
    assert abs(np.mean(found)) < 3 / np.sqrt(60)


def test_people_who_score_one_named_value_score_what_the_judge_scores() -> None:
    def scored(scorer: str) -> Scores:
        return Scores("t", "mean", scorer, Questions(("a",)), np.ones((1, 1)))

    judge, grade, note = scored("judge"), scored("people/grade"), scored("people/note")
    assert _people_scores(judge, [grade]) is grade
    assert _people_scores(judge, [grade, note]) is None
    assert _people_scores(scored("judge/note"), [grade, note]) is note
    assert _people_scores(scored("judge/note"), [grade]) is None
    assert _people_scores(scored("judge/note"), [scored("people")]) is not None
