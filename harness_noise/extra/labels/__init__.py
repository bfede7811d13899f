"""Human labels of a random subset of the answers: which are drawn, and the scores of a judge that they correct."""

from ...extras import Calculation, Extra, Keyword, Option

_ASKING = Keyword("asking", "analyze compare arena")
_COMMANDS = ("analyze", "compare", "gate", "arena", "label")
_INTERVALS = {"interval": ("t", "wilson")}

EXTRA = Extra(
    functions={"label_sample": "api", "estimate_with_labels": "api", "LabelSample": "results"},
    results="results",
    explains={"judge": "explaining"},
    commands={"label": "cli"},
    called={"label_sample": "label"},
    keywords=dict.fromkeys(("labels", "labels_scorer", "label_range", "labels_at_random"), _ASKING),
    options=(
        Option(
            "--labels",
            "Human labels for a random subset of the answers, which correct the judge's scores. Columns: question, "
            "label[, task][, model][, repeat][, person]. `label` draws the subset.",
            _COMMANDS,
            "FILE",
        ),
        Option(
            "--labels-scorer",
            "The scorer of the log whose scores are human labels. edits: the scores that people have edited.",
            _COMMANDS,
            "NAME",
        ),
        Option("--label-range", "The labels of the lowest and the highest score.", _COMMANDS, "LOW,HIGH"),
        Option(
            "--labels-at-random",
            "Confirm that the labelled answers were chosen at random, although they do not look random.",
            _COMMANDS,
        ),
    ),
    calculations={
        "label": Calculation(
            obeys="cluster only seed tasks metrics scorers groups columns format_file follow_links apart as_repeats",
            refusals={"": "a sample to be labelled does not use {what}: leave it out"},
        ),
        "labels": Calculation(
            obeys="level adjust margin range missing cluster weights only models against n two_like_this assurance "
            "judged target_se",
            values=_INTERVALS,
            words="human labels",
            refusals={
                "": "with labels the mean or difference of each task, over all questions of a finished run, has the "
                "CR2 standard error, the t test and the t or Wilson interval: leave {what} or the labels out",
                "profile": "{what} is the noise of two bare numbers, as in `compare 0.71 0.68`, and runs and counts "
                "bring their own: leave it out",
                "answers_b": "{what} is about a published number, as in `compare RUN 0.474`: leave it out, or give one",
            },
        ),
        "estimate_with_labels": Calculation(
            obeys="level range missing",
            values=_INTERVALS,
            refusals={
                "": "a mean that labels correct does not use {what}: leave it out",
                "cluster": "{what} names a field of the questions of a run, and arrays have none: give names as "
                "`clusters`, and only the rows that count",
            },
        ),
    },
    words={
        "corrected": "With labels",
        "advice for a corrected row": "More labels help.",
        "few_failures": " With [people's labels](methods/judges.md) also if fewer than 10 questions (clusters) hold "
        "the judge's errors that the labels show: that few are seen does not prove that there are few, so the "
        "standard error counts two more. More labels help.",
    },
    notes={
        "labels_used": "which labels count",
        "not_labelled": "what has too few labels",
        "few_drawn": "labels that will count alone",
        "drawn_alike": "questions that are all drawn with one probability",
    },
)
