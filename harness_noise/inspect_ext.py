"""Objects that Inspect registers: the hooks behind the flag, and a metric for task authors.

Inspect finds registered objects by the name of their import package, so they are here. The Inspect adapter does the
work. It is loaded only if the flag is on or the metric is used.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from inspect_ai.hooks import Hooks, RunEnd, SampleEnd, TaskEnd, TaskStart, hooks
from inspect_ai.scorer import Metric, SampleScore, Value, metric
from inspect_ai.util import LimitExceededError

if TYPE_CHECKING:
    from inspect_ai.util import EarlyStopping

logger = logging.getLogger(__name__)
_too_few: ContextVar[str] = ContextVar("harness_noise_too_few", default="")
"""The reason why the metric `noise` of this task has no numbers, until it has been said."""

__all__ = ["NoiseHooks", "keep_noise", "noise", "stop_when"]
_HOOK = "harness_noise_adapters.inspect_logs.hook"
"""Loaded by the first task that has to do with us."""


def _hook() -> Any:
    """Return this package's Inspect hook module if it is already imported, else None."""
    return sys.modules.get(_HOOK)


class NoiseSettingError(LimitExceededError):  # type: ignore[misc, unused-ignore]
    """A setting of ours that cannot be followed. Inspect lets a limit out of a hook alone, and shows its class."""


@hooks(name="noise", description="error bars for tasks with noise=true")
class NoiseHooks(Hooks):  # type: ignore[misc, unused-ignore]
    """`inspect eval TASK --epochs K --metadata noise=true [--metadata noise_cluster=KEY]`."""

    async def on_task_start(self, data: TaskStart) -> None:
        refused = self._start(data)
        if refused is not None:  # the one exception that Inspect lets out of a hook: the task ends here
            from harness_noise_adapters.inspect_logs.flags import refuse

            refuse(NoiseSettingError("custom", value=1, limit=0, message=refused))

    def _start(self, data: TaskStart) -> str | None:
        asks = False
        try:
            from harness_noise_adapters.inspect_logs.flags import asks_less, flag, misspelled

            asks = asks_less(data.spec.metadata)
            on = flag(data.spec.metadata)
            if (refused := misspelled(data.spec.metadata, on=on is not None)) is not None:
                return f"{data.spec.task}: {refused}"
            if on is None and _hook() is None:
                return None
            from harness_noise_adapters.inspect_logs import hook

            hook.task_start(data, on)
            if on is None:
                return None
            refused = hook.refused(data.spec, on)
            return refused
        except Exception as error:  # noqa: BLE001  a guest never takes the host down
            if (hook := _hook()) is not None:
                hook.task_off()
            if asks:  # else everything would be asked, and paid for
                return f"{data.spec.task}: {_message(error)}"
            _warn(f"{data.spec.task}: no error bars", error)
            return None

    async def on_sample_end(self, data: SampleEnd) -> None:
        if (hook := _hook()) is not None:
            # what is kept here is looked at only if the run is cancelled, and is then no more than one answer short
            with suppress(Exception):
                hook.sample_end(data)

    async def on_task_end(self, data: TaskEnd) -> None:
        too_few, task = _too_few.get(), data.log.eval.task
        _too_few.set("")
        if (hook := _hook()) is not None:
            # where the flag says the same of the task, one warning says it
            if too_few and hook.to_say(f"{task}: {too_few}"):
                too_few = ""
            try:
                await hook.task_end(data)
            except Exception as error:  # noqa: BLE001
                _warn("the end of a task", error)
        if too_few:
            logger.warning("noise: %s: %s", task, too_few)

    async def on_run_end(self, data: RunEnd) -> None:
        if (hook := _hook()) is not None:
            try:
                hook.run_end(data)
            except Exception as error:  # noqa: BLE001
                _warn("the end of the run", error)


def _warn(what: str, error: Exception) -> None:
    """Log a warning about an exception, and never fail even if the exception cannot be printed."""
    logger.warning("noise: %s (%s)", what, _message(error))


def _message(error: Exception) -> str:
    try:
        return str(error)
    except Exception:  # noqa: BLE001  anybody's exception, anybody's words
        return type(error).__name__


@metric(scores="unreduced")  # type: ignore[untyped-decorator, unused-ignore]
def noise(cluster: str | None = None, level: float = 0.95) -> Metric:
    """Return an Inspect metric for the noise of the mean score, as in `metrics=[accuracy(), noise()]`.

    Inspect shows it as a second group of numbers: `noise_se`, the standard error of the mean over
    epochs, `noise_ci_low` and `noise_ci_high`, and, where the epochs tell them apart, `noise_total`,
    `noise_data` and `noise_prediction`; where the estimate of the data variance is below 0,
    `noise_data_upper`, the limit of the data noise, in place of `noise_data`, and, where the total is
    less than its part, that estimate, `noise_var_data`. What cannot be estimated is left out.
    It never raises: a fault is a warning.

    Args:
        cluster: the key of the samples' metadata, or a dotted path, that related questions share. Not a template,
            because a log that is scored again names this metric, too; `--metadata noise_cluster` takes one.
        level: coverage of the confidence interval, in (0, 1).
    """

    warned: set[str] = set()  # Inspect computes its metrics again and again while a task runs

    def compute(scores: list[SampleScore]) -> Value:
        try:
            from harness_noise_adapters.inspect_logs.gather import noise_of

            numbers, why = noise_of(scores, cluster, level)
            if why is not None:
                _too_few.set(why)  # said at the end of the task: during the task it is not news
            return dict(numbers)
        except Exception as error:  # noqa: BLE001  a metric that raises would lose the whole eval
            text = _message(error)
            if text not in warned:
                warned.add(text)
                logger.warning("noise: no error bars (%s)", text)
            return {}

    return compute


def stop_when(
    against: str | os.PathLike[str] | None = None,
    *,
    se: float | None = None,
    metric: str | None = None,
    complete: Sequence[str | os.PathLike[str]] = (),
    **choices: Any,
) -> EarlyStopping:
    """Return an Inspect object that ends a task once it is decided, for `Task(early_stopping=stop_when(…))`.

    The dataset must be shuffled with a seed (`--sample-shuffle 42`; 1 means on, without a seed). A look takes all
    answers of its block, and what was under way when one stops the task is finished. `results.early_stopping` of
    the log holds what was decided.

    Args:
        against: log, or folder with one log of the task, of the model to compare with.
        se: in place of `against`: stop when the standard error of the mean is at most this.
        metric: the scorer, or the key of its dictionaries, that decides; needed where there are several.
        complete: logs of models that have answered all questions, which the looks learn from.
        choices: `order` ("breadth", the default: all questions once before any twice; "depth"), and with `against`
            also `looks` (20, or "anytime": after every block), `margin` (also stop where the two are equivalent
            within ±margin), `spending` ("hsd", "obrien-fleming", "pocock"), `futility` (True: stop where the rest
            cannot decide it) and `effect` (a difference that futility must not miss).

    Raises:
        InputError: no such choice, or not one of `against` and `se`.
    """
    from harness_noise_adapters.extras import extra

    found: EarlyStopping = extra("stopping.of_inspect.stopping", "`stop_when`").of_code(
        against, se=se, metric=metric, complete=complete, choices=choices
    )
    return found


def keep_noise() -> bool:
    """Make Inspect's `edit_score`, `recompute_metrics` and `score` renew a log's error bars. Return False if it cannot.

    `inspect score`, a process with HARNESS_NOISE=1 and one that has run a task with the flag on do so by
    themselves; a script that only edits logs calls this first.

    Returns:
        False if this Inspect is not one that we know; then `harness-noise export` adds the numbers again.
    """
    from harness_noise_adapters.inspect_logs import private

    def renew(*args: Any) -> None:
        from harness_noise_adapters.inspect_logs import hook  # with numpy, where a score is computed at all

        hook.renew(*args)

    return private.wrap_rescoring(renew)


def _asked_for() -> bool:
    """Return True if this process rescores logs, or has error bars switched on for everything."""
    import click

    context = click.get_current_context(silent=True)
    while context is not None:
        if context.info_name == "score":
            return True
        context = context.parent
    if not os.environ.get("HARNESS_NOISE"):  # nothing of ours is loaded unless it is asked for
        return False
    from harness_noise_adapters.inspect_logs.flags import flag

    return flag(None) is not None


def _keep_where_asked_for() -> None:
    try:
        if _asked_for() and not keep_noise():
            logger.warning(
                "noise: this Inspect is not one that we know: new scores have no error bars. "
                "`harness-noise export LOG -o DIR` adds them"
            )
    except Exception as error:  # noqa: BLE001  a guest never takes the host down
        _warn("scores that are computed again have no error bars", error)


_keep_where_asked_for()
