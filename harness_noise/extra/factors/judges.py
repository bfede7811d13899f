"""Pairs of judges of the same answers: their agreement, and the differences of their means."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from ...analysis.comparison import compare_runs
from ...analysis.sample import in_order_of
from ...arrays import FloatArray
from ...data.notes import Note
from ...data.scores import Run, Scores
from ...data.units import decimals, scale_of
from ...results.rows import Difference
from ...settings import Settings
from ...stats.contrast import design
from .agreement import agreement
from .results import Factors, JudgePair

OF_DIFFERENCES = frozenset(
    {"too_few_questions", "too_few_clusters", "few_clusters", "singleton_clusters", "few_flips", "zero_variance"}
)
"""Codes of a comparison that concern two judges of the same answers, too."""


def with_judges(result: Factors, runs: Sequence[Run]) -> Factors:
    """Return the noise by factor with rows on pairs of judges (agreement, difference) and a note. Unchanged if none."""
    settings = Settings()
    answers = [graded for run in runs for graded in _graded(run)]
    compared = [pair for graded in answers for pair in graded.pairs()]
    if not compared:
        return result
    differences = iter(compare_runs([pair.runs() for pair in compared], settings).comparisons)
    rows = []
    for graded in answers:
        if len(graded.judges) > 2:
            rows.append(graded.row())
        rows += [pair.row(next(differences)) for pair in graded.pairs()]
    return replace(result, judges=tuple(rows), notes=(*result.notes, *_who_differs(rows, settings)))


def _who_differs(rows: Sequence[JudgePair], settings: Settings) -> list[Note]:
    """Return one note: how many pairs of judges have different means and which differs most, or that none does."""
    pairs = [row for row in rows if row.judge_b is not None]
    differ = [row for row in pairs if row.p_adjusted is not None and row.p_adjusted <= 1 - settings.level]
    if not differ:
        said = f"no two of the judges differ in their mean ({len(pairs)} pairs, Holm-adjusted)"
        return [Note("judges_compared", said)]
    most = max(differ, key=lambda row: abs(row.diff or 0.0))
    high, low = (most.judge_a, most.judge_b) if (most.diff or 0.0) > 0 else (most.judge_b, most.judge_a)
    more = scale_of(most).text(abs(most.diff or 0.0), decimals(most.se, most.diff), unit=True)
    said = (
        f"{len(differ)} of {len(pairs)} pairs of judges differ in their mean, {high} and {low} most: {high} gives "
        f"{more} more on the same answers"
    )
    return [Note("judges_compared", said)]


@dataclass(frozen=True, slots=True, eq=False)
class _Graded:
    """The answers of one run to one task, and several judges' verdicts on them."""

    run: Run
    first: Scores
    judges: tuple[str, ...]
    verdicts: FloatArray
    """(n, K, J) NaN where a judge gave none."""

    def pairs(self) -> list[_Graded]:
        """Return every pair of judges, restricted to the answers that both have graded."""
        out = []
        for a, b in combinations(range(len(self.judges)), 2):
            both = self.verdicts[:, :, [a, b]]
            both = np.where(np.isnan(both).any(axis=2, keepdims=True), np.nan, both)
            if not np.isnan(both).all():
                out.append(replace(self, judges=(self.judges[a], self.judges[b]), verdicts=both))
        return out

    def runs(self) -> tuple[Run, Run]:
        """Return two judges' verdicts as two runs (higher is better, no texts), to be compared question by question."""
        first = replace(
            self.first, scorer="none", native=None, diagnostics=(), factors=None, gradings=None, higher_is_better=True
        )
        first = replace(first, answers=None)  # two judges are meant to differ
        run_a, run_b = (
            Run(
                model=name,
                name=f"{self.run.name}: {name}",
                harness=self.run.harness,
                scores=(replace(first, values=self.verdicts[:, :, j]),),
            )
            for j, name in enumerate(self.judges)
        )
        return run_a, run_b

    def row(self, difference: Difference | None = None) -> JudgePair:
        """Return the judges' agreement, and the `difference` of two judges' means. None: judge_a is called "all"."""
        several = (~np.isnan(self.verdicts)).sum(axis=2) > 1
        answered = several.any(axis=1)
        questions, number = np.flatnonzero(answered), np.cumsum(answered) - 1
        clusters = None if self.first.clusters is None else [self.first.clusters[i] for i in questions]
        agreed = agreement(self.verdicts[several], number[np.nonzero(several)[0]], design(len(questions), clusters))
        names = ("diff", "se", "ci_low", "ci_high", "level", "df", "p_value", "p_adjusted")
        fields = {} if difference is None else {name: getattr(difference, name) for name in names}
        codes = () if difference is None else sorted(OF_DIFFERENCES.intersection(difference.diagnostics))
        return JudgePair(
            task=self.first.task,
            metric=self.first.metric,
            scorer="none",
            model=self.run.model,
            run=self.run.name,
            judge_a="all" if difference is None else self.judges[0],
            judge_b=None if difference is None else self.judges[1],
            n_questions=len(questions),
            n_answers=int(several.sum()),
            agreement=agreed.raw,
            agreement_se=agreed.raw_se,
            ac1=agreed.ac1,
            ac1_se=agreed.ac1_se,
            diagnostics=tuple(codes),
            **fields,
        )


def _graded(run: Run) -> Iterator[_Graded]:
    """Yield verdicts (n, K, J) for each task of a run that two or more judges graded, with equal K."""
    by_task: dict[str, list[Scores]] = {}
    for part in run.scores:
        by_task.setdefault(part.task, []).append(part)
    for parts in by_task.values():
        most = max(parts, key=lambda part: len(part.questions))
        judges = [part for part in parts if part.values.shape[1] == most.values.shape[1]]
        if len(judges) > 1:
            verdicts = np.stack([in_order_of(most.questions, part) for part in judges], axis=2)
            yield _Graded(run, most, tuple(part.scorer for part in judges), verdicts)
