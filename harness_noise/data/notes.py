"""Notes: sentences for a person on a run or a result, each with a code for programs.

A program goes by `Note.code` and `Note.task`; only what shows a note to a person reads its words (`Note.as_text`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from .. import extras
from ..errors import some_of

NOTES: dict[str, str] = {
    "left_out": "a file, run or task that is left out, and why",
    "from_adapter": "what an adapter of another package says",
    "read_as": "as what a file, a column or a metric was read",
    "recomputed": "scores that the file does not hold and that are computed from what it holds",
    "one_of_several": "of several runs of a task one is read",
    "shards": "several files are one run",
    "not_there": "something that was asked for is not in one of the runs",
    "not_all_read": "a run is there in part",
    "ended_early": "a run ended before all its answers were given",
    "limited": "a run was limited to some of its questions",
    "odd_log": "a file is not quite as its harness writes it",
    "no_results_file": "the harness's own values are not there",
    "no_native_values": "the harness computed no values of its own",
    "mean_mismatch": "scores do not have the mean that the harness reports",
    "metric_not_known": "several of the harness's metrics have the mean of the scores",
    "in_percent": "the harness reports a percentage of the scores",
    "no_error_bar": "a metric that is not a mean of question scores",
    "no_samples": "a metric whose answers are not there",
    "not_scored": "answers that were not scored",
    "unread": "answers that score 0 and are empty or were not parsed",
    "not_numbers": "scores that are no numbers and count as 0",
    "not_the_native_value": "why our value is not the harness's own",
    "no_value": "a metric that no answer has",
    "no_probabilities": "why `acc_prob` cannot be had",
    "several_at_once": "the harness's value takes several answers at once",
    "not_singly": "answers cannot be scored one by one",
    "one_score": "several answers, and one score of them",
    "counted": "how many answers are right is known, and not which",
    "missing": "answers without a score",
    "missing_without_cause": "answers without a score for an unknown reason",
    "missing_matters": "what missing answers could change",
    "invalidated": "answers that were declared invalid",
    "copied_repeats": "answers that are copies of each other",
    "unpaired": "which answers belong to one question is not known",
    "few_levels": "a factor with few levels",
    "said_twice": "answers that are there twice",
    "numbered": "questions of one name that are numbered",
    "doubled_questions": "several questions are one, under several ids",
    "same_words": "several questions have the same words",
    "scales_mixed": "scores on two scales in one run",
    "scales_differ": "the scores of two runs on two scales",
    "named_repeats": "repeats that may not be independent",
    "asked_once": "a task that is asked once",
    "asked_by_the_task": "a task that asks several times by itself",
    "asked_by_lm_eval": "an lm-eval that scores repeats by itself",
    "one_seed": "answers that may share a seed",
    "greedy": "answers that will be all the same",
    "cached_requests": "requests that may be older ones",
    "further_answers": "what went wrong with further answers",
    "taken_up": "further answers that an earlier run has paid for",
    "cached_usage": "measures of answers that came from a cache",
    "not_counted": "tokens of other models",
    "natural_clusters": "questions have clusters that were not asked for",
    "no_cluster_known": "`auto` found no cluster",
    "not_all_clustered": "clusters that only some questions have",
    "not_clustered": "clusters that cannot be had",
    "odd_clusters": "clusters whose names are no plain values",
    "clusters_of_stderr": "clusters that the task's own stderr names",
    "cluster_template": "clusters of a template that is not run",
    "clusters_differ": "runs that cluster the same questions differently",
    "clusters_of_the_other": "clusters of the run that it is compared with",
    "clusters_refused": "clusters of the run compared with that are not used",
    "inner_clusters": "clusters within larger ones",
    "field_is_cluster": "a field whose values are the clusters",
    "flag_without_effect": "error bars were asked for in the run, and its log has none",
    "no_reducer": "the harness's stderr counts repeats as questions",
    "runs_paired": "which run of A is which of B",
    "matched_by_text": "questions were matched by their text",
    "matched_by_name": "questions were matched by a name, though their texts differ",
    "paired_by_number": "questions were paired by ids that only number them",
    "texts_differ": "questions that share a key and not their text",
    "texts_not_shown": "questions or answers that cannot be shown",
    "questions_shown": "how many of the questions that differ are shown",
    "given_twice": "a run that was given twice and counts once",
    "one_run_twice": "two runs that are one",
    "nothing_joined": "runs that were to be repeats of one model, and are of several",
    "same_scores": "two runs that score alike",
    "only_one_has": "what only one of the runs has",
    "not_in_all_runs": "what only some of the runs have",
    "nothing_shared": "runs that share no question",
    "sets_of_questions": "runs of one task that answered different questions",
    "named_differently": "what was compared under two names",
    "two_names": "what a log has under two names",
    "no_direction": "a metric for which it is unknown whether higher is better",
    "range_not_known": "a metric without a range, so that there is no interval",
    "ratio_of_shared": "a ratio is of the questions that all runs have",
    "group_in_part": "a group over the tasks that all runs have",
    "some_questions": "only some of the questions were asked for",
    "no_overall": "why there is no overall row",
    "overall_in_part": "an overall row without some tasks",
    "weights_not_there": "weights of tasks that no run has",
    "no_strata": "what the weights of questions leave out",
    "stratum_not_there": "weights of strata without a question",
    "not_corrected": "scores that are not corrected for chance",
    "worse_than_chance": "means below chance",
    "no_group": "a group that cannot be had",
    "no_field": "questions without a field that was asked for",
    "alike_scores": "two runs with the same scores and other answers",
    "scored_differently": "equal answers that two runs score differently",
    "some_scored_differently": "a few equal answers that two runs score differently",
    "other_version": "two runs that were scored with other versions or options",
    "stopped_on_success": "answers that were repeated until one was right",
    "stopped_on_failure": "answers that were repeated until one was wrong",
    "judge_flips": "how noisy the judge is",
    "judges_compared": "whether judges differ in their mean",
    "not_these_questions": "a number that may be of other questions",
    "estimand": "what is estimated",
    "wrote": "a file that was written",
    "nothing_to_add": "a file that is not written, because it would be as it was",
    "several_decisions": "several decisions, each at the error of one",
    "cannot_save": "few clusters leave nothing to save",
    "decision_void": "a decision whose scores have changed",
    "stop_not_corrected": "why a run that stopped early is not corrected for that",
    "part_of_the_other": "the run compared with has answered only some of the questions",
    "no_full_benchmark": "why the whole benchmark is not estimated",
    "not_in_full_benchmark": "questions that are left out of the whole benchmark",
    "answered_all": "a run that has answered all questions of the complete runs",
    "references_gain_nothing": "complete runs that gain nothing",
    "plain_mean": "a subset from which the complete runs cannot be learned",
    "not_a_random_part": "questions that are not a random subset",
    "source": "where a profile comes from",
}
"""Every code of the core, and what it is about."""


def codes() -> dict[str, str]:
    """Return every code that a `Note` may have, those of extras, too, and what it is about."""
    return NOTES | extras.notes()


GRAVE = frozenset(
    {
        "mean_mismatch",
        "scored_differently",
        "scales_differ",
        "one_run_twice",
        "left_out",
        "missing_matters",
        "recomputed",
        "stop_not_corrected",
    }
)
"""Codes of numbers that are wrong, lost, or not in the file: these notes are shown first."""
ROUTINE = frozenset(
    {
        *("read_as", "no_direction", "one_of_several", "shards", "matched_by_text", "named_differently", "two_names"),
        *("in_percent", "counted", "copied_repeats", "runs_paired", "questions_shown", "texts_not_shown"),
        *("no_cluster_known", "field_is_cluster", "unpaired", "source", "judge_flips", "judges_compared", "asked_once"),
    }
)
"""Codes of what is mostly as it should be: other notes are shown before them."""
NO_ERROR_BAR, NO_SAMPLES, NOT_SCORED = "no_error_bar", "no_samples", "not_scored"
"""Codes of metrics that have no error bar (`scores.Skipped`)."""


@dataclass(frozen=True, slots=True, repr=False)
class Note:
    """One sentence for a person, and what programs may know of it.

    Raises:
        ValueError: the code is not in `codes`.
    """

    code: str
    """The subject of the note, one of `codes`."""
    _text: str
    """The sentence, which names the task itself. Renderers get it from `as_text`."""
    task: str | None = None
    """The task or group of the note, None for the whole run or several tasks."""

    def __post_init__(self) -> None:
        if self.code not in NOTES and self.code not in extras.notes():
            raise ValueError(f"{self.code!r} is no code of a note: `harness_noise.data.notes.codes()` has them all")

    def __repr__(self) -> str:
        return f"Note(code={self.code!r}, text={self._text!r}, task={self.task!r})"

    def as_text(self) -> str:
        """Return the note's sentence, for people. Programs use `code` and `task`, not the sentence."""
        return self._text

    def of_source(self, name: str, now: str) -> Note:
        """Return the note with the source that it begins with called something else, any other note as it is."""
        begins = f"{name}: "
        return (
            replace(self, _text=f"{now}: {self._text.removeprefix(begins)}") if self._text.startswith(begins) else self
        )

    @property
    def place(self) -> int:
        """Sort key by which notes are shown: 0 for grave ones, 1 for others, 2 for routine ones, which come last."""
        return 0 if self.code in GRAVE else 2 if self.code in ROUTINE or self.code in extras.routine_notes() else 1

    def of(self, task: str, *more: str) -> Note:
        """Return the note of this task, with "task: " or "task, metric: " put before its sentence."""
        return Note(self.code, f"{', '.join((task, *more))}: {self._text}", task)

    def reworded(self, words: Callable[[str], str]) -> Note:
        """Return the note with its sentence replaced by `words(sentence)`."""
        return Note(self.code, words(self._text), self.task)

    def to_dict(self) -> dict[str, Any]:
        """Return the note as a dictionary with the keys `code`, `text` and `task`, for JSON."""
        return {"code": self.code, "text": self._text, "task": self.task}


def texts(notes: Iterable[Note]) -> list[str]:
    """Return the sentences of several notes as strings."""
    return [note.as_text() for note in notes]


def no_cluster_known(task: str, fields: Sequence[str] | None = None) -> Note:
    """Return the note that `cluster='auto'` found no clusters for a task, so questions are independent.

    `fields` are those of the task's documents, if known.
    """
    has = "" if fields is None else f". Its samples have {', '.join(fields[:8]) or 'no metadata'}"
    said = f"no natural cluster is known: the questions count as independent{has}"
    return Note("no_cluster_known", said).of(task)


def not_all_clustered(task: str, bare: int, n: int, named: str = "`cluster`") -> Note:
    """Return the note that some questions have no cluster, so that no clusters are used."""
    said = (
        f"{bare} of {n} questions have no cluster, so none is used and the questions count as independent. Name one "
        f"with {named}"
    )
    return Note("not_all_clustered", said).of(task)


def natural_clusters(task: str, spec: str, named: str = "`cluster='auto'`") -> Note:
    """Return the note that the task's questions have known clusters, which the user could ask for."""
    return Note("natural_clusters", f"the questions have natural clusters, {spec}: ask with {named}").of(task)


def empty_answers(found: Sequence[tuple[str, int, int]]) -> Note:
    """Return the note that counts, per task, how many of the answers scored 0 are empty or unparsed.

    Args:
        found: what was scored, its answers that score 0, and those of them that are empty or were not parsed.
    """
    each = some_of([f"{name} {blank:,} of {zeros:,}" for name, zeros, blank in found], 4)
    return Note("unread", f"of the answers that score 0, these are empty or were not parsed: {each}")


def merge_notes(*groups: Iterable[Note]) -> tuple[Note, ...]:
    """Return the notes of several groups in order, each note once."""
    return tuple(dict.fromkeys(note for group in groups for note in group))
