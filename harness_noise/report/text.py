"""Markdown, LaTeX, CSV and JSON that `--format` prints, and the tables of an arena as files."""

from __future__ import annotations

import io
import json as json_
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from ..errors import InputError
from ..io.atomic import replacing_path, write_text
from ..results.rows import Analysis, Comparison
from .columns import Section
from .summary import summarise

if TYPE_CHECKING:
    import pandas as pd

    from ..results.arena import Arena
    from .summary import Result


_HIDDEN = re.compile("[\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def json(table: Result) -> str:
    """The whole result; what a terminal would obey is written as an escape, which says the same."""
    return _HIDDEN.sub(_escape, table.to_json()) + "\n"


def _escape(found: re.Match[str]) -> str:
    code = ord(found[0])
    return r"\ufffd" if 0xD800 <= code < 0xE000 else f"\\u{code:04x}"


def csv(table: Result) -> str:
    """Every field of every row, or of every question asked for; what a spreadsheet would run is quoted."""
    import csv as csv_

    rows = _rows(table)
    out = io.StringIO()
    writer = csv_.DictWriter(out, list(rows[0]) if rows else [], lineterminator="\n")
    writer.writeheader()
    for row in rows:
        flat = {key: _flat(key, value) for key, value in row.items()}
        writer.writerow({key: escape_spreadsheet_formula(value) for key, value in flat.items()})
    return out.getvalue()


def _flat(key: str, value: Any) -> Any:
    """Codes with spaces between them; answers, which hold spaces, as a JSON array."""
    if not isinstance(value, list):
        return value
    return json_.dumps(value, ensure_ascii=False) if key.startswith("answers_") else " ".join(map(str, value))


def _rows(table: Result) -> list[dict[str, Any]]:
    from ..results.plan import Plan

    found = table.to_dict()
    if isinstance(table, Comparison) and table.flips:
        return list(found["questions"])
    rows: list[dict[str, Any]] = found["plan"]["table"] if isinstance(table, Plan) else found[table.kind]
    return rows


def escape_spreadsheet_formula(value: object) -> object:
    """A cell that no spreadsheet runs as a formula and no terminal obeys; what is not text stays as it is."""
    if not isinstance(value, str):
        return value
    text = "".join(c if c.isprintable() else "�" for c in value)
    return f"'{text}" if value.lstrip()[:1] in ("=", "+", "-", "@") or value[:1] in ("\t", "\r") else text


def markdown(table: Result, *, wide: bool = False) -> str:
    """GitHub tables, for a pull request's comment."""
    summary = summarise(table, wide=wide)
    parts = [_markdown(line) for line in summary.lead]
    for section in summary.sections:
        parts += [f"**{_markdown(section.title)}**"] if section.title else []
        parts.append(_markdown_table(section))
    for title, lines in summary.listings:
        parts += [
            f"**{_markdown(title)}**",
            "\n".join(f"- {_markdown(name)}: {_markdown(said)}" for name, said in lines),
        ]
    if summary.legend:
        parts.append("\n".join(f"- `{code}` ({mark}): {_markdown(said)}" for mark, code, said in summary.legend))
    parts += [_markdown(line) for line in summary.sentences]
    return "\n\n".join(parts) + "\n"


def latex(table: Result, *, details: bool = False) -> str:
    """Complete tables with booktabs rules, for a paper."""
    from .latex import render

    return render(table, details=details)


def sentence(table: Result) -> str:
    """One sentence for each row and group, for a paper."""
    from .sentences import sentence as of_row

    if isinstance(table, (Analysis, Comparison)):
        lines = [of_row(item) for item in table.rows]
    else:
        summary = summarise(table)
        lines = [*summary.lead, *summary.sentences]
    return "".join(f"{line}\n" for line in lines)


def _markdown(text: str) -> str:
    """Markdown and HTML in a name are shown, not obeyed."""
    text = " ".join(text.split())
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"([\\`*_|\[\]~@#])", r"\\\1", text)


def _markdown_table(section: Section) -> str:
    head = "| " + " | ".join(_markdown(column.label) for column in section.columns) + " |"
    rule = "|" + "|".join(" --- " if column.text else " ---: " for column in section.columns) + "|"
    body = ["| " + " | ".join(_markdown_cell(cell) for cell in row) + " |" for row in section.rows]
    return "\n".join([head, rule, *body])


def _markdown_cell(text: str) -> str:
    # brackets of an interval are no link; leave them readable
    return text if re.fullmatch(r"\[[−\d., ]+\]", text) else _markdown(text)


Format = Literal["csv", "json", "parquet"]


def write_tables(arena: Arena, folder: Path, kind: Format = "csv") -> list[Path]:
    """Write `models`, `pairs`, `benchmarks`, `questions`, and `slices` where there are any, into `folder`.

    Returns the files.
    What is not identified is empty in CSV and null in JSON (one array of objects) and Parquet. In CSV,
    text that a spreadsheet would run as a formula is quoted.

    Raises:
        InputError: an unknown format, Parquet without pyarrow, or a folder that cannot be written.
    """
    if kind not in get_args(Format):
        raise InputError(f"format {kind!r} is not one of {', '.join(get_args(Format))}")
    written = []
    content = arena.to_dict() if kind == "json" else {}
    for name, frame in arena.to_frames().items():
        path = folder / f"{name}.{kind}"
        if kind == "parquet":
            _parquet(frame, path)
        elif kind == "json":
            write_text(path, json_.dumps(content[name], indent=2, ensure_ascii=False, allow_nan=False) + "\n")
        else:
            write_text(path, frame.map(escape_spreadsheet_formula).to_csv(index=False, lineterminator="\n"))
        written.append(path)
    return written


def _parquet(frame: pd.DataFrame, path: Path) -> None:
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        raise InputError("Parquet needs pyarrow: pip install 'harness-noise[parquet]'") from None
    with replacing_path(path) as temporary:
        frame.to_parquet(temporary, index=False)
