"""`records.items`: a long list is read in parts, and says what the whole document would say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness_noise.errors import InputError
from harness_noise_adapters import records

ROWS: list[dict[str, Any]] = [
    {"id": i, "text": "}, {" * i, "stats": [{"name": {"name": "a"}}, {"b": [{}, {}]}]} for i in range(40)
]
WEIRD = '[\n  {"a": [{"b": 1\n  },\n  {"c": 2}]\n  },\n  {"d": 3\n  },\n  {"e": [{"b": 1\n  },\n  {"c": 2}]}]'
"""Inner items that stand as far in as the outer ones."""
LISTS = {
    "indented": json.dumps(ROWS, indent=2),
    "in one line": json.dumps(ROWS),
    "indented by four": json.dumps(ROWS, indent=4),
    "one item": json.dumps(ROWS[:1], indent=2),
    "nothing": "[]",
    "space before": "\n" + json.dumps(ROWS, indent=2),
    "with NaN": json.dumps([*ROWS, {"x": 1e300}], indent=2).replace("1e+300", "Infinity"),
    "weird": WEIRD,
}


@pytest.fixture(params=[1, 100, 700, 1 << 17], autouse=True)
def part(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "_PART", request.param)


@pytest.mark.parametrize("name", LISTS)
def test_parts_are_the_items_of_the_document(name: str, tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(LISTS[name])
    assert list(records.items(path)) == json.loads(LISTS[name])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (LISTS["indented"].replace('"id": 30', '"text": 1, "id": 30'), "'text' is in one of its objects twice"),
        (LISTS["indented"][:-20], "not JSON"),
        (LISTS["indented"] + "]", "not JSON"),
        (LISTS["indented"] + "{}", "not JSON"),
        ('{"a": 1}', "no list, but dict; whose"),
        ("1", "no list, but int"),
        ("", "not JSON"),
        ("[" * 100_000, "not JSON"),
    ],
)
def test_what_the_document_refuses_the_parts_refuse(text: str, words: str, tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(text)
    with pytest.raises(InputError, match=words):
        list(records.items(path, "; whose?"))


def test_a_file_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        list(records.items(tmp_path / "a.json"))
