"""Words of questions and answers, read again from a table when they are wanted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from harness_noise.data.questions import QuestionText

from .opening import Record
from .presets import getter
from .values import cell_text


@dataclass(frozen=True, slots=True)
class RowLog:
    """Words of a table's questions, read again on demand. See `harness_noise.data.questions.AnswerSource`."""

    again: Callable[[], Any]
    """Makes a `reader.FileReader` of the file. It can be pickled."""
    keys: Sequence[str]
    key: tuple[str, ...]
    """Model, task, metric and scorer."""

    def read(self, rows: Sequence[int], scorer: str) -> list[QuestionText]:
        """Return a QuestionText for each of these question indices from the file, read again. Empty if not found."""
        wanted: dict[str | None, list[Record]] = {self.keys[row]: [] for row in rows}
        reader = self.again()
        for block in reader.blocks():
            names = reader.questions(block)
            mine = reader.are_of(block, self.key)
            for i, name in enumerate(map(cell_text, names)):
                if name in wanted and mine[i]:
                    wanted[name].append(block.rows[i])
        preset = reader.preset
        text, target = getter(preset.text), getter(preset.target)

        def question_text(records: Sequence[Record]) -> QuestionText:
            if not records:
                return QuestionText()
            answers, either = (
                tuple(cell_text(get(row)) or "" for row in records) if path else ()
                for path, get in ((preset.answer, getter(preset.answer)), (reader.either, getter(reader.either)))
            )
            return QuestionText(cell_text(text(records[0])), cell_text(target(records[0])), answers, either)

        return [question_text(wanted[self.keys[row]]) for row in rows]
