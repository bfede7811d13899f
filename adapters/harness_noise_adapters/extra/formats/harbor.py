"""Harbor: each trial has a folder with a `result.json`, in the folder of its job (models/job/result.py, 0.26).

A question is a task of the dataset, verified by the checksum of its files; its trials are its answers, in the order
in which they were started. A trial without rewards is missing, by the cause that Harbor gives its exception.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import replace
from itertools import product
from pathlib import Path
from statistics import fmean
from typing import Any

from harness_noise import InputError
from harness_noise.data.answers import Answers
from harness_noise.data.native_values import reproduces
from harness_noise.data.notes import Note
from harness_noise.data.numbers import finite
from harness_noise.data.scores import ReadOptions, Run

from ...records import ReadOnly, document, field, head, uncollected
from .harbor_trials import DAMAGED, read_trial

RESULT = "result.json"


class HarborAdapter(ReadOnly):
    """The adapter of Harbor. It follows `harness_noise.io.protocol`."""

    name = "harbor"
    about = "Harbor jobs and trials (folders with a result.json), read only"
    owns_folders = True
    instead = "its plugin `noise` writes a noise.json"

    def sniff(self, path: Path) -> bool:
        """Return True if a path is a Harbor job or trial folder, or the result.json of one.

        A killed job has only the results of its trials."""
        if path.name == RESULT or not path.is_dir():
            return path.name == RESULT and _kind(path) != ""
        return _kind(path / RESULT) != "" or any(_kind(child / RESULT) == "trial" for child in path.iterdir())

    @uncollected()
    def read(self, path: Path, options: ReadOptions) -> list[Run]:
        """Read a Harbor job into one Run per agent, version, model and settings. Refuse one without results."""
        folder = path.parent if path.is_file() else path
        trials, job, notes = _trials(folder, options)
        auto = {trial["source"]: "repository" for trial in trials}
        auto |= {trial["source"]: None for trial in trials if "repository" not in trial}
        groups: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
        for trial in sorted(trials, key=lambda trial: str(trial["started"])):
            groups[trial["system"], trial["source"]].append(trial)
        keys = Counter(group[0]["key"] for group in groups.values())
        systems = {system: Answers(folder, options, kind="task", auto=auto.get) for system, _ in groups}
        for (system, source), group in groups.items():
            names = list(dict.fromkeys(name for trial in group for name in trial["rewards"])) or ["reward"]
            for trial, name in product(group, names):
                value = trial["lost"] if trial["lost"] is not None else trial["rewards"].get(name)
                systems[system].add(source, name, "none", trial["question"], None, value, trial)
            for name in names if keys[group[0]["key"]] == 1 else ():
                native = _native(job, group, name, alone=len(names) == 1)
                systems[system].describe(source, name, "none", native=native, native_of_answers=True)
        date = str(field(job, "started_at") or "")
        runs = [answers.run(system, self.name, date=date) for system, answers in systems.items()]
        return [replace(run, notes=(*notes, *run.notes)) for run in runs]


adapter = HarborAdapter()


def _kind(path: Path) -> str:
    start = head(path)
    return "trial" if b'"trial_name"' in start else "job" if b'"n_total_trials"' in start else ""


def _trials(folder: Path, options: ReadOptions) -> tuple[list[dict[str, Any]], Any, list[Note]]:
    """Return (trials, job's data or None, notes on what is unread or unfinished). Refuse a folder without trials."""
    kind = _kind(folder / RESULT)
    job, trials, notes, unfinished = None, [], list[Note](), 0
    for name in sorted(child.name for child in folder.iterdir()):
        file = folder / RESULT if name == RESULT else folder.joinpath(name, RESULT)
        try:
            if name != RESULT or kind == "trial":
                trials.append(read_trial(file))
            elif kind == "job":
                job = document(file, DAMAGED)
        except InputError as error:
            if not file.is_file():
                unfinished += file.with_name("config.json").is_file()
            elif options.strict:
                raise
            else:
                notes.append(Note("left_out", f"left out: {error}"))
    if unfinished:
        said = f"{folder}: {unfinished} trials have no {RESULT}: they are still running, or were lost"
        notes.append(Note("not_all_read", said))
    if not trials:
        raise InputError(f"{folder}: no trial in it has a result{f' ({notes[0].as_text()})' if notes else DAMAGED}")
    planned = field(job, "n_total_trials")
    if isinstance(planned, int) and planned > len(trials):
        notes.append(Note("not_all_read", f"{folder}: of {planned} trials of the job {len(trials)} are read"))
    return trials, job, notes


def _native(job: Any, group: list[dict[str, Any]], name: str, *, alone: bool) -> float | None:
    """Return Harbor's own mean of a reward (missing counts as 0), None if unknown or not comparable.

    A single reward is called mean.

    None also if that mean includes invalid rewards, because it is then a mean of other answers than ours.
    """
    metrics = field(job, "stats", "evals", group[0]["key"], "metrics")
    native = finite(field(metrics[0], "mean" if alone else name)) if isinstance(metrics, list) and metrics else None
    values = [trial["rewards"].get(name) or 0.0 for trial in group]
    invalid = any(trial["rewards"] and trial["lost"] is not None for trial in group)
    return None if native is None or (invalid and reproduces(fmean(values), native)) else native
