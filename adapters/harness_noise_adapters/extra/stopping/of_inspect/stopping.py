"""Inspect's protocol `EarlyStopping`: what is known before the first question, and whether each sample is still wanted.

The calls come from the samples' own tasks: after the start nothing is raised. A fault ends the looks, with one
warning, and the run goes on to its end, or to that of its random subset.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from harness_noise.arrays import FloatArray, IntArray, picked
from harness_noise.data.clusters import MissingFieldError, UserSpec
from harness_noise.data.matching import pair_questions
from harness_noise.data.questions import Questions
from harness_noise.data.scores import ReadOptions, Scores
from harness_noise.errors import InputError, error_message
from harness_noise.extra.drawing import about_clusters, check_against, clusters_of_other, draw, drawing_chances
from harness_noise.extra.references.estimating import expected_scores, same_run
from harness_noise.extra.stopping.rules import Order, StoppingRule, check_points
from harness_noise.io.paths import exists, is_url, resolve_path
from harness_noise.settings import Settings

from ....asking import OF_DECIDED, OF_UNTIL, SWITCHING
from ....inspect_logs import hook, private
from ....inspect_logs.clusters import TaskClusters, spec_for
from ....inspect_logs.flags import Flag, flag, refuse
from ....inspect_logs.gather import MEANS, SPREADS
from ....inspect_logs.live import Live, current
from ....inspect_logs.records import RECORD, SampleAnswers, Scorers, bare
from ..options import does_nothing
from . import ordering
from .stopper import DecidingScore, Stopper, StoppingSettings, written

if TYPE_CHECKING:
    from inspect_ai.dataset import Sample
    from inspect_ai.log import EvalSpec
    from inspect_ai.scorer import SampleScore
    from inspect_ai.util import EarlyStop

    from ....inspect_logs.read import LogRun


logger = logging.getLogger("harness_noise")


def stop_early(running: Any | None, asking: Mapping[str, Any]) -> str | None:
    """Make Inspect ask us whether to skip each sample if options ask less, else warn. Return why not to start, or None.

    Returns:
        Why the task must not start.
    """
    present = None if running is None else running.task.early_stopping
    if isinstance(present, Stopping):
        return None
    first = next((name for name in SWITCHING if name in asking), None)
    if first is None:
        logger.warning("noise: %s. Everything is asked", does_nothing(next(iter(asking)), written))
        return None
    if running is None:
        return f"noise_{first}: this Inspect has no early stopping that we know"
    task = running.task.name
    if present is not None:
        return f"{task}: the task has an early stopping of its own: leave out one of the two"
    if getattr(running.task, "sample_source", None) is not None:
        return f"{task}: the task's samples come from a SampleSource, and their number is unknown"
    ordering.stop_with(running, Stopping(asking))
    return None


def stopper_of(
    live: Live, samples: Sequence[Sample], epochs: int, asking: StoppingSettings, folders: Sequence[str]
) -> Stopper:
    """Return a task's Stopper before its first answer: subset, order, run compared with. Refuse unfit settings."""
    spec, config, to_say = live.spec, live.spec.config, live.to_say
    task, text = spec.task, live.flag.settings.cluster
    named = None if text is None else UserSpec(text)
    _check(spec, epochs, asking)
    seed = next((value for value in (asking.seed, config.sample_shuffle) if type(value) is int), None)
    (questions, metadata), scorers = _questions(samples), live.header().scorers
    clusters = _clusters(TaskClusters(task, questions.keys, metadata), named, scorers)
    metric = asking.metric or declared(spec)
    references = tuple(read(path, task, named, folders, "noise_complete").run for path in asking.complete)
    predictors, decides, other, taken, against = references, None, None, None, ""
    if asking.against is not None:
        none = spec_for(named, task) == "none"
        log = read(asking.against, task, None if none else named, folders, "noise_against")  # to know what is refused
        against, predictors = log.run.model, tuple(run for run in references if not same_run(run, log.run))
        decides, other = compared(task, log, metric)
        check_against(log.run, other.task)
        check_points(asking.rule, other, live.flag.settings)
        to_say += _overlap(task, questions, other, asking.against)
        if clusters is None:
            taken = None if none else clusters_of_other(questions, other, "noise_cluster")
            clusters = None if taken is None else taken[0]
            if other.clusters is not None:
                spec_there = other.cluster_spec or "cluster"
                to_say.append(about_clusters(task, spec_there, against, "noise_cluster", refused=none).as_text())
        # the looks use only the clusters of the new run
        other = replace(other, clusters=None, cluster_spec=None)
    elif asking.rule is not None or asking.repeats:
        decides = deciding(task, scorers, metric)
    part, chances = np.arange(len(questions)), None
    if asking.sample is not None:
        expected = expected_scores(questions, task, references, asking.metric)
        part, chances = _random_subset(asking.sample, questions, clusters, seed or 0, expected)
    if asking.repeats:
        ordering.reorder()  # not to have another order, but to know of answers that fail
    order = None if asking.rule is None else _order(spec, asking.rule, picked(clusters, part), len(part), epochs, seed)
    return Stopper(
        task=task,
        to_say=to_say,
        asking=asking,
        settings=live.flag.settings,
        questions=questions,
        clusters=clusters,
        epochs=epochs,
        part=part,
        chances=chances,
        decides=decides,
        other=other,
        against=against,
        references=references,
        predictors=predictors,
        order=order,
        order_seed=seed,
        part_seed=None if asking.sample is None else seed or 0,
        max_samples=config.max_samples,
        taken_clusters=taken,
    )


def _check(spec: EvalSpec, epochs: int, asking: StoppingSettings) -> None:
    """Refuse unlogged samples, auto below 3 epochs, or a rule without shuffling. Warn of shuffling without seed."""
    less = asking.rule is not None or asking.repeats or asking.sample is not None
    if less and spec.config.log_samples is False:
        raise InputError(
            f"{spec.task}: Inspect stops no task early whose samples it does not log: leave out --no-log-samples"
        )
    if asking.repeats and epochs < 3:
        raise InputError(
            f"{spec.task}: noise_repeats=auto stops below the number of epochs, after two at the earliest: --epochs 10"
        )
    if asking.rule is not None and not spec.dataset.shuffled:
        raise InputError(
            f"{spec.task}: its questions come in the order of the data set, and the first of them are no random "
            "sample: add --sample-shuffle 42 (any seed but 0 and 1, which mean off and on), or shuffle the dataset "
            "with a seed"
        )
    if spec.config.sample_shuffle is True:
        logger.warning(
            "noise: %s: the samples are shuffled without a seed (--sample-shuffle 1 means on, not the seed 1): another "
            "run has another order, and with --limit other questions. Give a seed, --sample-shuffle 42",
            spec.task,
        )


def _questions(samples: Sequence[Sample]) -> tuple[Questions, list[Mapping[str, Any]]]:
    answers = SampleAnswers()
    names = {"id", "input", "target", "choices"}
    answers.extend(sample.model_dump(mode="json", include=names) | {"epoch": 1} for sample in samples)
    rows = answers.questions.values()
    inputs, targets = tuple(row.input for row in rows), tuple(row.target for row in rows)
    questions = Questions(tuple(answers.questions), "sample id", inputs, targets)
    return questions, [sample.metadata or {} for sample in samples]


def _clusters(task_clusters: TaskClusters, named: UserSpec | None, scorers: Scorers) -> tuple[str, ...] | None:
    """Return each question's cluster by SPEC, sample or a scorer's stderr, None without. Refuse a missing field.

    Where the user's own cannot be had, the task does not start.
    """
    spec = spec_for(named, task_clusters.task)
    try:
        task_clusters.by_spec(spec)
    except MissingFieldError as error:
        raise InputError(f"{task_clusters.task}: {error}") from None
    (clusters, _), open_ = task_clusters.of_run(spec)
    if clusters is not None or not open_:
        return clusters
    metrics = (named.values() for by_key in scorers.values() for named in by_key.values())
    keys = {options.get("cluster") for each in metrics for options in each} - {None}
    return task_clusters.by_spec_or_none(keys.pop(), plain=True)[0] if len(keys) == 1 else None


def _overlap(task: str, questions: Questions, other: Scores, where: str) -> list[str]:
    """Return [a note] if the compared log lacks some of the task's questions, else []. Refuse if it lacks all."""
    common = len(pair_questions(questions, other.questions).rows_a)
    if not common:
        raise InputError(f"noise_against={where}: none of its questions is one of {task}, by id and text")
    if common == len(questions):
        return []
    return [f"{task}: {common} of its {len(questions)} questions are in {where}, and only they decide"]


def _random_subset(
    sample: str, questions: Questions, clusters: tuple[str, ...] | None, seed: int, expected: FloatArray | None
) -> tuple[IntArray, dict[str, float] | None]:
    """Draw whole clusters, by `expected` scores if any. Return (m,) question indices and their {key: chance} or None.

    With the probability of each question that was drawn, where these differ.
    """
    by_name = np.argsort(np.array(questions.keys), kind="stable")
    in_order = picked(clusters, by_name)
    chances = None if expected is None else drawing_chances(sample, expected[by_name], in_order)
    drawn = draw(len(questions), sample, in_order, seed=seed, chances=chances)
    part = np.sort(by_name[drawn])
    return part, None if chances is None else {questions.keys[by_name[i]]: float(chances[i]) for i in drawn}


def _order(
    spec: EvalSpec, rule: StoppingRule, clusters: tuple[str, ...] | None, n: int, epochs: int, seed: int | None
) -> Order:
    """Patch Inspect (or warn) and return the random order in blocks: Inspect's shuffle or, by clusters, ours."""
    ours = ordering.reorder()
    if not ours and (clusters is not None or (rule.asking == "depth" and epochs > 1)):
        logger.warning(
            "noise: %s: the order of this Inspect cannot be changed: it asks all questions once, one by one as they "
            "are shuffled, before any twice, so clusters are split over the looks",
            spec.task,
        )
        rule = replace(rule, asking="breadth")
    shuffled = clusters is None or not ours
    order = replace(rule, seed=seed or 0).order(n, clusters, repeats=epochs, shuffled=shuffled)
    if (note := rule.cannot_save(order)) is not None:
        logger.warning("noise: %s: %s", spec.task, note)
    return order


def declared(spec: EvalSpec) -> str | None:
    """Return the score that the task declares as its headline, in `noise_metric` form, None if it has none.

    None where it names none.
    """
    headline = getattr(spec, "headline_metric", None)
    names = (getattr(headline, "scorer", None), getattr(headline, "score", None))
    return "/".join(dict.fromkeys(name for name in names if name)) or None


def deciding(task: str, scorers: Scorers, metric: str | None) -> DecidingScore:
    """Return the score that decides when to stop without another run: `metric`, or a sole scorer's. Else refuse.

    Raises:
        InputError: the task has several scorers, and `metric` names none of them.
    """
    names = list(scorers)
    head, _, tail = (metric or "").partition("/")
    scorer = head if head in scorers else names[0] if len(names) == 1 else None
    if scorer is None:
        raise InputError(_which(task, names, metric))
    metrics = [*scorers[scorer].get(None, {}), *(key for key in scorers[scorer] if key is not None)]
    key = tail if head in scorers else metric
    if not key or key in metrics:
        key = None
    elif all(name in MEANS or name in SPREADS for name in metrics):  # nothing that takes a key of a dictionary
        raise InputError(_which(task, names, metric))
    mean = next((name for name in MEANS if name in metrics), "mean")
    return DecidingScore(scorer if len(names) > 1 else None, key, mean, key or scorer)


def compared(task: str, log: LogRun, metric: str | None) -> tuple[DecidingScore, Scores]:
    """Return (deciding score, the other log's scores under it). Refuse if there are several of them, or none.

    Raises:
        InputError: the log has several that it could be, or none.
    """
    matches: dict[str, tuple[DecidingScore, Scores]] = {}
    for mean in log.gathered.means:
        es, part = log.header.scores[mean.index], mean.scores
        key = es.name if mean.key is None and es.name != es.scorer else mean.key
        names = (part.scorer, part.metric, key, es.scorer, f"{es.scorer}/{key}", f"{part.scorer}/{part.metric}")
        if mean.of_answers and (metric is None or metric in names):
            matches.setdefault(part.scorer, (DecidingScore(es.scorer, key, part.metric, part.scorer), part))
    if metric in matches:
        return matches[metric]
    if len(matches) != 1:
        every = [mean.scores.scorer for mean in log.gathered.means]
        raise InputError(_which(task, list(matches) or every, None if matches else metric))
    return next(iter(matches.values()))


def _which(task: str, names: Sequence[str], metric: str | None = None) -> str:
    there = f"{task} has the scorers {', '.join(dict.fromkeys(names))}" if names else f"{task} has no scorer"
    wrong = "" if metric is None else f". {metric} is none of them"
    return f"{there}{wrong}: name the one that decides, noise_metric=NAME"


def read(where: str, task: str, cluster: UserSpec | None, folders: Sequence[str], what: str) -> LogRun:
    """Read the only LogRun of this task at a path, to compare the running task with. Refuse none or several logs.

    Args:
        where: a log, or a folder with one of the task.
        task: whose log it is to be.
        cluster: SPEC.
        folders: from which a relative path may be meant.
        what: the setting, for messages.

    Raises:
        InputError: there is none, or more than one.
    """
    from ....inspect_logs.read import read_log, read_logs

    options = ReadOptions(cluster=cluster)
    places = [resolve_path(where)] if is_url(where) else [Path(folder) / where for folder in folders]
    path = next((place for place in places if exists(place)), None)
    if path is None:
        raise InputError(f"{what}={where}: no such log or folder")
    logs = read_logs(path, options) if path.is_dir() else [read_log(path, options)]
    of_task = [log for log in logs if bare(log.header.task) == bare(task)]
    if len(of_task) != 1:
        names = ", ".join(sorted({log.header.task for log in logs}))
        many = f"has {len(of_task)} logs of {task}. Name one" if of_task else f"has no log of {task}, but of {names}"
        raise InputError(f"{what}={where}: {many}")
    return of_task[0]


MANAGER = "harness-noise"
"""Our name in the log."""


def _safely(ask: Callable[[Stopper], Any]) -> Any:
    """Call a function on the current task's stopper. Return None without one or on errors, which end the checks.

    None where there is none, or a fault in it.
    """
    live = current.get()
    if live is None or live.stopper is None:
        return None
    try:
        return ask(live.stopper)
    except Exception as error:  # noqa: BLE001  a guest never takes the host down
        live.stopper.fault(error)
        return None


@dataclass(frozen=True, slots=True)
class Stopping:
    """Inspect's `EarlyStopping`, for any number of tasks at a time."""

    asking: Mapping[str, Any]
    folder: str = field(default_factory=lambda: str(Path.cwd()))
    """From which relative paths are meant."""

    async def start_task(self, task: EvalSpec, samples: list[Sample], epochs: int) -> str:
        """Read the log to compare with and draw the order when Inspect starts a task. Errors end the task.

        Raises:
            InputError: it cannot be done; then the task ends before it has asked anything.
        """
        from anyio import to_thread

        live = current.get()
        if live is None or live.spec.eval_id != task.eval_id:  # the task's code asks, and no flag is on
            settings = flag({**(task.metadata or {}), "noise": True})
            assert settings is not None
            live = hook.begin(task, Flag(settings.settings, self.asking))
        live.flag = replace(live.flag, asking={**live.flag.asking, **self.asking})  # the task's own code wins
        running = private.options()
        folders = [str(Path.cwd()), self.folder, *([running.eval_wd] if running is not None else [])]
        try:
            asking = StoppingSettings.of(live.flag)
            live.stopper = await to_thread.run_sync(stopper_of, live, samples, epochs, asking, folders)
        except InputError as error:
            refuse(error)
        except Exception as error:  # noqa: BLE001  anything else would be asked, and paid for
            refuse(InputError(f"{task.task}: it cannot be stopped early ({error_message(error)}). Leave it out"))
        return MANAGER

    async def schedule_sample(self, id: str | int, epoch: int) -> EarlyStop | None:
        """Tell Inspect to skip an answer, with the reason, or return None to have it asked for."""
        from inspect_ai.util import EarlyStop

        reason = _safely(lambda stopper: stopper.reason(str(id), epoch))
        return None if reason is None else EarlyStop(id=id, epoch=epoch, reason=reason)

    async def complete_sample(self, id: str | int, epoch: int, scores: dict[str, SampleScore]) -> None:
        """Record the scores of an answer that Inspect has finished."""
        _safely(lambda stopper: stopper.answered(str(id), epoch, scores))

    async def complete_task(self) -> dict[str, Any]:
        """Return the record of what was asked and decided, for Inspect to write to its log."""
        record = _safely(lambda stopper: stopper.close())
        return {} if record is None else {RECORD: record}


def of_code(
    against: str | os.PathLike[str] | None,
    *,
    se: float | None,
    metric: str | None,
    complete: Sequence[str | os.PathLike[str]],
    choices: Mapping[str, Any],
) -> Stopping:
    """Build the early-stopping object from the arguments of `stop_when`, with errors for wrong ones.

    Raises:
        InputError: no such choice, or not one of `against` and `se`.
    """
    if (against is None) == (se is None):
        raise InputError("`stop_when`: name the log to compare with, `against`, or a standard error, `se`: one of them")
    for name in choices:
        if name not in (*OF_DECIDED, *OF_UNTIL):
            raise InputError(f"`stop_when`: `{name}` is no choice. There are {', '.join((*OF_DECIDED[1:], *OF_UNTIL))}")
        if se is not None and name not in OF_UNTIL:
            raise InputError(f"`stop_when`: `{name}` is for `against`: with `se` there is a look after every block")
    options = {
        "until": "decided" if se is None else f"se={se}",
        "against": None if against is None else os.fspath(against),
        "metric": metric,
        "complete": [os.fspath(path) for path in complete] or None,
        **choices,
    }
    asking = {name: value for name, value in options.items() if value is not None}
    StoppingSettings.of(Flag(Settings(), asking))
    return Stopping(asking)
