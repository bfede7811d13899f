"""Private parts of Inspect by which a task is asked in our order, and stopped.

Each is wrapped once, and left alone if it is not as we know it.

- A task gets its `early_stopping` from its code; the flag puts one onto a copy of the running task.
- Inspect starts all samples in the order of the data set. The plan of samples is put into our order, and its results
  come back in Inspect's own. Each sample waits for its turn before it takes one of Inspect's slots; else all of a
  small data set is under way before the first look.

A `SampleSource` (Inspect 0.3.277) cannot take the place of the last two. It was tried with Inspect 0.3.285:

- `task_run` reads the task's source in its first lines. The first hook of a task, `on_task_start`, comes later and gets
  no `Task`, nor does `on_run_start`. A source that is put in there is ignored, and everything is asked: only the task's
  own code could stop a run, and no flag. What is missing is a hook that gets the `Task` before its samples are read.
- The log of a source has no `sample_ids`, 0 as the number of samples and no `early_stopping`, so that it does not say
  what was left out. `--limit` then cuts our random order and not the data set.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Awaitable, Callable
from copy import copy
from importlib import import_module
from typing import TYPE_CHECKING, Any

from ....inspect_logs.private import RUN, wrap_once
from .stopper import Stopper, current_stopper

if TYPE_CHECKING:
    from inspect_ai.util import EarlyStopping


def stop_with(running: Any, stopping: EarlyStopping) -> None:
    """Set an early-stopping object on a copy of the running task, so the user's own task stays unchanged.

    The user's own object, which may be run again, is not touched.
    """
    task = copy(running.task)
    task.early_stopping = stopping
    running.task = task


def reorder() -> bool:
    """Patch Inspect to start samples in a stopper's order and tell it of their ends. Return False if it cannot."""
    try:
        run = import_module(RUN)
        owner, name, wrap, expected = run, "tg_collect", _collecting, ["funcs"]
        if hasattr(run, "SampleScheduler"):  # older versions have a function in its place
            owner, name, wrap, expected = run.SampleScheduler, "run", _scheduling, ["self", "plan", "run_sample"]
        if list(inspect.signature(getattr(owner, name)).parameters)[: len(expected)] != expected:
            return False
        wrap_once(owner, name, wrap)
    except Exception:  # noqa: BLE001  private symbols may fail in any way
        return False
    return True


async def _ask_in_turn(stopper: Stopper, answer: tuple[int, int], ask: Callable[[], Awaitable[Any]]) -> Any:
    """Wait until an answer's turn comes, get it, and tell the stopper of its end, but not if getting it raises."""
    await stopper.turn(*answer)
    result = await ask()
    stopper.ended(*answer)
    return result


def _scheduling(original: Callable[..., Any]) -> Callable[..., Any]:
    async def run(self: Any, plan: Any, run_sample: Any, **kwargs: Any) -> Any:
        stopper = current_stopper()
        if stopper is None:
            return await original(self, plan, run_sample, **kwargs)

        async def in_turn(index: int, epoch: int, *rest: Any) -> Any:
            return await _ask_in_turn(stopper, (index, epoch), functools.partial(run_sample, index, epoch, *rest))

        results = await original(self, [plan[i] for i in stopper.planned(plan)], in_turn, **kwargs)
        return {key: results[key] for key in plan if key in results} | results

    return run


def _collecting(original: Callable[..., Any]) -> Callable[..., Any]:
    async def tg_collect(funcs: Any, *args: Any, **kwargs: Any) -> Any:
        funcs = list(funcs)
        plan = [function.args for function in funcs if len(getattr(function, "args", ())) == 2]
        stopper = current_stopper()
        if stopper is None or len(plan) < len(funcs):
            return await original(funcs, *args, **kwargs)

        order = stopper.planned(plan)
        results = await original(
            [functools.partial(_ask_in_turn, stopper, plan[i], funcs[i]) for i in order], *args, **kwargs
        )
        place = {i: at for at, i in enumerate(order)}
        return [results[place[i]] for i in range(len(funcs))]

    return tg_collect
