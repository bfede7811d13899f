"""All that a gate makes of equal answers that a run and its baselines score differently: it cannot judge such a row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..data.native_values import agreed_pairs
from ..data.scores import Run
from ..results.rows import Difference
from .comparison import matched_scores
from .rows import SCORED
from .sample import group_parts
from .scoring import Checked, joined, scored_differently, scoring_of

Key = tuple[str, str, str]


def without_texts(run: Run) -> Run:
    """Return the run without texts, because its answers are not compared with a mean of several baselines."""
    scores, parts = (
        tuple(replace(part, answers=None, gradings=None) for part in parts) for parts in (run.scores, run.parts)
    )
    return replace(run, scores=scores, parts=parts)


def withheld(run: Run, baselines: Sequence[Run]) -> set[Key]:
    """Return what is not judged because the run and one of the baselines score equal answers differently."""
    found = (_of_runs(run, base) for base in baselines)
    return {key for each in found for key, checked in each.items() if scored_differently(checked.equal)}


def with_scoring(run: Run, baselines: Sequence[Run], rows: Sequence[Difference]) -> tuple[Difference, ...]:
    """Return the rows with the check of equal answers of the run and each baseline. With several baselines the worst
    counts."""
    found: dict[Key, list[Checked]] = {}
    for base in baselines:
        for key, checked in _of_runs(run, base).items():
            found.setdefault(key, []).append(checked)
    out = []
    for row in rows:
        equal = [x.equal for x in found.get(row.key, ()) if x.equal is not None]
        worst = max(equal, key=lambda x: (scored_differently(x), x.n_differ), default=None)
        codes = {*row.diagnostics, *([SCORED] if scored_differently(worst) else [])}
        out.append(replace(row, equal_answers=worst, diagnostics=tuple(sorted(codes))))
    return tuple(out)


def _of_runs(run: Run, base: Run) -> dict[Key, Checked]:
    """Return (task or group, metric, scorer) → the check of the equal answers of two runs."""
    ((run, base),), _ = agreed_pairs([(run, base)])
    matched, _ = matched_scores(run, base, alone=len(run.scores) == len(base.scores) == 1)
    found = {a.key: scoring_of(a, b) for a, b in matched}
    for group in run.groups:
        ours, theirs = group_parts(run, group), group_parts(base, group)
        if ours and theirs:
            found[group.key] = joined(map(scoring_of, ours, theirs))
    return found
