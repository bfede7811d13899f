"""lm-eval's finished runs as `Run`s: a folder, a results file, or a samples file, 0.4.3 to 0.5 dev.

The results file says what was measured and how it was aggregated; the samples files hold the values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any

from harness_noise.data.clusters import ClusterSpec
from harness_noise.data.scores import CorpusScores, ReadOptions, Run, Scores, Skipped, with_groups
from harness_noise.errors import InputError

from ..scoring import choices, presets
from . import native_block as inject
from . import outputs
from .measure import Measured, measured
from .native import Native, _several
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
    from ..scoring.aggregates import Budget

    native = Native(outputs.load(output.results)) if output.results is not None else Native({})
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
    clusters = Clusters(ClusterSpec.parse(options.cluster) if options.cluster is not None else None, native)
    samples: dict[str, Samples] = {}
    known: dict[str, Wanted] = {}
    parts: list[Measured] = []
    budget = Budget()
    for task in tasks:
        if task not in output.samples:
            parts += [
                Skipped(task, *key, "there is no samples file for it: run lm-eval with --log_samples", value)
                for key, value in native.metrics(task).items()
            ]
            continue
        path = output.samples[task]
        wanted = known[task] = native.wanted(task, clusters.of_task(task), options)
        found = samples[task] = read_samples(path, wanted)
        more, said = measured(path, task, wanted, native, found, budget)
        parts += more
        notes += [*said, *native.cut_short(task, len(found.keys))]
    notes += native.limited(list(samples))
    parts = clusters.applied(parts, samples, notes)
    if not parts and (tasks or not unread):
        raise InputError(
            f"{output.path}: no metric in it that is named like lm-eval's since 0.4, with its filter (`acc,none`). "
            "Older versions and other programs write means alone: evaluate again with lm-eval 0.4 and --log_samples, "
            "or give the scores of the answers as a table with the columns question and score"
        )
    scores = [part for part in parts if isinstance(part, Scores)]
    groups = [] if output.only is not None else choices.in_groups(list(native.groups()), scores)
    run = Run(
        model=native.model() or output.path.resolve().parent.name,
        name=str(output.path),
        harness="lm-eval",
        path=str(output.path),
        date=output.date(native.results),
        scores=tuple(scores),
        groups=tuple(groups),
        corpus=tuple(part for part in parts if isinstance(part, CorpusScores)),
        skipped=(*(part for part in parts if isinstance(part, Skipped)), *unread),
        notes=tuple(notes),
    )
    return Reading(with_groups(run, options.groups), native.results, samples, known)


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


class Clusters:
    """Which clusters each task has: by the SPEC, else those that the samples carry."""

    def __init__(self, spec: ClusterSpec | None, native: Native) -> None:
        self.spec, self.native = spec, native

    def of_task(self, task: str) -> str | None:
        """What is looked up in each document; None where nothing is, or the index counts."""
        found = None if self.spec is None else presets.resolve(self.spec, task)
        return None if found is None or found.startswith(presets.PARALLEL) else found

    def applied(self, parts: Sequence[Measured], samples: Mapping[str, Samples], notes: list[str]) -> list[Measured]:
        """The scores with their cluster labels."""
        labels = self._labels(samples, notes)
        words = {task: self._words(task) for task in labels}
        return [
            part if isinstance(part, Skipped) or labels.get(part.task) is None
            else replace(part, clusters=labels[part.task], cluster_spec=words[part.task])
            for part in parts
        ]  # fmt: skip

    def _words(self, task: str) -> str | None:
        if self.spec is None:
            return self.native.carried_spec.get(task, inject.CLUSTER)
        return presets.describe(self.spec, task)

    def _labels(self, samples: Mapping[str, Samples], notes: list[str]) -> dict[str, tuple[str, ...] | None]:
        if self.spec is None:
            self._hint(samples, notes)
            return {task: found.clusters for task, found in samples.items()}
        out: dict[str, tuple[str, ...] | None] = {}
        families: dict[str, dict[str, presets.ParallelDocs]] = {}
        unknown: list[str] = []
        for task, found in samples.items():
            wanted = presets.resolve(self.spec, task)
            if wanted is None:
                if self.spec.for_task(task) == "auto":
                    unknown.append(task)
            elif not wanted.startswith(presets.PARALLEL):
                out[task] = found.clusters
            elif found.targets is not None:
                families.setdefault(wanted, {})[task] = presets.ParallelDocs(found.doc_ids, found.targets)
        if unknown:
            notes.append(f"{_several(unknown)}: no natural cluster is known: the questions count as independent")
        for family in families.values():
            out |= presets.parallel_labels(family)
        for task, labels in out.items():
            if labels is None:
                notes.append(f"{task}: its reference answers are not those of its sister tasks: not clustered")
        return out

    def _hint(self, samples: Mapping[str, Samples], notes: list[str]) -> None:
        natural: dict[str, list[str]] = {}
        for task, found in samples.items():
            if found.unlabelled:
                notes.append(
                    f"{task}: {found.unlabelled} of {len(found.keys)} questions carry no cluster, so none is used and "
                    "the questions count as independent; name one with --cluster"
                )
                continue
            if found.clusters is None and (spec := presets.describe("auto", task)) is not None:
                natural.setdefault(spec, []).append(task)
        for spec, tasks in natural.items():
            if len(tasks) > 1 or not spec.startswith("question across"):
                notes.append(f"{_several(tasks)}: the questions have natural clusters, {spec}: ask with --cluster auto")
