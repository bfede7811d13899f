"""Human labels of 500 questions beside `analyze` of the same table without them. It has 10,000 questions × 5 answers ×
3 scorers. Both are commands, and the time includes the start of the process.

    python benchmarks/bench_labels.py [--questions 10000] [--answers 5] [--scorers 3] [--labels 500] [--rounds 3]
"""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from table import Row, parser, show, size


def write(folder: Path, questions: int, answers: int, scorers: int, labels: int) -> tuple[Path, Path]:
    draw = random.Random(0)
    run, people = folder / "run.csv", folder / "labels.csv"
    truth = [int(draw.random() < 0.7) for _ in range(questions)]
    lines = ["question,repeat,scorer,score,cluster"]
    for i, right in enumerate(truth):
        for k in range(answers):
            lines += [
                f"q{i},{k},judge{s},{right if draw.random() < 0.9 - 0.1 * s else 1},c{i // 4}" for s in range(scorers)
            ]
    run.write_text("\n".join(lines) + "\n")
    drawn = draw.sample(range(questions // 4), labels // 4)
    rows = [f"q{4 * c + j},{truth[4 * c + j]}" for c in drawn for j in range(4)]
    people.write_text("\n".join(["question,label", *rows]) + "\n")
    return run, people


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
    options.add_argument("--questions", type=int, default=size(10_000, 400))
    options.add_argument("--answers", type=int, default=size(5, 2))
    options.add_argument("--scorers", type=int, default=size(3, 2))
    options.add_argument("--labels", type=int, default=size(500, 80))
    options.add_argument("--rounds", type=int, default=size(3, 1))
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        design = (chosen.questions, chosen.answers, chosen.scorers, chosen.labels)
        run, people = write(Path(folder), *design)
        plain = seconds(["analyze", str(run)], chosen.rounds)
        labelled = seconds(["analyze", str(run), "--labels", str(people)], chosen.rounds)
    what = f"labels of {chosen.labels}: {chosen.questions:,} questions × {chosen.answers} × {chosen.scorers} scorers"
    return show([Row(what, labelled, "`analyze` without labels", plain, 2.0)])


if __name__ == "__main__":
    sys.exit(main())
