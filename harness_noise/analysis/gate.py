"""The gate: is a run good enough, by one rule over all its rows?

Each row holds a quantity against a threshold: A − B, A − R·B, or A's own mean, all of the one kernel. Its one-sided p
is read off the interval of the row, so that with one row the gate trips exactly where the interval lies wholly beyond
the threshold. A gate is one decision, so all rows that it judges are one family: Holm's method keeps the chance that a
run without any loss fails at (1 − level)/2, however many tasks and groups it has.

Sources:
  [Zou]  Zou & Donner (2008), Statistics in Medicine 27(10)
"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from operator import ne
from typing import Any

import numpy as np
from scipy import special

from ..arrays import FloatArray, picked
from ..data.matching import pair
from ..data.native_values import MISMATCH, agreed_pairs
from ..data.scores import CorpusScores, Group, OnQuestions, Run, Scores
from ..errors import InputError
from ..results.forms import finite
from ..results.gate import CANNOT, FAIL, PASS, Gate, GateRow, Rule, Seen, SelfTest, StoredVerdict
from ..results.rows import Comparison, Difference, Estimate
from ..results.sequential import Sequential
from ..settings import Settings
from ..stats import decision
from ..stats.contrast import question_stats
from ..stats.intervals import critical, wilson
from ..stats.moments import upper_variance
from ..stats.planning import noncentrality
from .comparison import compare_runs, matched_scores
from .drawing import NOT_RANDOM, STOPPED, UNEQUAL
from .mean import analyze_run
from .ranges import Ends, score_range, worst_case
from .repeats import as_repeats, copies, once
from .sample import align, codes_of

Key = tuple[str, str, str]
"""Task (or group), metric and scorer."""
Where = tuple[int, Key]
"""Which of several pairs of runs, and what of it."""
POOLED = "all rows, pooled"
NO_MEAN = "it is no mean over questions, and `pooled` takes only those"
NOT_OF_ALL = {
    "skipped_metric": "it has no scores by question",
    STOPPED: "the run stopped early, which makes its own mean too extreme",
    NOT_RANDOM: "its questions are not a random part (not_a_random_part)",
    UNEQUAL: "its questions were drawn with different probabilities, so that its mean is another (unequal_chances)",
}
"""Codes of a row whose mean is not the benchmark's, and why."""
ASSURANCE = 0.8
_REPLICATES = 20_000
"""Replications of the self-test, whose shares are then exact to ± .1 %."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """What a run is held against, and how much it may lose."""

    rule: Rule = "regression"
    margin: float = 0.0
    ratio: float | None = None
    pooled: bool = False
    skip_missing: bool = False

    def __post_init__(self) -> None:
        if self.rule not in ("regression", "no-loss"):
            raise InputError(f"rule {self.rule!r} is not one of regression, no-loss")
        if not 0 <= self.margin < math.inf:
            raise InputError(f"margin {self.margin:g} must not be negative")
        if self.ratio is not None and not 0 < self.ratio < 2:
            meant = f"; did you mean {self.ratio / 100:g}?" if 2 <= self.ratio <= 100 else ""
            raise InputError(f"`ratio` {self.ratio:g} is not the share of the baseline to be kept, such as 0.99{meant}")
        if self.ratio is not None and self.margin:
            raise InputError("`margin` and `ratio` both say how much may be lost: leave one of the two out")


@dataclass(frozen=True, slots=True)
class Floor:
    """A number that a mean must reach."""

    value: float
    n: int | None = None
    """Questions that it was measured on, whose noise is its own; None: it is exact."""
    rtol: float = 0.0
    """The share of it that may be lost, in place of what the gate allows; 0: that."""
    limit: int | None = None
    """Questions of each task that its file asks for."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A row before its family is looked at; distances from the threshold, above 0 on the good side."""

    row: GateRow
    gain: float = math.nan
    low: float = math.nan
    high: float = math.nan
    level: float = 0.95
    slack: float = 0.0
    """What `gain` is if nothing is lost."""
    p_sign: float | None = None
    """Two-sided p of the sign test, where nothing varies and there are no limits."""
    fixed: float = 0.0
    """What of the squared standard error more questions do not make smaller."""
    own: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """How far the threshold may be too high and too low, and its standard error."""
    width: float = math.inf
    """The width of the metric's range."""
    beside: bool = False
    """Whether it is for information, because its task declares another score as the one that counts."""
    pooled: bool = False
    """Whether it is the mean of the others, and decides alone."""
    pair: int = 0
    """Which of several pairs of runs it is of."""

    def lost(self, reason: str) -> Candidate:
        """The row, which cannot be judged for this reason unless it has another."""
        return self if self.row.reason else replace(self, row=replace(self.row, reason=reason))

    def p_values(self) -> tuple[float, float]:
        """One-sided p of "no loss beyond the threshold" and of "a loss beyond it"; NaN where the row has none.

        Read off the limits through t (`decision.p_beyond`), whatever interval they are of.
        """
        if self.row.reason:
            return math.nan, math.nan
        if math.isnan(self.low) or math.isnan(self.high):
            half = math.nan if self.p_sign is None else self.p_sign / 2
            return (1.0, half) if self.gain >= 0 else (half, 1.0)  # every question moved by one amount
        df = self.row.df if self.row.df is not None and self.row.se else math.inf
        shown = decision.p_beyond(self.gain, self.high, df, self.level, 0.0)
        return float(shown), float(decision.p_beyond(-self.gain, -self.low, df, self.level, 0.0))


def unjudged(key: Key, reason: str, **fields: Any) -> Candidate:
    """A row that cannot be judged."""
    return Candidate(GateRow(*key, **fields, reason=reason))


def of_row(row: Difference | Estimate, quantity: str, threshold: float, slack: float, reason: str = "") -> Candidate:
    """The candidate of a mean or difference whose estimate and limits are held against a threshold."""
    mean = row.mean if isinstance(row, Estimate) else row.diff
    if not reason and MISMATCH in row.diagnostics:
        reason = "its scores do not have the mean that the harness reports (mean_mismatch)"
    p_sign = None if isinstance(row, Estimate) or "zero_variance" not in row.diagnostics else row.p_sign
    if not reason and (mean is None or (row.ci_low is None and p_sign is None)):
        reason = "it has no interval"
    sign = -1.0 if row.higher_is_better is False else 1.0
    gain, low, high = (math.nan if x is None else sign * (x - threshold) for x in (mean, row.ci_low, row.ci_high))
    model, against = (row.model, "") if isinstance(row, Estimate) else (row.model_a, row.model_b)
    shown = GateRow(
        *row.key,
        model=model,
        against=against,
        quantity=quantity,
        higher_is_better=row.higher_is_better,
        n_questions=row.n_questions,
        threshold=threshold,
        estimate=mean,
        se=row.se,
        df=row.df,
        diagnostics=row.diagnostics,
        reason=reason,
    )
    return Candidate(shown, gain, *((low, high) if sign > 0 else (high, low)), row.level, slack, p_sign)


def gated(
    result: Comparison,
    pairs: Sequence[tuple[Run, Run]] = (),
    margin: float | None = None,
    settings: Settings | None = None,
) -> Gate:
    """The gate of a comparison by the rule regression: what `compare` does with ``fail_on="regression"``.

    Args:
        result: of `compare`.
        pairs: the runs that were compared; none, where only counts or numbers are known.
        margin: on the metric's scale; None: the comparison's own, or 0.
        settings: those of the comparison, for what missing answers could change.
    """
    bar = Bar(margin=float(result.settings.get("margin") or 0.0) if margin is None else margin)
    if not pairs:
        return decide([_of_difference(row, bar, "") for row in result.comparisons], bar, result.settings)
    now, worst, unknown, settings = list[Candidate](), list[Candidate](), set[Where](), settings or Settings()
    left = deque(result.comparisons)  # in the order of the pairs, of which two may have the same names
    for i, (run, base) in enumerate(pairs):
        compared = dict[Key, Difference]()
        while left and (left[0].run_a, left[0].run_b) == (run.name, base.name) and left[0].key not in compared:
            row = left.popleft()
            compared[row.key] = row
        if result.sequential:  # a run that grows has answered a random part, and is judged where it was looked at
            run = replace(run, drawn=tuple({"task": part.task} for part in (*run.scores, *run.parts)))
        each = at_worst = of_pair(run, base, [*compared.values()], bar)
        if result.sequential:
            each = at_worst = [c for c in each if c.row.key in compared]
        elif (filled := worst_case(run, [base], settings)) is not None:
            (a, (b,)), untold = filled
            at_worst = of_pair(a, b, compare_runs([(a, b)], settings).comparisons, bar)
            unknown |= {(i, key) for key in untold}
        now += [replace(c, pair=i) for c in each]
        worst += [replace(c, pair=i) for c in at_worst]
    return decide(_settled(now, worst, unknown, bar, result.settings), bar, result.settings)


def judge(
    run: Run,
    baselines: Sequence[Run],
    floors: Sequence[Mapping[Key, Floor] | Floor],
    bar: Bar,
    settings: Settings,
    *,
    budget: int | None = None,
    tested: bool = False,
) -> Gate:
    """The verdict on a run.

    Args:
        run: the new one.
        baselines: runs of one configuration; none: only floors count.
        floors: numbers that its means must reach.
        bar: the rule and what may be lost.
        settings: how to compute.
        budget: questions that could be asked at most.
        tested: also the self-test.
    """
    rows, notes = _candidates(run, baselines, floors, bar, settings)
    widths = _widths((run, *baselines), settings)
    rows = [replace(c, width=widths.get(c.row.metric, math.inf)) for c in rows]
    if (worst := worst_case(run, baselines, settings)) is not None:
        filled, untold = worst
        unknown = {(0, key) for key in untold}
        rows = _settled(rows, _candidates(*filled, floors, bar, settings)[0], unknown, bar, settings.to_dict())
    warnings = [note for base in baselines for note in copies((run, base))]
    if not warnings:
        warnings = [
            f"THE SAME SCORES: every question of {a.name} scores as in {b.name}; is it one run twice?"
            for a, b in combinations((run, *once(baselines)[0]), 2)
            if _same_scores(a, b)
        ]
    result = decide(rows, bar, settings.to_dict(), budget=budget, warnings=warnings, notes=notes)
    if not tested:
        return result
    stored = []
    for i, baseline in enumerate(baselines if len(baselines) > 1 else ()):
        verdict = judge(baseline, [*baselines[:i], *baselines[i + 1 :]], (), bar, settings)
        p = [row.p_adjusted for row in verdict.rows if row.p_adjusted is not None]
        stored.append(StoredVerdict(baseline.name, verdict.outcome, min(p, default=None)))
    return replace(result, self_test=self_test(family(rows), result, stored))


def _candidates(
    run: Run,
    baselines: Sequence[Run],
    floors: Sequence[Mapping[Key, Floor] | Floor],
    bar: Bar,
    settings: Settings,
) -> tuple[list[Candidate], list[str]]:
    """All rows, the pooled ones first; and notes."""
    pooled, out, notes = list[Candidate](), list[Candidate](), list[str]()
    others: list[Scores | CorpusScores] = [*run.corpus, *(part for part in run.scores if part.per is not None)]
    no_means = {part.key for part in others} if bar.pooled else set()

    def marked(rows: Iterable[Candidate]) -> list[Candidate]:
        """The rows, of which a pool takes no mean of what is none."""
        return [c.lost(NO_MEAN) if c.row.key in no_means else c for c in rows]

    if baselines:
        base, said = one_configuration(baselines)
        ((new, base),), renamed = agreed_pairs([(run, base)])
        rows, remarks = against_runs(new, base, baselines, bar, settings)
        out += marked(rows)
        notes += [*said, *renamed, *remarks]
        if bar.pooled and (usable := {c.row.key for c in out if not c.row.reason}):
            pooled.append(_pooled_row(new, base, usable, bar, settings))
    for floor in floors:
        rows, remarks = against_floors(run, floor, bar, settings)
        rows = marked(rows)
        out += rows
        notes += remarks
        pooled += [_pooled_floor(run, rows, settings)] if bar.pooled else []
    return [replace(c, pooled=True) for c in pooled] + out, notes


def _widths(runs: Sequence[Run], settings: Settings) -> dict[str, float]:
    """The width of each metric's range, beyond which nothing can be lost."""
    metrics: dict[str, list[Ends]] = {}
    for part in (part for run in runs for part in run.scores):
        metrics.setdefault(part.metric, []).append(Ends.of([part]))
    ranges = {name: score_range(ends, settings) for name, ends in metrics.items()}
    return {name: ends[1] - ends[0] for name, ends in ranges.items() if ends is not None}


def _settled(
    now: Sequence[Candidate], worst: Sequence[Candidate], unknown: set[Where], bar: Bar, settings: Mapping[str, Any]
) -> list[Candidate]:
    """The rows, without a verdict where the answers that are missing could turn a pass."""

    def identity(c: Candidate) -> tuple[Any, ...]:
        return c.pair, c.row.key, c.row.quantity, c.row.threshold

    untold = unknown & {(c.pair, c.row.key) for c in now if not c.row.reason}
    at_worst, _, _ = _verdicts(worst, bar, settings)
    still = {identity(c) for c, row in zip(worst, at_worst, strict=True) if row.passed}
    out = []
    for c, row in zip(now, _verdicts(now, bar, settings)[0], strict=True):
        if row.passed and ((c.pair, c.row.key) in unknown or (c.pooled and untold)):
            c = c.lost("answers are missing, and what they could change is not known")
        elif row.passed and identity(c) not in still:
            c = c.lost("answers are missing, and with the worst scores that they could have it does not pass")
        out.append(c)
    return out


def _same_scores(a: Run, b: Run) -> bool:
    """Whether all that both measured has the same mean for every question."""

    def same(part_a: Scores, part_b: Scores) -> bool:
        pairing = align([part_a], [part_b], None)
        return not (pairing.only_a or pairing.only_b) and np.array_equal(pairing.a.stats.mean, pairing.b.stats.mean)

    both, _ = matched_scores(a, b, alone=len(a.scores) == len(b.scores) == 1)
    return bool(both) and all(same(*parts) for parts in both)


def against_runs(
    run: Run, base: Run, baselines: Sequence[Run], bar: Bar, settings: Settings
) -> tuple[list[Candidate], list[str]]:
    """A − B, or A − R·B, of everything that the run or `base`, the mean of the baselines, has; and notes."""
    if len(baselines) > 1 and settings.repeats_are == "runs":
        raise InputError("several baseline runs are runs already: leave `repeats_are='runs'` out")
    result, between = _compared(run, base, bar, settings)
    notes = [note for note in result.notes if not note.startswith(("only ", "left out: ", "ONE RUN"))]
    rows = of_pair(run, base, result.comparisons, bar, _among(baselines))
    return [replace(c, fixed=between.get(c.row.key, 0.0)) for c in rows], notes


def _compared(run: Run, base: Run, bar: Bar, settings: Settings) -> tuple[Comparison, dict[Key, float]]:
    """A − B, or A − R·B; and the variance between baseline runs in each row."""
    other = base if bar.ratio is None else scaled(base, bar.ratio)
    result = compare_runs([(run, other)], settings)
    between = {}
    if any(part.runs_of_one for part in (*base.scores, *base.parts)):
        alone = compare_runs([(run, _marked(other, runs_of_one=False))], settings).comparisons
        for row, without in zip(result.comparisons, alone, strict=True):
            between[row.key] = max(0.0, (row.se or 0.0) ** 2 - (without.se or 0.0) ** 2)
    if bar.ratio is not None:
        result = replace(result, comparisons=_with_plain_limits(run, base, result.comparisons, settings))
    return result, between


def _marked(run: Run, **fields: Any) -> Run:
    """The run with these fields in all its scores."""
    scores, parts = (tuple(replace(part, **fields) for part in parts) for parts in (run.scores, run.parts))
    return replace(run, scores=scores, parts=parts)


def of_pair(
    run: Run,
    base: Run,
    rows: Sequence[Difference],
    bar: Bar,
    among: Mapping[Key, str] | None = None,
) -> list[Candidate]:
    """The candidates of all that two runs measured.

    Args:
        run: the new one.
        base: the baseline.
        rows: the comparison of the two.
        bar: how much may be lost.
        among: why the runs that the baseline is the mean of cannot be taken together.
    """
    reasons = _reasons(run, base, rows, among or {})
    looks = _looks(run)
    out = []
    for compared in rows:
        row, reason = _at_looks(compared, looks.get(compared.key), reasons.pop(compared.key, ""), bar)
        out.append(_of_difference(row, bar, reason))
    names = {"model": run.model, "against": base.model}
    return _beside(run, out + [unjudged(key, reason, **names) for key, reason in reasons.items() if reason])


def _looks(run: Run) -> dict[Key, Sequential]:
    """What made the run stop, by what it is of."""
    return {look.key: look for look in (Sequential(**row) for row in run.sequential)}


def _beside(run: Run, candidates: Sequence[Candidate]) -> list[Candidate]:
    """The candidates, of which those decide that their tasks declare as what counts, where any does."""
    heads = run.headline.intersection(c.row.key for c in candidates)
    tasks = {task for task, _, _ in heads}
    return [replace(c, beside=c.row.task in tasks and c.row.key not in heads) for c in candidates]


def _of_difference(row: Difference, bar: Bar, reason: str) -> Candidate:
    if bar.ratio is None:
        threshold = bar.margin if row.higher_is_better is False else 0.0 - bar.margin  # −0.0 is 0
        return of_row(row, "A − B", threshold, bar.margin, reason)
    R, lower = bar.ratio, row.higher_is_better is False
    mean_b = (row.mean_b or 0.0) / (1.0 if lower else R)
    if not reason and mean_b <= 0:
        reason = "a ratio needs a baseline above 0"
    return of_row(row, f"A − B/{R:g}" if lower else f"A − {R:g}·B", 0.0, (1 - R) * mean_b, reason)


def one_configuration(runs: Sequence[Run]) -> tuple[Run, list[str]]:
    """The mean of several runs of one configuration, with each run as a column; and what is to be said of it."""
    runs, twice = once(runs)
    if len(runs) == 1:
        note = (
            "one baseline run: how far two runs of one configuration differ (batching, kernels, seeds) cannot be known "
            "from it; give several as `against`, or keep them with `store`"
        )
        return runs[0], [note, *twice]
    first = runs[0]
    means = [replace(run, model=first.model, scores=_means(run.scores), parts=_means(run.parts)) for run in runs]
    joined = as_repeats(means)[0]
    names = list(dict.fromkeys(run.model for run in runs))
    whose = "" if len(names) == 1 else f" ({', '.join(names)}), taken for one configuration"
    notes = [f"{len(runs)} baseline runs{whose}: what runs differ by counts, too"]
    run = replace(_marked(joined, runs_of_one=True), corpus=(), drawn=first.drawn)
    return run, [*notes, *twice, *(note for note in joined.notes if "TWICE" in note)]


def _means(parts: Sequence[Scores]) -> tuple[Scores, ...]:
    """The scores with each question's mean in place of its answers."""

    def mean(values: FloatArray) -> FloatArray:
        return question_stats(values).mean[:, None]

    out = []
    for part in parts:
        codes = tuple(code for code in codes_of([part]) if code not in ("identical_repeats", "copied_repeats"))
        fields = replace(part, usage={}).arrays(mean)
        out.append(replace(part, **fields, native=None, diagnostics=codes, factors=None))
    return tuple(out)


def scaled(run: Run, ratio: float) -> Run:
    """R·B, so that A − R·B is a difference of two runs; where lower is better B/R."""

    def times(part: Scores) -> Scores:
        R = 1 / ratio if part.higher_is_better is False else ratio
        bounds = None if part.bounds is None else (min(part.bounds[0], R * part.bounds[0]), max(R, 1) * part.bounds[1])
        return replace(part, values=R * part.values, bounds=bounds, native=None)

    groups = tuple(replace(group, native=None) for group in run.groups)
    scores, parts = tuple(map(times, run.scores)), tuple(map(times, run.parts))
    return replace(run, scores=scores, parts=parts, groups=groups, corpus=())


def _with_plain_limits(run: Run, base: Run, rows: Sequence[Difference], settings: Settings) -> tuple[Difference, ...]:
    """The rows of A − R·B, with the limits of A − B, moved by (1 − R)·B, where A and B agree on every question.

    There A − R·B varies only as B does, and says nothing of the flips that might have been.
    """
    alike = [(row.correlation or 0.0) > 1 - 1e-9 for row in rows]
    plain = compare_runs([(run, base)], settings).comparisons if any(alike) else rows
    out = []
    for row, other, same in zip(rows, plain, alike, strict=True):
        if same and "identical_scores" in other.diagnostics and other.ci_low is not None and other.ci_high is not None:
            by = row.diff or 0.0
            row = replace(other, diff=by, mean_b=row.mean_b, ci_low=other.ci_low + by, ci_high=other.ci_high + by)
        out.append(row)
    return tuple(out)


def _reasons(run: Run, base: Run, compared: Sequence[Difference], among: Mapping[Key, str]) -> dict[Key, str]:
    """Everything that either run measured, and why it cannot be judged; empty where it can."""
    matched, _ = matched_scores(run, base, alone=not run.groups and not run.corpus)
    mine, theirs = _measured(run), _measured(base)
    alone = len(mine) == len(theirs) == 1  # of other names, and compared all the same
    rows = {row.key: row for row in compared}
    named_twice = {part.key for part in run.scores} - {a.key for a, _ in matched}  # a row under a second name
    others: dict[Key, OnQuestions] = {part.key: part for part in (*base.scores, *base.parts, *base.corpus)}
    others |= {a.key: b for a, b in matched}
    drawn = {row["task"] for side in (run, base) for row in side.drawn}
    out: dict[Key, str] = {}
    for key in dict.fromkeys((*mine, *theirs)):
        if key not in mine or key not in theirs:
            have, lacks = ("the run", "the baseline") if key in mine else ("the baseline", "the run")
            out[key] = "" if alone else among.get(key) or f"only {have} has it, not {lacks}"
        else:
            apart = key not in rows and key not in named_twice
            out[key] = mine[key] or theirs[key] or ("the runs have no question in common" if apart else "")
    for key, row in rows.items():
        both = [(a, others[a.key]) for a in _made_of(run, key) if a.key in others]
        unlike = (_unlike(a, b, "the runs", row, drawn=a.task in drawn) or among.get(b.key) for a, b in both)
        out[key] = next(filter(None, unlike), out[key])
    return out


def _made_of(run: Run, key: Key) -> list[OnQuestions]:
    """What a row is computed from: the scores of its task, or of all tasks of its group."""
    tasks = next((group.tasks for group in run.groups if (group.name, group.metric, group.scorer) == key), key[:1])
    made_of = {(task, *key[1:]) for task in tasks}
    return [part for part in (*run.scores, *run.parts, *run.corpus) if part.key in made_of]


def _among(baselines: Sequence[Run]) -> dict[Key, str]:
    """Why a row's baseline runs are not runs of one configuration: other tasks, versions, prompts or questions."""
    baselines = once(baselines)[0]
    measured: dict[Key, list[Scores]] = {}
    for part in (part for base in baselines for part in (*base.scores, *base.parts)):
        measured.setdefault(part.key, []).append(part)
    out: dict[Key, str] = {}
    for key, (first, *others) in measured.items():
        unlike = [why for other in others if (why := _unlike(first, other, "the baseline runs"))]
        if len(others) + 1 < len(baselines):
            unlike.append(f"only {len(others) + 1} of {len(baselines)} baseline runs have it")
        if unlike:
            out[key] = unlike[-1]
    if len(baselines) > 1:
        of_all = "it is no mean over questions, and of several baseline runs only means are taken together"
        out |= {whole.key: of_all for base in baselines for whole in base.corpus}
    return out


def _measured(run: Run) -> dict[Key, str]:
    """What a run has; of what it reports without scores, why it cannot be judged."""
    groups = [(group.name, group.metric, group.scorer) for group in run.groups]
    skipped = {skip.key: f"it has no scores by question ({skip.reason})" for skip in run.skipped}
    return skipped | dict.fromkeys((*(part.key for part in (*run.scores, *run.corpus)), *groups), "")


def _unlike(a: OnQuestions, b: OnQuestions, both: str, row: Difference | None = None, *, drawn: bool = False) -> str:
    """Why the scores of `both` cannot be held against each other; empty where they can.

    Args:
        a: those of the new run, or of the first baseline.
        b: of the baseline, or of another one.
        both: what the runs are called.
        row: the comparison of the two, or of a group that they are of, where there is one.
        drawn: whether the questions are a random part.
    """
    versions = [part.version for part in (a, b) if isinstance(part, Scores) and part.version]
    if len(set(versions)) > 1:
        return f"{both} have the versions {' and '.join(versions)} of the task"
    if None not in (ways := (a.higher_is_better, b.higher_is_better)) and ways[0] != ways[1]:
        return "higher is better in one run and lower in the other"
    if STOPPED in b.diagnostics:
        return "the baseline stopped early, because of its scores on just these questions"
    if NOT_RANDOM in (*a.diagnostics, *b.diagnostics):
        return "the questions of one run are not a random part (not_a_random_part)"
    if MISMATCH in codes_of([part for part in (a, b) if isinstance(part, Scores)]):
        return "its scores do not have the mean that the harness reports (mean_mismatch)"
    if a.questions is not b.questions and not (row is not None and "unpaired" in row.diagnostics):
        same, prompts = pair(a.questions, b.questions), (a.questions.prompts, b.questions.prompts)
        if None not in prompts and any(map(ne, picked(prompts[0], same.rows_a), picked(prompts[1], same.rows_b))):
            return f"the prompts differ between {both} (different_prompts)"
        compared = row is not None and not (row.n_only_a or row.n_only_b)
        if not (compared or drawn) and len(same.rows_a) < max(len(a.questions), len(b.questions)):
            return (
                f"{both} asked different questions ({len(a.questions):,} and {len(b.questions):,}, "
                f"{len(same.rows_a):,} in common): was --limit another?"
            )
    return NOT_OF_ALL[UNEQUAL] if UNEQUAL in (*a.diagnostics, *b.diagnostics) else ""


def _at_looks(row: Difference, look: Sequential | None, reason: str, bar: Bar) -> tuple[Difference, str]:
    """The row with the interval that is valid after a run was stopped for this comparison.

    The looks allow for the questions that were not asked, and for the probabilities with which the others were drawn.
    """
    stopped = STOPPED in row.diagnostics
    if look is None or look.rule == "se":
        if stopped and look is None and not reason:
            reason = "the run stopped early for another quantity, which makes this one too extreme"
        return row, reason
    if bar.ratio is not None or look.ci_low is None:
        return row, reason or "the run was looked at while it grew, and that allows a margin alone"
    plain, diff = look.estimate_unadjusted if look.diff is None else look.diff, row.diff
    if diff is None or plain is None or not math.isclose(plain, diff, rel_tol=1e-6, abs_tol=1e-9):
        other = "the run stopped early against another baseline, or has more answers than when it stopped"
        return row, reason or other * stopped
    if not math.isclose(look.level, row.level):
        raise InputError(
            f"{row.task} {row.metric}: the run was looked at while it grew, with limits that hold at its own `level` "
            f"{look.level:g} only: judge it at that level, not at {row.level:g}"
        )
    row = replace(row, diff=look.estimate, ci_low=look.ci_low, ci_high=look.ci_high, df=None, interval="sequential")
    return row, "" if reason == NOT_OF_ALL[UNEQUAL] or "different questions" in reason else reason


def _pooled_row(run: Run, base: Run, usable: set[Key], bar: Bar, settings: Settings) -> Candidate:
    """The equal-weight mean of all rows that can be judged."""
    unclustered = replace(settings, cluster=None)  # its tasks have been read, and are called otherwise
    result, between = _compared(_pooled(run, usable), _pooled(base, usable), bar, unclustered)
    (row,) = result.comparisons
    looked = {key for key, look in _looks(run).items() if look.rule != "se"}
    reason = "the run was looked at while it grew, and that allows no mean of rows" if looked & usable else ""
    shown = replace(row, metric="mean", scorer="none")
    return replace(_of_difference(shown, bar, reason), fixed=between.get(row.key, 0.0))


def _pooled_floor(run: Run, judged: Sequence[Candidate], settings: Settings) -> Candidate:
    """The equal-weight mean of all rows against the mean of their floors."""
    bars = {c.row.key: c for c in judged if not c.row.reason}
    bars = {part.key: bars[part.key] for part in run.scores if part.key in bars}
    (row,) = analyze_run(_pooled(run, set(bars)), replace(settings, margin=None, cluster=None)).estimates
    threshold, slack = np.mean([(c.row.threshold or 0.0, c.slack) for c in bars.values()], axis=0).tolist()
    own = dict.fromkeys((c.row.task for c in bars.values()), np.zeros(3))
    for c in bars.values():  # numbers of one task are of the same questions
        own[c.row.task] = own[c.row.task] + c.own
    noise = np.sqrt(np.square(list(own.values())).sum(axis=0)) / len(bars)
    return _of_floor(replace(row, metric="mean", scorer="none"), threshold, slack, noise)


def _pooled(run: Run, usable: set[Key]) -> Run:
    """The run with the equal-weight mean of these scores alone.

    Clusters are shared across tasks, and questions of a task across its metrics: where nothing else clusters them, a
    question is the cluster of its values by several metrics.
    """
    scores = [part for part in run.scores if part.key in usable]
    if not scores:
        raise InputError("`pooled` needs a row that can be judged")
    for what, values in (
        ("direction", {part.higher_is_better is not False for part in scores}),
        ("range", {part.bounds for part in scores}),
    ):
        if len(values) > 1:
            raise InputError(f"`pooled` takes the mean of metrics of one {what}: choose some with `metrics`")
    metric, scorer = scores[0].metric, scores[0].scorer
    several = Counter(part.task for part in scores)
    parts = []
    for part in scores:
        clusters, spec = part.clusters, part.cluster_spec
        if clusters is None and several[part.task] > 1:
            clusters, spec = tuple(part.questions.keys), f"question of {part.task}"
        renamed = replace(part, task=part.title, metric=metric, scorer=scorer, clusters=clusters, cluster_spec=spec)
        parts.append(renamed)
    group = Group(POOLED, metric, scorer, tuple(part.task for part in parts), "equal")
    return replace(run, scores=(), parts=tuple(parts), groups=(group,), corpus=(), skipped=())


def against_floors(
    run: Run, floors: Mapping[Key, Floor] | Floor, bar: Bar, settings: Settings
) -> tuple[list[Candidate], list[str]]:
    """The run's own means against numbers; and notes.

    Args:
        run: the run.
        floors: one for every row, or by task, metric and scorer; "" matches any.
        bar: how much may be lost.
        settings: how to compute.
    """
    alone = replace(settings, margin=None, adjust="holm")
    alone.check("analyze")
    analysis = analyze_run(run, alone)
    rows = list(analysis.estimates)
    if isinstance(floors, Floor):
        return _beside(run, [of_floor(row, floors, bar, settings) for row in rows]), list(analysis.notes)
    out, seen = [], set[str]()
    members = {group.name: group.tasks for group in run.groups}
    for key, floor in floors.items():
        fits = [row for row in rows if all(want in ("", have) for want, have in zip(key, row.key, strict=True))]
        if len(fits) == 1:
            task = fits[0].task
            sizes = [len(part.questions) for part in (*run.scores, *run.parts) if part.task in members.get(task, ())]
            out.append(of_floor(fits[0], floor, bar, settings, sizes))
            seen.add(task)
            continue
        reason = "the thresholds name it, and the run lacks it"
        if fits:
            reason = f"the thresholds do not say which: {', '.join(f'{row.metric},{row.scorer}' for row in fits)}"
        out.append(unjudged(key, reason, quantity="A", model=run.model))
    named = seen | {key[0] for key in floors}
    named |= {name for name, tasks in members.items() if {*tasks} <= seen}
    named |= {task for name, tasks in members.items() if name in seen for task in tasks}
    first: dict[str, Estimate] = {}
    for row in rows:
        if row.task not in named:
            first.setdefault(row.task, row)
    reason = "it ran, and the thresholds do not name it"
    out += [unjudged(row.key, reason, quantity="A", model=run.model) for row in first.values()]
    return out, list(analysis.notes)


def of_floor(row: Estimate, floor: Floor, bar: Bar, settings: Settings, sizes: Sequence[int] = ()) -> Candidate:
    """One mean against its floor; where that was measured, limits of the difference [Zou, eq. 3].

    Args:
        row: the mean.
        floor: what it must reach.
        bar: how much may be lost.
        settings: how to compute.
        sizes: of a group the questions of each of its tasks.
    """
    _check_floor(floor.value, row)
    sign = -1.0 if row.higher_is_better is False else 1.0
    threshold = floor.value - sign * floor.rtol * abs(floor.value)
    reason = ""
    if not floor.rtol:
        kept = 1.0 if bar.ratio is None else bar.ratio if sign > 0 else 1 / bar.ratio
        threshold = floor.value * kept - sign * bar.margin
        reason = "a ratio needs a floor above 0" if bar.ratio is not None and floor.value <= 0 else ""
    low, high = row.range or (-math.inf, math.inf)
    if not reason and not low <= threshold <= high:
        raise InputError(
            f"the bar of {row.task} {row.metric}, {threshold:g} when what may be lost is taken off, is outside the "
            f"range of {row.metric}, {low:g} to {high:g}: is `margin` on its scale, and `ratio` a share of it?"
        )
    reason = reason or next((why for code, why in NOT_OF_ALL.items() if code in row.diagnostics), "")
    n = max(sizes or (row.n_questions,))
    if not reason and floor.limit is not None and row.cluster is None and n != floor.limit:
        many = "" if n > floor.limit else ": if there are no more, leave the limit out of the file"
        reason = f"it has {n:,} questions, and the thresholds are for {floor.limit:,} (limit){many}"
    own = np.zeros(3)
    if floor.n is not None and row.range is not None:
        own = _own_noise(floor.value, floor.n, row.range, settings.level)
    elif floor.n is not None and row.mean is not None:
        reason = reason or "the noise of a floor is known only of a metric with a range"
    return _of_floor(row, threshold, floor.value * sign - threshold * sign, own, reason)


def _of_floor(row: Estimate, threshold: float, slack: float, own: FloatArray, reason: str = "") -> Candidate:
    """The candidate of a mean and a threshold with noise of its own, by limits of the difference [Zou, eq. 3]."""
    below, above, se = own.tolist()
    if own.any() and row.mean is not None and row.ci_low is not None and row.ci_high is not None:
        low, high = math.hypot(row.mean - row.ci_low, above), math.hypot(row.ci_high - row.mean, below)
        both = None if row.se is None else math.hypot(row.se, se)
        row = replace(row, ci_low=row.mean - low, ci_high=row.mean + high, se=both)
    return replace(of_row(row, "A", threshold, slack, reason), fixed=se**2, own=(below, above, se))


def _own_noise(value: float, n: int, scale: tuple[float, float], level: float) -> FloatArray:
    """How far a share of n questions may be too high, and too low, by Wilson's interval; and its standard error."""
    width, share = scale[1] - scale[0], (value - scale[0]) / (scale[1] - scale[0])
    ends = wilson(share, n, float(critical(level)))
    return width * np.array([share - ends.low, ends.high - share, math.sqrt(share * (1 - share) / n)])


def _check_floor(value: float, row: Estimate) -> None:
    if not math.isfinite(value):
        raise InputError(f"floor {value} of {row.task} {row.metric} is not a number that a mean can reach")
    low, high = row.range or (-math.inf, math.inf)
    if not low <= value <= high:
        meant = f"; did you mean {value / 100:g}?" if low <= value / 100 <= high else ""
        raise InputError(f"`floor` {value:g} is outside the range of {row.metric}, {low:g} to {high:g}{meant}")


def decide(
    candidates: Sequence[Candidate],
    bar: Bar,
    settings: Mapping[str, Any],
    *,
    budget: int | None = None,
    warnings: Iterable[str] = (),
    notes: Iterable[str] = (),
) -> Gate:
    """One decision over all rows: Holm over those that can be judged, or the pooled one alone.

    What cannot be judged is never a pass: it is an outcome of its own, unless it is left out by name.
    """
    lost = [c.row for c in candidates if c.row.reason and not c.beside]
    if beside := [c.row.name for c in candidates if c.beside]:
        notes = (*notes, f"for information, beside the score that its task declares as headline: {', '.join(beside)}")
    verdicts, alpha, adjust = _verdicts(candidates, bar, settings, budget)
    rows = [row for row in verdicts if not row.reason] + ([] if bar.skip_missing else lost)
    rows.sort(key=lambda row: (not row.decides, row.passed is not False, row.passed is True))
    decided = [row.passed for row in rows if row.decides]
    outcome = FAIL if False in decided else CANNOT if None in decided or not decided else PASS
    lost = lost if bar.skip_missing else []
    return Gate(
        settings=dict(settings) | {"margin": bar.margin, "ratio": bar.ratio, "pooled": bar.pooled},
        outcome=outcome,
        rule=bar.rule,
        alpha=alpha,
        adjust=adjust,
        margin=bar.margin,
        rows=tuple(rows),
        left_out=tuple(f"{row.name} ({row.reason})" for row in lost),
        lost=tuple(lost),
        budget=budget,
        warnings=tuple(warnings),
        notes=tuple(dict.fromkeys(notes)),
    )


def _verdicts(
    candidates: Sequence[Candidate], bar: Bar, settings: Mapping[str, Any], budget: int | None = None
) -> tuple[list[GateRow], float, str]:
    """The row of each candidate with its verdict, by one rule over all that decide; its level, and its adjustment."""
    judged = family(candidates)
    decides = [c in judged for c in candidates]
    adjust = "none" if settings.get("adjust") == "none" else "holm"
    level = judged[0].level if judged else float(settings.get("level", 0.95))
    alpha, m = (1 - level) / 2, max(1, len(judged) if adjust == "holm" else 1)
    of = 1 if bar.rule == "no-loss" else 0  # which of a row's two p-values the rule reads
    p = np.array([c.p_values() for c in candidates]).reshape(-1, 2)
    columns = np.where(np.array(decides, dtype=np.bool_)[:, None], p, np.nan).T
    adjusted = zip(*(decision.adjusted(column, adjust).tolist() for column in columns), strict=True)
    rows = []
    for c, counts, own, both in zip(candidates, decides, p[:, of].tolist(), adjusted, strict=True):
        row = c.row
        if not row.reason:
            row = replace(row, p_value=finite(own), limit=_limit(c, bar.rule), decides=counts)
        if counts:
            shown, excluded = (x < alpha for x in both)
            passed = (False if shown else True if excluded else None) if bar.rule == "no-loss" else not shown
            row = replace(row, p_adjusted=finite(both[of]), passed=passed, **_reach(c, bar.rule, alpha / m, budget))
        rows.append(row)
    return rows, alpha, adjust


def _limit(c: Candidate, rule: Rule) -> float | None:
    """The end of the interval that the rule reads, on the scale of the quantity."""
    end = c.low if rule == "no-loss" else c.high
    if math.isnan(end) or c.row.threshold is None:
        return None
    return c.row.threshold + (-end if c.row.higher_is_better is False else end)


def _reach(c: Candidate, rule: Rule, alpha: float, budget: int | None) -> dict[str, Any]:
    """The loss that a row shows with 80 % power; questions that would exclude it; what a budget would show."""
    se, df, n = c.row.se, c.row.df, c.row.n_questions
    if not se or df is None:
        return {}
    out: dict[str, Any] = {}
    if rule == "regression":
        sees = float(noncentrality(2 * alpha, 0.8, df)) * se + c.slack
        out["sees"] = sees if sees <= c.width else None
    elif c.slack > 0:
        allowed = (c.slack / float(noncentrality(2 * alpha, 0.8, df))) ** 2 - c.fixed
        out["n_needed"] = math.ceil(n * (se * se - c.fixed) / allowed) if allowed > 0 else None
        out["never"] = allowed <= 0
    if budget is not None:
        freedom = max(1.0, df if c.fixed else df * budget / n)  # more questions tell no more of the runs
        factor = float(noncentrality(2 * alpha, 0.8, freedom))
        planned = c.fixed + (se * se - c.fixed) * n / budget
        out["budget_sees"] = factor * math.sqrt(planned) + c.slack
        out["budget_sees_assured"] = factor * math.sqrt(float(upper_variance(planned, df, ASSURANCE))) + c.slack
    return out


def family(candidates: Sequence[Candidate]) -> list[Candidate]:
    """The rows that decide: the pooled one alone, else all that can be judged and that count."""
    pooled = [c for c in candidates if c.pooled]
    return [c for c in pooled or candidates if not c.row.reason and not c.beside]


def self_test(rows: Sequence[Candidate], gate: Gate, stored: Sequence[StoredVerdict] = ()) -> SelfTest:
    """False alarms on identical models, and the loss in every row that is seen with 50, 80 and 95 %.

    T = (z + δ)/s is drawn for each row at its own standard error and degrees of freedom, the rows independent, and the
    rule applied to each draw; the same draws at every loss, so that the power grows with it.

    Args:
        rows: those that decide.
        gate: its rule, level and adjustment.
        stored: what the gate would have said of each baseline run.
    """
    rows = [c for c in rows if c.row.se and c.row.df]
    if not rows:
        return SelfTest(None, (), tuple(stored))
    se, df, slack = (
        np.array(x, dtype=np.float64) for x in zip(*((c.row.se, c.row.df, c.slack) for c in rows), strict=True)
    )
    rng = np.random.default_rng(0)
    z = rng.standard_normal((_REPLICATES, len(se)))
    s = np.sqrt(rng.chisquare(df, z.shape) / df)

    def stopped(loss: float) -> float:
        """The share that does not pass."""
        t = (z + (slack - loss) / se) / s
        p = special.stdtr(df, t if gate.rule == "regression" else -t)
        ordered = np.sort(p, axis=1) * (np.arange(len(se), 0, -1) if gate.adjust == "holm" else 1)
        if gate.rule == "regression":
            return float((ordered[:, 0] < gate.alpha).mean())
        return float((ordered.max(axis=1) >= gate.alpha).mean())

    alarm = stopped(0.0)
    sees = []
    for power in (0.5, 0.8, 0.95):
        low, high = 0.0, float((slack + 10 * se).max())
        for _ in range(40):
            middle = (low + high) / 2
            low, high = (middle, high) if stopped(middle) < power else (low, middle)
        sees.append(Seen(high, power))
    return SelfTest(alarm, tuple(sees), tuple(stored))
