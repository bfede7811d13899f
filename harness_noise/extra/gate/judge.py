"""Judgement of a gate: is a run good enough, by one rule over all rows?

Each row holds a quantity against a threshold: A − B, A − R·B, or A's own mean, all of the one kernel. Test, p and limit
of a difference come from the decision that `compare` shows, so that with one row the gate trips exactly where `compare`
calls A worse. The p of a mean against a floor is read off its interval.

A gate is one decision, so all rows that it judges are one family. What may hold for any row is adjusted: a loss that is
shown in one row fails the run, so Holm's method keeps the chance that a run without any loss fails at (1 − level)/2,
however many tasks and groups it has. What must hold for every row is not: a run passes the rule no-loss only if the
loss is excluded in each row, and each row is tested at (1 − level)/2 by itself [Berger].

Sources:
  [Berger]  Berger (1982), Technometrics 24(4): intersection–union tests
  [Zou]     Zou & Donner (2008), Statistics in Medicine 27(10)
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from numbers import Real
from operator import ne
from typing import Any

import numpy as np
from scipy import special

from ...analysis.comparison import compare_runs, compared_of, matched_scores
from ...analysis.drawing import NOT_RANDOM, UNEQUAL
from ...analysis.mean import analyze_run
from ...analysis.overall import Measure, Top, common_sizes, top_level, top_shares
from ...analysis.ranges import Ends, score_range
from ...analysis.repeats import as_repeats, copy_notes, is_one_run, without_copies
from ...analysis.sample import align, codes_of, is_scored
from ...arrays import BoolArray, FloatArray, picked
from ...choices import T_TEST, has_limits
from ...data.matching import pair_questions
from ...data.native_values import MISMATCH, agreed_pairs, are_zero_one
from ...data.notes import Note
from ...data.scores import CorpusScores, Group, OnQuestions, Run, Scores
from ...errors import InputError, NothingSharedError, check_computed, check_kind
from ...extras import module_of
from ...results.diagnostics import NOT_ASKED, SCORED, STOPPED
from ...results.forms import finite
from ...results.parts import SEQUENTIAL, Sequential
from ...results.rows import Comparison, Difference, Estimate
from ...settings import CAUSES, Settings
from ...stats import decision
from ...stats.contrast import question_stats
from ...stats.decision import OneSided
from ...stats.power import noncentrality
from ...stats.tolerances import ROUNDING, SLACK
from ..published import NOT_THESE, Published, check_value, distance_with_noise
from ..sizes import Units
from .checks import with_scoring, without_texts, worst_case
from .results import CANNOT, FAIL, PASS, Gate, GateRow, Rule, Seen, SelfTest

Key = tuple[str, str, str]
"""Task (or group), metric and scorer."""
POOLED = "all rows, pooled"
LOST = "not_after_adjustment"
"""The code of a row that its own p would fail. It is of the gate's test: that of the difference is about 0."""


class _OfAsking(str):
    """A reason not to judge a row: the runs were asked other questions, which looks allow for."""

    __slots__ = ()


NO_MEAN = "it is not a mean over questions, and `pooled` takes only those"
NOT_OF_ALL = {
    "skipped_metric": "it has no scores by question",
    STOPPED: "the run stopped early, which makes its own mean too extreme",
    NOT_RANDOM: "its questions are not a random subset (not_a_random_part)",
    UNEQUAL: _OfAsking(
        "its questions were drawn with different probabilities, so that its mean is another (unequal_chances)"
    ),
}
"""Codes of a row whose mean is not the benchmark's, and why."""
ITSELF = "the run is its own baseline, and no loss against itself can be shown: name the run that came before it"
WITHHELD = "equal answers are scored differently in the run and in a baseline (scored_differently)"
NO_P = "its test has no p"
_REPLICATES = 20_000
"""Replications of the self-test, whose shares are then exact to ± .1%."""
_CURED = 0.8
"""Share of identical models that should pass. Below it, the self-test says how many questions are needed."""
_MOST_TIMES = 1e4
"""More questions than so many times those that there are do not help a gate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """The rule of a gate, and how much a run may lose."""

    rule: Rule = "regression"
    margin: float = 0.0
    ratio: float | None = None
    pooled: bool = False
    skip_missing: bool = False
    vouched: tuple[str, ...] = ()
    """Causes for which answers are missing at random, by the user's word."""

    def __post_init__(self) -> None:
        for cause in self.vouched:
            if cause not in CAUSES:
                raise InputError(f"`vouch` {cause!r} is no cause of a missing answer. They are {', '.join(CAUSES)}")
        if self.rule not in ("regression", "no-loss"):
            raise InputError(f"rule {self.rule!r} is not one of regression, no-loss")
        if not 0 <= self.margin < math.inf:
            raise InputError(f"margin {self.margin:g} must not be negative")
        check_kind("`ratio`", self.ratio, Real, type(None))
        if self.ratio is not None and not 0 < self.ratio < 2:
            meant = f". Did you mean {self.ratio / 100:g}?" if 2 <= self.ratio <= 100 else ""
            raise InputError(f"`ratio` {self.ratio:g} is not the share of the baseline to be kept, such as 0.99{meant}")
        if self.ratio is not None and self.margin:
            raise InputError("`margin` and `ratio` both say how much may be lost: leave one of the two out")

    @property
    def p_index(self) -> int:
        """The index in `p_values` of the p-value that decides: 0 ("no loss" rejected) for "regression", else 1."""
        return 1 if self.rule == "no-loss" else 0


@dataclass(frozen=True, slots=True)
class Floor:
    """A number that a run's mean must reach."""

    value: float
    n: int | None = None
    """Questions that it was measured on, which have their own noise. None: it is exact, or of the same questions."""
    rtol: float = 0.0
    """The share of it that may be lost, 0 for what the gate allows."""
    limit: int | None = None
    """Questions of each task that its file asks for."""
    answers: float | None = None
    """Answers to each of the same questions that it was measured with, None if it is of other questions."""

    @property
    def published(self) -> Published:
        return Published(self.value, self.n, self.answers)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A gate row before the verdict. Distances from the threshold are above 0 on the good side."""

    row: GateRow
    gain: float = math.nan
    low: float = math.nan
    high: float = math.nan
    level: float = 0.95
    slack: float = 0.0
    """The value of `gain` if nothing is lost."""
    p: tuple[float, float] | None = None
    """One-sided p of "no loss beyond the threshold" and of "a loss beyond it". None: read off the limits."""
    fixed: float = 0.0
    """The part of the squared standard error that more questions do not make smaller."""
    own: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """Distances by which the threshold may be too high and too low, and its standard error."""
    width: float = math.inf
    """The width of the metric's range."""
    beside: bool = False
    """True if it is for information: its task declares another main score, or nobody asked for the metric."""
    pooled: bool = False
    """True if it is the mean of the others, and decides alone."""
    of_runs: bool = False
    """True if it is compared with baseline runs, not with a number."""
    open: str = ""
    """Why its pass does not count. Its p still counts in the adjustment, as it would if it had failed."""

    def lost(self, reason: str) -> Candidate:
        """Return the row marked as not judged for this reason, unless it already has a reason."""
        return self if self.row.reason else replace(self, row=replace(self.row, reason=reason))

    def p_values(self) -> tuple[float, float]:
        """Return p of "no loss beyond the threshold" and p of "a loss beyond it". NaN if not judged.

        Without a test of its own they are read off the limits, through t (`decision.p_beyond`).
        """
        if self.row.reason:
            return math.nan, math.nan
        if self.p is not None:
            return self.p
        df = self.row.df if self.row.df is not None and self.row.se else math.inf
        shown = decision.p_beyond(self.gain, self.high, df, self.level, 0.0)
        return float(shown), float(decision.p_beyond(-self.gain, -self.low, df, self.level, 0.0))


def unjudged(key: Key, reason: str, **fields: Any) -> Candidate:
    """Return a gate row that cannot be judged, with the reason."""
    return Candidate(GateRow(*key, **fields, reason=reason))


def of_row(
    row: Difference | Estimate,
    quantity: str,
    threshold: float,
    slack: float,
    reason: str = "",
    p: tuple[float, float] | None = None,
) -> Candidate:
    """Return a gate row from a mean or difference: its distance to the threshold, and any reason not to judge it.

    Args:
        row: the mean or difference.
        quantity: what the row calls it.
        threshold: what it must reach.
        slack: what lies between the threshold and no loss.
        reason: why it cannot be judged.
        p: one-sided, of its test; None: read off its limits.
    """
    mean = row.mean if isinstance(row, Estimate) else row.diff
    if not reason and SCORED in row.diagnostics:
        reason = WITHHELD
    if not reason and MISMATCH in row.diagnostics:
        reason = "its scores do not have the mean that the harness reports (mean_mismatch)"
    if not reason and (mean is None or (row.ci_low is None and (p is None or math.isnan(p[0])))):
        reason = "it has no interval"
    limits = (row.ci_low, row.ci_high)
    if isinstance(row, Difference) and not has_limits(row.test):  # its interval is t's, which does not decide
        limits = (None, None)
    sign = -1.0 if row.higher_is_better is False else 1.0
    gain, low, high = (math.nan if x is None else sign * (x - threshold) for x in (mean, *limits))
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
        diagnostics=tuple(code for code in row.diagnostics if code != LOST),
        reason=reason,
        _zero_one=row._zero_one,
    )
    return Candidate(shown, gain, *((low, high) if sign > 0 else (high, low)), row.level, slack, p)


def judge(
    run: Run,
    baselines: Sequence[Run],
    floors: Sequence[Mapping[Key, Floor] | Floor],
    bar: Bar,
    settings: Settings,
    *,
    tested: bool = False,
) -> Gate:
    """Return the gate's result for a run against baseline runs and floors.

    Args:
        run: the new one.
        baselines: runs of one configuration; none: only floors count.
        floors: numbers that its means must reach.
        bar: the rule and what may be lost.
        settings: how to compute.
        tested: also the self-test.
    """
    rows, notes = _candidates(run, baselines, floors, bar, settings)
    widths = _widths((run, *baselines), settings)
    rows, tried = [replace(c, width=widths.get(c.row.metric, math.inf)) for c in rows], 0
    if (worst := worst_case(run, baselines, settings, bar.vouched)) is not None:
        fills, untold = worst
        cases, tried = [_candidates(*filled, floors, bar, settings)[0] for filled in fills], len(fills)
        rows = _settled(rows, cases, untold, bar, settings.to_dict())
    if any(is_one_run(run, base) for base in baselines):
        rows = [c.lost(ITSELF) if c.of_runs else c for c in rows]
    warnings = [note for base in baselines for note in copy_notes((run, base))]
    if not warnings:
        warnings = [
            Note(
                "same_scores",
                f"every question of {a.name} has the same score in {b.name}: if they are one run, "
                "name two different runs",
            )
            for a, b in combinations((run, *without_copies(baselines)[0]), 2)
            if _same_scores(a, b)
        ]
    notes += _vouched((run, *baselines), bar.vouched)
    result = decide(rows, bar, settings.to_dict(), warnings=warnings, notes=notes)
    if tried and result.passed and not bar.skip_missing:
        result = replace(result, notes=(*result.notes, _note_on_fills(tried)))
    return replace(result, self_test=self_test(family(rows), result)) if tested else result


def _candidates(
    run: Run,
    baselines: Sequence[Run],
    floors: Sequence[Mapping[Key, Floor] | Floor],
    bar: Bar,
    settings: Settings,
) -> tuple[list[Candidate], list[Note]]:
    """Return all gate rows before their verdicts, pooled ones first, and notes."""
    pooled, out, notes = list[Candidate](), list[Candidate](), list[Note]()
    others: list[Scores | CorpusScores] = [*run.corpus, *(part for part in run.scores if part.per is not None)]
    no_means = {part.key for part in others} if bar.pooled else set()

    def marked(rows: Iterable[Candidate]) -> list[Candidate]:
        """Mark rows of corpus metrics and ratios as ones that cannot be judged, if a mean over rows is asked for."""
        return [c.lost(NO_MEAN) if c.row.key in no_means else c for c in rows]

    if baselines:
        base, said = one_configuration(baselines)
        ((new, base),), renamed = agreed_pairs([(run, base)])
        rows, remarks = against_runs(new, base, baselines, bar, settings)
        out += [replace(c, of_runs=True) for c in marked(rows)]
        notes += [*said, *renamed, *remarks]
        if bar.pooled and (usable := {c.row.key for c in out if not c.row.reason and not c.beside}):
            pooled.append(replace(_pooled_row(new, base, usable, bar, settings), of_runs=True))
    for floor in floors:
        rows, remarks = against_floors(run, floor, bar, settings)
        rows = marked(rows)
        out += rows
        notes += remarks
        same = any(one.answers is not None for one in _floors_in(floor))
        pooled += [_pooled_floor(run, rows, settings, same_questions=same)] if bar.pooled else []
    return [replace(c, pooled=True) for c in pooled] + out, notes


def _vouched(runs: Sequence[Run], causes: Sequence[str]) -> Iterator[Note]:
    """Yield a note for each vouched cause: how many answers are missing for it, or that none is."""
    for cause in dict.fromkeys(causes):
        lost = {run.name: max((part.missing.get(cause, 0) for part in run.scores), default=0) for run in runs}
        if any(lost.values()):
            each = ", ".join(f"{n:,} of {name}" for name, n in lost.items() if n)
            text = f"answers missing for {cause} ({each}) are missing at random, by your word (`vouch`)"
            yield Note("vouched", text)
            continue
        there = list(dict.fromkeys(name for run in runs for part in run.scores for name in part.missing))
        have = f"the causes that there are: {', '.join(there)}" if there else "no cause of any is known"
        text = f"`vouch` {cause} changes nothing, because no answer is missing for this cause: {have}"
        yield Note("missing_without_cause", text)


def _widths(runs: Sequence[Run], settings: Settings) -> dict[str, float]:
    """Return {metric: width of its range}, more than which cannot be lost. Unknown ranges are left out."""
    metrics: dict[str, list[Ends]] = {}
    for part in (part for run in runs for part in run.scores):
        metrics.setdefault(part.metric, []).append(Ends.of([part]))
    ranges = {name: score_range(ends, settings) for name, ends in metrics.items()}
    return {name: ends[1] - ends[0] for name, ends in ranges.items() if ends is not None}


def _settled(
    now: Sequence[Candidate],
    cases: Sequence[Sequence[Candidate]],
    unknown: set[Key],
    bar: Bar,
    settings: Mapping[str, Any],
) -> list[Candidate]:
    """Return the rows. A pass that missing answers could turn into a fail is left open, with the reason.

    Args:
        now: the rows of the answers that there are.
        cases: with scores in place of those that are missing, the worst first, then others.
        unknown: what cannot be filled.
        bar: the rule.
        settings: what is written of them.
    """

    def identity(c: Candidate) -> tuple[Any, ...]:
        return c.row.key, c.row.quantity, c.row.threshold

    untold = unknown & {c.row.key for c in now if not c.row.reason}
    passed = [
        {identity(c) for c, row in zip(case, _verdicts(case, bar, settings)[0], strict=True) if row.passed}
        for case in cases
    ]
    still = set.intersection(*passed)
    out = []
    for c, row in zip(now, _verdicts(now, bar, settings)[0], strict=True):
        if row.passed and (c.row.key in unknown or (c.pooled and untold)):
            why = (
                "answers are missing, and what they could change is not known: give the metric's range if it has none "
                "(`range=(LOW, HIGH)`), count them as wrong (`missing='zero'`), or, if the log says why they are "
                "missing, vouch for the cause (`vouch='CAUSE'`)"
            )
            c = replace(c, open=why)
        elif row.passed and identity(c) not in still:
            which = "some of the scores" if identity(c) in passed[0] else "the worst scores"
            why = (
                f"answers are missing, and with {which} that they could have it does not pass: count them as "
                "wrong (`missing='zero'`), say the range if it is narrower (`range=(LOW, HIGH)`), or, if the log says "
                "why they are missing, and they are missing at random, vouch for the cause (`vouch='CAUSE'`)"
            )
            c = replace(c, open=why)
        out.append(c)
    return out


def _note_on_fills(n: int) -> Note:
    """Return the note that n ways of filling in missing scores were tried and all pass."""
    between = f", and with {n - 2} between" if n > 2 else ""
    text = "answers are missing: the gate also passes with the worst scores that they could have, and with the best"
    return Note("missing_filled", f"{text}{between}. Other combinations were not tried")


def _same_scores(a: Run, b: Run) -> bool:
    """Return True if two runs have equal means on every question of each task they share. False if none is shared."""

    def same(part_a: Scores, part_b: Scores) -> bool:
        pairing = align([part_a], [part_b], None)
        return not (pairing.only_a or pairing.only_b) and np.array_equal(pairing.a.stats.mean, pairing.b.stats.mean)

    both, _ = matched_scores(a, b, alone=len(a.scores) == len(b.scores) == 1)
    return bool(both) and all(same(*parts) for parts in both)


NOTHING_SHARED = "the runs have no question in common"
_SAID_BY_ROWS = frozenset(("only_one_has", "nothing_shared", "left_out", "one_run_twice"))
"""Notes of a comparison that a gate's own rows and warnings say."""


def against_runs(
    run: Run, base: Run, baselines: Sequence[Run], bar: Bar, settings: Settings
) -> tuple[list[Candidate], list[Note]]:
    """Return gate rows for A − B, or A − ratio·B, with the mean of the baselines, and notes. Refuse unfit settings."""
    if len(baselines) > 1:
        _check_several(settings)
    among = among_baselines(baselines)
    try:
        result, between = _compared(without_texts(run), without_texts(base), bar, settings)
    except NothingSharedError as error:
        names = {"model": run.model, "against": base.model}
        lost = [unjudged(key, why or NOTHING_SHARED, **names) for key, why in of_either(run, base, among).items()]
        return _with_beside(run, lost), [Note("nothing_shared", str(error))]
    result = replace(result, comparisons=with_scoring(run, without_copies(baselines)[0], result.comparisons))
    notes = [note for note in result.notes if note.code not in _SAID_BY_ROWS]
    tested = {row.key: p for row, p in zip(result.comparisons, result.one_sided, strict=True) if p is not None}
    rows = of_pair(run, base, result.comparisons, bar, among, tested, settings)
    return [replace(c, fixed=between.get(c.row.key, 0.0)) for c in rows], notes


def _compared(run: Run, base: Run, bar: Bar, settings: Settings) -> tuple[Comparison, dict[Key, float]]:
    """Compare run and baseline (times the ratio, if any). Return it and {row: variance between baseline runs in it}."""
    other = base if bar.ratio is None else scaled(base, bar.ratio)
    settings = replace(settings, margin=bar.margin or None)
    result = compare_runs([(run, other)], settings)
    between = {}
    if any(part.runs_of_one for part in (*base.scores, *base.parts)):
        alone = compare_runs([(run, _marked(other, runs_of_one=0.0))], settings).comparisons
        for row, without in zip(result.comparisons, alone, strict=True):
            between[row.key] = max(0.0, (row.se or 0.0) ** 2 - (without.se or 0.0) ** 2)
    if bar.ratio is not None:
        result = _with_plain_limits(run, base, result, settings)
    return result, between


def _marked(run: Run, **fields: Any) -> Run:
    """Return the run with these fields set in all of its scores."""
    scores, parts = (tuple(replace(part, **fields) for part in parts) for parts in (run.scores, run.parts))
    return replace(run, scores=scores, parts=parts)


def of_pair(
    run: Run,
    base: Run,
    rows: Sequence[Difference],
    bar: Bar,
    among: Mapping[Key, str],
    tested: Mapping[Key, OneSided],
    settings: Settings,
) -> list[Candidate]:
    """Return a gate row for all that run or baseline measured, some not judged. Refuse looks of another level.

    Args:
        run: the new one.
        base: the baseline.
        rows: the comparison of the two.
        bar: how much may be lost.
        among: why the runs that the baseline is the mean of cannot be taken together.
        tested: the one-sided p-values of the rows' tests.
        settings: of the comparison.
    """
    reasons = _reasons(run, base, rows, among)
    looks = _looks_by_key(run)
    out = []
    for compared in rows:
        look = looks.get(compared.key)
        known = look is not None and _stopped_against(look, compared, run, base, settings)
        row, reason = _with_look_interval(compared, look, reasons.pop(compared.key, ""), bar, known=known)
        at_end = tested.get(compared.key) if row is compared else None  # limits that allow for looks have no other p
        out.append(_of_difference(row, bar, at_end, reason))
    names = {"model": run.model, "against": base.model}
    return _with_beside(run, out + [unjudged(key, reason, **names) for key, reason in reasons.items() if reason])


def _looks_by_key(run: Run) -> dict[Key, Sequential]:
    """Return {(task, metric, scorer): look at which the run stopped}."""
    return {look.key: look for look in (Sequential(**row) for row in run.stops)}


def _with_beside(run: Run, candidates: Sequence[Candidate]) -> list[Candidate]:
    """Return the rows, `beside` set for those that do not decide: not the task's main metric, or not asked for."""
    heads = run.headline.intersection(c.row.key for c in candidates)
    tasks = {task for task, _, _ in heads}
    asked = {c.row.key for c in candidates if NOT_ASKED not in c.row.diagnostics} or {c.row.key for c in candidates}
    return [
        replace(c, beside=(c.row.task in tasks and c.row.key not in heads) or c.row.key not in asked)
        for c in candidates
    ]


def _of_difference(row: Difference, bar: Bar, tested: OneSided | None, reason: str) -> Candidate:
    p = None
    if tested is not None:
        p = (tested.below_low, tested.above_low)
        p = (tested.above_high, tested.below_high) if row.higher_is_better is False else p
    if bar.ratio is None:
        threshold = bar.margin if row.higher_is_better is False else 0.0 - bar.margin  # −0.0 is 0
        return of_row(row, "A − B", threshold, bar.margin, reason, p)
    R, lower = bar.ratio, row.higher_is_better is False
    mean_b = (row.mean_b or 0.0) / (1.0 if lower else R)
    if not reason and mean_b <= 0:
        reason = "a ratio needs a baseline above 0"
    return of_row(row, f"A − B/{R:g}" if lower else f"A − {R:g}·B", 0.0, (1 - R) * mean_b, reason, p)


def one_configuration(runs: Sequence[Run]) -> tuple[Run, list[Note]]:
    """Join baseline runs into one, each a column of question means. One stays as is. Return run and notes (always)."""
    runs, twice = without_copies(runs)
    if len(runs) == 1:
        note = Note(
            "one_baseline",
            "one baseline run: how far two runs of one configuration differ (batching, kernels, seeds) cannot be known "
            "from it. Give several as `against`, or keep them with `store`",
        )
        return runs[0], [note, *twice]
    first = runs[0]
    means = [
        replace(run, model=first.model, scores=_question_means(run.scores), parts=_question_means(run.parts))
        for run in runs
    ]
    joined = as_repeats(means)[0]
    names = list(dict.fromkeys(run.model for run in runs))
    whose = "" if len(names) == 1 else f" ({', '.join(names)}), taken for one configuration"
    more = ". A third one would let the gate see about twice as much" * (len(runs) == 2)
    notes = [Note("several_baselines", f"{len(runs)} baseline runs{whose}: what runs differ by counts, too{more}")]
    run = replace(_set_of_right(joined, runs), model=f"mean of {len(runs)} runs", corpus=(), drawn=first.drawn)
    run, lacking = _only_complete(_marked(run, runs_of_one=1.0))
    said = f"{lacking:,} questions that a baseline run lacks are left out"
    notes += [Note("not_in_all_runs", said)] if lacking else []
    return run, [*notes, *twice, *(note for note in joined.notes if note.code == "one_run_twice")]


def _check_several(settings: Settings) -> None:
    """Refuse settings that the test against several baseline runs cannot follow."""
    if settings.repeats_are == "runs":
        raise InputError("several baseline runs are runs already: leave `repeats_are='runs'` out")
    if settings.test != T_TEST.name:
        raise InputError(
            f"against several baseline runs there is one test, which knows what runs differ by: leave "
            f"`test={settings.test!r}` out, or give one baseline"
        )
    if settings.unpaired:
        raise InputError("several baseline runs are paired by question: leave `unpaired=True` out, or give one")


def _only_complete(run: Run) -> tuple[Run, int]:
    """Empty the questions that some column lacks. Return the run and the number of such questions."""
    lacking = 0

    def whole(part: Scores) -> Scores:
        nonlocal lacking
        n_answers = (~np.isnan(part.values)).sum(axis=1)
        some: BoolArray = (n_answers > 0) & (n_answers < part.values.shape[1])
        lacking += int(some.sum())
        return replace(part, values=np.where(some[:, None], np.nan, part.values)) if some.any() else part

    run = replace(run, scores=tuple(map(whole, run.scores)), parts=tuple(map(whole, run.parts)))
    return run, lacking


def _set_of_right(joined: Run, runs: Sequence[Run]) -> Run:
    """Return the run of question means with `of_right` True if the original scores were only 0 and 1, else False."""
    of_key: dict[Key, list[Scores]] = {}
    for part in (part for run in runs for part in (*run.scores, *run.parts)):
        of_key.setdefault(part.key, []).append(part)

    def told(parts: Sequence[Scores]) -> tuple[Scores, ...]:
        return tuple(replace(part, of_right=are_zero_one(of_key.get(part.key, [part]))) for part in parts)

    return replace(joined, scores=told(joined.scores), parts=told(joined.parts))


def _question_means(parts: Sequence[Scores]) -> tuple[Scores, ...]:
    """Return a tuple of these scores with (n, 1) question means, without native value, factors and signs of copies."""

    def mean(values: FloatArray) -> FloatArray:
        return question_stats(values).mean[:, None]

    out = []
    for part in parts:
        codes = tuple(code for code in codes_of([part]) if code not in ("identical_repeats", "copied_repeats"))
        fields = replace(part, usage={}, asked=None, late=None).arrays(mean) | {"asked": None}
        out.append(replace(part, **fields, native=None, diagnostics=codes, factors=None))
    return tuple(out)


def scaled(run: Run, ratio: float) -> Run:
    """Return the run with scores times `ratio` (divided if lower is better), without answer texts, corpus metrics."""

    def times(part: Scores) -> Scores:
        R = 1 / ratio if part.higher_is_better is False else ratio
        bounds = None if part.bounds is None else (min(part.bounds[0], R * part.bounds[0]), max(R, 1) * part.bounds[1])
        unread: dict[str, Any] = {"native": None, "answers": None, "gradings": None, "of_right": are_zero_one([part])}
        return replace(part, values=R * part.values, bounds=bounds, runs_of_one=R * part.runs_of_one, **unread)

    groups = tuple(replace(group, native=None) for group in run.groups)
    scores, parts = tuple(map(times, run.scores)), tuple(map(times, run.parts))
    return replace(run, scores=scores, parts=parts, groups=groups, corpus=())


def _with_plain_limits(run: Run, base: Run, result: Comparison, settings: Settings) -> Comparison:
    """Return the comparison of A − ratio·B. Where A and B always agree, its limits come from A − B.

    There A − R·B varies only as B does, and says nothing of the flips that might have been.
    """
    rows = result.comparisons
    alike = [(row.correlation or 0.0) > 1 - 1e-9 for row in rows]
    plain = compare_runs([(run, base)], settings).comparisons if any(alike) else rows
    out, tested = [], []
    for row, other, same, p in zip(rows, plain, alike, result.one_sided, strict=True):
        if same and "identical_scores" in other.diagnostics and other.ci_low is not None and other.ci_high is not None:
            by = row.diff or 0.0
            row = replace(other, diff=by, mean_b=row.mean_b, ci_low=other.ci_low + by, ci_high=other.ci_high + by)
            p = None  # read off these limits
        out.append(row)
        tested.append(p)
    return replace(result, comparisons=tuple(out), one_sided=tuple(tested))


def of_either(run: Run, base: Run, among: Mapping[Key, str]) -> dict[Key, str]:
    """Return {row: why one of the runs has no scores of it, "" if both have, or each measured one thing}."""
    mine, theirs = _measured(run), _measured(base)
    alone = len(mine) == len(theirs) == 1  # of other names, and compared all the same
    out: dict[Key, str] = {}
    for key in dict.fromkeys((*mine, *theirs)):
        if key in mine and key in theirs:
            out[key] = mine[key] or theirs[key]
        else:
            have, lacks = ("the run", "the baseline") if key in mine else ("the baseline", "the run")
            out[key] = "" if alone else among.get(key) or f"only {have} has it, not {lacks}"
    return out


def _reasons(run: Run, base: Run, compared: Sequence[Difference], among: Mapping[Key, str]) -> dict[Key, str]:
    """Return {row: why it cannot be judged, "" if it can} for all that either run measured."""
    matched, _ = matched_scores(run, base, alone=not run.groups and not run.corpus)
    mine, theirs = _measured(run), _measured(base)
    rows = {row.key: row for row in compared}
    named_twice = {part.key for part in run.scores} - {a.key for a, _ in matched}  # a row under a second name
    others: dict[Key, OnQuestions] = {part.key: part for part in (*base.scores, *base.parts, *base.corpus)}
    others |= {a.key: b for a, b in matched}
    drawn = {row["task"] for side in (run, base) for row in side.drawn}
    out = of_either(run, base, among)
    for key, reason in out.items():
        if not reason and key in mine and key in theirs and key not in rows and key not in named_twice:
            out[key] = NOTHING_SHARED
    for key, row in rows.items():
        both = [(a, others[a.key]) for a in _scores_behind(run, key) if a.key in others]
        unlike = (why_unlike(a, b, "the runs", row, drawn=a.task in drawn) or among.get(b.key) for a, b in both)
        out[key] = next(filter(None, unlike), out[key])
    return out


def _scores_behind(run: Run, key: Key) -> list[OnQuestions]:
    """Return the scores from which a row is computed: one task's, or those of all tasks of a group."""
    tasks = next((group.tasks for group in run.groups if (group.name, group.metric, group.scorer) == key), key[:1])
    made_of = {(task, *key[1:]) for task in tasks}
    return [part for part in (*run.scores, *run.parts, *run.corpus) if part.key in made_of]


def among_baselines(baselines: Sequence[Run]) -> dict[Key, str]:
    """Return {row: why the baseline runs are not of one configuration} for rows with such a reason.

    They have other tasks, versions, prompts or questions.
    """
    baselines = without_copies(baselines)[0]
    measured: dict[Key, list[Scores]] = {}
    for part in (part for base in baselines for part in (*base.scores, *base.parts)):
        measured.setdefault(part.key, []).append(part)
    out: dict[Key, str] = {}
    for key, (first, *others) in measured.items():
        unlike = [why for other in others if (why := why_unlike(first, other, "the baseline runs"))]
        if len(others) + 1 < len(baselines):
            unlike.append(f"only {len(others) + 1} of {len(baselines)} baseline runs have it")
        if unlike:
            out[key] = unlike[-1]
    if len(baselines) > 1:
        of_all = "it is not a mean over questions, and of several baseline runs only means are taken together"
        out |= {whole.key: of_all for base in baselines for whole in base.corpus}
    return out


def _measured(run: Run) -> dict[Key, str]:
    """Return {row: why the run has no scores of it, "" if it has} for all that the run reports."""
    groups = [(group.name, group.metric, group.scorer) for group in run.groups]
    skipped = {skip.key: f"it has no scores by question ({skip.reason})" for skip in run.skipped}
    return skipped | dict.fromkeys((*(part.key for part in (*run.scores, *run.corpus)), *groups), "")


def why_unlike(a: OnQuestions, b: OnQuestions, both: str, row: Difference | None = None, *, drawn: bool = False) -> str:
    """Return why two runs' scores cannot be compared (version, prompts, questions, …), "" if they can.

    Args:
        a: those of the new run, or of the first baseline.
        b: of the baseline, or of another one.
        both: what the runs are called.
        row: the comparison of the two, or of a group that they are of, where there is one.
        drawn: whether the questions are a random subset.
    """
    versions = [part.version for part in (a, b) if isinstance(part, Scores) and part.version]
    if len(set(versions)) > 1:
        return f"{both} have the versions {' and '.join(versions)} of the task"
    if None not in (ways := (a.higher_is_better, b.higher_is_better)) and ways[0] != ways[1]:
        return "higher is better in one run and lower in the other"
    if STOPPED in b.diagnostics:
        return "the baseline stopped early, because of its scores on just these questions"
    if NOT_RANDOM in (*a.diagnostics, *b.diagnostics):
        return "the questions of one run are not a random subset (not_a_random_part)"
    if MISMATCH in codes_of([part for part in (a, b) if isinstance(part, Scores)]):
        return "its scores do not have the mean that the harness reports (mean_mismatch)"
    if a.questions is not b.questions and not (row is not None and "unpaired" in row.diagnostics):
        same, prompts = pair_questions(a.questions, b.questions), (a.questions.prompts, b.questions.prompts)
        if None not in prompts and any(map(ne, picked(prompts[0], same.rows_a), picked(prompts[1], same.rows_b))):
            return f"the prompts differ between {both} (different_prompts)"
        compared = row is not None and not (row.n_only_a or row.n_only_b)
        if not (compared or drawn) and len(same.rows_a) < max(len(a.questions), len(b.questions)):
            return _OfAsking(
                f"{both} asked different questions ({len(a.questions):,} and {len(b.questions):,}, "
                f"{len(same.rows_a):,} in common): was --limit another?"
            )
    return NOT_OF_ALL[UNEQUAL] if UNEQUAL in (*a.diagnostics, *b.diagnostics) else ""


def _stopped_against(look: Sequential, row: Difference, run: Run, base: Run, settings: Settings) -> bool:
    """Return True if the run was stopped early in a comparison with this very baseline."""
    each = (what for what in compared_of(run, base)[0] if (what.task, *what.parts_a[0].key[1:]) == row.key)
    return any(module_of("looks").is_of(look, what, settings) for what in each)


def _with_look_interval(
    row: Difference, look: Sequential | None, reason: str, bar: Bar, *, known: bool
) -> tuple[Difference, str]:
    """Return (row corrected for early stopping, why it is not judged or ""). Refuse a level other than the looks'.

    The looks allow for the questions that were not asked, and for the probabilities with which the others were drawn.
    """
    if row.test == SEQUENTIAL:
        return row, "" if isinstance(reason, _OfAsking) else reason
    stopped = STOPPED in row.diagnostics
    if look is None or look.rule == "se":
        if stopped and look is None and not reason:
            reason = "the run stopped early for another quantity, which makes this one too extreme"
        return row, reason
    if bar.ratio is not None or look.ci_low is None:
        return row, reason or "the run was looked at while it grew, and that allows a margin alone"
    if not known:
        other = (
            "the run stopped early against another baseline or with other clusters, or has more answers than when it "
            "stopped"
        )
        return row, reason or other * stopped
    if not math.isclose(look.level, row.level):
        raise InputError(
            f"{row.task} {row.metric}: the run was looked at while it grew, with limits that hold at its own `level` "
            f"{look.level:g} only: judge it at that level, not at {row.level:g}"
        )
    row = replace(row, diff=look.estimate, ci_low=look.ci_low, ci_high=look.ci_high, df=None, interval="sequential")
    return row, "" if isinstance(reason, _OfAsking) else reason


def _pooled_row(run: Run, base: Run, usable: set[Key], bar: Bar, settings: Settings) -> Candidate:
    """Return the gate row for the usable rows' mean, A − B or A − ratio·B. Refuse none, mixed directions or ranges."""
    unclustered = replace(settings, cluster=None)  # its tasks have been read, and are called otherwise
    theirs = {part.key: part for part in base.scores}
    # by size, each counts by the questions that are compared
    both = {part.key: (part, theirs[part.key]) for part in run.scores if part.key in usable & theirs.keys()}
    sizes = common_sizes(both, settings)
    new, old = (_pooled(side, usable, settings, sizes) for side in (run, base))
    result, between = _compared(new, old, bar, unclustered)
    ((row,), (tested,)) = result.comparisons, result.one_sided
    looked = {key for key, look in _looks_by_key(run).items() if look.rule != "se"}
    reason = "the run was looked at while it grew, and that allows no mean of rows" if looked & usable else ""
    shown = replace(row, metric="mean", scorer="none")
    return replace(_of_difference(shown, bar, tested, reason), fixed=between.get(row.key, 0.0))


def _pooled_floor(run: Run, judged: Sequence[Candidate], settings: Settings, *, same_questions: bool) -> Candidate:
    """Return the gate row for all rows' mean against that of their floors. Refuse none, mixed directions or ranges.

    The floors are of the same questions or not."""
    bars = {c.row.key: c for c in judged if not c.row.reason and not c.beside}
    bars = {part.key: bars[part.key] for part in run.scores if part.key in bars}
    whole = _pooled(run, set(bars), settings)
    (row,) = analyze_run(whole, replace(settings, margin=None, cluster=None)).estimates
    judged_scores = [part for part in run.scores if part.key in bars]
    shares = dict(zip(bars, _shares(run, judged_scores, settings), strict=True))
    each = [(c.row.threshold or 0.0, c.slack) for c in bars.values()]
    threshold, slack = np.average(each, axis=0, weights=[*shares.values()]).tolist()
    own = dict.fromkeys((c.row.task for c in bars.values()), np.zeros(3))
    for c in bars.values():  # numbers of one task are of the same questions
        own[c.row.task] = own[c.row.task] + shares[c.row.key] * np.array(c.own)
    noise = np.sqrt(np.square(list(own.values())).sum(axis=0))
    both = distance_with_noise(
        replace(row, metric="mean", scorer="none"), noise, settings.level, same_questions=same_questions
    )
    below, above, se = noise.tolist()
    return replace(of_row(both, "A", threshold, slack), fixed=se**2, own=(below, above, se))


def _pooled(run: Run, usable: set[Key], settings: Settings, sizes: Mapping[Key, int] | None = None) -> Run:
    """Return the run as a group over usable scores, by default equal weights. Refuse none, mixed directions or ranges.

    Clusters are shared across tasks, and questions of a task across its metrics: where nothing else clusters them, a
    question is the cluster of its values by several metrics. `sizes` are as in `_shares`.
    """
    scores = [part for part in run.scores if part.key in usable]
    if not scores:
        raise InputError("`pooled` needs a row that can be judged")
    ranges = {settings.range or part.bounds for part in scores}
    if len(ranges) == 2 and score_range([Ends.of([part]) for part in scores], settings) is not None:
        ranges.discard(None)  # those that declare none have no score beyond it
    for what, found in (("direction", {part.higher_is_better is not False for part in scores}), ("range", ranges)):
        if len(found) > 1:
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
    weighted = [(part.task, w) for part, w in zip(parts, _shares(run, scores, settings, sizes), strict=True) if w > 0]
    tasks, weights = zip(*weighted, strict=True)
    group = Group(POOLED, metric, scorer, tasks, weights=weights)
    return replace(run, scores=(), parts=tuple(parts), groups=(group,), corpus=(), skipped=())


def _shares(
    run: Run, scores: Sequence[Scores], settings: Settings, sizes: Mapping[Key, int] | None = None
) -> tuple[float, ...]:
    """Return a tuple of each score's weight in the pooled mean, a group's tasks sharing one row's weight.

    `sizes` has the questions of each that count, None: those that have a score.
    """
    tops: list[tuple[Measure, Top]] = []
    for measure in dict.fromkeys((part.metric, part.scorer) for part in scores):
        tasks = [part.task for part in scores if (part.metric, part.scorer) == measure]
        groups = [group for group in run.groups if (group.metric, group.scorer) == measure]
        there = [(group, [task for task in group.tasks if task in tasks]) for group in groups]
        tops += [(measure, top) for top in top_level(tasks, [group.over(some) for group, some in there if some])]
    sizes = {part.key: int(is_scored(part).sum()) for part in scores} | dict(sizes or {})
    of_task = {measure: {key[0]: n for key, n in sizes.items() if key[1:] == measure} for measure, _ in tops}
    weights = dict.fromkeys(sizes, 0.0)
    counts = [sum(of_task[measure].get(task, 0) for task in top.tasks) for measure, top in tops]
    for (measure, top), share in zip(tops, top_shares([top.name for _, top in tops], counts, settings), strict=True):
        for task, weight in top.within(of_task[measure]).items():
            weights[task, *measure] += share * weight
    return tuple(weights.values())


def _floors_in(floors: Mapping[Key, Floor] | Floor) -> Sequence[Floor]:
    return [*floors.values()] if isinstance(floors, Mapping) else [floors]


def against_floors(
    run: Run, floors: Mapping[Key, Floor] | Floor, bar: Bar, settings: Settings
) -> tuple[list[Candidate], list[Note]]:
    """Return gate rows for a run's means against floors, also for one without the other. Refuse a bar outside a range.

    Args:
        run: the run.
        floors: one for every row, or by task, metric and scorer; "" matches any.
        bar: how much may be lost.
        settings: how to compute.
    """
    alone = replace(settings, margin=None, adjust="holm")
    alone.check("analyze")
    analysis = analyze_run(run, alone)
    rows, notes = list(analysis.estimates), list(analysis.notes)
    each = _floors_in(floors)
    if any(floor.answers is not None for floor in each):  # of the parts of a group the number says nothing
        keys = {part.key for part in run.scores}
        left = [row.task for row in rows if row.key not in keys]
        rows = [row for row in rows if row.key in keys]
        said = f"not judged, as a number on the same questions is of one task: {', '.join(left)}"
        notes += [Note("not_judged", said)] if left else []
        doubted = [row.task for row in rows for floor in each if floor.published.doubt(run, row)]
        notes += [Note("not_these_questions", NOT_THESE).of(task) for task in doubted]
    if isinstance(floors, Floor):
        return _with_beside(run, [of_floor(row, floors, bar, settings) for row in rows]), notes
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
    return out, notes


def of_floor(row: Estimate, floor: Floor, bar: Bar, settings: Settings, sizes: Sequence[int] = ()) -> Candidate:
    """Return the gate row for one mean against a floor, perhaps with noise of its own. Refuse a bar out of range.

    If the floor was measured, its limits are the difference's [Zou, eq. 3].

    Args:
        row: the mean.
        floor: what it must reach.
        bar: how much may be lost.
        settings: how to compute.
        sizes: of a group the questions of each of its tasks.
    """
    check_value(floor.published, row, "floor")
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
    number, own = floor.published, np.zeros(3)
    if (floor.n is None) != (floor.answers is None) and row.mean is not None:
        reason = reason or ("" if row.range else "the noise of a floor is known only of a metric with a range")
        own = number.noise(row, settings.level) if row.range else own
    both = number.beside(row, settings.level)
    slack = floor.value * sign - threshold * sign
    return replace(of_row(both, "A", threshold, slack, reason), fixed=float(own[2]) ** 2, own=(own[0], own[1], own[2]))


def decide(
    candidates: Sequence[Candidate],
    bar: Bar,
    settings: Mapping[str, Any],
    *,
    warnings: Iterable[Note] = (),
    notes: Iterable[Note] = (),
) -> Gate:
    """Return the gate's result over all deciding rows, or the pooled one: fail, or else cannot judge, or else pass.

    What cannot be judged is never a pass: it is an outcome of its own, unless it is left out by name.
    """
    candidates = [c.lost(NO_P) if math.isnan(c.p_values()[bar.p_index]) else c for c in candidates]
    if beyond := [c.row.name for c in candidates if c.beside]:
        said = (
            "for information alone, because its task declares another score as headline or the harness does not "
            f"report it: {', '.join(beyond)}"
        )
        notes = (*notes, Note("beside_headline", said))
    verdicts, alpha, adjust = _verdicts(candidates, bar, settings)
    candidates = [c.lost(c.open) for c in candidates]
    lost = [c.row for c in candidates if c.row.reason and not c.beside]
    rows = [row for c, row in zip(candidates, verdicts, strict=True) if not c.row.reason]
    rows += [] if bar.skip_missing else lost
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
        warnings=tuple(warnings),
        notes=tuple(dict.fromkeys(notes)),
    )


def _verdicts(
    candidates: Sequence[Candidate], bar: Bar, settings: Mapping[str, Any]
) -> tuple[list[GateRow], float, str]:
    """Return (rows with verdicts, significance level, adjustment), by one rule over all deciding rows.

    A loss that is shown in any row fails, so its p is adjusted. A loss must be excluded in every row, each by its own
    p.
    """
    judged = family(candidates)
    decides = [c in judged for c in candidates]
    adjust = "none" if settings.get("adjust") == "none" else "holm"
    level = judged[0].level if judged else float(settings.get("level", 0.95))
    alpha, m = (1 - level) / 2, max(1, len(judged) if adjust == "holm" else 1)
    of = bar.p_index
    p = np.array([c.p_values() for c in candidates]).reshape(-1, 2)
    shown, excluded = np.where(np.array(decides, dtype=np.bool_)[:, None], p, np.nan).T
    adjusted = zip(decision.adjusted(shown, adjust).tolist(), excluded.tolist(), strict=True)
    rows = []
    for c, counts, own, both in zip(candidates, decides, p[:, of].tolist(), adjusted, strict=True):
        row = c.row
        if not row.reason:
            row = replace(row, p_value=finite(own), limit=_limit(c, bar.rule), decides=counts)
        if counts:
            shown, excluded = (x < alpha for x in both)
            passed = (False if shown else True if excluded else None) if bar.rule == "no-loss" else not shown
            passed = None if math.isnan(both[of]) else passed
            reach = _power_fields(c, bar.rule, alpha if of else alpha / m)
            row = replace(row, p_adjusted=finite(both[of]), passed=passed, **({} if passed and of else reach))
            if own < alpha <= both[of]:
                row = replace(row, diagnostics=tuple(sorted({*row.diagnostics, LOST})))
        rows.append(row)
    return rows, alpha, adjust


def _limit(c: Candidate, rule: Rule) -> float | None:
    """Return the confidence limit that the rule compares with the threshold, on the row's scale, or None."""
    end = c.low if rule == "no-loss" else c.high
    if math.isnan(end) or c.row.threshold is None:
        return None
    return c.row.threshold + (-end if c.row.higher_is_better is False else end)


def _power_fields(c: Candidate, rule: Rule, alpha: float) -> dict[str, Any]:
    """Return {sees} for regression (loss seen with 80% power), {n_needed, never} for no-loss with a slack. {} else."""
    se, df = c.row.se, c.row.df
    if not se or df is None:
        return {}
    out: dict[str, Any] = {}
    check_computed("rule", rule, "regression", "no-loss")
    if rule == "regression":
        sees = float(noncentrality(2 * alpha, 0.8, df)) * se + c.slack
        out["sees"] = sees if sees <= c.width else None
    elif c.slack > 0:
        out["n_needed"] = _needed(c, alpha, se, df)
        out["never"] = out["n_needed"] is None
    return out


def _needed(c: Candidate, alpha: float, se: float, df: float) -> int | None:
    """Return the fewest questions that exclude the loss with 80% power if nothing is lost. None: no number does.

    Degrees of freedom grow with the questions, as in a plan, from two questions or clusters on.
    """
    n = c.row.n_questions
    units, variance = Units(freedom=(df + 1) / n), n * (se * se - c.fixed)

    def enough(questions: int) -> bool:
        reached = float(noncentrality(2 * alpha, 0.8, units.df(questions)))
        return reached * math.sqrt(c.fixed + variance / questions) <= c.slack * (1 + ROUNDING)

    allowed = (c.slack / float(noncentrality(2 * alpha, 0.8, math.inf))) ** 2 - c.fixed
    if allowed <= 0:
        return None
    fewest, more = max(math.ceil(2 / units.freedom - SLACK), math.ceil(variance / allowed), 2), 1
    while not enough(fewest + more):
        more *= 2
    return fewest + bisect_left(range(more), True, key=lambda i: enough(fewest + i))


def family(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Return the rows that decide: the pooled one if there is one, else all judged ones that count."""
    pooled = [c for c in candidates if c.pooled]
    return [c for c in pooled or candidates if not c.row.reason and not c.beside]


def self_test(rows: Sequence[Candidate], gate: Gate) -> SelfTest:
    """Simulate the gate from its rows' SEs: how often identical models do not pass, losses detected, questions needed.

    T = (z + δ)/s is drawn for each row at its own standard error and degrees of freedom, the rows independent, and the
    rule applied to each draw. The same draws serve every loss, so that the power grows with it. A loss that is not
    excluded when nothing is lost has no power of its own to speak of: then the questions count that would cure it.

    Args:
        rows: those that decide.
        gate: its rule, level and adjustment.
    """
    rows = [c for c in rows if c.row.se and c.row.df]
    if not rows:
        return SelfTest(None, ())
    se, df, slack, fixed, n = (
        np.array(x, dtype=np.float64)
        for x in zip(*((c.row.se, c.row.df, c.slack, c.fixed, c.row.n_questions) for c in rows), strict=True)
    )
    rng = np.random.default_rng(0)
    z = rng.standard_normal((_REPLICATES, len(se)))
    chi2 = rng.chisquare(df, z.shape)

    def stopped(loss: float, times: float = 1.0) -> float:
        """Return the share of simulated runs with this loss that do not pass, with `times` the questions."""
        here = np.sqrt(fixed + (se**2 - fixed) / times)
        t = (z + (slack - loss) / here) / np.sqrt(chi2 / df)
        p = special.stdtr(df, t if gate.rule == "regression" else -t)
        if gate.rule == "no-loss":  # every row at its own level
            return float((p.max(axis=1) >= gate.alpha).mean())
        return float((p.min(axis=1) * (len(se) if gate.adjust == "holm" else 1) < gate.alpha).mean())

    def turned(share: Callable[[float], float], high: float, power: float) -> float:
        """Return the argument at which a growing share reaches `power`, by bisection up to `high`."""
        low = 0.0
        for _ in range(40):
            middle = (low + high) / 2
            low, high = (middle, high) if share(middle) < power else (low, middle)
        return high

    alarm = stopped(0.0)
    farthest = float((slack + 10 * se).max())
    sees = tuple(Seen(turned(stopped, farthest, power), power) for power in (0.5, 0.8, 0.95) if alarm < power)
    if gate.rule == "regression" or alarm <= 1 - _CURED:
        return SelfTest(alarm, sees)
    most = math.log(_MOST_TIMES)

    def passes(grown: float) -> float:
        return 1 - stopped(0.0, math.exp(grown))

    if passes(most) < _CURED:
        return SelfTest(alarm, sees, never=True)
    times = math.exp(turned(passes, most, _CURED))
    return SelfTest(alarm, sees, n_needed=int(np.ceil(n * times).sum()))
