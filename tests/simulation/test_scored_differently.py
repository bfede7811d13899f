"""Equal answers of two runs that two scorers score, one scorer, and a judge whose scores are noise."""

from __future__ import annotations

import numpy as np
import pytest

import harness_noise as hn
from harness_noise.data.answers import HashedTexts

pytestmark = pytest.mark.simulation
R, N, WORDS = 60, 120, 4


def shares(*, changed: float, judged: bool) -> tuple[float, float]:
    """How often two runs of one model are said to be scored differently, and how often a better one is named.

    Both answer with one of four words for each question, most often the same; `changed` is the share of words that the
    second scorer scores otherwise.
    """
    rng, coded, named = np.random.default_rng([40, round(100 * changed), judged]), 0, 0
    for _ in range(R):
        right = (rng.random((N, WORDS)) < 0.6).astype(float)
        other = np.where(rng.random((N, WORDS)) < changed, 1 - right, right)
        said = rng.integers(0, WORDS, N)
        runs = []
        for name, scorer in (("a", right), ("b", other)):
            words = np.where(rng.random(N) < 0.3, rng.integers(0, WORDS, N), said)
            scores = scorer[np.arange(N), words]
            scores = (rng.random(N) < 0.2 + 0.6 * scores).astype(float) if judged else scores
            texts = (1 + np.arange(N) * WORDS + words).astype(np.uint64)[:, None]
            part = hn.as_scores(scores[:, None], bounds=(0.0, 1.0), answers=HashedTexts(texts), judged=judged)
            runs.append(hn.Run(model=name, name=name, harness="h", scores=(part,)))
        (row,) = hn.compare(*runs).comparisons
        coded += "scored_differently" in row.diagnostics
        named += row.verdict.endswith("better")
    return coded / R, named / R


def test_one_scorer_is_never_accused() -> None:
    coded, named = shares(changed=0.0, judged=False)
    assert coded == 0
    assert named <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / R)


def test_another_scorer_is_seen_and_no_model_is_named() -> None:
    coded, named = shares(changed=0.2, judged=False)
    assert coded >= 0.95
    assert named <= 0.05


def test_a_judge_is_noise_and_no_other_scorer() -> None:
    coded, _ = shares(changed=0.0, judged=True)
    assert coded == 0
