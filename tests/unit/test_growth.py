"""What must be linear is: counts and peaks at n and 2n, so that no test waits for a clock."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import harness_noise as hn
from harness_noise import compare
from harness_noise.analysis.repeats import as_repeats
from harness_noise.data.matching import pair_questions
from harness_noise.data.questions import Questions, occurrences
from harness_noise.data.scores import CorpusScores, Group, Run, Scores
from harness_noise.extra.arena.build import distinct_names
from harness_noise.extra.corpus.estimating import Side
from harness_noise.stats.ranks import answers_above

DOUBLE = 2.2
"""What twice the input may cost; a quadratic cost would be 4."""


def answers(n: int, K: int, seed: int = 0) -> np.ndarray:
    return (np.random.default_rng(seed).random((n, K)) < 0.5).astype(float)


def run(n: int, K: int = 2, seed: int = 0) -> Run:
    keys = tuple(f"q{i}" for i in np.random.default_rng(seed).permutation(n))
    questions = Questions(keys, "sample id", inputs=keys, targets=("a",) * n)
    return Run(f"m{seed}", f"r{seed}", "array", scores=(Scores("t", "acc", "none", questions, answers(n, K, seed)),))


def group(tasks: int) -> Run:
    one = run(30)
    parts = tuple(replace(one.scores[0], task=f"t{i}") for i in range(tasks))
    whole = Group("all", "acc", "none", tuple(part.task for part in parts), "equal")
    return replace(one, scores=(), parts=parts, groups=(whole,))


def half_in_one(n: int) -> list[str]:
    return [f"c{max(0, i - n // 2)}" for i in range(n)]


WORK: dict[str, Callable[[int], Callable[[], object]]] = {
    "one cluster of half the questions": lambda n: lambda: hn.estimate(answers(n, 1), clusters=half_in_one(n)),
    "clusters of two": lambda n: lambda: hn.estimate(answers(n, 3), clusters=[f"c{i // 2}" for i in range(n)]),
    "answers": lambda n: lambda: hn.estimate_difference(answers(50, n // 10), answers(50, n // 10, 1)),
    "a permutation test": lambda n: (
        lambda: hn.estimate_difference(answers(n, 1), answers(n, 1, 1), test="permutation", resamples=100)
    ),
    "a shuffled pair": lambda n: lambda: compare(run(n), run(n, seed=1)),
    "an arena's questions": lambda n: lambda: hn.arena([run(n, 2, seed) for seed in range(3)]),
    "the tasks of a group": lambda n: lambda: hn.analyze(group(n // 20)),
}


@pytest.mark.parametrize("what", WORK)
def test_memory_grows_linearly(what: str) -> None:
    def peak(n: int) -> int:
        work = WORK[what](n)
        tracemalloc.start()
        try:
            work()
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    peak(100)  # what is imported and cached the first time
    assert peak(8000) <= DOUBLE * peak(4000)


class Counted(str):
    """A text that counts how often it is compared."""

    compared = 0
    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        Counted.compared += 1
        return str.__eq__(self, other) is True


def comparisons(work: Callable[[], object]) -> int:
    Counted.compared = 0
    work()
    return Counted.compared


def test_names_are_told_apart_in_linear_time() -> None:
    def runs(n: int) -> list[Run]:
        return [Run(Counted(f"m{i // 2}"), f"a/{i}", "array") for i in range(n)]

    assert len(set(distinct_names(runs(200)))) == 200
    assert comparisons(lambda: distinct_names(runs(400))) <= DOUBLE * comparisons(lambda: distinct_names(runs(200)))


def test_questions_are_paired_in_linear_time() -> None:
    def work(n: int) -> Callable[[], object]:
        def questions(order: np.ndarray) -> Questions:
            return Questions(tuple(Counted(f"q{i}") for i in order), inputs=tuple(Counted(f"{i}?") for i in order))

        a, b = questions(np.arange(n)), questions(np.arange(n)[::-1])
        return lambda: pair_questions(a, b)

    assert 0 < comparisons(work(800)) <= DOUBLE * comparisons(work(400))


def test_repeated_keys_are_numbered_in_linear_time() -> None:
    """Also where every numbered name is taken already."""

    def work(n: int) -> Callable[[], object]:
        keys = [Counted("a")] * n + [Counted(f"a#{i}") for i in range(2, n)]
        return lambda: occurrences(keys)

    assert len(set(occurrences(["a"] * 50 + [f"a#{i}" for i in range(2, 50)]))) == 98
    assert comparisons(work(800)) <= DOUBLE * comparisons(work(400))


def test_runs_are_joined_in_time_linear_in_what_they_measured() -> None:
    def work(n: int) -> Callable[[], object]:
        one = run(5)
        return lambda: as_repeats(
            [
                replace(one, name=str(r), scores=tuple(replace(one.scores[0], task=Counted(f"t{i}")) for i in range(n)))
                for r in range(3)
            ]
        )

    assert 0 < comparisons(work(100)) <= DOUBLE * comparisons(work(50))


def test_copies_of_a_log_are_found_in_linear_time() -> None:
    pytest.importorskip("inspect_ai")
    from harness_noise_adapters.inspect_logs import identity

    def work(n: int) -> Callable[[], object]:
        logs = []
        for i in range(n):
            asked = ("t", Counted(f"id{i // 2}"), "m")
            about = identity.LogIdentity(Path(f"{i}.eval"), asked, bytes(8))
            logs.append((replace(run(2), date=f"{i:04}"), about))
        return lambda: identity._copied(logs)

    logs = [(run(2), identity.LogIdentity(Path(f"{i}.eval"), ("t", "id"), bytes(8))) for i in (0, 1)]
    assert len(identity._copied(logs)) == 1
    assert 0 < comparisons(work(400)) <= DOUBLE * comparisons(work(200))


def test_sums_of_clusters_are_made_once_however_many_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """There are the more batches of resamples, the more clusters: sums for each would be quadratic."""
    made = []
    sums = Side.sums.func
    monkeypatch.setattr(Side.sums, "func", lambda side: (made.append(1), sums(side))[1])
    n = 30_000
    counts = np.random.default_rng(0).integers(0, 3, (n, 1, 2)).astype(float)
    item = CorpusScores(
        "t", "share", "none", Questions(tuple(map(str, range(n)))), stats=counts, value=lambda s: s[..., 0] / s[..., 1]
    )
    found = hn.analyze(Run("m", "r", "array", corpus=(item,)), resamples=200).estimates[0]
    assert found.se is not None
    assert len(made) == 1  # for the resamples and for the jackknife


@pytest.mark.parametrize("levels", [2, 7, 10**6])
@pytest.mark.parametrize("K", [(9, 13), (1, 1), (90, 70)])
def test_wins_by_sorting_are_those_by_comparing_each_with_each(levels: int, K: tuple[int, int]) -> None:
    rng = np.random.default_rng(levels)
    a, b = (rng.integers(0, levels, (60, k)) / levels for k in K)
    for x in (a, b):
        x[rng.random(x.shape) < 0.3] = np.nan
    a[:, 0] = b[:, 0] = 0.0  # every question has a score
    pairs = (~np.isnan(a)).sum(axis=1) * (~np.isnan(b)).sum(axis=1)
    each = [((x[:, :, None] > y[:, None, :]).sum(axis=(1, 2)) / pairs).sum() for x, y in ((a, b), (b, a))]
    above = answers_above((a, b))
    assert (above[0, 1], above[1, 0]) == pytest.approx(each, rel=1e-13)
