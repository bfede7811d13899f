"""From two runs to Differences: paired by question, tested on the kernel's contrast."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ..data.matching import pair_runs
from ..data.scores import Group, Run, Scores
from ..errors import InputError, NothingSharedError
from ..results.forms import finite
from ..results.rows import Difference
from ..settings import Settings
from ..stats import decision, tests
from ..stats.contrast import Contrast, Design, question_stats
from ..stats.flips import Far, extended
from ..stats.moments import Moments, moments
from .evidence import Judged, _Evidence, _row
from .matching import align
from .ranges import check_margin, score_range
from .sample import Sample, group_shares, kernel, nothing
from .unpaired import _unpaired

if TYPE_CHECKING:
    from ..stats.arrays import FloatArray


def _correlation(x: FloatArray, y: FloatArray) -> float | None:
    if len(x) < 2 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return None
    return finite(float(np.corrcoef(x, y)[0, 1]))


def _difference(
    parts_a: Sequence[Scores], parts_b: Sequence[Scores], run_a: Run, run_b: Run, settings: Settings,
    group: Group | None = None,
) -> tuple[Judged, tuple[str, ...]]:  # fmt: skip
    """A − B of one task, or of the tasks of a group."""
    check_margin(settings, (*parts_a, *parts_b))
    if settings.unpaired:
        return _unpaired(parts_a, parts_b, run_a, run_b, settings, group), ()
    remarks: list[str] = []
    if settings.runs_shared:
        side_by_side = [pair_runs(one, other) for one, other in zip(parts_a, parts_b, strict=True)]
        parts_a, parts_b = [item[0] for item in side_by_side], [item[1] for item in side_by_side]
        remarks = [item[2] for item in side_by_side]
    pairing = align(parts_a, parts_b, group_shares(parts_a, group))
    a, b = pairing.a, pairing.b
    if len(a) == 0:
        task, other = group.name if group else parts_a[0].task, group.name if group else parts_b[0].task
        differs = f"the tasks differ ({task} and {other})" if task != other else task
        raise NothingSharedError(
            f"{differs}: {run_a.name} and {run_b.name} have no question in common "
            f"({pairing.only_a} and {pairing.only_b} questions); compare runs of one benchmark, name the column "
            "that identifies a question (`columns={'question': …}`), or use `unpaired=True`"
        )
    found: set[str] = set()
    if a.empty:  # a task of the group is not shared at all
        m = m_a = m_b = nothing(len(a), len(set(a.labels or range(len(a)))))
        evidence, clustered = _Evidence(m, settings), a.labels is not None
    else:
        plan = a.design()
        if settings.runs_shared:
            a, b, whole = _run_by_run(a, b)
            c, m = kernel([whole], [1.0], plan, settings)
        else:
            c, m = kernel([a, b], [1.0, -1.0], plan, settings)
        _, m_a = kernel([a], [1.0], plan, settings)
        _, m_b = kernel([b], [1.0], plan, settings)
        bounds = score_range((a, b), settings)
        far = None if settings.questions_are == "fixed" else _far(c, m, plan, settings)
        evidence = _Evidence(m, settings, c.d, plan, bounds=bounds, far=far)
        clustered = plan.clustered and settings.questions_are == "population"
        if m.zero_variance and not (np.abs(c.d) > 1e-12).any():
            found.add("identical_scores")
    if pairing.only_a or pairing.only_b:
        found.add("unpaired_questions")
    if pairing.different_prompts:
        found.add("different_prompts")
    wins = tests.expected_wins(a.values, b.values)
    unpaired = None if m_a.variance is None or m_b.variance is None else math.sqrt(m_a.variance + m_b.variance)
    row = _row(
        evidence, (a, b), (m_a, m_b), (parts_a, parts_b), (run_a, run_b), group,
        found=found, clustered=clustered, p_sign=evidence.sign_test(),
        n_only_a=pairing.only_a,
        n_only_b=pairing.only_b,
        wins_a=wins[0],
        wins_b=wins[1],
        ties=wins[2],
        correlation=_correlation(a.stats.mean, b.stats.mean),
        se_unpaired=unpaired,
        cluster=pairing.cluster,
    )  # fmt: skip
    return row, (*pairing.notes, *remarks)


def _run_by_run(a: Sample, b: Sample) -> tuple[Sample, Sample, Sample]:
    """Both samples where run j answered in both, and their differences d_ij, which are one sample of K runs.

    Raises:
        InputError: a question that the two models answered in no common run.
    """
    d = a.values - b.values
    holes = np.isnan(d)
    if holes.all(axis=1).any():
        raise InputError(
            f"{a.name}: {int(holes.all(axis=1).sum())} questions have no run that both models answered: `runs_shared` "
            "cannot pair them; count missing answers as wrong (`missing='zero'`), or leave `runs_shared` out"
        )
    x, y = (np.where(holes, np.nan, item.values) for item in (a, b))
    one, other, both = (question_stats(values) for values in (x, y, d))
    return (
        replace(a, values=x, stats=one),
        replace(b, values=y, stats=other),
        replace(a, values=d, stats=both, identical=a.identical or b.identical),
    )


def _far(c: Contrast, m: Moments, plan: Design, settings: Settings) -> Far | None:
    """What the far limit comes from; where repeats are runs, the variance between runs is in it too."""
    if m.variance is None or m.df is None or m.zero_variance:
        return None
    far = extended(c.d, plan, settings.se)
    if far is not None and plan.crossed is not None:  # it knows the clusters of one way
        far = Far(far.mean, np.maximum(far.variance, m.variance), np.minimum(far.df, m.df))
    if far is None or settings.repeats_are != "runs":
        return far
    of_questions = moments(c, plan, settings.se).variance or 0.0
    variance = np.maximum(far.variance + (m.variance - of_questions), m.variance)
    return Far(far.mean, variance, np.minimum(far.df, m.df))


def decided(judged: Sequence[Judged], settings: Settings) -> list[Difference]:
    """The rows with their adjusted p-values and the verdicts that follow from them."""
    p = np.array([np.nan if item.p is None else item.p for item in judged], dtype=np.float64)
    p_adjusted = decision.adjusted(p, settings.adjust, [item.family for item in judged])
    rows = [item.row for item in judged]
    codes, taken_back = decision.verdicts(
        np.array([item.separable for item in judged], dtype=np.bool_), p, p_adjusted,
        np.array([((row.diff or 0.0) > 0) == (row.higher_is_better is not False) for row in rows], dtype=np.bool_),
        np.array([item.equivalent for item in judged], dtype=np.bool_), settings.level,
    )  # fmt: skip
    words = decision.words(settings.margin)
    return [
        replace(
            row,
            p_adjusted=None if row.p_value is None else finite(adjusted),
            verdict=words[code],
            diagnostics=tuple(sorted({*row.diagnostics, "not_after_adjustment"})) if back else row.diagnostics,
        )
        for row, adjusted, code, back in zip(rows, p_adjusted, codes, taken_back, strict=True)
    ]
