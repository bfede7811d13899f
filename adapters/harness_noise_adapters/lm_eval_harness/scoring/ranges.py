"""The range of a metric, where lm-eval's registry or a task's own code fixes it.

A name is no proof, as any task may call anything `f1`: the scores have the last word (`native_values.fitting`), and
what is not listed here is not known.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from harness_noise.data.native_values import fitting

if TYPE_CHECKING:
    from harness_noise.arrays import FloatArray

Bounds = tuple[float, float]

UNIT: Bounds = (0.0, 1.0)
PERCENT: Bounds = (0.0, 100.0)

METRICS: tuple[tuple[str, tuple[str, ...], Bounds], ...] = (
    ("squad*", ("exact", "f1", "HasAns_*", "NoAns_*", "best_*"), PERCENT),
    ("truthfulqa*", ("bleu_max", "rouge?_max"), PERCENT),
    ("eq_bench*", ("percent_parseable",), PERCENT),
    ("eqbench*", ("percent_parseable",), PERCENT),
    ("niah_*", ("[1-9]*",), UNIT),
    ("ruler_*", ("[1-9]*",), UNIT),
    ("*", ("acc", "acc_norm", "acc_all", "acc_bytes", "acc_mutual_info", "acc_prob", "*_acc", "accuracy"), UNIT),
    ("*", ("exact_match", "em", "f1", "mc1", "mc2", "likelihood", "pass@*", "pass_at_*"), UNIT),
    ("*", ("brier_score",), (0.0, 2.0)),
)
"""(task glob, metric globs, range of one question's score); the first that matches counts."""

AGGREGATIONS: dict[str, Bounds] = {
    "f1": UNIT, "f1_score": UNIT, "matthews_corrcoef": (-1.0, 1.0), "bleu": PERCENT, "chrf": PERCENT,
    "chrf++": PERCENT, "chrfpp": PERCENT,
}  # fmt: skip
"""lm-eval's own aggregations over all questions, by their names in a task and in its code."""


def of_metric(task: str, metric: str, values: FloatArray) -> Bounds | None:
    """The range of (n, K) scores; None where it is not known, or the scores do not lie in it."""
    for tasks, metrics, bounds in METRICS:
        if fnmatchcase(task, tasks) and any(fnmatchcase(metric, pattern) for pattern in metrics):
            return fitting(bounds, values)
    return None
