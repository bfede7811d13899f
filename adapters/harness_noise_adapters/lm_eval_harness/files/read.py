"""lm-eval's finished runs as `Run`s: a folder, a results file, or a samples file, 0.4.3 to 0.5 dev.

The results file says what was measured and how it was aggregated; the samples files hold the values.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any

from harness_noise.analysis.drawing import with_record
from harness_noise.data.clusters import ClusterSpec
from harness_noise.data.scores import ReadOptions, Run, Skipped, with_groups
from harness_noise.errors import InputError

from ..scoring import presets
from ..scoring.aggregates import Budget
from ..scoring.clusters import clusters
from ..scoring.gather import Gathered, gather
from ..scoring.groups import groups
from . import outputs
from .measure import asked_questions, cut_short, group_rows, limited, score_answers, task_facts, wanted_of
from .native import Native
from .outputs import Output
from .samples import Samples
from .scanning import read_samples
from .wanted import Wanted

__all__ = ["Reading", "read", "read_output", "zeros_for_missing"]


def read(output: Output, options: ReadOptions) -> Run:
    """One run.

    Args:
        output: its files; see `outputs.find`.
        options: `cluster` is a SPEC over the document; `columns["question"]` a field of it that
            identifies a question in place of lm-eval's doc_hash.

    Raises:
        InputError: there is nothing that can be used; says where and what to do.
    """
    return zeros_for_missing(read_output(output, options), options)


@dataclass(frozen=True, slots=True)
class Reading:
    """One run and what it was read from."""

    run: Run
    """Its missing scores are NaN."""
    results: dict[str, Any]
    """The results file's object without our additions; empty where there is none."""
    samples: dict[str, Samples]
    wanted: dict[str, Wanted]


def read_output(output: Output, options: ReadOptions) -> Reading:
    """Read the files of one run."""
    native = Native(outputs.read_results(output.results)) if output.results is not None else Native({})
    if output.only is not None:
        there = [output.only]
    else:
        there = list(native.tasks if output.results is not None else output.samples)
    tasks = _asked_for(there, native, options)
    # for whoever selects: to say what there is, and which of two files of a task counts
    unread = [Skipped(task, "", "", "it was not asked for") for task in there if task not in tasks]
    notes: list[str] = []
    if output.results is None:
        notes.append(
            f"{output.path.name}: there is no results file of this run beside it, so lm-eval's own values, its "
            "groups and the direction of its metrics are unknown; every numeric metric is read as a mean"
        )
    spec = None if options.cluster is None else ClusterSpec.parse(options.cluster)
    samples: dict[str, Samples] = {}
    known: dict[str, Wanted] = {}
    found, budget = Gathered(notes=notes), Budget()
    for task in tasks:
        if task in output.samples:
            wanted = known[task] = wanted_of(native, task, _looked_up(spec, task), options)
            samples[task] = read_samples(output.samples[task], wanted)
            notes += score_answers(output.samples[task], wanted, native, samples[task])
            gather(task_facts(native, samples[task], task), samples[task].columns, budget, found)
            notes += cut_short(native, task, samples[task], [part for part in found.scores if part.task == task])
        else:
            found.skipped += [
                Skipped(task, *key, "there is no samples file for it: run lm-eval with --log_samples", value)
                for key, value in native.reported.get(task, {}).items()
            ]
    if not (found.scores or found.corpus or found.skipped) and (tasks or not unread):
        raise InputError(
            f"{output.path}: no metric in it that is named like lm-eval's since 0.4, with its filter (`acc,none`). "
            "Older versions and other programs write means alone: evaluate again with lm-eval 0.4 and --log_samples, "
            "or give the scores of the answers as a table with the columns question and score"
        )
    notes += limited(native, list(samples))
    labels = clusters(spec, {task: asked_questions(native, item, task) for task, item in samples.items()}, notes)
    found.skipped += unread
    rows = list(group_rows(native)) if output.only is None else []
    run = found.run(
        labels,
        model=native.model() or output.path.resolve().parent.name,
        name=str(output.path),
        harness="lm-eval",
        path=str(output.path),
        date=output.date(native.results),
        groups=groups(rows, native.reported, native.effective, found.scores),
    )
    inner = [
        replace(part, outer=item.outer) if part.clusters == item.clusters else part
        for part in run.scores for item in [samples[part.task]]
    ]  # fmt: skip
    run = replace(run, scores=tuple(inner))
    drawn = [item for item in native.drawn if item["task"] in samples]
    run = with_record(run, native.looks, drawn, native.original)
    return Reading(with_groups(run, options.groups), native.results, samples, known)


def _looked_up(spec: ClusterSpec | None, task: str) -> str | None:
    """What is looked up in each document for its cluster; None where nothing is, or the index counts."""
    found = None if spec is None else presets.resolve(spec, task)
    return None if presets.is_parallel(found) else found


def zeros_for_missing(reading: Reading, options: ReadOptions) -> Run:
    """The run; with `--missing zero`, a score that was asked for and is missing is 0 and stays counted."""
    import numpy as np

    run = reading.run
    if options.missing != "zero":
        return run
    filled = []
    for part in run.scores:
        column = reading.samples[part.task].columns.get((part.metric, part.scorer))
        # what follows from the answers (acc_prob, pass@k) is asked for on every question
        asked = np.True_ if column is None else column.matrix(len(part.questions))[1]
        filled.append(replace(part, values=np.where(np.isnan(part.values) & asked, 0.0, part.values)))
    return replace(run, scores=tuple(filled))


def _asked_for(tasks: list[str], native: Native, options: ReadOptions) -> list[str]:
    """The tasks that `--task` names, and those of lm-eval's groups that it names; all where it names none."""
    if not options.tasks:
        return tasks
    keep: set[str] = set()
    for pattern in options.tasks:
        keep.update(task for task in tasks if fnmatchcase(task, pattern))
        for name in native.group_names():
            if fnmatchcase(name, pattern):
                keep.update(native.leaves(name))
    return [task for task in tasks if task in keep]
