"""One run of each model from its many results files, and the part of it that was asked for."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from os.path import commonpath, split
from pathlib import Path
from typing import Any

import numpy as np

from ..data.clusters import ClusterSpec, UserSpec, check_tasks
from ..data.notes import Note, merge_notes
from ..data.scores import CorpusScores, Group, ReadOptions, Run, Scores, Skipped
from ..errors import FinalError, InputError, NotThereError, are, counted, some_of
from .paths import is_url

_STAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d")
"""Pattern of the starting time in the file names that harnesses give."""


def usable(answers: Sequence[Run | InputError], place: object, *, strict: bool = False) -> list[Run]:
    """Return the runs. Errors become notes on them, or are raised: if `strict`, final, alone, or none can be read.

    A file that cannot be used (cut, not fetched, of another format) becomes a note of all runs, which says why, and
    whether older files next to it are used instead.
    """
    runs, errors = runs_and_errors(answers)
    for error in errors:
        if strict or isinstance(error, FinalError) or len(answers) == 1:
            raise error
    if errors and not runs:
        raise InputError(f"{place}: none of its {len(errors)} files can be used. The first: {errors[0]}")
    notes = [Note("left_out", f"left out: {left_out_message(error, runs)}") for error in errors]
    return [replace(run, notes=merge_notes(run.notes, notes)) for run in runs] if notes else runs


def runs_and_errors(answers: Iterable[Run | InputError]) -> tuple[list[Run], list[InputError]]:
    """Split runs and errors that reading gave into a list of runs and a list of errors."""
    runs: list[Run] = []
    errors: list[InputError] = []
    for answer in answers:
        if isinstance(answer, InputError):
            errors.append(answer)
        else:
            runs.append(answer)
    return runs, errors


def left_out_message(error: InputError, runs: Sequence[Run]) -> str:
    """Return why a file is skipped, and which older files of its folder are read instead.

    Args:
        error: of the file.
        runs: those of its place, before they are joined.
    """
    folder, name = split(error.path)
    begun = _STAMP.search(name)
    if begun is None:
        return str(error)
    beside = [file for where, file in (split(run.path) for run in runs) if where == folder]
    older = [file for file in beside if (stamp := _STAMP.search(file)) and stamp[0] < begun[0]]
    if not older:
        return str(error)
    more = f" and {len(older) - 1} more" if len(older) > 1 else ""
    return f"{error}. Older files next to it are read ({older[-1]}{more}): what they show may have been run again in it"


def joined(runs: Sequence[Run], place: object) -> list[Run]:
    """Join runs of one place by model, newer results of a task in place of older. Those of unclear order stay apart.

    Of a task that one harness wrote twice into one folder the newest with its answers counts, and a note says which
    do not. Where that cannot be told (files without a date), where one name stands for two sets of questions (a task
    with other arguments), or where a task lies in two folders (two experiments), the model's runs stay apart.

    Args:
        runs: as adapters read them.
        place: the folder or file that was named.
    """
    models: dict[str, list[Run]] = {}
    for run in runs:
        models.setdefault(run.model, []).append(run)
    out: list[Run] = []
    for same in models.values():
        folders: dict[str, list[Run]] = {}
        for run in same:
            folders.setdefault(str(Path(run.path).parent), []).append(run)
        each = [run for runs_there in folders.values() for run in _union(runs_there, place)]
        out += each if len(folders) == 1 else _union(each, place, choose=False)
    return out


def tasks_of(run: Run) -> dict[str, None]:
    """Return the names of a run's tasks as the keys of a dictionary, in order. Groups are not included."""
    parts: list[Scores | CorpusScores | Skipped] = [*run.scores, *run.parts, *run.corpus, *run.skipped]
    return dict.fromkeys(part.task for part in parts)


def _union(runs: Sequence[Run], place: object, *, choose: bool = True) -> list[Run]:
    """Join runs of one model into one with all their tasks. Return all of them if the newest is not known.

    All of them where it is not known which of two counts, or not to be chosen.
    """
    if len(runs) < 2:
        return list(runs)
    having: dict[tuple[str, str], list[Run]] = {}
    for run in runs:
        for task in tasks_of(run):
            having.setdefault((run.harness, task), []).append(run)
    owners: dict[tuple[str, str], Run] = {}
    for key, several in having.items():
        counting = _that_counts(several, key[1], choose)
        if counting is None:
            return list(runs)
        owners[key] = counting
    kept = [run for run in runs if any(owners[run.harness, task] is run for task in tasks_of(run))]
    notes = merge_notes(*(run.notes for run in kept), _joining_notes(owners, having))
    if len(kept) == 1:
        return [replace(kept[0], notes=notes)]
    where = _common([run.path for run in kept], place)

    def owned(name: str) -> tuple[Any, ...]:
        entries = ((run, entry) for run in kept for entry in getattr(run, name))
        about = (
            (run, entry, _tasks_under(run, entry["task"]) if isinstance(entry, Mapping) else {entry.task})
            for run, entry in entries
        )
        return tuple(
            entry for run, entry, tasks in about if all(owners.get((run.harness, task), run) is run for task in tasks)
        )

    by_task: dict[str, Any] = {name: owned(name) for name in ("scores", "parts", "corpus", "skipped", "stops", "drawn")}
    return [
        replace(
            kept[0],
            name=where,
            path=where,
            date=max(run.date for run in kept),
            groups=tuple(_groups(kept, owners)),
            notes=notes,
            headline=frozenset(
                key for run in kept for key in run.headline if owners.get((run.harness, key[0]), run) is run
            ),
            measurable=tuple(dict.fromkeys(name for run in kept for name in run.measurable)),
            **by_task,
        )
    ]


def _tasks_under(run: Run, name: str) -> set[str]:
    """Return the tasks that a record of this name is about: the task itself, or those of the group.

    The run may not know the group, if it was made for that one session. It is then taken for all tasks with a part.
    """
    if name in tasks_of(run):
        return {name}
    of_group = next((group.tasks for group in run.groups if group.name == name), None)
    return {record["task"] for record in run.drawn} if of_group is None else set(of_group)


def _that_counts(runs: Sequence[Run], task: str, choose: bool) -> Run | None:
    """Return the newest run that has scores of this task. None if it is not known which run that is.

    The newest counts of those with the task's answers; the others may have only lm-eval's or Inspect's own values.
    """
    answered = [run for run in runs if _answered(run, task)] or runs
    newest = max(answered, key=lambda run: run.date)
    for run in runs:
        if run is newest:
            continue
        rivals, copied = run in answered, run in answered and run.date == newest.date
        clear = (bool(run.date) or not rivals) and (_equal(run, newest, task) if copied else choose)
        if not clear or not _same_questions(run, newest, task):
            return None
    return newest


def _answered(run: Run, task: str) -> bool:
    """Return True if a run has per-question scores of this task, not only the harness's own value."""
    parts: list[Scores | CorpusScores] = [*run.scores, *run.parts, *run.corpus]
    return any(part.task == task for part in parts)


def _groups(runs: Sequence[Run], owners: dict[tuple[str, str], Run]) -> Iterable[Group]:
    """Yield each group once, from the newest run that has it. `native` is dropped if tasks come from others."""
    newest: dict[tuple[str, str, str], tuple[Group, Run]] = {}
    for run in runs:
        for group in run.groups:
            key = (group.name, group.metric, group.scorer)
            if key not in newest or run.date > newest[key][1].date:
                newest[key] = group, run
    for group, run in newest.values():
        own = all(owners.get((run.harness, task)) is run for task in group.tasks)
        yield group if own else replace(group, native=None)


def _equal(a: Run, b: Run, task: str) -> bool:
    """Return True if two runs' scores on a task (values without scores) are exactly equal, as of a file and a copy."""

    def content(run: Run) -> dict[tuple[str, str, str], Any]:
        rest: list[CorpusScores | Skipped] = [*run.corpus, *run.skipped]
        values: dict[tuple[str, str, str], Any] = {part.key: part.native for part in rest if part.task == task}
        for part in run.scores:
            if part.task == task:
                values[part.key] = tuple(part.questions.keys), np.nan_to_num(part.values, nan=np.inf).tolist()
        return values

    return content(a) == content(b)


def _same_questions(first: Run, second: Run, task: str) -> bool:
    """Return True if two runs share a question of this task, or if that cannot be known."""
    from ..data.matching import pair_questions

    a, b = (next((part.questions for part in run.scores if part.task == task), None) for run in (first, second))
    try:
        return a is None or b is None or bool(pair_questions(a, b).rows_a)
    except InputError:  # their texts cannot be read any more
        return True


def _joining_notes(
    owners: Mapping[tuple[str, str], Run], having: Mapping[tuple[str, str], Sequence[Run]]
) -> list[Note]:
    """Return notes that name the tasks read from one run although other runs have them too."""
    alike: dict[tuple[Run, ...], list[str]] = {}
    for key, runs in having.items():
        alike.setdefault((owners[key], *(run for run in runs if run is not owners[key])), []).append(key[1])
    out = []
    for (owner, *others), tasks in alike.items():
        if not others:
            continue
        copies = [run.date == owner.date for run in others]
        why = "its copy" if all(copies) else "older runs or copies" if any(copies) else "older runs of it"
        if len(others) == 1 and not all(_answered(others[0], task) for task in tasks) and _answered(owner, tasks[0]):
            why = "without the samples"
        said = (
            f"{some_of(tasks, 3)}: read from {owner.name}, not from {some_of([run.name for run in others], 3)} ({why})"
            ": name a file to choose it, or join the runs with `as_repeats=True`"
        )
        out.append(Note("one_of_several", said, tasks[0] if len(tasks) == 1 else None))
    return out


def _common(paths: Sequence[str], place: object) -> str:
    """Return the folder that contains all these files, or `place` if there is none."""
    if all(paths) and not any(map(is_url, paths)):
        try:
            return commonpath(paths)
        except ValueError:  # some are relative, some not
            pass
    return str(place)


def select(run: Run, options: ReadOptions) -> Run:
    """Return the run's wanted tasks, metrics and scorers (globs), with notes on lacking ones. Refuse if all lack."""
    run = replace(run, scores=tuple(_renamed(part, options.metrics) for part in run.scores))
    kept: list[Any] = [*run.scores, *run.groups, *run.corpus, *run.skipped]
    notes = run.notes
    for option, wanted in (("tasks", options.tasks), ("metrics", options.metrics), ("scorers", options.scorers)):
        # measures belong to the answers, whatever scored them; `measured` has chosen which
        named = kept if option == "tasks" else [row for row in kept if getattr(row, "unit", None) is None]
        names = {id(row): _filtered_name(row, option) for row in named}
        have = list(dict.fromkeys(names.values()))
        if not wanted or not have:
            continue
        unknown = [name for name in wanted if not any(is_meant(other, name) for other in have)]
        if unknown:  # another run may have it: two harnesses name one scorer differently
            absent = NotThereError([run.name], option, unknown, have)
            if len(unknown) == len(wanted):
                raise absent
            notes += (Note("not_there", str(absent)),)
        meant = {name for name in have if any(is_meant(name, other) for other in wanted)}
        kept = [row for row in kept if names.get(id(row)) in {*meant, None}]
    chosen, tasks = {id(row) for row in kept}, {_filtered_name(row, "tasks") for row in kept}
    below = tasks.union(*(row.tasks for row in kept if isinstance(row, Group)))
    of_others = {note.task for note in notes if options.tasks} - {None, *below}

    def those(rows: Sequence[Any]) -> tuple[Any, ...]:
        return tuple(row for row in rows if id(row) in chosen)

    rest = tuple(part for part in run.scores if id(part) not in chosen)
    return replace(
        run,
        scores=those(run.scores),
        parts=(*run.parts, *rest) if those(run.groups) else (),
        groups=those(run.groups),
        corpus=those(run.corpus),
        skipped=those(run.skipped),
        notes=tuple(note for note in notes if note.task not in of_others),
        stops=tuple(x for x in run.stops if x["task"] in below or below & _tasks_under(run, x["task"])),
        drawn=tuple(record for record in run.drawn if record["task"] in below),
    )


def _lacking(n: int) -> str:
    return counted(n, "answer has", "answers have")


def with_causes(run: Run, missing: str) -> Run:
    """Return the run with notes that count missing answers by cause, and name causes in `missing` without effect."""
    notes: list[Note] = []
    for part in run.scores:
        explained = sum(part.missing.values())
        each = ", ".join(f"{n:,} {cause}" for cause, n in sorted(part.missing.items(), key=lambda pair: -pair[1]))
        if part.unit is not None:
            said = f" ({each.replace('_', ' ')})" if each else ""
            lacking = f"{_lacking(part.n_missing)} no {part.metric}{said} and {are(part.n_missing)} left out"
            notes += [Note("missing", lacking).of(part.task)] * bool(part.n_missing)
            continue
        if explained:
            kept = {0: "left out", part.n_missing: "counted as wrong"}
            done = kept.get(part.n_zero, f"left out but for {part.n_zero:,}, which count as wrong")
            text = f"{_lacking(part.n_missing)} no score ({each}) and {are(part.n_missing)} {done}"
            text += (
                "" if part.n_zero or part.lacks_zero else "; `missing='CAUSE=zero'` counts those of a cause as wrong"
            )
            notes.append(Note("missing", text).of(part.task))
        if explained < part.n_missing and "=" in missing:
            does = "`missing='zero'` counts them as wrong"
            if part.lacks_zero:
                does = "`range=(LOW, HIGH)` shows what they could change"
            text = (
                f"{_lacking(part.n_missing - explained)} no score and the run does not say why: `missing` with a "
                f"cause does not change them, {does}"
            )
            notes.append(Note("missing_without_cause", text).of(part.task))
    there = list(dict.fromkeys(cause for part in run.scores for cause in part.missing))
    for cause in (piece.partition("=")[0].strip() for piece in missing.split(",") if "=" in piece):
        told = not there and any(part.n_missing for part in run.scores if part.unit is None)  # above, for each task
        if cause not in there and not told:
            have = f": the causes that it has are {', '.join(there)}" if there else ""
            text = f"`missing` with {cause!r} changes nothing, because no answer is missing for this cause{have}"
            notes.append(Note("missing_without_cause", f"{run.name}: {text}"))
    return replace(run, notes=merge_notes(run.notes, notes)) if notes else run


def check_clusters(cluster: str | None, runs: Iterable[Run]) -> None:
    """Refuse a `cluster` setting `TASK=SPEC` for a task that none of the runs has.

    Raises:
        InputError: lists the tasks.
    """
    if cluster is not None:
        check_tasks(ClusterSpec.parse(UserSpec(cluster)), (task for run in runs for task in tasks_of(run)))


def _renamed(part: Scores, wanted: Sequence[str]) -> Scores:
    """Return the scores renamed to the wanted metric, if that is one of the names they may have."""
    names = (part.metric, *(part.names or ()))
    called = next((name for name in names if any(is_meant(name, pattern) for pattern in wanted)), part.metric)
    return part if called == part.metric else replace(part, metric=called, names=(called,))


def is_meant(name: str, wanted: str) -> bool:
    """Return True if a name equals the wanted text, or matches it as a glob."""
    return name == wanted or fnmatchcase(name, wanted)


def _filtered_name(row: Any, option: str) -> str:
    """Return an item's task, metric or scorer, which the option `tasks`, `metrics` or `scorers` filters by."""
    return str(row.name if option == "tasks" and isinstance(row, Group) else getattr(row, option[:-1]))


def travelling(run: Run) -> Run:
    """Return the run without its corpus metrics' data, which cannot be pickled for another process."""
    corpus = (replace(part, records=(), aggregate=None, stats=None, value=None) for part in run.corpus)
    return replace(run, corpus=tuple(corpus))
