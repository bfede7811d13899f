"""One set of questions under two prompts, as two lm-eval tasks: the prompt is a factor, a question a cluster."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support.notes import noted

pytest.importorskip("lm_eval", reason="lm-eval is not installed")


from harness_noise.cli import main
from harness_noise.extra.factors.sources import factor_noise
from harness_noise_adapters.lm_eval_harness import noise
from support import lm_eval_models as toys

TASKS = ("sums_prompt_1", "sums_prompt_2")


class PromptedModel(toys.HashModel):
    """Worse at the terse prompt."""

    def answer(self, prompt: str) -> str:
        self.share = 0.2 if prompt.startswith("Sum") else 0.9
        return super().answer(prompt)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    from lm_eval import simple_evaluate
    from lm_eval.loggers import EvaluationTracker
    from lm_eval.tasks import TaskManager

    folder = tmp_path_factory.mktemp("prompts")
    tasks = folder / "tasks"
    tasks.mkdir()
    for name, text in zip(TASKS, ("Q: {{question}}\nA:", "Sum: {{question}}\n"), strict=True):
        toys.write_task(tasks, name, toys.docs(24), repeats=3, doc_to_text=text)
    toys.write_group(
        tasks, "sums", TASKS, [{"metric": "exact_match", "weight_by_size": True, "filter_list": "flexible"}]
    )
    manager = TaskManager(include_path=str(tasks), include_defaults=False)
    for name, seed in (("a", 1), ("b", 2)):
        tracker = EvaluationTracker(output_path=str(folder / name))
        with noise():
            found: Any = simple_evaluate(
                model=PromptedModel(seed=seed), model_args={"pretrained": f"sim/{name}"}, tasks=["sums"],
                task_manager=manager, evaluation_tracker=tracker, log_samples=True, bootstrap_iters=0,
            )  # fmt: skip
        samples = found.pop("samples")
        tracker.save_results_aggregated(results=found, samples=samples)
        for task, rows in samples.items():
            tracker.save_results_samples(task_name=task, samples=rows)
    return {"a": folder / "a", "b": folder / "b"}


def output(capsys: pytest.CaptureFixture[str], *arguments: object) -> Any:
    assert main([*map(str, arguments), "--format", "json", "-q"]) == 0
    return json.loads(capsys.readouterr().out)


CHOSEN = ("--metric", "exact_match", "--scorer", "flexible")


def test_the_task_is_the_prompt(runs: dict[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    found = output(capsys, "factors", runs["a"], "--factor", "prompt=task", *CHOSEN)
    rows = {row["factor"]: row for row in found["factors"]}
    answers = 2 * 24 * 3
    assert found["n_answers"] == answers
    assert {name: row["levels"] for name, row in rows.items()} == {
        "question": 24, "prompt": 2, "question × prompt": 48, "residual": answers,
    }  # fmt: skip
    assert rows["prompt"]["var"] > rows["question"]["var"]
    # two prompts: nobody can say where answers help
    assert "prompt has only 2 levels, so no advice can be given yet" in found["advice"]
    assert "prompt has 2 levels" in noted(found["notes"])[0]

    import harness_noise as hn

    (run,) = hn.read(runs["a"], metrics=("exact_match",), scorers=("flexible",))
    assert not isinstance(run, list)
    one, other = (dict(zip(part.questions.keys, part.values, strict=True)) for part in run.scores)
    assert one.keys() == other.keys()
    y = np.array([[one[key], other[key]] for key in one])
    question, prompt, _ = np.meshgrid(range(24), range(2), range(3), indexing="ij")
    direct = factor_noise(y.ravel(), question.ravel(), {"prompt": prompt.ravel()})
    assert [row["var"] for row in found["factors"]] == pytest.approx([row.var for row in direct.factors])


def test_a_question_under_two_prompts_is_one_cluster(runs: dict[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    for extra, row_name in (((), "sums"), (("--group", "mine=sums_prompt_*"), "mine")):
        found = output(capsys, "compare", runs["a"], runs["b"], *CHOSEN, "--cluster", "question", *extra)
        rows = {row["task"]: row for row in found["comparisons"]}
        whole = rows[row_name]
        assert (whole["n_questions"], whole["n_clusters"]) == (48, 24)
        assert whole["diff"] == pytest.approx(np.mean([rows[task]["diff"] for task in TASKS]))
        assert whole["se"] is not None
    # nobody has to ask for it in a group: what its tasks share, by its words, is one sample
    plain = output(capsys, "compare", runs["a"], runs["b"], *CHOSEN)
    by_words = {row["task"]: row for row in plain["comparisons"]}
    assert (by_words["sums"]["n_clusters"], by_words["sums"]["cluster"]) == (24, "same question")
    assert by_words["sums"]["se"] == pytest.approx(rows["sums"]["se"], rel=1e-12)
    assert {by_words[task]["cluster"] for task in TASKS} == {None}


def test_tasks_as_clusters(runs: dict[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    found = output(capsys, "analyze", runs["a"], *CHOSEN, "--cluster", "task")
    rows = {row["task"]: row for row in found["estimates"]}
    means = np.array([rows[task]["mean"] for task in TASKS])
    assert rows["sums"]["n_clusters"] == 2
    assert rows["sums"]["se"] == pytest.approx(means.std(ddof=1) / 2**0.5)  # V = Σ w²(d̄_t − d̄)²/(1 − w), w = 1/2
