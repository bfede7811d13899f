"""The diagnostic codes of all results: their meaning for a row, and advice."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from ..extras import words
from ..stats.tolerances import (
    FEW_DF,
    FEW_FAILURES,
    FEW_RESAMPLED,
    FEWEST_REPEATED,
)


class Severity(enum.Enum):
    """The severity of a diagnostic. The value is the heading of its part of the page."""

    STOP = "Do not use the number"
    CARE = "Use it with care"
    NOTE = "Good to know"


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One code: its meaning for a row, and advice. `{units}` is replaced by questions or clusters."""

    code: str
    severity: Severity
    meaning: str
    to_do: str
    """Advice, also the last column of docs/diagnostics.md."""
    without_clusters: str = ""
    """Advice where questions come in no clusters, if that is another."""
    corrected: str = ""
    """Advice where an extra corrects the row, if that is another."""
    of_grades: tuple[str, str] | None = None
    """(Meaning, advice) where scores are not right or wrong, if they are others."""
    page: str = ""
    """The meaning at length, in Markdown, for docs/diagnostics.md."""


_LOOK = "Look for errored answers"
_REPEATS = (
    "If answers are sampled, run with K > 1 repeats (--noise_repeats, --epochs, or several rows for a question in a "
    "table). Multiple choice by log-likelihoods has nothing to repeat."
)

STOPPED = "stopped_early"
"""The code of a row that does not allow for why its run stopped."""

SCORED = "scored_differently"
"""The code of a row whose verdict is withheld: equal answers are scored differently."""

NOT_ASKED = "not_asked_for"
"""The code of a row that the harness does not report, and that tables on a screen leave out."""

_ALL = (
    Diagnostic(
        "partly_single_repeat",
        Severity.CARE,
        f"some questions have one answer. They borrow the mean variance of the others (at least {FEWEST_REPEATED}, or "
        "as many as they are). If these are easier or harder, the split into data and prediction noise is biased. "
        "Mean, SE and SE (1 answer) are also biased if an answer's score decided whether the next one was asked",
        f"{_LOOK}, and for answers that were asked again because of their score.",
        page=(
            "Some questions have one scored answer. They get the mean variance of the others of their task, of which "
            "there are at least ten, or as many. If those are easier or harder, the split into data and prediction "
            "noise is biased. Mean, standard error and `se_total` do not depend on the split. They are biased if an "
            "answer's score decided whether the next one was asked."
        ),
    ),
    Diagnostic(
        "single_repeats_differ",
        Severity.CARE,
        "the questions with one answer score differently from the others, so the split into data and prediction "
        "noise is biased, and so is the mean if an answer's score decided whether the next one was asked",
        "Do not use the split. Find out why these questions have one answer, and ask the missing ones again.",
        page=(
            "The questions with one scored answer do score differently from the others of their task (Welch's test, p"
            " < 0.05), so the split *is* biased: in one design the data variance was 1.6 times too large. The "
            "standard error and `se_total` remain exact if the scores had nothing to do with how many answers there "
            "are. If they had, the mean is biased too."
        ),
    ),
    Diagnostic(
        "single_repeat",
        Severity.NOTE,
        "one answer per question (perhaps more for a few): data and prediction noise cannot be separated",
        _REPEATS,
        page=(
            "One answer per question, or more than one only for a handful (fewer than ten, and fewer than the "
            "questions with one). The split into data and prediction noise cannot be estimated and is null. The "
            "standard error and `se_total` need no more than one answer."
        ),
    ),
    Diagnostic(
        "missing_repeats",
        Severity.NOTE,
        "questions have different numbers of scored answers, which is allowed for",
        f"{_LOOK}: see n_missing.",
        page=("Questions have different numbers of scored answers. The estimators allow for it."),
    ),
    Diagnostic(
        "stopped_on_success",
        Severity.NOTE,
        "the answers to a question end at the first success, as retries do, so their mean would be too high: the row "
        "is of first attempts, one for each question",
        "Nothing, to compare first attempts. `measures=['pass@K']` gives the chance of a success within K.",
        page=(
            "The answers to a question end at its first success, as retries do, or an agent that tries again until it"
            " passes. The mean over all answers is then too high: by 0.11 with up to three answers and a pass rate of "
            "one half, and its interval is in the wrong place. So the row is of first attempts, K = 1. A format may "
            "say that its answers stop so. Otherwise it is seen: among the sequences that end early, ends after a "
            "success are more frequent than chance allows (p < 0.001, at least 3), at most 5% of the successes go on, "
            "and at most 25% of the early ends follow a failure. No run of 300 with answers that are missing for "
            "another reason has this code."
        ),
    ),
    Diagnostic(
        "stopped_on_failure",
        Severity.NOTE,
        "the answers to a question end at the first failure, so their mean would be too low: the row is of first "
        "attempts, one for each question",
        "Nothing, to compare first attempts. `measures=['pass^K']` gives the chance that all of K are right.",
        page=(
            "The same with success and failure exchanged: the answers to a question end at its first failure. The "
            "mean over all answers would be too low."
        ),
    ),
    Diagnostic(
        "uses_all_repeats",
        Severity.NOTE,
        "the metric uses several answers of a question at once (pass@k, a majority vote): data and prediction noise "
        "cannot be separated",
        "To know its prediction noise, run the whole thing several times.",
        page=(
            "The metric uses several answers of a question at once (pass@k, a majority vote). Its data and prediction"
            " noise cannot be separated, and it has no value for one answer. The standard error is right."
        ),
    ),
    Diagnostic(
        "identical_repeats",
        Severity.CARE,
        "all answers to a question are the same, or score the same if only scores are known (temperature 0, a "
        "cache, a fixed server seed?): prediction noise is not known",
        "Sample at the temperature you report, switch the cache off, and give each repeat its own seed.",
        page=(
            "All K answers agree on every question, or their scores do if only scores are available (a table). "
            "Prediction noise cannot be estimated: this is what temperature 0, a response cache or a fixed server "
            "seed look like."
        ),
    ),
    Diagnostic(
        "shared_repeat_noise",
        Severity.CARE,
        "a repeat is better or worse on all questions at once (p < 0.05, which happens by chance in one run of "
        "twenty): if the repeats are not independent answers, the interval is too short",
        "If repeats are training seeds, prompts or judges, use `repeats_are='runs'`. Else find out what all answers of "
        "one repeat share: a changed server, or answers that were asked again because of their score.",
        page=(
            "One repeat is better or worse on all questions at once (F test, p < 0.05), or the format says that its "
            "repeats are runs. Then the repeats are not independent answers, and the interval is too short. One run "
            "in twenty with independent answers has this code by chance, and with few repeats many runs with a shared"
            " cause lack it (see [runs](methods/runs.md))."
        ),
    ),
    Diagnostic(
        "too_few_questions",
        Severity.STOP,
        "fewer than two questions: no standard error",
        "Run more questions.",
        page=("Fewer than two questions. No standard error exists."),
    ),
    Diagnostic(
        "unscored_task",
        Severity.STOP,
        "one of its tasks has no question with a score (of a difference: in both runs)",
        "Score that task, or choose the others with `tasks`.",
        page=(
            "A group, or the overall row, has a task without any question that has a score (of a difference: in both "
            "runs). Its weight is fixed, so there is no mean. By size (`--weights size`) the overall row is without it."
        ),
    ),
    Diagnostic(
        "too_few_clusters",
        Severity.STOP,
        "fewer than two clusters: no standard error",
        "Name a finer cluster. If the slices are the clusters themselves, slice by something else.",
        page=("Fewer than two clusters, in the run or in a task of a group. No standard error exists."),
    ),
    Diagnostic(
        "cluster_template",
        Severity.STOP,
        "the log says its clusters by a template, which is never run from a file: no standard error",
        "Repeat the template as `cluster`, if you trust it. Else name a field, or `cluster='none'`.",
        page=(
            'The log says its clusters by a template (`noise_cluster: "{{a}}"`) and has not kept the clusters of its '
            "samples. A template of a file is never run, so it is unknown which questions belong together. No standard "
            "error exists, and `gate` cannot judge."
        ),
    ),
    Diagnostic(
        "few_clusters",
        Severity.CARE,
        f"few {{units}}, fewer than {FEW_DF:g} degrees of freedom: the interval is wide, and less reliable",
        "More clusters help, more questions in the same clusters do not. If the clusters are categories that are all "
        "there are, they are no sample: use `by`, not `cluster`.",
        without_clusters="More questions help.",
        page=(
            "Fewer than 10 degrees of freedom: few clusters, or few questions without clusters. Intervals "
            "are wide and less reliable, most of all if clusters differ in size."
        ),
    ),
    Diagnostic(
        "few_resampled",
        Severity.CARE,
        f"a metric over all questions at once, of fewer than {FEW_RESAMPLED} {{units}} or decided by very few (F1 of a "
        "rare class): its interval may be too short",
        "More questions, above all of the rare class. The difference of two runs is more reliable than the interval of "
        "one.",
        page=(
            "A metric that is computed over all questions at once (F1, bleu, perplexity) on fewer than 30 questions "
            "(clusters), or one that rests on very few of them: the effective number (Σu²)²/Σu⁴, with u the change "
            "when one is left out, is below 5 (of a difference: 3). An F1 of a rare class rests on its hits, misses "
            "and false alarms, however many questions there are. What such intervals cover is simulated for [few "
            "questions](methods/coverage-weak.md#corpus-metrics) and for [a rare "
            "class](methods/coverage-weak.md#f1-of-a-rare-class)."
        ),
    ),
    Diagnostic(
        "grouped_metric",
        Severity.CARE,
        "the metric groups rows (all answers to a question right, consistency over prompts), so its noise is that of "
        "whole groups: the jackknife over these, and no error bar if they are not known",
        "If there is none, name what the metric groups by with `cluster`. `cluster='auto'` knows it for some tasks.",
        page=(
            "The task's own aggregation goes across rows: all rows of a question right "
            "(`super_glue-multirc-t5-prompt`, `super_glue-record-t5-prompt`), or consistency over prompts (SCORE). "
            "Drawn twice, a question would be merged into one by the metric itself, so nothing is resampled. The "
            "variance is the delete-one-cluster jackknife over the named clusters, or over what the metric groups its "
            "records by, if that is a value in each of them (other names for it change nothing, and each record alone "
            "does): the row's `cluster` says so. Without either there is no error bar, because rows are no clusters of "
            "such a metric. It is seen by leaving rows out and by taking them twice."
        ),
    ),
    Diagnostic(
        "inner_clusters",
        Severity.CARE,
        "the clusters lie within larger ones that the file names, and by these the standard error is clearly larger",
        "Name the outer field with `cluster`, unless its values are all there are. A note names it.",
        page=(
            "The clusters lie within larger ones (passages within articles, files within repositories), which another"
            " field of the file names, and clustering by that field makes the standard error at least 1.1 times as "
            "large. If the outer clusters are a sample, the interval is too short."
        ),
    ),
    Diagnostic(
        "singleton_clusters",
        Severity.NOTE,
        "every cluster holds one question: clustering changed nothing",
        "Check that the field names what questions share, not the question.",
        page=("Every cluster holds one question, so clustering changed nothing."),
    ),
    Diagnostic(
        "negative_data_variance",
        Severity.NOTE,
        "the data noise is smaller than this many answers can show: “< x” is its one-sided 95% limit, and only the "
        "raw variances (JSON) add up to SE²",
        "Nothing. More repeats would show it.",
        page=(
            "The unbiased estimate of the data variance came out below 0. `se_data` is 0, `var_data` keeps the raw "
            'value, and tables show "< x" with x = `se_data_upper`, its one-sided 95% limit. SE² = data² + '
            "prediction²/K holds for the raw variances, so in such a row it does not hold for the figures as printed "
            "(the prediction noise may be above the total)."
        ),
    ),
    Diagnostic(
        "zero_variance",
        Severity.CARE,
        "all questions have the same value, or difference, so an SE of 0 is no certainty: the interval is that of a "
        "small-sample rule, or none if the range of the scores is not known",
        "Nothing. With few questions the interval is honest and wide. Say `range` if the range is unknown.",
        page=(
            "All questions have the same value (or difference). An SE of 0 does not mean certainty. Scores at one end"
            " of a known range (`range`) have Wilson's interval with n = G, differences that of Bonett–Price. Others "
            "have none: ten judgements of 0.5 do not show how far off an eleventh might be. Scores that are all 0, or"
            " all 1, do not show that the metric lies in [0, 1]. Its name or `--range` must say so. Statistic and MDE"
            " are null."
        ),
    ),
    Diagnostic(
        "identical_scores",
        Severity.CARE,
        "the two runs score the same on every question",
        "Check that they are two runs.",
        page=("The two runs score the same on every question."),
    ),
    Diagnostic(
        "unpaired_questions",
        Severity.NOTE,
        "questions that only one of the runs has are left out",
        "Run both on the same questions.",
        page=("Questions that only one of the runs has were left out. `n_only_a` and `n_only_b` count them."),
    ),
    Diagnostic(
        "unpaired",
        Severity.NOTE,
        "the runs are compared as if they had answered different questions: what they share is not used",
        "Give the runs themselves, without `unpaired`, if the questions are the same: the test sees more.",
        page=(
            "The runs were compared as independent samples of questions (`--unpaired`). All questions of both count, "
            "and shared questions are not used."
        ),
    ),
    Diagnostic(
        "different_prompts",
        Severity.CARE,
        "the same questions were asked with different prompts",
        "Remember that the difference includes the prompts'.",
        page=("The same questions were asked with different prompts."),
    ),
    Diagnostic(
        "mean_mismatch",
        Severity.STOP,
        "the mean of the scores is not the harness's own value: samples are missing, or the scores are read wrongly",
        "Do not rely on the row before you know why. If all samples are there, please report it.",
        page=(
            "The mean of the scores is not the harness's own value: the file may hold a part of the samples, or the "
            "scores may be read wrongly (a custom conversion, a changed file). Everything computed from them has the "
            f"code: means, differences, pairs, slices{words('mean_mismatch')}. A gate cannot judge such a row, and "
            "`export` writes no error bar next to the value."
        ),
    ),
    Diagnostic(
        "few_flips",
        Severity.CARE,
        "few {units} decide the difference: few differ, or few differ far more than the others. So the limit farther "
        "from 0 is moved outwards. SE and p are not affected",
        "More clusters help, more questions in the same clusters do not.",
        without_clusters="More questions help.",
        corrected=words("advice for a corrected row"),
        page=(
            "Few questions (clusters) decide the difference: few differ at all, or few differ so much more than the"
            " others that they decide it. A symmetric interval is too short there, so the limit farther from 0 is "
            "moved outwards (see [the difference of two runs](methods/paired.md)). SE, p and the other limit are those "
            "of t."
        ),
    ),
    Diagnostic(
        "few_failures",
        Severity.CARE,
        f"the wrong answers, or the right ones, add up to fewer than {FEW_FAILURES} whole {{units}}: the interval is "
        "less reliable",
        "More questions or clusters help. `interval='korn-graubard'` is the cautious choice.",
        without_clusters="More questions help. `interval='korn-graubard'` is the cautious choice.",
        corrected=words("advice for a corrected row"),
        page=(
            "The wrong answers, or the right ones, are worth fewer than 10 questions (with clusters: clusters) of "
            "like weight: their effective number (Σ f_c)²/Σ f_c² is below 10, f_c being what the wrong answers of "
            "question (cluster) c count for in the mean. With several 0/1 answers per question, and if more than "
            "half of the scores lie at that end of the range, each question counts by its rate of wrong, or right, "
            "answers at most (a cluster by its highest). Of fewer than 20 clusters half their number is enough. With"
            " fewer than 30 degrees of freedom, and fewer than half as many as clusters, the number is (Σ f_c²)²/Σ "
            "f_c⁴, which a few large clusters decide. Near the end of the scale there is little information: the "
            f"interval may cover less than it promises, above all with clusters.{words('few_failures')}"
        ),
    ),
    Diagnostic(
        "skewed",
        Severity.CARE,
        "a long tail on one side, and few {units} for it: a mean's interval is extended there (the SE is not affected) "
        "and may still be too short",
        "More clusters help, more questions in the same clusters do not. `interval='bootstrap-t'` resamples the tail, "
        "from 6 clusters on.",
        without_clusters="More questions help. `interval='bootstrap-t'` resamples the tail, from 6 questions on.",
        page=(
            "The scores of one run, or the paired differences of a measure such as cost, have a long tail on one "
            "side, and are too few for it: the skewness of the mean (that of the scores over √n) is above 0.2, for a "
            "measure above 0.1, and above what the interval allows for. A symmetric interval is too short on that "
            "side, so that of a mean is extended there (see [intervals](methods/intervals.md)). SE and the other end "
            "are not affected. With a tail of rare large values it may still be too short."
        ),
    ),
    Diagnostic(
        "ratio_undefined",
        Severity.STOP,
        "the denominator of the ratio may be 0, because its 95% interval contains 0: there is no ratio to estimate",
        "Analyse its two parts by themselves, or use more questions.",
        page=(
            "`--measure X/Y`: the 95% t interval of the denominator's mean contains 0, so that the ratio may be "
            "anything. Estimate, interval and test are null (see [measures](methods/measures.md))."
        ),
    ),
    Diagnostic(
        "cached_usage",
        Severity.CARE,
        "some answers, or some calls, came from a cache, and what they would have cost is not known: they are left out "
        "if the log tells which they are, else the mean is too low",
        "Run without a cache to measure tokens, cost and time.",
        page=(
            "Some answers, or some calls of them, came from a cache: a cost of 0 is not what they cost. They are left"
            " out if the log says which they are. If it only says that there was a cache, the mean is too low."
        ),
    ),
    Diagnostic(
        "not_after_adjustment",
        Severity.CARE,
        "the interval alone shows a difference, which is no longer significant after adjustment for the rows that are "
        "tested together",
        "Look at the row again on new data. Name one row in advance with `tasks`.",
        page=(
            "The interval of this row alone excludes 0, but after adjustment for the rows of its family the "
            "difference is not significant. The verdict and the gate follow the adjusted p."
        ),
    ),
    Diagnostic(
        "missing_matters",
        Severity.CARE,
        "counting all missing answers as wrong, or all as right, moves the mean by more than a third of its standard "
        "error",
        "If the run was cancelled, ask the rest. Else find out why answers are missing (time-outs are often hard "
        "questions). `missing='zero'` counts them as wrong.",
        of_grades=(
            "counting all missing answers at the lowest score of the range, or all at the highest, moves the mean by "
            "more than a third of its standard error",
            "If the run was cancelled, ask the rest. Else find out why answers are missing (time-outs are often hard "
            "questions).",
        ),
        page=(
            "Answers are missing. `mean_if_missing_wrong` and `mean_if_missing_right` differ by more than a third of "
            "the standard error, so which answers are missing may decide the result (see [one "
            "run](methods/one-run.md))."
        ),
    ),
    Diagnostic(
        "copied_repeats",
        Severity.CARE,
        "answers that share a seed, or were generated greedily, are copies of each other and count as one",
        "Let repeats have seeds of their own, and a temperature.",
        page=(
            "Native answers of a question share a seed and are copies of each other. They count as one answer. They "
            "are recognised by the further answers, which have seeds of their own (lm-eval). Or the answers are "
            "generated greedily (temperature 0), and a second answer to 30 questions was a copy each time, so no "
            "other was asked for."
        ),
    ),
    Diagnostic(
        "identical_scores_only",
        Severity.CARE,
        "the answers differ, but their scores do not: prediction noise is not known",
        "More repeats, or a finer metric.",
        page=("The K answers differ but score the same on every question, so prediction noise cannot be estimated."),
    ),
    Diagnostic(
        "first_answer_differs",
        Severity.CARE,
        "the first answer of every question scores differently from the later ones (a shared seed?): the native "
        "value and the mean over all answers are not the same thing",
        "Prefer _avg, and look at the server's seed.",
        page=(
            "The first answer of every question scores differently from the later ones (F test of one contrast, p < "
            "0.005), as happens if all first answers share a seed. The native value and `_avg` then do not estimate"
            " the same thing."
        ),
    ),
    Diagnostic(
        "doubled_questions",
        Severity.CARE,
        "some questions are the same as others, under another id: they count as independent, so the standard error is "
        "too small",
        "Cluster by the words of the question. A note names the field and the standard error.",
        page=(
            "Some questions are the same as others, under another id: messages, choices, attachments and target are "
            "equal, as far as the file has them. They count as independent, so the standard error is too small. A "
            "note says what it would be with clusters by their words, and what to type. Nothing is clustered by "
            "itself. So few that they could not raise the variance by 1% are not marked."
        ),
    ),
    Diagnostic(
        "scored_differently",
        Severity.STOP,
        "at least 5 answers, and 5% of those with the same text in both runs, are scored differently: the scoring "
        "differs, not the models, so there is no verdict",
        "Score both runs with the same version of the scorer, then compare again.",
        page=(
            "Both runs gave answers with the same text to the same questions, and the scores of these answers differ:"
            " at least 5 answers, and at least 5% of the equal ones (`equal_answers` counts both). The scoring "
            "differs and not the models, so the verdict is `scored differently` and a gate cannot judge the row. p "
            "and interval stay in JSON. Nothing that reads the difference has a verdict either: slices, `regress`, "
            f"other methods over all tasks{words('scored_differently')}, checkpoints.{words('refuses them')} Texts are "
            "compared, never log-likelihoods. A judge that scores one text in two ways is noise and has no such code "
            "(`judge_flips`)."
        ),
    ),
    Diagnostic(
        "other_version",
        Severity.CARE,
        "the two runs were scored with other versions of the task or of packages, or with other options of the scorer",
        "If the difference matters, score both runs with the same versions.",
        page=(
            "The version of the task or of a package, or the options of the scorer, differ between the two runs. A "
            "note names them. Nothing is withheld."
        ),
    ),
    Diagnostic(
        STOPPED,
        Severity.CARE,
        "the run stopped early, when it was decided or precise enough: this row does not allow for that",
        "Report the estimate and the interval that an analysis of the whole run shows under “When the run stopped” "
        "(sequential in JSON)."
        f"{words('stopped_early')}",
        page=(
            "The run stopped before everything was asked, because a rule had decided or its standard error was small "
            "enough (`--noise_until`, in Inspect `noise_until`). This row is computed as if the number of answers had"
            " been fixed, so its mean is a little too extreme."
        ),
    ),
    Diagnostic(
        "not_a_random_part",
        Severity.STOP,
        "the questions that were asked are not a random subset of the benchmark, so they say nothing about all of it",
        "Ask a random subset: --noise_sample (in Inspect noise_sample).",
        page=(
            "The questions that were asked are not a random subset of the benchmark (`--limit` takes the first ones), "
            "so the whole benchmark cannot be estimated."
        ),
    ),
    Diagnostic(
        "unequal_chances",
        Severity.CARE,
        "questions of uncertain outcome were drawn more often: their plain mean is not that of the benchmark",
        "Take full_benchmark (`complete`), which allows for it.",
        page=(
            "The questions are a random subset that was drawn with unequal probabilities: those on which the complete"
            " runs disagree more often (`--noise_sample` with `--noise_complete`). The plain mean of the row, and "
            "the harness's own value, are of harder or closer questions than the benchmark's."
        ),
    ),
    Diagnostic(
        NOT_ASKED,
        Severity.NOTE,
        "the harness does not report this metric: it is made of the same answers, and is in JSON and in `details`",
        "Name it with `metrics` to see it in the first table.",
        page=(
            "lm-eval does not report this metric: `acc_prob` is made of the same answers. It is in JSON and in "
            "`--details`. The first table leaves it out unless it is named."
        ),
    ),
    Diagnostic(
        "reference_noise",
        Severity.CARE,
        "no samples were compared: the noise is what the benchmark's profile gives for models of this accuracy",
        "Compare the runs themselves if you have their samples.",
        page=(
            "No samples were compared: the standard error is the one that the benchmark's noise profile (`--profile`)"
            " gives for models of this accuracy."
        ),
    ),
    Diagnostic(
        "skewed_rows",
        Severity.CARE,
        "the rows are skewed in the same direction, so methods that add up their z would reject a true null too often",
        "Take the overall row.",
        page=(
            "The question values of the tasks are skewed in the same direction (pooled test, p < 0.05), by enough to "
            "shift Stouffer's z by more than 0.15. Each task's t test is hardly affected. Stouffer's method and "
            "inverse variance add the skewness up and would reject a true null far too often, so both are null (see "
            "[combining](methods/combine.md))."
        ),
    ),
    Diagnostic(
        "chance_corrected",
        Severity.NOTE,
        "scores are corrected for guessing, (x − c)/(1 − c): 0 is chance, and nothing is clipped there",
        "Report it as corrected. Differences are 1/(1 − c) times the raw ones.",
        page=(
            "`--chance`: scores are corrected for guessing, (x − c)/(1 − c), see [chance](methods/groups.md#chance). "
            "0 is chance, and nothing is clipped there."
        ),
    ),
    Diagnostic(
        "chance_varies",
        Severity.NOTE,
        "the chance differs from question to question, so each question's score is corrected, and the interval is t's",
        "Nothing: correcting the mean by one chance would be wrong.",
        page=(
            "The number of choices differs from question to question, so each question's score is corrected by its "
            "own chance, and the interval is t's within the range."
        ),
    ),
    Diagnostic(
        "tasks_share_questions",
        Severity.CARE,
        "the tasks share questions or clusters, so methods that take them for independent are refused",
        "Take the overall row, which counts what is shared once.",
        page=(
            "Two tasks ask a question with the same words, or share a cluster. Methods that take the tasks for "
            "independent would reject a true null far too often, so they are null (see "
            "[combining](methods/combine.md))."
        ),
    ),
    Diagnostic(
        "tasks_differ",
        Severity.CARE,
        "the tasks are shown to have different differences (Cochran's Q), so inverse variance is refused",
        "Take the overall row, or look at the tasks one by one.",
        page=(
            "Cochran's Q shows that the tasks do not share one difference (p < 0.05). Inverse variance would give "
            "nearly all weight to the most precise task, so it is null."
        ),
    ),
    Diagnostic(
        "beyond_reference",
        Severity.CARE,
        "a score is better than that of every model in the benchmark's noise profile, so the noise is extrapolated",
        "Compare the runs themselves, or make a profile of newer models (arena `write_profile`).",
        page=(
            "A score is better than that of every model in the benchmark's noise profile (`--profile`), so its noise "
            "is extrapolated."
        ),
    ),
    Diagnostic(
        "not_these_questions",
        Severity.STOP,
        "no share of right answers to these questions rounds to the published number",
        "Find out which questions and which metric the number is of. If they are others, give their number as `n`.",
        page=(
            "A published number that is no share k/(n·K) of right answers to these n questions, within its rounding. "
            "It is of other questions, or of another metric."
        ),
    ),
    Diagnostic(
        "few_runs",
        Severity.CARE,
        "at most five baseline runs show poorly how far runs differ, so the limit is far from the mean",
        "Give more baseline runs. The third helps most. With six, little is lost.",
        page=(
            "At most five baseline runs of a [gate](how/gate.md#runs-differ-by-more-than-their-answers) show poorly "
            "how far runs differ, so the limit lies far from the mean. p and limit stay right."
        ),
    ),
    Diagnostic(
        "overlap_unknown",
        Severity.NOTE,
        "A and B answered random subsets with few common questions: the correlation of their answers is unknown, so "
        "the largest variance is used, and the interval is too wide",
        "Let both answer at least 20 common questions (clusters).",
        page=(
            "A and B have answered two random subsets with fewer than 20 common questions (clusters), so that the "
            "covariance of what the complete runs leave unexplained is not known. The worst is taken: of disjoint "
            "halves the variance is 1.2 to 1.7 times too large."
        ),
    ),
    Diagnostic(
        "skipped_metric",
        Severity.STOP,
        "no samples, or not a mean of question scores: only the harness's own value is shown",
        "Keep the samples (--log_samples).",
        page=(
            "The metric is not a mean of per-question scores, or its samples are missing. Only the harness's own "
            "value is shown."
        ),
    ),
)
DIAGNOSTICS = {item.code: item for item in _ALL}
_OWN = frozenset(DIAGNOSTICS)


def listed() -> list[Diagnostic]:
    """Return all diagnostics: the core's in their fixed order, then those that are registered, by code."""
    return [*_ALL, *sorted((DIAGNOSTICS[code] for code in DIAGNOSTICS.keys() - _OWN), key=lambda item: item.code)]


def register(*items: Diagnostic) -> None:
    """Add diagnostics, as an extra has them, to the table of all. A code that is there is replaced."""
    DIAGNOSTICS.update((item.code, item) for item in items)


"""Code → its diagnostic."""
FIRST_ATTEMPTS = frozenset(("stopped_on_success", "stopped_on_failure"))
"""Codes of rows of first answers, because the score of one decided whether the next was asked."""
OF_ALL_ANSWERS = frozenset(("uses_all_repeats", "judge_corrected"))
"""Codes of one value of a question that all its answers make together."""
UNSPLIT = frozenset(("single_repeat", "identical_repeats", "identical_scores_only"))
"""Codes of what leaves data and prediction noise unsplit."""


def meaning_of(code: str, clustered: bool | None = None, *, graded: bool = False) -> str:
    """Return what a code means for rows of questions or `clustered` rows, as a sentence, "" for an unknown code.

    Parameters
    ----------
    code
        A code.
    clustered
        True if the rows that have it count clusters. None: some do, or it is unknown.
    graded
        True if the rows that have it have scores that are not right or wrong.
    """
    units = "questions or clusters" if clustered is None else "clusters" if clustered else "questions"
    if code not in DIAGNOSTICS:
        return ""
    item = DIAGNOSTICS[code]
    meaning = item.of_grades[0] if graded and item.of_grades else item.meaning
    return f"{meaning.format(units=units)}."


def explained(code: str, clustered: bool | None = None, *, corrected: bool = False, graded: bool = False) -> str:
    """Return the meaning of a diagnostic code and advice, as two sentences, "" for an unknown code.

    Parameters
    ----------
    code
        A code of `DIAGNOSTICS`. Another one gives "".
    clustered
        True if the rows that have it count clusters. None: some do, or it is unknown.
    corrected
        True if an extra corrects the rows that have it.
    graded
        True if the rows that have it have scores that are not right or wrong.
    """
    if code not in DIAGNOSTICS:
        return ""
    item = DIAGNOSTICS[code]
    do = item.without_clusters if item.without_clusters and clustered is False else item.to_do
    do = item.corrected if corrected and item.corrected else do
    do = item.of_grades[1] if graded and item.of_grades else do
    return f"{meaning_of(code, clustered, graded=graded)} What to do: {do[0].lower()}{do[1:]}"
