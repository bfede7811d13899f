"""The tables of an arena as files."""

from __future__ import annotations

import json as json_
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from ...errors import InputError, check_kind, check_one_of
from ...io.atomic import replacing_path, write_text
from ...report.text import escape_spreadsheet_formula

if TYPE_CHECKING:
    import pandas as pd

    from .results import Arena


Format = Literal["csv", "json", "parquet"]


def write_tables(result: Arena, folder: str | Path, kind: Format = "csv") -> list[Path]:
    """Write all tables of an arena, unrounded, one file each. Return the paths.

    Parameters
    ----------
    result
        The result of `arena`.
    folder
        Gets `models`, `pairs`, `benchmarks`, `questions` and, where there are any, `slices`.
    kind
        ``"csv"``, where text that a spreadsheet would run as a formula is quoted; ``"json"``, one array of objects;
        or ``"parquet"``. What cannot be estimated is empty in CSV, else null.

    Returns
    -------
    list of Path
        The files that were written.

    Raises
    ------
    InputError
        An unknown format, Parquet without pyarrow, or a folder that cannot be written.
    """
    from .results import Arena  # no small command needs it

    check_kind("write_tables", result, Arena)
    check_one_of("kind", kind, Format)
    written = []
    content = result.to_dict() if kind == "json" else {}
    for name, frame in result.to_frames().items():
        path = Path(folder) / f"{name}.{kind}"
        if kind == "parquet":
            _parquet(frame, path)
        elif kind == "json":
            write_text(path, json_.dumps(content[name], indent=2, ensure_ascii=False, allow_nan=False) + "\n")
        elif kind == "csv":
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
