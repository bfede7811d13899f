"""The word problems through the real Inspect."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from .word_problems import MODELS, SimulatedModel, problems

if TYPE_CHECKING:
    from inspect_ai import Task


NAME = "inspect"
TASK = '''"""The word problems as an Inspect task. The models are simulated: any --model mockllm/sim-a … sim-h."""

from inspect_ai import Task, task

from harness_noise_adapters.extra.demo.in_inspect import benchmark


@task
def word_problems() -> Task:
    return benchmark()
'''


def write_task(folder: Path) -> Path:
    """Write the demonstration's Inspect task file into a folder, and return the file's path."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "word_problems.py"
    path.write_text(TASK, encoding="utf-8")
    return path


def benchmark() -> Task:
    """Build the demonstration's Inspect task of word problems, answered by a simulated model, not a real one."""
    from inspect_ai import Task
    from inspect_ai.dataset import MemoryDataset, Sample
    from inspect_ai.model import ModelOutput
    from inspect_ai.scorer import match
    from inspect_ai.solver import Generate, TaskState, solver

    by_id = {problem.id: problem for problem in problems()}
    models = {model.name: model for model in MODELS}

    @solver
    def simulated():  # type: ignore[no-untyped-def]
        async def solve(state: TaskState, generate: Generate) -> TaskState:
            model = models[state.model.name]
            text = model.answer(by_id[str(state.sample_id)], f"inspect {state.epoch}")
            state.output = ModelOutput.from_content(str(state.model), text)
            return state

        return solve

    samples = [
        Sample(input=each.question, target=str(each.answer), id=each.id, metadata={"template": each.template})
        for each in problems()
    ]
    return Task(name="word_problems", dataset=MemoryDataset(samples), solver=simulated(), scorer=match(numeric=True))


def installed() -> bool:
    """Return True if the package inspect_ai is installed."""
    return find_spec("inspect_ai") is not None


def run_models(
    models: Sequence[SimulatedModel], out: Path, show: Callable[[list[str]], None], repeats: int = 5
) -> list[Path]:
    """Run the demo for all models by Inspect in this process. Return their log files in order, or raise an error.

    `show` is told the command that does the same from a shell.
    """
    import inspect_ai

    task = os.path.relpath(write_task(out / "task"))  # Inspect takes no absolute path
    names = ",".join(f"mockllm/{model.name}" for model in models)
    flags = f"--epochs {repeats} --metadata noise=true --metadata noise_cluster=template".split()
    flags += ["--no-log-realtime", "--no-score-display"]  # which take a third of the time of such short answers
    show(["inspect", "eval", task, "--model", names, *flags, "--log-dir", str(out / "inspect")])
    logs = inspect_ai.eval(
        benchmark(),
        model=[f"mockllm/{model.name}" for model in models],
        epochs=repeats,
        metadata={"noise": True, "noise_cluster": "template"},
        log_dir=str(out / "inspect"),
        display="plain",
        log_realtime=False,
        score_display=False,
    )
    order = {f"mockllm/{model.name}": i for i, model in enumerate(models)}
    failed = [log for log in logs if log.status != "success"]
    if failed:
        raise RuntimeError(f"Inspect ended with status {failed[0].status}")
    return [Path(log.location) for log in sorted(logs, key=lambda log: order[log.eval.model])]
