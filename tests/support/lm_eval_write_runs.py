"""Real lm-eval runs with simulated models, saved as lm-eval saves them; all but one without our flag.

Run as a program with a folder: `PYTHONPATH=tests python -m support.lm_eval_write_runs FOLDER`.
"""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path
from typing import Any

from lm_eval import simple_evaluate
from lm_eval.loggers import EvaluationTracker
from lm_eval.tasks import TaskManager

from harness_noise_adapters.lm_eval_harness import noise
from support.lm_eval_models import CHOICE, GENERATE, HashModel, docs, write_group, write_task

ODD = """
def process_results(doc, results):
    right = float(results[0].strip() == doc["answer"])
    half = doc["meta"]["source"] % 2 == 0
    out = {"right": right, "half": right if half else float("nan"), "words": "yes" if right else "no",
           "pair": (right, 1), "none": None}
    if half:
        out["sometimes"] = right
    return out


def nanmean(values):
    values = [v for v in values if v == v]
    return sum(values) / len(values)


def count(values):
    return float(len(values))
"""


def save(folder: Path, tasks: list[str], seed: int, manager: TaskManager, **options: Any) -> None:
    tracker = EvaluationTracker(output_path=str(folder))
    results = simple_evaluate(
        model=HashModel(seed=seed),
        model_args={"pretrained": f"sim/model-{seed}"},
        tasks=tasks,
        task_manager=manager,
        evaluation_tracker=tracker,
        log_samples=True,
        **{"bootstrap_iters": 10} | options,
    )
    assert results is not None
    samples = results.pop("samples")
    tracker.save_results_aggregated(results=results, samples=samples)
    for name, rows in samples.items():
        tracker.save_results_samples(task_name=name, samples=rows)


def main(folder: Path) -> None:
    tasks = folder / "tasks"
    tasks.mkdir(parents=True)
    bleu = [*GENERATE["metric_list"], {"metric": "bleu", "aggregation": "bleu", "higher_is_better": True}]
    write_task(tasks, "gen", docs(24), metric_list=bleu, repeats=4)
    write_task(tasks, "mc", docs(12), CHOICE)
    write_task(tasks, "mc2", docs(21)[12:], CHOICE)
    write_task(tasks, "mc3", docs(26)[21:], CHOICE)
    write_group(tasks, "inner", ["mc2", "mc3"], [{"metric": "acc", "weight_by_size": True}])
    write_group(tasks, "outer", ["mc", "inner"], [{"metric": "acc", "weight_by_size": False}])
    digits = GENERATE["filter_list"][1]["filter"][0]
    vote = [{"name": "vote", "filter": [digits, {"function": "majority_vote"}, {"function": "take_first"}]}]
    write_task(tasks, "single", docs(24))
    write_task(tasks, "vote", docs(24), repeats=5, filter_list=vote)
    write_task(tasks, "twice", [*docs(6), *docs(6)[:3]], CHOICE)
    write_task(tasks, "unsafe", docs(6), repeats=3, unsafe_code=True)
    (tasks / "odd.py").write_text(textwrap.dedent(ODD))
    metrics = "".join(
        f"  - {{metric: {name}, aggregation: {how}, higher_is_better: true}}\n"
        for name, how in (
            ("right", "mean"), ("half", "!function odd.nanmean"), ("words", "!function odd.count"),
            ("pair", "!function odd.count"), ("none", "!function odd.count"), ("sometimes", "mean"),
        )
    )  # fmt: skip
    write_task(tasks, "odd", docs(12), repeats=3, filter_list=None, metric_list=None)
    text = (tasks / "odd.yaml").read_text().replace("metric_list: null\n", f"metric_list:\n{metrics}")
    text = text.replace("filter_list: null\n", "process_results: !function odd.process_results\n")
    (tasks / "odd.yaml").write_text(text)

    manager = TaskManager(include_path=str(tasks), include_defaults=False)
    save(folder / "a", ["gen", "outer"], 1, manager)
    save(folder / "b", ["gen", "outer"], 2, manager)
    save(folder / "several", ["mc"], 1, manager)
    save(folder / "several", ["mc"], 1, manager, limit=5)
    save(folder / "several", ["mc"], 1, manager, samples={"mc": [9, 2, 5]})
    save(
        folder / "special",
        ["vote", "twice", "unsafe", "odd"],
        1,
        manager,
        bootstrap_iters=0,
        confirm_run_unsafe_code=True,
    )
    with noise(repeats=4, cluster="template"):
        save(folder / "live", ["single", "vote", "outer"], 1, manager)
    save(folder / "predicted", ["gen"], 1, manager, predict_only=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
