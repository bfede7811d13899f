"""The figures of an arena as SVG by matplotlib (extra `plots`), each with a text alternative.

Colours are told apart by the colour-blind (Okabe–Ito hues, darkened for contrast) and doubled by
marks or dashes. `svg(..., themed=True)` leaves them to the page's style sheet, for light and dark.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..io.atomic import write_text
from ..stats import benchmark, theory
from ..stats.intervals import z_quantile
from .arena_summary import file_names
from .canvas import (
    _COLOURS,
    _DASHES,
    _INK,
    _LINE,
    _MARKS,
    _MUTED,
    _PAPER,
    _ROWS,
    Picture,
    _close,
    _legend,
    _measure,
    _name,
    _scatter,
    svg,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ..results.arena import Arena, BenchmarkResult


def pictures(board: BenchmarkResult, baseline: str | None = None) -> list[Picture]:
    """The figures that this benchmark's data can fill."""
    made = (noise(board), separation(board), accuracies(board), heatmap(board), difficulty(board), passes(board),
            forest(board, baseline))  # fmt: skip
    return [picture for picture in made if picture is not None]


def save(arena: Arena, folder: Path) -> list[Path]:
    """Write every figure of every benchmark to its own file, `<benchmark>-<figure>.svg`; returns the files."""
    written = []
    for board, name in zip(arena.boards, file_names(arena), strict=True):
        for picture in pictures(board, arena.baseline):
            path = folder / f"{name}-{picture.name}.svg"
            write_text(path, svg(picture))
            written.append(path)
    return written


def noise(board: BenchmarkResult) -> Picture | None:
    """Paired standard errors against accuracy, with what theory says of them. Wang (2025), figure 1."""
    c, close = board.pairs.columns, _close(board)
    if len(close) == 0:
        return None
    mean = (c["mean_a"] + c["mean_b"])[close] / 2
    row = board.benchmark
    unit = row.beta_theory is not None
    split = bool(np.isfinite(c["se_data"][close]).any())

    def draw(axes: Axes) -> None:
        parts = [("total", "se_total")]
        if split:
            parts += [("data", "se_data"), ("prediction", "se_prediction")]
        for i, (label, column) in enumerate(parts):
            _scatter(axes, mean, c[column][close], i, label)
        if unit:
            n = float(np.median(c["n_questions"][close]))
            solved = 1 - (row.solved_by_none or 0) / max(1, row.n_questions)
            p = np.linspace(0, 1, 201)
            beta = np.sqrt(np.maximum(theory.beta_variance(p, solved), 0) / n)
            axes.plot(p, beta, color=_COLOURS[0], lw=1.4, label="total, Beta(p, 1 − p) theory")
            axes.plot(p, np.sqrt(p * (1 - p) / n), color=_MUTED, lw=1.2, ls="--", label="rule of thumb, √(p(1−p)/n)")
            axes.plot(p, np.sqrt(2 * p * (1 - p) / n), color=_MUTED, lw=1.2, ls=":", label="independent answers")
            axes.set_xlim(-0.02, 1.02)
        axes.set_ylim(bottom=0)
        axes.set_xlabel(f"mean of the pair ({_measure(board)})")
        axes.set_ylabel("standard error of A − B")
        _legend(axes, 2)

    total = row.se_total
    alt = f"{len(close)} close pairs of {len(board.pairs)}"
    if total is not None:
        alt += f"; total standard error {total.median:.4f} at the median, from {total.min:.4f} to {total.max:.4f}"
    if row.beta_theory is not None:
        alt += f", which is {row.beta_theory.median:.2f} times what the Beta theory says"
    return Picture("noise", "Noise of a difference against accuracy", alt + ".", draw)


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

    def draw(axes: Axes) -> None:
        _scatter(axes, diff[~significant], apart[~significant], 1, "not separable")
        _scatter(axes, diff[significant], apart[significant], 0, "separable")
        top = max(float(apart.max()), 1e-9) * 1.05
        x = np.linspace(0, max(float(diff.max()), 1e-9) * 1.05, 200)
        size = float(np.median(n[rows]))
        for i, p in enumerate((0.05, 0.01, 0.001)):
            y = x**2 * (1 + size / z_quantile(1 - p) ** 2)
            axes.plot(x, y, color=_INK, lw=1, ls=_DASHES[i], label=f"p = {p:g}, one answer each")
        axes.fill_between(x, 0, np.minimum(x, top), color=_LINE, alpha=0.5, lw=0)
        axes.set_ylim(0, top)
        axes.set_xlim(0, x[-1])
        axes.set_xlabel("|A − B|")
        axes.set_ylabel("A ≠ B, share of questions")
        _legend(axes, 3)

    alt = (
        f"{int(significant.sum())} of {len(rows)} pairs are separable. The lines show the difference with p = 0.05, "
        "0.01 and 0.001 at each level of disagreement; the shaded corner is impossible, as models cannot differ by "
        "more than they disagree."
    )
    return Picture("separation", "Difference against disagreement", alt, draw)


_BANDS = ((0.001, "p < 0.001"), (0.01, "p < 0.01"), (0.05, "p < 0.05"), (2.0, "p ≥ 0.05"))


def accuracies(board: BenchmarkResult) -> Picture | None:
    """Mean of A by mean of B, by p-value."""
    c = board.pairs.columns
    rows = np.flatnonzero(np.isfinite(c["p_value"]))
    if len(rows) == 0:
        return None
    high, low = np.maximum(c["mean_a"], c["mean_b"])[rows], np.minimum(c["mean_a"], c["mean_b"])[rows]
    band = np.searchsorted([limit for limit, _ in _BANDS], c["p_value"][rows], side="right")

    def draw(axes: Axes) -> None:
        for i, (_, label) in enumerate(_BANDS):
            at = band == i
            if at.any():
                _scatter(axes, low[at], high[at], (0, 2, 3, 1)[i], label)
        ends = [float(low.min()), float(high.max())]
        axes.plot(ends, ends, color=_MUTED, lw=1, ls="--")
        axes.set_xlabel(f"lower mean ({_measure(board)})")
        axes.set_ylabel("higher mean")
        _legend(axes, 4)

    counts = ", ".join(f"{int((band == i).sum())} pairs with {label}" for i, (_, label) in enumerate(_BANDS))
    return Picture("accuracies", "Which means can be told apart", f"{counts} (unadjusted).", draw)


def heatmap(board: BenchmarkResult) -> Picture | None:
    """Questions by models, both sorted. Wang (2025), figure 2."""
    scores = board.scores
    if min(scores.shape) == 0:
        return None
    means = np.array([np.nan if model.mean is None else model.mean for model in board.models])
    models = np.argsort(means, kind="stable")
    W = ~np.isnan(scores)
    easy = np.where(W, scores, 0.0).sum(axis=1) / np.maximum(W.sum(axis=1), 1)
    image = _shrunk(scores[np.argsort(-easy, kind="stable")][:, models])

    def draw(axes: Axes) -> None:
        axes.grid(visible=False)
        drawn = axes.imshow(image, aspect="auto", cmap="cividis", interpolation="nearest", origin="upper")
        axes.set_xlabel("models, worst to best")
        axes.set_ylabel(
            "questions, easiest first" if board.benchmark.beta_theory else "questions, highest scores first"
        )
        axes.set_xticks([])
        axes.set_yticks([])
        assert axes.figure is not None
        bar = axes.figure.colorbar(drawn, ax=axes, label=_measure(board))
        bar.outline.set_visible(False)

    missing = int((~W).sum())
    alt = f"{scores.shape[0]} questions by {scores.shape[1]} models, both sorted by their means"
    alt += f"; {missing} scores are missing and left blank." if missing else "."
    return Picture("heatmap", "Scores by question and model", alt, draw, 4.2)


def _shrunk(image: Any, height: int = 600, width: int = 400) -> Any:
    """Averaged to at most height × width pixels; NaN where a block has no score."""
    for axis, limit in ((0, height), (1, width)):
        if image.shape[axis] > limit:
            edges = np.linspace(0, image.shape[axis], limit + 1).astype(int)[:-1]
            known = np.add.reduceat(~np.isnan(image), edges, axis=axis)
            with np.errstate(invalid="ignore"):
                image = np.add.reduceat(np.nan_to_num(image), edges, axis=axis) / np.where(known > 0, known, np.nan)
    return image


def difficulty(board: BenchmarkResult) -> Picture | None:
    """How difficulty is distributed for models of like accuracy, with Beta fits. Wang (2025), figure 5."""
    if board.benchmark.beta_theory is None:
        return None
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

    def draw(axes: Axes) -> None:
        from scipy.special import betainc

        x = np.linspace(0, 1, 201)
        for i, (low, high, size, values) in enumerate(bins):
            share = np.arange(1, len(values) + 1) / len(values)
            models = f"{size} model{'s' if size > 1 else ''}"
            axes.step(values, share, where="post", color=_COLOURS[i], ls=_DASHES[i], lw=1.5,
                      label=f"{models} at {low:.2f}–{high:.2f}")  # fmt: skip
            fit = benchmark.fit_beta(values)
            if fit is not None:
                axes.plot(x[::8], betainc(*fit, x[::8]), color=_COLOURS[i], ls="none", marker=_MARKS[i], ms=3,
                          label=f"Beta({fit[0]:.2f}, {fit[1]:.2f})")  # fmt: skip
        axes.set_xlabel("mean score of a question")
        axes.set_ylabel("share of questions at or below")
        _legend(axes, 2)

    fits = [benchmark.fit_beta(values) for *_, values in bins]
    words = "; ".join(
        f"models at {low:.2f} to {high:.2f}: " + (f"Beta({fit[0]:.2f}, {fit[1]:.2f})" if fit else "no fit")
        for (low, high, *_), fit in zip(bins, fits, strict=True)
    )
    return Picture(
        "difficulty", "Distribution of difficulty by accuracy", f"Lines are data, marks fits. {words}.", draw
    )


def passes(board: BenchmarkResult) -> Picture | None:
    """pass@k of the models with several answers."""
    curves = [(model.model, model.pass_at_k) for model in board.models if model.pass_at_k and len(model.pass_at_k) > 1]
    if not curves:
        return None
    curves.sort(key=lambda item: -item[1][1])
    named = {name for name, _ in curves[:5]}

    def draw(axes: Axes) -> None:
        from matplotlib.ticker import MaxNLocator

        for i, (name, curve) in reversed(list(enumerate(curves))):
            first = name in named
            axes.plot(
                list(curve), list(curve.values()), color=_COLOURS[i] if first else _LINE, lw=1.4 if first else 0.9,
                marker=_MARKS[i] if first else None, ms=3.5, ls=_DASHES[i] if first else "-",
                label=_name(name) if first else None, zorder=2 + first,
            )  # fmt: skip
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.set_xlabel("k answers")
        axes.set_ylabel("pass@k")
        _legend(axes, 2, reverse=True)

    best, curve = curves[0]
    k = max(curve)
    alt = f"{len(curves)} models; highest is {_name(best)} with {curve[1]:.3f} at k = 1 and {curve[k]:.3f} at k = {k}."
    return Picture("pass-at-k", "pass@k", alt, draw)


def forest(board: BenchmarkResult, baseline: str | None = None) -> Picture | None:
    """Differences of all models to one of them: the baseline, or the best."""
    sign = -1.0 if board.pairs.common["higher_is_better"] is False else 1.0
    means = [-np.inf if model.mean is None else sign * model.mean for model in board.models]
    names = [model.model for model in board.models]
    against = names.index(baseline) if baseline in names else int(np.argmax(means))
    rows = list(_differences(board, against))
    if not rows:
        return None
    rows.sort(key=lambda item: item[1])
    left_out = max(0, len(rows) - _ROWS)
    if left_out:
        rows = sorted(sorted(rows, key=lambda item: abs(item[1]))[:_ROWS], key=lambda item: item[1])

    def draw(axes: Axes) -> None:
        for y, (_, diff, low, high) in enumerate(rows):
            apart = low > 0 or high < 0
            colour = _COLOURS[0] if apart else _MUTED
            axes.plot([low, high], [y, y], color=colour, lw=1.6)
            axes.plot(diff, y, "o", ms=5, color=colour, markerfacecolor=colour if apart else _PAPER)
        axes.axvline(0, color=_INK, lw=1, ls="--")
        axes.set_yticks(range(len(rows)), [_name(name, 28) for name, *_ in rows])
        axes.grid(visible=False, axis="y")
        axes.set_xlabel(f"difference to {_name(names[against], 30)}, {100 * board.pairs.common['level']:g} % CI")

    apart = sum(low > 0 or high < 0 for _, _, low, high in rows)
    alt = f"{apart} of {len(rows)} models have an interval that leaves out 0, no difference to {_name(names[against])}"
    if left_out:
        alt += f"; the {left_out} models furthest away are not drawn"
    return Picture("forest", f"Differences to {_name(names[against])}", alt + ".", draw, 1.2 + 0.22 * len(rows))


def _differences(board: BenchmarkResult, against: int) -> Iterator[tuple[str, float, float, float]]:
    pairs = board.pairs
    c = pairs.columns
    for i in np.flatnonzero((pairs.a == against) | (pairs.b == against)):
        diff, low, high = float(c["diff"][i]), float(c["ci_low"][i]), float(c["ci_high"][i])
        if not np.isfinite(low):
            continue
        if pairs.b[i] == against:
            yield pairs.names[pairs.a[i]], diff, low, high
        else:
            yield pairs.names[pairs.b[i]], -diff, -high, -low
