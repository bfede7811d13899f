"""The glossary's page on standard output: `python -m harness_noise.extra.glossary > docs/glossary.md`."""

from __future__ import annotations

from .terms import Term, all_terms

_HEAD = """# Glossary

The words of the screen, the pages and these docs, each defined once. `harness-noise what deff RUN` says the same with
the numbers of a run, and pages show it when the pointer rests on a column. This page is made by
`python -m harness_noise.extra.glossary`.
"""


def page() -> str:
    """Return docs/glossary.md: a Markdown table of all terms with columns and JSON fields."""
    rows = ["| term | what it means | columns | JSON |", "|---|---|---|---|"]
    for term in all_terms().values():
        rows.append(f"| {_cell(term)} | {term.says} | {_listed(term.labels)} | {_code(term.fields)} |")
    return "\n".join([_HEAD, *rows, ""])


def _cell(term: Term) -> str:
    return f"[{term.name}]({term.page}.md)"


def _listed(labels: tuple[str, ...]) -> str:
    return ", ".join(label for label in labels if label)


def _code(fields: tuple[str, ...]) -> str:
    return ", ".join(f"`{name}`" for name in fields)


if __name__ == "__main__":
    print(page(), end="")
