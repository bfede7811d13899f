"""Our EvalMetrics, appended to Inspect's own EvalScores."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from harness_noise._version import __version__
from harness_noise.results.rows import Estimate

if TYPE_CHECKING:
    from inspect_ai.log import EvalMetric, EvalResults, EvalScore

    from .records import AnyScore

GROUP = "noise"
"""The `group` of our EvalMetrics."""
RECORD = "harness_noise"
"""Key of an export in the log's metadata."""
FIELDS = {
    "noise_se": "se",
    "noise_ci_low": "ci_low",
    "noise_ci_high": "ci_high",
    "noise_total": "se_total",
    "noise_data": "se_data",
    "noise_prediction": "se_prediction",
}
"""Name of the EvalMetric → field of the Estimate, in the order in which they are shown."""
DIFFERENCE = {"noise_diff": "estimate", "noise_diff_ci_low": "ci_low", "noise_diff_ci_high": "ci_high"}
"""Metrics of a run that is compared while it grows: name of the EvalMetric → field of its `sequential` object."""
WHOLE = {"noise_full": "estimate", "noise_full_ci_low": "ci_low", "noise_full_ci_high": "ci_high"}
"""Metrics of a partial run with references: name of the EvalMetric → field of its `full_benchmark` object."""
_COUNTS = "n_questions", "n_clusters", "repeats_min", "repeats_max", "n_missing"
ABOUT = ("metric", *_COUNTS, "level", "interval", "estimator")
"""Fields of the Estimate that stand in the metadata of its EvalMetrics."""
VAR_DATA = "noise_var_data"
"""What a task's own metric has beside a total that is less than its part: the data variance, below 0."""


def values(estimate: Estimate) -> dict[str, float]:
    """What is identified, by name: never None, never NaN."""
    fields = {name: getattr(estimate, attribute) for name, attribute in FIELDS.items()}
    return {name: float(value) for name, value in fields.items() if value is not None}


def metrics(estimate: Estimate, key: str | None = None) -> dict[str, EvalMetric]:
    """The EvalMetrics of one estimate; their names end in `key` where an EvalScore has the means of several keys."""
    from inspect_ai.log import EvalMetric

    params: dict[str, Any] = {}
    if estimate.cluster is not None:
        params["cluster"] = estimate.cluster.removesuffix(" (auto)")
    metadata = {"harness_noise_version": __version__} | {name: getattr(estimate, name) for name in ABOUT}
    metadata["diagnostics"] = list(estimate.diagnostics)
    if estimate.df is not None:
        metadata["df"] = estimate.df
    if total_below_prediction(estimate):
        metadata["var_data"] = estimate.var_data
    named = {_named(name, key): value for name, value in values(estimate).items()}
    return {
        name: EvalMetric(name=name, group=GROUP, value=value, params=params, metadata=metadata)
        for name, value in named.items()
    }


def _named(name: str, key: str | None) -> str:
    return name if key is None else f"{name}_{key}"


def total_below_prediction(estimate: Estimate) -> bool:
    """Whether the data variance came out below 0, so that the total noise is less than its part."""
    total, prediction = estimate.se_total, estimate.se_prediction
    return total is not None and prediction is not None and total < prediction


def append_record(es: EvalScore, kind: str, row: Mapping[str, Any], **params: Any) -> None:
    """Append what the run itself has found: `sequential`, the difference that stopped it, with the limits that are
    valid after stopping; or `full_benchmark`, the estimate of the whole from the part that was asked."""
    from inspect_ai.log import EvalMetric

    metadata = {"harness_noise_version": __version__, kind: dict(row)}
    for name, field in {"sequential": DIFFERENCE, "full_benchmark": WHOLE}[kind].items():
        if (value := row[field]) is not None:
            es.metrics[name] = EvalMetric(name=name, group=GROUP, value=value, params=params, metadata=metadata)


def replace_all(pairs: Iterable[tuple[EvalScore, Mapping[str | None, Estimate]]]) -> None:
    """Append estimates by key to their EvalScores, in place of what an earlier call appended; no estimates only remove.

    Where there is a fault in one of them, none is changed.
    """
    changes = [(es, _replaced(es, estimates)) for es, estimates in pairs]
    for es, metrics_ in changes:
        es.metrics = metrics_


def _replaced(es: EvalScore, estimates: Mapping[str | None, Estimate]) -> dict[str, EvalMetric]:
    found_in_run = {*DIFFERENCE, *WHOLE}  # it is not computed again
    earlier = set(injected(es)) - found_in_run
    out = {name: metric for name, metric in es.metrics.items() if name not in earlier}
    for key, estimate in estimates.items():
        if not out.keys() & {_named(name, key) for name in FIELDS}:
            out |= metrics(estimate, key)
    return out


MEAN = "noise_mean"
"""The mean of a measure, which has an EvalScore of its own."""


def is_measure(es: AnyScore) -> bool:
    """Whether we have appended it for a measure beside the scores."""
    return MEAN in injected(es)


def put_measures(results: EvalResults, estimates: Iterable[Estimate]) -> None:
    """Append an EvalScore for each measure behind the scores, in place of those of an earlier call."""
    from inspect_ai.log import EvalMetric, EvalScore

    measures = []
    for row in estimates:
        if row.unit is None or row.mean is None:
            continue
        about = {"harness_noise_version": __version__, "unit": row.unit, "diagnostics": list(row.diagnostics)}
        own = {MEAN: EvalMetric(name=MEAN, group=GROUP, value=row.mean, metadata=about)} | metrics(row)
        measures.append(EvalScore(name=row.metric, scorer=row.metric, metrics=own))
    results.scores = [*(es for es in results.scores if not is_measure(es)), *measures]


def injected(es: AnyScore) -> list[str]:
    """The names that an earlier call appended; the public metric's values carry no such metadata."""
    return [
        name
        for name, metric in es.metrics.items()
        if metric.group == GROUP and "harness_noise_version" in (metric.metadata or {})
    ]


def of_authors(scores: Iterable[EvalScore]) -> set[tuple[str, str]]:
    """Scorer and name of those whose task has the public metric `noise`: its numbers stand, and no second ones."""
    return {
        (es.scorer, es.name)
        for es in scores
        if any(m.group == GROUP and "harness_noise_version" not in (m.metadata or {}) for m in es.metrics.values())
    }
