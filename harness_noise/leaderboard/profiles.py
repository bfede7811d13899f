"""The noise profile of a benchmark: what an arena found, kept in a file for those who have no samples.

A benchmark's total noise is much the same for all pairs of models that are close, so a difference
between two numbers of a leaderboard can be judged without running anything again. Wang (2025), §1.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from .._version import __version__
from ..analysis.difference import decided
from ..analysis.evidence import row_decision
from ..errors import InputError
from ..io.atomic import write_text
from ..io.json_files import load
from ..results.arena import Arena, BenchmarkResult, Spread
from ..results.forms import SCHEMA_VERSION
from ..results.rows import Difference
from ..settings import Settings, check_scale
from ..stats import decision, theory
from ..stats.flips import Far, extended_flips
from ..stats.tolerances import LARGEST
from . import shipped
from .question_means import KIND, to_json


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """One benchmark's characteristic noise; the fields are those of `Benchmark`."""

    task: str
    metric: str
    scorer: str
    n_questions: int
    n_models: int
    n_close_pairs: int
    se_total: Spread
    se_data: Spread | None
    se_prediction: Spread | None
    beta_theory: Spread | None
    solved: float | None
    """Share of questions that any model solved."""
    higher_is_better: bool | None
    cluster: str | None
    n_clusters: int
    """Of a pair; the questions where there are none."""
    df: float | None
    """Degrees of freedom of a pair's standard error: few where clusters are few."""

    def se(self, a: float, b: float, repeats: tuple[int, int] = (1, 1)) -> float:
        """The standard error of a − b, each the mean over that many answers to every question.

        One answer each: the Beta theory at the mean of a and b, times what the arena found it to be
        off by; the median of the arena's pairs for a metric outside [0, 1]. More answers leave the
        data noise and less of the prediction noise, in the proportion that the arena found.
        """
        total = self.se_total.median
        if self.beta_theory is not None and self.solved:
            p = np.array([min(max((a + b) / 2, 0.0), 1.0)])
            # models that solve more than all of the arena's together are not bound by what those solved
            solved = self.solved if p[0] < self.solved else 1.0
            variance = float(theory.beta_variance(p, solved)[0]) / self.n_questions
            total = self.beta_theory.median * math.sqrt(variance)
        if repeats == (1, 1):
            return total
        if self.se_data is None or self.se_prediction is None:
            raise InputError(
                f"the profile of {self.task} has one answer per question, so it cannot say how much noise is left "
                "in the mean of several: make it from runs with repeats, or compare means of one answer"
            )
        data, prediction = self.se_data.median**2, self.se_prediction.median**2
        share = (data + prediction * (1 / repeats[0] + 1 / repeats[1]) / 2) / (data + prediction)
        return total * math.sqrt(share)

    @property
    def scale(self) -> tuple[float, float] | None:
        """Lowest and highest value of the metric; None where the profile does not say."""
        return None if self.beta_theory is None else (0.0, 1.0)

    def check(self, *scores: float) -> None:
        """Refuse numbers that the metric cannot have.

        Raises:
            InputError: 71 for 0.71.
        """
        for value in scores:
            if not math.isfinite(value) or (self.scale is not None and not 0 <= value <= 1):
                raise InputError(
                    f"{value:g} is not a score of {self.task} / {self.metric}, which lies between 0 and 1: "
                    + (f"write {value / 100:g} for {value:g} %" if 1 < value <= 100 else "write 0.71 for 71 %")
                )

    def planning(self) -> dict[str, Any]:
        """ω² of the difference, σ² of each run and the size of clusters, as `plan` takes them.

        Where the profile cannot split the noise, ω² is all of it, right for one answer per question, and σ² None.
        """
        size = None if self.cluster is None else self.n_questions / max(1, self.n_clusters)
        if self.se_data is None or self.se_prediction is None:
            return {"omega2": self.n_questions * self.se_total.median**2, "sigma2": None, "cluster_size": size}
        sigma2 = self.n_questions * self.se_prediction.median**2 / 2
        omega2 = self.n_questions * self.se_data.median**2
        return {"omega2": omega2, "sigma2": (sigma2, sigma2), "cluster_size": size}


def write(arena: Arena, path: str | Path, *, questions: bool = False) -> None:
    """Write the profiles of all benchmarks that have close pairs; with every model's question means, if asked.

    Raises:
        InputError: no benchmark has any, or the file cannot be written.
    """
    if arena.settings.get("questions_are") == "fixed":
        raise InputError(
            "a noise profile is for other models on the same benchmark, and `questions_are='fixed'` leaves the noise "
            "between questions out: write it without"
        )
    known = [profile for board in arena.boards if (profile := _profile(board, questions)) is not None]
    if not known:
        raise InputError("no benchmark has two models close enough to show its noise: give more models, or closer ones")
    content = {
        "kind": KIND,
        "schema_version": SCHEMA_VERSION,
        "harness_noise_version": __version__,
        "settings": dict(arena.settings),
        "benchmarks": known,
    }
    write_text(Path(path), json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def _profile(board: BenchmarkResult, questions: bool) -> dict[str, Any] | None:
    row, pairs = board.benchmark, board.pairs
    if row.se_total is None:
        return None
    out: dict[str, Any] = {}
    for item in fields(Profile):
        value = getattr(row, item.name, None)
        out[item.name] = _range(value) if isinstance(value, Spread) else value
    known = np.isfinite(pairs.columns["df"])
    if questions:
        out["questions"] = to_json(board)
    return out | {
        "solved": None if row.solved_by_none is None else 1 - row.solved_by_none / row.n_questions,
        "higher_is_better": pairs.common["higher_is_better"],
        "n_clusters": int(np.median(pairs.columns["n_clusters"])),
        "df": float(np.median(pairs.columns["df"][known])) if known.any() else None,
    }


def _range(value: Spread) -> dict[str, float]:
    return {"median": value.median, "min": value.min, "max": value.max}


def read(path: str | Path) -> tuple[Profile, ...]:
    """The profiles in a file that `write` has made, or the one of that name that comes with this package.

    Raises:
        InputError: not such a file; says where it differs.
    """
    path = shipped.locate(path)
    content = load(path, "; make a profile with `arena RUN… --reference FILE`")
    if not isinstance(content, dict) or content.get("kind") != KIND:
        raise InputError(f"{path}: not a noise profile; make one with `arena RUN… --reference FILE`")
    try:
        return tuple(_parse(row) for row in content["benchmarks"])
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"{path}: a noise profile with a broken entry ({_short(error)}); make it again") from None


_TEXTS = ("task", "metric", "scorer")
_COUNTS = ("n_questions", "n_models", "n_close_pairs", "n_clusters")
_SPREADS = ("se_total", "se_data", "se_prediction", "beta_theory")


def _parse(row: dict[str, Any]) -> Profile:
    values = {item.name: row[item.name] for item in fields(Profile)}
    for name in _SPREADS:
        if values[name] is not None:
            values[name] = Spread(*(_number(values[name][key], name) for key in ("median", "min", "max")))
    for name in ("solved", "df"):
        if values[name] is not None:
            values[name] = _number(values[name], name)
    for names, kinds in (
        (_TEXTS, str),
        (_COUNTS, int),
        (("cluster",), str | None),
        (("higher_is_better",), bool | None),
    ):
        for name in names:
            if not isinstance(values[name], kinds) or (kinds is int and not 0 <= values[name] <= 1 << 53):
                raise TypeError(f"{name} {values[name]!r}")
    if not (values["n_questions"] >= 2 and values["se_total"].median > 0):
        raise ValueError(f"n_questions {values['n_questions']}, se_total {values['se_total']}")
    if values["solved"] is not None and values["solved"] > 1:
        raise ValueError(f"solved {values['solved']}")
    return Profile(**values)


def _number(value: Any, name: str) -> float:
    """A number that is neither negative nor endless: standard errors, their ratios, shares, degrees of freedom."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= LARGEST:
        raise ValueError(f"{name} {value!r}")
    return float(value)


def _short(error: Exception) -> str:
    text = repr(error)
    return text if len(text) <= 200 else text[:199] + "…"


def choose(
    profiles: Sequence[Profile], task: str | None = None, metric: str | None = None, scorer: str | None = None
) -> Profile:
    """The one profile of that task, metric and scorer; what is None matches all.

    Raises:
        InputError: none, or several.
    """
    found = [
        item
        for item in profiles
        if task in (None, item.task) and metric in (None, item.metric) and scorer in (None, item.scorer)
    ]
    if len(found) == 1:
        return found[0]
    have = "; ".join(f"{item.task} / {item.metric} / {item.scorer}" for item in profiles[:12])
    what = "no profile of that name" if not found else f"{len(found)} profiles"
    raise InputError(f"{what} in the reference, which has {have}: name one with `tasks`, `metrics` and `scorers`")


def compare(
    profile: Profile,
    a: float,
    b: float,
    *,
    names: tuple[str, str] = ("A", "B"),
    repeats: tuple[int, int] = (1, 1),
    level: float = 0.95,
    margin: float | None = None,
) -> Difference:
    """A − B of two bare numbers on a benchmark whose noise is known; `test` is "reference".

    Args:
        profile: the benchmark's noise.
        a: mean of A on the metric's own scale.
        b: mean of B.
        names: what to call them.
        repeats: answers per question behind each mean.
        level: coverage of the interval, in (0, 1).
        margin: test equivalence within it.

    Raises:
        InputError: numbers, or a margin, that are not on the profile's scale.
    """
    check_scale("margin", margin, profile.scale, profile.metric)
    profile.check(a, b)
    diff, se = a - b, profile.se(a, b, repeats)
    known = se > 0  # the theory has no noise at 0 and 1, where nothing is known of it
    far = _far(profile, diff, se, repeats) if known else None
    df = float(profile.df or profile.n_questions - 1) if known else math.nan
    of = decision.Differences(
        np.array([diff]), np.array([se**2 if known else math.nan]), np.array([df]), zero=np.array([False]),
        p_zero=np.array([math.nan]), far=far,
    )  # fmt: skip
    row = row_decision(
        decision.decide(of, level, margin), {"reference_noise", *decision.noise_codes(None, far=far)},
        task=profile.task,
        metric=profile.metric,
        scorer=profile.scorer,
        higher_is_better=profile.higher_is_better,
        model_a=names[0],
        model_b=names[1],
        n_questions=profile.n_questions,
        n_clusters=profile.n_clusters,
        n_only_a=0, n_only_b=0,
        repeats_a=repeats[0], repeats_b=repeats[1],
        mean_a=a,
        mean_b=b,
        diff=diff,
        se=se or None,
        level=level,
        df=df,
        test="reference",
        se_total=profile.se(a, b) or None,
        se_data=None if profile.se_data is None else profile.se_data.median,
        se_prediction=None if profile.se_prediction is None else profile.se_prediction.median,
        cluster=profile.cluster,
    )  # fmt: skip
    return decided([row], Settings(level=level, margin=margin))[0]


def _far(profile: Profile, diff: float, se: float, repeats: tuple[int, int]) -> Far | None:
    """(1,) the far limit of a difference whose questions nobody has, as for 0/1 scores with this noise.

    Such scores with one answer each differ on n(n se² + diff²) questions. With clusters, more answers or
    a metric without that scale nothing says how many differ.
    """
    if profile.cluster is not None or profile.beta_theory is None or repeats != (1, 1):
        return None
    n = float(profile.n_questions)
    flips = np.array([n * (n * se**2 + diff**2)])
    return extended_flips(flips, np.array([n * diff]), np.array([n]))
