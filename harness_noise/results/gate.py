"""The result of a gate: one decision, and the rows that it stands on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Literal

from ..data.scores import Measured
from .forms import Document, document, json_value, rendered

Rule = Literal["regression", "no-loss"]
PASS, FAIL, CANNOT = "pass", "fail", "cannot judge"
"""Outcomes; only the first is a pass."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GateRow(Measured):
    """One quantity that is held against its threshold."""

    model: str = ""
    against: str = ""
    """The baseline; of a floor empty."""
    quantity: str = "A − B"
    """A − B; A − 0.99·B (where lower is better A − B/0.99); or A."""
    higher_is_better: bool | None = None
    n_questions: int = 0
    threshold: float | None = None
    """What the quantity must not lie below (above where lower is better)."""
    estimate: float | None = None
    se: float | None = None
    df: float | None = None
    limit: float | None = None
    """The end of the row's interval that the rule reads: the best that A may be; under no-loss the worst."""
    p_value: float | None = None
    """One-sided: small where a loss beyond the threshold is shown; of the rule no-loss, where one is excluded."""
    p_adjusted: float | None = None
    """`p_value` adjusted over all rows that decide."""
    passed: bool | None = None
    """null: it cannot be judged, is not decided (no-loss), or does not decide (pooled)."""
    decides: bool = True
    """False of rows beside a pooled one, which are for information."""
    sees: float | None = None
    """The loss in this row alone that the rule regression shows with 80 % power."""
    n_needed: int | None = None
    """Questions that would exclude the loss with 80 % power if nothing is lost; null where it is not asked for, or no
    number would."""
    never: bool = False
    """No number of questions would: the noise between runs, or of a floor, is too large by itself."""
    budget_sees: float | None = None
    """What `sees` is with the budget's questions, two-sided as a plan is, if the noise is what these runs show."""
    budget_sees_assured: float | None = None
    """`budget_sees` if the noise is as large as 80 % of such runs would leave possible."""
    reason: str = ""
    """Why it cannot be judged."""
    diagnostics: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Task, metric and filter or scorer, as far as there are any."""
        words = (self.task, self.metric, self.scorer if self.scorer != "none" else "")
        return " ".join(filter(None, words))


@dataclass(frozen=True, slots=True)
class Seen:
    """How often a loss is seen."""

    loss: float
    """In every row, beyond what the models differ by when nothing is lost."""
    power: float


@dataclass(frozen=True, slots=True)
class StoredVerdict:
    """What the gate would have said of one baseline run against the others."""

    run: str
    outcome: str
    p_adjusted: float | None
    """The smallest."""


@dataclass(frozen=True, slots=True)
class SelfTest:
    """What the gate is worth, from the noncentral t at these runs' standard errors, the rows taken as independent."""

    false_alarm: float | None
    """Share of runs of an identical model that would not pass."""
    sees: tuple[Seen, ...]
    stored_runs: tuple[StoredVerdict, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Gate(Document):
    """Whether a run is good enough, by one rule over all rows; `assert gate.passed` shows `sentence` where it fails."""

    shows_notes: ClassVar[bool] = True
    """Its tables say the notes themselves."""

    kind: ClassVar[str] = "rows"
    always: ClassVar[tuple[str, ...]] = ("rows",)

    settings: Mapping[str, Any]
    outcome: str
    """pass, fail or cannot judge."""
    rule: Rule
    alpha: float
    """One-sided level, (1 − level)/2."""
    adjust: str
    """holm; none where the comparison was asked not to adjust."""
    margin: float
    rows: tuple[GateRow, ...]
    """Rows that fail come first, then those that are not decided."""
    left_out: tuple[str, ...] = ()
    """What was not judged although the run or its baseline has it, with the reason (`skip_missing`)."""
    lost: tuple[GateRow, ...] = ()
    """These as rows; not in the JSON."""
    self_test: SelfTest | None = None
    budget: int | None = None
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        return self.outcome == PASS

    @property
    def failed(self) -> bool:
        return self.outcome == FAIL

    @property
    def failing(self) -> tuple[GateRow, ...]:
        """The rows in which a loss is shown."""
        return tuple(row for row in self.rows if row.decides and row.passed is False)

    @property
    def unjudged(self) -> tuple[GateRow, ...]:
        """The rows that cannot be judged, or are not decided."""
        return tuple(row for row in self.rows if row.decides and row.passed is None)

    @property
    def sentence(self) -> str:
        """The verdict in one line."""
        judged = [row for row in self.rows if row.decides and row.passed is not None]
        rows = f"{len(judged)} row{'s' * (len(judged) != 1)}"
        if self.outcome == FAIL:
            first = self.failing[0]
            more = f" and {len(self.failing) - 1} more" if len(self.failing) > 1 else ""
            p = ""
            if self.rule == "regression" and first.p_adjusted is not None:
                p = ", p < 0.0001" if first.p_adjusted < 0.0001 else f", p {first.p_adjusted:.2g}"
            side, shown = "above" if first.higher_is_better is False else "below", gate_text(first.estimate)
            text = (
                f"{first.name}: {first.quantity} = {shown} is shown to be {side} {gate_text(first.threshold)}{p}{more}"
            )
        elif self.outcome == CANNOT:
            text = self.left_out[0] if self.left_out else "no row"
            for row in self.unjudged[:1]:
                text = f"{row.name}: {row.reason or _undecided(row)}"
            more_ = len(self.unjudged) + len(self.left_out) - 1
            text += f"; and {more_} more" if more_ > 0 else ""
        elif self.rule == "no-loss":
            text = f"a loss beyond {self._allowed()} is excluded in {rows}"
        else:
            text = f"no loss beyond {self._allowed()} is shown in {rows}{self._worth(judged)}"
        left = f"; NOT judged: {', '.join(self.left_out)}" if self.left_out and self.outcome != CANNOT else ""
        return f"{self.outcome}: {text}{left}"

    def _allowed(self) -> str:
        kinds = {row.quantity for row in self.rows if row.decides}
        return f"the margin {self.margin:g}" if kinds == {"A − B"} and self.margin else "what is allowed"

    @staticmethod
    def _worth(judged: list[GateRow]) -> str:
        sees = [row.sees for row in judged if row.sees is not None]
        blind = any(row.sees is None and row.se for row in judged)
        if not sees:
            return "; no loss that is possible would be shown with 80 % power" if blind else ""
        low, high = (f"{value:.2g}" for value in (min(sees), max(sees)))
        none = ", and in some rows none that is possible" * blind
        return (
            f"; a loss of {low if low == high else f'{low} to {high}'} in one row would be shown with 80 % power{none}"
        )

    def __repr__(self) -> str:
        return f"<Gate: {self.sentence}>"

    def to_dict(self) -> dict[str, Any]:
        """The object that `--format json` prints."""
        parts = {name: json_value(getattr(self, name)) for name in PARTS}
        return document(self.settings, gate=parts | {"passed": self.passed, "sentence": self.sentence})

    def to_markdown(self) -> str:
        """The verdict and the table, for a pull request."""
        return str(rendered("markdown", self))

    def to_junit(self) -> str:
        """JUnit's XML, one test case for each row that decides."""
        return str(rendered("junit", self))


PARTS = tuple(field.name for field in fields(Gate) if field.name not in ("settings", "lost"))


def gate_text(value: float | None) -> str:
    """A number of the sentence, with three digits."""
    return "–" if value is None else f"{value:.3g}".replace("-", "−")


def _undecided(row: GateRow) -> str:
    needed = "" if row.n_needed is None else f"; {row.n_needed:,} questions would exclude it, if nothing is lost"
    if row.never:
        needed = "; no number of questions would: the noise of what it is held against is too large by itself"
    text = f"limit {gate_text(row.limit)}, threshold {gate_text(row.threshold)}"
    return f"a loss is neither shown nor excluded ({text}{needed})"
