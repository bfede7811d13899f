"""Coverage of the overall row: tasks of unequal sizes and variances, with clusters across tasks and without."""

from __future__ import annotations

import numpy as np
import pytest

from harness_noise.analysis.overall import overall_differences
from harness_noise.data.questions import Questions, content_hash
from harness_noise.data.scores import Group, Run, Scores
from harness_noise.settings import Settings

SIZES = (20, 60, 120)
REPLICATIONS = 500
GROUP = Group("g", "acc", "none", ("t0", "t1"))


def pair(rng: np.random.Generator, clusters: int | None, effect: float) -> tuple[Run, Run]:
    """Two runs whose difference is `effect` in every task, with one effect of each cluster in all tasks."""
    shared = rng.normal(0, 0.3, clusters or 1)
    parts: list[tuple[Scores, ...]] = []
    for t, n in enumerate(SIZES):
        own = np.arange(n) % (clusters or 1)
        d = effect + (0.1 + 0.2 * t) * rng.normal(size=n) + (shared[own] if clusters else 0.0)
        labels = tuple(map(str, own)) if clusters else None
        base = rng.normal(size=n)
        questions = Questions(tuple(map(str, range(n))))
        more = {"clusters": labels, "cluster_spec": "topic" if clusters else None, "bounds": (-1e9, 1e9)}
        parts.append(
            tuple(Scores(f"t{t}", "acc", "none", questions, values=x[:, None], **more) for x in (base + d, base))
        )
    a, b = (
        Run(name, name, "test", scores=tuple(side), groups=(GROUP,))
        for name, side in zip("ab", zip(*parts, strict=True), strict=True)
    )
    return a, b


@pytest.mark.parametrize(("clusters", "weights"), [(20, "equal"), (None, "equal"), (20, "size")])
def test_the_overall_row_covers(clusters: int | None, weights: str) -> None:
    """95% ± 2.5 standard errors of 500 replications; with clusters taken for each task's own it covers 84%."""
    rng = np.random.default_rng(1)
    settings = Settings(weights=weights)
    covered = 0
    for _ in range(REPLICATIONS):
        (row,), _, _ = overall_differences([pair(rng, clusters, 0.1)], settings)
        assert row.ci_low is not None
        assert row.ci_high is not None
        covered += row.ci_low <= 0.1 <= row.ci_high
    share, error = covered / REPLICATIONS, (0.95 * 0.05 / REPLICATIONS) ** 0.5
    assert abs(share - 0.95) < 2.5 * error, share


def same_questions(rng: np.random.Generator, inputs: tuple[str, ...] | None) -> tuple[Run, Run]:
    """Two models of equal means on ten tasks that ask the same 50 questions; each is better at some of them."""
    d, keys, runs = rng.normal(size=(50, 1)), tuple(map(str, range(50))), []
    for name, sign in (("a", 1), ("b", -1)):
        right = 1 / (1 + np.exp(-2 * sign * d))
        questions = Questions(keys, inputs=inputs)
        parts = (
            Scores(f"t{t}", "acc", "none", questions, values=(rng.random((50, 1)) < right).astype(float), bounds=(0, 1))
            for t in range(10)
        )
        runs.append(Run(name, name, "test", scores=tuple(parts)))
    return runs[0], runs[1]


def test_tasks_that_share_questions_keep_the_level() -> None:
    """5% within 3 standard errors of 200 replications; taken for independent they reject 43% of true nulls."""
    rng = np.random.default_rng(5)
    words = tuple(content_hash(f"question {i}") for i in range(50))

    def rejected(inputs: tuple[str, ...] | None, n: int) -> float:
        rows = (overall_differences([same_questions(rng, inputs)], Settings())[0][0] for _ in range(n))
        return float(np.mean([row.p_value is not None and row.p_value < 0.05 for row in rows]))

    assert rejected(words, 200) < 0.05 + 3 * (0.05 * 0.95 / 200) ** 0.5
    assert rejected(None, 50) > 0.2
