"""One metric of a live run: what its scores are, or why there are none."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import numpy as np

from harness_noise.data.questions import Questions, occurrences
from harness_noise.data.scores import CorpusScores, Scores, Skipped

from ..scoring import aggregates, passes, ranges
from ..scoring.patching import close
from ..scoring.rescore import FilterScores, Row


def _measured(
    item: TaskScores, task: Any, results: Mapping[str, Any], native_K: int, budget: aggregates.Budget
) -> Iterator[Scores | CorpusScores | Skipped]:
    first = item.questions
    questions = Questions(
        keys=occurrences([row["doc_hash"] for row in first]),
        kind="doc_hash",
        targets=tuple(row["target_hash"] for row in first),
        prompts=tuple(row["prompt_hash"] for row in first),
    )
    arrows = results["higher_is_better"].get(item.name, {})
    for filter_name, scores in item.filters.items():
        for metric, raw in scores.values.items():
            value = results["results"][item.name].get(f"{metric},{filter_name}")
            native = float(value) if isinstance(value, (int, float)) and math.isfinite(value) else None
            if metric == "bypass":  # its 999 is a placeholder
                native = None
            aggregation = task.aggregation().get(metric)
            if (
                _name(aggregation) == "brier_score"
                and _lm_evals(aggregation)
                and (brier := aggregates.brier_values(raw)) is not None
            ):
                raw, aggregation = brier, None
            array = as_array(raw)
            K = max(map(len, raw))
            told = scores.first or (scores.mean and K in (1, native_K)) or passes.order(metric) > 1
            known: dict[str, Any] = {
                "task": item.name, "metric": metric, "scorer": filter_name, "questions": questions,
                "clusters": item.clusters, "cluster_spec": item.cluster_spec, "higher_is_better": arrows.get(metric),
                "native": native if told else None, "native_is_first": scores.first and K > 1,
                "answers_differ": item.differ,
                "diagnostics": (
                    *(["mean_mismatch"] if metric in scores.mismatch else []),
                    *(["identical_repeats"] if item.identical and K > 1 else []),
                    *(["copied_repeats"] if item.copied else []),
                ),
            }  # fmt: skip
            if metric == "bypass" or _name(aggregation) == "bypass_agg":
                continue  # the run only predicts; `collect` says so
            reason = _not_scored(array, aggregation)
            if reason is None and array is not None and _is_mean(aggregation, scores.native.get(metric, ()), native):
                bounds = ranges.of_metric(item.name, metric, array)
                part = Scores(values=array, n_missing=int(np.isnan(array).sum()), bounds=bounds, **known)
                at_once = scores.together and passes.order(metric) == 0
                if K > 1 or not at_once:
                    yield part
                if at_once:
                    own = as_array([[value] for value in scores.native[metric]])
                    if own is not None:
                        yield passes.vote(part, own[:, 0].tolist(), native, scores.together)
                continue
            try:
                if reason is not None or native is None:
                    raise aggregates.NotPossibleError(reason or f"lm-eval has no number for it ({_name(aggregation)})")
                bounds = ranges.AGGREGATIONS.get(_name(aggregation)) if _lm_evals(aggregation) else None
                yield aggregates.corpus_scores(raw, aggregation, budget, bounds=bounds, **known)
            except aggregates.NotPossibleError as error:
                yield Skipped(item.name, metric, filter_name, str(error), native)


def as_array(raw: Sequence[Sequence[Any]]) -> np.ndarray[Any, np.dtype[np.float64]] | None:
    """(n, K) scores, NaN where there is none; None where a value is not a number."""
    kinds = set(map(type, chain.from_iterable(raw)))
    if not all(kind is type(None) or issubclass(kind, (bool, int, float, np.bool_, np.number)) for kind in kinds):
        return None
    K = max(map(len, raw))
    if any(len(doc) != K for doc in raw):
        raw = [[*doc, *[None] * (K - len(doc))] for doc in raw]
    return np.array(raw, dtype=np.float64).reshape(len(raw), K)


def _not_scored(array: np.ndarray[Any, Any] | None, aggregation: Any) -> str | None:
    """Why there is nothing to analyse; None where there is."""
    if array is None:
        return "its values are not numbers" if aggregation is None else None
    if np.isinf(array).any():
        return "a score is infinite"
    if np.isnan(array).all():
        return "no question has a score"
    return None


def _is_mean(aggregation: Any, column: Sequence[Any], native: float | None) -> bool:
    """Whether a metric of one number per question is its mean: lm-eval says so, or an aggregation of
    somebody else's gives the mean of the harness's own values to 1e-9.
    """
    if aggregation is None:
        return True
    if _lm_evals(aggregation):
        return _name(aggregation) in ("mean", "nanmean")
    known = as_array([[value] for value in column])
    if known is None or native is None or np.isnan(known).all():
        return False
    return close(float(np.nanmean(known)), native)


def _lm_evals(aggregation: Any) -> bool:
    return str(getattr(aggregation, "__module__", "")).startswith("lm_eval.api.metrics")


def _name(aggregation: Any) -> str:
    return str(getattr(aggregation, "__name__", aggregation))


def _get(config: Any, name: str) -> Any:
    return config.get(name) if type(config) is dict else getattr(config, name)


@dataclass(slots=True)
class TaskScores:
    """One task of a finished run."""

    name: str
    rows: dict[str, list[Row]]
    """filter → logged samples, one for each question, all filters in one order."""
    filters: dict[str, FilterScores] = field(default_factory=dict)
    identical: bool = False
    """Whether all answers of every question are the same."""
    differ: bool = False
    """Whether some answers to one question differ."""
    copied: bool = False
    """Whether lm-eval's own answers are copies of each other, and count as one."""
    clusters: tuple[str, ...] | None = None
    cluster_spec: str | None = None

    @property
    def questions(self) -> list[Row]:
        return next(iter(self.rows.values()))
