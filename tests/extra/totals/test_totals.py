"""Totals of runs: numbers against other programs, what the table may be, and the gate on one further run."""

import json

import numpy as np
import pandas as pd
import pytest
from scipy import stats as scipy_stats

import harness_noise as hn
from harness_noise.cli import main
from harness_noise.extra.totals import stats


def table(scores, **columns):
    return [{"run": f"r{i}", "score": score} | columns for i, score in enumerate(scores)]


def with_moments(mean, sd, R, seed=0):
    x = np.random.default_rng(seed).normal(size=R)
    return mean + sd * (x - x.mean()) / x.std(ddof=1)


def test_sixty_one_accuracies_have_the_limit_of_a_next_run():
    (row,) = hn.totals(table(with_moments(0.8602, 0.0095, 61))).totals
    assert (row.n_runs, row.n_questions) == (61, None)
    assert row.mean == pytest.approx(0.8602)
    assert row.sd_runs == pytest.approx(0.0095)
    assert row.next_low == pytest.approx(0.841, abs=5e-5)
    assert row.estimand == "these_questions"
    assert row.diagnostics == ()


def test_the_interval_is_scipys():
    scores = [0.4, 0.45, 0.43, 0.48]
    (row,) = hn.totals(table(scores), level=0.9).totals
    expected = scipy_stats.ttest_1samp(scores, 0).confidence_interval(0.9)
    assert (row.ci_low, row.ci_high) == pytest.approx((expected.low, expected.high))
    spread = np.std(scores, ddof=1) * 1.25**0.5
    assert row.next_worst == pytest.approx(np.mean(scores) - scipy_stats.t.ppf(0.9, 3) * spread)


def test_limits_stay_within_the_range():
    (row,) = hn.totals(table([0.99, 0.9, 1.0])).totals
    assert row.next_high == row.ci_high == 1.0
    (row,) = hn.totals(table([99.0, 90.0, 100.0])).totals
    assert row.next_high > 100
    (row,) = hn.totals(table([99.0, 90.0, 100.0]), range=(0, 100)).totals
    assert row.next_high == 100


def test_answers_make_at_most_so_much():
    near = with_moments(0.8, 0.01, 20)
    (row,) = hn.totals(table(near, n=1600)).totals
    assert row.sd_answers == pytest.approx(0.01)
    assert row.at_most
    assert row.diagnostics == ()
    (row,) = hn.totals(table(with_moments(0.8, 0.02, 20), n=1600)).totals
    assert row.diagnostics == ("shared_repeat_noise",)


def test_totals_at_an_end_of_the_range_bound_no_sd_of_answers():
    for mean in (0.0, 1.0):
        result = hn.totals(table([mean] * 3, n=100))
        assert result.totals[0].sd_answers is None
        assert "SD of answers" not in hn.render(result, "markdown")


def test_one_run_and_equal_runs_have_no_interval():
    (row,) = hn.totals(table([0.5])).totals
    assert row.diagnostics == ("single_run",)
    assert (row.se, row.sd_runs, row.next_low) == (None, None, None)
    (row,) = hn.totals(table([0.5, 0.5, 0.5])).totals
    assert row.diagnostics == ("equal_totals",)
    assert (row.se, row.sd_runs, row.ci_low) == (None, 0.0, None)


def test_models_and_tasks_are_rows_of_their_own():
    rows = (
        table([0.1, 0.2], model="a", task="x") + table([0.3, 0.4], model="a", task="y") + table([0.5, 0.7], model="b")
    )
    found = hn.totals(pd.DataFrame(rows)).totals
    assert [(row.model, row.task, row.n_runs) for row in found] == [("a", "x", 2), ("a", "y", 2), ("b", "", 2)]


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([{"run": "a", "score": 0.1}, {"run": "a", "score": 0.2}], "is in the table twice"),
        ([{"run": "a", "score": 0.1, "n": 10}, {"run": "b", "score": 0.2, "n": 20}], "10, 20 questions"),
        ([{"run": "a", "score": "good"}], "no number"),
        ([{"run": "a", "score": ""}], "is empty"),
        ([{"run": "a", "x": 1, "y": 2}], "several columns of numbers, x, y"),
        ([{"run": "a"}], "the columns run"),
        ([], "at least one row"),
    ],
)
def test_a_table_that_cannot_be_used_is_one_paragraph(rows, said):
    with pytest.raises(hn.InputError, match=said):
        hn.totals(rows)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.csv", b"run,score\na,1,2\n", "line 2: 3 cells, but the header has 2 columns"),
        ("a.csv", b"\xff\xfe", "not UTF-8 text"),
        ("a.jsonl", b'{"run": 1', "line 1: not JSON"),
        ("a.jsonl", b"[1]", "line 1: not an object with columns, but list"),
        ("a.csv", b"run,score\n", "it has no row"),
        ("none.csv", None, "no such file"),
    ],
)
def test_a_file_that_cannot_be_read_says_where(tmp_path, capsys, name, content, said):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    assert main(["analyze", str(tmp_path / name), "--totals"]) == 2
    err = capsys.readouterr().err
    assert said in err
    assert "Traceback" not in err


def test_every_format_reads_the_same(tmp_path):
    rows, frame = table([0.1, 0.2, 0.4]), pd.DataFrame(table([0.1, 0.2, 0.4]))
    frame.to_csv(tmp_path / "x.csv", index=False)
    frame.to_csv(tmp_path / "x.tsv", sep="\t", index=False)
    frame.to_csv(tmp_path / "y.csv.gz", index=False)
    frame.to_json(tmp_path / "x.json", orient="records")
    frame.to_json(tmp_path / "x.jsonl", orient="records", lines=True)
    expected = hn.totals(rows).totals[0].mean
    for path in tmp_path.iterdir():
        assert hn.totals(path).totals[0].mean == pytest.approx(expected)


class TestCompared:
    a, b = [0.80, 0.83, 0.81], [0.84, 0.86, 0.85, 0.88]

    def test_the_test_is_welchs(self):
        (row,) = hn.compare_totals(table(self.a), table(self.b)).total_differences
        expected = scipy_stats.ttest_ind(self.a, self.b, equal_var=False)
        limits = expected.confidence_interval(0.95)
        assert row.p_value == pytest.approx(expected.pvalue)
        assert (row.ci_low, row.ci_high) == pytest.approx((limits.low, limits.high))
        assert row.df == pytest.approx(expected.df)
        assert row.verdict == "B better"

    def test_a_single_run_is_refused(self):
        with pytest.raises(hn.InputError, match="two or more are needed"):
            hn.compare_totals(table([0.8]), table(self.b))

    def test_other_questions_are_refused(self):
        with pytest.raises(hn.InputError, match="not the same ones"):
            hn.compare_totals(table(self.a, n=10), table(self.b, n=20))

    def test_equal_totals_have_no_p(self):
        both = hn.compare_totals(table([0.5, 0.5]), table([0.6, 0.6]))
        assert "whether A and B differ is not known" in both.sentence
        (row,) = both.total_differences
        assert (row.p_value, row.se, row.verdict) == (None, None, "not separable")
        assert row.diagnostics == ("equal_totals",)


class TestGate:
    baseline = table(with_moments(0.8602, 0.0095, 61))

    def test_one_run_is_held_against_the_limit_of_a_next_run(self):
        (low,) = (row.next_low for row in hn.totals(self.baseline).totals)
        assert hn.gate_totals(table([low + 1e-6]), self.baseline).outcome == "pass"
        assert hn.gate_totals(table([low - 1e-6]), self.baseline).outcome == "fail"
        assert hn.gate_totals(table([low - 0.01]), self.baseline, margin=0.0101).outcome == "pass"

    def test_the_loss_that_would_be_shown_with_80_per_cent_power(self):
        """The sentence said "no loss that is possible would be shown" of every gate on totals."""
        (row,) = hn.gate_totals(table([0.8602]), self.baseline, margin=0.01).rows
        t = scipy_stats.t.ppf(0.975, 60)
        power = scipy_stats.nct.cdf(-t, 60, -(row.sees - 0.01) / row.se)
        assert power == pytest.approx(0.8, abs=1e-6)
        assert "A loss of" in hn.gate_totals(table([0.8602]), self.baseline).sentence
        wide = hn.gate_totals(table([0.5]), table([0.2, 0.8]), range=(0, 1))
        assert wide.rows[0].sees is None
        assert "No loss that is possible" in wide.sentence

    def test_no_loss_passes_only_where_a_loss_is_excluded(self):
        same = table(with_moments(0.8602, 0.0095, 20, seed=1))
        assert hn.gate_totals(same, self.baseline, rule="no-loss", margin=0.01).outcome == "pass"
        assert hn.gate_totals(same, self.baseline, rule="no-loss", margin=0.001).outcome == "cannot judge"
        assert hn.gate_totals(table([0.7, 0.71]), self.baseline, rule="no-loss").outcome == "fail"

    def test_a_floor_takes_two_runs(self):
        assert hn.gate_totals(table([0.80, 0.81, 0.80]), floor=0.7, rule="no-loss").outcome == "pass"
        assert hn.gate_totals(table([0.80, 0.81, 0.80]), floor=0.9).outcome == "fail"
        gate = hn.gate_totals(table([0.80]), floor=0.9)
        assert gate.outcome == "cannot judge"
        assert "one run" in gate.sentence

    def test_several_rows_are_adjusted(self):
        both = [row | {"task": task} for task in ("x", "y") for row in self.baseline]
        new = [row | {"task": task} for task in ("x", "y") for row in table([0.8405])]
        assert hn.gate_totals(table([0.8405]), self.baseline).outcome == "fail"
        assert hn.gate_totals([new[0], new[1] | {"score": 0.9}], both).outcome == "pass"

    def test_the_exit_code_is_the_verdict(self, tmp_path, capsys):
        for name, rows in (("old", self.baseline), ("new", table([0.8]))):
            pd.DataFrame(rows).to_csv(tmp_path / f"{name}.csv", index=False)
        new, old = (str(tmp_path / f"{name}.csv") for name in ("new", "old"))
        assert main(["gate", new, "--against", old, "--totals", "--format", "json"]) == 1
        assert json.loads(capsys.readouterr().out)["gate"]["outcome"] == "fail"
        assert main(["gate", new, "--against", str(tmp_path), "--totals"]) == 2
        assert f"{tmp_path} is a folder: name a table" in capsys.readouterr().err
        assert main(["gate", old, "--floor", "0.85", "--totals"]) == 0
        assert main(["gate", old, "--floor", "87%", "--totals"]) == 1
        capsys.readouterr()
        assert main(["gate", old, "--floor", "85", "--totals"]) == 2
        assert "--floor 85 is outside the range of score, 0 to 1. Did you mean 0.85 (85%)?" in capsys.readouterr().err


class TestByRun:
    def test_answers_alone_make_the_spread_of_independent_repeats(self):
        rng = np.random.default_rng(0)
        p = rng.uniform(size=(400, 1))
        values = (rng.uniform(size=(400, 12)) < p).astype(float)
        (row,) = hn.totals(frame(values)).totals
        assert row.n_runs == 12
        assert not row.at_most
        assert row.sd_runs == pytest.approx(values.mean(axis=0).std(ddof=1))
        assert row.sd_answers == pytest.approx(np.sqrt(values.var(axis=1, ddof=1).sum()) / 400, rel=0.02)
        assert row.diagnostics == ()

    def test_a_shared_cause_is_seen(self):
        rng = np.random.default_rng(1)
        shift = np.array([-0.2, 0.0, 0.2])
        values = (rng.uniform(size=(300, 3)) < 0.5 + shift).astype(float)
        result = hn.totals(frame(values))
        assert result.totals[0].diagnostics == ("shared_repeat_noise",)
        assert [each.mean for each in result.run_means] == pytest.approx(values.mean(axis=0).tolist())

    def test_runs_of_one_model_are_on_their_common_questions(self, tmp_path):
        values = np.random.default_rng(2).integers(0, 2, (30, 2)).astype(float)
        for j in range(2):
            rows = frame(values[j:, [j]]).assign(model="m", question=[f"q{i}" for i in range(j, 30)])
            rows.to_csv(tmp_path / f"{j}.csv", index=False)
        (row,) = hn.totals([tmp_path / "0.csv", tmp_path / "1.csv"]).totals
        assert (row.n_runs, row.n_questions) == (2, 29)
        assert row.mean == pytest.approx(values[1:].mean())

    def test_one_answer_to_each_question_is_refused(self):
        with pytest.raises(hn.InputError, match="several answers"):
            hn.totals(frame(np.ones((5, 1))))


def frame(values):
    n, K = values.shape
    where = [(f"q{i}", j) for i in range(n) for j in range(K)]
    return pd.DataFrame({"question": [q for q, _ in where], "repeat": [j for _, j in where], "score": values.ravel()})


@pytest.mark.parametrize("form", ["table", "json", "markdown", "latex", "csv", "sentence"])
def test_every_format_shows_totals(form):
    for result in (hn.totals(table([0.1, 0.2, 0.3])), hn.compare_totals(table([0.1, 0.2]), table([0.3, 0.5]))):
        assert "score" in hn.render(result, form)
        assert "on the same questions" in result.sentence


def test_keywords_about_answers_are_refused(capsys, tmp_path):
    with pytest.raises(hn.InputError, match="`cluster`"):
        hn.totals(table([0.1, 0.2]), cluster="x")
    path = tmp_path / "x.csv"
    frame(np.ones((5, 2))).to_csv(path, index=False)
    assert main(["analyze", str(path), "--totals", "--by", "length"]) == 2
    assert "no use for --by" in capsys.readouterr().err
    assert main(["compare", str(path), str(path), "--totals"]) == 2
    assert "are answers and not totals" in capsys.readouterr().err


def test_a_next_run_is_within_its_limits_as_often_as_said():
    """10,000 sets of R runs and one further: coverage of both limits, and of Welch's test with unequal spreads."""
    rng, trials = np.random.default_rng(5), 10_000
    error = 4 * np.sqrt(0.05 * 0.95 / trials)
    for R in (2, 3, 10):
        x = rng.normal(size=(trials, R + 1))
        of = [stats.spread(row[:R]) for row in x]
        t = stats.quantile(0.975, R - 1)
        inside = [abs(row[R] - each.mean) < t * each.sd * (1 + 1 / R) ** 0.5 for row, each in zip(x, of, strict=True)]
        assert abs(np.mean(inside) - 0.95) < error
        covered = [abs(each.mean) < t * each.se for each in of]
        assert abs(np.mean(covered) - 0.95) < error


def test_welch_keeps_its_level_with_unequal_spreads():
    rng, trials = np.random.default_rng(6), 4_000
    p = []
    for _ in range(trials):
        of = stats.welch(stats.spread(rng.normal(0, 3, 5)), stats.spread(rng.normal(0, 1, 12)))
        p.append(2 * min(stats.tails(of, 0.0)))
    assert abs(np.mean(np.array(p) < 0.05) - 0.05) < 4 * np.sqrt(0.05 * 0.95 / trials)


def test_questions_that_a_run_lacks_are_counted():
    rows = [{"question": i, "repeat": k, "score": (i * k) % 2} for i in range(20) for k in range(5 if i < 6 else 3)]
    found = hn.totals(pd.DataFrame(rows))
    assert (found.totals[0].n_runs, found.totals[0].n_questions) == (5, 6)
    assert "14 of 20 questions of DataFrame are left out" in found.notes[-1].as_text()
    runs = [
        pd.DataFrame([{"model": "m", "question": i, "score": i % 2} for i in part]) for part in (range(9), range(4, 12))
    ]
    found = hn.totals(runs)
    assert found.totals[0].n_questions == 5
    assert "7 of 12 questions of m" in found.notes[-1].as_text()
