"""From many runs to an Arena: every pair on every benchmark, and the noise that is characteristic of each benchmark.

Means come from `analysis`, and pairs from `columns`, which computes them all with the functions of `compare`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
from scipy.sparse.csgraph import connected_components

from ...analysis.mean import analyze_run
from ...analysis.overall import Measure, by_tops, no_row_note, unknown_weights
from ...analysis.ranges import zeros_below
from ...analysis.repeats import copy_notes, without_copies
from ...analysis.sample import members_of, own_group, scores_of_rows
from ...arrays import BoolArray, FloatArray, columns_of
from ...data.matching import Pairing, pair_questions
from ...data.native_values import agree_on_metrics
from ...data.notes import Note, merge_notes
from ...data.questions import occurrences
from ...data.scores import Group, Run, Scores
from ...errors import InputError, some_of
from ...extras import module_of
from ...io.joining import check_clusters
from ...io.paths import telling_parts
from ...results.forms import finite
from ...results.rows import PEOPLE
from ...settings import Settings
from ...stats import decision
from .. import sizes
from ..known import WithFields
from . import benchmark
from .checkpoints import with_checkpoints
from .columns import Table
from .overall import Overall
from .pairs import Grid, grid, pairs_of, square
from .ranks import across_tasks, best_p, passes, ranked
from .results import Arena, Benchmark, BenchmarkResult, Model, Pairs, PairSlice, Question, Spread, Step
from .scoring import MeasuredRun

CLOSE = 5.0
"""Total standard errors. Pairs that are closer show the noise of a benchmark [Wang, §4.1.2]."""
MOST_SLICES = 50_000
"""The most pairs × slices that are computed. If there are more, `compare` has those of any two models."""


def arena(
    runs: Sequence[Run],
    settings: Settings,
    *,
    baseline: str | None = None,
    top: int | None = None,
    by: Sequence[str] = (),
    over: str | None = None,
) -> Arena:
    """Compare every pair of runs on what two or more of them have. Return an `Arena`. Refuse fewer than two runs.

    Args:
        runs: one run of each model; several runs of one model are told apart by their names.
        settings: as for `compare`; p-values are adjusted over the pairs of one benchmark.
        baseline: a model (or the name of a run) that becomes B in all its pairs.
        top: K, to ask which models may be among the K best.
        by: properties of the questions (`ReadOptions.fields`), for the models' means slice by slice.
        over: what orders the runs as checkpoints, see `with_checkpoints`.

    Raises:
        InputError: fewer than two runs, nothing that two of them measured, no question in common, an
            unknown baseline, or settings that only `compare` has.
    """
    settings.check("arena")
    runs, twice = without_copies(runs)
    runs, unnamed = agree_on_metrics(runs)
    check_clusters(settings.cluster, runs)
    if len(runs) < 2:
        have = f"only {runs[0].model} ({runs[0].name})" if runs else "no run"
        raise InputError(f"arena compares models and got {have}: give at least two runs")
    names = distinct_names(runs)
    runs, names, chosen = _baseline_last(runs, names, baseline)
    boards, tasks, remarks = _boards(runs, names, settings, top, by)
    zeros = zeros_below((part for run in runs for part in run.scores), settings)
    whole = (*copy_notes(runs), *remarks, *_corpus_notes(runs), *zeros)
    said = merge_notes(*(run.notes for run in runs), twice, unnamed, whole)
    of_tasks = [(board, part) for board, part in zip(boards, tasks, strict=True) if part is not None]
    across = across_tasks(of_tasks, settings)
    result = Arena(settings.to_dict(), tuple(boards), chosen, said, across_tasks=across)
    if over is not None:
        result = with_checkpoints(result, dict(zip(names, runs, strict=True)), over)
    if not by:
        return result
    named = [replace(run, model=name) for run, name in zip(runs, names, strict=True)]
    with_slices: Arena = module_of("by").slices_of_runs(named, by, settings).beside(result)
    return with_slices


def _boards(
    runs: Sequence[Run], names: Sequence[str], settings: Settings, top: int | None, by: Sequence[str]
) -> tuple[list[BenchmarkResult], list[Scores | None], list[Note]]:
    """Return each benchmark's result, one run's scores of each (None: a group), notes. Refuse if nothing is shared."""
    boards: list[BenchmarkResult] = []
    tasks: list[Scores | None] = []
    lonely: dict[tuple[str, str], list[str]] = {}
    benchmarks, of_groups = measurements(runs, names)
    benchmarks, notes = _across_harnesses(benchmarks)
    overall, said = _overall(benchmarks, len(runs), settings)
    benchmarks += overall
    notes += [*of_groups, *said, *unknown_weights(runs, settings)]
    for group, measured in benchmarks:
        first = measured[0].parts[0]
        if len(measured) < 2:
            if group is None:
                lonely.setdefault((first.task, measured[0].name), []).append(first.metric)
            continue
        sets, remarks = boards_of(measured, group, settings, top)
        notes += remarks
        for of_board, board in sets:
            of_pairs = pair_slices(board, of_board, by, settings) if by and group is None else ()
            boards.append(replace(board, slices=of_pairs))
            tasks.append(first if group is None else None)
    if not boards:
        raise InputError(_nothing_shared(runs, names, bool(lonely)))
    notes += [
        Note("only_one_has", f"only {name} has {'it' if len(metrics) == 1 else 'them'}: nothing to compare").of(
            task, some_of(metrics, 4)
        )
        for (task, name), metrics in lonely.items()
    ]
    return boards, tasks, notes


def _corpus_notes(runs: Sequence[Run]) -> list[Note]:
    """Return notes on corpus metrics (F1, BLEU, …) of the runs, which an arena leaves out."""
    by_task: dict[str, list[str]] = {}
    for run in runs:
        for corpus in run.corpus:
            by_task.setdefault(corpus.task, []).append(corpus.metric)
    said = "not in the arena, which compares means over questions (`compare` resamples the whole corpus)"
    return [
        Note("not_in_arena", said).of(task, some_of(list(dict.fromkeys(metrics)), 4))
        for task, metrics in by_task.items()
    ]


Measurements: TypeAlias = list[tuple[Group | None, list[MeasuredRun]]]


def measurements(runs: Sequence[Run], names: Sequence[str]) -> tuple[Measurements, list[Note]]:
    """Return (group or None, its runs) for each task × metric × scorer and then each group, and notes."""
    pairs = list(zip(names, runs, strict=True))
    tasks: dict[tuple[str, str, str], list[MeasuredRun]] = {}
    for name, run in pairs:
        for part in run.scores:
            tasks.setdefault(part.key, []).append(MeasuredRun(name, run, (part,)))
    of_tasks: Measurements = [(None, measured) for measured in tasks.values()]
    groups, notes = _groups(pairs)
    return of_tasks + groups, notes


def _groups(pairs: Sequence[tuple[str, Run]]) -> tuple[Measurements, list[Note]]:
    """Return (group, runs that have it) for each group, over tasks that all its runs have (none: left out), notes."""
    reporting: dict[tuple[str, str, str], list[tuple[str, Run, Group]]] = {}
    for name, run in pairs:
        for own in run.groups:
            reporting.setdefault(own.key, []).append((name, run, own))
    out: Measurements = []
    notes = []
    for several in reporting.values():
        have = [{part.task: part for part in members_of(run, own, own.tasks)} for _, run, own in several]
        scored = [(name, run, parts) for (name, run, _), parts in zip(several, have, strict=True) if parts]
        group = several[0][2]
        every = dict.fromkeys(task for _, _, own in several for task in own.tasks)
        common = [task for task in group.tasks if all(task in parts for _, _, parts in scored)]
        if len(scored) > 1 and len(common) < len(every):
            lone = [task for task in every if task not in common]
            how = f"over the {len(common)} tasks that all its runs have"
            how = how if common else "left out: its runs share no task"
            said = f"{group.name} {group.metric}: {how}, without {some_of(lone, 4)}"
            notes.append(Note("group_in_part", said, group.name))
        if not scored or not common:
            continue
        out.append(
            (
                group.over(common),
                [MeasuredRun(n, run, tuple(parts[task] for task in common)) for n, run, parts in scored],
            )
        )
    return out, notes


def _overall(benchmarks: Measurements, n_runs: int, settings: Settings) -> tuple[Measurements, list[Note]]:
    """Return (group of all tasks, runs) per metric and scorer that allows it, over tasks that all runs have, notes."""
    by_measure: dict[Measure, list[tuple[Group | None, list[MeasuredRun]]]] = {}
    for group, measured in benchmarks:
        first = measured[0].parts[0]
        by_measure.setdefault((first.metric, first.scorer), []).append((group, measured))
    out: Measurements = []
    notes = []
    for measure, entries in by_measure.items():
        whole = [(group, measured) for group, measured in entries if len(measured) == n_runs]
        columns = [(group, list(zip(*(entry.parts for entry in measured), strict=True))) for group, measured in whole]
        found = by_tops([sides[0] for group, sides in columns if group is None], [(g, s) for g, s in columns if g])
        rows = found.get(measure)
        why = "" if rows is None else rows.why_not(settings)
        if rows is None or why is not None:
            notes += no_row_note(measure, why or "")
            continue
        runs, group = whole[0][1], Overall.of(rows, measure, settings)
        each = zip(*(rows.parts[task] for task in group.tasks), strict=True)
        out.append((group, [MeasuredRun(e.name, e.run, parts) for e, parts in zip(runs, each, strict=True)]))
        partly = [(g, measured[0].parts[0].task) for g, measured in entries if len(measured) < n_runs]
        apart = [task if g is None else g.name for g, task in partly]
        if apart:
            said = f"{measure[0]}: the overall row is without {some_of(apart, 4)}, which not all runs have"
            notes.append(Note("overall_in_part", said))
    return out, notes


def _across_harnesses(benchmarks: Measurements) -> tuple[Measurements, list[Note]]:
    """Merge single benchmarks of two harnesses that share questions under other names. Return all benchmarks and notes.

    As `compare` does, where a run measured one thing only: accuracy of an Inspect log, score of a table.
    """
    out: Measurements = []
    notes = []
    for group, measured in benchmarks:
        first = measured[0]
        home = next((old for other, old in out if group is other is None and _same_elsewhere(old, measured)), None)
        if home is None:
            out.append((group, list(measured)))
            continue
        part, other = home[0].parts[0], first.parts[0]
        said = f"compared {part.title} of {home[0].name} with {other.title} of {first.name}"
        notes.append(Note("named_differently", said))
        home += measured
    return out, notes


def _same_elsewhere(old: Sequence[MeasuredRun], new: Sequence[MeasuredRun]) -> bool:
    """Return True if runs of disjoint harnesses have one benchmark each, share a question, and no directions oppose."""
    single = all(len(entry.run.scores) == 1 and not entry.run.groups and not entry.run.corpus for entry in (*old, *new))
    apart = {entry.run.harness for entry in old}.isdisjoint(entry.run.harness for entry in new)
    a, b = old[0].parts[0], new[0].parts[0]
    opposed = {a.higher_is_better, b.higher_is_better} == {True, False}
    return single and apart and not opposed and bool(pair_questions(a.questions, b.questions).rows_a)


def distinct_names(runs: Sequence[Run]) -> tuple[str, ...]:
    """Return the models' names. Several runs of one model get the part in which their names differ, or a number."""
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
    """Return runs and names with the baseline's last, and its name (or None). Refuse one of no or of several runs."""
    if baseline is None:
        return runs, names, None
    matches = [
        i
        for i, (run, name) in enumerate(zip(runs, names, strict=True))
        if baseline in (name, run.model, run.name, run.path)
    ]
    if len(matches) != 1:
        problem = "is not among the runs" if not matches else f"stands for {len(matches)} runs"
        raise InputError(f"the baseline {baseline!r} {problem}. There are {', '.join(names[:12])}")
    order = [i for i in range(len(runs)) if i != matches[0]] + matches
    return [runs[i] for i in order], tuple(names[i] for i in order), names[matches[0]]


def _nothing_shared(runs: Sequence[Run], names: Sequence[str], different: bool) -> str:
    lists = []
    for name, run in list(zip(names, runs, strict=True))[:6]:
        have = ", ".join(f"{part.task}/{part.metric}" for part in run.scores[:4]) or "no mean over questions"
        lists.append(f"{name} has {have}{' and more' if len(run.scores) > 4 else ''}")
    what = "no two runs measured the same task and metric" if different else "no two runs share a question"
    return f"{what}: {'; '.join(lists)}. Choose runs of one benchmark, or say what to read with `tasks` and `metrics`"


def boards_of(
    measured: list[MeasuredRun], group: Group | None, settings: Settings, top: int | None = None
) -> tuple[list[tuple[list[MeasuredRun], BenchmarkResult]], list[Note]]:
    """Return (runs, result) for each set of two or more runs that share questions (later sets as task#2 …), and notes.

    Means are not compared across such sets.
    """
    board = grid(measured, group)
    sets, notes = _sets(board.table), list(board.notes)
    if len(sets) == 1:
        result, more = _board(measured, board, group, settings, top)
        return [] if result is None else [(measured, result)], [*notes, *more]
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
        said.append(f"{task} of {some_of([entry.name for entry in some], 4)}")
    if shared:
        left = (
            f"; {some_of(alone, 4)} {'has' if len(alone) == 1 else 'have'} no question of another run" if alone else ""
        )
        text = (
            f"{len(measured)} runs answered {len(sets)} sets of questions that share none, and means of different "
            f"questions are not compared: {'; '.join(said)}{left}"
        )
        notes.append(Note("sets_of_questions", text).of(name, metric))
    else:
        none = f"left out: no question has a score in two of the {len(measured)} runs"
        notes.append(Note("nothing_shared", none).of(name, metric))
    return out, notes


def _renamed(entry: MeasuredRun, group: Group | None, task: str) -> MeasuredRun:
    return entry if group is not None else replace(entry, parts=tuple(replace(part, task=task) for part in entry.parts))


def _sets(table: Table) -> list[list[int]]:
    """Return lists of run numbers: runs in one list share questions, directly or through other runs."""
    scored = (table.stats.count.T > 0).astype(np.float32)
    n, which = connected_components(scored.T @ scored > 0, directed=False)
    return [np.flatnonzero(which == i).tolist() for i in range(n)]


def _board(
    measured: list[MeasuredRun], board: Grid, group: Group | None, settings: Settings, top: int | None
) -> tuple[BenchmarkResult | None, list[Note]]:
    pairs, notes = pairs_of(measured, board, group, settings)
    if pairs is None:
        return None, notes
    common = pairs.common
    models = _models(measured, group, board, pairs, settings)
    scores = [sample.values for sample in board.samples]
    unit, solved = common["unit"] is None and not any(((x < 0) | (x > 1)).any() for x in scores), None
    if unit and common["higher_is_better"] is not False:
        solved = np.stack([(x >= 1).any(axis=1) for x in scores], axis=1)
    questions = _questions(common, board, solved, unit=unit)
    row = _benchmark(common, pairs, questions, models, solved is not None)
    models, row = ranked(models, row, board.table, solved, pairs, settings, top)
    result = BenchmarkResult(
        row, models, pairs, questions, board.table.mean, plan=board.table.design, texts=board.questions.texts
    )
    return result, notes


def _questions(common: Mapping[str, Any], board: Grid, solved: BoolArray | None, *, unit: bool) -> tuple[Question, ...]:
    """Return a row per question: difficulty (1 − mean, None unless in 0–1), models that solved it, Kendall tau."""
    W = ~np.isnan(board.table.mean)
    n_models, mean = W.sum(axis=1), np.where(W, board.table.mean, 0.0).sum(axis=1)
    mean /= np.maximum(n_models, 1)
    tau, p_tau = benchmark.kendall_tau(board.table.mean)
    if common["estimand"] == PEOPLE:  # corrected values are not scores of a question
        tau, p_tau, unit, solved = np.full_like(tau, np.nan), np.full_like(p_tau, np.nan), False, None
    suspect, n_solved = benchmark.suspects(tau, p_tau), None if solved is None else solved.sum(axis=1)
    difficulty = mean if common["higher_is_better"] is False else 1 - mean
    return tuple(
        Question(
            common["task"],
            common["metric"],
            common["scorer"],
            question=key,
            cluster=board.clusters[i],
            difficulty=float(difficulty[i]) if unit else None,
            n_models=int(n_models[i]),
            n_solved=None if n_solved is None else int(n_solved[i]),
            tau=finite(tau[i]),
            p_tau=finite(p_tau[i]),
            suspect=None if np.isnan(tau[i]) else bool(suspect[i]),
        )
        for i, key in enumerate(board.questions.keys)
    )


def _models(
    measured: Sequence[MeasuredRun], group: Group | None, board: Grid, pairs: Pairs, settings: Settings
) -> tuple[Model, ...]:
    with np.errstate(invalid="ignore", divide="ignore"):
        rate = (pairs.columns["wins_a"] + pairs.columns["ties"] / 2) / pairs.columns["n_questions"]
    share = square(pairs, rate, 1 - rate)
    p_best = best_p(pairs)
    alpha = 1 - settings.level
    out = []
    for m, entry in enumerate(measured):
        alone = replace(entry.run, scores=entry.parts, groups=(), skipped=(), corpus=(), parts=())
        if group is not None:
            own = own_group(entry.run, group.of_run(entry.parts) if isinstance(group, Overall) else group)
            alone = replace(alone, scores=(), groups=(own,), parts=entry.parts)
        estimate = analyze_run(alone, settings).estimates[0]
        rates = share[m][~np.isnan(share[m])]
        tested = not np.isnan(p_best[m])
        right = board.table.answers is None and pairs.sign > 0 and group is None
        by_k: dict[str, Any] = passes(board.samples[m].values, board.table.design) if right else {}
        out.append(
            Model(
                **columns_of(estimate) | {"model": entry.name, "_zero_one": pairs.common["_zero_one"]},
                win_rate=float(rates.mean()) if len(rates) else None,
                **{"pass_at_k": None} | by_k,
                among_best=bool(p_best[m] >= alpha) if tested else None,
                p_best=float(p_best[m]) if tested else None,
            )
        )
    return tuple(out)


def _benchmark(
    common: Mapping[str, Any], pairs: Pairs, questions: Sequence[Question], models: tuple[Model, ...], right: bool
) -> Benchmark:
    c = pairs.columns
    n = c["n_questions"]
    solved = None if questions[0].n_solved is None else np.array([bool(question.n_solved) for question in questions])
    with np.errstate(invalid="ignore", divide="ignore"):
        close = (np.abs(c["diff"]) < CLOSE * c["se_total"]) & (n > 0)
        # by the pair's own interval: what a benchmark resolves does not depend on how many models it has met
        significant = (pairs.verdict == decision.A) | (pairs.verdict == decision.B)
        significant |= pairs.flags.get("not_after_adjustment", np.False_)
        size = np.abs(c["diff"])
        p = (c["mean_a"] + c["mean_b"]) / 2
        thumb = c["se_total"] / np.sqrt(p * (1 - p) / n)
        beta = thumb
        if solved is not None:
            beta = c["se_total"] / np.sqrt(sizes.beta_variance(p, float(solved.mean())) / n)
    tested = ~np.isnan(c["se"]) & ~np.isnan(size) & ~pairs.withheld
    steps = _steps(models, pairs)
    noise = ("se_total", "se_data", "se_data_upper", "se_prediction", "correlation")
    spreads: dict[str, Any] = {name: _spread(c[name][close]) for name in noise}
    return Benchmark(
        **{name: common[name] for name in ("task", "metric", "scorer", "cluster", "_zero_one")},
        **spreads,
        n_questions=len(questions),
        n_models=len(models),
        n_pairs=len(pairs),
        n_close_pairs=int(close.sum()),
        disagreement=_spread(((c["wins_a"] + c["wins_b"]) / np.maximum(n, 1))[close]),
        smallest_significant_diff=finite(size[significant & tested].min(initial=np.inf)),
        largest_insignificant_diff=finite(size[~significant & tested].max(initial=-np.inf)),
        beta_theory=_spread(beta[close]) if right else None,
        rule_of_thumb=_spread(thumb[close]) if right else None,
        solved_by_none=int((~solved).sum()) if solved is not None else None,
        signal_to_noise=_spread(np.array([step.ratio for step in steps])),
        best=tuple(model.model for model in models if model.among_best),
        steps=steps,
    )


def _spread(values: FloatArray) -> Spread | None:
    values = values[np.isfinite(values)]
    if len(values) == 0:
        return None
    return Spread(float(np.median(values)), float(values.min()), float(values.max()))


def _steps(models: tuple[Model, ...], pairs: Pairs) -> tuple[Step, ...]:
    """Return model-size steps in families found by name (8b, 70b, …): larger minus next smaller, if it has an SE."""
    families: dict[str, list[tuple[float, int]]] = {}
    for i, model in enumerate(models):
        size = benchmark.size_in_name(model.model)
        if size is not None:
            families.setdefault(size[0], []).append((size[1], i))
    gains = np.where(pairs.withheld, np.nan, pairs.sign * pairs.columns["diff"])
    ses = pairs.columns["se_total"]
    gain_of, se_of = square(pairs, gains, -gains), square(pairs, ses, ses)
    out = []
    for family, members in families.items():
        members.sort()
        for (small_size, i), (large_size, j) in pairwise(members):
            gain, se = float(gain_of[j, i]), float(se_of[j, i])
            if small_size != large_size and se > 0 and not np.isnan(gain):
                names = {"small": models[i].model, "large": models[j].model}
                out.append(Step(family=family, **names, diff=gain, se_total=se, ratio=gain / se))
    return tuple(out)


def pair_slices(
    board: BenchmarkResult, measured: Sequence[MeasuredRun], by: Sequence[str], settings: Settings
) -> tuple[PairSlice, ...]:
    """Return all pairs' A − B per slice, p by BH over a pair's slices. () for a group, without fields, or for too many.

    The slices are those of the run with the most questions.
    """
    widest = max(measured, key=lambda entry: len(entry.parts[0].questions))
    fields = widest.parts[0].questions.fields
    if fields is None or len(widest.parts) > 1:
        return ()
    slices = list(_slices(WithFields(widest.parts, (widest.run,), fields), by))
    if not slices or len(slices) * len(board.pairs) > MOST_SLICES:
        return ()
    alone = replace(settings, adjust="none")
    questions = widest.parts[0].questions
    places = [pair_questions(questions, entry.parts[0].questions) for entry in measured]
    out = []
    for field, value, keys in slices:
        chosen = [key in keys for key in questions.keys]
        some = [
            replace(entry, parts=(_taken_by(entry.parts[0], same, chosen),))
            for entry, same in zip(measured, places, strict=True)
        ]
        pairs = pairs_of(some, grid(some, None), None, alone)[0]
        if pairs is not None:
            out.append(PairSlice(field, value, len(keys), pairs.withholding(board.pairs.withheld)))
    p = np.array([sliced.pairs.columns["p_value"] for sliced in out])
    if len(out) and settings.adjust != "none":
        p = np.column_stack([decision.adjusted(column, "bh") for column in p.T])
    return tuple(
        replace(sliced, pairs=replace(sliced.pairs, columns=dict(sliced.pairs.columns) | {"p_adjusted": row}))
        for sliced, row in zip(out, p, strict=True)
    )


def _slices(task: WithFields, by: Sequence[str]) -> Iterator[tuple[str, str, frozenset[str]]]:
    """Yield (field, value, set of its question keys) for every slice of the questions."""
    for cut in module_of("by").divided(task, by, []):
        keys = np.asarray(cut.table.parts[0].questions.keys, dtype=object)
        for code, name in enumerate(cut.names):
            yield cut.field, name, frozenset(keys[cut.codes == code])


def _taken_by(part: Scores, same: Pairing, chosen: Sequence[bool]) -> Scores:
    rows = sorted(j for i, j in zip(same.rows_a, same.rows_b, strict=True) if chosen[i])
    return scores_of_rows(part, np.array(rows, dtype=np.intp))
