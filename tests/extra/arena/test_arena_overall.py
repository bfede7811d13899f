"""The overall row of an arena: each pair weighs its tasks as `compare` does, and each model as `analyze`."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest

import harness_noise as hn
from harness_noise import as_scores
from harness_noise.data.questions import Questions
from harness_noise.data.scores import Group, Run, Scores
from support.notes import noted
from support.same_rows import assert_same_row

NAMES = ("a", "b", "c", "d")
LACKING = ("nothing", "answers", "questions", "all answers", "other questions")


def drawn(seed: int, *, groups: tuple[Group, ...] = (), clusters: str | None = None, K: int = 2) -> list[Run]:
    """Three models on four tasks, of each of which any may lack answers or questions, or have others."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(6, 20, size=len(NAMES))
    inside = {task for group in groups for task in group.tasks}
    runs = []
    for m in range(3):
        parts = []
        for task, n in zip(NAMES, sizes, strict=True):
            values = (rng.uniform(size=(n, rng.integers(1, K + 1))) < 0.4 + 0.1 * m).astype(float)
            rows, lacks = np.arange(n), rng.choice(LACKING, p=[0.35, 0.3, 0.2, 0.05, 0.1])
            if lacks == "answers":
                values[rng.uniform(size=n) < 0.4] = np.nan
            elif lacks == "questions":
                rows = rng.permutation(n)[: n // 2 + 1]
            elif lacks == "all answers":
                values[:] = np.nan
            keys = tuple(f"{task} {i}{m * (lacks == 'other questions') or ''}" for i in rows)
            labels = {
                "task": [task] * n,
                "across": [f"{i % 4}" for i in rows],
                "within": [f"{task} {i % 4}" for i in rows],
            }
            named = None if clusters is None else tuple(labels[clusters][: len(rows)])
            parts.append(
                Scores(
                    task, "acc", "none", Questions(keys), values[rows], clusters=named, cluster_spec=clusters,
                    n_missing=int(np.isnan(values[rows]).sum()), bounds=(0.0, 1.0), higher_is_better=True,
                )
            )  # fmt: skip
        alone, grouped = ([part for part in parts if (part.task in inside) == of_group] for of_group in (False, True))
        runs.append(Run(f"m{m}", f"r{m}", "array", scores=tuple(alone), parts=tuple(grouped), groups=groups))
    return runs


WEIGHTS: dict[str, Any] = {"equal": "equal", "size": "size", "file": {"g": 2.0, "a": 1.0, "b": 3.0, "c": 0.5, "d": 0.0}}
CASES: dict[str, tuple[tuple[Group, ...], str | None, int]] = {
    "none": ((), "within", 0),
    "by size": ((Group("g", "acc", "none", ("a", "b"), "size"),), "across", 1),
    "equal": ((Group("g", "acc", "none", ("a", "b"), "equal"),), None, 2),
    "fixed": ((Group("g", "acc", "none", ("a", "b"), weights=(0.7, 0.3)),), "task", 3),
}


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("grouped", CASES)
def test_every_row_of_an_arena_is_that_of_compare(weights: str, grouped: str) -> None:
    """Also where a task has no question in common, or none with a score."""
    groups, clusters, seed = CASES[grouped]
    runs = drawn(seed, groups=groups, clusters=clusters)
    choices: dict[str, Any] = {"weights": WEIGHTS[weights], "adjust": "none"}
    found, n_overall = hn.arena(runs, **choices), 0
    for a, b in combinations(runs, 2):
        pairs = {p.key: p for board in found.boards for p in board.pairs if (p.run_a, p.run_b) == (a.name, b.name)}
        for theirs in hn.compare(a, b, **choices).comparisons:
            n_overall += theirs.task == "overall"
            assert_same_row(pairs[theirs.key], theirs, 1e-10)
    assert n_overall == 3
    for model, run in zip(found.boards[-1].models, runs, strict=True):
        (row,) = [row for row in hn.analyze(run, weights=WEIGHTS[weights]).estimates if row.task == "overall"]
        for name in ("mean", "se", "ci_low", "ci_high", "df", "n_questions", "n_missing", "weights"):
            x, y = getattr(model, name), getattr(row, name)
            assert x == (pytest.approx(y, rel=1e-10) if isinstance(y, float) else y), (name, row.key)


def test_weights_by_size_are_those_of_the_questions_that_were_compared() -> None:
    """Of the long task one run lacks 38 of 40 answers: by those asked for it would have four fifths of the weight."""
    short, long, hollow = np.r_[np.ones(9), 0.0], np.ones(40), np.ones(40)
    hollow[2:] = np.nan
    tasks = {"m": (short, hollow), "r": (1 - short, long)}
    runs = [
        Run(name, name, "array", scores=tuple(as_scores(x, task=t) for t, x in zip("ab", each, strict=True)))
        for name, each in tasks.items()
    ]
    (pair,) = hn.arena(runs, weights="size").boards[-1].pairs
    assert (pair.task, pair.diff) == ("overall", pytest.approx(8 / 12))
    assert hn.compare(*runs, weights="size").comparisons[-1].diff == pytest.approx(8 / 12)


def test_a_task_of_weight_0_is_not_said_to_be_in_one_run_only() -> None:
    runs = drawn(1)
    found = hn.compare(*runs[:2], weights=WEIGHTS["file"])
    assert not [note for note in noted(found) if "which only" in note]


def lacking(name: str, rng: np.random.Generator, *, scores: bool = True) -> Run:
    """A run of two whole tasks, and of a third with or without any score."""
    parts = [as_scores(x if t < 2 or scores else x * np.nan, task="abc"[t]) for t, x in enumerate(rng.random((3, 20)))]
    return Run(name, name, "array", scores=tuple(parts))


@pytest.mark.parametrize("weights", ["equal", "size"])
def test_a_task_without_a_score_is_named_in_place_of_advice_to_run_more_questions(weights: Any) -> None:
    rng = np.random.default_rng(0)
    a, b, c = (lacking(name, rng, scores=False) for name in "abc")
    found = hn.analyze(a, weights=weights), hn.compare(a, b, weights=weights), hn.arena([a, b, c], weights=weights)
    rows = found[0].estimates[-1], found[1].comparisons[-1], found[2].boards[-1].pairs[0]
    for row, result in zip(rows, found, strict=True):
        assert row.task == "overall"
        assert "too_few_questions" not in row.diagnostics
        assert ("unscored_task" in row.diagnostics) == (row.se is None) == (weights == "equal")
        assert any("without c" in note for note in noted(result)) == (weights == "size")
    assert any("c, score: left out: no question has a score in two of the 3 runs" in note for note in noted(found[2]))
    partly = hn.arena([a, *(lacking(name, rng) for name in "bc")], weights=weights)
    assert any("without c in the 2 of 3 pairs" in note for note in noted(partly)) == (weights == "size")
    assert "more questions" not in str(found[1])
    assert "there is no score" not in str(found[0]).split("\n")[0]
