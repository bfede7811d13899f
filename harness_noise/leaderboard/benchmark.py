"""One benchmark of an arena: its models, its pairs, its questions and the noise that is characteristic of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import special

from ..analysis.known import WithFields, taken
from ..analysis.mean import analyze_run
from ..analysis.missing import MISSING_SHARE, n_unscored
from ..analysis.ranges import Ends, check_margin, widths
from ..analysis.sample import (
    RATIO_UNDEFINED,
    SHARED_NOISE_P,
    Sample,
    codes_of,
    correction,
    few_labels,
    group_shares,
    labels_of,
    own_group,
)
from ..analysis.slices import divided
from ..arrays import AnyArray
from ..data.clusters import in_words
from ..data.matching import Pairing, pair
from ..data.scores import Group, Run, Scores, causes_of
from ..errors import some_of
from ..results.arena import Benchmark, BenchmarkResult, Model, Pairs, PairSlice, QuestionColumns, Spread, Step
from ..results.rows import PEOPLE, Estimate
from ..settings import Settings, all_count_as_zero
from ..stats import benchmark, decision, planning
from ..stats.arrays import BoolArray, FloatArray, IntArray, blank, put
from ..stats.contrast import sub_design
from ..stats.labels import with_labels
from ..stats.moments import is_skewed, shared_noise_p
from ..stats.pairs import Columns, Leads, Table, every_pair, pair_columns
from .pairs import Facts, Grid, decided, grid
from .ranks import passes, ranked

CLOSE = 5.0
"""Pairs closer than this many total standard errors show the noise of a benchmark; Wang (2025), §4.1.2."""


@dataclass(frozen=True, slots=True, eq=False)
class MeasuredRun:
    """What one run has of one benchmark: the scores of a task, or of the tasks of a group."""

    name: str
    run: Run
    parts: tuple[Scores, ...]

    def codes(self, group: Group | None) -> set[str]:
        """The diagnostics that the scores bring along."""
        return codes_of(self.parts, None if group is None else own_group(self.run, group))


def boards_of(
    measured: list[MeasuredRun], group: Group | None, settings: Settings, top: int | None = None
) -> tuple[list[tuple[list[MeasuredRun], BenchmarkResult]], list[str]]:
    """The benchmark of these runs; or one of each set of runs that share questions, which no mean compares across."""
    grid_, notes = grid_of(measured, group)
    sets = _sets(grid_.table)
    if len(sets) == 1:
        found, more = _board(measured, grid_, group, settings, top)
        return [] if found is None else [(measured, found)], [*notes, *more]
    name, metric = measured[0].parts[0].task if group is None else group.name, measured[0].parts[0].metric
    shared = [of_set for of_set in sets if len(of_set) > 1]
    alone = [measured[of_set[0]].name for of_set in sets if len(of_set) == 1]
    out, said = [], []
    for i, of_set in enumerate(shared):
        task = f"{name}#{i + 1}" if i else name
        some = [_renamed(measured[m], group, task) for m in of_set]
        boards, more = boards_of(some, None if group is None else replace(group, name=task), settings, top)
        out += boards
        notes += more
        said.append(f"{task} of {some_of([item.name for item in some], 4)}")
    if shared:
        left = (
            f"; {some_of(alone, 4)} {'has' if len(alone) == 1 else 'have'} no question of another run" if alone else ""
        )
        notes.append(
            f"{name}, {metric}: {len(measured)} runs answered {len(sets)} sets of questions that share none, and means "
            f"of different questions are not compared: {'; '.join(said)}{left}"
        )
    return out, notes


def _renamed(item: MeasuredRun, group: Group | None, task: str) -> MeasuredRun:
    return item if group is not None else replace(item, parts=tuple(replace(part, task=task) for part in item.parts))


def _sets(table: Table) -> list[list[int]]:
    """The runs that share questions, directly or by way of others."""
    asked = (table.stats.count.T > 0).astype(np.float32)
    linked = asked.T @ asked > 0
    sets: list[list[int]] = []
    left = list(range(len(linked)))
    while left:
        reached = linked[left[0]].copy()
        reached[left[0]] = True
        while (wider := linked[reached].any(axis=0) | reached).sum() > reached.sum():
            reached = wider
        sets.append(np.flatnonzero(reached).tolist())
        left = [m for m in left if not reached[m]]
    return sets


def grid_of(measured: Sequence[MeasuredRun], group: Group | None) -> tuple[Grid, list[str]]:
    """The runs on the union of their questions."""
    parts = [item.parts for item in measured]
    board = grid(list(zip(*parts, strict=True)), group_shares(parts[0], group))
    return board, list(board.notes)


def _board(
    measured: list[MeasuredRun], board: Grid, group: Group | None, settings: Settings, top: int | None
) -> tuple[BenchmarkResult | None, list[str]]:
    pairs, notes = pairs_of(measured, board, group, settings)
    if pairs is None:
        return None, notes
    common = pairs.common
    models = _models(measured, group, board, pairs, settings)
    scores = [item.values for item in board.samples]
    ends = [(np.fmin.reduce(x, axis=None), np.fmax.reduce(x, axis=None)) for x in scores]
    unit, solved = common["unit"] is None and all(low >= 0 and high <= 1 for low, high in ends), None
    if unit and common["higher_is_better"] is not False:
        solved = np.stack([(x >= 1).any(axis=1) for x in scores], axis=1)
    questions = _questions(common, board, solved, unit=unit)
    row = _benchmark(common, pairs, questions, models, solved is not None)
    models, row = ranked(models, row, board.table, solved, pairs, settings, top)
    return BenchmarkResult(row, models, pairs, questions, board.table.mean, plan=board.table.plan), notes


def pairs_of(
    measured: Sequence[MeasuredRun], board: Grid, group: Group | None, settings: Settings
) -> tuple[Pairs | None, list[str]]:
    """All pairs of the runs; None where no two share a question."""
    parts = [item.parts for item in measured]
    first = parts[0][0]
    check_margin(settings, [part for items in parts for part in items])
    task = first.task if group is None else group.name
    notes: list[str] = []
    plan, fixed = board.table.plan, settings.questions_are == "fixed"
    if plan.crossed is not None:
        settings.check("crossed", f"{task}, {first.metric}")
    a, b = every_pair(len(parts))
    columns = pair_columns(board.table, a, b, settings.se, fixed=fixed)
    judges = _with_labels(columns, board)
    if not (columns.of.n > 0).any():
        return None, notes
    columns = _without_wins(columns) if any(item.ratio for item in board.samples) else columns
    apart = int((columns.of.n == 0).sum())
    if apart:
        notes.append(f"{task}, {first.metric}: {apart} of {len(columns)} pairs share no question")
    higher = next((x.higher_is_better for items in parts for x in items if x.higher_is_better is not None), None)
    if higher is None:
        unknown = "the run does not say whether higher or lower is better; higher is taken to be better"
        notes.append(f"{first.metric}: {unknown}")
    common = {
        "task": task,
        "metric": first.metric,
        "scorer": first.scorer,
        "higher_is_better": higher,
        "unit": first.unit,
        "estimand": settings.estimand,
        "level": settings.level,
        "test": settings.test,
        "cluster": in_words(board.cluster_spec) if plan.clustered and not fixed else None,
    }
    width = widths([Ends.of(items) for items in parts], settings)[a, b]
    facts = Facts(
        tuple(item.name for item in measured),
        tuple(item.run.name for item in measured),
        tuple(map(causes_of, parts)),
        common,
        codes=_codes(
            [_with_ratio(x.codes(group), y) for x, y in zip(measured, board.samples, strict=True)], board, columns
        ),
        width=width,
        n_missing=np.array([sum(part.n_missing for part in items) for items in parts], dtype=np.intp),
    )
    if first.unit is not None and not fixed:
        facts.codes["skewed"] = facts.codes.get("skewed", np.False_) | _skewed(board.table, a, b)
    if not all_count_as_zero(settings.missing):
        facts.codes["missing_matters"] = _missing_matters(parts, board, columns, width)
    pairs = decided(columns, board.table, facts, settings)
    if judges is None:
        return replace(pairs, common={**pairs.common, "judge": None}), notes
    nothing = np.full(len(pairs), np.nan)
    more = {"judge": judges, **dict.fromkeys(("p_sign", "wins_a", "wins_b", "ties", "correlation"), nothing)}
    return replace(pairs, common={**pairs.common, "estimand": PEOPLE}, columns={**pairs.columns, **more}), notes


def _with_labels(columns: Columns, board: Grid) -> AnyArray | None:
    """(P,) what labels say of the judge of each pair, whose moments then know the labels; None where there are none."""
    if all(item.corrected is None for item in board.samples):
        return None
    judges, few = np.full(len(columns), None, dtype=object), np.zeros(len(columns), dtype=np.bool_)
    for i, models in enumerate(zip(columns.a.tolist(), columns.b.tolist(), strict=True)):
        rows = np.flatnonzero(np.all([board.samples[m].stats.count > 0 for m in models], axis=0))
        both = [board.samples[m].take(rows) for m in models]
        labels = labels_of(both, PAIR)
        if labels is None or not len(rows):
            continue
        plan = sub_design(board.table.plan, rows)
        m = with_labels(columns.of.row(i), labels, plan)
        put(columns.of, np.array([i]), m.columns())
        d = both[0].stats.mean - both[1].stats.mean
        judges[i], few[i] = correction(both, PAIR, d, m, plan), few_labels(labels, m, plan)
    columns.flags.update(few_clusters=few, single_repeat=np.zeros(len(columns), dtype=np.bool_))
    return judges


PAIR = (1.0, -1.0)


def _skewed(table: Table, a: IntArray, b: IntArray) -> BoolArray:
    """(P,) pairs whose differences have a long tail."""
    out = np.zeros(len(a), dtype=np.bool_)
    for i, (x, y) in enumerate(zip(a, b, strict=True)):
        d = table.mean[:, x] - table.mean[:, y]
        shown = np.flatnonzero(~np.isnan(d))
        out[i] = len(shown) > 0 and is_skewed(d[shown], sub_design(table.plan, shown))
    return out


def _without_wins(columns: Columns) -> Columns:
    """The pairs of ratios of sums, which no question has, so that none is won."""
    nothing = np.full(len(columns), np.nan)
    sides = replace(columns.sides, wins_a=nothing, wins_b=nothing)
    return replace(columns, leads=blank(Leads, len(columns)), sides=sides)


def _with_ratio(codes: set[str], data: Sample) -> set[str]:
    return codes | ({RATIO_UNDEFINED} if data.undefined else set())


def _missing_matters(parts: Sequence[Sequence[Scores]], board: Grid, columns: Columns, width: FloatArray) -> BoolArray:
    """Pairs whose missing answers could move the difference by more than `MISSING_SHARE` of its standard error."""
    a, b = columns.a, columns.b
    lacking = np.array([sum(x.n_missing - x.n_zero for x in items) for items in parts])
    unscored = np.array([sum(map(n_unscored, items)) for items in parts])
    told: BoolArray = (lacking[a] + lacking[b] > 0) & (lacking[a] + lacking[b] == unscored[a] + unscored[b])
    if not told.any():
        return told
    sizes = np.array([[len(part.values) for part in items] for items in parts], dtype=np.float64)
    weights = sizes if board.table.plan.shares is None else board.table.plan.shares[None, :]
    spread = np.zeros(len(columns))
    with np.errstate(invalid="ignore", divide="ignore"):
        for t, (asked, missing) in enumerate(board.missing):
            both, holes = (asked.T @ asked)[a, b], missing.T @ asked
            each = np.broadcast_to(weights[:, t], len(parts))[a] / np.broadcast_to(weights.sum(axis=1), len(parts))[a]
            spread += np.where(each > 0, each * (holes[a, b] + holes[b, a]) / both, 0.0)
        reach = MISSING_SHARE * np.sqrt(np.maximum(columns.of.variance, 0.0))
        found: BoolArray = told & (columns.of.n > 0) & (spread * width > reach)
    return found


def _questions(common: Mapping[str, Any], board: Grid, solved: BoolArray | None, *, unit: bool) -> QuestionColumns:
    higher = common["higher_is_better"] is not False
    W = ~np.isnan(board.table.mean)
    mean = np.where(W, board.table.mean, 0.0).sum(axis=1) / np.maximum(W.sum(axis=1), 1)
    tau, p_tau = benchmark.kendall_tau(board.table.mean)
    if common["estimand"] == PEOPLE:  # corrected values are no scores of a question
        tau, p_tau, unit, solved = np.full_like(tau, np.nan), np.full_like(p_tau, np.nan), False, None
    return QuestionColumns(
        common["task"],
        common["metric"],
        common["scorer"],
        board.questions.keys,
        board.labels,
        board.questions.texts,
        difficulty=(1 - mean if higher else mean) if unit else np.full(len(W), np.nan),
        n_models=W.sum(axis=1),
        n_solved=None if solved is None else solved.sum(axis=1),
        tau=tau,
        p_tau=p_tau,
        suspect=benchmark.suspects(tau, p_tau),
    )


def _codes(each: Sequence[set[str]], board: Grid, columns: Columns) -> dict[str, BoolArray]:
    """Diagnostics of the runs, as pairs have them."""
    a, b = columns.a, columns.b
    out: dict[str, BoolArray] = {}
    for code in sorted(set().union(*each)):
        has = np.array([code in codes for codes in each])
        out[code] = has[a] | has[b]
    out["shared_repeat_noise"] = _shared_noise(board, columns)
    if board.prompts is not None:
        kinds, which = np.unique(board.prompts, axis=1, return_inverse=True)
        which = which.reshape(-1)
        of_kinds = np.ascontiguousarray(kinds.T)
        differ = np.array(
            [((of_kinds != one) & (of_kinds >= 0) & (one >= 0)).any(axis=1) for one in of_kinds], dtype=np.bool_
        )
        out["different_prompts"] = differ[which[a], which[b]]
    return out


def _shared_noise(board: Grid, columns: Columns) -> BoolArray:
    """(P,) pairs of which a run's repeats move together, on the questions that both have."""
    scored, out = ~np.isnan(board.table.mean).T, np.zeros(len(columns), dtype=np.bool_)
    whole = bool(scored.all())
    for m, run in enumerate(board.samples):
        if run.values.shape[1] < 2:
            continue
        rows = np.flatnonzero((columns.a == m) | (columns.b == m))
        shown = scored[:1] if whole else scored[columns.a[rows]] & scored[columns.b[rows]]
        p = shared_noise_p(run.values, board.table.plan, shown)
        out[rows] |= p < (np.inf if run.repeats_are_runs else SHARED_NOISE_P)
    return out & ~np.isnan(columns.of.mean)


def _models(
    measured: Sequence[MeasuredRun], group: Group | None, board: Grid, pairs: Pairs, settings: Settings
) -> tuple[Model, ...]:
    higher = pairs.common["higher_is_better"] is not False
    M = len(measured)
    n = pairs.columns["n_questions"]
    share = np.full((M, M), np.nan)
    with np.errstate(invalid="ignore", divide="ignore"):
        rate = (pairs.columns["wins_a"] + pairs.columns["ties"] / 2) / n
    rate = rate if higher else 1 - rate
    share[pairs.a, pairs.b], share[pairs.b, pairs.a] = rate, 1 - rate
    p_best = best_p(pairs, M, higher)
    alpha = 1 - settings.level
    out = []
    for m, item in enumerate(measured):
        alone = replace(item.run, scores=item.parts, groups=(), skipped=(), corpus=(), parts=())
        if group is not None:
            alone = replace(alone, scores=(), groups=(own_group(item.run, group),), parts=item.parts)
        estimate = analyze_run(alone, settings).estimates[0]
        rates = share[m][~np.isnan(share[m])]
        known = not np.isnan(p_best[m])
        right = board.table.answers is None and higher and group is None
        by_k = passes(board.samples[m].values, board.table.plan) if right else None
        out.append(
            Model(
                **{field: getattr(estimate, field) for field in Estimate.__dataclass_fields__} | {"model": item.name},
                win_rate=float(rates.mean()) if len(rates) else None,
                pass_at_k=None if by_k is None else by_k.at,
                pass_at_k_se=None if by_k is None else by_k.at_se,
                pass_hat_k=None if by_k is None else by_k.hat,
                pass_hat_k_se=None if by_k is None else by_k.hat_se,
                among_best=bool(p_best[m] >= alpha) if known else None,
                p_best=float(p_best[m]) if known else None,
            )
        )
    return tuple(out)


def best_p(pairs: Pairs, M: int, higher: bool = True) -> FloatArray:
    """(M,) p-value of "no rival is better" for every model; NaN where no rival can be tested.

    It is the smallest one-sided p over the M − 1 rivals, times M − 1 (Bonferroni). For the model that
    is best in truth the hypothesis holds, so the models with p ≥ α contain it with probability ≥ 1 − α
    without any further correction: Hsu's (1981) comparison with the best, by single tests.
    """
    p = rival_p(pairs, M, higher)
    known = (~np.isnan(p)).any(axis=1)
    out = np.full(M, np.nan)
    out[known] = np.minimum(1.0, (M - 1) * np.nanmin(p[known], axis=1))
    return out


def rival_p(pairs: Pairs, M: int, higher: bool = True) -> FloatArray:
    """(M, M) one-sided p-value of "this rival (column) is not better than this model (row)"; NaN where untested."""
    c = pairs.columns
    with np.errstate(invalid="ignore", divide="ignore"):
        t = c["diff"] / c["se"] * (1.0 if higher else -1.0)
        b_better = special.stdtr(c["df"], t)
        a_better = special.stdtr(c["df"], -t)
        sure = c["se"] == 0
        ahead = c["diff"] * (1.0 if higher else -1.0)
        half = np.where(np.isnan(c["p_sign"]), 1.0, c["p_sign"]) / 2
        b_better = np.where(sure, np.where(ahead < 0, half, 1.0), b_better)
        a_better = np.where(sure, np.where(ahead > 0, half, 1.0), a_better)
    p = np.full((M, M), np.nan)
    p[pairs.a, pairs.b], p[pairs.b, pairs.a] = b_better, a_better
    return p


def _benchmark(
    common: Mapping[str, Any], pairs: Pairs, questions: QuestionColumns, models: tuple[Model, ...], right: bool
) -> Benchmark:
    c = pairs.columns
    n = c["n_questions"]
    with np.errstate(invalid="ignore", divide="ignore"):
        close = (np.abs(c["diff"]) < CLOSE * c["se_total"]) & (n > 0)
        # by the pair's own interval: what a benchmark resolves does not depend on how many models it has met
        significant = (pairs.verdict == decision.A) | (pairs.verdict == decision.B)
        significant |= pairs.flags.get("not_after_adjustment", np.False_)
        size = np.abs(c["diff"])
        p = (c["mean_a"] + c["mean_b"]) / 2
        thumb = c["se_total"] / np.sqrt(p * (1 - p) / n)
        solved = None if questions.n_solved is None else questions.n_solved > 0
        beta = thumb
        if solved is not None:
            beta = c["se_total"] / np.sqrt(planning.beta_variance(p, float(solved.mean())) / n)
    tested = ~np.isnan(c["se"]) & ~np.isnan(size)
    steps = _steps(models, pairs, common["higher_is_better"] is not False)
    return Benchmark(
        task=common["task"],
        metric=common["metric"],
        scorer=common["scorer"],
        n_questions=len(questions),
        n_models=len(models),
        n_pairs=len(pairs),
        n_close_pairs=int(close.sum()),
        se_total=_spread(c["se_total"][close]),
        se_data=_spread(c["se_data"][close]),
        se_prediction=_spread(c["se_prediction"][close]),
        correlation=_spread(c["correlation"][close]),
        disagreement=_spread(((c["wins_a"] + c["wins_b"]) / np.maximum(n, 1))[close]),
        smallest_significant_diff=_extreme(size[significant & tested], np.min),
        largest_insignificant_diff=_extreme(size[~significant & tested], np.max),
        beta_theory=_spread(beta[close]) if right else None,
        rule_of_thumb=_spread(thumb[close]) if right else None,
        solved_by_none=int((~solved).sum()) if solved is not None else None,
        signal_to_noise=_spread(np.array([step.ratio for step in steps])),
        best=tuple(model.model for model in models if model.among_best),
        steps=steps,
        cluster=common["cluster"],
    )


def _spread(values: FloatArray) -> Spread | None:
    values = values[np.isfinite(values)]
    if len(values) == 0:
        return None
    return Spread(float(np.median(values)), float(values.min()), float(values.max()))


def _extreme(values: FloatArray, which: Any) -> float | None:
    return float(which(values)) if len(values) else None


def _steps(models: tuple[Model, ...], pairs: Pairs, higher: bool) -> tuple[Step, ...]:
    """Adjacent sizes of every family that the names show, the larger less the smaller."""
    families: dict[str, list[tuple[float, int]]] = {}
    for i, model in enumerate(models):
        found = benchmark.size_of(model.model)
        if found is not None:
            families.setdefault(found[0], []).append((found[1], i))
    M = len(models)
    out = []
    for family, members in families.items():
        members.sort()
        for (small_size, i), (large_size, j) in pairwise(members):
            low, high = min(i, j), max(i, j)
            k = low * (2 * M - low - 1) // 2 + high - low - 1
            diff, se = float(pairs.columns["diff"][k]), float(pairs.columns["se_total"][k])
            if small_size == large_size or not se > 0 or np.isnan(diff):
                continue
            gain = (diff if j < i else -diff) * (1.0 if higher else -1.0)
            out.append(
                Step(
                    family=family, small=models[i].model, large=models[j].model, diff=gain, se_total=se, ratio=gain / se
                )
            )
    return tuple(out)


MOST_SLICES = 50_000
"""Pairs × slices that are computed; of more, `compare` has those of any two models."""


def pair_slices(
    board: BenchmarkResult, measured: Sequence[MeasuredRun], by: Sequence[str], settings: Settings
) -> tuple[PairSlice, ...]:
    """A − B of all pairs by slice, as `compare` has it; p-values adjusted over the slices of each pair.

    The slices are those of the run with the most questions; none where there are too many of them.
    """
    widest = max(measured, key=lambda item: len(item.parts[0].questions))
    fields = widest.parts[0].questions.fields
    if fields is None or len(widest.parts) > 1:
        return ()
    found = list(_slices(WithFields(widest.parts, (widest.run,), fields), by))
    if not found or len(found) * len(board.pairs) > MOST_SLICES:
        return ()
    alone = replace(settings, adjust="none")
    questions = widest.parts[0].questions
    places = [pair(questions, item.parts[0].questions) for item in measured]
    out = []
    for field, value, keys in found:
        chosen = [key in keys for key in questions.keys]
        some = [
            replace(item, parts=(_of(item.parts[0], same, chosen),))
            for item, same in zip(measured, places, strict=True)
        ]
        pairs = pairs_of(some, grid_of(some, None)[0], None, alone)[0]
        if pairs is not None:
            out.append(PairSlice(field, value, len(keys), pairs))
    p = np.array([one.pairs.columns["p_value"] for one in out])
    if len(out) and settings.adjust != "none":
        p = np.column_stack([decision.adjusted(column, "bh") for column in p.T])
    return tuple(
        replace(one, pairs=replace(one.pairs, columns=dict(one.pairs.columns) | {"p_adjusted": row}))
        for one, row in zip(out, p, strict=True)
    )


def _slices(item: WithFields, by: Sequence[str]) -> Iterator[tuple[str, str, frozenset[str]]]:
    """(field, value, the keys of its questions) of every slice."""
    for cut in divided(item, by, []):
        keys = np.asarray(cut.item.parts[0].questions.keys, dtype=object)
        for code, label in enumerate(cut.labels):
            yield cut.field, label, frozenset(keys[cut.codes == code])


def _of(part: Scores, same: Pairing, chosen: Sequence[bool]) -> Scores:
    rows = sorted(j for i, j in zip(same.rows_a, same.rows_b, strict=True) if chosen[i])
    return taken(part, np.array(rows, dtype=np.intp))
