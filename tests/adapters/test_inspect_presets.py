"""What `auto` stands for, checked against the inspect_evals that is installed."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path

import pytest

from harness_noise_adapters.inspect_logs.clusters import AUTO, natural

SPEC = find_spec("inspect_evals")
FOLDER = Path(SPEC.submodule_search_locations[0]) if SPEC and SPEC.submodule_search_locations else None


def module_of(task: str) -> str:
    """The source of the module of inspect_evals that defines a task, with what it builds its samples from."""
    assert FOLDER is not None
    for path in sorted(FOLDER.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        if re.search(rf"^@task\b[^\n]*\ndef {task}\(", text, re.MULTILINE):
            return text
    raise AssertionError(f"inspect_evals has no task {task}")


def fields(spec: str) -> list[str]:
    return re.findall(r"\{\{\s*(\w+)", spec) or [spec]


@pytest.mark.skipif(FOLDER is None, reason="inspect_evals is not installed")
@pytest.mark.parametrize("task", sorted(AUTO))
def test_the_task_exists_and_writes_the_field(task):
    text = module_of(task)
    for field in fields(AUTO[task]):
        assert re.search(rf"""["']{field}["']\s*:""", text), f"{task}: no sample has {field}"


@pytest.mark.skipif(FOLDER is None, reason="inspect_evals is not installed")
def test_what_its_scorers_cluster_by_is_known():
    """The five whose own error is clustered say the same as the table."""
    said = {}
    for path in FOLDER.rglob("*.py"):
        text = re.sub(r"#.*", "", path.read_text(encoding="utf-8"))
        for key in re.findall(r"""\bstderr\(cluster=["'](\w+)["']""", text):
            for task in re.findall(r"^@task\b[^\n]*\ndef (\w+)\(", text, re.MULTILINE):
                said[task] = key
    assert {"squad", "drop", "race_h", "docvqa", "mgsm"} <= said.keys()
    assert {task: AUTO.get(task) for task in said} == said


def test_a_preset_that_no_sample_has_is_none():
    assert natural("drop", [{"passage_hash": "x"}]) == "passage_hash"
    assert natural("inspect_evals/drop", [{}, {"passage_hash": "x"}]) == "passage_hash"
    assert natural("drop", [{"other": 1}, None]) is None
    assert natural("bbq", [{"category": "Age", "question_index": 3}]) == "{{category}}/{{question_index}}"
    assert natural("bbq", [{"category": "Age"}]) is None
    assert natural("unknown", [{"passage_hash": "x"}]) is None
