"""Measures beside the score: what they are made of, what they refuse, and that no number is silently wrong."""

from __future__ import annotations

import json
import math
import random
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.special import ndtri, stdtrit

import harness_noise as hn
from harness_noise.analysis.mean import analyze_run
from harness_noise.data.measures import UNBOUNDED, parse_measures, spellings, usage_of, usages
from harness_noise.data.scores import Run
from harness_noise.io.measures import Price, price_of
from harness_noise.report.sentences import trade_offs
from harness_noise.report.summary import FLIPPED, summarise
from harness_noise.report.text import render
from harness_noise.settings import Settings
from harness_noise.stats.contrast import design
from harness_noise.stats.moments import ratio_skewness
from support.notes import noted
from support.tables import table

HEADER = ("task", "question", "repeat", "model", "score", "cost", "output_tokens", "input_tokens", "cached", "turns")


def rows_of(model, *, task="t", seed=1, n=40, K=3, dear=1.0, better=0.0):
    rng = np.random.default_rng(seed)
    easy = np.random.default_rng(99).random(n)
    for i in range(n):
        for k in range(K):
            tokens = int(rng.lognormal(5, 0.8)) + 1
            yield (
                task, i, k, model, int(rng.random() < 0.2 + 0.5 * easy[i] + better), 1e-5 * tokens * dear, tokens,
                100 + i, "", k + 1,
            )  # fmt: skip


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return table(tmp_path / "runs.csv", HEADER, *rows_of("a", dear=2.0, better=0.15), *rows_of("b", seed=2))


def values(path, model, column, K=3):
    lines = [line.split(",") for line in path.read_text().splitlines()[1:]]
    at = HEADER.index(column)
    return np.array([float(line[at]) for line in lines if line[3] == model]).reshape(-1, K)


def test_a_measure_is_the_mean_of_its_column_with_the_kernel_of_a_score(file):
    row = hn.analyze(file, measures=["cost"]).estimates[0]
    own = hn.estimate(values(file, "a", "cost"), range=(-1e9, 1e9), interval="t")
    assert (row.metric, row.scorer, row.unit, row.higher_is_better) == ("cost", "none", "$", False)
    for name in ("mean", "se", "se_total", "se_data", "se_prediction", "df"):
        assert getattr(row, name) == pytest.approx(getattr(own, name), rel=1e-12)
    assert row.range is None
    assert row.interval == "t"  # though all costs lie in [0, 1]


def test_measures_of_two_runs_are_paired_differences(file):
    rows = hn.compare(file, models=["a", "b"], measures=["score", "cost", "output_tokens"]).comparisons
    own = hn.estimate_difference(values(file, "a", "cost"), values(file, "b", "cost"))
    assert [row.metric for row in rows] == ["score", "cost", "output_tokens"]
    assert (rows[1].diff, rows[1].se) == pytest.approx((own.diff, own.se), rel=1e-12)
    assert rows[1].verdict == "B better"


@pytest.mark.parametrize("K", [1, 3])
def test_a_ratio_is_that_of_the_sums_with_the_linearised_standard_error(tmp_path, K):
    path = table(tmp_path / "r.csv", HEADER, *rows_of("a", K=K, n=60))
    row = hn.analyze(path, measures=["cost/score"]).estimates[0]
    x, y = (values(path, "a", name, K).mean(axis=1) for name in ("cost", "score"))
    ratio = x.sum() / y.sum()
    e = (x - ratio * y) / y.mean()
    assert row.mean == pytest.approx(ratio, rel=1e-12)
    assert row.se == pytest.approx(e.std(ddof=1) / math.sqrt(60), rel=1e-12)
    assert (row.metric, row.unit) == ("cost/score", "$")


def test_a_difference_of_ratios_is_of_the_questions_that_both_have(tmp_path):
    a = [row for row in rows_of("a", seed=5) if row[1] != 3]  # question 3 is B's alone
    path = table(tmp_path / "r.csv", HEADER, *a, *rows_of("b", seed=6))
    row = hn.compare(path, models=["a", "b"], measures=["output_tokens/score"]).comparisons[0]
    keep = np.arange(40) != 3
    sums = [values(path, "b", name)[keep].mean(axis=1).sum() for name in ("output_tokens", "score")]
    assert row.n_questions == 39
    assert row.mean_b == pytest.approx(sums[0] / sums[1], rel=1e-12)
    assert row.diff == pytest.approx(row.mean_a - row.mean_b, rel=1e-9)
    assert (row.wins_a, row.wins_b, row.ties, row.p_sign) == (None, None, None, None)
    for together in (hn.compare, hn.arena):
        with pytest.raises(hn.InputError, match="no question has a ratio of sums, so none has a sign"):
            together(path, measures=["output_tokens/score"], test="sign")


def test_a_ratio_of_a_group_has_the_weights_of_its_tasks(tmp_path):
    path = table(tmp_path / "g.csv", HEADER, *rows_of("a", task="t1", n=20), *rows_of("a", task="t2", n=60, seed=8))
    result = hn.analyze(path, measures=["cost/score"], groups={"all": "t*"})
    whole = next(row for row in result.estimates if row.task == "all")
    x, y = (values(path, "a", name) for name in ("cost", "score"))
    assert whole.mean == pytest.approx(x.mean() / y.mean(), rel=1e-12)


def test_arena_and_compare_say_the_same_of_measures_and_ratios(file):
    for measure in ("cost", "cost/score"):
        pair = next(hn.arena(file, measures=[measure]).pairs)
        row = hn.compare(file, models=["a", "b"], measures=[measure]).comparisons[0]
        for name in ("diff", "se", "df", "p_value", "ci_low", "ci_high", "mean_a", "wins_a", "unit"):
            ours, theirs = getattr(pair, name), getattr(row, name)
            assert ours == theirs or ours == pytest.approx(theirs, rel=1e-9), (measure, name)


def test_a_ratio_whose_denominator_may_be_0_is_null_with_its_code(tmp_path):
    rows = [
        ("t", i, 0, model, int(i == 0 or (model == "b" and i < 20)), 0.1, 10, 5, "", 1)
        for model in "ab"
        for i in range(40)
    ]
    path = table(tmp_path / "z.csv", HEADER, *rows)
    row, sound = hn.analyze(path, measures=["cost/score"]).estimates
    assert (row.mean, row.se, row.ci_low, row.diagnostics) == (None, None, None, ("ratio_undefined",))
    assert sound.mean == pytest.approx(0.2)
    difference = hn.compare(path, models=["a", "b"], measures=["cost/score"]).comparisons[0]
    assert difference.diff is None
    assert "ratio_undefined" in difference.diagnostics
    assert hn.arena(path, measures=["cost", "cost/score"]).boards[0].benchmark.metric == "cost"
    alone = hn.arena(path, measures=["cost/score"])
    (pair,) = alone.pairs
    assert pair.to_dict() == difference.to_dict()
    assert [model.mean for model in alone.models] == [row.mean, sound.mean]
    assert not any("share" in note for note in noted(alone))
    for call in (hn.compare, hn.arena):
        with pytest.raises(hn.InputError, match="none has a sign"):
            call(path, measures=["cost/score"], test="sign")


def test_missing_of_either_part_drops_the_answer_from_both(tmp_path):
    rows = [list(row) for row in rows_of("a", n=30, K=2)]
    rows[0][5] = ""  # no cost
    rows[3][4] = ""  # no score
    path = table(tmp_path / "m.csv", HEADER, *rows)
    row = hn.analyze(path, measures=["cost/score"]).estimates[0]
    cost, score = (np.array([[float(r[at]) if r[at] != "" else np.nan for r in rows]]).reshape(30, 2) for at in (5, 4))
    holes = np.isnan(cost) | np.isnan(score)
    x, y = (np.nanmean(np.where(holes, np.nan, column), axis=1) for column in (cost, score))
    assert row.mean == pytest.approx(x.sum() / y.sum(), rel=1e-12)
    assert row.n_missing == 2


def test_missing_zero_is_about_scores_and_never_makes_a_cost_of_0(tmp_path):
    rows = [list(row) for row in rows_of("a", n=30, K=1)]
    rows[0][5] = ""
    path = table(tmp_path / "m.csv", HEADER, *rows)
    row = hn.analyze(path, measures=["cost"], missing="zero").estimates[0]
    assert row.mean == pytest.approx(np.mean([r[5] for r in rows[1:]]), rel=1e-12)
    assert (row.n_missing, row.missing) == (1, {"not_logged": 1})


@pytest.mark.parametrize("flag", ["true", "1"])
def test_a_cost_from_a_cache_is_none(tmp_path, flag):
    rows = [list(row) for row in rows_of("a", n=30, K=1)]
    rows[0][8], rows[0][5] = flag, 0.0
    rows[1][5] = 0.0  # nothing says why, but others have paid
    path = table(tmp_path / "c.csv", HEADER, *rows)
    row = hn.analyze(path, measures=["cost"]).estimates[0]
    assert row.mean == pytest.approx(np.mean([r[5] for r in rows[2:]]), rel=1e-12)
    assert row.missing == {"cached": 2}
    assert "cached_usage" in row.diagnostics


def test_a_model_without_a_price_has_no_cost_until_one_is_given(tmp_path):
    rows = [[*row[:5], 0.0, *row[6:]] for row in rows_of("a", n=30, K=2)]
    path = table(tmp_path / "local.csv", HEADER, *rows)
    with pytest.raises(hn.InputError, match=r"cost \(60 answers have tokens and no price"):
        hn.analyze(path, measures=["cost"])
    row = hn.analyze(path, measures=["cost"], prices=["input=2,output=10"]).estimates[0]
    assert row.mean == pytest.approx(np.mean([2e-6 * r[7] + 1e-5 * r[6] for r in rows]), rel=1e-12)


def test_prices_are_by_model_and_cached_input_has_its_own():
    prices = ["input=1,output=2", "gpt-*:input=3,output=4,cache_read=0.5"]
    assert price_of("gpt-4", prices) == Price("gpt-*", 3, 4, 0.5, 3)
    assert price_of("other", prices) == Price("", 1, 2, 1, 1)
    assert price_of("other", prices[1:]) is None
    for wrong in ("input=1", "in=1,output=2", "input=-1,output=2", "input=nan,output=2", "input=a,output=2", ""):
        with pytest.raises(hn.InputError, match="dollars per million tokens"):
            Price.parse(wrong)


def test_a_price_without_usage_says_so(tmp_path):
    path = table(tmp_path / "p.csv", ("question", "score"), *((i, i % 2) for i in range(20)))
    with pytest.raises(hn.InputError, match=r"cost \(`prices` are of tokens, and there are none\) is not in"):
        hn.analyze(path, measures=["cost"], prices=["input=1,output=1"])
    with pytest.raises(hn.InputError, match="`prices` are for costs"):
        hn.analyze(path, prices=["input=1,output=1"])


def test_a_measure_that_no_run_has_lists_what_there_is(file):
    with pytest.raises(
        hn.InputError, match=r"`measures` wibble is not in any of the 2 runs\. There are score, cost"
    ) as told:
        hn.analyze(file, measures=["wibble"])
    assert "turns" in str(told.value)
    assert "\n" not in str(told.value)


@pytest.mark.parametrize(("value", "words"), [(-1, "negative"), ("inf", "infinite"), ("many", "no number")])
def test_what_cannot_be_a_cost_is_refused_by_name(tmp_path, value, words):
    rows = [list(row) for row in rows_of("a", n=5, K=1)]
    rows[2][5] = value
    path = table(tmp_path / "bad.csv", HEADER, *rows)
    with pytest.raises(hn.InputError, match=f"line 4: cost .*{words}"):
        hn.analyze(path, measures=["cost"])
    hn.analyze(path)  # nobody has asked for it


def test_a_column_is_lower_is_better_unless_it_is_said(file):
    plain, said = (hn.analyze(file, measures=[name]).estimates[0] for name in ("turns", "turns:higher"))
    assert (plain.higher_is_better, said.higher_is_better, plain.unit) == (False, True, "")
    assert plain.metric == said.metric == "turns"
    assert hn.analyze(file, measures=["score/cost"]).estimates[0].higher_is_better


@pytest.mark.parametrize("name", ["", "/", "a/", "/b", "a/b/c", "pass^2/cost"])
def test_odd_names_are_refused(name):
    with pytest.raises(hn.InputError, match="name a measure"):
        parse_measures([name])


def test_two_scorers_of_one_answer_do_not_double_its_usage(tmp_path):
    header = ("question", "repeat", "metric", "score", "cost")
    rows = [(i, k, name, (i + k) % 2, 0.1 * (i + 1)) for i in range(10) for k in range(2) for name in ("em", "f1")]
    path = table(tmp_path / "two.csv", header, *rows)
    result = hn.analyze(path, measures=["score", "cost", "cost/score"])
    assert [row.metric for row in result.estimates] == ["em", "f1", "cost", "cost/em", "cost/f1"]
    assert result.estimates[2].mean == pytest.approx(0.55)
    assert result.estimates[2].repeats_max == 2
    chosen = hn.analyze(path, measures=["cost", "cost/score"], metrics=["em"])
    assert [row.metric for row in chosen.estimates] == ["cost", "cost/score"]


def test_one_answer_with_two_usages_is_refused(tmp_path):
    path = table(
        tmp_path / "t.csv", ("question", "repeat", "score", "cost"), (1, 1, 1, 0.1), (1, 1, 1, 0.2), (2, 1, 0, 1)
    )
    with pytest.raises(
        hn.InputError, match=r"the answer on line 2 comes again with another usage: cost 0\.1; cost 0\.2"
    ):
        hn.analyze(path, measures=["cost"])


def test_identical_answers_leave_the_noise_of_a_ratio_unsplit(tmp_path):
    rows = [("t", i, k, "a", i % 2, 0.01 * (i + 1), 10, 5, "", 1) for i in range(20) for k in range(3)]
    row = hn.analyze(table(tmp_path / "same.csv", HEADER, *rows), measures=["cost/score"]).estimates[0]
    assert (row.se_data, row.se_prediction) == (None, None)
    assert "identical_repeats" in row.diagnostics


@pytest.mark.parametrize(
    ("keywords", "name"),
    [({"looks": 3}, "looks"), ({"complete": "x.csv"}, "complete")],
)
def test_what_only_a_score_obeys_is_refused(file, keywords, name):
    with pytest.raises(hn.InputError, match=f"`{name}`"):
        hn.compare(file, models=["a", "b"], measures=["cost"], **keywords)


@pytest.mark.parametrize("keywords", [{"margin": 0.1}, {"range": (0, 1)}])
def test_what_has_one_scale_is_for_one_measure(file, keywords):
    with pytest.raises(hn.InputError, match="is about one measure"):
        hn.compare(file, models=["a", "b"], measures=["score", "cost"], **keywords)


def test_a_run_in_memory_keeps_its_measures_and_is_read_again_for_others(file):
    a, _ = hn.read(file, measures=["score", "cost"])
    assert [row.metric for row in hn.analyze(a).estimates] == ["score", "cost"]
    assert [row.metric for row in hn.analyze(a, measures=["cost/score"]).estimates] == ["cost/score"]
    assert [row.metric for row in hn.analyze(a, measures=["turns"], tasks=["t"]).estimates][:1] == ["turns"]


def test_repeats_of_several_files_have_their_ratios_joined(tmp_path):
    paths = [table(tmp_path / f"{i}.csv", HEADER, *rows_of("a", seed=i, K=1)) for i in range(3)]
    row = hn.analyze(paths, measures=["cost/score"], as_repeats=True).estimates[0]
    x, y = (np.concatenate([values(path, "a", name, 1) for path in paths], axis=1) for name in ("cost", "score"))
    assert row.repeats_max == 3
    assert row.mean == pytest.approx(x.sum() / y.sum(), rel=1e-12)


def test_what_no_file_has_answers_for_is_made_of_the_joined_ones(tmp_path):
    paths = [table(tmp_path / f"{i}.csv", HEADER, *rows_of("a", seed=i, K=1)) for i in range(3)]
    scores = np.concatenate([values(path, "a", "score", 1) for path in paths], axis=1)
    asked = ["pass@2", "pass^3", "consistency", "score", "cost"]
    rows = {row.metric: row for row in hn.analyze(paths, measures=asked, as_repeats=True).estimates}
    assert [*rows] == ["pass@2", "pass^3", "consistency^3", "score", "cost"]
    assert rows["pass@2"].mean == pytest.approx(hn.pass_at_k(scores, 2).mean(), rel=1e-12)
    assert rows["pass^3"].mean == pytest.approx(scores.all(axis=1).mean(), rel=1e-12)
    assert (rows["pass@2"].repeats_max, rows["score"].repeats_max, rows["cost"].repeats_max) == (1, 3, 3)
    assert "uses_all_repeats" in rows["pass@2"].diagnostics
    with pytest.raises(hn.InputError, match="pass@4"):
        hn.analyze(paths, measures=["pass@4"], as_repeats=True)
    with pytest.raises(hn.InputError, match="pass@2"):
        hn.analyze(paths[0], measures=["pass@2"])


@pytest.mark.parametrize(("measure", "words"), [("cost", "and"), ("output_tokens", ",")])
def test_the_trade_is_one_line(tmp_path, measure, words):
    path = table(tmp_path / "t.csv", HEADER, *rows_of("a", dear=0.3, better=0.3, n=200), *rows_of("b", seed=2, n=200))
    text = str(hn.compare(path, models=["a", "b"], measures=["score", measure]))
    assert ("a is better and cheaper (0.00" in text) == (words == "and")
    assert ("better, not shown to differ in output_tokens" in text) == (words == ",")


def test_consistency_and_pass_k_of_one_run_and_of_two(tmp_path):
    rows = [
        ("t", i, k, model, int((i * 7 + k * shift) % 5 < 3), 0.1, 1, 1, "", 1)
        for model, shift in (("a", 1), ("b", 3)) for i in range(40) for k in range(4)
    ]  # fmt: skip
    path = table(tmp_path / "k.csv", HEADER, *rows)
    scores = values(path, "a", "score", 4)
    right = scores.sum(axis=1)
    same, hat = hn.analyze(path, measures=["consistency", "pass^3"]).estimates[:2]
    assert (same.metric, hat.metric) == ("consistency^4", "pass^3")
    alike = np.isin(right, (0, 4)).astype(float)
    assert (same.mean, same.se) == pytest.approx((alike.mean(), alike.std(ddof=1) / math.sqrt(40)))
    pass3 = np.array([math.comb(int(c), 3) / math.comb(4, 3) for c in right])
    assert (hat.mean, hat.se) == pytest.approx((pass3.mean(), pass3.std(ddof=1) / math.sqrt(40)))
    board = hn.arena(path, measures=["score"]).models[0]
    assert hat.se == pytest.approx(board.pass_hat_k_se[3])
    row = hn.compare(path, models=["a", "b"], measures=["pass^3"]).comparisons[0]
    assert row.mean_a == pytest.approx(hat.mean)


def test_consistency_needs_several_answers(tmp_path):
    path = table(tmp_path / "one.csv", HEADER, *rows_of("a", K=1))
    with pytest.raises(hn.InputError, match="made of several answers to each question"):
        hn.analyze(path, measures=["consistency"])


def test_the_frontier_names_who_beats_whom(tmp_path):
    models = (("good", 1.0, 0.35), ("cheap", 0.2, 0.0), ("bad", 3.0, -0.2))
    rows = [
        row
        for i, (name, dear, better) in enumerate(models)
        for row in rows_of(name, seed=i, n=150, dear=dear, better=better)
    ]
    result = hn.arena(table(tmp_path / "f.csv", HEADER, *rows), frontier="cost")
    places = {model.model: (model.frontier, model.beaten_by) for model in result.boards[0].models}
    assert places == {"good": ("yes", ()), "cheap": ("yes", ()), "bad": ("no", ("good", "cheap"))}
    assert {model.frontier for model in result.boards[1].models} == {None}
    stored = json.loads(render(result, "json"))
    assert stored["settings"]["frontier"] == "cost"
    assert [model["beaten_by"] for model in stored["models"][:3]] == [[], [], ["good", "cheap"]]
    assert "bad off it (another is better and cheaper)" in " ".join(str(result).split())
    pages = hn.write_html(result, tmp_path / "pages")
    assert "Frontier" in pages[1].read_text()


def test_usage_of_one_answer():
    assert usage_of({"cost": "0.5"}, ["cost"]) == {"cost": 0.5}
    assert usage_of({"prompt_tokens": 3, "use": {"n": 2}}, ["input_tokens", "use.n"]) == {
        "input_tokens": 3.0,
        "use.n": 2.0,
    }
    assert usage_of({"total_tokens": 0, "time": 2.0}, ["output_tokens", "time"]) == {
        "output_tokens": "cached",
        "time": 2.0,
    } | {"output_tokens": "cached"}
    assert usage_of({"cached": True, "time": 2.0, "turns": 3}, ["time", "turns"]) == {"time": "cached", "turns": 3.0}


@pytest.mark.parametrize("clusters", [False, True])
def test_bootstrap_t_of_a_mean_and_of_a_difference_is_wider_on_the_side_of_the_tail(clusters):
    rng = np.random.default_rng(5)
    labels = [str(i // 2) for i in range(60)] if clusters else None
    x, y = rng.lognormal(0, 1.2, (60, 1)), rng.lognormal(-2, 0.5, (60, 1))
    runs = [
        hn.Run(model=name, name=name, harness="", scores=(hn.as_scores(v, labels, unit="$", metric="cost"),))
        for name, v in (("x", x), ("y", y))
    ]
    boot, t = (hn.compare(*runs, interval=interval).comparisons[0] for interval in ("bootstrap-t", "t"))
    for row, plain in (
        (hn.estimate(x, labels, interval="bootstrap-t"), hn.estimate(x, labels, interval="t")),
        (boot, t),
    ):
        value = getattr(row, "mean", None) or row.diff
        assert row.interval == "bootstrap-t"
        assert row.ci_high - value > 1.3 * (value - row.ci_low)
        assert row.se == plain.se
        assert row.ci_low > value - (plain.ci_high - plain.ci_low) / 2


def test_bootstrap_t_is_refused_for_few_clusters_and_differences_of_scores():
    rng = np.random.default_rng(6)
    x, y = rng.random((20, 1)), rng.random((20, 1))
    five = [str(i % 5) for i in range(20)]
    with pytest.raises(hn.InputError, match="needs 6 clusters or more, and there are 5"):
        hn.estimate(x, five, interval="bootstrap-t")
    with pytest.raises(hn.InputError, match="needs 6 questions or more, and there are 4"):
        hn.estimate(x[:4], interval="bootstrap-t")
    runs = [hn.Run(model=name, name=name, harness="", scores=(hn.as_scores(v),)) for name, v in (("x", x), ("y", y))]
    with pytest.raises(hn.InputError, match="is for measures such as cost"):
        hn.compare(*runs, interval="bootstrap-t")
    with pytest.raises(hn.InputError, match="interval"):
        hn.estimate_difference(x, y, interval="bootstrap-t")
    costs = [
        hn.Run(model=name, name=name, harness="", scores=(hn.as_scores(v, five, unit="$", metric="cost"),))
        for name, v in (("x", x), ("y", y))
    ]
    with pytest.raises(hn.InputError, match="needs 6 clusters"):
        hn.compare(*costs, interval="bootstrap-t")


def test_bootstrap_t_is_the_textbook_one():
    """One resample at a time, as Efron and Tibshirani write it down (§12.5)."""
    from harness_noise.stats.contrast import design
    from harness_noise.stats.resampling import draws, studentised

    d = np.random.default_rng(2).lognormal(0, 1, 25)
    t = studentised(d, design(25), 300, np.random.default_rng(0))
    ((_, picked),) = draws(25, 300, np.random.default_rng(0))
    own = [(d[again].mean() - d.mean()) / (d[again].std(ddof=1) / 5) for again in picked]
    assert t == pytest.approx(own, rel=1e-9)


def test_a_long_tail_of_differences_has_its_code_in_compare_and_arena(tmp_path):
    rng = np.random.default_rng(3)
    for dear, coded in ((1.5, True), (0.1, False)):
        spread, every = {"a": dear, "b": 0.1}, {"a": 2, "b": 3}
        rows = [(i, m, int(i % every[m] == 0), rng.lognormal(0, spread[m])) for i in range(60) for m in "ab"]
        path = table(tmp_path / f"{dear}.csv", ("question", "model", "score", "cost"), *rows)
        row = hn.compare(path, models=["a", "b"], measures=["cost"]).comparisons[0]
        pair = next(hn.arena(path, measures=["cost"]).pairs)
        assert ("skewed" in row.diagnostics, "skewed" in pair.diagnostics) == (coded, coded)


def test_a_profile_of_an_arena_has_no_costs(file, tmp_path):
    result = hn.arena(file, measures=["score", "cost"])
    stored = json.loads(hn.write_profile(result, tmp_path / "p.json").read_text())
    assert [row["metric"] for row in stored["benchmarks"]] == ["score"]


def test_explain_regresses_a_measure(tmp_path):
    header = ("question", "model", "score", "cost", "length")
    rows = [(i, "a", i % 2, 0.1 + 0.02 * i + 0.001 * (i % 3), i) for i in range(40)]
    path = table(tmp_path / "e.csv", header, *rows)
    fit = hn.regress(path, on=["length"], measures=["cost"])
    assert fit.coefficients[-1].metric == "cost"
    assert fit.coefficients[-1].coefficient == pytest.approx(0.02, rel=0.05)


def ratio_of(x, y):
    part = replace(hn.as_scores(x, metric="x/y", bounds=UNBOUNDED), unit="", per=y[:, None])
    return analyze_run(Run("m", "m", "test", scores=(part,)), Settings()).estimates[0]


def test_the_end_of_a_ratio_on_the_side_of_its_tail_is_about_fiellers():
    """Neither part has a tail of its own, so what is added is what the denominator's variation makes."""
    rng = np.random.default_rng(1)
    x, y = (rng.permutation(ndtri(np.arange(0.5, 120) / 120)) + mean for mean in (3, 1.4))
    row, t = ratio_of(x, y), stdtrit(119, 0.975)
    v = np.cov(x, y) / 120  # roots of (x̄ − R ȳ)² = t² var(x̄ − R ȳ)
    a, b, c = y.mean() ** 2 - t**2 * v[1, 1], x.mean() * y.mean() - t**2 * v[0, 1], x.mean() ** 2 - t**2 * v[0, 0]
    low, high = ((b + sign * math.sqrt(b * b - a * c)) / a for sign in (-1, 1))
    plain = row.mean + t * row.se
    assert "skewed" in row.diagnostics
    assert high > plain + 0.2 * row.se
    assert row.ci_high - plain == pytest.approx(high - plain, rel=0.35)
    assert row.ci_low == pytest.approx(row.mean - t * row.se)
    assert row.ci_low < low


def test_what_a_denominator_adds_is_minus_three_correlations_times_its_relative_error():
    z, y = np.random.default_rng(2).normal(size=(2, 50)) + np.array([[0], [4]])
    added = -3 * np.corrcoef(z, y)[0, 1] * y.std(ddof=1) / math.sqrt(50) / y.mean()
    assert ratio_skewness(z, y, design(50)) == pytest.approx(added, rel=1e-12)
    pairs = [str(i // 2) for i in range(50)]
    doubled = ratio_skewness(np.repeat(z[:25], 2), np.repeat(y[:25], 2), design(50, pairs))
    assert doubled == pytest.approx(ratio_skewness(z[:25], y[:25], design(25)), rel=1e-12)


def test_a_cost_has_its_code_and_its_longer_end_where_a_score_would_not_yet():
    d = np.random.default_rng(4).exponential(size=200)
    gamma = ratio_of(d, np.ones(200))
    score = hn.estimate(d, interval="t")
    assert ("skewed" in gamma.diagnostics, "skewed" in score.diagnostics) == (True, False)
    assert gamma.ci_high > score.ci_high
    assert gamma.ci_low == pytest.approx(score.ci_low)


def test_a_ratio_is_asked_for_by_the_name_that_its_row_has(tmp_path):
    header = ("question", "metric", "score", "cost")
    rows = [(i, name, (i + j) % 2, 0.1 * (i + 1)) for i in range(20) for j, name in enumerate(("em", "f1"))]
    path = table(tmp_path / "two.csv", header, *rows)
    named, both = (hn.analyze(path, measures=[name]).estimates for name in ("cost/f1", "cost/score"))
    assert [row.metric for row in both] == ["cost/em", "cost/f1"]
    assert named == both[1:]


def test_more_cached_input_than_input_is_refused(tmp_path):
    header = ("question", "score", "input_tokens", "output_tokens", "cache_read_tokens")
    path = table(tmp_path / "c.csv", header, *((i, i % 2, 10 + i, 5, 2000) for i in range(20)))
    with pytest.raises(hn.InputError, match="more than input_tokens, which have to count them"):
        hn.analyze(path, measures=["cost"], prices=["input=1,output=2,cache_read=0.1"])


def test_sentences_of_measures_have_units_and_nobody_scores_a_cost(file):
    text = " ".join(render(hn.analyze(file, measures=["cost", "cost/score"]), "sentence").split())
    assert "a has a mean of 0.00" in text
    assert "a has a ratio of 0.00" in text
    assert re.search(r" ± [0-9.]+ \$ on t \(cost; ± standard error; n = ", text)
    assert "scores" not in text
    board = " ".join(hn.render(hn.arena(file, measures=["score", "cost"]), details=True).split())
    assert "t (cost): The 2 models at the top differ on" in board


def test_a_model_without_costs_is_named(tmp_path):
    rows = [*rows_of("a"), *rows_of("b", seed=2), *([*row[:5], "", *row[6:]] for row in rows_of("free", seed=3))]
    notes = " ".join(noted(hn.arena(table(tmp_path / "n.csv", HEADER, *rows), frontier="cost")))
    assert "for want of `measures` cost: free (" in notes


def test_a_trade_off_is_that_of_the_model_alone(tmp_path):
    """Two models of one file have one name of a run."""
    models = {"cheap": (1, 0.5), "dear": (2, 4.0)}
    rows = [row for name, (seed, dear) in models.items() for row in rows_of(name, seed=seed, dear=dear)]
    both = table(tmp_path / "both.csv", HEADER, *rows)
    base = table(tmp_path / "base.csv", HEADER, *rows_of("base", seed=3))
    found = hn.compare([both], against=base, measures=["score", "cost"])
    assert [("cheaper" in line, "dearer" in line) for line in trade_offs(found)] == [(True, False), (False, True)]


def test_flips_of_a_small_measure_show_by_how_much_they_differ(tmp_path):
    rows = [(model, f"q{i}", i % 2, 0.001 * (1 + i) * dear) for model, dear in (("a", 1), ("b", 1.5)) for i in range(8)]
    path = table(tmp_path / "cost.csv", ("model", "question", "score", "cost"), *rows)
    found = hn.compare(path, measures=["cost"], questions=1)
    (listed,) = (part for part in summarise(found).sections if part.title == FLIPPED)
    assert listed.rows[0][-3:] == ("0.0080", "0.0120", "−0.0040")


CELLS = ("", "na", None, math.nan, "0", 0, 0.0, "3", 2, 1.5, True, "x", -1, float("inf"), [1], "1e3")
FIELDS = ("prompt_tokens", "input_tokens", "total_tokens", "cost", "latency", "time_s", "cached")


@pytest.mark.parametrize("seed", range(40))
def test_usages_by_columns_are_those_of_each_answer(seed):
    draw = random.Random(seed)
    few = draw.sample(CELLS, draw.choice((2, 4)))  # most columns are plain
    columns = {name: draw.choices(few, k=6) for name in draw.sample(FIELDS, draw.randint(1, 4))}
    names = draw.sample(("input_tokens", "cost", "latency", "time", "prompt_tokens"), 2)
    causes = draw.choices(("", "", "agent", "infrastructure"), k=6) if seed % 2 else [""] * 6
    assert {*columns} <= {*spellings(names), *FIELDS}
    told = {name: column for name, column in columns.items() if name in spellings(names)}

    def outcome(function):
        try:
            return function()
        except hn.InputError as error:
            return str(error)

    answers = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    each = [(answer, names, "f", line, why) for line, (answer, why) in enumerate(zip(answers, causes, strict=True), 1)]
    one_by_one = outcome(lambda: [usage_of(*one) for one in each])
    assert outcome(lambda: usages(told, 6, names, "f", range(1, 7), causes)) == one_by_one
