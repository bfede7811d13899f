"""The diagnostic codes of all results: what each says of a row, and what to do about it."""

from __future__ import annotations

from typing import NamedTuple

from ..stats.tolerances import FEW_DF, FEW_FAILURES, FEW_LABELLED, FEW_RESAMPLED, FEWEST_DF, FEWEST_REPEATED


class Diagnostic(NamedTuple):
    """`{units}` stands for what is counted: questions, or the clusters they come in."""

    meaning: str
    to_do: str
    """The last column of docs/diagnostics.md, word for word."""
    without_clusters: str = ""
    """What to do instead where questions come in no clusters."""
    with_labels: str = ""
    """What to do instead where people's labels correct the row."""


_LOOK = "Look for errored answers"
_REPEATS = (
    "Where answers are sampled, run with K > 1 repeats (--noise_repeats, --epochs; in a table several rows for a "
    "question); multiple choice by log-likelihoods has nothing to repeat."
)

DIAGNOSTICS: dict[str, Diagnostic] = {
    "partly_single_repeat": Diagnostic(
        f"some questions have one answer; they take the mean variance of the others (at least {FEWEST_REPEATED}, or as "
        "many as they are). If these are easier or harder, the split into data and prediction noise is biased; the SE "
        "and the total are not",
        f"{_LOOK}.",
    ),
    "single_repeats_differ": Diagnostic(
        "the questions with one answer score differently from the others, so the split into data and prediction "
        "noise is biased; the SE and the total are not",
        "Do not use the split; ask the missing answers again.",
    ),
    "single_repeat": Diagnostic(
        "one answer per question (perhaps more for a few): data and prediction noise cannot be separated",
        _REPEATS,
    ),
    "missing_repeats": Diagnostic(
        "questions have different numbers of scored answers, which is allowed for", f"{_LOOK}; see n_missing."
    ),
    "uses_all_repeats": Diagnostic(
        "the metric uses several answers of a question at once (pass@k, a majority vote): data and prediction noise "
        "cannot be separated",
        "To know its prediction noise, run the whole thing several times.",
    ),
    "single_level": Diagnostic(
        "a factor with one level: how much it varies is not known", "Run it with several levels."
    ),
    "aliased_factor": Diagnostic(
        "this factor and another one change together, so they cannot be separated",
        "Cross them: every level of one with several of the other.",
    ),
    "negative_component": Diagnostic(
        "the estimate of this variance component is below 0 and counts as 0",
        "Nothing: it is smaller than the design can resolve.",
    ),
    "identical_repeats": Diagnostic(
        "all answers to a question are the same, or score the same where only scores are known (temperature 0, a "
        "cache, a fixed server seed?): prediction noise is not known",
        "Sample at the temperature you report; switch the cache off; let repeats have seeds of their own.",
    ),
    "shared_repeat_noise": Diagnostic(
        "a repeat is better or worse on all questions at once (p < .05, which happens by chance in one run of "
        "twenty): if the repeats are not independent answers, the interval is too short",
        "If repeats are training seeds, prompts or judges, use `repeats_are='runs'`; else look for a drifting server.",
    ),
    "too_few_questions": Diagnostic("fewer than two questions: no standard error", "Run more questions."),
    "too_few_clusters": Diagnostic(
        "fewer than two clusters: no standard error",
        "Name a finer cluster; where the slices are the clusters themselves, slice by something else.",
    ),
    "few_clusters": Diagnostic(
        f"few {{units}}, fewer than {FEW_DF:g} degrees of freedom: the interval is wide, and less reliable",
        "More clusters help; more questions in the same clusters do not.",
        "More questions help.",
    ),
    "few_df": Diagnostic(
        f"fewer than {FEWEST_DF:g} degrees of freedom: neither p nor the interval is reliable",
        "Take a coarser field, or questions in more clusters.",
    ),
    "rare_category": Diagnostic(
        "so few questions show how scores vary inside the category, or inside the one that it is compared with, that "
        "its standard error may be far too small",
        "Merge the category with another, or do not read its interval.",
    ),
    "few_resampled": Diagnostic(
        f"a metric over all questions at once, of fewer than {FEW_RESAMPLED} {{units}} or decided by very few (F1 of a "
        "rare class): its interval may be too short",
        "More questions, above all of the rare class; the difference of two runs is more reliable than the interval of "
        "one.",
    ),
    "inner_clusters": Diagnostic(
        "the clusters lie within larger ones that the file names, and by these the standard error is clearly larger",
        "Name the outer field with `cluster`, unless its values are all there are; a note names it.",
    ),
    "singleton_clusters": Diagnostic(
        "every cluster holds one question: clustering changed nothing",
        "Check that the field names what questions share, not the question.",
    ),
    "negative_data_variance": Diagnostic(
        "the data noise is smaller than this many answers can show: “< x” is its one-sided 95 % limit, and only the "
        "raw variances (JSON) add up to SE²",
        "Nothing; more repeats would show it.",
    ),
    "zero_variance": Diagnostic(
        "all questions have the same value, or difference, so an SE of 0 is no certainty: the interval is that of a "
        "small-sample rule, or none where the range of the scores is not known",
        "Nothing; with few questions the interval is honest and wide. Say `range` where the range is not known.",
    ),
    "identical_scores": Diagnostic("the two runs score the same on every question", "Check that they are two runs."),
    "unpaired_questions": Diagnostic(
        "questions that only one of the runs has are left out", "Run both on the same questions."
    ),
    "unpaired": Diagnostic(
        "the runs are compared as if they had answered different questions: what they share is not used",
        "Give the runs themselves, without `unpaired`, if the questions are the same: the test sees more.",
    ),
    "different_prompts": Diagnostic(
        "the same questions were asked with different prompts", "Remember that the difference includes the prompts'."
    ),
    "mean_mismatch": Diagnostic(
        "the mean of the scores is not the harness's own value: samples are missing, or the scores are read wrongly",
        "Do not rely on the row before you know why. If all samples are there, please report it.",
    ),
    "few_flips": Diagnostic(
        "the difference rests on few {units}, so the interval is extended on its far side; SE and p are not affected",
        "More clusters help; more questions in the same clusters do not.",
        "More questions help.",
        "More labels help.",
    ),
    "few_failures": Diagnostic(
        f"the wrong answers, or the right ones, add up to fewer than {FEW_FAILURES} whole {{units}}: the interval is "
        "less reliable",
        "More questions or clusters help; `interval='korn-graubard'` is the cautious choice.",
        "More questions help; `interval='korn-graubard'` is the cautious choice.",
        "More labels help.",
    ),
    "skewed": Diagnostic(
        "a long tail on one side, and few {units} for it: a mean's interval is extended there (the SE is not affected) "
        "and may still be too short",
        "More clusters help; more questions in the same clusters do not. `interval='bootstrap-t'` resamples the tail.",
        "More questions help. `interval='bootstrap-t'` resamples the tail.",
    ),
    "ratio_undefined": Diagnostic(
        "the denominator of the ratio may be 0, because its 95 % interval contains 0: there is no ratio to estimate",
        "Analyse its two parts by themselves, or use more questions.",
    ),
    "cached_usage": Diagnostic(
        "some answers, or some calls, came from a cache, and what they would have cost is not known: they are left out "
        "where the log tells which they are, else the mean is too low",
        "Run without a cache to measure tokens, cost and time.",
    ),
    "not_after_adjustment": Diagnostic(
        "the interval alone shows a difference, which is no longer significant after adjustment for the rows that are "
        "tested together",
        "Look at the row again on new data; name one row in advance with `tasks`.",
    ),
    "missing_matters": Diagnostic(
        "counting all missing answers as wrong, or all as right, moves the mean by more than a third of its standard "
        "error",
        "If the run was cancelled, ask the rest; else find out why answers are missing (time-outs are often hard "
        "questions). `missing='zero'` counts them as wrong.",
    ),
    "copied_repeats": Diagnostic(
        "native answers that share a seed are copies of each other and count as one",
        "Let repeats have seeds of their own.",
    ),
    "identical_scores_only": Diagnostic(
        "the answers differ, but their scores do not: prediction noise is not known",
        "More repeats, or a finer metric.",
    ),
    "first_answer_differs": Diagnostic(
        "the first answer of every question scores differently from the later ones (a shared seed?): the native "
        "value and the mean over all answers are not the same thing",
        "Prefer _avg; look at the server's seed.",
    ),
    "stopped_early": Diagnostic(
        "the run stopped early, when it was decided or precise enough: this row does not allow for that",
        "Report the estimate and the interval of sequential, which allow for the looks.",
    ),
    "not_a_random_part": Diagnostic(
        "the questions that were asked are not a random part of the benchmark, so they say nothing about all of it",
        "Ask a random part: --noise_sample (in Inspect noise_sample).",
    ),
    "unequal_chances": Diagnostic(
        "questions of uncertain outcome were drawn more often: their plain mean is not that of the benchmark",
        "Take full_benchmark (`references`), which allows for it.",
    ),
    "reference_noise": Diagnostic(
        "no samples were compared: the noise is what the benchmark's profile gives for models of this accuracy",
        "Compare the runs themselves where you have their samples.",
    ),
    "skewed_rows": Diagnostic(
        "the rows are skewed in the same direction, so methods that add up their z would reject a true null too often",
        "Take equal weights.",
    ),
    "beyond_reference": Diagnostic(
        "a score is better than that of every model in the benchmark's noise profile, so the noise is extrapolated",
        "Compare the runs themselves, or make a profile of newer models (arena `write_profile`).",
    ),
    "judge_corrected": Diagnostic(
        "the estimate is of the mean that people would give: their labels of a random part of the answers correct the "
        "judge, and the standard error counts them",
        "Report it as such, with the number of labels and the judge's bias.",
    ),
    "few_labels": Diagnostic(
        f"fewer than {FEW_LABELLED} questions (clusters) have a label: the standard error is itself uncertain",
        "Label more questions.",
    ),
    "skipped_metric": Diagnostic(
        "no samples, or not a mean of question scores: only the harness's own value is shown",
        "Keep the samples (--log_samples).",
    ),
}
TO_DO = " What to do: "
"""Between what a diagnostic means and what to do."""
OF_ALL_ANSWERS = frozenset(("uses_all_repeats", "judge_corrected"))
"""Codes of one value of a question that all its answers make together."""
UNSPLIT = frozenset(("single_repeat", "identical_repeats", "identical_scores_only"))
"""Codes of what leaves data and prediction noise unsplit."""


def explained(code: str, clustered: bool | None = None, *, labelled: bool = False) -> str:
    """What a code says and what to do about it, in one or two sentences.

    Parameters
    ----------
    code
        Of `DIAGNOSTICS`; of another one there is nothing to say.
    clustered
        Whether the rows that have it count clusters; None: some do, or nobody knows.
    labelled
        Whether people's labels correct the rows that have it.
    """
    if code not in DIAGNOSTICS:
        return ""
    meaning, to_do, without, with_labels = DIAGNOSTICS[code]
    units = "questions or clusters" if clustered is None else "clusters" if clustered else "questions"
    do = with_labels if labelled and with_labels else without if without and clustered is False else to_do
    return f"{meaning.format(units=units)}.{TO_DO}{do[0].lower()}{do[1:]}"
