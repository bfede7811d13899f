"""Pages of an arena: an index, and a page of each benchmark."""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ...arrays import IntArray
from ...data.notes import texts
from ...errors import counted
from ...io.atomic import write_text
from ...report import fmt, summary
from ...report.canvas import Picture
from ...report.columns import Marks, Words
from ...report.figures import slice_names
from ...report.html import foot, render
from . import figures, report
from .results import Arena, BenchmarkResult

BESIDE = Path(__file__).parent / "page"
"""Templates, and the script of any two models."""
PAIRS = 500
"""The most pairs on a page. The exported table has all."""


QUESTIONS = 2000


def write_arena(arena: Arena, folder: Path, command: str | None = None, words: Words = str) -> list[Path]:
    """Write an arena's HTML pages, `index.html` and one per benchmark, into `folder`. Return the paths.

    Args:
        arena: what is shown.
        folder: where.
        command: what was typed to make it.
        words: rewrites each sentence, which names parameters in backticks.

    Raises:
        InputError: the folder cannot be written.
    """
    names = report.file_names(arena)
    written = []
    for board, name in zip(arena.boards, names, strict=True):
        write_text(folder / f"{name}.html", _board_page(arena, board, command, words))
        written.append(folder / f"{name}.html")
    index = folder / "index.html"
    write_text(index, _index_page(arena, names, command, words))
    return [index, *written]


def _foot(arena: Arena, boards: Sequence[BenchmarkResult], command: str | None) -> dict[str, Any]:
    runs = [pair for board in boards for pair in zip(board.pairs.names, board.pairs.runs, strict=True)]
    rows = [board.pairs[i] for board in boards for i in report.chosen_pairs(board, PAIRS)]
    return foot({**arena.settings, "baseline": arena.baseline}, rows, runs, command, "over all pairs of each benchmark")


def _index_page(arena: Arena, names: list[str], command: str | None, words: Words) -> str:
    models = len({model.model for model in arena.models})
    n_pairs = sum(len(board.pairs) for board in arena.boards)
    boards = len(arena.boards)
    compared = f"{counted(n_pairs, 'pair')}, paired by question"
    marks = Marks()
    return render(
        "index.html",
        beside=BESIDE,
        title=f"Arena of {models} models",
        lead=f"{models} models on {counted(boards, 'benchmark')}, {compared}.",
        links=[(report.board_name(board), f"{name}.html") for board, name in zip(arena.boards, names, strict=True)],
        sentences=report.checkpoint_sentences(arena),
        leaderboard=report.leaderboard(arena),
        best=report.BEST,
        pictures=[picture for board in arena.boards[:4] if (picture := figures.steps(arena, board)) is not None],
        section=report.benchmarks(arena),
        slices=summary.slice_sections(arena, marks),
        slice_words=summary.slice_sentences(arena)[-1:],
        legend=marks.legend(),
        words=words,
        foot=_foot(arena, arena.boards, command),
        notes=texts(arena.notes),
    )


def _board_page(arena: Arena, board: BenchmarkResult, command: str | None, words: Words) -> str:
    marks = Marks()
    models = report.models(board, marks, "Models")
    headings = [column.heading for column in models.columns]
    models = models.keeping(sorted(range(len(headings)), key=lambda i: (i > 0, headings[i] != "best?", i)))
    rows = report.chosen_pairs(board, PAIRS)
    order = report.ranked(board)
    place = {model: i for i, model in enumerate(board.pairs.names)}
    name = report.board_name(board)
    pictures = figures.pictures(arena, board)
    data = board_data(board, pictures)
    ahead = [picture for picture in pictures if picture.name in ("steps", "means", "matrix")]
    return render(
        "board.html",
        beside=BESIDE,
        title=name,
        sentences=[
            *report.checkpoint_sentences(arena, board.key),
            *report.sentences(board),
            *fmt.estimand_line(board.models),
        ],
        facts=_facts(arena, board),
        models=models,
        model_places=[str(place[model.model]) for model in order],
        ahead=ahead,
        pictures=[picture for picture in pictures if picture not in ahead],
        pairs=report.pair_table([board.pairs[i] for i in rows], marks, "Pairs"),
        pair_places=[f"{board.pairs.a[i]} {board.pairs.b[i]}" for i in rows],
        pairs_left_out=len(board.pairs) - len(rows),
        data=data,
        choices=[(place[model.model], model.model) for model in order],
        steps=_steps(board),
        questions=report.question_table(board, QUESTIONS),
        question_places=list(map(str, report.chosen_questions(board, QUESTIONS))),
        asked=data is not None and board.scores.size <= CELLS,
        question_words=_question_words(board),
        legend=marks.legend(),
        words=words,
        foot=_foot(arena, [board], command),
    )


def _facts(arena: Arena, board: BenchmarkResult) -> list[tuple[str, str, str]]:
    """Return (heading, shown value, explanation) for each explained column of a benchmark, even one without a value."""
    section = report.benchmarks(arena)
    values = section.rows[arena.boards.index(board)]
    return [
        (column.heading, value, column.hint)
        for column, value in zip(section.columns, values, strict=True)
        if column.hint
    ]


def _steps(board: BenchmarkResult) -> list[str]:
    return [
        f"{fmt.shorten(step.large, 60)} − {fmt.shorten(step.small, 60)} = "
        f"{fmt.amount(board.benchmark, step.diff, fmt.decimals(step.se_total))}, "
        f"{fmt.number(step.ratio, 1)} standard errors (1 answer)"
        for step in board.benchmark.steps
    ]


def _question_words(board: BenchmarkResult) -> str:
    q, suspects = board.questions, sum(bool(question.suspect) for question in board.questions)
    lacking = sum(question.n_models < board.benchmark.n_models for question in q)
    parts, solved = [counted(len(q), "question")], Counter(question.n_solved for question in q)
    if None not in solved:
        parts.append(f"solved by no model: {solved[0]}, by one only: {solved[1]}")
    parts += [f"without the score of some model: {lacking}"] if lacking else []
    parts.append(f"suspects, on which better models do worse: {suspects} (fewer than one is expected by chance)")
    text = "; ".join(parts) + "."
    if len(q) > QUESTIONS:
        text += f" Shown are {QUESTIONS}: the suspects, then the hardest."
    signal = [question.tau for question in q if question.tau is not None]
    return f"{text} The median tau is {fmt.number(float(np.median(signal)), 2)}." if signal else text


PICKER_PAIRS = 60_000
"""The most pairs that a page holds. With more pairs it has no picker."""


CELLS = 1_000_000
"""Scores (questions × models) that a page holds."""


HALVES = 15
"""Values up to which two scores share a byte."""


LEVELS = 250
"""The most different values of a score that are kept. More values are rounded to this many steps of their range."""


def board_data(board: BenchmarkResult, drawn: Sequence[Picture]) -> dict[str, Any] | None:
    """Return a page's JSON data: a benchmark's pairs, questions, slices, places in figures. None if too many pairs.

    Arrays are base64 of little-endian numbers: 32-bit floats, and 16-bit hundredths of a unit for places in figures.
    """
    pairs, c = board.pairs, board.pairs.columns
    if len(pairs) > PICKER_PAIRS:
        return None
    data: dict[str, Any] = {
        "names": [fmt.shorten(name, 60) for name in pairs.names],
        "n_pairs": len(pairs),
        "level": pairs.common["level"],
        "times": fmt.scale_of(board.benchmark).times,
        "sign": -1 if pairs.common["higher_is_better"] is False else 1,
        "words": list(pairs.words),
        "verdict": packed(pairs.verdict, "u1"),
        "a": packed(pairs.a, "<u2"),
        "b": packed(pairs.b, "<u2"),
        "questions": _question_codes(board),
        "slices": _slice_columns(board),
        "figures": {
            picture.name: {
                "rows": None if len(picture.points.rows) == len(pairs) else packed(picture.points.rows, "<u4"),
                "x": packed(np.clip(100 * picture.points.x, 0, 65535), "<u2"),
                "y": packed(np.clip(100 * picture.points.y, 0, 65535), "<u2"),
            }
            for picture in drawn
            if picture.points is not None
        },
    }
    columns = {"diff": "diff", "low": "ci_low", "high": "ci_high", "se": "se", "total": "se_total", "p": "p_adjusted"}
    data |= {key: packed(c[column], "<f4") for key, column in columns.items()}
    return data


def packed(values: Any, kind: str) -> str:
    """Return numbers as base64 of their little-endian bytes, in the NumPy format `kind`."""
    return base64.b64encode(np.ascontiguousarray(values).astype(kind).tobytes()).decode()


def _question_codes(board: BenchmarkResult) -> dict[str, Any] | None:
    """Return names, levels and packed level codes of questions. Many levels are rounded. None: too many, or no score.

    The codes go model by model. One more code means missing."""
    scores = board.scores
    if scores.size > CELLS or not np.isfinite(scores).any():
        return None
    scored = np.isfinite(scores)
    levels = np.unique(scores[scored])
    rounded = len(levels) > LEVELS
    if rounded:
        levels = np.linspace(levels[0], levels[-1], LEVELS)
    codes: IntArray = np.full(scores.shape, len(levels))
    middles = (levels[1:] + levels[:-1]) / 2
    codes[scored] = np.searchsorted(middles, scores[scored])
    codes = codes.T.ravel()
    halves = len(levels) <= HALVES
    if halves:
        codes = np.pad(codes, (0, len(codes) % 2))
        codes = codes[::2] + 16 * codes[1::2]
    texts = board.texts or [question.question for question in board.questions]
    return {
        "n": len(scores),
        "names": [fmt.shorten(text, 80) for text in texts],
        "levels": [float(f"{value:.10g}") for value in levels],
        "scores": packed(codes, "u1"),
        "halves": halves,
        "rounded": rounded,
    }


def _slice_columns(board: BenchmarkResult) -> dict[str, Any] | None:
    """Return difference, limits and p of all pairs on all slices, packed, with the slices' names. None if none."""
    if not board.slices:
        return None
    columns = {"diff": "diff", "low": "ci_low", "high": "ci_high", "p": "p_adjusted"}
    each = {key: np.stack([sliced.pairs.columns[column] for sliced in board.slices]) for key, column in columns.items()}
    each["p"] = np.where([sliced.pairs.withheld for sliced in board.slices], np.nan, each["p"])
    data: dict[str, Any] = {key: packed(values, "<f4") for key, values in each.items()}
    title, names = slice_names([(sliced.field, sliced.slice) for sliced in board.slices])
    short = [fmt.shorten(name, 60) for name in names]
    return data | {"title": title, "labels": short, "n": [sliced.n_questions for sliced in board.slices]}
