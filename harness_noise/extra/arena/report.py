"""Display of an arena: sentences, and a section for each table of each benchmark."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from ...arrays import BoolArray
from ...errors import counted, some_of
from ...report import fmt
from ...report.canvas import short_name
from ...report.columns import Column, Marks, Section, Summary, TextColumn, difference_columns, mean_columns, section
from ...report.sentences import ODD, UNCORRECTED
from ...report.summary import slice_sentences
from ...results.diagnostics import STOPPED
from ...results.rows import SCORED_DIFFERENTLY, Difference
from ...stats import decision
from .budget import budget_section
from .results import Arena, Benchmark, BenchmarkResult, Checkpoint, Model, Question, Spread

PAIRS = 30
"""Pairs that a terminal shows of each benchmark."""
MATRIX = 12
"""Models whose verdicts are shown as a matrix."""
BOARDS = 8
"""Benchmarks of which a terminal shows models and pairs."""
NAME = 60


def summarise(arena: Arena, *, brief: bool = False) -> Summary:
    """Return an arena as a `Summary`: leaderboard, benchmarks, models, and the pairs closest in rank.

    Few models are a matrix of verdicts. If it is to be brief, it is the leaderboard, the sentence on all benchmarks
    together, and what was asked for. Of more than `BOARDS` benchmarks no models and pairs are shown.
    """
    board_table = leaderboard(arena)
    of_steps = {row.model for row in arena.checkpoints}  # whose means the table of checkpoints has
    repeated = brief and len(arena.boards) == 1 and of_steps.issuperset(model.model for model in arena.models)
    sections = [] if repeated else [replace(board_table, title=f"{board_table.title}: {READ}")]
    sections += [] if brief else [*across_section(arena), benchmarks(arena, ranges=False)]
    if arena.budget:
        sections.append(budget_section(arena))
    sections += [checkpoint_table(rows, arena.settings["level"]) for _, rows in checkpoints(arena)]
    shown = arena.first_boards if brief else overall_first(arena)
    name = {board.key: "" if len(arena.boards) == 1 else f"{board_name(board)}: " for board in shown}
    more = fmt.weights_line(arena.models)
    more += fmt.estimand_line([model for board in arena.boards for model in board.models])
    if brief:  # the noise of the benchmark and the order are for --details; what was asked for stays
        asked = [(board, line) for board in shown for line in (_frontier_words(board), _top_words(board)) if line]
        more = [*(f"{name[board.key]}{line}." for board, line in asked), *more]
        lead = (*checkpoint_sentences(arena), *first_lines(shown))
        return Summary(tuple(sections), (), tuple(more), lead, more=MORE)
    said = [(board_name(board), sentences(board)) for board in shown]
    lead = (*checkpoint_sentences(arena), *(f"{what}: {line}" for what, lines in said for line in lines[:1]))
    if (several := sum(not board.is_overall for board in arena.boards)) > BOARDS:
        rest = (
            f"The models and pairs of these {several} benchmarks are too many to show here: choose some by "
            "`tasks` and `metrics`, or write them all with `write_html` or `write_tables`."
        )
        return Summary(tuple(sections), (), (rest,), lead)
    marks = Marks()
    for board in shown:
        sections.append(models(board, marks, f"{name[board.key]}Models"))
        few = 2 < len(board.models) <= MATRIX
        sections += [matrix(board, f"{name[board.key]}Who is better")] if few else []
        rows = chosen_pairs(board, PAIRS)
        title = f"{name[board.key]}Pairs"
        if len(rows) < len(board.pairs):
            title += f" ({len(rows)} of {len(board.pairs)}, neighbours in rank first)"
        sections.append(pair_table([board.pairs[i] for i in rows], marks, title))
    rest_said = [
        f"{name[board.key]}{line}" for board, (_, lines) in zip(shown, said, strict=True) for line in lines[1:]
    ]
    return Summary(tuple(sections), marks.legend(), (*rest_said, *more), lead)


MORE = "More: `details=True` (noise, intervals, ranks, pairs), `legend=True`."
"""The last line of the first screen."""


def first_lines(boards: Sequence[BenchmarkResult]) -> list[str]:
    """Return the first screen's conclusions: on the overall or only benchmark (else counts of best), and warnings."""
    if len(boards) == 1 or boards[0].is_overall:
        lines = [f"{board_name(boards[0])}: {sentences(boards[0], whole=len(boards) == 1)[0]}"]
    else:
        lines = [_most_often_best(boards)]
    rest = boards[1:] if len(boards) == 1 or boards[0].is_overall else boards
    warned = [f"{board_name(board)}: {line}." for board in rest if (line := "; ".join(_warnings(board)))]
    return [*lines, *warned]


def _most_often_best(boards: Sequence[BenchmarkResult]) -> str:
    """Return a sentence that counts, for four models, the benchmarks on which each may be the best."""
    counts: Counter[str] = Counter()
    for board in boards:
        counts.update(model.model for model in board.models if model.among_best)
    level = fmt.percent(boards[0].pairs.common["level"])
    said = [f"{fmt.shorten(name, NAME)} on {n} of {len(boards)}" for name, n in counts.most_common()]
    return f"May be the best ({level}, each benchmark by itself): {some_of(said, 4) or 'not known'}."


def overall_first(arena: Arena) -> list[BenchmarkResult]:
    """Return the arena's benchmarks in a list, those over all tasks first."""
    return sorted(arena.boards, key=lambda board: not board.is_overall)


def board_name(board: BenchmarkResult) -> str:
    """Return a benchmark's task and metric as text: "gsm8k (exact_match)"."""
    task, metric, scorer = board.key
    return fmt.shorten(f"{task} ({fmt.metric_name(metric, scorer)})" if task else fmt.metric_name(metric, scorer), NAME)


def file_names(arena: Arena) -> list[str]:
    """Return a unique plain ASCII file name without an ending for each benchmark: number, task, metric, scorer."""
    names = []
    for i, board in enumerate(arena.boards, 1):
        task, metric, scorer = board.key
        slug = re.sub(r"[^a-z0-9]+", "-", f"{task}-{metric}-{scorer if scorer != 'none' else ''}".lower()).strip("-")
        names.append(f"{i:02d}-{slug[:60].strip('-')}".rstrip("-"))
    return names


def sentences(board: BenchmarkResult, *, whole: bool = True) -> list[str]:
    """Return the conclusions on one benchmark: the best, noise, frontier, ranks and their stability.

    Args:
        board: the benchmark.
        whole: say of models that are excluded from the best alone that they are.
    """
    best = ". ".join(filter(None, [_best_words(board), *_warnings(board), _only_excluded(board) if whole else ""]))
    lines = [best, _noise_words(board), _frontier_words(board)]
    lines += [_top_words(board), _order_words(board), _separating_sentence(board), _adjustment_words(board)]
    return [f"{line}." for line in lines if line]


def _best_words(board: BenchmarkResult) -> str:
    """Return a sentence that names the best model, or all not significantly worse than the best. "" if none is."""
    row, best = board.benchmark, _short(board.benchmark.best)
    level = fmt.percent(board.pairs.common["level"]) + ("" if board.pairs.sign > 0 else "; lower is better")
    n = row.n_models - len(_unjudged(board))
    if len(best) == 1:
        return f"{best[0]} is the best of {n} models ({level})"
    return (
        f"{len(best)} of {n} models are not significantly worse than the best ({level}): {some_of(best, 8)}"
        if best
        else ""
    )


def _unjudged(board: BenchmarkResult) -> list[str]:
    """Return the models left without a verdict because equal answers are scored differently from all others."""
    names = [model.model for model in board.models if model.mean is not None and model.among_best is None]
    return _short(names) if SCORED_DIFFERENTLY in board.pairs.words else []


def _warnings(board: BenchmarkResult) -> list[str]:
    """Return sentences on models scored differently, stopped early, or whose mean is not the harness's own."""
    out = []
    if unjudged := _unjudged(board):
        are = "is" if len(unjudged) == 1 else "are"
        out.append(f"{some_of(unjudged, 4)} {are} scored differently from all others, and not judged")
    if odd := _short(model.model for model in board.models if "mean_mismatch" in model.diagnostics):
        out.append(f"{some_of(odd, 8)}: {ODD}")
    if stopped := _short(model.model for model in board.models if STOPPED in model.diagnostics):
        out.append(f"{some_of(stopped, 8)}: {UNCORRECTED}")
    return out


def _only_excluded(board: BenchmarkResult) -> str:
    """Return a sentence on models excluded from the best that no single pair shows to be worse, or ""."""
    pairs = board.pairs
    worse = {*pairs.a[pairs.verdict == decision.B].tolist(), *pairs.b[pairs.verdict == decision.A].tolist()}
    only = _short(model.model for m, model in enumerate(board.models) if model.among_best is False and m not in worse)
    if not only or not board.benchmark.best:
        return ""
    are, than = ("is", only[0]) if len(only) == 1 else ("are", "each of them")
    return (
        f"{some_of(only, 4)} {are} excluded by a one-sided test against all rivals. Which single model is better than "
        f"{than} is not shown: the two-sided tests of all pairs are stricter"
    )


def _short(names: Iterable[str]) -> list[str]:
    return [fmt.shorten(name, NAME) for name in names]


def _noise_words(board: BenchmarkResult) -> str:
    """Return a sentence on the typical SE, smallest significant, largest insignificant difference. "" if unknown."""
    row, pairs = board.benchmark, board.pairs
    if row.se_total is None:
        return ""
    digits = fmt.decimals(row.se_total.median)
    median, low, high = (fmt.amount(row, x, digits) for x in _values(row.se_total))
    size, better = np.abs(pairs.columns["diff"]), told_apart(board)
    tested = np.isfinite(size) & np.isfinite(pairs.columns["se"]) & ~pairs.withheld
    ends = []
    if (better & tested).any():
        adjusted = " after adjustment" if "not_after_adjustment" in pairs.flags else ""
        smallest = fmt.amount(row, float(size[better & tested].min()), digits)
        ends.append(f"the smallest difference found significant{adjusted} is {smallest}")
    if (~better & tested).any():
        largest = fmt.amount(row, float(size[~better & tested].max()), digits)
        ends.append(f"the largest found not significant is {largest}")
    close = counted(row.n_close_pairs, "pair")
    spread = f"{fmt.shown(row, row.se_total.min, digits=digits)} to {high}, " if low != high else ""
    over = f"{spread}over the {close} differing by less than 5 SEs (1 answer)"
    text = f"The standard error of a difference with one answer per question is {median} ({over})"
    return "; ".join(filter(None, [text, ", ".join(ends)]))


def _values(spread: Spread) -> tuple[float, float, float]:
    """Return (median, lowest, highest) out of a `Spread`, the range of a number over close pairs of models."""
    return spread.median, spread.min, spread.max


def _adjustment_words(board: BenchmarkResult) -> str:
    """Return a sentence on how many pairs are significant only before adjustment. "" if none."""
    lost, left = int(board.pairs.flags.get("not_after_adjustment", np.zeros(1)).sum()), int(told_apart(board).sum())
    if not lost:
        return ""
    pairs = f"{lost + left} by their own interval, {left} after adjustment for all {counted(len(board.pairs), 'pair')}"
    return f"Significant pairs: {pairs}, which the verdicts follow"


def told_apart(board: BenchmarkResult) -> BoolArray:
    """Return (P,) True for pairs whose adjusted verdict is that A, or that B, is better."""
    return np.isin(board.pairs.verdict, [decision.A, decision.B])


def benchmarks(arena: Arena, *, ranges: bool = True) -> Section:
    """Return a table with the typical noise of each benchmark over pairs: median, and range if `ranges`."""

    def spread(
        heading: str,
        name: str,
        hint: str,
        rank: int = 0,
        digits: int | None = None,
        *,
        unit: str = "",
        optional: bool = False,
    ) -> Column:
        times = 100 if unit else 1

        def cell(row: Benchmark) -> str:
            value: Spread | None = getattr(row, name)
            if value is None:
                return fmt.MISSING
            if name == "se_data" and not value.median:  # clipped: 0 would be false
                limit, scale = row.se_data_upper, fmt.scale_of(row)
                if limit is None:
                    return fmt.MISSING
                return fmt.below(scale.times * limit.median, scale.digits(fmt.decimals(limit.median)))
            if digits is None:
                median, low, high = (fmt.shown(row, x, digits=fmt.decimals(value.median)) for x in _values(value))
            else:
                median, low, high = (fmt.number(times * x, digits) + unit for x in _values(value))
            return f"{median} ({low} … {high})" if ranges and value.min != value.max else median

        return Column(heading, cell, hint, rank, optional=optional)

    def limit(heading: str, name: str, hint: str) -> Column:
        def cell(row: Benchmark) -> str:
            median = row.se_total.median if row.se_total else None
            return fmt.shown(row, getattr(row, name), digits=fmt.decimals(median, row.smallest_significant_diff))

        return Column(heading, cell, f"{hint}, each pair by its own interval", 1)

    close = "pairs differing by less than 5 SEs (1 answer), of all pairs"
    sizes = "difference of adjacent sizes of a model family, in SEs (1 answer)"
    columns = [
        TextColumn("Task", lambda row: fmt.shorten(row.task, NAME)),
        TextColumn("Metric", lambda row: fmt.shorten(fmt.metric_name(row.metric, row.scorer), NAME)),
        Column("n", "n_questions", "questions"),
        Column("models", "n_models", "how many there are", 1),
        Column("close pairs", lambda row: f"{row.n_close_pairs} of {row.n_pairs}", close, 2),
        spread("SE (1 answer)", "se_total", "of A − B with one answer per question: median over close pairs"),
        spread("data", "se_data", "what is left of it with infinitely many answers", 7, optional=True),
        spread("prediction", "se_prediction", "what the models' own randomness adds", 7, optional=True),
        spread("corr.", "correlation", "correlation of two models' question means", 6, 2),
        spread("A ≠ B", "disagreement", "share of questions that two models score differently", 3, 0, unit="%"),
        limit("min sig.", "smallest_significant_diff", "smallest difference found significant"),
        limit("max n.s.", "largest_insignificant_diff", "largest difference found not significant"),
        spread("vs Beta", "beta_theory", "SE (1 answer) over that of the Beta(p, 1 − p) theory", 8, 2, optional=True),
        spread("vs rule", "rule_of_thumb", "SE (1 answer) over √(p(1 − p)/n)", 8, 2, optional=True),
        Column("unsolved", "solved_by_none", "questions that no model solves", 4, optional=True),
        spread("signal/noise", "signal_to_noise", sizes, 8, 1, optional=True),
    ]
    return section("Benchmarks", arena.benchmarks, columns)


READ = "mean ± standard error, ★ may be the best"
"""The caption for the cells of a leaderboard."""
BEST = "★"
"""Marks a model that may be the best. Colour alone never says it."""


def leaderboard(arena: Arena) -> Section:
    """Return a table of models by benchmarks: means ± standard errors, ★ for those that may be best."""
    cells, boards = arena.leaderboard, arena.first_boards

    def cell(name: str, key: tuple[str, str, str]) -> str:
        row = cells[name].get(key)
        if row is None or row.mean is None:
            return fmt.MISSING
        return f"{f'{BEST} ' * bool(row.among_best)}{fmt.bare_with_error(row)}"

    def best(name: str) -> str:
        have = [row for row in cells[name].values() if not row.is_overall]
        return f"{sum(bool(row.among_best) for row in have)} of {len(have)}"

    columns = [TextColumn("Model", lambda name: fmt.shorten(name, NAME))]
    heads = column_names(boards)
    columns += [Column(head, partial(cell, key=board.key)) for head, board in zip(heads, boards, strict=True)]
    if len(boards) > 1:
        columns.append(Column(BEST, best, "benchmarks on which it may be the best, of those that it has"))
    shares = [fmt.scale_of(board.benchmark) is fmt.PERCENT for board in boards]
    units = "in %" if all(shares) else "0/1 metrics in %" if any(shares) else ""
    metrics = {fmt.metric_name(*board.key[1:]) for board in boards}
    title = f"Leaderboard, {fmt.shorten(metrics.pop(), NAME)}" if len(metrics) == 1 else "Leaderboard"
    return replace(section(title, list(cells), columns), units=units)


def across_section(arena: Arena) -> list[Section]:
    """Return tables of the models' mean ranks over tasks, one for each metric."""
    columns = [
        TextColumn("Model", lambda row: fmt.shorten(row.model, NAME)),
        Column(
            "Rank", lambda row: fmt.span(row.rank_low, row.rank_high), "places that it may have, all models at once"
        ),
        Column("mean rank", lambda row: f"{row.mean_rank:.2f}", "over the tasks, each counts alike (1 is the best)"),
        Column("win rate", lambda row: _win_rate(row.win_rate), "rivals and tasks on which its mean is better"),
    ]
    out = []
    for metric, scorer in dict.fromkeys((row.metric, row.scorer) for row in arena.across_tasks):
        rows = [row for row in arena.across_tasks if (row.metric, row.scorer) == (metric, scorer)]
        T, G = rows[0].n_tasks, rows[0].n_clusters
        sample = "the tasks are the sample" if G == T else f"{G} without those that share questions are the sample"
        title = f"Over {T} tasks, {fmt.metric_name(metric, scorer)}; {sample}"
        out.append(section(title, rows, columns))
    return out


def column_names(boards: Sequence[BenchmarkResult]) -> list[str]:
    """Return the leaderboard's column headings: the task, with the metric if a task has several."""
    tasks = Counter(board.key[0] for board in boards)
    return [
        fmt.shorten(board.key[0], 24) if board.key[0] and tasks[board.key[0]] == 1 else board_name(board)
        for board in boards
    ]


def models(board: BenchmarkResult, marks: Marks, title: str) -> Section:
    """Return a table of one benchmark's models, the best first: mean, interval, ranks, noise."""
    level = fmt.percent(board.pairs.common["level"])
    top = max((max(model.pass_at_k) for model in board.models if model.pass_at_k), default=1)

    def ranks(row: Model) -> str:
        return fmt.MISSING if row.rank_low is None or row.rank_high is None else fmt.span(row.rank_low, row.rank_high)

    def pass_k(symbol: str, kind: str, meaning: str, rank: int) -> Column:
        def cell(row: Model) -> str:
            value, se = ((getattr(row, f"pass_{kind}_k{end}") or {}).get(top) for end in ("", "_se"))
            if value is None or top < 2:
                return fmt.MISSING
            digits = fmt.decimals(se, value)
            error = "" if se is None else f" ± {fmt.shown(row, se, digits=digits)}"
            return f"{fmt.shown(row, value, mean=True, digits=digits)}{error}"

        return Column(f"pass{symbol}{top}", cell, f"chance that {meaning}", rank, optional=True)

    columns = [
        TextColumn("Model", lambda row: fmt.shorten(row.model, NAME)),
        Column("Rank", "rank", "by the mean", 1),
        *mean_columns("mean ci se total data prediction", level),
        Column("ranks", ranks, f"that the model may truly have, with {level} confidence for all models at once"),
        Column("ties", "ties", "models that it is not shown to differ from, all pairs tested together", 4),
        TextColumn("in top", "in_top", "whether it is among the K best (`top`)", optional=True),
        Column("win rate", lambda row: _win_rate(row.win_rate), "mean over all rivals of wins + half of ties", 3),
        pass_k("@", "at", "one of these many answers is right", 3),
        pass_k("^", "hat", "all of these many answers are right", 4),
        TextColumn(
            "best?",
            lambda row: {True: "yes", False: ""}.get(row.among_best, fmt.MISSING),
            "not significantly worse than the best, adjusted for the choice",
        ),
        TextColumn(
            "frontier", _frontier, "whether no model is as good and as cheap, one of both better", optional=True
        ),
        *mean_columns("n k missing judge bias labelled gain"),
        marks.column(),
    ]
    return section(title, ranked(board), columns)


def _win_rate(share: float | None) -> str:
    return fmt.MISSING if share is None else f"{100 * share:.1f}%"


def _frontier(row: Model) -> str:
    """Return a model's place on the frontier as text: "yes", "open", "no: beaten by …", or "–" if unknown."""
    beaten = [fmt.shorten(name, 24) for name in row.beaten_by]
    return f"no: beaten by {some_of(beaten, 2)}" if beaten else row.frontier or fmt.MISSING


def _frontier_words(board: BenchmarkResult) -> str:
    """Return a sentence that lists models on the frontier of score and cost, off it, or undecided. "" without cost."""
    if board.beside is None:
        return ""
    parts, places = [], {"yes": "on the frontier", "no": "off it (another is better and cheaper)", "open": "open"}
    for place, words in places.items():
        if models := _short(model.model for model in board.models if model.frontier == place):
            parts.append(f"{some_of(models, 8)} {words}")
    return f"Score and {board.beside.benchmark.metric}: {'; '.join(parts)}" if parts else ""


def checkpoints(arena: Arena, key: tuple[str, str, str] | None = None) -> list[tuple[str, list[Checkpoint]]]:
    """Return (name, checkpoints) for every training run, on one benchmark (`key`) or on all."""
    out: dict[tuple[str, ...], list[Checkpoint]] = {}
    for row in arena.checkpoints:
        if key in (None, row.key):
            out.setdefault((*row.key, row.series), []).append(row)
    several = len({row.series for row in arena.checkpoints}) > 1
    return [(f"{fmt.what_of(rows[0])}{f', {rows[0].series}' * several}", rows) for rows in out.values()]


def checkpoint_table(rows: Sequence[Checkpoint], level: float) -> Section:
    """Return a table of one training run's checkpoints: step, mean, change since first and previous."""
    columns = [
        TextColumn("Step", lambda row: step_text(row.step)),
        Column("Mean", "mean", "of the checkpoint"),
        Column(f"{fmt.percent(level)} CI", "ci_low, ci_high", "of the mean"),
        Column("since first", "since_first", "A − B with the first checkpoint as B"),
        Column("p adj.", "p_first", "of the change since the first, over all checkpoints"),
        Column("since previous", "since_previous", "with the one before as B"),
        Column("p previous", "p_previous", "of the change since the one before", 1),
        TextColumn(
            "changed?",
            lambda row: "from here" if row.onset else "yes" if row.changed else "",
            "whether the mean differs from that of the first checkpoint by more than noise",
        ),
    ]
    series = f", {fmt.shorten(rows[0].series, NAME)}" if rows[0].series else ""
    return section(f"Checkpoints: {fmt.what_of(rows[0])}{series}", rows, columns)


def step_text(step: float) -> str:
    """Format a training step: 1000 is "1,000", 0.5 is "0.5"."""
    return f"{step:,.0f}" if step == int(step) else f"{step:g}"


def checkpoint_sentences(arena: Arena, key: tuple[str, str, str] | None = None) -> list[str]:
    """Return a sentence per training run on the steps, if any, at which its mean changed by more than noise."""
    adjusted = {"holm": "Holm", "bh": "Benjamini–Hochberg", "none": "unadjusted"}[arena.settings["adjust"]]
    level = arena.settings["level"]
    out = []
    for name, rows in checkpoints(arena, key):
        first, how = step_text(rows[0].step), f"{fmt.percent(level)}, {adjusted}"
        onset = next((row for row in rows if row.onset), None)
        changed = [step_text(row.step) for row in rows if row.changed]
        if onset is not None and onset.since_first is not None:
            way = "higher" if onset.since_first > 0 else "lower"
            by = fmt.amount(onset, abs(onset.since_first))
            text = (
                f"from step {step_text(onset.step)} on the mean is {way} than at step {first} by more than noise "
                f"(there by {by}, p {fmt.equals_p(onset.p_first)}, paired by question, {how})"
            )
        elif changed:
            text = f"the mean differs from that at step {first} at {some_of(changed, 8)}, but not at all later steps"
        else:
            text = f"no checkpoint is shown to differ from step {first} ({how})"
        jumps = [step_text(row.step) for row in rows if row.p_previous is not None and row.p_previous < 1 - level]
        if jumps:
            text += f". From one checkpoint to the next, it changes by more than noise at {some_of(jumps, 8)}"
        out.append(f"{name}: {text}.")
    return out


def matrix(board: BenchmarkResult, title: str) -> Section:
    """Return a table of models by models, the best first: + the row is better, − the column, = not shown to differ."""
    order, signs, pairs = ranked(board), {}, board.pairs
    for i in np.flatnonzero(judged(board)).tolist():
        a, b = pairs.names[pairs.a[i]], pairs.names[pairs.b[i]]
        signs[a, b], signs[b, a] = _SIGNS.get(pairs.words[pairs.verdict[i]], ("=", "="))

    def cell(rival: str) -> Callable[[Model], str]:
        return lambda row: "·" if row.model == rival else signs.get((row.model, rival), fmt.MISSING)

    def tone(rival: str) -> Callable[[Model], str]:
        return lambda row: {"+": "good", "−": "bad"}.get(cell(rival)(row), "")

    def counted(row: Model) -> str:
        mine = [sign for (model, _), sign in signs.items() if model == row.model]
        return " : ".join(str(mine.count(sign)) for sign in "+=−")

    columns = [
        TextColumn("Model", lambda row: f"{order.index(row) + 1} {fmt.shorten(row.model, NAME)}"),
        *(Column(str(i), cell(row.model), tone=tone(row.model)) for i, row in enumerate(order, 1)),
        Column("+ : = : −", counted, "how many models it is better than, not shown to differ from, and worse than"),
    ]
    adjusted = " after adjustment" if "not_after_adjustment" in board.pairs.flags else ""
    withheld = ", ? scored differently" * (SCORED_DIFFERENTLY in board.pairs.words)
    return replace(
        section(title, order, columns), units=f"+ the row, − the column, = not shown to differ{adjusted}{withheld}"
    )


def judged(board: BenchmarkResult) -> BoolArray:
    """Return (P,) True for pairs that were tested, so that they have an interval or a p-value."""
    columns = board.pairs.columns
    return np.asarray(np.isfinite(columns["p_value"]) | np.isfinite(columns["ci_low"]))


_SIGNS = {"A better": ("+", "−"), "B better": ("−", "+"), SCORED_DIFFERENTLY: ("?", "?")}
"""A verdict → the sign of A against B, then that of B against A."""


def ranked(board: BenchmarkResult) -> list[Model]:
    """Return a benchmark's models, the best mean first, those without a mean last. Ties keep their order.

    Means that differ only by rounding are ties.
    """
    sign = board.pairs.sign
    return sorted(board.models, key=lambda model: np.inf if model.mean is None else -sign * round(model.mean, 12))


def chosen_pairs(board: BenchmarkResult, limit: int) -> list[int]:
    """Return the indexes of at most `limit` pairs to show: all if few, else those closest in rank."""
    pairs = board.pairs
    if len(pairs) <= limit:
        return list(range(len(pairs)))
    place = {model.model: i for i, model in enumerate(ranked(board))}
    rank = np.array([place[name] for name in pairs.names])
    gap = np.abs(rank[pairs.a] - rank[pairs.b])
    order = np.lexsort((np.minimum(rank[pairs.a], rank[pairs.b]), gap))[:limit]
    return [int(i) for i in order]


def pair_table(pairs: Sequence[Difference], marks: Marks | None, title: str) -> Section:
    """Return a table of pairs with difference, interval, p and verdict. A `Marks` adds and collects the diagnostics."""
    columns = [
        TextColumn("A", lambda row: fmt.shorten(row.model_a, NAME)),
        TextColumn("B", lambda row: fmt.shorten(row.model_b, NAME)),
        *difference_columns("diff ci p p_adj test verdict se total data prediction", fmt.level_of(pairs)),
        *difference_columns("corr wins p_sign n only"),
        *([marks.column()] if marks else []),
    ]
    return section(title, pairs, columns)


def chosen_questions(board: BenchmarkResult, limit: int) -> list[int]:
    """Return the indexes of at most `limit` questions to show: suspects first, then the hardest."""

    def interest(i: int) -> tuple[bool, float, float]:
        row = board.questions[i]
        return not row.suspect, -(row.difficulty or 0.0), math.inf if row.tau is None else row.tau

    return sorted(range(len(board.questions)), key=interest)[:limit]


def question_table(board: BenchmarkResult, limit: int) -> Section:
    """Return a table of at most `limit` questions: difficulty, who solved them, Kendall tau."""
    width = 24 if board.texts else NAME  # an id may be short if the words are shown, too
    texts = dict(zip((row.question for row in board.questions), board.texts or (), strict=False))

    def difficulty(row: Question) -> str:
        return fmt.shown(board.benchmark, row.difficulty, mean=True, digits=3)

    by_rank = "Kendall's tau-b with the models' means over the other questions"
    suspect = "better models do worse on it, more clearly than chance explains"
    columns = [
        TextColumn("Question", lambda row: short_name(row.question, width)),
        TextColumn("Text", lambda row: fmt.shorten(texts.get(row.question, ""), 100), optional=True),
        TextColumn("Cluster", lambda row: fmt.shorten(row.cluster or "", 40), optional=True),
        Column("difficulty", difficulty, "1 − mean score over the models"),
        Column("models", "n_models", "models that have a score", 2),
        Column("solved by", "n_solved", "models with at least one answer of score 1", optional=True),
        Column("tau", lambda row: fmt.number(row.tau, 3), by_rank),
        Column("p", "p_tau", "how often chance alone gives a tau as low"),
        TextColumn("Suspect", lambda row: "suspect" if row.suspect else "", suspect),
    ]
    return section("Questions", [board.questions[i] for i in chosen_questions(board, limit)], columns)


SIMILAR = 0.7
"""Median Kendall τ, 17 pairs of models in 20 in the same order, from which a ranking is said to stay similar."""


def _top_words(board: BenchmarkResult) -> str:
    """Return a sentence on which models are surely, or perhaps, among the `top` best. "" if not asked for."""
    if all(model.in_top is None for model in board.models):
        return ""
    sure, maybe = (
        some_of(_short(model.model for model in board.models if model.in_top == word), 8) or "none"
        for word in ("yes", "maybe")
    )
    n, level = board.benchmark.n_top, fmt.percent(board.pairs.common["level"])
    place = "the best" if n == 1 else f"among the {n} best"
    return f"Surely {place}: {sure}. Perhaps: {maybe} ({level}, all together)"


def _order_words(board: BenchmarkResult) -> str:
    """Return a sentence on how much the ranking changes when questions are resampled. "" if unknown."""
    row = board.benchmark
    if row.order_tau is None or row.same_best is None:
        return ""
    leaders = _short(model.model for model in board.models if model.rank == 1)
    first = f"{leaders[0]} is" if len(leaders) == 1 else "the same model is"
    return (
        f"When the questions are resampled, the ranking {'stays similar' if row.order_tau >= SIMILAR else 'changes'} "
        f"(median Kendall τ {fmt.number(row.order_tau, 2)}) and {first} first in {100 * row.same_best:.0f}% of "
        "resamples. That is stability, not a test"
    )


def _separating_sentence(board: BenchmarkResult) -> str:
    """Return a sentence on how many questions still separate the best models. "" if unknown."""
    row = board.benchmark
    if row.dead_for_top is None or row.n_top is None or not row.n_for_top:
        return ""
    left = row.n_for_top - row.dead_for_top
    differ = "score differently" if board.pairs.common["unit"] is None else "differ"
    of, share = counted(row.n_for_top, "question"), f"{100 * left / row.n_for_top:.0f}%"
    have = "" if row.n_for_top == row.n_questions else " that they all have"
    return f"The {row.n_top} models at the top {differ} on {left} of {of}{have} ({share})"


def of_arena(table: Arena, *, brief: bool = False, wide: bool = False) -> Summary:
    """Return an arena as a `Summary`, with sentences on slices unless there are many benchmarks."""
    shown = summarise(table, brief=brief)
    of_slices = slice_sentences(table) if len(table.boards) <= BOARDS else []
    return replace(shown, sentences=(*shown.sentences, *of_slices))


def paper_lines(table: Arena) -> list[str]:
    """Return an arena's sentences for a paper: which models may be best, and the top K, cost or slices asked for."""
    said, asked = summarise(table), summarise(table, brief=True)
    lines = dict.fromkeys([*said.lead, *fmt.paper_words(asked.sentences)])
    lines |= {f"{table.sample}.": None} if table.sample else {}
    return [*lines, *(slice_sentences(table) if len(table.boards) <= BOARDS else [])]


def methods(arena: Arena, adjustment: tuple[str, tuple[str, ...]] | None) -> list[tuple[str, tuple[str, ...]]]:
    """Return (sentence, cited works) for a paper: sample, ★ test, its adjustment if needed, rank sets if K was set."""
    level = fmt.percent(arena.settings["level"])
    out: list[tuple[str, tuple[str, ...]]] = [(f"The sample: {arena.sample}", ())] if arena.sample else []
    out += [
        (
            f"★ marks the models that are not significantly worse than the best ({level}), by one-sided paired tests "
            "that are adjusted for the number of rivals",
            ("Hsu",),
        )
    ]
    if adjustment and any(map(_only_excluded, arena.boards)):
        out.append((f"p-values of pairs are adjusted within each benchmark by {adjustment[0]}", adjustment[1]))
    if any(model.in_top is not None for model in arena.models):
        out.append((f"Sets of ranks hold all true ranks together with {level} confidence", ("Mogstad",)))
    return out
