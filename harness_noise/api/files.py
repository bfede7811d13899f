"""The public functions that write results, and those that list formats and noise profiles."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import extras
from ..data.measures import SCORE
from ..data.native_values import means_as_text as means_as_text
from ..data.notes import Note, merge_notes
from ..data.scores import Run
from ..errors import InputError, check_kind
from ..io import registry
from ..io.door import inside, links_note
from ..io.paths import PathInput, is_url, resolve_path
from ..io.sources import names
from ..results.forms import Document, check_form, rendered
from ..results.rows import Analysis
from ..settings import Settings
from .keywords import Choices, Request

if TYPE_CHECKING:
    from typing import Unpack

    from ..report.columns import Words


def adapters(format_file: str | Path | None = None) -> dict[str, str]:
    """Return a dict from each harness or file format that can be read to a phrase on what is read.

    Parameters
    ----------
    format_file
        Formats of tables in TOML, beside those that are known; None: ``~/.config/harness-noise/formats.toml``.

    Returns
    -------
    dict
        Name of an adapter, or of a format of tables → what it reads.

    Raises
    ------
    InputError
        The file of formats cannot be used; says which entry.
    """
    return registry.described(None if format_file is None else str(format_file))


def write_html(result: Document, place: str | Path, *, command: str | None = None, words: Words = str) -> list[Path]:
    """Write a result as an HTML page, an arena as a folder with a page for each benchmark. Return the files.

    Parameters
    ----------
    result
        Of `analyze`, `compare` or `arena`. A comparison shows its questions if it was made with ``by_question=True``.
    place
        The file; of an arena the folder.
    command
        How the result was made, for the foot of the page.
    words
        A function that rewrites each sentence and each piece of advice, which name parameters in backticks.

    Returns
    -------
    list of Path
        What was written.

    Raises
    ------
    InputError
        A place that cannot be written.
    """
    check_form("write_html", result, "page")
    written: list[Path] = rendered("page", result, _path("place", place), command, words)
    return written


def write_figures(result: Document, place: str | Path) -> list[Path]:
    """Write a result's figures as SVG files and return their paths.

    Parameters
    ----------
    result
        Of `analyze`, `compare`, `arena`, or another result that has figures.
    place
        The folder, which gets a file of each figure; or the file, if the result has one.

    Returns
    -------
    list of Path
        What was written.

    Raises
    ------
    InputError
        A place that cannot be written.
    """
    check_form("write_figures", result, "figures")
    written: list[Path] = rendered("figures", result, _path("place", place))
    return written


def _path(name: str, value: object) -> Path:
    check_kind(f"`{name}`", value, str, PathLike)
    return Path(value)  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class Exported:
    """The files that `export` wrote for one path, with notes."""

    written: tuple[Path, ...]
    """The files with error bars."""
    notes: tuple[Note, ...] = ()
    """Notes on what was left out and why, one sentence each."""
    means: tuple[str, ...] = ()
    """The task and metric of every mean that has error bars now."""


def export(
    run: PathInput,
    output: str | Path | None = None,
    *,
    in_place: bool = False,
    form: str | None = None,
    settings: Settings | None = None,
    **choices: Unpack[Choices],
) -> Exported:
    """Write result files again with error bars, in `output` or in place, native values unchanged. Return their paths.

    Parameters
    ----------
    run
        A local file or folder of an lm-eval output or an Inspect log.
    output
        The folder to write to; the files keep their names.
    in_place
        Replace the run's own files, atomically, in place of `output`.
    form
        Write the run in another format under `output`: ``"every-eval-ever"``, whose schema has room for error bars, or
        ``"hub"``, the entries of a model's page on the Hugging Face Hub.
    settings
        How to compute. None: the defaults.
    **choices
        Fields of `Settings` to replace (`cluster`, `level`, `se`, `interval`, …), and `columns`: see `Choices`.

    Returns
    -------
    Exported
        The files that were written, and notes.

    Raises
    ------
    InputError
        Not exactly one of `output` and `in_place`, a URL, a part of a run, or nothing that could be added; what was
        left out stands in its notes (``__notes__``).

    References
    ----------
    As `analyze`.
    """
    if (output is None) == (not in_place):
        raise InputError("say where to write: `output` DIR for another folder, or `in_place=True`")
    if choices.get("measures"):  # they join the scores
        choices["measures"] = (SCORE, *names(choices["measures"]))
    export = _Export(Request.of("export", settings, choices), run, None if output is None else _path("output", output))
    with inside(resolve_path(run), follow=export.request.options.follow_links) as place:
        written = export.again() if form is None else export.as_(form)
    if place.left_out:
        export.notes.append(Note("left_out", links_note(place)))
    return Exported(tuple(dict.fromkeys(written)), merge_notes(export.notes), tuple(dict.fromkeys(export.means)))


class _Export:
    """The runs at a place while they are written, and notes on them."""

    def __init__(self, request: Request, place: PathInput, output: Path | None) -> None:
        self.request, self.place, self.output = request, place, output
        self.notes: list[Note] = []
        self.means: list[str] = []
        """The means of the files that are written."""
        self.added: dict[Path, list[str]] = {}
        """The files to which an adapter has something to add, and the means that it adds."""

    def again(self) -> list[Path]:
        """Write the runs again in their formats with error bars. Return files. Refuse URLs, own folder as `output`."""
        written: list[Path] = []
        self.notes += [Note("left_out", f"left out: {error}") for error in registry.closed_folders(self.place)]
        found = [
            (adapter, root, where)
            for adapter, root in registry.find(self.place)
            for where in registry.places(adapter, root)
        ]
        for adapter, root, where in found:
            if is_url(where):
                raise InputError(f"{self.place}: export rewrites files and is for local ones: copy the run first")
            own = where if where.is_dir() else where.parent
            if self.output is not None and self.output.exists() and self.output.samefile(own):
                raise InputError(
                    f"`output` {self.output} is the run's own folder: name another, or replace its files with "
                    "`in_place=True`"
                )
            self.added = {}
            try:
                out = own if self.output is None else self.output / own.relative_to(root if root.is_dir() else own)
                files = adapter.write(where, out, self.analyze, self.request.options)
            except InputError as error:
                for note in self.notes:
                    error.add_note(note.as_text())
                raise
            changed = {file.name for file in files}
            as_it_was = [path for path in self.added if path.name not in changed]
            self.notes += [
                Note("nothing_to_add", f"{path}: nothing to add next to its own values, so it is not changed")
                for path in as_it_was
            ]
            self.means += [name for names in self.added.values() for name in names if files]
            written += files
        return written

    def as_(self, form: str) -> list[Path]:
        """Write every run in another format with error bars. Return the files. Refuse unknown formats."""
        own = extras.forms()
        if form in registry.left_out():
            raise InputError(extras.not_installed(f"`form` {form}"))
        able = [*(name for name in registry.names() if hasattr(registry.load(name), "make")), *own]
        if form not in able or self.output is None:
            raise InputError(f"`form` {form}: runs can be written as {', '.join(able)}, into the folder `output`")
        if form in own:
            make: Any = partial(import_module(own[form]).make, say=self.notes.append)
        else:
            make = getattr(registry.load(form), "make")  # noqa: B009  not every adapter has it
        written: list[Path] = []
        runs = registry.read(self.place, self.request.options)
        self.request = replace(self.request, options=replace(self.request.options, measures=()))
        for run in runs:
            self.notes += run.notes
            written += make(run, self.analyze(run), self.output)
        self.means += [name for names in self.added.values() for name in names if form not in own]
        return written

    def analyze(self, run: Run) -> Analysis:
        """Analyze one run that is to be written. Keep its notes and the names of its means, return its error bars."""
        from ..analysis.mean import analyze_run
        from ..data.native_values import check_native
        from ..io.first_answers import first_answers, with_stops
        from ..io.measures import measured
        from ..results.diagnostics import NOT_ASKED

        run = first_answers(measured(with_stops(check_native(run)), self.request.options))
        result = analyze_run(run, self.request.settings)
        self.notes += result.notes
        rows = [row for row in result.estimates if {"skipped_metric", "mean_mismatch"}.isdisjoint(row.diagnostics)]
        if rows:
            names = self.added.setdefault(Path(run.name), [])
            mine = [row for row in rows if row.se is not None and NOT_ASKED not in row.diagnostics]
            names += [f"{row.task} {row.metric}".strip() for row in mine]
        else:
            said = f"{run.name}: nothing to add, so it is not written"
            self.notes.append(Note("nothing_to_add", said))
        return result
