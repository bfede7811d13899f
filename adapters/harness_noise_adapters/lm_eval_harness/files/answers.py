"""What a samples file says of a few questions: the whole question, the target, and every answer."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness_noise.data.questions import Told

from .documents import _doc, _first, question_text
from .lines import Row, _whole, changed, stamp
from .wanted import Scan, Wanted


@dataclass(frozen=True, slots=True)
class SamplesLog:
    """Read again where somebody asks; see `harness_noise.data.questions.Log`."""

    path: Path
    wanted: Wanted
    """As the file was read, without the SPECs, which need not be picklable."""
    stamp: tuple[float, float]

    def read(self, rows: Sequence[int], scorer: str) -> list[Told]:
        """What is told of these questions, by their place; nothing of one that the file has lost."""
        if stamp(self.path) != self.stamp:
            raise changed(self.path)
        asked = set(rows)
        found: dict[int, Told] = {}
        for number, line, _, document, name, _ in Scan(self.path, self.wanted):
            if document in asked and (name == scorer or document not in found):
                found[document] = _told(_whole(line, json.loads, self.path, number))
        return [found.get(row, Told()) for row in rows]


def _told(row: Row) -> Told:
    doc = _doc(row)
    target = row.get("target")
    return Told(
        text=question_text(doc) or _first(doc, doc),
        target=None if target is None else target if isinstance(target, str) else json.dumps(target),
        answers=tuple(_answers(row)),
    )


def _answers(row: Row) -> list[str]:
    """Each repeat's answer: what was generated, or the choice that was likeliest."""
    resps = row.get("resps")
    if not isinstance(resps, list) or not resps or not all(isinstance(item, list) for item in resps):
        return []
    if isinstance(resps[0][0] if resps[0] else None, str):
        return [str(answer) for answer in resps[0]]
    found = []
    for repeat in zip(*resps, strict=False):
        likely = [_number(answer) for answer in repeat]
        best = max(range(len(likely)), key=lambda i: likely[i])
        choice = _choice(row.get("arguments"), best) if len(likely) > 1 else None
        found.append(choice if choice is not None else json.dumps(repeat[0]))
    return found


def _number(answer: Any) -> float:
    """The log-likelihood of [log-likelihood, greedy]; older files have them as texts."""
    try:
        return float(answer[0] if isinstance(answer, (list, tuple)) else answer)
    except (TypeError, ValueError, IndexError):
        return float("-inf")


def _choice(arguments: Any, i: int) -> str | None:
    """The continuation of the i-th request."""
    given = list(arguments.values()) if isinstance(arguments, Mapping) else arguments
    try:
        one = given[i]
        text = one["arg_1"] if isinstance(one, Mapping) else one[1]
    except (TypeError, LookupError):
        return None
    return text.strip() if isinstance(text, str) else None
