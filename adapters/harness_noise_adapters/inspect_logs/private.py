"""Private parts of Inspect that the noise needs. Each is wrapped once, and left alone if it is not as we know it.

- `eval_results` computes the results of a task. No public hook comes between them and the log, nor between a log that
  is scored again (`inspect score`, `edit_score`, `recompute_metrics`) and its new results, in which what a hook has
  appended is gone. Ours are added to both.
"""

from __future__ import annotations

import functools
import inspect
import logging
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from importlib import import_module
from types import FrameType
from typing import TYPE_CHECKING, Any

from harness_noise.errors import error_message
from harness_noise.settings import Settings

from . import inject
from .flags import Flag, flag
from .live import current
from .records import EXPORT

if TYPE_CHECKING:
    from inspect_ai.log import EvalLog

logger = logging.getLogger("harness_noise")

WRAPPED = "_harness_noise_wraps"
"""The attribute of a wrapper that holds what it wraps."""
USED = {"samples", "scores", "reducers", "scorers", "metrics"}
"""The arguments of `eval_results` without which it is not the function that we know."""
RUN = "inspect_ai._eval.task.run"
_SHOWING = "compute"
"""The function there that computes metrics for the display alone."""

Adding = Callable[[Any, Any, Any], None]
"""Called with a task or a log, its results and their scores."""
Failed = Callable[[Any, BaseException], None]


def wrap_once(owner: Any, name: str, wrap: Callable[[Callable[..., Any]], Callable[..., Any]]) -> None:
    """Replace a function of Inspect by a wrapper, unless that has been done."""
    original = getattr(owner, name)
    if not hasattr(original, WRAPPED):
        wrapper = functools.wraps(original)(wrap(original))
        setattr(wrapper, WRAPPED, original)
        setattr(owner, name, wrapper)


def wrap_results(add: Adding, failed: Failed) -> bool:
    """Wrap the function that computes running tasks' results. False if Inspect's is not as expected.

    Args:
        add: adds the noise to the results of a task of ours.
        failed: is told of a task and the error by which its noise was lost.
    """
    return _wrap_results({RUN: None}, _running, add, failed)


def wrap_rescoring(renew: Adding) -> bool:
    """Wrap the functions that score logs again. False if Inspect's are not as expected.

    Args:
        renew: adds the noise to the new results of a log.
    """
    callers = {"inspect_ai._eval.score": "score_async", "inspect_ai.log._metric": "recompute_metrics"}
    return _wrap_results(callers, _log_of_caller, renew, _not_renewed)


def _wrap_results(callers: Mapping[str, str | None], subject: Callable[[], Any], add: Adding, failed: Failed) -> bool:
    """Wrap `eval_results` in several Inspect modules. False if one is not as expected.

    Where a function there calls it, that function is to have a `log`.
    """
    try:
        modules = list(map(import_module, callers))
        for module, caller in zip(modules, callers.values(), strict=True):
            fits = inspect.signature(module.eval_results).parameters.keys() >= USED
            if not fits or (caller is not None and "log" not in inspect.signature(getattr(module, caller)).parameters):
                return False
        for module in modules:
            wrap_once(module, "eval_results", functools.partial(_with_noise, subject, add, failed))
    except Exception:  # noqa: BLE001  a private symbol may fail in any way
        return False
    return True


def _with_noise(
    subject: Callable[[], Any], add: Adding, failed: Failed, original: Callable[..., Any]
) -> Callable[..., Any]:
    """Return `eval_results` wrapped to also add our metrics for what `subject` returns, if any. `failed` gets errors.

    It adds nothing if `subject` returns None.
    """
    signature = inspect.signature(original)

    def eval_results(*args: Any, **kwargs: Any) -> Any:
        out, of = original(*args, **kwargs), None
        try:
            if (of := subject()) is not None:
                add(of, out[0], signature.bind(*args, **kwargs).arguments["scores"])
        except (KeyboardInterrupt, SystemExit, GeneratorExit):
            raise
        except BaseException as error:  # noqa: BLE001  a fault here would lose the results
            with suppress(Exception):
                failed(of, error)
        return out

    return eval_results


def _running() -> Any:
    """Return our task whose final results are being computed, None for interim results or another task.

    Inspect shows interim results while samples run.
    """
    return None if sys._getframe(2).f_code.co_name == _SHOWING else current.get()


def _log_of_caller() -> EvalLog | None:
    """Return the log that Inspect's calling function is scoring again, from its local variables.

    That is `score_async` or `recompute_metrics`.
    """
    return sys._getframe(2).f_locals.get("log")


def flag_of(log: EvalLog) -> Flag | None:
    """Return a finished log's `Flag`: by an export's record if it has our metrics, else by metadata. Refuse bad values.

    Raises:
        InputError: a value that is not understood.
    """
    on = flag(log.eval.metadata, of_file=True)
    if not any(inject.injected(es) for es in (log.results.scores if log.results else ())):
        return on
    record = (log.metadata or {}).get(EXPORT)
    record = record if isinstance(record, Mapping) else {}
    names = ("level", "se", "interval", "cluster")
    chosen = {name: record[name] for name in names if record.get(name) is not None}
    if "level" in chosen:
        chosen["level"] = float(chosen["level"])
    on = on or Flag(Settings(), of_file=True)
    return replace(on, settings=replace(on.settings, **chosen))


def _not_renewed(log: EvalLog, error: BaseException) -> None:
    logger.warning(
        "noise: %s: the new scores have no error bars (%s). `harness-noise export LOG -o DIR` adds them",
        log.eval.task,
        error_message(error),
    )


def options() -> Any | None:
    """Return the `options` object (with `task`) of the Inspect task calling us, by its stack frame, or None."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_name == "task_run" and frame.f_globals.get("__name__") == RUN:
            running = frame.f_locals.get("options")
            return running if hasattr(getattr(running, "task", None), "early_stopping") else None
        frame = frame.f_back
    return None
