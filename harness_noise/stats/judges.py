"""All that gradings of the same answer tell of a judge: its own noise.

A judge that is given the same text twice should say the same twice; its variance on one text is its own noise,
whatever the model's.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..arrays import FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class JudgeNoise:
    """Gradings of texts that were graded more than once."""

    pairs: int
    """Pairs of gradings of one text."""
    flips: int
    """Pairs whose two verdicts differ."""
    rate: float
    """Share of second gradings that differ from the first. Every answer has the same weight."""
    variance: float
    """Variance of the verdicts on one text, ddof = 1. Every answer has the same weight."""


def judge_noise(scores: FloatArray, texts: IntArray) -> JudgeNoise | None:
    """Return how often, and with what variance, a judge rescores equal texts. None if no text was graded twice.

    A text with m gradings has the weight m: the average is over answers. Weights m − 1 would be a little more
    precise where the noise is the same on all texts, and biased towards short and sure answers where it is not.

    Args:
        scores: (M,) verdicts, NaN where there is none.
        texts: (M,) number of the text that each grades, −1 where that is not known.
    """
    used = ~np.isnan(scores) & (texts >= 0)
    y, codes = scores[used], np.unique(texts[used], return_inverse=True)[1]
    m = np.bincount(codes).astype(np.float64)
    if not (m > 1).any():
        return None
    e = y - (np.bincount(codes, weights=y) / m)[codes]
    e -= (np.bincount(codes, weights=e) / m)[codes]  # a second pass keeps the digits of alike verdicts
    several = m > 1
    squares = np.bincount(codes, weights=e**2)[several]
    values, verdicts = np.unique(y, return_inverse=True)
    alike = np.zeros_like(m)
    cells, counts = np.unique(codes * len(values) + verdicts, return_counts=True)
    np.add.at(alike, cells // len(values), counts * (counts - 1) / 2)
    pairs, flips = m * (m - 1) / 2, m * (m - 1) / 2 - alike
    m, pairs, flips = m[several], pairs[several], flips[several]
    squares[flips == 0] = 0.0  # no rounding where nothing differs
    return JudgeNoise(
        pairs=int(pairs.sum()),
        flips=int(flips.sum()),
        rate=float((m * flips / pairs).sum() / m.sum()),
        variance=float((m * squares / (m - 1)).sum() / m.sum()),
    )
