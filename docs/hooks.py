"""What the site has beside its pages: the README as its home, and formulas as MathML, which needs no script."""

from __future__ import annotations

import re
from functools import cache
from html import unescape
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

from latex2mathml.converter import convert

ROOT = Path(__file__).resolve().parents[1]
BLOB = "https://github.com/harness-noise/harness-noise/blob/main/docs/"
RAW = "https://raw.githubusercontent.com/harness-noise/harness-noise/main/docs/"
SITE = "https://harness-noise.github.io/harness-noise/"


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """The README in place of the home, its links to our pages and pictures as those of the site. Tables elsewhere."""
    if page.file.src_uri != "index.md":
        return _sessions(_bars(_results().drawn(markdown)))
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for address in (BLOB, RAW, SITE):
        readme = readme.replace(address, "")
    readme = _pictures(_bars(readme))
    return re.sub(r"^\[?!\[.*\n", "", readme, flags=re.M)  # the badges, which would be loaded from elsewhere


def _pictures(markdown: str) -> str:
    """A picture in two schemes as two images, of which the theme shows the one of the scheme that is chosen."""
    return re.sub(
        r'<picture>\s*<source media="\(prefers-color-scheme: dark\)" srcset="(.*?)">\s*<img (.*?) src="(.*?)" (.*?)>'
        r"\s*</picture>",
        r'<img \2 src="\3#only-light" \4><img \2 src="\1#only-dark" \4>',
        markdown,
    )


def _bars(markdown: str) -> str:
    """A `\\|` of a name in a table as a bar. GitHub needs the backslash; here it would be shown."""
    code = re.compile(r"`[^`\n]+`")
    return re.sub(
        r"^\|.*$",
        lambda line: code.sub(lambda name: name[0].replace("\\|", "|"), line[0]),
        markdown,
        flags=re.M,
    )


def _sessions(markdown: str) -> str:
    """Blocks of Python with prompts as sessions, whose output is not coloured as code."""
    return re.sub(r"^```python\n(?=>>> )", "```pycon\n", markdown, flags=re.M)


@cache
def _results() -> Any:
    """The module that draws the tables of simulations, which is in no package."""
    spec = spec_from_file_location("results", ROOT / "benchmarks" / "results.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def on_page_content(html: str, **_: Any) -> str:
    """Every formula that Markdown has marked as MathML."""
    html = re.sub(
        r'<span class="arithmatex">\\\((.*?)\\\)</span>', lambda found: _drawn(found[1], "inline"), html, flags=re.S
    )
    return re.sub(
        r'<div class="arithmatex">\s*\\\[(.*?)\\\]\s*</div>', lambda found: _drawn(found[1], "block"), html, flags=re.S
    )


def _drawn(formula: str, display: str) -> str:
    drawn = convert(unescape(formula).strip(), display=display)
    return drawn if display == "inline" else f'<div style="overflow-x: auto">{drawn}</div>'
