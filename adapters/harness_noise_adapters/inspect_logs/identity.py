"""Which of a folder's logs hold the same answers: a log, its copies, and the earlier tries of a retried one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from harness_noise.errors import InputError

from .shards import one_run_each

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from harness_noise.data.scores import Run, Scores
    from harness_noise.io.protocol import PartRead


@dataclass(frozen=True, slots=True)
class LogIdentity:
    """What a log says of itself, for those that lie beside it."""

    path: Path
    asked: tuple[str, ...]
    """Task, its id, model and data set: a log, its copies and its retries have the same. So have, in logs of
    other programs, different runs; hence the answers."""
    answers: bytes
    """See `marks`."""
    complete: bool = True
    """Whether Inspect has computed its results."""


def mark(key: str, epoch: int, sample: Mapping[str, Any]) -> bytes:
    """A hash of 64 bits of one scored answer, equal for a copy of it and for no other; b"" where it has no scores.

    Args:
        key: its question.
        epoch: its repeat.
        sample: or its summary. A retry keeps the `uuid` of the answers that it takes over; where there is none, what
            was answered and its scores stand for it.
    """
    scores = sample.get("scores") or sample.get("score")
    if not scores:
        return b""
    known = sample.get("uuid")
    if not known:
        named = sorted(scores.items(), key=str) if isinstance(scores, dict) else [("", scores)]
        known = [
            (name, item.get("value"), item.get("answer")) if isinstance(item, dict) else (name, item)
            for name, item in named
        ]
    return blake2b(f"{key}\x1f{epoch}\x1f{known}".encode("utf-8", "surrogatepass"), digest_size=8).digest()


def fingerprint(keys: Sequence[str], values: NDArray[np.float64]) -> str:
    """A hash of the scores of some questions, in whatever order they and their answers come.

    Args:
        keys: (n,) ids.
        values: (n, K) scores, NaN where there is none.
    """
    rows = [f"{key}\x1f{sorted(row[~np.isnan(row)].tolist())}" for key, row in zip(keys, values, strict=True)]
    return blake2b("\x1e".join(sorted(rows)).encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def still_fits(row: Mapping[str, Any], parts: Sequence[Scores]) -> bool:
    """Whether a decision still rests on the scores that a log has; one that does not say on which is believed.

    Args:
        row: an object of `sequential` as the log has it.
        parts: the log's scores.
    """
    then, late = row.get("fingerprint"), row.get("late")
    if not isinstance(then, str) or not isinstance(late, list):
        return True
    rest = set(map(str, late))
    for part in [part for part in parts if part.scorer == row.get("scorer")] or parts:
        kept = [i for i, key in enumerate(part.questions.keys) if key not in rest]
        if fingerprint([part.questions.keys[i] for i in kept], part.values[kept]) == then:
            return True
    return False


def marks(found: Iterable[bytes]) -> bytes:
    """The hashes of a log's answers, see `mark`, sorted."""
    return np.sort(np.frombuffer(b"".join(found), np.uint64)).tobytes()


def joined(found: Sequence[PartRead | InputError]) -> list[Run | InputError]:
    """The runs of a folder's logs, one for each, but for those whose answers another one has; and why others cannot be
    used.

    Args:
        found: what reading each gave; `PartRead.about` is a `LogIdentity`, None for a log that was not asked for.
    """
    refused = [item for item in found if isinstance(item, InputError)]
    read = [item for item in found if not isinstance(item, InputError)]
    logs, remarks = one_run_each([(item.runs[0], item.about) for item in read if item.about is not None])
    logs, broken = _without_broken(logs)
    kept, notes = _without_copies(logs)
    notes += remarks + broken
    if notes:
        newest = max(range(len(kept)), key=lambda i: kept[i].date)
        kept[newest] = replace(kept[newest], notes=(*kept[newest].notes, *notes))
    return [*refused, *kept, *(run for item in read if item.about is None for run in item.runs)]


Logs = Sequence[tuple["Run", LogIdentity]]


def _without_broken(logs: Logs) -> tuple[list[tuple[Run, LogIdentity]], list[str]]:
    """The logs without those that ended early where another one of the same task and model did not."""
    whole = {_what(about): about.path for _, about in logs if about.complete}
    notes = [
        f"left out: {about.path}: ended before Inspect computed its results; {whole[_what(about)]} did not"
        for _, about in logs
        if not about.complete and _what(about) in whole
    ]
    return [item for item in logs if item[1].complete or _what(item[1]) not in whole], notes


def _what(about: LogIdentity) -> tuple[str, ...]:
    """Task, model and data set."""
    return (about.asked[0], *about.asked[2:])


def _without_copies(logs: Logs) -> tuple[list[Run], list[str]]:
    """The logs without those whose every answer is in a newer one too: they must not count twice."""
    alike: dict[tuple[str, ...], list[tuple[Run, LogIdentity]]] = {}
    for log in logs:
        alike.setdefault(log[1].asked, []).append(log)
    again: dict[Path, Path] = {}
    for same in alike.values():
        if len(same) > 1 and same[0][1].asked[1]:
            again |= _contained(sorted(same, key=lambda log: log[0].date, reverse=True))
    notes = [
        f"left out: {about.path}: has the answers of {again[about.path]}, as its copy or earlier try"
        for _, about in logs
        if about.path in again
    ]
    return [run for run, about in logs if about.path not in again], notes


def _contained(logs: Sequence[tuple[Run, LogIdentity]]) -> dict[Path, Path]:
    """The logs whose answers are all in another that counts, and in which; the newest come first."""
    out: dict[Path, Path] = {}
    kept: list[tuple[Path, Any]] = []
    for _, about in logs:
        answers = np.frombuffer(about.answers, np.uint64)
        where = next((path for path, more in kept if np.isin(answers, more).all()), None)
        if where is None:
            kept.append((about.path, answers))
        else:
            out[about.path] = where
    return out
