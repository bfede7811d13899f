"""The meter of the pages counts sentences, and nothing else."""

from __future__ import annotations

import json
import re

import pytest

import prose

PAGE = """# A heading is none; it is not counted

One sentence has six words here. `code; where` counts as a single word;
a [link](where;it-leads.md) as its text.

A sign such as `x < 0` hides nothing. Three words more. Not before `<name>` ends.

> A quote is read, too.

| a | table; where |
|---|---|

- An item of a list is another one.

```
no; code; where
```
"""


def test_sentences_are_those_of_the_text() -> None:
    found = prose.sentences(PAGE)
    assert [len(one.split()) for one in found] == [6, 11, 7, 3, 4, 5, 8]
    now = prose.measured(found)
    assert now["median"] == 6
    assert now["long"] == now["where"] == 0
    assert now["semicolons"] == pytest.approx(1000 / 44)


def test_a_budget_is_above_the_aim_and_of_a_page() -> None:
    kinds = prose.of_code()
    for name, budget in json.loads(prose.BUDGETS.read_text(encoding="utf-8")).items():
        assert name in kinds or (prose.ROOT / name).is_file()
        assert all(value > prose.AIMS[key] for key, value in budget.items()), name


UNITS = {
    "95%, without a space": r"\d %",
    "points": r"\bpp\b|\d pts?\b",
    "%, or percentage": r"\bper ?cent\b",
    "a 0 before the point": r"(?<![\w.)])\.\d",
    "− for a sign": r"(?<![\w)\]-])-\d",
}
"""How a unit is written, and what it looks like if it is not. Names of designs are those of their tables."""


def test_units_are_written_in_one_way() -> None:
    pages = [prose.ROOT / "README.md", *sorted((prose.ROOT / "docs").rglob("*.md"))]
    found = prose._of_pages(pages) | prose.of_code()
    wrong = [
        (name, rule, one)
        for name, some in found.items()
        for one in some
        for rule, pattern in UNITS.items()
        if re.search(pattern, re.sub(r"Beta\([^)]*\)", "", one))
    ]
    assert wrong == []
