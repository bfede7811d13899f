"""The diagnostic codes of all results, each with its sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    pass


DIAGNOSTICS: dict[str, str] = {
    "single_repeat": "one answer per question, or nearly: data and prediction noise cannot be told apart",
    "partly_single_repeat": "some questions have one answer; they take the mean variance of the others, which biases "
    "the split into data and prediction noise (not the total) if they are easier or harder",
    "single_repeats_differ": "the questions with one answer score differently from the others, so the variance that "
    "they take from these may not be theirs: the split into data and prediction noise is biased, the total is not",
    "missing_repeats": "questions have different numbers of scored answers",
    "uses_all_repeats": "the metric uses several answers of a question at once (pass@k, majority vote): data and "
    "prediction noise cannot be told apart",
    "single_level": "a factor with one level: its variance is not known",
    "aliased_factor": "the design cannot tell this factor from another one",
    "negative_component": "the estimate of this variance component is below 0: it is smaller than the design "
    "can resolve",
    "identical_repeats": "all repeats agree on every question, in their answers or, where only these are known, in "
    "their scores (temperature 0, a cache, or a fixed server seed?): prediction noise is not identified",
    "shared_repeat_noise": "a repeat moves all questions together (a shared seed, a drifting server?): "
    "the repeats are not independent",
    "too_few_questions": "fewer than two questions: no standard error",
    "too_few_clusters": "fewer than two clusters: no standard error",
    "few_clusters": "fewer than 10 degrees of freedom: intervals are wide and lean on their assumptions",
    "few_df": "fewer than four degrees of freedom: even Student's t is not reliable there, whatever p says",
    "few_resampled": "a metric over all questions at once, of fewer than 30 questions (clusters): its interval may "
    "be a little too short",
    "singleton_clusters": "every cluster holds one question: clustering changes nothing (wrong field?)",
    "negative_data_variance": "the estimate of the data variance is below 0: it is smaller than this many repeats can "
    "resolve, and its one-sided 95 % limit is shown (< x); SE² = data² + prediction²/K holds for the raw variances, "
    "not for the figures shown here",
    "zero_variance": "no variance between questions: for a metric with a known range the interval comes from a "
    "small-sample rule, for others there is none",
    "identical_scores": "the two runs agree on every question",
    "unpaired_questions": "questions that only one of the runs has are left out",
    "unpaired": "the runs are compared as independent samples of questions (--unpaired): all questions of both "
    "count, and what they share is not used",
    "different_prompts": "the two runs were prompted differently",
    "mean_mismatch": "our mean is not the harness's own value: the scores may be read wrongly",
    "few_flips": "few questions (clusters) differ at all: the far limit of the interval is the more cautious one of "
    "two rules",
    "few_failures": "fewer than 10 questions (clusters) hold a wrong answer, or a right one, counted by how often "
    "they are wrong: the interval is less reliable",
    "not_after_adjustment": "the single interval shows a difference that is no longer significant after adjustment "
    "for the rows of its family",
    "missing_matters": "answers are missing, and counting them all as wrong or all as right moves the mean by more "
    "than a third of its standard error",
    "copied_repeats": "native answers that share a seed are copies of each other and count as one",
    "identical_scores_only": "the answers differ, but their scores do not: prediction noise is not identified",
    "first_answer_differs": "the first answer of every question scores differently from the others (a shared seed?): "
    "the native value and the mean over all answers do not estimate the same thing",
    "stopped_early": "the run stopped before all its questions were asked, when it was decided or precise enough: this "
    "row does not allow for that; the rows of the looks do",
    "not_a_random_part": "the questions that were asked are no random part of the benchmark: they say nothing of the "
    "whole of it",
    "reference_noise": "no samples were compared: the noise is the one that the benchmark's profile gives for "
    "models of this accuracy",
    "skipped_metric": "no samples, or not a mean of per-question scores: only the harness's own value is shown",
}
UNSPLIT = frozenset(("single_repeat", "identical_repeats", "identical_scores_only"))
"""Codes of what leaves data and prediction noise unsplit."""
