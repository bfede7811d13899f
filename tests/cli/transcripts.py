"""The transcripts in `golden/`: what the main commands print in terminals of 80 and of 120 columns.

`PYTHONPATH=tests:adapters python tests/cli/transcripts.py` writes them anew.
"""

from __future__ import annotations

import csv
import io
import os
import random
import tempfile
from collections.abc import Iterator
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from unittest import mock

GOLDEN = Path(__file__).parent / "golden"
WIDTHS = (80, 120)
COMMANDS: dict[str, str] = {
    "compare-better": "compare new.csv old.csv",
    "compare-same": "compare near.csv old.csv",
    "compare-details": "compare new.csv old.csv --details",
    "compare-many": "compare many-new.csv many-old.csv",
    "compare-questions": "compare new.csv old.csv --questions 3 --quiet",
    "compare-whole": "compare new.csv old.csv --questions 2 --details --quiet",
    "compare-by": "compare new.csv old.csv --by length --quiet",
    "compare-counts": "compare 74/100 66/100 --models new,old",
    "compare-numbers": "compare 0.71 0.68 --profile gpqa_diamond",
    "compare-legend": "compare near.csv old.csv --legend --quiet",
    "compare-percent": "compare 71% 68%",
    "compare-sentence": "compare new.csv old.csv --format sentence",
    "compare-latex": "compare new.csv old.csv --format latex",
    "analyze": "analyze new.csv",
    "analyze-two": "analyze new.csv old.csv --quiet",
    "analyze-single": "analyze single.csv",
    "analyze-many": "analyze many-new.csv many-old.csv --quiet",
    "analyze-details": "analyze many-new.csv --details --quiet",
    "arena": "arena board.csv",
    "arena-details": "arena board.csv --details --quiet",
    "regress": "regress new.csv old.csv --on length",
    "gate": "gate old.csv --against new.csv --margin 0.01 --quiet",
    "gate-no-loss": "gate near.csv --against old.csv --rule no-loss --margin 0.02 --self-test --quiet",
    "factors": "factors seeds.csv --factor seed=seed --factor prompt=prompt",
    "plan-runs": "plan --effect 0.05 --from new.csv old.csv",
    "plan-accuracy": "plan --effect 0.02 --accuracy 0.7",
    "plan-clusters": "plan --effect 0.02 --accuracy 0.7 --cluster-size 10 --icc 0.2",
    "plan-alone": "plan",
}
"""Name → the command that is typed, in the folder of `runs`."""


def runs(folder: Path) -> None:
    """Small tables of simulated models, the same everywhere."""
    ease = random.Random("ease")
    families = [ease.betavariate(0.7, 0.6) for _ in range(16)]
    for name, shift in (("new", 0.16), ("near", 0.03), ("old", 0.0)):
        _table(folder / f"{name}.csv", list(_answers(name, families, shift, 3)))
    _table(folder / "single.csv", [{**row, "cluster": ""} for row in _answers("single", families[:6], 0.0, 1)])
    for name, shift in (("many-new", 0.05), ("many-old", 0.0)):
        rows = [
            {"task": f"subject_{t:02}", **row}
            for t in range(20)
            for row in _answers(f"{name}{t}", families[:14], shift * (10 if t in (3, 11) else 1), 2)
        ]
        _table(folder / f"{name}.csv", rows)
    board = [{"model": f"model-{m}", **row} for m in range(6) for row in _answers(f"board{m}", families, 0.06 * m, 2)]
    _table(folder / "board.csv", board)
    seeds = [
        {**row, "seed": f"s{s}", "prompt": f"p{p}", "repeat": f"{s}{p}"}
        for s in range(5) for p in range(5) for row in _answers(f"seed{s}{p}", families[:8], 0.02 * s, 1)
    ]  # fmt: skip
    _table(folder / "seeds.csv", seeds)


def _answers(name: str, families: list[float], shift: float, repeats: int) -> Iterator[dict[str, object]]:
    draw = random.Random(name)
    for f, p in enumerate(families):
        for i in range(5):
            for repeat in range(repeats):
                right = draw.random() < min(0.98, p + shift)
                words = f"How many apples are left in basket {f} after day {i}, if {f + 9} were there before?"
                yield {
                    "question_id": f"family{f:02}-{i}", "question": words,
                    "cluster": f"family{f:02}", "length": 40 + 7 * ((3 * f + i) % 9), "target": f + i, "repeat": repeat,
                    "response": f"The answer is {f + i if right else f + i + 1}.", "acc": int(right),
                }  # fmt: skip


def _table(path: Path, rows: list[dict[str, object]]) -> None:
    names = [name for name in rows[0] if name != "cluster" or rows[0]["cluster"]]
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, names, extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)


def transcript(name: str, width: int, folder: Path) -> str:
    """The command, what it prints on stdout, then on stderr, without spaces at the ends of lines."""
    from harness_noise.cli import main

    out, err = io.StringIO(), io.StringIO()
    with chdir(folder), mock.patch.dict(os.environ, COLUMNS=str(width)), redirect_stdout(out), redirect_stderr(err):
        code = main(COMMANDS[name].split())
    parts = [f"$ harness-noise {COMMANDS[name]}", out.getvalue(), err.getvalue(), f"[exit code {code}]" if code else ""]
    lines = "\n".join(part for part in parts if part).splitlines()
    return "\n".join(line.rstrip() for line in lines) + "\n"


def write() -> None:
    """All transcripts, in place of those that are there."""
    for old in GOLDEN.glob("*.txt"):
        old.unlink()
    with tempfile.TemporaryDirectory() as place:
        runs(Path(place))
        for name in COMMANDS:
            for width in WIDTHS:
                (GOLDEN / f"{name}-{width}.txt").write_text(transcript(name, width, Path(place)), encoding="utf-8")


if __name__ == "__main__":
    write()
