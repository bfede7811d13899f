"""The core names no extra, but in a few files, each with its reason."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import harness_noise as hn
import harness_noise_adapters

CORE, ADAPTERS = Path(hn.__file__).parent, Path(*harness_noise_adapters.__path__)
PUBLIC = "lists the public names, and their types for type checkers"
COMMANDS = "puts the commands that are shipped in order, and says of a missing one that it is not installed"
FIELDS = "fields and documentation of results, which JSON, the schema and Python keep"
NAMED = {
    "arena": {
        "harness_noise/__init__.py": PUBLIC,
        "harness_noise/api/files.py": "documentation of `write_html` and `save_figures`, which take an Arena",
        "harness_noise/cli/commands.py": COMMANDS,
        "harness_noise/results/diagnostics.py": "advice to make a newer profile",
        "harness_noise/results/rows.py": FIELDS,
    },
    "gate": {
        "harness_noise/__init__.py": PUBLIC,
        "harness_noise/cli/commands.py": COMMANDS,
        "harness_noise/cli/compare.py": "names the command for people who type --fail-on",
        "harness_noise/results/diagnostics.py": "says of which rows there is no verdict",
    },
    "label": {
        "harness_noise/__init__.py": PUBLIC,
        "harness_noise/api/keywords.py": "keywords of `analyze` and `compare`, which the extra handles",
        "harness_noise/cli/commands.py": COMMANDS,
        "harness_noise/report/columns.py": "the columns of a judge that people correct, which are fields of rows",
        "harness_noise/results/rows.py": FIELDS,
    },
    "looks": {
        "harness_noise/api/runs.py": "a keyword of `compare`",
        "harness_noise/inspect_ext.py": "documentation of `stop_when`, which Inspect's users call",
        "harness_noise/results/parts.py": FIELDS,
        "harness_noise/results/rows.py": FIELDS,
        "harness_noise_adapters/asking.py": "lists the options of a harness's run, which are refused without the extra",
    },
    "plan": {
        "harness_noise/__init__.py": PUBLIC,
        "harness_noise/cli/commands.py": COMMANDS,
        "harness_noise/results/rows.py": FIELDS,
        "harness_noise_adapters/inspect_logs/finding.py": "a field of Inspect's logs, of its solvers",
        "harness_noise_adapters/inspect_logs/records.py": "a field of Inspect's logs, of its solvers",
    },
    "sequential": {
        "harness_noise/report/summary.py": "shows that field of a result, if it has records",
        "harness_noise/results/diagnostics.py": "names a field of the JSON",
        "harness_noise/results/parts.py": FIELDS,
        "harness_noise/results/rows.py": FIELDS,
    },
}
"""Word → file of the core that has it → its reason."""
OF_OTHERS = {
    r"aria-label": "HTML's name of a part of a page, for readers of the screen",
    r"</?label>|\.tools label": "HTML's element for the words beside a field",
    r"\\label\{": "LaTeX's command",
    r"label=what": "click's parameter for the words before a bar",
    r"all_label": "a parameter of Inspect's `grouped`",
    r"provider\.label": "a field of promptfoo's files",
    r'"(gold_)?label"(?=, "(graded|truth|golden_answer)")': "names of columns in tables of others",
}
"""Word of another program or format, as an expression, that has no other name → what it is."""


def texts_of_the_core() -> dict[str, str]:
    """File outside `extra/` → its text."""
    every = (path for package in (CORE, ADAPTERS) for path in package.rglob("*") if path.is_file())
    core = (path for path in every if not {"extra", "__pycache__"} & {*path.parts} and path.name != "schema.json")
    return {
        str(path.relative_to(CORE.parent if CORE in path.parents else ADAPTERS.parent)): path.read_text("utf-8")
        for path in core
    }


def files_with(word: str) -> set[str]:
    """The files of the core that have a word, alone, in the plural or in a name with underscores."""
    of_word = re.compile(rf"(?<![a-z]){word}s?(?![a-z])", re.IGNORECASE)
    of_others = re.compile("|".join(OF_OTHERS))
    return {path for path, text in texts_of_the_core().items() if of_word.search(of_others.sub("", text))}


@pytest.mark.parametrize("word", NAMED)
def test_few_files_of_the_core_name_an_extra(word):
    assert files_with(word) == {*NAMED[word]}
    assert len(NAMED[word]) <= 5


def test_each_word_of_others_is_still_there():
    whole = "\n".join(texts_of_the_core().values())
    assert [word for word in OF_OTHERS if not re.search(word, whole)] == []
