"""Human labels, and the scores of a run that they correct."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from ...analysis.ranges import Ends, score_range
from ...analysis.sample import in_order_of, stack
from ...arrays import FloatArray, IntArray, picked, rows_of, stacked
from ...data.notes import Note
from ...data.numbers import number_array
from ...data.scores import Run, Scores
from ...errors import InputError, some_of
from ...settings import Settings
from ...stats.contrast import cluster_codes, question_stats
from ...stats.tolerances import FEWEST_UNITS, SLACK
from ..partial import IN_A_ROW, NOT_RANDOM_Z, Part, positions_look_random
from ..subsets import benchmark_order, drawn_by_key, part_of
from .files import EDITS, Label, LabelFile
from .numbering import answers_labelled
from .stats import corrected_values, too_few_to_correct

FEWEST = 2
"""Labelled questions (clusters) of a task below which it has no standard error of its own."""
MOST_NAMED = 3
FEW_NOT_RANDOM_Z = 3.0
"""`NOT_RANDOM_Z` for the judge's scores of fewer than `FEWEST_UNITS` labels: five are hardly ever reached by so few."""
FEW_NOT_RANDOM_P = 0.00135
"""The one-sided chance beyond it."""


@dataclass(frozen=True, slots=True)
class LabelOptions:
    """The options for corrections by labels."""

    at_random: bool = False
    """The labelled answers are a random subset, whatever they look like."""
    scale: tuple[float, float] | None = None
    """Lowest and highest label, which stand for the ends of the metric's range. None: labels are on its scale."""
    arrays: bool = False
    """The labels are an array: its function has `at_random`, and no parameter for another scale."""


def corrected_runs(runs: Sequence[Run], labels: LabelFile, options: LabelOptions, settings: Settings) -> list[Run]:
    """Return the runs corrected by a file of labels. Note the unlabelled. Refuse unclear, unknown, non-random answers.

    Raises:
        InputError: labels that no answer has, of some runs only, twice with different values, on another scale, or not
            of a random subset.
    """
    if not labels.labels:
        raise InputError(f"{labels.name}: no row has a label yet: fill in the column `label`")
    bare = next((label for label in labels.labels if label.model is None and label.answer_id is None), None)
    if bare is not None and len(runs) > 1:
        raise InputError(
            f"{labels.name}, line {bare.line}: several runs are given, and the row does not say whose answer it "
            "labels: add a column `model`"
        )
    names = names_of(runs)
    shared = {run.model for run, name in zip(runs, names, strict=True) if name != run.model} - set(names)
    if (unclear := next((label for label in labels.labels if label.model in shared), None)) is not None:
        raise InputError(
            f"{labels.name}, line {unclear.line}: several of the runs are of {unclear.model}, and the row does not say "
            f"whose answer it labels: write the run in the column `model` ({some_of(names, MOST_NAMED)})"
        )
    taken: set[Label] = set()
    out = []
    named = [(part, name, run.name) for run, name in zip(runs, names, strict=True) for part in run.scores]
    answers = iter(answers_labelled(labels, named))
    for run in runs:
        tasks: dict[Label, str] = {}
        matched = {part: _matched(part, next(answers), tasks, labels.name) for part in run.scores}
        taken.update(tasks)
        out.append(_corrected(run, matched, labels, options, settings))
    every = {None, *(part.task for run in runs for part in run.scores)}
    models = {None, *names, *(run.model for run in runs), *(run.name for run in runs)}
    keys = {key for run in runs for part in run.scores for key in part.questions.keys}
    lost = [
        label
        for label in labels.labels
        if label not in taken
        and label.model in models
        and label.task in every
        # a file that is blind to the model may label other runs' answers, but to the same questions
        and (label.answer_id is None or label.question not in keys)
    ]
    if lost:
        raise InputError(_unmatched(lost, labels, runs))
    return out


def names_of(runs: Sequence[Run]) -> list[str]:
    """Return the runs' names in a label file: the model, or the run's name if two runs share a model."""
    models = [run.model for run in runs]
    return [run.model if models.count(run.model) == 1 else run.name for run in runs]


def scored_by(run: Run, judge: str, options: LabelOptions, settings: Settings) -> Run:
    """Return the run with one scorer's scores, or score edits, as human labels of the others. Refuse a lone scorer.

    Raises:
        InputError: no such scorer, none beside it, or labels that cannot be used.
    """
    if judge == EDITS and not any(judge in (part.scorer, _head(part)) for part in run.scores):
        return _edited(run, options, settings)
    people = [part for part in run.scores if judge in (part.scorer, _head(part))]
    heads = set(map(_head, people))
    beside = [(part, _people_scores(part, people)) for part in run.scores if _head(part) not in heads]
    matched = {
        part: _answer_labels(part, in_order_of(part.questions, labels)) for part, labels in beside if labels is not None
    }
    if not matched:
        have = ", ".join(dict.fromkeys(part.scorer for part in run.scores))
        raise InputError(
            f"{run.name}: `labels_scorer` {judge!r} is not one of several scorers of its answers. There are {have}"
        )
    return _corrected(replace(run, scores=tuple(matched)), matched, LabelFile(f"scorer {judge}", ()), options, settings)


def _head(part: Scores) -> str:
    """Return the scorer's own name, without the value's, out of "scorer/value"."""
    return part.scorer.partition("/")[0]


def _value_name(part: Scores) -> str:
    """Return the value's name out of "scorer/value", "" if there is none."""
    return part.scorer.partition("/")[2]


def _people_scores(part: Scores, people: Sequence[Scores]) -> Scores | None:
    """Return the human scorer's scores of the task and value of the judge's `part`, best of its metric, or None."""
    there = [scores for scores in people if scores.task == part.task]
    own, values = _value_name(part), {_value_name(scores) for scores in there}
    if own in values or not (values == {""} or (own == "" and len(values) == 1)):
        there = [scores for scores in there if _value_name(scores) == own]
    return next((scores for scores in there if scores.metric == part.metric), there[0] if there else None)


def _edited(run: Run, options: LabelOptions, settings: Settings) -> Run:
    """Return the run, its log's score edits as labels of originals. Refuse none and (unless at random) only changes.

    Raises:
        InputError: none is edited, or none of them was right as it was.
    """
    matched, same, n = {}, 0, 0
    for part in run.scores:
        edits = None if part.gradings is None else part.gradings.edits
        if edits is None or edits.shape[:2] != part.values.shape:
            matched[part] = _answer_labels(part, np.full(part.values.shape, np.nan))
            continue
        before, label = edits[:, :, 0], edits[:, :, 1]
        n += int((~np.isnan(before) & ~np.isnan(label)).sum())
        same += int((before == label).sum())
        judge = replace(part, values=before, native=None, gradings=None, answers=None)
        matched[judge] = _answer_labels(judge, label)
    if not n:
        raise InputError(
            f"{run.name}: `labels_scorer` {EDITS!r}: no score of the log has an edit that says who made it "
            "(Inspect's `edit_score` with `provenance`)"
        )
    if not same and not options.at_random:
        raise InputError(
            f"{run.name}: all {n} edits change the score, so what people found right seems to have no edit, and only "
            "wrong scores would count: let them confirm a right score by an edit to the same value, or vouch for it "
            "by `labels_at_random=True`"
        )
    return _corrected(replace(run, scores=tuple(matched)), matched, LabelFile("edits", ()), options, settings)


@dataclass(frozen=True, slots=True, eq=False)
class _Labelled:
    """The labels of the n questions of one task."""

    label: FloatArray
    """(n,) their mean, NaN where there is none, or no score of the judge."""
    seen: FloatArray
    """(n,) the judge's mean score of the answers that were labelled."""
    counts: IntArray
    """(n,) labels, of questions that the judge has not scored, too."""
    chances: FloatArray
    """(n,) probability of being drawn, NaN if it is unknown."""


def _matched(part: Scores, labels: Mapping[Label, int | None], tasks: dict[Label, str], file: str) -> _Labelled:
    """Return one task's mean labels over people. Add labels used to `tasks`. Refuse one without task that fits two.

    Args:
        part: the scores of the answers.
        labels: its labels, with the answer of each, None for the question as a whole.
        tasks: the task of each label that was used before; those used here are put in.
        file: for messages.

    Raises:
        InputError: a label that says no task where several have a question of that name.
    """
    index = {key: i for i, key in enumerate(part.questions.keys)}
    n, K = part.values.shape
    by_answer: dict[tuple[int, int], list[Label]] = {}
    chances = np.full(n, np.nan)
    for label, j in labels.items():
        i = index[label.question]
        if tasks.setdefault(label, part.task) != part.task:
            raise InputError(
                f"{file}, line {label.line}: the tasks {tasks[label]} and {part.task} both have a question "
                f"{label.question!r}, and the row does not say which is labelled: add a column `task`"
            )
        by_answer.setdefault((i, K if j is None else j), []).append(label)
        chances[i] = np.nan if label.chance is None else label.chance
    table, people = np.full((n, K + 1), np.nan), np.zeros((n, K + 1), dtype=np.intp)
    for at, these in by_answer.items():
        table[at] = _mean_of_people(part, these)
        people[at] = len({label.person for label in these})
    return replace(_answer_labels(part, table), counts=people.sum(axis=1), chances=chances)


def _mean_of_people(part: Scores, labels: Sequence[Label]) -> float:
    """Return an answer's mean label, each person counted once. Refuse one person's contradicting labels.

    Raises:
        InputError: the same person, or an unnamed one, gave two different labels.
    """
    each: dict[str | None, Label] = {}
    for label in labels:
        other = each.setdefault(label.person, label)
        if other.value != label.value:
            who = "" if label.person is None else f" by {label.person}"
            raise InputError(
                f"{part.task}: question {label.question!r} is labelled {other.value:g} in line {other.line} and "
                f"{label.value:g} in line {label.line}{who}: several people are told apart by a column `person`, "
                "several answers by a column `repeat`"
            )
    return float(np.mean([label.value for label in each.values()]))


def _answer_labels(part: Scores, labels: FloatArray) -> _Labelled:
    """Return `_Labelled`: each question's mean label, the judge's mean on the same answers. `labels`: (n, K or K + 1).

    Labels of any other number of answers are of the questions.
    """
    judge = question_stats(part.values).mean
    of_answers = np.where(np.isnan(part.values), judge[:, None], part.values)
    stats = question_stats(labels)
    seen = judge
    if labels.shape[1] - part.values.shape[1] in (0, 1):
        scores = np.column_stack([of_answers, judge])[:, : labels.shape[1]]
        seen = question_stats(np.where(np.isnan(labels), np.nan, scores)).mean
    label = np.where(np.isnan(judge), np.nan, stats.mean)
    return _Labelled(label, seen, stats.count, np.full(len(judge), np.nan))


def _corrected(
    run: Run, matched: dict[Scores, _Labelled], labels: LabelFile, options: LabelOptions, settings: Settings
) -> Run:
    """Return the run with corrected scores. Tasks with few labels are joined in their group or left out. Refuse none.

    Where tasks of a group have too few labels for a row of their own, the part is one of all its tasks together.
    """
    if all(np.isnan(these.label).all() for these in matched.values()):
        raise InputError(
            f"{labels.name}: no label is of an answer of {run.name} ({run.model}): where runs are compared, each needs "
            "labels of its own answers"
        )
    kinds: dict[tuple[str, str], list[Scores]] = {}
    for part in matched:
        kinds.setdefault((part.metric, part.scorer), []).append(part)
    scores: list[Scores] = []
    only_groups: list[Scores] = []
    few: list[Scores] = []
    refused: list[str] = []
    for kind, parts in kinds.items():
        short = [part for part in parts if _n_clusters(part, matched[part]) < FEWEST]
        grouped = any((group.metric, group.scorer) == kind for group in run.groups)
        together = bool(short) and grouped and len(parts) > 1
        few += short
        blocks = [parts] if together else [[part] for part in parts if part not in short]
        for block in blocks:
            try:
                corrected = _scores_of(block, matched, options, settings, all_filled=labels.n_empty == 0)
                (only_groups if together else scores).extend(corrected)
            except _ScaleError as error:
                refused.append(str(error))
    if not scores and not only_groups:
        what = refused[0] if refused else f"{_names(few)}: fewer than two labelled questions (clusters): label more"
        raise InputError(what)
    left = [f"left out, with fewer than two labelled questions (clusters): {_names(few)}"] if few else []
    notes = [Note("not_labelled", text) for text in (*left, *(f"left out: {text}" for text in refused))]
    lost = sum(int(these.counts[np.isnan(these.label)].sum()) for these in matched.values())
    missing = sum(part.n_missing for part in (*scores, *only_groups))
    for number, text in (
        (lost, f"{labels.name}: {lost} labels are of questions without a score of the judge, and do not count"),
        (labels.n_empty, f"{labels.name}: {labels.n_empty} rows have no label, as if they had not been drawn"),
        (missing, f"{run.name}: {missing} answers have no score of the judge. Questions without any do not count"),
    ):
        notes += [Note("labels_used", text)] if number else []
    return replace(
        run,
        scores=tuple(replace(part, n_missing=0, missing={}, n_zero=0) for part in scores),
        parts=tuple(replace(part, n_missing=0, missing={}, n_zero=0) for part in only_groups),
        groups=tuple(replace(group, native=None) for group in run.groups),
        corpus=(),
        skipped=(),
        notes=(*run.notes, *notes),
    )


def _n_clusters(part: Scores, these: _Labelled) -> int:
    """Return the number of a task's clusters that have a label."""
    return len({i if part.clusters is None else part.clusters[i] for i in np.flatnonzero(~np.isnan(these.label))})


class _ScaleError(InputError):
    """The error for labels on another scale than the scores."""


def _scores_of(
    parts: Sequence[Scores],
    matched: dict[Scores, _Labelled],
    options: LabelOptions,
    settings: Settings,
    *,
    all_filled: bool = True,
) -> list[Scores]:
    """Return corrected scores for each task of one subset. Refuse another scale, and labels not random nor vouched for.

    If a person left out rows of the drawn part, those with a label must still look like a random subset.
    """
    whole = stack(parts)
    there = ~np.isnan(whole.stats.mean)
    scored, these = whole.take(np.flatnonzero(there)), rows_of(stacked([matched[part] for part in parts]), there)
    judge, at = scored.stats.mean, np.flatnonzero(~np.isnan(these.label))
    bounds = score_range([Ends.of(parts)], settings)
    label, width = _on_scale(parts[0], these.label[at], judge, bounds, options)
    chances = these.chances[at]
    stated = not np.isnan(chances).any()
    unequal = stated and np.ptp(chances) > SLACK
    drawn = options.at_random or (stated and bool(all_filled or unequal))
    # each label stands for 1/π of the questions; where a person stopped early, for as many more
    chances *= min(1.0, float((1 / chances).sum()) / len(scored))
    labelled = part_of(at, len(scored), scored.clusters, None, drawn=drawn, chances=chances if unequal else None)
    labelled = drawn_by_key(labelled, scored.by_key())
    start = np.cumsum([0, *(len(part.questions) for part in parts)])
    if not drawn and len(at) < len(scored):
        order = np.concatenate([benchmark_order(part.questions) + i for part, i in zip(parts, start, strict=False)])
        place = np.cumsum(there) - 1
        _check_random(labelled, scored.strata, judge, place[order[there[order]]], whole.name, options)
    counts = np.where(np.isnan(these.label), 0, these.counts)
    alone = too_few_to_correct(label, labelled.clusters[at], bounds)
    values, columns, few = corrected_values(
        scored.stats, label, these.seen[at], labelled, width, counts, alone_only=alone
    )
    codes = {"judge_corrected"} | ({"few_failures"} if few else set()) | ({"few_labelled_failures"} if alone else set())
    out = []
    for t, part in enumerate(parts):
        rows, own = np.flatnonzero(scored.strata == t), np.flatnonzero(there[start[t] : start[t + 1]])
        out.append(
            replace(
                part,
                values=values[rows, None],
                questions=part.questions if len(own) == len(part.questions) else part.questions.at(own.tolist()),
                clusters=picked(part.clusters, own),
                bounds=bounds,
                native=None,
                factors=None,
                gradings=None,
                asked=None,
                repeats_named=None,
                repeat_names=None,
                repeats_are_runs=False,
                diagnostics=tuple(sorted(codes.union(part.diagnostics))),
                corrected=rows_of(columns, rows),
            )
        )
    return out


OTHER_SCALE = 4.0
"""The most that the largest score and the largest label may differ, as a factor, if no range is known."""


def _on_scale(
    part: Scores,
    label: FloatArray,
    judge: FloatArray,
    bounds: tuple[float, float] | None,
    options: LabelOptions,
) -> tuple[FloatArray, float]:
    """Return (m,) labels on the metric's scale, and the scale's width. Refuse labels on an unnamed scale.

    Raises:
        InputError: they are on another scale, which was not named.
    """
    low, high = bounds or (float(judge.min()), float(judge.max()))
    if (scale := options.scale) is not None:
        if bounds is None:
            raise InputError(
                f"{part.task}, {part.metric}: `label_range` maps labels on the metric's range, which is not known: "
                "say it with `range=(LOW, HIGH)`"
            )
        if label.min() < scale[0] or label.max() > scale[1]:
            raise InputError(f"a label lies outside `label_range` {scale[0]:g}, {scale[1]:g}")
        label, width = low + (label - scale[0]) / (scale[1] - scale[0]) * (high - low), high - low
        return label, width
    slack = 1e-9 * max(1.0, high - low)
    outside = label.min() < low - slack or label.max() > high + slack
    right_or_wrong = bool(np.isin(label, (0.0, 1.0)).all()) and judge.max() > 1
    largest = [float(np.abs(values).max()) for values in (label, judge)]
    unlike = bounds is None and max(largest) > OTHER_SCALE * min(largest) > 0
    if unlike or right_or_wrong or (outside and bounds is not None):
        what, to_do = f"{part.task}, {part.metric}: ", "say with `label_range=(LOW, HIGH)` which labels belong to "
        to_do += "the lowest and the highest score"
        to_do += ", and with `range=(LOW, HIGH)` what these are" if bounds is None else ""
        if options.arrays:
            what, to_do = "", "give labels on the scale of the scores"
        raise _ScaleError(
            f"{what}the labels go from {label.min():g} to {label.max():g} and the scores from {low:g} to {high:g}, "
            f"which looks like another scale: {to_do}"
        )
    return label, max(high, float(label.max())) - min(low, float(label.min()))


def _check_random(
    labelled: Part, tasks: IntArray, judge: FloatArray, order: IntArray, what: str, options: LabelOptions
) -> None:
    """Refuse labels that are not a random subset: lie together, uneven over tasks, or chosen by the judge's score.

    Args:
        labelled: the part.
        tasks: (n,) codes.
        judge: (n,) the judge's mean scores.
        order: (n,) the questions in the order of the benchmark.
        what: task and metric, for the message.
        options: these say what the parameter is called that vouches for the labels.

    Raises:
        InputError: says which.
    """
    position = np.empty(len(order), dtype=np.intp)
    position[order] = np.arange(len(order))
    strata = cluster_codes(tasks)[0][order]
    in_order = replace(labelled, asked=position[labelled.asked], clusters=labelled.clusters[order], strata=strata)
    why = ""
    if not positions_look_random(in_order):
        why = "lie together in the order of the benchmark"
    elif _favours_tasks(in_order):
        why = "are not of all tasks alike"
    elif _chosen_by_score(labelled, judge):
        why = f"have a mean score of {judge[labelled.asked].mean():.2g} by the judge, and all have {judge.mean():.2g}"
    if why:
        raise InputError(
            f"{what}: the {len(labelled.asked)} labelled questions of {len(judge)} are not a random subset: they "
            f"{why}. A mean can be corrected by a random subset only: draw one with `label_sample`, or say "
            f"{'`at_random=True`' if options.arrays else '`labels_at_random=True`'} if this is one"
        )


def _favours_tasks(labelled: Part) -> bool:
    """Return True if labels are spread over tasks more unevenly than by chance."""
    first = np.unique(labelled.clusters, return_index=True)[1]
    tasks = labelled.strata[first]
    T = int(tasks.max()) + 1
    if T == 1:
        return False
    from scipy.stats import hypergeom

    inside = np.isin(labelled.clusters[first], labelled.clusters[labelled.asked])
    sizes, counts = np.bincount(tasks, minlength=T), np.bincount(tasks, weights=inside, minlength=T)
    of = hypergeom(len(tasks), sizes, int(inside.sum()))
    return bool(np.minimum(of.cdf(counts), of.sf(counts - 1)).min() < IN_A_ROW / T)


def _chosen_by_score(labelled: Part, judge: FloatArray) -> bool:
    """Return True if the judge's scores of labelled questions differ from all more than by chance."""
    from scipy.stats import hypergeom

    size = np.bincount(labelled.clusters)
    means = np.bincount(labelled.clusters, weights=judge) / size
    part = means[np.unique(labelled.clusters[labelled.asked])]
    N, m = len(means), len(part)
    if m == N or np.ptp(means) <= 1e-12:
        return False
    few = m < FEWEST_UNITS
    chance = FEW_NOT_RANDOM_P if few else IN_A_ROW
    if np.isclose(part, part[0]).all():  # all failures: as likely as m draws from those alike
        return bool(hypergeom(N, np.isclose(means, part[0]).sum(), m).logpmf(m) < math.log(chance))
    low = np.isclose(means, means.min())
    if few and np.isclose(means[~low], means.max()).all():  # right or wrong: no normal distribution near an end
        drawn, of = int(np.isclose(part, means.min()).sum()), hypergeom(N, int(low.sum()), m)
        return bool(min(of.cdf(drawn), of.sf(drawn - 1)) < chance)
    spread = means.std() * math.sqrt((1 - m / N) / m)
    return bool(abs(part.mean() - means.mean()) > (FEW_NOT_RANDOM_Z if few else NOT_RANDOM_Z) * spread)


def _names(parts: Iterable[Scores]) -> str:
    return some_of([f"{part.task} {part.metric}".strip() for part in parts], MOST_NAMED)


def _unmatched(lost: Sequence[Label], labels: LabelFile, runs: Sequence[Run]) -> str:
    """Return the error message on labels that belong to no answer, with the names that exist."""
    first = lost[0]
    keys = [key for run in runs for part in run.scores[:1] for key in part.questions.keys[:MOST_NAMED]]
    tasks = dict.fromkeys(part.task for run in runs for part in run.scores)
    said = ", ".join(
        f"{name} {value!r}"
        for name, value in (("question", first.question), ("task", first.task), ("model", first.model))
        if value is not None
    )
    return (
        f"{labels.name}, line {first.line}: {said} is not in {some_of([run.name for run in runs], MOST_NAMED)}, and "
        f"{len(lost)} of {len(labels.labels)} labels match no answer. The questions are called "
        f"{', '.join(keys[:MOST_NAMED])}, … and the tasks {some_of(list(tasks), MOST_NAMED)}. `label_sample` "
        "writes a file with the right names"
    )


def label_arrays(part: Scores, labels: ArrayLike, options: LabelOptions, settings: Settings) -> Scores:
    """Return scores corrected by (n,) or (n, K) labels, NaN: none. Refuse other shapes, too few, not random, off scale.

    Raises:
        InputError: labels that do not fit or cannot be used.
    """
    table = number_array(labels, "labels")
    table = table[:, None] if table.ndim == 1 else table
    if table.shape not in ((len(part.values), 1), part.values.shape):
        raise InputError(f"labels of the shape {table.shape} for scores of the shape {part.values.shape}")
    these = _answer_labels(part, table)
    if _n_clusters(part, these) < FEWEST:
        raise InputError("fewer than two labelled questions (clusters): no standard error. Label more answers")
    return _scores_of([part], {part: these}, options, settings)[0]
