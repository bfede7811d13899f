"""Degenerate input: what is null, which code says so, and what is refused."""

from __future__ import annotations

import math

import numpy as np
import pytest

import harness_noise as hn
from harness_noise import as_scores, estimate, estimate_difference
from harness_noise.analysis.comparison import compare_runs
from harness_noise.analysis.mean import analyze_run
from harness_noise.data.questions import Questions
from harness_noise.data.scores import Group, Run, Scores
from harness_noise.errors import InputError
from harness_noise.report import fmt
from harness_noise.settings import Settings
from harness_noise.stats.tolerances import short_of
from support.notes import noted

NAN = math.nan
SPLIT = ("se_data", "se_prediction", "var_data", "var_prediction")


def scores(task, values, keys=None, clusters=None, **fields):
    values = np.asarray(values, dtype=float)
    keys = tuple(keys or (str(i) for i in range(len(values))))
    spec = "field" if clusters is not None else None
    clusters = None if clusters is None else tuple(map(str, clusters))
    fields = {"metric": "acc", "scorer": "none", "cluster_spec": spec} | fields
    return Scores(task=task, questions=Questions(keys), values=values, clusters=clusters, **fields)


def run(*items, model="m", **fields):
    return Run(model=model, name=f"{model}-run", harness="test", scores=items, **fields)


@pytest.mark.parametrize("seed", range(20))
def test_ten_degrees_of_freedom_are_not_fewer_than_ten(seed):
    """Eleven equal clusters have ten, whatever the rounding of their sum."""
    n = 11 * (1 + seed)
    e = estimate(np.random.default_rng(seed).random(n), np.arange(n) % 11)
    assert e.df == pytest.approx(10, abs=1e-9)
    assert "few_clusters" not in e.diagnostics


def test_degrees_of_freedom_just_below_a_threshold_by_rounding_are_at_it():
    assert not short_of(9.999999999999998, 10.0)
    assert short_of(9.99, 10.0)


class TestOneRun:
    @pytest.mark.parametrize("values", [np.empty((0, 1)), np.full((4, 2), NAN)])
    def test_nothing_scored(self, values):
        e = estimate(values)
        assert (e.mean, e.se, e.ci_low, e.se_total, e.df, e.interval) == (None,) * 5 + ("none",)
        assert (e.n_questions, e.n_clusters, e.repeats_min, e.repeats_max) == (0, 0, 0, 0)
        assert e.diagnostics == ("too_few_questions",)

    def test_one_question(self):
        e = estimate([[1.0, 0.0]])
        assert (e.mean, e.se, e.se_prediction, e.se_total) == (0.5, None, None, None)
        assert "too_few_questions" in e.diagnostics

    def test_one_question_with_a_cluster(self):
        assert estimate([0.3], clusters=["a"]).diagnostics == ("single_repeat", "too_few_questions")

    def test_single_repeat_is_null_not_zero(self):
        e = estimate([0.0, 1.0, 1.0, 0.0])
        assert [getattr(e, name) for name in SPLIT] == [None] * 4
        assert e.diagnostics == ("few_clusters", "few_failures", "single_repeat")
        assert e.se_total == e.se == pytest.approx(np.std([0, 1, 1, 0], ddof=1) / 2)

    def test_identical_repeats_are_null_not_zero(self):
        e = estimate(np.repeat([[0.1], [0.7], [0.3]], 5, axis=1))
        assert [getattr(e, name) for name in SPLIT] == [None] * 4
        assert "identical_repeats" in e.diagnostics
        assert e.se_total == e.se

    def test_partly_single_repeat_borrows_the_mean_variance(self):
        values = np.array([[0.0, 1.0], [1.0, 1.0], [1.0, NAN], [0.0, 0.0]])
        e = estimate(values)
        s2 = np.array([0.5, 0.0, 0.5 / 3, 0.0])
        assert e.var_prediction == pytest.approx(s2.sum() / 16)
        V = np.var([0.5, 1, 1, 0], ddof=1) / 4
        assert e.var_data == pytest.approx(V - (s2 / [2, 2, 1, 2]).sum() / 16)
        assert e.se_total**2 == pytest.approx(V + (s2 * [0.5, 0.5, 0, 0.5]).sum() / 16)
        assert {"partly_single_repeat", "missing_repeats"} <= set(e.diagnostics)
        assert (e.repeats_min, e.repeats_max, e.n_missing) == (1, 2, 1)

    def test_question_without_score_is_left_out_or_zero(self):
        values = [[1.0, 1.0], [NAN, NAN], [0.0, 1.0]]
        assert estimate(values).n_questions == 2
        assert estimate(values).mean == 0.75
        zero = estimate(values, missing="zero")
        assert (zero.n_questions, zero.mean, zero.n_missing) == (3, 0.5, 2)

    def test_all_right(self):
        """Wilson with n = G, never a point."""
        e = estimate(np.ones((10, 3)))
        assert (e.mean, e.se, e.ci_high, e.interval) == (1.0, 0.0, 1.0, "wilson")
        t2 = 2.262157**2
        assert e.ci_low == pytest.approx(10 / (10 + t2), abs=1e-5)
        assert {"zero_variance", "identical_repeats"} <= set(e.diagnostics)
        clustered = estimate(np.ones((10, 3)), clusters=list("aabbccddee"))
        assert clustered.ci_low < e.ci_low

    def test_constant_off_the_unit_interval_has_no_interval(self):
        e = estimate([3.0, 3.0, 3.0])
        assert (e.se, e.ci_low, e.ci_high, e.interval) == (0.0, None, None, "none")
        assert "zero_variance" in e.diagnostics

    def test_rounding_is_not_variance(self):
        e = estimate(np.full((7, 3), 0.1) * 3)
        assert e.se == 0
        assert "zero_variance" in e.diagnostics

    def test_interval_follows_the_range(self):
        assert estimate([0.0, 1.0, 0.5]).interval == "wilson"
        assert estimate([0.0, 1.0, 1.5]).interval == "t"
        e = estimate([0.0, 1.0, 1.5, 0.2], interval="t")
        assert e.ci_high - e.mean == pytest.approx(3.182446 * e.se, abs=1e-6)

    def test_negative_data_variance_is_raw_and_flagged(self):
        e = estimate([[0.0, 1.0], [1.0, 0.0], [0.0, 1.0]])
        assert e.var_data < 0
        assert e.se_data == 0
        assert "negative_data_variance" in e.diagnostics
        assert e.se_total**2 == pytest.approx(e.var_data + e.var_prediction)

    @pytest.mark.parametrize(("n", "expected"), [(10, True), (11, False)])
    def test_few_clusters_means_few_degrees_of_freedom(self, n, expected):
        assert ("few_clusters" in estimate(np.arange(n) / n).diagnostics) is expected
        assert ("few_clusters" in estimate(np.arange(2 * n) / n, clusters=np.arange(2 * n) % n).diagnostics) is expected

    @pytest.mark.parametrize(
        ("values", "options", "message"),
        [
            (np.zeros((2, 2, 2)), {}, "(n, K) array"),
            (np.zeros((2, 0)), {}, "K ≥ 1"),
            ([[1, 0], [1]], {}, "NaN where a number is missing or a row has fewer"),
            (["right", "wrong"], {}, "no array of numbers (could not convert string to float: 'right')"),
            ({"q1": 1.0}, {}, "no array of numbers"),
            ([10**400, 1], {}, "no array of numbers"),
            (np.array([1 + 2j, 0]), {}, "no array of numbers (they are complex numbers)"),
            (np.array(["2026-01-01"], "M8[D]"), {}, "no array of numbers (they are dates)"),
            ([np.timedelta64(1, "s")], {}, "no array of numbers (they are spans of time)"),
            ([0.0, 1.0], {"clusters": np.ma.array([1, 2], mask=[False, True])}, "name is missing"),
            ([0.0, math.inf], {}, "infinite"),
            ([0.0, 1.0], {"clusters": ["a"]}, "1 cluster names for 2"),
            ([0.0, 1.0], {"clusters": ["a", None]}, "name is missing"),
            ([0.0, 1.0], {"clusters": np.array([1.0, NAN])}, "name is missing"),
            ([0.0, 1.0], {"level": 1.0}, "level 1"),
            ([0.0, 1.0], {"level": NAN}, "level nan"),
            ([0.0, 1.0], {"se": "hc3"}, "'hc3' is not one of cr0, cr1, cr2, cr3"),
            ([0.0, 1.0], {"resamples": 1}, "resamples 1"),
            ([0.0, 2.0], {"interval": "wilson"}, "scores in [0, 1]"),
            ([0.0, 0.5], {"interval": "clopper-pearson"}, "korn-graubard"),
            ([0.0, 1.0], {"interval": "clopper-pearson", "clusters": ["a", "b"]}, "korn-graubard"),
            ([0.0, 1.0], {"repeats_are": "runs"}, "at least two runs"),
            (np.eye(3), {"repeats_are": "runs", "interval": "bootstrap"}, "leave `test` and `interval`"),
        ],
    )
    def test_refused(self, values, options, message):
        with pytest.raises(ValueError) as caught:
            estimate(values, **options)
        assert message in str(caught.value)

    @pytest.mark.parametrize("values", [[1, 0, 1, 0], [[1.0, 1.0], [0.0, 1.0], [1.0, 0.0], [0.0, 0.0]]])
    def test_what_a_masked_array_hides_is_missing(self, values):
        hidden = np.zeros(np.shape(values), dtype=bool)
        hidden[2:] = True
        masked, gaps = np.ma.array(values, mask=hidden), np.where(hidden, NAN, values)
        assert estimate(masked) == estimate(gaps)
        assert estimate_difference(masked, values) == estimate_difference(gaps, values)
        for pairs in (np.ma.stack, list):
            of_pairs = [pairs([x.reshape(4, -1)] * 2) for x in (masked, np.ma.array(values))]
            assert estimate_difference(*of_pairs)[0] == estimate_difference(gaps, values)
        assert estimate(list(masked) if masked.ndim > 1 else masked) == estimate(gaps)


class TestDifference:
    def test_identical_runs(self):
        a = np.array([[1.0], [0.0], [1.0], [1.0]])
        d = estimate_difference(a, a)
        assert (d.diff, d.se, d.p_value, d.statistic, d.mde) == (0.0, 0.0, 1.0, None, None)
        assert d.verdict == "not separable"
        assert {"zero_variance", "identical_scores"} <= set(d.diagnostics)
        assert d.ci_low == -d.ci_high < 0

    def test_bonett_price(self):
        """n = 12, one model always right, the other never: the formula written out."""
        d = estimate_difference(np.ones(12), np.zeros(12))
        p1, p2 = 13 / 14, 1 / 14
        half = 1.959964 * math.sqrt((p1 + p2 - (p1 - p2) ** 2) / 14)
        assert (d.ci_low, d.ci_high) == pytest.approx((p1 - p2 - half, min(1, p1 - p2 + half)), abs=1e-6)
        assert (d.p_value, d.verdict) == (None, "A better")
        assert d.p_sign == pytest.approx(2 / 2**12)

    def test_zero_variance_by_clusters(self):
        """G for n: 12 questions of two clusters prove nothing."""
        d = estimate_difference(np.ones(12), np.zeros(12), clusters=["a", "b"] * 6)
        assert (d.p_value, d.p_sign, d.verdict) == (None, 0.5, "not separable")
        assert d.ci_low < 0.2

    def test_clusters_that_cancel(self):
        """Every cluster's sum is 0 though the questions differ: zero variance, but not identical."""
        d = estimate_difference([1.0, 0.0, 1.0, 0.0], [0.0, 1.0, 0.0, 1.0], clusters=list("aabb"))
        assert (d.se, d.diff, d.p_value) == (0.0, 0.0, 1.0)
        assert "zero_variance" in d.diagnostics
        assert "identical_scores" not in d.diagnostics

    def test_zero_variance_off_the_unit_interval(self):
        d = estimate_difference([5.0, 6.0, 7.0], [1.0, 2.0, 3.0])
        assert (d.diff, d.se, d.ci_low, d.p_value) == (4.0, 0.0, None, None)

    @pytest.mark.parametrize("test", ["t", "sign", "permutation", "bootstrap"])
    def test_too_little_for_any_test(self, test):
        d = estimate_difference([1.0, 0.0], [0.0, 1.0], clusters=["a", "a"], test=test)
        assert (d.se, d.p_value, d.ci_low, d.verdict) == (None, None, None, "not separable")
        assert "too_few_clusters" in d.diagnostics

    def test_lower_is_better_turns_the_verdict(self):
        rng = np.random.default_rng(0)
        low, high = rng.random(40), 1 + rng.random(40)
        for direction, word in ((True, "B better"), (None, "B better"), (False, "A better")):
            a, b = (scores("t", x[:, None], higher_is_better=direction) for x in (low, high))
            (row,) = compare_runs([(run(a), run(b, model="o"))], Settings()).comparisons
            assert (row.verdict, row.diff < 0) == (word, True)

    def test_equivalence_needs_a_margin(self):
        rng = np.random.default_rng(1)
        a = rng.random((400, 1))
        b = a + rng.normal(0, 0.02, a.shape)
        assert estimate_difference(a, b).verdict == "not separable"
        assert estimate_difference(a, b, margin=0.01).verdict == "equivalent within 0.01"
        assert estimate_difference(a, b, margin=0.001).verdict == "not separable"

    def test_tost_is_two_one_sided_tests(self):
        """Equivalent exactly where the larger of the two one-sided p is below α."""
        from scipy import stats

        rng = np.random.default_rng(2)
        a, b = rng.random(60), rng.random(60)
        d = estimate_difference(a, b)
        for margin in np.linspace(0.01, 0.4, 40):
            p = max(
                stats.ttest_1samp(a - b, -margin, alternative="greater").pvalue,
                stats.ttest_1samp(a - b, margin, alternative="less").pvalue,
            )
            expected = f"equivalent within {margin:g}" if p < 0.05 else d.verdict
            assert estimate_difference(a, b, margin=margin).verdict == expected

    def test_identical_runs_are_equivalent_only_when_many(self):
        assert estimate_difference(np.ones(500), np.ones(500), margin=0.05).verdict == "equivalent within 0.05"
        assert estimate_difference(np.ones(5), np.ones(5), margin=0.05).verdict == "not separable"

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"test": "wilcoxon"}, "is not one of"),
            ({"margin": -1.0}, "margin"),
            ({"interval": "wilson"}, "for one run"),
            ({"unpaired": True, "test": "sign"}, "needs pairs"),
            ({"unpaired": True, "test": "permutation"}, "needs pairs"),
            ({"unpaired": True, "clusters": ["a", "b"]}, "no common clusters"),
            ({"repeats_are": "runs", "test": "permutation"}, "variance between runs"),
        ],
    )
    def test_refused(self, options, message):
        with pytest.raises(InputError, match=message):
            estimate_difference([0.0, 1.0], [1.0, 0.0], **options)

    def test_unequal_lengths(self):
        with pytest.raises(ValueError, match="2 questions in a and 3 in b"):
            estimate_difference([0.0, 1.0], [0.0, 1.0, 1.0])

    def test_no_common_question(self):
        a, b = scores("t", [[1.0], [0.0]], keys="xy"), scores("t", [[1.0], [0.0]], keys="uv")
        with pytest.raises(InputError, match="no question in common"):
            compare_runs([(run(a), run(b, model="o"))], Settings())

    def test_questions_that_one_run_has_not_scored_are_shared_all_the_same(self):
        a, b = scores("t", [[1.0], [NAN]], n_missing=1), scores("t", [[NAN], [0.0]], n_missing=1)
        with pytest.raises(InputError) as caught:
            compare_runs([(run(a), run(b, model="o"))], Settings())
        said = "t: no question has a score in both m-run and o-run. They share 2 questions, and each lacks its score"
        assert str(caught.value).startswith(said)
        assert str(caught.value).endswith("Score the missing answers, or use `unpaired=True`")
        with pytest.raises(InputError) as caught:
            compare_runs([(run(scores("t", [[NAN], [NAN]], n_missing=2)), run(b, model="o"))], Settings())
        assert "share 2 questions, and m-run has no score of any" in str(caught.value)
        assert "unpaired" not in str(caught.value)

    def test_one_of_two_tasks_shares_no_question(self):
        a = run(scores("s", [[1.0], [0.0]]), scores("t", [[1.0], [0.0]], keys="xy"))
        b = run(scores("s", [[0.0], [0.0]]), scores("t", [[1.0], [0.0]], keys="uv"), model="o")
        found = compare_runs([(a, b)], Settings())
        assert [(row.task, row.diff) for row in found.comparisons] == [("s", 0.5)]
        note = noted(found)[0]
        assert note.startswith("left out: t: ")
        assert "(2 and 2 questions)" in note


class TestGroups:
    def test_task_without_any_score(self):
        """Equal weights leave the mean undefined; by size the empty task weighs nothing."""
        parts = scores("a", [[1.0], [0.0], [1.0]]), scores("b", [[NAN], [NAN]])
        for weighting, mean in (("equal", None), ("size", 2 / 3)):
            group = Group("g", "acc", "none", ("a", "b"), weighting)
            row = analyze_run(run(*parts, groups=(group,)), Settings()).estimates[2]
            assert (row.task, row.mean) == ("g", mean if mean is None else pytest.approx(mean))
            assert (row.se is None) == (mean is None)
            assert ("unscored_task" in row.diagnostics) == (mean is None)

    @pytest.mark.parametrize("se", ["cr0", "cr1", "cr2", "cr3"])
    def test_task_with_a_single_cluster(self, se):
        parts = scores("a", [[1.0], [0.0], [1.0]], clusters="xyz"), scores("b", [[1.0], [0.0]], clusters="uu")
        group = Group("g", "acc", "none", ("a", "b"))
        row = analyze_run(run(*parts, groups=(group,)), Settings(se=se)).estimates[2]
        assert (row.mean, row.se) == (pytest.approx(0.6), None)
        assert "too_few_clusters" in row.diagnostics

    def test_task_that_is_not_shared(self):
        a = run(scores("s", [[1.0], [0.0]]), scores("t", [[1.0], [0.0]], keys="xy"))
        b = run(scores("s", [[0.0], [1.0]]), scores("t", [[1.0], [NAN]], keys="yz"), model="o")
        group = Group("g", "acc", "none", ("s", "t"), "equal")
        rows = compare_runs([(Run("m", "a", "test", scores=a.scores, groups=(group,)), b)], Settings()).comparisons
        assert [row.task for row in rows] == ["s", "t", "g"]
        assert rows[2].se is None

    def test_only_a_group_was_asked_for(self):
        group = Group("g", "acc", "none", ("s", "t"))
        parts = scores("s", [[1.0], [0.0], [1.0]]), scores("t", [[1.0], [0.0], [0.0]])
        other = scores("s", [[0.0], [0.0], [1.0]]), scores("t", [[0.0], [0.0], [1.0]])
        a = Run("m", "a", "test", parts=parts, groups=(group,))
        b = Run("o", "b", "test", parts=other, groups=(group,))
        (row,) = compare_runs([(a, b)], Settings()).comparisons
        assert (row.task, row.n_questions, row.diff) == ("g", 6, pytest.approx(1 / 6))


def test_as_scores_copies():
    values = np.array([[NAN, 1.0]])
    as_scores(values, missing="zero")
    assert np.isnan(values[0, 0])


def test_few_degrees_of_freedom_are_said_where_runs_bring_them() -> None:
    rng = np.random.default_rng(11)
    scores = rng.normal(0, 1, (200, 1)) + rng.normal(0, 0.5, (1, 3)) + rng.normal(0, 0.1, (200, 3))
    as_runs = hn.estimate(scores, repeats_are="runs")
    assert as_runs.df is not None
    assert as_runs.df < 10
    assert "few_clusters" in as_runs.diagnostics


@pytest.mark.parametrize("times", [2, 6, 24])
def test_a_variance_between_runs_that_cancels_that_of_the_questions_leaves_no_rounding_as_standard_error(times):
    """Repeats that are uncorrelated and of one mean: of MS_q + MS_run − MS_res nothing is left but rounding."""
    scores = np.array([[0, 0], [0, 1], [1, 0], [1, 1]] * times, dtype=float)
    spread = scores.mean(axis=1).std(ddof=1) / math.sqrt(len(scores))
    assert hn.estimate(scores, repeats_are="runs").se == pytest.approx(spread)
    row = hn.estimate_difference(scores, 1 - scores, repeats_are="runs", runs_shared=True)
    assert row.se == pytest.approx(2 * spread)


def test_few_degrees_of_freedom_of_one_side_are_not_those_of_the_difference() -> None:
    rng = np.random.default_rng(11)
    noisy, small = rng.normal(0, 10, 300), rng.normal(0, 0.01, 5)
    row = hn.estimate_difference(noisy, small, unpaired=True)
    assert row.df is not None
    assert row.df > 100
    assert "few_clusters" not in row.diagnostics
    assert "few_clusters" in hn.estimate_difference(noisy / 1e6, small, unpaired=True).diagnostics


@pytest.mark.parametrize(("n", "verdict"), [(12, "A better"), (2, "not separable")])
def test_all_right_against_all_wrong_unpaired_is_judged_by_the_interval(n: int, verdict: str) -> None:
    row = hn.estimate_difference(np.ones((n, 3)), np.zeros((n, 3)), unpaired=True)
    assert row.ci_low is not None
    assert (row.verdict, row.ci_low > 0) == (verdict, verdict == "A better")
    same = hn.estimate_difference(np.ones((n, 3)), np.ones((n, 3)), unpaired=True)
    assert (same.verdict, same.p_value) == ("not separable", 1.0)


def test_degrees_of_freedom_are_printed_whole_whatever_their_last_digit():
    assert [fmt.degrees(df) for df in (1.0, 1.0 + 4e-16, 1 - 2e-16, 13.6, 1e6)] == ["1", "1", "1", "13.6", "1,000,000"]


def test_the_interval_of_a_difference_is_in_the_units_of_the_difference():
    """Two judges of one model, and a coefficient, are rows of a model and no means."""
    from types import SimpleNamespace

    for of in ("diff", "coefficient"):
        assert not fmt.is_mean(SimpleNamespace(model="m", **{of: 0.1}), "ci_low")
    assert fmt.is_mean(SimpleNamespace(model="m", mean=0.1), "ci_low")
    assert fmt.is_mean(SimpleNamespace(rule="se", diff=None, estimate=0.1), "ci_low")


def test_a_limit_of_a_tiny_metric_is_rounded_up_with_its_exponent():
    """It was "< 1.00e−06" for every smaller one."""
    assert [fmt.below(x, 6) for x in (5.123e-9, 9.999e-9, 5e-5)] == ["< 5.13e−09", "< 1.00e−08", "< 5.00e−05"]
    assert [fmt.below(x, 3) for x in (0.0121, 0.0)] == ["< 0.013", "< 0.001"]


@pytest.mark.parametrize("shape", [(0, 0), (3, 0)])
@pytest.mark.parametrize("ask", [hn.compare, hn.gate, lambda a, b: hn.arena([a, b]), lambda a, b: hn.analyze(a)])
def test_scores_without_a_place_for_an_answer_are_refused_by_name(ask, shape):
    a, b = (run(scores("t", np.zeros(shape)), scores("u", np.eye(12)[:, :2]), model=name) for name in "ab")
    with pytest.raises(hn.InputError, match=r"t, acc: scores must be an \(n, K\) array"):
        ask(a, b)
