"""Plain tables beside pandas: rows of `bench_read.py`.

    python benchmarks/read_tables.py ours|pandas FILE SMALL   prints CPU seconds and megabytes above the import

pandas reads the file, groups it by task and model, and pivots each part into questions × repeats; of JSON lines it gets
what `orjson` decodes. Nobody asks it which column is what, whether all rows are whole and numbers are numbers.
"""

from __future__ import annotations

import csv
import json
import random
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from table import Row, size

OURS, PANDAS = "ours", "pandas"
FORMS = {
    "CSV of 200,000 rows × 12 columns": ("wide.csv", 200_000, True, 4.0),
    "CSV of 60,000 rows × 6 columns": ("narrow.csv", 60_000, False, 4.0),
    "JSON lines of 200,000 rows × 12 columns": ("wide.jsonl", 200_000, True, 2.0),
}
"""What is read → name, rows, whether there are columns that nobody needs, and the aim."""


def rows_of(n: int, more: bool) -> list[dict[str, Any]]:
    """Four models, five tasks, two answers to each question, in clusters of five."""
    draw, out = random.Random(0), []
    for i in range(n):
        cell, answer = divmod(i, 2)
        part, question = cell % 20, cell // 20
        row = {
            "model": f"m{part % 4}", "task": f"t{part // 4}", "question": f"t{part // 4}-q{question}", "repeat": answer,
            "cluster": f"c{question // 5}", "score": float(draw.random() < 0.6),
        }  # fmt: skip
        if more:
            note, cost = "x" * draw.randrange(3, 9), round(draw.random() / 100, 6)
            row |= {
                "prompt_tokens": draw.randrange(1000),
                "latency": round(draw.random(), 4),
                "note": note,
                "cost": cost,
            }
            row |= {"answer": draw.choice("ABCD"), "target": draw.choice("ABCD")}
        out.append(row)
    return out


def write(path: Path, n: int, more: bool) -> None:
    found = rows_of(n, more)
    with path.open("w", newline="", encoding="utf-8") as file:
        if path.suffix == ".csv":
            writer = csv.DictWriter(file, list(found[0]))
            writer.writeheader()
            writer.writerows(found)
        else:
            file.writelines(json.dumps(row) + "\n" for row in found)


def by_pandas(path: Path) -> None:
    import orjson
    import pandas as pd

    if path.suffix == ".csv":
        frame = pd.read_csv(path)
    else:
        with path.open("rb") as file:
            frame = pd.DataFrame(list(map(orjson.loads, file)))
    for _, part in frame.groupby(["model", "task"]):
        part.pivot(index="question", columns="repeat", values="score").to_numpy()


def by_ours(path: Path) -> None:
    import harness_noise

    assert len(harness_noise.read(path)) == 4


def peak() -> float:
    """Megabytes; of this process alone, where `ru_maxrss` may be that of the one which started it."""
    found = re.search(r"VmHWM:\s*(\d+)", Path("/proc/self/status").read_text())
    return int(found[1]) / 1024 if found else 0.0


def measured(reader: str, path: Path, small: Path) -> tuple[float, float]:
    command = [sys.executable, __file__, reader, str(path), str(small)]
    seconds, megabytes = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.split()
    return float(seconds), float(megabytes)


def rows(folder: Path, rounds: int) -> list[Row]:
    """The rows of the table of benchmarks."""
    out = []
    for what, (name, n, more, aim) in FORMS.items():
        path, small = folder / name, folder / f"small-{name}"
        write(path, size(n, 400), more)
        write(small, 400, more)
        found = [(measured(OURS, path, small), measured(PANDAS, path, small)) for _ in range(rounds)]
        (ours, ours_mb), (peer, peer_mb) = ([min(column) for column in zip(*each, strict=True)]
                                            for each in zip(*found, strict=True))  # fmt: skip
        out.append(Row(f"read a {what}", ours, "pandas, by task and model", peer, aim))
        out.append(Row("memory above the import", max(ours_mb, 1), "pandas", max(peer_mb, 1), 2.0, unit="MB"))
    return out


if __name__ == "__main__":
    read = by_ours if sys.argv[1] == OURS else by_pandas
    read(Path(sys.argv[3]))
    before, start = peak(), time.process_time()
    read(Path(sys.argv[2]))
    print(time.process_time() - start, peak() - before)
