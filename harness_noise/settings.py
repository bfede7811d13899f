"""The user's settings, validated once and recorded in every result, and the calculations that obey each of them.

Every field of `Settings` names its consumers, the calculations that obey it, and which of its values each obeys;
`KEYWORDS` does so for the other keywords of the public functions. What is given and not obeyed is refused by
`check_obeyed`, nowhere else.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from math import inf
from numbers import Integral, Real
from typing import Any, Literal

from .choices import CR2, INTERVALS, REGISTERS, T_TEST, TESTS, WILD, check_partners
from .errors import InputError, check_kind, check_one_of, parameter
from .extras import calculations, keywords, words

Interval = str
"""auto, or the name of one of `choices.INTERVALS`."""
Test = str
"""The name of one of `choices.TESTS`."""
Adjust = Literal["holm", "bh", "none"]
Estimator = str
"""The name of one of `choices.ESTIMATORS`."""
RepeatsAre = Literal["answers", "runs"]
Missing = str
"""drop, zero, or CAUSE=zero,…: see `counts_as_zero`."""
QuestionsAre = Literal["population", "fixed"]
Weights = str | tuple[tuple[str, float], ...] | tuple[tuple[str, str, float], ...]
"""equal, size, none, or (task, weight) of every top-level row, or (field, value, weight) of the questions' strata."""
Chance = str | float | tuple[tuple[str, float], ...]
"""auto, one chance for every task, or (task, chance), the task perhaps a glob."""
WEIGHTS = ("equal", "size", "none")

CAUSES = ("agent", "infrastructure", "verifier", "refused", "limit", "unanswered")
"""Reasons for an answer without a score, by who failed or refused.

agent: the agent (or model). infrastructure: the sandbox, the network or the provider. verifier: the grader. refused:
the model refused. limit: time, tokens or money ran out. unanswered: nothing was handed in.
"""


def counts_as_zero(missing: str, cause: str = "") -> bool:
    """Return True if a missing answer with this cause counts as 0 by `missing`: "drop", "zero", "CAUSE=zero,…".

    Raises:
        InputError: the text is not ``"drop"``, ``"zero"`` or a list of ``"CAUSE=zero"``.
    """
    rules = {"": "drop"}
    for part in missing.split(","):
        name, _, rule = part.strip().rpartition("=")
        if rule not in ("drop", "zero") or name not in ("", *CAUSES):
            raise InputError(f"missing {missing!r} is not drop, zero or CAUSE=zero. The causes are {', '.join(CAUSES)}")
        rules[name] = rule
    return rules.get(cause, rules[""]) == "zero"


def all_count_as_zero(missing: str) -> bool:
    """Return True if every missing answer counts as score 0, whatever its cause."""
    return all(counts_as_zero(missing, cause) for cause in ("", *CAUSES))


_SENTENCES = {
    # entry points
    "read": "reading computes nothing: give {what} to `analyze` or `compare`",
    "estimate analyze export": f"{{what}} is about a difference: it is for `compare`{words('difference')}, and "
    "here is one model",
    "estimate.cluster estimate.only estimate_difference.cluster estimate_difference.only": (
        "{what} names a field of the questions of a run, and arrays have none: give names as `clusters`, and only the "
        "rows that count"
    ),
    "export.only export.tasks export.metrics export.scorers": "export writes whole runs: leave out {what}",
    "estimate_difference compare": "{what} is for one run. A difference has t (with Bonett-Price if nothing "
    "varies) or bootstrap: use `interval='t'`",
    "estimate.chance estimate_difference.chance export.chance estimate.weights estimate_difference.weights "
    "export.weights": "{what} is about the tasks of a run, and here is none: leave it out",
    "estimate_difference.adjust": "{what} is about several rows, and one difference is a family of its own: leave it "
    "out",
    "export.as_repeats export.apart": "every run counts by itself here: leave {what} out",
    "all_pairs": "all pairs of many runs are by question, with repeats as independent answers, by t, sign or wild. "
    "Leave {what} out",
    "given_runs": "{what} says how files are read, and none is read here: leave it out, or give their paths",
    # what `compare` is given
    "counts profile published": "{what} is about the answers of two runs, and a number is given in place of a run: "
    "leave it out, or give the runs",
    "compare.profile counts.profile published.profile": "{what} is the noise of two bare numbers, as in "
    "`compare 0.71 0.68`, and runs and counts bring their own: leave it out",
    "compare.answers_b compare.n counts.answers_b counts.n profile.answers_b profile.n": (
        "{what} is about a published number, as in `compare RUN 0.474`: leave it out, or give one"
    ),
    "strata": "weights of the questions make every task the mean of its strata: leave {what} out, or give weights of "
    "tasks",
    "sides": "A and B are given as `a` and `b`: leave {what} out, or give all runs as `a`",
    "against": "with `against` all given runs are A: leave {what} out",
    # metrics over all questions at once
    "corpus corpus_difference": "{what} is for metrics that are means of question scores. Leave this one out with "
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
"""Consumer → the sentence that refuses what it does not obey. `consumer.keyword` is for a keyword that needs
another."""
for _name, _of_extra in calculations().items():
    REFUSALS |= {f"{_name}.{keyword}".rstrip("."): words for keyword, words in _of_extra.refusals.items()}
for _register in REGISTERS.values():
    _register.check_consumers({name for name in REFUSALS if "." not in name})
    for _name, _of_extra in calculations().items():
        _register.check_names(_of_extra.values.get(_register.setting, ()), f"calculation {_name!r} of an extra")
check_partners()
_WITH_ANSWERS = "estimate estimate_difference analyze compare all_pairs"
_DIFFERENCES = "estimate_difference compare all_pairs corpus_difference counts profile"
_CORPUS = "corpus corpus_difference"
_DESIGNS = "unpaired wild fixed runs crossed"
_ON_RUNS = "analyze compare"
KEYWORDS = {
    # how runs are read
    **dict.fromkeys(("tasks", "metrics", "scorers"), f"read published {_ON_RUNS} profile"),
    **dict.fromkeys(("groups", "columns", "format_file"), f"read published {_ON_RUNS} export"),
    **dict.fromkeys(("measures", "prices"), "read analyze compare export"),
    "follow_links": f"read published {_ON_RUNS} export",
    "apart": f"read published {_ON_RUNS}",
    "as_repeats": f"published {_ON_RUNS}",
    # what is compared, and with what
    "models": "compare counts profile",
    "against": "compare",
    # what else is computed
    **dict.fromkeys(("questions", "by_question"), "compare"),
}
"""Keyword outside `Settings` → the functions that obey it, among those that could get it."""


def _obeyed(by: str, **values: Sequence[Any]) -> dict[str, dict[str, Sequence[Any] | None]]:
    """Return field metadata on which calculations use a setting: those named in `by` each value, others some.

    Consumers in `by` obey every value, those in `values` the default and the listed ones.
    """
    obeying: dict[str, Sequence[Any] | None] = {**dict.fromkeys(by.split()), **values}
    if "analyze" in obeying:  # export writes what analyze says
        obeying.setdefault("export", obeying["analyze"])
    return {"consumers": {consumer: some for consumer, some in obeying.items() if some != ()}}


def obeyed(name: str, consumer: str) -> Sequence[Any] | None:
    """Return a keyword's values besides the default that a calculation supports. None: any (or unknown), (): ignored.

    The default is not among them.
    """
    if name in KEYWORDS:
        return None if consumer in KEYWORDS[name].split() else ()
    if (own := calculations().get(consumer)) is not None:
        if name in own.obeys.split():
            return None
        if name in own.values:
            return own.values[name]
        if not (like := own.values_of.get(name, own.like)):
            return ()
        consumer = like
    if name in REGISTERS:
        return REGISTERS[name].named(consumer)
    if name not in Settings.__dataclass_fields__:  # of an extra that is not there, which `extras.module_of` says
        return None
    values: Sequence[Any] | None = Settings.__dataclass_fields__[name].metadata["consumers"].get(consumer, ())
    return values


def consumers(name: str) -> set[str]:
    """Return the set of names of the calculations that use a setting, in any of its values."""
    of_extras = {each for each in calculations() if obeyed(name, each) != ()}
    if name in REGISTERS:
        return of_extras.union(*(item.consumers for item in map(REGISTERS[name].__getitem__, REGISTERS[name])))
    return of_extras.union(Settings.__dataclass_fields__[name].metadata["consumers"])


def refusal(name: str, consumer: str, what: str) -> str:
    """Return the error text for a keyword that a calculation (`consumer`) does not use."""
    return REFUSALS.get(f"{consumer}.{name}", REFUSALS[consumer]).format(what=what)


def check_obeyed(consumer: str, keywords: Mapping[str, Any], where: str = "") -> None:
    """Raise an error for any given keyword that the calculation `consumer` would ignore.

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
    """Choices that change a number. Every function that computes takes them whole, as `settings`, or one by one.

    Raises
    ------
    InputError
        A value outside its range, or two that contradict each other.
    """

    level: float = field(
        default=0.95,
        metadata=_obeyed(f"published {_WITH_ANSWERS} {_CORPUS} {_DESIGNS} counts profile"),
    )
    """Coverage of the confidence intervals, in (0, 1)."""
    # a metric over all questions has the jackknife's variance whatever is chosen (docs/methods/corpus.md)
    se: Estimator = CR2.name
    """Variance estimator of the clusters' scores: ``"cr2"`` (Bell & McCaffrey), ``"cr0"`` as in the papers (ddof = 0),
    ``"cr1"``, or ``"cr3"``, the jackknife, for very unequal clusters."""
    interval: Interval = INTERVALS.default
    """Interval of a mean or a difference. ``"auto"``: Wilson's for a mean of a metric with a range, a test's own, else
    t.

    Of a mean also ``"clopper-pearson"``, ``"korn-graubard"``, ``"bootstrap"`` (BCa), ``"bootstrap-t"`` for long tails.
    Of a difference also ``"bootstrap"``, and of measures ``"bootstrap-t"``, whose p is shown with it unless another
    `test` is named.
    """
    # no question of a metric over all questions has a sign: its row is tested by t, and says so
    test: Test = T_TEST.name
    """Test of a difference: ``"t"``, ``"sign"``, ``"permutation"``, ``"bootstrap"``, or ``"wild"``, the wild cluster
    bootstrap, for few or very unequal clusters."""
    # one row is its own family
    adjust: Adjust = field(
        default="holm",
        metadata=_obeyed(f"published compare all_pairs corpus_difference counts profile {_DESIGNS}"),
    )
    """Adjustment of the p-values over each family of rows: ``"holm"``, ``"bh"`` (Benjamini & Hochberg), ``"none"``."""
    margin: float | None = field(default=None, metadata=_obeyed(f"{_DIFFERENCES} {_DESIGNS}"))
    """Test equivalence within ±margin, on the metric's scale. None: no such test."""
    unpaired: bool = field(
        default=False,
        metadata=_obeyed("estimate_difference compare corpus_difference counts unpaired wild runs crossed"),
    )
    """Ignore which question is which: two samples of different questions, as counts always are."""
    repeats_are: RepeatsAre = field(
        default="answers",
        metadata=_obeyed("published estimate estimate_difference analyze compare unpaired wild runs crossed"),
    )
    """``"answers"``: repeats are independent. ``"runs"``: each is a seed or prompt that affects all questions."""
    runs_shared: bool = field(default=False, metadata=_obeyed("estimate_difference compare wild runs crossed"))
    """With ``repeats_are="runs"``: run j of A and run j of B share their prompt, seed or judge."""
    questions_are: QuestionsAre = field(
        default="population", metadata=_obeyed(f"{_WITH_ANSWERS} unpaired wild fixed crossed")
    )
    """``"population"``: the questions are a sample of similar ones. ``"fixed"``: conclusions are about only these.

    They are then judged from the repeats alone (estimand `these_questions`).
    """
    range: tuple[float, float] | None = field(
        default=None,
        metadata=_obeyed(f"published {_WITH_ANSWERS} {_CORPUS} {_DESIGNS}"),
    )
    """Lowest and highest value of the metric, for all that is analysed. None: the range that the run declares."""
    missing: Missing = field(
        default="drop",
        metadata=_obeyed(f"published read {_WITH_ANSWERS} {_CORPUS} {_DESIGNS}"),
    )
    """Errored or missing answers: ``"drop"`` leaves them out, ``"zero"`` counts them as wrong, and
    ``"infrastructure=zero"`` only those with this cause (agent, infrastructure, verifier, refused, limit or
    unanswered)."""
    cluster: str | None = field(
        default=None,
        metadata=_obeyed(f"published read analyze compare all_pairs {_CORPUS} {_DESIGNS}"),
    )
    """Field that related questions share, as a SPEC. None: the clusters that the run has.

    A SPEC is a field, a dotted path, a Jinja template, ``"task"``, ``"none"`` or ``"auto"``.
    """
    weights: Weights = field(
        default="equal",
        metadata=_obeyed(f"published analyze compare all_pairs {_CORPUS} {_DESIGNS}", export=()),
    )
    """Weights of the tasks in the overall row, a group as one: ``"equal"``, ``"size"`` (by questions), ``"none"`` (no
    row).

    Also a file or mapping of task to weight, or a file with ``field,value,weight``, which weights the questions of
    every task by their value of a field, as a traffic mix.
    """
    chance: Chance | None = field(
        default=None, metadata=_obeyed(f"analyze compare all_pairs {_CORPUS} {_DESIGNS}", export=())
    )
    """Correct scores in [0, 1] for guessing, (x − c)/(1 − c): c for all tasks, a file or mapping of task to c, or
    ``"auto"``, one over the number of choices of each question. Nothing is clipped at 0. None: no correction."""
    only: tuple[str, ...] = field(
        default=(),
        metadata=_obeyed(
            f"read analyze compare all_pairs {_CORPUS} {_DESIGNS}",
            export=(),
        ),
    )
    """Conditions ``"FIELD OP VALUE"`` (= != < <= > >=) that a question must meet, all of them: numbers are compared as
    numbers, ISO dates as dates, all else as text."""
    seed: int = field(default=0, metadata=_obeyed(f"{_WITH_ANSWERS} {_CORPUS} {_DESIGNS}"))
    """Seed of the resampling tests and intervals, and of the order in which a replay asks its questions."""
    resamples: int = field(default=10_000, metadata=_obeyed(f"{_WITH_ANSWERS} {_CORPUS} {_DESIGNS}"))
    """Number of resamples, 100 or more."""

    def __post_init__(self) -> None:
        for name, sort in _KINDS.items():
            check_kind(name, getattr(self, name), sort, type(Settings.__dataclass_fields__[name].default))
        if not 0 < self.level < 1:
            raise InputError(f"level {self.level:g} is not between 0 and 1: use 0.95 for a 95% interval")
        if self.margin is not None and not 0 <= self.margin < inf:
            raise InputError(f"margin {self.margin:g} must not be negative or infinite")
        for name, register in REGISTERS.items():
            register.check(getattr(self, name))
        kinds = {"adjust": Adjust, "repeats_are": RepeatsAre, "questions_are": QuestionsAre}
        for name, kind in kinds.items():
            check_one_of(name, getattr(self, name), kind)
        counts_as_zero(self.missing)
        self._check_weights()
        self._check_chance()
        if self.range is not None and not (len(self.range) == 2 and -inf < self.range[0] < self.range[1] < inf):
            raise InputError(f"range {self.range!r} must be the metric's lowest and highest value: 0,1 or 0,100")
        if self.margin and not TESTS[self.test].has_limits:
            raise InputError(
                f"`test={self.test!r}` tests whether there is a difference at all, and has no limit to hold against a "
                "margin: leave `margin` out, or use `test='t'`"
            )
        if self.runs_shared and self.repeats_are != "runs":
            raise InputError("`runs_shared=True` pairs the runs of A with those of B: it needs `repeats_are='runs'`")
        if self.seed < 0 or self.resamples < 100:
            raise InputError(f"seed {self.seed} must not be negative, and resamples {self.resamples} not below 100")
        designs = {"unpaired": self.unpaired, "wild": self.test == WILD.name}
        designs |= {"fixed": self.questions_are == "fixed", "runs": self.repeats_are == "runs"}
        for design, chosen in designs.items():
            if chosen:
                self.check(design)

    def _check_weights(self) -> None:
        if isinstance(self.weights, str):
            if self.weights not in WEIGHTS:
                raise InputError(f"weights {self.weights!r} is not one of {', '.join(WEIGHTS)}, nor a file of weights")
            return
        each = [row[-1] for row in self.weights]
        if not all(isinstance(x, Real) and 0 <= x < inf for x in each) or not sum(each) > 0:
            raise InputError("`weights` must be numbers, 0 or more, and not all 0")

    def _check_chance(self) -> None:
        if self.chance is None or self.chance == "auto":
            return
        if isinstance(self.chance, str):
            raise InputError(f"chance {self.chance!r} is not auto, a number below 1, or a file of task,chance")
        each = [row[-1] for row in self.chance] if isinstance(self.chance, tuple) else [self.chance]
        if not each or not all(isinstance(c, (int, float)) and 0 <= c < 1 for c in each):
            raise InputError("`chance` must be numbers from 0 to below 1, such as 0.25 of four choices")
        if self.range is not None:
            raise InputError("`chance` is for scores from 0 to 1, and `range` says another: leave one of the two out")

    @property
    def task_weights(self) -> dict[str, float] | None:
        """Dict from task or group to its weight in the overall row, None for equal or size weights."""
        rows = () if isinstance(self.weights, str) else self.weights
        return {str(row[0]): float(row[1]) for row in rows if len(row) == 2} or None

    @property
    def strata(self) -> tuple[str, dict[str, float]] | None:
        """(Question field, value → weight) if questions are weighted by a field, else None."""
        rows = () if isinstance(self.weights, str) else [row for row in self.weights if len(row) == 3]
        return (rows[0][0], {row[1]: row[2] for row in rows}) if rows else None

    def check(self, consumer: str, where: str = "") -> None:
        """Raise an error for any setting, changed from its default, that the calculation would ignore."""
        values = {setting.name: (getattr(self, setting.name), setting.default) for setting in fields(self)}
        check_obeyed(consumer, {name: value for name, (value, default) in values.items() if value != default}, where)

    @property
    def estimand(self) -> str:
        """Whom the results are about: "these_questions" only, or the "questions_population" behind them."""
        return "these_questions" if self.questions_are == "fixed" else "questions_population"

    @property
    def interval_of_difference(self) -> str:
        """Name of the interval method for a difference: the chosen one if it has any of differences, else the test's.

        Intervals of one run, as each of many models has one, leave the choice of the pairs' to the test.
        """
        asked = self.interval != INTERVALS.default and INTERVALS[self.interval].of_difference is not None
        return self.interval if asked else TESTS[self.test].interval

    @property
    def test_of_difference(self) -> str:
        """Name of the test for a difference: the one that fits a resampled interval if none is chosen."""
        own = "" if self.interval == INTERVALS.default else INTERVALS[self.interval].test
        return own if own and self.test == T_TEST.name else self.test

    def to_dict(self) -> dict[str, Any]:
        return asdict(self) | {"range": None if self.range is None else list(self.range)}


KEYWORDS |= {_name: _keyword_of.obeyed_by for _name, _keyword_of in keywords().items()}
for _name, _of_extra in calculations().items():
    for _keyword in set(_of_extra.obeys.split()) - set(Settings.__dataclass_fields__):
        KEYWORDS[_keyword] = f"{KEYWORDS.get(_keyword, '')} {_name}"


class InPoints(float):
    """A difference or a mean that was given in points or per cent, as a number on a scale from 0 to 1."""

    __slots__ = ("unit",)
    unit: str

    def __new__(cls, value: float | str, unit: str = "%") -> InPoints:
        """Create a number that remembers the unit (% or pt) in which the user wrote it."""
        new = super().__new__(cls, value)
        new.unit = unit
        return new

    @property
    def as_typed(self) -> str:
        """Number in hundredths with its unit, as the user typed it: 1.5% or 1.5pt."""
        return f"{100 * self:g}{self.unit}"


_IN_POINTS = re.compile(r"([+-]?[\d.]+(?:e[+-]?\d+)?)\s*(%|pp|pts?|points?)")


def difference(text: str) -> float:
    """Convert a difference as users write it (0.015, 1.5%, 1.5pt, 1.5 points) to a number on a 0 to 1 scale.

    Raises:
        ValueError: no number.
    """
    match = _IN_POINTS.fullmatch(text.strip())
    return float(text) if match is None else InPoints(f"{float(match[1]) / 100:.12g}", "%" if match[2] == "%" else "pt")


def check_unit(name: str, value: float | None, scale: tuple[float, float] | None, metric: str) -> None:
    """Raise an error if a difference is in points or per cent but the metric does not run from 0 to 1.

    Raises:
        InputError: names the metric's range.
    """
    if isinstance(value, InPoints) and scale != (0.0, 1.0):
        runs = "has no known range" if scale is None else f"runs from {scale[0]:g} to {scale[1]:g}"
        raise InputError(
            f"`{name}` {value.as_typed} is of a scale from 0 to 1, and {metric or 'the metric'} {runs}: write a plain "
            "number on its own scale"
        )


def check_scale(
    name: str, value: float | None, scale: tuple[float, float] | None, metric: str = "", *, known: bool = False
) -> None:
    """Refuse a difference as large as the metric's range, such as 5 where 5% was meant, or in points of another range.

    Args:
        name: of the parameter.
        value: the difference.
        scale: lowest and highest value of the metric; None: not known.
        metric: its name.
        known: the scale is certain, so that no other can be given.

    Raises:
        InputError: a value as large as the whole range, or points of another range than 0 to 1.
    """
    check_unit(name, value, scale, metric)
    if value is None or scale is None or value < scale[1] - scale[0]:
        return
    width = scale[1] - scale[0]
    meant, given = "", f"{value:g}"
    if isinstance(value, InPoints):  # "150%" was divided by 100 already
        given = value.as_typed
    elif width <= 1 and value / 100 < width:
        meant = f". Did you mean {value / 100:g} ({value:g}%)?"
    other = "" if known else " (`range=(LOW, HIGH)` says where the metric has another range)"
    raise InputError(
        f"`{name}` {given} is on the scale of {metric or 'the metric'}, which runs from {scale[0]:g} to "
        f"{scale[1]:g}: no difference that matters is as large as the whole range{meant}{other}"
    )
