"""What the answers to a part say of the whole benchmark, with runs that have answered all of it (`noise_reference`)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from harness_noise.analysis.drawing import recorded, with_record
from harness_noise.analysis.references import of_runs
from harness_noise.data.questions import Questions
from harness_noise.data.scores import Run
from harness_noise.errors import InputError

from .header import RECORD
from .inject import whole
from .stopper import picked

if TYPE_CHECKING:
    from inspect_ai.log import EvalResults

    from .gather import Gathered
    from .live import Live


def full_benchmark(live: Live, results: EvalResults, found: Gathered) -> list[str]:
    """Add it to the results of a task that has ended: to its record, and beside the scores that it is of.

    Returns:
        What the user should know, one sentence each.
    """
    stopper, stopping = live.stopper, results.early_stopping
    if stopper is None or stopping is None or not stopper.references or stopper.cut:
        return []
    record = stopping.metadata.get(RECORD)
    if not isinstance(record, dict):
        return []
    texts = stopper.questions
    where = {key: i for i, key in enumerate(texts.keys)}
    scores = []
    for part in found.scores:
        rows = [where[key] for key in part.questions.keys]
        questions = Questions(
            part.questions.keys,
            part.questions.kind,
            inputs=picked(texts.inputs, rows),
            targets=picked(texts.targets, rows),
        )
        scores.append(replace(part, questions=questions, native=None))
    run = Run(model=live.spec.model, name=live.spec.eval_id, harness="inspect", scores=tuple(scores))
    try:
        rows_, notes = of_runs(
            [with_record(run, *recorded(record))], stopper.references, live.flag.settings, refuse=False
        )
    except InputError as error:
        return [str(error)]
    record["full_benchmark"] = [row.to_dict() for row in rows_]
    for row in rows_:
        for index, part in zip(found.indices, found.scores, strict=True):
            if (part.metric, part.scorer) == (row.metric, row.scorer):
                whole(results.scores[index], row)
    return notes
