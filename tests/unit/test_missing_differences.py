"""Answers that are missing, and what a difference says of them."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest

import harness_noise as hn
from harness_noise.analysis.comparison import compare_runs
from harness_noise.cli import main
from harness_noise.extra.arena.pairs import grid, pairs_of
from harness_noise.extra.arena.scoring import MeasuredRun
from harness_noise.io.joining import with_causes
from harness_noise.report.sentences import sentence, verdict_line
from harness_noise.settings import Settings
from harness_noise.stats.cluster_variance import clustered_variance
from harness_noise.stats.contrast import design
from harness_noise.stats.missing import t_reach
from support.notes import noted


def failed_where_it_was_right() -> tuple[np.ndarray, np.ndarray]:
    """A lacks 20 of 100 answers, all to questions that B got right; of the others it got as many as B, and 10 more."""
    old = (np.arange(100) < 62).astype(float)
    new = np.where(np.arange(100) < 20, np.nan, (np.arange(100) < 72).astype(float))
    return new, old


def test_missing_answers_that_could_turn_the_verdict_are_said() -> None:
    new, old = failed_where_it_was_right()
    row = hn.estimate_difference(new, old)
    assert row.verdict == "A better"
    assert "missing_matters" in row.diagnostics
    assert "the 20 missing answers could change this to “" in verdict_line(row)
    assert "the 20 missing answers could change this to “" in sentence(row)
    as_wrong = hn.estimate_difference(new, old, missing="zero")
    assert as_wrong.diff == pytest.approx(-0.1)
    assert "missing_matters" not in as_wrong.diagnostics


def test_the_note_has_both_ends(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    new, old = failed_where_it_was_right()
    paths = []
    for name, values in (("new", new), ("old", old)):
        rows = [f"q{i},{'' if np.isnan(x) else int(x)}" for i, x in enumerate(values)]
        (tmp_path / f"{name}.csv").write_text("question,score\n" + "\n".join(rows) + "\n")
        paths.append(str(tmp_path / f"{name}.csv"))
    assert main(["compare", *paths]) == 0
    shown = capsys.readouterr()
    assert "20 answers are missing, and A − B lies between −10 and 10 points whatever" in shown.err
    assert "missing_matters" in shown.out
    assert main(["compare", *paths, "--details"]) == 0
    shown = capsys.readouterr()
    assert "20 answers are missing, and A − B lies between −10 and 10 points whatever" in shown.err
    assert "--missing zero counts them as wrong" in " ".join(shown.out.split())


@pytest.mark.parametrize("typed", [[], ["--range", "1,10"], ["--missing", "limit=zero"]])
def test_of_grades_no_advice_names_zero(tmp_path: Path, capsys: pytest.CaptureFixture[str], typed: list[str]) -> None:
    paths = []
    for name, shift in (("new", 1), ("old", 0)):
        rows = [f"q{i},{'' if i % 7 == shift else 1 + (3 * i + shift * (i % 4)) % 10}" for i in range(60)]
        (tmp_path / f"{name}.csv").write_text("question,score\n" + "\n".join(rows) + "\n")
        paths.append(str(tmp_path / f"{name}.csv"))
    assert main(["compare", *paths, "--details", *typed]) == 0
    shown = capsys.readouterr()
    said = " ".join((shown.out + shown.err).split())
    assert "--missing zero" not in said
    assert "as wrong" not in said
    if "--range" in typed:
        assert "counting all missing answers at the lowest score of the range" in said
    else:
        assert "--range LOW,HIGH shows what they could change" in said


def test_a_few_missing_answers_of_many_do_not_matter() -> None:
    rng = np.random.default_rng(1)
    a, b = ((rng.random((500, 5)) < p).astype(float) for p in (0.6, 0.5))
    a[3, 2] = np.nan
    row = hn.estimate_difference(a, b)
    assert row.n_missing == 1
    assert "missing_matters" not in row.diagnostics


def test_an_arena_says_it_of_the_same_pairs() -> None:
    rng = np.random.default_rng(3)
    keys = hn.Questions(tuple(map(str, range(80))))
    runs = []
    for name, holes in (("whole", 0), ("one hole", 1), ("many holes", 16)):
        values = (rng.random((80, 2)) < 0.6).astype(float)
        values[:holes, 0] = np.nan
        causes = {"agent": holes // 4, "refused": holes - holes // 4} if holes else {}
        scores = hn.Scores("t", "acc", "none", keys, values, n_missing=holes, missing=causes)
        runs.append(hn.Run(model=name, name=name, harness="array", scores=(scores,)))
    pairs = list(hn.arena(runs).pairs)
    told = {(row.model_a, row.model_b): "missing_matters" in row.diagnostics for row in pairs}
    assert set(told.values()) == {True, False}
    causes_of = {frozenset((row.model_a, row.model_b)): row.missing for row in pairs}
    for a, b in ((0, 1), (0, 2), (1, 2)):
        (row,) = hn.compare(runs[a], runs[b]).comparisons
        names = (runs[a].model, runs[b].model)
        assert told.get(names, told.get(names[::-1])) == ("missing_matters" in row.diagnostics)
        assert causes_of[frozenset(names)] == row.missing
    assert hn.arena(runs).to_frame("pairs")["missing_refused"].tolist() == [
        row.missing.get("refused", 0) for row in pairs
    ]


def test_repeats_that_are_runs_are_said_of_a_pair_whatever_they_score() -> None:
    for repeats in (np.ones((40, 3)), np.repeat(np.arange(40) % 2, 3).reshape(40, 3)):
        runs = [
            hn.Run(model=name, name=name, harness="array", scores=(hn.Scores(
                "t", "acc", "none", hn.Questions(tuple(map(str, range(40)))), repeats * 1.0,
                higher_is_better=True, repeats_are_runs=True),))
            for name in "ab"
        ]  # fmt: skip
        for row in (*hn.compare(*runs).comparisons, *hn.arena(runs).pairs):
            assert "shared_repeat_noise" in row.diagnostics


def test_answers_that_are_left_out_matter_beside_others_that_count_as_wrong() -> None:
    values, keys = np.stack([np.arange(100) % 2, np.arange(100) % 3 > 0]).astype(float), tuple(map(str, range(100)))
    values[0, :20] = np.nan
    values[0, 20:25] = 0.0
    missing = {"n_missing": 25, "n_zero": 5, "missing": {"agent": 5, "infrastructure": 20}}
    runs = [
        hn.Run(model=name, name=name, harness="array", scores=(
            hn.Scores("t", "acc", "none", hn.Questions(keys), column[:, None], **more),))
        for name, column, more in (("a", values[0], missing), ("b", values[1], {}))
    ]  # fmt: skip
    for rule in ("agent=zero", "zero,infrastructure=drop"):
        measured, settings = [MeasuredRun(run.name, run, run.scores) for run in runs], Settings(missing=rule)
        pairs, _ = pairs_of(measured, grid(measured, None), None, settings)
        assert pairs is not None
        rows = [*compare_runs([(runs[0], runs[1])], settings).comparisons, *pairs]
        assert all("missing_matters" in row.diagnostics for row in rows)


def test_scores_in_per_cent_beside_shares_are_asked_about() -> None:
    rng = np.random.default_rng(2)
    share = rng.random(40)
    runs = [hn.Run(model=name, name=name, harness="array", scores=(hn.Scores(
        "t", "score", "none", hn.Questions(tuple(map(str, range(40)))), values[:, None]),))
        for name, values in (("pct", 100 * share), ("half", share))]  # fmt: skip
    assert any("is one of them in %?" in note for note in noted(hn.compare(*runs)))
    assert not any("per cent" in note for note in noted(hn.compare(runs[0], runs[0])))


def test_a_cause_that_the_log_does_not_give_changes_nothing_and_is_said(tmp_path: Path) -> None:
    (tmp_path / "m.csv").write_text("question,score\n" + "".join(f"q{i},{'' if i < 3 else i % 2}\n" for i in range(20)))
    analysis = hn.analyze(tmp_path / "m.csv", missing="infrastructure=zero")
    assert analysis.estimates[0].n_questions == 17
    assert any("3 answers have no score and the run does not say why" in note for note in noted(analysis))
    with pytest.raises(hn.InputError, match="arrays do not say why"):
        hn.estimate([0.0, 1.0, 1.0], missing="infrastructure=zero")


def test_a_cause_that_no_score_lacks_for_is_said_though_a_cost_is_missing() -> None:
    questions = hn.Questions(tuple("abcd"), "id")
    score = hn.Scores("t", "acc", "none", questions, np.array([[1.0], [0.0], [1.0], [0.0]]))
    cost = hn.Scores("t", "cost", "none", questions, np.array([[1.0], [2.0], [3.0], [np.nan]]), n_missing=1, unit="USD")
    run = with_causes(hn.Run("m", "m", "array", scores=(score, cost)), "limit=zero")
    assert [note.code for note in run.notes] == ["missing", "missing_without_cause"]
    assert "no answer is missing for this cause" in run.notes[1].as_text()


def test_graded_scores_between_the_ends_may_change_most() -> None:
    """With .65 in place of the missing score A is better; with 0 or 1 nothing can be told."""
    for seed in range(400):
        rng = np.random.default_rng(seed)
        b = rng.uniform(0.3, 0.7, 50)
        a = b + np.clip(rng.normal(0.017, 0.06, 50), -0.25, 0.25)
        b[0] = 0.5
        told = {fill: hn.estimate_difference(np.r_[fill, a[1:]], b).verdict for fill in (0.0, 0.6, 1.0)}
        lacking = hn.estimate_difference(np.r_[np.nan, a[1:]], b)
        if told == {0.0: "not separable", 0.6: "A better", 1.0: "not separable"} and lacking.verdict == told[0.0]:
            assert lacking.if_missing == "could change the verdict"
            return
        if lacking.if_missing == "could not change the verdict":
            between = {hn.estimate_difference(np.r_[x, a[1:]], b).verdict for x in np.linspace(0, 1, 21)}
            assert between == {lacking.verdict}
    raise AssertionError("no such case")


def lacking(seed: int, n: int, K: int, holes: int, gain: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """Two runs of 0/1 answers to questions of one difficulty each; A lacks one answer to each of the first `holes`."""
    rng = np.random.default_rng(seed)
    p = rng.random((n, 1))
    a, b = ((rng.random((n, K)) < np.clip(p + more, 0, 1)).astype(float) for more in (gain, 0.0))
    a[:holes, 0] = np.nan
    return a, b


@pytest.mark.parametrize("gain", [0.0, 0.25])
@pytest.mark.parametrize("clusters", [None, np.repeat(np.arange(60), 5)])
@pytest.mark.parametrize("K", [1, 5])
def test_a_few_answers_of_many_cannot_change_the_verdict(gain: float, clusters: np.ndarray | None, K: int) -> None:
    row = hn.estimate_difference(*lacking(3, 300, K, 3, gain), clusters)
    assert row.verdict == ("A better" if gain else "not separable")
    assert row.if_missing == "could not change the verdict"
    assert "missing answers could not change this" in sentence(row)


def test_nor_can_a_few_graded_ones() -> None:
    rng = np.random.default_rng(4)
    a, b = rng.uniform(0.2, 1, (400, 1)), rng.uniform(0, 0.8, (400, 1))
    a[:4] = np.nan
    assert hn.estimate_difference(a, b).if_missing == "could not change the verdict"


def test_in_a_cluster_scores_between_the_extremes_may_change_most() -> None:
    """With one or two of three answers right A is better, with none or all not: it is not said that none do."""
    clusters = np.r_[np.repeat(np.arange(12), 2), np.full(4, 12)]
    b, a = np.zeros(28), np.r_[np.tile([1.0, 0.0], 3), np.zeros(19), np.full(3, np.nan)]

    def told(*fill: float) -> str:
        return hn.estimate_difference(np.r_[a[:25], fill], b, clusters).verdict

    assert [told(0, 0, 0), told(0, 0, 1), told(1, 1, 1)] == ["not separable", "A better", "not separable"]
    row = hn.estimate_difference(a, b, clusters)
    assert (row.verdict, row.if_missing) == ("not separable", "not known")
    assert "3 answers are missing, and whether they could change this is not known" in sentence(row)


def test_whether_an_equivalence_stays_is_said_only_if_it_is_lost() -> None:
    rng = np.random.default_rng(5)
    b = (rng.random(200) < 0.5).astype(float)
    a = np.where(np.arange(200) < 12, 1 - b, b)
    a[199] = np.nan
    rows = [hn.estimate_difference(a, b, margin=margin) for margin in (0.02, 0.042, 0.05)]
    assert [row.verdict for row in rows] == ["not separable", "equivalent within 0.042", "equivalent within 0.05"]
    assert [row.if_missing for row in rows] == ["not known", "could change the verdict", "not known"]


def test_only_what_has_no_range_asks_for_one() -> None:
    rng = np.random.default_rng(6)
    a, b = 10 * rng.random((60, 1)), 10 * rng.random((60, 1))
    a[:9] = np.nan
    assert "`range=(LOW, HIGH)` shows what they could change" in sentence(hn.estimate_difference(a, b))
    assert "`range=" not in sentence(hn.estimate_difference(a, b, range=(0, 10)))


@pytest.mark.parametrize("missing", [3, 9, 15])
@pytest.mark.parametrize("seed", range(40))
def test_no_scores_move_t_beyond_what_is_said(seed: int, missing: int) -> None:
    """Questions in clusters and tasks, whose missing scores are drawn anywhere, and at the ends."""
    rng = np.random.default_rng(seed)
    n, T = int(rng.integers(30, 80)), int(rng.integers(1, 3))
    strata = rng.permutation(np.arange(n) % T)
    plan = design(n, rng.integers(0, 12, n) if seed % 3 else None, strata, rng.dirichlet(np.full(T, 5)))
    d = rng.normal(rng.normal() * 0.2, rng.uniform(0.1, 0.6), n)
    low, high = (np.where(np.arange(n) < missing, d + end * rng.uniform(0, 0.5, n), d) for end in (-1, 1))
    estimator = ("cr0", "cr1", "cr2", "cr3")[seed % 4]

    def t(x: np.ndarray) -> float:
        means = np.bincount(strata, weights=x) / np.bincount(strata)
        variance = clustered_variance(x - means[strata], plan, estimator)
        assert variance is not None
        return float(plan.weights @ x) / variance.value**0.5

    reach, ends = t_reach(low, high, plan, estimator), (t(low), t(high))
    for draw in range(40):
        share = rng.random(n) if draw % 2 else rng.integers(0, 2, n)
        one = t(low + share * (high - low))
        assert reach.low <= one <= reach.high
        assert not reach.rises or ends[0] - 1e-9 <= one <= ends[1] + 1e-9


def test_the_nearest_t_is_reached_if_few_scores_are_missing() -> None:
    rng = np.random.default_rng(0)
    d = rng.normal(1.5, 1.0, 40)
    low, high = (np.where(np.arange(40) < 6, d + end * 3, d) for end in (-1, 1))
    plan = design(40, None, np.zeros(40, dtype=int), np.ones(1))
    ts = []
    for ends in itertools.product((0, 1), repeat=6):
        x = np.where(np.arange(40) < 6, np.where(np.append(ends, np.zeros(34)) > 0, high, low), d)
        ts.append(x.mean() / (x.std(ddof=1) / 40**0.5))
    assert t_reach(low, high, plan, "cr1").low == pytest.approx(min(ts), rel=1e-6)
    assert t_reach(-high, -low, plan, "cr1").high == pytest.approx(-min(ts), rel=1e-6)


def test_a_large_difference_of_grades_is_said_to_stay_whatever_the_few_missing_ones_were() -> None:
    rng = np.random.default_rng(1)
    b = rng.integers(1, 8, 60).astype(float)
    a = np.clip(b + rng.integers(0, 4, 60), 1, 10)
    a[:4] = np.nan
    b[10:14] = np.nan
    row = hn.estimate_difference(a, b, range=(1, 10))
    assert (row.verdict, row.if_missing) == ("A better", "could not change the verdict")


def test_with_few_questions_that_may_all_differ_by_one_amount_nothing_is_promised() -> None:
    """All five right: the sign test shows nothing (p = .0625). Four of five right: A is better by t."""
    b = np.zeros(5)

    def told(*fill: float) -> str:
        return hn.estimate_difference(np.r_[1.0, 1.0, 1.0, fill], b, range=(0, 1)).verdict

    assert [told(0, 0), told(0, 1), told(1, 1)] == ["not separable", "A better", "not separable"]
    row = hn.estimate_difference(np.r_[1.0, 1.0, 1.0, np.nan, np.nan], b, range=(0, 1))
    assert (row.verdict, row.if_missing) == ("not separable", "not known")


def test_nor_with_few_clusters_of_equal_differences() -> None:
    plan = design(10, np.repeat(np.arange(5), 2), np.zeros(10, dtype=int), np.ones(1))
    d = np.full(10, 0.5)
    low, high = (np.r_[d[:9], end] for end in (0.4, 0.8))
    assert t_reach(low, high, plan, "cr2").p_flat == 2**-4
    assert t_reach(*(x + 0.5 * (np.arange(10) < 2) for x in (low, high)), plan, "cr2").p_flat == 0
