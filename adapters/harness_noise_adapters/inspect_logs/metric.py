"""What the public metric `harness_noise/noise` computes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harness_noise.analysis.mean import analyze_run
from harness_noise.data.questions import Questions
from harness_noise.data.scores import Run, Scores
from harness_noise.settings import Settings

from . import inject
from .clusters import cluster_labels
from .grid import grid, numbers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from inspect_ai.scorer import SampleScore


_TOO_FEW = {"too_few_questions": "fewer than two questions", "too_few_clusters": "fewer than two clusters"}


class TooFewError(Exception):
    """Nothing is identified; while a task goes on that is no news, at its end it is."""


def noise_of(scores: Sequence[SampleScore], cluster: str | None, level: float) -> dict[str, float]:
    """The noise of the mean of un-reduced scores, by the names of our metrics.

    Where the total comes out below the prediction noise, the data variance below 0 that makes it so is among them.

    Raises:
        InputError: a cluster key that the samples lack, a level outside (0, 1).
        ValueError: values that are not numbers.
        TooFewError: too few questions or clusters for any number.
    """
    scores = [item for item in scores if item.sample_id is not None]
    if not scores:
        return {}
    answers = grid([item.sample_id for item in scores])
    values: list[Any] = [item.score.value for item in scores]
    read = numbers(values)
    if read.words:
        raise ValueError(f"{read.words} values are not numbers, such as {read.example!r}")
    metadata = [scores[i].sample_metadata for i in answers.first]
    labels, words, _ = cluster_labels(cluster, "", answers.keys, metadata)
    part = Scores(
        task="", metric="mean", scorer="noise", questions=Questions(answers.keys, "sample id"),
        values=answers.fill(read.values), clusters=labels, cluster_spec=words,
    )  # fmt: skip
    run = Run(model="", name="", harness="inspect", scores=(part,))
    estimate = analyze_run(run, Settings(level=level)).estimates[0]
    for code, words in _TOO_FEW.items():
        if code in estimate.diagnostics:
            raise TooFewError(f"{words}: no standard error")
    found = inject.values(estimate)
    if estimate.var_data is not None and inject.total_below_prediction(estimate):
        found[inject.VAR_DATA] = estimate.var_data  # a metric has no metadata, and nobody would believe the total
    return found
