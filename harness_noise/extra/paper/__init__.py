"""All that a paper needs of a result, in a folder: table, sentence, figure, methods with references, numbers."""

from ...extras import Extra, Writer

EXTRA = Extra(
    functions={"write_paper": "write"},
    writers=(
        Writer(
            "--paper",
            "Write what a paper needs: table.tex, sentence.txt, figure.svg, methods.md and result.json.",
            "write_paper",
            ("analyze", "compare", "arena"),
        ),
    ),
)
