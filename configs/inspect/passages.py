"""24 questions about 8 passages, three about each: a benchmark small enough to try error bars on.

    inspect eval configs/inspect/passages.py --model MODEL --epochs 5 \\
        --metadata noise=true --metadata noise_cluster=passage

Add `-T simulated=true --model mockllm/model` to try it without a model: the answers are then coins,
and the questions about one passage are equally hard.
"""

from __future__ import annotations

import random
from pathlib import Path

from inspect_ai import Task, task
from inspect_ai.dataset import json_dataset
from inspect_ai.model import ModelOutput
from inspect_ai.scorer import match
from inspect_ai.solver import Generate, Solver, TaskState, generate, solver

DATA = Path(__file__).with_name("passages.jsonl")


@task
def passages(simulated: bool = False) -> Task:
    return Task(
        dataset=json_dataset(str(DATA)),
        solver=coin() if simulated else generate(),
        scorer=match(numeric=True),
    )


@solver
def coin() -> Solver:
    async def solve(state: TaskState, generate: Generate) -> TaskState:
        ease = random.Random(state.metadata["passage"]).random()
        right = random.Random(f"{state.model.name} {state.sample_id} {state.epoch}").random() < ease
        state.output = ModelOutput.from_content(str(state.model), state.target.text if right else "0")
        return state

    return solve
