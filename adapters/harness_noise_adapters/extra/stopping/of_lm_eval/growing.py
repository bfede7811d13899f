"""A run that asks its questions in a random order and stops when it has enough of them, or enough answers to each."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from harness_noise.analysis.drawing import with_record
from harness_noise.data.notes import Note
from harness_noise.data.scores import Run
from harness_noise.errors import InputError
from harness_noise.extra.references.estimating import full_means
from harness_noise.extra.stopping.growing import observe
from harness_noise.extra.stopping.observed import REPEATS_SHARE, EnoughRepeats, observe_mean, repeats_enough
from harness_noise.extra.stopping.rules import FEWEST_FOR_SE
from harness_noise.results.parts import Drawn
from harness_noise.results.rows import Analysis
from harness_noise.settings import Settings

from ....lm_eval_harness.live.collect import NativeGroups, measure
from ....lm_eval_harness.live.options import Options
from ....lm_eval_harness.live.repeats import Asking
from .population import Grown, Others, Population, Unit, scores_of

MOST_REPEATS = 16
"""Answers per question at which `auto` ends, whether more would pay or not."""


def check_partial(options: Options, arguments: Mapping[str, Any]) -> None:
    """Refuse options to stop early or ask a subset with --limit, --samples or several ranks, before any answer.

    Raises:
        InputError: says which.
    """
    name = "until" if options.rule is not None else "sample" if options.sample is not None else "repeats"
    chosen = options.named(name, "auto" if name == "repeats" else "")
    cut = next((f"--{name}" for name in ("limit", "samples") if arguments.get(name) is not None), None)
    if cut and options.partial:
        raise InputError(
            f"{chosen} chooses among all questions, and {cut} says which there are: leave {cut} "
            f"out. {options.named('sample', 'N')} asks at most N of them, drawn at random"
        )
    if cut and options.complete:
        raise InputError(
            f"{options.named('complete')} says what a random subset of the questions says of all of them, and those of "
            f"--limit and --samples are none (not_a_random_part): use {options.named('sample', 'N')} in their place"
        )
    ranks = getattr(arguments.get("lm"), "world_size", 1)
    if options.partial and max(ranks or 1, int(os.environ.get("WORLD_SIZE") or 1)) > 1:
        raise InputError(f"{chosen} does not work on several ranks, which would not stop at the same time: use one")


class Growing:
    """One call of `evaluate` that looks at its answers while they come.

    Args:
        asking: the call, in parts.
        groups: see `collect.native_groups`.
        session: its options, the runs that they name, and where to say what went wrong.

    Raises:
        InputError: what was asked for does not fit this run.
    """

    def __init__(self, asking: Asking, groups: NativeGroups, session: Any) -> None:
        self.asking, self.session = asking, session
        self.others: Others = session.others
        self.options: Options = session.options
        population = Population(asking, groups, self.options, self.others)
        self.units = population.units()
        self.carried = population.carried
        asking.in_rounds(task.name for unit in self.units if unit.in_rounds for task in unit.tasks)
        self.notes = [*population.notes, *_several(self.units, self.options)]
        self.grown = Grown()
        self.part: dict[str, list[int]] | None = None
        """The documents that were asked, by task, None if all were."""

    def evaluate(self) -> Any:
        """Ask in blocks until a rule stops it (none, or our fault: ask all), and return lm-eval's result over these.

        Without a rule these are known beforehand, and `further` asks for what comes after lm-eval's own answers. A
        fault of ours costs the looks: then all questions are asked, and those that have been are not asked again.
        """
        try:
            if self.options.rule is not None:
                self._grow()
            for unit in self.units:
                unit.blocks = unit.blocks or len(unit.order.ends)
            self.part = self._part()
        except Exception as error:
            if self.asking.model_failed:
                raise
            self._give_up(error)
        try:
            return self.asking.whole(self.part)
        except Exception:
            if self.asking.model_failed:
                raise
            return self.asking.whole(self.part)  # a fault of the task's own comes again, without the model

    def further(self) -> None:
        """Ask for the further answers wanted, and with `auto` for more while they pay. Nothing with a stopping rule."""
        if self.options.rule is not None:
            return
        if self.asking.ask() and self.options.repeats.auto:
            part = {task: numbers for unit in self.units for task, numbers in unit.asked().items()}
            self._score({name: numbers for name, numbers in part.items() if name in self.asking.raised})
            self._ask_until_enough(self.units)

    def _give_up(self, error: Exception) -> None:
        """Stop checking the rule after an error, and ask all questions instead."""
        with suppress(Exception):
            self.session.failed("the run cannot be looked at while it grows, so it asks all its questions", error)
        for unit in self.units:
            unit.look, unit.blocks = None, len(unit.order.ends)
        if not self.asking.interrupted:
            with suppress(Exception):
                self.asking.all_rounds()
        with suppress(Exception):
            self.part = self._part()

    def _part(self) -> dict[str, list[int]] | None:
        """Return a dict from task to the document numbers that were asked, None if all were."""
        part = {task: numbers for unit in self.units for task, numbers in unit.asked().items()}
        total = sum(task.n_total for unit in self.units for task in unit.tasks)
        return None if sum(map(len, part.values())) == total else {task: part[task] for task in self.asking.tasks}

    def record(self, run: Run) -> Run:
        """Return the run with a record of the checks of the stopping rule and of which questions were drawn."""
        looks = [unit.look.sequential.to_dict() for unit in self.units if unit.look is not None]
        drawn = [row.to_dict() for unit in self.units for row in _records_of_drawn(unit)]
        if looks and self.others.against is not None:
            note = Note("looks_at", f"the looks: A is this run, B is {self.others.against.name}")
            run = replace(run, notes=(*run.notes, note))
        sizes = {task.name: task.n_total for unit in self.units for task in unit.tasks}
        return with_record(run, looks, drawn, sizes)

    def _grow(self) -> None:
        while open_units := [unit for unit in self.units if not unit.done]:
            rounds: dict[int, dict[str, list[int]]] = {}
            for unit in open_units:
                block = unit.block(unit.blocks + 1)
                if min(block) > 1 and not any(task.name in self.asking.raised for task in unit.tasks):
                    unit.done = True  # its further answers are copies
                    continue
                unit.blocks += 1
                for number, part in block.items():
                    rounds.setdefault(number, {}).update(part)
            for number in sorted(rounds):
                if number > 1 and not self.asking.interrupted:
                    self.asking.more(dict.fromkeys(rounds[number], number), rounds[number])
                self._score(rounds[number])
            if self.options.repeats.auto:
                self._ask_until_enough(open_units)
            for unit in (unit for unit in open_units if not unit.done):
                self._look(unit)
                unit.done |= unit.blocks == len(unit.order.ends) or self.asking.interrupted

    def _score(self, part: Mapping[str, Sequence[int]]) -> None:
        """Evaluate these documents, asking the model only for those not yet asked, and store their scores."""
        tasks = {name: self.asking.tasks[name] for name in part}
        _, gathered = measure(self.asking.block(part), tasks, self.asking)
        self.grown.add(part, gathered.scores)

    def _ask_until_enough(self, units: Sequence[Unit]) -> None:
        """Ask for more answers to every question of each task for as long as they reduce the noise enough."""
        while steps := {task: step for unit in units for task, step in self._steps(unit).items()}:
            part = {task: numbers for unit in units for task, numbers in unit.asked().items() if task in steps}
            totals = {task: self.asking.times(task)[1] + step for task, step in steps.items()}
            if not self.asking.more(totals, part) or self.asking.interrupted:
                return
            self._score(part)

    def _steps(self, unit: Unit) -> dict[str, int]:
        """Return {task: further answers each question gets} for `auto` tasks of enough questions that gain. Say why.

        A task is judged by all its questions so far, once there are enough of them or all have been asked.
        """
        if (key := self._deciding_key(unit)) is None:
            return {}
        last, grows = unit.blocks == len(unit.order.ends), self.options.repeats.grows
        parts = [
            part
            for part in self.grown.parts(unit, key)
            if part.task in self.asking.raised and grows(part.task) and (last or len(part.questions) >= FEWEST_FOR_SE)
        ]
        if not parts:
            return {}
        settings, rule = self.options.settings, self.options.rule
        se = None if rule is None else rule.se
        if se is not None and (now := observe_mean(parts, settings, unit.group([part.task for part in parts])).se):
            parts = parts if now > se else []
        steps = {}
        for part in parts:
            verdict = repeats_enough(part, settings)
            if unit.judged.get(part.task) != (verdict.enough, verdict.repeats):
                unit.judged[part.task] = verdict.enough, verdict.repeats
                self._say(part.task, verdict.message)
            if not verdict.enough and verdict.repeats < MOST_REPEATS:
                steps[part.task] = 1 if se is not None else _step(verdict)
        return steps

    def _look(self, unit: Unit) -> None:
        if unit.rule is None or (key := self._deciding_key(unit)) is None:
            return
        parts, settings, against = self.grown.parts(unit, key), self.options.settings, self.others.against
        if against is None:
            observed = observe_mean(parts, settings, unit.group())
        else:
            theirs = [part for mine in parts if (part := scores_of(against, mine.task, key)) is not None]
            # ours drew the order, and where there are none the user said so
            theirs = [replace(part, clusters=None, cluster_spec=None) for part in theirs]
            observed = observe(parts, theirs, settings, unit.group(), references=self.others.predictors)
        unit.look = unit.rule.look(unit.order, unit.look, observed)
        unit.done = unit.look.stop
        self._say(unit.name, unit.look.message)

    def _deciding_key(self, unit: Unit) -> tuple[str, str] | None:
        """Return the (metric, filter) that decides when to stop, chosen at the first check, None if none can."""
        if unit.key is None:
            unit.key = next(iter(self._possible_keys(unit)), None)
            if unit.key is None and unit.blocks == 1:
                wanted = (
                    f"metric {self.options.metric}" if self.options.metric else "metric that is a mean of questions"
                )
                other = f" and {self.others.against.name}" if self.others.against is not None else ""
                text = f"{unit.name}: there is no {wanted} that all its tasks{other} have, so all questions are asked"
                self.session.say(text)
                self.asking.notes.append(Note("no_looks", text, unit.name))
        return unit.key

    def _possible_keys(self, unit: Unit) -> list[tuple[str, str]]:
        """Return the (metric, filter) pairs that all tasks and the compared run have and the user allows, in order."""
        keys, against = self.grown.keys(unit.tasks[0].name), self.others.against
        if unit.metrics:
            keys = [key for name, _ in unit.metrics for key in keys if key[0] == name]
        for task in unit.tasks:
            keys = [key for key in keys if key in self.grown.keys(task.name)]
            if against is not None:
                keys = [key for key in keys if scores_of(against, task.name, key) is not None]
        wanted = self.options.metric
        return [key for key in keys if wanted in (None, key[0], ",".join(key))]

    def _say(self, name: str, text: str) -> None:
        print(f"harness-noise: {name}: {text}", file=sys.stderr, flush=True)


def _records_of_drawn(unit: Unit) -> Iterator[Drawn]:
    """Yield a `Drawn` (counts, seed, chances) for each task not asked in full, or for all tasks after an early stop."""
    last = None if unit.look is None else unit.look.sequential
    early = last is not None and (last.n_asked < last.n_total or (last.n_answers or 0) < (last.n_answers_total or 0))
    part, seed = unit.asked(), unit.order.seed
    for task in unit.tasks:
        n = len(part.get(task.name, ()))
        if n < task.n_total or early:
            yield Drawn(
                task=task.name,
                n_asked=n,
                n_total=task.drawn_from,
                order_seed=seed,
                stopped_early=early,
                chances=task.chances,
            )


def _several(units: Sequence[Unit], options: Options) -> list[Note]:
    """Return [a note] if a run makes several comparing stopping decisions, each at the error rate of one, else []."""
    N, rule = len(units), options.rule
    if rule is None or rule.se is not None or N < 2:
        return []
    error = 1 - rule.level
    what = "tasks" if all(unit.metrics is None for unit in units) else "tasks and groups"
    said = (
        f"each of the {N} {what} decides at {100 * error:.3g}%: of {N} that do not differ, {N * error:.2g} would be "
        f"called different on average. For {100 * error:.3g}% over all of them use "
        f"{options.named('level', f'{1 - error / N:.4g}')}, or compare runs of all questions, which adjusts for their "
        "number"
    )
    return [Note("several_decisions", said)]


def _step(now: EnoughRepeats) -> int:
    """Return the number of further answers to ask for before the next check: half of what seems needed, at least 1."""
    if now.share is None or now.share >= 1:
        return 1
    enough = now.repeats * now.share / (1 - now.share) * (1 - REPEATS_SHARE) / REPEATS_SHARE
    return max(1, (min(MOST_REPEATS, math.ceil(enough)) - now.repeats) // 2)


def with_references(analysis: Analysis, run: Run, references: Sequence[Run], settings: Settings) -> Analysis:
    """Return the analysis with estimates for the whole benchmark from reference runs, or a note why not."""
    try:
        rows, notes = full_means([run], references, settings, refuse=False)
    except InputError as error:
        note = Note("no_full_benchmark", f"no estimate for the whole benchmark: {error}")
        return replace(analysis, notes=(*analysis.notes, note))
    return replace(analysis, full_benchmark=rows, notes=(*analysis.notes, *notes))
