"""What a table says of a few questions beside their scores: words, target and answers, where it has such columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from harness_noise.data.questions import Told

from .columns import Columns
from .files import Record, records
from .values import _text

TARGETS = ("target", "gold", "ground_truth", "expected", "expected_answer", "reference_answer", "correct_answer")
ANSWERS = ("response", "completion", "output", "prediction", "model_answer", "model_output", "generated", "answer")
"""Names of columns, in lower case, in the order in which one is taken."""


@dataclass(frozen=True, slots=True)
class TableLog:
    """Read again where somebody asks; see `harness_noise.data.questions.Log`."""

    path: Path
    columns: Columns
    key: tuple[str | None, ...]
    """What the rows say of model, task, metric and scorer; None where the table has no such column."""
    keys: Sequence[str]

    def read(self, rows: Sequence[int], scorer: str) -> list[Told]:
        """What is told of these questions, by their place; of names that were made up (`name#2`) nothing."""
        wanted: dict[str, list[Record]] = {self.keys[row]: [] for row in rows}
        for line, raw in records(self.path, self.columns.rows):
            record = self.columns.filled(raw)
            question = self.columns.question_of(self.path, line, record)[0]
            if question in wanted and self._is_ours(record):
                wanted[question].append(record)
        return [self._told(wanted[self.keys[row]]) for row in rows]

    def _is_ours(self, record: Record) -> bool:
        names = ("model", "task", "metric", "scorer")
        return all(known is None or self.columns.text(record, name) == known
                   for name, known in zip(names, self.key, strict=True))  # fmt: skip

    def _told(self, found: Sequence[Record]) -> Told:
        if not found:
            return Told()
        plain = {str(name).strip().lower().replace(" ", "_"): name for name in found[0]}
        free = [name for name in plain if plain[name] not in self.columns.names.values()]
        target = next((plain[name] for name in TARGETS if name in free), None)
        answer = next((plain[name] for name in ANSWERS if name in free and plain[name] != target), None)
        words = self.columns.words
        return Told(
            text=None if words is None else _text(found[0].get(words)),
            target=None if target is None else _text(found[0].get(target)),
            answers=() if answer is None else tuple(_text(record.get(answer)) or "" for record in found),
        )
