"""`harness-noise factors RUN… --factor NAME`."""

from __future__ import annotations

from typing import Any

from ...cli import options


@options.command(
    "factors",
    "harness-noise factors runs --factor prompt=task --factor seed",
    shown="--factor --task --metric --columns --missing --format -o --details",
)
@options.RUN
@options.to_read(
    options.several(
        "--factor factors",
        "NAME[=COLUMN]",
        "A source of noise: a column of the table, an argument of the task, or task, model, run, or scorer if "
        "several judges graded the same answers (repeatable). One word is both its name and its column.",
        required=True,
    ),
    *options.reading("factors"),
)
@options.to_show(*options.PRINTING)
def command(runs: tuple[str, ...], factors: tuple[str, ...], **choices: Any) -> None:
    """Split the noise by source: the prompt, the seed, the judge.

    All answers of all runs are taken together; a question that two tasks or runs share is one question.
    The last line says where the next thousand answers would help most. With judge=scorer it also says which judges
    agree, and which one differs.
    """
    from .api import factors as noise_by_factor

    options.answer(noise_by_factor, choices, runs, options.mapping(factors, "--factor", one_word=True))
