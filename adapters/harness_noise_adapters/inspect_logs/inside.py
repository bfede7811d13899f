"""What of Inspect is not public and the stopping of a task needs, each guarded: its options, and its plan of samples.

A task gets its `early_stopping` from its code; the flag puts one onto a copy of the running task. And Inspect starts
all first epochs, then all second ones, so that no question has all its answers before nearly all is asked: the plan is
put into the order of the blocks, and its results come back in Inspect's own. Each sample waits for its turn before it
takes one of Inspect's slots; else all of a small data set is under way before the first look.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable
from copy import copy
from typing import TYPE_CHECKING, Any

from .live import current
from .rescore import WRAPPED

if TYPE_CHECKING:
    from .stopper import Stopper
    from .stopping import Stopping

_RUN = "inspect_ai._eval.task.run"


def options() -> Any | None:
    """The `TaskRunOptions` of the task that awaits us; None where there are none of the kind that we know."""
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_name == "task_run" and frame.f_globals.get("__name__") == _RUN:
            found = frame.f_locals.get("options")
            return found if hasattr(getattr(found, "task", None), "early_stopping") else None
        if frame.f_back is None:
            return None
        frame = frame.f_back
    return None


def stop_with(found: Any, stopping: Stopping) -> None:
    """Let the running task be stopped; the user's own object is not touched, which may be run again."""
    task = copy(found.task)
    task.early_stopping = stopping
    found.task = task


def reorder() -> bool:
    """Let plans of samples pass by here, once; False if Inspect makes them in no way that we know."""
    try:
        from inspect_ai._eval.task import run

        scheduler = getattr(run, "SampleScheduler", None)
        owner, name = (run, "tg_collect") if scheduler is None else (scheduler, "run")
        original: Callable[..., Any] = getattr(owner, name)
        if hasattr(original, WRAPPED):
            return True
        parameters = list(inspect.signature(original).parameters)
    except Exception:  # noqa: BLE001  private symbols may fail in any way
        return False
    known, wrap = (["funcs"], _collecting) if scheduler is None else (["self", "plan", "run_sample"], _scheduling)
    if parameters[: len(known)] != known:
        return False
    wrapper = functools.wraps(original)(wrap(original))
    setattr(wrapper, WRAPPED, original)
    setattr(owner, name, wrapper)
    return True


def uninstall() -> None:
    """Give Inspect its own functions back."""
    from inspect_ai._eval.task import run

    scheduler = getattr(run, "SampleScheduler", None)
    owner, name = (run, "tg_collect") if scheduler is None else (scheduler, "run")
    function = getattr(owner, name, None)
    if hasattr(function, WRAPPED):
        setattr(owner, name, getattr(function, WRAPPED))


def _stopper() -> Stopper | None:
    """Of the task whose plan it is."""
    live = current.get()
    return None if live is None else live.stopper


def _scheduling(original: Callable[..., Any]) -> Callable[..., Any]:
    async def run(self: Any, plan: Any, run_sample: Any, **kwargs: Any) -> Any:
        stopper = _stopper()
        if stopper is None:
            return await original(self, plan, run_sample, **kwargs)

        async def in_turn(index: int, epoch: int, *rest: Any) -> Any:
            await stopper.turn(index)
            result = await run_sample(index, epoch, *rest)
            stopper.ended(index, epoch)
            return result

        results = await original(self, [plan[i] for i in stopper.planned(plan)], in_turn, **kwargs)
        return {key: results[key] for key in plan if key in results} | results

    return run


def _collecting(original: Callable[..., Any]) -> Callable[..., Any]:
    async def tg_collect(funcs: Any, *args: Any, **kwargs: Any) -> Any:
        funcs = list(funcs)
        plan = [item.args for item in funcs if len(getattr(item, "args", ())) == 2]
        stopper = _stopper()
        if stopper is None or len(plan) < len(funcs):
            return await original(funcs, *args, **kwargs)

        async def in_turn(at: int) -> Any:
            await stopper.turn(plan[at][0])
            result = await funcs[at]()
            stopper.ended(*plan[at])
            return result

        order = stopper.planned(plan)
        results = await original([functools.partial(in_turn, at) for at in order], *args, **kwargs)
        place = {i: at for at, i in enumerate(order)}
        return [results[place[i]] for i in range(len(funcs))]

    return tg_collect
