"""A judge's noise from gradings of the same text, and the agreement of several judges."""

from dataclasses import replace

import numpy as np
import pytest

import harness_noise as hn
from harness_noise.analysis.judges import judge_notes, with_judge
from harness_noise.analysis.known import WithFields
from harness_noise.analysis.mean import analyze_run
from harness_noise.data.clusters import Fields
from harness_noise.data.matching import pair_runs
from harness_noise.data.questions import Questions, text_hash
from harness_noise.data.scores import Gradings, Run, Scores, all_alike
from harness_noise.errors import FaultyScoresError
from harness_noise.leaderboard.pairs import grid
from harness_noise.leaderboard.scoring import MeasuredRun
from harness_noise.settings import Settings
from harness_noise.stats.agreement import agreement
from harness_noise.stats.contrast import design
from harness_noise.stats.judges import judge_noise
from support.notes import noted

VERDICTS = np.array(
    [
        [2, 0, 2, 2], [2, 2, 2, 2], [0, 0, 0, 0], [2, 2, 2, 2], [1, 1, 1, 1], [1, 0, 1, 1], [1, 0, 1, 1], [1, 0, 0, 0],
        [1, 2, 1, 1], [0, 0, 0, 1], [0, 0, 0, 0], [1, 1, 1, 1], [1, 0, 1, 0], [1, 0, 1, 1], [2, 0, 1, 0], [0, 0, 2, 0],
        [0, 0, 0, 0], [1, 0, 2, 0], [0, 0, 0, 0], [1, 2, 2, 2], [0, 0, 0, 0], [1, 1, 1, 1], [2, 1, 2, 2], [0, 2, 0, 1],
    ],
    dtype=float,
)  # fmt: skip


def run_of(values, texts=None, **fields):
    values = np.asarray(values, dtype=float)
    questions = Questions(tuple(f"q{i}" for i in range(len(values))))
    if texts is not None:
        again = {name: np.asarray(fields.pop(name), dtype=float) for name in ("again", "panel") if name in fields}
        fields["gradings"] = Gradings(np.asarray(texts, dtype=np.uint64), **again)
    scores = Scores("t", "accuracy", "judge", questions, values, **fields)
    return Run(model="m", name="r", harness="test", scores=(scores,))


def row_of(values, texts=None, **fields):
    (row,) = analyze_run(run_of(values, texts, **fields), Settings()).estimates
    return row


class TestNoise:
    def test_variance_and_rate_by_hand(self):
        """Texts a: 1 0 0 (s² 1/3, 2 of 3 pairs differ), b: 1 1, c once: weights are answers, 3 and 2."""
        found = judge_noise(np.array([1, 0, 0, 1, 1, 0.0]), np.array([0, 0, 0, 1, 1, 2]))
        assert (found.pairs, found.flips) == (4, 2)
        assert found.variance == pytest.approx((3 / 3 + 0) / 5)
        assert found.rate == pytest.approx((3 * 2 / 3) / 5)
        assert found.rate == pytest.approx(2 * found.variance)  # as for all verdicts of 0 and 1

    @pytest.mark.parametrize("texts", [[0, 1, 2], [-1, -1, -1], [-1, 0, -1]])
    def test_no_text_twice(self, texts):
        assert judge_noise(np.array([1, 0, 1.0]), np.array(texts)) is None

    def test_missing_verdicts_are_no_verdicts(self):
        assert judge_noise(np.array([1, np.nan, 0.0]), np.array([0, 0, 1])) is None

    def test_alike_verdicts_have_no_variance_of_rounding(self):
        found = judge_noise(np.full(300, 0.1), np.zeros(300, dtype=int))
        assert (found.flips, found.rate, found.variance) == (0, 0.0, 0.0)

    def test_graded_scores(self):
        found = judge_noise(np.array([7, 9, 4, 4.0]), np.array([0, 0, 1, 1]))
        assert (found.flips, found.rate, found.variance) == (1, 0.5, 1.0)


class TestRow:
    def test_share_of_the_prediction_noise(self):
        rng = np.random.default_rng(3)
        values = (rng.random((200, 4)) < 0.5).astype(float)
        values[:, :2] = rng.random((200, 2)) < 0.1
        texts = np.tile([1, 1, 2, 3], (200, 1))
        row = row_of(values, texts)
        flips = row.judge_flips
        assert (flips.of, flips.n_same_text) == ("answers", 200)
        assert flips.variance == pytest.approx(((values[:, 0] - values[:, 1]) ** 2 / 2).mean())
        assert flips.share == pytest.approx(flips.variance / 200 / row.var_prediction)

    def test_the_same_text_of_two_questions_is_not_one(self):
        assert row_of([[1, 0], [0, 1]], [[5, 6], [6, 5]]).judge_flips is None

    @pytest.mark.parametrize("texts", [None, [[0, 0], [0, 0]], [[1, 2], [1, 2]]], ids=["none", "empty", "different"])
    def test_nothing_is_known(self, texts):
        row = row_of([[1, 0], [0, 1]], texts)
        assert row.judge_flips is None
        assert row.se_prediction is not None

    def test_a_judge_who_never_changes_its_mind(self):
        assert row_of([[1, 1, 0], [0, 0, 1]], [[1, 1, 2], [1, 1, 2]]).judge_flips is None

    def test_one_answer_graded_again(self):
        """K = 1: the judge's noise is known, the prediction noise is not, nor its share."""
        row = row_of([[1], [0], [1]], [[0], [0], [0]], again=[[[0]], [[0]], [[np.nan]]])
        assert (row.judge_flips.n_same_text, row.judge_flips.n_flips) == (2, 1)
        assert row.judge_flips.share is None
        assert row.se_prediction is None

    def test_gradings_again_join_those_of_the_same_text(self):
        row = row_of([[1, 1]], [[7, 7]], again=[[[0], [1]]])
        assert (row.judge_flips.n_same_text, row.judge_flips.n_flips) == (6, 3)

    def test_votes_of_a_panel(self):
        row = row_of([[1, 1], [0, 0]], [[0, 0], [0, 0]], panel=[[[1, 1, 0], [1, 1, 1]], [[0, 0, 1], [0, np.nan, 0]]])
        assert (row.judge_flips.of, row.judge_flips.n_same_text, row.judge_flips.n_flips) == ("panel", 10, 4)
        assert row.judge_flips.share is None

    def test_other_answers_than_those_of_the_texts_are_refused(self):
        with pytest.raises(FaultyScoresError, match="another shape"):
            row_of([[1, 0, 1]], [[1, 1]])

    def test_questions_in_another_order_keep_their_own_texts(self):
        """Three answers of one text, graded 1 0 0; the other question's are three texts: as many rows either way."""
        again = [[[0], [1], [1]], [[0], [0], [1]]]
        run = run_of(
            [[1, 0, 0], [1, 0, 1]], [[7, 7, 7], [1, 2, 3]], again=again, factors={"seed": (("1", "2", "3"),) * 2}
        )
        (part,) = run.scores
        (row,) = analyze_run(run, Settings()).estimates
        turned = part.take([1, 0])
        assert turned.texts.tolist() == [[1, 2, 3], [7, 7, 7]]
        assert turned.gradings.again[:, 0, 0].tolist() == [0, 0]
        assert analyze_run(replace(run, scores=(turned,)), Settings()).estimates[0].judge_flips == row.judge_flips
        cut = WithFields((part,), (run,), Fields({})).take(np.array([1, 0]))
        assert cut.parts[0].texts.tolist() == turned.texts.tolist()
        theirs = replace(part, factors={"seed": (("3", "2", "1"),) * 2})
        ours, other, _ = pair_runs(part, theirs)
        assert (other.texts[1].tolist(), other.values[1].tolist()) == ([3, 2, 1], [1, 0, 1])
        assert ours.texts.tolist() == part.texts.tolist()

    def test_on_the_questions_of_other_runs_no_texts_are_known(self):
        run = run_of([[1, 0, 0], [1, 0, 1]], [[7, 7, 7], [1, 2, 3]])
        (part,) = run.scores
        turned = part.take([1, 0])
        both = [MeasuredRun(name, run, (of,)) for name, of in (("a", part), ("b", replace(turned, gradings=None)))]
        board = grid(both, None)
        assert board.questions.keys == part.questions.keys
        assert part.arrays(lambda x: x)["gradings"] is None

    def test_the_share_is_at_most_one(self):
        values = np.array([[1, 0, 1, 1]] * 3 + [[1, 1, 1, 1]] * 40, dtype=float)
        texts = np.array([[1, 1, 2, 3]] * 3 + [[1, 2, 3, 4]] * 40)
        assert row_of(values, texts).judge_flips.share == 1.0

    def test_sentences(self):
        values, texts = np.tile([1.0, 0.0, 1.0], (40, 1)), np.tile([1, 1, 2], (40, 1))
        assert list(noted(judge_notes([row_of(values, texts)]))) == [
            "t accuracy, judge: grading the same text twice flips 100% of the verdicts: 100% of the prediction noise "
            "is the judge's"
        ]
        assert "changes 100% of the scores" in noted(judge_notes([row_of(3 * values, texts)]))[0]
        alike = row_of(values, np.ones((40, 3)), diagnostics=("identical_repeats",))
        assert alike.se_prediction is None
        assert "all answers to each question are one text" in noted(judge_notes([alike]))[0]
        assert judge_notes([row_of(values[:9], texts[:9])]) == []  # too few to say a rate

    def test_a_group_and_an_array_have_none(self):
        assert hn.estimate([[1, 0], [0, 1]]).judge_flips is None
        part = run_of([[1, 0]], [[1, 1]]).scores[0]
        assert with_judge(row_of([[1, 0]]), part).judge_flips is not None


def test_texts_that_are_all_one():
    assert all_alike(np.array([[1, 1, 0], [2, 2, 2], [3, 0, 0]], dtype=np.uint64))
    assert not all_alike(np.array([[1, 1], [2, 3]], dtype=np.uint64))
    assert not all_alike(np.array([[1, 0], [0, 0]], dtype=np.uint64))
    assert not all_alike(np.zeros((0, 2), dtype=np.uint64))


@pytest.mark.parametrize("text", ["", " \n\t"])
def test_a_text_without_a_word_is_no_answer(text):
    assert text_hash(text) == 0
    assert text_hash(f"a{text}") != 0


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
        with pytest.raises(hn.InputError, match="there are mean, other: name one with `metrics`"):
            hn.factors(Run(model="m", name="r", harness="t", scores=scores), {"judge": "scorer"})
        with pytest.raises(hn.InputError, match="make the judge a factor, `factors` judge=scorer"):
            hn.factors(run, {"task": "task"})


COSTS = {"question": 4.0, "answer": 1.0, "judge": 0.5}


class TestPlan:
    def test_by_brute_force(self):
        """One answer more, and one call more, as the formula of the variance has them."""
        found = hn.plan(omega2=0.1, sigma2=0.2, sigma2_judge=0.08, n=100, repeats=2, costs=COSTS).judge

        def V(K, J):
            return 0.1 + 2 * (0.12 + 0.08 / J) / K

        def cost(K, J):
            return 4 + 2 * K * (1 + 0.5 * J)

        at = V(2, 1), cost(2, 1)
        assert found.answer == pytest.approx(0.01 * (1 - V(3, 1) / at[0]) / (cost(3, 1) / at[1] - 1))
        assert found.judge == pytest.approx(0.01 * (1 - V(2, 2) / at[0]) / (cost(2, 2) / at[1] - 1))
        assert (found.question, found.variance) == (0.01, pytest.approx(0.16))
        best = min(((K, J) for K in range(1, 11) for J in range(1, 11)), key=lambda KJ: V(*KJ) * cost(*KJ))
        assert (found.best_repeats, found.best_calls) == best

    def test_one_call_is_in_the_cost_and_all_noise_is_the_judge(self):
        plan = hn.plan(omega2=0.1, sigma2=0.2, sigma2_judge=0.5, n=100, repeats=2, costs=COSTS)
        assert plan.cost == 100 * (4 + 2 * 2 * 1.5)
        assert plan.judge.variance == pytest.approx(0.4)  # no more than the prediction noise
        free = hn.plan(omega2=0.1, sigma2=0.2, sigma2_judge=0.19, n=100, costs=COSTS | {"judge": 0.001})
        assert free.judge.best_calls == 10
        assert free.judge.judge > max(free.judge.question, free.judge.answer)
        assert "another judge call for every answer lowers the variance most" in noted(free)[-1]

    def test_from_a_run(self):
        rng = np.random.default_rng(1)
        values = (rng.random((100, 3)) < 0.5).astype(float)
        run = run_of(values, np.tile([1, 1, 2], (100, 1)))
        plan = hn.plan(runs=run, effect=0.1, costs=COSTS)
        (row,) = hn.analyze(run).estimates
        assert plan.judge.variance == pytest.approx(min(row.judge_flips.variance, 100 * row.var_prediction))
        assert hn.plan(runs=row, effect=0.1, costs=COSTS).judge == plan.judge
        with pytest.raises(hn.InputError, match="the judge's noise is unknown"):
            hn.plan(runs=run_of(values), effect=0.1, costs=COSTS)

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"costs": {"judge": 1.0}}, "give those of a question and an answer"),
            ({"sigma2_judge": 0.1}, "give the cost of a judge call, too"),
            ({"costs": COSTS, "sigma2_judge": 0.1, "sigma2": None}, "the gain of another answer is unknown"),
            ({"costs": COSTS | {"judge": -1.0}}, "`costs` judge -1 must be above 0"),
        ],
    )
    def test_refused(self, options, message):
        with pytest.raises(hn.InputError, match=message):
            hn.plan(**{"omega2": 0.1, "sigma2": 0.2, "n": 100} | options)
