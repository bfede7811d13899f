"""The figures of results, each with a text alternative: an arena's benchmark, where every mark names its pair or its
model; the verdict of a comparison, its rows, and inside a row slices, clusters and questions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..io.atomic import write_text
from ..results.arena import Arena
from ..results.rows import Analysis, Comparison, Difference, Estimate
from ..stats import benchmark, planning
from ..stats.intervals import critical
from .arena_summary import checkpoints, chosen_pairs, file_names, ranked, step_text
from .canvas import (
    COLOURS,
    DASHES,
    INK,
    LINE,
    MUTED,
    PAPER,
    ROWS,
    WIDTH,
    Axis,
    Drawing,
    Picture,
    Points,
    Row,
    element,
    escaped,
    forest,
    label_of,
    name,
    svg,
)
from .columns import (
    decimals,
    digits_of,
    equals_p,
    interval,
    metric_name,
    models_of,
    names_of,
    number,
    p_text,
    percent,
    plain,
    shorten,
    span,
    value_of,
    what_of,
)
from .summary import untested

if TYPE_CHECKING:
    from ..arrays import FloatArray, IntArray
    from ..results.arena import BenchmarkResult, Checkpoint, Model
    from ..results.rows import DifferenceSlice, EstimateSlice
    from .summary import Result


LABELLED = 400
"""Pairs that are drawn one by one; of more, those closest in rank, over a picture of all."""


def pictures(arena: Arena, board: BenchmarkResult) -> list[Picture]:
    """The figures that this benchmark's data can fill."""
    drawn = (
        *(steps(arena, board), means(board), frontier(board), ranks(board), matrix(board)),
        differences(board, arena.baseline),
        *(noise(board), separation(board), accuracies(board)),
        *(heatmap(board), difficulty(board), passes(board)),
    )
    return [picture for picture in drawn if picture is not None]


def save(arena: Arena, folder: Path) -> list[Path]:
    """Write every figure of every benchmark to its own file, `<benchmark>-<figure>.svg`; returns the files."""
    written = []
    for board, stem in zip(arena.boards, file_names(arena), strict=True):
        for drawn in pictures(arena, board):
            path = folder / f"{stem}-{drawn.name}.svg"
            write_text(path, svg(drawn))
            written.append(path)
    return written


class _Scatter:
    """A figure with a mark for each pair: one by one, or of many pairs some, over an image of all."""

    def __init__(self, board: BenchmarkResult, x: Axis, y: Axis) -> None:
        self.board, self.drawing = board, Drawing(x, y)
        self.single = np.zeros(len(board.pairs), dtype=np.bool_)
        """(P,) the pairs that are drawn one by one."""
        self.single[chosen_pairs(board, LABELLED)] = True

    def cloud(self, rows: IntArray, x: FloatArray, y: FloatArray) -> None:
        """The image of all pairs, if some are not drawn one by one."""
        if not self.single[rows].all():
            self.drawing.cloud(x, y)

    def marks(self, rows: IntArray, x: FloatArray, y: FloatArray, series: int, label: str) -> None:
        """The marks of the pairs `rows` at x, y."""
        keep, pairs = self.single[rows], self.board.pairs
        titles = [pair_title(pairs[i]) for i in rows[keep].tolist()]
        models = [f"{pairs.a[i]} {pairs.b[i]}" for i in rows[keep].tolist()]
        self.drawing.points(x[keep], y[keep], series, label, titles, models)

    def done(self, what: tuple[str, str, str], rows: IntArray, x: FloatArray, y: FloatArray) -> Picture:
        """The figure (its file's name, title and words), and where the pairs `rows` lie."""
        points = None if self.single[rows].all() else Points(rows, self.drawing.px(x), self.drawing.py(y))
        return replace(self.drawing.done(*what), points=points)


def pair_title(row: Difference) -> str:
    """A pair's names and numbers."""
    total = "" if row.se_total is None else f", total SE {number(row.se_total, digits_of(row))}"
    return f"{name(row.model_a)} − {name(row.model_b)}: {numbers(row)}{total}; {row.verdict}"


def noise(board: BenchmarkResult) -> Picture | None:
    """Paired standard errors against accuracy, with what theory says of them [Wang, figure 1]."""
    c = board.pairs.columns
    with np.errstate(invalid="ignore"):
        close = np.flatnonzero((np.abs(c["diff"]) < 5 * c["se_total"]) & (c["n_questions"] > 1))
    if len(close) == 0:
        return None
    mean = (c["mean_a"] + c["mean_b"])[close] / 2
    row = board.benchmark
    unit = row.beta_theory is not None
    parts = [("total", "se_total")]
    if np.isfinite(c["se_data"][close]).any():
        parts += [("data", "se_data"), ("prediction", "se_prediction")]
    curves = _theory(board, close) if unit else []
    top = [float(np.nanmax(c[column][close])) for _, column in parts] + [float(y.max()) for _, y, *_ in curves]
    x = Axis(-0.02, 1.02, f"mean of the pair ({measure(board)})") if unit else Axis.around(mean, measure(board))
    plot = _Scatter(board, x, Axis.around(top, "SE of A − B", also=[0.0]))
    plot.cloud(close, mean, c["se_total"][close])
    for p, y, colour, dash, label in curves:
        plot.drawing.line(p, y, colour, dash=dash, label=label)
    for i, (label, column) in enumerate(parts):
        known = np.isfinite(c[column][close])
        plot.marks(close[known], mean[known], c[column][close][known], i, label)
    total = row.se_total
    alt = f"{len(close)} close pairs of {len(board.pairs)}"
    if total is not None:
        alt += f"; total standard error {total.median:.4f} at the median, from {total.min:.4f} to {total.max:.4f}"
    if row.beta_theory is not None:
        alt += f", which is {row.beta_theory.median:.2f} times what the Beta theory says"
    what = "noise", "Noise of a difference against accuracy", alt + "."
    return plot.done(what, close, mean, c["se_total"][close])


def _theory(board: BenchmarkResult, close: IntArray) -> list[tuple[FloatArray, FloatArray, str, str, str]]:
    """(x, y, colour, dash, label) of what theory says of the standard error at each accuracy."""
    row = board.benchmark
    n = float(np.median(board.pairs.columns["n_questions"][close]))
    solved = 1 - (row.solved_by_none or 0) / max(1, row.n_questions)
    p = np.linspace(0, 1, 101)
    reached = solved * p  # no mean lies above the share of questions that any model solves
    beta = np.sqrt(np.maximum(planning.beta_variance(reached, solved), 0) / n)
    return [
        (reached, beta, COLOURS[0], "", "total, Beta(p, 1 − p) theory"),
        (p, np.sqrt(p * (1 - p) / n), MUTED, DASHES[1], "rule of thumb, √(p(1−p)/n)"),
        (p, np.sqrt(2 * p * (1 - p) / n), MUTED, DASHES[3], "independent answers"),
    ]


def separation(board: BenchmarkResult) -> Picture | None:
    """Difference against disagreement, with contours of the p-value. Seed: eval-arena's note on noise."""
    c = board.pairs.columns
    n = c["n_questions"]
    rows = np.flatnonzero((n > 1) & np.isfinite(c["diff"]))
    if len(rows) == 0 or board.benchmark.beta_theory is None:
        return None
    apart = (c["wins_a"] + c["wins_b"])[rows] / n[rows]
    diff = np.abs(c["diff"][rows])
    significant = (board.pairs.verdict[rows] > 0) & (board.pairs.verdict[rows] < 3)
    right, top = max(float(diff.max()), 1e-9) * 1.05, max(float(apart.max()), 1e-9) * 1.05
    plot = _Scatter(board, Axis(0, right, "|A − B|"), Axis(0, top, "A ≠ B, share of questions"))
    drawing = plot.drawing
    x = np.linspace(0, right, 120)
    drawing.area(x, np.zeros(len(x)), np.minimum(x, top))
    size = float(np.median(n[rows]))
    for i, p in enumerate((0.05, 0.01, 0.001)):
        y = x**2 * (1 + size / float(critical(1 - p)) ** 2)
        drawing.line(x, np.where(y <= top, y, np.nan), dash=DASHES[i], label=f"p = {p:g}")
    plot.cloud(rows, diff, apart)
    plot.marks(rows[~significant], diff[~significant], apart[~significant], 1, "not separable")
    plot.marks(rows[significant], diff[significant], apart[significant], 0, "separable")
    alt = (
        f"{int(significant.sum())} of {len(rows)} pairs are separable. The lines show the difference with p = 0.05, "
        "0.01 and 0.001 (one answer each) at each level of disagreement; the shaded corner is impossible, as models "
        "cannot differ by more than they disagree."
    )
    return plot.done(("separation", "Difference against disagreement", alt), rows, diff, apart)


_BANDS = ((0.001, "p < 0.001"), (0.01, "p < 0.01"), (0.05, "p < 0.05"), (2.0, "p ≥ 0.05"))


def accuracies(board: BenchmarkResult) -> Picture | None:
    """Mean of A by mean of B, by p-value."""
    c = board.pairs.columns
    rows = np.flatnonzero(np.isfinite(c["p_value"]))
    if len(rows) == 0:
        return None
    high, low = np.maximum(c["mean_a"], c["mean_b"])[rows], np.minimum(c["mean_a"], c["mean_b"])[rows]
    band = np.searchsorted([limit for limit, _ in _BANDS], c["p_value"][rows], side="right")
    plot = _Scatter(board, Axis.around(low, f"lower mean ({measure(board)})"), Axis.around(high, "higher mean"))
    drawing = plot.drawing
    ends = np.array([max(drawing.x.low, drawing.y.low), min(drawing.x.high, drawing.y.high)])
    plot.cloud(rows, low, high)
    if ends[1] > ends[0]:
        drawing.line(ends, ends, MUTED, dash=DASHES[1])
    for i, (_, label) in enumerate(_BANDS):
        at = band == i
        if at.any():
            plot.marks(rows[at], low[at], high[at], (0, 2, 3, 1)[i], label)
    counts = ", ".join(f"{int((band == i).sum())} pairs with {label}" for i, (_, label) in enumerate(_BANDS))
    return plot.done(("accuracies", "Which means differ significantly", f"{counts} (unadjusted)."), rows, low, high)


_CIVIDIS = ((38, 78, 150), (78, 98, 140), (110, 118, 128), (145, 142, 116), (195, 180, 98), (254, 232, 56))
"""As cividis, but its dark end is lighter than a dark page, so that a missing score is told from a low one."""


def heatmap(board: BenchmarkResult) -> Picture | None:
    """Questions by models, both sorted [Wang, figure 2]."""
    scores = board.scores
    if min(scores.shape) == 0:
        return None
    means = np.array([np.nan if model.mean is None else model.mean for model in board.models])
    models = np.argsort(means, kind="stable")
    W = ~np.isnan(scores)
    easy = np.where(W, scores, 0.0).sum(axis=1) / np.maximum(W.sum(axis=1), 1)
    image = _shrunk(scores[np.argsort(-easy, kind="stable")][:, models])
    low, high = (float(np.nanmin(image)), float(np.nanmax(image))) if np.isfinite(image).any() else (0.0, 1.0)
    pixels = np.zeros((*image.shape, 4), dtype=np.uint8)
    at = np.linspace(low, high if high > low else low + 1, len(_CIVIDIS))
    for i in range(3):
        pixels[..., i] = np.interp(np.nan_to_num(image), at, [colour[i] for colour in _CIVIDIS])
    pixels[..., 3] = np.where(np.isnan(image), 0, 255)
    questions = "questions, easiest first" if board.benchmark.beta_theory else "questions, highest scores first"
    M = len(models)
    drawing = Drawing(
        Axis(0, M, "models, worst to best", ticked=False), Axis(0, 1, questions, ticked=False), left=24, bottom=24
    )
    drawing.image(pixels, "", sharp=True)
    for x, m in enumerate(models.tolist()):
        drawing.bar(x, x + 1, 0, 1, INK, model_title(board.models[m]), str(m), opacity=0)
    for share in (0.0, 0.5, 1.0) if high > low else (0.0,):
        colour = "#{:02x}{:02x}{:02x}".format(
            *(int(np.interp(share, np.linspace(0, 1, 6), [c[i] for c in _CIVIDIS])) for i in range(3))
        )
        value = number(low + share * (high - low), 2)
        drawing.legend.append((f'<rect x="-6" y="-6" width="12" height="12" fill="{colour}"/>', value))
    missing = int((~W).sum())
    if missing:
        drawing.legend.append((element("path", d="M-6-6H6V6H-6Z", fill="none", stroke=MUTED), "missing"))
    alt = f"{scores.shape[0]} questions by {scores.shape[1]} models, both sorted by their means"
    alt += f"; {missing} scores are missing and left blank." if missing else "."
    return drawing.done("heatmap", "Scores by question and model", alt)


def _shrunk(image: Any, height: int = 400, width: int = 400) -> Any:
    """Averaged to at most height × width pixels; NaN where a block has no score."""
    for axis, limit in ((0, height), (1, width)):
        if image.shape[axis] > limit:
            edges = np.linspace(0, image.shape[axis], limit + 1).astype(int)[:-1]
            known = np.add.reduceat(~np.isnan(image), edges, axis=axis)
            with np.errstate(invalid="ignore"):
                image = np.add.reduceat(np.nan_to_num(image), edges, axis=axis) / np.where(known > 0, known, np.nan)
    return image


def difficulty(board: BenchmarkResult) -> Picture | None:
    """How difficulty is distributed for models of like accuracy, with Beta fits [Wang, figure 5]."""
    if board.benchmark.beta_theory is None:
        return None
    bins = _difficulties(board)
    from scipy.special import betainc

    drawing = Drawing(Axis(0, 1, "mean score of a question"), Axis(0, 1.02, "share at or below"))
    x = np.linspace(0, 1, 26)
    words = []
    for i, (low, high, size, values) in enumerate(bins):
        share = np.arange(1, len(values) + 1) / len(values)
        steps, at = np.unique(values, return_index=True)
        top = np.append(share[at[1:] - 1], 1.0)
        path_x, path_y = np.append(np.repeat(steps, 2), 1.0), np.append(0.0, np.repeat(top, 2))
        models = f"{size} model{'s' if size > 1 else ''} at {low:.2f}–{high:.2f}"
        fit = benchmark.fit_beta(values)
        told = f"Beta({fit[0]:.2f}, {fit[1]:.2f})" if fit else "no fit"
        drawing.line(path_x, path_y, COLOURS[i], dash=DASHES[i], width=1.6, label=models, title=f"{models}: {told}")
        if fit is not None:
            drawing.points(
                x,
                betainc(*fit, x),
                i,
                told,
                [f"{told}: {y:.2f} at {v:.2f}" for v, y in zip(x, betainc(*fit, x), strict=True)],
            )
        words.append(f"models at {low:.2f} to {high:.2f}: {told}")
    return drawing.done(
        "difficulty", "Distribution of difficulty by accuracy", f"Lines are data, marks fits. {'; '.join(words)}."
    )


def _difficulties(board: BenchmarkResult) -> list[tuple[float, float, int, FloatArray]]:
    """(lowest mean, highest mean, models, sorted means of the questions) of four groups of models of like accuracy."""
    means = np.array([np.nan if model.mean is None else model.mean for model in board.models])
    known = np.flatnonzero(np.isfinite(means))
    bins = []
    for part in np.array_split(known[np.argsort(means[known], kind="stable")], min(4, len(known))):
        block = board.scores[:, part]
        W = ~np.isnan(block)
        has = W.any(axis=1)
        values = np.where(W, block, 0.0).sum(axis=1)[has] / W.sum(axis=1)[has]
        if len(values):
            bins.append((float(means[part].min()), float(means[part].max()), len(part), np.sort(values)))
    return bins


def measure(board: BenchmarkResult) -> str:
    return name(metric_name(board.benchmark.metric, board.benchmark.scorer), 28)


def level_of(board: BenchmarkResult) -> str:
    return percent(board.pairs.common["level"])


def model_title(row: Model) -> str:
    """A model's name and its numbers."""
    ranks = "" if row.rank_low is None or row.rank_high is None else f", rank {span(row.rank_low, row.rank_high)}"
    return f"{name(row.model)}: {numbers(row)}{ranks}"


def _models(board: BenchmarkResult) -> list[tuple[Model, str]]:
    """Every model with its number on the board, the best first."""
    place = {row.model: str(i) for i, row in enumerate(board.models)}
    return [(row, place[row.model]) for row in ranked(board)]


def means(board: BenchmarkResult) -> Picture | None:
    """The means with their intervals, the best first."""
    rows = [
        Row(row.model, row.ci_low, row.mean, row.ci_high, model_title(row), hollow=not row.among_best, models=place)
        for row, place in _models(board)
        if row.mean is not None
    ]
    if not rows:
        return None
    best = len(board.benchmark.best)
    alt = f"The {ROWS} models with the best means" if len(rows) > ROWS else f"{len(rows)} models"
    filled = f"; filled: the {best} that are not significantly worse than the best" if best else ""
    alt += f", {level_of(board)} intervals{filled}."
    return forest("means", "Means", alt, rows[:ROWS], f"{measure(board)}, {level_of(board)} CI")


def frontier(board: BenchmarkResult) -> Picture | None:
    """Score against a measure: a cross of both intervals for each model, with its place on the frontier."""
    if board.beside is None:
        return None
    cost = {row.model: row for row in board.beside.models}
    rows = [(row, cost[row.model], place) for row, place in _models(board) if row.model in cost]
    rows = [(row, other, place) for row, other, place in rows if row.mean is not None and other.mean is not None]
    if not rows:
        return None

    def ends(item: Model) -> list[float]:
        return [x for x in (item.ci_low, item.mean, item.ci_high) if x is not None]

    x = Axis.around([v for _, other, _ in rows for v in ends(other)], f"{measure(board.beside)}, {level_of(board)} CI")
    y = Axis.around([v for row, _, _ in rows for v in ends(row)], f"{measure(board)}, {level_of(board)} CI")
    drawing = Drawing(x, y)
    series = {"yes": (0, "on the frontier"), "open": (1, "open"), "no": (2, "beaten in both")}
    for place, (number_, label) in series.items():
        kept = [item for item in rows if (item[0].frontier or "open") == place]
        for row, other, m in kept:
            for across, up in ((ends(other), [row.mean] * 3), ([other.mean] * 3, ends(row))):
                n = min(len(across), len(up))
                drawing.line(across[:n], up[:n], COLOURS[number_], models=m)
        titles = [f"{model_title(row)}; {numbers(other)}" for row, other, _ in kept]
        at = [other.mean for _, other, _ in kept], [row.mean for row, _, _ in kept]
        if kept:
            drawing.points(*at, number_, label, titles, [m for *_, m in kept])
    told = ", ".join(
        f"{sum(row.frontier == place for row, _, _ in rows)} {label}" for place, (_, label) in series.items()
    )
    alt = f"{len(rows)} models by score and {board.beside.benchmark.metric}, with intervals: {told}."
    return drawing.done("frontier", "Frontier", alt)


def ranks(board: BenchmarkResult) -> Picture | None:
    """The ranks that each model may have [Mogstad]."""
    rows = [
        Row(row.model, row.rank_low, row.rank or 0, row.rank_high, model_title(row), COLOURS[2], models=place)
        for row, place in _models(board)
        if row.rank_low is not None and row.rank_high is not None
    ][:ROWS]
    if not rows:
        return None
    alt = f"The possible ranks of {len(rows)} models, which hold together with {level_of(board)} confidence; the mark "
    return forest("ranks", "Ranks", alt + "is the rank of the mean.", rows, "rank, 1 the best", whole=True)


MATRIX = 24
"""Models of which every pair has a cell."""


def matrix(board: BenchmarkResult) -> Picture | None:
    """Every model against those below it: whether the one to the left is better (+), worse (−) or not separable."""
    rows = _models(board)[:MATRIX]
    M, longest = len(rows), max((len(label_of(row.model)) for row, _ in rows), default=1)
    if M < 3:
        return None
    at = {int(place): i for i, (_, place) in enumerate(rows)}
    left = min(168.0, 16 + 6.6 * longest)
    side = min(34.0, (WIDTH - left - 10) / M)
    letters = min(14.0, 0.8 * side)
    drawing = Drawing(
        Axis(0, M, ticked=False), Axis(M, 0, ticked=False),
        height=side * M + 18, left=left, right=WIDTH - left - side * M, top=8, bottom=10,
    )  # fmt: skip

    def write(x: float, y: float, words: str, **style: str) -> None:
        down = float(drawing.py(y)) + 0.35 * letters
        drawing.parts.append(element("text", escaped(words), x=float(drawing.px(x)), y=down, title="", **style))

    for i, (row, place) in enumerate(rows):
        write(i + 0.85, i + 0.5, label_of(row.model), text_anchor="end", fill=INK, data_m=place)
    pairs, told = board.pairs, 0
    for k in np.flatnonzero(np.isin(pairs.a, list(at)) & np.isin(pairs.b, list(at))).tolist():
        pair, ends = pairs[k], (at[int(pairs.a[k])], at[int(pairs.b[k])])
        title = f"{pair_title(pair)}; adjusted p {equals_p(pair.p_adjusted)}"
        ahead = {"A better": 1, "B better": -1}.get(pair.verdict, 0) * (1 if ends[0] < ends[1] else -1)
        told += ahead != 0
        y, x = sorted(ends)
        colour = {1: COLOURS[0], -1: COLOURS[1]}.get(ahead, LINE)
        drawing.bar(x + 0.04, x + 0.96, y + 0.04, y + 0.96, colour, title, f"{pairs.a[k]} {pairs.b[k]}")
        if ahead:
            sign = {"fill": PAPER, "font_weight": "700", "font_size": f"{letters:.0f}", "pointer_events": "none"}
            write(x + 0.5, y + 0.5, "+" if ahead > 0 else "−", text_anchor="middle", **sign)
    of = f"the {M} best models" if len(board.models) > M else f"{M} models"
    alt = f"Each cell is a pair of {of}: the model to its left against the one below it. + better, − worse, blank not "
    return drawing.done("matrix", "Every pair", f"{alt}separable; {told} pairs are, all pairs tested together.")


def steps(arena: Arena, board: BenchmarkResult) -> Picture | None:
    """The means of checkpoints in their order, each series a line with its band."""
    found = [(text, rows) for text, rows in checkpoints(arena) if rows[0].key == board.key]
    known = [[row for row in rows if row.mean is not None and row.ci_low is not None] for _, rows in found]
    if not any(len(rows) > 1 for rows in known):
        return None
    place = {row.model: str(i) for i, row in enumerate(board.models)}
    values = [end for rows in known for row in rows for end in (row.ci_low, row.ci_high) if end is not None]
    across = [row.step for rows in known for row in rows]
    drawing = Drawing(
        Axis.around(across, "step", room=0.03), Axis.around(values, f"{measure(board)}, {level_of(board)} CI")
    )
    for i, rows in enumerate(known):
        x, y = [row.step for row in rows], [row.mean for row in rows]
        colour, dash = COLOURS[i % len(COLOURS)], DASHES[i % len(DASHES)]
        drawing.area(x, [row.ci_low for row in rows], [row.ci_high for row in rows], colour, 0.16)
        drawing.line(x, y, colour, dash=dash, width=1.6, label=rows[0].series if len(known) > 1 else "")
        for row in rows:
            at, middle = drawing.px(row.step), drawing.py(row.mean)
            ring = {"fill": colour if row.changed else PAPER, "stroke": colour, "stroke_width": "1.6"}
            mark = element("circle", cx=float(at), cy=float(middle), r="3.8", **ring)
            title, about = _checkpoint_title(row), place.get(row.model, "")
            drawing.parts.append(element("g", mark, title=title, data_m=about, **{"class": "iv"}))
    band = f"The band is the {level_of(board)} interval of each mean; filled marks differ from the first checkpoint by "
    return drawing.done("steps", "Checkpoints", f"{band}more than noise, paired by question.")


def _checkpoint_title(row: Checkpoint) -> str:
    digits = decimals(None if row.ci_high is None or row.ci_low is None else (row.ci_high - row.ci_low) / 4, row.mean)
    text = f"step {step_text(row.step)}: {number(row.mean, digits)} {interval(row.ci_low, row.ci_high, digits)}"
    if row.since_first is None:
        return text
    return f"{text}; since the first {number(row.since_first, digits)}, adjusted p {equals_p(row.p_first)}"


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
        drawing.line(
            list(curve),
            list(curve.values()),
            COLOURS[i] if first else LINE,
            dash=DASHES[i] if first else "",
            width=1.6 if first else 0.9,
            models=str(m),
            title=model,
        )
        if first:
            titles = [f"{model}: pass@{k} = {value:.3f}" for k, value in curve.items()]
            drawing.points(list(curve), list(curve.values()), i, model, titles, [str(m)] * len(curve))
    drawing.legend.reverse()
    m, curve = curves[0]
    k = max(curve)
    best = name(board.models[m].model)
    alt = f"{len(curves)} models; highest is {best} with {curve[1]:.3f} at k = 1 and {curve[k]:.3f} at k = {k}."
    return drawing.done("pass-at-k", "pass@k", alt)


def differences(board: BenchmarkResult, baseline: str | None = None) -> Picture | None:
    """Differences of all models to one of them: the baseline, or the best."""
    sign = -1.0 if board.pairs.common["higher_is_better"] is False else 1.0
    means = [-np.inf if model.mean is None else sign * model.mean for model in board.models]
    names = [model.model for model in board.models]
    against = names.index(baseline) if baseline in names else int(np.argmax(means))
    found = sorted(_differences(board, against), key=lambda item: -sign * item[1])
    if not found:
        return None
    left_out = max(0, len(found) - ROWS)
    if left_out:
        found = sorted(sorted(found, key=lambda item: abs(item[1]))[:ROWS], key=lambda item: -sign * item[1])
    rows = []
    for m, diff, low, high in found:
        apart = low > 0 or high < 0
        digits = decimals((high - low) / 4, diff)
        title = f"{name(names[m])} − {name(names[against])}: {number(diff, digits)} {interval(low, high, digits)}"
        rows.append(Row(names[m], low, diff, high, title, COLOURS[0] if apart else MUTED, not apart, str(m)))
    apart_ = sum(low > 0 or high < 0 for _, _, low, high in found)
    alt = f"{apart_} of {len(rows)} intervals exclude 0: these models differ from {name(names[against])}"
    if left_out:
        alt += f"; the {left_out} models furthest away are not drawn"
    label = f"difference to {name(names[against], 24)}, {level_of(board)} CI"
    return forest("forest", f"Differences to {name(names[against])}", alt + ".", rows, label, zero=True)


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


DISTINCT = 31
"""Values of a difference up to which each has a bar of its own."""
BINS = 21


def numbers(item: Estimate | Difference) -> str:
    """A row's estimate with its interval."""
    digits = digits_of(item)
    ends = "" if item.ci_low is None else f" {interval(item.ci_low, item.ci_high, digits)}"
    return f"{number(value_of(item), digits)}{ends}"


def opening(table: Result) -> list[Picture]:
    """What a page or a notebook opens with: the one difference, all rows, or the means of each benchmark."""
    if isinstance(table, Analysis):
        return all_rows(table.estimates)
    if isinstance(table, Arena):
        return [picture for board in table.boards if (picture := means(board)) is not None]
    if not isinstance(table, Comparison):
        return []
    margin = table.settings.get("margin")
    if len(table.comparisons) == 1:
        picture = verdict(table.comparisons[0], margin)
        return [] if picture is None else [picture]
    return all_rows(table.comparisons, margin)


def verdict(row: Difference, margin: float | None) -> Picture | None:
    """The one row of a comparison, large: its interval against 0 and the margin, and which way is better."""
    if row.diff is None:
        return None
    a, b = (name(text, 24) for text in names_of(row))
    better = [f"← {b} better", f"{a} better →"]
    if row.higher_is_better is False:
        better = [f"← {a} better", f"{b} better →"]
    level = f"{percent(row.level)} CI"
    alt = f"{a} − {b} is {numbers(row)}{'' if row.ci_low is None else f' ({level})'}: {row.verdict}"
    alt += f"; the margin is ±{margin:g}." if margin is not None else "."
    low, high = (row.diff if end is None else end for end in (row.ci_low, row.ci_high))
    values = [low, row.diff, high, 0.0, *([] if margin is None else [-margin, margin])]
    reach = max(map(abs, values)) or 0.5
    # 0 in sight with room on both sides, but not more empty space than that
    ends = [min(*values, -0.3 * reach), max(*values, 0.3 * reach)]
    label = name(f"A − B, {level} ({metric_name(row.metric, row.scorer)})", 60)
    drawing = Drawing(
        Axis.around(ends, label, room=0.08), Axis(0, 1, ticked=False), height=120, left=26, top=24, right=26
    )
    drawing.margin(margin, 0, 1)
    drawing.upright(0.0, dash="")
    at = float(drawing.px(0.0))
    for words, px, anchor in ((better[0], at - 8, "end"), (better[1], at + 8, "start")):
        room = at - 8 if anchor == "end" else WIDTH - at - 8
        if 6.2 * len(words) > room:
            px, anchor = (4, "start") if anchor == "end" else (WIDTH - 4, "end")
        drawing.text(px, 15, words, anchor, MUTED)
    colour, hollow = colour_of(row)
    drawing.interval((low, row.diff, high), 0.5, colour, alt, hollow=hollow, size=1.9)
    return drawing.done("verdict", "The difference and its interval", alt)


def colour_of(row: Estimate | Difference) -> tuple[str, bool]:
    """The colour of a row, and whether its mark is hollow: a difference that is not separable from 0."""
    if isinstance(row, Estimate):
        return COLOURS[0], False
    return {"A better": (COLOURS[0], False), "B better": (COLOURS[1], False)}.get(row.verdict, (MUTED, True))


def _row(item: Estimate | Difference, label: str, said: str = "") -> Row:
    """A row with its name and its numbers."""
    title = f"{label}: {numbers(item)}{said}"
    return Row(label, item.ci_low, value_of(item) or 0.0, item.ci_high, title, *colour_of(item))


def all_rows(rows: Sequence[Estimate | Difference], margin: float | None = None) -> list[Picture]:
    """The intervals of all rows, one figure for each metric, which is one scale."""
    out = []
    by_metric: dict[tuple[str, str], list[Estimate | Difference]] = {}
    for item in rows:
        if value_of(item) is not None:
            by_metric.setdefault((item.metric, item.scorer), []).append(item)
    several = len({item.task for item in rows}) > 1
    models = len({models_of(item) for item in rows}) > 1
    for i, (key, found) in enumerate(by_metric.items()):
        compared = isinstance(found[0], Difference)
        drawn = []
        for item in found[:ROWS]:
            label = " ".join([plain(item.task)] * several + [models_of(item)] * models) or what_of(item)
            drawn.append(_row(item, label, f", {item.verdict}" if isinstance(item, Difference) else ""))
        more = f" (the first {ROWS} of {len(found)})" if len(found) > ROWS else ""
        metric = metric_name(*key)
        alt = f"{len(drawn)} {'differences' if compared else 'means'}{more}, {percent(found[0].level)} intervals"
        if compared:
            told = sum(item.verdict in ("A better", "B better") for item in found if isinstance(item, Difference))
            alt += f"; {told} of {len(found)} are significant"
        label = f"{'A − B' if compared else 'mean'} ({name(metric, 30)})"
        out.append(forest(f"rows-{i}", name(metric, 40), alt + ".", drawn, label, zero=compared, margin=margin))
    return out


def slices(
    picture: str, found: Sequence[DifferenceSlice | EstimateSlice], whole: Estimate | Difference, margin: float | None
) -> Picture | None:
    """The slices of one row, one below the other, the whole on top."""
    known = [item for item in found if value_of(item) is not None][: ROWS - 1]
    if not known or value_of(whole) is None:
        return None
    compared = isinstance(whole, Difference)
    rows = [_slice_row("all questions", whole, bold=True)]
    title, labels = slice_names([(item.field, item.value) for item in known])
    rows += [_slice_row(label, item) for label, item in zip(labels, known, strict=True)]
    alt = f"{len(known)} slices{f' (of {len(found)})' if len(known) < len(found) else ''}"
    tested = [item for item in known if item.p_adjusted is not None]
    told = sum(1 for item in tested if item.p_adjusted is not None and item.p_adjusted < 1 - item.level)
    if not tested:
        alt += f"; none of them could be tested: {untested(known)}."
    else:
        some = "" if len(tested) == len(known) else f" the {len(tested)} that could be tested"
        alt += f" with their intervals, {told} of{some or ' them'} differ from "
        alt += f"{'0' if compared else 'the other questions'} after adjustment (filled)."
    label = f"{'A − B' if compared else 'mean'} ({metric_name(whole.metric, whole.scorer)})"
    return forest(picture, title, alt, rows, name(label, 40), zero=compared, margin=margin)


def slice_names(slices: Sequence[tuple[str, str]]) -> tuple[str, list[str]]:
    """What slices (field, value) are called together, and each of them: its value alone where all are of one field."""
    fields = dict.fromkeys(field for field, _ in slices)
    if len(fields) == 1:
        return f"By {name(next(iter(fields)), 60)}", [shorten(value, 80) for _, value in slices]
    return "By slice", [f"{shorten(field, 60)} = {shorten(value, 80)}" for field, value in slices]


def _slice_row(label: str, item: Estimate | Difference, *, bold: bool = False) -> Row:
    p = getattr(item, "p_adjusted", 0.0)  # the mean of all questions is not held against anything
    told = p is not None and p < 1 - item.level
    said = f", n = {item.n_questions}" + (f", adjusted p {p_text(p)}" if p else "")
    row = _row(item, label, said)
    return replace(row, colour=row.colour if told else MUTED, hollow=not told, bold=bold)


def clusters(picture: str, d: FloatArray, labels: Sequence[str], sign: float = 1.0) -> Picture | None:
    """The mean difference of each cluster with its name, in order; of many clusters their distribution.

    Args:
        picture: its name.
        d: (n,) A − B of each question.
        labels: (n,) clusters.
        sign: −1 where lower is better.
    """
    names, codes = np.unique(np.asarray(labels, dtype=object).astype(str), return_inverse=True)
    sizes = np.bincount(codes)
    means = np.bincount(codes, weights=d) / sizes
    if len(names) < 2 or len(names) == len(d):
        return None
    up, down = int((sign * means > 1e-12).sum()), int((sign * means < -1e-12).sum())
    alt = f"Of {len(names)} clusters A is better in {up} and B in {down}."
    if len(names) > ROWS:
        return _histogram(picture, "Clusters by their difference", alt, means, "A − B of the cluster", "clusters", sign)
    rows = []
    for k in np.argsort(-means, kind="stable").tolist():
        label, mean = str(names[k]), float(means[k])
        title = f"{name(label, 40)}: A − B = {number(mean, 3)}, {sizes[k]} questions"
        rows.append(Row(label, None, mean, None, title, _side(sign * mean)))
    return forest(picture, "By cluster", alt, rows, "A − B of the cluster", zero=True)


def histogram(picture: str, d: FloatArray, sign: float = 1.0) -> Picture:
    """How the questions' differences are distributed."""
    same = int((np.abs(d) < 1e-12).sum())
    up, down = int((sign * d > 1e-12).sum()), int((sign * d < -1e-12).sum())
    alt = f"{len(d)} questions by the means of their answers: that of A is better on {up}, that of B on {down}, and "
    alt += f"{same} are equal."
    return _histogram(picture, "Questions by their difference", alt, d, "A − B of the question", "questions", sign)


def _histogram(what: str, title: str, alt: str, d: FloatArray, label: str, of: str, sign: float) -> Picture:
    bars = bins(d)
    high = max(count for *_, count in bars)
    ends = (bars[0][0], bars[-1][1])
    drawing = Drawing(Axis(*ends, label), Axis(0, 1.05 * high, of, whole=True), height=230)
    for low, top, words, count in bars:
        middle = (low + top) / 2
        inset = 0.06 * (top - low)
        drawing.bar(
            low + inset,
            top - inset,
            0,
            count,
            _side(sign * middle if abs(middle) > 1e-12 else 0.0),
            f"A − B {words}: {count} {of if count != 1 else of[:-1]}",
        )
    return drawing.done(what, title, alt)


def bins(d: FloatArray) -> list[tuple[float, float, str, int]]:
    """(left end, right end, what it holds, how many) of each bar: a bar for each value, or 21 around 0."""
    values, counts = np.unique(np.round(d, 9), return_counts=True)
    if len(values) <= DISTINCT:
        steps = np.diff(values)
        half = float(steps.min()) / 2 if len(steps) else 0.5
        return [
            (float(v) - half, float(v) + half, f"= {number(float(v), 3)}", int(n))
            for v, n in zip(values, counts, strict=True)
        ]
    reach = float(np.abs(d).max())
    edges = np.linspace(-reach, reach, BINS + 1)
    found, _ = np.histogram(d, edges)
    return [
        (float(low), float(high), f"from {number(float(low), 3)} to {number(float(high), 3)}", int(n))
        for low, high, n in zip(edges[:-1], edges[1:], found, strict=True)
    ]


def _side(better: float) -> str:
    return COLOURS[0] if better > 0 else COLOURS[1] if better < 0 else MUTED
