"""Detection of metrics that group the rows they are called on, so that resampling rows does not give their noise.

"All answers to a question are right" is the mean over questions of a product over their rows. A question that is
drawn twice is merged by such a metric's own grouping into one, and rows that are left out make others right. A function
of the rows' distribution (BLEU, F1, a correlation) moves as far when a row is there twice as it moves without it, the
other way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from ...arrays import FloatArray, IntArray

MOST_ROWS = 400
RESAMPLES = 200
FEWEST_MOVING = 3
"""Rows that move the metric, below which it hangs on too few for an error bar."""
UNLIKE = 0.05
"""Median of |D + L|/(|D| + |L|) above which a row that is there twice is not the opposite of one left out."""
SHIFTED = 0.8
"""Distance of resamples from the metric, in their SDs, above which they are reported as not being of it."""
_MOVES = 1e-9
Seen = Literal["grouped", "few", "function"]


def seen_of(value: Callable[[IntArray], float], n: int, seed: int = 0) -> Seen:
    """Classify a metric by deleting and doubling rows: "few" (under 3 rows move it), "grouped" or a plain "function".

    L_i = (n − 1)(θ without i − θ), D_i = (n + 1)(θ with i twice − θ), over at most 400 rows. It groups rows if all D
    are 0, or if both D differ from −L and resamples by row lie off θ. Each alone accuses metrics that group nothing: a
    calibration error is biased in resamples, and few digits make D unlike L.

    Args:
        value: the metric of some rows, by their numbers; NaN where it has none.
        n: rows.
        seed: of the rows looked at, and of the resamples.
    """
    rng, every = np.random.default_rng(seed), np.arange(n)
    theta = value(every)
    rows = every if n <= MOST_ROWS else np.sort(rng.choice(n, MOST_ROWS, replace=False))
    without = np.array([value(np.delete(every, i)) for i in rows])
    twice = np.array([value(np.append(every, i)) for i in rows])
    L, D = (n - 1) * (without - theta), (n + 1) * (twice - theta)
    moves = np.nan_to_num(np.abs(D) + np.abs(L)) > _MOVES * max(1.0, abs(theta))
    if int(moves.sum()) < FEWEST_MOVING:
        return "few"
    L, D = L[moves], D[moves]
    if (np.abs(D) <= _MOVES * max(1.0, abs(theta))).all():
        return "grouped"
    unlike = float(np.median(np.abs(D + L) / (np.abs(D) + np.abs(L))))
    if unlike <= UNLIKE:
        return "function"
    drawn = np.array([value(rng.integers(0, n, n)) for _ in range(RESAMPLES)])
    drawn = drawn[np.isfinite(drawn)]
    spread = float(drawn.std(ddof=1)) if len(drawn) > 1 else 0.0
    return "grouped" if abs(float(drawn.mean()) - theta) > SHIFTED * spread else "function"


Path = tuple[int | str, ...]
"""The place of a value in a record: a position in it, keys of its mappings."""
Aggregate = Callable[[list[Any]], float]
_DEPTH = 3


@dataclass(frozen=True, slots=True)
class Key:
    """All that an aggregation groups its records by."""

    path: Path
    groups: tuple[str, ...]
    """The group of each record, by name."""

    @property
    def name(self) -> str:
        return ".".join(map(str, self.path))


class _Recording(dict[Any, Any]):
    """A mapping that notes which of its values are read."""

    def __init__(self, data: Mapping[Any, Any], path: Path, read: set[Path]) -> None:
        super().__init__(data)
        self.path, self.read = path, read

    def __getitem__(self, key: Any) -> Any:
        value = super().__getitem__(key)
        path = (*self.path, key)
        if isinstance(value, Mapping):
            return _Recording(value, path, self.read)
        self.read.add(path)
        return value

    def get(self, key: Any, default: Any = None) -> Any:
        try:
            return self[key]
        except KeyError:
            return default


def key_of(call: Aggregate, items: Sequence[Any]) -> Key | None:
    """Find the value in each record by which a metric's aggregation groups records (the finest). None if not shown.

    A value in each record (a position of a tuple, or a key of a mapping that the aggregation reads) is that if names do
    not matter (other names for the same groups give the same metric), if the groups do (each record alone gives
    another), and if the metric is a function of the groups' distribution: a group that is there twice, under two names,
    moves it as far as a group left out, the other way. A value that alone gives the metric, as answers give their
    entropy, is what is measured and no group.
    """
    theta, found = call([*items]), list[tuple[int, Key]]()
    for path in _paths(call, items):
        values = [_at(item, path) for item in items]
        names = list(dict.fromkeys(values))
        if not FEWEST_MOVING <= len(names) < len(items):
            continue
        turned = dict(zip(names, [*names[1:], names[0]], strict=True))
        close, both = _MOVES * max(1.0, abs(theta)), list(zip(items, values, strict=True))
        if not abs(call([_with_value(x, path, turned[v]) for x, v in both]) - theta) <= close:
            continue
        alone = call([_with_value(x, path, _fresh(v, i, values)) for i, (x, v) in enumerate(both)])
        if not abs(alone - theta) > close or _is_measured(call, items, path, values, theta):
            continue
        if _is_of_groups(call, items, path, values, theta):
            found.append((len(names), Key(path, tuple(map(str, values)))))
    return max(found, key=lambda pair: pair[0])[1] if found else None


def _is_measured(call: Aggregate, items: Sequence[Any], path: Path, values: list[Any], theta: float) -> bool:
    """Return True if the values at this path alone reproduce the metric, so that they are scores, not groups."""
    others = [call([_with_value(item, path, value) for value in values]) for item in (items[0], items[-1])]
    return all(abs(other - theta) <= _MOVES * max(1.0, abs(theta)) for other in others)


def _is_of_groups(call: Aggregate, items: Sequence[Any], path: Path, values: list[Any], theta: float) -> bool:
    """Return True if deleting and doubling whole groups shows that the metric averages over these groups."""
    names = list(dict.fromkeys(values))
    G, some = len(names), names[:: -(-len(names) // 30)]
    L, D = np.zeros((2, len(some)))
    for i, name in enumerate(some):
        own = [x for x, value in zip(items, values, strict=True) if value == name]
        rest = [x for x, value in zip(items, values, strict=True) if value != name]
        L[i] = (G - 1) * (call(rest) - theta)
        D[i] = (G + 1) * (call([*items, *(_with_value(x, path, _fresh(name, 0, values)) for x in own)]) - theta)
    moves = np.nan_to_num(np.abs(D) + np.abs(L)) > _MOVES * max(1.0, abs(theta))
    if not moves.any():
        return False
    return float(np.median(np.abs(D + L)[moves] / (np.abs(D) + np.abs(L))[moves])) <= UNLIKE


def _paths(call: Aggregate, items: Sequence[Any]) -> list[Path]:
    """Return the paths to a text or whole number that every record has and the aggregation may group by."""
    read: set[Path] = set()
    call([_recording(item, (), read) for item in items])
    paths = dict.fromkeys(path for item in items[:1] for path in _leaves(item, ()) if _is_plain(path) or path in read)
    return [path for path in paths if all(_has(item, path) for item in items)]


def _is_plain(path: Path) -> bool:
    return all(isinstance(part, int) for part in path)


def _recording(item: Any, path: Path, read: set[Path]) -> Any:
    if isinstance(item, Mapping):
        return _Recording(item, path, read)
    if isinstance(item, (tuple, list)):
        return _like(item, [_recording(part, (*path, i), read) for i, part in enumerate(item)])
    return item


def _like(item: Any, parts: list[Any]) -> Any:
    """Return a list or tuple of these parts, of the type of `item`. A namedtuple takes its parts one by one."""
    return getattr(item, "_make", type(item))(parts)


def _leaves(item: Any, path: Path) -> Iterator[Path]:
    if len(path) > _DEPTH:
        return
    if isinstance(item, Mapping):
        for name, part in item.items():
            yield from _leaves(part, (*path, name))
    elif isinstance(item, (tuple, list)):
        for i, part in enumerate(item):
            yield from _leaves(part, (*path, i))
    elif path:
        yield path


def _at(item: Any, path: Path) -> Any:
    for part in path:
        item = item[part]
    return item


def _has(item: Any, path: Path) -> bool:
    try:
        return type(_at(item, path)) in (str, int)
    except (LookupError, TypeError):
        return False


def _with_value(item: Any, path: Path, value: Any) -> Any:
    """Return a copy of the record with the value at this path replaced."""
    if not path:
        return value
    first, rest = path[0], path[1:]
    if isinstance(item, Mapping):
        return {**item, first: _with_value(item[first], rest, value)}
    return _like(item, [_with_value(part, rest, value) if i == first else part for i, part in enumerate(item)])


def _fresh(value: Any, i: int, values: Sequence[Any]) -> Any:
    """Return the i-th new name that is not among `values` and is of their kind (text or number)."""
    if isinstance(value, int):
        return max(values) + 1 + i
    return str(10 ** max(map(len, values)) + i) if value.isdecimal() else f"{max(values, key=len)}{i}x"


def jackknife_blocks(G: int, most: int, seed: int = 0) -> IntArray:
    """Assign each of G clusters to one of at most `most` random blocks. Returns (G,) block numbers."""
    order = np.random.default_rng(seed).permutation(G)
    return np.asarray(order % min(G, most), dtype=np.intp)


def delete_one_variance(theta: FloatArray) -> float:
    """Return the jackknife variance (B − 1)/B Σ (θ_(−b) − θ̄)² of a metric, θ_(−b) without block b [Efron1981]."""
    B = len(theta)
    return (B - 1) / B * float(((theta - theta.mean()) ** 2).sum())
