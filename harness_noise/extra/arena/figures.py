"""Figures of an arena's benchmarks, whose marks name their pairs or models."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ...arrays import BoolArray, FloatArray, IntArray
from ...errors import counted
from ...io.atomic import write_text
from ...report import canvas, fmt
from ...report.canvas import COLOURS, DASHES, LINE, MUTED, ROWS, Axis, Drawing, Picture, Row, forest, name, short_name
from ...report.figures import numbers
from ...results.rows import Difference, Estimate
from ...stats.intervals import critical
from .. import sizes
from . import benchmark
from .report import checkpoints, chosen_pairs, file_names, judged, ranked, step_text, told_apart
from .results import Arena, BenchmarkResult, Checkpoint, Model

LABELLED = 400
"""Pairs that are drawn one by one. If there are more, those closest in rank are, over a picture of all."""


def pictures(arena: Arena, board: BenchmarkResult) -> list[Picture]:
    """Return the pictures of a benchmark (means, pairs, noise, …) that its data suffice for."""
    drawn = (
        *(steps(arena, board), means(board), frontier(board), matrix(board)),
        differences(board, arena.baseline),
        *(noise(board), separation(board), accuracies(board)),
        *(heatmap(board), difficulty(board), passes(board)),
    )
    return [picture for picture in drawn if picture is not None]


def save(arena: Arena, folder: Path) -> list[Path]:
    """Write every picture of every benchmark to a file `<benchmark>-<figure>.svg`. Return the paths."""
    written = []
    for board, stem in zip(arena.boards, file_names(arena), strict=True):
        for drawn in pictures(arena, board):
            path = folder / f"{stem}-{drawn.name}.svg"
            write_text(path, canvas.svg(drawn))
            written.append(path)
    return written


def _cloud(
    drawing: Drawing, board: BenchmarkResult, rows: IntArray, x: FloatArray, y: FloatArray
) -> canvas.Points | None:
    """Draw all these pairs as one image of points if one of them is not drawn singly. Return their places, or None."""
    if _single(board)[rows].all():
        return None
    drawing.cloud(x, y)
    return canvas.Points(rows, drawing.px(x), drawing.py(y))


def _single(board: BenchmarkResult) -> BoolArray:
    """Return (P,) True for the pairs that are drawn as a marker with a tooltip, the rest only as an image."""
    return np.isin(np.arange(len(board.pairs)), chosen_pairs(board, LABELLED))


def _marks(
    drawing: Drawing, board: BenchmarkResult, rows: IntArray, x: FloatArray, y: FloatArray, series: int, caption: str
) -> None:
    """Draw markers with tooltips for those of these pairs that are drawn singly."""
    keep, pairs = _single(board)[rows], board.pairs
    titles = [pair_title(pairs[i]) for i in rows[keep].tolist()]
    models = [f"{a} {b}" for a, b in zip(pairs.a[rows[keep]], pairs.b[rows[keep]], strict=True)]
    drawing.points(x[keep], y[keep], series, caption, titles, models)


def pair_title(row: Difference) -> str:
    """Return the tooltip of a pair: both names, difference, standard error and verdict."""
    total = "" if row.se_total is None else f", SE (1 answer) {fmt.shown(row, row.se_total)}"
    return f"{name(row.model_a)} − {name(row.model_b)}: {numbers(row)}{total}; {fmt.verdict_words(row)}"


def noise(board: BenchmarkResult) -> Picture | None:
    """Draw pairs' standard errors by mean accuracy, with theoretical curves [Wang, figure 1]. None: no close pair."""
    c = board.pairs.columns
    with np.errstate(invalid="ignore"):
        close = np.flatnonzero((np.abs(c["diff"]) < 5 * c["se_total"]) & (c["n_questions"] > 1))
    if len(close) == 0:
        return None
    mean = (c["mean_a"] + c["mean_b"])[close] / 2
    row = board.benchmark
    unit = row.beta_theory is not None
    parts = [("SE (1 answer)", "se_total")]
    if np.isfinite(c["se_data"][close]).any():
        parts += [("data", "se_data"), ("prediction", "se_prediction")]
    curves = _theory(board, close) if unit else []
    top = [float(np.nanmax(c[column][close])) for _, column in parts] + [float(y.max()) for _, y, *_ in curves]
    x = canvas.axis_of(mean, f"mean of the pair ({measure(board)})", _scale(board), mean=True)
    x = replace(x, low=-0.02, high=1.02) if unit else x
    y = replace(canvas.axis_of(top, "SE of A − B", _scale(board), mean=False), low=0, high=1.05 * max(top) or 1.0)
    drawing = Drawing(x, y)
    points = _cloud(drawing, board, close, mean, c["se_total"][close])
    for p, se, colour, dash, caption in curves:
        drawing.line(p, se, colour, dash=dash, caption=caption)
    for i, (caption, column) in enumerate(parts):
        finite = np.isfinite(c[column][close])
        _marks(drawing, board, close[finite], mean[finite], c[column][close][finite], i, caption)
    alt, total = f"{counted(len(close), 'close pair')} of {len(board.pairs):,}", row.se_total
    if total is not None:
        digits = fmt.decimals(total.median)
        median, low, high = (fmt.amount(row, x, digits) for x in (total.median, total.min, total.max))
        alt += f". SE (1 answer) {median} at the median, from {low} to {high}"
    if row.beta_theory is not None:
        alt += f", which is {row.beta_theory.median:.2f} times what the Beta theory says"
    return drawing.done("noise", "Noise of a difference against accuracy", f"{alt}.", points)


def _theory(board: BenchmarkResult, close: IntArray) -> list[tuple[FloatArray, FloatArray, str, str, str]]:
    """Return (x, y, colour, dash, caption) of the theoretical curves of a pair's standard error by accuracy."""
    row = board.benchmark
    n = float(np.median(board.pairs.columns["n_questions"][close]))
    solved = 1 - (row.solved_by_none or 0) / max(1, row.n_questions)
    p = np.linspace(0, 1, 101)
    reached = solved * p  # no mean lies above the share of questions that any model solves
    beta = np.sqrt(np.maximum(sizes.beta_variance(reached, solved), 0) / n)
    return [
        (reached, beta, COLOURS[0], "", "SE (1 answer), Beta(p, 1 − p) theory"),
        (p, np.sqrt(p * (1 - p) / n), MUTED, DASHES[1], "rule of thumb, √(p(1−p)/n)"),
        (p, np.sqrt(2 * p * (1 - p) / n), MUTED, DASHES[3], "independent answers"),
    ]


def separation(board: BenchmarkResult) -> Picture | None:
    """Draw pairs by |A − B| (x) and share of questions that differ (y). None without a pair, or if scores leave 0–1."""
    c = board.pairs.columns
    n = c["n_questions"]
    rows = np.flatnonzero((n > 1) & np.isfinite(c["diff"]) & ~board.pairs.withheld)
    if len(rows) == 0 or board.benchmark.beta_theory is None:
        return None
    apart = (c["wins_a"] + c["wins_b"])[rows] / n[rows]
    diff = np.abs(c["diff"][rows])
    significant = told_apart(board)[rows]
    right, top = max(float(diff.max()), 1e-9) * 1.05, max(float(apart.max()), 1e-9) * 1.05
    across = Axis(0, right, "|A − B|, points", times=100)
    drawing = Drawing(across, Axis(0, top, "A ≠ B, share of questions", times=100, unit="%"))
    x = np.linspace(0, right, 120)
    drawing.area(x, np.zeros(len(x)), np.minimum(x, top))
    size = float(np.median(n[rows]))
    for i, p in enumerate((0.05, 0.01, 0.001)):
        y = x**2 * (1 + size / float(critical(1 - p)) ** 2)
        drawing.line(x, np.where(y <= top, y, np.nan), dash=DASHES[i], caption=f"p = {p:g}")
    points = _cloud(drawing, board, rows, diff, apart)
    for kept, series, caption in ((~significant, 1, "not shown to differ"), (significant, 0, "shown to differ")):
        _marks(drawing, board, rows[kept], diff[kept], apart[kept], series, caption)
    alt = (
        f"Shown to differ: {int(significant.sum()):,} of {counted(len(rows), 'pair')}. The lines show the difference "
        "with p = 0.05, 0.01 and 0.001 (one answer each) at each level of disagreement. The shaded corner is "
        "impossible, as models cannot differ by more than they disagree."
    )
    return drawing.done("separation", "Difference against disagreement", alt, points)


_BANDS = ((0.001, "p < 0.001"), (0.01, "p < 0.01"), (0.05, "p < 0.05"), (2.0, "p ≥ 0.05"))


def accuracies(board: BenchmarkResult) -> Picture | None:
    """Draw each pair's higher mean against its lower mean, coloured by p-value. None if no pair has one."""
    c = board.pairs.columns
    rows = np.flatnonzero(np.isfinite(c["p_value"]) & ~board.pairs.withheld)
    if len(rows) == 0:
        return None
    high, low = np.maximum(c["mean_a"], c["mean_b"])[rows], np.minimum(c["mean_a"], c["mean_b"])[rows]
    band = np.searchsorted([limit for limit, _ in _BANDS], c["p_value"][rows], side="right")
    across = canvas.axis_of(low, f"lower mean ({measure(board)})", _scale(board), mean=True)
    drawing = Drawing(across, canvas.axis_of(high, "higher mean", _scale(board), mean=True))
    ends = np.array([max(drawing.x.low, drawing.y.low), min(drawing.x.high, drawing.y.high)])
    points = _cloud(drawing, board, rows, low, high)
    if ends[1] > ends[0]:
        drawing.line(ends, ends, MUTED, dash=DASHES[1])
    for i, (_, caption) in enumerate(_BANDS):
        at = band == i
        if at.any():
            _marks(drawing, board, rows[at], low[at], high[at], (0, 2, 3, 1)[i], caption)
    counts = ", ".join(
        f"{counted(int((band == i).sum()), 'pair')} with {caption}" for i, (_, caption) in enumerate(_BANDS)
    )
    return drawing.done("accuracies", "Which means differ significantly", f"{counts} (unadjusted).", points)


_CIVIDIS = ((38, 78, 150), (78, 98, 140), (110, 118, 128), (145, 142, 116), (195, 180, 98), (254, 232, 56))
"""Cividis, its dark end lighter than a dark page, so that a missing score is told from a low one."""


NAMED = 12
"""Models up to which the caption of the heat map names them all."""


def heatmap(board: BenchmarkResult) -> Picture | None:
    """Draw scores as a grid, questions by models, both sorted by mean [Wang, figure 2]. None without scores."""
    scores = board.scores
    if min(scores.shape) == 0:
        return None
    models = np.argsort([np.inf if m.mean is None else board.pairs.sign * m.mean for m in board.models], kind="stable")
    W = ~np.isnan(scores)
    easy = np.where(W, scores, 0.0).sum(axis=1) / np.maximum(W.sum(axis=1), 1)
    image = _shrunk(scores[np.argsort(-easy, kind="stable")][:, models])
    low, high = (float(np.nanmin(image)), float(np.nanmax(image))) if np.isfinite(image).any() else (0.0, 1.0)
    pixels = np.dstack([_colours(image, low, high), np.where(np.isnan(image), 0, 255)]).astype(np.uint8)
    questions = "questions, easiest first" if board.benchmark.beta_theory else "questions, highest scores first"
    x = Axis(0, len(models), "models, worst to best", ticked=False)
    drawing = Drawing(x, Axis(0, 1, questions, ticked=False), left=24, bottom=24)
    drawing.image(pixels, "image-rendering: pixelated")
    for i, m in enumerate(models.tolist()):
        title = model_title(board.models[m])
        drawing.bar((i, i + 1), (0, 1), canvas.INK, opacity=0, title=title, data_m=str(m))
    for value in np.linspace(low, high, 3 if high > low else 1):
        fill = "#{:02x}{:02x}{:02x}".format(*_colours(value, low, high).astype(int))
        swatch = canvas.element("rect", x=-6, y=-6, width=12, height=12, fill=fill)
        drawing.legend.append((swatch, fmt.shown(board.benchmark, float(value), mean=True, digits=2)))
    missing = int((~W).sum())
    if missing:
        drawing.legend.append((canvas.element("path", d="M-6-6H6V6H-6Z", fill="none", stroke=MUTED), "missing"))
    alt = f"{counted(scores.shape[0], 'question')} by {counted(scores.shape[1], 'model')}, both sorted by their means"
    if len(models) <= NAMED:
        alt += f". From left to right: {', '.join(name(board.models[m].model, 30) for m in models.tolist())}"
    alt += f". {missing} scores are missing and left blank." if missing else "."
    return drawing.done("heatmap", "Scores by question and model", alt)


def _colours(values: Any, low: float, high: float) -> FloatArray:
    """Return (…, 3) RGB colours for values on a scale from `low` to `high`."""
    at = np.linspace(low, high if high > low else low + 1, len(_CIVIDIS))
    return np.stack([np.interp(np.nan_to_num(values), at, colour) for colour in zip(*_CIVIDIS, strict=True)], axis=-1)


def _shrunk(image: Any, height: int = 400, width: int = 400) -> Any:
    """Return the image reduced to at most height × width pixels by averaging. NaN where nothing is scored."""
    for axis, limit in ((0, height), (1, width)):
        if image.shape[axis] > limit:
            edges = np.linspace(0, image.shape[axis], limit + 1).astype(int)[:-1]
            scored = np.add.reduceat(~np.isnan(image), edges, axis=axis)
            with np.errstate(invalid="ignore"):
                image = np.add.reduceat(np.nan_to_num(image), edges, axis=axis) / np.where(scored > 0, scored, np.nan)
    return image


def difficulty(board: BenchmarkResult) -> Picture | None:
    """Draw question difficulty for groups of similarly accurate models [Wang, figure 5]. None unless scores in 0–1."""
    if board.benchmark.beta_theory is None:
        return None
    from scipy.special import betainc

    drawing = Drawing(Axis(0, 1, "mean score of a question"), Axis(0, 1.02, "share at or below"))
    x = np.linspace(0, 1, 26)
    words = []
    for i, (low, high, size, values) in enumerate(_difficulties(board)):
        steps, counts = np.unique(values, return_counts=True)
        up = [0.0, *np.repeat(np.cumsum(counts) / len(values), 2)]
        models = f"{counted(size, 'model')} at {low:.2f}–{high:.2f}"
        fit = benchmark.fit_beta(values)
        fitted = f"Beta({fit[0]:.2f}, {fit[1]:.2f})" if fit else "no fit"
        drawing.curve([*np.repeat(steps, 2), 1.0], up, i, caption=models, title=f"{models}: {fitted}")
        if fit is not None:
            y = betainc(*fit, x)
            drawing.points(x, y, i, fitted, [f"{fitted}: {b:.2f} at {a:.2f}" for a, b in zip(x, y, strict=True)])
        words.append(f"models at {low:.2f} to {high:.2f}: {fitted}")
    alt = f"Lines are data, marks fits. {'; '.join(words)}."
    return drawing.done("difficulty", "Distribution of difficulty by accuracy", alt)


def _difficulties(board: BenchmarkResult) -> list[tuple[float, float, int, FloatArray]]:
    """Return (lowest mean, highest mean, models, sorted (n,) question means) of up to four groups of models."""
    means = np.array([np.nan if model.mean is None else model.mean for model in board.models])
    scored = np.flatnonzero(np.isfinite(means))
    groups = []
    for part in np.array_split(scored[np.argsort(means[scored], kind="stable")], min(4, len(scored))):
        block = board.scores[:, part]
        block = block[np.isfinite(block).any(axis=1)]
        if len(block):
            values = np.sort(np.nanmean(block, axis=1))
            groups.append((float(means[part].min()), float(means[part].max()), len(part), values))
    return groups


def _level(board: BenchmarkResult) -> str:
    return fmt.percent(board.pairs.common["level"])


def _scale(board: BenchmarkResult) -> fmt.Scale:
    return fmt.scale_of(board.benchmark)


def measure(board: BenchmarkResult) -> str:
    return name(fmt.metric_name(board.benchmark.metric, board.benchmark.scorer), 28)


def _mean_caption(board: BenchmarkResult) -> str:
    return f"{measure(board)}, {_level(board)} CI"


def _interval_or_mean(row: Estimate | Checkpoint) -> tuple[float, float, float]:
    """Return (low, mean, high) of a row's interval. A missing limit is replaced by the mean, a missing mean by 0."""
    mean = row.mean or 0.0
    return mean if row.ci_low is None else row.ci_low, mean, mean if row.ci_high is None else row.ci_high


def _mean_axis(rows: Iterable[Estimate | Checkpoint], board: BenchmarkResult) -> Axis:
    ends = [end for row in rows for end in _interval_or_mean(row)]
    return canvas.axis_of(ends, _mean_caption(board), _scale(board), mean=True)


def model_title(row: Model) -> str:
    """Return the tooltip of a model: its name, mean, interval and possible ranks."""
    ranks = "" if row.rank_low is None or row.rank_high is None else f", rank {fmt.span(row.rank_low, row.rank_high)}"
    return f"{name(row.model)}: {numbers(row)}{ranks}"


def _models(board: BenchmarkResult) -> list[tuple[Model, str]]:
    """Return (model's row, its index as text) for all models, the best first."""
    place = {row.model: str(i) for i, row in enumerate(board.models)}
    return [(row, place[row.model]) for row in ranked(board)]


def means(board: BenchmarkResult, name: str = "") -> Picture | None:
    """Draw the ROWS best models' means with intervals, `name` before the axis caption. None without a mean."""
    rows = [
        Row(row.model, row.ci_low, row.mean, row.ci_high, model_title(row), hollow=not row.among_best, models=place)
        for row, place in _models(board)
        if row.mean is not None
    ]
    if not rows:
        return None
    best = len(board.benchmark.best)
    alt = f"The {ROWS} models with the best means" if len(rows) > ROWS else f"{len(rows)} models"
    filled = f"the {best} that are not significantly worse than the best" if best > 1 else "the best"
    alt += f", {_level(board)} intervals{f'; filled: {filled}' if best else ''}."
    return forest("means", "Means", alt, rows[:ROWS], f"{name}{_mean_caption(board)}", scale=_scale(board))


def frontier(board: BenchmarkResult) -> Picture | None:
    """Draw each model's score against its cost (or another measure), with both intervals. None without costs."""
    if board.beside is None:
        return None
    cost = {row.model: row for row in board.beside.models if row.mean is not None}
    both = [(row, place) for row, place in _models(board) if row.mean is not None and row.model in cost]
    if not both:
        return None
    across = _mean_axis([cost[row.model] for row, _ in both], board.beside)
    drawing = Drawing(across, _mean_axis([row for row, _ in both], board))
    counts = []
    for i, (where, caption) in enumerate((("yes", "on the frontier"), ("open", "open"), ("no", "beaten in both"))):
        kept = [(row, cost[row.model], place) for row, place in both if (row.frontier or "open") == where]
        counts.append(f"{len(kept)} {caption}")
        for row, other, place in kept:
            drawing.line(_interval_or_mean(other), [row.mean] * 3, COLOURS[i], data_m=place)
            drawing.line([other.mean] * 3, _interval_or_mean(row), COLOURS[i], data_m=place)
        if kept:
            x, y = [other.mean for _, other, _ in kept], [row.mean for row, *_ in kept]
            titles = [f"{model_title(row)}; {numbers(other)}" for row, other, _ in kept]
            drawing.points(x, y, i, caption, titles, [place for *_, place in kept])
    measured = f"{len(both)} models by score and {board.beside.benchmark.metric}, with intervals"
    return drawing.done("frontier", "Frontier", f"{measured}: {', '.join(counts)}.")


MATRIX = 24
"""Models of which every pair has a cell."""


def matrix(board: BenchmarkResult) -> Picture | None:
    """Draw a grid of the 24 best models' pairs: the left one better (+), worse (−), or unclear. None below 3 models."""
    rows = _models(board)[:MATRIX]
    M = len(rows)
    if M < 3:
        return None
    at = {int(place): i for i, (_, place) in enumerate(rows)}
    left = canvas.name_width(row.model for row, _ in rows)
    side = min(34.0, (canvas.WIDTH - left - 10) / M)
    letters = min(14.0, 0.8 * side)
    x, y = Axis(0, M, ticked=False), Axis(M, 0, ticked=False)
    drawing = Drawing(x, y, side * M + 18, left, right=canvas.WIDTH - left - side * M, top=8, bottom=10)

    def write(x: float, y: float, words: str, **style: str) -> None:
        drawing.text(float(drawing.px(x)), float(drawing.py(y)) + 0.35 * letters, words, **style)

    for i, (row, place) in enumerate(rows):
        write(i + 0.85, i + 0.5, short_name(row.model), text_anchor="end", fill=canvas.INK, data_m=place)
    pairs, apart = board.pairs, 0
    among = judged(board) & np.isin(pairs.a, list(at)) & np.isin(pairs.b, list(at))
    for k in np.flatnonzero(among).tolist():
        pair, a, b = pairs[k], int(pairs.a[k]), int(pairs.b[k])
        ahead = {"A better": 1, "B better": -1}.get(pair.verdict, 0) * (1 if at[a] < at[b] else -1)
        apart += ahead != 0
        row_, column = sorted((at[a], at[b]))
        colour = {1: COLOURS[0], -1: COLOURS[1]}.get(ahead, LINE)
        title = f"{pair_title(pair)}; adjusted p {fmt.equals_p(pair.p_adjusted)}"
        across, down = (column + 0.04, column + 0.96), (row_ + 0.04, row_ + 0.96)
        drawing.bar(across, down, colour, title=title, data_m=f"{a} {b}")
        if ahead:
            sign = {"fill": canvas.PAPER, "font_weight": "700", "font_size": f"{letters:.0f}", "pointer_events": "none"}
            write(column + 0.5, row_ + 0.5, "+" if ahead > 0 else "−", text_anchor="middle", **sign)
    of = f"the {M} best models" if len(board.models) > M else f"{M} models"
    alt = f"Each cell is a pair of {of}: the model to its left against the one below it. + better, − worse, grey "
    return drawing.done(
        "matrix",
        "Every pair",
        f"{alt}not shown to differ. Shown to differ, all tested together: {counted(apart, 'pair')}.",
    )


def steps(arena: Arena, board: BenchmarkResult) -> Picture | None:
    """Draw means of training checkpoints by step, each run a line with a band. None if no run has two."""
    series = [rows for _, rows in checkpoints(arena, board.key)]
    every = [[row for row in rows if row.mean is not None and row.ci_low is not None] for rows in series]
    drawn = [rows for rows in every if rows]
    if not any(len(rows) > 1 for rows in drawn):
        return None
    place = {row.model: str(i) for i, row in enumerate(board.models)}
    across = Axis.around([row.step for rows in drawn for row in rows], "step")
    drawing = Drawing(across, _mean_axis([row for rows in drawn for row in rows], board))
    for i, rows in enumerate(drawn):
        x, colour = [row.step for row in rows], COLOURS[i % len(COLOURS)]
        low, mean, high = zip(*map(_interval_or_mean, rows), strict=True)
        drawing.area(x, low, high, colour, 0.16)
        drawing.curve(x, mean, i, caption=rows[0].series if len(drawn) > 1 else "")
        for row in rows:
            title = f"step {step_text(row.step)}: {numbers(row)}"
            if row.since_first is not None:
                since = fmt.amount(row, row.since_first)
                title += f". Since the first {since}, adjusted p {fmt.equals_p(row.p_first)}"
            mark, about = (row.step,) * 3, place.get(row.model, "")
            drawing.interval(mark, row.mean or 0.0, colour, hollow=not row.changed, title=title, data_m=about)
    band = f"The band is the {_level(board)} interval of each mean. Filled marks differ from the first checkpoint by "
    title = f"Checkpoints, {name(fmt.what_of(board.benchmark), 60)}"
    return drawing.done("steps", title, f"{band}more than noise, paired by question.")


def passes(board: BenchmarkResult) -> Picture | None:
    """Draw pass@k against k for models with several answers per question. None if there are none."""
    held = [(m, model.pass_at_k or {}) for m, model in enumerate(board.models)]
    curves = sorted(((m, curve) for m, curve in held if len(curve) > 1), key=lambda entry: -entry[1][1])
    if not curves:
        return None
    most = max(max(curve) for _, curve in curves)
    values = [value for _, curve in curves for value in curve.values()]
    drawing = Drawing(Axis(0.8, most + 0.2, "k answers", whole=True), Axis.around(values, "pass@k"))
    for i, (m, curve) in reversed(list(enumerate(curves))):
        model, x, y, about = name(board.models[m].model), list(curve), list(curve.values()), str(m)
        if i >= len(COLOURS):
            drawing.line(x, y, LINE, width=0.9, data_m=about, title=model)
            continue
        drawing.curve(x, y, i, data_m=about, title=model)
        titles = [f"{model}: pass@{k} = {value:.3f}" for k, value in curve.items()]
        drawing.points(x, y, i, model, titles, [about] * len(x))
    drawing.legend.reverse()
    m, curve = curves[0]
    best, k = name(board.models[m].model), max(curve)
    alt = f"{len(curves)} models. Highest is {best} with {curve[1]:.3f} at k = 1 and {curve[k]:.3f} at k = {k}."
    return drawing.done("pass-at-k", "pass@k", alt)


def differences(board: BenchmarkResult, baseline: str | None = None) -> Picture | None:
    """Draw the differences of the ROWS closest models to the baseline, or to the best. None if no pair has limits."""
    pairs, names = board.pairs, board.pairs.names
    means = [-np.inf if model.mean is None else pairs.sign * model.mean for model in board.models]
    against = names.index(baseline) if baseline in names else int(np.argmax(np.round(means, 12)))
    rival, rows, told = name(names[against]), [], told_apart(board)
    for i in np.flatnonzero((pairs.a == against) | (pairs.b == against)).tolist():
        turn = 1 if pairs.b[i] == against else -1
        diff, *ends = (turn * float(pairs.columns[column][i]) for column in ("diff", "ci_low", "ci_high"))
        if not np.isfinite(ends[0]):
            continue
        m, (low, high) = int(pairs.a[i] + pairs.b[i] - against), sorted(ends)
        apart = bool(told[i])
        title = f"{name(names[m])} − {rival}: {_difference_text(board.benchmark, diff, low, high)}"
        rows.append(Row(names[m], low, diff, high, title, COLOURS[0] if apart else MUTED, not apart, str(m)))
    if not rows:
        return None
    shown = sorted(sorted(rows, key=lambda row: abs(row.value))[:ROWS], key=lambda row: -pairs.sign * row.value)
    n_apart = sum(not row.hollow for row in shown)
    alt = f"{n_apart} of {len(shown)} models {'is' if n_apart == 1 else 'are'} shown to differ from {rival}, as the "
    alt += "verdicts have it. Each interval is of its own pair"
    if len(rows) > ROWS:
        alt += f". The {len(rows) - ROWS} models furthest away are not drawn"
    caption = f"difference to {name(names[against], 24)}, {_level(board)} CI"
    sides = ("worse", "better") if pairs.sign > 0 else ("better", "worse")
    return forest("forest", f"Differences to {rival}", alt + ".", shown, caption, sides=sides, scale=_scale(board))


def _difference_text(row: Any, diff: float, low: float, high: float) -> str:
    """Return a difference and its interval as text with the unit: "2.1 points [0.3, 3.9]"."""
    digits = fmt.decimals((high - low) / 4, diff)
    each = [fmt.shown(row, x, digits=digits) for x in (diff, low, high)]
    return f"{each[0]}{fmt.scale_of(row).size} [{each[1]}, {each[2]}]"


def of_arena(table: Arena) -> list[Picture]:
    """Return the leaderboard's pictures: only the checkpoints' curves if a benchmark has one, else each one's means."""
    boards = table.first_boards
    curves = [curve for board in boards if (curve := steps(table, board)) is not None]
    if curves:
        return curves
    names = [f"{fmt.shorten(board.benchmark.task, 30)}: " if len(boards) > 1 else "" for board in boards]
    return [picture for each in zip(boards, names, strict=True) if (picture := means(*each)) is not None]
