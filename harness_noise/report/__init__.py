"""One summary, many renderers: terminal, Markdown, LaTeX, CSV, HTML."""

FORMATS = ("table", "json", "markdown", "latex", "csv", "sentence", "svg")
"""The forms in which a result is printed (`text.render`)."""
