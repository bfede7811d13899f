"""Noise profiles of benchmarks: an arena's findings, kept in a file for users without samples.

A benchmark's total noise is much the same for all pairs of models that are close, so a difference
between two numbers of a leaderboard can be judged without running anything again. [Wang, §1].
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from difflib import get_close_matches
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from ..._version import __version__
from ...analysis.rows import RowDecision, decide_rows
from ...arrays import HUGE
from ...choices import REFERENCE
from ...data.questions import Questions
from ...data.scores import Measured, ReadOptions, Run, Scores
from ...data.units import PERCENT, Scale
from ...errors import InputError, check_kind
from ...io.atomic import write_text
from ...io.joining import is_meant
from ...io.paths import load, opened
from ...results.forms import SCHEMA_VERSION, json_value, shown_fields
from ...results.rows import Difference
from ...settings import Settings, check_scale
from ...stats import decision
from ...stats.tolerances import SLACK
from .. import sizes
from .results import Arena, BenchmarkResult, Spread


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile(Measured):
    """One benchmark's characteristic noise. The fields are those of `Benchmark`."""

    n_questions: int
    n_models: int
    n_close_pairs: int
    se_total: Spread
    se_data: Spread | None
    se_prediction: Spread | None
    rule_of_thumb: Spread | None
    """The noise of close pairs over √(p(1 − p)/n), p the mean of the two. None for a metric outside [0, 1]."""
    best_mean: float | None
    """Mean of the best model in the table."""
    higher_is_better: bool | None
    cluster: str | None
    n_clusters: int
    """Clusters of a pair, or its questions without clusters."""
    df: float | None
    """Degrees of freedom of a pair's standard error: few where clusters are few."""

    def se(self, a: float, b: float) -> float:
        """Return the SE of a − b of two means, one answer each: the rule of thumb, scaled, or else the table's median.

        It is the rule of thumb at the mean of a and b, times what the table found it to be off by; the median of the
        table's pairs for a metric outside [0, 1].
        """
        if self.rule_of_thumb is None:
            return self.se_total.median
        p = min(max((a + b) / 2, 0.0), 1.0)
        return self.rule_of_thumb.median * math.sqrt(sizes.rule_of_thumb(p).omega2 / self.n_questions)

    @property
    def data_share(self) -> float | None:
        """Share of data noise in the variance at one answer each. None if the table has one answer each or no noise."""
        if self.se_data is None or self.se_prediction is None:
            return None
        data, prediction = self.se_data.median**2, self.se_prediction.median**2
        return data / (data + prediction) if data + prediction > 0 else None

    def beyond(self, *scores: float) -> bool:
        """Return True if any score beats the profile's best mean (no direction: higher). False without a best mean."""
        if self.best_mean is None:
            return False
        sign = -1.0 if self.higher_is_better is False else 1.0
        return any(sign * (score - self.best_mean) > SLACK for score in scores)

    @property
    def scale(self) -> tuple[float, float] | None:
        """Lowest and highest value of the metric: (0.0, 1.0), or None if the profile has no rule of thumb."""
        return None if self.rule_of_thumb is None else (0.0, 1.0)

    @property
    def units(self) -> Scale:
        """Scale on which the profile's numbers are shown: percent if the metric's range is known, else its own."""
        return PERCENT if self.scale else Scale()

    def check(self, *scores: float) -> None:
        """Refuse scores outside the metric's range, such as 71 for 0.71.

        Raises:
            InputError: 71 for 0.71.
        """
        for value in scores:
            if not math.isfinite(value) or (self.scale is not None and not 0 <= value <= 1):
                raise InputError(
                    f"{value:g} is not a score of {self.task} / {self.metric}, which lies between 0 and 1: "
                    + (f"write {value / 100:g} for {value:g}%" if 1 < value <= 100 else "write 0.71 for 71%")
                )

    def planning(self, accuracy: float | None = None) -> dict[str, Any]:
        """Return {omega2, sigma2 (a pair, None: in omega2), cluster_size} for `plan` at an accuracy, None: the table's.

        Where the profile cannot split the noise, ω² is all of it, right for one answer per question, and σ² None.

        Args:
            accuracy: of the models to be compared; None: as that of the table's close pairs.
        """
        size = None if self.cluster is None else self.n_questions / max(1, self.n_clusters)
        se = self.se_total.median if accuracy is None else self.se(accuracy, accuracy)
        variance, share = self.n_questions * se**2, self.data_share
        if share is None:
            return {"omega2": variance, "sigma2": None, "cluster_size": size}
        sigma2 = variance * (1 - share) / 2
        return {"omega2": variance * share, "sigma2": (sigma2, sigma2), "cluster_size": size}


def write(arena: Arena, path: str | Path, *, questions: bool = False) -> None:
    """Write an arena's noise profiles to a JSON file. Refuse fixed questions, or if none can be made. Return nothing.

    Raises:
        InputError: no benchmark has any, or the file cannot be written.
    """
    if arena.settings.get("questions_are") == "fixed":
        raise InputError(
            "a noise profile is for other models on the same benchmark, and `questions_are='fixed'` leaves the noise "
            "between questions out: write it without"
        )
    boards = [board for board in arena.boards if not board.is_overall]  # a profile is of one benchmark
    profiles = [profile for board in boards if (profile := _profile(board, questions)) is not None]
    if not profiles:
        raise InputError("no benchmark has two models close enough to show its noise: give more models, or closer ones")
    content = {
        "kind": KIND,
        "schema_version": SCHEMA_VERSION,
        "harness_noise_version": __version__,
        "settings": dict(arena.settings),
        "benchmarks": profiles,
    }
    write_text(Path(path), json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def _profile(board: BenchmarkResult, questions: bool) -> dict[str, Any] | None:
    row, pairs = board.benchmark, board.pairs
    if row.se_total is None or pairs.common["unit"] is not None:  # the noise of a cost depends on its own models
        return None
    out: dict[str, Any] = {name: json_value(getattr(row, name, None)) for name in shown_fields(Profile)}
    has_df = np.isfinite(pairs.columns["df"])
    if questions:
        out["questions"] = _with_questions(board)
    means = [model.mean for model in board.models if model.mean is not None]
    best = min if pairs.common["higher_is_better"] is False else max
    return out | {
        "best_mean": best(means, default=None),
        "higher_is_better": pairs.common["higher_is_better"],
        "n_clusters": int(np.median(pairs.columns["n_clusters"])),
        "df": float(np.median(pairs.columns["df"][has_df])) if has_df.any() else None,
    }


@dataclass(frozen=True, slots=True)
class NamedProfile:
    """A noise profile and where it comes from."""

    name: str
    """Name of the benchmark, or of the file."""
    profile: Profile
    source: Mapping[str, Any] | None
    """Source of a profile that comes with this package: `what`, `repository`, `commit`, `licence`, …"""


def named(path: str | Path) -> tuple[NamedProfile, ...]:
    """Return the noise profiles in a file, or of a benchmark name in this package. Refuse broken files, of any version.

    Raises:
        InputError: not such a file; says where it differs.
    """
    path = locate(path)
    content = load(path, ". Make a profile of an arena with `write_profile`")
    if not isinstance(content, dict) or content.get("kind") != KIND:
        raise InputError(f"{path}: not a noise profile. Make one of an arena with `write_profile`")
    try:
        profiles = [_parse(row) for row in content["benchmarks"]]
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise InputError(f"{path}: a noise profile with a broken entry ({error!r:.200}). Make it again") from None
    source = content["source"] if path.parent == FOLDER else None
    return tuple(NamedProfile(path.stem, profile, source) for profile in profiles)


def read(path: str | Path) -> tuple[Profile, ...]:
    """Return the noise profiles of a file or a benchmark's name, without names and sources. Refuse other files."""
    return tuple(noise.profile for noise in named(path))


def _parse(row: Mapping[str, Any]) -> Profile:
    values = {name: _checked_value(row[name], kind) for name, kind in shown_fields(Profile).items()}
    profile = Profile(**values)
    if not (profile.n_questions >= 2 and profile.se_total.median > 0 and (profile.df or 1) > 0):
        raise ValueError(f"n_questions {profile.n_questions}, se_total {profile.se_total}, df {profile.df}")
    return profile


def _checked_value(value: Any, kind: str) -> Any:
    """Return a profile's JSON value as its field's type (number, text, `Spread`). TypeError if it is wrong or huge."""
    plain = kind.removesuffix(" | None")
    if value is None and plain != kind:
        return None
    if plain == "Spread":
        return Spread(*(_checked_value(value[field.name], "float") for field in fields(Spread)))
    number = float(value) if plain == "float" and isinstance(value, int) else value
    if type(number).__name__ != plain or (plain in ("int", "float") and not abs(number) <= HUGE):
        raise TypeError(f"{kind} {value!r:.80}")
    return number


def chosen(path: str | Path, options: ReadOptions) -> Profile:
    """Return the one noise profile of a file or name that fits task, metric and scorer. Refuse none or several."""
    return choose(read(path), options)


def choose(profiles: Sequence[Profile], options: ReadOptions) -> Profile:
    """Return the only one of these profiles that fits the wanted task, metric and scorer. Refuse none or several.

    Raises:
        InputError: none, or several.
    """
    lists = (options.tasks, options.metrics, options.scorers)
    matches = [
        profile
        for profile in profiles
        if all(
            not some or any(is_meant(own, name) for name in some) for own, some in zip(profile.key, lists, strict=True)
        )
    ]
    if len(matches) == 1:
        return matches[0]
    have = "; ".join(f"{profile.task} / {profile.metric} / {profile.scorer}" for profile in profiles[:12])
    what = "no profile of that name" if not matches else f"{len(matches)} profiles"
    raise InputError(f"{what} in the reference, which has {have}: name one with `tasks`, `metrics` and `scorers`")


def _one_difference(diff: float, variance: float, df: float) -> decision.Differences:
    """Return one difference with its variance and df as arrays of length 1."""
    row = np.array([[diff], [variance], [df]])
    return decision.Differences(row[0], row[1], row[2], zero=np.array([False]), p_zero=np.array([math.nan]))


def compare(
    profile: Profile,
    a: float,
    b: float,
    *,
    names: tuple[str, str] = ("A", "B"),
    level: float = 0.95,
    margin: float | None = None,
) -> Difference:
    """Compare two bare scores, a − b, with a noise profile's standard error. Refuse scores outside its range.

    Args:
        profile: the benchmark's noise.
        a: mean of A on the metric's own scale.
        b: mean of B.
        names: what to call them.
        level: coverage of the interval, in (0, 1).
        margin: test equivalence within it.

    Raises:
        InputError: numbers, or a margin, that are not on the profile's scale.
    """
    settings = Settings(level=level, margin=margin)
    check_scale("margin", margin, profile.scale, profile.metric, known=True)
    profile.check(a, b)
    about: dict[str, Any] = {"_zero_one": profile.scale is not None, "model_a": names[0], "model_b": names[1]}
    diff, se, share = a - b, profile.se(a, b), profile.data_share
    noisy = se > 0  # the rule of thumb has no noise at 0 and 1, where nothing is known of it
    df = float(profile.df or profile.n_questions - 1) if noisy else math.nan
    parts = (share, 1 - share) if noisy and share is not None else (math.nan, math.nan)
    data, prediction = (part * se**2 for part in parts)
    codes = {"reference_noise", *decision.noise_codes(df if profile.cluster and noisy else math.nan)}
    codes |= {"beyond_reference"} if profile.beyond(a, b) else set()
    shared = ("task", "metric", "scorer", "higher_is_better", "n_questions", "n_clusters", "cluster")
    row = RowDecision.of(
        decision.decide(_one_difference(diff, se**2 if noisy else math.nan, df), settings),
        codes,
        **{name: getattr(profile, name) for name in shared},
        **about,
        n_only_a=0,
        n_only_b=0,
        repeats_a=1,
        repeats_b=1,
        mean_a=a,
        mean_b=b,
        diff=diff,
        se=se or None,
        level=level,
        df=df,
        test=REFERENCE.name,
        se_total=se or None,
        se_data=math.sqrt(data),
        se_prediction=math.sqrt(prediction),
        var_data=data,
        var_prediction=prediction,
    )
    result = decide_rows([row], settings)[0]
    if profile.scale is None or result.ci_low is None or result.ci_high is None:
        return result
    return replace(result, ci_low=max(result.ci_low, -1.0), ci_high=min(result.ci_high, 1.0))


KIND = "noise-profile"
_START = 300
"""Bytes in which a profile has said that it is one."""


def _with_questions(board: BenchmarkResult) -> dict[str, Any]:
    """Return {keys, clusters, models, means (a list per model)} of a benchmark's questions as JSON for a profile."""
    clusters = [question.cluster for question in board.questions]
    return {
        "keys": [question.question for question in board.questions],
        "clusters": None if set(clusters) <= {None} else clusters,
        "models": [model.model for model in board.models],
        "means": [[None if math.isnan(x) else round(float(x), 12) for x in column] for column in board.scores.T],
    }


def is_profile(path: str | Path) -> bool:
    """Return True if the file at a path says near its start that it is a noise profile. False if it cannot be read."""
    try:
        place = Path(path)
        if not place.is_file():
            return False
        with opened(place) as file:
            return f'"kind": "{KIND}"'.encode() in file.read(_START)
    except OSError:
        return False


def read_runs(path: str | Path) -> list[Run]:
    """Read a noise profile with question means as runs, one for each model. Refuse one without them.

    Raises:
        InputError: no profile, or one without questions.
    """
    content, scores = load(Path(path)), dict[str, list[Scores]]()
    try:
        for row in content["benchmarks"]:
            for model, part in _questions_of(row, row.get("questions")):
                scores.setdefault(model, []).append(part)
    except (ValueError, KeyError, TypeError, AttributeError):
        raise InputError(f"{path}: a noise profile with broken questions. Make it again") from None
    if not scores:
        raise InputError(
            f"{path}: the profile has no means by question. Make it of an arena with `write_profile` and "
            "`with_questions=True`"
        )
    return [
        Run(model=model, name=f"{model} ({path})", harness="profile", path=str(path), scores=tuple(parts))
        for model, parts in scores.items()
    ]


def _questions_of(row: dict[str, Any], stored: dict[str, Any] | None) -> list[tuple[str, Scores]]:
    if stored is None:
        return []
    keys, clusters = [str(key) for key in stored["keys"]], stored["clusters"]
    means = np.array([[math.nan if x is None else float(x) for x in column] for column in stored["means"]], dtype=float)
    models = [str(model) for model in stored["models"]]
    if means.shape != (len(models), len(keys)) or np.isinf(means).any() or len(set(models)) < len(models):
        raise ValueError(means.shape)
    named = None if clusters is None else tuple(f"\x1f{i}" if x is None else str(x) for i, x in enumerate(clusters))
    questions = Questions(tuple(keys))
    task, metric, scorer = (str(row[name]) for name in ("task", "metric", "scorer"))
    right = row.get("rule_of_thumb") is not None  # only answers that are right or wrong have one
    return [
        (model, Scores(task, metric, scorer, questions, values=column[:, None], clusters=named, of_right=right))
        for model, column in zip(models, means, strict=True)
    ]


FOLDER = Path(__file__).parent / "noise"


def names() -> list[str]:
    """Return the names of the noise profiles in this package, sorted."""
    return sorted(path.stem for path in FOLDER.glob("*.json"))


def locate(path: str | Path) -> Path:
    """Return a noise profile's path: a path as it is, or that of a name in this package. Refuse unknown bare names.

    Raises:
        InputError: a bare name that no profile has; names those like it.
    """
    check_kind("`profile`", path, str, PathLike)
    path = Path(path)
    if path.exists() or path.name != str(path) or path.suffix == ".json":
        return path
    name_of = {_plain(name): name for name in names()}
    if _plain(path.name) in name_of:
        return FOLDER / f"{name_of[_plain(path.name)]}.json"
    within = [plain for plain in name_of if _plain(path.name) and _plain(path.name) in plain]
    near = [name_of[plain] for plain in within or get_close_matches(_plain(path.name), name_of, n=3)]
    raise InputError(
        f"{path}: neither a file nor a benchmark whose noise comes with this package"
        f"{'. Did you mean ' + ' or '.join(near) + '?' if near else '.'} `profiles` lists them, "
        "and `write_profile` makes one of an arena of your own runs"
    )


def sentence(path: str | Path) -> str | None:
    """Return a sentence on the source and licence of a noise profile in this package, None for a user's own."""
    noise = named(path)[0]
    if noise.source is None:
        return None
    return (
        f"the noise is that of {noise.name}: {noise.source['what']} ({noise.source['repository'].partition('//')[2]}, "
        f"{noise.source['licence']}). It applies to models of similar accuracy that agree about as often, prompted the "
        "same way"
    )


def _plain(name: str) -> str:
    return "".join(c for c in name.lower() if c.isalnum())
