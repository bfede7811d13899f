"""Measure the sentences of README, docs, our pages, help and messages, and hold each to its budget (`make prose`).

    python tests/prose.py            fail if a file is above its budget
    python tests/prose.py --lower    write smaller budgets for files that have become plainer

A file without a budget is held to the aims. Budgets only go down: `prose.json` lists the files that miss an aim.
Code, tables, formulas, headings and addresses are not sentences. Of the code, every text of five words or more counts:
`help` is the command line, `screen` what terminals and pages show, `messages` all errors, notes and advice.
"""

from __future__ import annotations

import ast
import json
import math
import re
import statistics
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BUDGETS = Path(__file__).with_suffix(".json")
AIMS = {"median": 15.0, "long": 5.0, "semicolons": 2.0, "where": 2.0}
"""Words of the median sentence, sentences above 30 words in percent, semicolons and "where" per 1,000 words."""
MOST_WORDS = 35_000
FEWEST_WORDS = 5
OF_THE_TEAM = ("CONTRIBUTING.md", "benchmarks/README.md", "adapters/harness_noise_adapters/extra/demo/runs/README.md",
               "upstream/README.md")  # fmt: skip
"""Pages that no user reads. Their words do not count."""
CODE = ("harness_noise", "adapters")
NO_SENTENCES = (
    r"^```.*?^```$", r"^\|.*?$", r"<!--.*?-->", r"\$\$.*?\$\$", r"^---\n.*?^---$", r"^#.*?$", r"</?[a-z][^<>]*>",
    r"^\[(?:Table|Rows): .*?$", r"(?<=\])\([^)]*\)",
)  # fmt: skip


def sentences(text: str) -> list[str]:
    """Return the sentences of a page in Markdown; a fragment of one or two words is none."""
    text = re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S)
    text = re.sub(r"(`+)[^`].*?\1", "X", text, flags=re.S)  # before tags: it may hold a < of its own
    for pattern in NO_SENTENCES:
        text = re.sub(pattern, "", text, flags=re.M | re.S)
    text = re.sub(r"^> ?", "", text, flags=re.M)
    text = re.sub(r"^[ \t]*(?:[-*]|\d+\.) ", "\n\n", text, flags=re.M)  # an item of a list
    paragraphs = [" ".join(part.split()) for part in re.split(r"\n\s*\n", text)]
    found = [one for part in paragraphs for one in re.split(r"(?<=[.!?])\s+(?=[A-Z“\"(\[*])", part)]
    return [one for one in found if len(one.split()) > 2]


def measured(found: list[str]) -> dict[str, float]:
    """Return what `AIMS` names."""
    lengths = [len(one.split()) for one in found]
    words = sum(lengths)
    return {
        "median": statistics.median(lengths),
        "long": 100 * sum(length > 30 for length in lengths) / len(lengths),
        "semicolons": 1000 * sum(one.count(";") for one in found) / words,
        "where": 1000 * sum(len(re.findall(r"\bwhere\b", one, re.I)) for one in found) / words,
    }


def texts(tree: ast.AST) -> Iterator[str]:
    """Yield the texts of a module for people: of five words or more, no docstrings, with X for what is filled in."""
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    made = [node for node in ast.walk(tree) if isinstance(node, ast.JoinedStr)]
    inner = {id(part) for node in made for part in ast.walk(node) if part is not node}
    for node in ast.walk(tree):
        match node:
            case ast.Constant(str(text)) if id(node) not in docstrings | inner:
                pass
            case ast.JoinedStr(values=parts) if id(node) not in inner:
                text = "".join(str(part.value) if isinstance(part, ast.Constant) else "X" for part in parts)
            case _:
                continue
        if len(text.split()) >= FEWEST_WORDS and re.search(r"[a-z] [a-z]", text):
            yield text


def of_code() -> dict[str, list[str]]:
    """Return the sentences of help, screen and messages."""
    found: dict[str, list[str]] = {"help": [], "screen": [], "messages": []}
    for path in sorted(path for folder in CODE for path in (ROOT / folder).rglob("*.py")):
        kind = "help" if "cli" in (path.parent.name, path.stem) else "messages"
        kind = "screen" if "report" in (path.parent.name, path.stem) else kind
        for text in texts(ast.parse(path.read_text(encoding="utf-8"))):
            found[kind] += sentences(text)
    return found


def _of_pages(paths: Iterable[Path]) -> dict[str, list[str]]:
    """Return the sentences of each page, by its name."""
    return {path.relative_to(ROOT).as_posix(): sentences(path.read_text(encoding="utf-8")) for path in paths}


def main(arguments: list[str]) -> int:
    """Print what is above its budget."""
    budgets: dict[str, dict[str, float]] = json.loads(BUDGETS.read_text(encoding="utf-8"))
    lower: dict[str, dict[str, float]] = {}
    above = []
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    every = _of_pages(pages)
    words = sum(len(one.split()) for found in every.values() for one in found)
    for name, found in (every | _of_pages(ROOT / name for name in OF_THE_TEAM) | of_code()).items():
        if not found:
            continue
        now = measured(found)
        allowed = AIMS | budgets.get(name, {})
        above += [
            f"{name}: {key} {value:.1f}, and {allowed[key]:g} is allowed"
            for key, value in now.items()
            if value > allowed[key]
        ]
        missed = {key: min(allowed[key], math.ceil(value)) for key, value in now.items() if value > AIMS[key]}
        if missed:
            lower[name] = missed
    if words > MOST_WORDS:
        above.append(f"{words:,} words, and {MOST_WORDS:,} are allowed")
    print(*above, f"{words:,} words; {len(lower)} of them miss an aim", sep="\n")
    if "--lower" in arguments and not above:
        BUDGETS.write_text(json.dumps(lower, indent=1) + "\n", encoding="utf-8")
    return int(bool(above))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
