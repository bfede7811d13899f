"""The reference page of all estimators, intervals and tests, made of their registers."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from ..choices import REGISTERS, Register, load_packages
from ..extras import calculations, commands
from ..settings import obeyed

_COMMANDS = ("analyze", "compare", "export")
_DESIGNS_IN_WORDS = {
    "unpaired": "`--unpaired`",
    "fixed": "`--questions-are fixed`",
    "runs": "`--repeats-are runs`",
    "crossed": "crossed clusters",
    "corpus": "[corpus metrics](methods/corpus.md)",
    "corpus_difference": "differences of corpus metrics",
}
_HEADINGS = {"se": "Variance estimators", "interval": "Intervals", "test": "Tests of a difference"}
_PAGE = """# All choices

The estimators, intervals and tests of `--se`, `--interval` and `--test`, as the program knows them. This page is made
by `python -m harness_noise.report.choices`. A package adds its own with `harness_noise.choices.register`, in a module
that it names under the entry point group `harness_noise.choices`.

"""


def page(registers: Collection[Register[Any]] = tuple(REGISTERS.values())) -> str:
    """Return docs/choices.md: for each setting (interval, test, …) a Markdown table of its choices."""
    load_packages()
    designs = _DESIGNS_IN_WORDS | {name: one.words for name, one in calculations().items() if one.words}
    tables = []
    for each in registers:
        head = ["Name", "Printed as", "What it is", "For", "Commands", "Also with"]
        lines = [f"## {_HEADINGS[each.setting]}", "", f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
        for name in each:
            item = each[name]
            cells = [
                f"`{name}`",
                each.title(name),
                item.words,
                item.domain_words or ("all scores" if item.beside else "–"),
            ]
            own = {x for x in calculations() if (some := obeyed(each.setting, x)) is None or name in some}
            by = item.consumers | (own if item.beside else set())
            cells.append(", ".join(f"`{x}`" for x in (*_COMMANDS, *commands()) if x in by) or "only printed")
            cells.append(", ".join(words for x, words in designs.items() if x in by) or "–")
            lines.append(f"| {' | '.join(cells)} |")
        tables.append("\n".join(lines))
    return _PAGE + "\n\n".join(tables) + "\n"


if __name__ == "__main__":
    print(page(), end="")
