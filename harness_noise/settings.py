"""What a user chose, validated once and recorded in every result."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

from .errors import InputError

Interval = Literal["auto", "t", "wilson", "clopper-pearson", "korn-graubard", "bootstrap"]
Test = Literal["t", "sign", "permutation", "bootstrap"]
Adjust = Literal["holm", "bh", "none"]
Estimator = Literal["cr0", "cr1", "cr2"]
RepeatsAre = Literal["answers", "runs"]
Missing = Literal["drop", "zero"]


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
            ("repeats_are", RepeatsAre), ("missing", Missing),
        ):  # fmt: skip
            if getattr(self, name) not in get_args(kind):
                raise InputError(f"{name} {getattr(self, name)!r} is not one of {', '.join(get_args(kind))}")

        if self.seed < 0 or self.resamples < 100:
            raise InputError(f"seed {self.seed} must not be negative, and resamples {self.resamples} not below 100")
        if self.unpaired and self.test in ("sign", "permutation"):
            raise InputError(f"--test {self.test} needs pairs of the same question: use t or bootstrap with --unpaired")
        if self.repeats_are == "runs" and ("bootstrap" in (self.test, self.interval) or self.test != "t"):
            raise InputError(
                "--repeats-are runs has its own variance between runs, which only the t test and the t, Wilson and "
                "Korn-Graubard intervals know: leave --test and --interval as they are"
            )

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)
