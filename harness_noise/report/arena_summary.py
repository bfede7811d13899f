"""What a person is shown of an arena: one section for each table of each benchmark."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..results.diagnostics import explained
from ..stats import decision
from . import slices
from .columns import (
    MISSING,
    THESE_QUESTIONS,
    Column,
    Section,
    Summary,
    by_test,
    count,
    data_noise,
    decimals,
    drop_empty,
    interval,
    metric_name,
    number,
    p_text,
    shorten,
    span,
)
from .sentences import ODD
from .sequential import budget_section
from .words import NOTES, difference_column, mean_column

if TYPE_CHECKING:
    from ..arrays import BoolArray
    from ..results.arena import Arena, BenchmarkResult, Model, Spread
    from ..results.rows import Difference


PAIRS = 30
"""Pairs that a terminal shows of each benchmark."""
BOARDS = 8
"""Benchmarks of which a terminal shows models and pairs."""
NAME = 60


def summarise(arena: Arena, pairs: int = PAIRS) -> Summary:
    """The display form of an arena; of each benchmark at most `pairs` pairs, the closest in rank first.

    Of more than `BOARDS` benchmarks only the noise and the best are shown, and where the rest is found.
    """
    marks = Marks()
    sections = [benchmarks(arena, ranges=False)]
    if arena.budget:
        sections.append(budget_section(arena))
    if len(arena.boards) > BOARDS:
        best = [line for board in arena.boards for line in sentences(board)[:1]]
        rest = (
            f"The models and pairs of these {len(arena.boards)} benchmarks are too many to show here: choose some by "
            "--task and --metric, or write them all with --html DIR or --tables DIR."
        )
        return Summary(tuple(sections), (), (rest,), tuple(best))
    for board in arena.boards:
        name = board_name(board)
        sections.append(models(board, marks, f"{name}: models"))
        rows = chosen_pairs(board, pairs)
        title = f"{name}: pairs"
        if len(rows) < len(board.pairs):
            title += f" ({len(rows)} of {len(board.pairs)}, neighbours in rank first)"
        sections.append(pair_table([board.pairs[i] for i in rows], marks, title))
    lines = [(line, i == 0) for board in arena.boards for i, line in enumerate(sentences(board))]
    lines += [(line, False) for line in slices.sentences(arena)]
    lead, more = (tuple(line for line, leads in lines if leads is first) for first in (True, False))
    fixed = any(board.pairs.common["estimand"] == "these_questions" for board in arena.boards)
    return Summary(tuple(sections), marks.legend(), (*more, THESE_QUESTIONS) if fixed else more, lead)


class Marks:
    """Letters for diagnostics, in order of appearance, the same in all tables of a page."""

    def __init__(self) -> None:
        self._letters: dict[str, str] = {}
        self._clustered: dict[str, set[bool]] = {}

    def __call__(self, codes: Sequence[str], clustered: bool | None = None) -> str:
        for code in codes:
            if clustered is not None:
                self._clustered.setdefault(code, set()).add(clustered)
            i = len(self._letters)
            self._letters.setdefault(code, chr(ord("a") + i % 26) * (1 + i // 26))
        return " ".join(self._letters[code] for code in codes)

    def legend(self) -> tuple[tuple[str, str, str], ...]:
        out = []
        for code, letter in self._letters.items():
            kinds = self._clustered.get(code, set())
            out.append((letter, code, explained(code, next(iter(kinds)) if len(kinds) == 1 else None)))
        return tuple(out)


def board_name(board: BenchmarkResult) -> str:
    """Task and metric."""
    task, metric, scorer = board.key
    return shorten(f"{task} ({metric_name(metric, scorer)})" if task else metric_name(metric, scorer), NAME)


def file_names(arena: Arena) -> list[str]:
    """A file name for each benchmark, from its task and metric: plain ASCII and unique."""
    names = []
    for i, board in enumerate(arena.boards, 1):
        task, metric, scorer = board.key
        slug = re.sub(r"[^a-z0-9]+", "-", f"{task}-{metric}-{scorer if scorer != 'none' else ''}".lower()).strip("-")
        names.append(f"{i:02d}-{slug[:60].strip('-')}".rstrip("-"))
    return names


def sentences(board: BenchmarkResult) -> list[str]:
    """What a benchmark's pairs say, in two or three sentences."""
    row = board.benchmark
    out = []
    name = board_name(board)
    if board.pairs.common["estimand"] == "these_questions":
        name += " (estimand: these questions)"
    if row.best:
        best = [shorten(model, NAME) for model in row.best]
        level = f"{100 * board.pairs.common['level']:g} %"
        if len(best) == 1:
            out.append(f"{name}: {best[0]} is the best of {row.n_models} models ({level}).")
        else:
            some = ", ".join(best[:8]) + (f" and {len(best) - 8} more" if len(best) > 8 else "")
            these = f"{len(best)} of {row.n_models} models are not significantly worse than the best"
            out.append(f"{name}: {these} ({level}): {some}.")
    if odd := [shorten(item.model, NAME) for item in board.models if "mean_mismatch" in item.diagnostics]:
        out = [f"{out[0].rstrip('.') if out else name}; {', '.join(odd[:8])}: {ODD}."]
    if row.se_total is not None:
        digits = decimals(row.se_total.median)
        low, high = number(row.se_total.min, digits), number(row.se_total.max, digits)
        close = f"{row.n_close_pairs} pairs" if row.n_close_pairs > 1 else "one pair"
        text = (
            f"{name}: the total standard error of a difference is {number(row.se_total.median, digits)} "
            f"({f'from {low} to {high}, ' if low != high else ''}over the {close} differing by less than 5 total SEs)"
        )
        smallest, largest = _told_apart(board)
        found = [
            f"the {which} is {number(value, digits)}"
            for which, value in (
                (f"smallest difference found significant{_told_by(board)}", smallest),
                ("largest found not significant", largest),
            )
            if value is not None
        ]
        out.append("; ".join([text, ", ".join(found)] if found else [text]) + ".")
    return [*out, *rank_sentences(board, name), *_adjustment(board, name)]


def _adjustment(board: BenchmarkResult, name: str) -> list[str]:
    """How many pairs have another verdict than their own intervals would give."""
    taken_back = board.pairs.flags.get("not_after_adjustment")
    if taken_back is None:
        return []
    lost = int(taken_back.sum())
    all_ = lost + int(_better(board).sum())
    pairs = f"the {all_} pairs" if all_ > 1 else "the one pair"
    verb, whose = ("are", "their") if lost > 1 else ("is", "its")
    return [
        f"{name}: {f'{lost} of ' if all_ > 1 else ''}{pairs} whose own interval shows a difference {verb} no longer "
        f"significant after adjustment for all {len(board.pairs)} pairs, and {whose} verdict says so."
    ]


def _better(board: BenchmarkResult) -> BoolArray:
    """Which pairs have the verdict that one is better."""
    return np.isin(board.pairs.verdict, [decision.A, decision.B])


def _told_by(board: BenchmarkResult) -> str:
    """Where verdicts are adjusted for other pairs, that they are."""
    return " after adjustment" if "not_after_adjustment" in board.pairs.flags else ""


def _told_apart(board: BenchmarkResult) -> tuple[float | None, float | None]:
    """The smallest difference whose verdict is that one is better, and the largest that has another verdict."""
    size, better = np.abs(board.pairs.columns["diff"]), _better(board)
    tested = np.isfinite(size) & np.isfinite(board.pairs.columns["se"])
    smallest, largest = size[better & tested], size[~better & tested]
    return float(smallest.min()) if len(smallest) else None, float(largest.max()) if len(largest) else None


def _spread(value: Spread | None, digits: int | None = None, *, ranges: bool = True) -> str:
    if value is None:
        return MISSING
    shown = decimals(value.median) if digits is None else digits
    if value.min == value.max or not ranges:
        return number(value.median, shown)
    return f"{number(value.median, shown)} ({number(value.min, shown)} … {number(value.max, shown)})"


def benchmarks(arena: Arena, *, ranges: bool = True) -> Section:
    """One row for each benchmark: the noise that is characteristic of it, as median and range."""
    columns = (
        Column("Task", text=True),
        Column("Metric", text=True),
        Column("n", hint="questions"),
        Column("models", hint="how many there are", rank=1),
        Column("close pairs", hint="pairs differing by less than 5 total SEs, of all pairs", rank=2),
        Column("total SE", hint="of A − B with one answer per question: median over close pairs"),
        Column("data", hint="what is left of it with infinitely many answers", rank=7),
        Column("prediction", hint="what the models' own randomness adds", rank=7),
        Column("corr.", hint="correlation of two models' question means", rank=6),
        Column("A ≠ B", hint="share of questions that two models score differently", rank=3),
        Column("min sig.", hint="smallest difference found significant, each pair by its own interval", rank=1),
        Column("max n.s.", hint="largest difference found not significant, each pair by its own interval", rank=1),
        Column("vs Beta", hint="total SE over that of the Beta(p, 1 − p) theory", rank=8),
        Column("vs rule", hint="total SE over √(p(1 − p)/n)", rank=8),
        Column("unsolved", hint="questions that no model solves", rank=4),
        Column("signal/noise", hint="difference of adjacent sizes of a model family, in total SEs", rank=8),
    )
    rows = []
    for row in arena.benchmarks:
        digits = decimals(row.se_total.median if row.se_total else None, row.smallest_significant_diff)
        rows.append(
            (
                shorten(row.task, NAME),
                shorten(metric_name(row.metric, row.scorer), NAME),
                str(row.n_questions),
                str(row.n_models),
                f"{row.n_close_pairs} of {row.n_pairs}",
                _spread(row.se_total, ranges=ranges),
                _spread(row.se_data, ranges=ranges),
                _spread(row.se_prediction, ranges=ranges),
                _spread(row.correlation, 2, ranges=ranges),
                _spread(row.disagreement, 2, ranges=ranges),
                number(row.smallest_significant_diff, digits),
                number(row.largest_insignificant_diff, digits),
                _spread(row.beta_theory, 2, ranges=ranges),
                _spread(row.rule_of_thumb, 2, ranges=ranges),
                MISSING if row.solved_by_none is None else str(row.solved_by_none),
                _spread(row.signal_to_noise, 1, ranges=ranges),
            )
        )
    optional = ("data", "prediction", "vs Beta", "vs rule", "unsolved", "signal/noise")
    return Section("Benchmarks", *drop_empty(columns, rows, optional))


def models(board: BenchmarkResult, marks: Marks, title: str) -> Section:
    """One row for each model, the best first."""
    level = f"{100 * board.pairs.common['level']:g} %"
    top = max((max(model.pass_at_k) for model in board.models if model.pass_at_k), default=1)
    columns = (
        Column("Model", text=True),
        Column("Rank", hint="by the mean", rank=1),
        mean_column("mean"),
        mean_column("ci", level),
        *(mean_column(key) for key in ("se", "total", "data", "prediction")),
        Column("ranks", hint=f"that the model may have in truth; all models' together are right with {level}"),
        Column("ties", hint="models that it is not shown to differ from, all pairs tested together", rank=4),
        Column("in top", text=True, hint="whether it is among the K best of --top K"),
        Column("win rate", hint="mean over all rivals of wins + half of ties", rank=3),
        Column(f"pass@{top}", hint="chance that one of these many answers is right", rank=3),
        Column(f"pass^{top}", hint="chance that all of these many answers are right", rank=4),
        Column("best?", text=True, hint="not significantly worse than the best, adjusted for the choice"),
        *(mean_column(key) for key in ("n", "k", "missing")),
        NOTES,
    )
    passes = (f"pass@{top}", f"pass^{top}")
    rows = []
    for item in ranked(board):
        digits = decimals(item.se, item.mean)
        rows.append(
            (
                shorten(item.model, NAME),
                MISSING if item.rank is None else str(item.rank),
                number(item.mean, digits),
                interval(item.ci_low, item.ci_high, digits),
                number(item.se, digits),
                number(item.se_total, digits),
                data_noise(item, digits),
                number(item.se_prediction, digits),
                MISSING if item.rank_low is None or item.rank_high is None else span(item.rank_low, item.rank_high),
                MISSING if item.ties is None else str(item.ties),
                item.in_top or "",
                number(item.win_rate, 3),
                _pass(item.pass_at_k, item.pass_at_k_se, top),
                _pass(item.pass_hat_k, item.pass_hat_k_se, top),
                "yes" if item.among_best else "" if item.among_best is not None else MISSING,
                str(item.n_questions),
                span(item.repeats_min, item.repeats_max),
                str(item.n_missing) if item.n_missing else "",
                marks(item.diagnostics, item.cluster is not None),
            )
        )
    return Section(title, *drop_empty(columns, rows, ("data", "prediction", "in top", *passes, "missing", "")))


def _pass(values: Mapping[int, float] | None, errors: Mapping[int, float] | None, k: int) -> str:
    """pass@k or pass^k with its standard error."""
    value, se = (values or {}).get(k), (errors or {}).get(k)
    if value is None or k < 2:
        return MISSING
    digits = decimals(se, value)
    return number(value, digits) if se is None else f"{number(value, digits)} ± {number(se, digits)}"


def ranked(board: BenchmarkResult) -> list[Model]:
    """The models, the best first."""
    sign = 1.0 if board.pairs.common["higher_is_better"] is False else -1.0
    return sorted(board.models, key=lambda item: sign * item.mean if item.mean is not None else np.inf)


def chosen_pairs(board: BenchmarkResult, limit: int) -> list[int]:
    """At most `limit` pairs, in the arena's order; those closest in rank if there are more."""
    pairs = board.pairs
    if len(pairs) <= limit:
        return list(range(len(pairs)))
    place = {item.model: i for i, item in enumerate(ranked(board))}
    rank = np.array([place[name] for name in pairs.names])
    gap = np.abs(rank[pairs.a] - rank[pairs.b])
    order = np.lexsort((np.minimum(rank[pairs.a], rank[pairs.b]), gap))[:limit]
    return [int(i) for i in order]


def pair_table(items: Sequence[Difference], marks: Marks, title: str) -> Section:
    """One row for each pair."""
    level = f"{100 * items[0].level:g} %" if items else "95 %"
    columns = (
        Column("A", text=True),
        Column("B", text=True),
        difference_column("diff"),
        difference_column("ci", level),
        *map(difference_column, ("p", "p_adj", "test", "verdict", "se", "total", "data", "prediction")),
        *map(difference_column, ("corr", "wins", "p_sign", "n", "only")),
        NOTES,
    )
    rows = []
    for item in items:
        digits = decimals(item.se, item.diff or item.mean_a)
        wins = ":".join(f" {count(value)} " for value in (item.wins_a, item.wins_b, item.ties)).strip()
        rows.append(
            (
                shorten(item.model_a, NAME),
                shorten(item.model_b, NAME),
                number(item.diff, digits),
                interval(item.ci_low, item.ci_high, digits),
                p_text(item.p_value),
                p_text(item.p_adjusted),
                by_test(item),
                item.verdict,
                number(item.se, digits),
                number(item.se_total, digits),
                data_noise(item, digits),
                number(item.se_prediction, digits),
                number(item.correlation, 2),
                wins,
                p_text(item.p_sign),
                str(item.n_questions),
                f"{item.n_only_a} + {item.n_only_b}" if item.n_only_a or item.n_only_b else "",
                marks(item.diagnostics, item.cluster is not None),
            )
        )
    return Section(title, *drop_empty(columns, rows, ("data", "prediction", "unpaired n", "corr.", "")))


def question_table(board: BenchmarkResult, limit: int) -> Section:
    """One row for each question: the suspects, then the hardest first; at most `limit` of them."""
    q = board.questions
    tau = np.where(np.isnan(q.tau), np.inf, q.tau)
    hard = -np.nan_to_num(q.difficulty)
    order = np.lexsort((tau, hard, np.where(q.suspect, 0, 1)))[:limit]
    columns = (
        Column("Question", text=True),
        Column("Text", text=True),
        Column("Cluster", text=True),
        Column("difficulty", hint="1 − mean score over the models"),
        Column("models", hint="models that have a score", rank=2),
        Column("solved by", hint="models with at least one answer of score 1"),
        Column("tau", hint="Kendall's tau-b with the models' means over the other questions"),
        Column("p", hint="how often chance alone gives a tau as low"),
        Column("Suspect", text=True, hint="better models do worse on it, more clearly than chance explains"),
    )
    rows = [
        (
            shorten(q.question[i], NAME),
            shorten(q.text[i], 100) if q.text else "",
            shorten(q.cluster[i] or "", 40),
            number(None if np.isnan(q.difficulty[i]) else float(q.difficulty[i]), 3),
            str(int(q.n_models[i])),
            "" if q.n_solved is None else str(int(q.n_solved[i])),
            number(None if np.isnan(q.tau[i]) else float(q.tau[i]), 3),
            p_text(None if np.isnan(q.p_tau[i]) else float(q.p_tau[i])),
            "suspect" if q.suspect[i] else "",
        )
        for i in order
    ]
    return Section("Questions", *drop_empty(columns, rows, ("Text", "Cluster", "solved by")))


SHOWN = 8
"""Models that a sentence names."""
SIMILAR = 0.7
"""Median Kendall τ, 17 pairs of models in 20 in the same order, from which a ranking is said to stay similar."""


def rank_sentences(board: BenchmarkResult, name: str) -> list[str]:
    """Which models may be among the best, how stable the ranking is, and on how many questions the best differ."""
    row = board.benchmark
    out = []
    asked = [item for item in board.models if item.in_top is not None]
    if asked:
        sure = [shorten(item.model, NAME) for item in asked if item.in_top == "yes"]
        maybe = [shorten(item.model, NAME) for item in asked if item.in_top == "maybe"]
        place = "the best" if row.n_top == 1 else f"among the {row.n_top} best"
        out.append(
            f"{name}: surely {place}: {_list(sure)}; perhaps: {_list(maybe)} "
            f"({100 * board.pairs.common['level']:g} %, all together)."
        )
    if row.order_tau is not None and row.same_best is not None:
        leaders = [shorten(item.model, NAME) for item in board.models if item.rank == 1]
        first = f"{_list(leaders)} is" if len(leaders) == 1 else "the same model is"
        out.append(
            f"{name}: when the questions are resampled, the ranking {_stays(row.order_tau)} (median Kendall τ "
            f"{number(row.order_tau, 2)}) and {first} first in {100 * row.same_best:.0f} % of resamples; that is "
            "stability, not a test."
        )
    if row.dead_for_top is not None and row.n_top is not None and row.n_questions:
        left = row.n_questions - row.dead_for_top
        out.append(
            f"{name}: the {row.n_top} models at the top score differently on {left} of {row.n_questions} questions "
            f"({100 * left / row.n_questions:.0f} %)."
        )
    return out


def _stays(tau: float) -> str:
    """What the median τ of the resamples says, in words."""
    return "stays similar" if tau >= SIMILAR else "changes"


def _list(names: list[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return (", ".join(names[:SHOWN]) or "none") + more
