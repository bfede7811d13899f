"""The package to copy for a new harness: it installs, is found by its entry point, and its own test passes."""

from __future__ import annotations

import importlib
import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from harness_noise.data.answers import Answers
from harness_noise.data.scores import ReadOptions
from harness_noise.errors import InputError
from harness_noise.extra.testing.adapters import check_adapter
from support.packages import install
from support.processes import environment


@pytest.fixture
def installed(root: Path, tmp_path: Path) -> Path:
    """What an installer would lay beside the module, made from the template's own pyproject.toml."""
    folder = tmp_path / "site"
    shutil.copytree(root / "configs" / "adapter_template", folder, ignore=shutil.ignore_patterns("__pycache__"))
    return install(folder)


@pytest.mark.process
def test_its_own_test_passes_and_the_command_line_reads_its_runs(installed: Path, tmp_path: Path) -> None:
    def call(*arguments: str) -> str:
        command = [sys.executable, "-m", *arguments]
        done = subprocess.run(command, cwd=installed, env=environment(installed), capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    assert "3 passed" in call("pytest", "-q", "-p", "no:cacheprovider", "test_trials.py")
    assert "trials" in call("harness_noise", "list")
    run = tmp_path / "m.trials.json"
    trials = [{"task": "t", "id": f"q{i}", "trial": 1, "score": i % 2} for i in range(8)]
    run.write_text(json.dumps({"model": "m", "trials": trials}))
    assert '"mean": 0.5' in call("harness_noise", "analyze", str(run), "--format", "json")


def test_it_is_short_enough_to_copy(root: Path) -> None:
    module = (root / "configs" / "adapter_template" / "harness_noise_trials.py").read_text().splitlines()
    assert len(module) <= 70


ANSWERS = np.arange(24).reshape(12, 2) * 7 % 5 / 4


def test_a_frame_is_the_short_way(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(root / "configs" / "adapter_template")
    adapter = importlib.import_module("harness_noise_frame").adapter
    rows = [
        {
            "model": model, "task": task, "id": f"q{i}", "trial": k, "passage": f"p{i // 3}", "judge": "ab"[k],
            "score": None if (i, k) == (1, 1) else ANSWERS[i, k], "cause": "limit" if (i, k) == (1, 1) else None,
        }
        for model in ("m", "n") for task in ("sums", "drop") for i in range(12) for k in range(2)
    ]  # fmt: skip
    path = tmp_path / "x.answers.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    expected = {("sums", "q0"): ANSWERS[0], ("sums", "q1"): [ANSWERS[1, 0], None], ("drop", "q7"): ANSWERS[7]}
    told = {"cluster": "passage", "question": "question", "factor": "judge", "models": ["m", "n"]}
    check_adapter(adapter, path, tmp_path / "work", expected=expected, **told)
    (part, _) = adapter.read(path, ReadOptions())[0].scores
    assert (part.missing, part.clusters) == ({"limit": 1}, None)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"question": ["a", None]}, "row 2: no question"),
        ({"score": [1, "good"]}, "line 2: table, score: the score 'good' is not a finite number"),
        ({"score": [1, float("inf")]}, "line 2: table, score: the score inf is not a finite number"),
        ({"model": ["m", "n"]}, "several models"),
        ({"score": [1, None], "cause": [None, 3.0]}, r"row 2: the cause 3\.0 is none of agent, infrastructure"),
        ({"score": [1, None], "cause": [None, "oops"]}, "row 2: the cause 'oops' is none of agent, infrastructure"),
        ({"question": ["a", "a"], "repeat": [1, 1], "score": [1, 0]}, "has the score 1 on line 1 and 0 on line 2"),
    ],
)
def test_what_a_frame_cannot_say_is_refused(change: dict[str, list[object]], words: str) -> None:
    frame = pd.DataFrame({"question": ["a", "b"], "score": [1, 0]} | change)
    with pytest.raises(InputError, match=words):
        Answers.from_frame(frame, "here").run("m", "mine")
    with pytest.raises(InputError, match=r"no column 'score'\. There are question"):
        Answers.from_frame(frame[["question"]], "here")
    with pytest.raises(InputError, match="two columns are called 'score'"):
        Answers.from_frame(frame[["question", "score", "score"]], "here")


def test_cells_of_a_frame_are_those_of_a_table() -> None:
    frame = pd.DataFrame({"question": [1.0, 1.0, 2.0], "cluster": ["x", "x", "y"], "score": [True, None, 0.5]})
    (part,) = Answers.from_frame(frame, "here").run("m", "mine").scores
    assert part.questions.keys == ("1", "2")
    assert (part.clusters, part.n_missing, part.values[1, 0]) == (("x", "y"), 1, 0.5)
