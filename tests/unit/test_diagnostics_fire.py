"""One table of simulated answers for each diagnostic: some with which it must come, some with which it must not."""

from __future__ import annotations

import numpy as np
import pytest

import harness_noise as hn

RNG = np.random.default_rng(20)
P = RNG.random((60, 1))
NORMAL = RNG.normal(size=(60, 3)) + RNG.normal(size=(60, 1))
BINARY = (RNG.random((60, 3)) < P).astype(float)
BINARY[:, 0] = np.arange(60) % 2  # both scores are there, and no repeat is better than another
GAPS = np.where(np.arange(180).reshape(60, 3) == 7, np.nan, NORMAL)
SOME_SINGLE = np.where((np.arange(60)[:, None] < 20) & (np.arange(3) > 0), np.nan, NORMAL)
OTHER_SINGLE = SOME_SINGLE + 3 * (np.arange(60)[:, None] < 20)
EVEN = np.tile(RNG.permutation([0.0, 1.0] * 2), (60, 1)) + RNG.normal(size=(60, 1)) / 1000
NOISY = np.stack([RNG.permutation(row) for row in EVEN])
TAIL, SHORT = np.exp(1.5 * RNG.normal(size=(60, 1))), RNG.random((60, 1))
WRONG = (np.arange(60)[:, None] >= np.array([3, 30])).astype(float)
PAIRS = np.arange(60) // 2

MEANS = {
    # code: what it must come with, and what it must not come with: scores and their clusters
    "single_repeat": ((NORMAL[:, :1], None), (NORMAL, None)),
    "partly_single_repeat": ((SOME_SINGLE, None), (GAPS, None)),
    "single_repeats_differ": ((OTHER_SINGLE, None), (SOME_SINGLE, None)),
    "missing_repeats": ((GAPS, None), (NORMAL, None)),
    "identical_repeats": ((np.repeat(NORMAL[:, :1], 3, axis=1), None), (NORMAL, None)),
    "shared_repeat_noise": ((NORMAL + np.array([0.0, 2.0, 4.0]), None), (NORMAL, None)),
    "too_few_questions": ((NORMAL[:1], None), (NORMAL[:2], None)),
    "too_few_clusters": ((NORMAL, np.zeros(60)), (NORMAL, np.arange(60) // 30)),
    "few_clusters": ((NORMAL, np.arange(60) // 12), (NORMAL, PAIRS)),
    "singleton_clusters": ((NORMAL, np.arange(60)), (NORMAL, PAIRS)),
    "negative_data_variance": ((NOISY, None), (NORMAL, None)),
    "zero_variance": ((np.full((60, 2), 0.5), None), (NORMAL, None)),
    "few_failures": ((WRONG[:, :1], None), (WRONG[:, 1:], None)),
    "skewed": ((TAIL, None), (SHORT, None)),
}
FLIPS = np.zeros((60, 2))
FLIPS[:3, 0] = 1
DIFFERENCES = {
    # code: two runs and the keywords with which it must come, and with which it must not
    "identical_scores": ((NORMAL, NORMAL, {}), (NORMAL, NORMAL[::-1], {})),
    "few_flips": ((FLIPS[:, :1], FLIPS[:, 1:], {}), (BINARY[:, :1], BINARY[::-1, :1], {})),
    "unpaired": ((NORMAL, NORMAL[::-1], {"unpaired": True}), (NORMAL, NORMAL[::-1], {})),
    "single_repeat": ((NORMAL[:, :1], NORMAL[::-1, :1], {}), (NORMAL, NORMAL[::-1], {})),
    "few_clusters": (
        (NORMAL, NORMAL[::-1], {"clusters": np.arange(60) // 12}),
        (NORMAL, NORMAL[::-1], {"clusters": PAIRS}),
    ),
    "too_few_clusters": (
        (NORMAL, NORMAL[::-1], {"clusters": np.zeros(60)}),
        (NORMAL, NORMAL[::-1], {"clusters": PAIRS}),
    ),
    "zero_variance": ((NORMAL + 1, NORMAL, {}), (NORMAL, NORMAL[::-1], {})),
    "negative_data_variance": ((NOISY, NOISY[::-1], {}), (NORMAL, NORMAL[::-1], {})),
    "missing_repeats": ((GAPS, NORMAL[::-1], {}), (NORMAL, NORMAL[::-1], {})),
}


@pytest.mark.parametrize("code", MEANS)
def test_a_mean_has_the_code_exactly_where_it_must(code: str) -> None:
    must, must_not = ((hn.estimate(scores, clusters)).diagnostics for scores, clusters in MEANS[code])
    assert (code in must, code in must_not) == (True, False)


@pytest.mark.parametrize("code", DIFFERENCES)
def test_a_difference_has_the_code_exactly_where_it_must(code: str) -> None:
    must, must_not = (hn.estimate_difference(a, b, **more).diagnostics for a, b, more in DIFFERENCES[code])
    assert (code in must, code in must_not) == (True, False)


def table(model: str, rows: dict[str, list[float | None]]) -> list[dict[str, object]]:
    return [
        {"model": model, "task": task, "question": str(i), "score": score}
        for task, scores in rows.items()
        for i, score in enumerate(scores)
    ]


A, B = (np.arange(80) % 10 < 6).astype(float).tolist(), (np.arange(80) % 7 < 3).astype(float).tolist()
TABLES = {
    "unpaired_questions": (({"t": A}, {"t": B[:-1]}, {}), ({"t": A}, {"t": B}, {})),
    "missing_matters": (({"t": [*A[:40], *[None] * 40]}, {"t": B}, {}), ({"t": A}, {"t": B}, {})),
    "chance_corrected": (({"t": A}, {"t": B}, {"chance": 0.25}), ({"t": A}, {"t": B}, {})),
}


@pytest.mark.parametrize("code", TABLES)
def test_a_comparison_of_tables_has_the_code_exactly_where_it_must(code: str) -> None:
    import pandas as pd

    def codes(a: dict[str, list[float | None]], b: dict[str, list[float | None]], more: dict[str, object]) -> set[str]:
        runs = [pd.DataFrame(table(model, rows)) for model, rows in (("a", a), ("b", b))]
        return set().union(*(row.diagnostics for row in hn.compare(*runs, **more).comparisons))  # type: ignore[arg-type]

    must, must_not = (codes(*case) for case in TABLES[code])
    assert (code in must, code in must_not) == (True, False)
