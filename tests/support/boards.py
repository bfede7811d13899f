"""Runs of many models on the same questions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from harness_noise.data.clusters import Fields
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


def sliced_board(M: int = 4) -> list[Run]:
    """Models that answered the same questions, each a few less than the others."""
    kind = ["xyzw"[i % 4] for i in range(N)]
    out: list[Run] = []
    for m, run in enumerate(board(M, 3, clusters=tuple(f"c{i // 8}" for i in range(N)), cluster_spec="c")):
        part = run.scores[0]
        values = part.values.copy()
        values[m * 3 : m * 3 + 2] = np.nan
        questions = Questions(part.questions.keys, fields=Fields({"kind": kind}, ("kind",), ("kind",)))
        out.append(replace(run, scores=(replace(part, values=values, questions=questions),)))
    return out


def leaderboard(M: int, n: int, K: int = 4) -> list[Run]:
    """A public leaderboard: M models with long names on n questions with texts."""
    rng = np.random.default_rng(0)
    u = rng.uniform(size=n)
    texts = tuple(
        f"Question {i}: how many of the {i * 7 % 91} marbles that are in the {i % 13} boxes?" for i in range(n)
    )
    questions = Questions(tuple(f"doc-{i:05d}" for i in range(n)), texts=texts)
    out = []
    for m in range(M):
        values = (rng.random((n, K)) < np.clip(u + 0.3 * m / M - 0.15, 0, 1)[:, None]).astype(float)
        part = Scores("task", "acc", "none", questions, values)
        out.append(Run(f"organisation/model-{m:03d}-instruct-{m % 70}b", f"runs/{m}", "array", scores=(part,)))
    return out


def values_of(run: Run) -> np.ndarray:
    return run.scores[0].values


def with_values(run: Run, values: np.ndarray) -> Run:
    return replace(run, scores=(replace(run.scores[0], values=values),))
