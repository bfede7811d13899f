"""The results: frozen, with the field names of the JSON output, in its order.

Field docstrings are the documentation of the JSON; `None` is "not identified", never zero. Means and
standard errors are on the metric's own scale.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar

from ._version import __version__

if TYPE_CHECKING:
    import pandas as pd
    from _typeshed import DataclassInstance
    from rich.console import RenderableType

    from .estimators.combine import Combined

SCHEMA_VERSION = 1

DIAGNOSTICS: dict[str, str] = {
    "single_repeat": "one answer per question, or nearly: data and prediction noise cannot be told apart",
    "partly_single_repeat": "some questions have one answer; they take the mean variance of the others, which biases "
    "the split into data and prediction noise (not the total) if they are easier or harder",
    "single_repeats_differ": "the questions with one answer score differently from the others, so the variance that "
    "they take from these may not be theirs: the split into data and prediction noise is biased, the total is not",
    "missing_repeats": "questions have different numbers of scored answers",
    "uses_all_repeats": "the metric uses several answers of a question at once (pass@k, majority vote): data and "
    "prediction noise cannot be told apart",
    "single_level": "a factor with one level: its variance is not known",
    "aliased_factor": "the design cannot tell this factor from another one",
    "negative_component": "the estimate of this variance component is below 0: it is smaller than the design "
    "can resolve",
    "identical_repeats": "all repeats agree on every question, in their answers or, where only these are known, in "
    "their scores (temperature 0, a cache, or a fixed server seed?): prediction noise is not identified",
    "shared_repeat_noise": "a repeat moves all questions together (a shared seed, a drifting server?): "
    "the repeats are not independent",
    "too_few_questions": "fewer than two questions: no standard error",
    "too_few_clusters": "fewer than two clusters: no standard error",
    "few_clusters": "fewer than 10 degrees of freedom: intervals are wide and lean on their assumptions",
    "singleton_clusters": "every cluster holds one question: clustering changes nothing (wrong field?)",
    "negative_data_variance": "the estimate of the data variance is below 0: it is smaller than this many repeats can "
    "resolve, and its one-sided 95 % limit is shown (< x); SE² = data² + prediction²/K holds for the raw variances, "
    "not for the figures shown here",
    "zero_variance": "no variance between questions: for a metric with a known range the interval comes from a "
    "small-sample rule, for others there is none",
    "identical_scores": "the two runs agree on every question",
    "unpaired_questions": "questions that only one of the runs has are left out",
    "unpaired": "the runs are compared as independent samples of questions (--unpaired): all questions of both "
    "count, and what they share is not used",
    "different_prompts": "the two runs were prompted differently",
    "mean_mismatch": "our mean is not the harness's own value: the scores may be read wrongly",
    "few_flips": "few questions (clusters) differ at all: the far limit of the interval is the more cautious one of "
    "two rules",
    "few_failures": "fewer than 10 questions (clusters) hold a wrong answer, or a right one, counted by how often "
    "they are wrong: the interval is less reliable",
    "not_after_adjustment": "the single interval shows a difference that is no longer significant after adjustment "
    "for the rows of its family",
    "missing_matters": "answers are missing, and counting them all as wrong or all as right moves the mean by more "
    "than a third of its standard error",
    "copied_repeats": "native answers that share a seed are copies of each other and count as one",
    "identical_scores_only": "the answers differ, but their scores do not: prediction noise is not identified",
    "first_answer_differs": "the first answer of every question scores differently from the others (a shared seed?): "
    "the native value and the mean over all answers do not estimate the same thing",
    "reference_noise": "no samples were compared: the noise is the one that the benchmark's profile gives for "
    "models of this accuracy",
    "skipped_metric": "no samples, or not a mean of per-question scores: only the harness's own value is shown",
}


UNSPLIT = frozenset(("single_repeat", "identical_repeats", "identical_scores_only"))
"""Codes of what leaves data and prediction noise unsplit."""


class _Row:
    """What one Estimate and one Difference share: they are shown as a table of one row."""

    __slots__ = ()

    def to_dict(self) -> dict[str, Any]:
        """The row as the JSON has it."""
        return row(self)  # type: ignore[arg-type]  # only the two dataclasses below exist

    def to_frame(self) -> pd.DataFrame:
        """One line, as in `Analysis.to_frame` and `Comparison.to_frame`."""
        return self._table().to_frame()

    def __rich__(self) -> RenderableType:
        return self._table().__rich__()

    def _repr_html_(self) -> str:
        return self._table()._repr_html_()

    def _table(self) -> Analysis | Comparison:
        return Analysis({}, (self,)) if isinstance(self, Estimate) else Comparison({}, (self,))  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate(_Row):
    """One mean with its noise."""

    task: str
    metric: str
    scorer: str
    model: str
    run: str
    higher_is_better: bool | None
    n_questions: int
    n_clusters: int
    """Equal to n_questions where there are no clusters."""
    repeats_min: int
    repeats_max: int
    mean: float | None
    se: float | None
    """Standard error of `mean`, averaged over the repeats that were run."""
    ci_low: float | None
    ci_high: float | None
    level: float
    df: float | None
    interval: str
    """wilson, t, clopper-pearson, korn-graubard, bootstrap; none."""
    se_total: float | None
    """Standard error of the same benchmark with one answer per question."""
    se_data: float | None
    """What is left with infinitely many repeats."""
    se_prediction: float | None
    """What the model's own randomness adds at one answer per question."""
    se_naive: float | None
    """The standard error that ignores clusters."""
    var_data: float | None
    """se_data², but raw: it may be negative."""
    var_prediction: float | None
    design_effect: float | None
    n_effective: float | None
    icc: float | None
    estimator: str
    n_missing: int = 0
    """Answers that were asked for and have no score (errored, NaN); see `--missing`."""
    cluster: str | None = None
    """The cluster SPEC in words; null where questions are independent."""
    diagnostics: tuple[str, ...] = ()
    se_data_upper: float | None = None
    """One-sided 95 % upper limit of `se_data`; shown where the estimate is clipped at 0."""
    mean_if_missing_wrong: float | None = None
    """The mean if every missing answer were wrong (the worst of the range); null where none is missing."""
    mean_if_missing_right: float | None = None
    range: tuple[float, float] | None = None
    """Lowest and highest value that the metric can take, where that is declared or seen; null: unbounded."""
    estimand: str = "questions_population"
    """questions_population: the questions are a sample; these_questions: they are all there is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference(_Row):
    """A − B over the questions that both have answered."""

    task: str
    metric: str
    scorer: str
    higher_is_better: bool | None
    model_a: str
    model_b: str
    n_questions: int
    n_clusters: int
    n_only_a: int
    n_only_b: int
    repeats_a: int
    repeats_b: int
    mean_a: float | None
    mean_b: float | None
    diff: float | None
    se: float | None
    ci_low: float | None
    ci_high: float | None
    level: float
    df: float | None
    statistic: float | None
    p_value: float | None
    p_adjusted: float | None
    """`p_value` adjusted over its family of rows; the verdict follows it."""
    test: str
    p_sign: float | None
    wins_a: float | None
    """Expected wins, over all pairs of answers; wins and ties sum to n_questions."""
    wins_b: float | None
    ties: float | None
    correlation: float | None
    se_unpaired: float | None
    se_total: float | None
    se_data: float | None
    se_prediction: float | None
    var_data: float | None
    var_prediction: float | None
    design_effect: float | None
    mde: float | None
    """The smallest difference that this comparison detects with 80 % power: noncentral t with its df."""
    verdict: str
    run_a: str = ""
    """Where A was read from: tells two runs of one model apart."""
    run_b: str = ""
    n_missing: int = 0
    cluster: str | None = None
    diagnostics: tuple[str, ...] = ()
    se_data_upper: float | None = None
    """One-sided 95 % upper limit of `se_data`; shown where the estimate is clipped at 0."""
    estimand: str = "questions_population"
    """As in an estimate."""
    interval: str = "t"
    """Whose interval it is: t, bootstrap, bonett-price, agresti-caffo; none. With `test` sign or permutation,
    which have none of their own, it is t's."""


@dataclass(frozen=True, slots=True)
class Flip:
    """A question on which two runs disagree."""

    task: str
    metric: str
    scorer: str
    model_a: str
    model_b: str
    question: str
    text: str | None
    cluster: str | None
    mean_a: float
    mean_b: float
    diff: float


def row(result: DataclassInstance) -> dict[str, Any]:
    """The JSON form of one row: strict JSON, None for what is not identified."""
    return {key: list(value) if isinstance(value, tuple) else value for key, value in asdict(result).items()}


def frame(rows: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """Rows as a table."""
    import pandas as pd

    return pd.DataFrame([{key: storable(value) for key, value in item.items()} for item in rows])


def storable(value: Any) -> Any:
    """A text without halves of surrogate pairs, which JSON can spell and no column of text can hold."""
    return _HALF.sub("\ufffd", value) if isinstance(value, str) else value


_HALF = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class _Table:
    """What Analysis and Comparison share: one object, several forms."""

    settings: Mapping[str, Any]

    kind: ClassVar[str]
    """The key of the rows in the JSON, and the attribute that holds them."""

    def to_dict(self) -> dict[str, Any]:
        """The object that `--format json` prints."""
        return {
            "schema_version": SCHEMA_VERSION,
            "harness_noise_version": __version__,
            "settings": dict(self.settings),
            self.kind: [row(item) for item in getattr(self, self.kind)],
            "notes": list(getattr(self, "notes", ())),
        }

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False, allow_nan=False)

    def to_frame(self) -> pd.DataFrame:
        """One line per row; what is not identified is NaN, diagnostics are joined by a space."""
        return frame(item | {"diagnostics": " ".join(item["diagnostics"])} for item in self.to_dict()[self.kind])

    def __rich__(self) -> RenderableType:
        from .report import terminal

        return terminal.render(self)  # type: ignore[arg-type]  # only the two classes below exist

    def _repr_html_(self) -> str:
        from .report import html

        return html.fragment(self)  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class Analysis(_Table):
    """The noise of every mean of one or several runs."""

    kind: ClassVar[str] = "estimates"

    estimates: tuple[Estimate, ...] = ()
    notes: tuple[str, ...] = ()
    """Hints and warnings for a person, one sentence each."""


@dataclass(frozen=True, slots=True)
class Comparison(_Table):
    """A − B, for every task and metric that two runs share."""

    kind: ClassVar[str] = "comparisons"

    comparisons: tuple[Difference, ...] = ()
    notes: tuple[str, ...] = ()
    """Hints and warnings for a person, one sentence each."""
    flips: tuple[Flip, ...] = ()
    """The questions that changed most, if they were asked for."""
    combined: tuple[Combined, ...] = ()
    """What all rows say together, if it was asked for."""
    families: tuple[str, ...] = ()
    """The family in which each row's p is adjusted: "" for groups and tasks outside any group, else the
    group whose subtask it is; not part of the JSON. Without any: one family."""

    def to_dict(self) -> dict[str, Any]:
        out = _Table.to_dict(self)
        if self.flips:
            out["questions"] = [row(item) for item in self.flips]
        if self.combined:
            out["combined"] = [asdict(item) for item in self.combined]
        return out


@dataclass(frozen=True, slots=True)
class PlanRow:
    """The smallest difference that a design detects with the plan's power."""

    n_questions: int
    repeats: int
    mde: float


@dataclass(frozen=True, slots=True)
class TheoryRow:
    """What one theory, from the accuracy alone, says of the same plan."""

    theory: str
    variance: float
    """Var[A − B] per question, at one answer each."""
    n_questions: int
    mde: float


@dataclass(frozen=True, slots=True)
class PlugIn:
    """What the same plan says if a pilot's estimate of ω² is taken for the truth."""

    n_questions: int
    n_clusters: int | None
    effect: float
    power: float
    mde: float
    variance: float
    df: float
    cost: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A design that finds `effect` with `power`, and what other designs would find."""

    shows_notes: ClassVar[bool] = True
    """Its tables say the notes themselves."""

    effect: float
    """The difference to be found, or the smallest that can be, on the metric's scale."""
    power: float
    alpha: float
    n_questions: int
    repeats: int
    """Answers per question, K."""
    mde: float
    """The smallest difference that n_questions and repeats detect with `power`; with 80 %, as in
    `table`, where the power itself was asked for."""
    df: float
    """Degrees of freedom of the planned design: n − 1, or those of its clusters."""
    n_clusters: int | None
    """Clusters of the size seen that n_questions fill; null where questions stand alone."""
    cluster_size: float | None
    """Questions per cluster."""
    variance: float
    """Variance per question of the contrast at `repeats` answers that the plan starts from."""
    omega2: float | None
    """Data variance per question of the contrast, with the design effect in it; raw, as estimated or given;
    null where only its sum with the prediction noise is known."""
    omega2_upper: float | None
    """The upper confidence limit of ω², from which the plan starts; null where ω² was not estimated."""
    sigma2_a: float | None
    """Prediction variance of one answer; null where it is not known apart from ω²."""
    sigma2_b: float | None
    design_effect: float | None
    best_repeats: int | None
    """The K that makes the variance smallest for a budget; null without costs."""
    cost: float | None
    """Of all questions and all answers of all models."""
    table: tuple[PlanRow, ...]
    basis: str
    """Where the noise comes from: omega2, from, accuracy."""
    compared: str
    """What is compared: A − B of two runs, one mean against a number, or two runs like one."""
    assurance: float | None = None
    """The level of `omega2_upper`: the share of such pilots whose plan has the power."""
    plug_in: PlugIn | None = None
    """The answer of the estimate itself; null without a pilot, or where its ω² is not above 0."""
    theory: tuple[TheoryRow, ...] = ()
    """The three theories side by side, where only the accuracy is given."""
    diagnostics: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    """What is compared, in what it is counted, and how far the pilot can be trusted; one sentence each."""

    def to_dict(self) -> dict[str, Any]:
        """The object that `--format json` prints."""
        plan = asdict(self)
        for name in ("table", "theory", "diagnostics", "notes"):
            plan[name] = list(plan[name])
        return {"schema_version": SCHEMA_VERSION, "harness_noise_version": __version__, "settings": {}, "plan": plan}

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False, allow_nan=False)

    def to_frame(self) -> pd.DataFrame:
        """The table of designs: smallest detectable difference by n_questions and repeats."""
        return frame(asdict(item) for item in self.table)

    def __rich__(self) -> RenderableType:
        from .report import terminal

        return terminal.render(self)

    def _repr_html_(self) -> str:
        from .report import html

        return html.fragment(self)


def finite(value: float | None) -> float | None:
    """None for what is not a finite number: nothing else enters a result."""
    return None if value is None or not math.isfinite(value) else float(value)


def merge_notes(*groups: Iterable[str]) -> tuple[str, ...]:
    """All notes once, in order."""
    return tuple(dict.fromkeys(note for group in groups for note in group))


def json_schema() -> dict[str, Any]:
    """The JSON Schema of `--format json` and of a results file's `noise` block.

    It is generated from the dataclasses above and shipped as `schema.json`.
    """
    from .arena_results import Benchmark, Model, Question, Spread, Step
    from .estimators.combine import Combined
    from .factors import FactorRow

    def rows(*names: str) -> dict[str, Any]:
        items = [{"$ref": f"#/$defs/{name}"} for name in names]
        return {"type": "array", "items": items[0] if len(items) == 1 else {"anyOf": items}}

    kinds: dict[str, dict[str, Any]] = {
        "str": {"type": "string"},
        "str | None": {"type": ["string", "null"]},
        "int": {"type": "integer", "minimum": 0},
        "float": {"type": "number"},
        "float | None": {"type": ["number", "null"]},
        "bool | None": {"type": ["boolean", "null"]},
        "int | None": {"type": ["integer", "null"], "minimum": 0},
        "tuple[str, ...]": {"type": "array", "items": {"type": "string"}},
        "tuple[Step, ...]": rows("step"),
        "tuple[PlanRow, ...]": rows("plan_row"),
        "PlugIn | None": {"anyOf": [{"$ref": "#/$defs/plug_in"}, {"type": "null"}]},
        "tuple[TheoryRow, ...]": rows("theory"),
        "tuple[float, float] | None": {
            "anyOf": [{"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 2}, {"type": "null"}]
        },
        "Spread | None": {"anyOf": [{"$ref": "#/$defs/spread"}, {"type": "null"}]},
        "Mapping[int, float] | None": {"type": ["object", "null"], "additionalProperties": {"type": "number"}},
    }
    codes = {"type": "array", "items": {"enum": sorted(DIAGNOSTICS)}}

    def table(kind: type[Any]) -> dict[str, Any]:
        properties = {
            item.name: codes if item.name == "diagnostics" else kinds[str(item.type)] for item in fields(kind)
        }
        return {
            "type": "object",
            "properties": properties,
            "required": list(properties),
            "additionalProperties": False,
        }

    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "harness-noise",
        "type": "object",
        "properties": {
            "schema_version": {"const": SCHEMA_VERSION},
            "harness_noise_version": {"type": "string"},
            "settings": {"type": "object"},
            "estimates": rows("estimate"),
            "comparisons": rows("comparison"),
            "models": rows("model"),
            "pairs": rows("comparison"),
            "benchmarks": rows("benchmark"),
            "questions": rows("flip", "question"),
            "combined": rows("combined"),
            "plan": {"$ref": "#/$defs/plan"},
            "factors": rows("factor"),
            "n_answers": kinds["int"],
            "mean": kinds["float"],
            "advice": kinds["str"],
            "notes": {"type": "array", "items": kinds["str"]},
        },
        "required": ["schema_version", "harness_noise_version", "settings"],
        "anyOf": [
            {"required": ["estimates"]},
            {"required": ["comparisons"]},
            {"required": ["models", "pairs", "benchmarks", "questions"]},
            {"required": ["plan"]},
            {"required": ["factors", "n_answers", "mean", "advice"]},
        ],
        "additionalProperties": False,
        "$defs": {
            "estimate": table(Estimate),
            "comparison": table(Difference),
            "flip": table(Flip),
            "model": table(Model),
            "benchmark": table(Benchmark),
            "question": table(Question),
            "spread": table(Spread),
            "step": table(Step),
            "combined": table(Combined),
            "plan": table(Plan),
            "plan_row": table(PlanRow),
            "plug_in": table(PlugIn),
            "theory": table(TheoryRow),
            "factor": table(FactorRow),
        },
    }


if __name__ == "__main__":
    print(json.dumps(json_schema(), indent=2))
