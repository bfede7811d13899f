"""Answers that are missing, and what a difference says of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import harness_noise as hn
from harness_noise.analysis.comparison import compare_runs
from harness_noise.cli import main
from harness_noise.leaderboard.pairs import MeasuredRun, grid, pairs_of
from harness_noise.report.sentences import sentence, verdict_line
from harness_noise.settings import Settings


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
    assert "its 20 missing answers could change this" in verdict_line(row)
    assert "its 20 missing answers could change this" in sentence(row)
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
    assert main(["compare", *paths, "--fail-on", "regression"]) == 0
    shown = capsys.readouterr()
    assert "20 answers are missing, and A − B lies between −0.1 and 0.1" in shown.err
    assert "--missing zero counts them as wrong" in " ".join(shown.out.split())


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
    assert any("is one of them in per cent?" in note for note in hn.compare(*runs).notes)
    assert not any("per cent" in note for note in hn.compare(runs[0], runs[0]).notes)


def test_a_cause_that_the_log_does_not_give_changes_nothing_and_is_said(tmp_path: Path) -> None:
    (tmp_path / "m.csv").write_text("question,score\n" + "".join(f"q{i},{'' if i < 3 else i % 2}\n" for i in range(20)))
    analysis = hn.analyze(tmp_path / "m.csv", missing="infrastructure=zero")
    assert analysis.estimates[0].n_questions == 17
    assert any("3 answers have no score and the log does not say why" in note for note in analysis.notes)
    with pytest.raises(hn.InputError, match="arrays do not say why"):
        hn.estimate([0.0, 1.0, 1.0], missing="infrastructure=zero")
