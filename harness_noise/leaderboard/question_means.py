"""Means by question in a benchmark's noise profile: what a model scored on every question, for who answers a part."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np

from ..data.questions import Questions
from ..data.scores import Run, Scores
from ..errors import InputError
from ..results.arena import BenchmarkResult

KIND = "noise-profile"
_START = 300
"""Bytes in which a profile has said that it is one."""


def to_json(board: BenchmarkResult) -> dict[str, Any]:
    """The models' means by question, as a profile keeps them."""
    columns = board.questions
    clusters = None if all(label is None for label in columns.cluster) else list(columns.cluster)
    means = [[None if math.isnan(x) else round(float(x), 12) for x in column] for column in board.scores.T]
    return {
        "keys": list(columns.question),
        "clusters": clusters,
        "models": [model.model for model in board.models],
        "means": means,
    }


def is_profile(path: str | Path) -> bool:
    """Whether a file says that it is a noise profile."""
    try:
        place = Path(path)
        if not place.is_file():
            return False
        with place.open("rb") as file:
            return f'"kind": "{KIND}"'.encode() in file.read(_START)
    except OSError:
        return False


def read_runs(path: str | Path) -> list[Run]:
    """Every model of a profile as a run of question means.

    Raises:
        InputError: no profile, or one without questions.
    """
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
        boards = [(row, row["questions"]) for row in content["benchmarks"] if row.get("questions") is not None]
        if not boards:
            raise InputError(
                f"{path}: the profile has no means by question; make it of an arena with `write_profile` and "
                "`with_questions=True`"
            )
        scores: dict[str, list[Scores]] = {}
        for row, item in boards:
            for model, part in _parse(row, item):
                scores.setdefault(model, []).append(part)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None
    except InputError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise InputError(f"{path}: a noise profile with broken questions; make it again") from None
    return [
        Run(model=model, name=f"{model} ({path})", harness="profile", path=str(path), scores=tuple(parts))
        for model, parts in scores.items()
    ]


def _parse(row: dict[str, Any], item: dict[str, Any]) -> list[tuple[str, Scores]]:
    keys, clusters = [str(key) for key in item["keys"]], item["clusters"]
    means = np.array([[math.nan if x is None else float(x) for x in column] for column in item["means"]], dtype=float)
    models = [str(model) for model in item["models"]]
    if means.shape != (len(models), len(keys)) or np.isinf(means).any() or len(set(models)) < len(models):
        raise ValueError(means.shape)
    labels = None if clusters is None else tuple(f"\x1f{i}" if x is None else str(x) for i, x in enumerate(clusters))
    questions = Questions(tuple(keys))
    task, metric, scorer = (str(row[name]) for name in ("task", "metric", "scorer"))
    return [
        (model, Scores(task, metric, scorer, questions, values=column[:, None], clusters=labels))
        for model, column in zip(models, means, strict=True)
    ]
