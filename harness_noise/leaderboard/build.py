"""From many runs to an Arena: every pair on every benchmark, and the noise that each benchmark has.

The mathematics of one mean is `analysis`, of one pair `estimators.pairs`, which gives the numbers of
`compare` for all pairs at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np

from ..analysis.mean import analyze_run
from ..analysis.repeats import once
from ..analysis.sample import Unread, check_margin, group_parts, group_shares, score_range
from ..data.matching import pair
from ..data.scores import Group, Run, Scores, occurrences
from ..errors import InputError
from ..io.paths import telling_parts
from ..results.arena import Arena, Benchmark, Board, Model, Pairs, QuestionColumns, Spread, Step
from ..results.forms import merge_notes
from ..results.rows import Estimate
from ..settings import Settings
from ..stats import benchmark, decision, theory
from ..stats.all_pairs import Columns, Table, all_pairs, every_pair
from ..stats.arrays import BoolArray, FloatArray, IntArray
from ..stats.group_pairs import group_pairs
from ..stats.passk import pass_at_k, steps_of_k
from .align import Grid, grid, stacked
from .pairs import check, judged

CLOSE = 5.0
"""Pairs closer than this many total standard errors show the noise of a benchmark; Wang (2025), §4.1.2."""


def arena(runs: Sequence[Run], settings: Settings, *, baseline: str | None = None) -> Arena:
    """Every pair of runs on every task, metric and scorer that at least two of them measured.

    Args:
        runs: one run of each model; several runs of one model are told apart by their names.
        settings: as for `compare`; p-values are adjusted over the pairs of one benchmark.
        baseline: a model (or the name of a run) that becomes B in all its pairs.

    Raises:
        InputError: fewer than two runs, nothing that two of them measured, no question in common, an
            unknown baseline, or settings that only `compare` has.
    """
    check(settings)
    runs, twice = once(runs)
    if len(runs) < 2:
        have = f"only {runs[0].model} ({runs[0].name})" if runs else "no run"
        raise InputError(f"arena compares models and got {have}: give at least two runs")
    names = distinct_names(runs)
    runs, names, chosen = _baseline_last(runs, names, baseline)
    notes = list(merge_notes(*(run.notes for run in runs), twice))
    boards: list[Board] = []
    lonely: dict[tuple[str, str], list[str]] = {}
    benchmarks, remarks = _across_harnesses(_benchmarks(runs, names))
    notes += remarks
    for group, measured in benchmarks:
        first = measured[0].parts[0]
        if len(measured) < 2:
            if group is None:
                lonely.setdefault((first.task, measured[0].name), []).append(first.metric)
            continue
        board, remarks = _board(measured, group, settings)
        notes += remarks
        if board is not None:
            boards.append(board)
    if not boards:
        raise InputError(_nothing_shared(runs, names, bool(lonely)))
    left = [
        f"{task}, {_some(metrics)}: only {name} has {'it' if len(metrics) == 1 else 'them'}: nothing to compare"
        for (task, name), metrics in lonely.items()
    ]
    return Arena(settings.to_dict(), tuple(boards), chosen, merge_notes(notes, left, _corpus_notes(runs)))


def _corpus_notes(runs: Sequence[Run]) -> list[str]:
    """What is not in the arena though runs report it: metrics that are no mean over questions."""
    found: dict[str, list[str]] = {}
    for run in runs:
        for item in run.corpus:
            found.setdefault(item.task, []).append(item.metric)
    return [
        f"{task}, {_some(list(dict.fromkeys(metrics)))}: not in the arena, which compares means over questions; "
        "`compare` resamples the whole corpus"
        for task, metrics in found.items()
    ]


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")


@dataclass(frozen=True, slots=True, eq=False)
class _Measured:
    """What one run has of one benchmark: the scores of a task, or of the tasks of a group."""

    name: str
    run: Run
    parts: tuple[Scores, ...]

    @property
    def diagnostics(self) -> set[str]:
        return {code for part in self.parts for code in part.diagnostics}


def _benchmarks(runs: Sequence[Run], names: Sequence[str]) -> list[tuple[Group | None, list[_Measured]]]:
    """Every task × metric × scorer, then every group, with the runs that have it, in their order."""
    pairs = list(zip(names, runs, strict=True))
    tasks: dict[tuple[str, str, str], list[_Measured]] = {}
    for name, run in pairs:
        for part in run.scores:
            tasks.setdefault((part.task, part.metric, part.scorer), []).append(_Measured(name, run, (part,)))
    # of every group, the runs that report it themselves: `--group` and the harness say it for each
    groups: dict[tuple[str, str, str], tuple[Group, dict[str, Run]]] = {}
    for name, run in pairs:
        for group in run.groups:
            groups.setdefault((group.name, group.metric, group.scorer), (group, {}))[1][name] = run
    out: list[tuple[Group | None, list[_Measured]]] = [(None, measured) for measured in tasks.values()]
    for group, having in groups.values():
        found = [(name, run, group_parts(run, group)) for name, run in having.items()]
        measured = [_Measured(name, run, tuple(parts)) for name, run, parts in found if parts]
        if measured:
            out.append((group, measured))
    return out


Measurements: TypeAlias = list[tuple[Group | None, list[_Measured]]]


def _across_harnesses(found: Measurements) -> tuple[Measurements, list[str]]:
    """The benchmarks, and with each of them what other harnesses measured on its questions under another name.

    As `compare` does, where a run measured one thing only: accuracy of an Inspect log, score of a table.
    """
    out: Measurements = []
    notes = []
    for group, measured in found:
        first = measured[0]
        home = next((old for other, old in out if group is other is None and _same_elsewhere(old, measured)), None)
        if home is None:
            out.append((group, list(measured)))
            continue
        one, other = home[0].parts[0], first.parts[0]
        notes.append(f"compared {_what(one)} of {home[0].name} with {_what(other)} of {first.name}")
        home += measured
    return out, notes


def _same_elsewhere(old: Sequence[_Measured], new: Sequence[_Measured]) -> bool:
    """Whether two sets of runs, each of one harness, measured one thing each, on questions that they share."""
    single = all(len(item.run.scores) == 1 and not item.run.groups and not item.run.corpus for item in (*old, *new))
    apart = {item.run.harness for item in old}.isdisjoint(item.run.harness for item in new)
    a, b = old[0].parts[0], new[0].parts[0]
    opposed = {a.higher_is_better, b.higher_is_better} == {True, False}
    return single and apart and not opposed and bool(pair(a.questions, b.questions).rows_a)


def _what(item: Scores) -> str:
    return " / ".join(part for part in (item.task, item.metric, item.scorer) if part and part != "none")


def distinct_names(runs: Sequence[Run]) -> tuple[str, ...]:
    """The models' names; where several runs are of one model, each with what tells its run's name apart."""
    names = [run.model for run in runs]
    models: dict[str, list[int]] = {}
    for i, name in enumerate(names):
        models.setdefault(name, []).append(i)
    for model, same in models.items():
        if len(same) > 1:
            for i, part in zip(same, telling_parts([runs[i].name for i in same]), strict=True):
                names[i] = f"{model} ({part})"
    return occurrences(names)


def _baseline_last(
    runs: Sequence[Run], names: tuple[str, ...], baseline: str | None
) -> tuple[Sequence[Run], tuple[str, ...], str | None]:
    """B is the later of two runs, so the baseline goes to the end."""
    if baseline is None:
        return runs, names, None
    found = [
        i
        for i, (run, name) in enumerate(zip(runs, names, strict=True))
        if baseline in (name, run.model, run.name, run.path)
    ]
    if len(found) != 1:
        problem = "is not among the runs" if not found else f"stands for {len(found)} runs"
        raise InputError(f"the baseline {baseline!r} {problem}; there are {', '.join(names[:12])}")
    order = [i for i in range(len(runs)) if i != found[0]] + found
    return [runs[i] for i in order], tuple(names[i] for i in order), names[found[0]]


def _nothing_shared(runs: Sequence[Run], names: Sequence[str], different: bool) -> str:
    lists = []
    for name, run in list(zip(names, runs, strict=True))[:6]:
        have = ", ".join(f"{part.task}/{part.metric}" for part in run.scores[:4]) or "no mean over questions"
        lists.append(f"{name} has {have}{' and more' if len(run.scores) > 4 else ''}")
    what = "no two runs measured the same task and metric" if different else "no two runs share a question"
    return f"{what}: {'; '.join(lists)}. Choose runs of one benchmark, or say what to read with --task and --metric"


def _board(measured: list[_Measured], group: Group | None, settings: Settings) -> tuple[Board | None, list[str]]:
    parts = [item.parts for item in measured]
    first = parts[0][0]
    check_margin(settings, [part for items in parts for part in items])
    task = first.task if group is None else group.name
    if group is None:
        board = grid([items[0] for items in parts])
    else:
        tasks = [grid(column) for column in zip(*parts, strict=True)]
        board = stacked(tasks, group.tasks, group_shares(parts[0], group))
    notes = list(board.notes)
    a, b = every_pair(len(parts))
    fixed = settings.questions_are == "fixed"
    columns = (all_pairs if group is None else group_pairs)(board.table, a, b, settings.se, fixed=fixed)
    columns = _scores_alone_agree(columns, board.table, [any(x.answers_differ for x in items) for items in parts])
    if not (columns.n > 0).any():
        return None, notes
    apart = int((columns.n == 0).sum())
    if apart:
        notes.append(f"{task}, {first.metric}: {apart} of {len(columns)} pairs share no question")
    higher = next((x.higher_is_better for items in parts for x in items if x.higher_is_better is not None), None)
    if higher is None:
        notes.append(f"{first.metric}: the run does not say whether higher is better; it counts as better")
    strata = board.table.strata
    clustered = not fixed and (board.table.clusters is not None or (strata is not None and strata.between))
    common = {
        "task": task,
        "metric": first.metric,
        "scorer": first.scorer,
        "higher_is_better": higher,
        "estimand": settings.estimand,
        "level": settings.level,
        "test": settings.test,
        "cluster": board.cluster_spec if clustered else None,
    }
    bounds = score_range([Unread.of(part) for items in parts for part in items], settings)
    names, runs = tuple(item.name for item in measured), tuple(item.run.name for item in measured)
    pairs = judged(
        columns, board.table, names, runs, common, settings,
        width=None if bounds is None else bounds[1] - bounds[0],
        n_missing=np.array([sum(part.n_missing for part in items) for items in parts], dtype=np.intp),
        codes=_codes(measured, board, a, b),
    )  # fmt: skip
    models = _models(measured, group, board, pairs, settings)
    questions = _questions(common, board)
    row = _benchmark(common, pairs, questions, models, questions.n_solved is not None)
    return Board(row, models, pairs, questions, board.table.mean), notes


def _questions(common: dict[str, Any], board: Grid) -> QuestionColumns:
    higher = common["higher_is_better"] is not False
    W = ~np.isnan(board.table.mean)
    unit = bool(board.unit.all())
    mean = np.where(W, board.table.mean, 0.0).sum(axis=1) / np.maximum(W.sum(axis=1), 1)
    tau, p_tau = benchmark.kendall_tau(board.table.mean)
    return QuestionColumns(
        common["task"], common["metric"], common["scorer"], board.questions.keys, board.labels, board.questions.texts,
        difficulty=(1 - mean if higher else mean) if unit else np.full(len(W), np.nan),
        n_models=W.sum(axis=1),
        n_solved=board.solved.sum(axis=1) if unit and higher else None,
        tau=tau,
        p_tau=p_tau,
        suspect=benchmark.suspects(tau, p_tau),
    )  # fmt: skip


def _codes(measured: Sequence[_Measured], board: Grid, a: IntArray, b: IntArray) -> dict[str, BoolArray]:
    """Diagnostics of the runs, as pairs have them."""
    out: dict[str, BoolArray] = {}
    for code in sorted(set().union(*(item.diagnostics for item in measured))):
        has = np.array([code in item.diagnostics for item in measured])
        out[code] = has[a] | has[b]
    out["shared_repeat_noise"] = board.shared_noise[a] | board.shared_noise[b]
    if board.prompts is not None:
        kinds, which = np.unique(board.prompts, axis=1, return_inverse=True)
        which = which.reshape(-1)
        columns = np.ascontiguousarray(kinds.T)
        differ = np.array(
            [((columns != one) & (columns >= 0) & (one >= 0)).any(axis=1) for one in columns], dtype=np.bool_
        )
        out["different_prompts"] = differ[which[a], which[b]]
    return out


def _scores_alone_agree(columns: Columns, table: Table, answers_differ: Sequence[bool]) -> Columns:
    """The pairs whose answers are known to differ where their scores do not: as in `samples.kernel`, another code."""
    same = columns.flags.get("identical_repeats")
    told = np.zeros(len(answers_differ), dtype=np.bool_) if table.identical is None else table.identical
    if same is None or not any(answers_differ):
        return columns
    alone = np.zeros_like(same)
    for i in np.flatnonzero(same & ~told[columns.a] & ~told[columns.b]):
        sides = int(columns.a[i]), int(columns.b[i])
        shared = (table.count[:, sides] > 0).all(axis=1)
        constant = [
            m for m in sides if table.count[shared, m].max() > 1 and not np.nanmax(table.var[shared, m], initial=0) > 0
        ]
        alone[i] = all(answers_differ[m] for m in constant)
    return replace(columns, flags=columns.flags | {"identical_repeats": same & ~alone, "identical_scores_only": alone})


def _models(
    measured: Sequence[_Measured], group: Group | None, board: Grid, pairs: Pairs, settings: Settings
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
            alone = replace(alone, scores=(), groups=(group,), parts=item.parts)
        estimate = analyze_run(alone, settings).estimates[0]
        rates = share[m][~np.isnan(share[m])]
        known = not np.isnan(p_best[m])
        out.append(
            Model(
                **{field: getattr(estimate, field) for field in Estimate.__dataclass_fields__} | {"model": item.name},
                win_rate=float(rates.mean()) if len(rates) else None,
                pass_at_k=_pass_at_k(board.values[m], board.table.binary and higher and group is None),
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
    from scipy import special

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
    known = (~np.isnan(p)).any(axis=1)
    out = np.full(M, np.nan)
    out[known] = np.minimum(1.0, (M - 1) * np.nanmin(p[known], axis=1))
    return out


def _pass_at_k(values: FloatArray, binary: bool) -> dict[int, float] | None:
    values = values[~np.isnan(values).all(axis=1)]
    if not binary or len(values) == 0:
        return None
    least = int((~np.isnan(values)).sum(axis=1).min())
    return {k: float(pass_at_k(values, k).mean()) for k in steps_of_k(least)}


def _benchmark(
    common: dict[str, Any], pairs: Pairs, questions: QuestionColumns, models: tuple[Model, ...], right: bool
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
            beta = c["se_total"] / np.sqrt(theory.beta_variance(p, float(solved.mean())) / n)
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
                    family=family,
                    small=models[i].model,
                    large=models[j].model,
                    diff=gain,
                    se_total=se,
                    ratio=gain / se,
                )
            )
    return tuple(out)
