"""Checks of a gate's rows: scores that are missing, and equal answers that runs score differently."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from ...analysis.comparison import matched_scores
from ...analysis.ranges import BETWEEN, Ends, are_graded, filled_scores, score_range
from ...analysis.sample import group_parts
from ...analysis.scoring import Checked, join_checks, scored_differently, scoring_of
from ...data.native_values import agreed_pairs
from ...data.scores import Run, Scores
from ...results.diagnostics import SCORED
from ...results.rows import Difference
from ...settings import Settings, counts_as_zero

Key = tuple[str, str, str]
Filled = tuple[Run, list[Run]]


def worst_case(
    run: Run, baselines: Sequence[Run], settings: Settings, vouched: Collection[str] = ()
) -> tuple[list[Filled], set[Key]] | None:
    """Return [(run, baselines)] with missing scores filled from worst to best, and keys that cannot be. None: no need.

    Also the other way round, and where scores are graded with those between the ends: t is not monotone in them.

    Args:
        run: the new one.
        baselines: those that it is held against.
        settings: how missing answers count.
        vouched: causes that the user vouches for. Scores are left as they are if all that are missing have such a
            cause. If others are missing, too, it is not known which, so all are filled.

    Returns:
        The runs, the worst case first; and what cannot be filled: metrics without a known range, and answers of which
        it is not known what they would have been to. None where nothing is missing.
    """

    def at_random(part: Scores) -> bool:
        n = sum(part.missing.get(cause, 0) for cause in set(vouched) if not counts_as_zero(settings.missing, cause))
        return 0 < n == part.n_missing - part.n_zero

    together: dict[Key, list[Scores]] = {}
    for part in (part for side in (run, *baselines) for part in (*side.scores, *side.parts)):
        together.setdefault(part.key, []).append(part)
    ranges = {
        key: score_range([Ends.of(parts)], settings)
        for key, parts in together.items()
        if any(part.n_missing > part.n_zero for part in parts if not at_random(part))
    }
    unknown = {
        part.key for side in (run, *baselines) for part in side.corpus if part.n_missing and settings.missing != "zero"
    }
    if not ranges and not unknown:
        return None
    unknown |= {
        key
        for key, bounds in ranges.items()
        if bounds is None or any(part.lost is None for part in together[key] if not at_random(part))
    }
    for group in (group for side in (run, *baselines) for group in side.groups):
        if not unknown.isdisjoint((task, group.metric, group.scorer) for task in group.tasks):
            unknown.add(group.key)

    graded = {key for key, bounds in ranges.items() if bounds is not None and are_graded(together[key], bounds)}

    def fill(part: Scores, best: bool, share: float) -> Scores:
        bounds = ranges.get(part.key)
        if bounds is None or at_random(part):
            return part
        high = best == (part.higher_is_better is not False)
        start, end = bounds[high], bounds[not high]
        value = start + share * (end - start) if part.key in graded or share == 1 else start
        return replace(part, values=filled_scores(part, value), native=None, answers=None)

    shares = np.linspace(0, 1, BETWEEN + 2).tolist() if graded else [0.0, 1.0]
    return [_each_filled(run, baselines, partial(fill, share=share)) for share in shares], unknown


def _each_filled(run: Run, baselines: Sequence[Run], fill: Callable[[Scores, bool], Scores]) -> Filled:
    """Fill in missing scores: the run's by `fill(part, False)`, the baselines' by `fill(part, True)`."""

    def filled(side: Run, best: bool) -> Run:
        scores, parts = (tuple(fill(part, best) for part in group) for group in (side.scores, side.parts))
        return replace(side, scores=scores, parts=parts, groups=tuple(replace(g, native=None) for g in side.groups))

    return filled(run, False), [filled(base, True) for base in baselines]


def without_texts(run: Run) -> Run:
    """Return the run without answer texts, as its scores may become means over several runs."""
    scores, parts = (
        tuple(replace(part, answers=None, gradings=None) for part in parts) for parts in (run.scores, run.parts)
    )
    return replace(run, scores=scores, parts=parts)


def withheld(run: Run, baselines: Sequence[Run]) -> set[Key]:
    """Return the keys of rows without a verdict because equal answers were scored differently."""
    found = (_count_scored_differently(run, base) for base in baselines)
    return {key for each in found for key, checked in each.items() if scored_differently(checked.equal)}


def with_scoring(run: Run, baselines: Sequence[Run], rows: Sequence[Difference]) -> tuple[Difference, ...]:
    """Return the rows with the count of equal answers scored differently (worst baseline), and a code if it counts."""
    found: dict[Key, list[Checked]] = {}
    for base in baselines:
        for key, checked in _count_scored_differently(run, base).items():
            found.setdefault(key, []).append(checked)
    out = []
    for row in rows:
        equal = [x.equal for x in found.get(row.key, ()) if x.equal is not None]
        worst = max(equal, key=lambda x: (scored_differently(x), x.n_differ), default=None)
        codes = {*row.diagnostics, *([SCORED] if scored_differently(worst) else [])}
        out.append(replace(row, equal_answers=worst, diagnostics=tuple(sorted(codes))))
    return tuple(out)


def _count_scored_differently(run: Run, base: Run) -> dict[Key, Checked]:
    """Return {(task or group, metric, scorer): check for equal answers that the two runs score differently}."""
    ((run, base),), _ = agreed_pairs([(run, base)])
    matched, _ = matched_scores(run, base, alone=len(run.scores) == len(base.scores) == 1)
    found = {a.key: scoring_of(a, b) for a, b in matched}
    for group in run.groups:
        ours, theirs = group_parts(run, group), group_parts(base, group)
        if ours and theirs:
            found[group.key] = join_checks(map(scoring_of, ours, theirs))
    return found
