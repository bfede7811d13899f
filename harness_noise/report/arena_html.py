"""The arena's report: an index and a page for each benchmark, every page self-contained."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..io.atomic import write_text
from . import arena_summary, canvas, figures, html
from .columns import decimals, number, shorten

if TYPE_CHECKING:
    from ..results.arena import Arena, BenchmarkResult

PAIRS = 1000
"""Pairs on a page; the exported table has them all."""
QUESTIONS = 2000


def write(arena: Arena, folder: Path) -> list[Path]:
    """Write `index.html` and a page for each benchmark into `folder`; returns the files.

    Raises:
        InputError: the folder cannot be written.
    """
    names = arena_summary.file_names(arena)
    written = []
    for board, name in zip(arena.boards, names, strict=True):
        write_text(folder / f"{name}.html", _board_page(arena, board))
        written.append(folder / f"{name}.html")
    index = folder / "index.html"
    write_text(index, _index_page(arena, names))
    return [index, *written]


def _index_page(arena: Arena, names: list[str]) -> str:
    models = len({model.model for model in arena.models})
    n_pairs = sum(len(board.pairs) for board in arena.boards)
    boards = len(arena.boards)
    return html.render(
        "index.html",
        title=f"Arena of {models} models",
        lead=f"{models} models on {boards} benchmark{'s' if boards > 1 else ''}, {n_pairs} pairs, paired by question.",
        links=[
            (arena_summary.board_name(board), f"{name}.html") for board, name in zip(arena.boards, names, strict=True)
        ],
        sentences=[line for board in arena.boards for line in arena_summary.sentences(board)[:1]],
        section=arena_summary.benchmarks(arena),
        settings=html.settings_rows({**arena.settings, "baseline": arena.baseline}),
        notes=arena.notes,
    )


def _board_page(arena: Arena, board: BenchmarkResult) -> str:
    from markupsafe import Markup

    marks = arena_summary.Marks()
    models = arena_summary.models(board, marks, "Models")
    rows = arena_summary.chosen_pairs(board, PAIRS)
    items = [board.pairs[i] for i in rows]
    plots, note = html.bars(items)
    drawn = []
    if canvas.available():
        # matplotlib escapes the text that it writes, and `figures` what it adds
        drawn = [(item, Markup(canvas.svg(item, themed=True))) for item in figures.pictures(board, arena.baseline)]
    return html.render(
        "board.html",
        title=arena_summary.board_name(board),
        sentences=arena_summary.sentences(board),
        facts=_facts(arena, board),
        models=models,
        pictures=drawn,
        pairs=arena_summary.pair_table(items, marks, "Pairs"),
        pairs_left_out=len(board.pairs) - len(rows),
        plots=plots,
        plot_note=note,
        steps=_steps(board),
        questions=arena_summary.question_table(board, QUESTIONS),
        question_words=_question_words(board),
        legend=marks.legend(),
        settings=html.settings_rows({**arena.settings, "baseline": arena.baseline}),
    )


def _facts(arena: Arena, board: BenchmarkResult) -> list[tuple[str, str, str]]:
    """The benchmark's row of the index: what it is, its value, its explanation."""
    section = arena_summary.benchmarks(arena)
    values = section.rows[arena.boards.index(board)]
    return [
        (column.label, value, column.hint) for column, value in zip(section.columns, values, strict=True) if column.hint
    ]


def _steps(board: BenchmarkResult) -> list[str]:
    return [
        f"{shorten(step.large, 60)} − {shorten(step.small, 60)} = {number(step.diff, decimals(step.se_total))}, "
        f"{number(step.ratio, 1)} total standard errors"
        for step in board.benchmark.steps
    ]


def _question_words(board: BenchmarkResult) -> str:
    q = board.questions
    suspects = int(q.suspect.sum())
    parts = [
        f"{len(q)} questions; {suspects} of them {'is a suspect' if suspects == 1 else 'are suspects'}, on which "
        "better models do worse (fewer than one is expected by chance)"
    ]
    if q.n_solved is not None:
        none, one = int((q.n_solved == 0).sum()), int((q.n_solved == 1).sum())
        parts.append(f"{none} are solved by no model and {one} by one model only")
    missing = int((q.n_models < board.benchmark.n_models).sum())
    if missing:
        parts.append(f"{missing} lack the score of some model")
    text = "; ".join(parts) + "."
    if len(q) > QUESTIONS:
        text += f" Shown are {QUESTIONS}: the suspects, then the hardest."
    signal = q.tau[np.isfinite(q.tau)]
    if len(signal):
        text += f" The median tau is {number(float(np.median(signal)), 2)}."
    return text
