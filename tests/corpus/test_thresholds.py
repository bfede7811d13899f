"""Threshold files that inference engines keep: every one is read, and decides a run that has its tasks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import harness_noise as hn
from corpus import fetch
from harness_noise.data.questions import Questions
from harness_noise.data.scores import Run, Scores
from harness_noise.extra.gate.thresholds import read_thresholds

ENTRIES = [entry for entry in fetch.manifest() if entry["kind"] == "thresholds"]


@pytest.fixture(params=ENTRIES, ids=lambda entry: entry["repository"])
def paths(request: pytest.FixtureRequest) -> list[Path]:
    entry: dict[str, Any] = request.param
    found = [fetch.place(entry, file) for file in entry["files"]]
    if not all(path.is_file() for path in found):
        pytest.skip("not in the cache: make corpus fetches it")
    return found


def made_up(path: Path, off: float) -> Run:
    """A run that has just what the file names, each score that much off its threshold."""
    pytest.importorskip("yaml")
    scores = []
    for (task, metric, scorer), value, _, limit in read_thresholds(path):
        n = limit or 400
        right = round(min(max(value + off, 0.0), 1.0) * n)
        questions = Questions(tuple(f"q{i}" for i in range(n)))
        scores.append(Scores(task or "gsm8k", metric, scorer or "none", questions,
                             (np.arange(n) < right).astype(float)[:, None], higher_is_better=True,
                             bounds=(0.0, 1.0)))  # fmt: skip
    return Run("made up", "made up", "array", scores=tuple(scores))


def test_every_file_is_read_and_decides(paths: list[Path]) -> None:
    for path in paths:
        assert hn.gate(made_up(path, 0.0), thresholds=path).passed, path.name
        low = hn.gate(made_up(path, -0.5), thresholds=path)
        deep = [row for row in low.rows if row.threshold > 0.3]
        assert low.failed or not deep, path.name
        half = made_up(path, 0.0)
        if len({part.task for part in half.scores}) > 1:
            gate = hn.gate(Run("half", "half", "array", scores=half.scores[:1]), thresholds=path)
            assert gate.outcome == "cannot judge", path.name
