"""A run with the flag that was killed, and what `inspect log recover` makes of it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap

import pytest

from harness_noise.cli import main

pytest.importorskip("inspect_ai", reason="inspect-ai is not installed")

N, EPOCHS, KILLED = 12, 2, 9
TASK = textwrap.dedent(
    f"""
    import os, signal
    from inspect_ai import Task, task
    from inspect_ai.dataset import MemoryDataset, Sample
    from inspect_ai.model import ModelOutput
    from inspect_ai.scorer import match
    from inspect_ai.solver import solver

    @solver
    def canned():
        async def solve(state, generate):
            if state.sample_id == "q{KILLED}":
                os.kill(os.getpid(), signal.SIGKILL)
            right = int(state.sample_id[1:]) % 3
            state.output = ModelOutput.from_content("mockllm/model", "yes" if right else "no")
            return state
        return solve

    @task
    def sums():
        questions = [Sample(id=f"q{{i}}", input=f"Question {{i}}?", target="yes") for i in range({N})]
        return Task(dataset=MemoryDataset(questions), solver=canned(), scorer=match())
    """
)


def test_a_killed_run_is_recovered_and_analysed(tmp_path, capsys):
    (tmp_path / "sums.py").write_text(TASK)
    logs = tmp_path / "logs"

    def inspect(*arguments):
        environment = os.environ | {"XDG_DATA_HOME": str(tmp_path / "data"), "HARNESS_NOISE": ""}
        command = [sys.executable, "-m", "inspect_ai", *map(str, arguments)]
        return subprocess.run(
            command, capture_output=True, text=True, env=environment, timeout=120, cwd=tmp_path, check=False
        )

    run = inspect(
        "eval", "sums.py", "--model", "mockllm/model", "--epochs", EPOCHS, "--metadata", "noise=true",
        "--max-samples", 1, "--log-dir", logs, "--display", "none",
    )  # fmt: skip
    assert run.returncode == -signal.SIGKILL, run.stderr
    (log,) = logs.glob("*.eval")
    assert main(["analyze", str(log)]) == 2
    assert "the eval has not finished (status started)" in capsys.readouterr().err
    recovered = inspect("log", "recover", log)
    assert recovered.returncode == 0, recovered.stderr
    (found,) = logs.glob("*-recovered.eval")
    assert main(["analyze", str(found)]) == 0
    said = capsys.readouterr()
    # the answers are there; ours are not in the log; and what was never asked is not a random subset
    assert f"({KILLED} questions, one answer each)" in said.out
    assert "not_a_random_part" in said.out
    err = " ".join(said.err.split())
    assert "its metadata ask for error bars (noise), and it holds none" in err
    assert f"{N * EPOCHS - KILLED} of {N * EPOCHS} answers were never given" in err
