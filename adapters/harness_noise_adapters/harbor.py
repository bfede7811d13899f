"""Harbor: each trial has a folder with a `result.json`, in the folder of its job (models/trial/result.py, 0.25).

A question is a task of the dataset, verified by the checksum of its files; its trials are its answers, in the order
in which they were started. A trial without rewards is missing, by the cause that Harbor gives its exception.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from contextlib import suppress
from datetime import datetime
from hashlib import sha256
from itertools import product
from pathlib import Path
from statistics import fmean
from typing import Any

from harness_noise import InputError
from harness_noise.data.answers import Answers
from harness_noise.data.native_values import reproduces
from harness_noise.data.scores import ReadOptions, Run
from harness_noise.io.paths import load

from .records import ReadOnly, document, field, head, number, score, uncollected

RESULT = "result.json"
DAMAGED = ": was it written by Harbor, and is it whole?"
POLICY = {
    "infrastructure": "EnvironmentStartTimeout SandboxBuildFailed AgentSetupTimeout Healthcheck "
    "SandboxLikelyOutOfMemory "
    "MemoryLimitExceeded SSHAccess GKEExecStreamClosed GKEPodNotFound RuntimeRequest AddTestsDir "
    "DownloadVerifierDir Api ApiRateLimit ApiInternalServer ApiOverloaded ApiConnectionClosed "
    "ApiResponseStalled UnknownApi NetworkConnection ApiConnection ApiUsageLimit RateLimit InternalServer "
    "ServiceUnavailable APIConnection API Timeout BadRequest UnprocessableEntity UnsupportedParams "
    "APIResponseValidation BudgetExceeded AgentAuthentication ModelNotFound NotFound "
    "ApiProviderResourceNotFound Authentication PermissionDenied ServiceOperationsUnsupported VercelScope "
    "DspyImport MissingExtra Regrade",
    "limit": "AgentTimeout ContextWindowExceeded OutputTokenExceeded ContextLengthExceeded OutputLengthExceeded",
    "refused": "AgentSafetyRefusal ContentPolicyViolation",
    "verifier": "VerifierTimeout RewardFileNotFound RewardFileEmpty VerifierOutputParse",
    "agent": "NonZeroAgentExitCode",
    "unanswered": "Cancelled",
}
"""Cause → exceptions without their ending `Error`: models/trial/error_policy.py of Harbor 0.25."""
CAUSES = {name: cause for cause, names in POLICY.items() for name in names.split()}
SHORT = 5
"""Characters of a task's name that may be a word of a setting by chance."""
LONG = 40
"""Characters of a setting that a name shows."""
COSTS = ("cost_usd", "n_input_tokens", "n_cache_tokens", "n_output_tokens")
INSTANCE = re.compile(r".+__.+-\d+")
"""A task of SWE-bench: a repository and the number of a pull request."""
INVALID = ("infrastructure", "verifier", "unanswered")
"""Causes after which a reward says nothing of the agent (`TrialResult.reward_valid`); Harbor's mean has it."""
HIDDEN = re.compile("key|token|secret|password|auth|credential", re.IGNORECASE)
"""Settings of an agent whose words are not in its name: they may be secrets."""


class HarborAdapter(ReadOnly):
    """Harbor jobs and trials (folders with a result.json), read only"""

    name = "harbor"
    owns_folders = True
    instead = "its plugin `noise` writes a noise.json"

    def sniff(self, path: Path) -> bool:
        """A job or a trial, or the result.json of one; a job that was killed has only those of its trials."""
        if path.name == RESULT or not path.is_dir():
            return path.name == RESULT and _kind(path) != ""
        return _kind(path / RESULT) != "" or any(_kind(child / RESULT) == "trial" for child in path.iterdir())

    def read(self, path: Path, options: ReadOptions) -> list[Run]:
        """One Run for each agent, its version, model and settings."""
        folder = path.parent if path.is_file() else path
        with uncollected():
            trials, job, notes = _trials(folder, options)
        auto = {trial["source"]: "repository" for trial in trials}
        auto |= {trial["source"]: None for trial in trials if "repository" not in trial}
        groups: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
        for trial in sorted(trials, key=lambda trial: str(trial["started"])):
            groups[trial["system"], trial["source"]].append(trial)
        keys = Counter(group[0]["key"] for group in groups.values())
        systems: dict[str, Answers] = {}
        for (system, source), group in groups.items():
            if system not in systems:
                systems[system] = Answers(folder, options, kind="task", auto=auto.get)
                systems[system].notes += notes
            names = list(dict.fromkeys(name for trial in group for name in trial["rewards"])) or ["reward"]
            for trial, name in product(group, names):
                value = trial["lost"] if trial["lost"] is not None else trial["rewards"].get(name)
                systems[system].add(source, name, "none", trial["question"], None, value, trial)
            for name in names if keys[group[0]["key"]] == 1 else ():
                native = _native(job, group, name, alone=len(names) == 1)
                systems[system].describe(source, name, "none", native=native, native_of_answers=True)
        date = str(field(job, "started_at") or "")
        return [answers.run(system, self.name, date=date) for system, answers in systems.items()]


adapter = HarborAdapter()


def _kind(path: Path) -> str:
    start = head(path)
    return "trial" if b'"trial_name"' in start else "job" if b'"n_total_trials"' in start else ""


def _trials(folder: Path, options: ReadOptions) -> tuple[list[dict[str, Any]], Any, list[str]]:
    """The trials of a folder, what the job says of itself, and what is to be said of those that cannot be read."""
    kind = _kind(folder / RESULT)
    if kind == "trial":
        return [_trial(folder / RESULT)], None, []
    job, found, notes, unfinished = None, [], [], 0
    for name in sorted(child.name for child in folder.iterdir()):
        file = folder / RESULT if name == RESULT else folder.joinpath(name, RESULT)
        try:
            if name != RESULT:
                found.append(_trial(file))
            elif kind == "job":
                job = document(file, DAMAGED)
        except InputError as error:
            if not file.is_file():
                unfinished += file.with_name("config.json").is_file()
            elif options.strict:
                raise
            else:
                notes.append(f"left out: {error}")
    if unfinished:
        notes.append(f"{folder}: {unfinished} trials have no {RESULT}: they are still running, or were lost")
    if not found:
        raise InputError(f"{folder}: no trial in it has a result{f' ({notes[0]})' if notes else DAMAGED}")
    planned = field(job, "n_total_trials")
    if isinstance(planned, int) and planned > len(found):
        notes.append(f"{folder}: of {planned} trials of the job {len(found)} are read")
    return found, job, notes


def _trial(path: Path) -> dict[str, Any]:
    """The fields of one answer."""
    read = load(path, DAMAGED)
    found = read if isinstance(read, dict) else {}
    info: Any = found.get("agent_info")
    rewards = field(found.get("verifier_result"), "rewards")
    name, agent, checksum = found.get("task_name"), field(info, "name"), found.get("task_checksum")
    if not (isinstance(name, str) and isinstance(agent, str) and isinstance(rewards, dict | None)):
        raise InputError(f"{path}: no task, agent and rewards{DAMAGED}")
    source, version, asked = str(found.get("source") or "adhoc"), info.get("version"), info.get("model_info")
    model = field(asked, "name")
    labels = (f"{agent}@{version}" if version not in (None, "unknown") else agent, field(asked, "provider"), model)
    said = _settings(field(found.get("config"), "agent", "kwargs"), version, name.rpartition("/")[2])
    later = found.get("step_results")
    steps = [found, *(later if isinstance(later, list) else ())]
    raised = [text for step in steps if isinstance(text := field(step, "exception_info", "exception_type"), str)]
    causes = [CAUSES.get(text.removesuffix("Error")) for text in raised]
    invalid = next(filter(INVALID.__contains__, causes), None)
    cause = invalid or (causes[0] if causes else None)
    trial = {
        "question": f"{name} ({str(checksum)[-12:]})" if checksum else name, "task_name": name, "source": source,
        "system": "/".join(str(label) for label in labels if label) + (f" ({said})" if said else ""),
        "key": "__".join(str(part) for part in (agent, model, source) if part), "exception": (*raised, "none")[0],
        "lost": cause if invalid or not rewards else None,
        "started": found.get("started_at") or "", "checksum": checksum,
        "rewards": {key: score(value, f"{path}, {key}") for key, value in (rewards or {}).items()},
    }  # fmt: skip
    if INSTANCE.fullmatch(name):
        trial["repository"] = name.rpartition("-")[0]
    return trial | _costs(found, steps)


def _costs(found: dict[str, Any], steps: list[Any]) -> dict[str, float]:
    """What a trial has used, as `TrialResult.compute_token_cost_totals` counts it, and its seconds."""
    out: dict[str, float] = {}
    contexts = [used] if (used := found.get("agent_result")) else [field(step, "agent_result") for step in steps]
    for context in contexts:
        for cost in COSTS if isinstance(context, dict) else ():
            if (value := number(context.get(cost))) is not None:
                out[cost] = out.get(cost, 0.0) + value
    with suppress(ValueError, TypeError):  # not known, or one of them is without its time zone
        begun, ended = (field(found, "agent_execution", end) for end in ("started_at", "finished_at"))
        out["seconds"] = (datetime.fromisoformat(ended) - datetime.fromisoformat(begun)).total_seconds()
    return out


def _settings(known: Any, version: Any, task: str) -> str:
    """An agent's settings, for its name: without words that may be a secret, and with a hash of what is long.

    A setting that names the task (an id of the trial) is that of the agent for every task.
    """
    out = []
    for key, value in sorted(known.items()) if isinstance(known, dict) else ():
        said = str(value)
        if len(task) > SHORT and task in said:
            said = re.sub(rf"(?<!\w){re.escape(task)}(?!\w)", "TASK", said)
        secret = isinstance(value, str) and HIDDEN.search(key) is not None
        if value is not None and not secret and (key, said) != ("version", str(version)):
            long = isinstance(value, (dict, list)) or len(said) > LONG
            out.append(f"{key}={sha256(said.encode('utf-8', 'replace')).hexdigest()[:6] if long else said}")
    return ", ".join(out)


def _native(job: Any, group: list[dict[str, Any]], name: str, *, alone: bool) -> float | None:
    """The job's own mean of a reward, in which a trial without one counts as 0; one reward alone is called mean.

    None also where that mean has rewards that are not valid, so that it is of other answers than ours.
    """
    metrics = field(job, "stats", "evals", group[0]["key"], "metrics")
    native = number(field(metrics[0], "mean" if alone else name)) if isinstance(metrics, list) and metrics else None
    values = [trial["rewards"].get(name) or 0.0 for trial in group]
    invalid = any(trial["rewards"] and trial["lost"] is not None for trial in group)
    return None if native is None or (invalid and reproduces(fmean(values), native)) else native
