"""From Scores to Estimates: one run at a time."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from .errors import InputError
from .estimators import intervals
from .estimators.contrast import Contrast, Design, Moments, question_stats
from .estimators.passk import pass_at_k
from .results import Analysis, Estimate, finite, merge_notes
from .samples import Sample, as_scores, group_parts, group_shares, kernel, noise_fields, nothing, root, sample
from .scores import Group, Run, Scores, reproduces
from .settings import Settings

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

__all__ = ["analyze_run", "analyze_runs", "as_scores", "estimate", "pass_at_k_estimates"]


def _interval(
    data: Sample, c: Contrast, m: Moments, plan: Design, settings: Settings, bounds: tuple[float, float] | None
) -> tuple[intervals.ConfidenceInterval | None, str]:
    """The interval asked for, or the default: Wilson with effective n in [0, 1], else t."""
    scores = data.values[~np.isnan(data.values)]
    low, high = bounds if bounds is not None else (0.0, 1.0)
    inside = (low, high) == (0.0, 1.0) and bool((scores >= 0).all() and (scores <= 1).all())
    wanted = settings.interval
    if wanted in ("wilson", "korn-graubard", "clopper-pearson") and not inside:
        raise InputError(f"{data.name}: interval {wanted} is for scores in [0, 1]; these are not: use --interval t")
    if wanted == "clopper-pearson" and (
        plan.clustered or data.stats.count.max(initial=0) > 1 or not np.isin(scores, (0.0, 1.0)).all()
    ):
        raise InputError(
            f"{data.name}: interval clopper-pearson is exact only for 0/1 scores with one answer per question and "
            "no clusters: use --interval korn-graubard, its extension"
        )
    if m.variance is None or m.df is None or m.mean is None:
        return None, "none"
    name = ("wilson" if inside else "t") if wanted == "auto" else wanted
    if m.zero_variance and name in ("t", "bootstrap"):  # a point is no interval
        if not inside:
            return None, "none"
        name = "wilson"
    se = math.sqrt(m.variance)
    if name == "t":
        return intervals.t_interval(m.mean, se, m.df, settings.level), name
    if name == "bootstrap":
        from .estimators import resampling

        found = resampling.bootstrap(c.d, plan, settings.resamples, np.random.default_rng(settings.seed))
        if found is None:
            return None, "none"
        ci = found.expanded(m.variance, m.df).interval(settings.level)
        return (intervals.ConfidenceInterval(max(0.0, ci.low), min(1.0, ci.high)) if inside else ci), name
    # one pass@k or majority vote per question, but made of more answers than are at hand to cap it
    answers = math.inf if not c.identified and data.uses_all_repeats else float(data.stats.count.sum())
    p = min(max(m.mean, 0.0), 1.0)
    if name == "clopper-pearson":
        return intervals.clopper_pearson(p, answers, settings.level), name
    n = intervals.effective_size(p, se, answers, m.n_clusters)
    if name == "korn-graubard":
        return intervals.korn_graubard(p, n, answers, m.df, settings.level), name
    return intervals.wilson(p, n, intervals.t_quantile(settings.level, m.df)), "wilson"


def _estimate(parts: Sequence[Scores], run: Run, settings: Settings, *, group: Group | None = None) -> Estimate:
    first = parts[0]
    data = sample(parts, group_shares(parts, group))
    ci, interval = None, "none"
    clustered = data.labels is not None
    if data.empty:
        m = nothing(len(data), len(set(data.labels or range(len(data)))))
    else:
        plan = data.design()
        clustered = plan.clustered
        c, m = kernel([data], [1.0], plan, settings)
        bounds = {part.bounds for part in parts}
        ci, interval = _interval(data, c, m, plan, settings, bounds.pop() if len(bounds) == 1 else None)
    found = set(m.diagnostics).union(*(part.diagnostics for part in parts))
    native = group.native if group is not None else first.native
    ours = _native_mean(parts, group) if native is not None else None
    if native is not None and ours is not None and not reproduces(ours, native):
        found.add("mean_mismatch")
    fields = noise_fields(m, clustered)
    if "uses_all_repeats" in found:  # there is no such thing as one answer of it
        found.discard("single_repeat")
        fields["se_total"] = None
    counts = data.stats.count
    return Estimate(
        task=group.name if group is not None else first.task,
        metric=first.metric,
        scorer=first.scorer,
        model=run.model,
        run=run.name,
        higher_is_better=first.higher_is_better,
        n_questions=m.n,
        n_clusters=m.n_clusters,
        repeats_min=int(counts.min()) if len(counts) else 0,
        repeats_max=int(counts.max(initial=0)),
        mean=finite(m.mean),
        ci_low=ci.low if ci is not None else None,
        ci_high=ci.high if ci is not None else None,
        level=settings.level,
        df=finite(m.df),
        interval=interval,
        se_naive=root(m.naive),
        n_effective=m.n / fields["design_effect"] if fields["design_effect"] else None,
        icc=finite(m.icc),
        estimator=settings.se,
        n_missing=sum(part.n_missing for part in parts),
        cluster=next((part.cluster_spec for part in parts if part.cluster_spec), None) if clustered else None,
        diagnostics=tuple(sorted(found)),
        **fields,
    )


def _native_mean(parts: Sequence[Scores], group: Group | None) -> float | None:
    """The mean that the harness itself reports: over all repeats, or over repeat 0."""
    means, sizes = [], []
    for part in parts:
        values = part.values[:, :1] if part.native_is_first else part.values
        stats = question_stats(values)
        scored = stats.count > 0
        if not scored.any():
            return None
        means.append(float(stats.mean[scored].mean()))
        sizes.append(float(scored.sum()))
    return float(np.average(means, weights=group_shares(parts, group) or sizes))


def analyze_run(run: Run, settings: Settings) -> Analysis:
    """All estimates of one run, in the order of the run: tasks, groups, corpus metrics, then what was skipped."""
    estimates = [_estimate([part], run, settings) for part in run.scores]
    notes = list(run.notes)
    for group in run.groups:
        parts = group_parts(run, group)
        if parts is None:
            estimates.append(_skipped(run, group.name, group.metric, group.scorer, group.native, settings))
        else:
            estimates.append(_estimate(parts, run, settings, group=group))
    if run.corpus:
        from .corpus import estimate_corpus

        estimates += [estimate_corpus(item, run, settings) for item in run.corpus]
    reasons: dict[str, list[str]] = {}
    for item in run.skipped:
        estimates.append(_skipped(run, item.task, item.metric, item.scorer, item.native, settings))
        reasons.setdefault(item.reason, []).append(f"{item.task} {item.metric}")
    for reason, names in reasons.items():
        more = f" and {len(names) - 3} more" if len(names) > 3 else ""
        notes.append(f"no error bar for {', '.join(names[:3])}{more}: {reason}")
    return Analysis(settings.to_dict(), tuple(estimates), tuple(notes))


def _skipped(run: Run, task: str, metric: str, scorer: str, native: float | None, settings: Settings) -> Estimate:
    empty: dict[str, Any] = dict.fromkeys(
        ("se", "ci_low", "ci_high", "df", "se_total", "se_data", "se_prediction", "se_naive", "var_data",
         "var_prediction", "design_effect", "n_effective", "icc")
    )  # fmt: skip
    return Estimate(
        task=task, metric=metric, scorer=scorer, model=run.model, run=run.name, higher_is_better=None,
        n_questions=0, n_clusters=0, repeats_min=0, repeats_max=0, mean=finite(native), level=settings.level,
        interval="none", estimator=settings.se, diagnostics=("skipped_metric",), **empty,
    )  # fmt: skip


def pass_at_k_estimates(item: Scores, settings: Settings, run: Run | None = None) -> dict[int, Estimate]:
    """pass@k with its standard error for every k up to the fewest answers of a question.

    Raises:
        ValueError: scores other than 0 and 1.
    """
    counts = (~np.isnan(item.values)).sum(axis=1)
    out = {}
    for k in range(1, int(counts[counts > 0].min(initial=item.values.shape[1])) + 1):
        whole = replace(
            item, metric=f"pass@{k}", values=pass_at_k(item.values, k)[:, None], native=None,
            diagnostics=("uses_all_repeats",),
        )  # fmt: skip
        row = _estimate([whole], run or Run(model="", name="", harness="array"), settings)
        out[k] = replace(row, repeats_min=int(counts.min(initial=0)), repeats_max=int(counts.max(initial=0)))
    return out


def analyze_runs(runs: Iterable[Run], settings: Settings) -> Analysis:
    """All estimates of several runs, one after the other."""
    parts = [analyze_run(run, settings) for run in runs]
    estimates = tuple(item for part in parts for item in part.estimates)
    return Analysis(settings.to_dict(), estimates, merge_notes(*(part.notes for part in parts)))


def estimate(
    scores: ArrayLike, clusters: Sequence[object] | None = None, level: float = 0.95, **settings: Any
) -> Estimate:
    """The mean of one run's scores, with its noise.

    Args:
        scores: (n, K) scores of n questions × K repeats, NaN where a repeat is missing; or (n,).
        clusters: (n,) labels of the questions that belong together; None: independent.
        level: coverage of the confidence interval, in (0, 1).
        **settings: `se`, `interval`, … as in `Settings`.

    Raises:
        ValueError: arrays that do not fit together, infinite scores, a level outside (0, 1).

    Source: Wang (2025), §3.3; Miller (2024), §2.2; CR2 by Bell & McCaffrey (2002).
    """
    choices = Settings(level=level, **settings)
    run = Run(model="", name="", harness="array")
    return _estimate([as_scores(scores, clusters, choices.missing)], run, choices)
