"""What a name from a log may not do in any output: run as a formula, be markup, move a cursor, break a file."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

import harness_noise as hn
from harness_noise.cli import main

NAMES = (
    "=1+1", "+1", "-1+x", "@SUM(A1)", "\tx", "a|b`c`*d*", "<script>alert(1)</script>", "</script><img src=x onerror=y>",
    "a\x1b[31mred\x1b]8;;http://x\x07", "a\rb", "\u202eabc", "a\u2028b", "$\\frac{1}{$", "{{ 7*7 }}", "a\x00b",
    "\\input{x}", "%x", "[red]x[/red]", "\ud800x", "a\nb",
)  # fmt: skip


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Three models and two tasks whose every text is hostile; lone surrogates as JSON writes them."""
    rows = [
        {"model": f"{name}{m}", "task": name, "metric": NAMES[(i + 3) % len(NAMES)], "question": f"{name}{q}",
         "cluster": f"{NAMES[(i + 5) % len(NAMES)]}{q // 3}", "repeat": k,
         "score": (q * 7 + m * 3 + k + q // 2) % 3 % 2}
        for i, name in enumerate(NAMES) for m in range(2) for q in range(9) for k in range(2)
    ]  # fmt: skip
    path = tmp_path / "x.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


FORMS = ["table", "json", "csv", "markdown", "latex"]


def shown_without_control_characters(form: str, text: str, said: str) -> None:
    assert not any(ord(c) < 32 and c != "\n" for c in text if form != "csv")
    assert "\x1b" not in text.replace("\\u001b", "") or form == "csv"
    assert all(c.isprintable() or c == "\n" for c in said)
    if form == "json":
        json.loads(text)


@pytest.mark.parametrize("form", FORMS)
def test_every_format_is_printed_without_control_characters(form: str, table: Path) -> None:
    command = [sys.executable, "-m", "harness_noise", "analyze", table, "--format", form]
    done = subprocess.run(command, capture_output=True)
    assert done.returncode == 0, done.stderr.decode()
    shown_without_control_characters(form, done.stdout.decode("utf-8"), done.stderr.decode("utf-8"))


@pytest.mark.parametrize("form", FORMS)
def test_every_format_is_written_without_control_characters(
    form: str, table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "out"
    assert main(["analyze", str(table), "--format", form, "-o", str(target)]) == 0
    shown_without_control_characters(form, target.read_bytes().decode("utf-8"), capsys.readouterr().err)


def test_no_cell_of_a_csv_file_is_a_formula(table: Path, tmp_path: Path) -> None:
    assert main(["analyze", str(table), "-q", "--format", "csv", "-o", str(tmp_path / "a.csv")]) == 0
    assert main(["arena", str(table), "-q", "--tables", str(tmp_path / "t"), "-o", str(tmp_path / "x")]) == 0
    for path in (tmp_path / "a.csv", *(tmp_path / "t").glob("*.csv")):
        rows = list(csv.reader(io.StringIO(path.read_text(encoding="utf-8"), newline="")))
        assert len(rows) > 2
        assert len({len(row) for row in rows}) == 1
        for cell in (cell for row in rows for cell in row if cell):
            if cell[0] in "=+-@\t\r":
                float(cell)  # a negative number is none


def test_pages_and_figures_hold_no_markup_of_a_name(table: Path, tmp_path: Path) -> None:
    folder = tmp_path / "pages"
    assert (
        main(["arena", str(table), "-q", "--html", str(folder), "--figures", str(folder), "-o", str(tmp_path / "x")])
        == 0
    )
    pages, figures = list(folder.rglob("*.html")), list(folder.rglob("*.svg"))
    assert len(pages) > 1
    assert figures
    for path in (*pages, *figures):
        text = path.read_text(encoding="utf-8")
        assert "alert(1)</script>" not in text
        assert "<img src=x" not in text
        assert not any(ord(c) < 32 and c not in "\n\t" for c in text)
        if path.suffix == ".svg":
            ElementTree.fromstring(text)


def test_errors_and_hints_show_no_control_characters(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("question,score\nq,\x1b[31m\x07\u202e\n")
    done = subprocess.run([sys.executable, "-m", "harness_noise", "analyze", path], capture_output=True, text=True)
    assert done.returncode == 2
    assert all(c.isprintable() or c == "\n" for c in done.stderr)
    name = tmp_path / "\x1b[31mx.csv"
    done = subprocess.run([sys.executable, "-m", "harness_noise", "analyze", name], capture_output=True, text=True)
    assert done.returncode == 2
    assert all(c.isprintable() or c == "\n" for c in done.stderr)


@pytest.mark.parametrize("kind", ["csv", "json", "parquet"])
def test_half_a_surrogate_pair_in_every_name_of_an_lm_eval_run(kind: str, tmp_path: Path) -> None:
    """Tables of text cannot hold it, though JSON can spell it."""
    if kind == "parquet":
        pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    date, metric, half = "2026-01-02T03-04-05.678901", "m\ud801", "\ud800"
    for m in range(2):
        folder = tmp_path / "runs" / str(m)
        folder.mkdir(parents=True)
        right = [float((3 * i + m) % 4 > 0) for i in range(12)]
        rows = [
            {"doc_id": i, "doc": {"question": f"{i}{half}?"}, "target": half, "arguments": {}, "resps": [[half]],
             "filtered_resps": [half], "filter": "none", "metrics": [metric], metric: x, "doc_hash": f"{half}{i}",
             "cluster": f"c{half}{i // 3}"}
            for i, x in enumerate(right)
        ]  # fmt: skip
        results = {"results": {"t": {f"{metric},none": sum(right) / 12}}, "configs": {}, "model_name": f"{half}{m}"}
        (folder / f"results_{date}.json").write_text(json.dumps(results))
        (folder / f"samples_t_{date}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    out = tmp_path / "tables"
    hn.write_tables(hn.arena(tmp_path / "runs"), out, kind)
    names = ("models", "pairs", "benchmarks", "questions")
    assert {path.name for path in out.iterdir()} == {f"{name}.{kind}" for name in names}
