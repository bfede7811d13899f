"""What a user chose, validated once and recorded in every result."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from math import inf
from typing import Any, Literal, get_args

from .errors import InputError

Interval = Literal["auto", "t", "wilson", "clopper-pearson", "korn-graubard", "bootstrap"]
Test = Literal["t", "sign", "permutation", "bootstrap", "wild"]
Adjust = Literal["holm", "bh", "none"]
Estimator = Literal["cr0", "cr1", "cr2", "cr3"]
RepeatsAre = Literal["answers", "runs"]
Missing = Literal["drop", "zero"]
QuestionsAre = Literal["population", "fixed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Choices that change a number.

    Raises:
        InputError: a value outside its range.
    """

    level: float = 0.95
    se: Estimator = "cr2"
    interval: Interval = "auto"
    test: Test = "t"
    adjust: Adjust = "holm"
    margin: float | None = None
    unpaired: bool = False
    repeats_are: RepeatsAre = "answers"
    runs_shared: bool = False
    """Run j of A and run j of B share their cause; with `repeats_are="runs"`."""
    questions_are: QuestionsAre = "population"
    """A sample of a population, or the only ones that matter (estimand `these_questions`)."""
    range: tuple[float, float] | None = None
    """Lowest and highest value of the metric, for all that is analysed; None: what the run declares."""
    missing: Missing = "drop"
    cluster: str | None = None
    """The SPEC asked for; None: the clusters that the run carries."""
    seed: int = 0
    """Of the resampling tests and intervals."""
    resamples: int = 10_000
    """How many of them."""

    def __post_init__(self) -> None:
        if not 0 < self.level < 1:
            raise InputError(f"level {self.level:g} is not between 0 and 1: use 0.95 for a 95 % interval")
        if self.margin is not None and not self.margin >= 0:
            raise InputError(f"margin {self.margin:g} must not be negative")
        for name, kind in (
            ("se", Estimator), ("interval", Interval), ("test", Test), ("adjust", Adjust),
            ("repeats_are", RepeatsAre), ("missing", Missing), ("questions_are", QuestionsAre),
        ):  # fmt: skip
            if getattr(self, name) not in get_args(kind):
                raise InputError(f"{name} {getattr(self, name)!r} is not one of {', '.join(get_args(kind))}")

        if self.range is not None and not (len(self.range) == 2 and -inf < self.range[0] < self.range[1] < inf):
            raise InputError(f"range {self.range!r} must be the metric's lowest and highest value: 0,1 or 0,100")
        if self.runs_shared and self.repeats_are != "runs":
            raise InputError("--runs-shared pairs the runs of A with those of B: it needs --repeats-are runs")
        if self.seed < 0 or self.resamples < 100:
            raise InputError(f"seed {self.seed} must not be negative, and resamples {self.resamples} not below 100")
        if self.unpaired and self.test in ("sign", "permutation", "wild"):
            raise InputError(f"--test {self.test} needs pairs of the same question: use t or bootstrap with --unpaired")
        if self.test == "wild" and self.interval not in ("auto", "t"):
            raise InputError(
                f"--test wild has an interval of its own, by inversion: leave --interval {self.interval} out, or use t"
            )
        if self.questions_are == "fixed":
            self._check_fixed()
        if self.unpaired and self.runs_shared:
            raise InputError(
                "--runs-shared pairs run j of A with run j of B on the same questions: not with --unpaired"
            )
        if self.repeats_are == "runs" and ("bootstrap" in (self.test, self.interval) or self.test != "t"):
            raise InputError(
                "--repeats-are runs has its own variance between runs, which only the t test and the t, Wilson and "
                "Korn-Graubard intervals know: leave --test and --interval as they are"
            )

    def _check_fixed(self) -> None:
        """Refuse what takes the questions for a sample."""
        for what, clash in (
            (f"--test {self.test}", self.test != "t"),
            (f"--interval {self.interval}", self.interval not in ("auto", "t", "wilson")),
            (f"--se {self.se}", self.se != "cr2"),
            ("--repeats-are runs", self.repeats_are != "answers"),
            ("--unpaired", self.unpaired),
        ):
            if clash:
                raise InputError(
                    f"{what} takes the questions for a sample, and --questions-are fixed does not: its standard error "
                    "comes from the repeats alone, with the t test. Leave one of the two out"
                )

    @property
    def estimand(self) -> str:
        """What the results are about, as they name it."""
        return "these_questions" if self.questions_are == "fixed" else "questions_population"

    def to_dict(self) -> dict[str, Any]:
        return asdict(self) | {"range": None if self.range is None else list(self.range)}


def check_scale(name: str, value: float | None, scale: tuple[float, float] | None, metric: str = "") -> None:
    """Refuse a difference that the metric cannot have, 5 for 5 % of a metric in [0, 1].

    Raises:
        InputError: a value as large as the whole range.
    """
    if value is None or scale is None or value < scale[1] - scale[0]:
        return
    width = scale[1] - scale[0]
    meant = f"; did you mean {value / 100:g}?" if width <= 1 and value / 100 < width else ""
    raise InputError(
        f"{name} {value:g} is on the scale of {metric or 'the metric'}, which runs from {scale[0]:g} to {scale[1]:g}: "
        f"no difference that matters is as large as the whole range{meant} (--range LOW,HIGH says where the metric has "
        "another range)"
    )
