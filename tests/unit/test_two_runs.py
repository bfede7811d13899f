"""Two runs beside each other, joined or compared: their clusters, their directions, and what only one has."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import harness_noise as hn
from harness_noise import as_scores
from harness_noise.analysis.comparison import compare_runs
from harness_noise.analysis.repeats import as_repeats
from harness_noise.data.clusters import Fields
from harness_noise.data.questions import Questions
from harness_noise.data.scores import CorpusScores, Run, Scores
from harness_noise.errors import InputError
from harness_noise.settings import Settings
from support.notes import noted

RNG = np.random.default_rng(11)
KEYS = Questions(tuple("abcdefgh"))


def run_of(scores: np.ndarray, first: int = 0, clusters: list[str] | None = None) -> Run:
    item = as_scores(scores, clusters)
    keys = Questions(tuple(f"q{first + i}" for i in range(len(scores))))
    return Run("m", "r", "table", scores=(hn.Scores("t", "acc", "none", keys, item.values, clusters=item.clusters),))


def test_runs_that_were_read_with_a_factor_are_joined_without_it() -> None:
    """The levels are those of one run's answers."""
    run = run_of(np.array([[1.0, 0.0], [1.0, 1.0]]))
    labelled = replace(run, scores=(replace(run.scores[0], factors={"prompt": (("x", "y"),) * 2}),))
    joined = as_repeats([labelled, replace(labelled, name="other")])[0].scores[0]
    assert joined.values.tolist() == [[1, 0, 1, 0], [1, 1, 1, 1]]
    assert joined.factors is None


def test_joined_runs_keep_both_questions_of_one_id_and_say_so() -> None:
    first, other = (
        Run(
            "m",
            name,
            "table",
            scores=(Scores("t", "acc", "none", Questions(tuple("abc"), "id", texts), np.ones((3, 1))),),
        )
        for name, texts in (("one", ("x", "y", "z")), ("two", ("x", "y", "w")))
    )
    (joined,) = as_repeats([first, other])
    assert (~np.isnan(joined.scores[0].values)).sum(axis=1).tolist() == [2, 2, 1, 1]
    assert any("1 question shares an id but not their text: taken for different" in note for note in noted(joined))


def test_joined_runs_say_what_only_some_of_them_have() -> None:
    parts = [Scores(task, "acc", "none", Questions(tuple("abc")), np.ones((3, 1))) for task in "tu"]
    both, one = (Run("m", name, "table", scores=tuple(parts[:n])) for name, n in (("both", 2), ("one", 1)))
    (joined,) = as_repeats([both, one])
    assert noted(joined) == ("u, acc: only 1 of 2 runs have it",)


def test_the_fields_of_joined_runs_are_those_of_all_their_questions() -> None:
    runs = []
    for first in (0, 5):
        run = run_of(np.eye(20)[:, :2], first=first)
        kinds = Fields({"kind": ["ab"[i % 2] for i in range(first, first + 20)]})
        part = replace(run.scores[0], questions=replace(run.scores[0].questions, fields=kinds))
        runs.append(replace(run, name=f"r{first}", scores=(part,)))
    slices = hn.analyze(as_repeats(runs)[0], by="kind").slices
    assert [(row.slice, row.n_questions) for row in slices] == [("a", 13), ("b", 12)]


class TestClustersOfJoinedRuns:
    scores = (RNG.random((20, 1)) < 0.5).astype(float)
    labels = [f"c{i // 4}" for i in range(20)]  # noqa: RUF012

    def test_whichever_run_names_them(self) -> None:
        plain, named = run_of(self.scores), run_of(1 - self.scores, clusters=self.labels)
        for pair in ([plain, named], [named, plain]):
            (joined,) = as_repeats(pair)
            assert joined.scores[0].clusters == tuple(self.labels)

    @pytest.mark.parametrize("turned", [False, True])
    def test_questions_whose_cluster_is_not_known_are_refused(self, turned: bool) -> None:
        pair = [run_of(self.scores), run_of(self.scores, first=5, clusters=self.labels)]
        with pytest.raises(hn.InputError, match="`cluster=SPEC`"):
            as_repeats(pair[::-1] if turned else pair)

    def test_different_clusters_are_said(self) -> None:
        other = [f"d{i % 5}" for i in range(20)]
        pair = [run_of(self.scores, clusters=self.labels), run_of(self.scores, clusters=other)]
        assert any("cluster the questions differently" in note for note in noted(as_repeats(pair)[0]))
        renamed = [f"passage {label}" for label in self.labels]
        pair[1] = run_of(self.scores, clusters=renamed)
        assert not noted(as_repeats(pair)[0])

    def test_new_questions_join_the_cluster_that_another_run_calls_otherwise(self) -> None:
        pair = [
            run_of(self.scores[:18], clusters=self.labels[:18]),
            run_of(self.scores, clusters=[f"passage {label}" for label in self.labels]),
        ]
        (joined,) = as_repeats(pair)
        assert joined.scores[0].clusters == tuple(self.labels)
        assert not noted(joined)

    def test_a_comparison_says_so_too(self) -> None:
        a = run_of(self.scores, clusters=self.labels)
        b = run_of(1 - self.scores, clusters=[f"d{i % 5}" for i in range(20)])
        assert any("cluster the questions differently" in note for note in noted(hn.compare(a, b)))
        assert not any("cluster" in note for note in noted(hn.compare(a, run_of(1 - self.scores))))


def test_what_only_one_run_measured_is_said() -> None:
    scores = (RNG.random((20, 1)) < 0.5).astype(float)
    a, b = run_of(scores), run_of(1 - scores)
    assert not any("not compared" in note for note in noted(hn.compare(a, b)))
    more = replace(a, name="more", scores=(*a.scores, replace(a.scores[0], task="t2")))
    for pair in ((more, b), (b, more)):
        notes = noted(hn.compare(*pair))
        assert [note for note in notes if "not compared" in note] == ["only more has t2 / acc: not compared"]


def test_a_direction_that_nobody_knows_is_said() -> None:
    scores = (RNG.random((20, 1)) < 0.5).astype(float)
    a, b = run_of(scores), run_of(1 - scores)
    assert any("whether higher or lower is better" in note for note in noted(hn.compare(a, b)))
    assert any("whether higher or lower is better" in note for note in noted(hn.arena([a, replace(b, model="n")])))
    known = replace(b, scores=(replace(b.scores[0], higher_is_better=False),))
    assert not any("higher" in note for note in noted(hn.compare(a, known)))


@pytest.mark.parametrize("lower", [False, True])
def test_a_loss_counts_the_other_way_round(lower: bool) -> None:
    low, high = run_of(RNG.normal(1, 0.1, 30)), run_of(RNG.normal(2, 0.1, 30))
    low, high = (replace(run, scores=(replace(run.scores[0], higher_is_better=not lower),)) for run in (low, high))
    for a, b, a_wins in ((low, high, lower), (high, low, not lower)):
        result = hn.compare(a, b)
        row = result.comparisons[0]
        assert row.verdict == ("A better" if a_wins else "B better")
        assert (row.wins_a, row.wins_b) == ((30, 0) if a_wins else (0, 30))  # not of the higher score
        assert hn.gate(a, b).failed is (not a_wins)


def eight(model: str, values: np.ndarray) -> Run:
    return Run(model=model, name=model, harness="array", scores=(Scores("t", "m", "none", KEYS, values),))


def test_a_question_with_only_infinite_scores_is_refused_not_left_out() -> None:
    values = np.arange(8.0)[:, None] % 3
    broken = values.copy()
    broken[3] = np.inf
    with pytest.raises(InputError, match="a score is infinite"):
        compare_runs([(eight("a", broken), eight("b", values))], Settings())


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
    with pytest.raises(InputError, match=r"cannot be exchanged: leave `test` out, or use `test='t'`"):
        compare_runs([(runs[0], runs[1])], Settings(test="permutation"))
    for pair in (runs, runs[::-1]):
        with pytest.raises(InputError, match=r"not resampled.* or use `test='t'`"):
            compare_runs([(pair[0], pair[1])], Settings(test="bootstrap"))
        (row,) = compare_runs([(pair[0], pair[1])], Settings(test="t")).comparisons
        assert row.diff == pytest.approx(0.0)
        # without each question the mean over eight changes by (x − y)/8, and the jackknife has that of all eight
        assert row.se == pytest.approx(np.sqrt(7 / 8 * np.sum(((2 * truth - 1) / 8) ** 2)))


def test_one_quantity_under_two_names_is_tested_once() -> None:
    rng = np.random.default_rng(5)

    def named(model: str) -> Run:
        values = rng.random((40, 1)).round()
        questions = Questions(tuple(f"q{i}" for i in range(40)))
        found = [(scorer, values) for scorer in ("judge/quality", "quality")] + [("tone", rng.random((40, 1)).round())]
        scores = tuple(Scores("t", "mean", scorer, questions, array) for scorer, array in found)
        return Run(model=model, name=model, harness="h", path="", scores=scores)

    found = compare_runs([(named("a"), named("b"))], Settings())
    assert [row.scorer for row in found.comparisons] == ["judge/quality", "tone"]
    assert [note for note in noted(found) if "under another name: the same scores are tested once" in note]


def test_a_file_that_is_given_twice_and_a_copy_are_named(tmp_path) -> None:
    a, copy, other = (tmp_path / f"{name}.csv" for name in ("a", "copy", "other"))
    for path, shift in ((a, 0), (copy, 0), (other, 1)):
        path.write_text("question,score\n" + "".join(f"q{i},{(i + shift) % 3 == 0:d}\n" for i in range(30)))
    for sides in ((a, a), (a, copy)):
        assert [
            note
            for note in noted(hn.compare(*sides))
            if note.endswith("so there is nothing to compare: name two different runs")
        ]
        assert [note for note in noted(hn.arena([a, copy, other])) if "hold the same bytes" in note]
    assert not [note for note in noted(hn.compare(a, other)) if "nothing to compare" in note]


def test_two_columns_of_one_file_are_no_run_given_twice(tmp_path) -> None:
    path = tmp_path / "pair.csv"
    path.write_text("question,gpt,opus\n" + "".join(f"q{i},{i % 3},{i % 7}\n" for i in range(30)))
    told = noted(hn.compare(path, path, columns={"A:score": "gpt", "B:score": "opus"}))
    assert not [note for note in told if "nothing to compare" in note]
    assert [note for note in noted(hn.compare(path, path, columns={"score": "gpt"})) if "nothing to compare" in note]


def test_a_question_that_only_one_run_has_keeps_its_repeats_in_a_corpus_metric_too() -> None:
    """The first run was asked q0 to q19, the other q5 to q24; clusters are known of all."""
    records = np.random.default_rng(8).random((2, 20, 2))

    def runs(*, called: bool) -> list[Run]:
        out = []
        for start, values in zip((0, 5), records, strict=True):
            names = [f"q{start + i}" for i in range(20)]
            answers: dict[str, Any] = {"stats": values[:, :, None], "value": lambda sums: np.sqrt(sums[..., 0])}
            if called:
                rows = tuple(tuple((x,) for x in row) for row in values.tolist())
                answers = {"records": rows, "aggregate": lambda found: sum(x for (x,) in found) ** 0.5}
            labels = tuple(f"c{(start + i) // 5}" for i in range(20))
            item = CorpusScores(
                "t", "root", "none", Questions(tuple(names)), clusters=labels, cluster_spec="c", n_missing=1, **answers
            )
            out.append(Run("m", f"run {start}", "test", corpus=(item,)))
        return out

    for called in (False, True):
        (joined,) = as_repeats(runs(called=called))
        row = hn.analyze(joined, resamples=200).estimates[0]
        assert (row.n_questions, row.n_clusters, row.repeats_max, joined.corpus[0].n_missing) == (25, 5, 4, 2)
        assert row.mean == pytest.approx(np.sqrt(records.sum(axis=1)).mean())
