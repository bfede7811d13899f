"""One task of a live run, in the form in which scoring takes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from harness_noise.data.questions import Questions, occurrences

from ..scoring import aggregates, choices, passes
from ..scoring.columns import Column
from ..scoring.gather import BYPASS, Aggregation, Key, OwnValue, TaskFacts, reported
from ..scoring.rescore import FilterScores, Row


@dataclass(slots=True)
class TaskScores:
    """One task of a finished run."""

    name: str
    rows: dict[str, list[Row]]
    """filter → logged samples, one for each question, all filters in one order."""
    positions: dict[str, list[int]]
    """filter → the numbers of these rows among the task's samples, as lm-eval has them."""
    filters: dict[str, FilterScores] = field(default_factory=dict)
    identical: bool = False
    """Whether all answers of every question are the same."""
    differ: bool = False
    """Whether some answers to one question differ."""
    copied: bool = False
    """Whether lm-eval's own answers are copies of each other, and count as one."""

    @property
    def questions(self) -> list[Row]:
        return next(iter(self.rows.values()))


def columns_of(item: TaskScores, task: Any) -> dict[Key, Column]:
    """The scores of a task in columns; what a run that only predicts has in their place is left out."""
    out: dict[Key, Column] = {}
    for scorer, scores in item.filters.items():
        for metric, raw in scores.values.items():
            aggregation = _aggregation(task, metric)
            if metric == BYPASS or aggregation.name == "bypass_agg":
                continue
            own = scores.native.get(metric, [None] * len(raw))
            if aggregation.registered and aggregation.name == choices.BRIER:
                raw, own = _brier(raw, own)
            column = out[metric, scorer] = Column(raw=[])
            for document, (value, repeats) in enumerate(zip(own, raw, strict=True)):
                column.add(document, value, repeats)
    return out


def _brier(raw: list[list[Any]], own: list[Any]) -> tuple[list[list[Any]], list[Any]]:
    """Both as numbers, of which lm-eval's Brier score is the mean; as they are where they are no such pairs."""
    scores, values = aggregates.brier_values(raw), aggregates.brier_values([[value] for value in own])
    return (raw, own) if scores is None or values is None else (list(scores), [value for (value,) in values])


def task_facts(
    item: TaskScores, task: Any, results: Mapping[str, Any], native_K: int, columns: Mapping[Key, Column]
) -> TaskFacts:
    """The facts of a task.

    Args:
        item: its scores.
        task: lm-eval's object.
        results: what `evaluate` returned.
        native_K: answers to a question that the harness's own filters saw; 1 where they are copies.
        columns: see `columns_of`.
    """
    first = item.questions
    values, arrows = reported(results["results"][item.name]), results["higher_is_better"].get(item.name, {})

    def probabilities(scorer: str) -> Any:
        if task.OUTPUT_TYPE != "multiple_choice":
            return None
        try:
            return choices.of_task(task, item.rows[scorer])
        except choices.LeftOutError:
            raise
        except Exception as error:  # noqa: BLE001 - the task's own code
            raise choices.LeftOutError(f"{type(error).__name__}: {error}") from None

    return TaskFacts(
        name=item.name,
        questions=Questions(
            keys=occurrences([row["doc_hash"] for row in first]),
            kind="doc_hash",
            targets=tuple(row["target_hash"] for row in first),
            prompts=tuple(row["prompt_hash"] for row in first),
        ),
        reported={key: values.get(key) for key in columns},
        aggregations={metric: _aggregation(task, metric) for metric, _ in columns},
        higher_is_better=arrows,
        own_answers=native_K,
        own_values={(metric, scorer): _own_value(metric, item.filters[scorer], native_K) for metric, scorer in columns},
        copied=item.copied,
        identical=item.identical,
        answers_differ=lambda: item.differ,
        probabilities=probabilities,
    )


def _own_value(metric: str, scores: FilterScores, native_K: int) -> OwnValue:
    """What lm-eval's own value is, which is known from how it was made."""
    K, order = max(map(len, scores.values[metric])), passes.order(metric)
    ours = scores.first or (scores.mean and K in (1, native_K)) or order > 1
    together = scores.together if order == 0 else 0
    return OwnValue(ours, scores.first, together, mismatch=metric in scores.mismatch)


def _aggregation(task: Any, metric: str) -> Aggregation:
    function = task.aggregation().get(metric)
    if function is None:
        return Aggregation()
    registered = str(getattr(function, "__module__", "")).startswith("lm_eval.api.metrics")
    return Aggregation(str(getattr(function, "__name__", function)), registered, lambda: function)
