"""Families of rows, verdicts after adjustment, and the regression gate."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import harness_noise as hn
from harness_noise import estimate_difference
from harness_noise.analysis.comparison import compare_runs
from harness_noise.analysis.gate import gated
from harness_noise.cli import main
from harness_noise.data.questions import Questions
from harness_noise.data.scores import Group, Run, Scores
from harness_noise.leaderboard.build import arena
from harness_noise.report import html, text
from harness_noise.report.fmt import by_test
from harness_noise.report.sentences import sentence
from harness_noise.results.rows import Comparison, Difference
from harness_noise.settings import Settings
from harness_noise.stats.decision import holm


def run(model: str, tasks: dict[str, np.ndarray], groups: tuple[Group, ...] = (), metric: str = "acc") -> Run:
    scores = tuple(
        Scores(task, metric, "none", Questions(tuple(map(str, range(len(values))))), values[:, None],
               higher_is_better=True)
        for task, values in tasks.items()
    )  # fmt: skip
    return Run(model, f"run of {model}", "array", scores=scores, groups=groups)


def two(shifts: dict[str, float], groups: tuple[Group, ...] = (), n: int = 80) -> tuple[Run, Run]:
    rng = np.random.default_rng(7)
    base = {task: rng.normal(size=n) for task in shifts}
    a = {task: base[task] + shift + 0.5 * rng.normal(size=n) for task, shift in shifts.items()}
    return run("new", a, groups), run("old", base, groups)


def only(a: Any, b: Any, **choices: Any) -> Comparison:
    row = estimate_difference(a, b, **choices)
    return Comparison({"margin": choices.get("margin"), "adjust": "holm"}, (row,))


class TestFamilies:
    GROUPS = (Group("all", "acc", "none", ("a", "b", "c")), Group("some", "acc", "none", ("b", "c")))

    def test_groups_and_lone_tasks_first_then_the_subtasks_of_each_group(self) -> None:
        pair = two(dict.fromkeys(["a", "b", "c", "alone"], 0.1), self.GROUPS)
        found = compare_runs([pair], Settings())
        by_task = {row.task: (family, row) for family, row in zip(found.families, found.comparisons, strict=True)}
        assert {task: family for task, (family, _) in by_task.items()} == {
            "a": "all", "b": "some", "c": "some", "alone": "", "all": "", "some": "",
        }  # fmt: skip
        for members in (("a",), ("b", "c"), ("alone", "all", "some")):
            rows = [by_task[task][1] for task in members]
            expected = holm([row.p_value for row in rows])
            assert [row.p_adjusted for row in rows] == pytest.approx(list(expected))

    def test_all_pairs_with_a_baseline_are_in_one_family(self) -> None:
        a, b = two({"t": 0.15})
        other = replace(a, model="other")
        found = compare_runs([(a, b), (other, b)], Settings())
        assert found.families == ("", "")
        assert found.comparisons[0].p_adjusted == pytest.approx(2 * found.comparisons[0].p_value)

    def test_a_row_without_p_is_adjusted_by_its_sign_test(self) -> None:
        """Every question worse by the same amount: p is null, and the sign test counts in the family."""
        rng = np.random.default_rng(0)
        base = rng.normal(size=12)
        a = run("new", {"same": base - 1, "noise": base + rng.normal(size=12)})
        b = run("old", {"same": base, "noise": base})
        same, noise = compare_runs([(a, b)], Settings()).comparisons
        assert (same.p_value, same.p_adjusted, same.verdict) == (None, None, "B better")
        assert noise.p_adjusted == noise.p_value  # the larger of two
        a6, b6 = (
            run(m, {t: v[:, 0][:6] for t, v in ((s.task, s.values) for s in r.scores)}) for m, r in (("n", a), ("o", b))
        )
        alone = compare_runs([(replace(a6, scores=a6.scores[:1]), replace(b6, scores=b6.scores[:1]))], Settings())
        assert alone.comparisons[0].verdict == "B better"  # p = 2/64
        beside = compare_runs([(a6, b6)], Settings()).comparisons[0]
        assert (beside.verdict, "not_after_adjustment" in beside.diagnostics) == ("not separable", True)


class TestVerdict:
    def test_it_follows_the_adjusted_p_and_says_so(self) -> None:
        a, b = two({f"t{i}": 0.12 if i == 0 else 0.0 for i in range(12)})
        found = compare_runs([(a, b)], Settings())
        back = [row for row in found.comparisons if "not_after_adjustment" in row.diagnostics]
        assert back
        for row in found.comparisons:
            assert (row.verdict == "not separable") == (row.p_adjusted >= 0.05)
            single = not row.ci_low <= 0 <= row.ci_high
            assert ("not_after_adjustment" in row.diagnostics) == (single and row.verdict == "not separable")
        for shown in (text.markdown(found), text.latex(found), html.page(found)):
            assert "significant alone" in shown
            assert "Holm" in shown
        single_words = compare_runs([(a, b)], Settings(adjust="none")).comparisons
        assert sum(row.verdict != "not separable" for row in single_words) > sum(
            row.verdict != "not separable" for row in found.comparisons
        )

    def test_what_is_taken_back_may_be_equivalent(self) -> None:
        a, b = two({f"t{i}": 0.12 if i == 0 else 0.0 for i in range(12)})
        found = compare_runs([(a, b)], Settings(margin=5.0))
        assert {row.verdict for row in found.comparisons if "not_after_adjustment" in row.diagnostics} == {
            "equivalent within 5"
        }

    def test_arenas_follow_the_p_adjusted_over_a_benchmarks_pairs(self) -> None:
        rng = np.random.default_rng(3)
        base = rng.normal(size=100)
        runs = [run(f"m{i}", {"t": base + 0.02 * i + 0.3 * rng.normal(size=100)}) for i in range(8)]
        board = arena(runs, Settings()).boards[0]
        back = board.pairs.flags["not_after_adjustment"]
        for i, pair in enumerate(board.pairs):
            assert (pair.verdict != "not separable") == (pair.p_adjusted < 0.05)
            assert back[i] == (pair.p_value < 0.05 <= pair.p_adjusted)
        assert back.any()
        significant = [abs(pair.diff) for pair in board.pairs if pair.p_value < 0.05]
        assert board.benchmark.smallest_significant_diff == min(significant)


class TestGate:
    @given(st.integers(0, 2**32 - 1), st.sampled_from([0.0, 0.1, 0.3]), st.booleans(), st.sampled_from([0.9, 0.95]))
    @settings(max_examples=80, deadline=None)
    def test_with_one_row_it_is_the_interval(self, seed: int, margin: float, lower: bool, level: float) -> None:
        rng = np.random.default_rng(seed)
        n, spread = int(rng.integers(3, 40)), float(rng.choice([0.1, 1.0]))
        row = estimate_difference(rng.normal(-0.3, spread, n), rng.normal(0, spread, n), level=level)
        row = replace(row, higher_is_better=not lower)
        best = -row.ci_low if lower else row.ci_high
        assert gated(Comparison({}, (row,)), margin=margin).failed == (best < -margin)

    @pytest.mark.parametrize("test", ["bootstrap", "sign", "permutation"])
    @pytest.mark.parametrize("margin", [0.0, 0.05, 0.2])
    def test_of_other_tests_it_is_the_interval_too(self, test: Any, margin: float) -> None:
        rng = np.random.default_rng(2)
        for _ in range(10):
            b = (rng.random(60) < 0.7).astype(float)
            a = np.where(rng.random(60) < 0.3, 0.0, b)
            found = only(a, b, test=test, margin=margin, resamples=500)
            assert gated(found).failed == (found.comparisons[0].ci_high < -margin)

    def test_p_is_that_of_a_one_sided_t_test(self) -> None:
        rng = np.random.default_rng(5)
        a, b = rng.normal(-0.2, 1, 30), rng.normal(0, 1, 30)
        for margin in (0.0, 0.1):
            expected = stats.ttest_1samp(a - b, -margin, alternative="less").pvalue
            assert gated(only(a, b), margin=margin).rows[0].p_value == pytest.approx(expected, rel=1e-9)

    def test_it_is_holms_over_all_rows_whatever_their_groups(self) -> None:
        group = Group("g", "acc", "none", ("a", "b"))
        pair = two({"a": -0.1, "b": -0.05, "c": -0.02}, (group,))
        found = gated(compare_runs([pair], Settings()))
        p = [row.p_value for row in found.rows]
        assert [row.p_adjusted for row in found.rows] == pytest.approx(list(holm(p)))
        plain = gated(compare_runs([pair], Settings(adjust="none")))
        assert [row.p_adjusted for row in plain.rows] == [row.p_value for row in plain.rows]
        assert sorted(row.p_value for row in plain.rows) == sorted(p)
        assert gated(compare_runs([pair], Settings(adjust="bh"))).rows == found.rows

    def test_the_margin_is_the_comparisons_unless_another_is_given(self) -> None:
        pair = two({"t": -0.5})
        found = compare_runs([pair], Settings(margin=2.0))
        assert (gated(found).margin, gated(found).failed, gated(found, margin=0.0).failed) == (
            2.0,
            False,
            True,
        )
        with pytest.raises(ValueError, match="must not be negative"):
            gated(found, margin=-1.0)

    def test_one_bad_task_of_twenty_is_found_and_noise_is_not(self) -> None:
        quiet = {f"t{i}": 0.0 for i in range(20)}
        assert not gated(compare_runs([two(quiet)], Settings())).failed
        found = gated(compare_runs([two(quiet | {"t7": -0.4})], Settings()))
        assert [row.task for row in found.failing] == ["t7"]


class TestSaid:
    def files(self, folder: Path, shift: float) -> list[str]:
        rng = np.random.default_rng(1)
        base = rng.normal(size=(3, 40))
        paths = []
        for name, values in (("new", base + shift + 0.1 * rng.normal(size=base.shape)), ("old", base)):
            path = folder / f"{name}.csv"
            rows = [f"t{t},{i},{score}" for t, line in enumerate(values.tolist()) for i, score in enumerate(line)]
            path.write_text("\n".join(["task,question,score", *rows]) + "\n")
            paths.append(str(path))
        return paths

    @pytest.mark.parametrize(
        ("shift", "code", "words"),
        [
            (0.0, 0, "pass: no loss beyond the margin 0.1 is shown in 3 rows; a loss of "),
            (-0.5, 1, r"fail: t\d score: A − B = −0\.\d+ is shown to be below −0.1, p (< )?\S+ and 2 more"),
        ],
    )
    def test_the_gate_says_what_it_did(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str], shift: float, code: int, words: str
    ) -> None:
        gate = ["--fail-on", "regression", "--margin", "0.1"]
        assert main(["compare", *self.files(tmp_path, shift), *gate]) == code
        shown = " ".join(capsys.readouterr().err.split())
        assert re.search(f"--fail-on regression: {words}", shown)

    @pytest.mark.parametrize(
        ("choices", "name"),
        [
            ({}, "t, 39 df"),
            ({"test": "sign"}, "sign test; CI: t, 39 df"),
            ({"test": "permutation"}, "permutation; CI: t, 39 df"),
            ({"test": "bootstrap"}, "bootstrap"),
            ({"interval": "bootstrap"}, "t, 39 df; CI: bootstrap"),
            ({"test": "bootstrap", "clusters": np.arange(40) // 4}, "cluster bootstrap"),
            ({"clusters": np.arange(40) // 4}, "t, 9 df"),
        ],
    )
    def test_every_interval_says_whose_it_is(self, choices: dict[str, Any], name: str) -> None:
        rng = np.random.default_rng(9)
        a, b = rng.normal(0.5, 1, 40), rng.normal(size=40)
        row = estimate_difference(a, b, resamples=500, **choices)
        assert by_test(row) == name
        found = Comparison(Settings().to_dict(), (row,))
        for shown in (text.markdown(found), text.latex(found), html.page(found)):
            assert name in re.sub(r"\s+", " ", shown)
        for part in name.split("; CI: "):
            assert part in sentence(row)

    def test_where_nothing_varies_it_is_named_too(self) -> None:
        row: Difference = estimate_difference(np.ones(12), np.zeros(12))
        assert (row.p_value, row.interval, by_test(row)) == (None, "bonett-price", "sign test; CI: Bonett–Price")
        assert hn.estimate_difference(np.ones(12), np.zeros(9), unpaired=True).interval == "agresti-caffo"
