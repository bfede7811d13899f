"""The versions of Python, of the harnesses and of packages that are allowed and tested, as a page.

python docs/versions.py > docs/versions.md
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
_PAGE = """# Versions

The oldest allowed version of each package is tested (`make lowest`), and so is the newest. `python docs/versions.py`
makes this page of `pyproject.toml` and the Makefile.

"""
_PYTHON = "Programming Language :: Python :: 3."
_NAMES = {"lm-eval": "[lm-eval](lm-eval.md), live runs", "inspect-ai": "[Inspect](inspect.md), live runs"}
_HEAD = "| package | needed | tested with | installed by | note |\n|---|---|---|---|---|\n"


def page() -> str:
    """Return the page in Markdown."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    project: dict[str, Any] = tomllib.loads(text)["project"]
    pythons = [kind.removeprefix(_PYTHON) for kind in project["classifiers"] if kind.startswith(_PYTHON)]
    rows = [_row("Python", project["requires-python"], ", ".join(f"3.{minor}" for minor in pythons), "–")]
    rows += [_of_package(each, "the core", text) for each in project["dependencies"]]
    for extra, needed in project["optional-dependencies"].items():
        rows += [_of_package(each, f"`harness-noise[{extra}]`", text) for each in needed if extra != "all"]
    harbor = re.search(r"'harbor(>=[\d.]+)'", _makefile())
    assert harbor is not None
    rows.append(_row("Harbor", harbor[1], "the newest, on Python 3.12", "–", "jobs with our plugin"))
    return _PAGE + _HEAD + "\n".join(rows) + "\n"


def _of_package(requirement: str, by: str, text: str) -> str:
    """Return the row of a requirement such as `pyarrow>=14.0.1`. The comment behind it is its note."""
    name, _, oldest = re.sub(r"\[.*\]", "", requirement).partition(">=")
    comment = re.search(rf'"{re.escape(requirement)}"\]?,?[ \t]*# (.*)$', text, re.M)
    listed = re.search(rf"^{name.removesuffix('-ai').replace('-', '_').upper()}_VERSIONS \?= (.*)$", _makefile(), re.M)
    tested = f"{oldest} and the newest" if listed is None else ", ".join(listed[1].split())
    return _row(_NAMES.get(name, name), f">={oldest}", tested, by, comment[1] if comment else "")


def _makefile() -> str:
    return (ROOT / "Makefile").read_text(encoding="utf-8")


def _row(name: str, needed: str, tested: str, by: str, why: str = "") -> str:
    return f"| {name} | {needed.removeprefix('>=')} or newer | {tested} | {by} | {why} |"


if __name__ == "__main__":
    print(page(), end="")
