"""Every Python example in the README and under docs/ runs, and prints what the page says.

A block with `>>>` is a doctest. In any other block the comment lines that follow a `print(…)` are its
output. The blocks of a page share their names. `<!-- not run: reason -->` before a block leaves it out.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^(?P<skip><!-- not run: .+? -->\n+)?```(?:python|pycon)[^\n]*\n(?P<code>.*?)^```$", re.M | re.S)
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def blocks(page):
    text = page.read_text(encoding="utf-8")
    for found in BLOCK.finditer(text):
        if found["skip"] is None:
            yield text.count("\n", 0, found.start("code")) + 1, found["code"]


def run_plain(code, names, where):
    """Execute a block; compare what it prints with the comments after its print lines."""
    lines = code.splitlines()
    expected, after = [], False
    for line in lines:
        after = line.startswith("print(") or (after and line.startswith("# "))
        if after and line.startswith("# "):
            expected.append(line[2:])
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(code, where, "exec"), names)  # noqa: S102
    if expected:
        assert out.getvalue().splitlines() == expected, where


def run_doctest(code, names, where, line):
    test = doctest.DocTestParser().get_doctest(code, names, where, where, line)
    report = io.StringIO()
    runner = doctest.DocTestRunner(optionflags=FLAGS, verbose=False)
    runner.run(test, out=report.write, clear_globs=False)
    names.update(test.globs)
    assert runner.failures == 0, report.getvalue()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_examples(page, tmp_path, monkeypatch):
    found = list(blocks(page))
    if not found:
        return  # a page without Python
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "__main__"}
    for line, code in found:
        where = f"{page.relative_to(ROOT)}:{line}"
        if ">>> " in code:
            run_doctest(code, names, where, line)
        else:
            run_plain(code, names, where)


def test_the_runner_sees_a_wrong_output(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "```python\n>>> 1 + 1\n3\n```\n\n```python\nprint(2)\n# 3\n```\n\n<!-- not run: x -->\n```python\n1/0\n```\n"
    )
    (line, first), (_, second) = blocks(page)
    with pytest.raises(AssertionError):
        run_doctest(first, {}, "page", line)
    with pytest.raises(AssertionError):
        run_plain(second, {}, "page")


def test_every_method_has_a_page_with_an_example():
    pages = sorted((ROOT / "docs" / "methods").glob("*.md"))
    assert len(pages) >= 12
    without = [page.name for page in pages if not page.name.startswith("coverage") and not list(blocks(page))]
    assert not without
