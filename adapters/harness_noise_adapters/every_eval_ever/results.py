"""Results of Every Eval Ever: what `UUID.json` says of each metric of a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from harness_noise import InputError
from harness_noise.data.answers import compared
from harness_noise.data.native_values import fitting
from harness_noise.data.scores import Run, Scores, Skipped

from ..records import document, number
from ..records import field as value_at

DAMAGED = ": was it written for Every Eval Ever, and is it whole?"
NAME, RESULT = "evaluation_name", "evaluation_result_id"


@dataclass(frozen=True, slots=True)
class Results:
    """The results of a run; none where there is no file of them."""

    path: Path | None = None
    data: dict[str, Any] = field(default_factory=dict)
    """The file as it is."""
    names: Sequence[tuple[str, str]] = ()
    """Task and metric of each result; its own id as the task where two would be called alike."""

    @classmethod
    def read(cls, path: Path | None) -> Results:
        """The results of a file.

        Raises:
            InputError: it has no list of results with what makes a result.
        """
        if path is None:
            return cls()
        data = document(path, DAMAGED)
        items = value_at(data, "evaluation_results")
        for needed in ("metric_config", "score_details"):
            if not isinstance(items, list) or not all(isinstance(value_at(item, needed), dict) for item in items):
                raise InputError(f"{path}: no list of evaluation_results, each with its {needed}{DAMAGED}")
        configs = [item["metric_config"] for item in items]
        metrics = [str(config.get("metric_id") or config.get("metric_name") or "score") for config in configs]
        names = [(str(item.get(NAME)), metric) for item, metric in zip(items, metrics, strict=True)]
        unique = [
            name if names.count(name) == 1 else (str(item.get(RESULT) or name[0]), name[1])
            for item, name in zip(items, names, strict=True)
        ]
        return cls(path, data, unique)

    @property
    def items(self) -> list[dict[str, Any]]:
        """The results themselves."""
        found: list[dict[str, Any]] = self.data.get("evaluation_results", [])
        return found

    def called(self, key: str) -> list[int]:
        """The places of the results that have this id or name."""
        return [i for i, item in enumerate(self.items) if key in (str(item.get(RESULT)), str(item.get(NAME)))]

    def alone(self, harness: str) -> Run:
        """The run of which there are no samples: each result is listed without an error bar."""
        why, values = "its samples are not here", [number(item["score_details"].get("score")) for item in self.items]
        skipped = tuple(Skipped(*name, "none", why, value) for name, value in zip(self.names, values, strict=True))
        about = self.data.get("model_info")
        model = value_at(about, "id") or value_at(about, "name") or (self.path and self.path.stem)
        return Run(str(model), str(self.path), harness, path=str(self.path), skipped=skipped)

    def described(self, part: Scores, place: int) -> Scores:
        """The scores with the names, range, direction and value that the result at this place gives."""
        item, (task, metric) = self.items[place], self.names[place]
        config, value = item["metric_config"], number(item["score_details"].get("score"))
        ends = [end for name in ("min_score", "max_score") if (end := number(config.get(name))) is not None]
        bounds = (0.0, 1.0) if config.get("score_type") == "binary" else (ends[0], ends[1]) if len(ends) == 2 else None
        lower = config.get("lower_is_better")
        higher, fitted = None if lower is None else not lower, fitting(bounds, part.values)
        part = replace(part, task=task, metric=metric, higher_is_better=higher, bounds=fitted, native=value)
        return compared(part)
