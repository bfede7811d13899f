"""The file of answers that people are to label."""

from __future__ import annotations

import csv as csv_
import io
from pathlib import Path

from ...io.atomic import write_text
from ...report.text import escape_spreadsheet_formula
from .results import LabelSample


def write_label_sample(sample: LabelSample, path: Path) -> None:
    """Write drawn answers as a CSV file that people fill in with labels in a spreadsheet. Replace one that is there."""
    out = io.StringIO()
    writer = csv_.writer(out, lineterminator="\n")
    writer.writerow(sample.columns)
    for answer in sample.rows:
        cells = (getattr(answer, name) for name in sample.columns)
        writer.writerow(["" if cell is None else escape_spreadsheet_formula(cell, lines=True) for cell in cells])
    write_text(path, out.getvalue())
