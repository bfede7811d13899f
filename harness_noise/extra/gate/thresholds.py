"""Threshold files as inference engines keep them: the score that each task of an lm-eval run must reach."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ...arrays import HUGE
from ...errors import InputError
from ...io.paths import PathInput, opened, resolve_path

_LARGEST = 1 << 18
"""Largest size of a file in bytes. Its reader needs seconds for a megabyte."""
_DEEPEST = 20
Threshold = tuple[tuple[str, str, str], float, float, int | None]
"""Task, metric and filter ("" matches any), the value, the share of it that may be lost, questions of each task."""


def read_thresholds(path: PathInput, *, bare: bool = False) -> list[Threshold]:
    """Read thresholds (key, value, rtol, limit) of a YAML file, in order. Refuse none (unless `bare`), two of one row.

    Two forms are known: `tasks`, a list of names, each with `metrics`, a list of `name` and `value`; and `lmeval` (or
    the top level) with `task` and metrics as keys. Metrics are called `exact_match` or `exact_match,strict-match`.
    `rtol` and `limit` hold for all that is below them unless a task or metric has its own. With `bare` there may be
    none.

    Raises:
        InputError: it cannot be read, or a value is no number.
    """
    content = _yaml(resolve_path(path))
    try:
        out = [(key, *_checked(path, key, value, rtol, limit)) for key, value, rtol, limit in _values(content)]
    except (AttributeError, KeyError, TypeError):
        out, bare = [], False
    if not out and not bare:
        raise InputError(
            f"{path}: no thresholds: write tasks: [{{name: gsm8k, metrics: [{{name: 'exact_match,strict-match', value: "
            "0.83}]}]"
        )
    names = [key for key, *_ in out]
    if twice := next((key for key in names if names.count(key) > 1), None):
        raise InputError(f"{path}: {' '.join(filter(None, twice))} has two thresholds")
    return out


def read_recovery(path: PathInput) -> float | None:
    """Read a YAML file's `recovery_threshold`, a share below 2 of the baseline. None without one. Refuse others.

    Raises:
        InputError: it cannot be read, or is not one share for all metrics.
    """
    content = _yaml(resolve_path(path))
    block = content.get("lmeval")
    share = (block if isinstance(block, Mapping) else content).get("recovery_threshold")
    if share is None:
        return None
    if isinstance(share, bool) or not isinstance(share, (int, float)) or not 0 < share < 2:
        raise InputError(f"{path}: recovery_threshold {share!r} is not one share of the baseline, such as 0.95")
    return float(share)


def _yaml(path: Path) -> Mapping[str, Any]:
    try:
        import yaml
    except ImportError:
        raise InputError(f"{path}: thresholds are YAML, which needs PyYAML: pip install pyyaml") from None
    try:
        with opened(path) as file:
            text = file.read(_LARGEST + 1)
        if len(text) > _LARGEST:
            raise InputError(f"{path}: more than {_LARGEST // 1000} kB, and no file of thresholds is that large")
        depth = 0
        for event in yaml.parse(text, yaml.SafeLoader):
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if isinstance(event, yaml.AliasEvent) or depth > _DEEPEST:
                raise InputError(f"{path}: has YAML aliases (*name), or is nested without end: write plain values")
        content = yaml.safe_load(text)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None
    except InputError:
        raise
    except Exception as error:  # noqa: BLE001  what a tag makes of a value that does not fit it
        where = getattr(error, "problem_mark", None)
        line = f", line {where.line + 1}" if where is not None else ""
        raise InputError(f"{path}{line}: not YAML that can be read") from None
    return content if isinstance(content, Mapping) else {}


def _values(content: Mapping[str, Any]) -> Iterator[tuple[tuple[str, str, str], Any, Any, Any]]:
    tasks = content.get("tasks") or ()
    if "tasks" not in content:
        block = content.get("lmeval") or content
        named = block.get("metrics") or {name: value for name, value in block.items() if "," in str(name)}
        metrics = [{"name": name, "value": value} for name, value in named.items()]
        tasks = [{**block, "name": block.get("task", ""), "metrics": metrics}]
    for task in tasks:
        for metric in task.get("metrics") or ():
            chosen = {"rtol": 0.0, "limit": None, **content, **task, **metric}
            name, _, scorer = str(metric["name"]).partition(",")
            yield (str(task["name"]), name, scorer), metric["value"], chosen["rtol"], chosen["limit"]


def _checked(path: PathInput, key: tuple[str, ...], value: Any, rtol: Any, limit: Any) -> tuple[float, float, Any]:
    what = " ".join(filter(None, key))
    for name, number in (("value", value), ("rtol", rtol)):
        if isinstance(number, bool) or not isinstance(number, (int, float)) or not -HUGE <= number <= HUGE:
            raise InputError(f"{path}: the {name} of {what} is {number!r:.80}, not a number")
    if not 0 <= rtol < 1:
        raise InputError(f"{path}: rtol {rtol:g} of {what} is not a share below 1, such as 0.05")
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 1):
        raise InputError(f"{path}: the limit of {what} is {limit!r}, not a number of questions")
    return float(value), float(rtol), limit
