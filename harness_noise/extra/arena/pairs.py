"""All pairs of the runs of one benchmark: the runs on the union of their questions, and the pair columns as results.

What is said of every pair is what `compare` says of one, by the same functions; the tests hold the two together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from ...analysis.ranges import MISSING_SHARE, Ends, check_margin, widths
from ...analysis.rows import NO_DIRECTION
from ...analysis.sample import (
    RATIO_UNDEFINED,
    SHARED_NOISE_P,
    Sample,
    correction_of,
    fixed_questions,
    group_shares,
    linearised,
    stack,
)
from ...arrays import AnyArray, BoolArray, FloatArray, IntArray, blank, put, rows_of
from ...choices import TESTS
from ...data.clusters import CROSS, spec_in_words
from ...data.matching import joint_clusters, union_of_questions
from ...data.native_values import are_zero_one
from ...data.notes import Note
from ...data.questions import Questions
from ...data.scores import Group, Scores, causes_of
from ...settings import Settings, all_count_as_zero
from ...stats import decision
from ...stats.contrast import QuestionStats, sub_design, sum_by
from ...stats.intervals import ExtendedSample
from ...stats.moments import is_skewed
from ...stats.pairs import UNSCORED, Leads, difference_columns, paired, variance_flags
from .columns import Columns, PairLimit, Table, pair_columns, pairs_by_sign, pairs_by_t, pairs_by_wild, shared_noise_p
from .overall import Overall
from .results import Pairs
from .scoring import MeasuredRun, scoring_of_pairs


@dataclass(frozen=True, slots=True, eq=False)
class Grid:
    """The runs of one benchmark on the union of their questions."""

    questions: Questions
    table: Table
    samples: tuple[Sample, ...]
    """The M runs, each with all N questions, NaN for a missing score. The first has the clusters."""
    clusters: tuple[str | None, ...]
    """(N,) names of clusters."""
    cluster_spec: str | None
    different_prompts: BoolArray
    """(M, M) whether two runs saw a question that both have in different prompts."""
    rows: tuple[tuple[IntArray, ...], ...]
    """For each task, the places of each run's questions among all questions."""
    missing: tuple[tuple[FloatArray, FloatArray], ...]
    """For each task, (n, M): whether a run was asked a question, and the share of its answers without a score."""
    notes: tuple[Note, ...]


def grid(measured: Sequence[MeasuredRun], group: Group | None) -> Grid:
    """Return the runs' scores of a task or group on all questions that any run (for a ratio: every run) has."""
    tasks = [_scores_on_union(parts) for parts in zip(*(entry.parts for entry in measured), strict=True)]
    shares = group_shares(measured[0].parts, group)
    samples = [stack(parts, shares) for parts in zip(*(task.parts for task in tasks), strict=True)]
    scored = np.stack([sample.stats.count > 0 for sample in samples], axis=1)
    ratio = any(sample.per is not None for sample in samples)
    # a ratio is of the questions that its sums are of, so that every run has to have them
    keep: BoolArray = np.all(scored, axis=1) if ratio else np.any(scored, axis=1)
    notes = [note for task in tasks for note in task.notes]
    if ratio and (dropped := int((scored.any(axis=1) & ~keep).sum())):
        have = f"the {int(keep.sum())} questions that all {len(samples)} runs have"
        said = f"a ratio of sums is of {have}, and {dropped} others are left out"
        notes.append(Note("ratio_of_shared", said).of(samples[0].name))
    scored &= keep[:, None]
    kept = np.flatnonzero(keep)
    if not keep.all():
        samples = [sample.take(kept) for sample in samples]
    if ratio:
        samples = _ratios(samples)
    prompts = np.where(scored, np.concatenate([task.prompts for task in tasks]), -1)[keep]
    clusters = [cluster for task in tasks for cluster in task.clusters]
    return Grid(
        _questions(tasks, kept),
        _table(samples, group),
        # the scores as they were read: their copies on the union are needed no more
        tuple(replace(sample, parts=entry.parts) for sample, entry in zip(samples, measured, strict=True)),
        tuple(clusters[i] for i in kept),
        samples[0].cluster_spec,
        _differ(prompts),
        tuple(tuple(task.rows) for task in tasks),
        tuple(map(_asked_and_missing, tasks)) if any(part.n_missing for task in tasks for part in task.parts) else (),
        tuple(dict.fromkeys(notes)),
    )


def _table(samples: Sequence[Sample], group: Group | None) -> Table:
    """Return the runs' question statistics as (M, N) arrays, the first run's design, and answers unless all are 0/1."""
    stats = [sample.stats for sample in samples]
    mean, var, count = (np.stack([getattr(x, name) for x in stats]) for name in ("mean", "var", "count"))
    flags = (np.array([getattr(x, name) for x in stats]) for name in ("identical", "answers_differ"))
    plan = samples[0].design()
    plan = replace(plan, rule=group.shares) if isinstance(group, Overall) else plan
    binary = all(bool((np.isnan(x.values) | (x.values == 0) | (x.values == 1)).all()) for x in samples)
    return Table(
        QuestionStats(mean, var, count, *flags),
        plan,
        answers=None if binary else tuple(sample.values for sample in samples),
        order=samples[0].by_key(),
    )


def _ratios(samples: Sequence[Sample]) -> list[Sample]:
    """Return samples of a ratio of sums as linearised values. All NaN if the ratio is undefined."""
    out = []
    for sample in samples:
        made = linearised(replace(sample, clusters=samples[0].clusters))
        if made.undefined:  # its questions are there, and have no value
            none = np.full_like(made.stats.mean, np.nan)
            made = replace(made, values=made.values * np.nan, stats=replace(made.stats, mean=none, var=none))
        out.append(replace(made, clusters=sample.clusters))
    return out


@dataclass(frozen=True, slots=True, eq=False)
class _Task:
    """One task's questions, and each run's scores, rows, clusters and prompts on all of them."""

    questions: Questions
    parts: Sequence[Scores]
    rows: Sequence[IntArray]
    """Each run's rows of the questions."""
    clusters: Sequence[str | None]
    prompts: IntArray
    """(N, M) codes of the prompts, −1 where they are not known."""
    notes: Sequence[Note]


def _scores_on_union(parts: Sequence[Scores]) -> _Task:
    """Return the runs' scores rearranged to the union of their questions, with clusters and notes.

    Matching starts with a run that knows its questions' texts, and has most of them.
    """
    each = [part.questions for part in parts]
    textless = [of_run.documents is None and of_run.inputs is None for of_run in each]
    order = sorted(range(len(parts)), key=lambda m: (textless[m], -len(each[m])))
    questions, ordered, said = union_of_questions([each[m] for m in order])
    rows, N = [ordered[place] for place in np.argsort(order)], len(questions)
    notes = [note.of(parts[0].task) for note in said]
    with_clusters = [part for part in parts if part.clusters is not None]
    first = with_clusters[0] if with_clusters else None
    for part in with_clusters:
        if first and first.cluster_spec != part.cluster_spec:
            text = (
                f"runs have different clusters ({first.cluster_spec}, {part.cluster_spec}). A question keeps those of "
                "the first run that has it"
            )
            notes.append(Note("clusters_differ", text).of(part.task))
    clusters = joint_clusters(parts, rows, N)
    plain = [
        replace(
            part,
            questions=Questions(questions.keys, questions.kind, inputs=questions.read_inputs),
            **part.arrays(partial(_scatter, at=at, N=N)),
            corrected=None if part.corrected is None else part.corrected.spread(at, N),
            clusters=None,
            cluster_spec=None if first is None else first.cluster_spec,
            outer=None if first is None else first.outer,
            factors=None,
        )
        for part, at in zip(parts, rows, strict=True)
    ]
    if first:  # a question without a cluster is its own cluster, in both ways where there are two
        own = [f"\x1f{i}" if name is None else name for i, name in enumerate(clusters)]
        if any(CROSS in name for name in own):
            own = [name if CROSS in name else name + CROSS + name for name in own]
        plain[0] = replace(plain[0], clusters=tuple(own))
    return _Task(questions, plain, rows, clusters, _prompts(parts, rows, N), notes)


def _questions(tasks: Sequence[_Task], kept: IntArray) -> Questions:
    """Return rows `kept` of all tasks as keys ("task: key" if several tasks), and texts if any is known. No fields."""
    keys = [key if len(tasks) == 1 else f"{task.parts[0].task}: {key}" for task in tasks for key in task.questions.keys]
    shown = [task.questions.shown() for task in tasks]
    if not any(shown):
        return Questions(tuple(keys[i] for i in kept), tasks[0].questions.kind)
    texts = [text for task, own in zip(tasks, shown, strict=True) for text in own or ("",) * len(task.questions)]
    some = tuple(texts[i] for i in kept)
    return Questions(tuple(keys[i] for i in kept), tasks[0].questions.kind, texts=some)


def _asked_and_missing(task: _Task) -> tuple[FloatArray, FloatArray]:
    """Return two (n, M): 1 where a run was asked, and its share of answers missing (all runs 0 if unknown for one)."""
    asked = np.zeros((len(task.questions), len(task.rows)))
    for m, rows in enumerate(task.rows):
        asked[rows, m] = 1.0
    with np.errstate(invalid="ignore"):
        shares = [part.lost.sum(axis=1) / part.was_asked.sum(axis=1) for part in task.parts if part.lost is not None]
    if len(shares) < len(task.parts):  # of some it is not known; see `_missing_matters`
        shares = [np.zeros(len(asked))] * len(task.parts)
    return asked, np.nan_to_num(np.stack(shares, axis=1)) * asked


def _scatter(values: FloatArray, at: IntArray, N: int) -> FloatArray:
    out = np.full((N, values.shape[1]), np.nan)
    out[at] = values
    return out


def _prompts(parts: Sequence[Scores], rows: Sequence[IntArray], N: int) -> IntArray:
    """Return (N, M) codes of the prompts that runs used for questions. −1 if unknown."""
    codes = np.full((N, len(parts)), -1, dtype=np.intp)
    index: dict[str, int] = {}
    for m, (part, at) in enumerate(zip(parts, rows, strict=True)):
        if part.questions.prompts is not None:
            codes[at, m] = [index.setdefault(text, len(index)) for text in part.questions.prompts]
    return codes


def _differ(codes: IntArray) -> BoolArray:
    """Return (M, M) True if two columns have different codes in some row. −1 is ignored."""
    if not ((codes >= 0) & (codes != codes.max(axis=1, keepdims=True))).any():
        return np.zeros((codes.shape[1],) * 2, dtype=np.bool_)
    kinds, which = np.unique(codes.T, axis=0, return_inverse=True)
    differ = np.array([((kinds != kind) & (kinds >= 0) & (kind >= 0)).any(axis=1) for kind in kinds])
    return np.asarray(differ[np.ix_(which.ravel(), which.ravel())])


def pairs_of(
    measured: Sequence[MeasuredRun], board: Grid, group: Group | None, settings: Settings
) -> tuple[Pairs | None, list[Note]]:
    """Return all pairs of runs with A − B and verdicts, p adjusted over pairs, and notes. None: nothing shared."""
    parts = [entry.parts for entry in measured]
    first, plan, fixed = parts[0][0], board.table.design, fixed_questions(settings)
    task, every = first.task if group is None else group.name, [part for items in parts for part in items]
    check_margin(settings, every)
    board.samples[0].check_test(settings)
    if plan.crossed is not None:
        settings.check("crossed", f"{task}, {first.metric}")
    a, b = np.triu_indices(len(parts), 1)  # (0, 1), (0, 2), …, (1, 2), …
    c = pair_columns(board.table, a, b, settings.se, fixed=fixed)
    corrected = _with_correction(c, board)
    apart = int((c.of.n == 0).sum())
    if apart == len(c):
        return None, []
    c = _without_wins(c) if any(sample.ratio for sample in board.samples) else c
    said = f"{apart} of {len(c)} pairs share no question"
    notes = [Note("nothing_shared", said).of(task, first.metric)] if apart else []
    higher = next((part.higher_is_better for part in every if part.higher_is_better is not None), None)
    if higher is None:
        notes.append(Note("no_direction", f"{first.metric}: {NO_DIRECTION}"))
    common: dict[str, Any] = {
        "task": task,
        "metric": first.metric,
        "scorer": first.scorer,
        "higher_is_better": higher,
        "unit": first.unit,
        "_zero_one": are_zero_one(every),
        "weights": None if group is None else group.weighted,
        "estimand": next((x.corrected.estimand for x in board.samples if x.corrected is not None), settings.estimand),
        "level": settings.level,
        "test": settings.test,
        "cluster": spec_in_words(board.cluster_spec) if plan.clustered and not fixed else None,
    }
    width = widths([Ends.of(items) for items in parts], settings)[a, b]
    numbers, verdicts = decided(c, board.table, common, width, settings)
    numbers["n_missing"], lacking = _missing_of(task, parts, _weighed(board, a, b), (a, b))
    notes += lacking
    if corrected:
        nothing = np.full(len(c), np.nan)
        numbers |= dict.fromkeys(("p_sign", "wins_a", "wins_b", "ties", "correlation"), nothing) | corrected
    flags = _codes(measured, board, c, group)
    flags |= {"identical_scores": c.leads.same, "not_after_adjustment": verdicts.lost_to_adjustment}
    scoring = scoring_of_pairs(measured, board.rows, a, b)
    flags |= scoring.flags
    numbers |= scoring.columns
    notes += scoring.notes
    if first.unit is not None and not fixed:
        flags["skewed"] = flags.get("skewed", np.False_) | _skewed(board.table, c)
    if not all_count_as_zero(settings.missing):
        flags["missing_matters"] = _missing_matters(parts, board, c, width)
    names = (tuple(entry.name for entry in measured), tuple(entry.run.name for entry in measured))
    flags = {code: has for code, has in flags.items() if has.any()}
    missing = tuple(map(causes_of, parts))
    limit = None if corrected else _limit(board.table, settings)  # a plan takes the noise of the correction
    pairs = Pairs(*names, missing, common, a, b, numbers, verdicts.codes, verdicts.words, flags, limit)
    return pairs.withholding(scoring.apart), notes


def _weighed(board: Grid, a: IntArray, b: IntArray) -> BoolArray:
    """Return (P, T) True for tasks that count in a pair: by size, those with a question that both runs have scored."""
    plan, scored = board.table.design, ~np.isnan(board.table.mean).T
    if plan.rule is None:
        return np.ones((1, 1), dtype=np.bool_)
    return np.asarray(plan.shares_of(sum_by(plan.strata, scored[a] & scored[b], len(board.rows)))) > 0


def _missing_of(
    task: str, parts: Sequence[Sequence[Scores]], weighed: BoolArray, pair: tuple[IntArray, IntArray]
) -> tuple[IntArray, list[Note]]:
    """Return (P,) missing answers of the tasks that count in a pair, and a note on each that does not in some."""
    each = np.array([[part.n_missing for part in items] for items in parts], dtype=np.intp)
    lone = zip(parts[0], (~weighed).sum(axis=0).tolist(), strict=False)  # one column stands for all tasks if all count
    said = {part.task: f"in the {n} of {len(weighed)} pairs that share no score of it" for part, n in lone if n}
    notes = [Note("overall_in_part", f"without {name} {where}").of(task) for name, where in said.items()]
    return ((each[pair[0]] + each[pair[1]]) * weighed).sum(axis=1), notes


def _limit(table: Table, settings: Settings) -> partial[PairLimit] | None:
    """Return a function of a pair that computes its data-noise limit when needed. None for fixed questions."""
    return None if fixed_questions(settings) else partial(PairLimit, replace(table, answers=None), settings.se)


def decided(
    c: Columns, table: Table, common: Mapping[str, Any], width: FloatArray | float | None, settings: Settings
) -> tuple[dict[str, AnyArray], decision.Verdicts]:
    """Test all P pairs. Return {column: (P, …) values}, and the verdicts after p-value adjustment.

    Args:
        c: the engine's columns.
        table: what it took, for a test that looks at the questions again.
        common: fields that all pairs share; which way is better, and whether there are clusters.
        width: (P,) of the metric's range; None or NaN where it is not known.
        settings: level, test, margin and adjustment.
    """
    of = paired(c.of, c.leads, c.far, width)
    chosen = TESTS[settings.test]
    own = {each.__name__: each for each in (pairs_by_t, pairs_by_sign, pairs_by_wild)}.get(str(chosen.of_pairs))
    test: decision.Test = own(of, c, table, settings) if own else chosen.call("of_pairs", of, c, table, settings)
    decisions = decision.decide(of, settings, test)
    lower = common["higher_is_better"] is False
    a_better = (of.diff > 0) != lower
    verdicts = decision.apply_adjustment(decisions, a_better, settings)
    columns = difference_columns(c.of, c.leads, c.sides, common["cluster"] is not None, lower=lower)
    numbers = columns | decisions.numbers()
    return {**numbers, "interval": decisions.interval, "p_adjusted": verdicts.p_adjusted}, verdicts


def square(pairs: Pairs, a_less_b: AnyArray, b_less_a: AnyArray) -> FloatArray:
    """Return an (M, M) matrix: `a_less_b` where A is the row and B the column, `b_less_a` vice versa, else NaN."""
    out = np.full((len(pairs.names), len(pairs.names)), np.nan)
    out[pairs.a, pairs.b], out[pairs.b, pairs.a] = a_less_b, b_less_a
    return out


def _with_correction(columns: Columns, board: Grid) -> dict[str, AnyArray]:
    """Correct the pairs' moments by human labels, in place. Return {field: (P,) values}, {} without labels."""
    first = next((sample.corrected for sample in board.samples if sample.corrected is not None), None)
    if first is None:
        return {}
    P, codes = len(columns), dict[str, AnyArray]()
    out: dict[str, AnyArray] = {"estimand": np.full(P, first.estimand, dtype=object)}
    for i, models in enumerate(zip(columns.a.tolist(), columns.b.tolist(), strict=True)):
        rows = np.flatnonzero(np.all([board.samples[m].stats.count > 0 for m in models], axis=0))
        both = [board.samples[m].take(rows) for m in models]
        corrected = correction_of(both, PAIR)
        if corrected is None or not len(rows):
            continue
        plan, here = sub_design(board.table.design, rows), np.array([i])
        m = corrected.moments(rows_of(columns.of, here), plan)
        put(columns.of, here, m)
        for name, value in corrected.fields(m, plan).items():
            out.setdefault(name, np.full(P, None, dtype=object))[i] = value
        for code, has in corrected.codes(plan).items():
            codes.setdefault(code, np.zeros(P, dtype=np.bool_))[i] = has
        put(columns.far, here, blank(ExtendedSample, 1))  # corrected values are influences, and none of them a flip
        columns.flags["few_flips"][i] = False
    flags = variance_flags(columns.of, board.table.design)
    columns.flags.update(flags | codes)
    return out


PAIR = (1.0, -1.0)


def _skewed(table: Table, columns: Columns) -> BoolArray:
    """Return (P,) True for pairs whose per-question differences have a long tail on one side."""
    out = np.zeros(len(columns), dtype=np.bool_)
    for i in np.flatnonzero(~np.isnan(columns.of.mean)).tolist():
        d = table.mean[:, columns.a[i]] - table.mean[:, columns.b[i]]
        shown = np.flatnonzero(~np.isnan(d))
        out[i] = is_skewed(d[shown], sub_design(table.design, shown))
    return out


def _without_wins(columns: Columns) -> Columns:
    """Return a ratio metric's pairs with wins and leads set to NaN, as single questions have no ratio."""
    nothing = np.full(len(columns), np.nan)
    sides = replace(columns.sides, wins_a=nothing, wins_b=nothing)
    return replace(columns, leads=blank(Leads, len(columns)), sides=sides)


def _missing_matters(parts: Sequence[Sequence[Scores]], board: Grid, columns: Columns, width: FloatArray) -> BoolArray:
    """Return (P,) True for pairs whose missing answers could change A − B by much of its standard error."""
    a, b = columns.a, columns.b
    lacking = np.array([sum(x.n_missing - x.n_zero for x in items) for items in parts])
    known = np.array([all(x.lost is not None for x in items) for items in parts])
    bounded: BoolArray = (lacking[a] + lacking[b] > 0) & known[a] & known[b]
    if not bounded.any():
        return bounded
    both = np.array([(asked.T @ asked)[a, b] for asked, _ in board.missing])
    spread, shares = np.zeros(len(columns)), board.table.design.shares_of(both.T)
    if board.table.design.rule is not None and shares is not None:  # nor which tasks would count
        bounded &= np.all((shares > 0) == _weighed(board, a, b), axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        weights = both / both.sum(axis=0) if shares is None else np.broadcast_to(shares, both.T.shape).T
        for (asked, missing), n, weight in zip(board.missing, both, weights, strict=True):
            holes = missing.T @ asked
            spread += np.where(weight > 0, weight * (holes[a, b] + holes[b, a]) / n, 0.0)
        reach = MISSING_SHARE * np.sqrt(np.maximum(columns.of.variance, 0.0))
        matters: BoolArray = bounded & (columns.of.n > 0) & (spread * width > reach)
    return matters


def _codes(measured: Sequence[MeasuredRun], board: Grid, columns: Columns, group: Group | None) -> dict[str, BoolArray]:
    """Return {diagnostic code: (P,) flags} of the pairs, with the codes of their runs."""
    a, b = columns.a, columns.b
    each = [
        entry.codes(group) | ({RATIO_UNDEFINED} if sample.undefined else set())
        for entry, sample in zip(measured, board.samples, strict=True)
    ]
    out = dict(columns.flags)
    for code in sorted(set().union(*each)):
        has = np.array([code in codes for codes in each])
        out[code] = out.get(code, np.False_) | has[a] | has[b]
    if RATIO_UNDEFINED in out:
        out |= {code: out[code] & ~out[RATIO_UNDEFINED] for code in ("too_few_questions", UNSCORED)}
    out["shared_repeat_noise"] = _repeats_shift(board, columns)
    out["different_prompts"] = board.different_prompts[a, b]
    return out


def _repeats_shift(board: Grid, columns: Columns) -> BoolArray:
    """Return (P,) True for pairs with a run whose whole repeats are higher or lower than others, or are runs."""
    scored, out = ~np.isnan(board.table.mean).T, np.zeros(len(columns), dtype=np.bool_)
    whole = bool(scored.all())
    for m, run in enumerate(board.samples):
        if run.values.shape[1] < 2:
            continue
        rows = np.flatnonzero((columns.a == m) | (columns.b == m))
        shown = scored[:1] if whole else scored[columns.a[rows]] & scored[columns.b[rows]]
        p = shared_noise_p(run.values, board.table.design, shown)
        out[rows] |= p < (np.inf if run.repeats_are_runs else SHARED_NOISE_P)
    return out & ~np.isnan(columns.of.mean)
