"""From a samples file to scores: which metrics are means, and what becomes of those that are not.

A metric is a mean if the mean of its values is the reported value to 1e-9, or if the configuration
says so. One that lm-eval's own aggregation makes from all questions at once is resampled with it.
Everything else is listed with the reason.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness_noise.data.questions import CONTENT_KEYS, Questions
from harness_noise.data.scores import CorpusScores, Scores, Skipped

from ..scoring import choices, ranges
from ..scoring.patching import close
from . import rebuild
from .columns import Column
from .lines import changed, rows, stamp
from .samples import Samples
from .wanted import Wanted

if TYPE_CHECKING:
    from harness_noise.data.scores import FloatArray

    from ..scoring.aggregates import Budget
    from .native import Native
    from .samples import BoolArray

Measured = Scores | CorpusScores | Skipped
Key = tuple[str, str]
"""(metric, filter)."""

NOT_MEANS = frozenset(("perplexity", "word_perplexity", "byte_perplexity", "bits_per_byte", "weighted_perplexity"))
"""Metrics of lm-eval with one number per question that are no mean of it, where only the name tells."""

_PART = 1 << 16
"""Questions whose statistics are made at once."""
HUGE = 1e100
"""Scores beyond it are taken for infinite: their squares are."""


def _score_answers(path: Path, task: str, wanted: Wanted, native: Native, found: Samples) -> list[str]:
    """Give a file with K answers but one score the other scores too, where that is safe."""
    whole = {metric for (metric, _), column in found.columns.items() if column.raw is not None}
    # scores per repeat in the file are numbers: a metric that is no mean has none
    # one score to each of several answers is none of single answers: it is tried, or refused, as it was at first
    several = any(
        max(column.uneven.counts if column.uneven is not None else (column.width,)) > 1
        for column in found.columns.values()
    )
    scored = found.scored and several
    only = whole if scored else None
    if found.answers == 1 or only == set() or all(metric == "bypass" for metric, _ in found.columns):
        return []
    try:
        columns, remarks = rebuild.rescored(path, wanted, native.config(task), found, only)
    except rebuild.NotSafeError as reason:
        if scored:
            return [f"{task}: {', '.join(sorted(whole))}: read as one answer (single_repeat): {reason}"]
        columns = rebuild.counted(found)
        found.columns |= columns
        if columns:
            names = ", ".join(dict.fromkeys(metric for metric, _ in columns))
            return [f"{task}: {names} is a count of right answers out of {found.answers}; their order is not known"]
        return [
            f"{task}: the file holds {found.answers} answers per question but only lm-eval's one score, and they "
            f"cannot be scored again: {reason}; read as one answer (single_repeat)"
        ]
    if stamp(path) != found.stamp:  # the answers were read in a second pass
        raise changed(path)
    found.columns |= columns
    return [] if scored else [f"{task}: {remark}" for remark in remarks]


def measured(
    path: Path, task: str, wanted: Wanted, native: Native, found: Samples, budget: Budget
) -> tuple[list[Measured], list[str]]:
    """Everything that a samples file and the results say of one task, and sentences for the user."""
    from ..scoring import passes

    notes = _score_answers(path, task, wanted, native, found)
    parts = list(_parts(task, found, native, notes, budget))
    scores = passes.with_passes(
        [part for part in parts if isinstance(part, Scores)], native.answers(task, found.answers)
    )
    rest = [part for part in parts if not isinstance(part, Scores)]
    return [*scores, *_probabilities(task, found, scores, notes), *rest], notes


def _parts(task: str, found: Samples, native: Native, notes: list[str], budget: Budget) -> Iterator[Measured]:
    """Every metric that the samples or the results have, or the reason why not."""
    from ..scoring import passes
    from ..scoring.rescore import at_once

    documents = found.documents
    if found.kind in CONTENT_KEYS:
        questions = Questions(
            found.keys, found.kind, None, found.targets, found.prompts, documents=documents, fields=found.fields
        )
    else:  # no match is made without the texts
        inputs, texts = documents.read()
        questions = Questions(found.keys, found.kind, inputs, found.targets, found.prompts, texts, fields=found.fields)
    reported = native.metrics(task)
    answers_differ = cache(lambda: found.answers > 1 and _answers_differ(documents.path, found.answers))
    for key in dict.fromkeys((*reported, *found.columns)):
        column, value = found.columns.get(key), reported.get(key)
        if column is None:
            yield Skipped(task, *key, "the samples file does not have it", value)
            continue
        values, asked = column.matrix(len(questions))
        aggregation = native.aggregation(task, key[0])
        # a reduction over repeats may report another name than that of the single score
        known = key in reported or (found.scored and values.shape[1] > 1)
        reason = _not_a_mean(key[0], column, values, value, aggregation, known=known, any_known=bool(reported))
        if reason is not None:
            yield _whole(task, key, column, questions, native, reason, budget, notes, answers_differ)
            continue
        first, all_ = _means(values)
        agrees_first, agrees_whole = (value is not None and close(mean, value) for mean in (first, all_))
        own = column.own_mean()
        ours = agrees_first or agrees_whole or values.shape[1] == 1
        apart = value is not None and own is not None and not ours and close(own, value)
        K = native.together(task, key[1], found.answers)
        if apart and (said := f"{task}: {at_once(K)}") not in notes:  # where answers were scored, that has said so
            notes.append(said)
        part = Scores(
            answers_differ=_same_scores(values) and answers_differ(),
            diagnostics=("copied_repeats",) if task in native.copied else (),
            task=task,
            metric=key[0],
            scorer=key[1],
            questions=questions,
            values=values,
            higher_is_better=native.higher_is_better(task, key[0]),
            bounds=ranges.of_metric(task, key[0], values),
            native=None if apart else value,
            native_is_first=values.shape[1] > 1 and (agrees_first or not agrees_whole),
            n_missing=_missing(values, asked),
        )
        yield part
        if apart:
            yield passes.vote(part, column.own_values(len(questions)), value, K)


def _same_scores(values: FloatArray) -> bool:
    """Whether there are several scores to a question, and all of them agree on every question."""
    import numpy as np

    if values.shape[1] == 1:
        return False
    low, high = np.fmin.reduce(values, axis=1), np.fmax.reduce(values, axis=1)
    return not (low < high).any()


def _answers_differ(path: Path, K: int) -> bool:
    """Whether any question got other answers than one, K times: a pass of its own, up to the first that did."""
    return any(
        isinstance(answers, list) and any(answer != answers[0] for answer in answers[:K])
        for _, _, row, _ in rows(path, whole=True)
        for answers in (row["resps"] if isinstance(row.get("resps"), list) else ())
    )


def _whole(
    task: str,
    key: Key,
    column: Column,
    questions: Questions,
    native: Native,
    reason: str,
    budget: Budget,
    notes: list[str],
    answers_differ: Callable[[], bool],
) -> CorpusScores | Skipped:
    """A metric that is made from all questions at once, by lm-eval's own aggregation or a kind of F1."""
    from ..scoring import aggregates, pairs

    value, name = native.metrics(task).get(key), native.aggregation(task, key[0])
    own_code = key[0] in pairs.METRICS and "other" in column.kinds and not aggregates.is_registered(name)
    if column.raw is None or not (own_code or (name is not None and value is not None)):
        return Skipped(task, *key, reason, value)
    K = max(len(repeats) for _, repeats in column.raw)
    raw: list[list[Any]] = [[None] * K for _ in questions.keys]
    own: list[Any] = [None] * len(raw)
    for document, (single, repeats) in zip(column.rows, column.raw, strict=True):
        raw[document], own[document] = repeats, single
    try:
        if own_code:
            first_only = {"native": value, "native_is_first": K > 1}
            fields = {"task": task, "metric": key[0], "scorer": key[1], "questions": questions} | first_only
            fields["higher_is_better"] = native.higher_is_better(task, key[0])
            found, kind = pairs.scores(raw, budget, **fields)
            notes.append(
                f"{task}, {key[0]}: read as {kind}, "
                + (
                    "which reproduces lm-eval's own value"
                    if value is not None
                    else "which lm-eval's task of this name uses"
                )
            )
            return found
        assert name is not None
        assert value is not None
        aggregation = aggregates.registered(name)
        apart = False
        if K > 1:
            theirs, first = (
                aggregates.value_of(aggregation, items) for items in (own, [repeats[0] for repeats in raw])
            )
            apart = theirs is not None and close(theirs, value) and not (first is not None and close(first, value))
        return aggregates.corpus_scores(
            raw, aggregation, budget, task=task, metric=key[0], scorer=key[1], questions=questions,
            native=None if apart else value, native_is_first=K > 1 and not apart,
            answers_differ=K > 1 and answers_differ(), diagnostics=("copied_repeats",) if task in native.copied else (),
            higher_is_better=native.higher_is_better(task, key[0]), bounds=ranges.AGGREGATIONS.get(name),
        )  # fmt: skip
    except aggregates.NotPossibleError as error:
        return Skipped(task, *key, str(error), value)


def _probabilities(task: str, found: Samples, scores: Sequence[Scores], notes: list[str]) -> list[Scores]:
    """`acc_prob` beside each `acc` whose choices the file tells."""
    out: list[Scores] = []
    taken = any(part.metric == choices.METRIC for part in scores)  # the task has a metric of that name
    for part in scores:
        log = found.logs.get(part.scorer)
        if part.metric != choices.BESIDE or log is None or taken:
            continue
        try:
            out.append(choices.beside(part, log.probabilities(len(part.questions))))
        except choices.LeftOutError as error:
            notes.append(f"{task}: no {choices.METRIC}: {error}")
    return out


def _missing(values: FloatArray, asked: BoolArray) -> int:
    import numpy as np

    return int(np.count_nonzero(np.isnan(values) & asked))


def _means(values: FloatArray) -> tuple[float, float]:
    """The mean of the first repeat, and of all; over the questions that have a score."""
    return _mean(values[:, :1]), _mean(values)


def _mean(values: FloatArray) -> float:
    import numpy as np

    from harness_noise.stats.contrast import question_stats

    # in parts, because the statistics of all questions at once take many times the memory of the scores
    parts = [question_stats(values[i : i + _PART]).mean for i in range(0, len(values), _PART)]
    mean = np.concatenate(parts)
    return math.nan if np.isnan(mean).all() else float(np.nanmean(mean))


def _not_a_mean(
    metric: str, column: Column, values: FloatArray, value: float | None, aggregation: str | None, *, known: bool,
    any_known: bool,
) -> str | None:  # fmt: skip
    """Why a metric has no per-question mean; None if it has one."""
    import numpy as np

    own = column.own_mean()
    if metric == "bypass":
        return "the run only predicted (predict_only): nothing was scored"
    if "other" in column.kinds:
        why = "a live run with --noise has its aggregation" if any_known else "the results file would name it"
        return f"its value on a question is not one number (bleu and f1 are made from all questions at once); {why}"
    if "text" in column.kinds:
        return "its values are text"
    if "numeral" in column.kinds and not (own is not None and value is not None and close(own, value, 1e-6)):
        return "its values are text"
    if any_known and not known:
        return "lm-eval does not report it"
    low, high = (float(ufunc.reduce(values, axis=None)) for ufunc in (np.fmin, np.fmax))  # NaN if there is no number
    if high != high:
        return "no question has a score"
    if max(-low, high) > HUGE:
        return "a question has an infinite score"
    if aggregation is None and not any_known:
        return "it is not a mean of its per-question values" if metric in NOT_MEANS else None
    if aggregation in ("mean", "nanmean", choices.BRIER):
        return None
    if aggregation is not None and aggregation.isidentifier():
        return f"it is aggregated by {aggregation}, not a mean"
    if value is None or any(item is not None and close(item, value) for item in (own, *_means(values))):
        return None
    return f"the mean of its values ({own:.6g}) is not the reported value ({value:.6g}): it is not aggregated as a mean"
