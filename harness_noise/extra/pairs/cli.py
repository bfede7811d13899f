"""`harness-noise pairs FILE`."""

from __future__ import annotations

from typing import Any

import click

from ...cli import options


@options.command("pairs", "harness-noise pairs verdicts.csv")
@click.argument("file", metavar="FILE")
@options.to_read(options.COLUMNS)
@options.to_compute(options.LEVEL)
@options.to_show(*options.PRINTING)
def command(file: str, **choices: Any) -> None:
    """Compare models by a judge's verdicts on pairs of answers.

    FILE has the columns question, model_a, model_b and winner (A was shown first), or question, first and winner for
    two models; or it is of arena-hard, MT-bench, AlpacaEval or promptfoo. Orders of a question are averaged first.
    """
    from .api import pairs

    function: Any = pairs  # whose kind of result the core does not name
    options.answer(function, choices, file)
