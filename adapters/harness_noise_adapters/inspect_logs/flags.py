"""Is the flag on, and with which settings? From a task's metadata, else from the environment.

`noise`, `noise_cluster`, `noise_level`, `noise_estimator` and `noise_interval` in the metadata of a task or of
`inspect eval --metadata` (Inspect lets the task win); `HARNESS_NOISE`, `HARNESS_NOISE_CLUSTER`, … are the
default of a fleet. `noise_until`, `noise_sample`, `noise_repeats` and `noise_complete`, with what belongs to them,
say how much is asked; they are of one run, so no environment has them, and they switch the flag on by themselves.
`noise_measures` names the tokens and times whose noise joins that of the scores.
This module loads nothing, because it runs before it is known whether the flag is on.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

from harness_noise.data.clusters import FileSpec, Spec, UserSpec
from harness_noise.data.measures import UNITS
from harness_noise.errors import InputError, is_now
from harness_noise.settings import Settings

from ..asking import REFINING, SWITCHING, number

NAMES = {"cluster": "cluster", "level": "level", "estimator": "se", "interval": "interval"}
"""Name of a setting → field of `Settings`. `noise_se` is not among them, because it is a metric of the log."""
_FORMER = "noise_se"
"""The name of `noise_estimator` in older logs."""
_ON, _OFF = {"1", "true", "yes", "on"}, {"", "0", "false", "no", "off"}


def refuse(error: Exception) -> NoReturn:
    """Raise an error without our traceback, so that Inspect shows its sentence only."""
    _rich_traceback_guard = True  # what rich asks for: no frame down to this one is shown
    raise error.with_traceback(None) from None


@dataclass(frozen=True, slots=True)
class Flag:
    """The flag, switched on."""

    settings: Settings
    asking: Mapping[str, Any] = field(default_factory=dict)
    """The options of `SWITCHING` and `REFINING` as they were written. Without one of the first all is asked."""

    measures: tuple[str, ...] = ()
    """Tokens, times and cost, whose noise joins that of the scores."""
    of_file: bool = False
    """True if a finished log has the flag, False if the user of this run gave it."""

    @property
    def cluster(self) -> Spec | None:
        """SPEC (field, path or template) by which questions are clustered for the error bars, None if not set."""
        text = self.settings.cluster
        return None if text is None else FileSpec(text) if self.of_file else UserSpec(text)


def flag(
    metadata: Mapping[str, Any] | None, environment: Mapping[str, str] = os.environ, *, of_file: bool = False
) -> Flag | None:
    """Return the `Flag` of a run by its metadata (also if they only ask less), else by environment. None if off.

    Args:
        metadata: of the task, over those of the run.
        environment: the default of a fleet.
        of_file: whether a finished log has them, in which `noise_se` may be the estimator.

    Raises:
        InputError: a value that is not understood.
    """
    metadata = metadata or {}
    if "noise" in metadata:
        on = _switch(metadata["noise"], "the metadata value noise")
    else:
        on = environment.get("HARNESS_NOISE", "").strip().lower() not in _OFF or asks_less(metadata)
    if not on:
        return None

    def setting(name: str) -> Any:
        value = metadata.get(f"noise_{name}")
        return value if value is not None else environment.get(f"HARNESS_NOISE_{name.upper()}") or None

    chosen: dict[str, Any] = {field: value for name, field in NAMES.items() if (value := setting(name)) is not None}
    if of_file and "se" not in chosen and metadata.get(_FORMER) is not None:
        chosen["se"] = metadata[_FORMER]
    if "level" in chosen:
        chosen["level"] = number(chosen["level"], "noise_level")
    if "cluster" in chosen:
        chosen["cluster"] = cluster_text(chosen["cluster"])
    return Flag(
        Settings(**chosen), _written(metadata, (*SWITCHING, *REFINING)), _measures(setting("measures") or ()), of_file
    )


def _measures(value: Any) -> tuple[str, ...]:
    """Parse the names of measures from a list or a comma-separated text. Refuse unknown ones.

    Raises:
        InputError: one that a log does not have of every answer.
    """
    names = tuple(dict.fromkeys(part.strip() for part in (value.split(",") if isinstance(value, str) else value)))
    if unknown := [name for name in names if name not in UNITS]:
        raise InputError(f"noise_measures={unknown[0]}: a running task knows {', '.join(UNITS)}")
    return names


def asks_less(metadata: Mapping[str, Any] | None) -> bool:
    """Return True if metadata hold an option that makes a run ask fewer than all questions."""
    return bool(_written(metadata or {}, SWITCHING))


def misspelled(metadata: Mapping[str, Any] | None, *, on: bool) -> str | None:
    """Return a hint on a name that nearly is or was our option (flag off: one that asks less). None if there is none.

    A task may have metadata of its own that begin like ours, so only what is nearly a name of ours is taken for it,
    and, where the flag is off, only what would ask less.
    """
    from difflib import get_close_matches

    for name in metadata or {}:
        if now := is_now(str(name)):
            return now
    names = (*SWITCHING, *REFINING, *NAMES, "measures")
    if on and _FORMER in (metadata or {}):
        return f"{_FORMER} is a metric and no setting: write noise_estimator"
    for name in map(str, metadata or {}):
        stem = name.removeprefix("noise_")
        near = get_close_matches(stem, names, 1, 0.8) if stem != name and stem not in names else []
        if near and (on or near[0] in SWITCHING):
            return f"{name} is no setting: write noise_{near[0]}, or call it otherwise"
    return None


def _written(metadata: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    written = {name: metadata.get(f"noise_{name}") for name in names}
    off = {name for name, value in written.items() if value is None or (value is False and name != "futility")}
    return {name: value for name, value in written.items() if name not in off}


def cluster_text(value: Any) -> str:
    """Return a cluster SPEC from metadata as text: {task: SPEC} becomes "task=SPEC,…", and False "none"."""
    if isinstance(value, Mapping):
        return ",".join(f"{task}={spec}" for task, spec in value.items())
    return "none" if value is False else str(value)


def _switch(value: Any, what: str) -> bool:
    word = str(value).strip().lower()
    if value is None or word in _OFF:
        return False
    if word in _ON:
        return True
    raise InputError(f"{what}={value!r} is neither true nor false. Clusters are named by noise_cluster=KEY")
