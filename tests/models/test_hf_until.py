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


def test_the_batch_size_is_looked_for_once_in_all_blocks(
    model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from lm_eval.models.huggingface import HFLM

    looked: list[bool] = []
    original = HFLM._detect_batch_size

    def detect(self: Any, requests: Any = None, pos: int = 0) -> int:
        looked.append(bool(requests))
        return original(self, requests, pos)

    monkeypatch.setattr(HFLM, "_detect_batch_size", detect)
    for name in ("sampled", "choice"):
        toys.write_task(tmp_path, name, documents(N), TASKS[name])
    options: dict[str, Any] = {
        "model_args": f"pretrained={model},dtype=float32", "device": "cpu", "batch_size": "auto", "max_batch_size": 8,
    }  # fmt: skip
    with noise(until="se=0.0001", repeats=2) as session:
        results = toys.simple_evaluate(tmp_path, ["sampled", "choice"], "hf", **options)
    assert session.problems == []
    assert min(look.look for look in session.analysis.sequential) > 10
    assert looked.count(False) == 1  # for answers
    assert looked.count(True) < 5  # for choices: where a request is longer than all before
    assert "samples" not in results["config"]
