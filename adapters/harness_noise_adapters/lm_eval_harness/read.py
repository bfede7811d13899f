"""lm-eval's finished runs as `Run`s: a folder, a results file, or a samples file, 0.4.3 to 0.5 dev.

The results file says what was measured and how it was aggregated; the samples files hold the values.
A metric is analysed if it is a mean: the mean of its values is the reported value to 1e-9, or the
configuration says `aggregation: mean`. Everything else is listed with the reason.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness_noise.clusters import ClusterSpec, labeller
from harness_noise.errors import InputError
from harness_noise.scores import Group, Questions, ReadOptions, Run, Scores, Skipped, Weighting, with_groups

from . import inject, outputs, presets, rebuild
from .outputs import Output, sniff
from .samples import Column, Samples, Wanted, read_samples

if TYPE_CHECKING:
    from harness_noise.scores import FloatArray

    from .samples import BoolArray

__all__ = ["Reading", "read", "read_output", "sniff", "zeros_for_missing"]

NOT_MEANS = frozenset(("perplexity", "word_perplexity", "byte_perplexity", "bits_per_byte", "weighted_perplexity"))
"""Metrics of lm-eval with one number per question that are no mean of it, where only the name tells."""

HUGE = 1e100
"""Scores beyond it are taken for infinite: their squares are."""

Key = tuple[str, str]
"""(metric, filter)."""


def read(path: Path, options: ReadOptions) -> list[Run]:
    """The runs at `path`, one for each results file.

    Args:
        path: an output folder, a results file, or a samples file (whose run's results are used if
            they stand beside it).
        options: `cluster` is a SPEC over the document; `columns["question"]` a field of it that
            identifies a question in place of lm-eval's doc_hash.

    Raises:
        InputError: nothing there that can be used; says where and what to do.
    """
    return [zeros_for_missing(read_output(output, options), options) for output in outputs.find(path)]


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
    native = Native(outputs.load(output.results)) if output.results is not None else Native({})
    if output.only is not None:
        tasks = [output.only]
    else:
        tasks = list(native.tasks if output.results is not None else output.samples)
    tasks = _asked_for(tasks, native, options)
    notes: list[str] = []
    if output.results is None:
        notes.append(
            f"{output.path.name}: there is no results file of this run beside it, so lm-eval's own values, its "
            "groups and the direction of its metrics are unknown; every numeric metric is read as a mean"
        )
    clusters = Clusters(ClusterSpec.parse(options.cluster) if options.cluster is not None else None, native)
    samples: dict[str, Samples] = {}
    known: dict[str, Wanted] = {}
    scores: list[Scores] = []
    skipped: list[Skipped] = []
    for task in tasks:
        if task not in output.samples:
            skipped += [
                Skipped(task, *key, "there is no samples file for it: run lm-eval with --log_samples", value)
                for key, value in native.metrics(task).items()
            ]
            continue
        path = output.samples[task]
        wanted = known[task] = native.wanted(task, clusters.of_task(task), options)
        found = samples[task] = read_samples(path, wanted)
        notes += _score_answers(path, task, wanted, native, found)
        for part in _parts(task, found, native, notes):
            (scores if isinstance(part, Scores) else skipped).append(part)  # type: ignore[arg-type]
    notes += native.limited(list(samples))
    scores = clusters.applied(scores, samples, notes)
    if not scores and not skipped:
        raise InputError(f"{output.path}: no metric in it")
    groups = () if output.only is not None else native.groups()
    run = Run(
        model=native.model() or output.path.resolve().parent.name,
        name=str(output.path),
        harness="lm-eval",
        path=str(output.path),
        scores=tuple(scores),
        groups=tuple(groups),
        skipped=tuple(skipped),
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
        _, asked = reading.samples[part.task].columns[part.metric, part.scorer].matrix(len(part.questions))
        filled.append(replace(part, values=np.where(np.isnan(part.values) & asked, 0.0, part.values)))
    return replace(run, scores=tuple(filled))


def _asked_for(tasks: list[str], native: Native, options: ReadOptions) -> list[str]:
    """The tasks that `--task` names, and those of the groups that it names. All, if a name is not
    there: whoever selects afterwards can then list what there is."""
    members = {name: native.leaves(name) for name in native.group_names()}
    members |= {
        name: [task for task in tasks if fnmatchcase(task, pattern)] for name, pattern in options.groups.items()
    }
    keep: set[str] = set()
    for pattern in options.tasks:
        chosen = [task for task in tasks if fnmatchcase(task, pattern)]
        chosen += [task for name, leaves in members.items() if fnmatchcase(name, pattern) for task in leaves]
        if not chosen:
            return tasks
        keep.update(chosen)
    return [task for task in tasks if task in keep] if keep else tasks


class Native:
    """What a results file says, whichever version wrote it; our own additions are taken out."""

    def __init__(self, results: dict[str, Any]) -> None:
        block = results.get(inject.BLOCK)
        self.carried_spec = _carried_specs(block) if isinstance(block, Mapping) else {}
        if results:
            inject.remove(results)
        self.results = results
        self.table: dict[str, dict[str, Any]] = results.get("results", {})
        self.children: dict[str, Any] = _mapping(results.get("group_subtasks"))
        self.configs: dict[str, Any] = _mapping(results.get("configs"))
        grouped = {name for name, children in self.children.items() if children} | set(_mapping(results.get("groups")))
        self.tasks = [name for name in self.table if name not in grouped - set(self.configs)]

    def config(self, task: str) -> dict[str, Any]:
        return _mapping(self.configs.get(task))

    def metrics(self, task: str) -> dict[Key, float | None]:
        """(metric, filter) → the reported value; None for one that is not a finite number."""
        out = {}
        for key, value in self.table.get(task, {}).items():
            metric, comma, scorer = key.partition(",")
            if comma and not metric.endswith("_stderr"):
                number = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
                out[metric, scorer] = float(value) if number else None
        return out

    def effective(self, task: str) -> int:
        """Number of documents that were evaluated, 0 if unknown."""
        counts = _mapping(_mapping(self.results.get("n-samples")).get(task))
        value = self.table.get(task, {}).get("sample_len", counts.get("effective"))
        return value if isinstance(value, int) else 0

    def limited(self, tasks: Sequence[str]) -> Iterator[str]:
        """One sentence for a run that left out questions."""
        limit = _mapping(self.results.get("config")).get("limit")
        counts = {task: _mapping(_mapping(self.results.get("n-samples")).get(task)) for task in tasks}
        cut = [
            (task, self.effective(task), count["original"])
            for task, count in counts.items()
            if isinstance(count.get("original"), int) and 0 < self.effective(task) < count["original"]
        ]
        if isinstance(limit, (int, float)) and limit and cut:
            task, used, whole = cut[0]
            more = f" (and {len(cut) - 1} more tasks)" if len(cut) > 1 else ""
            yield f"{task}: the run was limited to {used} of {whole} questions (--limit {limit:g}){more}"

    def higher_is_better(self, task: str, metric: str) -> bool | None:
        value = _mapping(_mapping(self.results.get("higher_is_better")).get(task)).get(metric)
        return value if isinstance(value, bool) else None

    def aggregation(self, task: str, metric: str) -> str | None:
        for item in self.config(task).get("metric_list") or ():
            if isinstance(item, Mapping) and item.get("metric") == metric:
                value = item.get("aggregation")
                return value if isinstance(value, str) else None
        return None

    def wanted(self, task: str, spec: str | None, options: ReadOptions) -> Wanted:
        config = self.config(task)
        key = options.columns.get("question")
        repeats = config.get("repeats")
        return Wanted(
            task=task,
            filters=tuple(dict.fromkeys(scorer for _, scorer in self.metrics(task))) or ("none",),
            effective=self.effective(task),
            repeats=repeats if isinstance(repeats, int) and repeats > 0 else 0,
            media=bool(config.get("doc_to_image") or config.get("doc_to_audio")),
            cluster=None if spec is None else (lambda _doc: task) if spec == "task" else labeller(spec),
            key=None if key is None else labeller(key),
        )

    def model(self) -> str | None:
        config = _mapping(self.results.get("config"))
        arguments = config.get("model_args")
        if isinstance(arguments, str):
            arguments = dict(item.split("=", 1) for item in arguments.split(",") if "=" in item)
        arguments = _mapping(arguments)
        names = (
            self.results.get("model_name"),
            arguments.get("pretrained"),
            arguments.get("model"),
            config.get("model"),
        )
        return next((name for name in names if isinstance(name, str) and name), None)

    def group_names(self) -> list[str]:
        return [name for name in self.table if name not in self.tasks]

    def leaves(self, name: str) -> list[str]:
        """The tasks below a group, each once, in order."""
        out: dict[str, None] = {}
        waiting, seen = [name], set()
        while waiting:
            item = waiting.pop(0)
            below = self.children.get(item)
            if item in seen:
                continue
            seen.add(item)
            if isinstance(below, list) and below:
                waiting[:0] = map(str, below)
            elif item != name:
                out[item] = None
        return list(out)

    def groups(self) -> Iterator[Group]:
        """The group rows, with the weighting that reproduces them."""
        for name in self.group_names():
            leaves = [task for task in self.leaves(name) if task in self.table]
            for key, value in self.metrics(name).items():
                tasks = tuple(task for task in leaves if key in self.metrics(task))
                if tasks:
                    yield Group(name, *key, tasks, self._weighting(tasks, key, value), value)

    def _weighting(self, tasks: Sequence[str], key: Key, value: float | None) -> Weighting:
        values = [self.metrics(task)[key] for task in tasks]
        sizes = [self.effective(task) for task in tasks]
        known = [item for item in values if item is not None]
        if value is None or len(known) < len(values) or not all(sizes):
            return "size"
        by_size = math.fsum(v * n for v, n in zip(known, sizes, strict=True)) / sum(sizes)
        return "equal" if not _close(by_size, value) and _close(math.fsum(known) / len(known), value) else "size"


def _carried_specs(block: Mapping[str, Any]) -> dict[str, str]:
    """Task → the words for its clusters, as an earlier analysis of this run put them."""
    estimates = block.get("estimates")
    rows = [item for item in estimates if isinstance(item, Mapping)] if isinstance(estimates, list) else []
    return {str(item.get("task")): str(item["cluster"]) for item in rows if item.get("cluster")}


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _several(names: Sequence[str]) -> str:
    return names[0] + (f" and {len(names) - 1} more" if len(names) > 1 else "")


def _close(a: float, b: float, tolerance: float = 1e-9) -> bool:
    return abs(a - b) <= tolerance * max(1.0, abs(b))


class Clusters:
    """Which clusters each task has: by the SPEC, else those that the samples carry."""

    def __init__(self, spec: ClusterSpec | None, native: Native) -> None:
        self.spec, self.native = spec, native

    def of_task(self, task: str) -> str | None:
        """What is looked up in each document; None where nothing is, or the index counts."""
        found = None if self.spec is None else presets.resolve(self.spec, task)
        return None if found is None or found.startswith(presets.PARALLEL) else found

    def applied(self, scores: Sequence[Scores], samples: Mapping[str, Samples], notes: list[str]) -> list[Scores]:
        """The scores with their cluster labels."""
        labels = self._labels(samples, notes)
        words = {task: self._words(task) for task in labels}
        return [
            part if labels.get(part.task) is None
            else replace(part, clusters=labels[part.task], cluster_spec=words[part.task])
            for part in scores
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
            if found.clusters is None and (spec := presets.describe("auto", task)) is not None:
                natural.setdefault(spec, []).append(task)
        for spec, tasks in natural.items():
            if len(tasks) > 1 or not spec.startswith("question across"):
                notes.append(f"{_several(tasks)}: the questions have natural clusters, {spec}: ask with --cluster auto")


def _score_answers(path: Path, task: str, wanted: Wanted, native: Native, found: Samples) -> list[str]:
    """Give a file with K answers but one score the other scores too, where that is safe."""
    if found.answers == 1 or found.scored or all(metric == "bypass" for metric, _ in found.columns):
        return []
    try:
        columns, remarks = rebuild.rescored(path, wanted, native.config(task), found)
    except rebuild.NotSafeError as reason:
        columns = rebuild.counted(found)
        found.columns |= columns
        if columns:
            names = ", ".join(dict.fromkeys(metric for metric, _ in columns))
            return [f"{task}: {names} is a count of right answers out of {found.answers}; their order is not known"]
        return [
            f"{task}: the file holds {found.answers} answers per question but only lm-eval's one score, and they "
            f"cannot be scored again: {reason}; read as one answer (single_repeat)"
        ]
    found.columns |= columns
    return [f"{task}: {remark}" for remark in remarks]


def _parts(task: str, found: Samples, native: Native, notes: list[str]) -> Iterator[Scores | Skipped]:
    """Every metric that the samples or the results have, as Scores or with the reason why not."""
    questions = Questions(found.keys, found.kind, found.inputs, found.targets, found.prompts, found.texts)
    reported = native.metrics(task)
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
            yield Skipped(task, *key, reason, value)
            continue
        first, whole = _means(values)
        agrees_first, agrees_whole = (value is not None and _close(mean, value) for mean in (first, whole))
        own = column.own_mean()
        ours = agrees_first or agrees_whole or values.shape[1] == 1
        if value is not None and own is not None and not ours and _close(own, value):
            if found.scored:  # else the scoring has said so
                notes.append(
                    f"{task}, {key[0]}, {key[1]}: lm-eval's own value {value:g} uses the answers of a question "
                    f"together (majority vote, pass@k); ours is the mean of single answers"
                )
            value = None
        yield Scores(
            task=task,
            metric=key[0],
            scorer=key[1],
            questions=questions,
            values=values,
            higher_is_better=native.higher_is_better(task, key[0]),
            native=value,
            native_is_first=values.shape[1] > 1 and (agrees_first or not agrees_whole),
            n_missing=_missing(values, asked),
        )


def _missing(values: FloatArray, asked: BoolArray) -> int:
    import numpy as np

    return int((np.isnan(values) & asked).sum())


def _means(values: FloatArray) -> tuple[float, float]:
    """The mean of the first repeat, and of all; over the questions that have a score."""
    import numpy as np

    from harness_noise.estimators.contrast import question_stats

    return tuple(  # type: ignore[return-value]
        float(np.nanmean(stats.mean)) if (stats.count > 0).any() else math.nan
        for stats in (question_stats(values[:, :1]), question_stats(values))
    )


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
        return "its value on a question is not one number (it is made from all questions at once, as bleu or f1 are)"
    if "text" in column.kinds:
        return "its values are text"
    if "numeral" in column.kinds and not (own is not None and value is not None and _close(own, value, 1e-6)):
        return "its values are text"
    if any_known and not known:
        return "lm-eval does not report it"
    if np.isnan(values).all():
        return "no question has a score"
    if (np.abs(values) > HUGE).any():  # NaN is not
        return "a question has an infinite score"
    if aggregation is None and not any_known:
        return "it is not a mean of its per-question values" if metric in NOT_MEANS else None
    if aggregation in ("mean", "nanmean"):
        return None
    if aggregation is not None and aggregation.isidentifier():
        return f"it is aggregated by {aggregation}, not a mean"
    if value is None or any(item is not None and _close(item, value) for item in (own, *_means(values))):
        return None
    return f"the mean of its values ({own:.6g}) is not the reported value ({value:.6g}): it is not aggregated as a mean"
