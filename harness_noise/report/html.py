"""HTML: a fragment for notebooks, the page of a result, and an arena's index with a page of each benchmark.

The templates escape by default; the only markup that enters unescaped is our own style, script and figures. A page is
one file, loads nothing, and its content security policy allows no script but ours, which finds its numbers in the page.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from .. import extras
from .._version import __version__
from ..arrays import IntArray
from ..data.notes import texts
from ..errors import counted
from ..extra.arena import report as arena_summary
from ..extra.arena.results import Arena, BenchmarkResult
from ..io.atomic import write_text
from ..results.rows import Analysis, ByQuestion, Comparison, Difference, Estimate, Flip
from . import canvas, figures, fmt, summary
from .canvas import Picture
from .columns import Column, Marks, Section, Words
from .sentences import count_line, methods, sentence, trade_offs, verdict_parts

_TEMPLATES = Path(__file__).parent / "templates"
_ASSETS = Path(__file__).parent / "assets"
_BESIDE = Path(arena_summary.__file__).parent / "page"


def fragment(table: summary.Result) -> str:
    """Return a picture and the tables of a result for a notebook: inline styles only, no script."""
    short = clipped(table) if isinstance(table, (Analysis, Comparison)) else table
    pictures = figures.opening(short)[:3]
    return (
        environment()
        .get_template("fragment.html")
        .render(summary=summary.summarise(short, brief=bool(table.whole)), pictures=pictures)
    )


def clipped(table: Analysis | Comparison) -> Analysis | Comparison:
    """Return the table with names that fit a page. JSON and CSV have the whole names."""

    def clip(row: Any) -> Any:
        names = ("task", "metric", "scorer", "model", "model_a", "model_b", "cluster")
        have = {name: getattr(row, name, None) for name in names}
        return replace(row, **{name: fmt.shorten(text, 60) for name, text in have.items() if text})

    if isinstance(table, Analysis):
        return replace(table, estimates=tuple(map(clip, table.estimates)))
    return replace(table, comparisons=tuple(map(clip, table.comparisons)), questions=tuple(map(clip, table.questions)))


def render(template: str, *, title: str, **values: Any) -> str:
    """Return a page from one of our templates."""
    return (
        environment().get_template(template).render(title=shown(title, 200), version=__version__, **_assets(), **values)
    )


@cache
def environment() -> Environment:
    """Return our Jinja environment. Autoescape is on for all templates."""
    made = Environment(
        loader=FileSystemLoader([_TEMPLATES, _BESIDE]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {"shown": shown, "counted": summary.counted, "svg": _svg}
    made.filters["score"] = lambda value, flip: fmt.shown(flip, value, mean=True, digits=fmt.digits_of_flip(flip))
    made.globals |= {"explained": explained, "tip": tip}
    made.policies["json.dumps_kwargs"] = {"separators": (",", ":"), "allow_nan": False}
    return made


def explained(column: Column, words: Words = str) -> str:
    """Return the tooltip of a column: its meaning in this table, then the definition of its term."""
    return "\n".join(filter(None, (words(column.hint), extras.tooltip(column.label))))


def tip(section: Section, row: int, column: Column) -> str:
    """Return the tooltip of a cell: what its number says in words, "" for most cells, and in long tables."""
    return extras.tooltip(column.label, section.of[row]) if section.of and len(section.rows) <= TOLD_ROWS else ""


TOLD_ROWS = 50
"""The most rows of a table whose cells have tooltips. Each of its columns has one in any case."""


def _svg(picture: Picture, theme: canvas.Theme = "page") -> Markup:
    """Return the markup of a picture, in which `canvas` has escaped every text."""
    return Markup(canvas.svg(picture, theme))


@cache
def _assets() -> dict[str, str]:
    """Return our style and script, which are not escaped, and the hash that allows the script to run."""
    style = (_ASSETS / "style.css").read_text(encoding="utf-8")
    places = (_ASSETS / "tables.js", _ASSETS / "figures.js", _BESIDE / "picker.js")
    script = "".join(place.read_text(encoding="utf-8") for place in places)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return {"style": Markup(style), "script": Markup(script), "script_hash": f"sha256-{digest}"}


def shown(text: object, width: int = 160) -> str:
    """Return a name or a text from a log as a page shows it: one line, not endless, no control characters.

    What is written right to left is isolated, so that the numbers beside it keep their place.
    """
    return _RIGHT_TO_LEFT.sub("\u2068\\g<0>\u2069", fmt.shorten(str(text), width))


_R = "[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefe\U00010800-\U00010fff\U0001e800-\U0001efff]"
_RIGHT_TO_LEFT = re.compile(rf"{_R}(?:[\w ./-]*{_R})?")


RUNS = 40


def foot(
    settings: Mapping[str, Any],
    rows: Sequence[Estimate | Difference],
    runs: Iterable[tuple[str, str]],
    command: str | None,
    family: str = "",
) -> dict[str, Any]:
    """Return the provenance of a page of these rows and (model, path) runs, for the template."""
    named = list(dict.fromkeys((model, path) for model, path in runs if path))
    now = datetime.now().astimezone()
    return {
        "made": f"{now.day} {now:%B %Y}",
        "command": command,
        "runs": [(fmt.shorten(model, 60), fmt.shorten(path, 200)) for model, path in named[:RUNS]],
        "more_runs": max(0, len(named) - RUNS),
        "words": methods(rows, settings, family=family) if rows else "",
        "settings": settings,
    }


DETAILS = 24
"""The most rows that are shown in detail. If there are more, those with the smallest p are."""
FLIPS = 12
"""Questions that a detail lists."""


@dataclass(frozen=True, slots=True)
class Detail:
    """One row from the inside."""

    key: str
    title: str
    pictures: list[Picture]
    flips: Section | None
    cards: Sequence[Flip]
    """The questions that flipped most, where the result has the answers to them."""
    heading: str
    """The heading above the flipped questions, as a table or as cards."""

    @property
    def folded(self) -> bool:
        """True if more questions flipped as much as the last one listed, so that the list is cut arbitrarily."""
        return self.heading != summary.FLIPPED


def page(
    table: Analysis | Comparison,
    *,
    command: str | None = None,
    questions: Sequence[ByQuestion] = (),
    words: Words = str,
) -> str:
    """Return one self-contained HTML page of a result: verdict, figures, slices, clusters, questions, tables.

    Args:
        table: what is shown.
        command: what was typed to make it.
        questions: of a comparison, its rows question by question (`by_question`), for clusters and questions.
        words: rewrites each sentence, which names parameters in backticks.
    """
    whole, table = table, clipped(table)
    shown_whole = summary.summarise(table)
    rows: Sequence[Estimate | Difference] = table.rows
    details = _details(whole, questions)
    flipped = any(detail.flips or detail.cards for detail in details)
    lost = summary.lost_to_adjustment(table) if isinstance(table, Comparison) else []
    return render(
        "result.html",
        title=_title(table),
        headline=_headline(table) if isinstance(table, Comparison) else {},
        pictures=figures.opening(table),
        legend=shown_whole.legend,
        heading="Differences" if isinstance(table, Comparison) else "Means",
        sentences=[*(sentence(row) for row in rows if row.se is not None), *lost],
        details=details,
        words=words,
        sections=[section for section in shown_whole.sections if not (flipped and section.title == summary.FLIPPED)],
        data=whole.to_dict(),
        foot=foot(table.settings, rows, [pair for row in rows for pair in _runs(row)], command),
        notes=texts(table.notes),
    )


def _runs(row: Estimate | Difference) -> list[tuple[str, str]]:
    if isinstance(row, Estimate):
        return [(row.model, row.run)]
    return [(row.model_a, row.run_a), (row.model_b, row.run_b)]


def _title(table: Analysis | Comparison) -> str:
    if isinstance(table, Analysis):
        names = list(dict.fromkeys(row.model for row in table.estimates))
        return f"{', '.join(names[:3])}{' and others' if len(names) > 3 else ''}: means with their noise"
    pairs = list(dict.fromkeys(fmt.names_of(row) for row in table.comparisons))
    if len(pairs) == 1:
        return f"{fmt.shorten(pairs[0][0], 80)} against {fmt.shorten(pairs[0][1], 80)}"
    return f"{len(pairs)} comparisons"


_KINDS = {"A better": "is-a", "B better": "is-b"}
"""Verdict → the class of its colour. `is-none` is drawn hollow, so that the shape says it, too."""


def _headline(table: Comparison) -> dict[str, str]:
    """Return the verdict of the only row or over all tasks, or counts of verdicts, {} without a difference."""
    rows = [row for row in table.comparisons if row.diff is not None]
    if not rows:
        return {}
    kinds = {_KINDS[row.verdict] for row in rows if row.verdict in _KINDS}
    kind = kinds.pop() if len(kinds) == 1 else "is-none"
    if len(rows) == 1:
        verdict, evidence = verdict_parts(rows[0])
        return {"kind": kind, "said": f"{fmt.plain(verdict)}.", "how": fmt.plain(evidence)}
    whole = [row for row in rows if row.is_overall]
    if len(whole) == 1:
        verdict, evidence = verdict_parts(whole[0])
        said = f"{fmt.plain(verdict)}{fmt.on_task(whole[0])}."
        kind = _KINDS.get(whole[0].verdict, "is-none")
        return {"kind": kind, "said": said, "how": fmt.plain(f"{evidence} {count_line(table)}")}
    how = " ".join([*trade_offs(table), f"{fmt.level_of(rows)} intervals."])
    return {"kind": kind, "said": count_line(table), "how": how}


def _details(table: Analysis | Comparison, questions: Sequence[ByQuestion]) -> list[Detail]:
    """Return the rows that have slices or questions, those with the smallest p where there are many."""
    rows: Sequence[Any] = table.rows
    by = {_key(answers): answers for answers in questions if len(answers.keys)}
    candidates = []
    for i, row in enumerate(rows):
        slices = [sliced for sliced in table.slices if _key(sliced) == _key(row)]
        if slices or _key(row) in by:
            candidates.append((getattr(row, "p_value", None), i, row, slices))
    candidates.sort(key=lambda candidate: 1.0 if candidate[0] is None else candidate[0])
    shown = table.questions if isinstance(table, Comparison) else ()
    out = []
    for _, i, row, slices in sorted(candidates[:DETAILS], key=lambda candidate: candidate[1]):
        key, answers = f"row-{i}", by.get(_key(row))
        pictures = _inside(key, row, slices, answers, table.settings.get("margin"))
        cards = [flip for flip in shown if (flip.answers_a or flip.answers_b) and _key(flip) == _key(row)]
        flips = [answers.flip(k) for k in answers.most_flipped(FLIPS)] if answers is not None and not cards else []
        heading = _flipped(len(flips or cards), answers)
        listed = summary.flip_table(flips, heading) if flips else None
        out.append(Detail(key, _detail_title(row, table), pictures, listed, cards, heading))
    return out


def _flipped(shown: int, answers: ByQuestion | None) -> str:
    """Return the heading of the questions that flipped most, and how many others flipped as much as the last shown."""
    last = answers.most_flipped(shown)[-1:] if answers is not None else []
    total = sum(answers.flipped_as_much(k) for k in last) if answers is not None else 0
    more = f" ({shown} of {total:,} that flipped at least as much as the last)"
    return f"{summary.FLIPPED}{more if total > shown else ''}"


def _key(row: Any) -> tuple[str, ...]:
    fields = ("task", "metric", "scorer", "model", "model_a", "model_b", "run", "run_a", "run_b")
    return tuple(str(getattr(row, name, "")) for name in fields)


def _detail_title(row: Any, table: Analysis | Comparison) -> str:
    """Return the title of a row, with its models if the page has several."""
    several = len(set(map(fmt.models_of, table.rows))) > 1
    return f"{fmt.models_of(row)}, {fmt.what_of(row)}" if several else fmt.what_of(row)


def _inside(
    key: str, row: Any, slices: Sequence[Any], answers: ByQuestion | None, margin: float | None
) -> list[Picture]:
    """Return figures of a row's slices, clusters and questions, as far as they are known."""
    pictures = [figures.slices(f"slices-{key}", slices, row, margin)]
    if answers is not None:
        # where each slice is one cluster, its figure shows them
        if answers.clusters is not None and not (slices and all(sliced.n_clusters == 1 for sliced in slices)):
            pictures.append(figures.clusters(f"clusters-{key}", answers.diff, answers.clusters, row))
        pictures.append(figures.histogram(f"questions-{key}", answers.diff, row))
    return [picture for picture in pictures if picture is not None]


PAIRS = 500
"""The most pairs on a page. The exported table has all."""
QUESTIONS = 2000


def write_page(table: Analysis | Comparison, place: Path, command: str | None = None, words: Words = str) -> list[Path]:
    """Write the page of a result, as `write_arena` does for an arena."""
    questions = getattr(table, "by_question", ())
    write_text(place, page(table, command=command, questions=questions, words=words))
    return [place]


def write_arena(arena: Arena, folder: Path, command: str | None = None, words: Words = str) -> list[Path]:
    """Write `index.html` and a page for each benchmark into `folder`. Return the files.

    Args:
        arena: what is shown.
        folder: where.
        command: what was typed to make it.
        words: rewrites each sentence, which names parameters in backticks.

    Raises:
        InputError: the folder cannot be written.
    """
    names = arena_summary.file_names(arena)
    written = []
    for board, name in zip(arena.boards, names, strict=True):
        write_text(folder / f"{name}.html", _board_page(arena, board, command, words))
        written.append(folder / f"{name}.html")
    index = folder / "index.html"
    write_text(index, _index_page(arena, names, command, words))
    return [index, *written]


def _foot(arena: Arena, boards: Sequence[BenchmarkResult], command: str | None) -> dict[str, Any]:
    runs = [pair for board in boards for pair in zip(board.pairs.names, board.pairs.runs, strict=True)]
    rows = [board.pairs[i] for board in boards for i in arena_summary.chosen_pairs(board, PAIRS)]
    return foot({**arena.settings, "baseline": arena.baseline}, rows, runs, command, "over all pairs of each benchmark")


def _index_page(arena: Arena, names: list[str], command: str | None, words: Words) -> str:
    models = len({model.model for model in arena.models})
    n_pairs = sum(len(board.pairs) for board in arena.boards)
    boards = len(arena.boards)
    compared = f"{counted(n_pairs, 'pair')}, paired by question"
    marks = Marks()
    return render(
        "index.html",
        title=f"Arena of {models} models",
        lead=f"{models} models on {counted(boards, 'benchmark')}, {compared}.",
        links=[
            (arena_summary.board_name(board), f"{name}.html") for board, name in zip(arena.boards, names, strict=True)
        ],
        sentences=arena_summary.checkpoint_sentences(arena),
        leaderboard=arena_summary.leaderboard(arena),
        best=arena_summary.BEST,
        pictures=[picture for board in arena.boards[:4] if (picture := figures.steps(arena, board)) is not None],
        section=arena_summary.benchmarks(arena),
        slices=summary.slice_sections(arena, marks),
        slice_words=summary.slice_sentences(arena)[-1:],
        legend=marks.legend(),
        words=words,
        foot=_foot(arena, arena.boards, command),
        notes=texts(arena.notes),
    )


def _board_page(arena: Arena, board: BenchmarkResult, command: str | None, words: Words) -> str:
    marks = Marks()
    models = arena_summary.models(board, marks, "Models")
    labels = [column.label for column in models.columns]
    models = models.keeping(sorted(range(len(labels)), key=lambda i: (i > 0, labels[i] != "best?", i)))
    rows = arena_summary.chosen_pairs(board, PAIRS)
    order = arena_summary.ranked(board)
    place = {model: i for i, model in enumerate(board.pairs.names)}
    name = arena_summary.board_name(board)
    pictures = figures.pictures(arena, board)
    data = board_data(board, pictures)
    ahead = [picture for picture in pictures if picture.name in ("steps", "means", "matrix")]
    return render(
        "board.html",
        title=name,
        sentences=[
            *arena_summary.checkpoint_sentences(arena, board.key),
            *arena_summary.sentences(board),
            *fmt.estimand_line(board.models),
        ],
        facts=_facts(arena, board),
        models=models,
        model_places=[str(place[model.model]) for model in order],
        ahead=ahead,
        pictures=[picture for picture in pictures if picture not in ahead],
        pairs=arena_summary.pair_table([board.pairs[i] for i in rows], marks, "Pairs"),
        pair_places=[f"{board.pairs.a[i]} {board.pairs.b[i]}" for i in rows],
        pairs_left_out=len(board.pairs) - len(rows),
        data=data,
        choices=[(place[model.model], model.model) for model in order],
        steps=_steps(board),
        questions=arena_summary.question_table(board, QUESTIONS),
        question_places=list(map(str, arena_summary.chosen_questions(board, QUESTIONS))),
        asked=data is not None and board.scores.size <= CELLS,
        question_words=_question_words(board),
        legend=marks.legend(),
        words=words,
        foot=_foot(arena, [board], command),
    )


def _facts(arena: Arena, board: BenchmarkResult) -> list[tuple[str, str, str]]:
    """Return (name, value, explanation) of the benchmark's figures, for the index."""
    section = arena_summary.benchmarks(arena)
    values = section.rows[arena.boards.index(board)]
    return [
        (column.label, value, column.hint) for column, value in zip(section.columns, values, strict=True) if column.hint
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
    """Return the data that `picker.js` reads, None if there are too many pairs.

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
    """Return numbers as base64 of their little-endian bytes."""
    return base64.b64encode(np.ascontiguousarray(values).astype(kind).tobytes()).decode()


def _question_codes(board: BenchmarkResult) -> dict[str, Any] | None:
    """Return every model's score on every question as codes of score levels.

    The codes go model by model. One more code means missing."""
    scores = board.scores
    if scores.size > CELLS or not np.isfinite(scores).any():
        return None
    scored = np.isfinite(scores)
    levels = np.unique(scores[scored])
    if len(levels) > LEVELS:
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
    }


def _slice_columns(board: BenchmarkResult) -> dict[str, Any] | None:
    """Return the columns of every pair on every slice, slice by slice."""
    if not board.slices:
        return None
    columns = {"diff": "diff", "low": "ci_low", "high": "ci_high", "p": "p_adjusted"}
    data: dict[str, Any] = {
        key: packed(np.concatenate([sliced.pairs.columns[column] for sliced in board.slices]), "<f4")
        for key, column in columns.items()
    }
    title, labels = figures.slice_names([(sliced.field, sliced.value) for sliced in board.slices])
    short = [fmt.shorten(label, 60) for label in labels]
    return data | {"title": title, "labels": short, "n": [sliced.n_questions for sliced in board.slices]}
