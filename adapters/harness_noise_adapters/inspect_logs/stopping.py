"""Inspect's protocol `EarlyStopping`: before each sample it asks whether that is still wanted.

The calls come from the samples' own tasks: after the start nothing is raised. A fault ends the looks, with one
warning, and the run goes on to its end, or to that of its random part.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness_noise.errors import InputError
from harness_noise.inspect_ext import refuse

from . import hook, inside
from .asking import Asking, idle
from .flags import ASKING, Flag, flag
from .header import RECORD
from .inject import _message
from .live import current
from .starting import stopper_of
from .stopper import Stopper

if TYPE_CHECKING:
    from inspect_ai.dataset import Sample
    from inspect_ai.log import EvalSpec
    from inspect_ai.scorer import SampleScore
    from inspect_ai.util import EarlyStop

logger = logging.getLogger("harness_noise")
MANAGER = "harness-noise"
"""How the log names us."""


def stop_early(asking: Mapping[str, Any]) -> str | None:
    """Let Inspect ask us before each sample of the task that starts here, unless its own code has seen to it.

    Returns:
        Why the task must not start: this Inspect has no early stopping that we know.
    """
    found = inside.options()
    present = None if found is None else found.task.early_stopping
    if isinstance(present, Stopping):
        return None
    first = next((name for name in ASKING if name in asking), None)
    if first is None:
        logger.warning("noise: %s; everything is asked", idle(next(iter(asking))))
        return None
    if found is None:
        return f"noise_{first}: this Inspect has no early stopping that we know"
    refused = None
    if present is not None:
        refused = "the task has an early stopping of its own: leave out one of the two"
    elif getattr(found.task, "sample_source", None) is not None:
        refused = "the task's samples come from a SampleSource, of which nobody knows how many there will be"
    inside.stop_with(found, Stopping(asking, None if refused is None else f"{found.task.name}: {refused}"))
    return None


@dataclass(frozen=True, slots=True)
class Stopping:
    """Inspect's `EarlyStopping`, for any number of tasks at a time."""

    asking: Mapping[str, Any]
    refused: str | None = None
    """Why the task must not start."""
    folder: str = field(default_factory=lambda: str(Path.cwd()))
    """From which relative paths are meant."""

    async def start_task(self, task: EvalSpec, samples: list[Sample], epochs: int) -> str:
        """Read what is compared with, and draw the order.

        Raises:
            InputError: it cannot be done; then the task ends before it has asked anything.
        """
        from anyio import to_thread

        if self.refused is not None:
            refuse(InputError(self.refused))
        live = current.get()
        if live is None or live.spec.eval_id != task.eval_id:  # the task's code asks, and no flag is on
            settings = flag({**(task.metadata or {}), "noise": True})
            assert settings is not None
            live = hook.begin(task, Flag(settings.settings, self.asking))
        live.flag = replace(live.flag, asking={**live.flag.asking, **self.asking})  # the task's own code wins
        found = inside.options()
        folders = [str(Path.cwd()), self.folder, *([found.eval_wd] if found is not None else [])]
        refused: InputError | None = None
        try:
            asking = Asking.of(live.flag)
            live.stopper = await to_thread.run_sync(stopper_of, live, samples, epochs, asking, folders)
        except InputError as error:
            refused = error
        except Exception as error:  # noqa: BLE001  anything else would be asked, and paid for
            refused = InputError(f"{task.task}: it cannot be stopped early ({_message(error)}); leave it out")
        if refused is not None:
            refuse(refused)
        return MANAGER

    async def schedule_sample(self, id: str | int, epoch: int) -> EarlyStop | None:
        """Whether an answer is not to be asked for."""
        stopper = self._stopper()
        if stopper is None:
            return None
        try:
            await stopper.wait(str(id), epoch)
            reason = stopper.reason(str(id), epoch)
        except Exception as error:  # noqa: BLE001  a guest never takes the host down
            stopper.fault(error)
            return None
        if reason is None:
            return None
        from inspect_ai.util import EarlyStop

        return EarlyStop(id=id, epoch=epoch, reason=reason)

    async def complete_sample(self, id: str | int, epoch: int, scores: dict[str, SampleScore]) -> None:
        """An answer has its scores."""
        stopper = self._stopper()
        if stopper is not None:
            try:
                stopper.answered(str(id), epoch, scores)
                stopper.look()
            except Exception as error:  # noqa: BLE001
                stopper.fault(error)

    async def complete_task(self) -> dict[str, Any]:
        """What was decided, for the log."""
        live = current.get()
        if live is None or live.stopper is None:
            return {}
        try:
            for i, epoch in live.stopper.started:
                live.stopper.ended(i, epoch)
            live.to_say += live.stopper.summary()
            return {RECORD: live.stopper.record()}
        except Exception as error:  # noqa: BLE001
            live.stopper.fault(error)
            return {}

    @staticmethod
    def _stopper() -> Stopper | None:
        live = current.get()
        return None if live is None else live.stopper
