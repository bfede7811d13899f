"""lm-eval's hf model asked in blocks: native values of a plain run of the questions that were asked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="torch is not installed: make models")
pytest.importorskip("transformers", reason="transformers is not installed: make models")

from harness_noise_adapters.lm_eval_harness import noise
from models.tiny import documents
from models.tiny_tasks import TASKS
from support import lm_eval_models as toys
from support.lm_eval_live import native_part, save

pytestmark = [pytest.mark.models, pytest.mark.filterwarnings("default")]

N = 120


def test_answers_and_choices_stop_each_for_itself(model: str, tmp_path: Path) -> None:
    for name in ("greedy", "choice"):
        toys.write_task(tmp_path, name, documents(N), TASKS[name])
    save(tmp_path, tmp_path / "b", ["greedy", "choice"], toys.HashModel(seed=9, share=0.05))
    # one at a time: the batch in which a question is asked moves the last digits of a log-likelihood
    options: dict[str, Any] = {"model_args": f"pretrained={model},dtype=float32", "device": "cpu", "batch_size": 1}
    with noise(until="decided", against=str(tmp_path / "b"), repeats=2) as session:
        results = toys.simple_evaluate(tmp_path, ["greedy", "choice"], "hf", **options)
    assert session.problems == []
    looks = {look.task: look for look in session.analysis.sequential}
    part = results["config"].pop("samples")
    assert {name: len(asked) for name, asked in part.items()} == {name: look.n_asked for name, look in looks.items()}
    assert min(look.n_asked for look in looks.values()) < N
    plain = toys.simple_evaluate(tmp_path, ["greedy", "choice"], "hf", samples=part, **options)
    ours, theirs = native_part(results), native_part(plain)
    assert ours["results"] == theirs["results"]
    assert str(ours["samples"]) == str(theirs["samples"])
