"""The questions that a run has before any is asked: what they are called, their clusters, and which stop together."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Any

import numpy as np

from harness_noise.arrays import FloatArray, IntArray
from harness_noise.data.clusters import CROSS
from harness_noise.data.matching import pair_questions
from harness_noise.data.notes import Note
from harness_noise.data.questions import Questions, occurrences
from harness_noise.data.scores import Group, Run, Scores
from harness_noise.errors import InputError, some_of
from harness_noise.extra.drawing import about_clusters, check_against, clusters_of_other, draw, drawing_chances
from harness_noise.extra.references.estimating import expected_scores, same_run
from harness_noise.extra.stopping.rules import Look, Order, StoppingRule, check_points
from harness_noise.io.registry import read

from ....lm_eval_harness.live.collect import Metrics, NativeGroups, clusters_of_tasks
from ....lm_eval_harness.live.options import Options
from ....lm_eval_harness.live.repeats import Asking, Part
from ....lm_eval_harness.scoring.clusters import ClusterNames, is_parallel, resolve
from ....lm_eval_harness.scoring.rescore import Row

FEWEST_OF_A_TASK = 2
"""Questions of each task before the first look: lm-eval has no value of a task of which none was asked."""


@dataclass(slots=True, eq=False)
class TaskQuestions:
    """The documents of one task that may be asked."""

    name: str
    documents: IntArray
    """(n,) their numbers among all documents of the task, in increasing order."""
    questions: Questions
    """Keys of all its documents."""
    clusters: tuple[str, ...] | None
    """Cluster of each of its documents, None if they are independent."""
    cluster_spec: str | None
    drawn_from: int
    """Questions that these are drawn from at random: all of the task, or only these."""
    chances: dict[str, float] | None = None
    """Key of each drawn question (before drawing, of each question) → its probability. None if all are equal."""

    @property
    def n_total(self) -> int:
        return len(self.questions)


@dataclass(slots=True, eq=False)
class Unit:
    """Tasks that are looked at, and stopped, together: a group, or one task."""

    name: str
    tasks: tuple[TaskQuestions, ...]
    metrics: Metrics | None
    """The metrics that a group averages, None for a task."""
    rule: StoppingRule | None
    """The rule that stops it, None to ask everything."""
    order: Order
    """The order of asking, over positions in `rows`."""
    rows: list[tuple[int, int]]
    """(task, document) of every question that may be asked."""
    look: Look | None = None
    blocks: int = 0
    """The number of blocks that have been asked."""
    key: tuple[str, str] | None = None
    """Metric and filter that decide."""
    done: bool = False
    judged: dict[str, tuple[bool, int]] = field(default_factory=dict)
    """Task → whether it has enough answers per question, and how many, as was last said."""

    @property
    def in_rounds(self) -> bool:
        """True if blocks are asked in rounds: every question once before any is asked a second time."""
        return not self.order.whole and self.rule is not None and self.rule.asking == "breadth"

    def block(self, number: int) -> dict[int, dict[str, list[int]]]:
        """Return, as round → task → sorted document numbers, what the block with this number (from 1) asks for.

        Where questions are not asked in rounds, the first round stands for all answers.
        """
        positions, rounds = self.order.pairs(number)
        if not self.in_rounds:
            return {1: self._by_task(positions.tolist())}
        return {r: self._by_task(positions[rounds == r].tolist()) for r in np.unique(rounds).tolist()}

    def asked(self) -> dict[str, list[int]]:
        """Return a dict from task to the document numbers asked for in all blocks so far."""
        return self._by_task(self.order.asked(self.blocks).tolist())

    def _by_task(self, positions: Iterable[int]) -> dict[str, list[int]]:
        """Return a dict from task name to document numbers, for these positions in the unit's order."""
        documents: dict[str, list[int]] = {}
        for task, document in sorted({self.rows[position] for position in positions}):
            documents.setdefault(self.tasks[task].name, []).append(document)
        return documents

    def group(self, tasks: Sequence[str] | None = None) -> Group | None:
        """Return the group over which the deciding metric is averaged, None for one task or before it is chosen."""
        if self.metrics is None or self.key is None:
            return None
        weighting = dict(self.metrics).get(self.key[0], "size")
        return Group(self.name, *self.key, tuple(tasks or [task.name for task in self.tasks]), weighting)


@dataclass(frozen=True, slots=True)
class Others:
    """The finished runs to compare with, or to estimate whole benchmarks from."""

    against: Run | None = None
    references: tuple[Run, ...] = ()

    @property
    def predictors(self) -> list[Run]:
        """Reference runs whose scores help predict answers, without the run compared with."""
        return [run for run in self.references if self.against is None or not same_run(run, self.against)]

    @classmethod
    def read(cls, options: Options) -> Others:
        """Read the runs that the options name: one to compare with (refuse several), and reference runs.

        Raises:
            InputError: one cannot be read, or is several.
        """
        against = None
        if options.against is not None:
            runs = read(options.against)
            if len(runs) > 1:
                names = ", ".join(run.model for run in runs[:4])
                raise InputError(
                    f"{options.named('against', options.against)}: there are {len(runs)} runs ({names}): name one"
                )
            against = runs[0]
        return cls(against, tuple(run for path in options.complete for run in read(path)))


@dataclass(slots=True)
class Population:
    """The questions that a run may ask, by task, with their clusters.

    Args:
        asking: the tasks, and how often each of their questions is asked.
        groups: see `collect.native_groups`.
        options: the user's choices.
        others: the run that it is compared with, and those by which uncertain questions are drawn more often.

    Raises:
        InputError: two groups share tasks, too few questions to stop before the end, or the other run lacks a task.
    """

    asking: Asking
    groups: NativeGroups
    options: Options
    others: Others
    notes: list[Note] = field(default_factory=list)
    carried: dict[str, tuple[ClusterNames, str | None]] = field(default_factory=dict)
    """Task → the clusters that come from the run it is compared with: of all its documents."""
    clustered: dict[tuple[str, bool], list[str]] = field(default_factory=dict)
    """(clusters of the compared run, True if the user refuses them) → the tasks."""

    @property
    def against(self) -> Run | None:
        return self.others.against

    def units(self) -> list[Unit]:
        """Return the units (tasks or groups) that stop together, each with a random order. Refuse shared tasks.

        Without a rule an order has one block.
        """
        tasks = self._tasks()
        self._check_metric()
        return [
            self._unit(name, [tasks[task] for task in members], metrics) for name, members, metrics in self._members()
        ]

    def _check_metric(self) -> None:
        """Raise an error if the run compared with has the user's deciding metric for none of the tasks."""
        wanted = self.options.metric
        if self.against is None or wanted is None:
            return
        parts = [part for part in (*self.against.scores, *self.against.parts) if part.task in self.asking.tasks]
        if not any(wanted in (part.metric, f"{part.metric},{part.scorer}") for part in parts):
            have = ", ".join(dict.fromkeys(f"{part.metric},{part.scorer}" for part in parts))
            raise InputError(
                f"{self.options.named('metric', wanted)}: {self.against.name} has measured these tasks by {have}, so "
                "nothing would ever be decided by it: name one of them"
            )

    def _members(self) -> list[tuple[str, list[str], Metrics | None]]:
        """Return (name, tasks, metrics) of each outermost group and other task. Refuse groups that share a task."""
        groups: dict[str, tuple[list[str], Metrics]] = {
            name: ([task for task in self.asking.tasks if fnmatchcase(task, pattern)], ())
            for name, pattern in self.options.groups.items()
        }
        groups |= {name: (members, metrics) for name, (members, metrics) in self.groups.items() if metrics}
        units: list[tuple[str, list[str], Metrics | None]] = []
        owner: dict[str, str] = {}
        for name, (members, metrics) in groups.items():
            if not members or any(set(members) < set(other) for other, _ in groups.values()):
                continue
            units.append((name, members, metrics))
            for task in members:
                if task in owner:
                    raise InputError(
                        f"the groups {owner[task]} and {name} share the task {task}, so it is not clear which of them "
                        "decides when it has enough questions: run them one after the other, or leave one out"
                    )
                owner[task] = name
        return [*units, *((task, [task], None) for task in self.asking.tasks if task not in owner)]

    def _tasks(self) -> dict[str, TaskQuestions]:
        cluster = self.options.cluster
        rows = {name: _rows(task, is_parallel(resolve(cluster, name))) for name, task in self.asking.tasks.items()}
        found = clusters_of_tasks(rows, self.options, [], {})  # what there is to say is said after the run
        tasks = {}
        for name, docs in rows.items():
            questions = Questions(occurrences([doc["doc_hash"] for doc in docs]), "doc_hash")
            clusters, spec = found.get(name) or self._carried(name, questions)
            if clusters is not None and any(CROSS in cluster for cluster in clusters):
                raise InputError(
                    f"{name}: its questions are clustered in two crossed ways, and no part of them has whole clusters "
                    f"of both: name one of the two with {self.options.named('cluster')}, or ask all questions"
                )
            task = TaskQuestions(name, np.arange(len(docs)), questions, clusters, spec, len(docs))
            tasks[name] = task if self.against is None else self._shared_questions(task, self.against)
        option, name = self.options.named("cluster"), "" if self.against is None else self.against.name
        for (spec, refused), names in self.clustered.items():
            self.notes.append(about_clusters(some_of(sorted(names), 1), spec, name, option, refused=refused))
        return tasks

    def _carried(self, task: str, questions: Questions) -> tuple[ClusterNames, str | None] | tuple[None, None]:
        """Return and record (clusters, SPEC) taken over from the run compared with, (None, None) if none apply."""
        theirs = self._theirs(task)
        if theirs is None or theirs.clusters is None:
            return None, None
        refused = self.options.cluster.for_task(task) == "none"
        self.clustered.setdefault((theirs.cluster_spec or "cluster", refused), []).append(task)
        if refused or (taken := clusters_of_other(questions, theirs, self.options.named("cluster"))) is None:
            return None, None
        self.carried[task] = taken
        return taken

    def _theirs(self, task: str) -> Scores | None:
        return None if self.against is None else scores_of(self.against, task)

    def _shared_questions(self, task: TaskQuestions, against: Run) -> TaskQuestions:
        """Return a task cut to the questions that the run compared with has answered, noting it. Refuse if none."""
        theirs = self._theirs(task.name)
        if theirs is None:
            have = ", ".join(dict.fromkeys(part.task for part in against.scores)) or "nothing"
            raise InputError(
                f"{self.options.named('against', against.name)}: it has no scores of {task.name} ({have}): name a run "
                "of all these tasks with its samples, or leave the task out"
            )
        check_against(against, task.name)
        check_points(self.options.rule, theirs, self.options.settings)
        matches = pair_questions(task.questions, theirs.questions)
        if not matches.rows_a:
            raise InputError(
                f"{self.options.named('against', against.name)}: it has none of the {task.n_total} questions of "
                f"{task.name}: it is of another version of the task, or no run of lm-eval with --log_samples"
            )
        documents = np.sort(np.array(matches.rows_a, dtype=np.intp))
        # a random subset of a random subset is one of the whole
        random = any((row["task"], row["n_total"]) == (task.name, task.n_total) for row in against.drawn)
        if len(documents) < task.n_total:
            said = (
                f"{against.name} has answered {len(documents):,} of its {task.n_total:,} questions. Only these are "
                "asked" + ("" if random else ", and they are not a random subset of the benchmark (not_a_random_part)")
            )
            self.notes.append(Note("part_of_the_other", said).of(task.name))
        whole = random or len(documents) == task.n_total
        chances = None
        if theirs.chances is not None:
            same = zip(matches.rows_a, matches.rows_b, strict=True)
            chances = {task.questions.keys[i]: theirs.chances.get(theirs.questions.keys[j], 1.0) for i, j in same}
        kept = task.n_total if whole else len(documents)
        return replace(task, documents=documents, drawn_from=kept, chances=chances)

    def _unit(self, name: str, tasks: Sequence[TaskQuestions], metrics: Metrics | None) -> Unit:
        rule = self.options.rule
        rows = [(number, document) for number, task in enumerate(tasks) for document in task.documents.tolist()]
        of_task = [number for number, _ in rows]
        clusters = None
        if any(task.clusters is not None for task in tasks):
            clusters = [_cluster_name(tasks[number], number, document) for number, document in rows]
        seed = self.options.settings.seed
        kept = np.arange(len(rows))
        try:
            if self.options.sample is not None:
                chances = self._chances(tasks, rows, clusters)
                kept = draw(len(rows), self.options.sample, clusters, of_task, seed=seed, chances=chances)
                for number, task in enumerate(tasks):
                    mine = [i for i in kept if of_task[i] == number]
                    if chances is not None or task.chances:
                        each = [len(mine) / len(task.documents)] * len(rows) if chances is None else chances
                        keys = {i: task.questions.keys[rows[i][1]] for i in mine}
                        earlier = task.chances or {}  # of the run compared with, of whose part this is one
                        task.chances = {key: earlier.get(key, 1.0) * float(each[i]) for i, key in keys.items()}
                drawn = {of_task[i] for i in kept}
                if missing := [task.name for number, task in enumerate(tasks) if number not in drawn]:
                    raise InputError(
                        f"a part of {self.options.sample} has no question of {some_of(missing, 1)}: take a larger part "
                        "of the questions"
                    )
            rows, of_task = [rows[i] for i in kept], [of_task[i] for i in kept]
            if rule is None:
                n = len(rows)
                order = Order(np.arange(n), np.ones(n, dtype=np.intp), (n,), (n,), seed)
            else:
                rule = self._rule_for_own_repeats(rule, tasks)
                some = None if clusters is None else [clusters[i] for i in kept]
                order = rule.order(len(rows), some, of_task, repeats=self._answers(tasks, of_task))
                order = _all_tasks_first(order, of_task)
                if (said := rule.cannot_save(order)) is not None:
                    self.notes.append(Note("cannot_save", said).of(name))
        except InputError as error:
            raise InputError(f"{name}: {error}") from None
        return Unit(name, tuple(tasks), metrics, rule, order, rows)

    def _chances(
        self, tasks: Sequence[TaskQuestions], rows: Sequence[tuple[int, int]], clusters: Sequence[str] | None
    ) -> FloatArray | None:
        """Return (N,) chances of questions by scores that references predict, None (equal chances) if one has none."""
        assert self.options.sample is not None
        expected = [expected_scores(t.questions, t.name, self.others.references, self.options.metric) for t in tasks]
        predictions = [scores[document] for number, document in rows if (scores := expected[number]) is not None]
        if len(predictions) < len(rows):
            return None
        return drawing_chances(self.options.sample, np.array(predictions), clusters, [number for number, _ in rows])

    def _answers(self, tasks: Sequence[TaskQuestions], of_task: Sequence[int]) -> list[int] | None:
        """Return a list of how many answers each question gets, None if one each or decided during the run."""
        each = [self.asking.times(task.name)[1] for task in tasks]
        if max(each) == 1 or any(self.options.repeats.grows(task.name) for task in tasks):
            return None
        return [each[number] for number in of_task]

    def _rule_for_own_repeats(self, rule: StoppingRule, tasks: Sequence[TaskQuestions]) -> StoppingRule:
        """Return the stopping rule, changed to all repeats at once where lm-eval itself asks so, with a note."""
        several_times = {task.name: own for task in tasks if (own := self.asking.times(task.name)[0]) > 1}
        if rule.asking == "depth" or not several_times:
            return rule
        self.notes += [
            Note(
                "asked_by_the_task",
                f"the task itself asks each question {own} times at once, so a question gets all its answers before "
                "the next one is asked (depth)",
            ).of(task)
            for task, own in several_times.items()
        ]
        return replace(rule, asking="depth")


def _cluster_name(task: TaskQuestions, number: int, document: int) -> str:
    """Return a document's cluster name for the statistics. Tasks share clusters only under the same SPEC."""
    if task.clusters is None:
        return f"\x1f{number}\x1f{document}"
    return f"{task.cluster_spec}\x1f{task.clusters[document]}"


def _all_tasks_first(order: Order, of_task: Sequence[int]) -> Order:
    """Return the order with its first check put off until some questions of every task have been asked."""
    tasks = np.asarray(of_task)
    fewest = np.minimum(FEWEST_OF_A_TASK, np.bincount(tasks))
    for number in range(1, len(order.ends) + 1):
        if (np.bincount(tasks[order.asked(number)], minlength=len(fewest)) >= fewest).all():
            return order.first_look_after(number)
    return order


def _rows(task: Any, targets: bool) -> list[Row]:
    """Return doc_id, doc, doc_hash, target_hash ("" unless `targets`) of each document, as lm-eval will log them.

    The reference answer only where it is needed.
    """
    from lm_eval.utils import handle_non_serializable, hash_string

    return [
        {
            "doc_id": number,
            "doc": doc,
            "target_hash": hash_string(str(task.doc_to_target(doc))) if targets else "",
            "doc_hash": hash_string(json.dumps(doc, indent=2, default=handle_non_serializable, ensure_ascii=False)),
        }
        for number, doc in enumerate(task.eval_docs)
    ]


class Grown:
    """The scores of the questions asked so far, question by question."""

    def __init__(self) -> None:
        self._rows: dict[tuple[str, str, str], dict[int, FloatArray]] = {}
        """(task, metric, filter) → document → its scores."""
        self._first: dict[tuple[str, str, str], Scores] = {}
        self._differ: set[tuple[str, str, str]] = set()
        """Metrics of which the answers to some question differ."""

    def add(self, part: Part, measured: Iterable[Scores]) -> None:
        """Store scores by document, replacing earlier ones. Ignore a metric that lacks a document of the part."""
        for scores in measured:
            if len(scores.questions) == len(part[scores.task]):
                key = scores.key
                self._first.setdefault(key, scores)
                self._differ |= {key} if scores.answers_differ else set()
                self._rows.setdefault(key, {}).update(zip(part[scores.task], scores.values, strict=True))

    def keys(self, task: str) -> list[tuple[str, str]]:
        """Return the (metric, filter) pairs that a task has scores for."""
        return [(metric, scorer) for name, metric, scorer in self._rows if name == task]

    def parts(self, unit: Unit, key: tuple[str, str]) -> list[Scores]:
        """Return for each task of a unit the scores of all questions asked so far, under one metric and filter."""
        part = unit.asked()
        return [self._part(task, part.get(task.name, []), (task.name, *key)) for task in unit.tasks]

    def _part(self, task: TaskQuestions, documents: Sequence[int], key: tuple[str, str, str]) -> Scores:
        rows, first = self._rows[key], self._first[key]
        values = np.full((len(documents), max(map(len, rows.values()))), np.nan)
        for i, document in enumerate(documents):
            if (scores := rows.get(document)) is not None:
                values[i, : len(scores)] = scores
        return Scores(
            *key,
            task.questions.at(documents),
            values,
            clusters=None if task.clusters is None else tuple(task.clusters[i] for i in documents),
            cluster_spec=task.cluster_spec,
            higher_is_better=first.higher_is_better,
            bounds=first.bounds,
            answers_differ=key in self._differ,
            chances=task.chances,
        )


def scores_of(run: Run, task: str, key: tuple[str, str] | None = None) -> Scores | None:
    """Return a run's scores on a task by one (metric, filter), or by any without `key`. None if it has none."""
    parts = (part for part in (*run.scores, *run.parts) if part.task == task)
    return next((part for part in parts if key is None or (part.metric, part.scorer) == key), None)
