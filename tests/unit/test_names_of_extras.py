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
        "harness_noise/report/summary.py": "shows that field of a result, if it has records",
        "harness_noise/results/diagnostics.py": "names a field of the JSON",
        "harness_noise/results/parts.py": FIELDS,
        "harness_noise/results/rows.py": FIELDS,
    },
}
"""Word → file of the core that has it → its reason."""


def files_with(word: str) -> set[str]:
    """The files of the core that have a word, alone, in the plural or in a name with underscores."""
    return files_with_text(re.compile(rf"(?<![a-z]){word}s?(?![a-z])", re.IGNORECASE))


def files_with_text(of_word: re.Pattern[str]) -> set[str]:
    """The files outside `extra/` in which an expression is found."""
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


JUDGED = "shows or keeps the correction of a judge by what people say, which is a field of rows"
PEOPLE = {
    "harness_noise/__init__.py": PUBLIC,
    "harness_noise/api/keywords.py": "keywords of `analyze` and `compare`, which the extra handles",
    "harness_noise/report/columns.py": JUDGED,
    "harness_noise/report/diagnostics.py": "advice of diagnostics where people correct the row",
    "harness_noise/results/diagnostics.py": "advice of diagnostics where people correct the row",
    "harness_noise/results/rows.py": FIELDS,
}
"""File of the core that knows what people say of answers → its reason."""
_OF_PEOPLE = re.compile(
    r"human labels?|(?<!un)labelled(?= answers)|labels?_(scorer|range|at_random|sample)|n_labelled|people_labels"
    r"|with_labels"
)


def test_the_files_that_know_labels_of_people_are_listed():
    """A label is also the name of a cluster, a column, a row or an axis, which is a word of the core."""
    assert files_with_text(_OF_PEOPLE) == {*PEOPLE}
