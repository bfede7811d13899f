"""A judge's own noise, seen on texts that were graded more than once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from math import isclose

import numpy as np

from ..arrays import FloatArray, IntArray
from ..data.notes import Note
from ..data.scores import Gradings, Scores
from ..results.rows import Estimate, JudgeFlips
from ..stats.judges import JudgeNoise, judge_noise

MANY_PAIRS = 30
"""Pairs of gradings of one text from which a sentence on the judge's noise is written."""


def with_judge(row: Estimate, part: Scores) -> Estimate:
    """Return the row with `judge_flips` if a judge (else a panel) scored equal texts differently. Else unchanged."""
    gradings = part.gradings
    if gradings is None or part.texts is None:
        return row
    noise, of = _noise_of_answers(part.values, gradings), "answers"
    if (noise is None or not noise.flips) and gradings.panel is not None:
        noise, of = _noise(gradings.panel, np.arange(part.values.size).reshape(part.values.shape)), "panel"
    if noise is None or not noise.flips:
        return row
    share = None
    if of == "answers" and row.var_prediction:
        share = min(1.0, noise.variance / (row.n_questions * row.var_prediction))
    flips = JudgeFlips(
        of=of,
        n_same_text=noise.pairs,
        n_flips=noise.flips,
        rate=noise.rate,
        variance=noise.variance,
        share=share,
    )
    return replace(row, judge_flips=flips)


def _noise_of_answers(values: FloatArray, gradings: Gradings) -> JudgeNoise | None:
    """Estimate a judge's noise from equal answers to one question, and from double grading. None if there are none."""
    n, K = values.shape
    hashes, codes = np.unique(gradings.texts, return_inverse=True)
    codes = codes.reshape(n, K) + len(hashes) * np.arange(n)[:, None]
    alone = gradings.texts == 0
    codes[alone] = n * len(hashes) + np.flatnonzero(alone)
    verdicts = values[:, :, None] if gradings.again is None else np.dstack([values, gradings.again])
    return _noise(verdicts, codes)


def _noise(verdicts: FloatArray, codes: IntArray) -> JudgeNoise | None:
    """Estimate a judge's noise from (n, K, V) verdicts, those of equal (n, K) `codes` on one text. None: no such."""
    return judge_noise(verdicts.ravel(), np.repeat(codes.ravel(), verdicts.shape[2]))


def judge_notes(rows: Iterable[Estimate]) -> list[Note]:
    """Return a note for each row with the share of scores the judge changes, if enough texts were graded twice."""
    notes = []
    for row in rows:
        flips = row.judge_flips
        if flips is None or flips.n_same_text < MANY_PAIRS:
            continue
        start, rate = f"{row.task} {row.metric}, {row.scorer}", _percent(flips.rate)
        changes = f"changes {rate} of the scores"
        if isclose(flips.variance, flips.rate / 2):  # all are 0 or 1
            changes = f"flips {rate} of the verdicts"
        if flips.of == "panel":
            said = f"two members of the judges' panel differ on {rate} of the answers"
        elif flips.share is not None:
            share = f"{_percent(flips.share)} of the prediction noise is the judge's"
            said = f"grading the same text twice {changes}: {share}"
        else:
            alike = "identical_repeats" in row.diagnostics
            why = "all answers to each question are one text" if alike else "each question has one answer"
            said = (
                f"grading the same text twice {changes}. What part of the prediction noise that is cannot be told, "
                f"because {why}"
            )
        notes.append(Note("judge_flips", f"{start}: {said}", row.task))
    return notes


def _percent(share: float) -> str:
    return f"{100 * share:.0f}%" if share >= 0.095 else f"{100 * share:.1f}%"
