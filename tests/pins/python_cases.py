"""The documented functions, on arrays and on the tables of the inputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

import harness_noise as hn

ESTIMATE: Mapping[str, dict[str, Any]] = {
    "default": {},
    **{se: {"se": se} for se in ("cr0", "cr1", "cr3")},
    "level": {"level": 0.8},
    "t": {"interval": "t"},
    "boot": {"interval": "bootstrap", "seed": 3, "resamples": 500},
    "runs": {"repeats_are": "runs"},
    "fixed": {"questions_are": "fixed"},
    "range": {"range": (-1.0, 2.0)},
    "zero": {"missing": "zero"},
    "wrong": {"level": 2},
    "few": {"resamples": 3},
}
DIFFERENCE: Mapping[str, dict[str, Any]] = {
    **{name: value for name, value in ESTIMATE.items() if name not in ("t", "boot")},
    **{test: {"test": test} for test in ("sign", "permutation", "wild")},
    "boot": {"test": "bootstrap", "seed": 3, "resamples": 500},
    "wild-seed": {"test": "wild", "seed": 5, "resamples": 999},
    "margin": {"margin": 0.1},
    "shared": {"repeats_are": "runs", "runs_shared": True},
    "unpaired": {"unpaired": True},
}


def every() -> dict[str, Callable[[], Any]]:
    """Calls by name, each of which returns something that JSON can hold."""
    out: dict[str, Callable[[], Any]] = {}
    for name, (a, b, clusters) in _arrays().items():
        for setting, choices in ESTIMATE.items():
            out[f"estimate/{name}/{setting}"] = partial(_estimate, a, clusters, choices)
        for setting, choices in DIFFERENCE.items():
            out[f"difference/{name}/{setting}"] = partial(_difference, a, b, clusters, choices)
    for name in ("plain", "ragged", "clustered", "missing", "grouped", "many"):
        path = f"tables/{name}.csv"
        out[f"read/{name}"] = partial(_read, path)
        out[f"analyze/{name}"] = partial(_result, hn.analyze, path)
        out[f"arena/{name}"] = partial(_result, hn.arena, path)
    sides = ("tables/side_a.csv", "tables/side_b.csv")
    for setting, choices in DIFFERENCE.items():
        out[f"compare/sides/{setting}"] = partial(_result, hn.compare, *sides, **choices)
    out["compare/questions"] = partial(_result, hn.compare, *sides, questions=3)
    out["compare/two-models"] = partial(_result, hn.compare, "tables/plain.csv", sides[1])
    out["analyze/choices"] = partial(_result, hn.analyze, "tables/metrics.csv", metrics=("acc",), scorers=("strict",))
    out["analyze/groups"] = partial(_result, hn.analyze, "tables/grouped.csv", groups={"sums": "sum_*"}, se="cr3")
    out["analyze/unknown"] = partial(_result, hn.analyze, sides[0], no_such_option=1)
    out["analyze/nowhere"] = partial(_result, hn.analyze, "nowhere")
    out["plan/effect"] = partial(_result, hn.plan, effect=0.05, runs=sides)
    out["plan/accuracy"] = partial(_result, hn.plan, effect=0.05, accuracy=0.7, repeats=3)
    out["plan/nothing"] = partial(_result, hn.plan)
    return out


def _arrays() -> dict[str, tuple[Any, Any, Any]]:
    """name → (n, K) scores of A, of B, and clusters."""
    rng = np.random.default_rng(20)
    ease = rng.random((60, 1))
    a, b = ((rng.random((60, 4)) < ease * share).astype(float) for share in (1.0, 0.8))
    holes = np.where(rng.random((60, 4)) < 0.2, np.nan, a)
    real = rng.normal(size=(30, 3)) + rng.normal(size=(30, 1))
    passage, pairs = np.arange(60) // 4, np.stack([np.arange(60) // 6, np.arange(60) % 6], axis=1)
    return {
        "plain": (a, b, None),
        "clustered": (a, b, passage),
        "crossed": (a, b, pairs),
        "ragged": (holes, b, passage),
        "k1": (a[:, 0], b[:, 0], None),
        "uneven": (a, b[:, :2], passage),
        "few": (a, b, np.arange(60) // 20),
        "real": (real, real[::-1] - 0.3, None),
        "zero": (np.ones((20, 2)), np.zeros((20, 2)), None),
        "same": (a, a, None),
        "one": (a[:1], b[:1], None),
        "empty": (a[:, :1] * np.nan, b[:, :1], None),
        "infinite": (real * np.inf, real, None),
        "lengths": (a, b[:50], None),
    }


def _estimate(a: Any, clusters: Any, choices: dict[str, Any]) -> Any:
    return hn.estimate(a, **_labels(clusters), **choices).to_dict()


def _difference(a: Any, b: Any, clusters: Any, choices: dict[str, Any]) -> Any:
    return hn.estimate_difference(a, b, **_labels(clusters), **choices).to_dict()


def _labels(clusters: Any) -> dict[str, Any]:
    return {"crossed": tuple(clusters.T)} if np.ndim(clusters) == 2 else {"clusters": clusters}


def _result(function: Callable[..., Any], *args: Any, **choices: Any) -> Any:
    found = function(*args, **choices)
    frame = found.to_frame() if hasattr(found, "to_frame") else None
    table = None if frame is None else {"columns": list(map(str, frame.columns)), "rows": len(frame)}
    return {"result": found.to_dict(), "frame": table}


def _read(path: str) -> Any:
    return [
        {
            "model": run.model,
            "scores": [[part.task, part.metric, part.scorer, _listed(part.values)] for part in run.scores],
        }
        for run in hn.read(path)
    ]


def _listed(values: Any) -> Any:
    return [[None if np.isnan(x) else float(x) for x in row] for row in np.asarray(values)]
