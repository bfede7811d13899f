"""What a user chose, validated once and recorded in every result; and who obeys which of it.

Every field of `Settings` names its consumers, the calculations that obey it, and which of its values each obeys;
`KEYWORDS` does so for the other keywords of the public functions. What is given and not obeyed is refused by
`check_obeyed`, nowhere else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from math import inf
from numbers import Integral, Real
from typing import Any, Literal

from .errors import InputError, check_kind, check_one_of, parameter

Interval = Literal["auto", "t", "wilson", "clopper-pearson", "korn-graubard", "bootstrap", "bootstrap-t"]
Test = Literal["t", "sign", "permutation", "bootstrap", "wild"]
Adjust = Literal["holm", "bh", "none"]
Estimator = Literal["cr0", "cr1", "cr2", "cr3"]
RepeatsAre = Literal["answers", "runs"]
Missing = str
"""drop, zero, or CAUSE=zero,…: see `counts_as_zero`."""
QuestionsAre = Literal["population", "fixed"]

CAUSES = ("agent", "infrastructure", "verifier", "refused", "limit", "unanswered")
"""Why an answer has no score: the agent (or model) failed; the sandbox, the network or the provider did; the grader
did; the model refused; time, tokens or money ran out; or nothing was handed in."""


def counts_as_zero(missing: str, cause: str = "") -> bool:
    """Whether a missing answer counts as 0, by its cause; "" where the log does not say why it is missing.

    Raises:
        InputError: the text is not ``"drop"``, ``"zero"`` or a list of ``"CAUSE=zero"``.
    """
    rules = {"": "drop"}
    for part in missing.split(","):
        name, _, rule = part.strip().rpartition("=")
        if rule not in ("drop", "zero") or name not in ("", *CAUSES):
            raise InputError(f"missing {missing!r} is not drop, zero or CAUSE=zero; the causes are {', '.join(CAUSES)}")
        rules[name] = rule
    return rules.get(cause, rules[""]) == "zero"


def all_count_as_zero(missing: str) -> bool:
    """Whether every missing answer counts as 0, whatever its cause."""
    return all(counts_as_zero(missing, cause) for cause in ("", *CAUSES))


_SENTENCES = {
    # entry points
    "read": "reading computes nothing: give {what} to `analyze` or `compare`",
    "estimate analyze export": "{what} is about a difference: it is for `compare` and `arena`, and here is one model",
    "estimate.cluster estimate_difference.cluster estimate_with_labels.cluster": "{what} names a field of the "
    "questions of a run; arrays have none: give labels as `clusters`",
    "export.tasks export.metrics export.scorers": "export writes whole runs: leave out {what}",
    "export.as_repeats": "{what} joins several runs, which have no common file: export them one by one",
    "estimate_difference compare gate": "{what} is for one run; a difference has t (with Bonett-Price where nothing "
    "varies) or bootstrap: use `interval='t'`",
    "estimate_difference.adjust": "{what} is about several rows, and one difference is a family of its own: leave it "
    "out",
    "gate.as_repeats gate.apart": "several baseline runs are told apart by themselves: leave {what} out",
    "arena": "arena pairs models by question and takes repeats as independent answers; for {what} use `compare` on "
    "the pairs that need it",
    "arena.test": "arena tests every pair by t, sign or wild; {what} resamples: use `compare` for the pairs that need "
    "it",
    "explain": "a regression has CR2 standard errors and t intervals: leave {what} out",
    "gate.measures gate.prices factors.measures factors.prices plan.measures plan.prices": "{what} is about measures "
    "beside the score, and this is about scores: leave it out, or use `compare`",
    "factors": "noise by factor has no clusters and no interval of a mean: leave {what} out; what questions share is "
    "a factor, `factors` NAME=COLUMN",
    "factors.as_repeats": "{what} hides which run an answer is of: name it as a factor, `factors={{'run': 'run'}}`",
    "export.apart factors.apart": "every run counts by itself here: leave {what} out",
    "given_runs": "{what} says how files are read, and only runs that were read before are given: leave it out, or "
    "give their paths",
    # what `compare` and `explain` are given
    "counts profile": "{what} is about the answers themselves, and only their numbers are given: leave it out, or give "
    "the runs",
    "compare_in_sequence": "looks are taken at the paired difference of questions that are a random sample, by its t "
    "statistic: leave {what} out",
    "boundaries": "boundaries in z depend on the level, the looks and the spending alone: leave {what} out",
    "estimate_from_part": "what a random part says of all questions has the CR2 standard error of a regression's "
    "residuals and a t interval: leave {what} out",
    "label": "`label_sample` draws the answers that people label, and computes nothing: leave {what} out",
    "estimate_with_labels": "a mean that labels correct has the CR2 standard error and the t or Wilson interval: leave "
    "{what} out",
    "labels": "with labels a mean or difference has the CR2 standard error, the t test and the t or Wilson interval: "
    "leave {what} or the labels out",
    "labels.seed labels.resamples": "nothing is resampled where labels correct a mean, so that {what} changes nothing: "
    "leave it or the labels out",
    "labels.by labels.references labels.combine labels.questions labels.by_question": "labels correct the mean of each "
    "task by itself, of all questions that were asked: leave {what} or the labels out",
    "labels.looks": "labels are drawn from a run that is finished, and {what} is about one that grows: leave {what} or "
    "the labels out",
    "sides": "A and B are given as `a` and `b`: leave {what} out, or give all runs as `a`",
    "baseline": "with `baseline` all given runs are A: leave {what} out",
    # what `plan` takes the noise from: runs, one row of a result, a profile, the accuracy, ω² and σ²
    "plan": "a plan is about new questions: leave {what} out",
    "plan.r2 plan_row.r2": "runs say what their judge predicts of people's `labels`: leave {what} out, and give the "
    "labels",
    "plan.sigma2 plan_profile.sigma2 plan_accuracy.sigma2": "{what} belongs to `omega2`: here it comes from the runs, "
    "the profile or the theory",
    "plan.design_effect plan.cluster_size plan.icc plan_row.design_effect plan_row.cluster_size plan_row.icc": "the "
    "runs say what their clusters are, and their data variance holds the clustering: leave {what} out",
    "plan_row": "{what} says how runs are read, and a row of a result is given: leave it out",
    "plan_profile plan_accuracy plan_numbers": "{what} is about `runs`, and none is given: name a run, or leave it out",
    "plan_profile.cluster_size plan_profile.icc": "the profile says what its clusters are: leave {what} out",
    "plan.solved plan_row.solved plan_profile.solved plan_numbers.solved": "{what} is for the Beta theory, which "
    "starts from `accuracy`: leave it out",
    # metrics over all questions at once
    "corpus corpus_difference": "{what} is for metrics that are means of question scores; leave this one out with "
    "`metrics`",
    # settings and data that change what the others can mean
    "unpaired": "{what} needs pairs of the same question: leave it or `unpaired` out, whose tests are t and bootstrap",
    "wild": "`test='wild'` has an interval of its own, by inversion: leave {what} out, or use t",
    "fixed": "{what} takes the questions for a sample, and `questions_are='fixed'` does not: its standard error comes "
    "from the repeats alone, with the t test. Leave one of the two out",
    "runs": "`repeats_are='runs'` has its own variance between runs, which only the t test and the t, Wilson and "
    "Korn-Graubard intervals know: leave `test` and `interval` as they are",
    "crossed": "{what} takes whole clusters of one kind, and these questions are clustered in two crossed ways: use "
    "`test='t'` and `interval='t'`, or name one of the two with `cluster`",
}
REFUSALS = {consumer: sentence for consumers, sentence in _SENTENCES.items() for consumer in consumers.split()}
"""Consumer → the sentence that refuses what it does not obey; `consumer.keyword` where one keyword needs another."""
_WITH_ANSWERS = "estimate estimate_difference analyze compare arena"
_DIFFERENCES = "estimate_difference compare arena corpus_difference counts profile"
_CORPUS = "corpus corpus_difference"
_LOOKS = "compare_in_sequence estimate_from_part"
_DESIGNS = "unpaired wild fixed runs crossed"
_LABELLED = "estimate_with_labels labels"
_PLANS = "plan plan_row plan_profile plan_accuracy plan_numbers"
_ON_RUNS = "analyze compare explain arena plan"
KEYWORDS = {
    # how runs are read
    **dict.fromkeys(("tasks", "metrics", "scorers"), f"read {_ON_RUNS} gate label factors profile plan_profile"),
    **dict.fromkeys(("groups", "columns", "format_file"), f"read {_ON_RUNS} gate label factors export"),
    **dict.fromkeys(("measures", "prices"), "read analyze compare explain arena export"),
    "apart": f"read label {_ON_RUNS}",
    "as_repeats": f"label {_ON_RUNS}",
    # what is compared, and with what
    "models": "compare explain counts profile plan labels",
    "baseline": "compare labels",
    "references": "analyze compare profile plan_profile plan_accuracy",
    **dict.fromkeys(("labels", "labels_scorer", "label_range", "labels_at_random"), "analyze compare arena gate plan"),
    # what else is computed
    "by": "analyze compare arena unpaired",
    **dict.fromkeys(("questions", "by_question", "combine"), "compare"),
    "looks": f"compare {_PLANS}",
    # where the noise of a plan comes from
    **dict.fromkeys(("two_like_this", "assurance"), "plan plan_row labels"),
    "answers": "plan",
    "r2": "plan_numbers plan_accuracy plan_profile",
    **dict.fromkeys(("judged", "target_se"), f"{_PLANS} labels"),
    "accuracy": "plan_accuracy plan_profile",
    "solved": "plan_accuracy",
    **dict.fromkeys(("omega2", "sigma2"), "plan_numbers"),
    **dict.fromkeys(("cluster_size", "icc"), "plan_numbers plan_accuracy"),
    "design_effect": "plan_numbers plan_accuracy plan_profile",
}
"""Keyword that is no field of `Settings` → who obeys it, of those that could be given it."""


def _obeyed(by: str, **values: Sequence[Any]) -> dict[str, dict[str, Sequence[Any] | None]]:
    """A field's consumers: those in `by` obey every value, those in `values` beside the default the ones listed."""
    obeying: dict[str, Sequence[Any] | None] = {**dict.fromkeys(by.split()), **values}
    if "analyze" in obeying:  # export writes what analyze says
        obeying["export"] = obeying["analyze"]
    if "compare" in obeying:  # a gate decides on its rows
        obeying["gate"] = obeying["compare"]
    return {"consumers": obeying}


def obeyed(name: str, consumer: str) -> Sequence[Any] | None:
    """The values of a keyword, beside its default, that a consumer obeys; None: any, (): none."""
    if name in KEYWORDS:
        return None if consumer in KEYWORDS[name].split() else ()
    values: Sequence[Any] | None = Settings.__dataclass_fields__[name].metadata["consumers"].get(consumer, ())
    return values


def refusal(name: str, consumer: str, what: str) -> str:
    """The sentence that refuses a keyword which a consumer does not obey."""
    return REFUSALS.get(f"{consumer}.{name}", REFUSALS[consumer]).format(what=what)


def check_obeyed(consumer: str, keywords: Mapping[str, Any], where: str = "") -> None:
    """Refuse every keyword that was given and that `consumer` does not obey.

    Parameters
    ----------
    consumer
        One of `REFUSALS`.
    keywords
        Keyword → value; None, False and what is empty stand for a keyword that was not given.
    where
        The run or metric that the refusal is about, for the message.

    Raises
    ------
    InputError
        One sentence of such a keyword.
    """
    for name, value in keywords.items():
        values = obeyed(name, consumer)
        if values is None or value in values or (isinstance(value, _EMPTY) and not value):
            continue
        text = refusal(name, consumer, f"`{name}`" if name in KEYWORDS else parameter(name, value))
        raise InputError(f"{where}: {text}" if where else text)


_EMPTY = (type(None), bool, str, tuple, list, dict)
_KINDS = {"level": Real, "margin": Real, "seed": Integral, "resamples": Integral, "unpaired": bool, "runs_shared": bool}
_KINDS |= {"missing": str, "cluster": str}


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Choices that change a number; every function that computes takes them whole, as `settings`, or one by one.

    Raises
    ------
    InputError
        A value outside its range, or two that contradict each other.
    """

    level: float = field(
        default=0.95,
        metadata=_obeyed(
            f"{_WITH_ANSWERS} {_CORPUS} {_DESIGNS} {_LOOKS} {_PLANS} {_LABELLED} boundaries counts profile explain"
        ),
    )
    """Coverage of the confidence intervals, in (0, 1)."""
    # a metric over all questions has the jackknife's variance whatever is chosen (docs/methods/corpus.md)
    se: Estimator = field(
        default="cr2",
        metadata=_obeyed(f"{_WITH_ANSWERS} compare_in_sequence plan {_CORPUS} unpaired wild runs crossed"),
    )
    """Variance estimator of the clusters' scores: ``"cr2"`` (Bell & McCaffrey), ``"cr0"`` as in the papers (ddof = 0),
    ``"cr1"``, or ``"cr3"``, the jackknife, for very unequal clusters."""
    interval: Interval = field(default="auto", metadata=_obeyed(
        "estimate analyze",
        estimate_difference=("t", "bootstrap", "bootstrap-t"), compare=("t", "bootstrap", "bootstrap-t"),
        corpus=("t", "wilson", "clopper-pearson", "korn-graubard", "bootstrap"), corpus_difference=("t", "bootstrap"),
        unpaired=("t", "wilson", "clopper-pearson", "korn-graubard", "bootstrap"),
        arena=("t", "wilson", "clopper-pearson", "korn-graubard"), fixed=("t", "wilson"),
        wild=("t", "wilson", "clopper-pearson", "korn-graubard"),
        estimate_with_labels=("t", "wilson"), labels=("t", "wilson"),
        runs=("t", "wilson", "clopper-pearson", "korn-graubard"),
        crossed=("t", "wilson", "clopper-pearson", "korn-graubard"),
    ))  # fmt: skip
    """Interval of a mean: ``"auto"`` is Wilson's for a metric with a range, else t; ``"clopper-pearson"``,
    ``"korn-graubard"``, ``"bootstrap"`` (BCa), ``"bootstrap-t"`` for long tails. Of a difference: ``"auto"`` is the
    test's own, else t; ``"bootstrap"``, ``"bootstrap-t"``."""
    # no question of a metric over all questions has a sign: its row is tested by t, and says so
    test: Test = field(default="t", metadata=_obeyed(
        "estimate_difference compare wild", arena=("sign", "wild"), unpaired=("bootstrap",),
        corpus_difference=("sign", "permutation", "bootstrap"),
    ))  # fmt: skip
    """Test of a difference: ``"t"``, ``"sign"``, ``"permutation"``, ``"bootstrap"``, or ``"wild"``, the wild cluster
    bootstrap, for few or very unequal clusters."""
    # one row is a family of its own
    adjust: Adjust = field(
        default="holm", metadata=_obeyed(f"compare arena corpus_difference counts profile explain labels {_DESIGNS}")
    )
    """Adjustment of the p-values over each family of rows: ``"holm"``, ``"bh"`` (Benjamini & Hochberg), ``"none"``."""
    margin: float | None = field(
        default=None, metadata=_obeyed(f"{_DIFFERENCES} compare_in_sequence labels {_DESIGNS}")
    )
    """Test equivalence within ±margin, on the metric's scale; None: no such test."""
    unpaired: bool = field(
        default=False,
        metadata=_obeyed("estimate_difference compare corpus_difference counts unpaired wild runs crossed"),
    )
    """Ignore which question is which: two samples of different questions, as counts always are."""
    repeats_are: RepeatsAre = field(
        default="answers",
        metadata=_obeyed("estimate estimate_difference analyze compare plan unpaired wild runs crossed"),
    )
    """``"answers"``: repeats are independent; ``"runs"``: seeds or prompts that move all questions together."""
    runs_shared: bool = field(default=False, metadata=_obeyed("estimate_difference compare wild runs crossed"))
    """With ``repeats_are="runs"``: run j of A and run j of B share their prompt, seed or judge."""
    questions_are: QuestionsAre = field(
        default="population", metadata=_obeyed(f"{_WITH_ANSWERS} unpaired wild fixed crossed")
    )
    """``"population"``: a sample of the questions that could be asked; ``"fixed"``: only these, judged from the repeats
    alone (estimand `these_questions`)."""
    range: tuple[float, float] | None = field(
        default=None, metadata=_obeyed(f"{_WITH_ANSWERS} {_LOOKS} {_CORPUS} {_LABELLED} plan {_DESIGNS}")
    )
    """Lowest and highest value of the metric, for all that is analysed; None: what the run declares."""
    missing: Missing = field(
        default="drop",
        metadata=_obeyed(f"read {_WITH_ANSWERS} {_LOOKS} {_CORPUS} {_LABELLED} plan explain factors {_DESIGNS}"),
    )
    """Errored or missing answers: ``"drop"`` leaves them out, ``"zero"`` counts them as wrong, and
    ``"infrastructure=zero"`` only those with this cause (agent, infrastructure, verifier, refused, limit or
    unanswered)."""
    cluster: str | None = field(
        default=None, metadata=_obeyed(f"read analyze compare arena explain label labels {_CORPUS} plan {_DESIGNS}")
    )
    """What related questions share, as a SPEC: a field, a dotted path, a Jinja template, ``"task"``, ``"none"`` or
    ``"auto"``; None: the clusters that the run carries."""
    seed: int = field(
        default=0, metadata=_obeyed(f"{_WITH_ANSWERS} label compare_in_sequence {_CORPUS} plan {_DESIGNS}")
    )
    """Seed of the resampling tests and intervals, and of the order in which a replay asks its questions."""
    resamples: int = field(default=10_000, metadata=_obeyed(f"{_WITH_ANSWERS} {_CORPUS} plan {_DESIGNS}"))
    """Number of resamples, 100 or more."""

    def __post_init__(self) -> None:
        for name, sort in _KINDS.items():
            check_kind(name, getattr(self, name), sort, type(Settings.__dataclass_fields__[name].default))
        if not 0 < self.level < 1:
            raise InputError(f"level {self.level:g} is not between 0 and 1: use 0.95 for a 95 % interval")
        if self.margin is not None and not 0 <= self.margin < inf:
            raise InputError(f"margin {self.margin:g} must not be negative or infinite")
        kinds = {"se": Estimator, "interval": Interval, "test": Test, "adjust": Adjust}
        kinds |= {"repeats_are": RepeatsAre, "questions_are": QuestionsAre}
        for name, kind in kinds.items():
            check_one_of(name, getattr(self, name), kind)
        counts_as_zero(self.missing)
        if self.range is not None and not (len(self.range) == 2 and -inf < self.range[0] < self.range[1] < inf):
            raise InputError(f"range {self.range!r} must be the metric's lowest and highest value: 0,1 or 0,100")
        if self.runs_shared and self.repeats_are != "runs":
            raise InputError("`runs_shared=True` pairs the runs of A with those of B: it needs `repeats_are='runs'`")
        if self.seed < 0 or self.resamples < 100:
            raise InputError(f"seed {self.seed} must not be negative, and resamples {self.resamples} not below 100")
        designs = {"unpaired": self.unpaired, "wild": self.test == "wild"}
        designs |= {"fixed": self.questions_are == "fixed", "runs": self.repeats_are == "runs"}
        for design, chosen in designs.items():
            if chosen:
                self.check(design)

    def check(self, consumer: str, where: str = "") -> None:
        """Refuse every setting, changed from its default, that `consumer` does not obey; see `check_obeyed`."""
        values = {setting.name: (getattr(self, setting.name), setting.default) for setting in fields(self)}
        check_obeyed(consumer, {name: value for name, (value, default) in values.items() if value != default}, where)

    @property
    def estimand(self) -> str:
        """What the results are about, as they name it."""
        return "these_questions" if self.questions_are == "fixed" else "questions_population"

    @property
    def interval_of_difference(self) -> str:
        """The interval of a difference: what is asked for, else the test's own, t where it has none.

        Intervals of one run, as an arena's models have them, leave the choice of the pairs' to the test.
        """
        if self.interval in ("t", "bootstrap", "bootstrap-t"):
            return self.interval
        return self.test if self.test in ("bootstrap", "wild") else "t"

    def to_dict(self) -> dict[str, Any]:
        return asdict(self) | {"range": None if self.range is None else list(self.range)}


def check_scale(
    name: str, value: float | None, scale: tuple[float, float] | None, metric: str = "", *, known: bool = False
) -> None:
    """Refuse a difference that the metric cannot have, 5 for 5 % of a metric in [0, 1].

    Args:
        name: of the parameter.
        value: the difference.
        scale: lowest and highest value of the metric; None: not known.
        metric: its name.
        known: the scale is certain, so that no other can be given.

    Raises:
        InputError: a value as large as the whole range.
    """
    if value is None or scale is None or value < scale[1] - scale[0]:
        return
    width = scale[1] - scale[0]
    meant = f"; did you mean {value / 100:g}?" if width <= 1 and value / 100 < width else ""
    other = "" if known else " (`range=(LOW, HIGH)` says where the metric has another range)"
    raise InputError(
        f"`{name}` {value:g} is on the scale of {metric or 'the metric'}, which runs from {scale[0]:g} to "
        f"{scale[1]:g}: no difference that matters is as large as the whole range{meant}{other}"
    )
