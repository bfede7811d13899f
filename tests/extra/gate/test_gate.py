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
from harness_noise.cli import main
from harness_noise.data.questions import Questions
from harness_noise.data.scores import Group, Run, Scores
from harness_noise.extra.arena.build import arena
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
            assert "significant on its own" in shown
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
    @settings(max_examples=60, deadline=None)
    def test_with_one_row_it_is_the_interval(self, seed: int, margin: float, lower: bool, level: float) -> None:
        rng = np.random.default_rng(seed)
        n, spread = int(rng.integers(3, 40)), float(rng.choice([0.1, 1.0]))
        a, b = (run(m, {"t": rng.normal(mean, spread, n)}) for m, mean in (("a", -0.3), ("b", 0.0)))
        if lower:
            a, b = (replace(x, scores=(replace(x.scores[0], higher_is_better=False),)) for x in (a, b))
        row = hn.compare(a, b, level=level).rows[0]
        gate = hn.gate(a, b, level=level, margin=margin)
        best = -row.ci_low if lower else row.ci_high
        assert gate.failed == (best < -margin)
        assert gate.rows[0].limit == pytest.approx(-best if lower else best)

    @pytest.mark.parametrize("test", ["t", "sign", "permutation", "bootstrap", "wild"])
    def test_it_fails_where_compare_says_worse_whatever_the_test(self, test: Any) -> None:
        """40 pairs near the border: test, p and limit are those of `compare`."""
        rng, worse = np.random.default_rng(3), 0
        for _ in range(40):
            a, b = borderline(rng)
            row = hn.compare(a, b, test=test, resamples=500).rows[0]
            gate = hn.gate(a, b, test=test, resamples=500)
            worse += gate.failed
            assert gate.failed == (row.verdict == "B better")
            assert gate.rows[0].p_value == pytest.approx(row.p_value / 2, rel=1e-9)
            if test in ("sign", "permutation"):
                assert gate.rows[0].limit is None
            else:
                assert gate.rows[0].limit == row.ci_high
                assert gate.failed == (row.ci_high < 0)
        assert 5 < worse < 38

    @pytest.mark.parametrize("test", ["t", "bootstrap", "wild"])
    def test_at_a_margin_p_and_limit_agree(self, test: Any) -> None:
        rng, seen = np.random.default_rng(4), set()
        for _ in range(20):
            a, b = borderline(rng)
            for rule in ("regression", "no-loss"):
                row = hn.gate(a, b, test=test, resamples=500, margin=0.06, rule=rule).rows[0]
                beyond = row.limit < -0.06 if rule == "regression" else row.limit > -0.06
                assert (row.p_value < 0.025) == beyond
                seen.add((rule, beyond))
        assert len(seen) >= 3

    @pytest.mark.parametrize("test", ["sign", "permutation"])
    def test_a_test_without_a_limit_knows_no_margin(self, test: Any) -> None:
        a, b = borderline(np.random.default_rng(1))
        with pytest.raises(hn.InputError, match="leave `margin` out"):
            hn.gate(a, b, test=test, margin=0.02)
        with pytest.raises(hn.InputError, match="`ratio`"):
            hn.gate(a, b, test=test, ratio=0.98)
        with pytest.raises(hn.InputError, match="leave `interval` out"):
            hn.gate(a, b, test=test, interval="t")

    def test_a_few_large_losses_are_not_what_the_sign_test_shows(self) -> None:
        d = np.concatenate([np.full(20, 0.1), np.full(4, -9.0), np.zeros(6)])
        a, b = run("a", {"t": d + 1}), run("b", {"t": np.ones(30)})
        row = hn.compare(a, b, test="sign").rows[0]
        assert row.p_value < 0.05
        assert row.diff < 0
        assert row.verdict == "not separable"
        assert hn.gate(a, b, test="sign").passed

    def test_p_is_that_of_a_one_sided_t_test(self) -> None:
        rng = np.random.default_rng(5)
        x, y = rng.normal(-0.2, 1, 30), rng.normal(0, 1, 30)
        for margin in (0.0, 0.1):
            expected = stats.ttest_1samp(x - y, -margin, alternative="less").pvalue
            found = hn.gate(run("a", {"t": x}), run("b", {"t": y}), margin=margin)
            assert found.rows[0].p_value == pytest.approx(expected, rel=1e-9)

    def test_it_is_holms_over_all_rows_whatever_their_groups(self) -> None:
        a, b = two({"a": -0.1, "b": -0.05, "c": -0.02})
        a, b = (replace(x, groups=(Group("g", "acc", "none", ("a", "b")),)) for x in (a, b))
        found = hn.gate(a, b)
        p = [row.p_value for row in found.rows]
        assert [row.p_adjusted for row in found.rows] == pytest.approx(list(holm(p)))
        plain = hn.gate(a, b, adjust="none")
        assert [row.p_adjusted for row in plain.rows] == [row.p_value for row in plain.rows]
        assert sorted(row.p_value for row in plain.rows) == sorted(p)
        assert hn.gate(a, b, adjust="bh").rows == found.rows

    def test_one_bad_task_of_twenty_is_found_and_noise_is_not(self) -> None:
        quiet = {f"t{i}": 0.0 for i in range(20)}
        assert not hn.gate(*two(quiet)).failed
        assert [row.task for row in hn.gate(*two(quiet | {"t7": -0.4})).failing] == ["t7"]

    def test_compare_says_what_took_the_place_of_old_options(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["compare", "a", "b", "--fail-on", "regression"]) == 2
        assert "harness-noise gate A --against B" in " ".join(capsys.readouterr().err.split())
        assert main(["compare", "a", "b", "--combine", "stouffer"]) == 2
        assert "No such option --combine: the row `overall` is there" in " ".join(capsys.readouterr().err.split())


def borderline(rng: np.random.Generator) -> tuple[Run, Run]:
    """Two runs of 60 right or wrong answers of which 8 to 17 flip, most of them to wrong."""
    flips = int(rng.integers(8, 18))
    gained = int(flips * rng.uniform(0.1, 0.3))
    d = np.concatenate([np.ones(gained), -np.ones(flips - gained), np.zeros(60 - flips)])
    old = np.where(d < 0, 1.0, np.where(d > 0, 0.0, rng.integers(0, 2, 60)))
    return run("new", {"t": old + d}), run("old", {"t": old})


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
            (0.0, 0, r"pass: no loss beyond the margin of 0\.1 is shown in 3 rows\. That is not proof .* A loss of "),
            (-0.5, 1, r"fail: t\d score: A − B = −0\.\d+ is shown to be below −0.1, p (< )?\S+ and 2 more"),
        ],
    )
    def test_the_gate_says_what_it_did(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str], shift: float, code: int, words: str
    ) -> None:
        new, old = self.files(tmp_path, shift)
        assert main(["gate", new, "--against", old, "--margin", "0.1"]) == code
        assert re.search(words, " ".join(capsys.readouterr().out.split()))

    @pytest.mark.parametrize(
        ("choices", "name"),
        [
            ({}, "t, 39 df"),
            ({"test": "sign"}, "sign test; CI: t, 39 df"),
            ({"test": "permutation"}, "permutation; CI: t, 39 df"),
            ({"test": "bootstrap"}, "bootstrap"),
            ({"interval": "bootstrap"}, "bootstrap"),
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


def test_a_row_without_p_is_no_pass() -> None:
    from harness_noise.extra.gate import judge as analysis
    from harness_noise.extra.gate.results import GateRow

    row = GateRow("t", "acc", "none", threshold=0.0, estimate=0.1, n_questions=9)
    blank = analysis.Candidate(row, p=(float("nan"), float("nan")))
    sure = analysis.Candidate(GateRow("u", "acc", "none", threshold=0.0, estimate=0.1, n_questions=9), p=(0.9, 1e-9))
    for rule in ("regression", "no-loss"):
        for skip in (False, True):
            bar = analysis.Bar(rule=rule, skip_missing=skip)
            found = analysis.decide([blank, sure], bar, {"level": 0.95})
            assert found.outcome == ("pass" if skip else "cannot judge")
            assert [each.task for each in found.rows if each.reason] == ([] if skip else ["t"])
            assert analysis.decide([blank], bar, {"level": 0.95}).outcome == "cannot judge"


@pytest.mark.parametrize("answers", [1, 10, float("inf")])
def test_a_pooled_floor_of_one_row_is_that_row(answers: float) -> None:
    rng = np.random.default_rng(4)
    scores = hn.as_scores((rng.random((150, 2)) < 0.7).astype(float), task="t", higher_is_better=True)
    run = hn.Run("a", "a", "x", scores=(scores,))
    pooled, alone = hn.gate(run, floor=0.75, answers_b=answers, pooled=True).rows
    assert not alone.decides
    assert (pooled.se, pooled.df, pooled.limit) == (alone.se, alone.df, alone.limit)
    assert pooled.p_value == pytest.approx(alone.p_value, rel=1e-12)
    by_itself = hn.gate(run, floor=0.75, answers_b=answers).rows[0]
    assert (by_itself.se, by_itself.df, by_itself.limit) == (pooled.se, pooled.df, pooled.limit)


def test_a_row_that_its_own_p_would_fail_is_marked_by_the_gates_own_test() -> None:
    """The two-sided test of the difference is about 0, and the gate's about the margin."""
    shifts = {"lost": -0.06, "little": -0.12, "gained": 0.12, **{f"t{i}": 0.0 for i in range(6)}}
    gate = hn.gate(*two(shifts), margin=0.01)
    marked = {row.task for row in gate.rows if "not_after_adjustment" in row.diagnostics}
    assert marked == {row.task for row in gate.rows if row.p_value < gate.alpha <= row.p_adjusted}
    assert marked
    assert "gained" not in marked


def test_a_gate_is_true_if_it_passed_and_false_if_it_cannot_judge() -> None:
    a, b = two({"t": -1.0})
    assert hn.gate(b, a)
    assert not hn.gate(a, b)
    few = tuple(run(m, {"t": np.array([0.5, 0.5])}) for m in ("new", "old"))
    unsure = hn.gate(*few, rule="no-loss", margin=0.01)
    assert (unsure.outcome, bool(unsure)) == ("cannot judge", False)
