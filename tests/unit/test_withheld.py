"""Two runs whose equal answers are scored differently: whoever reads their difference withholds what it would show."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

import harness_noise as hn
from harness_noise.data.clusters import Fields
from harness_noise.data.questions import Questions
from harness_noise.data.scores import Gradings, Run, Scores
from harness_noise.extra.arena import figures, pages, report
from support.boards import with_values

N = 240
DIFFERENT = "scored differently"
CATEGORY = ("kind", [f"k{i // 48}" for i in range(N)])


def told(
    name: str, right: float, words: int, tasks: Sequence[str] = ("task",), *, equal: int = N, seed: int = 0
) -> Run:
    """Return a run that is right on a share of the questions, whose `words` say whose answers it repeats.

    Only every so many of the answers are those words where fewer than all are `equal`.
    """
    field, values = CATEGORY
    questions = Questions(tuple(f"q{i}" for i in range(N)), fields=Fields({field: values}, (field,), (field,)))
    rng, parts = np.random.default_rng(seed), []
    for task in tasks:
        scores = np.zeros((N, 1))
        scores[rng.permutation(N)[: round(right * N)]] = 1.0
        own = np.uint64(10**6 * sum(name.encode())) + np.arange(N, dtype=np.uint64)
        texts = np.where(np.arange(N) % (N // equal) == 0, np.uint64(1000 * words) + np.arange(N, dtype=np.uint64), own)
        parts.append(
            Scores(task, "acc", "none", questions, scores, higher_is_better=True, gradings=Gradings(texts[:, None]))
        )
    return Run(name, name, "array", scores=tuple(parts))


def verdicts(pairs: Sequence[hn.Difference]) -> dict[str, str]:
    return {pair.model_a + pair.model_b: pair.verdict for pair in pairs}


class TestArena:
    """`a` and `b` have the same answers, `c` has its own and lies between them."""

    def runs(
        self, *, b: float = 0.3, c: float = 0.74, tasks: Sequence[str] = ("task",), names: str = "a b c"
    ) -> list[Run]:
        return [
            told(name, right, words, tasks, seed=sum(name.encode()))
            for name, right, words in zip(names.split(), (0.8, b, c), (1, 1, 2), strict=True)
        ]

    def test_the_difference_is_neither_significant_nor_not(self):
        found = hn.arena(self.runs())
        assert verdicts(found.pairs) == {"ab": DIFFERENT, "ac": "not separable", "bc": "B better"}
        (row,) = found.benchmarks
        pairs = found.boards[0].pairs
        largest = abs(pairs.find("a", "c").diff)
        assert row.largest_insignificant_diff == largest
        assert row.smallest_significant_diff == abs(pairs.find("b", "c").diff)
        said = " ".join(report.sentences(found.boards[0]))
        assert f"largest found not significant is {100 * largest:.1f} points" in said

    def test_two_sizes_of_a_family_are_no_signal(self):
        (row,) = hn.arena(self.runs(names="m-1b m-7b c")).benchmarks
        assert (row.steps, row.signal_to_noise) == ((), None)

    def test_no_budget_shows_it(self):
        found = hn.arena(self.runs(b=0.76, c=0.77), needed=True)
        assert [model.model for model in found.models if model.among_best] == ["a", "b", "c"]
        assert [(row.best, row.model) for row in found.budget] == [("a", "c")]

    def test_no_lead_over_the_second_best_is_selection(self):
        first, second, _ = self.runs(b=0.79)
        assert hn.arena([first, second], select=True).selection == ()
        assert len(hn.arena(self.runs(c=0.79), select=True).selection) == 1

    def test_ranks_over_tasks_do_not_tell_them_apart(self):
        rows = hn.arena(self.runs(tasks=[f"t{i}" for i in range(8)])).across_tasks
        assert {row.model: (row.rank_low, row.rank_high) for row in rows} == {"a": (1, 2), "c": (2, 2), "b": (2, 3)}

    def test_slices_with_few_equal_answers_have_no_verdict_either(self):
        runs = [told("a", 1.0, 1, equal=10), told("b", 0.2, 1, equal=10), told("c", 0.5, 2)]
        found = hn.arena(runs, by=["kind"])
        assert verdicts(found.pairs)["ab"] == DIFFERENT
        each = [verdicts(sliced.pairs) for sliced in found.boards[0].slices]
        assert [(row["ab"], row["ac"]) for row in each] == [(DIFFERENT, "A better")] * 5
        assert [sliced.pairs.find("a", "b").equal_answers.n_equal for sliced in found.boards[0].slices] == [2] * 5
        packed = pages._slice_columns(found.boards[0])
        p = np.frombuffer(base64.b64decode(packed["p"]), "<f4").reshape(5, 3)
        assert np.isnan(p).tolist() == [[True, False, False]] * 5

    def test_figures_do_not_count_it(self):
        (board,) = hn.arena(self.runs()).boards
        assert ": 1 of 2 pairs" in figures.separation(board).alt
        assert "1 pair with p < 0.001" in figures.accuracies(board).alt


class TestTwoRuns:
    """The same answers, scored differently."""

    a, b = told("a", 0.8, 1, seed=1), told("b", 0.3, 1, seed=2)

    def test_slices_with_few_equal_answers(self):
        found = hn.compare(told("a", 1.0, 1, equal=10), told("b", 0.2, 1, equal=10), by=["kind"])
        assert [(row.verdict, row.equal_answers.n_equal) for row in found.slices] == [(DIFFERENT, 2)] * 5
        assert [row.diagnostics for row in found.heterogeneity] == [("scored_differently",)]
        assert "slices could be tested: equal answers are scored differently" in str(found)

    def test_slices_of_another_scoring_alone(self):
        """Five answers of one slice: too few of all."""
        a, b = told("a", 1.0, 1, equal=120), told("b", 1.0, 1, equal=120)
        scores = b.scores[0].values.copy()
        scores[[0, 2, 4, 6, 8]] = 0.0
        found = hn.compare(a, with_values(b, scores), by=["kind"])
        assert found.verdict != DIFFERENT
        assert [row.verdict for row in found.slices] == [DIFFERENT, *["not separable"] * 4]

    def test_of_several_pairs_the_two_are_named(self):
        first, second = hn.compare([self.a, told("c", 0.7, 2)], against=self.b).verdict.split("\n")
        assert first.startswith("a − b, task acc: 156 of 240 equal answers are scored differently")
        assert second.startswith("task acc: c is better than b")

    def test_no_association_is_told(self):
        found = hn.regress(self.a, self.b, on=["kind"])
        assert all("scored_differently" in row.diagnostics for row in (*found.fits, *found.coefficients))
        assert found.verdict.startswith(
            "task: no association of a − b is reported: equal answers are scored differently"
        )
        assert [note.code for note in found.notes] == ["scored_differently"]
        (fit,) = hn.regress(self.a, told("c", 0.3, 2), on=["kind"]).fits
        assert "scored_differently" not in fit.diagnostics

    def test_no_other_method_over_all_tasks(self):
        tasks = [f"t{i}" for i in range(8)]
        sides = [told("a", 0.8, 1, tasks, seed=1), told("b", 0.3, 1, tasks, seed=2)]
        found = hn.compare(*sides)
        assert {row.verdict for row in found.comparisons} == {DIFFERENT}
        assert [(row.p_value, row.diagnostics) for row in found.combined] == [(None, ("scored_differently",))] * 3

    def test_missing_answers_could_change_nothing(self):
        part = self.a.scores[0]
        holes = replace(part, values=np.where(np.arange(N)[:, None] < 3, np.nan, part.values), n_missing=3)
        (row,) = hn.compare(replace(self.a, scores=(holes,)), self.b).comparisons
        assert (row.verdict, row.if_missing, row.n_missing) == (DIFFERENT, None, 3)

    def test_a_plan_is_not_relied_on(self):
        assert "do not rely on this plan" in hn.plan(runs=[self.a, self.b], effect=0.05).sentence
        assert "rely" not in hn.plan(runs=[self.a, told("c", 0.3, 2)], effect=0.05).sentence

    def test_no_model_is_dropped_for_its_scoring(self):
        with pytest.raises(hn.InputError, match=r"a and b: \d+ of 240 equal answers are scored differently.*leave one"):
            hn.drop_models([self.a, self.b, told("c", 0.7, 2)])
        assert hn.drop_models([self.a, told("b", 0.3, 3), told("c", 0.7, 2)]).models[-1].dropped_at

    def test_a_look_at_a_run_that_grows_decides_nothing(self, tmp_path):
        a = replace(self.a, path=str(tmp_path / "a"))
        found = hn.compare(a, self.b, looks=5)
        assert [look.decision for look in found.sequential] == [DIFFERENT]
        assert "better" not in str(found)
        kept = json.loads((tmp_path / "a.looks.json").read_text())
        assert kept["tasks"][0]["found"]["decision"] == "A better"
