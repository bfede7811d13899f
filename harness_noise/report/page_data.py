"""The numbers of a board's pairs and questions as one compact block that a page's script reads."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .columns import shorten
from .pair_figures import slice_names

if TYPE_CHECKING:
    from ..results.arena import BenchmarkResult
    from .figures import Drawn

PAIRS = 60_000
"""Pairs that a page holds; with more of them it has no picker."""
CELLS = 1_000_000
"""Scores (questions × models) that a page holds."""
LEVELS = 250
"""Values of a score up to which each is kept as it is; more are rounded to so many steps of their range."""
HALVES = 15
"""Values up to which two scores share a byte."""


def board_data(board: BenchmarkResult, drawn: Sequence[Drawn]) -> str | None:
    """JSON for `picker.js`, safe inside a `<script>`; None where there are too many pairs.

    Arrays are base64 of little-endian numbers: 32-bit floats, and 16-bit hundredths of a unit for places in figures.
    """
    pairs, c = board.pairs, board.pairs.columns
    if len(pairs) > PAIRS:
        return None
    M = len(pairs.names)
    lower, upper = np.triu_indices(M, 1)
    whole = len(pairs) == len(lower) and bool((pairs.a == lower).all() and (pairs.b == upper).all())
    data: dict[str, Any] = {
        "names": [shorten(item, 60) for item in pairs.names],
        "n_pairs": len(pairs),
        "level": pairs.common["level"],
        "sign": -1 if pairs.common["higher_is_better"] is False else 1,
        "words": list(pairs.words),
        "verdict": packed(pairs.verdict, "u1"),
        "a": None if whole else packed(pairs.a, "<u2"),
        "b": None if whole else packed(pairs.b, "<u2"),
        "questions": _questions(board),
        "slices": _slices(board),
        "figures": {
            one.picture.name: {
                "rows": None if len(one.points.rows) == len(pairs) else packed(one.points.rows, "<u4"),
                "x": packed(np.clip(100 * one.points.x, 0, 65535), "<u2"),
                "y": packed(np.clip(100 * one.points.y, 0, 65535), "<u2"),
            }
            for one in drawn
            if one.points is not None
        },
    }
    columns = {"diff": "diff", "low": "ci_low", "high": "ci_high", "se": "se", "total": "se_total", "p": "p_adjusted"}
    data |= {key: packed(c[column], "<f4") for key, column in columns.items()}
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    # nothing in it may end the element or begin a comment, and half a surrogate pair is no text
    for char in "<>&\u2028\u2029":
        text = text.replace(char, f"\\u{ord(char):04x}")
    return text.encode("utf-8", "replace").decode("utf-8")


def packed(values: Any, kind: str) -> str:
    """Numbers as base64 of their little-endian bytes."""
    return base64.b64encode(np.ascontiguousarray(values).astype(kind).tobytes()).decode()


def _questions(board: BenchmarkResult) -> dict[str, Any] | None:
    """What every model scored on every question, model by model, as codes of its levels; one more is missing."""
    scores = board.scores
    if scores.size > CELLS or not np.isfinite(scores).any():
        return None
    known = np.isfinite(scores)
    levels = np.unique(scores[known])
    if len(levels) > LEVELS:
        levels = np.linspace(levels[0], levels[-1], LEVELS)
    codes: np.ndarray[Any, np.dtype[np.intp]] = np.full(scores.shape, len(levels))
    middles = (levels[1:] + levels[:-1]) / 2
    codes[known] = np.searchsorted(middles, scores[known])
    codes = codes.T.ravel()
    halves = len(levels) <= HALVES
    if halves:
        even = np.append(codes, 0) if len(codes) % 2 else codes
        codes = even[::2] + 16 * even[1::2]
    texts = board.questions.text or board.questions.question
    return {
        "n": len(scores),
        "names": [shorten(text, 80) for text in texts],
        "levels": [float(f"{value:.10g}") for value in levels],
        "scores": packed(codes, "u1"),
        "halves": halves,
    }


def _slices(board: BenchmarkResult) -> dict[str, Any] | None:
    """Every pair on every slice, slice by slice."""
    if not board.slices:
        return None
    columns = {"diff": "diff", "low": "ci_low", "high": "ci_high", "p": "p_adjusted"}
    found: dict[str, Any] = {
        key: packed(np.concatenate([one.pairs.columns[column] for one in board.slices]), "<f4")
        for key, column in columns.items()
    }
    title, labels = slice_names([(one.field, one.value) for one in board.slices])
    short = [shorten(label, 60) for label in labels]
    return found | {"title": title, "labels": short, "n": [one.n_questions for one in board.slices]}
