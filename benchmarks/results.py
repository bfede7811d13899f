"""Tables of simulations as CSV: one file for each table, drawn into the pages of the docs when these are built.

A page names a table, or the rows of a table that begin with some words, by a link that stands alone in its line:

    [Table: few flips](../../benchmarks/results/coverage-weak/few-flips.csv)
    [Rows: 3 wins of 100; 2 of 20 clusters](../../benchmarks/results/coverage-weak/few-flips.csv)

GitHub shows the link, and the CSV behind it as a table.
"""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path

FOLDER = Path(__file__).parent / "results"
_TABLE = re.compile(r"^\|.*\|\n\|[-: |]+\|\n(?:\|.*\|\n?)*", re.M)
_PLACE = re.compile(r"^\[(Table|Rows): (.*)\]\((?:\.\./)+benchmarks/results/([\w./-]+\.csv)\)$", re.M)
_NO_SEARCH = "---\nsearch:\n  exclude: true\n---\n"
_HEADING = re.compile(r"^#+ (.*)$", re.M)


def split(text: str, name: str) -> tuple[str, dict[str, str]]:
    """Return a page with a place for each of its tables, and the tables as CSV by the names of their files.

    Args:
        text: the page in Markdown.
        name: of the page, the folder of its tables.
    """
    tables: dict[str, str] = {}

    def place(found: re.Match[str]) -> str:
        title = ([heading[1] for heading in _HEADING.finditer(text, 0, found.start())] or [name])[-1]
        slug = re.sub(r"[^\w]+", "-", title.lower()).strip("-")
        same = sum(re.sub(r"-\d+$", "", Path(file).stem) == slug for file in tables)
        file = f"{name}/{slug}{f'-{same + 1}' if same else ''}.csv"
        tables[file] = _csv(found[0])
        return f"[Table: {title}](../../benchmarks/results/{file})\n"

    return _TABLE.sub(place, text), tables


def _csv(table: str) -> str:
    """Return a table of Markdown as CSV."""
    head, _, *rows = table.strip().splitlines()
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(_cells(line) for line in (head, *rows))
    return out.getvalue()


def _cells(line: str) -> list[str]:
    return [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line.strip()[1:-1])]


def drawn(text: str) -> str:
    """Return a page with its tables.

    Raises:
        ValueError: a page asks for rows that its table does not have.
    """
    return _PLACE.sub(lambda found: _drawn(found[1], found[2], found[3]), text)


def _drawn(what: str, words: str, file: str) -> str:
    with (FOLDER / file).open(encoding="utf-8", newline="") as opened:
        head, *rows = csv.reader(opened)
    if what == "Rows":
        keys = [key.strip() for key in words.split(";")]
        chosen = [row for key in keys for row in rows if f"{', '.join(row)}, ".startswith(f"{key}, ")]
        if len(chosen) < len(keys):
            raise ValueError(f"{file} does not have all of these rows: {words}")
        rows = chosen
    numbers = [all(re.fullmatch(r"[*<≤]*[\d.,]*%?[*]*|–", row[i]) for row in rows) for i in range(len(head))]
    lines = [head, ["---:" if number else "---" for number in numbers], *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines)


def read(page: Path) -> str:
    """Return the text of a page with its tables, "" if there is no page."""
    return drawn(page.read_text(encoding="utf-8")) if page.exists() else ""


def keep(name: str, text: str) -> str:
    """Write the tables of a text to the folder of a page, and return the text with their places."""
    text, tables = split(text, name)
    for file, content in tables.items():
        (FOLDER / file).parent.mkdir(parents=True, exist_ok=True)
        (FOLDER / file).write_text(content, encoding="utf-8")
    return text


def write(page: Path, text: str) -> None:
    """Write a whole page, which no search finds: its tables to their files, and the rest with their places."""
    page.write_text(_NO_SEARCH + keep(page.stem, text).removeprefix(_NO_SEARCH), encoding="utf-8")
