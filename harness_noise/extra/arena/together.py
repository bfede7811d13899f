"""Tasks that belong together, because they share a cluster or a question."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...arrays import IntArray
from ...data.across import clusters_across
from ...data.clusters import CROSS
from ...data.scores import OnQuestions


def tasks_together(parts: Sequence[OnQuestions]) -> IntArray:
    """Return (T,) codes of tasks, equal for those that share a cluster or question, directly or through others.

    Args:
        parts: one for each task.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    clusters, T = clusters_across(parts)[0], len(parts)
    if clusters is None:
        return np.arange(T)
    tasks = np.repeat(np.arange(T), [len(part.questions) for part in parts]).tolist()
    code: dict[tuple[int, str], int] = {}
    edges = [
        (task, code.setdefault(way, T + len(code)))
        for task, cluster in zip(tasks, clusters, strict=True)
        for way in enumerate(cluster.split(CROSS))
    ]
    size = T + len(code)
    graph = coo_array((np.ones(len(edges)), np.array(edges).T), shape=(size, size))
    return np.asarray(connected_components(graph, directed=False)[1][:T], dtype=np.intp)
