"""`harness-noise list [FILE|NAME]`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from ..errors import InputError, counted
from ..extras import listings
from . import options

if TYPE_CHECKING:
    from .. import Run, Scores
    from ..arrays import FloatArray


@options.command("list", "harness-noise list scores.csv")
@click.argument("what", metavar="[FILE|NAME]", required=False)
@options.FORMAT_FILE
@options.COLUMNS
def command(what: str | None, **choices: Any) -> None:
    """List the formats and noise profiles that are known, or what a file would be read as.

    With FILE, or a folder: its runs, what is read as what, the mean beside the one that the harness reports, what is
    left out, and what more the files would have to say. With the NAME of a noise profile, as --profile takes
    it: where its table came from, and how the profile was made.
    """
    from .. import adapters, read

    choices = options.keywords(choices)
    told = () if what is None else [each.about(what) for each in listings()]
    about = next((rows for rows in told if rows is not None), None)
    if choices.get("columns") and (what is None or about is not None):
        raise InputError("`columns` says how a file is read, and no file is named")
    if what is None:
        click.echo("Formats that can be read (list FILE: what a file would be read as):")
        _print(adapters(choices.get("format_file")))
        for each in listings():
            click.echo(f"\n{each.HEADING}")
            _print(each.rows())
    elif about is None:
        runs = read(what, apart=True, **choices)
        for i, run in enumerate(runs):
            click.echo("\n" if i else "", nl=False)
            _print(dict(_of_run(run)))
            _print(dict(_measured(run)))
        if lacking := dict(_lacking(runs)):
            click.echo("\nWhat is not there, and what it would tell:")
            _print(lacking)
        options.hints(dict.fromkeys(note for run in runs for note in run.notes))
    else:
        for rows in about:
            _print(rows)


def _of_run(run: Run) -> Iterable[tuple[str, object]]:
    yield "run", run.name
    yield "read as", run.harness
    yield "model", run.model
    if run.measurable:
        yield "measures", f"{', '.join(run.measurable)} (with --measure)"


def _measured(run: Run) -> Iterable[tuple[str, str]]:
    """Yield (task and metric, sentence on it) for a run's scores, corpus metrics and skipped metrics. No groups."""
    for part in run.scores:
        K, missing = part.values.shape[1], part.n_missing
        clusters = (
            "" if part.clusters is None else f", {counted(len(set(part.clusters)), 'cluster')} ({part.cluster_spec})"
        )
        lost = f", {missing:,} without a score" if missing else ""
        yield (
            part.title,
            f"{counted(len(part.questions), 'question')} × {counted(K, 'answer')}{lost}{clusters}{_means(part)}",
        )
    for corpus in run.corpus:
        yield corpus.title, f"{counted(len(corpus.questions), 'question')}, a corpus metric"
    yield from ((part.title, f"no error bar: {part.reason}") for part in run.skipped)


def _means(part: Scores) -> str:
    """Return words on the mean of the scores read, and the harness's own mean if the file has one."""
    import numpy as np

    from ..api.files import means_as_text

    def mean(values: FloatArray) -> str:
        rows = values[~np.isnan(values).all(axis=1)]
        return f"mean {means_as_text(part, np.nanmean(rows, axis=1).mean())}" if len(rows) else "no score"

    own = "" if part.native is None else f", the harness says {means_as_text(part, part.native)}"
    first = f"; of the first answers: {mean(part.values[:, :1])}" if own and part.native_is_first else ""
    return f", {mean(part.values)}{first}{own}"


def _lacking(runs: Sequence[Run]) -> Iterable[tuple[str, str]]:
    """Yield (what some scores do not record, what it would be good for and how many lack it)."""
    parts = [part for run in runs for part in run.scores]
    for name, wanted, use in _WANTED:
        lack = sum(not wanted(part) for part in parts)
        if lack:
            of = "" if lack == len(parts) else f" (in {lack:,} of {len(parts):,} scores)"
            yield name, f"{use}{of}"


_WANTED: tuple[tuple[str, Callable[[Scores], bool], str], ...] = (
    (
        "repeats",
        lambda part: part.values.shape[1] > 1,
        "several answers to a question: how much of the noise is of the answers, and how much of the questions",
    ),
    (
        "clusters",
        lambda part: part.clusters is not None,
        "what questions share (a passage, a repository): --cluster FIELD, or auto. Without it they count as unrelated",
    ),
    (
        "texts",
        lambda part: part.questions.inputs is not None,
        "the words of the questions: pairs runs of two harnesses, finds questions that are there twice, and "
        "shows flips",
    ),
    ("own mean", lambda part: part.native is not None, "the mean that the harness reports: ours is checked against it"),
)


def _print(rows: Mapping[str, object]) -> None:
    width = max(map(len, rows), default=0)
    for name, text in rows.items():
        click.echo(f"{name:{width}}  {text}")
