"""A reader finds each of ten answers in two clicks, by the links and the navigation of the site."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
HOME = "README"
ANSWERS = (
    ("What is `deff`?", ("Reference", "Glossary"), "How many times clusters inflate the variance"),
    ("What does `few_flips` mean?", ("Reference", "Diagnostics"), "`few_flips` | "),
    (
        "Why is my SE larger than lm-eval's?",
        ("How-to", "Why are my error bars different now?"),
        "a standard error **larger** than the harness's",
    ),
    ("Do I cluster by MMLU subject?", ("How-to", "Do my questions belong together?"), "such as MMLU's | none"),
    ("Which lm-eval version do I need?", ("Reference", "Versions"), "live runs | 0.4.10 or newer"),
    (
        "One number over five benchmarks?",
        (HOME, "What is the one number over several benchmarks?"),
        "all tasks as\none number",
    ),
    ("My CSV has one column per model", ("How-to", "My files come from elsewhere"), "a column for each model"),
    ("Which exit code means \"cannot judge\"?", ("Reference", "Commands"), "or a gate that cannot judge |"),
    ("How is p adjusted?", ("Methods", "Tests"), "adjusted, by Holm (default)"),
    ("Where does the 95.3% come from?", ("Validation", "Means, differences and tests"), "95.3"),
)  # fmt: skip


def after(clicks: tuple[str, str]) -> tuple[Path, str]:
    """Return the page that two clicks lead to, a tab and a page or a link of the home, and the anchor on it."""
    if clicks[0] == HOME:
        text = (ROOT / "README.md").read_text(encoding="utf-8")
        ((page, anchor),) = re.findall(
            rf"\[{re.escape(clicks[1])}\]\(\S+/main/docs/([\w/-]+\.md)(?:#([\w-]+))?\)", text
        )
        return DOCS / page, anchor
    written = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")[2]
    (tab,) = (each[clicks[0]] for each in yaml.safe_load(written) if clicks[0] in each)
    (page,) = (each[clicks[1]] for each in tab if isinstance(each, dict) and clicks[1] in each)
    return DOCS / page, ""


@pytest.mark.parametrize(("question", "clicks", "words"), ANSWERS)
def test_an_answer_is_two_clicks_away(question: str, clicks: tuple[str, str], words: str) -> None:
    page, anchor = after(clicks)
    text = page.read_text(encoding="utf-8")
    for table in re.findall(r"^\[Table: .*?\]\((.*?)\)$", text, re.M):  # drawn when the site is built
        text += (page.parent / table).read_text(encoding="utf-8")
    heads = {
        re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-"): head for head in re.findall(r"^#+ (.+)$", text, re.M)
    }
    section = text.partition(f"# {heads[anchor]}\n")[2] if anchor else text
    assert words in section, question
