"""A finished log of a live run, written again with its noise."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from harness_noise.analysis.mean import analyze_run
from harness_noise.data.scores import ReadOptions
from harness_noise.io.atomic import replacing_path
from harness_noise.results.rows import Analysis

from .live import BULKY, Live

if TYPE_CHECKING:
    from inspect_ai.log import EvalLog

    from .logfile import LogFile


def rewrite(live: Live, log: EvalLog) -> Analysis | None:
    """The public route: read the finished log's scores, and write its header again."""
    from .export import insert
    from .read import assemble

    header, found = native(log.location, live.flag.cluster)
    if not len(found.answers):
        live.warnings = [f"{live.spec.task}: no error bars: with this Inspect they need logged samples"]
        return None
    read = assemble(Path(log.location), found, ReadOptions(), recorded=live.flag.cluster)
    analysis = analyze_run(read.run, live.flag.settings)
    assert header.results is not None
    assert log.results is not None
    insert(header.results, read, analysis)
    shown = log.results.model_copy(deep=True)
    insert(shown, read, analysis)
    _write_header(header, log.location)
    log.results.scores = shown.scores
    live.warnings = list(analysis.notes)
    return analysis


def native(location: str, spec: str | None) -> tuple[EvalLog, LogFile]:
    """A log as Inspect's own functions read it, wherever it is; `spec` names the clusters."""
    from inspect_ai.log import read_eval_log, read_eval_log_sample_summaries

    from .logfile import needs_samples, of_native

    header = read_eval_log(location, header_only=True)
    plain = header.model_dump(mode="json", exclude={"samples", "reductions"})
    found = of_native(plain, [row.model_dump(mode="json") for row in read_eval_log_sample_summaries(location)])
    if needs_samples(found.header, found.answers, [spec or "cluster"]):
        whole = read_eval_log(location, exclude_fields=BULKY).samples or []
        found = of_native(plain, [row.model_dump(mode="json") for row in whole]) if whole else found
    return header, found


def _write_header(header: EvalLog, location: str) -> None:
    """Into a copy that takes the log's place, where it is a local file: a full disk must not cost the log."""
    from inspect_ai.log import write_eval_log

    path = Path(location)
    if not path.is_file():
        write_eval_log(header, location, header_only=True)
        return
    with replacing_path(path) as temporary:
        shutil.copyfile(path, temporary)
        kind: Literal["json", "eval"] = "json" if path.suffix == ".json" else "eval"
        write_eval_log(header, str(temporary), format=kind, header_only=True)
