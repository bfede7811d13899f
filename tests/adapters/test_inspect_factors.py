"""Noise by an argument of an Inspect task: the same questions, run under several prompts."""

import json

import pytest

pytest.importorskip("inspect_ai", reason="inspect-ai is not installed")

from inspect_ai import Task, task
from inspect_ai.dataset import Sample
from inspect_ai.model import ModelOutput
from inspect_ai.scorer import match
from inspect_ai.solver import solver

from harness_noise.cli import main


@solver
def answer(prompt: str):
    async def solve(state, generate):
        hard = {"terse": 2, "polite": 6, "stern": 4}[prompt]
        right = int(str(state.sample_id)[1:]) % 8 >= hard or state.epoch == 3
        state.output = ModelOutput.from_content("mockllm/model", "yes" if right else "no")
        return state

    return solve


@task
def prompted(prompt: str = "terse"):
    samples = [Sample(input=f"Question {i}", target="yes", id=f"q{i}") for i in range(16)]
    return Task(dataset=samples, solver=answer(prompt), scorer=match())


@pytest.fixture(scope="module")
def logs(tmp_path_factory, canned):
    folder = tmp_path_factory.mktemp("prompts")
    for prompt in ("terse", "polite", "stern"):
        canned.eval(prompted(prompt=prompt), folder, epochs=3)
    return sorted(str(path) for path in folder.glob("*.eval"))


def test_the_prompt_is_a_factor(logs, capsys):
    assert main(["factors", *logs, "--factor", "prompt=prompt", "--format", "json", "-q"]) == 0
    found = json.loads(capsys.readouterr().out)
    rows = {row["factor"]: row for row in found["factors"]}
    assert found["n_answers"] == 3 * 16 * 3
    assert rows["prompt"]["levels"] == 3
    assert rows["prompt"]["var"] > 0
    assert rows["question"]["levels"] == 16


def test_an_argument_that_the_task_does_not_have(logs, capsys):
    assert main(["factors", *logs, "--factor", "judge=judge"]) == 2
    assert "there is no such column. There are task, model, run" in capsys.readouterr().err
