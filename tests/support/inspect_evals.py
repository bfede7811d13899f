"""Inspect evals of the canned models: their scores, our metrics and Inspect's own in a log, and changed copies."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import harness_noise as hn

NAMES = ["noise_se", "noise_ci_low", "noise_ci_high", "noise_total", "noise_data", "noise_prediction"]
FIELDS = ["se", "ci_low", "ci_high", "se_total", "se_data", "se_prediction"]
ON = {"noise": True}
PASSAGES = [i // 3 for i in range(12)]
"""The clusters of the canned questions."""


def coins(canned, n=12, k=3, model="model"):
    """The scores that a canned model gets."""
    return np.array([[canned.truth(f"q{i}", j, model=model) for j in range(1, k + 1)] for i in range(n)], float)


def ours(es):
    return {name: metric.value for name, metric in es.metrics.items() if name.startswith("noise_")}


def native(es):
    return {name: metric.value for name, metric in es.metrics.items() if not name.startswith("noise_")}


def expected(table, clusters=None, key=None, **settings):
    """What our metrics have to be; `key` is that of scores which are dictionaries."""
    found = hn.estimate(table, clusters, **settings)
    values = {name: getattr(found, field) for name, field in zip(NAMES, FIELDS, strict=True)}
    if found.var_data is not None and found.var_data < 0:
        values["noise_data"], values["noise_data_upper"] = None, found.se_data_upper
    return {name if key is None else f"{name}_{key}": value for name, value in values.items() if value is not None}


def only(analysis):
    (estimate,) = analysis.estimates
    return estimate


def on_disk(log):
    """The header of a log as it was written."""
    from inspect_ai.log import read_eval_log

    return read_eval_log(log.location, header_only=True)


def change(source: Path, target: Path, edit) -> Path:
    """A copy of a log with `edit` applied to it."""
    from inspect_ai.log import read_eval_log, write_eval_log

    log = read_eval_log(str(source))
    log = edit(log) or log
    write_eval_log(log, str(target))
    return target


def unwrap_all():
    """Give Inspect its own functions back."""
    import sys
    from types import FunctionType

    from harness_noise_adapters.inspect_logs.private import WRAPPED

    modules = [module for name, module in sys.modules.items() if name.partition(".")[0] == "inspect_ai"]
    classes = [value for module in modules for value in vars(module).values() if isinstance(value, type)]
    for owner in [*modules, *classes]:
        for name, function in list(vars(owner).items()):
            if isinstance(function, FunctionType) and hasattr(function, WRAPPED):
                setattr(owner, name, getattr(function, WRAPPED))
