"""A metric of lm-eval's over all questions at once, of the values of one task: what can be resampled, or why not."""

from __future__ import annotations

from typing import Any

from harness_noise.data.notes import Note
from harness_noise.data.scores import CorpusScores, Skipped

from ...lm_eval_harness.scoring.gather import PERCENT, UNIT, Aggregation, Bounds, Gathered
from . import aggregates

_AGGREGATION_RANGES: dict[str, Bounds] = {
    **dict.fromkeys(("f1", "f1_score"), UNIT),
    **dict.fromkeys(("bleu", "chrf", "chrf++", "chrfpp"), PERCENT),
    "matthews_corrcoef": (-1.0, 1.0),
}
"""lm-eval's own aggregations over all questions, by their names in a task and in its code."""
_AS_THE_TASK = "as lm-eval's task of this name does"


def measured_whole(
    raw: aggregates.Raw, how: Aggregation, value: float | None, out: Gathered, **fields: Any
) -> CorpusScores | Skipped:
    """Return the CorpusScores of a metric to be resampled, or `Skipped` with the reason. Pairs: with a note in `out`.

    Args:
        raw: see `aggregates.Raw`.
        how: it is aggregated; without a function of lm-eval's, `raw` has pairs of what is right and was said.
        value: lm-eval's own.
        out: of the run; it gets notes.
        **fields: the fields of CorpusScores that say what was measured.
    """
    if out.budget is None:
        out.budget = aggregates.CallingTime()
    try:
        if how.function is None:
            scores, kind = aggregates.pair_scores(raw, out.budget, **fields)
            if value is None:
                told = f"its cells hold what is right and what was said: its {kind} is computed here, {_AS_THE_TASK}"
                note = Note("recomputed", told)
            else:
                note = Note("read_as", f"read as {kind}, which reproduces lm-eval's own value")
            out.notes.append(note.of(scores.task, scores.metric))
            return scores
        bounds = _AGGREGATION_RANGES.get(how.name or "") if how.registered else None
        return aggregates.corpus_scores(raw, how.function(), out.budget, bounds=bounds, **fields)
    except aggregates.NotPossibleError as error:
        return Skipped(fields["task"], fields["metric"], fields["scorer"], str(error), value)
