"""The glossary: every word of the screen, what it means, and what a run's numbers say of it.

One file of terms (`terms.toml`) makes `harness-noise what`, the tooltips of pages and `docs/glossary.md`.
"""

from ...extras import Extra

EXTRA = Extra(
    functions={"what": "api", "terms": "api", "Meaning": "api"},
    commands={"what": "cli"},
    tooltips="api",
)
"""`harness-noise what TERM [RUN…]`."""
