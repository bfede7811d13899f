"""`harness-noise regress RUN… --on SPEC`."""

from __future__ import annotations

from typing import Any

from ...cli import options


@options.command(
    "regress",
    "harness-noise regress new-run baseline-run --on length --on category",
    shown="--on --cluster --task --metric --columns --level --format -o --details",
)
@options.RUN
@options.to_read(options.MODELS, *options.reading("regress"))
@options.to_compute(
    options.several(
        "--on",
        "SPEC",
        "A property of the questions: a field, a.dotted.path, a Jinja template, or C(SPEC) of numbers that are names.",
        required=True,
    ),
    *options.computing("regress"),
)
@options.to_show(*options.PRINTING)
def command(runs: tuple[str, ...], **choices: Any) -> None:
    """Regress scores or differences on question properties.

    The question means of A (or of A − B, paired by question) are regressed on fields of the questions:
    numbers as they are, categories against their most frequent value. Standard errors are CR2, clustered
    where the questions are, with degrees of freedom for each coefficient.
    """
    from .api import regress

    options.answer(regress, choices, runs)
