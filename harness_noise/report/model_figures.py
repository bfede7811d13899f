"""The figures of an arena that show its models one by one: means, ranks, differences to one of them, pass@k."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from . import forest as rows_of
from .arena_summary import ranked
from .canvas import COLOURS, DASHES, LINE, MUTED, Axis, Drawing, Picture, name
from .columns import decimals, interval, metric_name, number, span

if TYPE_CHECKING:
    from ..results.arena import BenchmarkResult


def measure(board: BenchmarkResult) -> str:
    return name(metric_name(board.benchmark.metric, board.benchmark.scorer), 28)


def level_of(board: BenchmarkResult) -> str:
    return f"{100 * board.pairs.common['level']:g} %"


def model_title(board: BenchmarkResult, m: int) -> str:
    """A model's name and its numbers."""
    item = board.models[m]
    digits = decimals(item.se, item.mean)
    text = f"{name(item.model)}: {number(item.mean, digits)}"
    if item.ci_low is not None:
        text += f" {interval(item.ci_low, item.ci_high, digits)}"
    if item.rank_low is not None and item.rank_high is not None:
        text += f", rank {span(item.rank_low, item.rank_high)}"
    return text


def means(board: BenchmarkResult) -> Picture | None:
    """The means with their intervals, the best first."""
    order = {item.model: i for i, item in enumerate(board.models)}
    shown = [item for item in ranked(board) if item.mean is not None]
    if not shown:
        return None
    rows = [
        rows_of.Row(item.model, item.ci_low, item.mean or 0.0, item.ci_high, model_title(board, order[item.model]),
                    hollow=not item.among_best, models=str(order[item.model]))
        for item in shown[: rows_of.ROWS]
    ]  # fmt: skip
    best = len(board.benchmark.best)
    alt = f"The {len(rows)} models with the best means" if len(shown) > len(rows) else f"{len(rows)} models"
    filled = f"; filled: the {best} that are not significantly worse than the best" if best else ""
    alt += f", {level_of(board)} intervals{filled}."
    label = f"{measure(board)}, {level_of(board)} CI"
    return rows_of.forest("means", "Means", alt, rows, label)


def ranks(board: BenchmarkResult) -> Picture | None:
    """The ranks that each model may have. Mogstad, Romano, Shaikh & Wilhelm (2024)."""
    order = {item.model: i for i, item in enumerate(board.models)}
    shown = [item for item in ranked(board) if item.rank_low is not None and item.rank_high is not None]
    if not shown:
        return None
    rows = [
        rows_of.Row(item.model, item.rank_low, item.rank or 0, item.rank_high, model_title(board, order[item.model]),
                    COLOURS[2], models=str(order[item.model]))
        for item in shown[: rows_of.ROWS]
    ]  # fmt: skip
    alt = f"The ranks that {len(rows)} models may have in truth, all of them together with {level_of(board)}; the mark "
    return rows_of.forest("ranks", "Ranks", alt + "is the rank of the mean.", rows, "rank, 1 the best", whole=True)


def passes(board: BenchmarkResult) -> Picture | None:
    """pass@k of the models with several answers."""
    curves = [
        (m, model.pass_at_k) for m, model in enumerate(board.models) if model.pass_at_k and len(model.pass_at_k) > 1
    ]
    if not curves:
        return None
    curves.sort(key=lambda item: -item[1][1])
    most = max(max(curve) for _, curve in curves)
    values = [value for _, curve in curves for value in curve.values()]
    drawing = Drawing(Axis(0.8, most + 0.2, "k answers", whole=True), Axis.around(values, "pass@k"))
    for i, (m, curve) in reversed(list(enumerate(curves))):
        first, model = i < len(COLOURS), name(board.models[m].model)
        drawing.line(list(curve), list(curve.values()), COLOURS[i] if first else LINE, dash=DASHES[i] if first else "",
                     width=1.6 if first else 0.9, models=str(m), title=model)  # fmt: skip
        if first:
            titles = [f"{model}: pass@{k} = {value:.3f}" for k, value in curve.items()]
            drawing.points(list(curve), list(curve.values()), i, model, titles, [str(m)] * len(curve))
    drawing.legend.reverse()
    m, curve = curves[0]
    k = max(curve)
    best = name(board.models[m].model)
    alt = f"{len(curves)} models; highest is {best} with {curve[1]:.3f} at k = 1 and {curve[k]:.3f} at k = {k}."
    return drawing.done("pass-at-k", "pass@k", alt)


def forest(board: BenchmarkResult, baseline: str | None = None) -> Picture | None:
    """Differences of all models to one of them: the baseline, or the best."""
    sign = -1.0 if board.pairs.common["higher_is_better"] is False else 1.0
    means = [-np.inf if model.mean is None else sign * model.mean for model in board.models]
    names = [model.model for model in board.models]
    against = names.index(baseline) if baseline in names else int(np.argmax(means))
    found = sorted(_differences(board, against), key=lambda item: -sign * item[1])
    if not found:
        return None
    left_out = max(0, len(found) - rows_of.ROWS)
    if left_out:
        found = sorted(sorted(found, key=lambda item: abs(item[1]))[: rows_of.ROWS], key=lambda item: -sign * item[1])
    rows = []
    for m, diff, low, high in found:
        apart = low > 0 or high < 0
        digits = decimals((high - low) / 4, diff)
        title = f"{name(names[m])} − {name(names[against])}: {number(diff, digits)} {interval(low, high, digits)}"
        rows.append(rows_of.Row(names[m], low, diff, high, title, COLOURS[0] if apart else MUTED, not apart, str(m)))
    apart_ = sum(low > 0 or high < 0 for _, _, low, high in found)
    alt = f"{apart_} of {len(rows)} models have an interval that leaves out 0, no difference to {name(names[against])}"
    if left_out:
        alt += f"; the {left_out} models furthest away are not drawn"
    label = f"difference to {name(names[against], 24)}, {level_of(board)} CI"
    return rows_of.forest("forest", f"Differences to {name(names[against])}", alt + ".", rows, label, zero=True)


def _differences(board: BenchmarkResult, against: int) -> Iterator[tuple[int, float, float, float]]:
    pairs: Any = board.pairs
    c = pairs.columns
    for i in np.flatnonzero((pairs.a == against) | (pairs.b == against)):
        diff, low, high = float(c["diff"][i]), float(c["ci_low"][i]), float(c["ci_high"][i])
        if not np.isfinite(low):
            continue
        if pairs.b[i] == against:
            yield int(pairs.a[i]), diff, low, high
        else:
            yield int(pairs.b[i]), -diff, -high, -low
