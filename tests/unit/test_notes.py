"""Notes: a code and a task for programs, words for people, which code never reads."""

from __future__ import annotations

import ast
import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import harness_noise as hn
from harness_noise.cli.commands import in_flags
from harness_noise.data.notes import Note, codes, merge_notes
from harness_noise.data.questions import Questions
from harness_noise.data.scores import Run, Scores, Skipped
from harness_noise.report.summary import NO_NUMBERS, NO_SAMPLES, NOT_SCORED, summarise
from support.notes import noted

TREE = Path(__file__).parents[2]
SOURCES = {
    path.relative_to(TREE).as_posix(): ast.parse(path.read_text(encoding="utf-8"))
    for folder in ("harness_noise", "adapters")
    for path in sorted((TREE / folder).rglob("*.py"))
}
READERS = {
    # what prints, or writes a page
    "harness_noise/cli/options.py": 2,
    "harness_noise/extra/factors/report.py": 1,
    "harness_noise/extra/gate/report.py": 4,
    "harness_noise/report/html.py": 1,
    "harness_noise/extra/arena/pages.py": 1,
    "harness_noise/extra/plan/report.py": 2,
    # what a harness logs or prints for us while it runs
    "adapters/harness_noise_adapters/inspect_logs/hook.py": 3,
    "adapters/harness_noise_adapters/extra/stopping/of_inspect/stopping.py": 1,
    "adapters/harness_noise_adapters/lm_eval_harness/live/cli.py": 1,
    "adapters/harness_noise_adapters/lm_eval_harness/live/hook.py": 2,
    # what says that a count is of all questions
    "harness_noise/data/only.py": 1,
    # the words of an error
    "adapters/harness_noise_adapters/extra/formats/harbor.py": 1,
    "harness_noise/analysis/difference.py": 1,
    "harness_noise/extra/slices/cutting.py": 1,
    "harness_noise/api/files.py": 1,
}
"""Who reads the words of notes, and in how many places."""


def run_of(values: np.ndarray, task: str = "t", **fields: object) -> Run:
    keys = tuple(f"q{i}" for i in range(len(values)))
    part = Scores(task, "acc", "none", Questions(keys, "id"), values[:, None])
    return replace(Run("m", task, "array", scores=(part,)), **fields)  # type: ignore[arg-type]


def reads(tree: ast.Module) -> int:
    """Places that read the words of a note: its methods, and `texts` of its module."""
    imported = {
        name.asname or name.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").endswith("data.notes")
        for name in node.names
    }
    return sum(
        (isinstance(node, ast.Attribute) and node.attr in ("as_text", "reworded"))
        or (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in imported & {"texts"})
        for node in ast.walk(tree)
    )


def test_only_what_shows_a_note_reads_its_words() -> None:
    found = {name: n for name, tree in SOURCES.items() if name != "harness_noise/data/notes.py" and (n := reads(tree))}
    assert found == READERS


def test_nothing_else_touches_the_private_field() -> None:
    fields = [
        name
        for name, tree in SOURCES.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr == "_text" and not ast.unparse(node).startswith("self.")
    ]
    assert fields == []


def made_by_functions() -> set[str]:
    """Codes of the functions of the module that make one note, where another module calls the function."""
    called = {
        node.func.id
        for name, tree in SOURCES.items()
        if not name.endswith("data/notes.py")
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    return {
        node.args[0].value
        for function in SOURCES["harness_noise/data/notes.py"].body
        if isinstance(function, ast.FunctionDef) and function.name in called
        for node in ast.walk(function)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Note"
        if isinstance(node.args[0], ast.Constant) and isinstance(node.args[0].value, str)
    }


def test_every_code_of_the_list_is_used_and_no_other() -> None:
    words = Counter(
        node.value
        for name, tree in SOURCES.items()
        if not name.endswith("data/notes.py")
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    )
    named = {"from_adapter", "no_error_bar", "no_samples", "not_scored"}  # for other packages; constants of the module
    assert [code for code in codes() if code not in words and code not in named | made_by_functions()] == []
    with pytest.raises(ValueError, match="no code of a note"):
        Note("something", "a sentence")


def test_a_note_names_its_task_for_people_and_programs() -> None:
    note = Note("left_out", "left out").of("arc", "acc")
    assert (note.code, note.as_text(), note.task) == ("left_out", "arc, acc: left out", "arc")
    assert note.to_dict() == {"code": "left_out", "text": "arc, acc: left out", "task": "arc"}
    assert note.reworded(str.upper).to_dict() == note.to_dict() | {"text": "ARC, ACC: LEFT OUT"}
    assert repr(note) == "Note(code='left_out', text='arc, acc: left out', task='arc')"
    assert merge_notes([note, note], [Note("left_out", "left out")]) == (note, Note("left_out", "left out"))


@pytest.mark.parametrize("task", ["only hard", "left out: a", "ONE RUN", "samples", "predict_only"])
def test_a_task_may_be_called_like_the_words_of_a_note(task: str) -> None:
    rng = np.random.default_rng(1)
    percent = run_of(100.0 * (rng.random(40) < 0.8), task)
    share = run_of((rng.random(40) < 0.5).astype(float), task)
    gate = hn.gate(replace(percent, model="a"), replace(share, model="b", name="b"))
    assert "scales_differ" in {note.code for note in gate.notes if note.task == task}


@pytest.mark.parametrize(
    ("skipped", "words"),
    [
        (Skipped("samples", "f1", "none", "its samples are no numbers (predict_only)"), NO_NUMBERS),
        (Skipped("t", "f1", "none", "its answers are not here", code="no_samples"), NO_SAMPLES),
        (Skipped("t", "bypass", "none", "nothing was scored", code="not_scored"), NOT_SCORED),
    ],
)
def test_what_is_said_of_a_run_without_error_bars_comes_from_codes(skipped: Skipped, words: str) -> None:
    found = summarise(hn.analyze(Run("m", "r", "array", skipped=(skipped,))), brief=True)
    assert found.sentences == (words,)


def test_json_has_objects_and_the_command_line_its_flags() -> None:
    found = hn.analyze(run_of(np.arange(4.0) % 2, notes=(Note("missing", "use `cluster='x'`").of("t"),)))
    assert json.loads(found.to_json())["notes"] == [{"code": "missing", "text": "t: use `cluster='x'`", "task": "t"}]
    assert found.to_dict()["schema_version"] == 2
    assert noted([note.reworded(in_flags) for note in found.notes]) == ("t: use --cluster x",)


LOOKED_FOR = {
    # the words of others: click's, Python's, a type's
    ("harness_noise/cli/helps.py", "Got unexpected extra argument"),
    ("adapters/harness_noise_adapters/records.py", "Unterminated string"),
    ("harness_noise/extra/arena/profiles.py", " | None"),
    ("harness_noise/results/rows.py", "float | None"),
    # values of fields
    ("harness_noise/data/units.py", "equivalent within "),
    ("harness_noise/extra/dropping/memory.py", "arena looks"),
    ("harness_noise/extra/arena/profiles.py", '"kind": "'),
    ("harness_noise/extra/gate/report.py", "A − B"),
    ("harness_noise/report/sentences.py", "A better"),
    ("harness_noise/report/sentences.py", "not separable"),
    ("harness_noise/report/sentences.py", "Fisher's exact"),
    ("harness_noise/cli/commands.py", "In a run"),  # a group of commands
}
"""Texts of several words that code looks for, or compares with."""
SEARCHES = {"startswith", "endswith", "removeprefix", "removesuffix", "partition", "rpartition", "find", "index"}


def looked_for(tree: ast.Module) -> set[str]:
    """Texts of several words that are compared with another text, or looked for in it."""
    places: list[ast.expr] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            places += [node.left, *node.comparators]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in SEARCHES:
            places += node.args
    texts = (part.value for place in places for part in ast.walk(place) if isinstance(part, ast.Constant))
    return {text for text in texts if isinstance(text, str) and " " in text.strip() and any(map(str.isalpha, text))}


def test_no_code_looks_into_its_own_sentences() -> None:
    assert {(name, text) for name, tree in SOURCES.items() for text in looked_for(tree)} - LOOKED_FOR == set()
