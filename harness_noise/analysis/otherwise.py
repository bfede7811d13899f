"""Changes that would alter a verdict: the row is computed again with other defensible choices."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial

import numpy as np

from ..data.clusters import split_crossed
from ..data.scores import Scores
from ..errors import InputError
from ..results.diagnostics import SCORED
from ..results.rows import COULD, LARGEST, MISSING, UNADJUSTED, UNCLUSTERED, Change, Difference
from ..settings import Settings
from .difference import Compared, run_difference
from .rows import RowDecision, decide_rows


def would_change(
    row: Difference,
    own: RowDecision,
    what: Compared,
    settings: Settings,
    others: Sequence[tuple[Change, Callable[[], RowDecision]]] = (),
) -> Difference:
    """Return the row with changes (clusters, missing, …) that alter its verdict. As it is if that is no test's.

    Args:
        row: a family of its own, or one whose adjusted p is its p.
        own: the same before its verdict.
        what: what it compares.
        settings: how it was computed.
        others: further ways to compute it, by the change.
    """
    if own.recorded or SCORED in own.codes:
        return row
    found = [Change(MISSING)] if row.if_missing == COULD else []
    found += [Change(UNADJUSTED)] if "not_after_adjustment" in row.diagnostics else []
    for change, make in (*_clusters(what, settings), *others):
        with suppress(InputError):
            (other,) = decide_rows([make()], settings)
            found += [change] if other.verdict != row.verdict else []
    return replace(row, _would_change=tuple(dict.fromkeys(found)))


def _clusters(what: Compared, settings: Settings) -> Iterator[tuple[Change, Callable[[], RowDecision]]]:
    """Yield (change, function): row unclustered, and without (each way's) largest. Nothing if unclustered or fixed."""
    held = [part for part in what.parts if part.clusters is not None]
    if not held or settings.questions_are == "fixed":
        return

    def again(change: Callable[[Scores], Scores]) -> RowDecision:
        a, b = ([change(part) for part in parts] for parts in (what.parts_a, what.parts_b))
        return run_difference(replace(what, parts_a=a, parts_b=b), settings)[0]

    yield Change(UNCLUSTERED), lambda: again(lambda part: replace(part, clusters=None, answers=None, gradings=None))
    first = what.parts_a if any(part.clusters is not None for part in what.parts_a) else what.parts_b
    clusters = tuple(cluster for part in first for cluster in part.clusters or ())
    crossed = split_crossed(clusters)
    # of crossed clusters each way has its own: a pair of names is no cluster
    for way, names in enumerate(crossed) if crossed else [(None, clusters)]:
        largest, size = Counter(names).most_common(1)[0]
        if len(set(names)) > 2 and size > 1:
            yield Change(LARGEST, largest), partial(again, partial(_without_cluster, cluster=largest, way=way))


def _without_cluster(part: Scores, cluster: str, way: int | None) -> Scores:
    """Return the scores without the questions of one cluster, of the first or second of two crossed ways or the only.

    A side without such clusters of its own loses them when the two runs are paired.
    """
    crossed = None if way is None else split_crossed(part.clusters)
    names = part.clusters if way is None else crossed and crossed[way]
    if names is None:
        return replace(part, answers=None, gradings=None)
    kept = np.flatnonzero(np.asarray(names, dtype=object) != cluster)
    return replace(part.take(kept), answers=None, gradings=None)
