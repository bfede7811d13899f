"""What starting costs: each command beside its peer, in turn, processor time of the whole process.

Prints one line per target and exits with 1 where a target is missed.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROUNDS = 15
BIN = Path(sys.executable).parent


def seconds(command: list[str], cwd: str) -> float:
    """User and system time of one run."""
    before = os.times()
    subprocess.run(command, check=True, cwd=cwd, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    after = os.times()
    return after.children_user - before.children_user + after.children_system - before.children_system


def ratio(ours: list[str], peer: list[str], cwd: str) -> float:
    """Median of the ratios of runs in pairs, after one of each that does not count."""
    seconds(ours, cwd), seconds(peer, cwd)
    pairs = [(seconds(ours, cwd), seconds(peer, cwd)) for _ in range(ROUNDS)]
    return statistics.median(a for a, _ in pairs) / statistics.median(b for _, b in pairs)


def main() -> int:
    python, command = [sys.executable, "-c"], str(BIN / "harness-noise")
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "scores.csv"
        rows = [f"q{i},{int(i * 7 % 10 < 6)},{i // 10}" for i in range(200)]
        table.write_text("question,score,cluster\n" + "\n".join(rows) + "\n")
        needed = "import numpy, scipy.special, rich.console, rich.table, click, csv, importlib.metadata"
        targets = [
            (
                "harness-noise --help / import click",
                [command, "--help"],
                [*python, "import click"],
                1.6,
            ),
            ("import harness_noise / pass", [*python, "import harness_noise"], [*python, "pass"], 3.0),
            (
                "analyze 200 questions / its imports",
                [command, "analyze", str(table), "-q"],
                [*python, needed],
                1.5,
            ),
        ]
        missed = 0
        for name, ours, peer, limit in targets:
            found = ratio(ours, peer, folder)
            missed += found > limit
            print(f"{name}: {found:.2f} × (target ≤ {limit})")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
