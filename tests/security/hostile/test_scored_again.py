"""Patterns and templates of a log that would run for years or take all memory: none of them is run."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from .limits import shown

HOSTILE: dict[str, dict[str, Any]] = {
    "regex": {"filter_list": [{"name": "strict", "filter": [
        {"function": "regex", "regex_pattern": "((?:[^x]+)+)+$y"}, {"function": "take_first"}]}]},
    "loop": {"doc_to_target": "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}{{a}}"},
    "memory": {"doc_to_target": "{% set x = 'a' * 4000000000 %}{{answer}}"},
    "power": {"doc_to_target": "{% if 9 ** (9 ** 9) %}{% endif %}{{answer}}"},
    "attribute": {"doc_to_target": "{{ ''.__class__.__mro__[1].__subclasses__() }}"},
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_a_configuration_of_a_file_is_never_run(name: str, real_files: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(real_files / "lm_eval" / "a" / "sim__model-1", folder)
    (results,) = folder.glob("results_*.json")
    content = json.loads(results.read_text())
    content["configs"]["gen"] |= HOSTILE[name]
    results.write_text(json.dumps(content))
    found = shown("analyze", folder)
    rows = [row for row in found["estimates"] if (row["task"], row["metric"]) == ("gen", "exact_match")]
    assert rows
    assert all(row["repeats_max"] == 1 for row in rows if row["scorer"] == "strict")
    assert "--noise keeps the score of every answer" in str(found["notes"])
