"""Rank analysis of a board: possible best models, possible ranks, stable order, frontier of score and cost."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from scipy import special

from ...arrays import BoolArray, FloatArray, IntArray
from ...data.notes import Note
from ...data.questions import by_name
from ...data.scores import Scores
from ...errors import InputError
from ...results.forms import finite
from ...results.rows import PEOPLE, Difference
from ...settings import Settings
from ...stats import decision
from ...stats.cluster_variance import cluster_scores
from ...stats.contrast import Design, cluster_codes, in_order, sub_design, sum_by
from ...stats.passk import pass_curves
from ..ranks import RankSets, from_decisions
from ..row_noise import noise_of
from ..sizes import detectable_effect, required_units
from .columns import Table
from .pairs import square
from .rank_sets import chosen_by_half, rank_sets, stability
from .results import AcrossTasks, Arena, Benchmark, BenchmarkResult, Budget, Model, Pairs, Selection
from .together import tasks_together

FEWEST_TOP = 2
"""The smallest number of models in the top if the user names none."""


def ranked(
    models: Sequence[Model],
    row: Benchmark,
    table: Table,
    solved: BoolArray | None,
    pairs: Pairs,
    settings: Settings,
    top: int | None,
) -> tuple[tuple[Model, ...], Benchmark]:
    """Return models' rows with ranks, and the benchmark's with stability, rank method, all-solved and dead questions.

    Args:
        models: of the board.
        row: its benchmark.
        table: question statistics.
        solved: (N, M) whether a model has solved a question; None where scores are not right or wrong.
        pairs: all of them, for the sets where signs cannot be flipped.
        settings: level and seed.
        top: K of `--top`.
    """
    sign = pairs.sign
    means = np.array([np.nan if model.mean is None else sign * model.mean for model in models])
    # what labels add to a corrected value is the variance of few questions, which no flip of signs and no resample sees
    corrected = pairs.common["estimand"] == PEOPLE
    simple = _sums(table) if settings.questions_are == "population" and not corrected else None
    sets, method = _rank_sets(simple, pairs, settings)
    place = 1 + (means[:, None] < means[None, :] - 1e-12).sum(axis=1)
    out = tuple(
        replace(
            model,
            rank=int(place[m]),
            rank_low=int(sets.low[m]),
            rank_high=int(sets.high[m]),
            ties=int(sets.ties[m]),
            in_top=None if top is None else "yes" if sets.high[m] <= top else "maybe" if sets.low[m] <= top else "no",
        )
        if np.isfinite(means[m])
        else model
        for m, model in enumerate(models)
    )
    leaders = _leaders(means, sets, top)
    of_top = table.mean[:, leaders]
    dead = None if corrected else _all_alike_questions(of_top)
    order = None
    if simple is not None and len(simple[0]) > 1:
        resampled = stability(sign * simple[0], simple[1], np.random.default_rng(settings.seed + 1))
        order = resampled if np.isfinite(resampled.tau) else None  # where all models are alike there is no order
    return out, replace(
        row,
        solved_by_all=None if solved is None else int((solved | np.isnan(table.mean)).all(axis=1).sum()),
        rank_method=method,
        n_top=len(leaders),
        n_for_top=None if dead is None else int((~np.isnan(of_top)).all(axis=1).sum()),
        dead_for_top=None if dead is None else int(dead.sum()),
        order_tau=None if order is None else order.tau,
        same_best=None if order is None else order.same_best,
    )


def across_tasks(boards: Sequence[tuple[BenchmarkResult, Scores]], settings: Settings) -> tuple[AcrossTasks, ...]:
    """Return each model's mean rank over tasks that all models have, for each metric and scorer with two such tasks.

    If two models are equal on every task, the difference of their ranks is symmetric about 0, whatever the others do.
    So the signs of whole tasks are fair coins, as those of clusters are for `rank_sets`. Tasks that share questions or
    clusters have one coin.

    Args:
        boards: of single tasks, each with the scores of one of its runs.
        settings: level and seed.
    """
    measures: dict[tuple[str, str], list[tuple[BenchmarkResult, Scores]]] = {}
    for board, part in boards:
        measures.setdefault((board.benchmark.metric, board.benchmark.scorer), []).append((board, part))
    out: list[AcrossTasks] = []
    for (metric, scorer), tasks in measures.items():
        names = max((board.pairs.names for board, _ in tasks), key=len)
        tasks = [(board, part) for board, part in tasks if board.pairs.names == names]
        means = [board.pairs.sign * np.array([_mean_of(model) for model in board.models]) for board, _ in tasks]
        whole = [t for t, x in enumerate(means) if not np.isnan(x).any()]
        if len(whole) < 2:
            continue
        ranks = np.array([mid_ranks(means[t]) for t in whole])
        codes, G = cluster_codes(tasks_together([tasks[t][1] for t in whole]))
        M, mean_rank = len(names), ranks.mean(axis=0)
        sets = rank_sets(-sum_by(codes, ranks.T, G).T, settings.level, np.random.default_rng(settings.seed))
        sets = _without_withheld(sets, [tasks[t][0].pairs for t in whole])
        rows = [
            AcrossTasks(
                "", metric, scorer, model=name, n_tasks=len(ranks), n_clusters=G, mean_rank=float(mean_rank[m]),
                win_rate=float((M - mean_rank[m]) / (M - 1)), rank_low=int(sets.low[m]), rank_high=int(sets.high[m]),
            )
            for m, name in enumerate(names)
        ]  # fmt: skip
        out += sorted(rows, key=lambda row: row.mean_rank)
    return tuple(out)


def _mean_of(model: Model) -> float:
    return math.nan if model.mean is None else model.mean


def mid_ranks(means: FloatArray) -> FloatArray:
    """Return (M,) ranks by mean, 1 for the highest. Equal means share the average of their ranks."""
    behind = means[None, :] - means[:, None]
    ahead: FloatArray = (behind > 1e-12).sum(axis=1) + (np.abs(behind) <= 1e-12).sum(axis=1) / 2
    return ahead + 0.5


def _sums(table: Table) -> tuple[FloatArray, FloatArray] | None:
    """Return (G, M) scores summed by cluster, (G,) cluster sizes. None: missing scores, several tasks, or crossed.

    A group's tasks are strata: a model may lead in one as far as it lags in another, and signs are then no coins.
    """
    plan = table.design
    if plan.strata.any() or plan.shares is not None or plan.crossed is not None or np.isnan(table.mean).any():
        return None
    means, plan = in_order(table.mean.T, plan, table.rows)
    sizes = np.bincount(plan.clusters).astype(np.float64)
    return sum_by(plan.clusters, means, plan.n_clusters).T, sizes


def _rank_sets(simple: tuple[FloatArray, FloatArray] | None, pairs: Pairs, settings: Settings) -> tuple[RankSets, str]:
    """Return the ranks that each model may have, and the method's name, "bootstrap" or "holm"."""
    if simple is None:
        sets, method = from_decisions(_better_by_holm(pairs, settings)), "holm"
    else:
        rng = np.random.default_rng(settings.seed)
        sets, method = rank_sets(pairs.sign * simple[0], settings.level, rng), "bootstrap"
    return _without_withheld(sets, [pairs]), method


def _without_withheld(sets: RankSets, boards: Sequence[Pairs]) -> RankSets:
    """Return the sets without the decisions on two models that any board withholds, because the scoring differs."""
    apart = [square(pairs, pairs.withheld, pairs.withheld) == 1 for pairs in boards]
    return from_decisions(sets.better & ~np.any(apart, axis=0))


def _better_by_holm(pairs: Pairs, settings: Settings) -> BoolArray:
    """Return (M, M) True if the row's model is shown to be better than the column's (Holm over all pairs)."""
    p = decision.adjusted(pairs.columns["p_value"], "holm")
    with np.errstate(invalid="ignore"):
        shown = p < 1 - settings.level
        ahead = pairs.sign * pairs.columns["diff"] > 0
    return np.asarray(square(pairs, shown & ahead, shown & ~ahead) == 1)


def _leaders(means: FloatArray, sets: RankSets, top: int | None) -> IntArray:
    """Return (k,) indexes of the `top` best models. `top` None: all that may be first, not sorted, or the two best."""
    order = np.argsort(-np.where(np.isnan(means), -np.inf, means), kind="stable")
    if top is not None:
        return order[:top]
    may = np.flatnonzero(sets.low == 1)
    return may if len(may) >= FEWEST_TOP else order[:FEWEST_TOP]


def _all_alike_questions(scores: FloatArray) -> BoolArray | None:
    """Return (N,) True for questions that all models have and score the same. None with one model."""
    if scores.shape[1] < FEWEST_TOP:
        return None
    same: BoolArray = scores.max(axis=1) - scores.min(axis=1) <= 1e-12
    return same


def passes(values: FloatArray, whole: Design) -> dict[str, dict[int, float]]:
    """Return {pass_at_k, …_se, pass_hat_k, …_se: {k: value}} of (N, K) 0/1 scores, k ≤ the fewest answers. {} if none.

    Crossed clusters have no standard errors.
    """
    scored = ~np.isnan(values).all(axis=1)
    values = values[scored]
    if len(values) == 0:
        return {}
    plan = sub_design(whole, np.flatnonzero(scored))
    ks = steps_of_k(int((~np.isnan(values)).sum(axis=1).min()))
    each = np.concatenate(pass_curves(values, ks), axis=1)
    means = each.mean(axis=0)
    S = cluster_scores((each - means).T, plan)
    se = np.zeros(0) if S is None or whole.crossed is not None else np.sqrt((S * S).sum(axis=1))

    def by_k(columns: FloatArray) -> dict[int, float]:
        return dict(zip(ks, columns.tolist(), strict=False))

    at, hat, at_se, hat_se = map(by_k, (*np.split(means, 2), *np.split(se, 2)))
    return {"pass_at_k": at, "pass_at_k_se": at_se, "pass_hat_k": hat, "pass_hat_k_se": hat_se}


POWER = 0.8
ASSURANCE = 0.8
MOST_REPEATS = 1000


def with_budget(arena: Arena) -> Arena:
    """Return the arena with the questions or answers needed to tell rivals from the best. Refuse fixed questions.

    Raises:
        InputError: an arena of fixed questions, which more questions say nothing of.
    """
    if arena.settings.get("questions_are") == "fixed":
        raise InputError("a budget counts questions that would be added: not with `questions_are='fixed'`")
    return replace(arena, budget=tuple(row for board in arena.boards for row in _budget(board)))


def with_selection(arena: Arena, seed: int) -> Arena:
    """Return the arena with `selection` (share of the best's lead) and its notes. Refuse fixed or crossed questions.

    Raises:
        InputError: fixed questions, or questions that are clustered in two crossed ways.
    """
    if arena.settings.get("questions_are") == "fixed":
        raise InputError("`select` chooses and measures on different questions: not with `questions_are='fixed'`")
    rows = [row for board in arena.boards if (row := _selection(board, seed)) is not None]
    said = [Note("selected", sentence, row.task) for row in rows if (sentence := _selected(row))]
    return replace(arena, selection=tuple(rows), notes=(*arena.notes, *said))


def _selection(board: BenchmarkResult, seed: int) -> Selection | None:
    plan, scored = board.plan, np.flatnonzero(~np.isnan(board.scores).all(axis=0))
    shared = np.flatnonzero(~np.isnan(board.scores[:, scored]).any(axis=1))
    if plan is None or len(scored) < 2 or not len(shared):
        return None
    shared = np.array(sorted(shared.tolist(), key=lambda i: by_name(board.questions[i].question)))
    if plan.crossed is not None:
        raise InputError(
            f"{board.key[0]}: `select` splits whole clusters of one kind, and these questions are clustered in two "
            "crossed ways: name one of them with `cluster`"
        )
    sign = board.pairs.sign
    values, plan = sign * board.scores[np.ix_(shared, scored)], sub_design(plan, shared)
    names = [board.models[m].model for m in scored]
    means = plan.weights @ values
    second, best = np.argsort(means, kind="stable")[-2:]
    if square(board.pairs, board.pairs.withheld, board.pairs.withheld)[scored[best], scored[second]] == 1:
        return None
    chosen = chosen_by_half(values, plan, np.random.default_rng(seed))
    return Selection(
        *board.key,
        best=names[best],
        second=names[second],
        n_models=len(names),
        n_questions=len(shared),
        mean=sign * float(means[best]),
        mean_corrected=finite(sign * chosen.mean),
        lead=float(means[best] - means[second]),
        lead_corrected=finite(chosen.lead),
        _zero_one=board.pairs.common.get("_zero_one"),
        same_best=finite(chosen.same),
    )


def _selected(row: Selection) -> str:
    where = f"{row.task} {row.metric}: {row.best} is the best of {row.n_models}, {row.lead:.3g} ahead of {row.second}"
    if row.lead_corrected is None or row.same_best is None:
        return f"{where}. Its {row.n_questions} questions cannot be split, so how much of it is selection is not known"
    selected = row.lead - row.lead_corrected
    share = f"about {selected:.2g} is selection" if selected > 0 else "none of it is seen to be selection"
    there = f"the lead is {row.lead_corrected:.2g}"
    if row.mean_corrected is not None:
        there += f" and the mean of the best {row.mean_corrected:.3g} instead of {row.mean:.3g}"
    halves = f"the halves choose {row.best} in {100 * row.same_best:.0f}% of cases"
    return f"{where}. Chosen on half of the questions and measured on the other half, {there}, so {share} ({halves})"


def _budget(board: BenchmarkResult) -> list[Budget]:
    """Return, for each rival that may be the best, how many more questions or answers would show it as worse."""
    pairs, scored = board.pairs, [m for m, model in enumerate(board.models) if model.mean is not None]
    if not scored:
        return []
    best = min(scored, key=lambda m: board.models[m].rank or len(board.models))
    rows = []
    for i in np.flatnonzero((pairs.a == best) | (pairs.b == best)).tolist():
        rival, pair = board.models[int(pairs.a[i] + pairs.b[i]) - best], pairs[i]
        if not rival.among_best or pairs.withheld[i]:
            continue
        questions, repeats = _needs(pair)
        K = min(pair.repeats_a, pair.repeats_b)
        rows.append(
            Budget(
                *board.key,
                best=board.models[best].model,
                model=rival.model,
                diff=None if pair.diff is None else (pair.diff if pairs.a[i] == best else -pair.diff),
                n_questions=pair.n_questions,
                repeats=K,
                more_questions=None if questions is None else max(0, questions - pair.n_questions),
                more_repeats=None if repeats is None else max(0, repeats - K),
                _zero_one=pair._zero_one,
            )
        )
    return sorted(rows, key=lambda row: abs(row.diff or 0.0), reverse=True)


def _needs(pair: Difference) -> tuple[int | None, int | None]:
    """Return (questions, answers per question) either of which would show the pair's difference. None: unknown."""
    if not pair.diff or not pair.se or pair.df is None:
        return None, None
    alpha, effect = 1 - pair.level, abs(pair.diff)
    noise = noise_of(pair, assurance=ASSURANCE)
    v = noise.start
    same = pair.repeats_a == pair.repeats_b
    K = min(pair.repeats_a, pair.repeats_b)
    # of unequal repeats, and where the noise is not split, only the variance as it was is known
    now = v.at(K) if noise.split and same else pair.n_questions * pair.se**2 + v.omega2 - noise.variances.omega2
    try:
        questions = noise.units.questions(required_units(now, effect, alpha, POWER, noise.units))
    except ValueError:
        questions = None
    if not noise.split:
        return questions, None

    def enough(k: int) -> bool:
        return detectable_effect(v.at(k), pair.n_questions, alpha, POWER, noise.units) <= effect

    fewest = bisect_left(range(1, MOST_REPEATS + 1), True, key=enough) + 1
    return questions, fewest if fewest <= MOST_REPEATS else None


def best_p(pairs: Pairs) -> FloatArray:
    """Return (M,) p-values of "this model is the best" (no rival better), corrected for the number of rivals.

    It is the smallest one-sided p over the M − 1 rivals, times M − 1 (Bonferroni). For the model that
    is best in truth the hypothesis holds, so the models with p ≥ α contain it with probability ≥ 1 − α
    without any further correction: Hsu's comparison with the best [Hsu], by single tests.
    """
    smallest: FloatArray = np.fmin.reduce(rival_p(pairs), axis=1)
    return np.minimum(1.0, (len(pairs.names) - 1) * smallest)


def rival_p(pairs: Pairs) -> FloatArray:
    """Return (M, M) one-sided p of "the rival (column) is not better than the model (row)". NaN: untested, withheld."""
    c = pairs.columns
    with np.errstate(invalid="ignore", divide="ignore"):
        ahead = c["diff"] * pairs.sign
        t = ahead / c["se"]
        b_better = special.stdtr(c["df"], t)
        a_better = special.stdtr(c["df"], -t)
        sure = c["se"] == 0
        half = np.where(np.isnan(c["p_sign"]), 1.0, c["p_sign"]) / 2
        b_better = np.where(sure, np.where(ahead < 0, half, 1.0), b_better)
        a_better = np.where(sure, np.where(ahead > 0, half, 1.0), a_better)
    apart = pairs.withheld
    return square(pairs, np.where(apart, np.nan, b_better), np.where(apart, np.nan, a_better))


def with_frontier(result: Arena, measure: str, level: float) -> Arena:
    """Return the arena with places "yes", "no", "open" on the score/cost frontier. Refuse if no benchmark has both.

    Args:
        result: with the benchmarks of both.
        measure: its name, as a row has it.
        level: of the intervals; α is 1 − level.

    Raises:
        InputError: no benchmark has both.
    """
    boards = tuple(
        _with_frontier(board, _measure_results(board, result, measure), 1 - level) for board in result.boards
    )
    if all(board.beside is None for board in boards):
        have = ", ".join(dict.fromkeys(board.benchmark.metric for board in result.boards))
        raise InputError(
            f"`frontier` {measure}: no benchmark has a score and this measure of two models. There are {have}"
        )
    return replace(result, boards=boards, settings={**result.settings, "frontier": measure})


def _measure_results(board: BenchmarkResult, result: Arena, measure: str) -> BenchmarkResult | None:
    """Return the results of a measure (such as cost) for the task of this score. None if lacking, or for a measure."""
    row = board.benchmark
    if board.pairs.common["unit"] is not None:
        return None
    scorers = (row.scorer, "none")
    same = [x for x in result.boards if (x.benchmark.task, x.benchmark.metric) == (row.task, measure)]
    same = [x for x in same if x.pairs.common["unit"] is not None and x.benchmark.scorer in scorers]
    return next(iter(same), None)


def _with_frontier(board: BenchmarkResult, other: BenchmarkResult | None, alpha: float) -> BenchmarkResult:
    if other is None:
        return board
    names = [model.model for model in board.models]
    score = rival_p(board.pairs)
    cost = _rival_p_of_names(other, names)
    both = np.fmax(np.where(np.isnan(score), 1.0, score), np.where(np.isnan(cost), 1.0, cost))
    np.fill_diagonal(both, np.nan)
    comparable = ~np.isnan(score) & ~np.isnan(cost)
    models = tuple(
        _placed(model, both[m], np.fmin(score[:, m], cost[:, m]), names, alpha) if comparable[m].any() else model
        for m, model in enumerate(board.models)
    )
    return replace(board, models=models, beside=other)


def _rival_p_of_names(board: BenchmarkResult, names: list[str]) -> FloatArray:
    """Return (M, M) `rival_p` for models in the order `names`. NaN for models that are not there."""
    own = [model.model for model in board.models]
    place = [own.index(name) if name in own else -1 for name in names]
    out = np.pad(rival_p(board.pairs), ((0, 1), (0, 1)), constant_values=np.nan)[np.ix_(place, place)]
    np.fill_diagonal(out, np.nan)
    return out


def _placed(model: Model, both: FloatArray, either: FloatArray, names: list[str], alpha: float) -> Model:
    """Return the model's row with its place on the frontier and the rivals that are better in both.

    A rival dominates it if tests of both, each at α, reject "not better" (an intersection–union test [Berger]), with
    Holm's method over rivals: a model that none dominates is called dominated in at most α of cases. It is on the
    frontier if it is shown to beat each rival in one of both (Holm over the two; over rivals no adjustment is needed).

    Args:
        model: of the board.
        both: (M,) p-value of "this rival is not better in both"; NaN of the model itself.
        either: (M,) the smaller p-value of "the model is not better than this rival" of the two.
        names: (M,) of the models.
        alpha: level of each test.
    """
    rivals = np.flatnonzero(~np.isnan(both))
    beaten = rivals[decision.adjusted(both[rivals], "holm") <= alpha]
    sure = bool((2 * np.where(np.isnan(either[rivals]), 1.0, either[rivals]) <= alpha).all())
    place = "no" if len(beaten) else "yes" if sure else "open"
    return replace(model, frontier=place, beaten_by=tuple(names[m] for m in beaten))


def steps_of_k(K: int) -> list[int]:
    """Return the values of k at which a pass@k curve is drawn: 1 to 10, then 20, 50, 100, …, and K."""
    ks = set(range(1, min(K, 10) + 1)) | {K}
    scale = 10
    while scale <= K:
        ks |= {k for k in (scale, 2 * scale, 5 * scale) if k <= K}
        scale *= 10
    return sorted(ks)
