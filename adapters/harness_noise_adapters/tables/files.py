"""Rows of a table file in any format (CSV, TSV, JSONL, JSON, Parquet), streamed if the format allows it."""

from __future__ import annotations

import csv
import re
import zlib
from array import array
from codecs import BOM_UTF8
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from io import BufferedReader, BytesIO, StringIO
from itertools import accumulate, chain, islice
from pathlib import Path
from typing import IO, Any

from harness_noise.errors import InputError
from harness_noise.io.paths import (
    POINTER,
    count,
    load_line,
    loads,
    loads_lines,
    opened,
    refuse_pointer,
)

from .blocks import Block
from .documents import document, inside, object_of, places_keyed, rows_of
from .narrow import Narrow
from .opening import Record, Rows, opened_table, readable, suffix_of

LONGEST_LINE = 1 << 26
"""Characters or bytes, more than any answer with its question has."""
_BATCH = 4096
_DECODED = 1 << 17
"""Bytes of lines that are decoded at once. More would not stay in the processor's cache."""
_SPLIT = 1 << 16
"""Bytes of CSV that are split at once."""
_FILTERED = 1 << 18
"""Bytes of lines of which most are left out."""
_SPARE_ROWS, _ROWS_PER_BYTE = 1_000_000, 32
"""Rows of a Parquet file: repetition packs so well that a small file could stand for billions."""


_START = 1 << 18
"""Bytes in which a file shows its format."""


def records(path: Path | Rows, rows: str | None = None, whole: Any = None) -> Iterator[tuple[int, Record]]:
    """Yield (line or row number, row dictionary) for each row of a table. Refuse `rows` for all but JSON."""
    return chain.from_iterable(blocks(path, rows, whole))


def blocks(path: Path | Rows, rows: str | None = None, whole: Any = None) -> Iterator[Block]:
    """Yield a table's rows in batches, with line numbers (or row numbers). Refuse `rows` for all but JSON.

    Args:
        path: the file, or the table.
        rows: the dotted path to the list of rows inside the objects of a JSON file.
        whole: the `document` that a JSON file is, if it has been read.
    """
    if isinstance(path, Rows):
        n = len(next(iter(path.cells.values()), path.rows))
        whole = Block(range(1, n + 1), None if path.cells else path.rows, path.cells)
        starts = [0, *range(_FIRST, n, _BATCH)]
        yield from map(whole.cut, starts, [*starts[1:], n])
        return
    suffix = suffix_of(path)
    with readable(path):
        if is_lines(path):
            yield from _json_lines(path, rows)
        elif suffix == ".json":
            listed = rows_of(path, rows, document(path) if whole is None else whole)
            while some := [*islice(listed, _BATCH)]:
                yield Block([number for number, _ in some], [row for _, row in some])
        elif rows is not None:
            raise InputError(f"{path}: `columns` rows={rows} is for JSON, whose rows may be inside an object")
        else:
            yield from (_parquet if suffix == ".parquet" else _csv)(path)


def is_lines(path: Path | Rows) -> bool:
    """Return True if a file is JSON lines by its ending, or is `.json` and its second line begins an object."""
    if isinstance(path, Rows):
        return False
    suffix = suffix_of(path)
    return suffix in (".jsonl", ".ndjson") or (suffix == ".json" and _second_line_is_object(path))


def is_document(path: Path | Rows) -> bool:
    """Return True if a file is a single JSON document, not one object on each line."""
    return isinstance(path, Path) and suffix_of(path) == ".json" and not is_lines(path)


def has_rows(path: Path) -> bool:
    """Return True if a JSON file's first bytes look like a table: a list, object lines, or questions as keys."""
    try:
        with opened_table(path) as file:
            start = file.read(_START).lstrip(b"\xef\xbb\xbf \t\r\n")
    except (OSError, EOFError, zlib.error):
        return False
    if start.startswith(b"["):
        return True
    return start.startswith(b"{") and (_ROWS.search(start) is not None or is_lines(path) or _is_keyed(start))


_ROWS = re.compile(rb":\s*\[\s*\{|^\{\s*\"columns\"\s*:\s*\[")


def _is_keyed(start: bytes) -> bool:
    """Return True if a JSON object's first bytes, cut after a complete value, show question names as keys."""
    with suppress(ValueError, RecursionError):
        data = loads(start)
        return isinstance(data, dict) and bool(places_keyed(data))
    if len(start) < _START:
        return False
    for whole in _closed_start(start):
        with suppress(ValueError, RecursionError):
            data = loads(whole)
            if isinstance(data, dict) and places_keyed(data):
                return True
    return False


_TOKENS = re.compile(rb'"(?:[^"\\]|\\.)*(?:"|\Z)|[][{},]', re.DOTALL)


def _closed_start(start: bytes) -> list[bytes]:
    """Return repaired JSON starts: cut after the last complete value at depths 1 and 2, brackets closed."""
    depth, ends = 0, {}
    for token in _TOKENS.finditer(start):
        sign = token[0]
        if sign == b",":
            ends[depth] = token.start()
        elif len(sign) == 1 and sign != b'"':
            depth += 1 if sign in b"{[" else -1
    return [start[: ends[level]] + b"}" * level for level in (1, 2) if level in ends]


def _second_line_is_object(path: Path) -> bool:
    """Return True if a file's first line is a JSON object and its second line begins another."""
    try:
        with opened_table(path) as file:
            first, second = file.readline(_START), file.readline(_START)
    except (OSError, EOFError, zlib.error):
        return False
    if not (first.lstrip(b"\xef\xbb\xbf \t").startswith(b"{") and second.lstrip().startswith(b"{")):
        return False
    with suppress(ValueError, RecursionError):
        return isinstance(loads(first), dict)
    return False


def objects(
    path: Path, unwanted: Callable[[bytes], bool] | None = None
) -> Iterator[tuple[Sequence[int], list[dict[str, Any]]]]:
    """Yield (line numbers, objects) of a JSON lines file in batches, `unwanted` lines left out. Refuse damage."""
    for first, n, piece in _opened_pieces(path, _DECODED if unwanted is None else _FILTERED):
        if unwanted is None:
            yield _objects_of(path, first, n, piece)
            continue
        kept = {number: line for number, line in enumerate(BytesIO(piece), first) if not unwanted(line)}
        rows = _parsed_lines(b"".join(kept.values()), len(kept))
        yield _one_by_one(path, kept) if rows is None else (list(kept), rows)


def narrow(path: Path, names: Sequence[str]) -> Iterator[Block]:
    """Yield batches of rows of a JSON lines file, only the fields named decoded. Refuse a faulty line."""
    decoder, numbers = Narrow(names), array("q")
    cells: dict[str, list[Any]] = {name: [] for name in names}
    for first, n, piece in _opened_pieces(path, _DECODED):
        lines: Sequence[int] = range(first, first + n)
        if (found := decoder.cells(piece, n)) is None:
            lines, rows = _objects_of(path, first, n, piece)
            decoder.learn(rows)
            found = {name: [row.get(name) for row in rows] for name in names}
        numbers.extend(lines)
        for name in names:
            cells[name] += found[name]
        if len(numbers) >= _GATHERED:
            yield Block(numbers, None, cells)
            numbers, cells = array("q"), {name: [] for name in names}
    if numbers:
        yield Block(numbers, None, cells)


def _opened_pieces(path: Path, size: int) -> Iterator[tuple[int, int, bytes]]:
    """Open a file. Yield (first line number, number of lines, bytes) in pieces. Refuse an endless line."""
    with readable(path), opened_table(path) as file:
        yield from _pieces(path, file, size)


def _pieces(path: Path, file: IO[bytes], size: int) -> Iterator[tuple[int, int, bytes]]:
    """Yield (first line number, number of lines, bytes) of pieces of whole lines. Refuse an endless line."""
    first = 1
    while piece := file.read(size):
        rest = file.readline(LONGEST_LINE)
        if len(rest) == LONGEST_LINE:
            raise _endless(path, first + count(piece, "\n"))
        piece += rest
        n = count(piece, "\n") + (not piece.endswith(b"\n"))
        yield first, n, piece
        first += n


def _objects_of(path: Path, first: int, n: int, piece: bytes) -> tuple[Sequence[int], list[dict[str, Any]]]:
    """Decode n JSON lines. Return (line numbers, objects), without blank lines. Refuse a faulty line."""
    if (rows := _parsed_lines(piece, n)) is not None:
        return range(first, first + n), rows
    return _one_by_one(path, dict(enumerate(BytesIO(piece), first)))


def _one_by_one(path: Path, lines: Mapping[int, bytes]) -> tuple[Sequence[int], list[dict[str, Any]]]:
    """Decode JSON lines singly and return (line numbers, objects). Raise an error that names a faulty line."""
    kept = {number: line for number, line in lines.items() if line.strip()}
    return list(kept), [_object_of_line(path, number, line) for number, line in kept.items()]


def gathered(
    pieces: Iterator[tuple[Sequence[int], list[dict[str, Any]]]],
) -> Iterator[tuple[Sequence[int], list[dict[str, Any]]]]:
    """Yield the given (line numbers, objects) batches joined into larger ones, since each batch costs time."""
    numbers: list[int] = []
    rows: list[dict[str, Any]] = []
    for more, found in pieces:
        numbers += more
        rows += found
        if len(rows) >= _GATHERED:
            yield numbers, rows
            numbers, rows = [], []
    if rows:
        yield numbers, rows


_GATHERED = 1000


def _parsed_lines(lines: bytes, n: int) -> list[dict[str, Any]] | None:
    """Decode n JSON lines at once and return their objects, None if they are not exactly n objects."""
    with suppress(ValueError, RecursionError):
        values = loads_lines(lines, n)
        return values if set(map(type, values)) <= {dict} else None
    return None


def _object_of_line(path: Path, number: int, line: bytes) -> dict[str, Any]:
    if line.startswith(POINTER):
        refuse_pointer(path)
    return object_of(path, f"line {number}", load_line(path, number, line, DAMAGED))


DAMAGED = ". Is the file damaged or truncated?"


def _texts(path: Path, file: IO[bytes]) -> Iterator[str]:
    """Yield a file's lines as text, in pieces. Raise an error at an overlong line."""
    coding = "utf-8-sig"
    for _, _, piece in _pieces(path, file, _SPLIT):
        yield piece.decode(coding)
        coding = "utf-8"


def _endless(path: Path, number: int) -> InputError:
    return InputError(f"{path}, line {number}: longer than {LONGEST_LINE / 1e6:.0f} MB: not a row of a table")


def _csv(path: Path) -> Iterator[Block]:
    with opened_table(path) as file:
        delimiter, texts, header, line = _delimiter(path, file), _texts(path, file), list[str](), 1
        for text in texts:
            if (cells := _plain_cells(text, delimiter, len(header))) is None:
                first = [f"{delimiter.join(header)}\n"] if header else []
                yield from _parsed_csv(path, chain(first, [text], texts), delimiter, line - 1)
                return
            if not header:
                header = _once(path, cells[: cells.index("\n")])
                cells = cells[len(header) + 1 :]
            columns = {name: cells[i :: len(header) + 1] for i, name in enumerate(header)}
            n = len(columns[header[0]])
            if n:
                yield Block(range(line + 1, line + n + 1), None, columns)
            line += n


def _plain_cells(text: str, delimiter: str, width: int) -> list[str] | None:
    """Return the cells of plain CSV lines, "\\n" after each row. None for quotes, another width or one column.

    Neither are lines of empty cells plain, nor several columns without a name. A width of 0 stands for that of the
    first row, the header.
    """
    if '"' in text or "\0" in text:
        return None
    text = text.replace("\r\n", "\n").removesuffix("\n") + "\n"
    cells = text.replace("\n", f"{delimiter}\n{delimiter}").split(delimiter)
    del cells[-1]  # behind the last line
    if not width and cells[: cells.index("\n")].count("") > 1:
        return None
    width, rows = width or cells.index("\n"), text.count("\n")
    if f"\n{delimiter * (width - 1)}\n" in f"\n{text}":
        return None
    even = len(cells) == rows * (width + 1) and cells[width :: width + 1].count("\n") == rows
    return cells if even and width > 1 and "\r" not in text else None


def _once(path: Path, header: list[str]) -> list[str]:
    """Return names of columns as they are. Raise an error if one stands twice."""
    if len({*header}) < len(header):
        twice = next(name for name in header if header.count(name) > 1)
        raise InputError(f"{path}: two columns are called {twice!r}")
    return header


def _parsed_csv(path: Path, texts: Iterable[str], delimiter: str, before: int) -> Iterator[Block]:
    """Yield blocks of the rows under the header of these CSV texts, `before` lines into the file. Refuse bad CSV."""
    lines, size = chain.from_iterable(StringIO(text, newline="") for text in texts), _FIRST
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    try:
        (header,), line = _next_rows(reader, 1), reader.line_num
        bare = {i for i, name in enumerate(header) if i and not name} if header.count("") > 1 else set[int]()
        names = _once(path, [name for i, name in enumerate(header) if i not in bare])
        while rows := _next_rows(reader, size):
            numbers = _lines_of(rows, before + line, before + reader.line_num)
            if not {*map(len, rows)} <= {len(header)} or not all(map(any, rows)):
                numbers, rows = _full_rows(path, numbers, rows, header)
            if bare and any(row[i] for row in rows for i in bare):
                _once(path, header)
            cells = [column for i, column in enumerate(zip(*rows, strict=True)) if i not in bare]
            yield Block(numbers, None, dict(zip(names, cells, strict=bool(rows))))
            size, line = _BATCH, reader.line_num
    except csv.Error as error:
        raise InputError(
            f"{path}, line {before + reader.line_num}: not CSV that can be read ({error}). A table has one row for "
            "each answer, with a question and a score"
        ) from None


def _next_rows(reader: Iterator[list[str]], n: int) -> list[list[str]]:
    """Return the next n rows of a CSV reader. A cell may be as long as a line, as transcripts are.

    The limit of the csv module is the whole process's, so it is put back.
    """
    usual = csv.field_size_limit(LONGEST_LINE)
    try:
        return [*islice(reader, n)]
    finally:
        csv.field_size_limit(usual)


def _delimiter(path: Path, file: BufferedReader) -> str:
    """Return the cells' separator (comma, semicolon or tab) by the header line. Refuse an empty or endless one.

    The file is at its start afterwards.
    """
    header = file.readline(LONGEST_LINE)
    if len(header) == LONGEST_LINE:
        raise _endless(path, 1)
    if not header.removeprefix(BOM_UTF8).strip():
        what = "first line is empty: a table begins with the names of its columns" if header else "file is empty"
        raise InputError(f"{path}: the {what}")
    file.seek(0)
    return max(",;\t", key=lambda sign: header.count(sign.encode()))


def _lines_of(rows: Sequence[Sequence[str]], before: int, last: int) -> Sequence[int]:
    """Return (n,) numbers of the file lines on which n CSV rows end, as quoted cells can span lines."""
    if last - before == len(rows):
        return range(before + 1, last + 1)
    breaks = (sum(len(_BREAK.findall(cell)) for cell in row) for row in rows)  # a quoted cell may have lines
    return [*accumulate((1 + n for n in breaks), initial=before)][1:]


def _full_rows(
    path: Path, lines: Sequence[int], rows: Sequence[list[str]], header: Sequence[str]
) -> tuple[Sequence[int], list[list[str]]]:
    """Return the line numbers and cells of CSV rows that are not empty. Raise an error if widths differ."""
    kept = [(line, row) for line, row in zip(lines, rows, strict=True) if any(row)]
    for line, row in kept:
        if len(row) != len(header):
            raise InputError(f"{path}, line {line}: {len(row)} cells, but the header has {len(header)} columns")
    return [line for line, _ in kept], [row for _, row in kept]


_FIRST = 64
"""Rows of the first block: most formats are known by them."""
_BREAK = re.compile(r"\r\n?|\n")


def _json_lines(path: Path, rows: str | None) -> Iterator[Block]:
    for numbers, lines in gathered(objects(path)):
        if rows is None:
            yield Block(numbers, lines)
        else:
            found = [
                (number, record)
                for number, row in zip(numbers, lines, strict=True)
                for record in inside(path, f"line {number}", row, rows)
            ]
            yield Block([number for number, _ in found], [record for _, record in found])


def parquet_rows(path: Path, columns: Sequence[str] | None = None) -> Iterator[tuple[int, Record]]:
    """Yield (row number, row dictionary) from a Parquet file, reading only `columns` if given."""
    return chain.from_iterable(_parquet(path, columns))


def _parquet(path: Path, columns: Sequence[str] | None = None) -> Iterator[Block]:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise InputError(f"{path}: Parquet needs pyarrow: pip install 'harness-noise[parquet]'") from None
    try:
        with opened(path) as file, parquet.ParquetFile(file) as table:
            _once(path, table.schema_arrow.names)
            most = _SPARE_ROWS + _ROWS_PER_BYTE * path.stat().st_size
            if table.metadata.num_rows > most:
                raise InputError(
                    f"{path}: says that it has {table.metadata.num_rows} rows, more than {_ROWS_PER_BYTE} for each of "
                    "its bytes: no table of scores packs so well. Write it as CSV if it is one"
                )
            number = 0
            for batch in table.iter_batches(_BATCH, columns=columns):
                first, number = number, number + len(batch)
                yield Block(range(first + 1, number + 1), None, batch.to_pydict())
    except InputError:
        raise
    except (pyarrow.ArrowException, ValueError, ArithmeticError, MemoryError) as error:  # a damaged page, a date
        raise InputError(f"{path}: not a Parquet file that can be read ({error})") from None
