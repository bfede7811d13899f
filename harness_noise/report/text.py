"""Markdown, LaTeX, CSV and JSON that `--format` prints."""

from __future__ import annotations

import csv as csv_
import io
import re
from typing import TYPE_CHECKING

from ..errors import InputError
from ..results.forms import rendered, renderers_of
from ..results.rows import Analysis, Comparison
from . import FORMATS
from .columns import Section, Words
from .latex import render as latex
from .sentences import sentence as of_row
from .summary import only_words, summarise

if TYPE_CHECKING:
    from .summary import Result
    from .terminal import Colour


_HIDDEN = re.compile("[\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def render(
    result: Result,
    format: str = "table",
    *,
    details: bool = False,
    wide: bool = False,
    legend: bool | None = None,
    words: Words = str,
    color: Colour = "never",
) -> str:
    """Return a result as text in a format: table, json, csv, markdown, latex, sentence or svg.

    Parameters
    ----------
    result
        Of any function.
    format
        ``"table"``, ``"json"``, ``"markdown"``, ``"latex"``, ``"csv"``, ``"sentence"`` or ``"svg"``, the figure of
        `result.plot()`.
    details
        All tables, columns and rows.
    wide
        Whole questions and answers, not their beginnings.
    legend
        Of a table: what its columns mean. None: a line that says how to get that, and what else is not shown.
    words
        A function that rewrites each sentence and each piece of advice, which name parameters in backticks.
    color
        Of a table: ``"never"``, ``"always"``, or ``"auto"``, where standard output shows colours.

    Returns
    -------
    str
        The text, with a newline at its end.

    Raises
    ------
    InputError
        An unknown format.
    """
    if "summary" not in renderers_of(result):
        raise InputError(f"render accepts a result, such as that of `compare`, not {type(result).__name__}")
    if format not in FORMATS:
        raise InputError(f"format {format!r} is not one of {', '.join(FORMATS)}")
    if format == "table":
        from . import terminal

        return f"{terminal.text(result, color, details=details, wide=wide, legend=legend, words=words)}\n"
    if format == "latex":
        return latex(result, details=details)
    if format == "markdown":
        return markdown(result, details=details, wide=wide, words=words)
    if format == "csv":
        return csv(result, details=details)
    if format == "sentence":
        return words(sentence(result))
    return {"json": json, "svg": svg}[format](result)


def json(table: Result) -> str:
    r"""Return the whole result as JSON. Control characters are written as \\u escapes."""
    return _HIDDEN.sub(_escape, table.to_json()) + "\n"


def svg(table: Result) -> str:
    """Return the first picture of a result as SVG. Refuse a result without pictures.

    Raises:
        InputError: there is nothing that could be drawn.
    """
    try:
        return str(table.plot())
    except ValueError as error:
        raise InputError(f"`format='svg'`: {error}") from None


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    return r"\ufffd" if 0xD800 <= code < 0xE000 else f"\\u{code:04x}"


def csv(table: Result, *, details: bool = False) -> str:
    """Return one table as CSV with all fields: the listed questions if there are any, else the rows.

    Every field is in it, and formulas of spreadsheets are quoted.
    """
    listed = isinstance(table, Comparison) and table.questions
    columns = table.flat_columns("questions" if listed else (details and table.whole) or table.kind)
    out = io.StringIO()
    writer = csv_.writer(out, lineterminator="\n")
    writer.writerow(map(_cell, columns))
    writer.writerows(map(_cell, cells) for cells in zip(*columns.values(), strict=True))
    return out.getvalue()


def _cell(value: object) -> object:
    """Return a value for a CSV cell: numbers to 15 digits, texts made safe for spreadsheets."""
    return float(f"{value:.15g}") if isinstance(value, float) else escape_spreadsheet_formula(value)


def escape_spreadsheet_formula(value: object, *, lines: bool = False) -> object:
    """Return text with "'" in front if a spreadsheet would run it, control characters as "�". Else unchanged."""
    if not isinstance(value, str):
        return value
    text = "".join(c if c.isprintable() or (lines and c == "\n") else "�" for c in value)
    return f"'{text}" if value.lstrip()[:1] in ("=", "+", "-", "@") or value[:1] in ("\t", "\r") else text


def markdown(table: Result, *, details: bool = False, wide: bool = False, words: Words = str) -> str:
    """Return a result as GitHub Markdown tables and sentences, for a comment."""
    summary = summarise(table, brief=bool(table.whole) and not details, wide=wide).worded(words)
    parts = [_markdown(line) for line in summary.lead]
    for section in summary.sections:
        parts += [f"**{_markdown(section.heading)}**"] if section.heading else []
        parts.append(_markdown_table(section))
    for title, lines in summary.listings:
        parts += [
            f"**{_markdown(title)}**",
            "\n".join(f"- {_markdown(name)}: {_markdown(said)}" for name, said in lines),
        ]
    if summary.legend:
        parts.append("\n".join(f"- `{one.code}` ({one.mark}): {_markdown(one.text)}" for one in summary.legend))
    parts += [_markdown(line) for line in summary.sentences]
    return "\n\n".join(parts) + "\n"


def sentence(table: Result) -> str:
    """Return the sentences for a paper: one for each row and group, or those that the kind of result chooses."""
    if isinstance(table, (Analysis, Comparison)):
        lines = [*only_words(table), *map(of_row, table.rows)]
    elif "lines" in renderers_of(table):
        lines = [*only_words(table), *rendered("lines", table)]
    else:
        summary = summarise(table)
        lines = [*summary.lead, *summary.sentences]
    return "".join(f"{line}\n" for line in lines)


def verdict(table: Result) -> str:
    """Return a result's conclusions, one per line, as they stand above the tables."""
    # alone, without the first screen's foot, a comparison's verdict names what missing answers could change
    return "\n".join(summarise(table, brief=not isinstance(table, Comparison)).lead)


_SPECIAL = re.compile(r"(\[[−\d∞][−\d.,%∞ ]*\](?![\[(:]))|[\\`*_|\[\]~@#]")
"""What Markdown reads as a sign. The brackets of an interval are no link, so they are left readable."""


def _markdown(text: str) -> str:
    """Escape text so that Markdown and HTML show it as it is."""
    text = " ".join(text.split())
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _SPECIAL.sub(lambda found: found[1] or rf"\{found[0]}", text)


def _markdown_table(section: Section) -> str:
    head = "| " + " | ".join(_markdown(column.heading) for column in section.columns) + " |"
    rule = "|" + "|".join(" --- " if column.text else " ---: " for column in section.columns) + "|"
    body = ["| " + " | ".join(_markdown(cell) for cell in row) + " |" for row in section.rows]
    return "\n".join([head, rule, *body])
