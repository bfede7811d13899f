"""Two runs whose equal answers are scored differently: whoever reads their difference withholds what it would show."""

from __future__ import annotations

import base64
from collections.abc import Sequence

import numpy as np

import harness_noise as hn
from harness_noise.data.clusters import Fields
from harness_noise.data.questions import Questions
from harness_noise.data.scores import Gradings, Run, Scores
from harness_noise.extra.arena import figures, pages

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
        assert f"largest found not significant is {100 * largest:.1f} points" in found.sentence

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
        assert "Separable: 1 of 2 pairs" in figures.separation(board).alt
        assert "1 pair with p < 0.001" in figures.accuracies(board).alt
