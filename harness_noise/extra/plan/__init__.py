"""Plans: how many questions and answers, how small a difference, what power."""

from ...extras import Calculation, Extra

_SCORES = "{what} is about measures other than the score, and this is about scores: leave it out, or use `compare`"
_OF_RUNS = "{what} is about `runs`, and none is given: name a run, or leave it out"
_OF_FILES = "{what} says how files are read, and none is read here: leave it out, or give their paths"
_SAID = (
    "{what} is one of the numbers that a plan starts from without runs, and what is given here says it already: leave "
    "it out"
)
_EACH = "level looks n judged target_se"


def _said(*names: str) -> dict[str, str]:
    return dict.fromkeys(names, _SAID)


EXTRA = Extra(
    functions={"plan": "api", "Plan": "results"},
    results="results",
    commands={"plan": "cli"},
    words={"mean_mismatch": ", plans"},
    calculations={
        "plan": Calculation(
            obeys=f"{_EACH} se repeats_are range missing cluster only seed resamples tasks metrics scorers groups "
            "columns format_file follow_links apart as_repeats models labels labels_scorer label_range "
            "labels_at_random two_like_this assurance answers",
            refusals={
                "": "a plan does not use {what}: leave it out",
                **dict.fromkeys(("measures", "prices"), _SCORES),
                **_said("r2", "sigma2", "design_effect", "cluster_size", "icc", "solved"),
            },
        ),
        "plan_row": Calculation(
            obeys=f"{_EACH} two_like_this assurance",
            refusals={"": _OF_FILES, **_said("r2", "design_effect", "cluster_size", "icc", "solved")},
        ),
        "plan_profile": Calculation(
            obeys=f"{_EACH} tasks metrics scorers profile r2 accuracy design_effect",
            refusals={"": _OF_RUNS, **_said("sigma2", "cluster_size", "icc", "solved")},
        ),
        "plan_accuracy": Calculation(
            obeys=f"{_EACH} profile r2 accuracy solved cluster_size icc design_effect",
            refusals={"": _OF_RUNS, **_said("sigma2")},
        ),
        "plan_numbers": Calculation(
            obeys=f"{_EACH} r2 omega2 sigma2 cluster_size icc design_effect",
            refusals={"": _OF_RUNS, **_said("solved")},
        ),
    },
    notes={
        "the_plan": "what a plan is for, and in what it counts",
        "the_pilot": "how far the pilot of a plan can be trusted",
        "plan_of_labels": "how many labels it takes",
        "plan_by_task": "answers spread over the tasks",
        "plan_of_judge": "what another call of the judge is worth",
        "noise_of_others": "noise that comes from a benchmark's profile",
    },
)
