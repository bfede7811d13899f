"""The result of a gate: one decision, and the rows that it is based on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Literal

from ...data.notes import Note
from ...data.scores import Measured
from ...results.forms import Document, document, json_value, rendered, shown_fields

Rule = Literal["regression", "no-loss"]
Outcome = Literal["pass", "fail", "cannot judge"]
PASS: Outcome
FAIL: Outcome
CANNOT: Outcome
PASS, FAIL, CANNOT = "pass", "fail", "cannot judge"
"""Outcomes. Only the first is a pass."""
Adjustment = Literal["holm", "none"]


@dataclass(frozen=True, slots=True, kw_only=True)
class GateRow(Measured):
    """One quantity that is compared with its threshold."""

    model: str = ""
    against: str = ""
    """The baseline, "" for a floor."""
    quantity: str = "A − B"
    """A − B, or A − 0.99·B (A − B/0.99 if lower is better), or A."""
    higher_is_better: bool | None = None
    n_questions: int = 0
    threshold: float | None = None
    """The value below which the quantity must not lie, or above which if lower is better."""
    estimate: float | None = None
    se: float | None = None
    df: float | None = None
    limit: float | None = None
    """Interval limit that is compared with the threshold: the best that A may be, under no-loss the worst."""
    p_value: float | None = None
    """One-sided p of a loss beyond the threshold, small if it is shown. Under no-loss, small if such a loss is
    excluded."""
    p_adjusted: float | None = None
    """`p_value` adjusted over all rows that decide. Under no-loss it is `p_value` itself, as every row must pass."""
    passed: bool | None = None
    """null: it cannot be judged, is not decided (no-loss), or does not decide (pooled)."""
    decides: bool = True
    """False for rows next to a pooled one, which are for information."""
    sees: float | None = None
    """The loss in this row alone that the rule regression shows with 80% power."""
    n_needed: int | None = None
    """Questions that would exclude the loss in this row with 80% power if nothing is lost, or null.

    null if it is excluded already, is not asked for, or no number would.
    """
    never: bool = False
    """No number of questions would: the noise between runs, or of a floor, is too large by itself."""
    question: str = ""
    """The question, if each is judged by itself."""
    right_a: int | None = None
    """Right answers of A to the one question, null in other rows, as are the next three."""
    answers_a: int | None = None
    """Answers of A to it."""
    right_b: int | None = None
    """Right answers of the baseline to it."""
    answers_b: int | None = None
    """Answers of the baseline to it."""
    flaky: float | None = None
    """The baseline's share of right answers to the question, if it is neither 0 nor 1."""
    reason: str = ""
    """The reason why it cannot be judged."""
    diagnostics: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Text that names the row: task, metric and filter or scorer, as far as there are any."""
        words = (self.task, self.metric, self.scorer if self.scorer != "none" else "", self.question)
        return " ".join(filter(None, words))


@dataclass(frozen=True, slots=True)
class Seen:
    """The power of the gate for one loss."""

    loss: float
    """In every row, beyond what the models differ by when nothing is lost."""
    power: float


@dataclass(frozen=True, slots=True)
class SelfTest:
    """The power of the gate, from the noncentral t at these runs' standard errors, with rows taken as independent."""

    false_alarm: float | None
    """Share of runs of an identical model that would not pass."""
    sees: tuple[Seen, ...]
    """With the rule no-loss only the powers that a run without any loss does not reach by chance."""
    n_needed: int | None = None
    """Under no-loss, questions of all rows together with which an identical model passes in 80%, or null.

    null if it does already, or if no number would do.
    """
    never: bool = False
    """No number of questions would do."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Gate(Document):
    """Verdict on a run, by one rule over all rows. A failing `assert gate.passed` shows `sentence`."""

    shows_notes: ClassVar[bool] = True
    """Its tables say the notes themselves."""

    under: ClassVar[str] = "gate"
    renderers: ClassVar[Mapping[str, str]] = {
        "summary": "harness_noise.extra.gate.report:summarise",
        "gate": "harness_noise.extra.gate.report:sentence",
        "junit": "harness_noise.extra.gate.report:junit",
    }
    kind: ClassVar[str] = "rows"
    always: ClassVar[tuple[str, ...]] = ("rows",)

    settings: Mapping[str, Any]
    outcome: str
    """pass, fail or cannot judge."""
    rule: Rule
    alpha: float
    """One-sided level, (1 − level)/2."""
    adjust: str
    """holm, or none if the comparison was asked not to adjust."""
    margin: float
    rows: tuple[GateRow, ...]
    """Rows that fail come first, then those that are not decided."""
    left_out: tuple[str, ...] = ()
    """Rows that were not judged although the run or its baseline has them, with the reason (`skip_missing`)."""
    lost: tuple[GateRow, ...] = ()
    """The rows of `left_out`, which are not in the JSON."""
    self_test: SelfTest | None = None
    warnings: tuple[Note, ...] = ()
    notes: tuple[Note, ...] = ()

    @classmethod
    def json_types(cls) -> dict[str, str]:
        types = {name: text for name, text in shown_fields(cls).items() if name in PARTS}
        own = {"outcome": "Outcome", "adjust": "Adjustment", "passed": "bool", "sentence": "str"}
        return types | own

    @property
    def passed(self) -> bool:
        return self.outcome == PASS

    def __bool__(self) -> bool:
        """Return True if it passed: `if hn.gate(…)` lets no other outcome through."""
        return self.passed

    @property
    def failed(self) -> bool:
        return self.outcome == FAIL

    @property
    def failing(self) -> tuple[GateRow, ...]:
        """Rows of the gate that decide and fail, as a loss is shown."""
        return tuple(row for row in self.rows if row.decides and row.passed is False)

    @property
    def unjudged(self) -> tuple[GateRow, ...]:
        """Rows of the gate without a decision: they cannot be judged, or are still open."""
        return tuple(row for row in self.rows if row.decides and row.passed is None)

    @property
    def sentence(self) -> str:
        """Verdict of the gate in one sentence."""
        return str(rendered("gate", self))

    def __repr__(self) -> str:
        return f"<Gate: {self.sentence}>"

    def to_dict(self) -> dict[str, Any]:
        """Return the gate's result as the JSON object that `--format json` prints."""
        parts = {name: json_value(getattr(self, name)) for name in PARTS}
        return document(self.settings, gate=parts | {"passed": self.passed, "sentence": self.sentence})

    def to_markdown(self) -> str:
        """Return the verdict and the table as Markdown, for a pull request."""
        return str(rendered("markdown", self))

    def to_junit(self) -> str:
        """Return JUnit XML with a test case for the gate, each row that decides, and each row left out."""
        return str(rendered("junit", self))


PARTS = tuple(field.name for field in fields(Gate) if field.name not in ("settings", "lost"))
