"""`hn.gate`: rules, ratios, floors, several baseline runs, kept runs, the self-test, and what it refuses to judge."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import harness_noise as hn
from harness_noise.analysis.drawing import with_record
from harness_noise.cli import main
from harness_noise.data.questions import Questions
from harness_noise.data.scores import CorpusScores, Group, Run, Scores, Skipped
from harness_noise.extra.gate.judge import NOTHING_SHARED, Bar, Floor, judge
from harness_noise.extra.stopping.growing import observe
from harness_noise.extra.stopping.rules import Look, StoppingRule
from harness_noise.settings import InPoints, Settings
from harness_noise.stats.intervals import wilson
from harness_noise.stats.power import noncentrality
from support.notes import noted

pytest_plugins = ["pytester"]


def run(name: str, tasks: dict[str, Any], metric: str = "acc", **fields: Any) -> Run:
    """A run of 0/1 (or other) scores, one line of questions for each task."""
    scores = []
    for task, values in tasks.items():
        array = np.atleast_2d(np.asarray(values, dtype=float).T).T
        keys = Questions(tuple(f"q{i}" for i in range(len(array))), prompts=fields.get("prompts"))
        known = {"higher_is_better": True, "bounds": (0.0, 1.0)} | fields.get("scores", {})
        scores.append(Scores(task, metric, "none", keys, array, **known))
    return Run(name, name, "array", scores=tuple(scores), **{k: v for k, v in fields.items() if k in ("groups",)})


def pair(loss: float = 0.0, n: int = 400, tasks: tuple[str, ...] = ("arc", "gsm"), seed: int = 0) -> tuple[Run, Run]:
    """A and B: a tenth of the questions flips by chance, and a share `loss` of them from right to wrong."""
    rng = np.random.default_rng(seed)
    old = {task: (rng.random(n) < 0.7).astype(float) for task in tasks}
    new = {}
    for task, base in old.items():
        values = np.where(rng.random(n) < 0.1, rng.random(n) < 0.7, base).astype(float)
        lost = rng.permutation(np.flatnonzero(values == 1))[: round(loss * n)]
        values[lost] = 0.0
        new[task] = values
    return run("new", new), run("old", old)


class TestRules:
    @pytest.mark.parametrize(
        ("rule", "loss", "margin", "outcome"),
        [
            ("regression", 0.0, 0.02, "pass"), ("regression", 0.1, 0.02, "fail"),
            ("no-loss", 0.0, 0.1, "pass"), ("no-loss", 0.0, 0.005, "cannot judge"), ("no-loss", 0.2, 0.02, "fail"),
        ],
    )  # fmt: skip
    def test_a_rule_says_who_must_prove_what(self, rule: Any, loss: float, margin: float, outcome: str) -> None:
        gate = hn.gate(*pair(loss), rule=rule, margin=margin)
        assert (gate.outcome, gate.passed, gate.failed) == (outcome, outcome == "pass", outcome == "fail")
        assert gate.sentence.startswith(outcome)

    def test_no_loss_is_the_other_one_sided_t_test(self) -> None:
        a, b = pair(tasks=("arc",))
        d = (a.scores[0].values - b.scores[0].values)[:, 0]
        expected = stats.ttest_1samp(d, -0.05, alternative="greater").pvalue
        row = hn.gate(a, b, rule="no-loss", margin=0.05).rows[0]
        assert "few_flips" in row.diagnostics  # the far limit is farther, so p is larger
        assert expected < row.p_value < 20 * expected
        rng = np.random.default_rng(0)
        a, b = run("a", {"t": rng.normal(size=60)}, scores={"bounds": None}), run("b", {"t": rng.normal(size=60)},
                                                                              scores={"bounds": None})  # fmt: skip
        d = (a.scores[0].values - b.scores[0].values)[:, 0]
        expected = stats.ttest_1samp(d, -0.7, alternative="greater").pvalue
        assert hn.gate(a, b, rule="no-loss", margin=0.7).rows[0].p_value == pytest.approx(expected, rel=1e-9)

    def test_questions_that_would_settle_it(self) -> None:
        a, b = pair(tasks=("arc",))
        row = hn.gate(a, b, rule="no-loss", margin=0.005).rows[0]
        nc = stats.norm.ppf(0.975) + stats.norm.ppf(0.8)
        assert row.n_needed == pytest.approx((nc * row.se / 0.005) ** 2 * 400, rel=0.01)

    def test_lower_is_better_is_held_from_above(self) -> None:
        a, b = (replace(side, scores=tuple(replace(part, higher_is_better=False) for part in side.scores))
                for side in pair(0.1, tasks=("arc",)))  # fmt: skip
        assert hn.gate(a, b, margin=0.02).passed
        gate = hn.gate(b, a, margin=0.02)
        assert gate.failed
        assert gate.rows[0].threshold == 0.02
        assert "above 2 points" in gate.sentence

    def test_a_ratio_is_a_contrast(self) -> None:
        a, b = pair(0.03, tasks=("arc",))
        d = (a.scores[0].values - 0.97 * b.scores[0].values)[:, 0]
        row = hn.gate(a, b, ratio=0.97).rows[0]
        assert (row.quantity, row.threshold) == ("A − 0.97·B", 0.0)
        assert row.estimate == pytest.approx(d.mean())
        assert row.se == pytest.approx(d.std(ddof=1) / math.sqrt(len(d)))
        lower = [replace(side, scores=tuple(replace(p, higher_is_better=False, bounds=None) for p in side.scores))
                 for side in (a, b)]  # fmt: skip
        row = hn.gate(*lower, ratio=0.97).rows[0]
        d = (0.97 * a.scores[0].values - b.scores[0].values)[:, 0] / 0.97
        assert row.estimate == pytest.approx(d.mean())

    def test_the_loss_that_is_seen_lies_beyond_the_margin(self) -> None:
        row = hn.gate(*pair(0.03, tasks=("arc",)), margin=0.05).rows[0]
        assert row.se is not None
        assert row.df is not None
        assert row.sees == pytest.approx(0.05 + float(noncentrality(0.05, 0.8, row.df)) * row.se)

    def test_a_ratio_needs_a_baseline_above_0(self) -> None:
        a, b = pair(0.03, tasks=("arc",))
        below = [
            replace(x, scores=tuple(replace(p, values=p.values - 1, bounds=None) for p in x.scores)) for x in (a, b)
        ]
        gate = hn.gate(*below, ratio=0.97)
        assert gate.outcome == "cannot judge"
        assert "baseline above 0" in gate.rows[0].reason

    def test_equal_answers_leave_a_ratio_its_doubt(self) -> None:
        """A − R·B varies only as B does there: 100 equal answers are no proof that 99% are kept."""
        _, b = pair(n=100, tasks=("arc",))
        a = replace(b, name="a", model="a")
        gate = hn.gate(a, b, ratio=0.99, rule="no-loss")
        assert gate.outcome == "cannot judge"
        plain = hn.compare(a, b).rows[0]
        assert gate.rows[0].limit == pytest.approx(plain.ci_low + 0.01 * plain.mean_b)

    def test_pooled_decides_on_the_equal_weight_mean(self) -> None:
        a, b = pair(0.03, n=200, tasks=tuple("abcdefgh"))
        assert not hn.gate(a, b).failed
        gate = hn.gate(a, b, pooled=True)
        assert gate.failed
        row, *others = gate.rows
        diffs = [(x.values - y.values)[:, 0] for x, y in zip(a.scores, b.scores, strict=True)]
        assert row.estimate == pytest.approx(np.mean([d.mean() for d in diffs]))
        assert row.se == pytest.approx(math.sqrt(sum(d.var(ddof=1) / 200 for d in diffs)) / 8)
        assert [(item.decides, item.passed) for item in others] == [(False, None)] * 8

    def test_a_pool_by_size_weighs_tasks_by_the_questions_compared(self) -> None:
        a, b = pair(0.1, n=60)
        short, hollow = (replace(side.scores[0], values=side.scores[0].values.copy()) for side in (a, b))
        hollow.values[:38] = np.nan
        a, b = replace(a, scores=(short, *a.scores[1:])), replace(b, scores=(hollow, *b.scores[1:]))
        row, whole = (
            hn.gate(a, b, pooled=True, weights="size").rows[0],
            hn.compare(a, b, weights="size").comparisons[-1],
        )
        assert (whole.task, row.estimate, row.se) == ("overall", pytest.approx(whole.diff), pytest.approx(whole.se))

    def test_two_metrics_of_one_task_share_its_questions_in_the_pool(self) -> None:
        a, b = pair(0.03, n=200, tasks=("arc",))
        twice = [replace(side, scores=(*side.scores, replace(side.scores[0], metric="acc_norm"))) for side in (a, b)]
        pooled, single = hn.gate(*twice, pooled=True).rows[0], hn.gate(a, b).rows[0]
        assert pooled.se == pytest.approx(single.se, rel=0.01)

    def test_a_pool_has_the_clusters_that_were_named_for_its_tasks(self, tmp_path: Path) -> None:
        rng = np.random.default_rng(0)
        for name in "ab":
            lines = [f"{task},q{i},k{i // 4},{rng.integers(2)}" for task in "tu" for i in range(60)]
            (tmp_path / f"{name}.csv").write_text("\n".join(["task,question,kind,score", *lines]))
        paths = tmp_path / "a.csv", tmp_path / "b.csv"
        gate = hn.gate(*paths, pooled=True, cluster="t=kind")
        each = {row.task: row.se for row in hn.compare(*paths, cluster="t=kind").rows}
        assert gate.rows[0].se == pytest.approx(math.hypot(each["t"], each["u"]) / 2)

    @pytest.mark.parametrize("scale", [1.0, 5.0])
    def test_a_task_that_one_run_has_all_right_is_of_the_range_of_the_others(
        self, tmp_path: Path, scale: float
    ) -> None:
        rng = np.random.default_rng(0)
        for name, chance in (("a", 1.0), ("b", 0.9)):
            lines = [
                f"{task},q{i},{int(rng.random() < p)}" for task, p in (("t", chance), ("u", 0.5)) for i in range(60)
            ]
            other = [f"v,q{i},{scale * rng.integers(2):g}" for i in range(60)]
            (tmp_path / f"{name}.csv").write_text("\n".join(["task,question,score", *lines, *other]))
        paths = tmp_path / "a.csv", tmp_path / "b.csv"
        if scale == 5.0:
            with pytest.raises(hn.InputError, match="metrics of one range"):
                hn.gate(*paths, pooled=True)
            return
        gate, each = hn.gate(*paths, pooled=True), [row.diff for row in hn.compare(*paths).comparisons]
        assert (gate.outcome, gate.rows[0].estimate) == ("pass", pytest.approx(np.mean(each)))

    @pytest.mark.parametrize("skip_missing", [False, True])
    def test_rows_that_missing_answers_leave_open_count_in_the_adjustment(self, skip_missing: bool) -> None:
        """They would have failed the run by Holm over all rows, so the others are not held against fewer."""
        rng = np.random.default_rng(0)
        lost = rng.normal(size=40)
        lost += -0.28 - lost.mean()  # p .02: shown alone, not among four

        def side(name: str, first: np.ndarray, gap: float) -> hn.Run:
            others = [np.where(np.arange(40) == 0, gap, rng.normal(size=40)) for _ in "bcd"]
            each = zip("abcd", (first, *others), strict=True)
            scores = tuple(hn.as_scores(x, task=task, higher_is_better=True) for task, x in each)
            return hn.Run(name, name, "array", scores=scores)

        gate = hn.gate(side("new", lost, np.nan), side("old", np.zeros(40), 0.0), skip_missing=skip_missing)
        row = next(row for row in gate.rows if row.task == "a")
        assert row.p_value < 0.025 < row.p_adjusted == pytest.approx(4 * row.p_value)
        assert gate.outcome == ("pass" if skip_missing else "cannot judge")
        assert len(gate.left_out) == 3 * skip_missing

    def test_a_pool_is_of_means_over_questions_only(self) -> None:
        """What is no such mean stands beside the pool, and is no part of it: it cannot be judged, or is left out."""
        sides = pair(0.0, n=200)
        rng = np.random.default_rng(0)
        keys = Questions(tuple(f"q{i}" for i in range(200)))
        whole = [
            CorpusScores(
                "mt", "bleu", "none", keys, stats=rng.random((200, 1, 2)), value=lambda s: s[..., 0] / s[..., 1]
            )
            for _ in sides
        ]
        a, b = (replace(side, corpus=(part,)) for side, part in zip(sides, whole, strict=True))
        gate = hn.gate(a, b, pooled=True, resamples=200)
        assert gate.outcome == "cannot judge"
        assert "mt bleu: it is not a mean over questions" in gate.sentence
        left = hn.gate(a, b, pooled=True, skip_missing=True, resamples=200)
        alone = hn.gate(*sides, pooled=True)
        assert (left.outcome, left.rows[0].estimate, left.rows[0].se) == (
            "pass", alone.rows[0].estimate, alone.rows[0].se,
        )  # fmt: skip
        assert any(row.metric == "bleu" for row in hn.gate(a, b, resamples=200).rows)

    def test_all_rows_are_one_family_whatever_their_groups(self) -> None:
        groups = (Group("g", "acc", "none", ("arc", "gsm")),)
        a, b = (replace(side, groups=groups) for side in pair(0.03))
        gate = hn.gate(a, b)
        p = sorted(row.p_value for row in gate.rows)
        assert gate.rows[0].p_adjusted == pytest.approx(3 * p[0])


class TestFloors:
    def test_a_floor_is_wilsons(self) -> None:
        a, _ = pair(tasks=("arc",))
        row = hn.analyze(a).rows[0]
        low = row.ci_low
        assert low is not None
        assert low == pytest.approx(wilson(row.mean, 400, float(stats.t.ppf(0.975, 399))).low, abs=1e-3)
        assert hn.gate(a, floor=low - 1e-6, rule="no-loss").passed
        assert hn.gate(a, floor=low + 1e-6, rule="no-loss").outcome == "cannot judge"

    def test_a_published_number_has_its_own_noise(self) -> None:
        a, _ = pair(tasks=("arc",))
        exact, noisy = (hn.gate(a, floor=0.76, n=n).rows[0] for n in (None, 1319))
        own = math.sqrt(0.76 * 0.24 / 1319)
        assert noisy.se == pytest.approx(math.hypot(exact.se, own))
        assert noisy.p_value > exact.p_value

    def test_published_numbers_have_it_in_a_pool_too(self) -> None:
        a, _ = pair()
        exact, noisy = (hn.gate(a, floor=0.76, n=n, pooled=True).rows[0] for n in (None, 1319))
        assert noisy.se == pytest.approx(math.hypot(exact.se, math.sqrt(0.76 * 0.24 / 1319 / 2)))
        assert noisy.p_value > exact.p_value
        again = replace(a, scores=(*a.scores, *(replace(part, metric="em") for part in a.scores)))
        same = hn.gate(again, floor=0.76, n=1319, pooled=True).rows[0]
        assert same.se == pytest.approx(noisy.se)  # two metrics of the same questions are one number twice

    @pytest.mark.parametrize("code", ["stopped_early", "not_a_random_part", "unequal_chances"])
    def test_the_mean_of_other_questions_is_held_against_no_floor(self, code: str) -> None:
        a, _ = pair(tasks=("arc",))
        gate = hn.gate(replace(a, scores=(replace(a.scores[0], diagnostics=(code,)),)), floor=0.5)
        assert (gate.outcome, bool(gate.rows[0].reason)) == ("cannot judge", True)

    def test_baseline_and_floor_are_one_family(self) -> None:
        a, b = pair(0.0)
        gate = hn.gate(a, b, floor=0.9)
        assert [row.quantity for row in gate.rows] == ["A", "A", "A − B", "A − B"]
        assert gate.failed

    THRESHOLDS = """
tasks:
- name: arc
  metrics:
  - {name: "acc,none", value: 0.7}
- name: gsm
  metrics:
  - {name: acc, value: 0.8}
limit: 400
rtol: 0.05
"""

    def test_thresholds_of_inference_engines(self, tmp_path: Path) -> None:
        a, _ = pair()
        path = tmp_path / "model.yaml"
        path.write_text(self.THRESHOLDS)
        rows = {row.task: row for row in hn.gate(a, thresholds=path).rows}
        assert rows["arc"].threshold == pytest.approx(0.7 * 0.95)
        assert rows["gsm"].threshold == pytest.approx(0.8 * 0.95)
        path.write_text("lmeval:\n  limit: 400\n  metrics:\n    acc,none: 0.6\n")
        one = replace(a, scores=a.scores[:1])
        assert hn.gate(one, thresholds=path).rows[0].threshold == 0.6
        path.write_text("lmeval:\n  limit: 400\n  rtol: 0.05\n  task: arc\n  acc,none: 0.6\n")
        assert hn.gate(one, thresholds=path).rows[0].threshold == pytest.approx(0.6 * 0.95)

    @pytest.mark.parametrize(
        ("text", "reason"),
        [
            ("tasks: [{name: arc, metrics: [{name: acc, value: 0.5}]}]", "the thresholds do not name it"),
            ("tasks: [{name: arc, metrics: [{name: acc, value: .5}]}, {name: gsm, metrics: [{name: acc, value: .5}]},"
             "{name: mmlu, metrics: [{name: acc, value: .5}]}]", "mmlu acc: the thresholds name it"),
            ("limit: 50\ntasks: [{name: arc, metrics: [{name: acc, value: .5}]}, {name: gsm, metrics: [{name: acc, "
             "value: .5}]}]", "the thresholds are for 50"),
            ("limit: 1000\ntasks: [{name: arc, metrics: [{name: acc, value: .5}]}, {name: gsm, metrics: [{name: acc, "
             "value: .5}]}]", "it has 400 questions, and the thresholds are for 1,000 (limit): if there are no more"),
        ],
    )  # fmt: skip
    def test_a_file_that_does_not_fit_is_no_pass(self, tmp_path: Path, text: str, reason: str) -> None:
        a, _ = pair()
        path = tmp_path / "model.yaml"
        path.write_text(text)
        gate = hn.gate(a, thresholds=path)
        assert gate.outcome == "cannot judge"
        assert reason in gate.sentence
        partial = hn.gate(a, thresholds=path, skip_missing=True)
        assert not partial.passed or ("NOT judged" in partial.sentence and partial.left_out)

    def test_a_limit_is_of_each_task_of_a_group(self, tmp_path: Path) -> None:
        a, _ = pair()
        grouped = replace(a, groups=(Group("both", "acc", "none", ("arc", "gsm"), "size"),))
        path = tmp_path / "model.yaml"
        for limit, outcome in ((400, "pass"), (800, "cannot judge"), (200, "cannot judge")):
            path.write_text(f"limit: {limit}\ntasks: [{{name: both, metrics: [{{name: acc, value: .3}}]}}]")
            assert hn.gate(grouped, thresholds=path).outcome == outcome

    @pytest.mark.parametrize(
        "text",
        ["tasks: [{name: arc, metrics: [{name: acc, value: .nan}]}]", "tasks: []", "a: [", "- 1", "tasks: {a: 1}",
         "tasks: [{name: arc, metrics: [{name: acc, value: high}]}]", "tasks: [{name: arc, metrics: [{name: acc}]}]",
         *(f"limit: {limit}\ntasks: [{{name: arc, metrics: [{{name: acc, value: .5}}]}}]"
           for limit in ("all", "true", "0", "-1", "0.5", "'50'")),
         "rtol: 8\ntasks: [{name: arc, metrics: [{name: acc, value: .5}]}]",
         "tasks: [{name: arc, metrics: [{name: acc, value: 83}]}]",
         "tasks: [{name: arc, metrics: [{name: acc, value: .5}, {name: acc, value: .6}]}]"],
    )  # fmt: skip
    def test_a_file_that_is_none_is_an_error(self, tmp_path: Path, text: str) -> None:
        path = tmp_path / "model.yaml"
        path.write_text(text)
        with pytest.raises(hn.InputError):
            hn.gate(pair()[0], thresholds=path)


class TestSeveralBaselines:
    def test_the_variance_is_that_of_a_new_run(self) -> None:
        """V(A − b̄) + σ²_run (1 + 1/R), σ²_run from the two-way table, written out."""
        rng = np.random.default_rng(1)
        n, R = 300, 4
        truth = rng.normal(size=n)
        runs = [truth + 0.3 * rng.normal(size=n) + 0.2 * rng.normal() for _ in range(R)]
        a = truth + 0.3 * rng.normal(size=n)
        table = np.array(runs).T
        d = a - table.mean(axis=1)
        between = table.mean(axis=0).var(ddof=1)
        residual = table - table.mean(axis=1, keepdims=True) - table.mean(axis=0) + table.mean()
        within = (residual**2).sum() / ((n - 1) * (R - 1)) / n
        expected = d.var(ddof=1) / n + max(0.0, between - within) * (1 + 1 / R)
        plain = {"scores": {"bounds": None}}
        sides = [run(f"b{i}", {"t": values}, **plain) for i, values in enumerate(runs)]
        gate = hn.gate(run("a", {"t": a}, **plain), sides)
        assert gate.rows[0].estimate == pytest.approx(d.mean())
        assert gate.rows[0].se == pytest.approx(math.sqrt(expected))
        assert gate.rows[0].df < 10
        assert "few_runs" in gate.rows[0].diagnostics
        assert "few_clusters" not in gate.rows[0].diagnostics
        assert any("4 baseline runs" in note for note in noted(gate))
        assert gate.rows[0].against == "mean of 4 runs"
        # the fiducial p, written out; its root is the limit
        q = stats.chi2.ppf((np.arange(1500) + 0.5) / 1500, R - 1)
        left = np.maximum(between * (R - 1) / q - within, 0.0)
        s = np.sqrt(d.var(ddof=1) / n + (1 + 1 / R) * left)

        def below(null: float) -> float:
            return stats.t.cdf((d.mean() - null) / s, n - 1).mean()

        assert gate.rows[0].p_value == pytest.approx(below(0.0), rel=1e-6)
        assert below(gate.rows[0].limit) == pytest.approx(0.025, rel=1e-6)
        lossless = hn.gate(run("a", {"t": a}, **plain), sides, rule="no-loss", margin=0.3).rows[0]
        assert lossless.p_value == pytest.approx(1 - below(-0.3), rel=1e-6)
        ratio = hn.gate(run("a", {"t": a + 9}, **plain), [run(f"b{i}", {"t": v + 9}, **plain) for i, v in
                        enumerate(runs)], ratio=0.5).rows[0]  # fmt: skip
        d = a + 9 - 0.5 * (table + 9).mean(axis=1)
        s = np.sqrt(d.var(ddof=1) / n + (1 + 0.25 / R) * left)
        assert ratio.p_value == pytest.approx(stats.t.cdf(d.mean() / s, n - 1).mean(), rel=1e-6)

    def test_one_test_knows_what_runs_differ_by(self) -> None:
        a, b = pair()
        sides = [b, replace(pair(seed=1)[0], name="b1")]
        for choices in ({"test": "sign"}, {"unpaired": True}, {"repeats_are": "runs"}):
            with pytest.raises(hn.InputError, match="several baseline runs"):
                hn.gate(a, sides, **choices)
        assert any("A third one would" in note for note in noted(hn.gate(a, sides)))

    def test_questions_that_one_of_them_lacks_are_left_out_and_counted(self) -> None:
        a, b = pair(tasks=("arc",))
        short = replace(without(pair(seed=1, tasks=("arc",))[0], 40), name="b1")
        gate = hn.gate(a, [b, short], margin=0.5)
        assert gate.rows[0].n_questions == 360
        assert any("40 questions that a baseline run lacks" in note for note in noted(gate))

    def test_questions_that_all_differ_alike_have_the_noise_between_runs(self) -> None:
        sides = [run(f"b{i}", {"t": np.full(40, value)}) for i, value in enumerate((1.0, 0.0, 1.0))]
        row = hn.gate(run("a", {"t": np.ones(40)}), sides).rows[0]
        assert (row.estimate, row.se) == (pytest.approx(1 / 3), pytest.approx(math.sqrt(1 / 3 * (1 + 1 / 3))))
        assert "zero_variance" not in row.diagnostics

    def test_with_one_it_is_said_that_it_cannot_be_known(self) -> None:
        assert any("cannot be known" in note for note in noted(hn.gate(*pair())))


class TestRatiosOfSums:
    """Cost per right answer, and other measures Σx/Σy."""

    @staticmethod
    def side(name: str, seed: int) -> Run:
        rng = np.random.default_rng(seed)
        y = rng.integers(1, 4, (80, 3)).astype(float)
        x = y * rng.gamma(2, 1, (80, 1)) + rng.normal(0, 0.1, (80, 3))
        known = {"bounds": None, "higher_is_better": False, "unit": "", "per": y}
        return run(name, {"t": x}, metric="cost/score", scores=known)

    def test_several_baselines_are_the_ratio_of_their_means(self) -> None:
        a, *others = (self.side(name, seed) for seed, name in enumerate("abc"))
        (row,) = hn.gate(a, others, margin=1.0).rows
        x, y = (sum(array.mean() for array in arrays) for arrays in (
            [other.scores[0].values for other in others], [other.scores[0].per for other in others]))  # fmt: skip
        expected = a.scores[0].values.mean() / a.scores[0].per.mean() - x / y
        assert (row.reason, row.estimate) == ("", pytest.approx(expected))

    def test_a_kept_run_has_none_of_them(self, tmp_path: Path) -> None:
        """Their numerators alone would be another quantity under the same name."""
        a, b = self.side("a", 0), self.side("b", 1)
        assert hn.gate(a, b, margin=5.0, store=tmp_path / "kept").passed
        with pytest.raises(hn.InputError, match="a kept run has only means over questions"):
            hn.gate(b, tmp_path / "kept", margin=5.0)

    def test_a_pool_takes_no_mean_of_them(self) -> None:
        sides = []
        for seed, values in enumerate((np.arange(90) % 3 > 0, np.arange(90) % 4 > 0)):
            ratio = self.side(f"r{seed}", seed)
            sides.append(replace(ratio, scores=(*ratio.scores, *run("m", {"u": values}).scores)))
        a, b = sides
        gate = hn.gate(a, b, pooled=True, skip_missing=True, margin=0.5)
        assert gate.left_out[0].startswith("t cost/score (it is not a mean")
        assert gate.rows[0].estimate == pytest.approx(a.scores[1].values.mean() - b.scores[1].values.mean())


class TestSelfTest:
    def test_false_alarms_and_power_are_those_of_the_noncentral_t(self) -> None:
        gate = hn.gate(*pair(tasks=("arc",)), self_test=True)
        test, row = gate.self_test, gate.rows[0]
        assert test is not None
        assert test.false_alarm == pytest.approx(0.025, abs=0.004)
        critical = stats.t.ppf(0.975, row.df)
        for seen in test.sees:
            assert stats.nct.sf(critical, row.df, seen.loss / row.se) == pytest.approx(seen.power, abs=0.012)
        assert row.sees == pytest.approx(test.sees[1].loss, rel=0.03)

    def test_identical_models_that_cannot_be_told_do_not_pass_no_loss(self) -> None:
        gate = hn.gate(*pair(tasks=("arc",)), rule="no-loss", margin=0.005, self_test=True)
        test = gate.self_test
        assert test is not None
        assert test.false_alarm > 0.8
        assert all(seen.power > test.false_alarm for seen in test.sees)
        assert all(seen.loss > 0 for seen in test.sees)
        assert test.n_needed == pytest.approx(gate.rows[0].n_needed, rel=0.05)

    def test_what_must_hold_in_every_row_is_not_adjusted(self) -> None:
        """Ten rows of which each excludes the loss by itself: the run passes, and no row asks for more questions."""
        gate = hn.gate(*pair(tasks=tuple(f"t{i}" for i in range(10)), n=2000), rule="no-loss", margin=0.02,
                       self_test=True)  # fmt: skip
        assert gate.passed
        assert all(row.p_adjusted == row.p_value for row in gate.rows)
        assert all(row.n_needed is None for row in gate.rows)
        assert max(row.p_value for row in gate.rows) * 10 > 0.025

    @pytest.mark.slow
    def test_twenty_rows_together_alarm_as_rarely_as_one(self) -> None:
        test = hn.gate(*pair(tasks=tuple(f"t{i}" for i in range(20))), self_test=True).self_test
        assert test is not None
        assert test.false_alarm == pytest.approx(0.025, abs=0.004)


class TestCannotJudge:
    def test_what_only_one_run_has(self) -> None:
        a, b = pair()
        for new, old in ((replace(a, scores=a.scores[:1]), b), (a, replace(b, scores=b.scores[:1]))):
            gate = hn.gate(new, old)
            assert gate.outcome == "cannot judge"
            assert "gsm acc" in gate.sentence
            partial = hn.gate(new, old, skip_missing=True)
            assert partial.passed
            assert "NOT judged: gsm acc" in partial.sentence

    def changed(self, **fields: Any) -> hn.Gate:
        a, b = pair()
        return hn.gate(a, replace(b, scores=(replace(b.scores[0], **fields), *b.scores[1:])))

    def test_another_version_another_limit_a_selected_baseline(self) -> None:
        a, b = pair()
        a = replace(a, scores=tuple(replace(part, version="1.0") for part in a.scores))
        b_ = replace(b, scores=tuple(replace(part, version="2.0") for part in b.scores))
        assert "the runs have the versions 1.0 and 2.0 of the task" in hn.gate(a, b_).sentence
        short, _ = pair(n=100)
        assert "different questions (100 and 400" in hn.gate(short, b).sentence
        assert "stopped early" in self.changed(diagnostics=("stopped_early",)).sentence
        assert "random subset" in self.changed(diagnostics=("not_a_random_part",)).sentence
        assert "drawn with different probabilities" in self.changed(diagnostics=("unequal_chances",)).sentence
        assert "mean_mismatch" in self.changed(native=0.123).sentence

    def test_the_tasks_of_a_group_are_held_to_the_same(self) -> None:
        """Where a group alone is judged, its tasks have no rows, and still must be the same ones."""
        whole = Group("g", "acc", "none", ("arc", "gsm"))

        def grouped(side: Run, **fields: Any) -> Run:
            return replace(side, scores=(), parts=tuple(replace(p, **fields) for p in side.scores), groups=(whole,))

        a, b = pair()
        assert hn.gate(grouped(a), grouped(b)).passed
        for new, old, words in (
            (grouped(a, version="1"), grouped(b, version="2"), "versions 1 and 2"),
            (grouped(pair(n=100)[0]), grouped(b), "different questions (100 and 400"),
            (grouped(a, diagnostics=("not_a_random_part",)), grouped(b), "random subset"),
            (grouped(a, diagnostics=("unequal_chances",)), grouped(b), "drawn with different probabilities"),
            (grouped(a), grouped(b, diagnostics=("stopped_early",)), "the baseline stopped early"),
            (grouped(a), grouped(b, higher_is_better=False), "higher is better in one run"),
        ):
            said = hn.gate(new, old).sentence
            assert said.startswith("cannot judge: g acc: ")
            assert words in said

    def test_metrics_over_all_questions_are_held_to_the_same(self) -> None:
        def side(name: str, n: int = 60, **fields: Any) -> Run:
            stats = np.random.default_rng(sum(map(ord, name))).random((n, 1, 2))
            keys = Questions(tuple(f"q{i}" for i in range(n)))
            part = CorpusScores(
                "mt", "bleu", "none", keys, stats=stats, value=lambda s: s[..., 0] / s[..., 1], **fields
            )
            return Run(name, name, "test", corpus=(part,))

        base, few = side("old"), {"resamples": 200, "margin": 0.5}
        for new, words in (
            (side("new", 30), "different questions (30 and 60"),
            (side("new", diagnostics=("not_a_random_part",)), "random subset"),
            (side("new", n_missing=20), "answers are missing"),
        ):
            gate = hn.gate(new, base, **few)
            assert (gate.outcome, words in gate.sentence) == ("cannot judge", True)
        a, b = (replace(one, corpus=more.corpus) for one, more in zip(pair(), (side("new"), base), strict=True))
        said = hn.gate(a, [b, replace(b, name="older", model="older")], **few).sentence
        assert "mt bleu: it is not a mean over questions, and of several baseline runs" in said

    def test_other_prompts(self) -> None:
        a, b = (run(name, {"t": np.arange(40) % 2}, prompts=tuple(f"{name}{i}" for i in range(40))) for name in "ab")
        assert "different_prompts" in hn.gate(a, b).sentence

    def test_no_question_in_common(self) -> None:
        a, b = pair()
        other = Questions(tuple(f"other {i}" for i in range(400)))
        gate = hn.gate(a, replace(b, scores=(replace(b.scores[0], questions=other), b.scores[1])))
        assert (gate.outcome, gate.rows[0].reason) == ("cannot judge", "the runs have no question in common")

    def test_nothing_in_common_is_a_verdict(self) -> None:
        a, b = pair()
        other = Questions(tuple(f"other {i}" for i in range(400)))
        apart = replace(b, scores=tuple(replace(part, questions=other) for part in b.scores))
        gate = hn.gate(a, apart, floor=0.1)
        assert (gate.outcome, {row.reason for row in gate.rows if row.reason}) == ("cannot judge", {NOTHING_SHARED})
        assert any("have no question in common (" in text for text in noted(gate))
        tasks = replace(b, scores=tuple(replace(part, task=f"other {part.task}") for part in b.scores))
        gate = hn.gate(a, tasks)
        assert (gate.outcome, len(gate.rows)) == ("cannot judge", 4)
        assert any("measured nothing in common" in text for text in noted(gate))

    @pytest.mark.parametrize(
        ("choices", "words"),
        [
            ({"margin": 2.0}, "margin"), ({"margin": -1.0}, "negative"), ({"ratio": 99}, "Did you mean 0.99"),
            ({"ratio": 0.9, "margin": 0.1}, "leave one"), ({"margin": math.nan}, "margin"),
        ],
    )  # fmt: skip
    def test_numbers_on_the_wrong_scale_are_refused(self, choices: Any, words: str) -> None:
        with pytest.raises(hn.InputError, match=words):
            hn.gate(*pair(), **choices)
        with pytest.raises(hn.InputError, match="Did you mean"):
            hn.gate(pair()[0], floor=70)
        with pytest.raises(hn.InputError, match=r"`floor` 150% is outside the range of acc, 0 to 1$"):
            hn.gate(pair()[0], floor=InPoints(1.5))
        with pytest.raises(hn.InputError) as refused:
            hn.gate(*pair(), margin=InPoints(1.5))
        assert "`margin` 150% is" in str(refused.value)
        assert "Did you mean" not in str(refused.value)
        with pytest.raises(hn.InputError, match="what must the run reach"):
            hn.gate(pair()[0])

    @pytest.mark.parametrize("choices", [{}, {"rule": "no-loss", "margin": 0.1}, {"pooled": True}, {"ratio": 0.9}])
    def test_a_run_against_itself_cannot_be_judged(self, tmp_path: Path, choices: Any) -> None:
        path, other = tmp_path / "run.csv", tmp_path / "other.csv"
        path.write_text("question,task,score\n" + "".join(f"q{i},t{i % 3},{i % 2}\n" for i in range(60)))
        other.write_text("question,task,score\n" + "".join(f"q{i},t{i % 3},{i % 7 < 3:d}\n" for i in range(60)))
        for against in (path, [other, path]):
            gate = hn.gate(path, against, **choices)
            assert (gate.outcome, "its own baseline" in gate.sentence) == ("cannot judge", True)
            assert "one_run_twice" in {note.code for note in gate.warnings}
            assert hn.gate(path, against, skip_missing=True, **choices).outcome == "cannot judge"
        assert hn.gate(path, path, floor=0.1).outcome == "cannot judge"
        assert hn.gate(path, path, floor=0.1, skip_missing=True).outcome == "pass"  # the number alone decides
        assert hn.gate(path, other, margin=0.9).outcome == "pass"

    def test_equal_files_are_one_run_only_where_they_say_when_it_was(self, tmp_path: Path) -> None:
        """A model that always answers alike writes the same table again; a log holds its time."""
        a, b = (tmp_path / f"{name}.csv" for name in "ab")
        for path in (a, b):
            path.write_text("question,score\n" + "".join(f"q{i},{i % 2}\n" for i in range(50)))
        gate = hn.gate(a, b)
        assert (gate.outcome, [note.code for note in gate.warnings]) == ("pass", ["one_run_twice"])
        new, old = (replace(hn.read(path)[0], date="2026-01-01") for path in (a, b))
        assert hn.gate(new, old).outcome == "cannot judge"

    def test_each_question_of_a_run_against_itself(self, tmp_path: Path) -> None:
        path = tmp_path / "run.csv"
        path.write_text("question,repeat,score\n" + "".join(f"q{i % 5},{i // 5},1\n" for i in range(50)))
        assert hn.gate(path, path, each=True).outcome == "cannot judge"

    def test_other_runs_with_the_same_scores_are_a_loud_warning(self) -> None:
        a, b = pair()
        (warned,) = hn.gate(b, replace(b, name="other")).warnings
        assert warned.code == "same_scores"
        assert not hn.gate(a, b).warnings


class TestStoppedEarly:
    def stopped(self, **fields: Any) -> tuple[Run, Run]:
        a, b = pair(0.1, tasks=("arc",))
        part = a.scores[0]
        kept = replace(part, questions=Questions(part.questions.keys[:200]), values=part.values[:200],
                       diagnostics=("stopped_early",))  # fmt: skip
        diff = float((part.values[:200] - b.scores[0].values[:200]).mean())
        looks = {
            "task": "arc", "metric": "acc", "scorer": "none", "rule": "group-sequential", "looks": 20, "look": 9,
            "alpha_spent": 0.02, "n_asked": 200, "n_total": 400, "order_seed": 0, "decision": "B better",
            "estimate": diff + 0.01, "ci_low": -0.2, "ci_high": -0.03, "estimate_unadjusted": diff,
        }  # fmt: skip
        drawn = ({"task": "arc", "n_asked": 200, "n_total": 400, "order_seed": 0, "stopped_early": True},)
        return replace(a, scores=(kept,), stops=(looks | fields,), drawn=drawn), b

    def test_the_interval_is_that_of_the_looks(self) -> None:
        a, b = self.stopped()
        row = hn.gate(a, b, margin=0.02).rows[0]
        assert (row.passed, row.limit) == (False, pytest.approx(-0.03))
        assert hn.gate(a, b, margin=0.04).passed

    @pytest.mark.parametrize("unequal", [False, True])
    def test_looks_that_used_all_that_is_known_of_the_baseline_are_known_again(self, unequal: bool) -> None:
        """Their estimate is a regression's, which is not the plain A − B of the questions that were asked."""
        rng = np.random.default_rng(5)
        right = (1.5 * rng.standard_normal((400, 1)) + 0.7 * rng.standard_normal((400, 2)) > 0).astype(float)
        a, b = (run(name, {"t": right[:, j]}) for j, name in enumerate(("new", "old")))
        rule = StoppingRule(futility=False)
        order = rule.order(400)
        rows = np.sort(order.asked(10))
        keys = [f"q{i}" for i in rows]
        chances = dict(zip(keys, np.where(right[rows, 1] > 0, 0.45, 0.55), strict=True)) if unequal else None
        part = replace(a.scores[0], questions=Questions(tuple(keys)), values=a.scores[0].values[rows], chances=chances)
        look = Look(rule, observe([part], list(b.scores), Settings()), order.progress(10), number=10)
        shown = look.sequential
        assert shown.estimate_unadjusted != pytest.approx(shown.diff)
        drawn = {"task": "t", "n_asked": len(rows), "n_total": 400, "order_seed": 0, "stopped_early": True}
        new = with_record(replace(a, scores=(part,)), [shown.to_dict()], [drawn | {"chances": chances}])
        row = hn.gate(new, b, margin=0.5).rows[0]
        assert (row.passed, row.estimate, row.limit) == (True, shown.estimate, pytest.approx(shown.ci_high))
        other = run("other", {"t": 1 - right[:, 1]})
        assert hn.gate(new, other, margin=0.5).outcome == "cannot judge"
        # one with the same mean of these questions is another one, too; as B again, whatever the order of its questions
        moved = right[:, 1].copy()
        moved[rows] = np.sort(moved[rows])
        alike = run("alike", {"t": moved})
        plain = [hn.compare(new, side).comparisons[0] for side in (b, alike)]
        assert plain[1].diff == pytest.approx(shown.diff)
        assert [row.test for row in plain] == ["sequential", "t"]
        assert "stopped_early" in plain[1].diagnostics
        assert hn.compare(alike, new).comparisons[0].test == "t"
        gate = hn.gate(new, alike, margin=0.5)
        assert gate.outcome == "cannot judge"
        assert ("unequal_chances" if unequal else "against another baseline") in gate.sentence
        turned = replace(b.scores[0], questions=Questions(b.scores[0].questions.keys[::-1]),
                         values=b.scores[0].values[::-1])  # fmt: skip
        assert hn.compare(replace(b, scores=(turned,)), new).comparisons[0].test == "sequential"
        # a record of before says nothing of B but the difference
        older = replace(new, stops=tuple(row | {"baseline": None} for row in new.stops))
        assert hn.compare(older, alike).comparisons[0].test == "sequential"

    def test_another_baseline_or_another_quantity_cannot_be_judged(self) -> None:
        a, b = self.stopped(estimate_unadjusted=-0.5)
        assert "against another baseline" in hn.gate(a, b).sentence
        a, b = self.stopped(task="other")
        assert "another quantity" in hn.gate(a, b).sentence
        assert "allows a margin alone" in hn.gate(*self.stopped(), ratio=0.9).sentence

    def test_its_limits_hold_at_its_own_level_only(self) -> None:
        with pytest.raises(hn.InputError, match=r"`level` 0.95 only: judge it at that level, not at 0.9"):
            hn.gate(*self.stopped(), level=0.9)  # a file of before says no level
        assert hn.gate(*self.stopped(level=0.9), level=0.9).rows[0].limit == pytest.approx(-0.03)

    def test_its_own_mean_is_too_extreme_for_a_floor(self) -> None:
        assert "too extreme" in hn.gate(self.stopped()[0], floor=0.5).sentence


class TestKept:
    def test_the_last_runs_that_passed_are_kept_and_small(self, tmp_path: Path) -> None:
        store = tmp_path / "store"
        a, b = pair(n=5000)
        for i in range(4):
            new = replace(pair(n=5000, seed=0)[0], name=f"run {i}")
            new = replace(new, scores=tuple(replace(p, values=np.roll(p.values, i)) for p in new.scores[:1])
                          + new.scores[1:])  # fmt: skip
            gate = hn.gate(new, b, store=store, keep=3, margin=0.9)
            assert gate.passed
            assert any(str(store) in note for note in noted(gate))
        kept = sorted(store.iterdir())
        assert len(kept) == 3
        assert max(path.stat().st_size for path in kept) <= 64 * 10_000
        hn.gate(replace(a, name="bad"), b, store=store, floor=0.99)
        assert sorted(store.iterdir()) == kept, "a run that fails is not kept"

    def test_a_kept_run_is_as_good_as_the_run(self, tmp_path: Path) -> None:
        a, b = pair()
        clusters = tuple(f"c{i // 8}" for i in range(400))
        b = replace(b, scores=tuple(replace(p, clusters=clusters, cluster_spec="passage") for p in b.scores))
        hn.gate(b, floor=0.1, store=tmp_path / "s")
        direct, kept = (hn.gate(a, side).rows for side in (b, tmp_path / "s"))
        assert [(x.estimate, x.se, x.df, x.p_value) for x in direct] == [
            (y.estimate, y.se, y.df, y.p_value) for y in kept
        ]

    @pytest.mark.parametrize("content", [b"", b"not packed", b"\x1f\x8b\x08\x00" + bytes(40)])
    def test_what_cannot_be_read_is_an_error(self, tmp_path: Path, content: bytes) -> None:
        (tmp_path / "run-1-a.json.gz").write_bytes(content)
        with pytest.raises(hn.InputError, match="not a run that `store` has kept"):
            hn.gate(pair()[0], tmp_path)

    def test_what_is_no_mean_is_named_as_not_kept(self, tmp_path: Path) -> None:
        a, b = (replace(side, skipped=(Skipped("wiki", "perplexity", "none", "no samples"),)) for side in pair())
        hn.gate(replace(b, skipped=()), a, store=tmp_path / "other", margin=0.9, skip_missing=True)
        hn.gate(b, a, store=tmp_path / "s", margin=0.9, skip_missing=True)
        [row] = [row for row in hn.gate(a, tmp_path / "s").rows if row.task == "wiki"]
        assert row.reason.startswith("it has no scores by question")
        corpus = hn.gate(replace(a, skipped=()), tmp_path / "s").sentence
        assert "only the baseline has it" in corpus

    def test_more_than_any_run_needs_is_not_unpacked(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        a, b = pair()
        hn.gate(b, a, store=tmp_path, margin=0.9)
        assert hn.gate(a, tmp_path).rows
        monkeypatch.setattr("harness_noise.extra.gate.kept_runs._LARGEST", 1000)
        with pytest.raises(hn.InputError, match="not a run that `store` has kept"):
            hn.gate(a, tmp_path)

    def test_an_empty_folder_is_no_baseline(self, tmp_path: Path) -> None:
        with pytest.raises(hn.InputError, match="no run has been kept there yet"):
            hn.gate(pair()[0], tmp_path)


@pytest.mark.process
class TestShown:
    def test_json_follows_the_schema(self) -> None:
        jsonschema = pytest.importorskip("jsonschema")
        schema = json.loads((files("harness_noise") / "schema.json").read_text())
        for gate in (
            hn.gate(*pair(), self_test=True),
            hn.gate(pair()[0], floor=0.5),
            hn.gate(pair(n=9)[0], pair()[1]),
        ):
            jsonschema.validate(json.loads(gate.to_json()), schema)
            assert gate.to_dict()["gate"]["passed"] is gate.passed
            assert len(gate.to_frame()) == len(gate.rows)

    def test_what_fails_stands_first(self) -> None:
        a, b = pair()
        worse = replace(a, scores=(a.scores[0], pair(0.15)[0].scores[1]))
        gate = hn.gate(worse, b)
        assert [row.task for row in gate.rows] == ["gsm", "arc"]
        markdown = gate.to_markdown()
        assert markdown.splitlines()[0].startswith("fail: gsm acc")
        assert markdown.index("FAIL") < markdown.index("| pass")

    def test_junit_has_a_case_for_each_row(self) -> None:
        a, b = pair(0.15)
        suite = ElementTree.fromstring(hn.gate(a, b).to_junit())
        assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("3", "3", "0")
        left = ElementTree.fromstring(hn.gate(a, replace(b, scores=b.scores[:1]), skip_missing=True).to_junit())
        assert left.get("skipped") == "1"
        (case,) = [case for case in left if case.find("skipped") is not None]
        assert (case.get("name"), case.find("skipped").get("message")) == (
            "gsm acc",
            "only the run has it, not the baseline",
        )
        lost = ElementTree.fromstring(hn.gate(pair(n=9)[0], b).to_junit())
        assert lost.get("errors") == "3"

    def test_junit_says_that_two_files_are_one(self, tmp_path: Path) -> None:
        for name in "ab":
            lines = [f"q{i},{int(i % 3 > 0)}" for i in range(200)]
            (tmp_path / f"{name}.csv").write_text("\n".join(["question,score", *lines]))
        gate = hn.gate(tmp_path / "a.csv", tmp_path / "b.csv", margin=0.1)
        said = ElementTree.fromstring(gate.to_junit()).findtext("system-out").splitlines()
        assert gate.passed
        assert any("hold the same bytes" in line for line in said)
        assert any("one baseline run" in line for line in said)

    def test_pytest_shows_the_sentence(self, pytester: Any, tmp_path: Path) -> None:
        for name, side in zip(("new", "old"), pair(0.15), strict=True):
            rows = [f"{part.task},{key},{value:g}" for part in side.scores
                    for key, value in zip(part.questions.keys, part.values[:, 0], strict=True)]  # fmt: skip
            (tmp_path / f"{name}.csv").write_text("\n".join(["task,question,score", *rows]) + "\n")
        pytester.makepyfile(
            f"""
            import harness_noise as hn
            def test_release():
                assert hn.gate({str(tmp_path / "new.csv")!r}, against={str(tmp_path / "old.csv")!r}).passed
            """
        )
        shown = pytester.runpytest_subprocess("-p", "no:cacheprovider").stdout.str()
        assert "1 failed" in shown
        assert "<Gate: fail: arc score: A − B = " in shown
        assert "is shown to be below 0 points, p " in shown


@pytest.fixture
def tables(tmp_path: Path) -> dict[str, str]:
    out = {}
    for name, loss in (("new", 0.0), ("bad", 0.15), ("old", None)):
        side = pair()[1] if loss is None else pair(loss)[0]
        path = tmp_path / f"{name}.csv"
        rows = [f"{part.task},{key},{value:g}" for part in side.scores
                for key, value in zip(part.questions.keys, part.values[:, 0], strict=True)]  # fmt: skip
        path.write_text("\n".join(["task,question,score", *rows]) + "\n")
        out[name] = str(path)
    return out


def test_quiet_does_not_say_how_files_are_read(tables: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    gate = ["gate", tables["new"], "--against", tables["old"]]
    assert main(gate) == 0
    assert "new.csv: score: score, 0/1" in capsys.readouterr().out
    assert main([*gate, "--quiet"]) == 0
    shown = capsys.readouterr()
    assert "new.csv" not in shown.out + shown.err
    assert "one baseline run" in shown.out


def test_exit_codes(tables: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old = ["--against", tables["old"]]
    junit = tmp_path / "gate.xml"
    assert main(["gate", tables["new"], *old, "--margin", "0.02", "--junit", str(junit)]) == 0
    assert junit.exists()
    assert main(["gate", tables["bad"], *old]) == 1
    assert capsys.readouterr().out.splitlines()[-1] is not None
    verdict, other = tmp_path / "verdict.json", tmp_path / "other.csv"
    other.write_text("task,question,score\narc,another,1\narc,further,0\n")
    files = ["--junit", str(junit), "--verdict", str(verdict)]
    assert main(["gate", tables["new"], "--against", str(other), *files]) == 2
    assert json.loads(verdict.read_text())["gate"]["outcome"] == "cannot judge"
    assert "the runs have no question in common" in junit.read_text()
    assert main(["gate", tables["new"], *old, "--rule", "no-loss"]) == 2
    assert main(["gate", tables["new"]]) == 2
    assert main(["gate", tables["new"], "--against", str(tmp_path / "nothing")]) == 2
    err = capsys.readouterr().err
    assert "--against" in err


def test_a_floor_and_a_bar_are_plain_values() -> None:
    a, b = pair()
    assert judge(a, [b], [Floor(0.5)], Bar(margin=0.02), Settings()).passed
    with pytest.raises(hn.InputError, match="rule"):
        Bar(rule="maybe")


def each(side: Run, **fields: Any) -> Run:
    return replace(side, scores=tuple(replace(part, **fields) for part in side.scores))


def without(side: Run, k: int) -> Run:
    """The first k answers of each task are missing."""
    lacks = (np.arange(400) < k)[:, None]
    parts = tuple(replace(p, values=np.where(lacks, np.nan, p.values), n_missing=k) for p in side.scores)
    return replace(side, scores=parts)


class TestMissing:
    """What is missing is never a pass, unless the worst that it could be passes, too."""

    @pytest.mark.parametrize("bar", [{"against": True}, {"floor": 0.6}, {"against": True, "pooled": True}])
    def test_a_pass_that_the_missing_answers_could_turn_is_none(self, bar: Any) -> None:
        a, b = pair()
        bar = dict(bar)
        side = b if bar.pop("against", False) else None
        assert hn.gate(a, side, **bar).passed
        for skip, words in ((False, "cannot judge: "), (True, "cannot judge: ")):
            gate = hn.gate(without(a, 150), side, **bar, skip_missing=skip)
            assert gate.sentence.startswith(words)
            assert "with the worst scores that they could have" in gate.sentence
        gate = hn.gate(without(a, 2), side, **bar)
        assert gate.passed
        (said,) = (note for note in gate.notes if note.code == "missing_filled")
        assert said.as_text().endswith("with the worst scores that they could have, and with the best. Other "
                                       "combinations were not tried")  # fmt: skip

    def test_the_baselines_count_too_and_a_fail_stays_one(self) -> None:
        a, b = pair()
        assert hn.gate(a, without(b, 150)).outcome == "cannot judge"
        assert hn.gate(without(pair(0.2)[0], 150), b).failed
        lower = [each(side, higher_is_better=False) for side in (a, b)]
        assert hn.gate(without(lower[0], 150), lower[1], margin=0.05).outcome == "cannot judge"

    def test_a_score_between_the_ends_can_turn_a_pass_too(self) -> None:
        """The worst score widens the interval more than it moves the mean: what lies between fails."""
        b = np.full(50, 0.5)
        a = b - 0.01 + np.r_[0.0, 0.04 * np.tile([1, -1], 25)[1:]]

        def judged(first: float) -> Any:
            sides = [run(name, {"t": x}) for name, x in (("new", np.r_[first, a[1:]]), ("old", b))]
            sides = [each(side, bounds=(0.0, 1.0)) for side in sides]
            return hn.gate(each(sides[0], n_missing=int(math.isnan(first))), sides[1], rule="regression")

        assert judged(0.0).passed
        assert judged(1.0).passed
        assert judged(0.3).failed
        gate = judged(math.nan)
        assert gate.outcome == "cannot judge"
        assert "with some of the scores that they could have it does not pass" in gate.sentence

    def test_without_a_range_it_is_not_known(self) -> None:
        a, b = (replace(side, scores=tuple(replace(p, values=7 * p.values, bounds=None) for p in side.scores))
                for side in pair())  # fmt: skip
        said = "what they could change is not known"
        assert said in hn.gate(without(a, 2), b).sentence
        # nor of a mean over tasks, whose rows are no rows of their own
        assert said in hn.gate(without(a, 2), b, pooled=True).sentence
        whole = Group("g", "acc", "none", ("arc", "gsm"))
        new, old = (replace(side, scores=(), parts=side.scores, groups=(whole,)) for side in (without(a, 2), b))
        assert said in hn.gate(new, old).sentence

    def test_a_table_with_holes_is_judged_as_the_arrays_are(self, tmp_path: Path) -> None:
        a, b = pair(tasks=("arc",))
        paths = []
        for name, side in (("new", without(a, 150)), ("old", b)):
            values = ("" if math.isnan(x) else f"{x:g}" for x in side.scores[0].values[:, 0])
            paths.append(tmp_path / f"{name}.csv")
            paths[-1].write_text("question,score\n" + "".join(f"q{i},{x}\n" for i, x in enumerate(values)))
        assert hn.gate(*paths).outcome == "cannot judge"
        assert hn.gate(*paths, missing="zero").failed


class TestBars:
    def test_a_bar_outside_the_range_is_refused(self) -> None:
        for choices in ({"margin": 2.0}, {"margin": 0.8}, {"ratio": 1.5}):
            with pytest.raises(hn.InputError, match="outside the range"):
                hn.gate(pair()[0], floor=0.7, **choices)

    def test_rtol_stands_in_place_of_the_margin_and_lowers_negative_values_too(self, tmp_path: Path) -> None:
        path = tmp_path / "model.yaml"
        path.write_text("rtol: 0.05\ntasks: [{name: arc, metrics: [{name: acc, value: 0.7}]}]")
        a = pair(tasks=("arc",))[0]
        for choices in ({}, {"margin": 0.1}, {"ratio": 0.9}):
            assert hn.gate(a, thresholds=path, **choices).rows[0].threshold == pytest.approx(0.665)
        below = replace(a, scores=tuple(replace(p, values=p.values - 2, bounds=None) for p in a.scores))
        path.write_text("rtol: 0.1\ntasks: [{name: arc, metrics: [{name: acc, value: -1.5}]}]")
        assert hn.gate(below, thresholds=path).rows[0].threshold == pytest.approx(-1.65)
        assert "needs a floor above 0" in hn.gate(below, floor=-1.5, ratio=0.9).sentence

    def test_a_recovery_threshold_is_the_ratio_to_the_baseline(self, tmp_path: Path) -> None:
        path, (a, b) = tmp_path / "model.yaml", pair(tasks=("arc",))
        path.write_text("lmeval: {task: arc, recovery_threshold: 0.95}")
        gate = hn.gate(a, b, thresholds=path)
        assert [row.quantity for row in gate.rows] == ["A − 0.95·B"]
        assert any("recovery_threshold" in note for note in noted(gate))
        assert gate.rows[0].p_value == hn.gate(a, b, ratio=0.95).rows[0].p_value
        for text in (
            "lmeval: {task: arc, recovery_threshold: {acc: 0.9}}",
            "recovery_threshold: .nan",
            "{recovery_threshold: .9, tasks: [{name: arc, metrics: [{name: acc}]}]}",
        ):
            path.write_text(text)
            with pytest.raises(hn.InputError, match=r"recovery_threshold|no thresholds"):
                hn.gate(a, b, thresholds=path)
        path.write_text("lmeval: {task: arc, recovery_threshold: 0.95}")
        with pytest.raises(hn.InputError, match="no thresholds"):
            hn.gate(a, thresholds=path)
        path.write_text("lmeval: {task: arc, recovery_threshold: 0.95, metrics: {'acc,none': 0.6}}")
        assert {row.quantity for row in hn.gate(a, b, thresholds=path).rows} == {"A", "A − 0.95·B"}

    def test_the_quantity_is_what_is_estimated(self) -> None:
        a, b = (each(side, higher_is_better=False, bounds=None) for side in pair(tasks=("arc",)))
        row = hn.gate(a, b, ratio=0.97).rows[0]
        assert row.quantity == "A − B/0.97"
        assert row.estimate == pytest.approx(a.scores[0].values.mean() - b.scores[0].values.mean() / 0.97)

    def test_better_upwards_and_downwards_are_not_compared(self) -> None:
        a, b = pair()
        assert "higher is better in one run" in hn.gate(a, each(b, higher_is_better=False)).sentence

    def test_a_pool_takes_no_row_that_was_looked_at(self) -> None:
        gate = hn.gate(*TestStoppedEarly().stopped(), margin=0.02, pooled=True)
        assert "looked at while it grew" in gate.sentence
        assert gate.outcome == "cannot judge"


class TestOneConfiguration:
    """Several baselines must be runs of one configuration, each of them once."""

    def sides(self, **fields: Any) -> tuple[Run, list[Run]]:
        a, b = pair(tasks=("arc",))
        other = replace(pair(seed=0, tasks=("arc",))[0], name="b2", model="b2")
        values = np.where(np.arange(400)[:, None] % 50 == 0, 1 - b.scores[0].values, b.scores[0].values)
        return each(a, version="1"), [each(b, version="1"), each(other, **{"version": "1", "values": values} | fields)]

    def test_runs_of_other_versions_prompts_or_questions_are_not(self) -> None:
        a, (b, _) = self.sides()
        keys = b.scores[0].questions.keys
        assert hn.gate(*self.sides()).passed
        assert "versions 1 and 2" in hn.gate(*self.sides(version="2")).sentence
        fewer = {"questions": Questions(keys[:100]), "values": b.scores[0].values[:100]}
        assert "asked different questions" in hn.gate(*self.sides(**fewer)).sentence
        asked = [Questions(keys, prompts=tuple(f"{word}{i}" for i in range(400))) for word in "xy"]
        assert (
            "prompts differ between the baseline"
            in hn.gate(
                each(a, questions=asked[0]), [each(b, questions=asked[0]), self.sides(questions=asked[1])[1][1]]
            ).sentence
        )

    def test_a_task_that_only_some_of_them_have_is_not_judged_by_fewer(self) -> None:
        a, b = pair()
        others = [b, *(replace(pair(seed=seed)[0], name=f"b{seed}", model="b") for seed in (1, 2))]
        others[2] = replace(others[2], scores=others[2].scores[:1])
        gate = hn.gate(a, others, margin=0.5)
        assert gate.outcome == "cannot judge"
        assert "gsm acc: only 2 of 3 baseline runs have it" in gate.sentence
        left = hn.gate(a, others, margin=0.5, skip_missing=True)
        assert left.passed
        assert left.left_out == ("gsm acc (only 2 of 3 baseline runs have it)",)
        grouped = replace(a, groups=(Group("both", "acc", "none", ("arc", "gsm"), "size"),))
        assert hn.gate(grouped, others, margin=0.5, skip_missing=True).left_out[1].startswith("both acc (only 2 of 3")

    def test_one_file_twice_counts_once_and_one_run_twice_is_said(self, tmp_path: Path) -> None:
        for name, n in (("new", 2), ("old", 3)):
            (tmp_path / f"{name}.csv").write_text(
                "question,score\n" + "".join(f"q{i},{i % n % 2}\n" for i in range(60))
            )
        new, old = tmp_path / "new.csv", tmp_path / "old.csv"
        assert any("one baseline run" in note for note in noted(hn.gate(new, [old, old])))
        a, sides = self.sides()
        for gate in (hn.gate(a, [*sides, replace(sides[0], name="x")]), hn.gate(sides[1], sides)):
            assert "same_scores" in {note.code for note in gate.warnings}

    def test_questions_do_not_tell_of_runs(self) -> None:
        """V(n) = σ²_run (1 + 1/R) + v/n: what is fixed is not planned away."""
        rng = np.random.default_rng(3)
        truth, plain = rng.normal(size=300), {"scores": {"bounds": None}}
        a = run("a", {"t": truth + 0.3 * rng.normal(size=300)}, **plain)
        sides = [run(f"b{i}", {"t": truth + 0.3 * rng.normal(size=300) + 0.2 * rng.normal()}, **plain)
                 for i in range(4)]  # fmt: skip
        gate = hn.gate(a, sides, rule="no-loss", margin=0.05)
        assert gate.rows[0].n_needed is None
        assert "No number of questions would" in gate.sentence

    def test_no_loss_larger_than_the_range_is_promised(self) -> None:
        a, b = pair(n=4, tasks=("arc",))
        sides = [b, replace(b, name="x", scores=tuple(replace(p, values=1 - p.values) for p in b.scores))]
        gate = hn.gate(a, sides)
        assert gate.rows[0].sees is None
        assert "No loss that is possible would be shown" in gate.sentence


def test_a_damaged_kept_run_is_an_error_or_read_right_wherever_it_is_damaged(tmp_path: Path) -> None:
    a, b = pair(n=60)
    hn.gate(b, floor=0.01, store=tmp_path)
    whole, refused = hn.gate(a, tmp_path).rows, 0
    path = next(tmp_path.iterdir())
    raw, rng = path.read_bytes(), np.random.default_rng(0)
    for _ in range(60):
        content = bytearray(raw)
        for j in rng.integers(0, len(raw), 3):
            content[j] ^= 0x55
        path.write_bytes(bytes(content))
        try:
            found = hn.gate(a, tmp_path).rows
        except hn.InputError:
            refused += 1
        else:
            assert found == whole
    assert refused > 30


def test_a_no_loss_pass_with_few_flips_says_how_often_its_limit_errs() -> None:
    b = np.ones(400)
    a = b.copy()
    a[:3] = 0
    runs = [
        hn.Run(model=name, name=name, harness="h", scores=(hn.as_scores(x, higher_is_better=True),))
        for name, x in (("a", a), ("b", b))
    ]
    result = hn.gate(*runs, rule="no-loss", margin=0.05)
    assert result.passed
    assert "Few questions decide: this limit errs in about 4% of cases" in result.sentence


def zero_one(n: int, share: float, seed: int) -> pd.DataFrame:
    right = np.random.default_rng(seed).random(n) < share
    return pd.DataFrame({"question": range(n), "score": right.astype(int)})


@pytest.mark.parametrize(("n", "margin"), [(60, 0.01), (400, 0.02), (40, 0.2)])
def test_questions_that_are_needed_are_those_of_a_plan(n: int, margin: float) -> None:
    """The degrees of freedom grow with the questions: those of 60 questions made 27,958 of 27,052."""
    a, b = zero_one(n, 0.55, 1), zero_one(n, 0.65, 2)
    (row,) = hn.gate(a, against=b, margin=margin, rule="no-loss").rows
    assert row.se is not None
    planned = hn.plan(effect=margin, omega2=row.se**2 * n, sigma2=0).to_dict()["plan"]
    assert row.n_needed == pytest.approx(planned["n_questions"], abs=1)


def clustered_no_loss(n: int, G: int, margin: float, flipped: float) -> hn.GateRow:
    rng = np.random.default_rng(5)
    question, cluster = np.arange(n), np.arange(n) % G
    b = (rng.random(n) < 0.8).astype(float)
    lost = rng.random(n) < flipped * (1 + (cluster == 0))
    tables = [pd.DataFrame({"question": question, "cluster": cluster, "score": x}) for x in (b * ~lost, b)]
    (row,) = hn.gate(tables[0], against=tables[1], margin=margin, rule="no-loss").rows
    return row


@pytest.mark.parametrize(
    ("G", "margin", "flipped"), [(4, 0.2, 0.2), (3, 0.2, 0.15), (10, 0.03, 0.03), (40, 0.05, 0.05)]
)
def test_questions_that_are_needed_with_few_clusters(G: int, margin: float, flipped: float) -> None:
    """One question fewer has less than 80% power: with 3 clusters 8,271,665,293,404 were asked for, not 326."""
    row = clustered_no_loss(400, G, margin, flipped)
    assert row.passed is None
    assert row.se is not None
    assert row.df is not None

    def seen(m: int) -> float:
        df = max(1.0, (row.df + 1) * m / 400 - 1)
        return float(noncentrality(0.05, 0.8, df)) * row.se * np.sqrt(400 / m)

    assert row.n_needed is not None
    assert seen(row.n_needed) <= margin < seen(row.n_needed - 1)


def test_needing_fewer_questions_than_there_are_is_said_as_such() -> None:
    old = zero_one(400, 0.5, 1)
    lost = old.assign(score=old["score"] * zero_one(400, 0.9, 2)["score"])
    gate = hn.gate(lost, against=old, margin=0.06, rule="no-loss")
    (row,) = gate.rows
    assert row.passed is None
    assert row.n_needed is not None
    assert row.n_needed <= 400
    assert f"If nothing were lost, {row.n_needed} questions would exclude it" in gate.sentence
    assert gate.sentence.count("and there are 400") == 1


@pytest.mark.parametrize("margin", [0.3, 0.6, 0.95])
def test_few_questions_are_enough_for_a_wide_margin(margin: float) -> None:
    """Of fewer than two questions, or clusters, there is no distribution to read: it ended in a traceback."""
    old, new = zero_one(400, 0.6, 1), zero_one(400, 0.1, 2)
    for cluster in (None, "book"):
        sides = [side.assign(book=side["question"] // 100) for side in (new, old)]
        (row,) = hn.gate(sides[0], against=sides[1], margin=margin, rule="no-loss", cluster=cluster).rows
        assert row.n_needed is None or row.n_needed >= (2 if cluster is None else 100)
