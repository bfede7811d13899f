"""What the terminal shows of our numbers: as much as fits, and the reason where a total is less than its part.

The log always has everything. Inspect's panel stands four scorers side by side and shows every metric that is in
the results; after the log is written, the results are the panel's alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from . import inject
from .means import GROUP

if TYPE_CHECKING:
    from inspect_ai.log import EvalLog, EvalMetric, EvalResults, EvalScore

    from harness_noise.results.rows import Estimate
    from harness_noise.results.sequential import Sequential

SIDE_BY_SIDE = 4
"""How many scorers Inspect's panel has in a row."""
FRAME = 4
"""Columns of the terminal that the frame of the panel takes."""
BETWEEN = 4
"""Columns around the name and the value of a metric."""
SHORT = {"noise_se": "noise_se", "noise_ci_low": "noise_low", "noise_ci_high": "noise_high"}
"""What is shown where there is no room for all, and under which name."""
NAMES = (*inject.FIELDS, inject.VAR_DATA)
OF_KEYS = "harness_noise/noise_"
"""What Inspect sets before the values of a task's own `noise()` where it is a metric of a dictionary's keys."""
REASON = "data var. < 0"
"""Beside a total that is less than its part: the unbiased estimate of the data variance."""


def shorten(results: EvalResults, log: EvalLog) -> None:
    """Let `results`, which Inspect's panel is going to show, have what fits; `log` keeps everything."""
    from inspect_ai.util import display_type
    from rich import get_console

    if display_type() == "none":
        return
    shown = shown_scores(results.scores, get_console().width)
    if log.results is results:
        log.results = results.model_copy()
    results.scores = shown


def shown_scores(scores: Sequence[EvalScore], width: int) -> list[EvalScore]:
    """Copies of the scores, for a terminal of this width."""
    whole = [_with_reasons(es) for es in scores]
    rows = [whole[i : i + SIDE_BY_SIDE] for i in range(0, len(whole), SIDE_BY_SIDE)]
    if all(sum(map(_width, row)) + FRAME <= width for row in rows):
        return whole
    return [_short(es) for es in scores]


def _width(es: EvalScore) -> int:
    rows = [len(name) + len(f"{metric.value:.3f}") + BETWEEN for name, metric in es.metrics.items()]
    return max([len(es.name) + BETWEEN, *rows])


def _with_reasons(es: EvalScore) -> EvalScore:
    metrics: dict[str, EvalMetric] = {}
    for name, metric in es.metrics.items():
        metrics[name] = metric
        var = (metric.metadata or {}).get("var_data")
        if metric.group == GROUP and var is not None and name.startswith("noise_prediction"):
            reason = name.replace("noise_prediction", REASON, 1)
            metrics[reason] = metric.model_copy(update={"name": reason, "value": float(var)})
    return es.model_copy(update={"metrics": metrics})


def _short(es: EvalScore) -> EvalScore:
    metrics: dict[str, EvalMetric] = {}
    for name, metric in es.metrics.items():
        stem = name.removeprefix(OF_KEYS)
        known = next((ours for ours in NAMES if stem == ours or stem.startswith(ours + "_")), None)
        if known is None or metric.group != GROUP:
            metrics[name] = metric
        elif known in SHORT:
            metrics[SHORT[known] + stem.removeprefix(known)] = metric
    return es.model_copy(update={"metrics": metrics})


def close(told: Sequence[tuple[Estimate, EvalScore]], looks: Sequence[Sequential | None] = ()) -> None:
    """One plain line for each task at the end of a run, and one for each that was looked at."""
    from inspect_ai.util import display_type
    from rich.console import Console
    from rich.text import Text

    from harness_noise.report.sentences import closing_lines
    from harness_noise.report.sequential import stopped

    if not told or display_type() == "none":
        return
    own = {id(estimate): es.metrics.get("stderr") for estimate, es in told}

    def native_se(estimate: Estimate) -> float | None:
        metric = own[id(estimate)]
        return float(metric.value) if metric is not None and metric.value > 0 else None

    lines = closing_lines([estimate for estimate, _ in told], "Inspect", native_se)
    lines += [stopped(sequential) for sequential in looks if sequential is not None]
    for line in (*lines, "Next: harness-noise compare LOG BASELINE tests a run against another one."):
        Console().print(Text(line))
