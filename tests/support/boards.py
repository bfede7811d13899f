"""Runs of many models on the same questions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from harness_noise.data.questions import Questions
from harness_noise.data.scores import Run, Scores

N = 120


def board(
    M: int = 5, K: int = 3, *, seed: int = 0, names: list[str] | None = None, spread: float = 0.03, **more: Any
) -> list[Run]:
    rng = np.random.default_rng(seed)
    u = rng.uniform(size=N)
    keys = tuple(f"q{i}" for i in range(N))
    runs = []
    for m in range(M):
        values = (rng.uniform(size=(N, K)) < np.clip(u + spread * m, 0, 1)[:, None]).astype(float)
        name = names[m] if names else f"model {m}"
        runs.append(
            Run(name, f"run {m}", "array", scores=(Scores("task", "acc", "none", Questions(keys), values, **more),))
        )
    return runs


def values_of(run: Run) -> np.ndarray:
    return run.scores[0].values


def with_values(run: Run, values: np.ndarray) -> Run:
    return replace(run, scores=(replace(run.scores[0], values=values),))
