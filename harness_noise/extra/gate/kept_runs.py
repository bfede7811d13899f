"""Runs kept for a gate: question keys, scores and clusters of the last runs that passed, one small file each.

A question takes some 22 bytes (a hash of its key, one of its prompt), and a few more for each metric.
"""

from __future__ import annotations

import gzip
import json
import math
import os
import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path
from types import NoneType
from typing import Any, get_args

import numpy as np

from ..._version import __version__
from ...arrays import HUGE
from ...data.native_values import are_zero_one
from ...data.numbers import is_infinite
from ...data.questions import Questions
from ...data.scores import Group, Run, Scores, Skipped, Weighting
from ...errors import InputError
from ...io.atomic import alone, write_bytes
from ...io.paths import loads, opened
from ...stats.contrast import question_stats

KIND = "harness-noise run kept for a gate"
NOT_KEPT = "a kept run has only means over questions"
_FILES = "run-*.json.gz"
_OURS = re.compile(r"run-(\d+)-[0-9a-f]{12}\.json\.gz")
"""Pattern of our files' names. No other file is ever removed."""
_KEY, _PROMPT = 12, 8
_LARGEST = 1 << 28
"""Bytes of a kept run when unpacked: more than `paths.NODES` have."""
_DAMAGED = OSError, EOFError, zlib.error, MemoryError, RecursionError
_FOREIGN = ValueError, LookupError, TypeError, AttributeError, ArithmeticError
"""Errors that foreign values in it raise."""
_FIELDS = ("task", "metric", "scorer", "higher_is_better", "bounds", "version", "cluster_spec", "diagnostics")
_RIGHT = "of_right"
"""A field that files of earlier versions lack. Then the values alone say what they are."""


def is_store(path: object) -> bool:
    """Return True if a path is a folder with runs that a gate has kept."""
    folder = Path(str(path))
    return folder.is_dir() and any(folder.glob(_FILES))


def read_kept(folder: object) -> list[Run]:
    """Read the runs that a gate has kept in a folder, the oldest first. Refuse a broken file.

    Raises:
        InputError: a file that cannot be used.
    """
    return [_read(path) for path in sorted(Path(str(folder)).glob(_FILES))]


def _head(path: Path) -> dict[str, Any]:
    """Read a kept run's file as a dictionary of which only `kind` is checked. Refuse other files.

    Raises:
        InputError: it is no kept run.
    """
    try:
        with opened(path) as packed, gzip.open(packed) as file:
            data = file.read(_LARGEST + 1)
        if len(data) > _LARGEST:
            raise ValueError
        head: dict[str, Any] = loads(data)
        if head["kind"] != KIND:
            raise ValueError
    except (*_DAMAGED, *_FOREIGN):
        raise _not_kept(path) from None
    return head


def _read(path: Path) -> Run:
    head = _head(path)
    try:
        questions = [_questions(**entry) for entry in head["questions"]]
        scores, parts = (tuple(_scores(part, questions) for part in head[name]) for name in ("scores", "parts"))
        groups = tuple(_group(**group) for group in head["groups"])
        skipped = tuple(_skipped(key) for key in head["skipped"])
        model, name = _texts([head["model"], head["name"]], 2)
        return Run(model, name, "kept", scores=scores, parts=parts, groups=groups, skipped=skipped)
    except (*_DAMAGED, *_FOREIGN):
        raise _not_kept(path) from None


def _not_kept(path: Path) -> InputError:
    return InputError(f"{path}: not a run that `store` has kept, or a damaged one. Delete it")


def _texts(values: Any, n: int | None = None) -> tuple[str, ...]:
    """Return a JSON list of texts as a tuple. TypeError for anything else, ValueError unless it has n items."""
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise TypeError
    if n is not None and len(values) != n:
        raise ValueError
    return tuple(values)


def _numbers(values: Any) -> tuple[float, ...]:
    if not isinstance(values, list) or not all(type(value) in (int, float) for value in values):
        raise TypeError
    return tuple(map(float, values))


def _questions(keys: Any, kind: Any, prompts: Any) -> Questions:
    found = _texts(keys)
    if len(set(found)) < len(found):
        raise ValueError
    (what,) = _texts([kind], 1)
    return Questions(found, what, prompts=None if prompts is None else _texts(prompts, len(found)))


def _skipped(key: Any) -> Skipped:
    task, metric, scorer = _texts(key, 3)
    return Skipped(task, metric, scorer, NOT_KEPT)


def _group(*, tasks: Any, weighting: Any, native: None, weights: Any, **names: Any) -> Group:
    """Return a group of a kept run's file, its values checked. Raise ValueError or TypeError for a wrong one."""
    found, shares = _texts(tasks), None if weights is None else _numbers(weights)
    if len(set(found)) < len(found) or not found or weighting not in get_args(Weighting) or native is not None:
        raise ValueError
    if shares is not None and (len(shares) != len(found) or not all(0 < share < math.inf for share in shares)):
        raise ValueError
    _texts(list(names.values()), 3)
    return Group(**names, tasks=found, weighting=weighting, weights=shares)


def _scores(part: Mapping[str, Any], questions: Sequence[Questions]) -> Scores:
    """Return scores of a kept run's file, their values checked. Raise ValueError or TypeError for wrong ones."""
    fields = {name: value for name, value in part.items() if name not in ("questions", "mean")}
    if set(fields) - {_RIGHT} != {*_FIELDS, "clusters"} or part["questions"] < 0:
        raise ValueError
    _texts([part["task"], part["metric"], part["scorer"], part["version"], part["cluster_spec"] or ""], 5)
    if not isinstance(part["higher_is_better"], (bool, NoneType)) or type(part["questions"]) is not int:
        raise TypeError
    if not isinstance(part.get(_RIGHT, False), bool):
        raise TypeError
    bounds, clusters = part["bounds"], part["clusters"]
    if bounds is not None:
        low, high = _numbers(bounds)
        if not -HUGE <= low < high <= HUGE:
            raise ValueError
        bounds = (low, high)
    values = np.array(_numbers(part["mean"]), dtype=np.float64)[:, None]
    if is_infinite(values) or (bounds and ((values < bounds[0]) | (values > bounds[1])).any()):
        raise ValueError
    fields |= {
        "bounds": bounds,
        "diagnostics": _texts(part["diagnostics"]),
        "clusters": None if clusters is None else _texts(clusters, len(values)),
    }
    return Scores(questions=questions[part["questions"]], values=values, **fields)


def comparable(run: Run) -> Run:
    """Return the run with question names and prompts hashed as in kept runs, to match them. Not for a kept run."""
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


ORIGIN = {"commit": "SHA", "branch": "REF_NAME", "event": "EVENT_NAME", "repository": "REPOSITORY"}
"""Field of a kept run's origin → the end of GitHub's name for it, `GITHUB_*`."""


def from_pull_request() -> bool:
    """Return True if this process is a GitHub job of a pull request, which must not keep runs.

    Its code is not accepted yet.
    """
    return os.environ.get("GITHUB_EVENT_NAME", "").startswith("pull_request")


def provenance(folder: object) -> str:
    """Return where a folder's newest run comes from: "main@abc1234, 3 days old", or "". Refuse a broken file.

    Raises:
        InputError: the file cannot be used.
    """
    paths = sorted(Path(str(folder)).glob(_FILES))
    head = _head(paths[-1]) if paths else {}
    commit, time = head.get("commit"), head.get("time")
    if not (isinstance(commit, str) and commit and isinstance(time, str)):
        return ""
    try:
        days = (datetime.now(UTC) - datetime.fromisoformat(time)).days
    except (ValueError, TypeError):
        return ""
    age = f"{days} day{'s' * (days != 1)} old" if days > 0 else "less than a day old"
    return f"{head.get('branch') or 'a branch'}@{commit[:7]}, {age}"


def keep(run: Run, folder: Path, last: int) -> list[Path]:
    """Write a run into a folder, keep the `last` newest. Return [path], [] if it was there. Refuse a barred folder.

    Files are numbered, so that their order is that of writing, whatever a clock says. The last is never removed.

    Raises:
        InputError: a folder that cannot be written to.
    """
    head = _content(comparable(run))
    name = blake2b(json.dumps(head).encode(), digest_size=6).hexdigest()
    origin = {key: os.environ.get(f"GITHUB_{variable}", "") for key, variable in ORIGIN.items()}
    origin |= {"version": __version__, "time": datetime.now(UTC).isoformat(timespec="seconds")}
    try:
        with alone(folder):
            if any(folder.glob(f"run-*-{name}.json.gz")):
                return []
            numbers = [int(match[1]) for path in folder.glob(_FILES) if (match := _OURS.fullmatch(path.name))]
            path = folder / f"run-{max(numbers, default=0) + 1:020d}-{name}.json.gz"
            write_bytes(path, gzip.compress(json.dumps(head | origin).encode(), mtime=0))
            for old in sorted(path for path in folder.glob(_FILES) if _OURS.fullmatch(path.name))[:-last]:
                if old != path:
                    old.unlink(missing_ok=True)
    except OSError as error:
        raise InputError(f"{folder}: the run cannot be kept ({error.strerror})") from None
    return [path]


def _content(run: Run) -> dict[str, Any]:
    questions = {id(part.questions): part.questions for part in (*run.scores, *run.parts)}
    place = {key: i for i, key in enumerate(questions)}

    def kept(part: Scores) -> dict[str, Any]:
        numbers = {name: str(i) for i, name in enumerate(dict.fromkeys(part.clusters or ()))}
        clusters = None if part.clusters is None else [numbers[name] for name in part.clusters]
        own = {"questions": place[id(part.questions)], "mean": question_stats(part.values).mean.tolist()}
        own[_RIGHT] = are_zero_one([part])
        return {name: getattr(part, name) for name in _FIELDS} | own | {"clusters": clusters}

    return {
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
