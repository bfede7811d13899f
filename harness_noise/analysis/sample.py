"""From Scores to the kernel: one run's questions, over one task or the tasks of a group."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import compress, repeat
from operator import is_, ne
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..arrays import BoolArray, FloatArray, IntArray, NamesLike, picked, rows_of
from ..choices import TESTS
from ..data.across import clusters_across
from ..data.clusters import CROSS, spec_in_words, split_crossed
from ..data.corrected import Correction, stack_corrections
from ..data.doubled import DOUBLED
from ..data.matching import Pairing, pair_questions, same_partition
from ..data.native_values import MISMATCH, fitting_bounds, is_reproduced, native_mean, reproduces
from ..data.notes import Note
from ..data.numbers import number_array
from ..data.questions import Questions, QuestionText, by_name
from ..data.scores import Group, Run, Scores
from ..errors import InputError, of_choice, parameter
from ..settings import Settings
from ..stats.baselines import FEW_RUNS, RunSpread, run_spread, with_new_run
from ..stats.cluster_variance import clustered_variance
from ..stats.contrast import Contrast, Design, QuestionStats, cluster_codes, design, question_stats, with_crossed
from ..stats.data_limit import Terms, terms
from ..stats.intervals import critical, in_range
from ..stats.moments import (
    Moments,
    RunComponent,
    contrast_moments,
    mean_variance,
    ratio_skewness,
    run_component,
    undefined_moments,
    with_runs,
    without_run_means,
)
from ..stats.pairs import UNSCORED, variance_flags
from ..stats.stopped import stopped_at
from ..stats.tolerances import FEWEST_STUDENTISED
from .ranges import Ends, hull, name_of

SHARED_NOISE_P = 0.05
"""Below this p of the F test, repeats that should be independent are said not to be: one sound run in twenty, and of
those whose interval covers 71 to 86% for it 40 to 73% with three repeats, 66 to 95% with five (.001: 10 to 47 and 34
to 84%)."""
WIDER_OUTSIDE = 1.1
"""Standard error by outer clusters over that by inner clusters, from which the latter are called inner.

Intervals that cover 74 to 90% in simulation then cover or have the code in 95 to 100% (6 to 50 outer clusters).
"""
FIRST_ANSWER_P = 0.005
"""Below this p the first answers are said to be others than the rest: one contrast, named in advance."""


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """One run's question statistics, over one task or the tasks of a group, ready for the kernel."""

    parts: tuple[Scores, ...]
    """The scores it was made of. They may have questions that were left out since."""
    stats: QuestionStats
    values: FloatArray
    """(n, K), padded with NaN where tasks differ in K."""
    clusters: tuple[str, ...] | None
    cluster_spec: str | None
    """Source of the clusters, None without clusters."""
    strata: IntArray
    shares: FloatArray | None
    """Weights of the tasks, None for weights by size."""
    bounds: tuple[float, float] | None
    """Lowest and highest value of the metric, where every task declares them."""
    per: FloatArray | None
    """(n, K) denominators of a ratio that `linearised` has not made a mean of yet."""
    corrected: Correction | None
    """See `Scores`."""
    keys: tuple[tuple[str, Sequence[str]], ...]
    """Task and names of the questions of each part that it was stacked of."""
    rows: IntArray
    """(n,) which of these each question is."""
    ratio: bool = False
    """True if its values are those of a ratio, which mean nothing for a single question."""
    tail: float = 0.0
    """The share of a ratio's skewness that its denominator adds."""
    undefined: bool = False
    """True if it is a ratio whose denominator may be 0."""

    def __len__(self) -> int:
        return len(self.stats)

    @property
    def name(self) -> str:
        """Text of the task and the metric that the sample is of, for messages."""
        return name_of(self.parts)

    @property
    def runs_of_one(self) -> float:
        """0.0 if the columns are plain repeats. Above 0: column j is run j of one configuration (factor on scores)."""
        return max(part.runs_of_one for part in self.parts)

    @property
    def repeats_are_runs(self) -> bool:
        """True if the adapter says that repeats share a cause (a run, a seed), whatever the F test shows."""
        return any(part.repeats_are_runs for part in self.parts)

    @property
    def between_tasks(self) -> bool:
        """True if the tasks themselves are the clusters."""
        return len(self.parts) > 1 and all(part.cluster_spec == "task" for part in self.parts)

    @property
    def n_answers(self) -> IntArray:
        """(n,) number of scored answers to each question. If a judge is corrected, the judge's."""
        return self.stats.count if self.corrected is None else self.corrected.n_answers

    @property
    def ends(self) -> Ends:
        """Lowest and highest value of the sample, from which the metric's range is guessed."""
        return Ends.seen(self.parts, [self.values], self.bounds)

    def take(self, index: IntArray) -> Sample:
        return replace(
            self,
            stats=self.stats.take(index),
            values=self.values[index],
            per=picked(self.per, index),
            clusters=picked(self.clusters, index),
            strata=self.strata[index],
            corrected=None if self.corrected is None else rows_of(self.corrected, index),
            rows=self.rows[index],
        )

    def by_key(self) -> IntArray:
        """Return (n,) row numbers in the order of task and question names, so that draws do not depend on files.

        What is drawn must not depend on the order in which a file lists its questions.
        """
        names = [(by_name(task), by_name(key)) for task, keys in self.keys for key in keys]
        rows = self.rows.tolist()
        return np.array(sorted(range(len(rows)), key=lambda i: names[rows[i]]), dtype=np.intp)

    @property
    def empty(self) -> bool:
        """True if no mean can be estimated: no questions, a weighted task without any, or a ratio undefined."""
        if len(self) == 0 or self.shares is None or self.undefined:
            return len(self) == 0 or self.undefined
        return bool((np.bincount(self.strata, minlength=len(self.shares)) == 0).any())

    def check_test(self, settings: Settings) -> None:
        """Refuse the test that the settings choose if it does not fit these scores.

        Raises:
            InputError: as the test says.
        """
        if why := TESTS[settings.test].refusal(self):
            raise InputError(why)

    def check_studentised(self, design: Design) -> None:
        """Refuse a bootstrap-t interval if there are too few clusters (or questions) for it.

        Raises:
            InputError: says how many it needs.
        """
        if design.n_clusters < FEWEST_STUDENTISED:
            units = "clusters" if design.clustered else "questions"
            raise InputError(
                f"{self.name}: `interval='bootstrap-t'` needs {FEWEST_STUDENTISED} {units} or more, and there are "
                f"{design.n_clusters}: leave it out, which gives the interval of Student's t"
            )

    def design(self) -> Design:
        ways = split_crossed(self.clusters)
        if ways is not None:
            return with_crossed(self._design_of(None), *ways)
        design = self._design_of(self.clusters)
        if not self.between_tasks:
            return design
        codes, n_tasks = cluster_codes(self.strata)
        return replace(design, clusters=codes, n_clusters=n_tasks, clustered=True, between_tasks=True)

    def _design_of(self, clusters: Sequence[str] | None) -> Design:
        """Return the design (clusters, tasks, weights) of the questions with these clusters.

        Weights that leave a task without a question are those by size.
        """
        if self.empty:
            return replace(design(len(self), clusters, self.strata), shares=self.shares)
        return design(len(self), clusters, self.strata, self.shares)


def sample(parts: Sequence[Scores], shares: Sequence[float] | None = None) -> Sample:
    """Return the scored questions of a task, or of a group's tasks, as one table. A ratio of sums is made a mean."""
    whole = stack(parts, shares)
    return linearised(whole if whole.stats.count.all() else whole.take(np.flatnonzero(whole.stats.count)))


RATIO_UNDEFINED = "ratio_undefined"


def linearised(data: Sample) -> Sample:
    """Return a ratio's sample with values R + (x − R·y)/ȳ [Cochran1977], undefined if ȳ may be 0. Others unchanged.

    Sums are weighted as the questions are. It is undefined where the 95% t interval of ȳ contains 0.
    """
    if data.per is None or data.empty:
        return data
    design, under = data.design(), question_stats(data.per).mean
    x, y = float(design.weights @ data.stats.mean), float(design.weights @ under)
    m = mean_variance(under, design, "cr2")
    half = np.nan_to_num(critical(0.95, m.df) * np.sqrt(m.variance)).item()  # without one the ratio has none either
    if abs(y) <= half:
        return replace(data, per=None, ratio=True, undefined=True)
    values = x / y + (data.values - x / y * data.per) / y
    flags = data.stats.identical, data.stats.answers_differ
    stats = replace(question_stats(values), identical=flags[0], answers_differ=flags[1])
    tail = ratio_skewness(stats.mean, under, design)
    return replace(data, values=values, stats=stats, per=None, ratio=True, tail=tail)


def stack(parts: Sequence[Scores], shares: Sequence[float] | None = None) -> Sample:
    """Stack all questions of a task, or of a group's tasks, into one table, scored or not. Refuse infinite scores.

    Clusters with one name are one cluster across tasks.
    """
    values = stack_rows([part.values for part in parts])
    try:
        stats = question_stats(values)
    except InputError as error:
        raise InputError(f"{name_of(parts)}: {error}") from None
    identical = any("identical_repeats" in part.diagnostics for part in parts)
    clusters, spec = clusters_across(parts)
    per = [part.per for part in parts if part.per is not None]
    return Sample(
        parts=tuple(parts),
        stats=replace(stats, identical=identical, answers_differ=any(part.answers_differ for part in parts)),
        values=values,
        clusters=clusters,
        cluster_spec=spec,
        strata=np.repeat(np.arange(len(parts)), [len(part.questions) for part in parts]),
        shares=None if shares is None else np.asarray(shares, dtype=np.float64),
        bounds=hull([part.bounds for part in parts]),
        per=stack_rows(per) if len(per) == len(parts) else None,
        corrected=stack_corrections([part.corrected for part in parts]),
        keys=tuple((part.task, part.questions.keys) for part in parts),
        rows=np.arange(len(values)),
    )


def is_scored(part: Scores) -> BoolArray:
    """Return (n,) True for questions with at least one score that is not missing."""
    first = ~np.isnan(part.values[:, :1].ravel())  # most often there is no missing answer to look past
    whole = first.all() and len(first) == len(part.values)  # unless there is no answer at all
    return np.asarray(first if whole else ~np.isnan(part.values).all(axis=1))


def scored_pairs(part_a: Scores, part_b: Scores) -> Pairing:
    """Return the row numbers in A and in B of the questions that both runs have scored."""
    return _scored_pairs(part_a, part_b, is_scored(part_a), is_scored(part_b))


def _scored_pairs(part_a: Scores, part_b: Scores, scored_a: BoolArray, scored_b: BoolArray) -> Pairing:
    pairing = pair_questions(part_a.questions, part_b.questions)
    if scored_a.all() and scored_b.all():
        return pairing
    both = scored_a[pairing.rows_a] & scored_b[pairing.rows_b]
    return replace(pairing, rows_a=list(compress(pairing.rows_a, both)), rows_b=list(compress(pairing.rows_b, both)))


def texts_of(part: Scores, rows: Sequence[int], notes: list[Note], otherwise: str) -> Sequence[QuestionText]:
    """Read the texts of the questions in these rows from the log. If unreadable: empty texts, and one in `notes`."""
    if part.questions.log is not None and rows:
        try:
            return part.questions.log.read(rows, part.scorer)
        except InputError as error:
            notes.append(Note("texts_not_shown", f"{otherwise}: {error}"))
    return [QuestionText()] * len(rows)


def scores_of_rows(part: Scores, rows: Sequence[int] | IntArray) -> Scores:
    """Return the scores of the questions in these rows. The harness's own mean is dropped."""
    out = part.take(rows)
    codes = (code for code in out.diagnostics if code != DOUBLED or out.questions.doubles)
    return replace(out, native=None, diagnostics=tuple(codes))


@dataclass(frozen=True, slots=True, eq=False)
class Aligned:
    """Two samples on the same questions, in the same order, and what was left out."""

    a: Sample
    b: Sample
    only_a: int
    only_b: int
    different_prompts: bool
    notes: tuple[Note, ...]


def align(parts_a: Sequence[Scores], parts_b: Sequence[Scores], shares: list[float] | None) -> Aligned:
    """Return samples of A and B on questions both scored, in one order, with A's clusters (else B's), counts, notes."""
    kept_a, kept_b, notes = [], [], []
    only_a = only_b = 0
    prompts = False
    for part_a, part_b in zip(parts_a, parts_b, strict=True):
        scored = is_scored(part_a), is_scored(part_b)
        pairing = _scored_pairs(part_a, part_b, *scored)
        rows_a, rows_b = pairing.rows_a, pairing.rows_b
        only_a += int(np.count_nonzero(scored[0])) - len(rows_a)
        only_b += int(np.count_nonzero(scored[1])) - len(rows_b)
        if pairing.note is not None:
            notes.append(pairing.note.of(part_a.task))
        if part_a.questions.prompts is not None and part_b.questions.prompts is not None:
            pa, pb = part_a.questions.prompts, part_b.questions.prompts
            prompts |= any(pa[i] != pb[j] for i, j in zip(rows_a, rows_b, strict=True))
        mine = _take_rows(part_a, rows_a)
        theirs = _take_rows(part_b, rows_b, mine.questions)
        if mine.clusters and theirs.clusters and not same_partition(mine.clusters, theirs.clusters):
            said = "the two runs cluster the questions differently. The clusters of A are used"
            notes.append(Note("clusters_differ", said).of(part_a.task))
        # of the same questions B's clusters are A's, where A has none
        if mine.clusters is None:
            mine = replace(mine, clusters=theirs.clusters, cluster_spec=theirs.cluster_spec, outer=theirs.outer)
        kept_a.append(mine)
        kept_b.append(replace(theirs, clusters=mine.clusters, cluster_spec=mine.cluster_spec))
    a, b = sample(kept_a, shares), sample(kept_b, shares)
    return Aligned(a, b, only_a, only_b, prompts, tuple(notes))


def _take_rows(part: Scores, rows: Sequence[int], questions: Questions | None = None) -> Scores:
    """Return the scores of the questions in these rows. The same object if that is all rows, in order."""
    if len(rows) < len(part.questions) or list(rows) != list(range(len(rows))):
        return part.take(rows, questions)
    return part if questions is None or questions is part.questions else replace(part, questions=questions)


def in_order_of(questions: Questions, part: Scores) -> FloatArray:
    """Return (n, K) scores of `part` rearranged to the order of `questions`, NaN for those it lacks."""
    same = pair_questions(questions, part.questions)
    out = np.full((len(questions), part.values.shape[1]), np.nan)
    out[same.rows_a] = part.values[same.rows_b]
    return out


def stack_rows(blocks: Sequence[FloatArray]) -> FloatArray:
    """Stack (n, K) score tables one below the other, padded with NaN to the largest K."""
    if len(blocks) == 1:
        return blocks[0]
    K = max(block.shape[1] for block in blocks)
    return np.concatenate([np.pad(x, ((0, 0), (0, K - x.shape[1])), constant_values=np.nan) for x in blocks])


def members_of(run: Run, group: Group, tasks: Iterable[str]) -> list[Scores]:
    """Return a run's scores of these tasks under the group's metric and scorer. Absent tasks are left out."""
    wanted = (group.metric, group.scorer)
    by_task = {part.task: part for part in (*run.parts, *run.scores) if (part.metric, part.scorer) == wanted}
    return [by_task[task] for task in tasks if task in by_task]


def group_parts(run: Run, group: Group) -> list[Scores] | None:
    """Return the scores of all of a group's tasks. None if the run lacks one of them."""
    parts = members_of(run, group, group.tasks)
    return parts if parts and len(parts) == len(group.tasks) else None


def own_group(run: Run, group: Group) -> Group:
    """Return the group with the group value that this run's harness reported, None if it reported none."""
    return replace(group, native=next((own.native for own in run.groups if own.key == group.key), None))


def codes_of(parts: Sequence[Scores], group: Group | None = None) -> set[str]:
    """Return the set of the scores' diagnostics, with `mean_mismatch` if the harness's own mean is not reproduced.

    Args:
        parts: of one task, or of the tasks of a group.
        group: with this run's own value; None for one task.
    """
    codes = {code for part in parts for code in part.diagnostics}
    wrong = not all(map(is_reproduced, parts))
    means = [None] if group is None or group.native is None else [native_mean(part) for part in parts]
    if group is not None and group.native is not None and None not in means:
        sizes = [int(is_scored(part).sum()) for part in parts]
        ours = np.average(np.array(means, dtype=np.float64), weights=group_shares(parts, group) or sizes)
        wrong |= not reproduces(float(ours), group.native)
    return codes | {MISMATCH} if wrong else codes


def shares_if_whole(parts: Sequence[Scores], group: Group | None) -> list[float] | None:
    """Return the weights of `group_shares` if no answer was missing. []: it is not known which tasks would count."""
    if group is not None and group.if_whole == ():
        return []
    return group_shares(parts, None if group is None else group.whole())


def group_shares(parts: Sequence[Scores], group: Group | None) -> list[float] | None:
    """Return the fixed weights of a group's tasks, summing to 1. None: by size. Refuse too few, and any not above 0."""
    if group is None:
        return None
    if group.weights is not None:
        total = sum(group.weights)
        if len(group.weights) != len(parts) or min(group.weights) <= 0:
            raise InputError(
                f"{group.name}: {len(group.weights)} weights for {len(parts)} tasks, or one that is not above 0"
            )
        return [weight / total for weight in group.weights]
    return of_choice("weighting", group.weighting, {"size": None, "equal": [1 / len(parts)] * len(parts)})


@dataclass(frozen=True, slots=True, eq=False)
class Estimated:
    """The kernel's results for one contrast of samples."""

    c: Contrast
    design: Design
    m: Moments
    """(1,)"""
    of_questions: Moments
    """(1,) moments without the variance between runs, `m` itself if it has none."""
    codes: frozenset[str]
    """Diagnostics of the variance and of the repeats."""
    correction: Mapping[str, Any]
    """Fields of a row on the correction of the scores, none without one."""
    limit: Terms | None
    """The terms of the data noise's upper limit, with the variance before any correction, None if unknown."""
    spread: RunSpread | None = None
    """The variance between runs of one configuration, of which the first sample is one more, None without."""
    alone: Sequence[Moments] = ()
    """Each run's own mean and variance, if the kernel of it by itself has no more than these."""

    def terms(self, settings: Settings) -> Terms:
        """Return the `Terms` for an upper confidence limit of the data noise."""
        m = self.of_questions
        if self.limit is None:
            return terms(self.c, self.design, m.variance, m.df, settings.se)
        return replace(self.limit, variance=m.variance, df=m.df)


def kernel(
    runs: Sequence[Sample], coefficients: Sequence[float], design: Design, settings: Settings, *, first: bool = False
) -> Estimated:
    """Compute Σ coefficient × mean with variances and diagnostics. Refuse fixed questions with one answer each.

    Where the last of several samples has runs of one configuration, the others are one more run of it.

    Args:
        runs: the samples.
        coefficients: of each.
        design: the design of their questions.
        settings: what is computed.
        first: whether the harness's own value stands on the first answers, which are then held against the others.
    """
    if design.crossed is not None:
        settings.check("crossed", runs[0].name)
    fixed = fixed_questions(settings)
    of_runs = of_choice("repeats_are", settings.repeats_are, {"answers": False, "runs": True})
    components = [run_component(run.values, design.weights, design.strata) for run in runs]
    both = zip(runs, components, strict=True)
    stats = [_within_runs(*of_run, design) for of_run in both] if of_runs else [run.stats for run in runs]
    own = not fixed and not of_runs and len(runs) > 1 and all(run.corrected is None for run in runs)
    c, m, flags, limit, each = contrast_moments(stats, coefficients, design, settings.se, fixed=fixed, alone=own)
    of_questions = m
    if fixed and flags["single_repeat"].any():
        raise InputError(
            f"{runs[0].name}: `questions_are='fixed'` asks how much the answers to these questions vary, which one "
            "answer per question cannot say: run it with K > 1 repeats, join several runs with `as_repeats`, or "
            "leave this metric out with `metrics`"
        )
    corrected = correction_of(runs, coefficients)
    new = components[-1] if len(runs) > 1 and runs[-1].runs_of_one else None
    spread: RunSpread | None = None
    if corrected is not None:
        m = corrected.moments(m, design)
        if len(runs) == 1 and runs[0].bounds is not None:
            m = replace(m, mean=in_range(m.mean, runs[0].bounds))
        of_questions = m
    elif of_runs:
        m = with_runs(m, [component for component in components if component is not None], coefficients)
    if new is not None:
        spread = run_spread(runs[-1].values, new, design, settings.se, runs[-1].runs_of_one)
        m = with_new_run(m, spread, settings.level)
        flags |= {"few_runs": np.array([spread.runs <= FEW_RUNS])}
    # few runs do not mean few clusters
    flags |= variance_flags(m if spread is None else replace(m, df=of_questions.df), design, fixed=fixed)
    if corrected is not None:
        flags |= {code: np.array([has]) for code, has in corrected.codes(design).items()}
    codes = {code for code, has in flags.items() if has[0]}
    if not of_runs and new is None:
        codes = codes.union(*(_moving_together(*both, first=first) for both in zip(runs, components, strict=True)))
    if not fixed and is_noisier_by_outer(runs[0], c, design, of_questions, settings):
        codes.add("inner_clusters")
    said = {} if corrected is None else corrected.fields(m, design)
    return Estimated(c, design, m, of_questions, frozenset(codes), said, limit, spread, each)


def each_alone(whole: Estimated, runs: Sequence[Sample], settings: Settings) -> Sequence[Moments]:
    """Return one `Moments` (mean and variance) for each run by itself, on the questions of their difference."""
    return whole.alone or [kernel([run], [1.0], whole.design, settings).m for run in runs]


def _within_runs(run: Sample, component: RunComponent | None, design: Design) -> QuestionStats:
    """Return a run's question statistics without the effects of its repeats. Refuse if their variance is not known.

    Raises:
        InputError: the variance between runs is not known.
    """
    if component is None:
        raise InputError(
            f"{run.name}: `repeats_are='runs'` needs at least two runs of each model, and in every task two "
            "questions that all of them answered. Otherwise the variance between runs is unknown"
        )
    stats = without_run_means(run.values, design.strata, component)
    return replace(stats, identical=run.stats.identical, answers_differ=run.stats.answers_differ)


def correction_of(runs: Sequence[Sample], coefficients: Sequence[float]) -> Correction | None:
    """Return the correction of a judge for a mean or A − B. None if no run is corrected. Refuse one-sided corrections.

    Raises:
        InputError: only some of the runs are.
    """
    corrected = [run.corrected for run in runs if run.corrected is not None]
    if corrected and len(corrected) < len(runs):
        raise InputError(f"{runs[0].name}: {corrected[0].one_sided}")
    return corrected[0].contrast(corrected, coefficients) if corrected else None


def is_noisier_by_outer(data: Sample, c: Contrast, known: Design, m: Moments, settings: Settings) -> bool:
    """Return True if clustering one task by a wider field would raise the standard error clearly."""
    if len(data.parts) > 1 or data.clusters is None or known.crossed is not None:
        return False
    for outer in (data.parts[0].outer or {}).values():
        values = [outer.get(cluster) for cluster in data.clusters]
        if None in values:  # questions that only another run has, whose field is not known
            continue
        outside = clustered_variance(c.d - c.d.mean(), design(len(data), [str(value) for value in values]), settings.se)
        if outside is not None and outside.value > WIDER_OUTSIDE**2 * m.variance[0] > 0:
            return True
    return False


def outer_note(part: Scores, codes: Iterable[str]) -> list[Note]:
    """Return the note that clusters lie within a wider field that should be used. [] without that diagnostic."""
    if part.outer is None or "inner_clusters" not in codes:
        return []
    fields = ", ".join(map(repr, part.outer))
    said = (
        f"{part.task} {part.metric}: each cluster ({spec_in_words(part.cluster_spec)}) lies within one value of "
        f"{fields}, whose questions vary together, too: use {parameter('cluster', next(iter(part.outer)))}, unless "
        "these values are all there are"
    )
    return [Note("inner_clusters", said, part.task)]


def _moving_together(run: Sample, component: RunComponent | None, *, first: bool) -> set[str]:
    """Return diagnostics from F tests: whole repeats move together, or first answers differ from the others."""
    if component is None:
        return set()

    def significant(p: float | None, limit: float) -> bool:
        return p is not None and p < limit

    first = first and significant(component.first_p_value, FIRST_ANSWER_P)
    # if only the first answers differ, the others are independent as far as is known
    together = component.others_p_value if first else component.p_value
    out = {"first_answer_differs"} if first else set()
    return out | ({"shared_repeat_noise"} if run.repeats_are_runs or significant(together, SHARED_NOISE_P) else set())


def fixed_questions(settings: Settings) -> bool:
    """Return True if the setting treats the questions as fixed, so that only the answers are random."""
    return of_choice("questions_are", settings.questions_are, {"population": False, "fixed": True})


def named_repeats(parts: Iterable[Scores], settings: Settings) -> list[Note]:
    """Return a note for each column of prompts or seeds whose repeats are treated as independent."""
    names = {part.repeats_named: None for part in parts if part.values.shape[1] > 1}
    return [
        Note(
            "named_repeats",
            f"the column {name!r} tells the repeats apart, and all questions share its values: use "
            "`repeats_are='runs'` if it moves their answers together, as prompts, judges and training seeds do. Now "
            "they count as independent",
        )
        for name in names
        if name is not None and settings.repeats_are == "answers"
    ]


def empty_moments(data: Sample, settings: Settings) -> tuple[Moments, str]:
    """Return NaN moments for a sample that cannot be estimated, and the diagnostic code that says why."""
    n, G = len(data), len(data) if settings.questions_are == "fixed" else data.design().n_clusters
    code = RATIO_UNDEFINED if data.undefined else UNSCORED if n else "too_few_questions"
    return undefined_moments(np.array([float(n)]), np.array([float(G)])), code


def as_scores(
    values: ArrayLike,
    clusters: NamesLike | None = None,
    missing: str = "drop",
    *,
    crossed: tuple[NamesLike, NamesLike] | None = None,
    **fields: Any,
) -> Scores:
    """Return an array (n questions × K answers, NaN: a missing one) as the scores of a run. Refuse other shapes.

    Parameters
    ----------
    values
        (n, K) scores, NaN where one is missing; or (n,) for one answer per question.
    clusters
        (n,) names, equal for questions that belong together; None: independent questions.
    missing
        ``"drop"`` leaves what is missing out, ``"zero"`` counts it as 0.
    crossed
        Two sets of (n,) names, in place of `clusters`, if questions are clustered in two crossed ways.
    **fields
        Other fields of `Scores`: `task`, `metric`, `bounds`, …; scores in [0, 1] have these bounds.

    Returns
    -------
    Scores
        Of the task "" and the metric "score" unless `fields` say otherwise.

    Raises
    ------
    ValueError
        Scores of another shape, names of another length or without a value, or `clusters` with `crossed`. As an
        InputError: another word as `missing`, and other things than numbers.
    """
    array = number_array(values).copy()
    array = array[:, None] if array.ndim == 1 else array
    if array.ndim != 2 or array.shape[1] == 0:
        raise ValueError(f"scores must be an (n, K) array with K ≥ 1, not of shape {array.shape}")
    n = len(array)
    named = None if clusters is None else checked_names("clusters", clusters, n)
    if crossed is not None:
        if named is not None:
            raise ValueError("`crossed` has both ways of clustering: leave `clusters` out")
        if not isinstance(crossed, (tuple, list)) or len(crossed) != 2:
            raise ValueError("`crossed` takes two sets of names: crossed=(a, b)")
        named = tuple(map(CROSS.join, zip(*(checked_names("crossed", way, n) for way in crossed), strict=True)))
    holes = np.isnan(array)
    if missing not in ("drop", "zero"):
        raise InputError(f"`missing` {missing!r}: arrays do not say why an answer is missing. Use 'drop' or 'zero'")
    fields.setdefault("bounds", fitting_bounds((0.0, 1.0), array))
    seen = stopped_at(array, fields["bounds"], lower_is_better=fields.get("higher_is_better") is False)
    fields.setdefault("stops_on", None if seen is None else seen.how)
    if missing == "zero":
        array[holes] = 0.0
    return Scores(
        task=fields.pop("task", ""),
        metric=fields.pop("metric", "score"),
        scorer=fields.pop("scorer", "none"),
        questions=_numbered_questions(n),
        values=array,
        clusters=named,
        n_missing=int(holes.sum()),
        cluster_spec=None if named is None else "clusters",
        **fields,
    )


@lru_cache(maxsize=4)
def _numbered_questions(n: int) -> Questions:
    """Return n questions named 0, 1, 2, …, so that questions of two arrays match by position."""
    return Questions(tuple(map(str, range(n))))


def checked_names(keyword: str, names: NamesLike, n: int, of: str = "question") -> tuple[str, ...]:
    """Convert names, as of clusters, to n texts. Refuse a single value, a wrong length or a missing name.

    Args:
        keyword: of the function that takes the names.
        names: a missing one is None, NaN, or hidden by a masked array.
        n: how many there must be.
        of: each has a name.

    Raises:
        ValueError: names that are none of n.
    """
    if isinstance(names, (str, bytes, int, float)) or not hasattr(names, "__iter__"):
        hint = ". Did you mean `level`?" if isinstance(names, float) else ""
        raise ValueError(f"`{keyword}` {names!r}: give a name for each of the {n} {of}s{hint}")
    if isinstance(names, np.ndarray) and names.ndim != 1:
        raise ValueError(
            f"`{keyword}` must be (n,) names, not of shape {names.shape}: for two crossed ways use crossed=(a, b)"
        )
    each: list[Any] = list(names.tolist() if isinstance(names, np.ndarray) else names)
    if len(each) != n:
        raise ValueError(f"{len(each)} cluster names for {n} questions")
    whole = isinstance(names, np.ndarray) and names.dtype.kind in "iu" and not np.ma.is_masked(names)  # none is missing
    if not whole and (any(map(is_, each, repeat(None))) or any(map(ne, each, each))):  # a NaN is not itself
        raise ValueError(f"`{keyword}`: a name is missing (None or NaN), and every {of} needs one")
    return tuple(map(str, each))
