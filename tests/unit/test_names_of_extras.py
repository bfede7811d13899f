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
        "harness_noise/results/diagnostics.py": "names a field of the JSON",
        "harness_noise/results/parts.py": FIELDS,
        "harness_noise/results/rows.py": FIELDS,
    },
}
"""Word → file of the core that has it → its reason."""


def files_with(word: str) -> set[str]:
    """The files outside `extra/` that have a word, alone, in the plural or in a name with underscores."""
    of_word = re.compile(rf"(?<![a-z]){word}s?(?![a-z])", re.IGNORECASE)
    every = (path for package in (CORE, ADAPTERS) for path in package.rglob("*") if path.is_file())
    core = (path for path in every if not {"extra", "__pycache__"} & {*path.parts} and path.name != "schema.json")
    texts = ((path, path.read_text(encoding="utf-8")) for path in core)
    return {
        str(path.relative_to(CORE.parent if CORE in path.parents else ADAPTERS.parent))
        for path, text in texts
        if of_word.search(text)
    }


@pytest.mark.parametrize("word", NAMED)
def test_few_files_of_the_core_name_an_extra(word):
    assert files_with(word) == {*NAMED[word]}
    assert len(NAMED[word]) <= 5
