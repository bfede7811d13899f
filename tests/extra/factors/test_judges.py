"""The agreement of several judges of the same answers, and the judge as a factor."""

from dataclasses import replace

import numpy as np
import pytest

import harness_noise as hn
from harness_noise.data.questions import Questions
from harness_noise.data.scores import Run, Scores
from harness_noise.extra.factors.agreement import agreement
from harness_noise.stats.contrast import design
from support.notes import noted

VERDICTS = np.array(
    [
        [2, 0, 2, 2], [2, 2, 2, 2], [0, 0, 0, 0], [2, 2, 2, 2], [1, 1, 1, 1], [1, 0, 1, 1], [1, 0, 1, 1], [1, 0, 0, 0],
        [1, 2, 1, 1], [0, 0, 0, 1], [0, 0, 0, 0], [1, 1, 1, 1], [1, 0, 1, 0], [1, 0, 1, 1], [2, 0, 1, 0], [0, 0, 2, 0],
        [0, 0, 0, 0], [1, 0, 2, 0], [0, 0, 0, 0], [1, 2, 2, 2], [0, 0, 0, 0], [1, 1, 1, 1], [2, 1, 2, 2], [0, 2, 0, 1],
    ],
    dtype=float,
)  # fmt: skip


class TestAgreement:
    @pytest.mark.parametrize(
        ("verdicts", "raw", "ac1", "se"),
        [
            (VERDICTS, 0.6597222222, 0.4970328789, 0.0956219241),
            (VERDICTS[:, :2], 0.5, 0.2704243192, 0.1580937928),
            ((VERDICTS > 0).astype(float), 0.7430555556, 0.4968125797, 0.1212279555),
        ],
        ids=["four judges", "two judges", "right or wrong"],
    )
    def test_irr_cac(self, verdicts, raw, ac1, se):
        """The numbers of irrCAC 0.4.4 (Gwet's own program in Python), one answer to each question, no clusters."""
        found = agreement(verdicts, np.arange(24), design(24))
        assert (found.raw, found.ac1) == (pytest.approx(raw, abs=1e-9), pytest.approx(ac1, abs=1e-9))
        assert found.ac1_se == pytest.approx(se, abs=1e-9)

    def test_answers_of_a_question_and_of_a_cluster(self):
        """Every question twice is no news: the same as once, by questions and by clusters."""
        twice, questions = np.repeat(VERDICTS, 2, axis=0), np.repeat(np.arange(24), 2)
        once = agreement(VERDICTS, np.arange(24), design(24))
        assert agreement(twice, questions, design(24)).ac1_se == pytest.approx(once.ac1_se)
        clustered = agreement(twice, np.arange(48), design(48, questions))
        assert clustered.ac1_se == pytest.approx(once.ac1_se)
        assert clustered.raw_se == pytest.approx(once.raw_se)

    def test_by_the_jackknife(self):
        """The linear part is what leaving one question out moves, to the order 1/n."""
        n = 240
        verdicts = np.tile(VERDICTS, (10, 1))
        left = [agreement(np.delete(verdicts, i, 0), np.arange(n - 1), design(n - 1)).ac1 for i in range(24)] * 10
        jackknife = np.sqrt((n - 1) / n * ((np.array(left) - np.mean(left)) ** 2).sum())
        assert agreement(verdicts, np.arange(n), design(n)).ac1_se == pytest.approx(jackknife, rel=0.01)

    def test_nothing_beyond_chance_to_see(self):
        alike = agreement(np.ones((5, 2)), np.arange(5), design(5))
        assert (alike.raw, alike.ac1, alike.ac1_se) == (1.0, None, None)
        assert agreement(np.arange(60.0).reshape(30, 2), np.arange(30), design(30)).ac1 is None
        one = agreement(np.array([[1, 0.0]]), np.arange(1), design(1))
        assert one.raw_se is None


class TestJudgesAsAFactor:
    def runs(self, n=300, K=3, seed=4, **fields):
        """Three judges of the same answers: the third is lenient by 0.1."""
        rng = np.random.default_rng(seed)
        answers = rng.normal(0.5, 0.2, n)[:, None] + rng.normal(0, 0.3, (n, K))
        shift = {"a": 0.0, "b": 0.0, "c": 0.1}
        questions = Questions(tuple(f"q{i}" for i in range(n)))
        scores = tuple(
            Scores("t", "mean", name, questions, answers + more + rng.normal(0, 0.1, (n, K)), **fields)
            for name, more in shift.items()
        )
        return Run(model="m", name="r", harness="test", scores=scores)

    def test_components(self):
        found = {row.factor: row for row in hn.factors(self.runs(), {"judge": "scorer"}).factors}
        assert list(found) == ["question", "answer", "judge", "question × judge", "residual"]
        assert found["answer"].var == pytest.approx(0.09, rel=0.15)
        assert found["residual"].var == pytest.approx(0.01, rel=0.15)
        assert found["question"].var == pytest.approx(0.04, rel=0.4)
        assert found["judge"].var == pytest.approx(0.1**2 / 3, rel=0.3)

    def test_one_answer_each_has_no_factor_of_answers(self):
        found = [row.factor for row in hn.factors(self.runs(K=1), {"judge": "scorer"}).factors]
        assert found == ["question", "judge", "residual"]

    def test_which_judge_differs_is_a_paired_comparison(self):
        run = self.runs()
        result = hn.factors(run, {"judge": "scorer"})
        pairs = {(row.judge_a, row.judge_b): row for row in result.judges}
        assert list(pairs) == [("all", None), ("a", "b"), ("a", "c"), ("b", "c")]
        a, _, c = (part.values for part in run.scores)
        whole = hn.estimate_difference(a, c)
        row = pairs["a", "c"]
        assert (row.diff, row.se, row.ci_low) == pytest.approx((whole.diff, whole.se, whole.ci_low))
        assert (row.n_answers, row.n_questions) == (900, 300)
        raw = [pairs[name].p_value for name in (("a", "b"), ("a", "c"), ("b", "c"))]
        assert pairs["a", "b"].p_adjusted == pytest.approx(raw[0])
        assert row.p_adjusted == pytest.approx(min(1, (3 if raw[1] < raw[2] else 2) * raw[1]), rel=1e-6, abs=1e-12)
        assert pairs["a", "b"].p_adjusted > 0.05 > row.p_adjusted
        assert "2 of 3 pairs of judges differ" in noted(result)[-1]

    def test_clusters_count(self):
        labels = tuple(f"c{i // 10}" for i in range(300))
        run = self.runs(clusters=labels)
        row = hn.factors(run, {"judge": "scorer"}).judges[1]
        a, b, _ = (part.values for part in run.scores)
        assert row.se == pytest.approx(hn.estimate_difference(a, b, clusters=labels).se)

    def test_only_answers_that_both_have_graded(self):
        a, b = np.array([[1, 0], [1, 1.0]]), np.array([[0, np.nan], [np.nan, 1.0]])
        questions = Questions(("x", "y"))
        scores = tuple(Scores("t", "mean", name, questions, values) for name, values in (("a", a), ("b", b)))
        (row,) = hn.factors(Run(model="m", name="r", harness="t", scores=scores), {"judge": "scorer"}).judges
        assert (row.n_answers, row.diff, row.agreement) == (2, 0.5, 0.5)

    def test_an_answer_that_one_judge_alone_has_graded_says_nothing_of_their_agreement(self):
        verdicts = {"a": [[1, 0], [1, 1]], "b": [[0, np.nan], [np.nan, 1]], "c": [[1, np.nan], [1, 0]]}
        questions = Questions(("x", "y"))
        scores = tuple(Scores("t", "mean", name, questions, np.array(v, float)) for name, v in verdicts.items())
        row = hn.factors(Run(model="m", name="r", harness="t", scores=scores), {"judge": "scorer"}).judges[0]
        assert (row.judge_a, row.n_answers, row.n_questions) == ("all", 3, 2)

    def test_judges_that_graded_the_questions_in_another_order_or_in_part(self):
        run, rng = self.runs(), np.random.default_rng(8)
        a, b, c = run.scores

        def some(part, rows):
            keys = tuple(part.questions.keys[i] for i in rows)
            return replace(part, questions=Questions(keys), values=part.values[rows])

        half = np.sort(rng.permutation(300)[:150])
        moved = replace(run, scores=(some(a, half), some(b, rng.permutation(300)), c))
        found = {(row.judge_a, row.judge_b): row for row in hn.factors(moved, {"judge": "scorer"}).judges}
        whole = {(row.judge_a, row.judge_b): row for row in hn.factors(run, {"judge": "scorer"}).judges}
        assert found["b", "c"].diff == pytest.approx(whole["b", "c"].diff)
        assert found["b", "c"].se == pytest.approx(whole["b", "c"].se)
        part = hn.estimate_difference(a.values[half], c.values[half])
        assert (found["a", "c"].diff, found["a", "c"].se) == pytest.approx((part.diff, part.se))

    def test_two_metrics_are_refused(self):
        run = self.runs(n=5)
        scores = (*run.scores[:2], Scores("t", "other", "c", run.scores[0].questions, run.scores[2].values))
        with pytest.raises(hn.InputError, match="There are mean, other: name one with `metrics`"):
            hn.factors(Run(model="m", name="r", harness="t", scores=scores), {"judge": "scorer"})
        with pytest.raises(hn.InputError, match="make the judge a factor, `factors` judge=scorer"):
            hn.factors(run, {"task": "task"})
