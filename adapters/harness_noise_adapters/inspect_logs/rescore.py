"""Scores that change after the run: `inspect score`, `edit_score`, `recompute_metrics`.

Inspect then computes its metrics again from the log, and what a hook has appended is gone. Where the log's noise
is on, ours are computed again with them: from the new scores, with the settings of the run or of the export.

No public hook comes by there. As in the run, the function that computes results is wrapped, in the two modules
that call it; what the log says is known from a call before it.
"""

from __future__ import annotations

import functools
import inspect
import logging
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, TypeAlias

from harness_noise.settings import Settings

from . import inject
from .flags import Flag, flag

if TYPE_CHECKING:
    from inspect_ai.log import EvalLog

logger = logging.getLogger("harness_noise")

WRAPPED = "_harness_noise_wraps"
"""The attribute of a wrapper that holds what it wraps."""
USED = {"samples", "scores", "reducers", "scorers", "metrics"}
"""The arguments of `eval_results` without which it is not the function that we know."""
RECORD = "harness_noise"
"""Of an export, in the log's metadata."""
Renewer: TypeAlias = "Callable[[EvalLog, Any, Any, int], None]"
_log: ContextVar[EvalLog | None] = ContextVar("harness_noise_rescored", default=None)


def install(renew: Renewer) -> bool:
    """Wrap what Inspect computes metrics again with, once; False if it is not what we know.

    Args:
        renew: adds the noise to new results; called with a log, its results, their scores and how many samples.
    """
    try:
        from inspect_ai._eval import score
        from inspect_ai.log import _metric

        if hasattr(score.eval_results, WRAPPED):
            return True
        known = all(inspect.signature(module.eval_results).parameters.keys() >= USED for module in (score, _metric))
        first = {
            function: next(iter(inspect.signature(getattr(score, function)).parameters), None)
            for function in ("resolve_scorers_info", "score_async")
        }
    except Exception:  # noqa: BLE001  private symbols may fail in any way
        return False
    if not known or set(first.values()) != {"log"}:
        return False
    for module in (score, _metric):
        module.eval_results = _with_noise(module.eval_results, renew)
    score.resolve_scorers_info = _noting(score.resolve_scorers_info)
    _replace_everywhere(score.score_async, _noting_async(score.score_async))
    return True


def uninstall() -> None:
    """Give Inspect its own functions back."""
    from inspect_ai._eval import score
    from inspect_ai.log import _metric

    for module in (score, _metric):
        module.eval_results = getattr(module.eval_results, WRAPPED, module.eval_results)
    score.resolve_scorers_info = getattr(score.resolve_scorers_info, WRAPPED, score.resolve_scorers_info)
    _replace_everywhere(score.score_async, getattr(score.score_async, WRAPPED, score.score_async))


def _replace_everywhere(old: Any, new: Any) -> None:
    """In the modules of Inspect that have taken a function by its name."""
    for name in ("inspect_ai", "inspect_ai._eval.score", "inspect_ai._cli.score"):
        module = sys.modules.get(name)
        if module is not None and getattr(module, "score_async", None) is old:
            module.score_async = new  # type: ignore[attr-defined]


def _noting(original: Callable[..., Any]) -> Callable[..., Any]:
    """The last call of `recompute_metrics` before it computes results; it is given the log."""

    @functools.wraps(original)
    def noting(log: EvalLog, *args: Any, **kwargs: Any) -> Any:
        _log.set(log)
        return original(log, *args, **kwargs)

    setattr(noting, WRAPPED, original)
    return noting


def _noting_async(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    async def noting(log: EvalLog, *args: Any, **kwargs: Any) -> Any:
        token = _log.set(log)
        try:
            return await original(log, *args, **kwargs)
        finally:
            _log.reset(token)

    setattr(noting, WRAPPED, original)
    return noting


def _with_noise(original: Callable[..., Any], renew: Renewer) -> Callable[..., Any]:
    signature = inspect.signature(original)

    @functools.wraps(original)
    def eval_results(*args: Any, **kwargs: Any) -> Any:
        out = original(*args, **kwargs)
        log = _log.get()
        if log is None:
            return out
        _log.set(None)
        try:
            given = signature.bind(*args, **kwargs).arguments
            renew(log, out[0], given["scores"], given["samples"])
        except (KeyboardInterrupt, SystemExit, GeneratorExit):
            raise
        except BaseException as error:  # noqa: BLE001  a fault here would lose the new scores
            with suppress(Exception):
                _lost(log, error)
        return out

    setattr(eval_results, WRAPPED, original)
    return eval_results


def flag_of(log: EvalLog) -> Flag | None:
    """The flag of a finished log: that of its run, or else the settings of the export that added the numbers.

    Raises:
        InputError: a value that is not understood.
    """
    on = flag(log.eval.metadata)
    if on is not None:
        return on
    if not any(inject.injected(es) for es in (log.results.scores if log.results else ())):
        return None
    record = (log.metadata or {}).get(RECORD)
    names = ("level", "se", "interval", "cluster")
    chosen = {name: record[name] for name in names if name in record} if isinstance(record, Mapping) else {}
    if "level" in chosen:
        chosen["level"] = float(chosen["level"])
    return Flag(Settings(**chosen))


def _lost(log: EvalLog, error: BaseException) -> None:
    from .inject import _message

    logger.warning(
        "noise: %s: the new scores have no error bars (%s); `harness-noise export LOG -o DIR` adds them",
        log.eval.task,
        _message(error),
    )
