"""Values that take several answers of a question at once: pass@k, and votes.

They are means over questions, but of no single answer: each question has one value, and the row says
so with `uses_all_repeats`. From c right answers of K, pass@k follows for every k ≤ K without bias.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from harness_noise.data.scores import Scores
from harness_noise.stats.arrays import FloatArray
from harness_noise.stats.passk import pass_at_k

USES_ALL = "uses_all_repeats"
_NAME = re.compile(r"(pass(?:@|_at_))([1-9][0-9]{0,3})")


def order(metric: str) -> int:
    """The k of a metric that is called pass@k or pass_at_k; 0 for any other."""
    found = _NAME.fullmatch(metric)
    return int(found[2]) if found else 0


def vote_name(metric: str, K: int) -> str:
    """What the harness's own value over K answers is called, where `metric` is the mean of single answers."""
    return f"{metric}@{K}"


def with_passes(parts: Iterable[Scores], K: int) -> list[Scores]:
    """The scores of one task, with pass@k for every k ≤ K that its answers tell.

    Args:
        parts: of one task; pass@1 as (n, K) zeros and ones where single answers are known, pass@k for
            k > 1 as one value per question.
        K: answers per question that the harness's own values were made of.
    """
    out = [
        replace(part, diagnostics=(*part.diagnostics, USES_ALL)) if order(part.metric) > 1 else part for part in parts
    ]
    scorers: dict[str, dict[int, Scores]] = {}
    for part in out:
        if k := order(part.metric):
            scorers.setdefault(part.scorer, {})[k] = part
    for named in scorers.values():
        out += _further(named, K)
    return out


def _further(named: dict[int, Scores], K: int) -> list[Scores]:
    lowest = min(named)
    first = named[lowest]
    answers = first.values if first.values.shape[1] > 1 else _answers(first.values, lowest, K)
    if answers is None or not np.isin(answers[~np.isnan(answers)], (0.0, 1.0)).all():
        return []
    counts = (~np.isnan(answers)).sum(axis=1)
    most = int(counts[counts > 0].min(initial=answers.shape[1]))
    prefix = first.metric[: -len(str(lowest))]
    return [
        replace(
            first, metric=f"{prefix}{k}", values=pass_at_k(answers, k)[:, None], native=None, native_is_first=False,
            diagnostics=tuple(dict.fromkeys((*first.diagnostics, USES_ALL))),
        )
        for k in range(lowest + 1, most + 1)
        if k not in named
    ]  # fmt: skip


def _answers(values: FloatArray, k: int, K: int) -> FloatArray | None:
    """(n, K) answers of which pass@k is `values`; None if it is that of no c of K.

    Where more than K − k are right pass@k is 1, and so is every pass@j with j ≥ k, which is all that
    the answers are used for.
    """
    if k > K:
        return None
    ladder = (np.arange(K) < np.arange(K + 1)[:, None]).astype(np.float64)
    near = np.abs(values - pass_at_k(ladder, k)) < 1e-9  # (n, K + 1)
    missing = np.isnan(values[:, 0])
    if not (near.any(axis=1) | missing).all():
        return None
    right = K - near[:, ::-1].argmax(axis=1)
    found: FloatArray = ladder[right]
    found[missing] = np.nan
    return found


def vote(part: Scores, own: Sequence[float | None], value: float | None, K: int) -> Scores:
    """The harness's own value over K answers of each question, beside `part`, the scores of single answers."""
    values = np.array([[np.nan if item is None else item] for item in own], dtype=np.float64)
    return replace(
        part, metric=vote_name(part.metric, K), values=values, native=value, native_is_first=False,
        n_missing=int(np.isnan(values).sum()),
        diagnostics=(USES_ALL, *(code for code in part.diagnostics if code == "copied_repeats")),
    )  # fmt: skip
