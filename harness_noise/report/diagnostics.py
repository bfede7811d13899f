"""The page of all diagnostics, `docs/diagnostics.md`, made from their objects."""

from __future__ import annotations

import re
from collections.abc import Callable

from ..extras import words
from ..results.diagnostics import Diagnostic, Severity, listed
from ..results.forms import all_kinds

_HEAD = """# Diagnostics

Every row of a result has a list of codes: what cannot be estimated, and what needs care. None of them is an
error. A table marks its rows with letters and explains them below, with the advice of the last column here. This page
is made by `python -m harness_noise.cli.diagnostics`.
"""
_LEADS = {
    Severity.STOP: "The number is missing, or it does not say what it seems to say.",
    Severity.CARE: "The number holds, but something about it is less certain than usual.",
    Severity.NOTE: "The number holds. The code says how it was made, or what it cannot show.",
}
_FLAG = re.compile(r"(?<![`\w-])--[a-z][a-z_-]*")


def page(in_flags: Callable[[str], str]) -> str:
    """Return docs/diagnostics.md: a Markdown table of codes for each severity, with an anchor for each code.

    Args:
        in_flags: puts a flag in place of every parameter that a text names in backticks.
    """
    all_kinds()  # those of extras have codes of their own
    parts = [_HEAD]
    for severity in Severity:
        of_this = sorted((item for item in listed() if item.severity is severity), key=lambda item: item.code)
        rows = [_line(item, in_flags) for item in of_this]
        table = ["| code | what it means | what to do |", "|---|---|---|", *rows]
        parts.append("\n".join([f"## {severity.value}", "", _LEADS[severity], "", *table, ""]))
    return "\n".join(parts)


def _line(item: Diagnostic, in_flags: Callable[[str], str]) -> str:
    """Return a diagnostic's line of the Markdown table: code with its anchor, meaning and advice."""
    advice = [_marked(item.to_do, in_flags)]
    for case, text in (("Without clusters", item.without_clusters), (words("corrected"), item.corrected)):
        if text:
            advice.append(f"{case}: {_marked(text[0].lower() + text[1:], in_flags)}")
    return f'| <a id="{item.code}"></a>`{item.code}` | {item.page} | {" ".join(advice)} |'


def _marked(text: str, in_flags: Callable[[str], str]) -> str:
    """Return the advice with parameters replaced by command-line flags, set as code."""
    named = re.sub(r"`[^`]+`", lambda match: f"`{in_flags(match[0]).strip('`')}`", text)
    return _FLAG.sub(r"`\g<0>`", named)
