"""LaTeX for a paper: complete `table` environments with booktabs rules, caption, name and notes."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby

from ..errors import some_of
from ..results.rows import Analysis, Comparison, Difference, Estimate
from . import fmt
from .columns import Section
from .sentences import methods, sample_words
from .summary import Result, only_words, summarise

_ESCAPED = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "|": r"\textbar{}", "`": r"\textasciigrave{}",
    "[": "{[}", "]": "{]}", "*": "{*}",  # after \\ or \midrule these would be arguments
    '"': "''", "“": "``", "”": "''", "‘": "`", "’": "'", "−": "$-$", "–": "--", "—": "---", "…": r"\dots{}",
    "<": "$<$", ">": "$>$", "±": r"$\pm$", "≠": r"$\neq$", "×": r"$\times$", "√": r"$\surd$", "≤": r"$\leq$",
    "≥": r"$\geq$", "≈": r"$\approx$", "·": r"$\cdot$", "²": "$^2$", "ω": r"$\omega$", "σ": r"$\sigma$",
    "α": r"$\alpha$", "τ": r"$\tau$", "χ": r"$\chi$", "★": r"$\star$",
    "ß": r"\ss{}", "æ": r"\ae{}", "Æ": r"\AE{}", "ø": r"\o{}",
    "Ø": r"\O{}", "œ": r"\oe{}", "Œ": r"\OE{}", "ł": r"\l{}", "Ł": r"\L{}", "ı": r"\i{}",
    "\u2068": "", "\u2069": "",
}  # fmt: skip
_ACCENTS = {
    "\u0300": "`", "\u0301": "'", "\u0302": "^", "\u0303": "~", "\u0304": "=", "\u0306": "u", "\u0307": ".",
    "\u0308": '"', "\u030a": "r", "\u030b": "H", "\u030c": "v", "\u0327": "c",
}  # fmt: skip

_SHARED = ("Task", "Metric", "Test", "interval", "estimator")
"""Columns that a caption has room for, where all rows have the same."""


def escaped(text: str) -> str:
    """Escape text for LaTeX. Letters that pdfTeX cannot print become their Unicode numbers there.

    Letters that pdfTeX lacks are shown by XeTeX and LuaTeX, and by their numbers otherwise.
    """
    runs = groupby(fmt.plain(text), key=lambda c: _known(c) is not None)
    return "".join("".join(_known(c) or "" for c in run) if plain else _other("".join(run)) for plain, run in runs)


def _known(c: str) -> str | None:
    if c in _ESCAPED or c.isascii():
        return _ESCAPED.get(c, c)
    parts = unicodedata.normalize("NFD", c)
    if len(parts) == 2 and parts[1] in _ACCENTS and parts[0].isascii() and parts[0].isalpha():
        return rf"\{_ACCENTS[parts[1]]}{{{parts[0]}}}"
    return None


def _other(run: str) -> str:
    numbers = " ".join(f"U+{ord(c):04X}" for c in run)
    return rf"\ifdefined\Umathchar {run}\else {{[}}{numbers}{{]}}\fi{{}}"


def render(table: Result, *, details: bool = False) -> str:
    """Return a result's tables as LaTeX (booktabs). `details` adds the tables not shown by default.

    The preamble needs \\usepackage{booktabs}.
    """
    summary = summarise(table, brief=bool(table.whole) and not details)
    notes = fmt.paper_words(summary.sentences)
    notes += [f"{sample}."] if (sample := getattr(table, "sample", "")) else []
    parts = [r"% needs \usepackage{booktabs}"]
    lead = only_words(table) if isinstance(table, (Analysis, Comparison)) and table.rows else summary.lead
    sections = [section for section in summary.sections if details or not section.detail]
    marks = [_marks(section) for section in sections]
    for i, section in enumerate(sections):
        caption = section.heading or (summary.lead[0] if summary.lead else "Results")
        if i == 0 and isinstance(table, (Analysis, Comparison)):
            section, said = _lifted(_with_errors(table, section))
            caption = " ".join(filter(None, [_caption(table), said]))
        told = [one for one in summary.legend if one.mark in marks[i] or not (i or any(one.mark in m for m in marks))]
        meanings = [f"{one.mark}: {one.meaning}" for one in told]
        lines = [*section.below, *meanings]
        lines = lines if i else [*lead, *lines, *notes]
        parts.append(_table(section, caption, f"tab:{_slug(table, i)}", lines))
    return "\n\n".join(parts) + "\n"


def _marks(section: Section) -> set[str]:
    """Return the letters of diagnostics in a table's rows. Their column has no heading."""
    at = [i for i, column in enumerate(section.columns) if not column.heading]
    return {mark for row in section.rows for i in at for mark in row[i].split()}


def _table(section: Section, caption: str, name: str, notes: Sequence[str]) -> str:
    align = "".join("l" if column.text else "r" for column in section.columns)
    lines = [
        r"\begin{table}[t]",
        r"  \centering",
        rf"  \caption{{{escaped(caption)}}}",
        rf"  \label{{{name}}}",
        r"  \setlength{\tabcolsep}{4pt}",
        rf"  \begin{{tabular}}{{@{{}}{align}@{{}}}}",
        r"    \toprule",
        "    " + " & ".join(escaped(column.heading) for column in section.columns) + r" \\",
        r"    \midrule",
        *("    " + " & ".join(map(escaped, row)) + r" \\" for row in section.rows),
        r"    \bottomrule",
        r"  \end{tabular}",
        *(rf"  \par\smallskip\footnotesize {escaped(note)}" for note in notes),
        r"\end{table}",
    ]
    return "\n".join(lines)


def _slug(table: Result, i: int) -> str:
    r"""Return a name for table number i (from 0) of a result, of letters, digits and dashes: kind, task, number."""
    names = [table.under if table.kind == "table" else table.kind]
    if isinstance(table, (Analysis, Comparison)):
        names += [re.sub(r"[^a-z0-9]+", "-", row.task.lower()).strip("-") for row in table.rows[:1]]
    slug = "-".join(filter(None, names))[:60]
    return slug if i == 0 else f"{slug}-{i + 1}"


def _with_errors(table: Analysis | Comparison, section: Section) -> Section:
    """Return the result's table with " ± SE" added to its value column, and its SE column dropped."""
    headings = [column.heading for column in section.columns]
    value = "Mean" if isinstance(table, Analysis) else "A − B"
    if not section.rows or value not in headings:
        return section
    at = len(headings) - 1 - headings[::-1].index(value)  # the names of two runs have the same heading
    columns = (*section.columns[:at], replace(section.columns[at], heading=f"{value} ± SE"), *section.columns[at + 1 :])
    errors = ("" if row.se is None else f" ± {fmt.shown(row, row.se)}" for row in table.rows)
    rows = zip(section.rows, errors, strict=True)
    lines = tuple((*cells[:at], f"{cells[at]}{error}", *cells[at + 1 :]) for cells, error in rows)
    whole = replace(section, columns=columns, rows=lines)
    return whole.keeping([i for i, heading in enumerate(headings) if heading != "SE"])


def _lifted(section: Section) -> tuple[Section, str]:
    """Move columns of `_SHARED` that are constant, of one row too, into a sentence. Return the table and sentence."""
    headings = [column.heading for column in section.columns]
    same = [
        i for i, heading in enumerate(headings) if heading in _SHARED and len({row[i] for row in section.rows}) == 1
    ]
    said = "; ".join(f"{headings[i].lower()} {section.rows[0][i]}" for i in same if section.rows[0][i])
    return section.keeping(
        [i for i in range(len(headings)) if i not in same]
    ), f"{said[:1].upper()}{said[1:]}." if said else ""


def _caption(table: Analysis | Comparison) -> str:
    """Return the caption of a result's LaTeX table, not yet escaped: models, methods, units, samples."""
    rows: Sequence[Estimate | Difference] = table.rows
    if not rows:
        return "Nothing to show."
    if isinstance(table, Analysis):
        models = list(dict.fromkeys(row.model for row in table.estimates if row.model))
        whose = f"Mean scores{f' of {models[0]}' if len(models) == 1 else ''}."
    else:
        pairs = list(dict.fromkeys(map(fmt.names_of, table.comparisons)))
        whose = "{} (A) against {} (B).".format(*pairs[0]) if len(pairs) == 1 else "Differences."
    units = fmt.units_of(rows)
    return " ".join(
        [whose, methods(rows, table.settings), *([f"{units[0].upper()}{units[1:]}."] if units else []), *_samples(rows)]
    )


def _samples(rows: Sequence[Estimate | Difference]) -> list[str]:
    """Return [sentence on the numbers of questions and answers], [] without questions."""
    of_tasks = [row for row in rows if not row.is_overall and row.n_questions]
    words = dict.fromkeys(map(sample_words, of_tasks))
    if len(words) < 2:
        each = " of each task" if len({row.task for row in of_tasks}) > 1 else ""
        return [f"Sample{each}: {sample}." for sample in words]
    named = dict.fromkeys(f"{fmt.what_of(row)} {sample_words(row)}" for row in of_tasks)
    return [f"Samples: {some_of(list(named), _MOST_SAMPLES, '; ')}."]


_MOST_SAMPLES = 12
