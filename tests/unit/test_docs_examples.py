"""Every example in the README and under docs/ runs, and prints what the page says.

A block with `>>>` is a doctest. In any other block of Python the comment lines that follow a `print(…)` are its
output. The blocks of a page share their names. `<!-- not run: reason -->` before a block leaves it out. In a block of
`console` each line that begins with `$` is a command, typed in 80 columns; lines below it are what it prints. There a
line `…` stands for any lines.
`PYTHONPATH=tests:adapters python tests/unit/test_docs_examples.py` writes what they print now.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import os
import re
import shlex
import subprocess
import sys
import tempfile
from importlib.metadata import distributions
from pathlib import Path
from unittest import mock

import pytest
from packaging.version import Version

from support.processes import environment

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(
    r"^(?P<skip><!-- not run: .+? -->\n+)?```(?P<kind>python|pycon|console)[^\n]*\n(?P<code>.*?)^```$", re.M | re.S
)
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def blocks(page):
    text = page.read_text(encoding="utf-8")
    for found in BLOCK.finditer(text):
        if found["skip"] is None:
            yield text.count("\n", 0, found.start("code")) + 1, found["code"], found["kind"] == "console"


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


def printed(words, where):
    """Return what a command prints; those of a harness run in a process of their own."""
    from harness_noise.cli import main

    if words[:2] == ["harness-noise", "lm-eval"] or words[0] == "inspect":
        package, oldest = ("inspect-ai", "0.3.262") if words[0] == "inspect" else ("lm-eval", "0.4.10")
        if not any(Version(there.version) >= Version(oldest) for there in distributions(name=package)):
            pytest.skip(f"live runs need {package} {oldest} or later")
        words = [str(Path(sys.executable).with_name(words[0])), *words[1:]]
        done = subprocess.run(words, env=environment(HF_HUB_OFFLINE="1"), capture_output=True, text=True)
        assert done.returncode == 0, (where, done.stdout[-2000:], done.stderr[-2000:])
        return without_ends(done.stdout)
    assert words[0] == "harness-noise", where
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
        code = main(words[1:])
    assert code == int(out.getvalue().startswith("fail: ")), (where, words)  # 1 if a gate fails
    return without_ends(out.getvalue())


def without_ends(text):
    return "\n".join(line.rstrip() for line in text.strip().splitlines())


def is_shown(expected, out):
    """Whether a page shows an output, some lines of it as `…`."""
    parts = re.split(r"^…$\n?", expected.strip() + "\n", flags=re.M)
    return re.fullmatch(r"(?:.*\n)*".join(map(re.escape, parts)), out + "\n") is not None


def run_commands(code, where):
    """Type the commands of a block; those below which something stands print just that."""
    for typed in code.split("$ ")[1:]:
        command, _, expected = typed.partition("\n")
        out = printed(shlex.split(command), where)
        assert not expected.strip() or is_shown(expected, out), (where, out)


def rewrite(page):
    """Put what each command of a page prints now in place of what stands below it."""
    names = {"__name__": "__main__"}

    def block(found):
        if found["kind"] != "console":
            exec(found["code"], names)  # noqa: S102
            return found[0]
        lines = []
        for typed in found["code"].split("$ ")[1:]:
            command, _, expected = typed.partition("\n")
            out = printed(shlex.split(command), page.name)
            lines += [
                f"$ {command}",
                *([out] if expected.strip() and not is_shown(expected, out) else expected.splitlines()),
            ]
        return "```console\n" + "\n".join(lines) + "\n```"

    page.write_text(BLOCK.sub(block, page.read_text(encoding="utf-8")), encoding="utf-8")


TABLES = ROOT / "docs" / "tutorials" / "table.md"
"""The tutorial whose first block makes `new.csv`, `mid.csv` and `old.csv`, which other pages use."""
TYPED = [ROOT / "docs" / "tutorials" / name for name in ("lm-eval.md", "inspect.md")]
"""Tutorials whose commands start a harness again and again."""


@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=[pytest.mark.slow] if page in TYPED else []) for page in PAGES if any(blocks(page))],
    ids=lambda page: str(page.relative_to(ROOT)),
)
def test_examples(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    names = {"__name__": "__main__"}
    if "table.md#the-tables" in page.read_text(encoding="utf-8"):
        _, code, _ = next(blocks(TABLES))
        run_plain(code, {}, "the tables")
    for line, code, commands in blocks(page):
        where = f"{page.relative_to(ROOT)}:{line}"
        if commands:
            run_commands(code, where)
        elif ">>> " in code:
            run_doctest(code, names, where, line)
        else:
            run_plain(code, names, where)


def test_the_runner_sees_a_wrong_output(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "```python\n>>> 1 + 1\n3\n```\n\n```python\nprint(2)\n# 3\n```\n\n<!-- not run: x -->\n```python\n1/0\n```\n"
    )
    (line, first, _), (_, second, _) = blocks(page)
    with pytest.raises(AssertionError):
        run_doctest(first, {}, "page", line)
    with pytest.raises(AssertionError):
        run_plain(second, {}, "page")
    with pytest.raises(AssertionError):
        run_commands("$ harness-noise list\nsomething else\n", "page")
    with pytest.raises(AssertionError):
        run_commands("$ harness-noise analyze nothing.csv\n", "page")


def test_some_lines_may_be_left_out_of_an_output_but_none_changed():
    out = "first\nsecond\nthird"
    assert all(is_shown(page, out) for page in (out, "first\n…\n", "…\nthird\n", "…\nsecond\n…"))
    assert not any(is_shown(page, out) for page in ("first\nthird", "…\nsecond", "…\nfourth\n…", "first\n…\nird"))


def test_every_method_has_a_page_with_an_example():
    pages = sorted((ROOT / "docs" / "methods").glob("*.md"))
    assert len(pages) >= 12
    without = [
        page.name for page in pages if not page.name.startswith(("coverage", "index")) and not list(blocks(page))
    ]
    assert not without


if __name__ == "__main__":
    for tutorial in sorted((ROOT / "docs" / "tutorials").glob("*.md")):
        with (
            tempfile.TemporaryDirectory() as folder,
            contextlib.chdir(folder),
            mock.patch.dict(os.environ, COLUMNS="80"),
        ):
            rewrite(tutorial)
