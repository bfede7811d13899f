"""Runs kept for a gate: question keys, scores and clusters of the last runs that passed, one small file each.

A question takes some 22 bytes (a hash of its key, one of its prompt), and a few more for each metric.
"""

from __future__ import annotations

import gzip
import json
import time
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

from ..data.questions import Questions
from ..data.scores import Group, Run, Scores, Skipped
from ..errors import InputError
from ..stats.contrast import question_stats
from .atomic import write_bytes

KIND = "harness-noise run kept for a gate"
NOT_KEPT = "a kept run has only means over questions"
_FILES = "run-*.json.gz"
_KEY, _PROMPT = 12, 8
_LARGEST = 1 << 30
"""Bytes of a kept run when unpacked: some twenty million questions."""
_DAMAGED = OSError, EOFError, zlib.error, MemoryError, RecursionError
_FOREIGN = ValueError, LookupError, TypeError, AttributeError
"""What other values in it than ours raise."""
_FIELDS = ("task", "metric", "scorer", "higher_is_better", "bounds", "version", "cluster_spec", "diagnostics")


def is_store(path: object) -> bool:
    """Whether it is a folder of kept runs."""
    folder = Path(str(path))
    return folder.is_dir() and any(folder.glob(_FILES))


def read_kept(folder: object) -> list[Run]:
    """The runs of a folder, the oldest first.

    Raises:
        InputError: a file that cannot be used.
    """
    return [_read(path) for path in sorted(Path(str(folder)).glob(_FILES))]


def _read(path: Path) -> Run:
    try:
        with gzip.open(path) as file:
            data = file.read(_LARGEST + 1)
        head = json.loads(data)
        if len(data) > _LARGEST or head["kind"] != KIND:
            raise ValueError
        questions = [Questions(**_tuples(entry)) for entry in head["questions"]]
        scores, parts = (tuple(_scores(part, questions) for part in head[name]) for name in ("scores", "parts"))
        groups = tuple(Group(**_tuples(group)) for group in head["groups"])
        skipped = tuple(Skipped(task, metric, scorer, NOT_KEPT) for task, metric, scorer in head["skipped"])
        return Run(head["model"], head["name"], "kept", scores=scores, parts=parts, groups=groups, skipped=skipped)
    except (*_DAMAGED, *_FOREIGN):
        raise InputError(f"{path}: not a run that `store` has kept, or a damaged one; take it away") from None


def _tuples(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in fields.items()}


def _scores(part: Mapping[str, Any], questions: Sequence[Questions]) -> Scores:
    fields = _tuples({name: value for name, value in part.items() if name not in ("questions", "mean")})
    values = np.array(part["mean"], dtype=np.float64)[:, None]
    return Scores(questions=questions[part["questions"]], values=values, **fields)


def comparable(run: Run) -> Run:
    """The run with its questions called as in a kept one."""
    done: dict[int, Questions] = {}

    def renamed(part: Scores) -> Scores:
        q = part.questions
        if id(q) not in done:
            prompts = None if q.prompts is None else _digests(q.prompts, _PROMPT)
            done[id(q)] = Questions(_digests(q.keys, _KEY), q.kind, prompts=prompts)
        return replace(part, questions=done[id(q)])

    return replace(run, scores=tuple(map(renamed, run.scores)), parts=tuple(map(renamed, run.parts)))


def _digests(texts: Sequence[str], size: int) -> tuple[str, ...]:
    return tuple(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=size).hexdigest() for text in texts)


def keep(run: Run, folder: Path, last: int) -> list[Path]:
    """Write what a gate needs of a run, unless it is there, and remove all but the `last`; the file that was written.

    Raises:
        InputError: a folder that cannot be written to.
    """
    content = _content(comparable(run))
    name = blake2b(content, digest_size=6).hexdigest()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.glob(f"run-*-{name}.json.gz")):
            return []
        path = folder / f"run-{time.time_ns():020d}-{name}.json.gz"
        write_bytes(path, content)
        for old in sorted(folder.glob(_FILES))[:-last]:
            old.unlink(missing_ok=True)
    except OSError as error:
        raise InputError(f"{folder}: the run cannot be kept ({error.strerror})") from None
    return [path]


def _content(run: Run) -> bytes:
    questions = {id(part.questions): part.questions for part in (*run.scores, *run.parts)}
    place = {key: i for i, key in enumerate(questions)}

    def kept(part: Scores) -> dict[str, Any]:
        labels = {label: str(i) for i, label in enumerate(dict.fromkeys(part.clusters or ()))}
        clusters = None if part.clusters is None else [labels[label] for label in part.clusters]
        own = {"questions": place[id(part.questions)], "mean": question_stats(part.values).mean.tolist()}
        return {name: getattr(part, name) for name in _FIELDS} | own | {"clusters": clusters}

    head = {
        "kind": KIND,
        "model": run.model,
        "name": run.name,
        "questions": [{"keys": q.keys, "kind": q.kind, "prompts": q.prompts} for q in questions.values()],
        "scores": [kept(part) for part in run.scores if part.per is None],
        "parts": [kept(part) for part in run.parts if part.per is None],  # what only the groups need stays theirs
        "groups": [asdict(replace(group, native=None)) for group in run.groups],
        "skipped": [
            part.key for part in (*run.corpus, *run.skipped, *(part for part in run.scores if part.per is not None))
        ],
    }
    return gzip.compress(json.dumps(head).encode(), mtime=0)
