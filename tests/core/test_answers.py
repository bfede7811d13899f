"""The builder of adapters: answers one at a time, and what a user may say of them."""

import numpy as np
import pytest

import harness_noise as hn
from harness_noise.analysis.mean import analyze_run
from harness_noise.arrays import HUGE
from harness_noise.data.answers import Answers
from harness_noise.data.native_values import check_native
from harness_noise.data.scores import ReadOptions, Scores
from harness_noise.errors import FinalError, InputError
from harness_noise.settings import Settings
from support.notes import noted

ROWS = [(f"q{i}", k, float((i * k + i) % 3 == 0), {"passage": f"p{i // 2}", "prompt": f"v{k}"})
        for i in range(6) for k in (1, 2, 3)]  # fmt: skip


def built(options: ReadOptions | None = None, rows=ROWS, **fields) -> Answers:
    answers = Answers("run.jsonl", options, **fields)
    for line, (question, repeat, value, doc) in enumerate(rows, 1):
        answers.add("drop", "f1", "none", question, repeat, value, doc, line=line)
    return answers


def single(answers: Answers) -> Scores:
    (part,) = answers.scores()
    return part


def test_questions_keep_their_order_and_repeats_are_columns_by_their_ids():
    shuffled = [ROWS[i] for i in np.random.default_rng(1).permutation(len(ROWS))]
    part = single(built(rows=[*shuffled]))
    order = list(dict.fromkeys(row[0] for row in shuffled))
    assert list(part.questions.keys) == order
    known = {(question, repeat): value for question, repeat, value, _ in ROWS}
    assert part.values.tolist() == [[known[question, k] for k in (1, 2, 3)] for question in order]


def test_without_repeats_the_answers_of_a_question_are_numbered_as_they_come():
    part = single(built(rows=[("a", None, 1.0, {}), ("b", None, 0.0, {}), ("a", None, 0.5, {})]))
    np.testing.assert_array_equal(part.values, [[1.0, 0.5], [0.0, np.nan]])


def test_repeats_that_no_two_questions_share_only_say_the_order():
    part = single(built(rows=[(f"q{i}", 100 * i + 7 - k, float(k), {}) for i in range(9) for k in range(2)]))
    assert part.values.tolist() == [[1.0, 0.0]] * 9


def test_a_missing_score_is_counted_and_left_out_or_zero():
    rows = [("a", 1, 1.0, {}), ("a", 2, None, {}), ("b", 1, float("nan"), {}), ("b", 2, 1.0, {})]
    dropped, zero = (single(built(ReadOptions(missing=missing), rows)) for missing in ("drop", "zero"))
    np.testing.assert_array_equal(dropped.values, [[1.0, np.nan], [np.nan, 1.0]])
    np.testing.assert_array_equal(zero.values, [[1.0, 0.0], [0.0, 1.0]])
    assert dropped.n_missing == zero.n_missing == 2


LOST = (("a", 1, 1.0, ""), ("a", 2, None, "infrastructure"), ("b", 1, None, "limit"), ("b", 2, 1.0, ""),
        ("c", 1, None, ""), ("c", 2, 1.0, ""), ("d", 1, None, "infrastructure"), ("d", 2, 1.0, ""))  # fmt: skip


@pytest.mark.parametrize(
    ("missing", "zero"),
    [("drop", ""), ("zero", "abcd"), ("infrastructure=zero", "ad"), ("zero,infrastructure=drop", "bc"),
     ("infrastructure=zero, limit=zero", "dba"), ("refused=zero", "")],
)  # fmt: skip
def test_missing_answers_count_by_their_cause(missing, zero):
    answers = Answers("run", ReadOptions(missing=missing))
    for question, repeat, value, cause in LOST:
        answers.add("t", "acc", "none", question, repeat, cause if value is None and cause else value)
    part = single(answers)
    assert "".join(key for key, row in zip("abcd", part.values, strict=True) if 0 in row) == "".join(sorted(zero))
    assert (part.n_missing, part.n_zero, part.missing) == (4, len(zero), {"infrastructure": 2, "limit": 1})
    row = analyze_run(answers.run("m", "h"), Settings(missing=missing)).estimates[0]
    assert row.missing == {"infrastructure": 2, "limit": 1}
    assert (row.mean_if_missing_wrong is None) == (zero == "abcd")
    if zero == "ad":  # of b and c the answers stay open
        assert (row.mean_if_missing_wrong, row.mean_if_missing_right) == (0.5, 0.75)


def test_a_cause_that_nobody_has_is_refused():
    for missing in ("zeros", "sandbox=zero", "limit=one", ""):
        with pytest.raises(InputError, match=r"is not drop, zero or CAUSE=zero\. The causes are agent, infra"):
            ReadOptions(missing=missing)
    with pytest.raises(InputError, match="t, acc: the score 'sandbox' is not a finite number"):
        Answers("run").add("t", "acc", "none", "q", 1, "sandbox")


@pytest.mark.parametrize(("score", "shown"), [(-1e300, "-1e+300"), (10**400, "about 1e400")])
def test_a_number_too_large_for_its_fourth_power_is_said_to_be_that(score, shown):
    with pytest.raises(InputError) as caught:
        Answers("run").add("t", "acc", "none", "q", 1, score)
    assert f"the score {shown} is beyond 1e70, and counts as infinite" in str(caught.value)


@pytest.mark.parametrize("clusters", [None, [0, 0, 1, 1, 2, 2, 3, 3]])
def test_the_largest_scores_have_numbers_as_small_ones_do(clusters):
    a, b = np.array([1, 0, 1, 1, 0, 1, 1, 0.5]), np.array([0, 0, 1, 0, 0.5, 1, 0, 0])
    large, small = (hn.estimate_difference(a * by, b * by, clusters) for by in (HUGE, 100.0))
    assert large.p_value == pytest.approx(small.p_value)
    assert (large.df, large.se) == pytest.approx((small.df, small.se * HUGE / 100))
    with pytest.raises(InputError, match="beyond 1e70"):
        hn.estimate(a * HUGE * 1e20, clusters)


def test_the_harness_s_mean_of_all_answers_is_compared_with_zeros_for_the_missing_ones():
    def part(native, missing):
        answers = Answers("run", ReadOptions(missing=missing))
        for question, repeat, value, cause in (*LOST, ("a", 3, 0.0, "")):
            answers.add("t", "acc", "none", question, repeat, cause if value is None and cause else value)
        answers.describe("t", "acc", "none", native=native, native_of_answers=True)
        return check_native(answers.run("m", "h")).scores[0]

    assert part(4 / 9, "drop").diagnostics == part(4 / 9, "zero").diagnostics == ()  # K differs by question
    assert part(0.5, "drop").diagnostics == ("mean_mismatch",)


def test_an_answer_that_was_never_asked_for_is_no_missing_one():
    part = single(built(ReadOptions(missing="zero"), [("a", 1, 1.0, {}), ("a", 2, 0.0, {}), ("b", 1, 1.0, {})]))
    assert np.isnan(part.values[1, 1])
    assert part.n_missing == 0


def test_clusters_come_from_the_named_field_a_template_or_two_crossed_ones():
    assert single(built(ReadOptions(cluster="passage"))).clusters == ("p0", "p0", "p1", "p1", "p2", "p2")
    assert single(built(ReadOptions(cluster="<{{passage}}>"))).clusters[:2] == ("<p0>", "<p0>")
    paged = [
        (question, repeat, value, doc | {"page": f"s{int(question[1:]) % 2}"}) for question, repeat, value, doc in ROWS
    ]
    assert single(built(ReadOptions(cluster="passage*page"), paged)).cluster_spec == "passage*page"
    with pytest.raises(InputError, match=r"question 'q0' is in cluster 'v1' on line 1 and in 'v2' on line 2"):
        built(ReadOptions(cluster="prompt"))
    assert single(built(ReadOptions(cluster="task"))).clusters == ("drop",) * 6
    assert single(built(ReadOptions(cluster="none"))).clusters is None
    assert single(built(ReadOptions(cluster="other=passage"))).clusters is None
    own = [(*row[:3], {"cluster": f"c{i // 9}"}) for i, row in enumerate(ROWS)]
    assert single(built(ReadOptions(cluster="other=passage"), own)).clusters == ("c0",) * 3 + ("c1",) * 3
    assert single(built(ReadOptions(cluster="drop=none"), own)).clusters is None


def test_auto_asks_the_adapter_and_without_a_spec_the_user_hears_of_it():
    auto = {"drop": "passage"}.get
    part = single(built(ReadOptions(cluster="auto"), auto=auto))
    assert (part.clusters[0], part.cluster_spec) == ("p0", "passage (auto)")
    plain = built(auto=auto)
    assert single(plain).clusters is None
    assert noted(plain) == ("drop: the questions have natural clusters, passage: ask with `cluster='auto'`",)
    unknown = built(ReadOptions(cluster="auto"))
    assert single(unknown).clusters is None
    assert noted(unknown) == ("drop: no natural cluster is known: the questions count as independent",)


def test_a_field_that_is_not_there_is_refused_with_the_line_and_what_there_is():
    with pytest.raises(FinalError, match=r"run.jsonl, line 1: cluster field 'story' .* passage, prompt"):
        built(ReadOptions(cluster="story"))
    with pytest.raises(FinalError, match=r"line 1: question field 'id' is not in the document"):
        built(ReadOptions(columns={"question": "id"}))
    with pytest.raises(FinalError, match=r"factor 'judge' is not there"):
        built(ReadOptions(factors=("judge",)))
    with pytest.raises(InputError, match="`columns` score="):
        built(ReadOptions(columns={"score": "f1"}))


def test_the_user_names_the_field_that_identifies_a_question():
    part = single(built(ReadOptions(columns={"question": "passage"})))
    assert part.questions.keys == ("p0", "p0#2", "p1", "p1#2", "p2", "p2#2")
    assert part.values.shape == (6, 3)


def test_factors_say_what_each_answer_was_made_with():
    part = single(built(ReadOptions(factors=("prompt",)), ROWS[:-1]))
    assert part.factors["prompt"][0] == ("v1", "v2", "v3")
    assert part.factors["prompt"][-1] == ("v1", "v2", "")


def test_one_repeat_under_two_levels_is_two_answers():
    rows = [("a", 1, 1.0, {"prompt": "x"}), ("a", 1, 0.0, {"prompt": "y"})]
    assert single(built(ReadOptions(factors=("prompt",)), rows)).values.tolist() == [[1.0, 0.0]]
    with pytest.raises(InputError, match="has the score 1 on line 1 and 0 on line 2"):
        single(built(rows=rows))


def test_an_answer_that_is_said_twice_counts_once():
    answers = built(rows=[*ROWS, ROWS[0]])
    assert single(answers).values.shape == (6, 3)
    assert noted(answers) == ("drop: 1 answer repeats another answer and is left out",)


def test_a_grid_that_would_be_all_but_empty_is_refused():
    rows = [(f"q{i}", 1, 1.0, {}) for i in range(6000)] + [("q0", k, 1.0, {}) for k in range(2, 6000)]
    with pytest.raises(InputError, match="leave nearly every question without"):
        single(built(rows=rows))


def test_bounds_that_the_scores_break_are_left_out():
    answers = built()
    answers.describe("drop", "f1", "none", bounds=(0.0, 1.0), native=0.25, higher_is_better=True)
    part = single(answers)
    assert (part.bounds, part.native, part.higher_is_better) == ((0.0, 1.0), 0.25, True)
    answers.add("drop", "f1", "none", "percent", 1, 97.0)
    assert single(answers).bounds is None


def test_the_words_of_a_question_find_it_in_another_harness():
    def asked(name: str) -> Scores:
        docs = [{"question": f"What is {i} + {i}?  "} for i in range(3)]
        return single(built(rows=[(f"{name}{i}", 1, 1.0, doc) for i, doc in enumerate(docs)], text="question"))

    one, other = asked("x").questions, asked("y").questions
    assert one.inputs == other.inputs
    assert one.texts == ("What is 0 + 0?", "What is 1 + 1?", "What is 2 + 2?")


def test_several_tasks_and_metrics_are_one_run_that_can_be_analysed():
    answers = Answers("folder")
    for task in ("a", "b"):
        for metric in ("acc", "f1"):
            for i in range(8):
                answers.add(task, metric, "none", f"q{i}", None, i / 8, {"cluster": i // 2})
    run = answers.run("model", "harness", date="2026-01-01")
    assert [(part.task, part.metric) for part in run.scores] == [("a", "acc"), ("a", "f1"), ("b", "acc"), ("b", "f1")]
    assert (run.name, run.path, run.date) == ("folder", "folder", "2026-01-01")
    assert [row.n_clusters for row in analyze_run(run, Settings()).estimates] == [4] * 4
    with pytest.raises(InputError, match="there is no score in it"):
        Answers("empty").run("model", "harness")


def test_an_adapter_says_that_its_repeats_are_runs():
    draw = np.random.default_rng(5)
    rows = [(f"q{i}", k, float(draw.random() < 0.5), {}) for i in range(40) for k in range(4)]
    declared, plain = (built(rows=rows, repeats_are_runs=runs).run("m", "h") for runs in (True, False))

    def codes(run, settings):
        return analyze_run(run, settings).estimates[0].diagnostics

    assert "shared_repeat_noise" in codes(declared, Settings())
    assert "shared_repeat_noise" not in codes(plain, Settings())
    assert "shared_repeat_noise" not in codes(declared, Settings(repeats_are="runs"))
    assert "shared_repeat_noise" not in codes(built(rows=rows[::4], repeats_are_runs=True).run("m", "h"), Settings())
