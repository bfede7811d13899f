"""Clusters across the tasks of a group: what two tasks share is one sample, however many tasks ask it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .clusters import CROSS, split_crossed
from .questions import CONTENT_KEYS, Questions
from .scores import OnQuestions

SAME_QUESTION = "same question"
"""The clusters of tasks that share questions, in words."""
_WORDS = 0.5
"""Share of the keys that must be several words for keys to count as the texts of the questions."""


def clusters_across(parts: Sequence[OnQuestions]) -> tuple[tuple[str, ...] | None, str | None]:
    """Return (n,) clusters over tasks, merged where tasks share questions, and their SPEC, or (None, None).

    Two tasks share a cluster if it has one name by one SPEC in both, or if both ask one of its questions: a question
    with the same words, or with the same hash of the whole document. Numbers and names are no such sign. The clusters
    are the connected components of both relations. Both results are None if every question stands alone.

    Args:
        parts: one for each task.
    """
    spec = next((part.cluster_spec for part in parts if part.cluster_spec), None)
    if len(parts) == 1:
        return parts[0].clusters, spec if parts[0].clusters is not None else None
    named = any(part.clusters is not None for part in parts)
    shared = _texts_in_other_tasks(parts)
    if not named and shared is None:
        return None, None
    clusters = _by_name(parts)
    if shared is None or any(part.cluster_spec == "task" for part in parts):
        return clusters, spec
    if split_crossed(clusters) is not None:  # two relations already, and both cross tasks
        return clusters, spec
    return _components(clusters, shared), f"{spec}, {SAME_QUESTION}" if named and spec else SAME_QUESTION


def _by_name(parts: Sequence[OnQuestions]) -> tuple[str, ...]:
    """Return a cluster name per question over several tasks. Equal names by one SPEC are one cluster."""
    crossed = any(split_crossed(part.clusters) is not None for part in parts)
    names: list[str] = []
    for t, part in enumerate(parts):
        if part.clusters is None:
            own = [f"\x1f{t}\x1f{key}" for key in part.questions.keys]
        else:
            spec = f"{part.cluster_spec}\x1f"
            own = [CROSS.join(spec + way for way in name.split(CROSS)) for name in part.clusters]
        # a task with one way of clustering among crossed ones: the same clusters both ways
        names += [name + CROSS + name for name in own] if crossed and split_crossed(own) is None else own
    return tuple(names)


def _text_keys(questions: Questions) -> Sequence[str] | None:
    """Return one string per question, equal in any task with the same question text. None if texts are unknown."""
    if questions.kind in CONTENT_KEYS:
        return questions.keys
    if questions.documents is not None:  # reading them takes long, and the keys are names
        return None
    if questions.inputs is not None:
        return questions.inputs
    several = sum(" " in key for key in questions.keys)
    return questions.keys if several > _WORDS * len(questions) else None


def _texts_in_other_tasks(parts: Sequence[OnQuestions]) -> list[str | None] | None:
    """Return for each question its text if another task has it too, else None. No list but None if none is shared."""
    words = [_text_keys(part.questions) for part in parts]
    seen: set[str] = set()
    twice: set[str] = set()
    for each in words:
        own = set(each or ())
        twice |= seen & own
        seen |= own
    if not twice:
        return None
    out: list[str | None] = []
    for each, part in zip(words, parts, strict=True):
        out += [None] * len(part.questions) if each is None else [word if word in twice else None for word in each]
    return out


def _components(clusters: Sequence[str], shared: Sequence[str | None]) -> tuple[str, ...]:
    """Return (n,) cluster names after merging the clusters that are connected by a question in both."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    of_cluster = {cluster: code for code, cluster in enumerate(dict.fromkeys(clusters))}
    of_word = {word: code for code, word in enumerate(dict.fromkeys(filter(None, shared)), len(of_cluster))}
    edges = [(of_cluster[a], of_word[b]) for a, b in zip(clusters, shared, strict=True) if b is not None]
    rows, columns = np.array(edges).T
    size = len(of_cluster) + len(of_word)
    component = connected_components(coo_array((np.ones(len(rows)), (rows, columns)), shape=(size, size)), False)[1]
    name: dict[int, str] = {}
    for cluster, code in of_cluster.items():
        name.setdefault(int(component[code]), cluster)
    return tuple(name[int(component[of_cluster[cluster]])] for cluster in clusters)
