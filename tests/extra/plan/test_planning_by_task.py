"""`plan(answers=)`: how often to ask each task, from a first run."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest

import harness_noise as hn
from harness_noise.cli import main
from harness_noise.data.questions import Questions
from harness_noise.data.scores import Group, Run, Scores
from harness_noise.extra.plan.stats import repeats_by_task
from support.notes import noted


def first_run(weighting: Any = "equal", seed: int = 0, **noise: tuple[int, float]) -> Run:
    """A run with three answers to each question: task → questions, and how far the answers to one differ."""
    rng = np.random.default_rng(seed)
    scores = []
    for task, (n, spread) in noise.items():
        values = rng.normal(0.5, 0.3, (n, 1)) + rng.normal(0, spread, (n, 3))
        scores.append(Scores(task, "score", "none", Questions(tuple(f"q{i}" for i in range(n))), values))
    group = Group("all", "score", "none", tuple(noise), weighting)
    return Run("m", "m", "array", parts=tuple(scores), groups=(group,))


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("equal", [True, False])
def test_no_other_spread_is_better(seed: int, equal: bool) -> None:
    """Exactly where all tasks are as large; else but for less than the one more answer that no longer fits."""
    rng = np.random.default_rng(seed)
    v, n = rng.random(3) * np.array([1, 4, 0.2]), [7] * 3 if equal else rng.integers(5, 30, 3).tolist()
    budget = int(sum(n) * rng.uniform(1, 5))
    K = repeats_by_task(v.tolist(), n, budget, 8)
    assert np.dot(K, n) <= budget
    assert all(k == 8 or size > budget - np.dot(K, n) for k, size in zip(K, n, strict=True))
    every = [other for other in product(range(1, 9), repeat=3) if np.dot(other, n) <= budget]
    best = min(float(sum(v / np.array(other))) for other in every)
    one_more = 0.0 if equal else max(x / (k * (k + 1)) for x, k in zip(v, K, strict=True))
    assert best - 1e-12 <= sum(v / np.array(K)) <= best + one_more + 1e-12


@pytest.mark.parametrize("weighting", ["equal", "size"])
def test_the_noisy_task_is_asked_more_often_and_the_plan_says_what_that_gains(weighting: str) -> None:
    run = first_run(weighting, loud=(100, 1.0), calm=(300, 0.1))
    plan = hn.plan(runs=run, answers=1_600)
    assert {row.task: row.n_questions for row in plan.by_task} == {"loud": 100, "calm": 300}
    K = {row.task: row.repeats for row in plan.by_task}
    assert K["loud"] > 4 > K["calm"]
    assert (plan.n_questions, plan.repeats) == (400, 4)
    assert plan.mde_by_task < plan.mde
    # oracle: the variance of the mean at these K, with the data noise of the plan
    w = {"equal": (0.5, 0.5), "size": (0.25, 0.75)}[weighting]
    prediction = [w_t**2 * part.values.var(1, ddof=1).mean() / len(part.values)
                  for w_t, part in zip(w, run.parts, strict=True)]  # fmt: skip
    ratio = (plan.omega2_upper + 400 * sum(v / K[part.task] for v, part in zip(prediction, run.parts, strict=True))) / (
        plan.omega2_upper + 400 * sum(prediction) / 4
    )
    assert (plan.mde_by_task / plan.mde) ** 2 == pytest.approx(ratio, rel=1e-6)
    assert any(f"noise_repeats loud={K['loud']},calm={K['calm']}" in note for note in noted(plan))


def test_answers_beyond_the_most_to_a_question_are_not_said_to_be_spread() -> None:
    plan = hn.plan(runs=first_run("size", loud=(100, 1.0), calm=(300, 0.1)), answers=20_000)
    assert {row.repeats for row in plan.by_task} == {10}
    assert any("4,000 answers spread by task (no question is asked more than 10 times)" in note for note in noted(plan))


def test_a_ratio_of_sums_is_spread_by_what_each_task_adds_to_it() -> None:
    """A group's ratio is no mean of its tasks' ratios, so neither are its variances."""
    run = first_run("size", loud=(100, 0.3), calm=(300, 0.1))
    rng = np.random.default_rng(3)
    parts = tuple(
        replace(part, values=part.values * (y := rng.uniform(1, size, part.values.shape)), per=y, unit="")
        for part, size in zip(run.parts, (2, 9), strict=True)
    )
    run = replace(run, parts=parts)
    plan = hn.plan(runs=run, answers=1_600)
    (row,) = hn.analyze(run).rows
    x, y = (np.concatenate([array.mean(1) for array in arrays]).mean() for arrays in (
        [part.values for part in parts], [part.per for part in parts]))  # fmt: skip
    each = [(part.values - x / y * part.per).var(1, ddof=1).sum() / (400 * y) ** 2 for part in parts]
    assert sum(each) == pytest.approx(row.var_prediction)
    assert {task.task: task.share for task in plan.by_task} == pytest.approx(
        {"loud": each[0] / sum(each), "calm": each[1] / sum(each)}
    )


def test_runs_that_all_tasks_share_are_not_spread() -> None:
    with pytest.raises(hn.InputError, match="leave `repeats_are='runs'` out"):
        hn.plan(runs=first_run(loud=(100, 1.0), calm=(300, 0.1)), answers=800, repeats_are="runs")


def test_two_runs_and_two_like_one() -> None:
    runs = [
        replace(first_run(seed=seed, loud=(100, 1.0), calm=(300, 0.1)), name=f"r{seed}", model=f"m{seed}")
        for seed in (0, 1)
    ]
    for plan in (hn.plan(runs=runs, answers=1_600), hn.plan(runs=runs[0], two_like_this=True, answers=1_600)):
        K = {row.task: row.repeats for row in plan.by_task}
        assert K["loud"] > 4 > K["calm"]
        assert plan.mde_by_task < plan.mde


@pytest.mark.parametrize(
    ("choices", "words"),
    [
        ({"answers": 399}, "fewer than the 400 questions"),
        ({"answers": 800, "n": 400}, "leave `n` and `repeats` out"),
        ({"answers": 800, "repeats": 2}, "leave `n` and `repeats` out"),
    ],
)
def test_what_cannot_be_spread_is_refused(choices: dict[str, int], words: str) -> None:
    with pytest.raises(hn.InputError, match=words):
        hn.plan(runs=first_run(loud=(100, 1.0), calm=(300, 0.1)), **choices)


def test_one_answer_says_nothing_of_more() -> None:
    run = first_run(loud=(100, 1.0), calm=(300, 0.1))
    once = replace(run, parts=tuple(replace(part, values=part.values[:, :1]) for part in run.parts))
    same = replace(run.parts[1], values=np.repeat(run.parts[1].values[:, :1], 3, axis=1))
    for other in (once, *(replace(run, parts=(run.parts[0], part)) for part in (once.parts[1], same))):
        with pytest.raises(hn.InputError, match="what more answers"):
            hn.plan(runs=other, answers=800)


def test_the_command_shows_it(tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [
        f"{part.task},{key},{value:.3f}"
        for part in first_run(loud=(20, 1.0), calm=(60, 0.1)).parts
        for key, line in zip(part.questions.keys, part.values, strict=True)
        for value in line
    ]
    (tmp_path / "run.csv").write_text("\n".join(["task,question,score", *rows]) + "\n")
    asked = ["plan", "--from", str(tmp_path / "run.csv"), "--group", "all=*", "--answers", "320"]
    assert main([*asked, "--task", "all"]) == 0
    out = capsys.readouterr().out
    assert "Answers by task" in out
    assert "asks so with noise_repeats loud=" in out
