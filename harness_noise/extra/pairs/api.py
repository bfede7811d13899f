"""The public function `pairs`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...analysis.comparison import difference_of_scores
from ...analysis.mean import estimate_scores
from ...analysis.sample import as_scores
from ...arrays import FloatArray, IntArray
from ...data.notes import Note
from ...results.forms import finite
from ...settings import Settings
from ...stats.contrast import cluster_codes
from ...stats.decision import holm
from ..ground import refuse_others
from ..ranks import from_decisions
from . import stats
from .read import Judged, read_verdicts
from .results import LEFT_OUT, ONE_ORDER, SEPARATED, TOO_FEW, JudgedPairs, ModelStrength, PairVerdicts

_POSITION = ("position_bias", "position_bias_se", "position_p_value", "turned", "tie_once")
_CODES = {"few_flips", "zero_variance", "few_clusters", "too_few_clusters", "too_few_questions"}
"""Diagnostics of the kernel that concern a win rate."""


def pairs(source: Any, *, level: float = 0.95, columns: Mapping[str, str] | None = None, **others: Any) -> JudgedPairs:
    """Return win rates by question, position bias, and with more than two models their Bradley–Terry strengths.

    Parameters
    ----------
    source
        Verdicts: a table with `question`, `first`, `winner` (two models) or `question`, `model_a`, `model_b`, `winner`
        (A was shown first; `winner` is a model, tie, or A>B and its like), perhaps with `cluster`; or a file of
        arena-hard, MT-bench, AlpacaEval or promptfoo (`select-best`). A path, a DataFrame, or a list of dictionaries.
    level
        Coverage of the intervals.
    columns
        What the columns are called, such as ``{"winner": "preferred"}``.
    **others
        Nothing else is obeyed.

    Returns
    -------
    JudgedPairs
        A row for each pair of models, and one for each model where there are more than two.

    Raises
    ------
    InputError
        Verdicts that cannot be used; says where.

    References
    ----------
    Bradley & Terry (1952), Biometrika 39; Ford (1957), American Mathematical Monthly 64.

    Examples
    --------
    >>> import harness_noise as hn
    >>> shown = [("new", "old", "new"), ("old", "new", "new"), ("new", "old", "tie"), ("old", "new", "old")] * 5
    >>> rows = [dict(question=i // 2, model_a=a, model_b=b, winner=w) for i, (a, b, w) in enumerate(shown)]
    >>> (row,) = hn.pairs(rows).pairs
    >>> row.win_rate, row.n_questions
    (0.625, 10)
    """
    refuse_others("verdicts on pairs do not use {}: leave it out", others)
    settings = Settings(level=level)
    judged = read_verdicts(source, columns or {})
    lost = sum(one.points != one.points for one in judged)
    tables = _group_by_pair([one for one in judged if one.points == one.points])
    rows = _verdicts([_row(table, settings) for table in tables])
    names = list(dict.fromkeys(name for one in judged for name in (one.first, one.second)))
    models = _models(names, tables, level) if len(names) > 2 else ()
    said = f"{lost:,} of {len(judged):,} verdicts are empty or failed, and are left out"
    return JudgedPairs({"level": level}, tuple(rows), models, (Note("missing", said),) if lost else ())


@dataclass(frozen=True, slots=True, eq=False)
class _Pair:
    """The verdicts on two models: points of A by question."""

    a: str
    b: str
    questions: Sequence[str]
    """n of them."""
    clusters: Sequence[str]
    """(n,) clusters, the questions themselves without clusters."""
    clustered: bool
    first: FloatArray
    """(n,) mean points of A when A was shown first, NaN if it never was."""
    second: FloatArray
    """(n,) where B was."""
    verdicts: IntArray
    """(n,) how many verdicts."""

    @property
    def kept(self) -> IntArray:
        """Indices (m,) of the questions judged in both orders (A first, B first), or of all if none is."""
        both = np.flatnonzero(~np.isnan(self.first) & ~np.isnan(self.second))
        return both if len(both) else np.arange(len(self.questions))

    @property
    def one_order(self) -> bool:
        """True if no question was judged in both orders (A first and B first)."""
        return bool((np.isnan(self.first) | np.isnan(self.second)).all())

    @property
    def values(self) -> FloatArray:
        """A's points, one for each question that counts, averaged over repeats and then over orders."""
        return np.asarray(np.nanmean(np.stack([self.first, self.second]), axis=0)[self.kept])


def _group_by_pair(judged: Sequence[Judged]) -> list[_Pair]:
    """Return a `_Pair` of each two models: mean points of A per question and order. A comes first in the table."""
    place = {name: i for i, name in enumerate(dict.fromkeys(x for one in judged for x in (one.first, one.second)))}
    found: dict[tuple[str, str], dict[str, tuple[list[float], list[float]]]] = {}
    clusters = {one.question: one.cluster for one in judged if one.cluster is not None}
    for one in judged:
        is_a = place[one.first] < place[one.second]
        pair = (one.first, one.second) if is_a else (one.second, one.first)
        points = found.setdefault(pair, {}).setdefault(one.question, ([], []))
        points[0 if is_a else 1].append(one.points if is_a else 1 - one.points)
    out = []
    for (a, b), questions in found.items():
        sides = [[np.mean(x[side]) if x[side] else np.nan for x in questions.values()] for side in (0, 1)]
        named = [clusters.get(question, f"\x1f{question}") for question in questions]
        counts = np.array([len(first) + len(second) for first, second in questions.values()])
        out.append(_Pair(a, b, list(questions), named, bool(clusters), np.array(sides[0]), np.array(sides[1]), counts))
    return out


def through_kernel(share: FloatArray, clusters: Sequence[str] | None, settings: Settings) -> Any:
    """Return the paired test of A's share of points minus B's, as a difference row in [−1, 1]."""
    first, second = (as_scores(x, clusters, bounds=(0.0, 1.0)) for x in (share, 1 - share))
    return difference_of_scores(first, second, settings)


def _row(table: _Pair, settings: Settings) -> PairVerdicts:
    kept, values = table.kept, table.values
    clusters = [table.clusters[i] for i in kept] if table.clustered else None
    of = through_kernel(values, clusters, settings)
    left_out = len(table.questions) - len(kept)
    codes = {code for code in of.diagnostics if code in _CODES}
    codes |= {ONE_ORDER} if table.one_order else {LEFT_OUT} if left_out else set()
    position: dict[str, Any] = dict.fromkeys(_POSITION)
    if not table.one_order:
        first, second = table.first[kept], table.second[kept]
        bias = through_kernel((1 + first - second) / 2, clusters, settings)
        one, other = np.sign(first - 0.5), np.sign(second - 0.5)
        position = {
            "position_bias": bias.diff / 2, "position_bias_se": _half(bias.se), "position_p_value": bias.p_value,
            "turned": float((one * other < 0).mean()), "tie_once": float(((one == 0) != (other == 0)).mean()),
        }  # fmt: skip
    p = of.p_value if of.p_value is not None else of.p_sign
    low, high = _limits(of, values, clusters, settings)
    return PairVerdicts(
        task="", metric="win rate", scorer="none", model_a=table.a, model_b=table.b, n_questions=len(kept),
        n_clusters=of.n_clusters, n_verdicts=int(table.verdicts[kept].sum()), n_left_out=left_out,
        win_rate=float(values.mean()), se=_half(of.se), ci_low=low, ci_high=high, level=settings.level, df=of.df,
        p_value=p, p_adjusted=None, verdict="not separable", diagnostics=tuple(sorted(codes)), _zero_one=True,
        **position,
    )  # fmt: skip


def _limits(
    of: Any, values: FloatArray, clusters: Sequence[str] | None, settings: Settings
) -> tuple[float | None, float | None]:
    """Return a win rate's confidence limits: on each side the wider of two intervals. (None, None) if unknown.

    Near 0 and 1 the difference's interval is too short with few questions, and Wilson's is not; with many ties it is
    the other way round. A mean of ties alone has no interval.
    """
    mean = estimate_scores(as_scores(values, clusters, bounds=(0.0, 1.0)), settings)
    if of.ci_low is None or of.ci_high is None:
        return None, None
    low, high = (1 + of.ci_low) / 2, (1 + of.ci_high) / 2
    if mean.ci_low is None or mean.ci_high is None:
        return low, high
    return min(low, mean.ci_low), max(high, mean.ci_high)


def _half(value: float | None) -> float | None:
    return None if value is None else value / 2


def _verdicts(rows: Sequence[PairVerdicts]) -> list[PairVerdicts]:
    """Return pairs with p adjusted by Holm and, if that is small, "A better" or "B better", else their own verdict."""
    adjusted = holm(np.array([np.nan if row.p_value is None else row.p_value for row in rows]))
    out = []
    for row, p in zip(rows, adjusted.tolist(), strict=True):
        better = "A better" if row.win_rate > 0.5 else "B better"
        out.append(replace(row, p_adjusted=finite(p), verdict=better if p < 1 - row.level else row.verdict))
    return out


def _models(names: Sequence[str], tables: Sequence[_Pair], level: float) -> tuple[ModelStrength, ...]:
    """Return the models' Bradley–Terry strengths, strongest first, last those that have none."""
    M, place = len(names), {name: i for i, name in enumerate(names)}
    clusters = [table.clusters[i] for table in tables for i in table.kept]
    codes, G = cluster_codes(clusters)
    sizes = [len(table.kept) for table in tables]
    first = np.repeat([place[table.a] for table in tables], sizes)
    second = np.repeat([place[table.b] for table in tables], sizes)
    points = stats.by_cluster(G, M, codes, first, second, np.concatenate([table.values for table in tables]))
    whole = points.sum(axis=0)
    taken, games = whole.sum(axis=1), (whole + whole.T).sum(axis=1)
    rates = taken / np.maximum(games, 1)
    enough = G >= stats.FEWEST_CLUSTERS
    inside = np.flatnonzero(stats.connected(points)) if enough else np.arange(0)
    fields: dict[int, dict[str, Any]] = {}
    if len(inside):
        found = stats.with_errors(points[:, inside][:, :, inside])
        upper = np.triu_indices(len(inside), 1)
        adjusted = np.ones_like(found.p)
        adjusted[upper] = holm(np.nan_to_num(found.p[upper], nan=1.0))
        better = (np.minimum(adjusted, adjusted.T) < 1 - level) & (found.theta[:, None] > found.theta)
        ranks = from_decisions(better)
        for k, i in enumerate(inside.tolist()):
            se = finite(float(found.se[k]))
            fields[i] = {
                "strength": float(found.theta[k]),
                "se": se,
                "rank_low": int(ranks.low[k]),
                "rank_high": int(ranks.high[k]),
                "diagnostics": ("zero_variance",) if se is None else (),
            }
    without: dict[str, Any] = dict.fromkeys(("strength", "se", "rank_low", "rank_high"))
    rows = []
    for i, name in enumerate(names):
        ranked = i in fields
        more = fields[i] if ranked else without | {"diagnostics": (SEPARATED if enough else TOO_FEW,)}
        beside = _above_or_below(whole, i, inside) if len(inside) and not ranked else None
        of_model: dict[str, Any] = {"model": name, "win_rate": float(rates[i]), "beside": beside, "_zero_one": True}
        rows.append(ModelStrength("", "win rate", "none", **of_model, **more))
    return tuple(sorted(rows, key=lambda row: (row.strength is None, -(row.strength or 0.0), -row.win_rate)))


def _above_or_below(whole: FloatArray, i: int, inside: IntArray) -> str | None:
    """Return "above" if a model won all points against the connected ones, "below" if it won none, else None."""
    won, lost = whole[i, inside].sum(), whole[inside, i].sum()
    if won + lost == 0 or (won > 0 and lost > 0):
        return None
    return "above" if won > 0 else "below"
