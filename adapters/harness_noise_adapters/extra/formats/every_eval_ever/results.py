"""Results of Every Eval Ever, as `UUID.json` has them for each metric of a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from harness_noise import InputError
from harness_noise.data.native_values import drop_other_native, fitting_bounds
from harness_noise.data.notes import NO_SAMPLES
from harness_noise.data.numbers import finite
from harness_noise.data.scores import Run, Scores, Skipped

from ....records import document
from ....records import field as value_at

DAMAGED = ": was it written for Every Eval Ever, and is it whole?"
NAME, RESULT = "evaluation_name", "evaluation_result_id"


@dataclass(frozen=True, slots=True)
class Results:
    """The results of a run, empty if they have no file."""

    path: Path | None = None
    data: dict[str, Any] = field(default_factory=dict)
    """The file as it is."""
    names: Sequence[tuple[str, str]] = ()
    """Task and metric of each result. If two results would have the same name, the task is the result's id."""

    @classmethod
    def read(cls, path: Path | None) -> Results:
        """Load a results file (None: no results). Refuse one without a well-formed list of results.

        Raises:
            InputError: it has no list of results with what makes a result.
        """
        if path is None:
            return cls()
        data = document(path, DAMAGED)
        items = value_at(data, "evaluation_results")
        for needed in ("metric_config", "score_details"):
            if not isinstance(items, list) or not all(isinstance(value_at(result, needed), dict) for result in items):
                raise InputError(f"{path}: no list of evaluation_results, each with its {needed}{DAMAGED}")
        configs = [result["metric_config"] for result in items]
        metrics = [str(config.get("metric_id") or config.get("metric_name") or "score") for config in configs]
        names = [(str(result.get(NAME)), metric) for result, metric in zip(items, metrics, strict=True)]
        unique = [
            name if names.count(name) == 1 else (str(result.get(RESULT) or name[0]), name[1])
            for result, name in zip(items, names, strict=True)
        ]
        return cls(path, data, unique)

    @property
    def items(self) -> list[dict[str, Any]]:
        """List of result dictionaries in the file, one for each metric."""
        results: list[dict[str, Any]] = self.data.get("evaluation_results", [])
        return results

    def called(self, key: str) -> list[int]:
        """Return the indices of the results with this id or name."""
        return [i for i, result in enumerate(self.items) if key in (str(result.get(RESULT)), str(result.get(NAME)))]

    def alone(self, harness: str) -> Run:
        """Return a Run without scores for a file without samples: its results are `skipped`, with their values."""
        why = "its samples are not here"
        values = [finite(result["score_details"].get("score")) for result in self.items]
        skipped = tuple(
            Skipped(*name, "none", why, value, NO_SAMPLES) for name, value in zip(self.names, values, strict=True)
        )
        about = self.data.get("model_info")
        model = value_at(about, "id") or value_at(about, "name") or (self.path and self.path.stem)
        return Run(str(model), str(self.path), harness, path=str(self.path), skipped=skipped)

    def described(self, part: Scores, place: int) -> Scores:
        """Return scores with name, direction, range (if it fits) and comparable value of the result at this index."""
        result, (task, metric) = self.items[place], self.names[place]
        config, value = result["metric_config"], finite(result["score_details"].get("score"))
        ends = [end for name in ("min_score", "max_score") if (end := finite(config.get(name))) is not None]
        bounds = (0.0, 1.0) if config.get("score_type") == "binary" else (ends[0], ends[1]) if len(ends) == 2 else None
        lower = config.get("lower_is_better")
        higher, fitted = None if lower is None else not lower, fitting_bounds(bounds, part.values)
        part = replace(part, task=task, metric=metric, higher_is_better=higher, bounds=fitted, native=value)
        return drop_other_native(part)
