"""Several runs of one model, joined as the repeats of one run (`--as-repeats`)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from filecmp import cmp
from os.path import realpath
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from ..arrays import AnyArray, IntArray
from ..data.matching import ids_are_numbers, joint_clusters, same_partition, union_of_questions
from ..data.notes import Note, merge_notes
from ..data.run_names import differ_in_number, without_run
from ..data.scores import CorpusScores, Gradings, Group, OnQuestions, Run, Scores, Skipped, all_alike, causes_of
from ..errors import InputError


def as_repeats(runs: Sequence[Run]) -> list[Run]:
    """Return one run per model, joined of its runs: repeats (answers per question) and notes of all. Refuse unsure ids.

    A question that only some runs have keeps the repeats it has; of what only one run measured, that run's
    are all there are. The order of models is kept. Where every run is of another model, a note says so.

    Raises:
        InputError: two runs of a model with no question in common, or with ids that only number their rows.
    """
    models: dict[str, list[Run]] = {}
    for run in map(_without_number, runs):
        models.setdefault(run.model, []).append(run)
    joined = [_join(group) for group in models.values()]
    if len(joined) == len(runs) > 1:
        joined[0] = replace(joined[0], notes=(*joined[0].notes, _nothing_joined(list(models))))
    return joined


def _nothing_joined(models: Sequence[str]) -> Note:
    """Return the note that no runs were joined as repeats, because each run is of another model."""
    named = ", ".join(models[:3]) + (f" and {len(models) - 3} more" if len(models) > 3 else "")
    said = (
        f"`as_repeats` joined nothing: every run is of another model ({named}). Give the runs of one model one name "
        "in their `model` column, or file names that number the run, such as m_run1.csv and m_run2.csv"
    )
    return Note("nothing_joined", said)


def _without_number(run: Run) -> Run:
    """Return the run with the run number cut from its model name, if that name is its file's name."""
    name = Path(run.path)
    while name.suffix and name.stem != run.model:
        name = name.with_suffix("")
    named_by_file = bool(run.path) and run.model == name.stem
    stem = without_run(run.model) if named_by_file else None
    return run if stem is None else replace(run, model=stem or name.parent.name or run.model)


def without_copies(runs: Sequence[Run]) -> tuple[list[Run], list[Note]]:
    """Drop runs that were given twice (same file and model). Return the others, and a note for each drop."""
    kept: dict[tuple[str, ...], Run] = {}
    notes = []
    for i, run in enumerate(runs):
        key = (realpath(run.path), realpath(run.name), run.model) if run.path else (str(i),)
        if key in kept:
            said = f"{run.name}: the same run was given more than once and counts once"
            notes.append(Note("given_twice", said))
        kept.setdefault(key, run)
    return list(kept.values()), notes


def copy_notes(runs: Sequence[Run]) -> list[Note]:
    """Return a note on each run that has the scores of another run and the same or an identical file."""
    notes = []
    sizes: dict[int | str, list[Run]] = {}
    for run in runs:
        if not run.path:
            continue
        file = Path(run.path)
        size = file.stat().st_size if file.is_file() else realpath(file)
        same = next((other for other in sizes.get(size, ()) if _copied(other, run)), None)
        if same is not None:
            one_file = realpath(same.path) == realpath(run.path)
            what = f"{run.name} is given twice" if one_file else f"{same.name} and {run.name} hold the same bytes"
            said = f"{what}, so there is nothing to compare: name two different runs"
            notes.append(Note("one_run_twice", said))
        sizes.setdefault(size, []).append(run)
    return notes


def is_one_run(run: Run, other: Run) -> bool:
    """Return True if two runs have equal scores and one file and model, or identical files that record a date.

    Equal files without a date may be of two runs: a model that always answers alike writes equal tables.
    """
    if not (run.path and other.path):
        return False
    one = realpath(run.path) == realpath(other.path)
    return (one or bool(run.date)) and bool(copy_notes((run, other)))


def _copied(run: Run, other: Run) -> bool:
    """Return True if two runs have equal scores, and one path and model or else byte-identical files."""
    values = [[part.values for part in side.scores] for side in (run, other)]
    alike = len(values[0]) == len(values[1]) and all(
        np.array_equal(a, b, equal_nan=True) for a, b in zip(*values, strict=True)
    )
    if realpath(run.path) == realpath(other.path):  # the sides of a table may be two of its columns
        return alike and run.model == other.model
    return alike and cmp(run.path, other.path, shallow=False)


def _join(runs: Sequence[Run]) -> Run:
    runs, twice = without_copies(runs)
    first = runs[0]
    notes = list(merge_notes(*(run.notes for run in runs), twice, copy_notes(runs)))
    if len(runs) == 1:
        return replace(first, notes=tuple(notes))
    for run in runs[1:]:
        _check_ids(first, run)
    scores = _join_scores([run.scores for run in runs], first, notes)
    parts = _join_scores([run.parts for run in runs], first, notes)
    corpus = by_what(part for run in runs for part in run.corpus)
    groups = by_what(group for run in runs for group in run.groups)
    skipped = by_what(skip for run in runs for skip in run.skipped)
    return replace(
        first,
        name=f"{first.name} + {len(runs) - 1} more",
        path="",
        scores=scores,
        parts=parts,
        corpus=tuple(_join_corpus(same, first, notes) for same in corpus.values()),
        # the value of one run is none of their mean
        groups=tuple(replace(same[0], native=None) for same in groups.values()),
        skipped=tuple(same[0] if len(same) == 1 else replace(same[0], native=None) for same in skipped.values()),
        notes=tuple(notes),
        stops=(),  # each run stopped for itself
        drawn=tuple(record for record in first.drawn if all(record in run.drawn for run in runs)),
        headline=frozenset().union(*(run.headline for run in runs)),
    )


def _check_ids(first: Run, second: Run) -> None:
    """Refuse to join two files as repeats if only row numbers suggest that their questions are the same.

    A harness says its task, texts say the questions, and names that differ in a number alone say that it is a run's.

    Raises:
        InputError: names the two files.
    """
    if not (first.path and second.path) or differ_in_number(first.path, second.path):
        return
    for part in first.scores:
        other = next((each for each in second.scores if each.key == part.key), None)
        if other is None or part.task != first.harness or other.task != second.harness:
            continue
        each = (part.questions, other.questions)
        if any(questions.kind != "question" for questions in each):  # an instance of a benchmark, an id of a harness
            continue
        if all(ids_are_numbers(questions.keys) for questions in each) and any(x.inputs is None for x in each):
            raise InputError(
                f"{first.path} and {second.path} cannot be taken for repeats: their ids only number the questions, "
                "and no texts tell whether these are the same. If each file is a task, say `columns={'task': '@file'}`."
                " If they are runs, give their names a number (run_1, run_2) or add a column of texts"
            )


T = TypeVar("T", Scores, CorpusScores, Group, Skipped)


def by_what(items: Iterable[T]) -> dict[tuple[str, str, str], list[T]]:
    """Group items into lists in a dictionary by their `key`: (task or group, metric, scorer)."""
    out: dict[tuple[str, str, str], list[T]] = {}
    for item in items:
        out.setdefault(item.key, []).append(item)
    return out


def _join_scores(runs: Sequence[Sequence[Scores]], first: Run, notes: list[Note]) -> tuple[Scores, ...]:
    """Join several runs' scores by task, metric, scorer: repeats side by side. Add to `notes` what some lack."""
    measured = by_what(_distinct(part) for scores in runs for part in scores)
    most = max(map(len, measured.values()), default=0)
    for (task, metric, _), parts in measured.items():
        if len(parts) < most:
            notes.append(Note("not_in_all_runs", f"only {len(parts)} of {most} runs have it").of(task, metric))
    return tuple(parts[0] if len(parts) == 1 else _side_by_side(parts, first, notes) for parts in measured.values())


def _side_by_side(parts: Sequence[Scores], run: Run, notes: list[Note]) -> Scores:
    """Join a task's scores of several runs: questions united, repeats side by side. Add `notes`. Refuse none shared."""
    first = parts[0]
    on, rows = _on_all_questions(parts, run, notes)
    n = len(on["questions"])
    texts = _joined_repeats([part.texts for part in parts], rows, n, 0)
    codes = {code for part in parts for code in part.diagnostics}
    if texts is not None and all_alike(texts):  # one answer, which was graded again
        codes.add("identical_repeats")
    return replace(
        first,
        **on,
        native=None,
        factors=None,
        repeat_names=None,
        stops_on=None,  # each run was cut to its first answers
        values=_joined_repeats([part.values for part in parts], rows, n, np.nan),
        per=_joined_repeats([part.per for part in parts], rows, n, np.nan),
        usage={},
        asked=_joined_repeats([part.was_asked for part in parts], rows, n, False),
        late=None,
        n_missing=sum(part.n_missing for part in parts),
        missing=causes_of(parts),
        n_zero=sum(part.n_zero for part in parts),
        # for parts that were drawn apart, the probability that a question is in one of them is unknown
        chances=first.chances if all(part.chances == first.chances for part in parts) else {},
        diagnostics=tuple(sorted(codes)),
        gradings=None if texts is None else Gradings(texts),
        answers=None,
    )


def _join_corpus(parts: Sequence[CorpusScores], run: Run, notes: list[Note]) -> CorpusScores:
    """Join one corpus metric of several runs as further repeats. Leave out runs with other sums, with a note."""
    first = parts[0]
    if len(parts) == 1 or (first.stats is None and not first.records):
        return first  # for a name no more is needed
    alike = [part for part in parts if _n_sums(part) == _n_sums(first)]
    if len(alike) < len(parts):
        said = f"only {len(alike)} of {len(parts)} runs have it"
        notes.append(Note("not_in_all_runs", said).of(first.task, first.metric))
    on, rows = _on_all_questions(alike, run, notes)
    n = len(on["questions"])
    stats = _joined_repeats([part.stats for part in alike], rows, n, np.nan)
    records = (
        ()
        if stats is not None
        else _joined_repeats([_record_table(part.records) for part in alike], rows, n, None).tolist()
    )
    n_missing = sum(part.n_missing for part in alike)
    return replace(first, **on, stats=stats, records=tuple(map(tuple, records)), native=None, n_missing=n_missing)


def _n_sums(part: CorpusScores) -> int | None:
    """Return the number of sums that the corpus metric is computed from. None if it is a function called on records."""
    return None if part.stats is None else part.stats.shape[2]


def _record_table(records: Sequence[Sequence[Any]]) -> AnyArray:
    """Return the records as an (n, K) object array, padded with None."""
    out = np.full((len(records), max(map(len, records))), None, dtype=object)
    for i, row in enumerate(records):
        for k, record in enumerate(row):
            out[i, k] = record
    return out


def _on_all_questions(
    parts: Sequence[OnQuestions], run: Run, notes: list[Note]
) -> tuple[dict[str, Any], list[IntArray]]:
    """Unite runs' questions: return fields, each run's rows in the union. Add `notes`. Refuse runs that share none.

    Raises:
        InputError: a part shares no question with those before it.
    """
    questions, rows, said = union_of_questions([part.questions for part in parts])
    notes += [note.of(parts[0].task) for note in said]
    if not all(np.isin(at, np.concatenate(rows[:k])).any() for k, at in enumerate(rows) if k):
        raise InputError(
            f"{parts[0].task}: two runs of {run.model} have no question in common, so they cannot be repeats"
        )
    clusters, spec = _clusters(parts, rows, len(questions), run, notes)
    return {"questions": questions, "clusters": clusters, "cluster_spec": spec}, rows


def _joined_repeats(arrays: Sequence[AnyArray | None], rows: Sequence[IntArray], n: int, blank: object) -> Any:
    """Return the runs' arrays as one (n, K, …) array, each at its `rows`, else `blank`. None if a run has no array."""
    present = [array for array in arrays if array is not None]
    if len(present) < len(arrays):
        return None
    blocks = [np.full((n, *array.shape[1:]), blank, dtype=array.dtype) for array in present]
    for block, at, array in zip(blocks, rows, present, strict=True):
        block[at] = array
    return np.concatenate(blocks, axis=1)


def _distinct(scores: Scores) -> Scores:
    """Return the scores with one column if the run gave one answer K times, else unchanged."""
    if "identical_repeats" not in scores.diagnostics:
        return scores
    rest = tuple(code for code in scores.diagnostics if code != "identical_repeats")
    return replace(scores, **scores.answers_at(columns=np.s_[:1]), diagnostics=rest)


def _clusters(
    parts: Sequence[OnQuestions], rows: Sequence[IntArray], n: int, run: Run, notes: list[Note]
) -> tuple[tuple[str, ...] | None, str | None]:
    """Return united questions' clusters (None if no run has any) and SPEC, with `notes`. Refuse if some lack."""
    named = [k for k, part in enumerate(parts) if part.clusters is not None]
    if not named:
        return None, parts[0].cluster_spec
    clusters = joint_clusters(parts, rows, n)
    if None in clusters:
        raise InputError(
            f"{parts[0].task}: one run of {run.model} has clusters, another has none and other questions: which "
            "clusters those are in is not known. Use `cluster=SPEC`, or `cluster='none'`"
        )
    for k in named[1:]:
        if not same_partition([clusters[i] for i in rows[k]], parts[k].clusters or ()):
            text = f"two runs of {run.model} cluster the questions differently. Those of {run.name} are used"
            notes.append(Note("clusters_differ", text).of(parts[0].task))
    return tuple(cluster for cluster in clusters if cluster is not None), parts[named[0]].cluster_spec
