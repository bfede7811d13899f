"""`python -m pytest` in this folder, with the package installed: `pip install --editable .`"""

import json
from pathlib import Path

import numpy as np
import pytest
from harness_noise_trials import adapter

import harness_noise as hn
from harness_noise.extra.testing.adapters import check_adapter

SCORES = np.arange(24).reshape(12, 2) * 7 % 5 / 4
SCORES[1, 1] = np.nan


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Two tasks of twelve questions in four passages, two answers to each under two judges; one has no score."""
    trials = [
        {
            "task": task, "id": f"q{i}", "trial": k, "question": f"What is {i}?", "passage": f"p{i // 3}",
            "judge": "ab"[k], "score": None if np.isnan(SCORES[i, k]) else SCORES[i, k],
        }
        for task in ("arithmetic", "drop") for i in range(12) for k in range(2)
    ]  # fmt: skip
    path = tmp_path / "m.trials.json"
    path.write_text(json.dumps({"model": "m", "trials": trials}))
    return path


def test_what_every_adapter_promises(run: Path, tmp_path: Path) -> None:
    # scores of a few answers, one of them missing: a mean does not see them in the wrong order
    expected = {("arithmetic", "q0"): SCORES[0], ("arithmetic", "q1"): [SCORES[1, 0], None], ("drop", "q7"): SCORES[7]}
    check_adapter(
        adapter,
        run,
        tmp_path / "work",
        cluster="passage",
        question="question",
        factor="judge",
        models=["m"],
        expected=expected,
    )


def test_a_folder_of_runs_is_compared(run: Path) -> None:
    for name in ("a", "b"):
        folder = run.parent / "runs" / name
        folder.mkdir(parents=True)
        (folder / "1.trials.json").write_text(run.read_text().replace('"model": "m"', f'"model": "{name}"'))
    found = {item.model: [part.task for part in item.scores] for item in hn.read(run.parent / "runs")}
    assert found == {"a": ["arithmetic", "drop"], "b": ["arithmetic", "drop"]}
    assert [row.task for row in hn.arena([run.parent / "runs"]).benchmarks] == ["arithmetic", "drop", "overall"]


def test_the_numbers_are_those_of_the_file(run: Path) -> None:
    row = hn.analyze(run, tasks=["arithmetic"]).estimates[0]
    expected = hn.estimate(SCORES)
    assert (row.mean, row.se) == pytest.approx((expected.mean, expected.se))
