"""One summary, many renderers: terminal, Markdown, LaTeX, CSV, HTML."""
