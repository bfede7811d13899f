"""Looks at a run that grows, which are kept in a small file next to it.

A replay takes the looks at two runs whose answers are all there.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from ...analysis.comparison import matched_scores
from ...analysis.drawing import recorded_stops
from ...analysis.ranges import score_range
from ...analysis.sample import Sample, align, group_parts, group_shares, is_scored, scored_pairs
from ...arrays import FloatArray, IntArray
from ...data.measures import UNBOUNDED
from ...data.notes import Note
from ...data.scores import Group, Run, Scores
from ...errors import InputError
from ...results.diagnostics import SCORED
from ...results.forms import finite
from ...results.parts import KEPT_BESIDE, Replay, Sequential
from ...results.rows import CANNOT, NOT_DECIDED, SCORED_DIFFERENTLY, Comparison, Unadjusted
from ...settings import Settings
from ...stats import decision
from ...stats.cluster_variance import OF_RESIDUALS
from ...stats.contrast import Design, question_stats
from ..boundaries import Looks, critical_values
from ..kept_looks import check_choices, content_of, head_of, write
from ..partial import Part, from_part, positions_look_random
from ..references.estimating import chances_within, same_run, stacked_regression, stratum_of
from ..subsets import benchmark_order, part_of
from .observed import Observed, observe_samples
from .rules import (
    ALL_ASKED,
    NONE_TAKEN,
    Look,
    Order,
    StoppingRule,
    Taken,
    whole_questions,
)
from .stopped import fingerprints

PINNED = ("se", "missing", "cluster", "repeats_are")
"""Settings that change the standard error of a look, which must be that of the looks before it."""


def looks_path(path: str | Path) -> Path:
    """Return the path of the file, next to a run, in which the interim looks at it are saved."""
    place = Path(path)
    return place.with_name(place.name + KEPT_BESIDE)


def observe(
    parts_a: Sequence[Scores],
    parts_b: Sequence[Scores],
    settings: Settings,
    group: Group | None = None,
    *,
    references: Sequence[Run] = (),
) -> Observed:
    """Return A − B at a look, with A's mean predicted for all of B's questions if possible. Refuse fixed or unpaired.

    While A has answered a part only, its mean is the regression estimate from B and the references; see `from_part`.

    Args:
        parts_a: scores of the run that grows, of one task or of the group's tasks in their order; NaN where it has not
            answered yet.
        parts_b: those of the run that it is compared with, over all its questions, with all its answers.
        settings: the variance estimator and what repeats are; its level and margin do not count here.
        group: how the tasks are weighted.
        references: runs that have answered all questions.

    Raises:
        InputError: `questions_are="fixed"` or `unpaired`, for which the order of the questions means nothing.
    """
    shares = group_shares(parts_a, group)
    both = align(parts_a, parts_b, shares)
    baseline, clusters = fingerprints(both)
    plain = replace(observe_samples(both.a, both.b, settings, group), baseline=baseline, clusters=clusters)
    parts_a = [chances_within(part_a, part_b) for part_a, part_b in zip(parts_a, parts_b, strict=True)]
    if plain.estimate is None or not plain.se:
        return plain
    unequal = any(part.chances is not None for part in parts_a)
    if settings.repeats_are == "runs" or settings.se != OF_RESIDUALS:
        if unequal:
            raise InputError(
                f"{plain.task}: its questions were drawn with different probabilities, which looks allow for with "
                "`se='cr2'` and `repeats_are='answers'` only"
            )
        return plain
    blocks = []
    for part_a, part_b in zip(parts_a, parts_b, strict=True):
        try:
            block = stratum_of(part_a, references, part_b, part_b if part_a.clusters is None else part_a)
        except InputError:  # questions that B lacks: only those that both have answered count
            if unequal:
                raise
            return plain
        assert block is not None
        blocks.append(block.of_known())
    return with_all_of_b(plain, *stacked_regression(blocks, shares, drawn=True))


def with_all_of_b(plain: Observed, y: FloatArray, part: Part, X: FloatArray, against: FloatArray | None) -> Observed:
    """Return the look with A's mean predicted for all of B's questions by regression, else unchanged or no estimate.

    `residual` is that of a regression of single answers, as `information` reads it: what averaging over A's answers
    has taken away already, no regression takes away again.
    """
    if against is None:
        return plain
    plain = replace(plain, population=len(X), in_population=len(part.asked))
    if len(part.asked) >= len(X):
        return plain
    fit = from_part(y, part, X, against)
    if fit is None or (fit.gain is None and part.chances is None):
        return plain if part.chances is None else replace(plain, estimate=None, se=None)
    gain, averaged, residual = fit.gain, plain.prediction * (1 - plain.repeats), None
    if gain is not None:
        if part.chances is not None:  # over an equal drawing, of which `information` counts
            gain = (fit.population_variance / fit.variance - 1) * (len(X) / len(part.asked) - 1)
        residual = averaged + (1 - averaged) / gain
    return replace(
        plain,
        estimate=fit.estimate,
        plain=plain.estimate,
        se=math.sqrt(fit.population_variance),
        df=fit.population_df,
        far=None,
        residual=residual,
    )


def look(
    run_a: Run, run_b: Run, settings: Settings, looks: Looks, memory: Path, references: Sequence[Run] = ()
) -> tuple[Sequential, ...]:
    """Take the next look at growing A against B, saved in `memory`: may A stop? Refuse no shared mean, other memory.

    A look at as many answers as the last one is that look again. What was decided once stays so; that it cannot be
    decided is no decision, and a run that goes on may still decide it.

    Args:
        run_a: answered a part of B's questions in a random order, and will answer more.
        run_b: has answered all of them.
        settings: its level and margin, and how variances are computed.
        looks: how many are planned, or "anytime"; the error is spent by how many questions were answered.
        memory: what this function has written before; need not be there.
        references: runs that have answered all questions, which say more of A's mean.

    Raises:
        InputError: the file is of other runs or other choices, the run has shrunk, or its questions are the first ones
            of the benchmark.
    """
    rule = StoppingRule(looks=looks, level=settings.level, margin=settings.margin or 0.0)
    others = [run for run in references if not (same_run(run, run_a) or same_run(run, run_b))]
    chosen = settings.to_dict()
    head = head_of(
        "looks", run=run_a.model, against=run_b.model, looks=looks, level=rule.level, margin=rule.margin,
        references=sorted(run.model for run in others), **{name: chosen[name] for name in PINNED},
    )  # fmt: skip
    stored = _read_looks(memory, head)
    out, kept = [], []
    for parts_a, parts_b, group in comparisons(run_a, run_b):
        name = group.name if group is not None else parts_a[0].task
        key = (name, parts_a[0].metric, parts_a[0].scorer)
        taken, before = stored.get(key, (NONE_TAKEN, None))
        n, total = _count_answered(parts_a, parts_b, before)
        if before is not None and before.decision not in (NOT_DECIDED, CANNOT, ALL_ASKED):
            row = before
        else:
            seen = observe(parts_a, parts_b, settings, group, references=others)
            taken, row = _next_look(rule, taken, before, n, total, seen)
        out.append(row)
        kept.append({"key": key, "taken": asdict(taken), "found": row.to_dict()})
    if not out:
        raise InputError(f"{run_a.name} and {run_b.name} have no mean of question scores in common: nothing to look at")
    write(memory, head | {"tasks": kept})
    return tuple(out)


def _next_look(
    rule: StoppingRule, taken: Taken, before: Sequential | None, n: int, total: int, observed: Observed
) -> tuple[Taken, Sequential]:
    """Return the looks so far and the newest (`before` if A has no new answers). Refuse answers after the last look."""
    progress = whole_questions(n, total, observed)
    if before is not None and before.n_asked == n and before.n_answers in (None, progress.answers):
        return taken, before
    if before is not None and before.decision == ALL_ASKED:
        raise InputError(
            f"{before.task}, {before.metric}: the last look, at {before.n_answers:,} answers to all {total:,} "
            "questions, spent all of the error, and more answers came after it: ask all answers to a question before "
            "the next question, or compare without looks"
        )
    latest = Look(rule, observed, progress, taken, number=1 if before is None else before.look + 1, looks=rule.looks)
    return latest.taken, latest.sequential


_NONE_OF_PLAIN: dict[str, Any] = dict.fromkeys(("se", "df", "statistic", "mde"))
"""Figures of the plain difference, which one that is corrected for looks does not have."""


def judged_by_looks(result: Comparison, sequential: Sequence[Sequential], settings: Settings) -> Comparison:
    """Return the comparison with every row corrected for the interim looks. Rows without looks are left out, noted.

    The plain interval and p hold for a run without earlier looks; whatever reads a row (headline, verdict,
    sentence) must not take them for the answer. Rows without looks, metrics that are no mean of question scores,
    are left out with a note.
    """
    by_what = {look.key: look for look in sequential}
    keys = [row.key for row in result.comparisons]
    kept = [i for i, key in enumerate(keys) if key in by_what]
    looks = [by_what[keys[i]] for i in kept]
    families = tuple(result.families[i] for i in kept) if result.families else ()
    p = decision.adjusted(
        [np.nan if look.p_value is None else look.p_value for look in looks], settings.adjust, families or None
    )
    rows = []
    for i, look, adjusted in zip(kept, looks, p, strict=True):
        better = look.decision in decision.WORDS[1:]
        back = better and adjusted >= 1 - settings.level and look.p_value is not None and adjusted > look.p_value
        codes = set(result.comparisons[i].diagnostics) - {"few_flips", "not_after_adjustment"}
        withheld = SCORED_DIFFERENTLY if SCORED in codes else ""
        plain = result.comparisons[i]
        rows.append(
            replace(
                plain,
                unadjusted=Unadjusted(**{x.name: getattr(plain, x.name) for x in fields(Unadjusted)}),
                diff=look.estimate,
                **_NONE_OF_PLAIN,
                ci_low=look.ci_low,
                ci_high=look.ci_high,
                p_value=look.p_value,
                p_adjusted=finite(float(adjusted)),
                test="sequential",
                interval="none" if look.ci_low is None else "sequential",
                verdict=withheld or (decision.WORDS[0] if back else look.decision),
                diagnostics=tuple(sorted(codes | {"not_after_adjustment"} if back else codes)),
            )
        )
    lost = [" ".join(key[:2]) for i, key in enumerate(keys) if i not in kept]
    said = f"left out: {', '.join(lost)}: looks are taken at means of question scores only"
    notes = [Note("no_looks", said)] if lost else []
    notes += [
        Note(
            "decided_earlier",
            f"{look.task} {look.metric}: decided at look {look.look}, after {look.n_asked:,} questions; estimate, "
            "interval and p are those of that look",
            look.task,
        )
        for i, look in zip(kept, looks, strict=True)
        if look.n_asked < result.comparisons[i].n_questions
    ]
    apart = {row.key for row in rows if SCORED in row.diagnostics}
    scales = {row.key: row._zero_one for row in rows}
    shown = [replace(look, _zero_one=scales.get(look.key)) for look in sequential]
    shown = [replace(look, decision=SCORED_DIFFERENTLY) if look.key in apart else look for look in shown]
    return replace(
        result, comparisons=tuple(rows), families=families, sequential=tuple(shown), notes=(*result.notes, *notes)
    )


def comparisons(run_a: Run, run_b: Run) -> list[tuple[list[Scores], list[Scores], Group | None]]:
    """Return (A's scores, B's scores, group or None) for each task and group that both runs measured."""
    matched, _ = matched_scores(run_a, run_b, alone=not run_a.groups)
    out: list[tuple[list[Scores], list[Scores], Group | None]] = [([a], [b], None) for a, b in matched]
    for group in run_a.groups:
        sides = group_parts(run_a, group), group_parts(run_b, group)
        if sides[0] and sides[1]:
            out.append((sides[0], sides[1], group))
    return out


def _count_answered(parts_a: Sequence[Scores], parts_b: Sequence[Scores], before: Sequential | None) -> tuple[int, int]:
    """Return (number of B's questions that A answered, all that B answered). Refuse fewer than at the last look.

    Fewer of A than at the last look are refused.
    """
    n = sum(_answered(part_a, part_b) for part_a, part_b in zip(parts_a, parts_b, strict=True))
    if before is not None and n < before.n_asked:
        raise InputError(
            f"{parts_a[0].task}, {parts_a[0].metric}: {n} questions are answered, and {before.n_asked} were "
            "at the last look: a run that grows loses none. Is it another run? Then delete the file of its looks"
        )
    return n, sum(int(is_scored(part).sum()) for part in parts_b)


def _answered(part_a: Scores, part_b: Scores) -> int:
    """Return the number of B's questions that A has answered. Refuse if they lie together in benchmark order.

    The first questions of the benchmark are refused as no random part.
    """
    both = scored_pairs(part_a, part_b).rows_b
    order = benchmark_order(part_b.questions)
    place = {int(i): at for at, i in enumerate(order)}
    clusters = None if part_b.clusters is None else [part_b.clusters[i] for i in order]
    part = part_of(np.array([place[j] for j in both], dtype=np.intp), len(order), clusters, None)
    if 2 <= len(both) < len(order) and not positions_look_random(part):
        raise InputError(
            f"{part_a.task}, {part_a.metric}: the {len(both)} of {len(order)} questions that are answered lie together "
            "in the order of the benchmark, so they say nothing of the others: run it in a random order (Inspect: "
            "--sample-shuffle SEED)"
        )
    return len(both)


def _read_looks(memory: Path, head: dict[str, Any]) -> dict[tuple[str, ...], tuple[Taken, Sequential | None]]:
    """Read looks of a file: {(task, metric, scorer): (looks, last look)}, {} without. Refuse broken or other ones."""
    if not memory.exists():
        return {}
    with content_of(memory, "the looks at a run") as content:
        tasks: dict[tuple[str, ...], tuple[Taken, Sequential | None]] = {
            _key(task["key"]): (_checked_fractions(**task["taken"]), _sequential_of(task["found"]))
            for task in content["tasks"]
        }
    check_choices(memory, content, head, "file")
    return tasks


def _key(names: Any) -> tuple[str, ...]:
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise TypeError
    return tuple(names)


def _sequential_of(values: Any) -> Sequential:
    """Check the JSON values of a saved look, and return it. ValueError if a type is wrong.

    Raises:
        ValueError: a value of another kind.
    """
    (found,) = recorded_stops([values])
    return Sequential(**found)


def _checked_fractions(info: list[float], fractions: list[float], residual: float | None) -> Taken:
    """Return saved information and fractions of earlier looks, checked to rise. Raise ValueError if they do not.

    Raises:
        ValueError, TypeError: no numbers that rise.
    """
    critical_values([1e-9, *fractions], 0.05, info=[1e-9, *info])
    if residual is not None and not residual > 0:
        raise ValueError(residual)
    return Taken(tuple(info), tuple(fractions), residual)


ORDERS = 200
"""Random orders of a replay."""


@dataclass(frozen=True, slots=True, eq=False)
class Pair:
    """Two runs whose answers are all there, on the questions that both have, to be looked at in any order."""

    a: Sample
    """Its answers that are there come first."""
    b: Sample
    plan: Design
    settings: Settings
    references: FloatArray
    """(n, R) question means of other runs."""

    @classmethod
    def of(
        cls,
        parts_a: Sequence[Scores],
        parts_b: Sequence[Scores],
        shares: list[float] | None = None,
        settings: Settings | None = None,
    ) -> Pair:
        """Match two runs' scores by question, to replay looks on. Stack groups. Refuse crossed clusters, < 2 questions.

        Raises:
            InputError: no question in common, or questions that are clustered in two crossed ways.
        """
        settings = settings or Settings()
        pairing = align(parts_a, parts_b, shares)
        a, b = pairing.a, pairing.b
        if a.empty or len(a) < 2:
            raise InputError(f"{a.name}: fewer than two questions have a score in both runs")
        plan = a.design()
        if plan.crossed is not None or plan.between_tasks:
            raise InputError(
                f"{a.name}: whole clusters of one kind are asked together, and these questions are clustered in two "
                "crossed ways, or by task: name one way with `cluster`"
            )
        there = np.take_along_axis(a.values, np.argsort(np.isnan(a.values), axis=1, kind="stable"), axis=1)
        bounds = score_range((a.ends, b.ends), settings) or UNBOUNDED
        a, b = replace(a, values=there, bounds=bounds), replace(b, bounds=bounds)
        return cls(a, b, plan, settings, np.empty((len(a), 0)))

    def order(self, rule: StoppingRule) -> Order:
        """Return the random order in which the rule would ask for A's answers."""
        clusters = self.plan.clusters if self.plan.clustered else None
        tasks = self.plan.strata if self.plan.strata.any() else None
        return rule.order(len(self.a), clusters, tasks, repeats=self.a.stats.count)

    def observed(self, answers: IntArray) -> Observed:
        """Return the estimate of A − B if A had given only its first `answers[i]` answers to question i."""
        rows = np.flatnonzero(answers)
        a, b = self.a.take(rows), self.b.take(rows)
        values = np.where(np.arange(a.values.shape[1]) < answers[rows, None], a.values, np.nan)
        a = replace(a, values=values, stats=question_stats(values))
        plain = observe_samples(a, b, self.settings)
        if plain.estimate is None or not plain.se or self.settings.se != OF_RESIDUALS:
            return plain
        part = Part(rows, self.plan.clusters, self.plan.strata, self.a.shares, drawn=True)
        return with_all_of_b(plain, a.stats.mean, part, self.references, self.b.stats.mean)

    def run(self, rule: StoppingRule) -> Look:
        """Replay interim looks on complete data until the rule stops, and return the last look."""
        order, look = self.order(rule), None
        for number in range(1, len(order.ends) + 1):
            look = rule.look(order, look, self.observed(order.answers(number)))
            if look.stop:
                break
        assert look is not None
        return look

    def replay(self, rule: StoppingRule, orders: int = ORDERS) -> Replay:
        """Replay interim looks in many random orders. Return how often each decision came and the answers needed."""
        last = [self.run(replace(rule, seed=rule.seed + k)) for k in range(orders)]
        words = Counter(look.decision or NOT_DECIDED for look in last)
        answers = np.array([look.progress.answers for look in last], dtype=np.float64)
        low, middle, high = (round(x) for x in np.quantile(answers, (0.1, 0.5, 0.9), method="inverted_cdf"))
        return Replay(
            orders=orders,
            n_total=last[0].progress.answers_total,
            n_mean=float(answers.mean()),
            n_median=middle,
            n_low=low,
            n_high=high,
            decisions={w: k / orders for w, k in words.most_common()},
        )
