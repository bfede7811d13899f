"""The gate on each question by itself, by counts of right answers [Fisher]: it shows the single tests that broke.

A suite of hundreds of tests may lose one of them whole, 10 of 10 to 0 of 10, without any effect on its mean. Question i
has x_A right of k_A answers and x_B of k_B. The hypergeometric p that so few are A's is exact for any rate, and Holm's
method keeps the chance that an unchanged suite fails at (1 − level)/2 over all questions. What the counts cannot show,
whatever the answers are, is not judged.

Sources:
  [Fisher]  Fisher (1935), The Design of Experiments, ch. 2; one-sided
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import comb
from typing import NamedTuple

import numpy as np

from ...analysis.comparison import matched_scores
from ...analysis.repeats import as_repeats, is_one_run, without_copies
from ...arrays import FloatArray, IntArray
from ...data.matching import pair_questions
from ...data.notes import Note
from ...data.scores import Measured, Run, Scores
from ...errors import InputError, some_of
from ...settings import Settings
from ...stats.decision import benjamini_hochberg, holm
from ...stats.moments import run_component
from .checks import withheld
from .judge import ITSELF, WITHHELD, Key, among_baselines, of_either, one_configuration, why_unlike
from .results import CANNOT, FAIL, PASS, Gate, GateRow

RUNS_DIFFER = 0.001
"""Below this p of the F test, baseline runs are not pooled."""
NO_COUNTS = "it is not a mean over questions, so that none of them has right and wrong answers"
COULD_FAIL = "answers are missing, and if they were all wrong (the baseline's right), this question would fail"
COPIES = (
    "all answers to a question are the same text in one of the runs (identical_repeats), so they count as one, and one "
    "answer says nothing of a single question: sample at the temperature that you report, each repeat with its own seed"
)
NOT_TOLD = "answers are missing, and it is not known to which questions"


def judge_each(run: Run, baselines: Sequence[Run], settings: Settings, *, skip_missing: bool = False) -> Gate:
    """Return a run's gate by question. Refuse single answers, scores that are not 0/1, and baseline runs that differ.

    Args:
        run: the new run.
        baselines: runs of one configuration, whose answers are taken together.
        settings: level, and how missing answers count.
        skip_missing: leave out what cannot be judged, by name.

    Raises:
        InputError: a single answer to each question, scores that are not right or wrong, or baseline runs that differ.
    """
    baselines = [_ungrouped(one) for one in without_copies(baselines)[0]]
    run, base = _ungrouped(run), baselines[0]
    among = among_baselines(baselines)
    if any(is_one_run(run, one) for one in baselines):
        among = dict.fromkeys((part.key for one in baselines for part in one.scores), ITSELF)
    if len(baselines) > 1:
        _check_alike(baselines)
        base = as_repeats([replace(one, model=base.model) for one in baselines])[0]
        base = replace(base, model=f"{len(baselines)} runs")
    alpha = (1 - settings.level) / 2
    counted, lost = _questions_to_judge(run, base, among, withheld(run, baselines), settings)
    rows, unsure, notes = _with_verdicts(counted, alpha)
    notes += _note_on_copies(rows) if any(row.passed is False for row in rows) else []
    lost += unsure
    kept = [] if skip_missing else lost
    outcome = PASS if rows and not kept else CANNOT
    outcome = FAIL if any(row.passed is False for row in rows) else outcome
    rows = sorted([*rows, *kept], key=lambda row: (row.passed is not False, row.passed is True))
    return Gate(
        settings=settings.to_dict() | {"each": True},
        outcome=outcome,
        rule="regression",
        alpha=alpha,
        adjust="holm",
        margin=0.0,
        rows=tuple(rows),
        left_out=tuple(f"{row.name} ({row.reason})" for row in lost) if skip_missing else (),
        lost=tuple(lost) if skip_missing else (),
        notes=tuple(notes),
    )


def _ungrouped(run: Run) -> Run:
    """Return the run with the tasks of groups as tasks of their own."""
    return replace(run, scores=(*run.scores, *run.parts), parts=(), groups=())


def _questions_to_judge(
    run: Run, base: Run, among: Mapping[Key, str], differently: set[Key], settings: Settings
) -> tuple[list[_Counted], list[GateRow]]:
    """Return the questions to judge, with counts and p-values, and rows on others. Refuse single answers.

    Args:
        run: the new run.
        base: the baseline, or several taken together.
        among: why the baseline runs cannot be taken together, or are the run.
        differently: what the runs score in two ways.
        settings: range of the metric.
    """
    rows, lost = list[_Counted](), list[GateRow]()
    matched = matched_scores(run, base, alone=not run.corpus)[0]
    reasons = of_either(run, base, among) | {part.key: NO_COUNTS for part in (*run.corpus, *base.corpus)}
    heads = run.headline.intersection((*reasons, *(a.key for a, _ in matched)))
    tasks = {task for task, _, _ in heads}
    for a, b in matched:
        reasons |= {a.key: "", b.key: ""}
        if a.task in tasks and a.key not in heads:
            continue
        why = why_unlike(a, b, "the runs", drawn=True) or among.get(b.key) or (WITHHELD if a.key in differently else "")
        why = why or (COPIES if "identical_repeats" in {*a.diagnostics, *b.diagnostics} else "")
        if why:
            lost.append(_row(a, "", run, base, reason=why))
            continue
        judged, unjudged = _questions(a, b, run, base, settings)
        rows += judged
        lost += unjudged
    for key, reason in reasons.items():
        if reason and (key[0] not in tasks or key in heads):
            lost.append(_row(Measured(*key), "", run, base, reason=reason))
    return rows, lost


def _check_alike(baselines: Sequence[Run]) -> None:
    """Refuse baseline runs that differ by more than chance, as their answers cannot be pooled."""
    for part in one_configuration(baselines)[0].scores:
        whole = part.values[~np.isnan(part.values).any(axis=1)]
        found = run_component(whole, np.full(len(whole), 1 / max(len(whole), 1)), np.zeros(len(whole), dtype=np.intp))
        p = None if found is None else found.p_value
        if p is not None and p < RUNS_DIFFER:
            raise InputError(
                f"{part.task} {part.metric}: the baseline runs differ from one another (p = {p:.2g}), so that their "
                "answers cannot be taken together: give one of them"
            )


class _Counted(NamedTuple):
    """One question with counts of right answers, before it is decided."""

    row: GateRow
    worst: float
    """p if all missing answers of A were wrong, and all of the baseline right."""


def _questions(a: Scores, b: Scores, run: Run, base: Run, settings: Settings) -> tuple[list[_Counted], list[GateRow]]:
    """Return one task's questions to judge, with counts, and the others. Refuse one answer each, and scores not 0/1."""
    low, high = settings.range or a.bounds or b.bounds or (0.0, 1.0)
    if a.higher_is_better is False or b.higher_is_better is False:
        low, high = high, low
    same = pair_questions(a.questions, b.questions)
    (x, k), (y, m) = (_counts(part, rows, low, high) for part, rows in ((a, same.rows_a), (b, same.rows_b)))
    if max(k, default=0) < 2 or max(m, default=0) < 2:
        raise InputError(
            f"{a.task} {a.metric}: one answer to each question says nothing of a single one: run both with K > 1 "
            "repeats, such as 10, or leave `each` out"
        )
    lost_a, lost_b = a.lost, b.lost
    if lost_a is None or lost_b is None:
        return [], [_row(a, "", run, base, reason=NOT_TOLD)]
    more, others = lost_a.sum(axis=1)[same.rows_a], lost_b.sum(axis=1)[same.rows_b]
    p, worst = _fisher(x, k, y, m).tolist(), _fisher(x, k + more, y + others, m + others).tolist()
    rows, lost = [], []
    for i, (xa, ka, xb, kb) in enumerate(zip(x.tolist(), k.tolist(), y.tolist(), m.tolist(), strict=True)):
        question = a.questions.keys[same.rows_a[i]]
        if not (ka and kb):
            lost.append(_row(a, question, run, base, reason="it has no score"))
            continue
        flaky = xb / kb if 0 < xb < kb else None
        fields = {
            "n_questions": 1,
            "estimate": (xa / ka - xb / kb) * (high - low) + 0.0,
            "p_value": p[i],
            "flaky": flaky,
            "_zero_one": {low, high} == {0.0, 1.0},
        }
        row = _row(a, question, run, base, right_a=xa, answers_a=ka, right_b=xb, answers_b=kb, **fields)
        rows.append(_Counted(row, worst[i]))
    both = {a.questions.keys[i] for i in same.rows_a}, {b.questions.keys[i] for i in same.rows_b}
    for part, shared, who in ((a, both[0], "the baseline"), (b, both[1], "the run")):
        lost += [_row(a, key, run, base, reason=f"{who} lacks it") for key in part.questions.keys if key not in shared]
    return rows, lost


def _row(part: Measured, question: str, run: Run, base: Run, **fields: object) -> GateRow:
    return GateRow(
        *part.key,
        question=question,
        model=run.model,
        against=base.model,
        quantity="A − B",
        higher_is_better=part.higher_is_better if isinstance(part, Scores) else None,
        threshold=0.0,
        **fields,  # type: ignore[arg-type]
    )


def _counts(part: Scores, rows: Sequence[int], low: float, high: float) -> tuple[IntArray, IntArray]:
    """Return (m,) answers that score `high`, and (m,) all, to each question of these rows. Refuse all but low, high."""
    values = part.values[list(rows)]
    scored = ~np.isnan(values)
    if not np.isin(values[scored], (low, high)).all():
        raise InputError(
            f"{part.task} {part.metric}: a question by itself is judged by right and wrong answers, and these scores "
            "lie between: choose another metric with `metrics`, or leave `each` out"
        )
    return (values == high).sum(axis=1), scored.sum(axis=1)


def _fisher(x: IntArray, k: IntArray, y: IntArray, m: IntArray) -> FloatArray:
    """Return one one-sided Fisher p per question: the chance of at most x right of k, with x + y right of k + m."""
    from scipy.stats import hypergeom  # takes long to import

    return np.asarray(hypergeom.cdf(x, k + m, x + y, k))


def _with_verdicts(counted: Sequence[_Counted], alpha: float) -> tuple[list[GateRow], list[GateRow], list[Note]]:
    """Return the questions with verdicts (p by Holm), those left open (answers missing or too few), and notes."""
    if not counted:
        return [], [], []
    rows, n = [each.row for each in counted], len(counted)
    p, worst = np.array([row.p_value for row in rows]), np.array([each.worst for each in counted])
    by_holm, by_bh, at_worst = holm(p), benjamini_hochberg(p), holm(worst)
    judged, unsure = list[GateRow](), list[GateRow]()
    for row, adjusted, if_lost in zip(rows, by_holm.tolist(), at_worst.tolist(), strict=True):
        k, m, passed, reason = row.answers_a or 0, row.answers_b or 0, not adjusted < alpha, ""
        if passed and n / comb(k + m, k) >= alpha:  # whatever the answers are
            reason = (
                f"with {k} and {m} answers no loss among {n:,} questions could be shown: {enough(n, alpha)} each could "
                "show a complete one"
            )
        elif passed and if_lost < alpha:
            reason = COULD_FAIL
        row = replace(row, p_adjusted=adjusted, passed=None if reason else passed, reason=reason)
        (unsure if reason else judged).append(row)
    more = [row.name for row, q, adjusted in zip(rows, by_bh, by_holm, strict=True) if q < alpha <= adjusted]
    flaky = [f"{row.name} ({row.right_b} of {row.answers_b})" for row in rows if row.flaky is not None]
    notes = list[Note]()
    if more:
        text = f"also worse by Benjamini–Hochberg, which does not decide: {some_of(more, 8)}"
        notes.append(Note("worse_unadjusted", text))
    if flaky:
        notes.append(Note("flaky", f"flaky in the baseline: {some_of(flaky, 8)}"))
    return judged, unsure, notes


def _note_on_copies(rows: Sequence[GateRow]) -> list[Note]:
    """Return [note] if a run's answers to each question are all right or all wrong, as copies would be."""
    counts = ([(row.right_a, row.answers_a) for row in rows], [(row.right_b, row.answers_b) for row in rows])
    alike = [side for side, of in zip("AB", counts, strict=True) if all(right in (0, k) for right, k in of)]
    if not alike:
        return []
    said = (
        f"all answers to each question score alike in {' and in '.join(alike)}: if they are copies of one answer "
        "(temperature 0, a cache, a fixed seed), they count as one, and the p-values are too small"
    )
    return [Note("alike_answers", said)]


def enough(n: int, alpha: float) -> int:
    """Return the fewest answers K per question at which K right against 0 right is significant among n."""
    K = 1
    while n / comb(2 * K, K) >= alpha:
        K += 1
    return K
