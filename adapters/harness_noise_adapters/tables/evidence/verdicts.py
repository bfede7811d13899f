"""Results of the evidence: the columns' roles, a question to the user, or a reason to refuse the table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from harness_noise.errors import InputError, parameter

from .table import ColumnFacts


@dataclass(frozen=True, slots=True)
class Choice:
    """One way to read a table."""

    said: Mapping[str, str]
    """The `columns` of this reading."""
    of: str = ""
    """The meaning of this reading, in words."""
    mean: float | None = None
    """The mean that comes of it."""

    def __str__(self) -> str:
        mean = "" if self.mean is None or self.mean != self.mean else f"mean {self.mean:.4g}"
        beside = ", ".join(part for part in (self.of, mean) if part)
        return parameter("columns", dict(self.said)) + (f" ({beside})" if beside else "")


_SHOWN = 5


class AskError(InputError):
    """Two readings are possible: the user has to choose."""

    def __init__(
        self, about: str, why: str, choices: tuple[Choice, ...] = (), first: tuple[str, ...] = (), case: str = "so"
    ) -> None:
        self.about, self.why, self.choices, self.first, self.case = about, why, choices, first, case
        """The subject: `score`, `scale`, `missing`, `question`, `repeats`, `conditions`, `wide`, `paths`.
        `case` is the case in which a single choice is right."""
        ways = " or ".join(map(str, choices[:_SHOWN]))
        say = ": say which, as in" if len(choices) > 1 else ": if so, say" if case == "so" else f". If {case}, say"
        super().__init__(f"{why}{say} {ways}" if ways else why)

    def at(self, place: object) -> AskError:
        """Return a copy of this question to the user with the file's name before its text."""
        return AskError(self.about, f"{place}: {self.why}", self.choices, self.first, self.case)


class RefuseError(InputError):
    """Nothing in a table is a score of single answers."""

    def at(self, place: object) -> RefuseError:
        """Return a copy of this error with the file's name before its text."""
        return RefuseError(f"{place}: {self}")


@dataclass(slots=True)
class Roles:
    """The columns of a table, by the role that each has for us."""

    score: list[ColumnFacts] = field(default_factory=list)
    kind: str = "long"
    """`long` (one column), `list` (repeats in each cell), `models`, `metrics` or `repeats` (a column for each)."""
    names: list[str] = field(default_factory=list)
    """The name of each column of scores, if there are several."""
    question: ColumnFacts | None = None
    named: dict[str, ColumnFacts] = field(default_factory=dict)
    """Role → its column: model, task, metric, scorer, repeat, cluster. `over` separates checkpoints of a model."""
    also: list[str] = field(default_factory=list)
    """Columns that say the same as the score."""
    count: ColumnFacts | None = None
    """The column with the number of answers that the score is a share of."""
    words: list[ColumnFacts] = field(default_factory=list)
    """Columns that hold the words of the question, perhaps with those of a template."""
    apart: bool = False
    """True if the few texts that come again are different questions."""
    notes: list[tuple[str, str]] = field(default_factory=list)
    """Code and text of further notes."""
    cause: ColumnFacts | None = None
    """A column that says why some answers have no score."""
    gold: ColumnFacts | None = None
    pred: ColumnFacts | None = None
    either: bool = False
    """True if `gold` is a lone column `answer`, which may as well hold the model's words."""
    others: int = 1
    """The number of columns that could be the score."""

    def keys(self) -> list[ColumnFacts]:
        """Return the columns whose values together tell questions apart: question, model, task, metric, scorer."""
        names = ("model", "over", "task", "metric", "scorer")
        return [column for column in (self.question, *map(self.named.get, names)) if column is not None]
