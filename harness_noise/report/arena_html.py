"""The arena's report: an index and a page for each benchmark, every page self-contained."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..io.atomic import write_text
from ..results.rows import ByQuestion
from ..results.slices import DifferenceSlice
from . import arena_summary, figures, html, pair_figures, slices
from .columns import _legend, _marks, decimals, number, shorten
from .foot import Foot, foot
from .page_data import board_data
from .result_html import Detail, detail

if TYPE_CHECKING:
    from ..results.arena import Arena, BenchmarkResult, PairSlice

PAIRS = 500
"""Pairs on a page; the exported table has them all."""
QUESTIONS = 2000


def write(arena: Arena, folder: Path, command: str | None = None) -> list[Path]:
    """Write `index.html` and a page for each benchmark into `folder`; returns the files.

    Args:
        arena: what is shown.
        folder: where.
        command: what was typed to make it.

    Raises:
        InputError: the folder cannot be written.
    """
    names = arena_summary.file_names(arena)
    written = []
    for board, name in zip(arena.boards, names, strict=True):
        write_text(folder / f"{name}.html", _board_page(arena, board, command))
        written.append(folder / f"{name}.html")
    index = folder / "index.html"
    write_text(index, _index_page(arena, names, command))
    return [index, *written]


def _foot(arena: Arena, boards: Sequence[BenchmarkResult], command: str | None) -> Foot:
    runs = [pair for board in boards for pair in zip(board.pairs.names, board.pairs.runs, strict=True)]
    items = [pair for board in boards for pair in board.pairs[:2]]
    return foot({**arena.settings, "baseline": arena.baseline}, items, runs, command)


def _index_page(arena: Arena, names: list[str], command: str | None) -> str:
    models = len({model.model for model in arena.models})
    n_pairs = sum(len(board.pairs) for board in arena.boards)
    boards = len(arena.boards)
    compared = f"{n_pairs} pair{'s' if n_pairs > 1 else ''}, paired by question"
    codes = [one.diagnostics for one in arena.slices] + [one.diagnostics for one in arena.heterogeneity]
    marks = _marks(codes)
    return html.render(
        "index.html",
        title=f"Arena of {models} models",
        lead=f"{models} models on {boards} benchmark{'s' if boards > 1 else ''}, {compared}.",
        links=[
            (arena_summary.board_name(board), f"{name}.html") for board, name in zip(arena.boards, names, strict=True)
        ],
        sentences=[line for board in arena.boards for line in arena_summary.sentences(board)[:1]],
        section=arena_summary.benchmarks(arena),
        slices=slices.sections(arena, marks),
        slice_words=slices.sentences(arena)[-1:],
        legend=_legend(marks),
        foot=_foot(arena, arena.boards, command),
        notes=arena.notes,
    )


def _board_page(arena: Arena, board: BenchmarkResult, command: str | None) -> str:
    from markupsafe import Markup

    marks = arena_summary.Marks()
    models = arena_summary.models(board, marks, "Models")
    rows = arena_summary.chosen_pairs(board, PAIRS)
    items = [board.pairs[i] for i in rows]
    plots, note = html.bars(items)
    place = {model: i for i, model in enumerate(board.pairs.names)}
    name = arena_summary.board_name(board)
    drawn = figures.pictures(board, arena.baseline)
    pictures = html.drawn([one.picture for one in drawn])
    data = board_data(board, drawn)
    picked = _picked(arena, board)
    ahead = [one for one in pictures if one[0].name in ("means", "ranks")]
    return html.render(
        "board.html",
        title=name,
        sentences=[line.removeprefix(f"{name}: ") for line in arena_summary.sentences(board)],
        facts=_facts(arena, board),
        models=models,
        model_places=[str(place[item.model]) for item in arena_summary.ranked(board)],
        ahead=ahead,
        pictures=[one for one in pictures if one not in ahead],
        pairs=arena_summary.pair_table(items, marks, "Pairs"),
        pair_places=[f"{board.pairs.a[i]} {board.pairs.b[i]}" for i in rows],
        pairs_left_out=len(board.pairs) - len(rows),
        plots=plots,
        plot_note=note,
        data=None if data is None else Markup(data),
        picked=picked,
        chosen=[place[model] for model in picked.models] if picked and picked.models else [0, 1],
        choices=[(place[item.model], item.model) for item in arena_summary.ranked(board)],
        steps=_steps(board),
        questions=arena_summary.question_table(board, QUESTIONS),
        question_words=_question_words(board),
        legend=marks.legend(),
        foot=_foot(arena, [board], command),
    )


def _picked(arena: Arena, board: BenchmarkResult) -> Detail | None:
    """The two models with the best means, as the page shows them before others are chosen."""
    best = [item.model for item in arena_summary.ranked(board)[:2]]
    try:
        row = board.pairs.find(*best)
    except (KeyError, TypeError):
        return None
    i, j = (board.pairs.names.index(name) for name in (row.model_a, row.model_b))
    a, b = board.scores[:, i], board.scores[:, j]
    keep = np.flatnonzero(np.isfinite(a) & np.isfinite(b))
    if len(keep) == 0:
        return None
    asked = ByQuestion(
        row.task, row.metric, row.scorer, row.model_a, row.model_b, row.run_a, row.run_b,
        [board.questions.question[k] for k in keep.tolist()],
        [board.questions.text[k] for k in keep.tolist()] if board.questions.text else None,
        None, a[keep], b[keep],
    )  # fmt: skip
    margin = arena.settings.get("margin")
    rows = [_slice(one, *best) for one in board.slices]
    found = detail("picked", row, rows, asked, margin)
    whole = None if rows else pair_figures.verdict(row, margin)
    return replace(found, pictures=[*html.drawn([] if whole is None else [whole]), *found.pictures])


def _slice(one: PairSlice, model: str, other: str) -> DifferenceSlice:
    row = one.pairs.find(model, other)
    known = {item.name: getattr(row, item.name) for item in fields(row)}
    return DifferenceSlice(
        **known, field=one.field, value=one.value, shrunken=None, shrunken_ci_low=None, shrunken_ci_high=None
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
