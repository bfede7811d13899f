"""A gate over 57 tasks of 1,000 questions, in two tables, beside `compare` of the same files. Both are commands, and
the time includes the start of the process.

    python benchmarks/bench_gate.py [--tasks 57] [--questions 1000] [--rounds 3]
"""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from table import Row, parser, show, size


def write(path: Path, tasks: int, questions: int, seed: int) -> None:
    draw = random.Random(seed)
    lines = ["task,question,score"]
    for t in range(tasks):
        for i in range(questions):
            right = (i * 7919 + t) % 1000 < 700
            lines.append(f"t{t},q{i},{int(right if draw.random() < 0.9 else draw.random() < 0.7)}")
    path.write_text("\n".join(lines) + "\n")


def seconds(words: list[str], rounds: int) -> float:
    """The shortest of several runs of a command."""
    best = float("inf")
    for _ in range(rounds):
        start = time.perf_counter()
        subprocess.run([sys.executable, "-m", "harness_noise", *words, "-q"], capture_output=True, check=True)
        best = min(best, time.perf_counter() - start)
    return best


def main() -> int:
    options = parser(__doc__)
    options.add_argument("--tasks", type=int, default=size(57, 3))
    options.add_argument("--questions", type=int, default=size(1000, 20))
    options.add_argument("--rounds", type=int, default=size(3, 1))
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        new, old = (Path(folder) / f"{name}.csv" for name in ("new", "old"))
        for seed, path in enumerate((new, old)):
            write(path, chosen.tasks, chosen.questions, seed)
        compare = seconds(["compare", str(new), str(old)], chosen.rounds)
        gate = seconds(["gate", str(new), "--against", str(old), "--margin", "0.05"], chosen.rounds)
    what = f"gate {chosen.tasks} tasks × {chosen.questions:,} questions"
    return show([Row(what, gate, "`compare` of the same files", compare, 1.3)])


if __name__ == "__main__":
    sys.exit(main())
