"""HELM 0.5: a run's folder with `run_spec.json`, `per_instance_stats.json` and `stats.json`.

A question is an instance. Train trials are its repeats and share their examples; a perturbation is a scorer of its own,
as the perturbed instances have their own mean. Counts of tokens and the like are no metrics.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

from harness_noise import InputError
from harness_noise.data.answers import Answers
from harness_noise.data.numbers import finite
from harness_noise.data.scores import ReadOptions, Run

from ...records import ReadOnly, document, field, items, uncollected

DAMAGED = ": was it written by HELM, and is it whole?"
SPEC, STATS, NATIVE, INSTANCES = "run_spec.json", "per_instance_stats.json", "stats.json", "instances.json"
NO_METRIC = re.compile(
    r"num_.*|training_.*|inference_.*|batch_size|finish_reason_.*|max_prob|logprob(_per_byte)?|bits_per_byte|perplexity"
    r"|prompt_truncated|predicted_index|estimated_num_tokens_cost|.*_runtime|runtime|ece_.*|platt_.*|selective_.*"
)
COMMON = ("name", "computed_on", "robustness", "fairness")
"""Keys that every perturbation has."""
MODEL = re.compile(r",?model(_deployment)?=[^,:]*")


class HelmAdapter(ReadOnly):
    """The adapter of HELM. It follows `harness_noise.io.protocol`."""

    name = "helm"
    about = "HELM runs (folders with a per_instance_stats.json), read only"
    owns_folders = True

    def sniff(self, path: Path) -> bool:
        """Return True if a path is a HELM run folder, or one of its two result files."""
        folder = path.parent if path.name in (SPEC, STATS) else path
        return (folder / STATS).is_file() and (folder / SPEC).is_file()

    @uncollected()
    def read(self, path: Path, options: ReadOptions) -> list[Run]:
        """Read a HELM run folder into a list of one Run with all scores by instance. Refuse damaged files."""
        folder = path.parent if path.is_file() else path
        spec, stats = document(folder / SPEC, DAMAGED), folder / STATS
        name, model = field(spec, "name"), field(spec, "adapter_spec", "model")
        if not (isinstance(name, str) and isinstance(model, str)):
            raise InputError(f"{folder / SPEC}: no name and model of a run{DAMAGED}")
        task = MODEL.sub("", name).replace(":,", ":").strip(":,")
        texts = {str(field(row, "id")): field(row, "input", "text") for row in _items_of_file(folder / INSTANCES)}
        answers = Answers(folder, options, kind="instance id", text="input")
        answers.file = stats
        trials = set()
        for place, row in enumerate(items(stats, DAMAGED), 1):
            instance, listed, index = field(row, "instance_id"), field(row, "stats"), field(row, "train_trial_index")
            trial = 0 if index is None else index
            if not (isinstance(instance, str) and isinstance(listed, list)) or finite(trial) is None:
                raise InputError(f"{stats}, entry {place}: no instance and its stats{DAMAGED}")
            trials.add(trial)
            perturbation = _perturbation(row)
            words = texts.get(instance) if perturbation == "none" else None
            doc = {"instance_id": instance, "perturbation": perturbation, "trial": trial, "input": words}
            for metric, split, stat in _metrics(listed):  # the part of the instances that HELM itself separates
                answer = instance, trial, stat.get("mean"), {**doc, "split": split}
                answers.add(_named(task, split), metric, perturbation, *answer, line=place)
        answers.repeats_are_runs = len(trials) > 1
        for stat in _items_of_file(folder / NATIVE):  # HELM's own means of the instances as they are
            name, value = field(stat, "name"), finite(field(stat, "mean"))
            if isinstance(name, dict) and value is not None and not name.get("perturbation"):
                answers.describe(_named(task, _split(name)), str(name.get("name")), "none", native=value)
        return [answers.run(model, self.name)]


adapter = HelmAdapter()


def _metrics(stats: list[Any]) -> Iterator[tuple[str, str, Any]]:
    """Yield (metric name, data split, its statistic) of an instance, without token counts, empty or malformed ones."""
    for stat in stats:
        try:
            name = stat["name"]
            wanted = _is_metric(name["name"]) and stat.get("count")
        except (KeyError, TypeError):
            continue
        if wanted:
            yield str(name["name"]), _split(name), stat


@lru_cache(1 << 12)
def _is_metric(name: object) -> bool:
    return NO_METRIC.fullmatch(str(name)) is None


def _split(name: dict[str, Any]) -> str:
    """Return the name of the data split that a statistic covers, an empty text for the whole test split."""
    return ", ".join(str(part) for part in (name.get("split"), name.get("sub_split")) if part not in (None, "test"))


def _named(task: str, split: str) -> str:
    return f"{task} ({split})" if split else task


def _perturbation(row: Any) -> str:
    """Return the name of an instance's perturbation with its settings, "none" if unchanged."""
    perturbation = field(row, "perturbation")
    if not isinstance(perturbation, dict) or not perturbation:
        return "none"
    settings = ", ".join(f"{key}={value}" for key, value in sorted(perturbation.items()) if key not in COMMON)
    return f"{perturbation.get('name')} ({settings})" if settings else str(perturbation.get("name"))


def _items_of_file(path: Path) -> Iterable[Any]:
    """Yield the items of a JSON list file, nothing if the file does not exist."""
    return items(path, DAMAGED) if path.is_file() else ()
