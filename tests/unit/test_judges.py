"""A judge's noise from gradings of the same text."""

from dataclasses import replace

import numpy as np
import pytest

import harness_noise as hn
from harness_noise.analysis.judges import judge_notes, with_judge
from harness_noise.analysis.mean import analyze_run
from harness_noise.data.clusters import Fields
from harness_noise.data.matching import pair_runs
from harness_noise.data.questions import Questions, text_hash
from harness_noise.data.scores import Gradings, Run, Scores, all_alike
from harness_noise.errors import FaultyScoresError
from harness_noise.extra.arena.pairs import grid
from harness_noise.extra.arena.scoring import MeasuredRun
from harness_noise.extra.known import WithFields
from harness_noise.settings import Settings
from harness_noise.stats.judges import judge_noise
from support.notes import noted


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
