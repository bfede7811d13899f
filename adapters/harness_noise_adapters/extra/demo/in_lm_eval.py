"""The word problems through the real lm-eval."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from harness_noise.errors import InputError

from ...lm_eval_harness.scoring.rescore import patched
from .word_problems import MODELS, SimulatedModel, problems

NAME = "lm-eval"
TASK = """\
# Word problems, 20 templates × 10 instances. Local data, no network.
task: word_problems
dataset_path: json
dataset_kwargs:
  data_files: {{test: {data}}}
test_split: test
output_type: generate_until
doc_to_text: "{{{{question}}}}"
doc_to_target: "{{{{answer}}}}"
generation_kwargs:
  do_sample: true
  temperature: 0.8
  until: ["\\n\\n"]
filter_list:
  - name: number
    filter:
      - function: regex
        regex_pattern: "answer is (-?[0-9]+)"
      - function: take_first
metric_list:
  - metric: exact_match
    aggregation: mean
    higher_is_better: true
metadata:
  version: 1.0
"""


SIMULATED = (
    "--model simulated is for the demonstration: it answers only the task word_problems, by chance, as one of "
    f"{', '.join(model.name for model in MODELS)} (--model_args model=sim-a). `python -m "
    "harness_noise.extra.demo -o DIR` writes that task to DIR/task, for --include_path, and shows the commands. For "
    "other tasks name a model of lm-eval's"
)
"""The simulated model's message about any other task."""


def write_task(folder: Path) -> Path:
    """Write the demonstration's lm-eval task (YAML and data) into a folder for `--include_path`, and return it."""
    folder.mkdir(parents=True, exist_ok=True)
    data = folder / "word_problems.jsonl"
    lines = [
        {"id": problem.id, "template": problem.template, "question": problem.question, "answer": str(problem.answer)}
        for problem in problems()
    ]
    data.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    (folder / "word_problems.yaml").write_text(TASK.format(data=json.dumps(str(data.resolve()))), encoding="utf-8")
    return folder


def prepare(arguments: Sequence[str]) -> None:
    """Register the simulated models with lm-eval before a command runs. Raise an error for any other task.

    Raises:
        InputError: it runs another task.
    """
    if "run" in arguments and not any("word_problems" in word for word in arguments):
        raise InputError(SIMULATED)
    register()


def register() -> None:
    """Register the simulated models with lm-eval as `--model simulated`. They refuse questions beside the demo's."""
    from lm_eval.api.model import LM
    from lm_eval.api.registry import MODEL_REGISTRY, register_model

    if "simulated" in MODEL_REGISTRY:
        return

    @register_model("simulated")
    class Simulated(LM):  # type: ignore[misc]
        """A model that answers word problems by chance (see `SimulatedModel`)."""

        def __init__(self, model: str = MODELS[0].name, **kwargs: Any) -> None:
            super().__init__()
            simulated = next((each for each in MODELS if each.name == model), None)
            if simulated is None:
                raise InputError(SIMULATED)
            self.simulated = simulated
            self.draws: Counter[str] = Counter()

        def generate_until(self, requests: list[Any], disable_tqdm: bool = False) -> list[str]:
            by_question = {each.question: each for each in problems()}
            if any(request.args[0] not in by_question for request in requests):
                raise InputError(SIMULATED)
            answers = []
            for request in requests:
                problem = by_question[request.args[0]]
                answers.append(self.simulated.answer(problem, self.draws[problem.id]))
                self.draws[problem.id] += 1
            return answers

        def loglikelihood(self, requests: list[Any]) -> list[tuple[float, bool]]:
            raise InputError(SIMULATED)

        loglikelihood_rolling = loglikelihood


def installed() -> bool:
    """Return True if the package lm_eval is installed."""
    return find_spec("lm_eval") is not None


def run_models(models: Sequence[SimulatedModel], out: Path, show: Callable[[list[str]], None]) -> list[Path]:
    """Run lm-eval on the demo once for each model. Return the output folders. Raise an error if one fails."""
    return [run(model, out, show) for model in models]


def run(model: SimulatedModel, out: Path, show: Callable[[list[str]], None], against: Path | None = None) -> Path:
    """Run lm-eval on the demo in this process, 5 answers a question. Return its folder, or raise an error if it fails.

    Args:
        model: who answers.
        out: folder for the task and the output.
        show: is told the command before it runs.
        against: output of a finished run; the new one stops when the comparison with it is decided.

    Returns:
        The folder with lm-eval's output.
    """
    # before lm-eval loads Hugging Face's libraries, which read these once
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    os.environ.setdefault("HF_DATASETS_CACHE", str(out / ".cache"))
    from lm_eval import evaluator, tasks

    from ...lm_eval_harness.live.cli import main

    register()
    folder = out / ("lm-eval" if against is None else "stopped-early") / model.name
    arguments = f"run --model simulated --model_args model={model.name} --tasks word_problems".split()
    arguments += ["--include_path", str(write_task(out / "task")), "--output_path", str(folder)]
    arguments += ["--noise_repeats", "5", "--noise_cluster", "template"]
    if against is not None:
        arguments += ["--noise_until", "decided", "--noise_against", str(against)]
    arguments += ["--log_samples", "--noise"]
    show(["harness-noise", "lm-eval", *arguments])
    # outside of a repository git complains when lm-eval asks it for the commit; and the index of lm-eval's own
    # 13,000 task files takes half of the time of such a run
    quick = partial(tasks.TaskManager, include_defaults=False)
    with patched(evaluator, "get_git_commit_hash", lambda: None), patched(tasks, "TaskManager", quick):
        code = main(arguments)
    if code:
        raise RuntimeError(f"lm-eval ended with exit code {code}")
    return folder
