"""Trials of Harbor, each a `result.json` on one answer (models/trial/result.py and error_policy.py, 0.26)."""

from __future__ import annotations

import re
import tomllib
from contextlib import suppress
from datetime import datetime
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Any

from harness_noise import InputError
from harness_noise.data.numbers import finite, score_of

from ...records import document, field

DAMAGED = ": was it written by Harbor, and is it whole?"
_POLICY = tomllib.loads(files(__package__).joinpath("harbor_causes.toml").read_text("utf-8"))
CAUSES = {name: cause for cause, names in _POLICY.items() for name in names}
"""Exception without its ending `Error` → cause, as Harbor's own policy has them."""
SHORT = 5
"""Characters of a task's name that may be a word of a setting by chance."""
LONG = 40
"""Characters of a setting that a name shows."""
COSTS = ("cost_usd", "n_input_tokens", "n_cache_tokens", "n_output_tokens")
INSTANCE = re.compile(r".+__.+-\d+")
"""A task of SWE-bench: a repository and the number of a pull request."""
INVALID = ("infrastructure", "verifier", "unanswered")
"""Causes after which a reward does not judge the agent (`TrialResult.reward_valid`). Harbor's mean includes it."""
HIDDEN = re.compile("key|token|secret|password|auth|credential", re.IGNORECASE)
"""Settings of an agent whose words are not in its name: they may be secrets."""


def read_trial(path: Path) -> dict[str, Any]:
    """Read a trial's file as a dict: question, task_name, source, system, key, rewards, lost (cause), costs, …."""
    data = document(path, DAMAGED, dict)
    info: Any = data.get("agent_info")
    rewards = field(data.get("verifier_result"), "rewards")
    name, agent, checksum = data.get("task_name"), field(info, "name"), data.get("task_checksum")
    if not (isinstance(name, str) and isinstance(agent, str) and isinstance(rewards, dict | None)):
        raise InputError(f"{path}: no task, agent and rewards{DAMAGED}")
    source, version, model_info = str(data.get("source") or "adhoc"), info.get("version"), info.get("model_info")
    model = field(model_info, "name")
    names = (f"{agent}@{version}" if version not in (None, "unknown") else agent, field(model_info, "provider"), model)
    said = _settings(field(data.get("config"), "agent", "kwargs"), version, name.rpartition("/")[2])
    later = data.get("step_results")
    steps = [data, *(later if isinstance(later, list) else ())]
    raised = [text for step in steps if isinstance(text := field(step, "exception_info", "exception_type"), str)]
    causes = [CAUSES.get(text.removesuffix("Error")) for text in raised]
    invalid = next(filter(INVALID.__contains__, causes), None)
    cause = invalid or (causes[0] if causes else None)
    trial = {
        "question": f"{name} ({str(checksum)[-12:]})" if checksum else name,
        "task_name": name,
        "source": source,
        "system": "/".join(str(each) for each in names if each) + (f" ({said})" if said else ""),
        "key": "__".join(str(part) for part in (agent, model, source) if part),
        "exception": (*raised, "none")[0],
        "lost": cause if invalid or not rewards else None,
        "started": data.get("started_at") or "",
        "checksum": checksum,
        "rewards": {key: score_of(value, f"{path}, {key}") for key, value in (rewards or {}).items()},
    }
    if INSTANCE.fullmatch(name):
        trial["repository"] = name.rpartition("-")[0]
    return trial | _costs(data, steps)


def _costs(data: dict[str, Any], steps: list[Any]) -> dict[str, float]:
    """Return a trial's tokens and cost (its own, else the sum of its steps) and seconds, where the file has them."""
    out: dict[str, float] = {}
    contexts = [used] if (used := data.get("agent_result")) else [field(step, "agent_result") for step in steps]
    for context in contexts:
        for cost in COSTS if isinstance(context, dict) else ():
            if (value := finite(context.get(cost))) is not None:
                out[cost] = out.get(cost, 0.0) + value
    with suppress(ValueError, TypeError):  # not known, or one of them is without its time zone
        begun, ended = (field(data, "agent_execution", end) for end in ("started_at", "finished_at"))
        out["seconds"] = (datetime.fromisoformat(ended) - datetime.fromisoformat(begun)).total_seconds()
    return out


def _settings(kwargs: Any, version: Any, task: str) -> str:
    """Return an agent's settings as text for the run's name: no secrets, long values hashed, the task as TASK.

    A setting that names the task (an id of the trial) is that of the agent for every task.
    """
    out = []
    for key, value in sorted(kwargs.items()) if isinstance(kwargs, dict) else ():
        said = str(value)
        if len(task) > SHORT and task in said:
            said = re.sub(rf"(?<!\w){re.escape(task)}(?!\w)", "TASK", said)
        secret = isinstance(value, str) and HIDDEN.search(key) is not None
        if value is not None and not secret and (key, said) != ("version", str(version)):
            long = isinstance(value, (dict, list)) or len(said) > LONG
            out.append(f"{key}={sha256(said.encode('utf-8', 'replace')).hexdigest()[:6] if long else said}")
    return ", ".join(out)
