"""CSV that is split and CSV that is parsed are the same table."""

from __future__ import annotations

import csv
import random
from io import StringIO
from pathlib import Path

import pytest

from harness_noise import InputError
from harness_noise_adapters.tables import files
from support.tables import array, one

CELLS = ("", "a", "1.0", "x y", "é", "'", "\x0b", "\u2028", "\x1c", "\x85")


def written(draw: random.Random, sign: str) -> str:
    """A table without quotes, and with a chance of one half something odd in it."""
    end, width = draw.choice(("\n", "\r\n")), draw.randint(2, 4)
    rows = [[draw.choice(CELLS) for _ in range(width)] for _ in range(draw.choice((0, 3, 90)))]
    text = end.join(map(sign.join, [[f"c{i}" for i in range(width)], *rows])) + draw.choice(("", end))
    if draw.random() < 0.5:
        at = draw.randrange(5, len(text) + 5)
        text = text[:at] + draw.choice(('"', "\n", "\r\n", "\r", sign, "\0", '""', f'"a{end}b"', end * 2)) + text[at:]
    return text


def parsed(text: str, sign: str) -> list[list[str]]:
    """The header and the rows by the csv module alone. Raise what it raises, or for a row of another width."""
    header, *rows = csv.reader(StringIO(text, newline=""), delimiter=sign, strict=True)
    rows = [row for row in rows if any(row)]
    if {*map(len, rows)} - {len(header)} or len({*header}) < len(header):
        raise csv.Error
    return [header, *rows]


@pytest.mark.parametrize("sign", [",", ";", "\t"])
@pytest.mark.parametrize("size", [40, 1 << 16])
def test_cells_are_those_of_the_csv_module(
    size: int, sign: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "_SPLIT", size)
    draw, path, refused = random.Random(f"{size}{sign}"), tmp_path / "t.csv", 0
    for _ in range(150):
        text = written(draw, sign)
        path.write_bytes(text.encode())
        try:
            header, *rows = parsed(text, sign)
        except csv.Error:
            refused += 1
            with pytest.raises(InputError):
                list(files.blocks(path))
            continue
        found = [block for block in files.blocks(path) if len(block)]
        assert [row for block in found for row in zip(*block.cells.values(), strict=True)] == [*map(tuple, rows)]
        assert all(list(block.cells) == header for block in found)
        numbers = [number for block in found for number in block.lines]
        assert len(numbers) == len(rows)
        assert numbers == sorted({*numbers})
    assert 10 < refused < 75


def test_a_fault_behind_many_lines_names_its_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_SPLIT", 100)
    path = tmp_path / "t.csv"
    for fault, said in (("1,2,3", "line 301: 3 cells"), ('1,"2"3', "line 301: not CSV")):
        path.write_text("a,b\n" + "1,2\n" * 299 + f"{fault}\n" + "1,2\n" * 50)
        with pytest.raises(InputError, match=said):
            list(files.blocks(path))


@pytest.mark.parametrize("words", ["a b " * 100_000, f'"{"a, " * 100_000}"'])
def test_a_cell_may_be_as_long_as_a_transcript(tmp_path, words):
    path = tmp_path / "t.csv"
    path.write_text(f"question,score,words\n1,1,{words}\n2,0,b\n", encoding="utf-8")
    usual = csv.field_size_limit()
    (_, first), (line, second) = files.records(path)
    assert csv.field_size_limit() == usual  # of the whole process
    assert len(first["words"]) > 131_072
    assert (line, dict(second)) == (3, {"question": "2", "score": "0", "words": "b"})


@pytest.mark.parametrize("more", ["", '"q ""x""",1'])
def test_empty_columns_and_rows_of_a_spreadsheet_say_nothing(more, tmp_path):
    path = tmp_path / "t.csv"
    rows = [f"q{i},{i % 2}" for i in range(200)] + [more] * bool(more)
    n = len(rows)
    for first, last in (("", ",,"), ("", ","), ("0,", ",,")):
        lines = [f"{',' * bool(first)}id,score{last}", *(f"{first}{row}{last}" for row in rows)]
        blank = "," * lines[0].count(",")
        path.write_text("\n".join([*lines[:20], blank, *lines[20:], blank, blank]) + "\n", encoding="utf-8")
        assert array(one(path)).shape == (n, 1)
    path.write_text("\n".join(["id,score,,", *(f"{row},," for row in rows), "q,1,,x"]), encoding="utf-8")
    with pytest.raises(InputError, match="two columns are called ''"):
        one(path)
