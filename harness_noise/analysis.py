"""From Scores to Estimates: one run at a time."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .errors import InputError
from .estimators import intervals
from .estimators.contrast import (
    Contrast,
    Design,
    Moments,
    QuestionStats,
    contrast,
    design,
    moments,
    question_stats,
)
from .results import Analysis, Estimate, finite, merge_notes
from .scores import Group, Run, Scores
from .settings import Settings

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from .estimators.contrast import FloatArray, IntArray


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """One run's question statistics, over one task or the tasks of a group, ready for the kernel."""

    stats: QuestionStats
    values: FloatArray
    """(n, K), padded with NaN where tasks differ in K."""
    keys: tuple[str, ...]
    labels: tuple[str, ...] | None
    strata: IntArray
    shares: FloatArray | None
    """Weights of the tasks; None: by size."""
    between_tasks: bool
    identical: bool
    """The adapter knows that the answers, not only their scores, were identical."""

    def take(self, index: IntArray) -> Sample:
        return Sample(
            self.stats.take(index),
            self.values[index],
            tuple(self.keys[i] for i in index),
            None if self.labels is None else tuple(self.labels[i] for i in index),
            self.strata[index],
            self.shares,
            self.between_tasks,
            self.identical,
        )

    def design(self, labels: Sequence[str] | None = None) -> Design:
        labels = self.labels if labels is None else labels
        plan = design(len(self.keys), labels, self.strata, self.shares)
        if not self.between_tasks:
            return plan
        tasks = np.unique(self.strata)
        return Design(plan.weights, plan.strata, plan.strata, len(tasks), clustered=True, between_tasks=True)


def sample(parts: Sequence[Scores], shares: Sequence[float] | None = None) -> Sample:
    """Stack the scores of one task, or of the tasks of a group; questions without a score are dropped.

    Equal cluster labels in two tasks are one cluster if both come from the same cluster SPEC.
    """
    K = max(part.values.shape[1] for part in parts)
    values, keys, labels, strata = [], [], [], []
    for t, part in enumerate(parts):
        block = np.full((len(part.questions), K), np.nan)
        block[:, : part.values.shape[1]] = part.values
        values.append(block)
        prefix = f"{t}\x1f" if len(parts) > 1 else ""
        keys += [prefix + key for key in part.questions.keys]
        if part.clusters is None:
            labels += [f"\x1f{t}\x1f{key}" for key in part.questions.keys]
        else:
            spec = f"{part.cluster_spec}\x1f" if len(parts) > 1 else ""
            labels += [spec + label for label in part.clusters]
        strata += [t] * len(part.questions)
    stacked = np.concatenate(values)
    try:
        stats = question_stats(stacked)
    except ValueError as error:
        raise InputError(f"{parts[0].task}, {parts[0].metric}: {error}") from None
    whole = Sample(
        stats,
        stacked,
        tuple(keys),
        tuple(labels) if any(part.clusters is not None for part in parts) else None,
        np.asarray(strata, dtype=np.intp),
        None if shares is None else np.asarray(shares, dtype=np.float64),
        len(parts) > 1 and all(part.cluster_spec == "task" for part in parts),
        any("identical_repeats" in part.diagnostics for part in parts),
    )
    return whole.take(np.flatnonzero(stats.count > 0))


def noise_fields(m: Moments) -> dict[str, float | None]:
    """The fields that an Estimate and a Difference share, from the kernel's moments."""
    effect = m.variance / m.naive if m.variance is not None and m.naive else None
    return {
        "se": _root(m.variance),
        "se_total": _root(m.var_total),
        "se_data": _root(m.var_data),
        "se_prediction": _root(m.var_prediction),
        "var_data": finite(m.var_data),
        "var_prediction": finite(m.var_prediction),
        "design_effect": finite(effect),
    }


def _root(variance: float | None) -> float | None:
    return None if variance is None else math.sqrt(max(0.0, variance))


def kernel(runs: Sequence[Sample], coefficients: Sequence[float], plan: Design, settings: Settings) -> tuple[Contrast, Moments]:
    """The kernel on samples of the same questions."""
    c = contrast([run.stats for run in runs], coefficients, runs[0].strata)
    if any(run.identical for run in runs) and c.identified:
        codes = tuple(sorted({*c.diagnostics, "identical_repeats"}))
        c = Contrast(c.d, c.v, c.w, c.more, identified=False, diagnostics=codes)
    return c, moments(c, plan, settings.se)


def _interval(
    data: Sample, m: Moments, settings: Settings, bounds: tuple[float, float] | None, clustered: bool
) -> tuple[intervals.ConfidenceInterval | None, str]:
    """The interval asked for, or the default: Wilson with effective n in [0, 1], else t."""
    if m.variance is None or m.df is None or m.mean is None:
        return None, "none"
    scores = data.values[~np.isnan(data.values)]
    low, high = bounds if bounds is not None else (0.0, 1.0)
    inside = (low, high) == (0.0, 1.0) and bool((scores >= 0).all() and (scores <= 1).all())
    wanted = settings.interval
    name = ("wilson" if inside else "t") if wanted == "auto" else wanted
    if name in ("wilson", "korn-graubard", "clopper-pearson") and not inside:
        raise InputError(f"interval {name} is for scores in [0, 1]; these are not: use --interval t")
    se = math.sqrt(m.variance)
    if name == "t":
        return (None, "none") if m.zero_variance else (intervals.t_interval(m.mean, se, m.df, settings.level), "t")
    answers = float(data.stats.count.sum())
    p = min(max(m.mean, 0.0), 1.0)
    if name == "clopper-pearson":
        if clustered or data.stats.count.max() > 1 or not np.isin(scores, (0.0, 1.0)).all():
            raise InputError(
                "interval clopper-pearson is exact only for 0/1 scores with one answer per question and no "
                "clusters: use --interval korn-graubard, its extension"
            )
        return intervals.clopper_pearson(p, answers, settings.level), name
    n = intervals.effective_size(p, se, answers, m.n_clusters)
    if name == "korn-graubard":
        return intervals.korn_graubard(p, n, answers, m.df, settings.level), name
    return intervals.wilson(p, n, intervals.t_quantile(settings.level, m.df)), "wilson"


def _estimate(parts: Sequence[Scores], run: Run, settings: Settings, *, group: Group | None = None) -> Estimate:
    first = parts[0]
    data = sample(parts, _shares(parts, group))
    plan = data.design()
    if len(data.keys) == 0:
        c, m = None, moments(_empty(), plan, settings.se)
    else:
        c, m = kernel([data], [1.0], plan, settings)
    fields = noise_fields(m)
    ci, interval = _interval(data, m, settings, first.bounds, plan.clustered) if c is not None else (None, "none")
    found = set(m.diagnostics).union(*(part.diagnostics for part in parts))
    native = group.native if group is not None else first.native
    ours = _native_mean(parts, group) if native is not None else None
    if native is not None and ours is not None and abs(ours - native) > 1e-9 * max(1.0, abs(native)):
        found.add("mean_mismatch")
    effect = fields["design_effect"]
    if not plan.clustered:
        effect = 1.0 if m.variance is not None else None
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
        repeats_min=int(counts.min(initial=0)) if m.n == 0 else int(counts.min()),
        repeats_max=int(counts.max(initial=0)),
        mean=finite(m.mean),
        ci_low=ci.low if ci is not None else None,
        ci_high=ci.high if ci is not None else None,
        level=settings.level,
        df=finite(m.df),
        interval=interval,
        se_naive=_root(m.naive),
        n_effective=m.n / effect if effect else None,
        icc=finite(m.icc),
        estimator=settings.se,
        n_missing=sum(part.n_missing for part in parts),
        cluster=first.cluster_spec if plan.clustered else None,
        diagnostics=tuple(sorted(found)),
        **(fields | {"design_effect": effect}),  # type: ignore[arg-type]
    )


def _empty() -> Contrast:
    nothing = np.zeros(0)
    return Contrast(nothing, nothing, nothing, nothing, identified=False, diagnostics=())


def _shares(parts: Sequence[Scores], group: Group | None) -> list[float] | None:
    if group is None or group.weighting == "size":
        return None
    return [1 / len(parts)] * len(parts)


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
        sizes.append(int(scored.sum()))
    weights = sizes if group is None or group.weighting == "size" else [1] * len(means)
    return float(np.average(means, weights=weights))


def group_parts(run: Run, group: Group) -> list[Scores] | None:
    """The scores that a group averages; None where the run does not have them all."""
    found = {part.task: part for part in run.scores if (part.metric, part.scorer) == (group.metric, group.scorer)}
    parts = [found[task] for task in group.tasks if task in found]
    return parts if parts and len(parts) == len(group.tasks) else None


def analyze_run(run: Run, settings: Settings) -> Analysis:
    """All estimates of one run, in the order of the run: tasks, groups, then what was skipped."""
    estimates = [_estimate([part], run, settings) for part in run.scores]
    notes = list(run.notes)
    for group in run.groups:
        parts = group_parts(run, group)
        if parts is None:
            estimates.append(_skipped(run, group.name, group.metric, group.scorer, group.native, settings))
        else:
            estimates.append(_estimate(parts, run, settings, group=group))
    for item in run.skipped:
        estimates.append(_skipped(run, item.task, item.metric, item.scorer, item.native, settings))
        notes.append(f"{item.task}: {item.metric} has no error bar: {item.reason}")
    return Analysis(settings.to_dict(), tuple(estimates), tuple(notes))


def _skipped(run: Run, task: str, metric: str, scorer: str, native: float | None, settings: Settings) -> Estimate:
    nothing = dict.fromkeys(
        ("se", "ci_low", "ci_high", "df", "se_total", "se_data", "se_prediction", "se_naive", "var_data",
         "var_prediction", "design_effect", "n_effective", "icc")
    )  # fmt: skip
    return Estimate(
        task=task, metric=metric, scorer=scorer, model=run.model, run=run.name, higher_is_better=None,
        n_questions=0, n_clusters=0, repeats_min=0, repeats_max=0, mean=finite(native), level=settings.level,
        interval="none", estimator=settings.se, diagnostics=("skipped_metric",), **nothing,
    )  # fmt: skip


def analyze_runs(runs: Iterable[Run], settings: Settings) -> Analysis:
    """All estimates of several runs, one after the other."""
    parts = [analyze_run(run, settings) for run in runs]
    estimates = tuple(item for part in parts for item in part.estimates)
    return Analysis(settings.to_dict(), estimates, merge_notes(*(part.notes for part in parts)))


def as_scores(
    values: ArrayLike, clusters: Sequence[object] | None = None, **fields: Any
) -> Scores:
    """Plain arrays as Scores: (n, K), or (n,) for one answer per question; NaN is a missing score."""
    from .scores import Questions

    array = np.asarray(values, dtype=np.float64)
    array = array[:, None] if array.ndim == 1 else array
    if array.ndim != 2 or array.shape[1] == 0:
        raise ValueError(f"scores must be an (n, K) array with K ≥ 1, not of shape {array.shape}")
    labels = None
    if clusters is not None:
        items = list(clusters.tolist() if isinstance(clusters, np.ndarray) else clusters)
        if len(items) != len(array):
            raise ValueError(f"{len(items)} cluster labels for {len(array)} questions")
        labels = tuple(str(item) for item in items)
    keys = tuple(str(i) for i in range(len(array)))
    return Scores(
        task=fields.pop("task", ""), metric=fields.pop("metric", "score"), scorer=fields.pop("scorer", "none"),
        questions=Questions(keys), values=array, clusters=labels,
        cluster_spec=None if labels is None else "clusters", **fields,
    )  # fmt: skip


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
    run = Run(model="", name="", harness="array")
    return _estimate([as_scores(scores, clusters)], run, Settings(level=level, **settings))
