"""A samples file, read once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from harness_noise.errors import InputError

from ..scoring.choices import BRIER, Log, brier_score
from . import lines
from .index import _HELD
from .lines import _BLOCK, _choices, _Item, _rounded, _whole
from .questions import _MANY, _answers, _Questions
from .samples import Samples, _Scores
from .wanted import Scan, Wanted

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    BoolArray = NDArray[np.bool_]


def read_samples(path: Path, wanted: Wanted) -> Samples:
    """Read a samples file.

    Raises:
        InputError: the file is empty, damaged or still being written, or a document lacks the field of a SPEC.
    """
    scan = Scan(path, wanted)
    scores, questions = _Scores(wanted), _Questions(path, wanted)
    logs: dict[str, Log] = {}
    loads, answers = lines.decoder(), 0
    block: list[_Item] = []
    held = 0
    for number, line, row, document, scorer, new in scan:
        if not answers:
            answers = min(_answers(_whole(line, loads, path, number)), wanted.repeats or _MANY)
        if wanted.choices:
            log = logs.get(scorer)
            if log is None:
                log = logs[scorer] = Log(wanted.doubled)
            full = _whole(line, json.loads, path, number) if _rounded(row.get("target")) else row
            arguments = full.get("arguments")
            if log.by_text and arguments is None:
                arguments = _choices(line, loads) or _whole(line, loads, path, number).get("arguments")
            log.add(document, full, arguments)
        if wanted.brier and BRIER in row:
            row[BRIER] = brier_score(row, wanted.doubled)
        block.append((number, row, document, scorer, new))
        held += len(line)
        if len(block) == _BLOCK or held > _HELD:
            scores.add(block)
            questions.add(block)
            block, held = [], 0
    if not answers:
        raise InputError(f"{path}: the file is empty; the run may have stopped before it wrote its samples")
    if block:
        scores.add(block)
        questions.add(block)
    return questions.samples(scan, scores, answers, logs)
