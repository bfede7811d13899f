"""A notebook shows a result as the docs say: the verdict first, then the tables, and the figure as a picture."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import harness_noise as hn

nbformat = pytest.importorskip("nbformat", reason="notebooks need pip install --group test")
nbclient = pytest.importorskip("nbclient", reason="notebooks need pip install --group test")
pytestmark = pytest.mark.process
PAGE = Path(hn.__file__).parents[1] / "docs" / "python.md"


def blocks() -> list[str]:
    """The code of the first two examples of docs/python.md, which make scores and write their own tables."""
    page = PAGE.read_text(encoding="utf-8")
    found = re.findall(r"```(?:pycon|python)\n(.*?)\n```", page, re.S)[:2]
    plain, typed = found
    lines = [line[4:] for line in typed.splitlines() if line.startswith((">>> ", "... "))]
    return [plain, "\n".join(lines)]


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """What a real kernel shows below each cell: MIME type → content."""
    folder = tmp_path_factory.mktemp("notebook")
    cells = [*blocks(), "result", "result.plot()", "hn.arena(['old.csv', 'new.csv'])", "print(result)"]
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    done = nbclient.execute(book, cwd=str(folder), timeout=300)
    shown = []
    for cell in done.cells:
        data = [output.get("data", {"text/plain": output.get("text", "")}) for output in cell.outputs]
        assert not [output for output in cell.outputs if output.output_type == "error"]
        shown.append(dict(data[-1]) if data else {})
    return shown


def test_the_last_line_of_a_cell_shows_the_verdict_then_the_tables(outputs: list[dict[str, Any]]) -> None:
    _, _, result, _, board, printed = outputs
    said = re.search(r"<Comparison: (.*)>", result["text/plain"])
    assert said is not None
    html = result["text/html"]
    assert said[1] in html
    assert html.index(said[1]) < html.index("<table")
    assert "<script" not in html
    assert len(board["text/plain"]) <= 230
    assert "★" in board["text/html"]
    assert "win rate" not in board["text/html"]  # an expert's table
    assert said[1].split(";")[0] in " ".join(printed["text/plain"].split())


def test_a_figure_is_a_picture(outputs: list[dict[str, Any]]) -> None:
    assert "<svg" in outputs[3]["image/svg+xml"]
