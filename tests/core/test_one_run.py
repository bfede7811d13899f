"""One run: the range of a metric, its interval near the ends, missing answers, and what is shown of it."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.proportion import proportion_confint

from harness_noise import as_scores, estimate, estimate_difference
from harness_noise.analysis.mean import analyze_run, analyze_runs
from harness_noise.data.native_values import is_proportion
from harness_noise.data.questions import Questions
from harness_noise.data.scores import Group, Run, Scores
from harness_noise.errors import InputError
from harness_noise.report import fmt, text
from harness_noise.report.fmt import data_noise
from harness_noise.report.summary import summarise
from harness_noise.settings import Settings
from support.notes import noted


def scores(values, metric="quality", task="t", **fields):
    values = np.asarray(values, dtype=float)
    values = values[:, None] if values.ndim == 1 else values
    missing = int(np.isnan(values).sum())
    keys = tuple(map(str, range(len(values))))
    return Scores(task, metric, "none", Questions(keys), values, n_missing=missing, **fields)


def run(*parts, groups=()):
    return Run("m", "r", "test", scores=parts, groups=groups)


def row(part, **settings):
    return analyze_run(run(part), Settings(**settings)).estimates[0]


class TestRange:
    def test_graded_scores_have_the_width_of_t(self):
        rng = np.random.default_rng(0)
        for values in (rng.beta(60, 8, (1000, 1)), rng.beta(20, 20, (1000, 1))):
            e = estimate(values)
            t = stats.t.ppf(0.975, e.df) * e.se
            assert (e.ci_high - e.ci_low) / (2 * t) == pytest.approx(1, abs=0.01)
            assert (e.interval, e.range) == ("wilson", (0.0, 1.0))

    @pytest.mark.parametrize("interval", ["auto", "korn-graubard", "t", "bootstrap"])
    @pytest.mark.parametrize(("low", "high"), [(0, 100), (-1, 1), (1, 5)])
    def test_a_scale_moves_the_interval_and_nothing_else(self, interval, low, high):
        x = np.random.default_rng(1).choice([0, 0.25, 1], (40, 3), p=[0.1, 0.2, 0.7])
        unit = row(scores(x), interval=interval)
        for part, settings in (
            (scores(low + (high - low) * x, bounds=(low, high)), {}),
            (scores(low + (high - low) * x), {"range": (low, high)}),
        ):
            e = row(part, interval=interval, **settings)
            expected = [low + (high - low) * end for end in (unit.ci_low, unit.ci_high)]
            assert [e.ci_low, e.ci_high] == pytest.approx(expected, abs=1e-9 * (high - low))
            assert e.range == (low, high)

    def test_clopper_pearson_of_percentages(self):
        x = np.array([1.0] * 28 + [0.0] * 2)
        unit, percent = (
            estimate(x, interval="clopper-pearson"),
            estimate(100 * x, interval="clopper-pearson", range=(0, 100)),
        )
        assert percent.ci_low == pytest.approx(100 * unit.ci_low)

    def test_what_counts_said_declared_seen(self):
        half = np.tile([0.0, 1.0], 20)
        assert row(scores(half)).range == (0, 1)
        assert row(scores(half, bounds=(0, 100))).range == (0, 100)
        assert row(scores(half, bounds=(0, 100)), range=(-1, 1)).range == (-1, 1)
        assert row(scores(2 * half)).range is None
        assert row(scores(2 * half)).interval == "t"

    @pytest.mark.parametrize("value", [0.0, 1.0])
    def test_one_end_throughout_is_no_proportion_unless_it_says_so(self, value):
        flat = np.full(30, value)
        percent = analyze_run(run(scores(flat, "percent_parseable")), Settings())
        (e,) = percent.estimates
        assert (e.range, e.ci_low, e.interval) == (None, None, "none")
        assert "zero_variance" in e.diagnostics
        assert "`range=(0, 1)`" in noted(percent)[0]
        for known in (
            row(scores(flat, "acc_norm")), row(scores(flat, bounds=(0, 1))), row(scores(flat), range=(0, 1)),
            estimate(flat),
        ):  # fmt: skip
            assert known.interval == "wilson"
            assert known.ci_high - known.ci_low == pytest.approx(0.1219, abs=2e-3)

    def test_names_of_proportions(self):
        assert all(map(is_proportion, ("acc", "acc_norm", "exact_match", "pass@1", "Accuracy", "em", "is_correct")))
        assert not any(map(is_proportion, ("percent_parseable", "score", "bleu", "account", "mean")))

    def test_scores_outside_are_refused_with_their_values(self):
        with pytest.raises(InputError, match=r"go from 0 to 62\.5.*`range=\(0, 1\)`.*LOW, HIGH"):
            row(scores([0.0, 62.5]), range=(0, 1))
        with pytest.raises(InputError, match=r"declared range \[0, 1\]"):
            row(scores([0.0, 2.0], bounds=(0, 1)))
        with pytest.raises(InputError, match=r"`range=\(0, 1\)`"):
            estimate_difference([0.0, 50.0, 20.0], [0.0, 10.0, 20.0], range=(0, 1))
        with pytest.raises(InputError, match="lowest and highest"):
            Settings(range=(0, math.inf))

    def test_a_difference_without_variance_is_scaled(self):
        a, b = np.ones(20), np.zeros(20)
        unit = estimate_difference(a, b)
        percent = estimate_difference(100 * a, 100 * b, range=(0, 100))
        assert (percent.ci_low, percent.ci_high) == pytest.approx((100 * unit.ci_low, 100 * unit.ci_high))
        alone = estimate_difference(100 * a, 100 * b, range=(0, 100), unpaired=True)
        other = estimate_difference(a, b, unpaired=True)
        assert alone.ci_low == pytest.approx(100 * other.ci_low)
        assert estimate_difference(100 * a, 100 * b).ci_low is None

    def test_a_group_has_the_range_of_its_tasks(self):
        x = np.tile([0.0, 1.0], 10)
        parts = (scores(x, task="u", bounds=(0, 1)), scores(x, task="v", bounds=(0, 1)))
        group = Group("g", "quality", "none", ("u", "v"))
        assert analyze_run(run(*parts, groups=(group,)), Settings()).estimates[-1].range == (0, 1)


class TestNearTheEnd:
    def limits(self, clusters, n=1000, K=1):
        out = []
        for wrong in range(15):
            x = np.ones((n, K))
            x[:wrong, 0] = 0
            out.append(estimate(x, clusters))
        return out

    def test_the_limit_does_not_jump_with_the_first_wrong_answer(self):
        found = self.limits(np.arange(1000) % 10)
        lows = np.array([e.ci_low for e in found])
        assert lows[0] == pytest.approx(0.6615, abs=1e-4)
        assert lows[1] == pytest.approx(lows[0], abs=0.03)
        assert np.abs(np.diff(lows)).max() < 0.05
        assert lows[14] > 0.97

    def test_many_answers_of_few_questions_do_not_jump(self):
        lows = np.array([e.ci_low for e in self.limits(None, n=40, K=20)])
        assert np.abs(np.diff(lows)).max() < 0.02

    def test_independent_answers_have_the_plain_wilson_interval(self):
        for wrong in (0, 1, 5, 30):
            x = np.ones(100_000)
            x[:wrong] = 0
            e = estimate(x)
            expected = proportion_confint(100_000 - wrong, 100_000, method="wilson")
            assert 1 - e.ci_low == pytest.approx(1 - expected[0], rel=1e-3)

    def test_few_failures(self):
        found = self.limits(None)
        assert ["few_failures" in e.diagnostics for e in found] == [wrong < 10 for wrong in range(15)]
        found = self.limits(np.arange(1000) % 20)  # beyond 20 one cluster has two of them
        assert ["few_failures" in e.diagnostics for e in found] == [wrong < 10 for wrong in range(15)]
        assert "few_failures" in estimate(1 - np.eye(1, 50)[0]).diagnostics
        x = np.repeat([1.0, 0.0], [6, 8])  # clusters of one question are questions
        assert ["few_failures" in estimate(x, labels).diagnostics for labels in (None, np.arange(14))] == [True, True]
        assert "few_failures" not in estimate(np.random.default_rng(0).random(50)).diagnostics

    def test_failures_count_by_effective_number(self):
        """Thirty clusters hold a wrong answer, and one of them more than all others together."""
        clusters = np.r_[np.zeros(60, dtype=int), 1 + np.arange(940) % 100]
        x = np.ones(1000)
        x[:89] = 0
        sums = np.r_[60.0, np.ones(29)]
        assert sums.sum() ** 2 / (sums**2).sum() < 10
        assert "few_failures" in estimate(x, clusters).diagnostics
        x[:59] = 1
        assert "few_failures" not in estimate(x, clusters).diagnostics

    def test_a_few_large_clusters_among_many_decide_how_many_failures_there_are(self):
        """With 13 degrees of freedom, by (Σ f²)²/Σ f⁴; clusters of one size with as many failures are enough."""
        sizes = np.maximum(1, np.floor(170 / np.arange(1, 201))).astype(int)
        labels = np.repeat(np.arange(200), sizes)
        x = (np.arange(len(labels)) % 5 > 0).astype(float)
        row = estimate(x, labels)
        assert row.df < 20
        assert "few_failures" in row.diagnostics
        assert "few_failures" not in estimate(x, np.arange(len(labels)) % 200).diagnostics

    def test_graded_scores_that_are_mostly_0_count_by_what_they_are_worth(self):
        x = np.r_[np.ones(3), np.full(9, 0.25), np.zeros(77)]
        assert "few_failures" in estimate(x).diagnostics  # 3 + 9/4
        assert "few_failures" not in estimate(np.tile(x, 2)).diagnostics  # 10.5
        assert "few_failures" not in estimate(1 - np.random.default_rng(0).beta(2, 20, 60)).diagnostics

    @pytest.mark.parametrize("G", [40, 1000])
    def test_few_failures_of_many_answers(self, G):
        """They count by the failure rate of the worst question of each cluster."""
        x = np.ones((1000, 20))
        x[:40, :5] = 0
        clusters = np.arange(1000) % G
        assert "few_failures" not in estimate(x, clusters).diagnostics  # 40 · 5/20 = 10
        x[40:80, 0] = 0  # of the same clusters where there are 40
        x[0, 0] = 1
        assert ("few_failures" in estimate(x, clusters).diagnostics) == (G == 40)
        x[40:80] = 1
        assert "few_failures" in estimate(x, clusters).diagnostics

    def test_clusters_that_fail_alike_do_not_give_the_interval_of_clusters(self):
        """One wrong answer in each of 10 clusters: no variance between clusters, but 1,000 answers."""
        e = estimate(np.repeat([0.0, 1.0], [10, 990]), np.arange(1000) % 10)
        assert e.se == 0
        assert e.ci_high - e.ci_low < 0.02


class TestMissing:
    def test_both_bounds(self):
        x = np.array([[1, 0, 1], [1, 1, np.nan], [np.nan] * 3, [0, 1, 1.0]])
        e = estimate(x)
        assert e.mean_if_missing_wrong == pytest.approx(np.nan_to_num(x, nan=0.0).mean())
        assert e.mean_if_missing_right == pytest.approx(np.nan_to_num(x, nan=1.0).mean())
        assert (e.n_questions, e.n_missing) == (3, 4)
        assert "missing_matters" in e.diagnostics

    def test_direction_and_range(self):
        x = [[10.0, 20.0], [np.nan, 30.0]]
        e = row(scores(x, bounds=(0, 100), higher_is_better=False))
        assert (e.mean_if_missing_wrong, e.mean_if_missing_right) == (40.0, 15.0)
        e = row(scores(x))
        assert (e.mean_if_missing_wrong, e.mean_if_missing_right) == (None, None)

    def test_a_group_weighs_as_its_mean_does(self):
        parts = scores([1, np.nan, 1.0], task="u"), scores([0, 1.0], task="v")
        for weighting, shares in (("equal", [0.5, 0.5]), ("size", [0.6, 0.4])):
            group = Group("g", "quality", "none", ("u", "v"), weighting)
            e = analyze_run(run(*parts, groups=(group,)), Settings()).estimates[-1]
            assert e.mean_if_missing_wrong == pytest.approx(shares[0] * 2 / 3 + shares[1] * 0.5)

    def test_null_where_nothing_is_missing_or_it_is_not_known_what(self):
        assert estimate([[1, 0.0], [1, 1]]).mean_if_missing_wrong is None
        part = scores([[1, 0], [1, np.nan], [np.nan, 0], [1, 1]])
        unknown = replace(part, n_missing=1)
        assert row(unknown).range == (0, 1)
        assert row(unknown).mean_if_missing_wrong is None
        assert estimate([[1, np.nan], [1, 0], [0, 1.0]], missing="zero").mean_if_missing_wrong is None

    def test_shown_where_it_matters(self):
        rng = np.random.default_rng(0)
        x = np.where(rng.random((60, 2)) < 0.2, np.nan, (rng.random((60, 2)) < 0.7).astype(float))
        table = analyze_runs([run(scores(x))], Settings())
        shown = summarise(table)
        assert "if wrong … right" in [column.heading for column in shown.sections[0].columns]
        assert "missing answers were all wrong or all right" in shown.sentences[0]
        for missing in (1, 2):  # of 100 questions, with an SE of .050
            x = np.where(np.arange(100) < missing, np.nan, np.arange(100) % 2)[:, None]
            assert ("missing_matters" in row(scores(x)).diagnostics) == (missing == 2)
        few = scores(np.where(np.arange(2000)[:, None] == 3, np.nan, rng.integers(0, 2, (2000, 1))))
        assert "missing_matters" not in row(few).diagnostics


class TestSplit:
    def test_single_answers_that_differ(self):
        rng = np.random.default_rng(2)
        hard = (rng.random((60, 4)) < 0.2).astype(float)
        hard[:, 1:] = np.nan
        easy = (rng.random((60, 4)) < 0.9).astype(float)
        e = estimate(np.concatenate([hard, easy]))
        assert {"partly_single_repeat", "single_repeats_differ"} <= set(e.diagnostics)
        s2 = easy.var(axis=1, ddof=1)
        exact = e.se**2 + (s2 * (1 - 1 / 4)).sum() / 120**2
        assert e.se_total**2 == pytest.approx(exact, rel=1e-12)  # singles add nothing: no borrowed variance in it
        same = np.concatenate([easy[:30], np.where(np.arange(4) > 0, np.nan, easy[30:])])
        assert "single_repeats_differ" not in estimate(same).diagnostics

    def test_negative_data_variance_is_shown_as_a_limit(self):
        x = (np.random.default_rng(3).random((60, 3)) < 0.5).astype(float)
        e = estimate(x)
        assert e.var_data < 0
        assert e.se_data == 0
        digits = 3
        table = e._table()
        (shown,) = (
            line[i] for s in summarise(table).sections for line in s.rows
            for i, column in enumerate(s.columns) if column.heading == "data"
        )  # fmt: skip
        assert shown.startswith("< ")
        assert float(shown[2:]) >= 100 * e.se_data_upper
        assert float(shown[2:]) - 100 * e.se_data_upper <= 10 ** (2 - digits)
        assert f"data {shown}" in summarise(table).sentences[0]
        assert f"| &lt; {shown[2:]} |" in text.markdown(table)
        assert f"& $<$ {shown[2:]} &" in text.latex(table)
        assert ",0.0," in text.csv(table)  # numbers stay numbers
        assert "add up to SE²" in {one.code: one.text for one in summarise(table).legend}["negative_data_variance"]

    def test_a_negative_data_variance_without_a_limit_is_not_shown_as_0(self):
        e = estimate(np.array([[0.0, 1.0], [1.0, 0.0], [0.0, 1.0]]))
        assert (e.se_data, e.se_data_upper) == (0, None)
        assert e.var_data < 0
        (section,) = summarise(e._table()).sections
        assert "data" not in [column.heading for column in section.columns]  # nothing is known of it
        assert data_noise(e) == "–"
        (sentence,) = summarise(e._table()).sentences
        assert f"(prediction {fmt.shown(e, e.se_prediction)})" in sentence


class TestNamed:
    def test_the_sentence_names_the_interval(self):
        (sentence,) = summarise(analyze_runs([run(scores(np.tile([0, 1.0], 10)))], Settings())).sentences
        assert "(Wilson, t 19 df)" in sentence

    def test_a_column_where_rows_differ(self):
        parts = scores(np.tile([0, 1.0], 10)), scores(np.arange(30.0), "tokens")
        (section,) = summarise(analyze_runs([run(*parts)], Settings())).sections
        at = [column.heading for column in section.columns].index("interval")
        assert [line[at] for line in section.rows] == ["Wilson, t 19 df", "t, 29 df"]


def test_arrays_are_declared_where_they_fit():
    assert as_scores([0.0, 0.0]).bounds == (0, 1)
    assert as_scores([0.0, 2.0]).bounds is None


class TestLongTails:
    """Hall (1992): t + γ(1 + 2t²)/6 in place of t on the side of the tail, where γ = G1/√n is above 0.2."""

    def test_the_end_on_the_side_of_the_tail_is_moved(self):
        x = np.random.default_rng(7).exponential(size=20)
        for sign in (1, -1):
            row = estimate(sign * x)
            gamma, t = stats.skew(x, bias=False) / np.sqrt(20), stats.t.ppf(0.975, 19)
            assert gamma > 0.2
            near, far = t * row.se, (t + gamma * (1 + 2 * t * t) / 6) * row.se
            expected = (row.mean - near, row.mean + far) if sign > 0 else (row.mean - far, row.mean + near)
            assert row.confidence_interval == pytest.approx(expected, rel=1e-12)
            assert "skewed" in row.diagnostics

    def test_it_is_ts_where_there_is_no_tail(self):
        x = np.random.default_rng(3).normal(5, 1, 60)
        row = estimate(x)
        half = stats.t.ppf(0.975, 59) * row.se
        assert row.confidence_interval == (row.mean - half, row.mean + half)
        assert "skewed" not in row.diagnostics

    def test_right_and_wrong_answers_have_wilsons_interval(self):
        """Which is as skewed as they are."""
        for n, wrong in ((20, 2), (50, 3), (300, 1)):
            row = estimate(np.r_[np.zeros(wrong), np.ones(n - wrong)])
            assert "skewed" not in row.diagnostics

    def test_clusters_of_unequal_size_are_not_a_tail(self):
        rng = np.random.default_rng(11)
        labels = np.repeat(np.arange(60), np.maximum(1, 200 // np.arange(1, 61)))
        row = estimate(rng.normal(5, 1, len(labels)), labels)
        assert "skewed" not in row.diagnostics
        one = estimate(rng.exponential(size=20).repeat(3), np.repeat(np.arange(20), 3))
        assert "skewed" in one.diagnostics

    def test_fixed_questions_and_shared_runs_are_left_alone(self):
        x = np.random.default_rng(7).exponential(size=(20, 1)) + np.random.default_rng(8).normal(0, 0.1, (20, 3))
        assert "skewed" in estimate(x).diagnostics
        assert "skewed" not in estimate(x, questions_are="fixed").diagnostics
        assert "skewed" not in estimate(x, repeats_are="runs").diagnostics
