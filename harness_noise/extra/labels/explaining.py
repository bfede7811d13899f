"""Sentences on rows that human labels correct, and the noise that a plan takes from such a row."""

from __future__ import annotations

from collections.abc import Sequence

from ...errors import InputError
from ...report.fmt import bias, is_mean, number, shown, what_of
from ...results.rows import Difference, Estimate
from ...stats.data_limit import chi_square
from ...stats.tolerances import FEWEST_UNITS
from ..row_noise import ONE_RUN, TWO_RUNS, Noise
from ..sizes import Units, Variances

SUBJECT = "the mean that people would give"
"""The estimand in a sentence of one row."""
PEOPLE_LABELS = (
    "Estimand: the mean that people would give. Their labels of a random subset of the answers correct the judge's "
    "scores, and standard errors, intervals and p-values count the labels."
)
_ADDS_NOTHING = "The judge adds nothing, so the labels alone do as well: {}."
_ALL_LABELLED = "Every question is labelled, so the labels alone count and the judge adds nothing: {}."
_UNUSED = (
    "Only the labels are used, not the judge: {}. The judge is used from "
    f"{FEWEST_UNITS} labelled questions (clusters) on, if its scores vary."
)
_ADDS_NOISE = (
    "The corrected standard error is larger than that of the labels alone, because it allows for errors of the judge "
    "that so few labels do not show: {}."
)
GAINS_NOTHING = 1.05
"""Gain against the labels alone below which the judge is said to add nothing."""


def estimand(rows: Sequence[Estimate | Difference]) -> list[str]:
    """Return a sentence that rows estimate the human score (always), and sentences on judges that do not help."""
    judged = [(what_of(row), row.n_questions, row.judge) for row in rows if row.judge is not None]
    by_sentence: dict[str, dict[str, None]] = {_UNUSED: {}, _ALL_LABELLED: {}, _ADDS_NOTHING: {}, _ADDS_NOISE: {}}
    for what, n, judge in judged:
        if judge.gain is None or judge.gain >= GAINS_NOTHING:
            continue
        if judge.r2 is None:
            by_sentence[_UNUSED][what] = None
        elif judge.n_labelled == n:
            by_sentence[_ALL_LABELLED][what] = None
        elif judge.gain < 1 / GAINS_NOTHING:
            by_sentence[_ADDS_NOISE][f"{what}, gain {number(judge.gain, 2)}"] = None
        else:
            by_sentence[_ADDS_NOTHING][f"{what}, R² {number(judge.r2, 2)}"] = None
    said = [sentence.format("; ".join(rows_of)) for sentence, rows_of in by_sentence.items() if rows_of]
    return [PEOPLE_LABELS, *said]


def size(row: Estimate | Difference) -> str:
    """Return "N of them labelled by people" for a corrected row, "" for others."""
    return "" if row.judge is None else f"{row.judge.n_labelled} of them labelled by people"


def remark(row: Estimate | Difference) -> str:
    """Return "corrected by human labels" or "of human labels alone", then the judge's own value and its bias."""
    alone = "few_labelled_failures" in row.diagnostics
    return f"{'of' if alone else 'corrected by'} human labels{' alone' if alone else ''}; {judge_words(row)}"


def judge_words(row: Estimate | Difference) -> str:
    """Return "the judge's own mean 57%, to which the labels add −1 ± 2 points", "" without labels."""
    if row.judge is None:
        return ""
    own = "own difference" if isinstance(row, Difference) else "own mean"
    added = "" if row.judge.bias_se is None else f", to which the labels add {bias(row, unit=True)}"
    return f"the judge's {own} {shown(row, row.judge.mean_judge, mean=is_mean(row, 'judge.mean_judge'))}{added}"


def noise(row: Estimate | Difference, scale: tuple[float, float] | None, assurance: float) -> Noise:
    """Return the labels' variance and judge's R² behind a corrected row, for planning. Refuse if R² is not known.

    Both from the variances of the corrected mean and of the labels alone: that of the labels is σ²/m.
    """
    judge, n = row.judge, row.n_questions
    gain = None if judge is None or judge.r2 is None else judge.gain
    if judge is None or gain is None or row.se is None or not 1 < judge.n_labelled < n:
        raise InputError(
            f"{row.task}, {row.metric}: what the judge predicts of the labels is not known here. A pilot has labels of "
            f"some of its questions, {FEWEST_UNITS} (clusters) at least, which differ"
        )
    m, two = judge.n_labelled, isinstance(row, Difference)
    variance = m * gain * row.se**2
    r2 = 1 - (row.se**2 / variance - 1 / n) / (1 / m - 1 / n)
    size = n / row.n_clusters if row.cluster is not None else 1.0
    upper = chi_square(variance, max(1.0, m / size - 1)).upper(1 - assurance)
    none = 0.0 if two else None
    return Noise(
        Variances(variance, 0.0, none),
        False,
        Variances(upper, 0.0, none),
        Units(size),
        row.cluster is not None,
        f"{m} labelled questions",
        TWO_RUNS if two else ONE_RUN,
        scale,
        row.diagnostics,
        n,
        min(1.0, max(0.0, r2)),
        zero_one=row._zero_one,
    )
