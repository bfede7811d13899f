"""Our EvalMetrics, appended to Inspect's own EvalScores."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from harness_noise._version import __version__
from harness_noise.results.parts import STOPS
from harness_noise.results.rows import Estimate, data_or_limit

if TYPE_CHECKING:
    from inspect_ai.log import EvalMetric, EvalResults, EvalScore

    from .records import AnyScore

GROUP = "noise"
"""The `group` of our EvalMetrics."""
FIELDS = {
    "noise_se": "se",
    "noise_ci_low": "ci_low",
    "noise_ci_high": "ci_high",
    "noise_total": "se_total",
    "noise_data": "se_data",
    "noise_data_upper": "se_data_upper",
    "noise_prediction": "se_prediction",
}
"""Name of the EvalMetric → field of the Estimate, in the order in which they are shown."""
DIFFERENCE = {"noise_diff": "estimate", "noise_diff_ci_low": "ci_low", "noise_diff_ci_high": "ci_high"}
"""Metrics of a run that is compared while it grows: name of the EvalMetric → field of its object of a stop."""
WHOLE = {"noise_full": "estimate", "noise_full_ci_low": "ci_low", "noise_full_ci_high": "ci_high"}
"""Metrics of a partial run with references: name of the EvalMetric → field of its `full_benchmark` object."""
_COUNTS = "n_questions", "n_clusters", "repeats_min", "repeats_max", "n_missing"
ABOUT = ("metric", *_COUNTS, "level", "interval", "estimator")
"""Fields of the Estimate that the metadata of its EvalMetrics have."""
VAR_DATA = "noise_var_data"
"""The metric of a task's own `noise()` for a negative data variance, added if the total is less than its part."""


def values(estimate: Estimate) -> dict[str, float]:
    """Return {our metric's name: value} of an estimate, without values that are unknown."""
    fields = {name: getattr(estimate, attribute) for name, attribute in FIELDS.items()}
    fields["noise_data"], fields["noise_data_upper"] = data_or_limit(estimate)
    return {name: float(value) for name, value in fields.items() if value is not None}


def metrics(estimate: Estimate, key: str | None = None) -> dict[str, EvalMetric]:
    """Return {name: Inspect metric} for one estimate. `key`: dictionary key, appended to names.

    Their names end in `key` where an EvalScore has the means of several keys.
    """
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
    """Return True if an estimate's total noise is below its prediction noise (negative data variance)."""
    total, prediction = estimate.se_total, estimate.se_prediction
    return total is not None and prediction is not None and total < prediction


def append_record(es: EvalScore, kind: str, row: Mapping[str, Any], **params: Any) -> None:
    """Add metrics of a record found in the run to a score row: the difference of a stop, or `full_benchmark`.

    What stopped it is a difference, with limits that are valid after stopping. `full_benchmark` is
    the estimate of the whole benchmark from the questions that were asked.
    """
    from inspect_ai.log import EvalMetric

    metadata = {"harness_noise_version": __version__, kind: dict(row)}
    for name, field in {STOPS: DIFFERENCE, "full_benchmark": WHOLE}[kind].items():
        if (value := row[field]) is not None:
            es.metrics[name] = EvalMetric(name=name, group=GROUP, value=value, params=params, metadata=metadata)


def replace_all(pairs: Iterable[tuple[EvalScore, Mapping[str | None, Estimate]]]) -> None:
    """Replace our metrics in score rows (but those found during the run) by the estimates, in all rows or none.

    Without estimates the earlier metrics are only removed.

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
    """Return True if we added this score row for a measure such as cost."""
    return MEAN in injected(es)


def put_measures(results: EvalResults, estimates: Iterable[Estimate]) -> None:
    """Add a score row for each measure (cost, tokens), in place of earlier ones."""
    from inspect_ai.log import EvalMetric, EvalScore

    measures = []
    for row in estimates:
        if row.unit is None or row.mean is None:
            continue
        about = {"harness_noise_version": __version__, "unit": row.unit, "diagnostics": list(row.diagnostics)}
        own = {MEAN: EvalMetric(name=MEAN, group=GROUP, value=row.mean, metadata=about)} | metrics(row)
        measures.append(EvalScore(name=row.metric, scorer=row.metric, metrics=own))
    results.scores = [*(es for es in results.scores if not is_measure(es)), *measures]


CLUSTERS = "cluster_of"
"""The key in the metadata of our first EvalMetric for clusters from a template: sample id → cluster."""


def put_clusters(results: EvalResults, clusters: Mapping[str, str]) -> None:
    """Store {sample id: cluster} in the metadata of our first metric in the results."""
    for es in results.scores:
        for name in injected(es):
            metric = es.metrics[name]
            es.metrics[name] = metric.model_copy(
                update={"metadata": {**(metric.metadata or {}), CLUSTERS: dict(clusters)}}
            )
            return


def clusters_of(scores: Iterable[AnyScore]) -> dict[str, str]:
    """Return the {sample id: cluster} that `put_clusters` stored, {} if there is none."""
    for es in scores:
        for name in injected(es):
            clusters = (es.metrics[name].metadata or {}).get(CLUSTERS)
            if isinstance(clusters, dict) and all(isinstance(name, str) for name in clusters.values()):
                return dict(clusters)
    return {}


def injected(es: AnyScore) -> list[str]:
    """Return the names of a score row's metrics that we added. The public metric `noise` does not count.

    Values of the public metric `noise` carry no such metadata and are not among them.
    """
    return [
        name
        for name, metric in es.metrics.items()
        if metric.group == GROUP and "harness_noise_version" in (metric.metadata or {})
    ]


def of_authors(scores: Iterable[EvalScore]) -> set[tuple[str, str]]:
    """Return (scorer, name) of score rows whose task itself uses our public metric `noise`.

    They get no second numbers.
    """
    return {
        (es.scorer, es.name)
        for es in scores
        if any(m.group == GROUP and "harness_noise_version" not in (m.metadata or {}) for m in es.metrics.values())
    }
