"""Our EvalMetrics, appended to Inspect's own EvalScores."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harness_noise._version import __version__

from .gather import GROUP

if TYPE_CHECKING:
    from collections.abc import Iterable

    from inspect_ai.log import EvalMetric, EvalScore

    from harness_noise.results import Estimate

    from .records import ScoreRow

FIELDS = {
    "noise_se": "se",
    "noise_ci_low": "ci_low",
    "noise_ci_high": "ci_high",
    "noise_total": "se_total",
    "noise_data": "se_data",
    "noise_prediction": "se_prediction",
}
"""Name of the EvalMetric → field of the Estimate, in the order in which they are shown."""


def values(estimate: Estimate) -> dict[str, float]:
    """What is identified, by name: never None, never NaN."""
    found = {name: getattr(estimate, attribute) for name, attribute in FIELDS.items()}
    return {name: float(value) for name, value in found.items() if value is not None}


def metrics(estimate: Estimate) -> dict[str, EvalMetric]:
    """The EvalMetrics of one estimate."""
    from inspect_ai.log import EvalMetric

    params: dict[str, Any] = {}
    if estimate.cluster is not None:
        params["cluster"] = estimate.cluster.removesuffix(" (auto)")
    metadata = {
        "harness_noise_version": __version__,
        "metric": estimate.metric,
        "n_questions": estimate.n_questions,
        "n_clusters": estimate.n_clusters,
        "repeats_min": estimate.repeats_min,
        "repeats_max": estimate.repeats_max,
        "n_missing": estimate.n_missing,
        "level": estimate.level,
        "interval": estimate.interval,
        "estimator": estimate.estimator,
        "diagnostics": list(estimate.diagnostics),
    }
    if estimate.df is not None:
        metadata["df"] = estimate.df
    return {
        name: EvalMetric(name=name, group=GROUP, value=value, params=params, metadata=metadata)
        for name, value in values(estimate).items()
    }


def replace(es: EvalScore, estimate: Estimate | None) -> None:
    """Append an estimate to an EvalScore, in place of what an earlier call appended; None only removes."""
    for name in injected(es):
        del es.metrics[name]
    if estimate is not None and not es.metrics.keys() & FIELDS.keys():
        es.metrics.update(metrics(estimate))


def replace_all(pairs: Iterable[tuple[EvalScore, Estimate | None]]) -> None:
    """`replace` for many, or for none if there is a fault in one of them."""
    changes = []
    for es, estimate in pairs:
        copy = es.model_copy(update={"metrics": dict(es.metrics)})
        replace(copy, estimate)
        changes.append((es, copy.metrics))
    for es, metrics_ in changes:
        es.metrics = metrics_


def injected(es: EvalScore | ScoreRow) -> list[str]:
    """The names that an earlier call appended; the public metric's values carry no such metadata."""
    return [
        name
        for name, metric in es.metrics.items()
        if name in FIELDS and metric.group == GROUP and "harness_noise_version" in (metric.metadata or {})
    ]
