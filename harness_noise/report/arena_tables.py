"""The arena's tables as files: unrounded, one file each."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

from ..errors import InputError
from ..io.atomic import replacing_path, write_text
from .text import escape_spreadsheet_formula

if TYPE_CHECKING:
    import pandas as pd

    from ..results.arena import Arena

Format = Literal["csv", "json", "parquet"]


def write_tables(arena: Arena, folder: Path, kind: Format = "csv") -> list[Path]:
    """Write `models`, `pairs`, `benchmarks`, `questions`, and `slices` where there are any, into `folder`.

    Returns the files.
    What is not identified is empty in CSV and null in JSON (one array of objects) and Parquet. In CSV,
    text that a spreadsheet would run as a formula is quoted.

    Raises:
        InputError: an unknown format, Parquet without pyarrow, or a folder that cannot be written.
    """
    if kind not in get_args(Format):
        raise InputError(f"format {kind!r} is not one of {', '.join(get_args(Format))}")
    written = []
    content = arena.to_dict() if kind == "json" else {}
    for name, frame in arena.to_frames().items():
        path = folder / f"{name}.{kind}"
        if kind == "parquet":
            _parquet(frame, path)
        elif kind == "json":
            write_text(path, json.dumps(content[name], indent=2, ensure_ascii=False, allow_nan=False) + "\n")
        else:
            write_text(path, frame.map(escape_spreadsheet_formula).to_csv(index=False, lineterminator="\n"))
        written.append(path)
    return written


def _parquet(frame: pd.DataFrame, path: Path) -> None:
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        raise InputError("Parquet needs pyarrow: pip install 'harness-noise[parquet]'") from None
    with replacing_path(path) as temporary:
        frame.to_parquet(temporary, index=False)
