"""From many runs to an Arena: every pair on every benchmark, and the noise that each benchmark has.

The mathematics of one mean is `analysis`, of one pair `estimators.pairs`, which gives the numbers of
`compare` for all pairs at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from .analysis import analyze_run
from .arena_pairs import check, judged
from .arena_results import Arena, Benchmark, Board, Model, Pairs, QuestionColumns, Spread, Step
from .errors import InputError
from .estimators import benchmark as theory
from .estimators.contrast import BoolArray, FloatArray, IntArray, cluster_codes, question_stats
from .estimators.pairs import Table, all_pairs, every_pair
from .estimators.passk import pass_at_k
from .estimators.runs import run_component
from .pairing import pair
from .results import Estimate, merge_notes
from .samples import SHARED_NOISE_P
from .scores import Questions, Run, Scores
from .settings import Settings

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
    if len(runs) < 2:
        have = f"only {runs[0].model} ({runs[0].name})" if runs else "no run"
        raise InputError(f"arena compares models and got {have}: give at least two runs")
    names = distinct_names(runs)
    runs, names, chosen = _baseline_last(runs, names, baseline)
    notes = list(merge_notes(*(run.notes for run in runs)))
    keys = list(dict.fromkeys((part.task, part.metric, part.scorer) for run in runs for part in run.scores))
    boards = []
    lonely = []
    for key in keys:
        found = [
            (name, run, part)
            for name, run in zip(names, runs, strict=True)
            for part in run.scores
            if (part.task, part.metric, part.scorer) == key
        ]
        if len(found) < 2:
            lonely.append((key, found[0][0]))
            continue
        board, remarks = _board(found, settings)
        notes += remarks
        if board is not None:
            boards.append(board)
    for (task, metric, _), name in lonely:
        notes.append(f"{task}, {metric}: only {name} has it, so there is nothing to compare it with")
    if not boards:
        raise InputError(_nothing_shared(runs, names, bool(lonely) and len(lonely) == len(keys)))
    if any(run.groups for run in runs):
        notes.append("groups of tasks are left out: arena shows each task; `compare` has the groups")
    return Arena(settings.to_dict(), tuple(boards), chosen, merge_notes(notes))


def distinct_names(runs: Sequence[Run]) -> tuple[str, ...]:
    """The models' names; where two runs are of one model, each with the name of its run."""
    models = [run.model for run in runs]
    names: list[str] = []
    for run in runs:
        name = run.model if models.count(run.model) == 1 else f"{run.model} ({run.name})"
        n = 2
        unique = name
        while unique in names:
            unique = f"{name} #{n}"
            n += 1
        names.append(unique)
    return tuple(names)


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
        have = ", ".join(f"{part.task}/{part.metric}" for part in run.scores[:4]) or "nothing"
        lists.append(f"{name} has {have}{' and more' if len(run.scores) > 4 else ''}")
    what = "no two runs measured the same task and metric" if different else "no two runs share a question"
    return f"{what}: {'; '.join(lists)}. Choose runs of one benchmark, or say what to read with --task and --metric"


@dataclass(frozen=True, slots=True, eq=False)
class _Grid:
    """The runs of one benchmark on the union of their questions."""

    questions: Questions
    table: Table
    labels: tuple[str | None, ...]
    cluster_spec: str | None
    prompts: IntArray | None
    """(N, M) codes of the prompts, −1 where missing; None where they cannot differ."""
    unit: BoolArray
    solved: BoolArray
    """(N, M) at least one answer has score 1."""
    shared_noise: BoolArray
    notes: tuple[str, ...]


def _board(found: list[tuple[str, Run, Scores]], settings: Settings) -> tuple[Board | None, list[str]]:
    names = tuple(name for name, _, _ in found)
    parts = [part for _, _, part in found]
    first = parts[0]
    grid = _grid(parts)
    notes = list(grid.notes)
    a, b = every_pair(len(parts))
    columns = all_pairs(grid.table, a, b, settings.se)
    if not (columns.n > 0).any():
        return None, notes
    apart = int((columns.n == 0).sum())
    if apart:
        notes.append(f"{first.task}, {first.metric}: {apart} of {len(columns)} pairs share no question")
    higher = next((part.higher_is_better for part in parts if part.higher_is_better is not None), None)
    common = {
        "task": first.task,
        "metric": first.metric,
        "scorer": first.scorer,
        "higher_is_better": higher,
        "level": settings.level,
        "test": settings.test,
        "cluster": grid.cluster_spec if grid.table.clusters is not None else None,
    }
    pairs = judged(
        columns, names, tuple(run.name for _, run, _ in found), common, settings,
        unit=grid.unit,
        n_missing=np.array([part.n_missing for part in parts], dtype=np.intp),
        codes=_codes(parts, grid, a, b),
    )  # fmt: skip
    models = _models(found, grid, pairs, settings, higher)
    unit = bool(grid.unit.all())
    W = ~np.isnan(grid.table.mean)
    with np.errstate(invalid="ignore"):
        mean_score = np.where(W, grid.table.mean, 0.0).sum(axis=1) / W.sum(axis=1)
    quality = np.array([np.nan if item.mean is None else item.mean for item in models])
    questions = QuestionColumns(
        first.task, first.metric, first.scorer, grid.questions.keys, grid.labels, grid.questions.texts,
        difficulty=(mean_score if higher is False else 1 - mean_score) if unit else np.full(len(W), np.nan),
        n_models=W.sum(axis=1),
        n_solved=grid.solved.sum(axis=1) if unit and higher is not False else None,
        tau=theory.kendall_tau(grid.table.mean, quality),
    )  # fmt: skip
    row = _benchmark(common, pairs, questions, models, unit and higher is not False)
    return Board(row, models, pairs, questions, grid.table.mean), notes


def _grid(parts: Sequence[Scores]) -> _Grid:
    questions, rows, notes = _union([part.questions for part in parts])
    N, M = len(questions), len(parts)
    mean, var = np.full((N, M), np.nan), np.full((N, M), np.nan)
    count = np.zeros((N, M), dtype=np.intp)
    solved = np.zeros((N, M), dtype=np.bool_)
    unit = np.zeros(M, dtype=np.bool_)
    noisy = np.zeros(M, dtype=np.bool_)
    labels: list[str | None] = [None] * N
    spec, binary = None, True
    for m, (part, at) in enumerate(zip(parts, rows, strict=True)):
        try:
            stats = question_stats(part.values)
        except ValueError as error:
            raise InputError(f"{part.task}, {part.metric}: {error}") from None
        mean[at, m], var[at, m], count[at, m] = stats.mean, stats.var, stats.count
        scored = part.values[~np.isnan(part.values)]
        unit[m] = len(scored) > 0 and scored.min() >= 0 and scored.max() <= 1
        binary = binary and bool(((scored == 0) | (scored == 1)).all())
        solved[at, m] = (part.values >= 1).any(axis=1)
        noisy[m] = _shared_noise(part.values, stats.count)
        if part.clusters is not None:
            if spec is not None and part.cluster_spec != spec:
                notes.append(
                    f"{part.task}: runs carry different clusters ({spec}, {part.cluster_spec}); "
                    "a question keeps those of the first run that has it"
                )
            spec = spec or part.cluster_spec
            for i, label in zip(at, part.clusters, strict=True):
                labels[i] = label if labels[i] is None else labels[i]
    keep = np.flatnonzero(count.any(axis=1))
    answers = None
    if not binary and (count > 1).any():
        answers = tuple(_scatter(part.values, at, N)[keep] for part, at in zip(parts, rows, strict=True))
    clusters = None
    if any(part.clusters is not None for part in parts):
        own = [labels[i] if labels[i] is not None else ("", int(i)) for i in keep]
        clusters = cluster_codes(own)[0]
    identical = np.array(["identical_repeats" in part.diagnostics for part in parts])
    table = Table(mean[keep], var[keep], count[keep], clusters, identical, answers, binary)
    return _Grid(
        _take(questions, keep), table, tuple(labels[i] for i in keep), spec, _prompts(parts, rows, count, keep), unit,
        solved[keep], noisy, tuple(dict.fromkeys(notes)),
    )  # fmt: skip


def _take(questions: Questions, keep: IntArray) -> Questions:
    texts = questions.texts
    return Questions(
        tuple(questions.keys[i] for i in keep),
        questions.kind,
        texts=None if texts is None else tuple(texts[i] for i in keep),
    )


def _scatter(values: FloatArray, at: IntArray, N: int) -> FloatArray:
    out = np.full((N, values.shape[1]), np.nan)
    out[at] = values
    return out


def _shared_noise(values: FloatArray, count: IntArray) -> bool:
    """The F test of `samples.kernel`: do the repeats of this run move together?"""
    values = values[count > 0]
    n = len(values)
    if n == 0 or values.shape[1] < 2:
        return False
    component = run_component(values, np.full(n, 1 / n), np.zeros(n, dtype=np.intp))
    p = None if component is None else component.p_value
    return p is not None and p < SHARED_NOISE_P


def _union(questions: Sequence[Questions]) -> tuple[Questions, list[IntArray], list[str]]:
    """All questions of the runs, each once, and the row there of every run's questions.

    Runs are matched by `pairing.pair`, one after the other, to the questions found so far; it starts
    with a run that knows its questions' texts and has most of them.
    """
    order = sorted(range(len(questions)), key=lambda i: (questions[i].inputs is None, -len(questions[i])))
    union = questions[order[0]]
    rows: list[IntArray] = [np.zeros(0, dtype=np.intp)] * len(questions)
    notes: list[str] = []
    for i in order:
        one = questions[i]
        if (one.kind, one.keys, one.inputs, one.targets) == (union.kind, union.keys, union.inputs, union.targets):
            rows[i] = np.arange(len(union))
            continue
        found = pair(union, one)
        if found.note is not None:
            notes.append(found.note)
        at = np.full(len(one), -1, dtype=np.intp)
        at[found.rows_b] = found.rows_a
        new = np.flatnonzero(at < 0)
        at[new] = len(union) + np.arange(len(new))
        rows[i] = at
        if len(new):
            union = _extend(union, one, new)
    return union, rows, notes


def _extend(union: Questions, one: Questions, new: IntArray) -> Questions:
    """The union with the questions of another run that it did not have."""
    taken = set(union.keys)
    keys = []
    for j in new:
        key, n = one.keys[j], 2
        while key in taken:
            key = f"{one.keys[j]}#{n}"
            n += 1
        taken.add(key)
        keys.append(key)

    def more(have: tuple[str, ...] | None, his: tuple[str, ...] | None, blank: str) -> tuple[str, ...] | None:
        if have is None:
            return None
        # a text that no other run's can equal, where this run does not say
        return have + tuple(f"{blank}{key}" if his is None else his[j] for key, j in zip(keys, new, strict=True))

    return replace(
        union,
        keys=union.keys + tuple(keys),
        inputs=more(union.inputs, one.inputs, "\x00"),
        targets=more(union.targets, one.targets, "\x00"),
        prompts=None,
        texts=more(union.texts, one.texts, ""),
    )


def _prompts(parts: Sequence[Scores], rows: Sequence[IntArray], count: IntArray, keep: IntArray) -> IntArray | None:
    """Codes of the prompts, for `different_prompts`; None where all that are known agree."""
    codes = np.full(count.shape, -1, dtype=np.intp)
    index: dict[tuple[int, str], int] = {}
    for m, (part, at) in enumerate(zip(parts, rows, strict=True)):
        if part.questions.prompts is not None:
            codes[at, m] = [
                index.setdefault((int(i), text), len(index)) for i, text in zip(at, part.questions.prompts, strict=True)
            ]
    codes[count == 0] = -1
    codes = codes[keep]
    top = codes.max(axis=1, keepdims=True, initial=-1)
    return None if ((codes == top) | (codes < 0)).all() else codes


def _codes(parts: Sequence[Scores], grid: _Grid, a: IntArray, b: IntArray) -> dict[str, BoolArray]:
    """Diagnostics of the runs, as pairs have them."""
    out: dict[str, BoolArray] = {}
    for code in sorted({code for part in parts for code in part.diagnostics}):
        has = np.array([code in part.diagnostics for part in parts])
        out[code] = has[a] | has[b]
    out["shared_repeat_noise"] = grid.shared_noise[a] | grid.shared_noise[b]
    if grid.prompts is not None:
        kinds, which = np.unique(grid.prompts, axis=1, return_inverse=True)
        which = which.reshape(-1)
        columns = np.ascontiguousarray(kinds.T)
        differ = np.array(
            [((columns != one) & (columns >= 0) & (one >= 0)).any(axis=1) for one in columns], dtype=np.bool_
        )
        out["different_prompts"] = differ[which[a], which[b]]
    return out


def _models(
    found: list[tuple[str, Run, Scores]], grid: _Grid, pairs: Pairs, settings: Settings, higher: bool | None
) -> tuple[Model, ...]:
    M = len(found)
    n = pairs.columns["n_questions"]
    share = np.full((M, M), np.nan)
    with np.errstate(invalid="ignore", divide="ignore"):
        rate = (pairs.columns["wins_a"] + pairs.columns["ties"] / 2) / n
    rate = rate if higher is not False else 1 - rate
    share[pairs.a, pairs.b], share[pairs.b, pairs.a] = rate, 1 - rate
    p_best = best_p(pairs, M, higher is not False)
    alpha = 1 - settings.level
    out = []
    for m, (name, run, part) in enumerate(found):
        lone = replace(run, scores=(part,), groups=(), skipped=(), corpus=(), parts=())
        item = analyze_run(lone, settings).estimates[0]
        rates = share[m][~np.isnan(share[m])]
        known = not np.isnan(p_best[m])
        out.append(
            Model(
                **{field: getattr(item, field) for field in Estimate.__dataclass_fields__} | {"model": name},
                win_rate=float(rates.mean()) if len(rates) else None,
                pass_at_k=_pass_at_k(part.values, grid.table.binary and higher is not False),
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
    return {k: float(pass_at_k(values, k).mean()) for k in theory.steps_of_k(least)}


def _benchmark(
    common: dict[str, Any], pairs: Pairs, questions: QuestionColumns, models: tuple[Model, ...], right: bool
) -> Benchmark:
    c = pairs.columns
    n = c["n_questions"]
    with np.errstate(invalid="ignore", divide="ignore"):
        close = (np.abs(c["diff"]) < CLOSE * c["se_total"]) & (n > 0)
        significant = pairs.verdict > 0
        significant &= pairs.verdict < 3
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
        found = theory.size_of(model.model)
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
